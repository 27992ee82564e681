"""Whole runs for a loss that somebody else compiled: rounds without leaving compiled code.

The iterate and the sum of the iterates are kept in float64. The function gets points in the
precision of the estimate.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from . import l1
from ._jit import kernel

__all__ = ["l1_move", "momentum_rounds", "simplex_move"]


@kernel()
def l1_move(g, radius, eta, x):
    """X ← (1 - η) x + η v for the vertex v of the row-l1 ball; g is finite."""
    index, value = np.empty(g.shape[0], np.intp), np.empty(g.shape[0])
    l1.lmo(g, radius, index, value)
    keep = 1.0 - eta
    for c in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[c, j] *= keep
        x[c, index[c]] += eta * value[c]


@kernel()
def simplex_move(g, radius, eta, x):
    """X ← (1 - η) x + η v, each row in a simplex; g is finite."""
    keep = 1.0 - eta
    for c in range(x.shape[0]):
        least = np.argmin(g[c])
        for j in range(x.shape[1]):
            x[c, j] *= keep
        x[c, least] += eta * radius


@lru_cache(maxsize=64)
def momentum_rounds(function, pairs, move):
    """Return the compiled loop for one function: (x, X, y), or (x, X) without `pairs`.

    It is compiled for the function, at its first call, and not cached on disk.
    """
    if pairs:
        evaluate = function
    else:

        @kernel(cache=False)
        def evaluate(x, A, b):
            return function(x, A)

    @kernel(cache=False)
    def fits(gradient, x):
        """Whether a gradient has the shape of x, which has one axis or two."""
        return (
            gradient.ndim == x.ndim
            and gradient.size == x.size
            and gradient.shape[gradient.ndim - 1] == x.shape[x.ndim - 1]
        )

    @kernel(cache=False)
    def rounds(
        X, y, rows, starts, alpha, beta, gamma, eta, radius, x, previous, d, trial, total, losses
    ):
        """D ← gamma d + alpha ∇f(x_t) - beta ∇f(x_{t-1}), a vertex and a step; rounds done.

        A round whose loss or estimate is not finite changes nothing and is the last. -1 where a
        gradient does not have the shape of x. The function gets copies of points, which are its
        own to spoil.
        """
        n_columns = x.shape[x.ndim - 1]
        flat, flat_previous = x.reshape(-1), previous.reshape(-1)
        flat_d, flat_trial, flat_total = d.reshape(-1), trial.reshape(-1), total.reshape(-1)
        n = starts.shape[0] - 1
        for i in range(n):
            picked = rows[starts[i] : starts[i + 1]]
            A, b = X[picked], y[picked]
            loss, gradient = evaluate(x.astype(d.dtype), A, b)
            losses[i] = loss
            if not np.isfinite(loss):
                return i
            if not fits(gradient, x):
                return -1
            flat_gradient = np.ascontiguousarray(gradient).reshape(-1)
            for j in range(flat.shape[0]):
                flat_trial[j] = gamma[i] * flat_d[j] + alpha[i] * flat_gradient[j]
            if beta[i] != 0.0:
                _, back = evaluate(previous.copy(), A, b)
                if not fits(back, x):
                    return -1
                flat_back = np.ascontiguousarray(back).reshape(-1)
                for j in range(flat.shape[0]):
                    flat_trial[j] -= beta[i] * flat_back[j]
            for j in range(flat.shape[0]):
                if not np.isfinite(flat_trial[j]):
                    return i
            for j in range(flat.shape[0]):
                flat_previous[j] = flat[j]
                flat_total[j] += flat[j]
                flat_d[j] = flat_trial[j]
            move(d.reshape(-1, n_columns), radius, eta[i], x.reshape(-1, n_columns))
            losses[n] = i + 1
        return n

    return rounds
