"""The row-wise l1 ball of matrices, the paper's set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, check_seed
from fastfw.sets._convex import ConvexSet, pair_of, radius_of
from fastfw.sets._projections import row_thresholds, within
from fastfw.sets._vertex import Vertex

__all__ = ["TIES", "RowL1Ball", "RowVertex"]

#: Names of the ways in which oracles of l1 balls choose among equal entries.
TIES = ("first", "random")


class RowVertex(Vertex):
    """A vertex of `RowL1Ball`: one nonzero entry in each row.

    Behaves as a read-only array of shape (C, d) wherever NumPy takes one (``x + eta * (v - x)``,
    ``np.asarray(v)``) and holds 2 C numbers.

    Attributes
    ----------
    indices : ndarray of int, shape (C,)
        Column of each row's entry.
    values : ndarray, shape (C,)
        The entries, plus or minus the radius.
    shape : tuple of int
        (C, d).
    """

    __slots__ = ("indices", "values")

    def __init__(self, indices: IndexArray, values: FloatArray, shape: tuple[int, int]) -> None:
        super().__init__(shape, values.dtype)
        self.indices = indices
        self.values = values

    @property
    def code(self) -> IndexArray:
        """+r at column j of a row is j, -r is -1 - j; shape (C,)."""
        return np.where(self.values > 0.0, self.indices, ~self.indices)

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array of shape (C, d)."""
        dense = np.zeros(self.shape, self.dtype)
        dense[np.arange(self.shape[0]), self.indices] = self.values
        return dense

    def dot(self, direction: npt.ArrayLike) -> float:
        """Return ⟨direction, v⟩, summed in float64. O(C)."""
        picked = np.asarray(direction)[np.arange(self.shape[0]), self.indices]
        return float(np.dot(np.asarray(picked, np.float64), self.values.astype(np.float64)))

    def add_to(self, x: FloatArray, scale: float) -> None:
        """Add scale times the vertex to `x`, in place. O(C)."""
        moves = x.dtype.type(scale) * self.values.astype(x.dtype, copy=False)
        x[np.arange(self.shape[0]), self.indices] += moves

    def __repr__(self) -> str:
        return f"RowVertex(indices={self.indices}, values={self.values}, shape={self.shape})"


class RowL1Ball(ConvexSet):
    r"""Matrices whose every row has l1 norm at most r.

    .. math:: \{W \in R^{C \times d} : \sum_j |W_{cj}| \le r \text{ for all } c\}

    The paper writes W as d x C and bounds column sums; here a class is a row.

    Parameters
    ----------
    shape : tuple of int
        (C, d).
    radius : float
        r > 0.
    ties : {"first", "random"}
        Which of several largest entries of a row the oracle takes: the first, or one that depends
        on the seed and the row. The choice is the same every time: the oracle stays a function.
    seed : int or sequence of int
        Of random ties.

    Raises
    ------
    TypeError, ValueError
        If `shape` is not a pair of positive integers or `radius` not a finite positive number, or
        if it is so small that it is subnormal.

    Examples
    --------
    >>> import fastfw as fw
    >>> ball = fw.RowL1Ball(shape=(2, 3), radius=8.0)
    >>> ball.lmo([[0.0, 2.0, -3.0], [0.0, 0.0, 0.0]]).toarray()
    array([[ 0.,  0.,  8.],
           [-8.,  0.,  0.]])
    >>> round(ball.diameter, 3)
    22.627
    """

    def __init__(
        self,
        shape: tuple[int, int],
        radius: float,
        ties: str = "first",
        seed: int | Sequence[int] = 0,
    ) -> None:
        self._shape: tuple[int, int] = pair_of(shape, "(n_classes, n_features)")
        self._radius = radius_of(radius)
        if ties not in TIES:
            raise ValueError(f"ties must be one of {TIES}, but it is {ties!r}")
        self._ties = ties
        self._seed = check_seed(seed)
        words = np.random.SeedSequence(self._seed) if ties == "random" else None
        self._key = np.uint64(0 if words is None else words.generate_state(1, np.uint64)[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the set's points, (C, d)."""
        return self._shape

    @property
    def radius(self) -> float:
        """Bound on the l1 norm of every row, r."""
        return self._radius

    @property
    def ties(self) -> str:
        """Which of several largest entries the oracle takes, "first" or "random"."""
        return self._ties

    @property
    def seed(self) -> int | tuple[int, ...]:
        """Seed of random ties."""
        return self._seed

    @property
    def tie_key(self) -> np.uint64:
        """Key of the random ties, as kernels take it."""
        return self._key

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, 2 r sqrt(C)."""
        return 2.0 * self._radius * math.sqrt(self._shape[0])

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point inside: rows in Gaussian directions with l1 norm r/2."""
        x = rng.standard_normal(self._shape)
        x *= 0.5 * self._radius / np.abs(x).sum(axis=1, keepdims=True)
        return x

    def lmo(self, direction: npt.ArrayLike) -> RowVertex:
        """Linear minimisation oracle: a vertex v that minimises ⟨direction, v⟩.

        In each row the entry -r sign(g) at the g of largest magnitude, the first or a random one of
        several; sign(0) counts as +1, so that the result is a vertex whatever the direction.

        Parameters
        ----------
        direction : array_like, shape (C, d)
            Any finite direction; float32 stays float32.

        Returns
        -------
        RowVertex
            Sparse; ``np.asarray`` makes it dense.

        Raises
        ------
        TypeError, ValueError
            If the direction is not finite real numbers of the set's shape.

        Notes
        -----
        O(C d) time, O(C) memory.
        """
        g = self._asked(direction, "direction")
        from fastfw.kernels import l1

        index = np.empty(self._shape[0], np.intp)
        value = np.empty(self._shape[0], np.float64)
        if not l1.lmo(g, self._radius, index, value):
            raise self._not_finite(g)
        if self._ties == "random":
            l1.break_ties(g, self._radius, self._key, index, value)
        return RowVertex(index, value.astype(g.dtype, copy=False), self._shape)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, row by row (Duchi et al. 2008).

        Parameters
        ----------
        x : array_like, shape (C, d)
            Any finite matrix; not changed.

        Returns
        -------
        ndarray, shape (C, d)
            A new array.

        Raises
        ------
        ValueError
            If `x` has another shape or is not finite.

        Notes
        -----
        O(C d log d) time, for the sort.
        """
        x = self._projectable(x)
        magnitude = np.abs(x).astype(np.float64, copy=False)
        with np.errstate(over="ignore"):  # an infinite norm is outside, too
            outside = magnitude.sum(axis=1) > self._radius
        projected = np.array(x)
        if outside.any():
            a = magnitude[outside]
            top = a.max(axis=1, keepdims=True)
            # Where an entry exceeds r the threshold lies within r of the largest.
            a = np.where(top > self._radius, within(a, top, self._radius), a)
            threshold = row_thresholds(a, self._radius)
            shrunk = np.maximum(a - threshold[:, np.newaxis], 0.0)
            projected[outside] = np.copysign(shrunk, x[outside])
        return projected

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        """Tell whether every row's l1 norm is at most r (1 + tol)."""
        return bool(np.abs(point).sum(axis=1).max() <= self._radius * (1.0 + tol))

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> RowVertex:
        """Return the vertex of a code."""
        values = np.where(code >= 0, self._radius, -self._radius).astype(dtype)
        return RowVertex(np.where(code >= 0, code, ~code), values, self._shape)

    def _parameters(self) -> dict[str, Any]:
        ties = {} if self._ties == "first" else {"ties": self._ties, "seed": self._seed}
        return {"shape": self._shape, "radius": self._radius, **ties}
