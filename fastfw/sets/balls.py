"""Balls of the infinity norm, the Euclidean norm, and sums of Euclidean norms over groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, as_array
from fastfw.sets._convex import RadiusSet, norm, normalise, shape_of
from fastfw.sets._projections import project_simplex
from fastfw.sets._vertex import DenseVertex, EntriesVertex, Vertex

__all__ = ["GroupL1Ball", "GroupVertex", "L2Ball", "LInfBall", "SignVertex"]


class _Ball(RadiusSet):
    """A norm's ball around zero, for points of any shape."""

    def __init__(self, shape: int | Sequence[int], radius: float) -> None:
        super().__init__(shape_of(shape), radius)


class SignVertex(Vertex):
    """A corner of a box: every entry plus or minus the radius; one byte an entry.

    Attributes
    ----------
    signs : ndarray of int8
        +1 or -1, of the vertex's shape.
    radius : float
        r.
    """

    __slots__ = ("radius", "signs")

    def __init__(self, signs: npt.NDArray[np.int8], radius: float, dtype: npt.DTypeLike) -> None:
        super().__init__(signs.shape, dtype)
        self.signs = signs
        self.radius = radius

    @property
    def code(self) -> npt.NDArray[np.int8]:
        """The signs, flat."""
        return self.signs.reshape(-1)

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array."""
        return np.asarray(self.signs * self.radius, self.dtype)

    def dot(self, direction: npt.ArrayLike) -> float:
        """Return ⟨direction, v⟩, summed in float64. O(n)."""
        signs = self.signs.astype(np.float64)
        return self.radius * float(np.vdot(np.asarray(direction, np.float64), signs))

    def add_to(self, x: FloatArray, scale: float) -> None:
        """Add scale times the vertex to `x`, in place. O(n)."""
        x += self.signs * x.dtype.type(scale * self.radius)

    def __repr__(self) -> str:
        signs = np.array2string(self.signs, threshold=8, edgeitems=2)
        return f"SignVertex(signs={signs}, radius={self.radius})"


class LInfBall(_Ball):
    r"""Points whose every entry is at most r in magnitude: a box.

    .. math:: \{x : |x_j| \le r \text{ for all } j\}

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points, n entries in all.
    radius : float
        r > 0.

    Examples
    --------
    >>> import fastfw as fw
    >>> box = fw.LInfBall(3, radius=2.0)
    >>> box.lmo([1.0, -0.5, 0.0]).toarray()
    array([-2.,  2., -2.])
    >>> box.project([5.0, 1.0, -3.0])
    array([ 2.,  1., -2.])
    """

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, 2 r √n."""
        return 2.0 * self._radius * math.sqrt(math.prod(self._shape))

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point, evenly distributed."""
        return rng.uniform(-self._radius, self._radius, self._shape)

    def lmo(self, direction: npt.ArrayLike) -> SignVertex:
        """-r sign(g) everywhere, where sign(0) is +1; see `ConvexSet.lmo`. O(n)."""
        g = self._direction(direction)
        return SignVertex(np.where(g >= 0.0, np.int8(-1), np.int8(1)), self._radius, g.dtype)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array: every entry clipped. O(n)."""
        return np.clip(self._projectable(x), -self._radius, self._radius)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        return bool(np.abs(point).max() <= self._radius * (1.0 + tol))

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> SignVertex:
        """Return the vertex of a code."""
        return SignVertex(code.reshape(self._shape), self._radius, dtype)


class L2Ball(_Ball):
    r"""Points of Euclidean norm at most r; for matrices the Frobenius norm.

    .. math:: \{x : \|x\|_2 \le r\}

    Parameters
    ----------
    shape : int or tuple of int
        Shape of the points.
    radius : float
        r > 0.

    Examples
    --------
    >>> import fastfw as fw
    >>> ball = fw.L2Ball(2, radius=5.0)
    >>> ball.lmo([3.0, -4.0]).toarray()
    array([-3.,  4.])
    >>> ball.project([6.0, 8.0])
    array([3., 4.])
    """

    @property
    def strong_convexity(self) -> float:
        """1/r: balls of radius γ (1 - γ) ‖x - y‖²/(2 r) about γ x + (1 - γ) y lie in the set."""
        return 1.0 / self._radius

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point inside: a Gaussian direction with norm r/2."""
        x = rng.standard_normal(self._shape)
        return x * (0.5 * self._radius / float(np.linalg.norm(x)))

    def lmo(self, direction: npt.ArrayLike) -> DenseVertex:
        """-r g / ‖g‖; for zero, -r in the first entry; see `ConvexSet.lmo`. O(n)."""
        g = self._direction(direction)
        return DenseVertex(_opposite(g, self._radius).astype(g.dtype))

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array: r x / ‖x‖ where x is outside. O(n)."""
        point = self._projectable(x)
        size = norm(point)
        if size <= self._radius:
            return point.copy()
        return (-_opposite(point, self._radius)).astype(point.dtype)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        return norm(point) <= self._radius * (1.0 + tol)


