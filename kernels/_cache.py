"""Compiled kernels on disk: a private folder, and files that are checked before they are used.

Numba's own cache stamps a kernel with the file that defines it, so that an edited callee in another
file leaves a stale caller; it writes beside the sources, and believes what it reads. Here a folder
is stamped with a digest of all kernel sources and of the versions that compiled them. It lies in
the user's cache folder, or in ``NUMBA_CACHE_DIR``. A file is machine code in a pickle, so reading
one is running it: only files that nobody else can have written, whole, are read. Whatever is wrong
with them, the kernel is compiled anew.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

__all__ = ["STAMP", "KernelCache", "NoCache", "place", "read", "source_digest", "write"]

#: How many stamped folders are kept, those that were used last: each takes some ten megabytes.
KEPT = 4
SUFFIX = ".kernel"
_SEAL = hashlib.sha256().digest_size


# --- the stamp ------------------------------------------------------------------------------------


def source_digest(folder: Path | None = None) -> str:
    """Hex SHA-256 over the names and bytes of all kernel sources."""
    folder = Path(__file__).parent if folder is None else folder
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()}:{len(source)}:".encode())
        digest.update(source)
    return digest.hexdigest()


def _stamp() -> str:
    """Name the folder after versions and a digest; pickles may change with any of the versions."""
    versions = (source_digest(), llvmlite.__version__, numpy.__version__, sys.version)
    digest = hashlib.sha256(" ".join(versions).encode()).hexdigest()
    python = f"{sys.version_info[0]}.{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"
    return f"numba{numba.__version__}-py{python}-{digest[:16]}"


STAMP = _stamp()
_STAMPED = re.compile(r"numba\S+-py\S+-[0-9a-f]{16}")


# --- the folder -----------------------------------------------------------------------------------


@functools.cache
def place() -> tuple[Path | None, str]:
    """Return the folder for kernels, None if there is none, and what is wrong with better ones."""
    wrong: list[str] = []
    for find in (_named, _of_the_user, _temporary):
        try:
            parent = find()
            if parent is not None:
                return _prepare(parent), "; ".join(wrong)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            wrong.append(f"{where}{error.strerror or error}")
    return None, "; ".join(wrong)


def _named() -> Path | None:
    """Return the folder that ``NUMBA_CACHE_DIR`` asks for, if it does."""
    asked = numba.config.CACHE_DIR
    return Path(os.path.abspath(asked)) / "fastfw" if asked else None


def _of_the_user() -> Path:
    """Return the folder where this system keeps a user's caches."""
    import platformdirs  # late: where kernels are compiled, not where fastfw is imported

    try:
        folder = platformdirs.user_cache_path("fastfw", appauthor=False) / "kernels"
    except RuntimeError:
        folder = Path()
    if not folder.is_absolute():  # "~" stays as it is where nobody knows whose home it is
        raise OSError("this user has no home folder")
    return folder


def _temporary() -> Path:
    """Return a folder of this user among temporary files, the same in every process."""
    user = os.geteuid() if hasattr(os, "geteuid") else "user"
    return Path(tempfile.gettempdir()) / f"fastfw-kernels-{user}"


def _prepare(parent: Path) -> Path:
    """Make the stamped folder and remove old ones; OSError unless it is safe to read from."""
    folder = parent / STAMP
    parent.mkdir(0o700, parents=True, exist_ok=True)
    _refuse_unless_private(parent)
    try:
        folder.mkdir(0o700)
    except FileExistsError:
        with contextlib.suppress(OSError):
            os.utime(folder)  # it has been used
    else:
        _remove_old(parent)
    _refuse_unless_private(folder)
    return folder


def _refuse_unless_private(folder: Path) -> None:
    status = folder.lstat()
    if not (stat.S_ISDIR(status.st_mode) and _is_private(status)):
        raise PermissionError(
            0, "not used, for it is no folder that this user alone can write", str(folder)
        )


