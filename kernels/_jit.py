"""The one decorator for kernels, and the stamp that keeps their cache honest.

Numba stamps a cached kernel with the time and size of the file that defines it, so
an edit to another file whose kernel it calls goes unnoticed. Here every kernel is
stamped with a digest of all kernel sources instead: any edit or upgrade compiles
anew, and copying or re-installing the same sources does not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

__all__ = ["REASSOCIATE", "dispatchers", "kernel", "source_digest"]

F = TypeVar("F", bound=Callable[..., Any])

#: Fast-math flags that let sums be reordered and fused, and keep NaN and infinity
#: as they are (``fastmath=True`` would let the compiler assume there are none).
REASSOCIATE = frozenset({"reassoc", "contract", "arcp", "nsz"})

#: Every kernel compiled so far in this process, by name.
dispatchers: dict[str, Any] = {}


def source_digest(folder: Path | None = None) -> str:
    """Hex SHA-256 over the names and bytes of all kernel sources."""
    folder = Path(__file__).parent if folder is None else folder
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.name}:{len(source)}:".encode())
        digest.update(source)
    return digest.hexdigest()


_DIGEST = source_digest()


def _cache(dispatcher: Any) -> None:
    """Turn on the disk cache, stamped with the digest of all kernels."""
    try:
        dispatcher.enable_caching()
        file = dispatcher._cache._cache_file
        if not hasattr(file, "_source_stamp"):
            raise AttributeError("no place for the stamp")
        file._source_stamp = _DIGEST
    except (RuntimeError, AttributeError):
        # No writable folder, or another numba inside: better no cache than a stale one.
        dispatcher._cache = numba.core.caching.NullCache()


def kernel(
    *, fastmath: frozenset[str] = frozenset(), inline: str = "never", cache: bool = True
) -> Callable[[F], F]:
    """Compile a function to a kernel: no GIL, cached on disk, NumPy's error model.

    Parameters
    ----------
    fastmath : frozenset of str
        LLVM fast-math flags, empty or `REASSOCIATE`.
    inline : {"never", "always"}
        Numba-level inlining; LLVM inlines small kernels by itself.
    cache : bool
        Whether it is kept on disk; not where it calls functions from outside the package, of which
        the stamp knows nothing.
    """

    def decorate(function: F) -> F:
        flags: Any = set(fastmath) if fastmath else False
        compiled = numba.njit(nogil=True, error_model="numpy", fastmath=flags, inline=inline)(
            function
        )
        if cache and not numba.config.DISABLE_JIT:
            _cache(compiled)
            dispatchers[f"{function.__module__}.{function.__name__}"] = compiled
        return compiled  # type: ignore[no-any-return]

    return decorate
