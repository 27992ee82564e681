"""Whole streams: rounds of any batches one by one, of row numbers many at a time."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, batch_parts, positive_int
from fastfw.learners._results import RunResult
from fastfw.problems import Rows
from fastfw.streams import Batch, Dataset, IndexedStream

__all__ = ["batch_size", "checked_rounds", "play_stream", "require_stream"]

# Rows handed to an engine at a time: enough to forget the cost of the call, but of loops that are
# compiled as a whole, which cannot be interrupted, no more than about a tenth of a second's work.
_ROWS_AT_ONCE, _MOST_ROWS_AT_ONCE, _WORK_AT_ONCE = 2048, 65536, 1 << 31


def play_stream(
    learner: Any,
    stream: Iterable[Any],
    keep: list[int],
    progress: Callable[[int], object] | None,
) -> RunResult:
    """Play all rounds of a stream; `keep` and `progress` as in `OnlineLearner.run`."""
    losses: list[npt.NDArray[np.float64]] = []
    seconds: list[npt.NDArray[np.float64]] = []
    decisions: list[FloatArray] = []
    at: list[float] = []
    elapsed, evaluations, calls = 0.0, 0, 0
    rounds = (
        _indexed(learner, stream, keep) if _reads_rows(learner, stream) else _each(learner, stream)
    )
    for play, sizes in rounds:
        while len(at) < len(keep) and keep[len(at)] == learner._t:
            decisions.append(learner.play())
            at.append(elapsed)
        t, k = learner._t, len(sizes)
        begun = time.perf_counter()
        block = play()
        spent = time.perf_counter() - begun
        losses.append(block)
        seconds.append(elapsed + spent * np.arange(1, k + 1) / k)
        elapsed += spent
        evaluations += sum(learner._evaluations(t + i, size) for i, size in enumerate(sizes))
        calls += sum(learner._lmo_calls(t + i) for i in range(k))
        if progress is not None:
            progress(k)
    while len(at) < len(keep) and keep[len(at)] == learner._t:
        decisions.append(learner.play())
        at.append(elapsed)
    if len(at) < len(keep):
        raise ValueError(
            f"checkpoints has {keep[len(at)]}, but the stream ended before round {learner._t}"
        )
    shape = (len(decisions), *learner._start.shape)
    return RunResult(
        losses=np.concatenate(losses) if losses else np.empty(0),
        seconds=np.concatenate(seconds) if seconds else np.empty(0),
        decision=learner.play(),
        average=learner.average,
        gradient_evaluations=evaluations,
        lmo_calls=calls,
        checkpoints=np.array(keep, np.intp),
        decisions=np.array(decisions, learner.dtype).reshape(shape),
        checkpoint_seconds=np.array(at),
    )


def _reads_rows(learner: Any, stream: Iterable[Any]) -> bool:
    return (
        learner._fused
        and isinstance(stream, IndexedStream)
        and (learner._fuses_sparse or not stream.data.is_sparse)
    )


def _each(learner: Any, stream: Iterable[Any]) -> Iterator[tuple[Callable[[], Any], list[int]]]:
    """Yield the rounds of any stream, one at a time."""
    for batch in stream:

        def play(batch: Any = batch) -> npt.NDArray[np.float64]:
            t = learner._t
            try:
                return np.array([learner._observe_in_turn(batch).loss])
            except (TypeError, ValueError) as error:
                if f"in round {t} " in f"{error} ":
                    raise
                kind = ValueError if isinstance(error, ValueError) else TypeError
                raise kind(f"round {t}: {error}") from error

        yield play, [batch_size(batch)]


def _indexed(
    learner: Any, stream: Iterable[Any], keep: list[int]
) -> Iterator[tuple[Callable[[], Any], list[int]]]:
    """Yield rounds of an indexed stream, many at a time, cut where a decision is kept."""
    assert isinstance(stream, IndexedStream)
    data = stream.data
    dtype = learner._dtype or data.dtype
    whole = learner._problem.rows(data, dtype, coded=learner._fuses_codes)
    most = _ROWS_AT_ONCE
    if learner._loops:
        fitting = _WORK_AT_ONCE // max(1, learner._start.size)
        most = min(_MOST_ROWS_AT_ONCE, max(most, fitting))
    for block in stream.row_blocks(max(1, most // stream.batch_size)):
        B = block.shape[1]
        first = 0
        while first < len(block):
            stop = len(block)
            ahead = bisect_right(keep, learner._t)
            if ahead < len(keep):
                stop = min(stop, first + keep[ahead] - learner._t)
            part = block[first:stop]
            rows = Rows(whole.X, whole.y, part.reshape(-1))
            starts = np.arange(0, part.size + 1, B, dtype=np.intp)

            def play(rows: Rows = rows, starts: Any = starts) -> Any:
                with learner._guard.state:
                    return learner._advance(rows, starts, data, dtype)

            yield play, [B] * len(part)
            first = stop


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


def batch_size(batch: Any) -> int:
    """Return the number of samples of a batch; 1 where they cannot be counted."""
    try:
        return len(batch) if isinstance(batch, Batch | Dataset) else len(batch_parts(batch)[1])
    except TypeError:
        return 1


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
