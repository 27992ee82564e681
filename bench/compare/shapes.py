"""A round of ORGFW beside NumPy at shapes from the smallest to the largest."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from bench.compare.cases import TELLING, Case, Player
from bench.compare.peers import StackedNumpy
from bench.compare.pictures import roofline
from bench.compare.turns import (
    Limits,
    Work,
    floor,
    limit_lines,
    machine_limits,
    playing,
    ratio,
    running,
    seconds,
    take_turns,
)
from bench.data import DTYPES, Shape, dataset, pixels

#: (classes, features): few and many of each.
SIZES = (
    (2, 2), (2, 10), (2, 100), (2, 784), (2, 10_000), (2, 100_000),
    (3, 2), (3, 784), (3, 10_000), (3, 100_000),
    (10, 2), (10, 30), (10, 784), (10, 3072), (10, 10_000), (10, 100_000),
    (26, 2), (26, 16), (26, 784), (26, 10_000),
    (100, 2), (100, 30), (100, 784), (100, 3072),
    (1000, 2), (1000, 30), (1000, 784),
)  # fmt: skip


class Point(NamedTuple):
    """Milliseconds per round at a shape: run, and NumPy as written and stacked, with ratios."""

    n_classes: int
    d: int
    batch_size: int
    dtype: str
    run: float
    written: float
    stacked: float
    ratio_written: float
    ratio_stacked: float
    floor: float

    @property
    def operations(self) -> int:
        """Of the two products."""
        return 4 * self.batch_size * self.d * self.n_classes

    @property
    def intensity(self) -> float:
        """Operations per byte of the batch."""
        return self.operations / (self.batch_size * self.d * int(self.dtype[-2:]) / 8)


def measure(n_classes: int, d: int, dtype: str, turns: int, limits: Limits) -> Point:
    """Check that all sides play the same decisions, then let them take turns."""
    size = 600 if d * n_classes <= 40_000 else 256 if d < 50_000 else 64
    n = max(4 * size, min(60_000, 8_000_000 // d))
    shape = Shape(n, d, n_classes, size, 8.0, share=1.0, telling=TELLING)
    case = Case("orgfw", shape, dtype)
    ways = [partial(playing, Player), partial(playing, StackedNumpy)]
    for make in (Player, StackedNumpy):
        case.check(make, rounds=4)
    # about 20 ms of NumPy a turn, and at least one round
    once = seconds(ways[1](case, 10)()) / 10
    rounds = max(1, min(200, round(0.02 / once)))
    sides = [way(case, rounds) for way in (running, *ways)]
    times = [[1e3 * t / rounds for t in own] for own in take_turns(sides, turns)]
    dataset.cache_clear()
    pixels.cache_clear()
    ratios = [ratio(own, times[0]) for own in times[1:]]
    return Point(
        n_classes, d, size, dtype, *map(statistics.median, times), *ratios, floor(case, limits)
    )


HEADER = (
    f"{'C':>5} {'d':>7} {'B':>4} {'dtype':<8}{'run':>9}{'written':>9}{'stacked':>9}"
    f"{'written/run':>12}{'stacked/run':>12}{'run/floor':>10}"
)


def line(p: Point) -> str:
    """One line of the table; a mark where NumPy is quicker."""
    slower = min(p.ratio_written, p.ratio_stacked) < 1.0
    return (
        f"{p.n_classes:>5} {p.d:>7} {p.batch_size:>4} {p.dtype:<8}{p.run:>9.3f}{p.written:>9.3f}"
        f"{p.stacked:>9.3f}{p.ratio_written:>12.2f}{p.ratio_stacked:>12.2f}{p.run / p.floor:>10.2f}"
        f"{'  <- slower' if slower else ''}"
    )


def shapes(work: Work) -> Iterator[Any]:
    """A round of ORGFW from 2 to 1000 classes C and 2 to 100,000 features d.

    NumPy is played in both ways, as the paper writes it and at its best (stacked products, arrays
    made once); times are medians, ratios to `run` medians over turns. The picture is a roofline:
    useful operations per second, two products of a round, over operations per byte of a batch read
    once, of shapes with 100 features or more. Nonzero entries that are few, which fastfw uses, lift
    its points above the roof.
    """
    sizes = SIZES if not work.quick else [size for size in SIZES if max(size) < 1000]
    points = []
    limits = {dtype: machine_limits(dtype) for dtype in DTYPES}
    yield HEADER
    for dtype, limit in limits.items():
        for size in sizes:
            try:
                points.append(measure(*size, dtype, work.turns or 9, limit))
            except AssertionError:  # rounding may decide between vertices that are as good as equal
                yield f"{size[0]:>5} {size[1]:>7}      {dtype:<8} not timed: decisions differ"
                continue
            yield line(points[-1])
    yield from limit_lines(limits)
    yield "shapes.png", roofline(points, limits)
