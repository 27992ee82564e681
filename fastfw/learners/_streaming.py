"""Whole streams: rounds of any batches one by one, of row numbers many at a time."""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, describe, positive_int, reworded
from fastfw._interrupts import defer_signals
from fastfw.learners._results import RunResult, RunSummary
from fastfw.learners._workers import shared_rounds
from fastfw.problems import Rows
from fastfw.streams import IndexedStream, batch_size

__all__ = ["Wishes", "checked_rounds", "play_stream", "require_stream"]

# Rows handed to an engine at a time: enough to forget the cost of the call, but of loops that are
# compiled as a whole, which cannot be interrupted, no more than about a tenth of a second's work.
_ROWS_AT_ONCE, _MOST_ROWS_AT_ONCE, _WORK_AT_ONCE = 2048, 65536, 1 << 31

# The latest losses in a run's summary.
_WINDOW = 1000


class Wishes(NamedTuple):
    """What is wanted of a run beside its rounds; see `OnlineLearner.run`."""

    progress: Callable[[int], object] | None = None
    callback: Callable[[int, float, float], object] | None = None
    keep_losses: bool = True
    on_error: str = "restore"
    checkpoint: str | PathLike[str] | None = None
    every: int | None = None

    def checked(self) -> Wishes:
        """Refuse what cannot be granted, before the first round."""
        for name, wanted in (
            ("progress", "the number of rounds done"),
            ("callback", "round, loss and seconds"),
        ):
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise TypeError(
                    f"{name} must be a function of {wanted}, but it is {describe(given)}"
                )
        if self.on_error not in ("restore", "keep"):
            raise ValueError(f"on_error must be 'restore' or 'keep', but it is {self.on_error!r}")
        if self.every is not None:
            positive_int(self.every, "every")
            if self.checkpoint is None:
                raise TypeError("every says how often to write a checkpoint: give checkpoint, too")
        if self.checkpoint is not None:
            path = Path(self.checkpoint)
            if path.is_dir() or not path.parent.is_dir():
                raise FileNotFoundError(
                    f"checkpoint must be a file in a folder that exists, but it is {path}"
                )
        return self

    def to_checkpoint(self, t: int) -> int:
        """Return how many rounds, from round t on, are played before the next checkpoint."""
        every = self.every or sys.maxsize
        return every - (t - 1) % every

    def save(self, learner: Any) -> None:
        """Write a checkpoint, if one is wanted."""
        if self.checkpoint is not None:
            learner.save(self.checkpoint)


def play_stream(learner: Any, stream: Iterable[Any], keep: list[int], wishes: Wishes) -> RunResult:
    """Play all rounds of a stream, keeping the decisions of some."""
    losses: list[npt.NDArray[np.float64]] = []
    seconds: list[npt.NDArray[np.float64]] = []
    decisions: list[FloatArray] = []
    at: list[float] = []
    elapsed, evaluations, calls, total, played = 0.0, 0, 0, 0.0, 0
    last = np.empty(0)

    def look() -> None:
        if len(at) < len(keep) and keep[len(at)] == learner._t:
            decisions.append(learner.play())
            at.append(elapsed)

    for play, k, size in _rounds(learner, stream, keep, wishes):
        look()
        t = learner._t
        begun = time.perf_counter()
        block = play()
        spent = time.perf_counter() - begun
        del play  # with rows that need not be held any longer
        when = elapsed + spent * np.arange(1, k + 1) / k
        if wishes.keep_losses:
            losses.append(block)
            seconds.append(when)
        last = np.concatenate([last, block])[-_WINDOW:]
        total, played, elapsed = total + float(block.sum()), played + k, elapsed + spent
        cost = learner._cost(t, k, size)
        evaluations, calls = evaluations + cost[0], calls + cost[1]
        if wishes.every is not None and (learner._t - 1) % wishes.every == 0:
            wishes.save(learner)
        if wishes.callback is not None:
            for i in range(k):
                wishes.callback(t + i, float(block[i]), float(when[i]))
        if wishes.progress is not None:
            wishes.progress(k)
    look()
    if len(at) < len(keep):
        raise ValueError(
            f"checkpoints has {keep[len(at)]}, but the stream ended before round {learner._t}"
        )
    shape = (len(decisions), *learner._start.shape)
    return RunResult(
        losses=np.concatenate(losses) if losses else np.empty(0),
        seconds=np.concatenate(seconds) if seconds else np.empty(0),
        gradient_evaluations=evaluations,
        lmo_calls=calls,
        checkpoints=np.array(keep, np.intp),
        decisions=np.array(decisions, learner.dtype).reshape(shape),
        checkpoint_seconds=np.array(at),
        summary=RunSummary(played, total / played if played else float("nan"), last, elapsed),
        _points=learner._ending(),
    )


