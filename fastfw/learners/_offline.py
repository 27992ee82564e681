"""What the offline methods share: epochs, mini-batches, `fit`."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, float_dtype, freeze, seed_bits
from fastfw._chunks import Chunks
from fastfw._csr import is_sparse, sound_csr
from fastfw.custom import what_is_not_finite
from fastfw.learners._engines import Choice, OfflineSteps
from fastfw.learners._learner import MOST, Learner, State, count
from fastfw.learners._results import FitResult
from fastfw.learners._streaming import checked_rounds
from fastfw.learners.compiled import LINEAR, LinearEngine, Plan
from fastfw.network import OneHiddenLayer
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.streams import Dataset, batches, dataset

__all__ = ["FitResult", "Iteration", "OfflineLearner"]

# Row numbers handed to compiled code at a time, unless one iteration has more.
_ROWS_AT_ONCE = 1 << 18


class Iteration(NamedTuple):
    """What iteration t does: its batch's size, None for all data (an epoch's start), and step."""

    size: int | None
    eta: float


class OfflineLearner(Learner):
    """Base of the methods for data that are all there; see `SVRF` for the parameters."""

    _made = (*Learner._made, "_decision", "_average")

    _compiled = LINEAR
    #: Exponents of n in the default epoch length and batch size.
    _exponents = (0.5, 0.5)
    #: What the engine of compiled rounds has to know of the method.
    _plan: ClassVar[Plan] = Plan()

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
        super().__init__(
            problem, set, schedules={} if step is None else {"step": step}, start=start, seed=seed,
            engine=engine, dtype=dtype, init=init,
        )  # fmt: skip
        self._own = type(problem) in (SoftmaxRegression, OneHiddenLayer)
        self._mean_problem = problem.with_reduction("mean") if self._own else problem
        self._epoch_length, self._batch_size = (
            None if given is None else count(given, name)
            for given, name in ((epoch_length, "epoch_length"), (batch_size, "batch_size"))
        )
        self._key = np.uint64(seed_bits(self._seed))
        self._n = 0
        self._resume(None)

    def _can_fuse(self) -> bool:
        # functions of (x, batch) get pairs here, which compiled rounds do not make
        own = type(self.problem) in (SoftmaxRegression, OneHiddenLayer)
        rows = own or getattr(self.problem, "takes_pairs", False)
        return rows and super()._can_fuse()

    @abstractmethod
    def _direction(
        self, x: FloatArray, batch: Any, whole: bool, point: FloatArray, gradient: FloatArray
    ) -> Any:
        """Estimate of the gradient from oracle calls, the loss, and what to remember next."""

    def _options(self) -> dict[str, Any]:
        """Further arguments of the constructor, as JSON holds them."""
        return {"epoch_length": self._epoch_length, "batch_size": self._batch_size}

    @property
    def engine(self) -> Choice:
        """The engine in use: "steps" where no compiled code exists for problem, set and data."""
        return Choice("steps", "") if isinstance(self._engine, OfflineSteps) else super().engine

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

    def observe(self, batch: Any) -> NoReturn:
        """Refuse: the method needs all data at once.

        Raises
        ------
        TypeError
            Always, with what to call instead.
        """
        self._refuse("observe")

    def run(self, stream: Any, **options: Any) -> NoReturn:
        """Refuse, as `observe`."""
        self._refuse("run")

    def _refuse(self, verb: str) -> NoReturn:
        name = type(self).__name__
        raise TypeError(
            f"{name} goes through all data where an epoch starts, so it cannot {verb} batches as "
            f"they come; use {name}(...).fit(X, y, iterations=N), or an online method such as ORGFW"
        )

    def _state(self) -> dict[str, Any]:
        state = super()._state()
        return {**state, "samples": np.array(self._n, np.intp)} if state else {}

    def _read(self, engine: Any, stored: dict[str, Any]) -> dict[str, Any]:
        found = stored.pop("samples")
        self._n = 0 if found.shape or found.dtype.kind != "i" else int(found.read())
        if not 1 <= self._n <= MOST:
            raise ValueError("its number of samples is out of range")
        return super()._read(engine, stored)

    def _fresh(self, engine: str, state: State) -> Any:
        real = state["u" if engine == "fused" else "gradient"].dtype
        if real != (real if self._dtype is None else self._dtype):
            raise ValueError(f"its state has dtype {real}, not {self._dtype}")
        return self._make(float_dtype(real), engine == "fused")

    def _resume(self, engine: Any) -> None:
        self._decision = self._average = self._start
        if engine is not None:
            self._commit(engine, self._t - 1, self._n)

    def _make(self, dtype: np.dtype[Any], fused: bool) -> Any:
        """Return an engine before its first iteration."""
        start = self._begin(dtype)
        if fused:
            return LinearEngine(self._mean_problem, self.set, start, self._plan)
        return OfflineSteps(self.set, start)

    def _commit(self, engine: Any, N: int, n: int) -> None:
        """Make the outcome of N iterations on n samples the learner's own."""
        decision = freeze(engine.decision())
        average = freeze((engine.total() / N).astype(decision.dtype, copy=False))
        with self._guard.state:
            self._engine, self._t, self._n = engine, N + 1, n
            self._decision, self._average = decision, average

    def _iteration(self, t: int, n: int, N: int) -> Iteration:
        """Say what iteration t does, for n samples and N iterations."""
        q, b = (
            round(n**e + 0.499) if given is None else given
            for given, e in zip(
                (self._epoch_length, self._batch_size), self._exponents, strict=True
            )
        )
        eta = self._schedules.at("step", t) if self._schedules else N**-0.5
        return Iteration(None if (t - 1) % q == 0 else b, eta)

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        iterations: int,
        checkpoints: Sequence[int] | npt.NDArray[np.integer[Any]] = (),
        resume: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> FitResult:
        """Minimise the mean loss over the data by iterations 1, ..., N.

        Parameters
        ----------
        X : array_like, shape (n, d), Dataset, Dask array, files or chunks
            Features; anything else for problems of your own, as long as rows can be picked. What is
            not in memory, see `epoch_stream`, is gone through chunk by chunk where an epoch starts,
            and mini-batches of as many iterations at a time as may be held are collected.
        y : array_like, shape (n,), optional
            Labels; not with a `Dataset`.
        iterations : int
            N.
        checkpoints : sequence of int
            Increasing iteration numbers up to N + 1 whose points x_t are kept.
        resume : bool
            Whether to go on with iteration `t`, after the last `fit` or a `load`, in place of
            beginning at the start again. With a `step` given, the same data and the same seed, a
            fit in parts gives the same bits as one of N iterations; without one each part has
            the step 1/√N of its own N.
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
        return self._guard.alone(self._fit, X, y, iterations, checkpoints, resume, progress)

    def _fit(
        self,
        X: Any,
        y: Any,
        iterations: int,
        checkpoints: Iterable[Any],
        resume: bool,
        progress: Callable[[int], object] | None,
    ) -> FitResult:
        N = count(iterations, "iterations")
        resume = resume and self._engine is not None
        first = self._t if resume else 1
        if first > N:
            raise ValueError(f"iterations counts from the start: to resume at {first}, it is {N}")
        keep = checked_rounds(checkpoints, first)
        if keep and keep[-1] > N + 1:
            raise ValueError(f"checkpoints has {keep[-1]}, but the last iteration is {N}")
        data, picked, n, dtype = self._data(X, y, self._decision.dtype if resume else self._dtype)
        if resume and n != self._n:
            raise ValueError(f"X has {n} samples; the fit to be resumed had {self._n}")
        lazy = isinstance(data, Chunks)
        engine = self._engine.copy() if resume else self._make(dtype, self._fused and not lazy)
        if lazy and not isinstance(engine, OfflineSteps):
            raise TypeError(
                "X is in chunks, but the fit to be resumed was of data in memory: go on with those"
            )
        losses, seconds = np.empty(N + 1 - first), np.empty(N + 1 - first)
        plan = [self._iteration(t, n, N) for t in range(first, N + 1)]
        sizes = np.array([n if i.size is None else i.size for i in plan])
        elapsed, t = 0.0, first
        decisions: list[FloatArray] = []
        cost = np.cumsum([i.size * 2 if i.size is not None else n for i in plan])
        while True:
            if len(decisions) < len(keep) and keep[len(decisions)] == t:
                decisions.append(engine.decision())
                continue
            if t > N:
                break
            stop = min([N + 1, *(k for k in keep[len(decisions) : len(decisions) + 1])])
            i, end = t - first, stop - first
            fitting = int(np.searchsorted(np.cumsum(sizes[i:end]), _ROWS_AT_ONCE))
            part = slice(i, min(i + max(1, fitting), end))
            begun = time.perf_counter()
            done, found = self._play(engine, data, picked, n, t, plan[part], sizes[part])
            spent = time.perf_counter() - begun
            losses[part.start : part.start + len(found)] = found
            if done < part.stop - part.start:
                advice = "; rescale the features, or use dtype=float64"
                what = what_is_not_finite(self.problem, found[-1], advice)
                raise FloatingPointError(f"iteration {t + done}: {what}. The learner is as before")
            seconds[part] = elapsed + spent * np.cumsum(sizes[part]) / sizes[part].sum()
            elapsed += spent
            t = first + part.stop
            if progress is not None:
                progress(done)
        self._commit(engine, N, n)
        at = np.array(keep, np.intp)
        return FitResult(
            losses=losses,
            seconds=seconds,
            decision=self._decision,
            average=self._average,
            gradient_evaluations=int(cost[-1]),
            lmo_calls=len(plan),
            checkpoints=at,
            decisions=np.array(decisions, dtype).reshape(len(keep), *self._start.shape),
            checkpoint_seconds=np.concatenate([[0.0], seconds])[at - first],
            checkpoint_evaluations=np.concatenate([[0], cost])[at - first],
        )

    def _play(
        self,
        engine: Any,
        data: Any,
        picked: Callable[..., Iterator[Any]],
        n: int,
        t: int,
        plan: list[Iteration],
        sizes: IndexArray,
    ) -> Any:
        """Play iterations t, t + 1, ... as planned, on rows drawn for them."""
        from fastfw.kernels import rng

        whole = np.array([i.size is None for i in plan])
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        rows = np.empty(starts[-1], np.intp)
        rng.draw_batches(self._key, t, n, whole, starts, rows)
        rows.flags.writeable = False
        eta = np.array([i.eta for i in plan])
        if isinstance(engine, OfflineSteps):
            parts = zip(whole, pairwise(starts), strict=True)
            given = picked(None if every else rows[slice(*ends)] for every, ends in parts)
            return engine.iterations(self._direction, t, given, whole, eta)
        # alpha, beta, gamma, lambda, eta, and whether d and x are kept
        back = np.where(whole, 0.0, 1.0)
        one, none = np.ones_like(eta), np.zeros_like(eta)
        kept = whole if self._plan.anchored else one
        how = np.array([one, back, back, none, eta, kept])
        losses = np.zeros(starts.size)
        engine.lay(is_sparse(data.X))
        done = engine.rounds(how, Rows(data.X, data.y, rows), starts, losses)
        return done, losses[:-1][: done + 1]

    def _data(
        self, X: Any, y: Any, wanted: np.dtype[Any] | None
    ) -> tuple[Any, Callable[..., Iterator[Any]], int, np.dtype[Any]]:
        """Return data as engines take them, what picks batches, rows, the points' dtype."""
        if self._own:
            data = dataset(X, y)
            data = data.astype(wanted or data.dtype)
            if isinstance(data, Dataset):  # chunks are looked at when they are made
                self.problem.rows(data)
            return data, partial(batches, data), len(data), data.dtype
        if isinstance(X, Dataset):
            X, y = X.X, X.y
        X, y = sound_csr(X, "X") if is_sparse(X) else np.asarray(X), np.asarray(y)
        n, labels = (array.shape[0] if array.ndim else 0 for array in (X, y))
        if n == 0 or n != labels:
            raise ValueError(f"X and y must be equally long, but they have {n} and {labels} rows")
        single = X.dtype == np.float32
        dtype = wanted or np.dtype(np.float32 if single else np.float64)
        whole = self.problem.rows((X, y), dtype) if self._fused else None

        def picked(parts: Iterable[IndexArray | None]) -> Iterator[Any]:
            return ((X, y) if rows is None else (X[rows], y[rows]) for rows in parts)

        return whole, picked, n, dtype

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} of {self.problem!r} over {self.set!r}, engine {self.engine}>"
        )
