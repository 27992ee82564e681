"""Compiled rounds whose batches are shared by threads."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw._threads import with_helpers
from fastfw.problems import Rows

__all__ = ["in_team", "make_team", "shared_rounds"]


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
    if threads > 1:  # not more than the largest batch has parts
        from fastfw.kernels._tiles import GROUP

        threads = max(1, min(threads, -(-int(np.diff(starts).max(initial=0)) // GROUP)))
    team = make_team(threads, starts.size - 1, u)

    def assist() -> None:
        from fastfw.kernels import parts

        parts.help_rounds(*rows, starts, u, sums, previous, index, team)

    done: int = in_team(partial(lead, team), assist, team[2], threads)
    return done


def in_team(
    lead: Callable[[], Any],
    assist: Callable[[], None],
    words: npt.NDArray[np.int64],
    threads: int,
) -> Any:
    """Return what `lead` returns, with threads - 1 helpers that do `assist` until words[0] says so.

    Nothing overflows loudly, as without the JIT it would.
    """
    if threads == 1:
        with np.errstate(over="ignore", invalid="ignore"):
            return lead()
    from fastfw.kernels._shared import NOT_YET, OVER

    def leading() -> Any:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                return lead()
        finally:
            words[0] = OVER

    def assisting() -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            assist()

    words[0] = OVER
    assisting()  # is over at once, and compiled
    words[0] = NOT_YET
    return with_helpers(leading, assisting, threads - 1)