class GroupVertex(EntriesVertex):
    """A vertex of `GroupL1Ball`: the entries of one group.

    Attributes
    ----------
    group : int
        Number of the group.
    indices : ndarray of int, shape (k,)
        Places of its entries, increasing, in C order.
    values : ndarray, shape (k,)
        The entries there, of Euclidean norm r.
    """

    __slots__ = ("_width", "group")

    def __init__(
        self,
        group: int,
        indices: IndexArray,
        values: FloatArray,
        shape: tuple[int, ...],
        width: int,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        super().__init__(indices, values, shape, dtype)
        self.group = group
        self._width = width

    @property
    def code(self) -> npt.NDArray[np.float64]:
        """The group's number and its entries, with zeros up to the size of the largest group."""
        padded = np.zeros(1 + self._width)
        padded[0] = self.group
        padded[1 : 1 + self.values.size] = self.values
        return padded


class GroupL1Ball(RadiusSet):
    r"""Points whose groups of entries have Euclidean norms that sum to at most r.

    .. math:: \{x : \sum_G \|x_G\|_2 \le r\}

    Solutions have few groups that are not zero: with a feature's weights for all classes as a
    group, features are used by all classes or by none.

    Parameters
    ----------
    groups : array_like
        Group of every entry, in the shape of the points: numbers or names.
    radius : float
        r > 0.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> ball = fw.GroupL1Ball([0, 0, 1], radius=5.0)
    >>> ball.lmo([3.0, 4.0, 1.0]).toarray()
    array([-3., -4.,  0.])
    >>> columns = np.broadcast_to(np.arange(4), (2, 4))   # weights (2 classes, 4 features)
    >>> fw.GroupL1Ball(columns, radius=1.0).n_groups
    4
    """

    def __init__(self, groups: npt.ArrayLike, radius: float) -> None:
        given = as_array(groups, "groups")
        if given.size == 0 or given.ndim == 0:
            raise ValueError(
                "groups must name the group of every entry, in the points' shape, but it has shape "
                f"{given.shape}"
            )
        if given.dtype.kind == "O":
            raise TypeError("groups must hold numbers or strings, all of one kind")
        if given.dtype.kind == "f" and not np.isfinite(given).all():
            raise ValueError("groups holds NaN or infinity; give every entry the number of a group")
        super().__init__(given.shape, radius)
        names, numbers = np.unique(given, return_inverse=True)
        self._number: IndexArray = numbers.reshape(-1).astype(np.intp)
        self._n_groups = len(names)
        # entries group by group, in C order within each
        self._order = np.argsort(self._number, kind="stable")
        self._first = np.searchsorted(self._number[self._order], np.arange(self._n_groups + 1))

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return self._n_groups

    @property
    def groups(self) -> IndexArray:
        """Number of the group of every entry, in the points' shape; groups in the names' order."""
        return self._number.reshape(self._shape)

    def lmo(self, direction: npt.ArrayLike) -> GroupVertex:
        """-r g_G / ‖g_G‖ on the group G of largest norm, see `ConvexSet.lmo`. O(n) time.

        The first of several; for zero, -r in the first entry of the first group.
        """
        g = self._direction(direction)
        group = int(np.argmax(self._norms(g)[0]))
        places = self._places(group)
        return self._vertex(group, _opposite(g.reshape(-1)[places], self._radius), g.dtype)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array: the groups' norms soft-thresholded.

        O(n log n) time.
        """
        point = self._projectable(x)
        norms, unit = self._norms(point)
        radius = self._radius / unit
        if float(norms.sum()) <= radius:
            return point.copy()
        wanted = project_simplex(norms, radius)
        factors = np.divide(wanted, norms, out=np.zeros_like(norms), where=norms > 0.0)
        return np.asarray(point * factors[self._number].reshape(self._shape), point.dtype)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        norms, unit = self._norms(point)
        return bool(norms.sum() <= self._radius * (1.0 + tol) / unit)

    def _norms(self, x: FloatArray) -> tuple[npt.NDArray[np.float64], float]:
        """Norms of the groups, divided by a power of two near the largest entry, and that."""
        small, unit = normalise(x)
        squares = np.square(small.reshape(-1)[self._order])
        return np.sqrt(np.add.reduceat(squares, self._first[:-1])), unit

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> GroupVertex:
        """Return the vertex of a code."""
        group = int(code[0])
        return self._vertex(group, code[1 : 1 + self._places(group).size], dtype)

    def _places(self, group: int) -> IndexArray:
        return self._order[self._first[group] : self._first[group + 1]]

    def _vertex(self, group: int, values: FloatArray, dtype: npt.DTypeLike) -> GroupVertex:
        width = int(np.diff(self._first).max())
        return GroupVertex(group, self._places(group), values, self._shape, width, dtype)

    def _parameters(self) -> dict[str, Any]:
        return {"groups": _nested(self.groups), "radius": self._radius}

    def __repr__(self) -> str:
        return f"<GroupL1Ball: shape {self._shape}, {self._n_groups} groups, radius {self._radius}>"


def _nested(a: npt.NDArray[Any]) -> Any:
    """Return an array as nested tuples, which can be compared and hashed."""
    return tuple(map(_nested, a)) if a.ndim else a.item()


def _opposite(g: FloatArray, radius: float) -> npt.NDArray[np.float64]:
    """-radius g / ‖g‖ in float64; -radius in the first entry for zero."""
    small, _ = normalise(g)
    if not small.any():
        small.reshape(-1)[0] = 1.0
    v = small * (-radius / float(np.linalg.norm(small)))
    return v + 0.0
