"""Compiled rounds whose batches are shared by threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw._threads import call_helpers
from fastfw.problems import Rows

__all__ = ["in_team", "make_team", "quiet", "shared_rounds"]


def make_team(threads: int, rounds: int, u: FloatArray) -> tuple[npt.NDArray[Any], ...]:
    """Return what threads share that play so many rounds, see ``kernels.parts``."""
    from fastfw.kernels.parts import LISTS

    others = np.empty((threads - 1, *u.shape), u.dtype)
    return others, np.empty(LISTS + len(u) + threads), np.zeros(1 + 2 * rounds, np.int64)


def shared_rounds(
    lead: Callable[[tuple[Any, ...]], int],
    threads: int,
    rows: Rows,
    starts: npt.NDArray[np.intp],
    u: FloatArray,
    sums: FloatArray,
    previous: FloatArray,
    index: npt.NDArray[np.intp],
) -> int:
    """Return what ``lead(team)`` returns, the rounds done, with threads - 1 helpers.

    The arguments after `threads` are those of ``kernels.parts.help_rounds``.
    """
    from fastfw.kernels import parts

    if threads > 1:  # not more than the largest batch has parts
        from fastfw.kernels._tiles import GROUP

        threads = max(1, min(threads, -(-int(np.diff(starts).max(initial=0)) // GROUP)))
    team = make_team(threads, starts.size - 1, u)
    assist = partial(parts.help_rounds, *rows, starts, u, sums, previous, index, team)
    done: int = in_team(partial(lead, team), assist, team[2], threads)
    return done


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
    from fastfw.kernels._shared import NOT_YET, OVER

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
