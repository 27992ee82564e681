"""What OFW and OAW share: the past, and the compiled engine that adds up its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw.learners._base import OnlineLearner
from fastfw.learners._engines import StepsEngine
from fastfw.learners._gradients import past_gradient
from fastfw.learners._lazy import Arrays, LazyEngine
from fastfw.learners._learner import MOST
from fastfw.learners._oracles import evaluate, slope
from fastfw.learners._past import Past, Samples
from fastfw.learners.compiled import in_l1_balls
from fastfw.problems import Classification, Rows
from fastfw.streams import Batch, Dataset

__all__ = ["FusedPast", "HistoryLearner"]

# Logits are computed anew once rounding may have grown to so many units in the last place.
_LARGEST_DRIFT = 64.0


class PassingRows(Rows):
    """Rows of a batch that will not come back."""


class HistoryLearner(OnlineLearner):
    """Base of the methods that ask for the gradients of all losses so far, every round."""

    _threaded = True
    _growing = frozenset(
        (
            *("samples", "sources", "numbers", "shares", "logits", "features", "labels"),
            *("vertices", "weights"),
        )
    )

    def _first_state(self, start: FloatArray) -> dict[str, Any]:
        return {"x": start, "past": Past()}

    def _past_gradient(
        self, t: int, batch: Any, state: dict[str, Any]
    ) -> tuple[float, npt.NDArray[Any], Past]:
        """Loss on the batch, (1/t) Σ_{τ≤t} ∇f_τ(x_t), and the past with the batch."""
        past: Past = state["past"]
        after = past.then(batch)
        loss, g = evaluate(self.problem, state["x"], after.batches[-1])
        for earlier in past.batches:
            g = g + slope(self.problem, state["x"], earlier)
        return loss, g / t, after

    def _evaluations(self, t: int, batch_size: int) -> int:
        engine: Any = self._engine
        past = engine.state["past"] if isinstance(engine, StepsEngine) else engine
        return int(past.samples[t - 1])

    def _can_fuse(self) -> bool:
        return in_l1_balls(self.problem, self.set)

    def _advance(
        self, rows: Rows, starts: npt.NDArray[np.intp], batch: Any, dtype: np.dtype[Any]
    ) -> npt.NDArray[np.float64]:
        if not isinstance(batch, Batch | Dataset):
            rows = PassingRows(*rows)
        return super()._advance(rows, starts, batch, dtype)

    def _read(self, engine: Any, stored: dict[str, Any]) -> dict[str, Any]:
        past = {}
        if isinstance(engine, StepsEngine):
            past = {name: stored.pop(name) for name in [*stored] if name.split(".")[0] == "past"}
        state = super()._read(engine, stored)
        if isinstance(engine, StepsEngine):
            state["past"] = Past.restored(past)
            if isinstance(self.problem, Classification):
                for batch in state["past"].batches:
                    self.problem.rows(batch)
        samples = state["past"].samples if "past" in state else state["samples"].tolist()
        grown = all(0 < b - a <= MOST for a, b in pairwise((0, *samples)))
        if len(samples) != self._t - 1 or not grown:
            raise ValueError(f"its past does not have {self._t - 1} rounds")
        return state


class FusedPast(LazyEngine):
    """The gradient of the whole past from kept logits, a vertex, a step.

    Samples of one data set in memory are kept as row numbers, each once; those of other
    batches are copied. Logits follow the iterate step by step, see ``kernels.history``: those of
    x_t are ``keep * logits + shift A[:, index]`` until a round has gone through them. Of a network,
    outputs of the first layer are kept in their place, see ``kernels.network_past``.
    """

    def __init__(
        self,
        problem: Any,
        set: Any,
        start: FloatArray,
        step: Callable[[int], float] | None = None,
        threads: int = 1,
    ) -> None:
        # scalars: scale, weight of the sum, rounding in the logits
        super().__init__(problem, start, 3)
        self._weight = problem.weight
        self._step = step
        self._keep, self._index = 1.0, np.zeros(len(self.u), np.intp)
        self._shift = np.zeros(len(self.u))
        #: Number of samples after each round.
        self.samples: list[int] = []
        self.sources: list[Samples] = []
        self._gradient = past_gradient(problem, set, self, threads)

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Play rounds t, t + 1, ..., see `Engine`."""
        n = starts.size - 1
        for i in range(n):
            batch = rows.rows[starts[i] : starts[i + 1]]
            weight = self._weight(batch.size)
            loss, logits = self._add_up(rows, batch, weight)
            losses[i] = loss * weight
            vertex = self._choose(t + i) if math.isfinite(loss) else None
            if vertex is None:
                return i
            self._remember(rows, batch, weight, logits)
            self._move(*vertex)
            losses[n] = i + 1
        return n

    def _add_up(self, rows: Rows, batch: IndexArray, weight: float) -> tuple[float, FloatArray]:
        """Gradients of the batch and of the past at x_t; return the batch's loss and logits."""
        loss: float
        loss, logits = self._gradient.newest(self, rows, batch, weight)
        if not math.isfinite(loss):
            return loss, logits
        again = bool(self.scalars[2] > _LARGEST_DRIFT)
        for source in self.sources:
            self._gradient.add(self, source, self._keep, self._index, self._shift, again)
        # The logits are those of x_t now, whatever becomes of this round.
        self._keep, self._shift = 1.0, np.zeros_like(self._shift)
        return loss, logits

    def _choose(self, t: int) -> tuple[IndexArray, npt.NDArray[np.float64], float] | None:
        """Vertex (index, value) and step of round t; None if the gradient is not finite."""
        assert self._step is not None
        eta = self._step(t)
        vertex = self._gradient.vertex()
        return None if vertex is None else (*vertex, eta)

    def _remember(self, rows: Rows, batch: IndexArray, weight: float, logits: FloatArray) -> None:
        """Add the batch to the past."""
        before = self.samples[-1] if self.samples else 0
        if isinstance(rows, PassingRows):
            if not (self.sources and self.sources[-1].fits(batch.size)):
                kept = sum(source.count for source in self.sources if source.kept)
                n, d = max(batch.size, kept), rows.X.shape[1]
                X, y = np.empty((n, d), rows.X.dtype), np.empty(n, np.intp)
                form = len(self.u), self.u.dtype
                self.sources.append(Samples(X, y, *form, kept=True))
            self.sources[-1].append(rows.X, rows.y, weight, logits)
        else:
            weights = weight * Rows(rows.X, rows.y, batch).weights
            self._source(rows).add_rows(batch, weights, logits)
        self.samples.append(before + batch.size)

    def _source(self, rows: Rows) -> Samples:
        for source in self.sources:
            if source.holds(rows.X, rows.labels):
                source.attach(rows.X, rows.labels)
                return source
        self.sources.append(Samples(rows.X, rows.labels, len(self.u), self.u.dtype, kept=False))
        return self.sources[-1]

    def _move(self, index: IndexArray, value: npt.NDArray[np.float64], eta: float) -> None:
        """X ← x + eta (v - x), and note what this does to the logits."""
        self.move(index, value, eta)
        rows = len(self.u)
        self._keep, self._index, self._shift = 1.0 - eta, index[:rows], eta * value[:rows]
        # A round that found too much rounding has computed the logits anew.
        drift = 0.0 if self.scalars[2] > _LARGEST_DRIFT else self.scalars[2]
        self.scalars[2] = (1.0 - eta) * drift + 1.0

    # ------------------------------------------------------------------ saving

    def arrays(self) -> Arrays:
        """All of the state; of data in memory, the rows seen are copied."""
        from fastfw.kernels import history

        width, d = self.u.shape
        real = self.u.dtype
        columns: dict[str, list[npt.NDArray[Any]]] = {
            "numbers": [np.empty(0, np.intp)],
            "features": [np.empty((0, d), real)],
            "labels": [np.empty(0, np.intp)],
            "shares": [np.empty(0)],
            "logits": [np.empty((0, width), real)],
        }
        for source in self.sources:
            X, y, rows, weights, logits = source.arrays()
            logits = logits.copy()
            history.move_logits(X, rows, self._keep, self._index, self._shift, logits)
            numbers = source.numbers[: source.count]
            for name, part in zip(
                columns, (numbers, X[rows], y[rows], weights, logits), strict=True
            ):
                columns[name].append(part)
        table = [(source.kept, source.n, source.count) for source in self.sources]
        return {
            **super().arrays(),
            "samples": np.array(self.samples, np.intp),
            "sources": np.array(table, np.intp).reshape(-1, 3),
            **{name: np.concatenate(parts) for name, parts in columns.items()},
        }

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        super().restore(arrays)
        self.samples = arrays["samples"].tolist()
        columns = [arrays[k] for k in ("numbers", "features", "labels", "shares", "logits")]
        table = arrays["sources"]
        total = int(table[:, 2].sum())
        if not (
            (table[:, 2] >= 1).all()
            and (table[:, 2] <= table[:, 1]).all()
            and (table[:, 1] <= np.where(table[:, 0], total, MOST)).all()
            and all(len(column) == total for column in columns)
            and ((arrays["labels"] >= 0) & (arrays["labels"] < self._gradient.n_classes)).all()
            and np.isfinite(arrays["features"]).all()
            and np.isfinite(arrays["shares"]).all()
        ):
            raise ValueError("its past is out of range")
        first = 0
        self.sources = []
        for kept, n, count in table.tolist():
            part = slice(first, first + count)
            first += count
            self.sources.append(
                Samples.restored(bool(kept), n, *(column[part] for column in columns))
            )

    def copy(self) -> Any:
        """Return an independent engine in the same state."""
        other = super().copy()
        other._shift = self._shift.copy()
        other.samples = list(self.samples)
        other.sources = [source.copy() for source in self.sources]
        other._gradient = self._gradient.copy()
        return other
