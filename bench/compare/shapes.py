"""Time a round of ORGFW beside NumPy at shapes from the smallest to the largest.

Run it from the root of a checkout::

    python -m bench.compare.shapes
    python -m bench.compare.shapes --dtype float64 --picture docs/roofline.png

NumPy is played in both ways, as the paper writes it and at its best (stacked products, arrays made
once); ratios are to fastfw's `run`, medians over turns. The picture is a roofline: useful
operations per second, two products of a round, over operations per byte of a batch read once.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence
from typing import NamedTuple

from bench.compare import blas, handicap, one_thread
from bench.compare.report import machine, machine_limits, seconds, take_turns

#: (classes, features): few and many of each.
SIZES = (
    (2, 2), (2, 10), (2, 100), (2, 784), (2, 10_000), (2, 100_000),
    (3, 2), (3, 784), (3, 10_000), (3, 100_000),
    (10, 2), (10, 30), (10, 784), (10, 3072), (10, 10_000), (10, 100_000),
    (26, 2), (26, 16), (26, 784), (26, 10_000),
    (100, 2), (100, 30), (100, 784), (100, 3072),
    (1000, 2), (1000, 30), (1000, 784),
)  # fmt: skip
DTYPES = ("float64", "float32")


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


def measure(n_classes: int, d: int, dtype: str, turns: int, limits: tuple[float, float]) -> Point:
    """Check that all sides play the same decisions, then let them take turns."""
    from bench.compare import peers, peers_report
    from bench.compare.data import Shape

    size = 600 if d * n_classes <= 40_000 else 256 if d < 50_000 else 64
    n = max(4 * size, min(60_000, 8_000_000 // d))
    shape = Shape(f"{n_classes} x {d}", "", n, d, n_classes, size, radius=8.0, share=1.0)
    case = peers.ImageCase("orgfw", shape, dtype)
    sides = []
    for make in (peers.WrittenNumpy, peers.StackedNumpy):
        peers.check(case, make, rounds=4)
        sides.append(peers_report.peer_rounds(case, make))
    # about 20 ms of NumPy a turn, and at least one round
    once = seconds(sides[1]()) / peers_report.ROUNDS
    rounds = max(1, min(200, round(0.02 / once)))
    sides = [peers_report.runs(case, rounds)]
    sides += [
        peers_report.peer_rounds(case, make, rounds)
        for make in (peers.WrittenNumpy, peers.StackedNumpy)
    ]
    times = [[1e3 * t / rounds for t in own] for own in take_turns(sides, turns)]
    peers.images.cache_clear()
    run, written, stacked = (statistics.median(own) for own in times)
    ratios = [
        statistics.median(a / b for a, b in zip(own, times[0], strict=True)) for own in times[1:]
    ]
    operations = 4 * size * d * n_classes
    n_bytes = size * d * int(dtype[-2:]) / 8
    floor = 1e3 * max(n_bytes / limits[0], operations / limits[1])
    return Point(n_classes, d, size, dtype, run, written, stacked, *ratios, floor)


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


def draw(points: Sequence[Point], limits: dict[str, tuple[float, float]], path: str) -> None:
    """Write the roofline of each dtype, with a round of each shape below it."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    figure = Figure(figsize=(9.0, 4.2), dpi=100, layout="constrained")
    canvas = FigureCanvasAgg(figure)
    dtypes = list(dict.fromkeys(p.dtype for p in points))
    sides = (
        ("run", "#d1495b", "o", "fastfw"),
        ("stacked", "#2e6f95", "^", "NumPy, stacked products"),
        ("written", "#9aa5b1", "s", "NumPy as written"),
    )
    all_axes = figure.subplots(1, len(dtypes), sharey=True, squeeze=False)[0]
    for axes, dtype in zip(all_axes, dtypes, strict=True):
        bandwidth, speed = limits[dtype]
        x = np.geomspace(0.5, 1500, 200)
        axes.plot(x, np.minimum(x * bandwidth, speed) / 1e9, color="#333333", linewidth=1.2)
        own = [p for p in points if p.dtype == dtype and p.d >= 100]
        for k, (name, colour, marker, label) in enumerate(sides):
            axes.scatter(
                [p.intensity * 1.06 ** (k - 1) for p in own],
                [p.operations / getattr(p, name) / 1e6 for p in own],
                s=22, color=colour, marker=marker, label=label, alpha=0.85, linewidths=0,
            )  # fmt: skip
        for c in sorted({p.n_classes for p in own}):
            at = next(p.intensity for p in own if p.n_classes == c)
            axes.annotate(
                str(c), (at, 0.0), (0, 3), xycoords=("data", "axes fraction"),
                textcoords="offset points", ha="center", fontsize=7.5, color="#333333",
            )  # fmt: skip
        axes.annotate(
            "classes:", (0.0, 0.0), (3, 3), xycoords="axes fraction",
            textcoords="offset points", fontsize=7.5, color="#333333",
        )  # fmt: skip
        axes.set(xscale="log", yscale="log", title=dtype)
        axes.set_xlabel("operations of a round per byte of the batch")
        axes.annotate(
            f"reading {bandwidth / 1e9:.0f} GB/s", (0.5, speed / 1e9), (0, 9),
            textcoords="offset points", fontsize=7.5, ha="left",
        )  # fmt: skip
        axes.annotate(
            f"large product {speed / 1e9:.0f} GFLOP/s", (6.0, speed / 1e9), (0, 9),
            textcoords="offset points", fontsize=7.5, ha="left",
        )  # fmt: skip
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#e5e5e5", linewidth=0.6)
        axes.set_axisbelow(True)
    all_axes[0].set_ylabel("GFLOP/s of the two products")
    low, high = all_axes[0].get_ylim()
    all_axes[0].set_ylim(low / 1.8, high * 1.3)
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    canvas.draw()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    pixels.quantize(64).save(path, format="png", optimize=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit code 2 where the environment slows NumPy down."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare.shapes",
        description="One round of ORGFW beside NumPy, from 2 to 1000 classes and 2 to 100,000 "
        "features, on one thread.",
    )
    parser.add_argument("--dtype", choices=DTYPES, help="only this one")
    parser.add_argument("--classes", type=int, help="only this many")
    parser.add_argument("--pairs", type=int, default=9, help="turns of each side (default 9)")
    parser.add_argument("--picture", metavar="FILE", help="draw a roofline to this file")
    options = parser.parse_args(arguments)
    if options.pairs < 1:
        parser.error("--pairs must be at least 1")
    sizes = [size for size in SIZES if options.classes in (None, size[0])]
    if not sizes:
        parser.error(f"--classes must be one of {sorted({c for c, _ in SIZES})}")
    problem = handicap()
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    print(machine())
    points = []
    with one_thread():
        print(f"BLAS of NumPy: {blas()}")
        limits = {d: machine_limits(d) for d in DTYPES if options.dtype in (None, d)}
        print("ms per round, medians, one thread\n")
        print(HEADER)
        for dtype in limits:
            for n_classes, d in sizes:
                try:
                    points.append(measure(n_classes, d, dtype, options.pairs, limits[dtype]))
                except AssertionError as error:
                    print(f"error: C = {n_classes}, d = {d}: {error}", file=sys.stderr)
                    return 1
                print(line(points[-1]), flush=True)
    for dtype, (bandwidth, speed) in limits.items():
        print(
            f"{dtype}: a sum reads {bandwidth / 1e9:.1f} GB/s, "
            f"a 1024 x 1024 product makes {speed / 1e9:.0f} GFLOP/s"
        )
    if options.picture:
        draw(points, limits, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
