"""Sides that take turns: who plays which rounds, and how long it takes.

A side is a function without arguments that makes ready for some rounds and returns the function
that plays them, which alone is timed. Sides take turns in one process, so that whatever else the
machine does meets all alike; each ratio is the median over the turns of the ratio within a turn.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from bench.compare.cases import Case

Turn = Callable[[], Any]
Side = Callable[[], Turn]
#: Bytes per second that can be read, and operations per second.
Limits = tuple[float, float]


class Work(NamedTuple):
    """How much of a section is measured: entries by words of their names, turns of each side."""

    words: Sequence[str] = ()
    turns: int | None = None
    quick: bool = False

    def choose(self, named: dict[str, Any]) -> dict[str, Any]:
        """Entries whose names have all words of one of the given strings; all if none is given.

        Raises
        ------
        ValueError
            If a string chooses none.
        """
        for words in self.words:
            if not any(set(words.split()) <= set(name.split()) for name in named):
                raise ValueError(f"no {words!r} here; there are {', '.join(named)}")
        return {
            name: entry
            for name, entry in named.items()
            if not self.words or any(set(w.split()) <= set(name.split()) for w in self.words)
        }


# --- sides ----------------------------------------------------------------------------------------


def _turns(streams: Iterator[Any], ready: Callable[[Any], Turn]) -> Side:
    """Play the first stream, and return the side that plays one after the other."""
    ready(next(streams))()
    return lambda: ready(next(streams))


def running(case: Case, rounds: int | None = None, before: int | None = None) -> Side:
    """Rounds of fastfw in compiled code, after `before`; by default the case's own numbers."""
    learner = case.learner()
    return _turns(case.streams(before, rounds), lambda stream: partial(learner.run, stream))


def observing(case: Case, rounds: int | None = None, before: int | None = None) -> Side:
    """Batches that fastfw observes one by one from Python."""
    learner = case.learner()

    def ready(stream: Any) -> Turn:
        batches = list(stream)
        return lambda: [learner.observe(batch) for batch in batches]

    return _turns(case.streams(before, rounds), ready)


def playing(
    make: Callable[[Case], Any],
    case: Case,
    rounds: int | None = None,
    before: int | None = None,
) -> Side:
    """Rounds of anything with ``play_round(rows)``, and ``prepare(rows)`` if it needs that."""
    side = make(case)

    def ready(stream: Any) -> Turn:
        batches = [batch.rows for batch in stream]
        if hasattr(side, "prepare"):
            side.prepare(batches[0])
        return lambda: [side.play_round(rows) for rows in batches]

    return _turns(case.streams(before, rounds), ready)


# --- times ----------------------------------------------------------------------------------------


def seconds(call: Callable[[], Any], clock: Callable[[], float] = thread_time) -> float:
    """Time of one call: CPU time of this thread unless another clock is given."""
    begun = clock()
    call()
    return clock() - begun


def take_turns(
    sides: Sequence[Side], turns: int, clock: Callable[[], float] = thread_time
) -> list[list[float]]:
    """Times of each side's turns, the sides taking turns and the order turning round each time."""
    times: list[list[float]] = [[] for _ in sides]
    order = list(range(len(sides)))
    for side in sides:
        side()()
    for _ in range(turns):
        for i in order:
            times[i].append(seconds(sides[i](), clock))
        order.reverse()
    return times


def ratio(times: Sequence[float], to: Sequence[float]) -> float:
    """How many times as long as another side's turns these took."""
    return statistics.median(a / b for a, b in zip(times, to, strict=True))


class Result(NamedTuple):
    """Milliseconds per round and ratios of one case; the floor is None where there is none."""

    name: str
    label: str
    numpy: float
    run: float
    observe: float
    ratio: float
    ratio_observe: float
    ratio_quickest: float
    floor: float | None
    quickest: float


def summary(
    name: str, label: str, per_round: Sequence[Sequence[float]], floor: float | None = None
) -> Result:
    """Medians and ratios of milliseconds per round: those of run, of observe and of NumPy."""
    ratios = [ratio(per_round[2], times) for times in per_round[:2]]
    run, observe, numpy = (statistics.median(times) for times in per_round)
    quickest = min(per_round[0])
    best = min(per_round[2]) / quickest
    return Result(name, label, numpy, run, observe, *ratios, best, floor, quickest)


# --- the machine ----------------------------------------------------------------------------------


def machine_limits(dtype: str, turns: int = 15) -> Limits:
    """Bytes per second read by a sum, operations per second of a large matrix product."""
    long = np.ones(24_000_000)  # float64 for both: in float32 a sum is not limited by memory
    square = np.ones((1024, 1024), dtype=dtype)
    reading = min(seconds(long.sum) for _ in range(turns))
    product = min(seconds(lambda: square @ square) for _ in range(turns))
    return long.nbytes / reading, 2 * 1024**3 / product


def floor(case: Case, limits: Limits) -> float:
    """Milliseconds that no round of two products can do without.

    It reads the batch once, or computes the products, whichever takes longer.
    """
    size = case.shape.batch_size * case.shape.d
    n_bytes, operations = size * np.dtype(case.dtype).itemsize, 4 * size * case.shape.n_classes
    return 1e3 * max(n_bytes / limits[0], operations / limits[1])


def limit_lines(limits: dict[str, Limits]) -> list[str]:
    """Say what floors are computed from."""
    return [
        f"{dtype}: a sum reads {bandwidth / 1e9:.1f} GB/s, "
        f"a 1024 x 1024 product makes {speed / 1e9:.0f} GFLOP/s"
        for dtype, (bandwidth, speed) in limits.items()
    ]


def load() -> str:
    """How many processes want to run, by the system's average over a minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
