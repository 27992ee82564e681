"""Whole runs: many rounds without leaving compiled code."""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from .l1 import LARGEST_LAZY_STEP, step
from .logistic import DENSE_PREVIOUS, NO_PREVIOUS, ONE_VERTEX_BACK
from .parts import finish, moves, shared_gradient
from .storm import estimate

#: Entries of the scalar state of a run.
SCALE, WEIGHT, LAST_STEP, PARITY = 0, 1, 2, 3


@kernel()
def previous_point(last, beta, value, moved):
    """Where the logits at the point before the last step come from, and by what x has shrunk.

    moved[c] is what the step of length `last` towards a vertex with these values added.
    """
    mode = NO_PREVIOUS
    if beta != 0.0:
        mode = DENSE_PREVIOUS if last > LARGEST_LAZY_STEP else ONE_VERTEX_BACK
    for c in range(value.shape[0]):
        moved[c] = last * value[c]
    shrink = 1.0 / (1.0 - last) if mode == ONE_VERTEX_BACK else 1.0
    return mode, shrink


@kernel()
def conclude(
    reduction, gamma, eta, radius, u, low, estimates, previous, total, index, value, new_index,
    new_value, scalars,
):  # fmt: skip
    """Algorithm 1, lines 8 and 9, once the gradients' sum is in the estimate that is scratch.

    False, and no change but to scratch, where the new estimate is not finite.
    """
    parity = int(scalars[PARITY])
    # line 8
    if not estimate(
        estimates[parity], estimates[1 - parity], gamma, reduction, radius, new_index, new_value
    ):
        return False
    for c in range(index.shape[0]):
        index[c], value[c] = new_index[c], new_value[c]
    # line 9
    scalars[SCALE], scalars[WEIGHT] = step(
        u, low, total, previous, scalars[SCALE], scalars[WEIGHT] + scalars[SCALE], index, value,
        eta,
    )  # fmt: skip
    scalars[LAST_STEP] = eta
    scalars[PARITY] = 1 - parity
    return True


@kernel()
def momentum_rounds(
    A, y, rows, starts, mean, alpha, beta, gamma, eta, radius, u, low, estimates, previous, total,
    index, value, scalars, team, losses,
):  # fmt: skip
    """Play rounds of a momentum Frank-Wolfe method on the row-l1 ball.

    Round t, with its batch rows[starts[t]:starts[t+1]], updates
    d ← gamma_t d + alpha_t ∇f(x_t) - beta_t ∇f(x_{t-1}), v = LMO(d), x ← x + eta_t (v - x):
    Algorithm 1 for alpha = 1, beta = gamma = 1 - rho; OSFW for alpha = rho, beta = 0,
    gamma = 1 - rho. Batches are shared by a `team` of threads, or of one, see `parts`.

    Returns the number of rounds done, which ``losses[-1]`` is when each of them is whole. It is
    less than asked for where a loss or an estimate is not finite; losses[t] then holds that loss,
    and the state is as before that round.
    """
    moved = moves(team)
    new_index = np.empty_like(index)
    new_value = np.empty_like(value)
    n = starts.shape[0] - 1
    for t in range(n):
        # Algorithm 1, lines 2-7: play, receive the loss, update the estimate
        mode, shrink = previous_point(scalars[LAST_STEP], beta[t], value, moved)
        loss = shared_gradient(
            A, y, rows, starts, t, mode, scalars[SCALE], shrink, 1 - int(scalars[PARITY]), alpha[t],
            beta[t], u, estimates, previous, index, team,
        )  # fmt: skip
        reduction = 1.0 / (starts[t + 1] - starts[t]) if mean else 1.0
        losses[t] = loss * reduction
        if not np.isfinite(loss) or not conclude(
            reduction, gamma[t], eta[t], radius, u, low, estimates, previous, total, index, value,
            new_index, new_value, scalars,
        ):  # fmt: skip
            return finish(t, team)
        losses[n] = t + 1
    return finish(n, team)
