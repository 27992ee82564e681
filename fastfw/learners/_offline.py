"""What the offline methods share: epochs, mini-batches, `fit`."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, float_dtype, positive_int, sealed
from fastfw._checks import seed as checked_seed
from fastfw.base_learners import seed_bits
from fastfw.learners._base import _checkpoints, _require
from fastfw.learners._momentum import can_fuse
from fastfw.learners._oracles import toward, vertex
from fastfw.learners._results import FitResult
from fastfw.learners._starts import first_point
from fastfw.network import OneHiddenLayer
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.schedules import as_schedule, value_at
from fastfw.streams import Batch, Dataset

__all__ = ["FitResult", "Iteration", "OfflineLearner", "OfflineSteps"]

# Row numbers handed to compiled code at a time, unless one iteration has more.
_ROWS_AT_ONCE = 1 << 18


class Iteration(NamedTuple):
    """What iteration t does: its batch's size, None for all data (an epoch's start), and step."""

    size: int | None
    eta: float


class OfflineSteps:
    """Iterations composed of oracle calls.

    ``direction(x, batch, whole, state)`` gives d, the loss, and the state of the next iteration.
    """

    def __init__(
        self, set: Any, start: FloatArray, direction: Callable[..., Any], gather: Callable[..., Any]
    ) -> None:
        self._set, self._direction, self._gather = set, direction, gather
        self._x, self._total, self._state = start, np.zeros_like(start), None

    def iterations(
        self,
        t: int,
        rows: IndexArray,
        starts: npt.NDArray[np.intp],
        whole: npt.NDArray[np.bool_],
        eta: npt.NDArray[np.float64],
    ) -> tuple[int, npt.NDArray[np.float64]]:
        losses = np.empty(eta.size)
        for i in range(eta.size):
            batch = self._gather(rows[starts[i] : starts[i + 1]])
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
                d, loss, state = self._direction(self._x, batch, bool(whole[i]), self._state)
            losses[i] = loss
            if not np.isfinite(loss):
                return i, losses[: i + 1]
            v = vertex(self._set, d, t + i)
            self._total += self._x
            self._x = toward(self._x, v, float(eta[i])).astype(self._total.dtype, copy=False)
            self._state = state
        return eta.size, losses

    def decision(self) -> FloatArray:
        return self._x.copy()

    def total(self) -> FloatArray:
        return self._total.copy()


class OfflineLearner(ABC):
    """Base of the methods for data that are all there; see `SVRF` for the parameters."""

    #: Exponents of n in the default epoch length and batch size.
    _exponents = (0.5, 0.5)

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        step: object,
        epoch_length: int | None,
        batch_size: int | None,
        start: npt.ArrayLike | None,
        seed: int | tuple[int, ...],
        engine: str,
        dtype: npt.DTypeLike | None,
        init: str | None,
    ) -> None:
        _require(problem, "problem", ("shape", "loss", "gradient"))
        _require(set, "set", ("shape", "lmo", "diameter"))
        if tuple(problem.shape) != tuple(set.shape):
            raise ValueError(
                f"problem and set must have the same shape, but problem.shape is "
                f"{tuple(problem.shape)} and set.shape is {tuple(set.shape)}"
            )
        if engine not in ("fused", "steps"):
            raise ValueError(f"engine must be 'fused' or 'steps', but it is {engine!r}")
        self.problem, self.set = problem, set
        self._own = type(problem) in (SoftmaxRegression, OneHiddenLayer)
        self._mean_problem = problem.with_reduction("mean") if self._own else problem
        self._step = None if step is None else as_schedule(step, "step")
        self._epoch_length, self._batch_size = (
            None if given is None else positive_int(given, name)
            for given, name in ((epoch_length, "epoch_length"), (batch_size, "batch_size"))
        )
        self._start = first_point(problem, set, start, init, checked_seed(seed))
        self._key = np.uint64(seed_bits(checked_seed(seed)))
        self._fused = engine == "fused" and can_fuse(problem, set)
        self._dtype = None if dtype is None else float_dtype(dtype)
        self._decision = self._average = self._start
        self._t = 1

    @abstractmethod
    def _make_fused(self, start: FloatArray) -> Any:
        """Return an engine with ``iterations(t, rows, starts, whole, eta)`` and its points."""

    @abstractmethod
    def _direction(self, x: FloatArray, batch: Any, whole: bool, state: Any) -> Any:
        """Estimate of the gradient from oracle calls, the loss, and the next state."""

    @property
    def engine(self) -> str:
        """The engine in use: "steps" where no compiled code exists for problem and set."""
        return "fused" if self._fused else "steps"

    @property
    def t(self) -> int:
        """Number of the iteration that would come next; 1 before any `fit`."""
        return self._t

    @property
    def average(self) -> FloatArray:
        """Mean of the points of the last `fit`, read-only; x_1 before any."""
        return self._average

    def play(self) -> FloatArray:
        """Return the last point of the last `fit`, read-only; x_1 before any."""
        return self._decision

    def _iteration(self, t: int, n: int, N: int) -> Iteration:
        """Say what iteration t does, for n samples and N iterations."""
        q, b = (
            round(n**e + 0.499) if given is None else given
            for given, e in zip(
                (self._epoch_length, self._batch_size), self._exponents, strict=True
            )
        )
        eta = N**-0.5 if self._step is None else value_at(self._step, t, "step")
        return Iteration(None if (t - 1) % q == 0 else b, eta)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        iterations: int,
        checkpoints: Sequence[int] | npt.NDArray[np.integer[Any]] = (),
        progress: Callable[[int], object] | None = None,
    ) -> FitResult:
        """Minimise the mean loss over the data, from the start, for N iterations.

        Parameters
        ----------
        X : array_like, shape (n, d), or Dataset
            Features; anything else for problems of your own, as long as rows can be picked.
        y : array_like, shape (n,), optional
            Labels; not with a `Dataset`.
        iterations : int
            N.
        checkpoints : sequence of int
            Increasing iteration numbers in 1, ..., N + 1 whose points x_t are kept.
        progress : callable, optional
            Called with the number of iterations done since the last call.

        Returns
        -------
        FitResult
            Losses, times, the last point, the average, counts.

        Raises
        ------
        TypeError, ValueError
            If an argument cannot be used.
        FloatingPointError
            If a loss or an estimate is not finite. In every case the learner is as before.
        """
        N = positive_int(iterations, "iterations")
        keep = _checkpoints(checkpoints, 1)
        if keep and keep[-1] > N + 1:
            raise ValueError(f"checkpoints has {keep[-1]}, but the last iteration is {N}")
        data, pick, n, dtype = self._data(X, y)
        start = np.array(self._start, dtype=dtype, order="C")
        engine = self._make_fused(start) if self._fused else self._make_steps(start, pick)
        plan = [self._iteration(t, n, N) for t in range(1, N + 1)]
        losses, sizes = np.empty(N), np.array([n if i.size is None else i.size for i in plan])
        seconds, elapsed, t = np.empty(N), 0.0, 1
        decisions: list[FloatArray] = []
        cost = np.cumsum([i.size * 2 if i.size is not None else n for i in plan])
        while True:
            if len(decisions) < len(keep) and keep[len(decisions)] == t:
                decisions.append(engine.decision())
                continue
            if t > N:
                break
            stop = min([N + 1, *(k for k in keep[len(decisions) : len(decisions) + 1])])
            fitting = int(np.searchsorted(np.cumsum(sizes[t - 1 : stop - 1]), _ROWS_AT_ONCE))
            part = slice(t - 1, min(t - 1 + max(1, fitting), stop - 1))
            begun = time.perf_counter()
            done, found = self._play(engine, data, n, t, plan[part], sizes[part])
            spent = time.perf_counter() - begun
            losses[part.start : part.start + len(found)] = found
            if done < part.stop - part.start:
                _raise_not_finite(t + done, found[-1])
            seconds[part] = elapsed + spent * np.cumsum(sizes[part]) / sizes[part].sum()
            elapsed += spent
            t = part.stop + 1
            if progress is not None:
                progress(done)
        self._decision = sealed(engine.decision())
        self._average = sealed(engine.total() / start.dtype.type(N))
        self._t = N + 1
        at = np.array(keep, np.intp)
        return FitResult(
            losses=losses,
            seconds=seconds,
            decision=self._decision,
            average=self._average,
            gradient_evaluations=int(cost[-1]),
            lmo_calls=N,
            checkpoints=at,
            decisions=np.array(decisions, start.dtype).reshape(len(keep), *start.shape),
            checkpoint_seconds=np.concatenate([[0.0], seconds])[at - 1],
            checkpoint_evaluations=np.concatenate([[0], cost])[at - 1],
        )

    def _play(
        self, engine: Any, data: Any, n: int, t: int, plan: list[Iteration], sizes: IndexArray
    ) -> Any:
        """Play iterations t, t + 1, ... as planned, on rows drawn for them."""
        from fastfw.kernels import anchored

        whole = np.array([i.size is None for i in plan])
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        rows = np.empty(starts[-1], np.intp)
        anchored.draw_batches(self._key, t, n, whole, starts, rows)
        rows.flags.writeable = False
        given = Rows(data.X, data.y, rows) if self._fused else rows
        return engine.iterations(t, given, starts, whole, np.array([i.eta for i in plan]))

    def _data(self, X: Any, y: Any) -> tuple[Any, Callable[..., Any], int, np.dtype[Any]]:
        """Return data as engines take them, how to pick rows, their number, the points' dtype."""
        if self._own:
            data = X if isinstance(X, Dataset) and y is None else Dataset(X, y)
            data = data.astype(self._dtype or data.dtype)
            self.problem.rows(data)
            return data, lambda rows: Batch._trusted(data, rows), len(data), data.dtype
        if isinstance(X, Dataset):
            X, y = X.X, X.y
        X, y = np.asarray(X), np.asarray(y)
        if len(X) == 0 or len(X) != len(y):
            raise ValueError(f"X and y must be equally long, but they have {len(X)} and {len(y)}")
        single = X.dtype == np.float32
        dtype = self._dtype or np.dtype(np.float32 if single else np.float64)
        return None, lambda rows: (X[rows], y[rows]), len(X), dtype

    def _make_steps(self, start: FloatArray, pick: Callable[..., Any]) -> OfflineSteps:
        return OfflineSteps(self.set, start, self._direction, pick)

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.problem!r} over {self.set!r}, engine {self.engine}>"
        )


def _raise_not_finite(t: int, loss: float) -> None:
    what = f"the loss is {loss}" if not np.isfinite(loss) else "the gradient estimate overflowed"
    raise FloatingPointError(
        f"iteration {t}: {what}; rescale the features, or use dtype=float64. "
        "The learner is as before"
    )
