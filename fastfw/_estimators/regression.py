"""Losses of numbers that are predicted: what `fastfw.sklearn.ProjectionFreeRegressor` fits.

One function has them all. With u the difference of prediction and target it is

    p u - s p² / 2  where p = u / s, not below a and not above b,

which is u² / 2 for s = 1 and no bounds, Huber's loss for bounds -ε and ε, and for a small s the
quantile loss, rounded at its corner. The numbers s, a and b are columns of the targets: so the
function is compiled once for all losses.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import features, freeze
from fastfw.custom import FunctionProblem
from fastfw.streams import Dataset

__all__ = ["LOSSES", "Targets", "Units", "loss_of", "problem_for", "units_of"]

LOSSES = ("squared_error", "huber", "quantile")
#: Within so many units of a target the quantile loss is rounded.
ROUNDED = 0.02


def row_losses(x: Any, X: Any, targets: Any) -> tuple[Any, Any]:
    """Sum of the losses of rows, and its gradient; see the top of this file."""
    y, weight, s = targets[:, 0], targets[:, 1], targets[:, 2]
    u = X @ x[0] - y
    p = np.minimum(np.maximum(u / s, targets[:, 3]), targets[:, 4])
    loss = (weight * p * (u - 0.5 * s * p)).sum()
    slope = (weight * p).astype(x.dtype) @ X
    return loss, slope.reshape(x.shape)


def row_by_row(x: Any, X: Any, targets: Any) -> tuple[Any, Any]:
    """Return the same, in a form that is soon compiled."""
    loss, gradient = 0.0, np.zeros(x.shape, x.dtype)
    for i in range(X.shape[0]):
        y, weight, s = targets[i, 0], targets[i, 1], targets[i, 2]
        low, high = targets[i, 3], targets[i, 4]
        z = x.dtype.type(0.0)
        for j in range(X.shape[1]):
            z += x[0, j] * X[i, j]
        u = z - y
        p = min(max(u / s, low), high)
        loss += weight * p * (u - 0.5 * s * p)
        slope = x.dtype.type(weight * p)
        for j in range(X.shape[1]):
            gradient[0, j] += slope * X[i, j]
    return loss, gradient


def problem_for(width: int, sparse: bool) -> FunctionProblem:
    """Return the problem for features of this width; for dense ones it has compiled rounds."""
    if sparse:
        return FunctionProblem(row_losses, (1, width), "sum")
    return FunctionProblem._of_both(row_by_row, row_losses, (1, width))


class Units(NamedTuple):
    """What numbers are counted in while a model learns."""

    zero: float
    one: float


class Targets(Dataset):
    """Rows of features with numbers in place of labels, of which each knows its loss and weight."""

    __slots__ = ()

    y: Any

    @classmethod
    def of(cls, X: Any, y: Any, weights: Any, loss: tuple[float, float, float]) -> Targets:
        """Return rows that have this loss, see `loss_of`."""
        targets = np.empty((len(y), 5))
        targets[:, 0], targets[:, 2:] = y, loss
        targets[:, 1] = 1.0 if weights is None else weights
        return cls(X, targets)

    def __init__(self, X: Any, y: npt.NDArray[np.float64]) -> None:
        A, targets = features(X, sparse=True), freeze(np.ascontiguousarray(y))
        weights = None if (targets[:, 1] == 1.0).all() else targets[:, 1]
        self._hold(A, None, A.dtype, targets, weights, 1)

    def _reweighted(self, weights: npt.NDArray[np.float64] | None) -> Targets:
        y = self.y.copy()
        y[:, 1] = 1.0 if weights is None else weights
        return Targets(self.X, y)

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Targets, (self._X, self.y)


def loss_of(name: str, epsilon: float, quantile: float) -> tuple[float, float, float]:
    """Return the s, a and b of a loss."""
    if name == "quantile":
        return ROUNDED, -quantile, 1.0 - quantile
    bound = epsilon if name == "huber" else np.inf
    return 1.0, -bound, bound


def units_of(y: npt.NDArray[np.float64], weights: Any, robust: bool) -> Units:
    """Return mean and standard deviation, or what outliers leave alone: medians, weighted."""
    w = np.ones(y.size) if weights is None else weights
    if robust:
        zero = _median(y, w)
        one = 1.4826 * _median(np.abs(y - zero), w)
    if not robust or one == 0.0:
        middle = np.average(y, weights=w)
        one = float(np.sqrt(np.average((y - middle) ** 2, weights=w)))
        zero = zero if robust else float(middle)
    return Units(zero, one if one > 0.0 else 1.0)


def _median(values: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]) -> float:
    """Return the lower weighted median."""
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order[np.searchsorted(total, 0.5 * total[-1])]])
