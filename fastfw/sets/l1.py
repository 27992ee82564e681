"""The l1 ball of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, positive_int
from fastfw.sets._convex import ConvexSet
from fastfw.sets._vertex import Vertex
from fastfw.sets.rows import RowL1Ball

__all__ = ["L1Ball", "L1Vertex"]


class L1Vertex(Vertex):
    """A vertex of `L1Ball` or `Simplex`: one nonzero entry.

    Attributes
    ----------
    index : int
        Where it is.
    value : float
        The entry: plus or minus the radius.
    shape : tuple of int
        (n,).
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


class L1Ball(ConvexSet):
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

    Raises
    ------
    TypeError, ValueError
        If an argument is not such a number.

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
        self._shape = (positive_int(size, "size"),)
        self._rows = RowL1Ball((1, self._shape[0]), radius, ties, seed)

    @property
    def radius(self) -> float:
        """Bound on the l1 norm, r."""
        return self._rows.radius

    @property
    def ties(self) -> str:
        """Which of several largest entries the oracle takes, "first" or "random"."""
        return self._rows.ties

    @property
    def seed(self) -> int | tuple[int, ...]:
        """Seed of random ties."""
        return self._rows.seed

    @property
    def tie_key(self) -> np.uint64:
        """Key of the random ties, as kernels take it."""
        return self._rows.tie_key

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, 2 r."""
        return self._rows.diameter

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point inside: a Gaussian direction with l1 norm r/2."""
        point: FloatArray = self._rows.random_point(rng)[0]
        return point

    def lmo(self, direction: npt.ArrayLike) -> L1Vertex:
        """Linear minimisation oracle: a vertex v that minimises ⟨direction, v⟩.

        The entry -r sign(g) at the g of largest magnitude, the first or a random one of several;
        sign(0) counts as +1.

        Parameters
        ----------
        direction : array_like, shape (n,)
            Any finite direction; float32 stays float32.

        Returns
        -------
        L1Vertex
            Sparse; ``np.asarray`` makes it dense.

        Raises
        ------
        TypeError, ValueError
            If the direction is not finite real numbers of the set's shape.

        Notes
        -----
        O(n) time, O(1) memory.
        """
        g = self._direction(direction)
        vertex = self._rows.lmo(g[np.newaxis])
        return L1Vertex(int(vertex.indices[0]), float(vertex.values[0]), self.shape, vertex.dtype)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array; see `RowL1Ball.project`."""
        point = self._projectable(x)
        projected: FloatArray = self._rows.project(point[np.newaxis])[0]
        return projected

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        """Tell whether the l1 norm is at most r (1 + tol)."""
        return self._rows._contains(point[np.newaxis], tol)

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> L1Vertex:
        """Return the vertex of a code."""
        j = int(code[0])
        value = self.radius if j >= 0 else -self.radius
        return L1Vertex(j if j >= 0 else ~j, value, self.shape, dtype)

    def _parameters(self) -> dict[str, Any]:
        ties = {} if self.ties == "first" else {"ties": self.ties, "seed": self.seed}
        return {"size": self.shape[0], "radius": self.radius, **ties}
