"""K-sparse polytopes: hulls of points with k entries of one size, as a whole or in each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, positive_int
from fastfw.sets._compiled import Block
from fastfw.sets._convex import RadiusSet, pair_of, shape_of
from fastfw.sets._vertex import EntriesVertex, decoded, signed_code

__all__ = ["KSparsePolytope", "KSparseVertex", "RowKSparsePolytope"]


class KSparseVertex(EntriesVertex):
    """A vertex of a k-sparse polytope: k entries (in each row), each plus or minus one magnitude.

    Attributes
    ----------
    indices : ndarray of int, shape (k,), or (C k,) for C rows
        Places, increasing, in C order.
    values : ndarray, of the same shape
        The entries there.
    """

    __slots__ = ()

    @property
    def code(self) -> npt.NDArray[np.intp]:
        """A positive entry at place j is j, a negative one -1 - j; of the indices' shape."""
        return signed_code(self.indices, self.values)


class _KSparse(RadiusSet):
    """What both polytopes share: points as rows of n entries, each row in one polytope."""

    _k: int

    @property
    def k(self) -> int:
        """Number of nonzero entries of a vertex, of each row where there are rows."""
        return self._k

    @property
    def _entry(self) -> float:
        """Magnitude of a vertex' entries, r: entries of a point reach r, their sum k r."""
        return self._radius

    def _rows(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return a point as its rows."""
        return x.reshape(1, -1)

    def lmo(self, direction: npt.ArrayLike) -> KSparseVertex:
        """-r sign(g) at the k entries of largest magnitude (of a row), see `ConvexSet.lmo`.

        Of equal magnitudes the first are taken; sign(0) counts as +1. r is the magnitude of a
        vertex' entries. O(n + k log k) time for n entries.
        """
        g = self._direction(direction)
        rows = self._rows(g)
        n = rows.shape[1]
        found = [c * n + _largest(np.abs(row), self._k) for c, row in enumerate(rows)]
        places = np.concatenate(found)
        values = np.where(g.reshape(-1)[places] >= 0.0, -self._entry, self._entry)
        return KSparseVertex(places, values, self._shape, g.dtype)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array: magnitudes lowered, then clipped.

        The threshold theta >= 0 (of a row) that lowers them is the least with
        ``sum_j min(max(|x_j| - theta, 0), r) <= k r``. O(n log n) time: the sum is linear between
        the 2 n numbers ``|x_j|`` and ``|x_j| - r``. Raises TypeError or ValueError if `x` is not
        finite real numbers of the set's shape.
        """
        point = self._projectable(x)
        magnitudes = np.abs(self._rows(point)).astype(np.float64)
        lowered = np.array([_lowered(row, self._k, self._entry) for row in magnitudes])
        projected: FloatArray = np.copysign(lowered.reshape(self._shape), point)
        return projected.astype(point.dtype)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        a, r = np.abs(self._rows(point)), self._entry * (1.0 + tol)
        return bool(a.max() <= r and a.sum(axis=1).max() <= self._k * r)

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> KSparseVertex:
        """Return the vertex of a code."""
        return KSparseVertex(*decoded(code, self._entry), self._shape, dtype)

    def _parameters(self) -> dict[str, Any]:
        return {"shape": self._shape, "k": self._k, "radius": self._radius}


class KSparsePolytope(_KSparse):
    r"""Convex hull of the vectors with k nonzero entries, each r or -r.

    .. math:: \{x : |x_j| \le r \text{ for all } j, \ \sum_j |x_j| \le k r\}

    Between the l1 ball (k = 1) and the box (k = n).

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points, n entries in all.
    k : int
        Number of nonzero entries of a vertex, at most n.
    radius : float
        r > 0.

    Examples
    --------
    >>> import fastfw as fw
    >>> P = fw.KSparsePolytope(4, k=2, radius=3.0)
    >>> P.lmo([1.0, -5.0, 2.0, 0.0]).toarray()
    array([ 0.,  3., -3.,  0.])
    >>> P.project([9.0, 4.0, 4.0, 0.0])
    array([3. , 1.5, 1.5, 0. ])
    """

    def __init__(self, shape: int | Sequence[int], k: int, radius: float = 1.0) -> None:
        super().__init__(shape_of(shape), radius)
        self._k = _entries(k, math.prod(self._shape), "entries")

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, 2 r √k."""
        return 2.0 * self._radius * math.sqrt(self._k)

    def _blocks(self) -> list[Block]:
        return [Block("SPARSE_ENTRIES", 1, math.prod(self._shape), self._radius, self._k)]


class RowKSparsePolytope(_KSparse):
    r"""Matrices whose every row is in the hull of vectors with k nonzero entries of size r / k.

    .. math::

        \{W \in R^{C \times d} : \sum_j |W_{cj}| \le r, \ |W_{cj}| \le r / k \text{ for all } c, j\}

    `RowL1Ball` is the case k = 1. A step of a Frank-Wolfe method moves towards one vertex, and so
    brings in up to k new features of a class: a larger k learns faster, and less sparse weights.

    Parameters
    ----------
    shape : tuple of int
        (C, d).
    k : int
        Number of nonzero entries of each row of a vertex, at most d.
    radius : float
        Bound on the l1 norm of every row, r > 0.

    Examples
    --------
    >>> import fastfw as fw
    >>> P = fw.RowKSparsePolytope((2, 3), k=2, radius=8.0)
    >>> P.lmo([[1.0, -5.0, 2.0], [0.0, 0.0, 0.0]]).toarray()
    array([[ 0.,  4., -4.],
           [-4., -4.,  0.]])
    >>> P.diameter
    16.0
    """

    _shape: tuple[int, int]

    def __init__(self, shape: tuple[int, int], k: int, radius: float) -> None:
        super().__init__(pair_of(shape, "(n_classes, n_features)"), radius)
        self._k = _entries(k, self._shape[1], "columns")

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, 2 r √(C / k)."""
        return 2.0 * self._radius * math.sqrt(self._shape[0] / self._k)

    @property
    def _entry(self) -> float:
        return self._radius / self._k

    def _rows(self, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return x

    def _blocks(self) -> list[Block]:
        return [Block("SPARSE_ENTRIES", *self._shape, self._entry, self._k)]


def _entries(k: int, most: int, what: str) -> int:
    """Return k, checked."""
    k = positive_int(k, "k")
    if k > most:
        raise ValueError(f"k must be at most the number of {what}, {most}, but it is {k}")
    return k


def _largest(a: FloatArray, k: int) -> IndexArray:
    """Return the places of the k largest entries, increasing; of equal ones the first."""
    n = a.size
    if k == n:
        return np.arange(n)
    if k == 1:
        return np.array([a.argmax()])
    least = np.partition(a, n - k)[n - k]  # the k-th largest
    above = np.flatnonzero(a > least)
    level = np.flatnonzero(a == least)[: k - above.size]
    return np.sort(np.concatenate([above, level]))


def _lowered(a: npt.NDArray[np.float64], k: int, r: float) -> npt.NDArray[np.float64]:
    """Return min(max(a - theta, 0), r) with the least theta >= 0 for a sum of at most k r."""
    if np.minimum(a, r).sum() > k * r:
        # theta lies in [p - r, p] for the (k + 1)-th largest number p: seen from there, numbers
        # beyond [-r, r] are out or full, and numbers of any size lose nothing in the sums.
        pivot = np.partition(a, a.size - k - 1)[a.size - k - 1]
        a = np.clip(a - pivot, -r, r)
        a = np.maximum(a - _threshold(a, k, r), 0.0)
    return np.minimum(a, r)


def _threshold(a: npt.NDArray[np.float64], k: int, r: float) -> float:
    """Return theta in [-r, 0] with sum_j min(max(a_j - theta, 0), r) = k r."""
    filled = np.clip(a - r, -r, 0.0)  # below this threshold an entry is full
    breaks = np.unique(np.concatenate([np.minimum(a, 0.0), filled, [-r, 0.0]]))
    low, high = 1, breaks.size - 1  # the sum is within the budget at breaks[high]
    while low < high:
        middle = (low + high) // 2
        if np.minimum(np.maximum(a - breaks[middle], 0.0), r).sum() > k * r:
            low = middle + 1
        else:
            high = middle
    # Between breaks[low - 1] and breaks[low] the same entries lie inside (0, r).
    left, right = breaks[low - 1], breaks[low]
    inside = (a > left) & (filled <= left)
    rest = k * r - np.count_nonzero(filled >= right) * r - (a[inside] - right).sum()
    return float(right - max(rest, 0.0) / max(np.count_nonzero(inside), 1))
