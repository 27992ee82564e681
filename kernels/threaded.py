"""Rounds whose batches are shared by threads, from the first to the last in compiled code.

One thread leads: it plays the rounds. Others help: they wait for a round to be opened and take
parts of its batch until none is left, and the leader takes parts too, so that a round ends even if
nobody helps. Each part has its own sum of gradients; these are added in the order of the rows, so
that the number of parts decides the bits, and nothing else does.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._shared import claim, peek, publish, rest
from ._tiles import GROUP
from .logistic import LONGEST_BLOCK, recursive_gradient
from .loops import LAST_STEP, PARITY, SCALE, conclude, previous_point

#: What helpers see in place of an open round: none yet, and none any more.
NOT_YET, OVER = -1, -2

#: What a round needs beside its number: entries of `plan`.
_SCALE, _SHRINK, _MODE, _PARITY = 0, 1, 2, 3


@kernel()
def _parts(n, threads):
    """Parts that n rows are cut into."""
    return min(threads, (n + GROUP - 1) // GROUP)


@kernel()
def _edge(n, parts, k):
    """Where part k of n rows begins: parts are whole groups of rows but for the last."""
    units = (n + GROUP - 1) // GROUP
    return min(n, units * k // parts * GROUP)


@kernel()
def _take_parts(
    A, y, rows, starts, t, threads, alpha, beta, u, estimates, others, previous, index, moved,
    plan, taken, done, sums,
):  # fmt: skip
    """Algorithm 1, lines 2-7, on parts of round t's batch, until all are taken."""
    low, stop = starts[t], starts[t + 1]
    n = stop - low
    parts = _parts(n, threads)
    k = claim(taken, t)
    while k < parts:
        first, last = _edge(n, parts, k), _edge(n, parts, k + 1)
        G = others[k - 1] if k > 0 else estimates[1 - int(plan[_PARITY])]
        sums[k] = recursive_gradient(
            A, y, rows[low + first : low + last], u, plan[_SCALE], int(plan[_MODE]), previous,
            index, moved, plan[_SHRINK], alpha[t], beta[t], G,
            rows[stop + first : stop + first + LONGEST_BLOCK],
        )  # fmt: skip
        claim(done, t)
        k = claim(taken, t)
    return parts


@kernel()
def help_rounds(
    A, y, rows, starts, threads, alpha, beta, u, estimates, others, previous, index, moved,
    plan, opened, taken, done, sums,
):  # fmt: skip
    """Take parts of every round that `lead_rounds` opens, until it is over."""
    seen = NOT_YET
    turns = 0
    while True:
        t = peek(opened, 0)
        if t == OVER:
            return
        if t == seen:
            turns = rest(turns)
            continue
        seen = t
        turns = 0
        _take_parts(
            A, y, rows, starts, t, threads, alpha, beta, u, estimates, others, previous, index,
            moved, plan, taken, done, sums,
        )  # fmt: skip


@kernel()
def lead_rounds(
    A, y, rows, starts, mean, threads, alpha, beta, gamma, eta, radius, u, estimates, others,
    previous, total, index, value, scalars, moved, plan, opened, taken, done, sums, losses,
):  # fmt: skip
    """As `loops.momentum_rounds`, with batches cut into parts that helpers may take."""
    new_index = np.empty_like(index)
    new_value = np.empty_like(value)
    for t in range(losses.shape[0]):
        mode, shrink = previous_point(scalars[LAST_STEP], beta[t], value, moved)
        parity = int(scalars[PARITY])
        plan[_SCALE], plan[_SHRINK] = scalars[SCALE], shrink
        plan[_MODE], plan[_PARITY] = mode, parity
        publish(opened, 0, t)
        parts = _take_parts(
            A, y, rows, starts, t, threads, alpha, beta, u, estimates, others, previous, index,
            moved, plan, taken, done, sums,
        )  # fmt: skip
        turns = 0
        while peek(done, t) < parts:
            turns = rest(turns)
        loss = 0.0
        for k in range(parts):
            loss += sums[k]
        g = estimates[1 - parity]
        for k in range(parts - 1):
            for c in range(g.shape[0]):
                for j in range(g.shape[1]):
                    g[c, j] += others[k, c, j]
        reduction = 1.0 / (starts[t + 1] - starts[t]) if mean else 1.0
        losses[t] = loss * reduction
        if not np.isfinite(loss) or not conclude(
            reduction, gamma[t], eta[t], radius, u, estimates, previous, total, index, value,
            new_index, new_value, scalars,
        ):  # fmt: skip
            return t
    return losses.shape[0]
