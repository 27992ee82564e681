"""SVRF in compiled code, and mini-batches for offline methods.

SVRF corrects a mini-batch's gradient at the present point by that at a *snapshot*, the point
where the epoch began, whose gradient over all data is known.
"""

from __future__ import annotations

import numpy as np

from . import network
from ._jit import kernel
from .counter import draw_rows
from .l1 import point, step
from .logistic import DENSE_PREVIOUS, LONGEST_BLOCK, NO_PREVIOUS, recursive_gradient
from .storm import estimate

#: Entries of the scalar state of a run.
SCALE, WEIGHT, PARITY = 0, 1, 2
#: Rows of the tails of a run on a network: as in ``network``, with the snapshot second.
NOW, SNAPSHOT, ESTIMATES, SUM = network.NOW, network.BEFORE, network.ESTIMATES, network.SUM


@kernel()
def draw_batches(seed, t, n, whole, starts, rows):
    """Rows of the iterations t, t + 1, ...: 0, ..., n - 1 where `whole` says so, else drawn.

    Iteration t + i has rows[starts[i]:starts[i + 1]]; what is drawn depends on seed and t + i only.
    """
    for i in range(whole.shape[0]):
        own = rows[starts[i] : starts[i + 1]]
        if whole[i]:
            for k in range(own.shape[0]):
                own[k] = k
        else:
            draw_rows(seed, t + i, 0, n, own)


@kernel()
def rounds(
    A, y, rows, starts, whole, eta, radius, u, low, estimates, snapshot, total, scalars, losses
):
    """Iterations of SVRF for softmax regression on the row-l1 ball, gradients being means.

    Where ``whole[t]``, the batch is all data: its gradient g̃ and the point x̃ are kept. Elsewhere
    d = ∇F(x_t) - ∇F(x̃) + g̃ on the batch. Then v = LMO(d), x ← x + eta_t (v - x).

    Returns the number of iterations done, as ``loops.momentum_rounds``.
    """
    n_classes = u.shape[0]
    index, value = np.zeros(n_classes, np.intp), np.zeros(n_classes, np.float64)
    for t in range(losses.shape[0]):
        batch = rows[starts[t] : starts[t + 1]]
        parity = int(scalars[PARITY])
        known, g = estimates[parity], estimates[1 - parity]
        mode, back = (NO_PREVIOUS, 0.0) if whole[t] else (DENSE_PREVIOUS, 1.0)
        loss = recursive_gradient(
            A, y, batch, u, scalars[SCALE], mode, snapshot, index, value, 1.0, 1.0, back, g,
            rows[starts[t + 1] : starts[t + 1] + LONGEST_BLOCK],
        )  # fmt: skip
        losses[t] = loss / batch.shape[0]
        if not np.isfinite(loss):
            return t
        if not estimate(known, g, back, 1.0 / batch.shape[0], radius, index, value):
            return t
        scratch = g
        if whole[t]:
            point(u, low, scalars[SCALE], snapshot)
            scalars[PARITY] = 1 - parity
            scratch = known
        scalars[SCALE], scalars[WEIGHT] = step(
            u, low, total, scratch, scalars[SCALE], scalars[WEIGHT] + scalars[SCALE], index, value,
            eta[t],
        )  # fmt: skip
    return losses.shape[0]


@kernel()
def network_rounds(
    A, y, rows, starts, whole, eta, radii, keys, random, code, u, low, estimates, snapshot,
    total, tails, scalars, losses,
):  # fmt: skip
    """As `rounds`, for a network with l1 balls; see ``network.momentum_rounds``."""
    m = u.shape[0]
    n_rows = network.n_outputs(m, tails[NOW]) + 2
    index, value = np.zeros(m, np.intp), np.zeros(m, np.float64)
    tail_index, tail_value = np.empty(n_rows, np.intp), np.empty(n_rows, np.float64)
    for t in range(losses.shape[0]):
        batch = rows[starts[t] : starts[t + 1]]
        parity = int(scalars[PARITY])
        known, g = estimates[parity], estimates[1 - parity]
        tail_known, tail_g = tails[ESTIMATES + parity], tails[ESTIMATES + 1 - parity]
        mode, back = (NO_PREVIOUS, 0.0) if whole[t] else (DENSE_PREVIOUS, 1.0)
        loss = network.recursive_gradient(
            A, y, batch, u, scalars[SCALE], tails[NOW], code, mode, snapshot, tails[SNAPSHOT],
            index, value, 1.0, 1.0, back, g, tail_g,
            rows[starts[t + 1] : starts[t + 1] + LONGEST_BLOCK],
        )  # fmt: skip
        losses[t] = loss / batch.shape[0]
        if not np.isfinite(loss):
            return t
        reduction = 1.0 / batch.shape[0]
        network.blend_tail(tail_known, tail_g, back, reduction)
        if not network.tail_lmo(tail_g, m, radii, keys, random, tail_index, tail_value):
            return t
        if not estimate(known, g, back, reduction, radii[0], index, value):
            return t
        if random[0]:
            network.break_ties(g, A.shape[1], radii[0], keys[0], index, value)
        scratch = g
        if whole[t]:
            point(u, low, scalars[SCALE], snapshot)
            network.copy_tail(tails[NOW], tails[SNAPSHOT])
            scalars[PARITY] = 1 - parity
            scratch = known
        scalars[SCALE], scalars[WEIGHT] = step(
            u, low, total, scratch, scalars[SCALE], scalars[WEIGHT] + scalars[SCALE], index, value,
            eta[t],
        )  # fmt: skip
        network.tail_step(tails[NOW], tails[SUM], tail_index, tail_value, eta[t])
    return losses.shape[0]
