"""Vertices that stay structured: a few numbers that stand for a whole point."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray


class Vertex(ABC):
    """A vertex of a set: a read-only array wherever NumPy takes one, held in few numbers.

    ``np.asarray(v)``, ``x + eta * (v - x)`` and ``0.5 * v`` make dense arrays of it; `dot`,
    `add_to` and `step` do not, and are what learners use.

    Subclass it for a set of your own: give `toarray`, `dot` and `add_to`; also `code`, and the set
    a ``decode``, if `OAW` is to keep its active vertices in few numbers.

    Attributes
    ----------
    shape : tuple of int
        Of the set's points.
    dtype : dtype
        Of the dense array, float64 or float32.
    """

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> None:
        self.shape = shape
        self.dtype = np.dtype(dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def code(self) -> npt.NDArray[Any]:
        """The vertex as a one-dimensional array, of the same dtype and length for all of the set.

        ``decode(code, dtype)`` of the set is its inverse. Here all entries; a subclass may do with
        fewer numbers.
        """
        return code_of(self, np.float64)

    @abstractmethod
    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array."""

    @abstractmethod
    def dot(self, direction: npt.ArrayLike) -> float:
        """Return ⟨direction, v⟩, summed in float64, for a direction of the vertex's shape."""

    @abstractmethod
    def add_to(self, x: FloatArray, scale: float) -> None:
        """Add scale times the vertex to `x`, in place."""

    def step(self, x: FloatArray, eta: float) -> FloatArray:
        """Return (1 - eta) x + eta v, a new array of x's dtype; `x` is not changed."""
        moved = np.zeros_like(x) if eta == 1.0 else x * x.dtype.type(1.0 - eta)
        self.add_to(moved, eta)
        return moved

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("a vertex is structured: it becomes a dense array only by a copy")
        return np.asarray(self.toarray(), dtype=dtype)

    def __sub__(self, other: object) -> Any:
        return np.subtract(self.toarray(), other)  # type: ignore[call-overload]

    def __mul__(self, other: object) -> Any:
        return np.multiply(self.toarray(), other)  # type: ignore[call-overload]

    __rmul__ = __mul__


def code_of(vertex: Any, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return all entries of a vertex, flat, without negative zeros: equal vertices, equal bytes."""
    entries: npt.NDArray[Any] = np.asarray(vertex, dtype).reshape(-1) + 0.0
    return entries


def signed_code(places: npt.NDArray[np.intp], values: FloatArray) -> npt.NDArray[np.intp]:
    """Return places and signs of entries of one size: j for a positive one, -1 - j for others."""
    return np.where(values > 0.0, places, ~places)


def decoded(
    code: npt.NDArray[Any], size: float | npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
    """Return the places and values that `signed_code` stands for."""
    return np.where(code >= 0, code, ~code), np.where(code >= 0, size, -size)


class EntriesVertex(Vertex):
    """A vertex with few nonzero entries, kept by their places in the flattened point.

    Attributes
    ----------
    indices : ndarray of int, shape (k,)
        Places, in C order.
    values : ndarray, shape (k,)
        The entries there.
    """

    __slots__ = ("indices", "values")

    def __init__(
        self,
        indices: npt.ArrayLike,
        values: npt.ArrayLike,
        shape: tuple[int, ...],
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        super().__init__(shape, dtype)
        self.indices = np.asarray(indices, np.intp)
        self.values = np.asarray(values, self.dtype)

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array. O(n)."""
        dense = np.zeros(self.shape, self.dtype)
        dense.reshape(-1)[self.indices] = self.values
        return dense

    def dot(self, direction: npt.ArrayLike) -> float:
        """Return ⟨direction, v⟩, summed in float64. O(k)."""
        picked = np.take(direction, self.indices)
        return float(np.dot(np.asarray(picked, np.float64), self.values.astype(np.float64)))

    def add_to(self, x: FloatArray, scale: float) -> None:
        """Add scale times the vertex to `x`, in place. O(k)."""
        x.flat[self.indices] += x.dtype.type(scale) * self.values.astype(x.dtype, copy=False)

    def __repr__(self) -> str:
        kind, shape = type(self).__name__, self.shape
        return f"{kind}(indices={self.indices}, values={self.values}, shape={shape})"


class DenseVertex(Vertex):
    """A vertex with no structure, such as those of a Euclidean ball: all of its entries.

    Attributes
    ----------
    values : ndarray
        The entries, read-only.
    """

    __slots__ = ("values",)

    def __init__(self, values: FloatArray) -> None:
        super().__init__(values.shape, values.dtype)
        self.values = values
        values.flags.writeable = False

    def toarray(self) -> FloatArray:
        """Return the vertex as a new array."""
        return self.values.copy()

    def dot(self, direction: npt.ArrayLike) -> float:
        """Return ⟨direction, v⟩, summed in float64. O(n)."""
        return float(np.vdot(np.asarray(direction, np.float64), self.values.astype(np.float64)))

    def add_to(self, x: FloatArray, scale: float) -> None:
        """Add scale times the vertex to `x`, in place. O(n)."""
        x += x.dtype.type(scale) * self.values.astype(x.dtype, copy=False)

    def __repr__(self) -> str:
        return f"DenseVertex({np.array2string(self.values, threshold=8, edgeitems=2)})"


def encode(set: Any, v: Vertex | npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the code of a set's vertex, equal bytes for equal ones: short if it can decode."""
    if isinstance(v, Vertex) and hasattr(set, "decode"):
        return v.code
    return code_of(v, dtype)


def decode(set: Any, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> Vertex:
    """Return a set's vertex of a code, which are all entries where the set cannot decode."""
    if hasattr(set, "decode"):
        found: Vertex = set.decode(code, dtype)
        return found
    return DenseVertex(code.astype(dtype).reshape(tuple(set.shape)))
