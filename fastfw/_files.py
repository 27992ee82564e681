"""Result files that are either whole or absent.

A file is written under a temporary name in the folder it is meant for and moved into place with
`os.replace`, which is atomic within one file system: whoever reads the result sees the old file
or the new one, whatever happens in between.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

__all__ = ["atomic_write", "open_beside"]


def open_beside(path: Path) -> tuple[int, Path]:
    """Open a new, oddly named file in the folder of `path`; a descriptor and its path."""
    # O_EXCL with 0o666 rather than tempfile.mkstemp: the result gets the permissions that the
    # user's umask gives to any new file, not the private ones of a temporary file.
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
        try:
            return os.open(temporary, flags, 0o666), temporary
        except FileExistsError:
            continue


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], *, binary: bool = False) -> Iterator[IO[Any]]:
    r"""Write a file that appears whole or not at all.

    Parameters
    ----------
    path : path-like
        The file to create or replace. Its folder must exist.
    binary : bool, default False
        False opens the file as UTF-8 text with ``"\n"`` line ends on every system, True as bytes.

    Yields
    ------
    file object
        Open for writing under a temporary name in the same folder. When the block ends the file
        is flushed to disk and renamed to `path`; when it raises (Ctrl-C included) the temporary
        file is removed and `path` is left as it was.

    Raises
    ------
    OSError
        If the temporary file cannot be made, written or renamed.
    """
    target = Path(path)
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
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
