"""The Birkhoff polytope: doubly stochastic matrices, whose vertices are permutations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, positive_int
from fastfw.sets._convex import ConvexSet, normalise
from fastfw.sets.rows import RowVertex

__all__ = ["BirkhoffPolytope", "PermutationVertex"]


class PermutationVertex(RowVertex):
    """A vertex of `BirkhoffPolytope`: a permutation matrix.

    Attributes
    ----------
    columns : ndarray of int, shape (n,)
        Column of the one in each row.
    """

    __slots__ = ()

    def __init__(self, columns: IndexArray, dtype: npt.DTypeLike = np.float64) -> None:
        n = columns.size
        super().__init__(columns, np.ones(n, dtype), (n, n))

    @property
    def columns(self) -> IndexArray:
        """Column of the one in each row."""
        return self.indices

    def __repr__(self) -> str:
        return f"PermutationVertex(columns={self.columns})"


class BirkhoffPolytope(ConvexSet):
    r"""Doubly stochastic matrices: assignments, rankings and matchings, and mixtures of them.

    .. math:: \{X \in R^{n \times n} : X \ge 0, \ X 1 = 1, \ X^T 1 = 1\}

    Parameters
    ----------
    size : int
        n, at least 2.

    Examples
    --------
    >>> import fastfw as fw
    >>> fw.BirkhoffPolytope(3).lmo([[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]])
    PermutationVertex(columns=[1 0 2])
    """

    _shape: tuple[int, int]

    def __init__(self, size: int) -> None:
        n = positive_int(size, "size", minimum=2)
        self._shape = (n, n)

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, √(2 n)."""
        return math.sqrt(2.0 * self._shape[0])

    def start(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Return the point where learners start: the centre, 1/n everywhere."""
        return np.full(self._shape, 1.0 / self._shape[0], self._dtype(dtype))

    def lmo(self, direction: npt.ArrayLike) -> PermutationVertex:
        """Return a permutation of least cost, see `ConvexSet.lmo`. O(n³) time at worst.

        Of several best permutations it is the one that scipy's ``linear_sum_assignment`` finds
        first: rows enter in order, each along the cheapest way to a free column; nothing is drawn.
        Equal costs give the same permutation every time (with the same scipy); costs that are all
        equal, the identity.
        """
        from scipy.optimize import linear_sum_assignment

        g = self._direction(direction)
        _, columns = linear_sum_assignment(normalise(g)[0])
        return PermutationVertex(columns.astype(np.intp), g.dtype)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        sums = np.concatenate([point.sum(axis=0), point.sum(axis=1)])
        return bool(point.min() >= -tol and np.abs(sums - 1.0).max() <= tol)

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> PermutationVertex:
        """Return the vertex of a code."""
        return PermutationVertex(code.astype(np.intp), dtype)

    def _parameters(self) -> dict[str, Any]:
        return {"size": self._shape[0]}
