"""Feasible sets: their linear minimisation oracles, vertices, diameters and projections."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, float_dtype, positive_float, positive_int
from fastfw._checks import seed as checked_seed

__all__ = ["TIES", "RowL1Ball", "RowVertex"]

#: Names of the ways in which oracles of l1 balls choose among equal entries.
TIES = ("first", "random")

# A point inside a set that has no ``random_point`` is the mean of so many vertices.
_VERTICES = 32


def random_vertex(set: Any, rng: np.random.Generator) -> FloatArray:
    """Return the vertex of a Gaussian direction, dense."""
    return np.array(set.lmo(rng.standard_normal(tuple(set.shape))), np.float64)


def point_inside(set: Any, rng: np.random.Generator) -> FloatArray:
    """Return the set's ``random_point``, or where it has none the mean of random vertices."""
    if hasattr(set, "random_point"):
        return np.array(set.random_point(rng), np.float64)
    mean: FloatArray = np.mean([random_vertex(set, rng) for _ in range(_VERTICES)], axis=0)
    return mean


class RowVertex:
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

    __slots__ = ("indices", "shape", "values")

    ndim = 2

    def __init__(self, indices: IndexArray, values: FloatArray, shape: tuple[int, int]) -> None:
        self.indices = indices
        self.values = values
        self.shape = shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The entries' dtype."""
        return self.values.dtype

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array of shape (C, d)."""
        dense = np.zeros(self.shape, self.values.dtype)
        dense[np.arange(self.shape[0]), self.indices] = self.values
        return dense

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a vertex is sparse: it becomes a dense array only by a copy")
        return np.asarray(self.toarray(), dtype=dtype)

    def __sub__(self, other: object) -> Any:
        return np.subtract(self.toarray(), other)  # type: ignore[call-overload]

    def __mul__(self, other: object) -> Any:
        return np.multiply(self.toarray(), other)  # type: ignore[call-overload]

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"RowVertex(indices={self.indices}, values={self.values}, shape={self.shape})"


class RowL1Ball:
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
        try:
            n_rows, n_columns = shape
        except (TypeError, ValueError):
            raise ValueError(
                f"shape must be a pair (n_classes, n_features), but it is {shape!r}"
            ) from None
        self._shape = (positive_int(n_rows, "shape[0]"), positive_int(n_columns, "shape[1]"))
        self._radius = positive_float(radius, "radius")
        least = float(np.finfo(np.float64).tiny)
        if self._radius < least:
            raise ValueError(
                f"radius must be at least {least:.3g}, below which numbers lose their digits, but "
                f"it is {self._radius:.3g}; multiply the radius by a factor and divide X by it"
            )
        if ties not in TIES:
            raise ValueError(f"ties must be one of {TIES}, but it is {ties!r}")
        self._ties = ties
        self._seed = checked_seed(seed)
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

    def start(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Return the point where learners start: zeros, the paper's choice."""
        return np.zeros(self._shape, float_dtype(dtype))

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
        ValueError
            If the direction has another shape or is not finite.

        Notes
        -----
        O(C d) time, O(C) memory.
        """
        g = self._point(direction, "direction")
        from fastfw.kernels import l1

        index = np.empty(self._shape[0], np.intp)
        value = np.empty(self._shape[0], np.float64)
        if not l1.lmo(g, self._radius, index, value):
            c, j = np.argwhere(~np.isfinite(g))[0]
            raise ValueError(
                f"direction[{c}, {j}] is {g[c, j]}; a direction must be finite: "
                "look for the overflow or NaN where it was computed"
            )
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
        x = self._point(x, "x")
        if not np.isfinite(x).all():
            c, j = np.argwhere(~np.isfinite(x))[0]
            raise ValueError(f"x[{c}, {j}] is {x[c, j]}; only finite points have a projection")
        magnitude = np.abs(x)
        with np.errstate(over="ignore"):  # an infinite norm is outside, too
            outside = magnitude.sum(axis=1) > self._radius
        projected = np.array(x)
        if outside.any():
            a = magnitude[outside]
            top = a.max(axis=1, keepdims=True)
            # Where an entry exceeds r, seen from r below the largest: what is lower vanishes, and
            # what is left lies in [0, r], so that numbers of any size lose nothing in the sums.
            a = np.where(top > self._radius, np.maximum(self._radius - (top - a), 0.0), a)
            # the threshold that soft-thresholds each row to norm r
            ordered = -np.sort(-a, axis=1)
            sums = np.cumsum(ordered, axis=1) - self._radius
            counts = np.arange(1, self._shape[1] + 1)
            support = (ordered * counts > sums).sum(axis=1)
            threshold = sums[np.arange(len(a)), support - 1] / support
            shrunk = np.maximum(a - threshold[:, np.newaxis], 0.0)
            projected[outside] = np.copysign(shrunk, x[outside])
        return projected

    def contains(self, x: npt.ArrayLike, tol: float = 1e-9) -> bool:
        """Tell whether every row's l1 norm is at most r (1 + tol)."""
        point = np.asarray(x, dtype=np.float64)
        if point.shape != self._shape:
            return False
        with np.errstate(over="ignore"):
            norms = np.abs(point).sum(axis=1)
        return bool((norms <= self._radius * (1.0 + tol)).all())

    def _point(self, x: npt.ArrayLike, name: str) -> FloatArray:
        array = np.asarray(x)
        if array.shape != self._shape:
            raise ValueError(f"{name} must have shape {self._shape}, but it has {array.shape}")
        dtype = np.float32 if array.dtype == np.float32 else np.float64
        return np.require(array, dtype, ["C", "A", "W"])

    def __repr__(self) -> str:
        ties = "" if self._ties == "first" else f", ties={self._ties!r}, seed={self._seed}"
        return f"RowL1Ball(shape={self._shape}, radius={self._radius}{ties})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RowL1Ball):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        seed = self._seed if self._ties == "random" else None
        return self._shape, self._radius, self._ties, seed
