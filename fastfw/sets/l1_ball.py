"""The l1 ball of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, positive_int
from fastfw.sets._compiled import Block
from fastfw.sets._vertex import Vertex, decoded
from fastfw.sets.rows import L1Rows

__all__ = ["L1Ball", "L1Vertex"]


class L1Vertex(Vertex):
    """A vertex of `L1Ball` or `Simplex`: one nonzero entry.

    Attributes
    ----------
    index : int
        Where it is.
    value : float
        The entry: plus or minus the radius.
    """

    __slots__ = ("index", "value")

    def __init__(
        self, index: int, value: float, shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64
    ) -> None:
        super().__init__(shape, dtype)
        self.index = index
        self.value = value

    @property
    def code(self) -> npt.NDArray[np.intp]:
        """+r at j is j, -r is -1 - j; shape (1,)."""
        return np.array([self.index if self.value > 0.0 else ~self.index], np.intp)

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array of shape (n,)."""
        dense = np.zeros(self.shape, self.dtype)
        dense[self.index] = self.value
        return dense

    def dot(self, direction: npt.ArrayLike) -> float:
        """Return ⟨direction, v⟩. O(1)."""
        return float(np.asarray(direction)[self.index]) * self.value

    def add_to(self, x: FloatArray, scale: float) -> None:
        """Add scale times the vertex to `x`, in place. O(1)."""
        x[self.index] += scale * self.value

    def __repr__(self) -> str:
        return f"L1Vertex(index={self.index}, value={self.value}, shape={self.shape})"


class L1Ball(L1Rows):
    r"""Vectors of l1 norm at most r.

    .. math:: \{x \in R^n : \sum_j |x_j| \le r\}

    Parameters
    ----------
    size : int
        n.
    radius : float
        r > 0.
    ties, seed
        As in `RowL1Ball`.

    Examples
    --------
    >>> import fastfw as fw
    >>> ball = fw.L1Ball(3, radius=2.0)
    >>> ball.lmo([1.0, -4.0, 3.0]).toarray()
    array([0., 2., 0.])
    >>> ball.project([3.0, -2.0, 0.0])
    array([ 1.5, -0.5,  0. ])
    >>> ball.diameter
    4.0
    """

    _shape: tuple[int]

    def __init__(
        self, size: int, radius: float, ties: str = "first", seed: int | Sequence[int] = 0
    ) -> None:
        super().__init__((positive_int(size, "size"),), radius, ties, seed)

    def lmo(self, direction: npt.ArrayLike) -> L1Vertex:
        """-r sign(g) at the g of largest magnitude, see `ConvexSet.lmo`.

        The first or a random one of several; sign(0) counts as +1. O(n) time, O(1) memory.
        """
        index, value = self._vertex(direction)
        return L1Vertex(int(index[0]), float(value[0]), self._shape, value.dtype)

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> L1Vertex:
        """Return the vertex of a code."""
        indices, values = decoded(code, self._radius)
        return L1Vertex(int(indices[0]), float(values[0]), self._shape, dtype)

    def _blocks(self) -> list[Block]:
        return [self._block(1, *self._shape)]

    def _parameters(self) -> dict[str, Any]:
        given = super()._parameters()
        return {"size": given.pop("shape")[0], **given}
