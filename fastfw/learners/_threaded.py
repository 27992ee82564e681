"""Compiled rounds whose batches are shared by threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw._threads import with_helpers
from fastfw.problems import Rows

__all__ = ["make_team", "shared_rounds"]


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
    alpha: npt.NDArray[np.float64],
    beta: npt.NDArray[np.float64],
    u: FloatArray,
    *state: npt.NDArray[Any],
) -> int:
    """Return what ``lead(team)`` returns, the rounds done, with threads - 1 helpers.

    The arguments after `threads` are those of ``kernels.parts.help_rounds``.
    """
    team = make_team(threads, starts.size - 1, u)
    with np.errstate(over="ignore", invalid="ignore"):  # only NumPy warns, without the JIT
        if threads == 1:
            return lead(team)
        from fastfw.kernels import _shared, parts

        def leading() -> int:
            try:
                return lead(team)
            finally:
                team[2][0] = _shared.OVER

        def assist() -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                parts.help_rounds(*rows, starts, alpha, beta, u, *state, team)

        return int(with_helpers(leading, assist, threads - 1))
