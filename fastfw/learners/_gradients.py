"""The gradient of all losses so far, for the compiled engines of OFW and OAW."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._csr import kernel_features
from fastfw._threads import in_team
from fastfw.learners._lazy import LazyEngine
from fastfw.learners._past import Samples
from fastfw.problems import Rows
from fastfw.sets._compiled import blocks_of, kernel_rows

__all__ = ["PastGradient"]

Vertex = tuple[IndexArray, npt.NDArray[np.float64]]

# Samples that are worth a thread.
_FEWEST = 256


class PastGradient:
    """The gradient, its vertex, and its inner products, for models in l1 balls.

    A vertex is one place and one value in each l1 ball. `radii` has the balls' radii; their places
    are `first`, ..., `end` - 1. Samples of the past are shared by threads, whose sums are added in
    the order of the samples. `still` is a step that leaves outputs as they are, see
    ``kernels.history``.
    """

    def __init__(self, problem: Any, set: Any, u: FloatArray, sparse: bool, threads: int) -> None:
        rows, d = problem.first_layer
        self.n_classes, self.n_rows = problem.n_classes, rows
        self._model = problem.kernel_model()
        self._rows = kernel_rows(blocks_of(set) or (), rows)
        self.radii = self._rows.radius
        ends = self._rows.end[rows:]
        self.first = np.array([0] * rows + [0, *ends[:-1]][: ends.size])
        self.end = np.array([d] * rows + [*ends])
        self._rounded = self.radii.astype(u.dtype).astype(np.float64)  # as in the iterate
        self._sparse, self._threads = sparse, threads
        # rows of the gradient as it is stored that may be other than zero
        self._seen = np.full(len(u), not sparse)
        self._used = np.flatnonzero(self._seen)
        self.still = 1.0, np.zeros(rows, np.intp), np.zeros(rows)
        self._tail_size = int(ends[-1]) if ends.size else 0
        self._make_room(u.shape, u.dtype)

    def _make_room(self, shape: tuple[int, ...], dtype: Any) -> None:
        """Make room for gradients, which are nothing between rounds."""
        self.G, self.scratch = np.zeros(shape), np.zeros(shape, dtype)
        self.tail = np.zeros(self._tail_size)
        # of the other threads, as many as were needed so far
        self._parts, self._sums = np.zeros((0, *shape), dtype), np.zeros((0, *shape))

    def newest(self, engine: LazyEngine, batch: Rows, weights: npt.NDArray[np.float64]) -> Any:
        """Begin with the gradients of a batch; return its sum of losses and what is kept of it."""
        from fastfw.kernels import history

        if self._sparse:
            self.see(batch.gathered())
        history.clear(self.G, self._used)
        self.tail[:] = 0.0
        kept = np.empty((batch.rows.size, self.n_rows), engine.u.dtype)
        loss: float = history.add_gradient(
            kernel_features(batch.X), self._model, batch.y, batch.rows, weights,
            history.NEWEST, kept, *self.still, True, engine.u, engine.scalars[0], engine.tails[0],
            self.scratch, self.G, self.tail, self._used,
        )  # fmt: skip
        return loss, kept

    def see(self, X: Any) -> None:
        """Note which features sparse samples of the past have."""
        self._seen[X.indices] = True
        self._used = np.flatnonzero(self._seen)

    def add(self, engine: LazyEngine, source: Samples, step: Any, again: bool) -> None:
        """Add the gradients of samples of the past, whose outputs follow the last step."""
        from fastfw.kernels import history

        A, y, rows, weights, kept = source.arrays
        parts = max(1, min(self._threads, rows.size // _FEWEST))
        if parts - 1 > len(self._parts):
            shape = (parts - 1, *self.scratch.shape)
            self._parts, self._sums = np.zeros(shape, self.scratch.dtype), np.zeros(shape)
        words, tails = np.zeros(3, np.int64), np.zeros((parts - 1, self.tail.size))
        given = (
            A, self._model, y, rows, weights, kept, *step, again, engine.u,
            engine.scalars[0], engine.tails[0], self.scratch, self.G, self.tail, self._used,
            self._parts[: parts - 1], self._sums[: parts - 1], tails, words,
        )  # fmt: skip
        lead, assist = partial(history.share_past, *given), partial(history.help_past, *given)
        in_team(lead, assist, words, parts)

    def vertex(self) -> Vertex | None:
        """Return the vertex that minimises ⟨gradient, v⟩, or None if it is not finite."""
        from fastfw.kernels import history, sets

        index, value = np.empty((len(self.radii), 1), np.intp), np.empty((len(self.radii), 1))
        finite = True
        if self.tail.size:
            finite = sets.tail_vertex(self._rows, self.tail, self.n_rows, index, value)
        if self._sparse:
            finite &= history.vertices_of_columns(self._rows, self.G, self._used, index, value)
        else:
            finite &= sets.vertices(self._rows, self.G, index, value)
        return (index[:, 0], value[:, 0]) if finite else None

    def slopes(self, codes: IndexArray) -> npt.NDArray[np.float64]:
        """Return ⟨gradient, v⟩ of vertices as codes: j for +r at place j, -1 - j for -r."""
        from fastfw.kernels import history

        out, m = np.empty(len(codes)), self.n_rows
        G = self.G.T if self._sparse else self.G
        history.slopes(G, np.ascontiguousarray(codes[:, :m]), self._rounded[0], out)
        if self.tail.size:
            rest = np.ascontiguousarray(codes[:, m:])
            history.add_tail_slopes(self.tail, rest, self._rounded[m:], out)
        return out

    def slope(self, point: FloatArray) -> float:
        """Return ⟨gradient, point⟩."""
        from fastfw.kernels import history

        flat = point.reshape(-1)
        W, rest = flat[: self.G.size].reshape(self.n_rows, -1), flat[self.G.size :]
        tail = float(self.tail @ rest)
        if self._sparse:
            return float((self.G[self._used] * W.T[self._used]).sum()) + tail
        return float(history.inner(self.G, W)) + tail

    def copy(self) -> PastGradient:
        """Return one with memory of its own."""
        other = copy.copy(self)
        other._seen = self._seen.copy()
        other._make_room(self.G.shape, self.scratch.dtype)
        return other
