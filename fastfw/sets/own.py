"""Sets of one's own whose oracle is compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import describe, non_negative_float, positive_int
from fastfw._numba import is_compiled, short_error, with_bounds
from fastfw.sets._compiled import Block
from fastfw.sets._convex import OVERFLOW, finite, point_of, shape_of
from fastfw.sets._vertex import EntriesVertex

__all__ = ["CompiledSet"]


class CompiledSet:
    """Rows that each lie in a set of one's own, whose vertices a compiled function writes.

    The methods of one recursion, such as `ORGFW`, call it from compiled rounds, on dense features,
    bytes and sparse rows, without Python in between.

    Parameters
    ----------
    shape : int or (int, int)
        Shape of the points: a single row of n entries, or rows of n entries each.
    vertex : function compiled by ``numba.njit``
        ``vertex(g, index, value)`` writes the vertex v that minimises ⟨g, v⟩ over a row's set: the
        places of its nonzero entries in the row, each once, and these entries. g is a direction of
        n numbers (float64), and its own to spoil; `index` (intp) and `value` (float64) have a place
        for each entry and hold zeros, which may stay where a vertex has fewer.
    entries : int
        The most nonzero entries of a vertex, of one row: the length of `index` and `value`. With
        too few, a function that fills the places there are is the oracle of a smaller set. Compiled
        rounds do not see writing beyond them, which spoils other memory, nor a place written twice;
        `lmo`, and the constructor for a dozen directions, do.
    diameter : float
        Largest Euclidean distance of two points, of all rows together, or more.

    Raises
    ------
    TypeError, ValueError
        If an argument is not such a number or function, if Numba cannot compile it for such arrays,
        or if what it writes is no vertex.

    Notes
    -----
    Functions are not in saved learners: give ``set=`` again to `load`. Which points the set holds
    is not known, so that `start` is taken as it is.

    Examples
    --------
    Portfolios that put at most half into one asset: the two best have a half each.

    >>> import numba, numpy as np, fastfw as fw
    >>> @numba.njit
    ... def two_best(g, index, value):
    ...     index[:] = np.argsort(g)[:2]
    ...     value[:] = 0.5
    >>> M = fw.CompiledSet(4, two_best, entries=2, diameter=1.0)
    >>> M.lmo([3.0, -1.0, 2.0, 0.0]).toarray()
    array([0. , 0.5, 0. , 0.5])
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        vertex: Callable[..., Any],
        *,
        entries: int = 1,
        diameter: float,
    ) -> None:
        self._shape = shape_of(shape)
        if len(self._shape) > 2:
            raise ValueError(
                f"shape must be a number of entries or (rows, entries), but it is {self._shape}"
            )
        self._entries = positive_int(entries, "entries", maximum=self._shape[-1])
        self._diameter = non_negative_float(diameter, "diameter")
        self._vertex: Any = vertex
        self._name = getattr(vertex, "__name__", "vertex")
        if not (is_compiled(vertex) or (_interpreted() and callable(self._vertex))):
            raise TypeError(
                "vertex must be a function (g, index, value) that Numba compiled: put @numba.njit "
                f"above it; but it is {describe(vertex)}"
            )
        self._adapter: Any = None
        if self.compiled:
            self.address  # noqa: B018, compiles
        self._try()

    def _try(self) -> None:
        """Refuse a function that some directions show to be no oracle."""
        rng = np.random.default_rng(0)
        seen: list[EntriesVertex] = []
        for size in (0.0, 1.0, -1.0, *[None] * 9):
            g = rng.standard_normal(self._shape) if size is None else np.full(self._shape, size)
            v = self.lmo(g)
            found = v.dot(g)
            for other in seen:
                slack = 1e-9 * np.abs(g).max() * np.abs((*v.values, *other.values)).sum()
                if found > other.dot(g) + slack:
                    raise ValueError(
                        f"{self._name} must minimise ⟨g, v⟩, but of two vertices that it wrote it "
                        "takes the one where that is larger"
                    )
            seen.append(v)
        if self._diameter > 0.0 and not any(v.values.size for v in seen):
            raise ValueError(
                f"{self._name} must write places to index and numbers to value, in place; it "
                "wrote zeros alone"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the set's points."""
        return self._shape

    @property
    def entries(self) -> int:
        """The most nonzero entries of a vertex, of one row."""
        return self._entries

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points."""
        return self._diameter

    @property
    def compiled(self) -> bool:
        """Whether the function is compiled: it is not where NUMBA_DISABLE_JIT is set."""
        return is_compiled(self._vertex)

    @property
    def address(self) -> int:
        """Where compiled rounds find the function, see ``kernels.functions``."""
        from fastfw.kernels.functions import compiled_vertex

        if self._adapter is None:
            try:
                self._adapter = compiled_vertex(self._vertex)  # is kept: the address is of it
            except Exception as error:
                short_error(self._vertex, self._name, error)
                raise
        found: int = self._adapter[1]
        return found

    def _blocks(self) -> list[Block] | None:
        if not self.compiled:
            return None
        n, length = (1, *self._shape)[-2:]
        return [Block("OWN", n, length, math.nan, self._entries, address=self.address)]

    @cached_property
    def _watched(self) -> Any:
        """The function, with an IndexError where it leaves an array.

        It is compiled once more for it: compiled rounds go without, whose time loops that look at
        every index would lengthen by a sixth and more.
        """
        return with_bounds(self._vertex)

    def lmo(self, direction: npt.ArrayLike) -> EntriesVertex:
        """Return what the function writes for each row, see `ConvexSet.lmo`.

        Raises ValueError also where that is no vertex.
        """
        g = finite(point_of(direction, self._shape, "direction"), "direction", OVERFLOW)
        n = self._shape[-1]
        places, entries = [], []
        for r, row in enumerate(g.reshape(-1, n)):
            index, value = np.zeros(self._entries, np.intp), np.zeros(self._entries)
            try:
                self._watched(row.astype(np.float64), index, value)
            except IndexError as error:
                raise ValueError(
                    f"{self._name} looked or wrote beyond an array: index and value have "
                    f"entries={self._entries} places, g has {n}; give more entries=..., or look "
                    "for an array from outside that is too short"
                ) from error
            self._check(index, value)
            used = value != 0.0
            places.append(index[used] + r * n)
            entries.append(value[used])
        return EntriesVertex(np.concatenate(places), np.concatenate(entries), self._shape, g.dtype)

    def _check(self, index: npt.NDArray[np.intp], value: npt.NDArray[np.float64]) -> None:
        n, used = self._shape[-1], index[value != 0.0]
        if ((index < 0) | (index >= n)).any():
            what = f"must write places from 0 to {n - 1} to index, but it wrote {index.tolist()}"
        elif not np.isfinite(value).all():
            what = f"must write finite numbers to value, but it wrote {value.tolist()}"
        elif len(np.unique(used)) < used.size:
            what = f"must write each place once to index, but it wrote {index.tolist()}"
        else:
            return
        raise ValueError(f"{self._name} {what}")

    def __getstate__(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name != "_watched"}
        return {**own, "_adapter": None}

    def __repr__(self) -> str:
        return f"CompiledSet({self._shape}, {self._name}, entries={self._entries})"


def _interpreted() -> bool:
    import numba

    return bool(numba.config.DISABLE_JIT)
