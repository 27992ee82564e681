"""The gradient of all losses so far, for the compiled engines of OFW and OAW."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw.learners._lazy import LazyEngine
from fastfw.learners._past import Samples
from fastfw.learners._threaded import in_team
from fastfw.network import OneHiddenLayer
from fastfw.problems import Rows
from fastfw.sets._compiled import blocks_of, kernel_rows

__all__ = ["NetworkGradient", "PastGradient", "past_gradient"]

Vertex = tuple[IndexArray, npt.NDArray[np.float64]]


# Samples that are worth a thread.
_FEWEST = 256


def past_gradient(problem: Any, set: Any, engine: LazyEngine, threads: int) -> PastGradient:
    """Return the one for this problem and set; networks take one thread."""
    if type(problem) is OneHiddenLayer:
        return NetworkGradient(problem, set, engine)
    return PastGradient(problem, set, engine, threads)


class PastGradient:
    """The gradient, its vertex, and its inner products, for softmax regression on the row-l1 ball.

    A vertex is one place and one value in each l1 ball. `radii` has the balls' radii; their places
    are `first`, ..., `end` - 1. Samples of the past are shared by threads, whose sums are added in
    the order of the samples.
    """

    def __init__(self, problem: Any, set: Any, engine: LazyEngine, threads: int = 1) -> None:
        self.n_classes = problem.n_classes
        self.n_rows, d = engine.u.shape
        self._rows = kernel_rows(blocks_of(set) or [], self.n_rows)
        self.radii = self._rows.radius
        self.first, self.end = np.zeros(self.n_rows, np.intp), np.full(self.n_rows, d)
        self.G = np.zeros((self.n_rows, d))
        self.scratch = np.zeros_like(engine.u)
        self._threads = threads
        # of the other threads, as many as were needed so far
        self._parts = np.zeros((0, *engine.u.shape), engine.u.dtype)
        self._sums = np.zeros((0, *self.G.shape))
        # as in the iterate
        self._rounded = self._in(engine.u.dtype, self.radii)

    @staticmethod
    def _in(dtype: npt.DTypeLike, radii: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        return radii.astype(dtype).astype(np.float64)

    def newest(self, engine: LazyEngine, rows: Rows, batch: IndexArray, weight: float) -> Any:
        """Begin with the gradients of a batch; return its sum of losses and what is kept of it."""
        from fastfw.kernels import history

        kept = np.empty((batch.size, self.n_rows), engine.u.dtype)
        loss: float = history.newest_gradient(
            rows.X, rows.y, batch, engine.u, engine.scalars[0], weight, kept, self.scratch, self.G
        )
        return loss, kept

    def add(
        self, engine: LazyEngine, source: Samples, keep: float, index: IndexArray,
        shift: npt.NDArray[np.float64], again: bool,
    ) -> None:  # fmt: skip
        """Add the gradients of samples of the past, whose logits follow the last step."""
        from fastfw.kernels import history

        X, y, rows, weights, kept = source.arrays()
        parts = max(1, min(self._threads, rows.size // _FEWEST))
        if parts - 1 > len(self._parts):
            self._parts = np.zeros((parts - 1, *self.scratch.shape), self.scratch.dtype)
            self._sums = np.zeros((parts - 1, *self.G.shape))
        words = np.zeros(3, np.int64)
        given = (
            X, y, rows, weights, kept, keep, index, shift, again, engine.u, engine.scalars[0],
            self.scratch, self.G, self._parts[: parts - 1], self._sums[: parts - 1], words,
        )  # fmt: skip
        lead, assist = partial(history.share_past, *given), partial(history.help_past, *given)
        in_team(lead, assist, words, parts)

    def vertex(self) -> Vertex | None:
        """Return the vertex that minimises ⟨gradient, v⟩, or None if it is not finite."""
        index, value = self._room()
        return (index[:, 0], value[:, 0]) if self._find(index, value) else None

    def _room(self) -> Vertex:
        return np.empty((len(self.radii), 1), np.intp), np.empty((len(self.radii), 1))

    def _find(self, index: IndexArray, value: npt.NDArray[np.float64]) -> bool:
        from fastfw.kernels import sets

        return bool(sets.vertices(self._rows, self.G, index, value))

    def slopes(self, codes: IndexArray) -> npt.NDArray[np.float64]:
        """Return ⟨gradient, v⟩ of vertices as codes: j for +r at place j, -1 - j for -r."""
        from fastfw.kernels import history

        out = np.empty(len(codes))
        history.slopes(self.G, codes, self._rounded[0], out)
        return out

    def slope(self, point: FloatArray) -> float:
        """Return ⟨gradient, point⟩."""
        from fastfw.kernels import history

        return float(history.inner(self.G, point))

    def copy(self) -> Any:
        """Return one with memory of its own."""
        other = copy.copy(self)
        for name in ("G", "scratch", "_parts", "_sums"):
            setattr(other, name, getattr(self, name).copy())
        return other


class NetworkGradient(PastGradient):
    """The same for a network in l1 balls; see ``kernels.network_past``."""

    def __init__(self, problem: Any, set: Any, engine: LazyEngine) -> None:
        m, d = engine.u.shape
        n_classes = problem.n_classes
        self.n_classes, self.n_rows = n_classes, m
        self._model = problem.kernel_model()
        self._rows = kernel_rows(blocks_of(set) or [], m)
        self.radii = self._rows.radius
        self._rounded = self._in(engine.u.dtype, self.radii)
        ends = self._rows.end[m:]
        self.first = np.array([*[0] * m, 0, *ends[:-1]])
        self.end = np.array([*[d] * m, *ends])
        self.G, self.tail = np.zeros((m, d)), np.zeros(engine.tails.shape[1])
        self.scratch = np.zeros_like(engine.u)
        self._parts = self._sums = np.empty((0, 0, 0))

    def newest(self, engine: LazyEngine, rows: Rows, batch: IndexArray, weight: float) -> Any:
        """As `PastGradient.newest`; the outputs of the first layer are kept."""
        from fastfw.kernels import network_past

        kept = np.empty((batch.size, self.n_rows), engine.u.dtype)
        loss: float = network_past.newest_gradient(
            rows.X, rows.y, batch, engine.u, engine.scalars[0], engine.tails[0], self._model,
            weight, kept, self.scratch, self.G, self.tail,
        )  # fmt: skip
        return loss, kept

    def add(
        self, engine: LazyEngine, source: Samples, keep: float, index: IndexArray,
        shift: npt.NDArray[np.float64], again: bool,
    ) -> None:  # fmt: skip
        """As `PastGradient.add`, with the outputs of the first layer for logits."""
        from fastfw.kernels import network_past

        X, y, rows, weights, kept = source.arrays()
        network_past.add_past_gradient(
            X, y, rows, weights, kept, keep, index, shift, again, engine.u, engine.scalars[0],
            engine.tails[0], self._model, self.scratch, self.G, self.tail,
        )  # fmt: skip

    def _find(self, index: IndexArray, value: npt.NDArray[np.float64]) -> bool:
        from fastfw.kernels import sets

        fits = sets.tail_vertex(self._rows, self.tail, self.n_rows, index, value)
        return super()._find(index, value) and bool(fits)

    def slopes(self, codes: IndexArray) -> npt.NDArray[np.float64]:
        """As `PastGradient.slopes`."""
        from fastfw.kernels import network_past

        m = self.n_rows
        out = super().slopes(np.ascontiguousarray(codes[:, :m]))
        radii = self._rounded[m:]
        network_past.add_tail_slopes(self.tail, np.ascontiguousarray(codes[:, m:]), radii, out)
        return out

    def slope(self, point: FloatArray) -> float:
        """As `PastGradient.slope`."""
        from fastfw.kernels import history

        W1 = point[: self.G.size].reshape(self.G.shape)
        return float(history.inner(self.G, W1)) + float(self.tail @ point[self.G.size :])

    def copy(self) -> Any:
        """Return one with memory of its own."""
        other = super().copy()
        other.tail = self.tail.copy()
        return other
