"""Result files that are either whole or absent.

A file is written under a temporary name in the folder it is meant for and moved into place with
`os.replace`, which is atomic within one file system: whoever reads the result sees the old file
or the new one, whatever happens in between. A process that is killed leaves its temporary file;
`remove_abandoned` takes such files away and never one that somebody still writes to.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

#: Locks on files; Windows has none of this kind.
fcntl: Any = importlib.import_module("fcntl") if importlib.util.find_spec("fcntl") else None

#: Stands for this machine in temporary names: locks tell nothing about writers on other machines.
_HERE = hashlib.blake2b(socket.gethostname().encode("utf-8", "replace"), digest_size=4).hexdigest()
_TEMPORARY = re.compile(r"\.(?P<name>.+)\.(?P<machine>[0-9a-f]{8})-[0-9a-f]{12}\.tmp", re.DOTALL)
_DAY = 86_400.0


def open_beside(path: Path) -> tuple[int, Path]:
    """Open a new, oddly named file in the folder of `path`; a descriptor and its path.

    As long as the descriptor is open a lock says that the file is in use, where there are locks.
    """
    # O_EXCL with 0o666 rather than tempfile.mkstemp: the result gets the permissions that the
    # user's umask gives to any new file, not the private ones of a temporary file.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        temporary = path.with_name(f".{path.name}.{_HERE}-{secrets.token_hex(6)}.tmp")
        try:
            descriptor = os.open(temporary, flags, 0o666)
        except FileExistsError:
            continue
        if fcntl is None:
            return descriptor, temporary
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if temporary.exists():  # else another process removed it before the lock was held
            return descriptor, temporary
        os.close(descriptor)


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file, text in UTF-8 or bytes, that appears whole under `path` or not at all.

    It is written under a temporary name in the same folder, flushed to disk and renamed when the
    block ends; when that raises, Ctrl-C included, `path` is left as it was. Errors name `path`.
    A symbolic link stays, what it points to is written.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        kind, what = (
            (IsADirectoryError, "a folder") if target.is_dir() else (OSError, "no regular file")
        )
        raise kind(f"{path} is {what}, which a result cannot replace; give another name")
    try:
        with _temporary(target, binary) as handle:
            yield handle
    except OSError as error:
        if error.errno is None or (error.filename and not _is_temporary(error.filename)):
            raise
        raise type(error)(error.errno, error.strerror, os.fspath(path)) from error


def _is_temporary(path: Any) -> bool:
    return _TEMPORARY.fullmatch(os.path.basename(os.fsdecode(path))) is not None


@contextlib.contextmanager
def _temporary(target: Path, binary: bool) -> Iterator[IO[Any]]:
    """Open a temporary file that takes its name in the end."""
    remove_abandoned(target.parent, target.name.__eq__)
    descriptor, temporary = open_beside(target)
    try:
        handle: IO[Any]
        if binary:
            handle = os.fdopen(descriptor, "wb")
        else:
            handle = os.fdopen(descriptor, "w", encoding="utf-8", newline="\n")
        with handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
            if fcntl is not None:  # while the lock is held; Windows renames no open file
                os.replace(temporary, target)
        if fcntl is None:
            os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def remove_abandoned(folder: Path, belongs: Callable[[str], bool]) -> None:
    """Remove temporary files whose writers are gone, of those files that the caller answers for.

    A writer holds a lock that ends with its process. Where a lock tells nothing (another machine
    wrote the file, or the file system has no locks) files go when they are a day old. What cannot
    be removed stays, without an error.
    """
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            found = _TEMPORARY.fullmatch(entry.name)
            if found is not None and belongs(found["name"]):
                _remove_if_abandoned(Path(entry.path), here=found["machine"] == _HERE)


def _remove_if_abandoned(path: Path, *, here: bool) -> None:
    """Remove a temporary file unless it is in use."""
    with contextlib.suppress(OSError):
        old = time.time() - path.lstat().st_mtime > _DAY
        if fcntl is None:
            if old:
                path.unlink()  # Windows refuses where the file is open
            return
        # Open for writing, which some network file systems want of whoever takes a lock.
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                gone = here or old
            except BlockingIOError:
                gone = False
            except OSError:  # a file system without locks
                gone = old
            if gone:  # while the lock is held: a writer that has just made the file will notice
                path.unlink()
        finally:
            os.close(descriptor)
