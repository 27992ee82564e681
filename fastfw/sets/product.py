"""Products of sets: points made of blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, require, reworded
from fastfw._layout import named_blocks
from fastfw.sets._accept import accept_vertex, call_oracle, diameter_of, project_onto, start_of
from fastfw.sets._compiled import Block, blocks_of
from fastfw.sets._convex import ConvexSet, point_inside, require_dtype
from fastfw.sets._vertex import Vertex, code_of, decode

__all__ = ["ProductSet", "ProductVertex"]


class ProductVertex(Vertex):
    """A vertex of `ProductSet`: one vertex of each block.

    Attributes
    ----------
    parts : dict of str to vertex
        The blocks' own vertices, structured where the blocks' sets give such.
    shape : tuple of int
        (n,), all blocks one after the other.
    """

    __slots__ = ("parts",)

    def __init__(
        self, parts: Mapping[str, Any], shape: tuple[int, ...], dtype: npt.DTypeLike = np.float64
    ) -> None:
        super().__init__(shape, dtype)
        self.parts = dict(parts)

    @property
    def code(self) -> npt.NDArray[np.uint8]:
        """The bytes of the parts' codes, one after the other."""
        return np.frombuffer(b"".join(_code(part).tobytes() for part in self.parts.values()), "u1")

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array of shape (n,)."""
        parts = [np.ravel(np.asarray(part)) for part in self.parts.values()]
        return np.concatenate(parts).astype(self.dtype, copy=False)

    def dot(self, direction: npt.ArrayLike) -> float:
        """Return ⟨direction, v⟩, each block at the cost of its own vertex."""
        total = 0.0
        for part, piece in self._pieces(np.asarray(direction)):
            total += part.dot(piece) if isinstance(part, Vertex) else float(np.vdot(piece, part))
        return total

    def add_to(self, x: FloatArray, scale: float) -> None:
        """Add scale times the vertex to `x`, in place, each block at its own cost."""
        for part, piece in self._pieces(x):
            if isinstance(part, Vertex):
                part.add_to(piece, scale)
            else:
                piece += x.dtype.type(scale) * np.asarray(part, x.dtype)

    def _pieces(self, x: npt.NDArray[Any]) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
        """Yield the parts, each with its piece of a flat array, a view."""
        stop = 0
        for part in self.parts.values():
            start, stop = stop, stop + math.prod(np.shape(part))
            yield part, x[start:stop].reshape(np.shape(part))

    def __repr__(self) -> str:
        return f"ProductVertex({self.parts})"


def _code(part: Any) -> npt.NDArray[Any]:
    """Code of a block's vertex: its own, or its entries where it is a plain array."""
    return part.code if isinstance(part, Vertex) else code_of(part, np.float64)


class ProductSet(ConvexSet):
    r"""Points made of blocks, each in a set of its own.

    .. math:: M = M_1 \times \cdots \times M_k

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
        for name, block in blocks.items():
            if not isinstance(name, str):
                raise TypeError(f"names of blocks must be strings, but one is {name!r}")
            require(block, f"block {name!r}", ("shape", "lmo", "diameter"))
        self._sets = dict(blocks)
        self._shapes = {name: tuple(block.shape) for name, block in blocks.items()}
        self._shape = (sum(math.prod(block.shape) for block in blocks.values()),)

    @property
    def sets(self) -> dict[str, Any]:
        """The blocks' sets by name, a new dictionary."""
        return dict(self._sets)

    @property
    def warm_starts(self) -> bool:
        """Whether the oracle of a block can make use of an earlier answer."""
        return any(getattr(block, "warm_starts", False) for block in self._sets.values())

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points: the root of the sum of the blocks' squares."""
        return math.hypot(*self._each(lambda name, own: diameter_of(own)))

    def _each(self, f: Callable[[str, Any], Any]) -> list[Any]:
        """Return what f makes of every block's name and set; errors say of which."""
        found = []
        for name, own in self._sets.items():
            try:
                found.append(f(name, own))
            except (TypeError, ValueError) as error:
                raise reworded(error, f"block {name!r}: {error}") from error
        return found

    def blocks(self, x: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return the blocks of a point by name: views of `x` in the blocks' shapes.

        Raises
        ------
        ValueError
            If `x` has another shape than the set.
        """
        return named_blocks(x, self._shapes)

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
        real = self._dtype(dtype)
        return self._joined(lambda name, own: start_of(own).astype(real, copy=False))

    def _joined(self, f: Callable[[str, Any], Any]) -> npt.NDArray[Any]:
        """Return the point whose blocks f makes of their names and sets."""
        return np.concatenate([part.ravel() for part in self._each(f)])

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point inside: the blocks' own, or means of their random vertices."""
        return self._joined(lambda name, own: point_inside(own, rng))

    def lmo(self, direction: npt.ArrayLike, start: ProductVertex | None = None) -> ProductVertex:
        """Return each block's own vertex, see `ConvexSet.lmo`.

        `start` is an earlier answer for blocks that can make use of one, see `NuclearNormBall`.
        """
        g = self._direction(direction)
        pieces = self.blocks(g)

        def vertex(name: str, own: Any) -> Any:
            found = call_oracle(own, pieces[name], None if start is None else start.parts[name])
            return accept_vertex(found, pieces[name], look=False)

        parts = zip(self._sets, self._each(vertex), strict=True)
        return ProductVertex(dict(parts), self._shape, g.dtype)

    @property
    def project(self) -> Callable[[npt.ArrayLike], FloatArray]:
        """``project(x)``: the nearest point of the set, a new array; each block's own projection.

        It raises TypeError or ValueError if `x` is not finite real numbers of the set's shape, or a
        block refuses its part.

        Raises
        ------
        AttributeError
            If a block's set has no projection: then the product has none.
        """
        for name, own in self._sets.items():
            if not hasattr(own, "project"):
                raise AttributeError(f"the set of block {name!r} has no projection")
        return self._project

    def _project(self, x: npt.ArrayLike) -> FloatArray:
        parts = self.blocks(self._projectable(x))
        return self._joined(lambda name, own: project_onto(own, parts[name], parts[name].dtype))

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        return all(
            self._sets[name].contains(part, tol)
            for name, part in self.blocks(point).items()
            if hasattr(self._sets[name], "contains")
        )

    def _require(self, dtype: np.dtype[Any]) -> None:
        self._each(lambda name, own: require_dtype(own, dtype))

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> ProductVertex:
        """Return the vertex of a code."""
        parts: dict[str, Any] = {}
        stop = 0
        for name, own in self._sets.items():
            form = _code(own.lmo(np.zeros(own.shape)))
            start, stop = stop, stop + form.nbytes
            part = np.frombuffer(code[start:stop].tobytes(), form.dtype)
            parts[name] = decode(own, part, dtype)
        return ProductVertex(parts, self._shape, dtype)

    def _blocks(self) -> list[Block] | None:
        found: list[Block] = []
        for own in map(blocks_of, self._sets.values()):
            if own is None:
                return None
            found += own
        return found

    def _parameters(self) -> dict[str, Any]:
        return {"blocks": tuple(self._sets.items())}  # whose order counts

    def __repr__(self) -> str:
        return f"ProductSet({self._sets})"
