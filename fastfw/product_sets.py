"""The l1 ball of vectors, and products of sets: one block of parameters each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, float_dtype, positive_int
from fastfw.sets import RowL1Ball, point_inside

__all__ = ["L1Ball", "L1Vertex", "ProductSet", "ProductVertex"]


class _Vertex:
    """What structured vertices share: they are arrays wherever NumPy takes one."""

    __slots__ = ()

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array."""
        raise NotImplementedError

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


class L1Vertex(_Vertex):
    """A vertex of `L1Ball`: one nonzero entry.

    Attributes
    ----------
    index : int
        Where it is.
    value : float
        Plus or minus the radius.
    shape : tuple of int
        (n,).
    """

    __slots__ = ("_dtype", "index", "shape", "value")

    ndim = 1

    def __init__(
        self, index: int, value: float, shape: tuple[int], dtype: npt.DTypeLike = np.float64
    ) -> None:
        self.index = index
        self.value = value
        self.shape = shape
        self._dtype = np.dtype(dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the dense array."""
        return self._dtype

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array of shape (n,)."""
        dense = np.zeros(self.shape, self._dtype)
        dense[self.index] = self.value
        return dense

    def __repr__(self) -> str:
        return f"L1Vertex(index={self.index}, value={self.value}, shape={self.shape})"


class L1Ball:
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

    def __init__(
        self, size: int, radius: float, ties: str = "first", seed: int | Sequence[int] = 0
    ) -> None:
        self._rows = RowL1Ball((1, positive_int(size, "size")), radius, ties, seed)

    @property
    def shape(self) -> tuple[int]:
        """Shape of the set's points, (n,)."""
        return (self._rows.shape[1],)

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

    def start(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Return the point where learners start: zeros."""
        zeros: FloatArray = self._rows.start(dtype)[0]
        return zeros

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
        ValueError
            If the direction has another shape or is not finite.

        Notes
        -----
        O(n) time, O(1) memory.
        """
        g = self._point(direction, "direction")
        if not np.isfinite(g).all():
            j = int(np.flatnonzero(~np.isfinite(g))[0])
            raise ValueError(
                f"direction[{j}] is {g[j]}; a direction must be finite: "
                "look for the overflow or NaN where it was computed"
            )
        vertex = self._rows.lmo(g[np.newaxis])
        return L1Vertex(int(vertex.indices[0]), float(vertex.values[0]), self.shape, vertex.dtype)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array; see `RowL1Ball.project`."""
        point = self._point(x, "x")
        if not np.isfinite(point).all():
            j = int(np.flatnonzero(~np.isfinite(point))[0])
            raise ValueError(f"x[{j}] is {point[j]}; only finite points have a projection")
        projected: FloatArray = self._rows.project(point[np.newaxis])[0]
        return projected

    def contains(self, x: npt.ArrayLike, tol: float = 1e-9) -> bool:
        """Tell whether the l1 norm is at most r (1 + tol)."""
        point = np.asarray(x, dtype=np.float64)
        return point.shape == self.shape and self._rows.contains(point[np.newaxis], tol)

    def _point(self, x: npt.ArrayLike, name: str) -> FloatArray:
        array = np.asarray(x)
        if array.shape != self.shape:
            raise ValueError(f"{name} must have shape {self.shape}, but it has {array.shape}")
        return np.asarray(array, np.float32 if array.dtype == np.float32 else np.float64)

    def __repr__(self) -> str:
        ties = "" if self.ties == "first" else f", ties={self.ties!r}, seed={self.seed}"
        return f"L1Ball(size={self.shape[0]}, radius={self.radius}{ties})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, L1Ball):
            return NotImplemented
        return self._rows == other._rows

    def __hash__(self) -> int:
        return hash(("L1Ball", self._rows))


class ProductVertex(_Vertex):
    """A vertex of `ProductSet`: one vertex of each block.

    Attributes
    ----------
    parts : dict of str to vertex
        The blocks' own vertices, sparse where the blocks' sets give such.
    shape : tuple of int
        (n,), all blocks one after the other.
    """

    __slots__ = ("_dtype", "parts", "shape")

    ndim = 1

    def __init__(
        self, parts: Mapping[str, Any], shape: tuple[int], dtype: npt.DTypeLike = np.float64
    ) -> None:
        self.parts = dict(parts)
        self.shape = shape
        self._dtype = np.dtype(dtype)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the dense array."""
        return self._dtype

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array of shape (n,)."""
        parts = [np.ravel(np.asarray(part)) for part in self.parts.values()]
        return np.concatenate(parts).astype(self._dtype, copy=False)

    def __repr__(self) -> str:
        return f"ProductVertex({self.parts})"


class ProductSet:
    r"""Points made of blocks, each in a set of its own.

    .. math:: M = M_1 \times \dots \times M_k

    A point is one flat array: the blocks one after the other, each in C order. The oracle acts
    block by block.

    Parameters
    ----------
    blocks : mapping of str to set, or sequence of sets
        The blocks by name, in order. Sets of a sequence are called "0", "1", ... A set is any
        object with ``shape``, ``lmo(direction)`` and ``diameter``.

    Raises
    ------
    TypeError, ValueError
        If there is no block, a name is not a string, or a block is not a set.

    Examples
    --------
    >>> import fastfw as fw
    >>> M = fw.ProductSet({"W": fw.RowL1Ball((2, 2), radius=3.0), "b": fw.L1Ball(2, radius=1.0)})
    >>> M.shape
    (6,)
    >>> v = M.lmo([1.0, 2.0, -5.0, 0.0, 0.5, 0.0])
    >>> v.toarray()
    array([ 0., -3.,  3.,  0., -1.,  0.])
    >>> v.parts["b"]
    L1Vertex(index=0, value=-1.0, shape=(2,))
    >>> M.blocks(v.toarray())["W"]
    array([[ 0., -3.],
           [ 3.,  0.]])
    """

    def __init__(self, blocks: Mapping[str, Any] | Sequence[Any]) -> None:
        if not isinstance(blocks, Mapping):
            if isinstance(blocks, str) or not hasattr(blocks, "__iter__"):
                raise TypeError(
                    "blocks must be a mapping of names to sets or a sequence of sets, but it is a "
                    f"{type(blocks).__name__}"
                )
            blocks = {str(i): block for i, block in enumerate(blocks)}
        if not blocks:
            raise ValueError("blocks is empty; a product needs one set at least")
        self._slices: dict[str, slice] = {}
        stop = 0
        for name, block in blocks.items():
            if not isinstance(name, str):
                raise TypeError(f"names of blocks must be strings, but one is {name!r}")
            missing = [a for a in ("shape", "lmo", "diameter") if not hasattr(block, a)]
            if missing:
                raise TypeError(
                    f"block {name!r} must be a set with shape, lmo, diameter, but a "
                    f"{type(block).__name__} has no {', '.join(missing)}"
                )
            start, stop = stop, stop + math.prod(block.shape)
            self._slices[name] = slice(start, stop)
        self._sets = dict(blocks)
        self._shape = (stop,)

    @property
    def sets(self) -> dict[str, Any]:
        """The blocks' sets by name, a new dictionary."""
        return dict(self._sets)

    @property
    def shape(self) -> tuple[int]:
        """Shape of the set's points, (n,)."""
        return self._shape

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points: the root of the sum of the blocks' squares."""
        return math.hypot(*(float(block.diameter) for block in self._sets.values()))

    def blocks(self, x: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the blocks of a point by name: views of `x` in the blocks' shapes.

        Raises
        ------
        ValueError
            If `x` has another shape than the set.
        """
        array = np.asarray(x)
        if array.shape != self._shape:
            raise ValueError(f"x must have shape {self._shape}, but it has {array.shape}")
        return {
            name: array[part].reshape(self._sets[name].shape) for name, part in self._slices.items()
        }

    def join(self, blocks: Mapping[str, npt.ArrayLike]) -> npt.NDArray[Any]:
        """Return the point made of the given blocks, a new flat array.

        Raises
        ------
        ValueError
            If a block is missing, unknown, or of another shape.
        """
        if set(blocks) != set(self._sets):
            raise ValueError(f"blocks must be {list(self._sets)}, but they are {list(blocks)}")
        parts = []
        for name, own in self._sets.items():
            part = np.asarray(blocks[name])
            if part.shape != tuple(own.shape):
                raise ValueError(
                    f"block {name!r} must have shape {tuple(own.shape)}, but it has {part.shape}"
                )
            parts.append(part.ravel())
        return np.concatenate(parts)

    def start(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Return the point where learners start: the blocks' own, a vertex where one has none."""
        real = float_dtype(dtype)
        parts = []
        for block in self._sets.values():
            own = block.start(real) if hasattr(block, "start") else block.lmo(np.zeros(block.shape))
            parts.append(np.ravel(np.asarray(own, real)))
        return np.concatenate(parts)

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point inside: the blocks' own, or means of their random vertices."""
        return np.concatenate([np.ravel(point_inside(own, rng)) for own in self._sets.values()])

    def lmo(self, direction: npt.ArrayLike) -> ProductVertex:
        """Linear minimisation oracle: each block's own.

        Parameters
        ----------
        direction : array_like, shape (n,)
            Any finite direction; float32 stays float32.

        Returns
        -------
        ProductVertex
            The blocks' vertices; ``np.asarray`` makes one dense array of them.

        Raises
        ------
        ValueError
            If the direction has another shape, or a block refuses its part.
        """
        array = np.asarray(direction)
        dtype = np.float32 if array.dtype == np.float32 else np.float64
        parts = {}
        if array.shape != self._shape:
            raise ValueError(f"direction must have shape {self._shape}, but it has {array.shape}")
        for name, part in self.blocks(array.astype(dtype, copy=False)).items():
            try:
                parts[name] = self._sets[name].lmo(part)
            except ValueError as error:
                raise ValueError(f"block {name!r}: {error}") from error
        return ProductVertex(parts, self._shape, dtype)

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array: each block's own projection.

        Raises
        ------
        TypeError
            If a block's set has no projection.
        ValueError
            If `x` has another shape, or a block refuses its part.
        """
        array = np.asarray(x)
        parts = []
        for name, part in self.blocks(array).items():
            if not hasattr(self._sets[name], "project"):
                raise TypeError(f"the set of block {name!r} has no projection")
            try:
                parts.append(np.ravel(self._sets[name].project(part)))
            except ValueError as error:
                raise ValueError(f"block {name!r}: {error}") from error
        return np.concatenate(parts)

    def contains(self, x: npt.ArrayLike, tol: float = 1e-9) -> bool:
        """Tell whether every block lies in its set; a set that cannot tell is not asked."""
        array = np.asarray(x)
        if array.shape != self._shape:
            return False
        return all(
            self._sets[name].contains(part, tol)
            for name, part in self.blocks(array).items()
            if hasattr(self._sets[name], "contains")
        )

    def __repr__(self) -> str:
        return f"ProductSet({self._sets})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ProductSet):
            return NotImplemented
        return list(self._sets.items()) == list(other._sets.items())

    def __hash__(self) -> int:
        return hash(tuple(self._sets.items()))
