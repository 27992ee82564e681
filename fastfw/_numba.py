"""Functions that Numba compiled, or is to compile, outside of kernels."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

__all__ = ["compiled", "is_compiled", "short_error", "with_bounds"]


@cache
def compiled(function: Any) -> Any:
    """Return a function of this package as compiled rounds call it, the same one every time."""
    import numba

    return numba.njit(function)


def is_compiled(function: Any) -> bool:
    """Whether Numba compiled a function, so that kernels can call it."""
    return hasattr(function, "py_func") and hasattr(function, "nopython_signatures")


def with_bounds(function: Any) -> Any:
    """Return the same function with an IndexError where it leaves an array."""
    if not is_compiled(function):
        return function
    import numba

    return numba.jit(**{**function.targetoptions, "boundscheck": True})(function.py_func)


def short_error(function: Any, name: str, error: Exception, hint: str = "") -> None:
    """Raise what Numba says of a function in one line, if the error is of Numba's making."""
    if not is_compiled(function):
        return
    from numba.core.errors import NumbaError

    if isinstance(error, NumbaError):
        raise TypeError(
            f"Numba cannot compile {name} for these arguments: {_gist(error)}; it says "
            f"more where you call {name} yourself{hint}"
        ) from None


def _gist(error: Exception) -> str:
    """Say what Numba complains of, and in which line, without its advice."""
    text = re.sub("\x1b\\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in text.splitlines()]
    lines = [line for line in lines if line and not line.startswith("Failed in nopython")]
    where = re.findall(r'^File "(.+?)", line (\d+)', "\n".join(lines), flags=re.MULTILINE)
    gist = lines[0].rstrip(":.") if lines else type(error).__name__
    gist = gist if len(gist) <= 160 else f"{gist[:157]}..."
    return gist + (f" (line {where[-1][1]} of {where[-1][0]})" if where else "")
