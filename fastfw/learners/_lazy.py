"""What compiled engines with a lazily scaled iterate have in common."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw._layout import copied, remainder_of, scaled

__all__ = ["Arrays", "LazyEngine", "Point"]

Arrays = dict[str, npt.NDArray[Any]]
Self = TypeVar("Self", bound="LazyEngine")


class Point(NamedTuple):
    """A point of the problem's space as the entries that may be other than zero."""

    shape: tuple[int, ...]
    first_layer: tuple[int, int]
    columns: Any
    """Which columns of the first layer the entries are in; all where it is a slice."""
    entries: FloatArray
    """Those columns, (rows, columns)."""
    tail: FloatArray

    def over(self, n: int, dtype: np.dtype[Any]) -> Point:
        """Return the point divided by a number, in a dtype."""
        entries, tail = ((part / n).astype(dtype) for part in (self.entries, self.tail))
        return self._replace(entries=entries, tail=tail)

    def whole(self) -> FloatArray:
        """Return it as an array; zeros that are nobody's take no memory."""
        W = self.entries
        if not isinstance(self.columns, slice):
            W = np.zeros(self.first_layer, W.dtype)
            W[:, self.columns] = self.entries
        if not self.tail.size:
            return np.ascontiguousarray(W)
        return np.concatenate([W.reshape(-1), self.tail], dtype=W.dtype).reshape(self.shape)


class LazyEngine:
    """The iterate s (u + low) and the sum w (u + low) + sum of those played, see ``kernels.l1``.

    u is the first layer, stored (rows, features), or (features, rows) while features are sparse;
    what `arrays` returns is stored as the former. ``scalars`` begins with s and w. `tails` has the
    other parameters in one row and the sum of those played in another, see ``kernels.models``.
    """

    #: Attributes that hold matrices of the first layer, and all others that are copied.
    _matrices: ClassVar[tuple[str, ...]] = ("u", "low", "sum")
    _others: ClassVar[tuple[str, ...]] = ("tails", "scalars", "in_use", "known")
    #: The row of the tails that is their sum.
    _tail_sum: ClassVar[int] = 1

    def __init__(
        self, first_layer: tuple[int, int], start: FloatArray, u: FloatArray,
        scalars: tuple[float, ...], n_tails: int,
    ) -> None:  # fmt: skip
        rows, self._d = first_layer
        tail = start.reshape(-1)[rows * self._d :]
        self._shape, self._n_rows, self._width = start.shape, rows, u.shape[1]
        self.sparse = False
        self.u, self.low, self.sum = u, remainder_of(u), np.zeros(u.shape)
        self.tails = np.zeros((n_tails, tail.size))
        self.tails[0] = tail
        self.scalars = np.array(scalars)
        self._find_support()

    # ------------------------------------------------------------------ layouts

    def suited(self: Self, sparse: bool) -> Self:
        """Return an engine in the same state for features of this kind, itself if it is one."""
        if self._suits(sparse):
            return self
        other = self.copy()
        other.lay(sparse)
        return other

    def _suits(self, sparse: bool) -> bool:
        return sparse == self.sparse

    def lay(self, sparse: bool) -> None:
        """Store the first layer for features of this kind."""
        parts = {name: self._by_rows(getattr(self, name)) for name in self._matrices}
        self.sparse = sparse
        for name, part in parts.items():
            setattr(self, name, self._stored(part))
        self._find_support()

    def _find_support(self) -> None:
        """List the rows of u as it is stored that may be other than zero, see ``kernels.l1``."""
        self.known = np.ones(len(self.u), np.bool_)
        if self.sparse:
            parts = [getattr(self, name) for name in self._matrices]
            self.known = np.logical_or.reduce([a.any(axis=1) for a in parts if a.size])
        rows = np.flatnonzero(self.known)
        self.in_use = np.zeros(len(self.u) + 1, np.intp)
        self.in_use[0] = rows.size
        self.in_use[1 : 1 + rows.size] = rows

    def _by_rows(self, a: FloatArray) -> FloatArray:
        """Return the (rows, d) of an array of the state, a view."""
        return a.T if self.sparse else a[:, : self._d]

    def _stored(self, a: FloatArray) -> FloatArray:
        """Return (rows, d) as kernels take it, a copy."""
        return copied(a.T) if self.sparse else self._wide(a)

    def _wide(self, a: FloatArray) -> FloatArray:
        """Return (rows, d) with the rows of u, which may be longer than d."""
        wide = np.zeros((len(a), self._width), a.dtype)
        if a.any():
            wide[:, : a.shape[1]] = a
        return wide

    def _as_saved(self, names: tuple[str, ...]) -> Arrays:
        """Return matrices of the state as rows of u."""
        found = {name: getattr(self, name) for name in names}
        return {name: self._wide(a.T) if self.sparse else a for name, a in found.items()}

    # ------------------------------------------------------------------ what there is

    def point(self) -> Point:
        """Return x_t."""
        rows = self.support()
        u, low = self.u[rows], self.low[rows] if self.low.size else self.low
        return self._point(scaled(u, low, self.scalars[0], u.dtype), rows, self.tails[0])

    def sum_of_points(self) -> Point:
        """Return the sum of the decisions played, in float64."""
        rows = self.support()
        return self._point(self.total_of(rows), rows, self.tails[self._tail_sum])

    def _point(self, stored: FloatArray, rows: Any, tail: FloatArray) -> Point:
        """Return the point that has these rows as they are stored."""
        form = self._shape, (self._n_rows, self._d), rows
        return Point(*form, self._by_rows(stored), tail.astype(stored.dtype))

    def decision(self) -> FloatArray:
        """Return x_t, a new array."""
        return self.point().whole()

    def total(self) -> FloatArray:
        """Return the sum of the decisions played, a new array of float64."""
        return self.sum_of_points().whole()

    def total_of(self, rows: Any) -> FloatArray:
        """Return some rows, as they are stored, of the sum of the decisions played."""
        low = self.low[rows] if self.low.size else self.low
        total: FloatArray = scaled(self.u[rows], low, self.scalars[1], np.float64) + self.sum[rows]
        return total

    def products(self, A: Any) -> tuple[FloatArray, FloatArray]:
        """Return the products of sparse features and the decision, and the sum of those played."""
        u = A @ self.u
        if self.low.size:
            u = u.astype(np.float64) + A @ self.low
        s, weight = self.scalars[:2]
        return (s * u).astype(self.u.dtype), weight * u + A @ self.sum

    def support(self) -> Any:
        """Which rows as they are stored may be other than zero, increasing; all unless sparse."""
        return np.sort(self.in_use[1 : 1 + self.in_use[0]]) if self.sparse else slice(None)

    def copy(self: Self) -> Self:
        """Return an independent engine in the same state."""
        other = copy.copy(self)
        for name in (*self._matrices, *self._others):
            setattr(other, name, copied(getattr(self, name)))
        return other
