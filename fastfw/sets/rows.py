"""The row-wise l1 ball of matrices, the paper's set."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, check_seed, choice, seed_bits
from fastfw.sets._compiled import Block
from fastfw.sets._convex import OVERFLOW, RadiusSet, finite, pair_of
from fastfw.sets._projections import project_rows
from fastfw.sets._vertex import Vertex, decoded, signed_code

__all__ = ["RowL1Ball", "RowVertex"]


class RowVertex(Vertex):
    """A vertex with one entry in each row, as `RowL1Ball` has them.

    Attributes
    ----------
    indices : ndarray of int, shape (C,)
        Column of each row's entry.
    values : ndarray, shape (C,)
        The entries.
    """

    __slots__ = ("indices", "values")

    def __init__(self, indices: IndexArray, values: FloatArray, shape: tuple[int, int]) -> None:
        super().__init__(shape, values.dtype)
        self.indices = indices
        self.values = values

    @property
    def code(self) -> IndexArray:
        """A positive entry at column j of a row is j, any other -1 - j; shape (C,)."""
        return signed_code(self.indices, self.values)

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


class L1Rows(RadiusSet):
    """What the l1 balls of vectors and of matrices' rows share: points as rows of n entries."""

    def __init__(
        self, shape: tuple[int, ...], radius: float, ties: str, seed: int | Sequence[int]
    ) -> None:
        super().__init__(shape, radius)
        self._ties: str = choice(ties, "ties", ("first", "random"))
        self._seed = check_seed(seed)
        self._key = np.uint64(seed_bits(self._seed) if ties == "random" else 0)

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

    def _block(self, n: int, length: int) -> Block:
        kind = "L1" if self._ties == "first" else "L1_RANDOM"
        return Block(kind, n, length, self._radius, key=self._key)

    def _rows(self, x: FloatArray) -> FloatArray:
        """Return a point as its rows, a view."""
        return x.reshape(-1, self._shape[-1])

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point inside: rows in Gaussian directions with l1 norm r/2."""
        x = rng.standard_normal(self._shape)
        rows = self._rows(x)
        rows *= 0.5 * self._radius / np.abs(rows).sum(axis=1, keepdims=True)
        return x

    def _vertex(self, direction: npt.ArrayLike) -> tuple[IndexArray, FloatArray]:
        """Return place and value of each row's entry, of the direction's dtype."""
        from fastfw.kernels import l1

        point = self._given(direction, "direction")
        g = self._rows(point)
        index, value = np.empty(len(g), np.intp), np.empty(len(g), np.float64)
        if not l1.lmo(g, self._radius, index, value):
            finite(point, "direction", OVERFLOW)  # says where it is not
        if self._ties == "random":
            l1.break_ties(g, self._radius, self._key, index, value)
        return index, value.astype(g.dtype, copy=False)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array, row by row (Duchi et al. 2008).

        O(n log n) time for the sort of n entries. Raises TypeError or ValueError if `x` is not
        finite real numbers of the set's shape.
        """
        x = self._projectable(x)
        rows = self._rows(x)
        magnitude = np.abs(rows).astype(np.float64, copy=False)
        projected = np.copysign(project_rows(magnitude, self._radius), rows)
        return projected.astype(x.dtype, copy=False).reshape(self._shape)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        return bool(np.abs(self._rows(point)).sum(axis=1).max() <= self._radius * (1.0 + tol))

    def _parameters(self) -> dict[str, Any]:
        ties = {} if self._ties == "first" else {"ties": self._ties, "seed": self._seed}
        return {**super()._parameters(), **ties}


class RowL1Ball(L1Rows):
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

    _shape: tuple[int, int]

    def __init__(
        self,
        shape: tuple[int, int],
        radius: float,
        ties: str = "first",
        seed: int | Sequence[int] = 0,
    ) -> None:
        super().__init__(pair_of(shape, "(n_classes, n_features)"), radius, ties, seed)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the set's points, (C, d)."""
        return self._shape

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, 2 r sqrt(C)."""
        return 2.0 * self._radius * math.sqrt(self._shape[0])

    def lmo(self, direction: npt.ArrayLike) -> RowVertex:
        """In each row -r sign(g) at the g of largest magnitude, see `ConvexSet.lmo`.

        The first or a random one of several; sign(0) counts as +1, so that the result is a vertex
        whatever the direction. O(C d) time, O(C) memory.
        """
        return RowVertex(*self._vertex(direction), self._shape)

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> RowVertex:
        """Return the vertex of a code."""
        indices, values = decoded(code, self._radius)
        return RowVertex(indices, values.astype(dtype), self._shape)

    def _blocks(self) -> list[Block]:
        return [self._block(*self._shape)]
