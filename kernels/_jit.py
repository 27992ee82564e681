"""The one decorator for kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

from ._cache import KernelCache, NoCache
from ._compile import Kernel

__all__ = ["REASSOCIATE", "dispatchers", "kernel"]

F = TypeVar("F", bound=Callable[..., Any])

#: Fast-math flags that let sums be reordered and fused, and keep NaN and infinity
#: as they are (``fastmath=True`` would let the compiler assume there are none).
REASSOCIATE = frozenset({"reassoc", "contract", "arcp", "nsz"})

#: Every kernel compiled so far in this process, by name.
dispatchers: dict[str, Any] = {}


def kernel(
    *, fastmath: frozenset[str] = frozenset(), apart: bool = False, cache: bool = True
) -> Callable[[F], F]:
    """Compile a function to a kernel: no GIL, cached on disk, NumPy's error model.

    Parameters
    ----------
    fastmath : frozenset of str
        LLVM fast-math flags, empty or `REASSOCIATE`.
    apart : bool
        Whether it is optimised by itself before it joins kernels that call it, as with `fastmath`:
        so its vectors are the same wherever it is called.
    cache : bool
        Whether it is kept on disk; not where it calls functions from outside the package, of which
        the stamp knows nothing.
    """

    def decorate(function: F) -> F:
        if numba.config.DISABLE_JIT:
            return function
        name = f"{function.__module__}.{function.__name__}"
        compiled = Kernel(
            function,
            KernelCache(name.removeprefix("fastfw.kernels.")) if cache else NoCache(),
            apart or bool(fastmath),
            nogil=True,
            error_model="numpy",
            fastmath=set(fastmath) if fastmath else False,
        )
        if cache:
            dispatchers[name] = compiled
        return compiled  # type: ignore[return-value]

    return decorate