def _rounds(
    learner: Any, stream: Iterable[Any], keep: list[int], wishes: Wishes
) -> Iterator[tuple[Callable[[], Any], int, int]]:
    """Yield what plays the next rounds, how many these are, and the size of their batches."""
    shared = shared_rounds(learner, stream) if isinstance(stream, IndexedStream) else None
    if shared is not None:
        yield from shared
        return
    if not isinstance(stream, IndexedStream) or not learner._fused:
        yield from _each(learner, stream)
        return
    data = stream.data
    told = not learner._needs_finite and learner._dtype in (None, data.dtype)
    for part in stream._held_parts(finite=not told):  # losses tell, and then it is looked for
        if learner._fused and (learner._fuses_sparse or not part.data.is_sparse):
            yield from _indexed(learner, part, keep, wishes, data)
        else:
            yield from _each(learner, part)
        del part


def _each(learner: Any, stream: Iterable[Any]) -> Iterator[tuple[Callable[[], Any], int, int]]:
    """Yield the rounds of any stream, one at a time."""
    for batch in stream:

        def play(batch: Any = batch) -> npt.NDArray[np.float64]:
            t = learner._t
            try:
                return np.array([learner._observe_in_turn(batch).loss])
            except (TypeError, ValueError) as error:
                if f"in round {t} " in f"{error} ":
                    raise
                raise reworded(error, f"round {t}: {error}") from error

        yield play, 1, batch_size(batch)


def _indexed(
    learner: Any, stream: IndexedStream, keep: list[int], wishes: Wishes, source: Any
) -> Iterator[tuple[Callable[[], Any], int, int]]:
    """Yield rounds of an indexed stream, many at a time, cut where decision or state is kept.

    What is not finite in rows that were collected from a source is looked for there.
    """
    data = stream.data
    dtype = learner._dtype or data.dtype
    given = learner._problem.rows(data, dtype, coded=learner._fuses_codes)
    most = _ROWS_AT_ONCE
    if learner._loops:
        fitting = _WORK_AT_ONCE // max(1, learner._start.size)
        most = min(_MOST_ROWS_AT_ONCE, max(most, fitting))
    for block in stream.row_blocks(max(1, most // stream.batch_size)):
        B = block.shape[1]
        while len(block):
            t = learner._t
            coming = bisect_right(keep, t)
            cuts = [cut - t for cut in keep[coming : coming + 1]]
            k = min(len(block), wishes.to_checkpoint(t), *cuts)
            part, block = block[:k], block[k:]
            rows = given._replace(rows=part.reshape(-1))
            starts = np.arange(0, part.size + 1, B, dtype=np.intp)

            def play(rows: Rows = rows, starts: Any = starts) -> Any:
                # what takes several steps is not cut in two where nothing is restored
                whole = wishes.on_error == "keep" and not learner._loops
                try:
                    with learner._guard.state, defer_signals() if whole else nullcontext():
                        return learner._advance(rows, starts, data, dtype)[:-1]
                except FloatingPointError:
                    if stream._origin is not None:
                        source.gather(np.unique(stream._origin))
                    raise

            yield play, len(part), B


def require_stream(stream: Any) -> None:
    """Refuse what is no stream of batches."""
    wanted = (
        "stream must be an iterable of batches, such as iid_stream(...) or a list of pairs (X, y)"
    )
    iterable = isinstance(stream, Iterable) or hasattr(stream, "__getitem__")
    if not iterable or isinstance(stream, str | bytes | Mapping):
        raise TypeError(f"{wanted}, but it is a {type(stream).__name__}")
    parts = stream if isinstance(stream, tuple | list) and len(stream) == 2 else ()
    if [getattr(part, "ndim", 0) for part in parts] == [2, 1]:
        raise TypeError(f"{wanted}, but it is one such pair: make it a list, [(X, y)]")


def checked_rounds(rounds: Iterable[Any], t: int) -> list[int]:
    """Return the rounds whose decisions are kept, increasing from round t on."""
    try:
        given = list(rounds)
    except TypeError:
        raise TypeError(
            "checkpoints must be a sequence of round numbers, such as [1, 10, 100], but it is "
            f"{rounds!r}"
        ) from None
    keep = [positive_int(r, "checkpoints") for r in given]
    if any(b <= a for a, b in pairwise(keep)) or (keep and keep[0] < t):
        raise ValueError(
            f"checkpoints must be increasing round numbers from {t} on, but they are {keep}"
        )
    return keep
