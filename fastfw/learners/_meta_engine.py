"""Compiled rounds of Algorithm 2 with base learner FTPL on the row-l1 ball."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._layout import padded, unpadded
from fastfw._threads import in_team
from fastfw.base_learners import BaseLearner
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.schedules import Schedules
from fastfw.sets import RowL1Ball

__all__ = ["Epoch", "FusedMeta", "MetaPlan"]

# Rows of residuals in one matrix product: what it works on fits the second-level cache.
_ROWS = 192
# Share of nonzero features up to which skipping the zeros beats the dense matrix product.
_SPARSE = 0.4
# Bytes in a cache line: vectors that cross from one to the next take twice as long.
_LINE = 64


class Epoch(NamedTuple):
    """Rounds first, ..., first + rounds - 1, played with the same K base learners."""

    first: int
    rounds: int
    inner_steps: int


class MetaPlan(NamedTuple):
    """What a learner by Algorithm 2 was told; see `MORGFW`."""

    rounds: int | None
    inner_steps: int | None
    theory: Callable[[int], int]
    """K for an epoch of so many rounds."""
    schedules: Schedules
    base: BaseLearner
    bits: int
    """Of the seed."""
    sub_batch_size: int | None
    recursive: bool
    """Whether the estimator is the recursive one (MORGFW) or an average (Meta-Frank-Wolfe)."""

    def epoch(self, t: int) -> Epoch:
        """Return the epoch of round t: all rounds, or those of the doubling trick."""
        first, n = 1, self.rounds
        if n is None:
            first = n = 1 << (t.bit_length() - 1)  # epochs begin with rounds 1, 2, 4, ...
        return Epoch(first, n, self.inner_steps or self.theory(n))

    def coefficients(self, inner_steps: int) -> tuple[FloatArray, FloatArray]:
        """Step and momentum of all inner steps."""
        K = range(1, inner_steps + 1)
        eta, rho = (
            np.fromiter((self.schedules.at(name, k) for k in K), np.float64, inner_steps)
            for name in ("step", "momentum")
        )
        return eta, rho


class FusedMeta:
    """K sums of directions, updated in place, and the K answers of the current round.

    A round must leave no trace if it fails, but sums are too many to be kept twice. So a bound on
    all numbers of the round is computed from the largest feature beforehand; only where it comes
    near the largest floating-point number is a copy made.
    """

    def __init__(
        self,
        problem: SoftmaxRegression,
        ball: RowL1Ball,
        start: FloatArray,
        plan: MetaPlan,
        t: int,
        threads: int,
    ) -> None:
        self._plan, self._threads, self._radius = plan, threads, ball.radius
        self._d = start.shape[1]
        self._start = padded(start, start.dtype)
        shape = self._start.shape
        self._space = _aligned(shape, start.dtype), _aligned(shape, start.dtype)
        self._mean = problem.reduction == "mean"
        #: The features seen last, which others hold, and the largest magnitude among them.
        self._features: tuple[Callable[[], FloatArray | None], float] = (lambda: None, 0.0)
        self.sum = np.zeros(self._start.shape)
        epoch = plan.epoch(t)
        self._begin(t, epoch, plan.coefficients(epoch.inner_steps))

    def _begin(self, t: int, epoch: Epoch, coefficients: tuple[FloatArray, FloatArray]) -> None:
        """Begin the epoch of round t with new base learners."""
        from fastfw.kernels import meta

        self._epoch = epoch
        self._eta, self._rho = coefficients
        K, n_classes, d = epoch.inner_steps, len(self._start), self._d
        dtype = self._start.dtype
        self.sums = _aligned((K, *self._start.shape), dtype)
        self.sums[...] = 0.0
        self.index = np.zeros((K, n_classes), np.intp)
        self.value = np.zeros((K, n_classes))
        self.bound = np.zeros(1)
        meta.answers(self.sums, d, *self._noise(t), self.index, self.value)
        self._decide()

    def _decide(self) -> None:
        """Algorithm 2, lines 2-6: the decision from the answers."""
        from fastfw.kernels import meta

        self.x = np.empty_like(self._start)
        meta.decision(self._start, self._eta, self.index, self.value, self.x)

    def _noise(self, t: int) -> tuple[float, int, np.uint64, int, float, bool]:
        """Arguments of the kernels that choose the answers of round t."""
        base: Any = self._plan.base
        return (
            base.rate(self._epoch.rounds),
            base.kind,
            np.uint64(self._plan.bits),
            t if base.fresh else self._epoch.first,
            self._radius,
            True,
        )

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Play rounds t, t + 1, ..., see `Engine`."""
        n = starts.size - 1
        for i in range(n):
            batch = rows.rows[starts[i] : starts[i + 1]]
            losses[i], well = self._round(t + i, rows, batch)
            if not well:
                return i
            losses[n] = i + 1
        return n

    def _round(self, t: int, rows: Rows, batch: IndexArray) -> tuple[float, bool]:
        following = self._plan.epoch(t + 1)
        coefficients = self._eta, self._rho
        if following != self._epoch:  # now, as schedules of the user's own may raise
            coefficients = self._plan.coefficients(following.inner_steps)
        kept = None
        bound = self._bound(rows.X, batch.size)
        if not bound < np.inf:
            kept = self.sums.copy(), self.index.copy(), self.value.copy()
        play = self._whole_batch if self._plan.sub_batch_size is None else self._sub_batches
        with np.errstate(over="ignore", invalid="ignore"):
            loss = play(t, rows, batch) * (1.0 / batch.size if self._mean else 1.0)
            if kept is not None:
                rate = max(1.0, self._noise(t)[0])
                if not (np.isfinite(loss) and np.isfinite(rate * self.sums).all()):
                    self.sums[...], self.index, self.value = kept
                    return loss, False
                bound = float(np.abs(self.sums).max())
        self.bound[0] = bound
        self.sum += self.x
        if following == self._epoch:
            self._decide()
        else:
            self._begin(t + 1, following, coefficients)
        return loss, True

    def _bound(self, X: FloatArray, n: int) -> float:
        """Bound on the sums after the round; infinity where some number might overflow."""
        from fastfw.kernels import ftpl

        if self._features[0]() is not X:
            self._features = weakref.ref(X), float(ftpl.largest_magnitude(X))
        largest = self._features[1]
        gradient = largest * (1 if self._mean else n)
        if self._plan.sub_batch_size is not None and self._plan.recursive:
            gradient *= 2 * self._epoch.inner_steps
        bound = float(self.bound[0]) + gradient
        limit = float(np.finfo(X.dtype).max) / 16.0
        numbers = bound * max(1.0, self._noise(1)[0]), largest * n * self._radius
        return bound if max(numbers) < limit else np.inf

    def _sub_batches(self, t: int, rows: Rows, batch: IndexArray) -> float:
        """Algorithm 2, lines 7-15, with sub-batches."""
        from fastfw.kernels import sub_batches
        from fastfw.kernels._tiles import GROUP

        size: Any = self._plan.sub_batch_size
        weight = (1.0 if self._mean else batch.size) / size
        samples = np.empty(len(self._eta) * (-(-size // GROUP) * GROUP), np.intp)
        sub_batches.draw_samples(batch, size, np.uint64(self._plan.bits), t, samples)
        samples.flags.writeable = False  # as all row numbers, so that kernels exist once
        K = len(self._eta)
        threads = min(self._threads, max(-(-batch.size // GROUP), len(self._start)))
        P = np.zeros((len(self._start), sub_batches.columns_together(size)), self._start.dtype)
        answers = np.empty_like(self.index), np.empty_like(self.value)
        words = np.zeros(3 + 2 * K, np.int64)
        team = np.empty(threads), words
        given, noise = (*rows[:2], batch, self.x, samples, size), self._noise(t + 1)
        u, D = self._space

        def lead() -> float:
            loss: float = sub_batches.sub_batch_round(
                *given, weight, self._plan.recursive, self._start, self._eta, self._rho,
                self.sums, *noise, self.index, self.value, u, D, P, *answers, team,
            )  # fmt: skip
            return loss

        def assist() -> None:
            sub_batches.help_round(*given, self._rho, self.sums, *noise, D, P, *answers, team)

        return float(in_team(lead, assist, words, threads))

    def _whole_batch(self, t: int, rows: Rows, batch: IndexArray) -> float:
        """Algorithm 2, lines 7-15, with whole batches: one matrix product for many inner steps."""
        from fastfw.kernels import whole_batch

        K, d, n = len(self._eta), self._d, batch.size
        dtype = self._start.dtype
        y = np.ascontiguousarray(rows.y[batch])
        At = np.empty((d, n), dtype)
        whole_batch.gather_transposed(rows.X, batch, At)
        x_1 = self._start[:, :d]
        Z = x_1 @ At if x_1.any() else np.zeros((len(x_1), n), dtype)
        rest = len(self._start) - 1
        product, lanes = _product(At)
        at_once = min(K, max(1, lanes // rest))
        R = np.zeros((at_once, rest, n), dtype)
        G = np.empty((at_once, rest, d), dtype)
        weight = 1.0 / n if self._mean else 1.0
        for first in range(0, K, at_once):
            steps = min(at_once, K - first)
            R[steps - 1] = R[-1]  # the step before, where the average is looked for
            whole_batch.whole_batch_residuals(
                At, y, weight, self._plan.recursive, self._eta, self._rho,
                self.index, self.value, Z, first, R[:steps],
            )  # fmt: skip
            product(R[:steps].reshape(-1, n), G[:steps].reshape(-1, d))
            whole_batch.add_and_answer(
                G[:steps], self.sums, first, *self._noise(t + 1), self.index, self.value
            )
        loss: float = whole_batch.logits_loss(Z, y)
        return loss

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        names = ("sums", "index", "value", "x", "sum", "bound")
        return {name: getattr(self, name) for name in names}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave, unless kernels could not go on from it."""
        if not (
            ((arrays["index"] >= 0) & (arrays["index"] < self._d)).all()
            and (abs(arrays["value"]) == self._radius).all()
            and 1.001 * arrays["bound"][0] >= np.abs(arrays["sums"]).max()  # rounded sums
            and np.isfinite(arrays["bound"]).all()
        ):
            raise ValueError("its state is out of range")
        for name, own in self.arrays().items():
            own[...] = arrays[name]

    def copy(self) -> FusedMeta:
        other = copy.copy(self)
        for name, own in self.arrays().items():
            setattr(other, name, own.copy())
        other.sums = _aligned(self.sums.shape, self.sums.dtype)
        other.sums[...] = self.sums
        shape, dtype = self._start.shape, self._start.dtype
        other._space = _aligned(shape, dtype), _aligned(shape, dtype)
        return other

    def decision(self) -> FloatArray:
        return unpadded(self.x, self._d)

    def total(self) -> FloatArray:
        return unpadded(self.sum, self._d).copy()


def _product(At: FloatArray) -> tuple[Callable[[FloatArray, FloatArray], object], int]:
    """Return a function that writes R A to its second argument, and its favourite number of rows.

    Images are mostly zeros: where the transposed batch is, only its nonzero features are used.
    """
    from fastfw.kernels import whole_batch
    from fastfw.kernels._gather import SPREAD

    d, n = At.shape
    nonzero = int(np.count_nonzero(At))
    if nonzero > _SPARSE * At.size:
        return lambda R, G: np.matmul(R, At.T, out=G), _ROWS
    values = np.empty(nonzero + 1, At.dtype)
    places = np.empty(nonzero + 1, np.intp)
    starts = np.empty(-(-n // whole_batch.SAMPLES) * d + 1, np.intp)
    whole_batch.compress(At, values, places, starts)
    width = SPREAD // At.itemsize

    space: dict[int, tuple[FloatArray, FloatArray]] = {}

    def product(R: FloatArray, G: FloatArray) -> None:
        lanes = -(-len(R) // width) * width
        if lanes not in space:
            space[lanes] = _aligned((n, lanes), At.dtype), _aligned((d, lanes), At.dtype)
        Rt, Gt = space[lanes]
        whole_batch.sparse_gradients(values, places, starts, R, Rt, Gt, G)

    return product, width


def _aligned(shape: tuple[int, ...], dtype: npt.DTypeLike) -> FloatArray:
    """Return an uninitialised array that begins at a cache line."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.empty(size + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + size].view(dtype).reshape(shape)