def _is_private(status: os.stat_result) -> bool:
    """Whether nobody but this user and root can have written a file or folder."""
    if not hasattr(os, "geteuid"):
        return True  # Windows keeps users apart by other means
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022


def _remove_old(parent: Path) -> None:
    with contextlib.suppress(OSError):
        stamped = [path for path in parent.iterdir() if _STAMPED.fullmatch(path.name)]
        for old in sorted(stamped, key=lambda path: path.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


# --- the files ------------------------------------------------------------------------------------


def _seal(path: Path, data: memoryview) -> bytes:
    """Digest of what a file holds and of what it claims to be."""
    digest = hashlib.sha256(f"{STAMP}/{path.name}\n".encode())
    digest.update(data)
    return digest.digest()


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for who writes to a pipe in its place."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read(path: Path) -> memoryview | None:
    """Return what `write` has written there; None if it is missing, damaged or not our own."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            status = os.fstat(file.fileno())
            if not (stat.S_ISREG(status.st_mode) and _is_private(status)):
                return None
            content = memoryview(file.read())
    except OSError:
        return None
    data = content[_SEAL:]
    return data if content[:_SEAL] == _seal(path, data) else None


def write(path: Path, data: bytes) -> None:
    """Write a file that appears whole or not at all; where that cannot be, it is not kept."""
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(8)}.tmp")
    with contextlib.suppress(OSError):
        try:
            with open(temporary, "xb", opener=functools.partial(os.open, mode=0o600)) as file:
                file.write(_seal(path, memoryview(data)))
                file.write(data)
            os.replace(temporary, path)
        finally:  # it has another name by now, unless something went wrong
            with contextlib.suppress(OSError):
                temporary.unlink()


class NoCache(NullCache):  # type: ignore[misc]
    """What is compiled is not kept: see `KernelCache` for what is asked of a cache."""

    def load(self, key: Any, context: Any, build: Callable[..., Any]) -> Any:
        """Return ``build(context, *content)`` of what is kept; None if there is no such thing."""

    def save(self, key: Any, content: tuple[Any, ...] | None, context: Any) -> None:
        """Keep content, unless it is None."""


class KernelCache(NoCache):
    """The compiled variants of one kernel, each in a file of its own: what Numba asks of a cache.

    `name` is that of the kernel and begins the files' names.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def cache_path(self) -> str | None:
        """The folder, for ``dispatcher.stats``."""
        folder, _ = place()
        return None if folder is None else str(folder)

    def files(self) -> Iterator[Path]:
        """Files that hold a variant each, whole."""
        folder, _ = place()
        if folder is not None:
            yield from (p for p in folder.glob(f"{self.name}-*{SUFFIX}") if read(p) is not None)

    def _path(self, key: Any, context: Any) -> Path | None:
        """Where the variant of a key is kept for this processor; None if nothing is."""
        folder, _ = place()
        what = hashlib.sha256(f"{key} {context.codegen().magic_tuple()}".encode()).hexdigest()
        return None if folder is None else folder / f"{self.name}-{what[:16]}{SUFFIX}"

    def load(self, key: Any, context: Any, build: Callable[..., Any]) -> Any:
        """Return a variant, or None when it is to be compiled."""
        context.refresh()
        path = self._path(key, context)
        data = None if path is None else read(path)
        if data is None:
            return None
        try:
            kept, content = pickle.loads(data)
            return build(context, *content) if kept == key else None
        except Exception:  # a cache is no reason to fail
            return None

    def save(self, key: Any, content: tuple[Any, ...] | None, context: Any) -> None:
        """Keep a variant, where that is possible."""
        path = self._path(key, context)
        if path is not None and content is not None:
            write(path, dumps((key, content)))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As `load`, of what Python calls."""
        return self.load(sig, target_context, CompileResult._rebuild)

    def save_overload(self, sig: Any, data: Any) -> None:
        """As `save`."""
        content = None if data.library.has_dynamic_globals else data._reduce()
        self.save(sig, content, data.target_context)
