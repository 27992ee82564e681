"""What all online learners share: batches that come in, rounds, runs, averages."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, batch_parts, boolean, freeze
from fastfw._csr import is_sparse
from fastfw._interrupts import defer_signals
from fastfw._threads import number_of_threads
from fastfw.custom import what_is_not_finite
from fastfw.learners._engines import Engine, StepsEngine
from fastfw.learners._lazy import LazyEngine
from fastfw.learners._learner import Learner, State
from fastfw.learners._results import Round, RunResult, point_of
from fastfw.learners._streaming import Wishes, checked_rounds, play_stream, require_stream
from fastfw.network import OneHiddenLayer
from fastfw.problems import Rows, SoftmaxRegression, one_round
from fastfw.streams import Batch, Dataset

__all__ = ["OnlineLearner", "Round", "RunResult"]


class OnlineLearner(Learner):
    """Base of the online learners; see `ORGFW` for the parameters they share.

    A learner may be used from several threads. `observe` and `run` wait for one another, so that
    each round is played once; `play`, `average`, `save`, copies and pickles see whole rounds, also
    those of a `run` that goes on elsewhere. What a learner calls in the middle of a round
    (schedules, losses, oracles, `progress`) may look at it, but not play on: a RuntimeError.
    """

    _made = (*Learner._made, "_played")
    #: Points of the set's space that the "steps" engine keeps beside the decision.
    _points: ClassVar[tuple[str, ...]] = ()
    #: Whether compiled rounds rely on features that were looked through for NaN beforehand.
    _needs_finite: ClassVar[bool] = False
    #: Whether there are compiled rounds for sparse features.
    _fuses_sparse: ClassVar[bool] = False
    #: Whether compiled rounds take features that are bytes.
    _fuses_codes: ClassVar[bool] = False
    #: Whether the loop over rounds is compiled too.
    _loops: ClassVar[bool] = False
    #: Whether compiled rounds can be shared by threads.
    _threaded: ClassVar[bool] = False

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        schedules: dict[str, object],
        start: npt.ArrayLike | None,
        seed: int | tuple[int, ...],
        engine: str,
        dtype: npt.DTypeLike | None,
        init: str | None = None,
        threads: int | None = 1,
        average: bool = True,
    ) -> None:
        self._averages = boolean(average, "average")
        super().__init__(
            problem, set, schedules=schedules, start=start, seed=seed, engine=engine, dtype=dtype,
            init=init,
        )  # fmt: skip
        self._threads = number_of_threads(threads)
        self._played: FloatArray | None = None

    # ------------------------------------------------------------------ what a method defines

    @abstractmethod
    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """One round from oracle calls: the loss at state["x"] and what changes in the state.

        Steps are taken from state["exact"], the point before it was rounded to the dtype.
        """

    def _make_fused(self, start: FloatArray) -> Engine:
        """Return the compiled engine at its start; of methods that `_can_fuse`."""
        raise NotImplementedError

    def _play_rounds(self, engine: Any, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Let the compiled engine play round t + i on rows[starts[i]:starts[i+1]]: how many it did.

        It writes losses[i], and into losses[-1] the number of rounds done as each of them is whole;
        after theirs stands the loss of a round that failed, which changes nothing else.
        """
        done: int = engine.rounds(self._t, rows, starts, losses)
        return done

    def _first_state(self, start: FloatArray) -> dict[str, Any]:
        """State of the "steps" engine before any round; its "x" is the first decision."""
        return {"x": start, **{name: np.zeros_like(start) for name in self._points}}

    def _cost(self, t: int, k: int, batch_size: int) -> tuple[int, int]:
        """Gradient evaluations of single samples, and oracle calls, of k rounds from t on."""
        return k * batch_size, k

    def _options(self) -> dict[str, Any]:
        """Further arguments of the constructor, as JSON holds them."""
        threads = {"threads": self._threads} if self._threaded else {}
        return threads if self._averages else {**threads, "average": False}

    def _schedule(self, name: str, t: int) -> float:
        return float(self._schedules.at(name, t))

    # ------------------------------------------------------------------ what users call

    @property
    def t(self) -> int:
        """Number of the current round, whose decision `play` returns; 1 at first."""
        return self._t

    @property
    def threads(self) -> int:
        """Threads that share the rows of a batch."""
        return self._threads

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the decisions; until the first batch it may still follow the data."""
        return np.dtype(np.float64) if self._dtype is None else self._dtype

    def play(self) -> FloatArray:
        """Return the decision x_t of this round, a read-only array of the set's shape.

        The array is the caller's to keep: later rounds do not change it. O(C d) once a round.
        """
        with self._guard.state:
            if self._played is None:
                engine = self._open(self.dtype) if self._engine is None else self._engine
                self._played = freeze(engine.decision())
            return self._played

    @property
    def average(self) -> FloatArray:
        """Mean of the decisions x_1, ..., x_{t-1} played so far (Corollary 1); x_1 before any.

        Raises
        ------
        AttributeError
            Of a learner that was made with ``average=False``.
        """
        return point_of(self._mean())

    def _ending(self) -> tuple[Any, Any]:
        """Return the decision and the average; of sparse features, what of them is not zero."""
        with self._guard.state:
            engine = self._engine
            lazy = isinstance(engine, LazyEngine) and engine.sparse
            return engine.point() if lazy else self.play(), self._mean()

    def _mean(self) -> Any:
        """Return what the average is made of, None where it is not kept."""
        with self._guard.state:
            engine, n = self._engine, self._t - 1
            if not self._averages:
                return None
            if engine is None or n == 0:
                return self.play()
            if isinstance(engine, LazyEngine) and engine.sparse:
                return engine.sum_of_points().over(n, self.dtype)
            return (engine.total() / n).astype(self.dtype, copy=False)

    def observe(self, batch: Any) -> Round:
        """Suffer the loss of this round's decision on a batch, then update.

        Parameters
        ----------
        batch : object
            A pair (X, y) or anything with ``.X`` and ``.y``, such as the batches of a stream.

        Returns
        -------
        Round
            The round's number t and the loss f_t(x_t).

        Raises
        ------
        TypeError, ValueError
            If the batch cannot be used; the message names the argument.
        FloatingPointError
            If the loss or the gradient is not finite; the message names the round.
            In every case the learner is exactly as before. After what handlers of signals raise,
            such as Ctrl-C's, it is as before or one whole round later; `t` tells. What is thrown
            into a thread by other means may leave `OFW`, `OAW` and meta methods in between.
        RuntimeError
            If it is called by what the learner itself calls in the middle of a round.
        """
        guard = self._guard
        if self._fused:
            with guard.state:
                if not guard.inside and not guard.turn.locked():  # as `alone`, but quicker
                    guard.inside = True
                    try:
                        return self._observe(batch)
                    finally:
                        guard.inside = False
        return guard.alone(self._observe_in_turn, batch)

    def _observe_in_turn(self, batch: Any) -> Round:
        """Play a round by who has the turn; others look before and after it."""
        if not self._fused:
            return self._observe(batch)
        with self._guard.state:
            return self._observe(batch)

    def _observe(self, batch: Any) -> Round:
        t = self._t
        dtype = self._resolve(batch)
        if self._fused and (self._fuses_sparse or not _has_sparse_features(batch)):
            rows = self._problem.rows(
                batch, dtype, finite=self._needs_finite, coded=self._fuses_codes
            )
            starts = one_round(rows.rows.size)
            if self._loops:
                losses = self._advance(rows, starts, batch, dtype)
            else:  # a round takes several steps
                with defer_signals():
                    losses = self._advance(rows, starts, batch, dtype)
            return Round(t, float(losses[0]))
        return self._play_steps(self._round, self._converted(batch, dtype), dtype)

    def _play_steps(self, play: Any, batch: Any, dtype: np.dtype[Any]) -> Round:
        """Play a round of the "steps" engine as a method's `_round` or another function has it."""
        t, engine = self._t, self._steps(dtype)
        loss, after = engine.observe(play, t, batch)
        if not np.isfinite(loss):
            raise FloatingPointError(f"round {t}: {what_is_not_finite(self._problem, loss)}")
        with self._guard.state:
            self._commit(after, dtype, 1)
        return Round(t, loss)

    def run(
        self,
        stream: Iterable[Any],
        *,
        checkpoints: Sequence[int] | npt.NDArray[np.integer[Any]] = (),
        progress: Callable[[int], object] | None = None,
        callback: Callable[[int, float, float], object] | None = None,
        keep_losses: bool = True,
        on_error: str = "restore",
        checkpoint: str | PathLike[str] | None = None,
        every: int | None = None,
    ) -> RunResult:
        """Play all rounds of a stream: `play` and `observe` for each batch, in compiled code.

        Parameters
        ----------
        stream : iterable
            Batches; see `observe`. Streams of `iid_stream` and `sorted_stream` are read by row
            number, without Python between rounds.
        checkpoints : sequence of int
            Increasing round numbers from the learner's t on; the decisions of those rounds are
            kept. The round after the last one counts too (x_{T+1}).
        progress : callable, optional
            Called with the number of rounds done since the last call.
        callback : callable, optional
            Called after each round with its number, its loss and the seconds spent on updates so
            far; in compiled runs for some rounds at a time.
        keep_losses : bool
            Whether the result has all losses and times; for streams without an end only its
            ``summary`` stays, in constant memory.
        on_error : {"restore", "keep"}
            After an exception, Ctrl-C included, the learner is as before the run, or keeps the
            rounds done: it is in the round that failed, and goes on with
            ``stream.from_round(learner.t)``.
        checkpoint : path-like, optional
            Where to `save` the learner: at the end of the run, and after an exception where
            `on_error` is "keep". The file is whole at any moment. A learner that has played one
            stream alone knows the position in it: its `t`.
        every : int, optional
            Save after rounds `every`, 2 `every`, ... too.

        Returns
        -------
        RunResult
            Losses, times, the last decision, the average, counts.

        Raises
        ------
        TypeError, ValueError, FloatingPointError
            As `observe`, naming the round; see `on_error` for the learner.
        OSError
            If a checkpoint cannot be written.
        """
        require_stream(stream)
        wishes = Wishes(progress, callback, keep_losses, on_error, checkpoint, every).checked()
        return self._guard.alone(self._run, stream, checkpoints, wishes)

    def _run(self, stream: Iterable[Any], checkpoints: Iterable[Any], wishes: Wishes) -> RunResult:
        keep = checked_rounds(checkpoints, self._t)
        saved = self._t, self._dtype, self._engine, self._played, self._fused, self._shares
        restores = wishes.on_error == "restore"
        if restores and self._engine is not None:
            self._engine = self._engine.copy()
        try:
            result = play_stream(self, stream, keep, wishes)
            wishes.save(self)
        except BaseException as error:
            if restores:
                self._t, self._dtype, self._engine, self._played, self._fused, self._shares = saved
            else:
                if hasattr(error, "add_note"):  # since Python 3.11
                    error.add_note(f"The learner keeps its rounds and is in round {self._t}.")
                wishes.save(self)
            raise
        return result

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} in round {self._t}: {self._problem!r} over {self._set!r}, "
            f"engine {self.engine}, {self.dtype}>"
        )

    # ------------------------------------------------------------------ plumbing

    def _fresh(self, engine: str, state: State) -> Engine:
        if self._dtype is None:
            raise ValueError("it has a state but no dtype")
        self._fused = engine == "fused"
        return self._open(self._dtype)

    def _resume(self, engine: Any) -> None:
        self._engine, self._played = engine, None

    def _resolve(self, batch: Any) -> np.dtype[Any]:
        """Dtype of the parameters: as asked for, else float32 where the first batch is."""
        if self._dtype is not None:
            return self._dtype
        if isinstance(batch, Batch):
            found: Any = batch.data.dtype
        elif isinstance(batch, Dataset):
            found = batch.dtype
        elif type(self._problem) not in (SoftmaxRegression, OneHiddenLayer):
            found = getattr(getattr(batch, "X", None), "dtype", None)
            if isinstance(batch, tuple | list) and batch:
                found = getattr(batch[0], "dtype", None)
        else:
            found = getattr(batch_parts(batch)[0], "dtype", None)
        single = isinstance(found, np.dtype) and found.newbyteorder("=") == np.float32
        return np.dtype(np.float32 if single else np.float64)

    def _open(self, dtype: np.dtype[Any]) -> Engine:
        """Return an engine before its first round."""
        return self._make_fused(self._begin(dtype)) if self._fused else self._steps(dtype)

    def _converted(self, batch: Any, dtype: np.dtype[Any]) -> Any:
        """Return a batch with features of the decisions' dtype, if the problem is ours."""
        if type(self._problem) not in (SoftmaxRegression, OneHiddenLayer):
            return batch
        X, y, _ = self._problem.rows(batch, dtype)
        if isinstance(batch, Batch):
            return Batch._trusted(batch.data.astype(dtype), batch.rows)
        return batch.astype(dtype) if isinstance(batch, Dataset) else (X, y)

    def _steps(self, dtype: np.dtype[Any]) -> StepsEngine:
        """Return the engine of oracle calls; it takes over where the first batch is sparse."""
        if self._engine is None:
            if self._fused:
                self._warn_of_steps("sparse rows")
            return StepsEngine(self._first_state(self._begin(dtype)), dtype)
        if not isinstance(self._engine, StepsEngine):
            raise TypeError(
                f"X is a sparse matrix, for which {type(self).__name__} has no compiled rounds, "
                'and those before were; use X.toarray(), or engine="steps" from the start'
            )
        return self._engine

    def _commit(self, engine: Engine, dtype: np.dtype[Any], rounds: int) -> None:
        fused = not isinstance(engine, StepsEngine)
        # at one stroke: exceptions from outside come where something is called
        self._engine, self._dtype, self._played, self._fused = engine, dtype, None, fused
        self._t += rounds

    def _advance(
        self, rows: Rows, starts: npt.NDArray[np.intp], batch: Any, dtype: np.dtype[Any]
    ) -> npt.NDArray[np.float64]:
        """Play the rounds of rows[starts[i]:starts[i+1]] in compiled code, holding the state."""
        engine: Any = self._open(dtype) if self._engine is None else self._engine
        if isinstance(engine, LazyEngine):
            engine = engine.suited(is_sparse(rows.X))
        t, losses = self._t, np.zeros(starts.size)
        try:
            done = self._play_rounds(engine, rows, starts, losses)
            if done:
                self._commit(engine, dtype, done)
        except BaseException:
            # Handlers of signals are called, and raise, when compiled code has ended. Another one
            # may interrupt the next call, so there is none but of what says how many are whole.
            whole = int(losses[-1])
            if whole and self._t == t:
                self._engine, self._dtype, self._played, self._fused = engine, dtype, None, True
                self._t = t + whole
            raise
        if done < starts.size - 1:
            self._problem.rows(batch, dtype)  # names NaN or infinity in the features
            wider = ", or use dtype=float64" if dtype == np.float32 else ""
            advice = f"; rescale the features{wider}"
            what = what_is_not_finite(self._problem, losses[done], advice)
            raise FloatingPointError(f"round {self._t}: {what}")
        return losses


def _has_sparse_features(batch: Any) -> bool:
    """Whether a batch is sparse, without gathering its rows."""
    if isinstance(batch, Batch | Dataset):
        return (batch.data if isinstance(batch, Batch) else batch).is_sparse
    return is_sparse(batch_parts(batch)[0])
