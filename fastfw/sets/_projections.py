"""Thresholds by which points are projected onto simplices and l1 balls."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def row_thresholds(a: Array, radius: float) -> Array:
    """Return theta of each row, with sum_j max(a_j - theta, 0) = radius (Duchi et al. 2008).

    Rows need a sum of positive parts of at least the radius for theta to be at least 0. O(n log n),
    for the sort.
    """
    ordered = -np.sort(-a, axis=1)
    sums = np.cumsum(ordered, axis=1) - radius
    counts = np.arange(1, a.shape[1] + 1)
    support = (ordered * counts > sums).sum(axis=1)
    return np.asarray(sums[np.arange(len(a)), support - 1] / support)


def within(a: Array, top: Array, radius: float) -> Array:
    """Return max(radius - (top - a), 0) for the largest entry `top`.

    A threshold lies at most the radius below the largest entry: what is lower vanishes, and what is
    left lies in [0, radius], so that numbers of any size lose nothing in the sums.
    """
    return np.maximum(radius - (top - a), 0.0)


def project_rows(a: Array, radius: float) -> Array:
    """Project rows of nonnegative numbers onto {x >= 0, sum x <= radius}; `a` where all are inside.

    >>> project_rows(np.array([[9.0, 5.0, 0.0], [1.0, 0.0, 3.0]]), 8.0)
    array([[6., 2., 0.],
           [1., 0., 3.]])
    """
    with np.errstate(over="ignore"):  # an infinite sum is outside, too
        outside = a.sum(axis=1) > radius
    if not outside.any():
        return a
    projected, beyond = a.copy(), a[outside]
    top = beyond.max(axis=1, keepdims=True)
    # Where an entry exceeds r the threshold lies within r of the largest.
    beyond = np.where(top > radius, within(beyond, top, radius), beyond)
    theta = row_thresholds(beyond, radius)
    projected[outside] = np.maximum(beyond - theta[:, np.newaxis], 0.0)
    return projected


def project_simplex(v: Array, radius: float = 1.0) -> Array:
    """Project a vector onto {x >= 0, sum x = radius}: max(v - theta, 0).

    >>> project_simplex(np.array([0.9, 0.5, -1.0]))
    array([0.7, 0.3, 0. ])
    """
    wide = v.astype(np.float64, copy=False)
    a = within(wide, wide.max(), radius)[np.newaxis]
    return np.asarray(np.maximum(a[0] - row_thresholds(a, radius)[0], 0.0), v.dtype)
