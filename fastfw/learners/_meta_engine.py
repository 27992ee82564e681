"""Compiled rounds of Algorithm 2 with base learner FTPL on the row-l1 ball."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw.problems import Rows

if TYPE_CHECKING:
    from fastfw.learners._meta import MetaLearner

__all__ = ["FusedMeta"]

# Inner steps whose gradients are made by one matrix product: their rows fit the second-level cache.
_AT_ONCE = 16


class FusedMeta:
    """K sums of directions, updated in place, and the K answers of the current round.

    A round must leave no trace if it fails, but sums are too many to be kept twice. So a bound on
    all numbers of the round is computed from the largest feature beforehand; only where it comes
    near the largest floating-point number is a copy made.
    """

    def __init__(self, learner: MetaLearner, start: FloatArray) -> None:
        self._learner = learner
        self._start = start
        self._mean = learner.problem.reduction == "mean"
        self._features: tuple[FloatArray | None, float] = (None, 0.0)
        self.sum = np.zeros_like(start)
        self._begin(learner.t)

    def _begin(self, t: int) -> None:
        """Begin the epoch of round t with new base learners."""
        from fastfw.kernels import meta

        learner = self._learner
        self._epoch = learner._epoch(t)
        K, (n_classes, d) = self._epoch.inner_steps, self._start.shape
        self._eta, self._rho = learner._coefficients(K)
        self.sums = np.zeros((K, n_classes, d), self._start.dtype)
        self.index = np.zeros((K, n_classes), np.intp)
        self.value = np.zeros((K, n_classes))
        self.bound = np.zeros(1)
        meta.answers(self.sums, *self._noise(t), True, self.index, self.value)
        self._decide()

    def _decide(self) -> None:
        """Algorithm 2, lines 2-6: the decision from the answers."""
        from fastfw.kernels import meta

        self.x = np.empty_like(self._start)
        meta.decision(self._start, self._eta, self.index, self.value, self.x)

    def _noise(self, t: int) -> tuple[float, int, np.uint64, int, float]:
        """Arguments of the kernels that choose the answers of round t."""
        base: Any = self._learner.base
        return (
            base.rate(self._epoch.rounds),
            base.kind,
            np.uint64(self._learner._bits),
            t if base.fresh else self._epoch.first,
            self._learner.set.radius,
        )

    def rounds(
        self, t: int, rows: Rows, starts: npt.NDArray[np.intp]
    ) -> tuple[int, npt.NDArray[np.float64]]:
        """Play rounds; the state is as before the round that fails."""
        n = starts.size - 1
        losses = np.empty(n)
        for i in range(n):
            batch = rows.rows[starts[i] : starts[i + 1]]
            losses[i], well = self._round(t + i, rows, batch)
            if not well:
                return i, losses[: i + 1]
        return n, losses

    def _round(self, t: int, rows: Rows, batch: IndexArray) -> tuple[float, bool]:
        kept = None
        bound = self._bound(rows.X, batch.size)
        if not bound < np.inf:
            kept = self.sums.copy(), self.index.copy(), self.value.copy()
        play = self._whole_batch if self._learner.sub_batch_size is None else self._sub_batches
        with np.errstate(over="ignore", invalid="ignore"):
            loss = play(t, rows, batch) * (1.0 / batch.size if self._mean else 1.0)
            if kept is not None:
                rate = max(1.0, self._noise(t)[0])
                if not (np.isfinite(loss) and np.isfinite(rate * self.sums).all()):
                    self.sums, self.index, self.value = kept
                    return loss, False
        self.bound[0] = bound
        self.sum += self.x
        if self._learner._epoch(t + 1) == self._epoch:
            self._decide()
        else:
            self._begin(t + 1)
        return loss, True

    def _bound(self, X: FloatArray, n: int) -> float:
        """Bound on the sums after the round; infinity where some number might overflow."""
        from fastfw.kernels import ftpl

        if self._features[0] is not X:
            self._features = X, float(ftpl.largest_magnitude(X))
        largest = self._features[1]
        learner = self._learner
        gradient = largest * (1 if self._mean else n)
        if learner.sub_batch_size is not None and learner._recursive:
            gradient *= 2 * self._epoch.inner_steps
        bound = float(self.bound[0]) + gradient
        limit = float(np.finfo(X.dtype).max) / 16.0
        numbers = bound * max(1.0, self._noise(1)[0]), largest * n * learner.set.radius
        return bound if max(numbers) < limit else np.inf

    def _sub_batches(self, t: int, rows: Rows, batch: IndexArray) -> float:
        """Algorithm 2, lines 7-15, with sub-batches."""
        from fastfw.kernels import meta

        size: Any = self._learner.sub_batch_size
        weight = (1.0 if self._mean else batch.size) / size
        rate, kind, seed, after, radius = self._noise(t + 1)
        loss: float = meta.batch_loss(*rows[:2], batch, self.x)
        meta.sub_batch_round(
            *rows[:2], batch, size, weight, self._learner._recursive, self._start,
            self._eta, self._rho, self.sums, rate, kind, seed, t, after, radius,
            self.index, self.value,
        )  # fmt: skip
        return loss

    def _whole_batch(self, t: int, rows: Rows, batch: IndexArray) -> float:
        """Algorithm 2, lines 7-15, with whole batches: one matrix product for many inner steps."""
        from fastfw.kernels import meta

        K, (n_classes, d), dtype = len(self._eta), self._start.shape, self._start.dtype
        n = batch.size
        y = np.ascontiguousarray(rows.y[batch])
        At = np.empty((d, n), dtype)
        meta.gather_transposed(rows.X, batch, At)
        Z = self._start @ At
        R = np.zeros((min(K, _AT_ONCE), n_classes, n), dtype)
        G = np.empty((len(R), n_classes, d), dtype)
        weight = 1.0 / n if self._mean else 1.0
        for first in range(0, K, _AT_ONCE):
            steps = min(_AT_ONCE, K - first)
            if steps < len(R):
                R[steps - 1] = R[-1]  # where the average is looked for
            meta.whole_batch_residuals(
                At, y, weight, self._learner._recursive, self._eta, self._rho,
                self.index, self.value, Z, first, R[:steps],
            )  # fmt: skip
            np.matmul(R[:steps].reshape(-1, n), At.T, out=G[:steps].reshape(-1, d))
            meta.add_and_answer(
                G[:steps], self.sums, first, *self._noise(t + 1), self.index, self.value
            )
        loss: float = meta.logits_loss(Z, y)
        return loss

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        names = ("sums", "index", "value", "x", "sum", "bound")
        return {name: getattr(self, name) for name in names}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        d = self._start.shape[1]
        if not (
            ((arrays["index"] >= 0) & (arrays["index"] < d)).all()
            and (abs(arrays["value"]) == self._learner.set.radius).all()
            and arrays["bound"][0] >= np.abs(arrays["sums"]).max()
            and np.isfinite(arrays["bound"]).all()
        ):
            raise ValueError("its state is out of range")
        for name, own in self.arrays().items():
            own[...] = arrays[name]

    def copy(self) -> FusedMeta:
        other = copy.copy(self)
        for name, own in self.arrays().items():
            setattr(other, name, own.copy())
        return other

    def decision(self) -> FloatArray:
        return self.x

    def total(self) -> FloatArray:
        return self.sum.copy()
