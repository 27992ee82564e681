"""Every method again in plain NumPy, straight from the paper; nothing of fastfw is imported.

These functions are what the package is tested against and what its benchmarks call "NumPy as the
paper writes it".  They are written to be compared with the pseudocode line by line, not to be
fast: batches are gathered (``A = X[rows]``), gradients are two matrix products each, nothing is
shared between products.

Conventions
-----------
``W``, ``x``, ``v``, ``d``
    (C, d) arrays: one row per class.  The paper writes W as d x C and bounds column sums; here it
    is row sums.
``A``, ``y``
    One batch: (B, d) features and (B,) integer labels.  ``batches`` is a sequence of such pairs.
``t``, ``k``
    Count from 1, as in the paper.
``step``, ``momentum``
    A float or a callable of ``t`` (of ``k`` in the adversarial methods).

The dtype of the features and of the start is kept throughout: float32 in, float32 out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Schedule = float | Callable[[int], float]
Batches = Sequence[tuple[Array, Array]]


# --- schedules and batches ------------------------------------------------------------------------


def power_schedule(c: float, e: float) -> Callable[[int], float]:
    """``t -> min(c / (t + 1)**e, 1)`` for t = 1, 2, ..."""
    return lambda t: min(c / (t + 1) ** e, 1.0)


def value_at(schedule: Schedule, t: int) -> float:
    """Value of a schedule, which is a float or a callable, in round ``t``."""
    return float(schedule(t)) if callable(schedule) else float(schedule)


def gather(X: Array, y: Array, rows: Array) -> list[tuple[Array, Array]]:
    """Batches of given rows: ``rows`` is (T, B), the result T pairs ``(X[rows[t]], y[rows[t]])``."""
    return [(X[r], y[r]) for r in rows]


# --- softmax regression ---------------------------------------------------------------------------


def log_sum_exp(Z: Array) -> Array:
    """Row by row ``log(sum_j exp(z_j))``, the row's maximum subtracted first."""
    top = Z.max(axis=1)
    return np.asarray(top + np.log(np.exp(Z - top[:, None]).sum(axis=1)))


def softmax(Z: Array) -> Array:
    """Row by row ``exp(z_j) / sum_i exp(z_i)``, the row's maximum subtracted first."""
    E = np.exp(Z - Z.max(axis=1, keepdims=True))
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def _scale(reduction: str, n: int) -> float:
    """Weight of one sample: 1/n for the mean, 1 for the sum (the paper's formula)."""
    return {"mean": 1.0 / n, "sum": 1.0}[reduction]


def loss(W: Array, A: Array, y: Array, reduction: str = "mean") -> float:
    """Softmax loss ``sum_i log(sum_j exp(z_ij)) - z_iy_i`` with Z = A W^T, or its mean."""
    Z = A @ W.T
    own = Z[np.arange(len(y)), y]
    return float((log_sum_exp(Z) - own).sum() * _scale(reduction, len(y)))


def gradient(W: Array, A: Array, y: Array, reduction: str = "mean") -> Array:
    """Gradient ``R^T A`` of the loss, R = softmax(A W^T) - onehot(y); divided by B for the mean."""
    R = softmax(A @ W.T)
    R[np.arange(len(y)), y] -= 1.0
    return np.asarray(R.T @ A * _scale(reduction, len(y)))


def loss_and_gradient(W: Array, A: Array, y: Array, reduction: str = "mean") -> tuple[float, Array]:
    """Loss and gradient from one forward product."""
    Z = A @ W.T
    own = Z[np.arange(len(y)), y]
    value = float((log_sum_exp(Z) - own).sum() * _scale(reduction, len(y)))
    R = softmax(Z)
    R[np.arange(len(y)), y] -= 1.0
    return value, np.asarray(R.T @ A * _scale(reduction, len(y)))


# --- the row-wise l1 ball -------------------------------------------------------------------------


def lmo_parts(g: Array, radius: float) -> tuple[Array, Array]:
    """Position and value of the only nonzero entry of each row of the vertex.

    Per row: the first index of largest ``|g_i|``, the value ``-radius * sign(g_i)`` there, and
    sign(0) = sign(-0) = +1, so that the result is a vertex whatever the direction.
    """
    indices = np.argmax(np.abs(g), axis=1)
    picked = g[np.arange(len(g)), indices]
    values = np.where(picked >= 0, -radius, radius).astype(g.dtype)
    return indices, values


def lmo(g: Array, radius: float) -> Array:
    """Linear minimisation oracle: a vertex v of the row l1 ball that minimises ``<g, v>``."""
    indices, values = lmo_parts(g, radius)
    v = np.zeros_like(g)
    v[np.arange(len(g)), indices] = values
    return v


