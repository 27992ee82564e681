"""Compiled rounds whose batches are shared by threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._threads import call_helpers

__all__ = ["in_team", "make_team", "quiet"]


def make_team(
    threads: int, starts: IndexArray, u: FloatArray, entries: int
) -> tuple[npt.NDArray[Any], ...]:
    """Return what so many threads share that play rounds, or fewer, see ``kernels.teams``."""
    from fastfw.kernels.teams import GROUP, LISTS

    if threads > 1:  # not more than the largest batch has parts
        threads = max(1, min(threads, -(-int(np.diff(starts).max(initial=0)) // GROUP)))
    others = np.empty((threads - 1, *u.shape), u.dtype)
    return others, np.empty(LISTS + entries + threads), np.zeros(2 * starts.size - 1, np.int64)


def in_team(
    lead: Callable[[], Any],
    assist: Callable[[], object],
    words: npt.NDArray[np.int64],
    threads: int,
) -> Any:
    """Return what `lead` returns, with threads - 1 helpers that do `assist` until words[0] says so.

    Both are compiled. The words are new, so that helpers who come late find theirs, and it is over.
    """
    lead = quiet(lead)
    if threads == 1:
        return lead()
    from fastfw.kernels._atomics import NOT_YET, OVER

    words[0] = OVER
    assist()  # is over at once, and compiled
    words[0] = NOT_YET
    try:
        call_helpers(quiet(assist), threads - 1)
        return lead()
    finally:  # which `lead` has said already, unless it was not called or failed
        words[0] = OVER


def quiet(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel; without the JIT one that is as silent on what overflows as with it."""
    return np.errstate(over="ignore", invalid="ignore")(kernel) if _interpreted() else kernel


@cache
def _interpreted() -> bool:
    import numba

    return bool(numba.config.DISABLE_JIT)
