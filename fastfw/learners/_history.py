"""What OFW and OAW share: the past, and the compiled engine that adds up its gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._csr import csr_features, csr_parts, is_sparse, stacked, take_rows
from fastfw._layout import is_scale
from fastfw.learners._base import OnlineLearner
from fastfw.learners._engines import StepsEngine
from fastfw.learners._gradients import PastGradient
from fastfw.learners._lazy import Arrays, LazyEngine
from fastfw.learners._learner import MOST, State
from fastfw.learners._oracles import evaluate, slope
from fastfw.learners._past import Past, Samples
from fastfw.learners.compiled import PAST
from fastfw.problems import Classification, Rows, all_rows
from fastfw.schedules import power_schedule
from fastfw.streams import Batch, Dataset

__all__ = ["FusedPast", "HistoryLearner"]

# Logits are computed anew once rounding may have grown to so many units in the last place.
_LARGEST_DRIFT = 64.0


class PassingRows(Rows):
    """Rows of a batch that will not come back."""


class HistoryLearner(OnlineLearner):
    """Base of the methods that ask for the gradients of all losses so far, every round."""

    _compiled = PAST
    _fuses_sparse = True
    _threaded = True
    _growing = frozenset(
        (
            *("samples", "sources", "numbers", "shares", "logits", "features", "labels"),
            *("entries", "columns", "ends"),
            *("vertices", "weights"),
        )
    )

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        step: object = None,
        start: npt.ArrayLike | None = None,
        seed: int | tuple[int, ...] = 0,
        engine: str = "fused",
        dtype: npt.DTypeLike | None = None,
        init: str | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(
            problem,
            set,
            schedules={"step": power_schedule(2.0, 1.0) if step is None else step},
            start=start,
            seed=seed,
            engine=engine,
            dtype=dtype,
            init=init,
            threads=threads,
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

    def _cost(self, t: int, k: int, batch_size: int) -> tuple[int, int]:
        engine: Any = self._engine
        past = engine.state["past"] if isinstance(engine, StepsEngine) else engine
        return int(sum(past.samples[t - 1 : t - 1 + k])), k

    def _advance(
        self, rows: Rows, starts: npt.NDArray[np.intp], batch: Any, dtype: np.dtype[Any]
    ) -> npt.NDArray[np.float64]:
        if not isinstance(batch, Batch | Dataset):
            rows = PassingRows(*rows)
        return super()._advance(rows, starts, batch, dtype)

    def _fresh(self, engine: str, state: State) -> Any:
        made: Any = super()._fresh(engine, state)
        return made.suited(True) if engine == "fused" and "columns" in state else made

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
    """The gradient of the whole past from kept outputs, a vertex, a step.

    Samples of one data set in memory are kept as row numbers, each once; those of other
    batches are copied. What the first layer gives for them, logits of softmax regression, follows
    the iterate step by step, see ``kernels.history``: it is ``keep * logits + shift A[:, index]``
    until a round has gone through them.
    """

    def __init__(
        self,
        problem: Any,
        set: Any,
        start: FloatArray,
        step: Callable[[int], float] | None = None,
        threads: int = 1,
    ) -> None:
        first = problem.first_layer
        u = start.reshape(-1)[: math.prod(first)].reshape(first).copy()
        # scalars: scale, weight of the sum, rounding in the logits
        super().__init__(first, start, u, (1.0, 0.0, 0.0), 2)
        self._start = start
        self._weight, self._step = problem.weight, step
        #: Number of samples after each round.
        self.samples: list[int] = []
        self.sources: list[Samples] = []
        self._make_gradient = partial(PastGradient, problem, set, threads=threads)
        self._gradient = self._make_gradient(u, False)
        self._last = self._gradient.still

    def _suits(self, sparse: bool) -> bool:
        return super()._suits(sparse) or bool(self.samples)  # rows of the other kind are converted

    def lay(self, sparse: bool) -> None:
        """As `LazyEngine.lay`."""
        super().lay(sparse)
        self._gradient = self._make_gradient(self.u, sparse)

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Play rounds t, t + 1, ..., see `Engine`."""
        n = starts.size - 1
        for i, (first, end) in enumerate(pairwise(starts.tolist())):
            batch = self._laid(type(rows)(rows.X, rows.y, rows.rows[first:end]))
            weight = self._weight(end - first)
            weights = weight * batch.weights
            loss, logits = self._add_up(batch, weights)
            losses[i] = loss * weight
            vertex = self._choose(t + i) if math.isfinite(loss) else None
            if vertex is None:
                return i
            self._remember(batch, weights, logits)
            self._move(*vertex)
            losses[n] = i + 1
        return n

    def _laid(self, batch: Rows) -> Rows:
        """Return a batch whose features are of the kind that the past has."""
        if is_sparse(batch.X) == self.sparse:
            return batch
        X, labels = batch.gathered(), batch.labels[batch.rows]
        y = (labels, batch.weights) if isinstance(batch.y, tuple) else labels
        if not self.sparse:
            X = X.toarray()
            X.flags.writeable = False
        else:
            from scipy import sparse

            X = csr_features(sparse.csr_array(X), dtype=X.dtype)
        return PassingRows(X, y, all_rows(batch.rows.size))

    def _add_up(self, batch: Rows, weights: npt.NDArray[np.float64]) -> tuple[float, FloatArray]:
        """Gradients of the batch and of the past at x_t; return the batch's loss and logits."""
        loss: float
        loss, logits = self._gradient.newest(self, batch, weights)
        if not math.isfinite(loss):
            return loss, logits
        again = bool(self.scalars[2] > _LARGEST_DRIFT)
        for source in self.sources:
            self._gradient.add(self, source, self._last, again)
        # The logits are those of x_t now, whatever becomes of this round.
        self._last = self._gradient.still
        return loss, logits

    def _choose(self, t: int) -> tuple[IndexArray, npt.NDArray[np.float64], float] | None:
        """Vertex (index, value) and step of round t; None if the gradient is not finite."""
        assert self._step is not None
        eta = self._step(t)
        vertex = self._gradient.vertex()
        return None if vertex is None else (*vertex, eta)

    def _remember(self, batch: Rows, weights: npt.NDArray[np.float64], logits: FloatArray) -> None:
        """Add the batch to the past."""
        before = self.samples[-1] if self.samples else 0
        size = batch.rows.size
        if isinstance(batch, PassingRows):
            if not (self.sources and self.sources[-1].fits(size)):
                n = max(size, sum(source.count for source in self.sources if source.kept))
                X = batch.X if self.sparse else np.empty((n, self._d), batch.X.dtype)
                y = np.empty(n, np.intp)
                self.sources.append(Samples(X, y, self._n_rows, self.u.dtype, kept=True, n=n))
            self.sources[-1].append(batch.X, batch.labels, weights, logits)
        else:
            self._source(batch.X, batch.labels).add_rows(batch.rows, weights, logits)
        self.samples.append(before + size)

    def _source(self, X: Any, y: IndexArray) -> Samples:
        for source in self.sources:
            if source.holds(X, y):
                source.attach(X, y)
                return source
        self.sources.append(Samples(X, y, self._n_rows, self.u.dtype, kept=False))
        return self.sources[-1]

    def _move(self, index: IndexArray, value: npt.NDArray[np.float64], eta: float) -> None:
        """X ← x + eta (v - x), and note what this does to the logits."""
        from fastfw.kernels import l1, rounds

        n, (s, weight, drift) = self._n_rows, self.scalars.tolist()
        row, place = all_rows(n), index[:n]
        places = place * n + row if self.sparse else row * self._d + place
        s, weight = l1.step(
            self.u, self.low, self.sum, self.u[:0], s, weight + s, places, value[:n], eta,
            self.in_use, self.known,
        )  # fmt: skip
        if self.tails.size:
            rounds.move_tail(self.tails[0], self.tails[1], index[n:], value[n:], eta)
        self._last = 1.0 - eta, index[:n], eta * value[:n]
        # A round that found too much rounding has computed the logits anew.
        drift = 0.0 if drift > _LARGEST_DRIFT else drift
        self.scalars[:] = s, weight, (1.0 - eta) * drift + 1.0

    # ------------------------------------------------------------------ saving

    def arrays(self) -> Arrays:
        """All of the state; of data in memory, the rows seen are copied."""
        from fastfw.kernels import history

        real, none = self.u.dtype, np.empty(0, np.intp)
        numbers, labels, shares = [none], [none], [np.empty(0)]
        logits, features = [np.empty((0, self._n_rows), real)], []
        for source in self.sources:
            A, y, rows, weights, own = source.arrays
            X, own = source.X, own.copy()
            history.move_outputs(A, rows, *self._last, own)
            logits.append(own)
            numbers.append(source.numbers[: source.count])
            features.append(take_rows(X, rows) if self.sparse else X[rows])
            labels.append(y[rows])
            shares.append(weights)
        table = [(source.kept, source.n, source.count) for source in self.sources]
        found: Arrays = {
            **self._as_saved(self._matrices), "scalars": self.scalars, "tails": self.tails,
        }  # fmt: skip
        return {
            **{name: a for name, a in found.items() if a.size},
            "samples": np.array(self.samples, np.intp),
            "sources": np.array(table, np.intp).reshape(-1, 3),
            "numbers": np.concatenate(numbers), **self._saved_features(features),
            "labels": np.concatenate(labels), "shares": np.concatenate(shares),
            "logits": np.concatenate(logits),
        }  # fmt: skip

    def _saved_features(self, features: list[Any]) -> Arrays:
        """Return features of the past, by name."""
        real = self.u.dtype
        if not self.sparse:
            return {"features": np.concatenate([np.empty((0, self._d), real), *features])}
        if not features:
            none = np.empty(0, np.intp)
            return {"entries": np.empty(0, real), "columns": none, "ends": none}
        indptr, indices, data = csr_parts(stacked(features))
        whole = indices.astype(np.intp), indptr[1:].astype(np.intp)
        return {"entries": data, "columns": whole[0], "ends": whole[1]}

    def _read_features(self, arrays: Arrays) -> Any:
        """Return what `_saved_features` gave."""
        if not self.sparse:
            return arrays["features"]
        from scipy import sparse

        indptr = np.concatenate([[0], arrays["ends"]])
        parts = arrays["entries"], arrays["columns"], indptr
        shape = (indptr.size - 1, self._d)
        return csr_features(sparse.csr_array(parts, shape=shape), dtype=self.u.dtype)

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless kernels could not go on from it."""
        if not is_scale(arrays["scalars"][0], 32.0):
            raise ValueError("its state is out of range")
        for name in self._matrices:
            if name in arrays:
                setattr(self, name, self._stored(arrays[name]))
        self.scalars[...] = arrays["scalars"]
        if self.tails.size:
            self.tails[...] = arrays["tails"]
        self._find_support()
        self.samples = arrays["samples"].tolist()
        features = self._read_features(arrays)
        columns = [arrays[k] for k in ("numbers", "labels", "shares", "logits")]
        columns.insert(1, features)
        table = arrays["sources"]
        total = int(table[:, 2].sum())
        if not (
            (table[:, 2] >= 1).all()
            and (table[:, 2] <= table[:, 1]).all()
            and (table[:, 1] <= np.where(table[:, 0], total, MOST)).all()
            and all(column.shape[0] == total for column in columns)
            and ((arrays["labels"] >= 0) & (arrays["labels"] < self._gradient.n_classes)).all()
        ):
            raise ValueError("its past is out of range")
        if self.sparse:
            self._gradient.see(features)
        first = 0
        self.sources = []
        for kept, n, count in table.tolist():
            part = np.arange(first, first + count)
            first += count
            number, X, *rest = (
                take_rows(column, part) if is_sparse(column) else column[part] for column in columns
            )
            self.sources.append(Samples.restored(bool(kept), n, number, X, *rest))

    def copy(self) -> Any:
        """Return an independent engine in the same state."""
        other = super().copy()
        other.samples = list(self.samples)
        other.sources = [source.copy() for source in self.sources]
        other._gradient = self._gradient.copy()
        return other
