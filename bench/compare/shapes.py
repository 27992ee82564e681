"""A round of ORGFW beside NumPy at shapes from the smallest to the largest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from bench.compare.cases import TELLING, Case, Player
from bench.compare.peers import StackedNumpy
from bench.compare.pictures import roofline
from bench.compare.turns import (
    Times,
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
from bench.tables import Columns

#: (classes, features): few and many of each.
SIZES = (
    (2, 2), (2, 10), (2, 100), (2, 784), (2, 10_000), (2, 100_000),
    (3, 2), (3, 784), (3, 10_000), (3, 100_000),
    (10, 2), (10, 30), (10, 784), (10, 3072), (10, 10_000), (10, 100_000),
    (26, 2), (26, 16), (26, 784), (26, 10_000),
    (100, 2), (100, 30), (100, 784), (100, 3072),
    (1000, 2), (1000, 30), (1000, 784),
)  # fmt: skip


SIDES = {
    "run": running, "written": partial(playing, Player), "stacked": partial(playing, StackedNumpy),
}  # fmt: skip
COLUMNS = Columns({
    "C": ">5", "d": ">8", "B": ">5", " dtype": "<9", "run": ">9.3f", "written": ">9.3f",
    "stacked": ">9.3f", "written/run": ">12.2f", "stacked/run": ">12.2f", "run/floor": ">10.2f",
    "": "<12",
})  # fmt: skip


def measure(n_classes: int, d: int, dtype: str, turns: int) -> tuple[Case, dict[str, Times]]:
    """Check that all sides play the same decisions, then let them take turns: ms per round."""
    size = 600 if d * n_classes <= 40_000 else 256 if d < 50_000 else 64
    n = max(4 * size, min(60_000, 8_000_000 // d))
    case = Case("orgfw", Shape(n, d, n_classes, size, 8.0, share=1.0, telling=TELLING), dtype)
    for make in (Player, StackedNumpy):
        case.check(make, rounds=4)
    # about 20 ms of NumPy a turn, and at least one round
    once = seconds(SIDES["stacked"](replace(case, rounds=10))()) / 10
    case = replace(case, rounds=max(1, min(200, round(0.02 / once))))
    times = take_turns({name: make(case) for name, make in SIDES.items()}, turns)
    dataset.cache_clear()
    pixels.cache_clear()
    return case, {name: 1e3 * own / case.rounds for name, own in times.items()}


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
    yield COLUMNS.head
    for dtype, limit in limits.items():
        for C, d in sizes:
            try:
                case, ms = measure(C, d, dtype, work.turns or 9)
            except AssertionError:  # rounding may decide between vertices that are as good as equal
                yield COLUMNS.line(C, d, "", f" {dtype}", " not timed: decisions differ")
                continue
            medians = {name: float(np.median(own)) for name, own in ms.items()}
            ratios = [ratio(ms[name], ms["run"]) for name in ("written", "stacked")]
            yield COLUMNS.line(
                C, d, case.shape.batch_size, f" {dtype}", *medians.values(), *ratios,
                medians["run"] / floor(case, limit), "  <- slower" if min(ratios) < 1.0 else "",
            )  # fmt: skip
            points.append((case, medians))
    yield from limit_lines(limits)
    yield "shapes.png", roofline(points, limits)
