"""Sides that take turns: who plays which rounds, and how long it takes.

A side is a function without arguments that makes ready for some rounds and returns the function
that plays them, which alone is timed. Sides take turns in one process, so that whatever else the
machine does meets all alike; each ratio is the median over the turns of the ratio within a turn.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from time import thread_time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from bench.compare.cases import Case

Turn = Callable[[], Any]
Side = Callable[[], Turn]
#: Seconds by turn.
Times = Any
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
        chosen = set()
        for words in self.words:
            found = {name for name in named if set(words.split()) <= set(name.split())}
            if not found:
                raise ValueError(f"no {words!r} here; there are {', '.join(named)}")
            chosen |= found
        return {name: own for name, own in named.items() if not self.words or name in chosen}


# --- sides ----------------------------------------------------------------------------------------


def _going_on(case: Case, ready: Callable[[Any], Turn]) -> Side:
    """Play the rounds before the first turn, and return the side that goes on from there."""
    streams = case.streams()
    ready(next(streams))()
    return lambda: ready(next(streams))


def all_of(calls: Sequence[Turn]) -> Turn:
    """A turn of several calls."""
    return lambda: [call() for call in calls]


def running(case: Case) -> Side:
    """Rounds of fastfw in compiled code."""
    learner = case.learner()
    return _going_on(case, lambda stream: partial(learner.run, stream))


def observing(case: Case) -> Side:
    """Batches that fastfw observes one by one from Python."""
    learner = case.learner()
    return _going_on(
        case, lambda stream: all_of([partial(learner.observe, batch) for batch in stream])
    )


def playing(make: Callable[[Case], Any], case: Case) -> Side:
    """Rounds of anything with ``play_round(rows)``, and ``prepare(rows)`` if it needs that."""
    side = make(case)

    def ready(stream: Any) -> Turn:
        batches = [batch.rows for batch in stream]
        if hasattr(side, "prepare"):
            side.prepare(batches[0])
        return all_of([partial(side.play_round, rows) for rows in batches])

    return _going_on(case, ready)


def made(makers: Mapping[str, Callable[[], Any]]) -> tuple[dict[str, Any], dict[str, str]]:
    """What can be made, and of the rest why not: something that it needs is missing or broken."""
    there, skipped = {}, {}
    for name, make in makers.items():
        try:
            there[name] = make()
        except (ImportError, RuntimeError) as error:
            skipped[name] = f"skipped: {str(error).splitlines()[0]}"
    return there, skipped


# --- times ----------------------------------------------------------------------------------------


def seconds(call: Callable[[], Any], clock: Callable[[], float] = thread_time) -> float:
    """Time of one call: CPU time of this thread unless another clock is given."""
    begun = clock()
    call()
    return clock() - begun


def take_turns(
    sides: Mapping[str, Side], turns: int, clock: Callable[[], float] = thread_time
) -> dict[str, Times]:
    """Times of each side's turns, the sides taking turns and the order turning round each time."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    order = list(sides)
    for name in order:
        sides[name]()()
    for _ in range(turns):
        for name in order:
            times[name].append(seconds(sides[name](), clock))
        order.reverse()
    return {name: np.array(own) for name, own in times.items()}


def ratio(times: Times, to: Times) -> float:
    """How many times as long as another side's turns these took."""
    return float(np.median(times / to))


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
    return 1e3 * max(case.batch_bytes / limits[0], case.operations / limits[1])


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
