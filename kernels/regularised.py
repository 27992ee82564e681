"""Rounds of RegularizedOFW: a growing sum of gradients and a pull towards the start."""

from __future__ import annotations

import numpy as np

from ._jit import REASSOCIATE, kernel
from .l1 import first_largest, step
from .logistic import NO_PREVIOUS
from .parts import finish, shared_gradient

#: Entries of the scalar state of a run.
SCALE, WEIGHT, PARITY = 0, 1, 2


@kernel(fastmath=REASSOCIATE)
def pull(g, new, reduction, u, scale, start, strength, direction):
    """New ← g + reduction new, direction = new + strength (scale u - start), one row."""
    for j in range(g.shape[0]):
        new[j] = g[j] + reduction * new[j]
        direction[j] = new[j] + strength * (scale * u[j] - start[j])


@kernel()
def regularised_rounds(
    A, y, rows, starts, mean, strength, eta, radius, u, low, start, sums, total, scalars, team,
    losses,
):  # fmt: skip
    """Play rounds of RegularizedOFW on the row-l1 ball.

    g ← g + ∇f_t(x_t), v = LMO(g + strength_t (x_t - start)), x ← x + eta_t (v - x). Two arrays take
    turns in holding g, as `scalars` says, so that a round that fails leaves the old one. Batches
    are shared by a `team` of threads, or of one, see `parts`.

    Returns the number of rounds done, which ``losses[-1]`` is when each of them is whole. It is
    less than asked for where a loss or a direction is not finite; losses[t] then holds that loss,
    and the state is as before that round.
    """
    n_classes = u.shape[0]
    real = u.dtype.type
    index = np.zeros(n_classes, np.intp)
    value = np.zeros(n_classes, np.float64)
    direction = np.empty(start.shape[1], u.dtype)
    n = starts.shape[0] - 1
    for t in range(n):
        parity = int(scalars[PARITY])
        g, new = sums[parity], sums[1 - parity]
        loss = shared_gradient(
            A, y, rows, starts, t, NO_PREVIOUS, scalars[SCALE], 1.0, 1 - parity, 1.0, 0.0, u, sums,
            u, index, team,
        )  # fmt: skip
        reduction = 1.0 / (starts[t + 1] - starts[t]) if mean else 1.0
        losses[t] = loss * reduction
        if not np.isfinite(loss):
            return finish(t, team)
        for c in range(n_classes):
            pull(
                g[c], new[c], real(reduction), u[c], real(scalars[SCALE]), start[c],
                real(strength[t]), direction,
            )  # fmt: skip
            j, finite = first_largest(direction)
            if not finite:
                return finish(t, team)
            index[c] = j
            value[c] = -radius if direction[j] >= 0 else radius
        # the old sum has had its day: it is scratch for a long step
        scalars[SCALE], scalars[WEIGHT] = step(
            u, low, total, g, scalars[SCALE], scalars[WEIGHT] + scalars[SCALE], index, value, eta[t]
        )
        scalars[PARITY] = 1 - parity
        losses[n] = t + 1
    return finish(n, team)
