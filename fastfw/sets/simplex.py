"""The probability simplex, and its scaled copies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, positive_int
from fastfw.sets._compiled import Block
from fastfw.sets._convex import RadiusSet
from fastfw.sets._projections import project_simplex
from fastfw.sets.l1_ball import L1Vertex

__all__ = ["Simplex"]


class Simplex(RadiusSet):
    r"""Nonnegative vectors that sum to r: probabilities, portfolios, mixtures.

    .. math:: \{x \in R^n : x_j \ge 0, \ \sum_j x_j = r\}

    Parameters
    ----------
    size : int
        n, at least 2.
    radius : float
        r > 0, by default 1.

    Examples
    --------
    >>> import fastfw as fw
    >>> simplex = fw.Simplex(3)
    >>> simplex.lmo([2.0, -1.0, 0.0])
    L1Vertex(index=1, value=1.0, shape=(3,))
    >>> simplex.project([0.9, 0.5, -1.0])
    array([0.7, 0.3, 0. ])
    >>> simplex.start().round(3)
    array([0.333, 0.333, 0.333])
    """

    _shape: tuple[int]

    def __init__(self, size: int, radius: float = 1.0) -> None:
        super().__init__((positive_int(size, "size", minimum=2),), radius)

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, r √2."""
        return self._radius * math.sqrt(2.0)

    def start(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Return the point where learners start: the centre, r/n everywhere."""
        return np.full(self._shape, self._radius / self._shape[0], self._dtype(dtype))

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point, evenly distributed."""
        return self._radius * rng.dirichlet(np.ones(self._shape))

    def lmo(self, direction: npt.ArrayLike) -> L1Vertex:
        """R at the smallest entry, the first of several; see `ConvexSet.lmo`. O(n) time."""
        g = self._direction(direction)
        return L1Vertex(int(np.argmin(g)), self._radius, self._shape, g.dtype)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array: max(x - theta, 0). O(n log n)."""
        return project_simplex(self._projectable(x), self._radius)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        slack = tol * self._radius
        return bool(point.min() >= -slack and abs(point.sum() - self._radius) <= slack)

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> L1Vertex:
        """Return the vertex of a code."""
        return L1Vertex(int(code[0]), self._radius, self._shape, dtype)

    def _blocks(self) -> list[Block]:
        return [Block("SIMPLEX", 1, *self._shape, self._radius)]

    def _parameters(self) -> dict[str, Any]:
        return {"size": self._shape[0], "radius": self._radius}
