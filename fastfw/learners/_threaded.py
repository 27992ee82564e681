"""Rounds of ORGFW and OSFW whose batches are shared by threads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fastfw._threads import with_helpers
from fastfw.learners._engines import FusedMomentum
from fastfw.problems import Rows

__all__ = ["threaded_rounds"]


def threaded_rounds(
    engine: FusedMomentum, t: int, rows: Rows, starts: npt.NDArray[np.intp]
) -> tuple[int, npt.NDArray[np.float64]]:
    """As `FusedMomentum.rounds`, in ``engine.threads`` threads."""
    from fastfw.kernels import threaded

    k, threads = starts.size - 1, engine.threads
    alpha, beta, gamma, eta = np.array([engine.coefficients(t + i) for i in range(k)]).T.copy()
    losses = np.empty(k)
    others = np.empty((threads - 1, *engine.u.shape), engine.u.dtype)
    opened = np.full(1, threaded.NOT_YET, np.int64)
    taken, done = np.zeros(k, np.int64), np.zeros(k, np.int64)
    sums, moved, plan = np.empty(threads), np.empty_like(engine.value), np.empty(4)
    shared = (engine.previous, engine.index, moved, plan, opened, taken, done, sums)

    def lead() -> int:
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # only NumPy warns, without the JIT
                rounds: int = threaded.lead_rounds(
                    *rows, starts, engine.mean, threads, alpha, beta, gamma, eta, engine.radius,
                    engine.u, engine.estimates, others, engine.previous, engine.sum, engine.index,
                    engine.value, engine.scalars, moved, plan, opened, taken, done, sums, losses,
                )  # fmt: skip
                return rounds
        finally:
            opened[0] = threaded.OVER

    def assist() -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            threaded.help_rounds(
                *rows, starts, threads, alpha, beta, engine.u, engine.estimates, others, *shared
            )

    finished = with_helpers(lead, assist, threads - 1)
    return finished, losses[: finished + 1]