def diameter(n_rows: int, radius: float) -> float:
    """Euclidean diameter: 2 r for one row, 2 r sqrt(C) for C rows."""
    return 2.0 * radius * math.sqrt(n_rows)


# --- the stochastic setting -----------------------------------------------------------------------


class Run(NamedTuple):
    """What a whole run leaves behind.

    Attributes
    ----------
    iterates : (T + 1, C, d) array
        Decisions x_1, ..., x_{T+1}; the last one is never played.
    losses : (T,) array
        f_t(x_t), before the update of round t.
    directions : (T, C, d) array
        What the oracle was asked about in round t (``d_t`` or ``g_t``).
    vertices : (T, C, d) array
        The point moved towards in round t.
    """

    iterates: Array
    losses: Array
    directions: Array
    vertices: Array


def _finish(xs: list[Array], losses: list[float], ds: list[Array], vs: list[Array]) -> Run:
    return Run(np.array(xs), np.array(losses), np.array(ds), np.array(vs))


def orgfw_round(
    x: Array,
    x_prev: Array,
    d: Array | None,
    A: Array,
    y: Array,
    rho: float,
    eta: float,
    radius: float,
    first: bool,
    reduction: str = "mean",
) -> tuple[float, Array, Array]:
    """One round of ORGFW, Algorithm 1, lines 2-9: four matrix products.

    ``x`` is x_t, ``x_prev`` is x_{t-1} and ``d`` is d_{t-1}; neither of the last two is read in
    the first round.  Returns ``(f_t(x_t), x_{t+1}, d_t)``.
    """
    value, g = loss_and_gradient(x, A, y, reduction)  # 2: play x_t, receive f_t(x_t), its gradient
    if first:  # 3: if t = 1
        d_next = g  # 4: d_t <- grad F_t(x_t)
    else:  # 5: else
        g_prev = gradient(x_prev, A, y, reduction)  # 2: the gradient at x_{t-1}, same batch
        d_next = g + (1.0 - rho) * (d - g_prev)  # 6: the recursive estimator
    v = lmo(d_next, radius)  # 8: v_t <- argmin <d_t, v>
    x_next = x + eta * (v - x)  # 9: x_{t+1} <- x_t + eta_t (v_t - x_t)
    return value, x_next, d_next


def orgfw(
    start: Array,
    batches: Batches,
    radius: float,
    step: Schedule,
    momentum: Schedule,
    reduction: str = "mean",
) -> Run:
    """ORGFW, Algorithm 1: ``step`` is eta_t, ``momentum`` is rho_t (not read in round 1)."""
    x_prev, x, d = start, start, None  # input: x_0 = x_1
    xs, losses, ds, vs = [x], [], [], []
    for t, (A, y) in enumerate(batches, start=1):  # 1: for t = 1, ..., T
        first = t == 1
        rho = 1.0 if first else value_at(momentum, t)
        value, x_next, d = orgfw_round(
            x, x_prev, d, A, y, rho, value_at(step, t), radius, first, reduction
        )  # 2-9
        x_prev, x = x, x_next
        xs.append(x)
        losses.append(value)
        ds.append(d)
        vs.append(lmo(d, radius))
    return _finish(xs, losses, ds, vs)


def osfw_round(
    x: Array,
    d: Array,
    A: Array,
    y: Array,
    rho: float,
    eta: float,
    radius: float,
    reduction: str = "mean",
) -> tuple[float, Array, Array]:
    """One round of OSFW (Chen et al. 2018): two products.  Returns ``(f_t(x_t), x_{t+1}, d_t)``."""
    value, g = loss_and_gradient(x, A, y, reduction)  # play x_t, receive f_t(x_t), its gradient
    d_next = (1.0 - rho) * d + rho * g  # d_t <- (1 - rho_t) d_{t-1} + rho_t grad F_t(x_t)
    v = lmo(d_next, radius)  # v_t <- argmin <d_t, v>
    x_next = x + eta * (v - x)  # x_{t+1} <- x_t + eta_t (v_t - x_t)
    return value, x_next, d_next


def osfw(
    start: Array,
    batches: Batches,
    radius: float,
    step: Schedule,
    momentum: Schedule,
    reduction: str = "mean",
) -> Run:
    """OSFW: averaged stochastic gradients, d_0 = 0."""
    x, d = start, np.zeros_like(start)
    xs, losses, ds, vs = [x], [], [], []
    for t, (A, y) in enumerate(batches, start=1):
        value, x, d = osfw_round(
            x, d, A, y, value_at(momentum, t), value_at(step, t), radius, reduction
        )
        xs.append(x)
        losses.append(value)
        ds.append(d)
        vs.append(lmo(d, radius))
    return _finish(xs, losses, ds, vs)
