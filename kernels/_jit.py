"""The one decorator for kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from ._cache import KernelCache

__all__ = ["REASSOCIATE", "dispatchers", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])

#: Fast-math flags that let sums be reordered and fused, and keep NaN and infinity
#: as they are (``fastmath=True`` would let the compiler assume there are none).
REASSOCIATE = frozenset({"reassoc", "contract", "arcp", "nsz"})

#: Every kernel compiled so far in this process, by name.
dispatchers: dict[str, Any] = {}


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
        compiled = numba.njit(
            nogil=True,
            error_model="numpy",
            fastmath=flags,
            inline=inline,
            no_cfunc_wrapper=True,  # a third of the modules, which C would call
        )(function)
        if cache and not numba.config.DISABLE_JIT:
            name = f"{function.__module__}.{function.__name__}"
            compiled._cache = KernelCache(name.removeprefix("fastfw.kernels."))
            dispatchers[name] = compiled
        return compiled  # type: ignore[no-any-return]

    return decorate
