"""The k-sparse polytope: the convex hull of vectors with k entries of one size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, positive_int
from fastfw.sets._base import ConvexSet, radius_of, shape_of
from fastfw.sets._vertex import EntriesVertex

__all__ = ["KSparsePolytope", "KSparseVertex"]


class KSparseVertex(EntriesVertex):
    """A vertex of `KSparsePolytope`: k entries, each plus or minus the radius.

    Attributes
    ----------
    indices : ndarray of int, shape (k,)
        Places, increasing, in C order.
    values : ndarray, shape (k,)
        The entries there.
    """

    __slots__ = ()

    @property
    def code(self) -> npt.NDArray[np.intp]:
        """+r at place j is j, -r is -1 - j; shape (k,)."""
        return np.where(self.values > 0.0, self.indices, ~self.indices)


class KSparsePolytope(ConvexSet):
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

    Raises
    ------
    TypeError, ValueError
        If an argument is not such a number.

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
        self._shape = shape_of(shape)
        self._k = positive_int(k, "k")
        n = math.prod(self._shape)
        if self._k > n:
            raise ValueError(f"k must be at most the number of entries, {n}, but it is {k}")
        self._radius = radius_of(radius)

    @property
    def k(self) -> int:
        """Number of nonzero entries of a vertex."""
        return self._k

    @property
    def radius(self) -> float:
        """Magnitude of a vertex' entries, r."""
        return self._radius

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, 2 r √k."""
        return 2.0 * self._radius * math.sqrt(self._k)

    def lmo(self, direction: npt.ArrayLike) -> KSparseVertex:
        """Linear minimisation oracle: -r sign(g) at the k entries of largest magnitude.

        Of equal magnitudes the first are taken; sign(0) counts as +1.

        Parameters
        ----------
        direction : array_like, shape of the set
            Any finite direction; float32 stays float32.

        Returns
        -------
        KSparseVertex
            The k places and values.

        Raises
        ------
        TypeError, ValueError
            If it is not such an array.

        Notes
        -----
        O(n + k log k) time.
        """
        g = self._direction(direction)
        flat = g.reshape(-1)
        magnitude = np.abs(flat)
        n, k = flat.size, self._k
        if k == n:
            places = np.arange(n)
        else:
            least = np.partition(magnitude, n - k)[n - k]  # the k-th largest
            above = np.flatnonzero(magnitude > least)
            level = np.flatnonzero(magnitude == least)[: k - above.size]
            places = np.sort(np.concatenate([above, level]))
        values = np.where(flat[places] >= 0.0, -self._radius, self._radius)
        return KSparseVertex(places, values, self._shape, g.dtype)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set: magnitudes lowered by one threshold, then clipped.

        The threshold theta >= 0 is the least with sum_j min(max(|x_j| - theta, 0), r) <= k r.

        Parameters
        ----------
        x : array_like, shape of the set
            Finite numbers; not changed.

        Returns
        -------
        ndarray
            A new array.

        Raises
        ------
        TypeError, ValueError
            If it is not such an array.

        Notes
        -----
        O(n log n) time: the sum is linear between the 2 n numbers |x_j| and |x_j| - r.
        """
        point = self._projectable(x)
        a = np.abs(point.reshape(-1)).astype(np.float64)
        r, budget = self._radius, self._k * self._radius
        if np.minimum(a, r).sum() > budget:
            # theta lies in [p - r, p] for the (k + 1)-th largest number p: seen from there, numbers
            # beyond [-r, r] are out or full, and numbers of any size lose nothing in the sums.
            pivot = np.partition(a, a.size - self._k - 1)[a.size - self._k - 1]
            a = np.clip(a - pivot, -r, r)
            a = np.maximum(a - self._threshold(a), 0.0)
        a = np.minimum(a, r)
        return np.copysign(a.reshape(self._shape), point).astype(point.dtype)

    def contains(self, x: npt.ArrayLike, tol: float = 1e-9) -> bool:
        """Tell whether entries are at most r (1 + tol) and their sum at most k r (1 + tol)."""
        point = self._candidate(x)
        if point is None:
            return False
        a, r = np.abs(point), self._radius * (1.0 + tol)
        with np.errstate(over="ignore"):
            return bool(a.max() <= r and a.sum() <= self._k * r)

    def _threshold(self, a: npt.NDArray[np.float64]) -> float:
        """Return theta in [-r, 0] with sum_j min(max(a_j - theta, 0), r) = k r."""
        r, budget = self._radius, self._k * self._radius
        filled = np.clip(a - r, -r, 0.0)  # below this threshold an entry is full
        breaks = np.unique(np.concatenate([np.minimum(a, 0.0), filled, [-r, 0.0]]))
        low, high = 1, breaks.size - 1  # the sum is within the budget at breaks[high]
        while low < high:
            middle = (low + high) // 2
            if np.minimum(np.maximum(a - breaks[middle], 0.0), r).sum() > budget:
                low = middle + 1
            else:
                high = middle
        # Between breaks[low - 1] and breaks[low] the same entries lie inside (0, r).
        left, right = breaks[low - 1], breaks[low]
        inside = (a > left) & (filled <= left)
        rest = budget - np.count_nonzero(filled >= right) * r - (a[inside] - right).sum()
        return float(right - max(rest, 0.0) / max(np.count_nonzero(inside), 1))

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> KSparseVertex:
        """Return the vertex of a code."""
        values = np.where(code >= 0, self._radius, -self._radius)
        return KSparseVertex(np.where(code >= 0, code, ~code), values, self._shape, dtype)

    def _parameters(self) -> dict[str, Any]:
        return {"shape": self._shape, "k": self._k, "radius": self._radius}
