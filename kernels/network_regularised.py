"""Rounds of RegularizedOFW on a network with one hidden layer."""

from __future__ import annotations

import numpy as np

from . import network
from ._jit import kernel
from .l1 import first_largest, one_of_largest, step
from .logistic import LONGEST_BLOCK, NO_PREVIOUS
from .regularised import PARITY, SCALE, WEIGHT, pull

#: Rows of the tails of a run: the present, and the sum so far.
NOW, SUM = 0, 1


@kernel()
def regularised_rounds(
    A, y, rows, starts, mean, strength, eta, radii, keys, random, code, u, low, start, sums,
    total, scalars, tails, tail_start, tail_sums, losses,
):  # fmt: skip
    """As ``regularised.regularised_rounds``; balls and tails as in ``network.momentum_rounds``."""
    m = u.shape[0]
    n_rows = network.n_outputs(m, tails[NOW]) + 2
    real = u.dtype.type
    index, value = np.zeros(m, np.intp), np.zeros(m, np.float64)
    tail_index, tail_value = np.empty(n_rows, np.intp), np.empty(n_rows, np.float64)
    direction = np.empty(start.shape[1], u.dtype)
    tail_direction = np.empty(tails.shape[1], np.float64)
    n = starts.shape[0] - 1
    for t in range(n):
        batch = rows[starts[t] : starts[t + 1]]
        parity = int(scalars[PARITY])
        g, new = sums[parity], sums[1 - parity]
        tail_g, tail_new = tail_sums[parity], tail_sums[1 - parity]
        loss = network.recursive_gradient(
            A, y, batch, u, scalars[SCALE], tails[NOW], code, NO_PREVIOUS, u, tails[NOW],
            index, value, 1.0, 1.0, 0.0, new, tail_new,
            rows[starts[t + 1] : starts[t + 1] + LONGEST_BLOCK],
        )  # fmt: skip
        reduction = 1.0 / batch.shape[0] if mean else 1.0
        losses[t] = loss * reduction
        if not np.isfinite(loss):
            return t
        weight, strong = real(reduction), real(strength[t])
        pull(tail_g, tail_new, reduction, tails[NOW], 1.0, tail_start, strength[t], tail_direction)
        if not network.tail_lmo(tail_direction, m, radii, keys, random, tail_index, tail_value):
            return t
        for j in range(m):
            pull(g[j], new[j], weight, u[j], real(scalars[SCALE]), start[j], strong, direction)
            i, finite = first_largest(direction)
            if not finite:
                return t
            if random[0]:
                i = one_of_largest(direction, i, keys[0], j)
            index[j] = i
            value[j] = -radii[0] if direction[i] >= 0 else radii[0]
        # the old sum has had its day: it is scratch for a long step
        scalars[SCALE], scalars[WEIGHT] = step(
            u, low, total, g, scalars[SCALE], scalars[WEIGHT] + scalars[SCALE], index, value, eta[t]
        )
        network.tail_step(tails[NOW], tails[SUM], tail_index, tail_value, eta[t])
        scalars[PARITY] = 1 - parity
        losses[n] = t + 1
    return n
