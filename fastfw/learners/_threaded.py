"""Rounds of ORGFW and OSFW whose batches are shared by threads.

Each thread adds up the gradients of its rows. Parts are added in the order of the rows, so that the
number of threads decides the bits, and nothing else does.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._threads import cuts, in_threads
from fastfw.learners._engines import FusedMomentum
from fastfw.problems import Rows

__all__ = ["threaded_rounds"]


def threaded_rounds(
    engine: FusedMomentum, t: int, rows: Rows, starts: npt.NDArray[np.intp]
) -> tuple[int, npt.NDArray[np.float64]]:
    """As `FusedMomentum.rounds`, in ``engine.threads`` threads."""
    from fastfw.kernels import loops

    k = starts.size - 1
    losses = np.empty(k)
    new = np.empty_like(engine.index), np.empty_like(engine.value)
    parts = [np.empty_like(engine.u) for _ in range(engine.threads - 1)]
    for i in range(k):
        alpha, beta, gamma, eta = engine.coefficients(t + i)
        loss = _gradient(engine, rows, starts[i : i + 2], alpha, beta, parts)
        reduction = 1.0 / int(starts[i + 1] - starts[i]) if engine.mean else 1.0
        losses[i] = loss * reduction
        with np.errstate(over="ignore", invalid="ignore"):  # only NumPy warns, without the JIT
            if not np.isfinite(loss) or not loops.conclude(
                reduction, gamma, eta, engine.radius, engine.u, engine.estimates, engine.previous,
                engine.sum, engine.index, engine.value, *new, engine.scalars,
            ):  # fmt: skip
                return i, losses[: i + 1]
    return k, losses


def _gradient(
    engine: FusedMomentum,
    rows: Rows,
    ends: npt.NDArray[np.intp],
    alpha: float,
    beta: float,
    parts: list[npt.NDArray[Any]],
) -> float:
    """Algorithm 1, lines 2-7: the loss; the gradients' sum goes to the estimate that is scratch."""
    from fastfw.kernels import logistic, loops
    from fastfw.kernels._tiles import GROUP

    scale, _, last, parity = engine.scalars[:4]
    moved = np.empty_like(engine.value)
    mode, shrink = loops.previous_point(last, beta, engine.value, moved)
    G = engine.estimates[1 - int(parity)]
    low, stop = int(ends[0]), int(ends[1])
    edges = cuts(stop - low, engine.threads, GROUP)

    def gradient(first: int, end: int, own: npt.NDArray[Any]) -> float:
        upcoming = rows.rows[stop + first : stop + first + logistic.LONGEST_BLOCK]
        with np.errstate(over="ignore", invalid="ignore"):
            loss: float = logistic.recursive_gradient(
                rows.X, rows.y, rows.rows[low + first : low + end], engine.u, scale, mode,
                engine.previous, engine.index, moved, shrink, alpha, beta, own, upcoming,
            )  # fmt: skip
        return loss

    pieces = zip(edges, edges[1:], [G, *parts], strict=False)
    losses = in_threads([partial(gradient, *piece) for piece in pieces])
    for part in parts[: len(losses) - 1]:
        G += part
    return float(sum(losses))
