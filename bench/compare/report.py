"""Time fastfw and NumPy in turn, in one process, and print the ratios.

Run it from the root of a checkout::

    python -m bench.compare.report
    python -m bench.compare.report --case orgfw --case "morgfw float64" --pairs 50
    python -m bench.compare.report --picture docs/round.png
    python -m bench.compare.report --peers

Each case first checks that both sides play the same decisions. Then they take turns
(A B A B ...), so that whatever else the machine does meets both alike; each ratio is the
median over the pairs of the ratio within a pair. Times are CPU times of the one thread that
works, so that waiting for a core does not count. The floor is what a round of two products
cannot do without: reading the batch once or two products, whichever takes longer, at the
bandwidth and the speed measured in the same run.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import thread_time
from typing import Any, NamedTuple

from bench.compare import blas, handicap, one_thread

Turn = Callable[[], Any]


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


def seconds(call: Callable[[], Any], clock: Callable[[], float] = thread_time) -> float:
    """Time of one call: CPU time of this thread unless another clock is given."""
    begun = clock()
    call()
    return clock() - begun


def take_turns(
    sides: Sequence[Callable[[], Turn]], turns: int, clock: Callable[[], float] = thread_time
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


def machine_limits(dtype: str, turns: int = 15) -> tuple[float, float]:
    """Bytes per second read by a sum, operations per second of a large matrix product."""
    import numpy as np

    long = np.ones(24_000_000)  # float64 for both: in float32 a sum is not limited by memory
    square = np.ones((1024, 1024), dtype=dtype)
    reading = min(seconds(long.sum) for _ in range(turns))
    product = min(seconds(lambda: square @ square) for _ in range(turns))
    return long.nbytes / reading, 2 * 1024**3 / product


def summary(
    name: str, label: str, per_round: Sequence[Sequence[float]], floor: float | None = None
) -> Result:
    """Medians and ratios of milliseconds per round: those of run, of observe and of NumPy."""
    ratios = [
        statistics.median(n / f for n, f in zip(per_round[2], times, strict=True))
        for times in per_round[:2]
    ]
    run, observe, numpy = (statistics.median(times) for times in per_round)
    quickest = min(per_round[0])
    best = min(per_round[2]) / quickest
    return Result(name, label, numpy, run, observe, *ratios, best, floor, quickest)


def measure(case: Any, turns: int | None, limits: tuple[float, float]) -> Result:
    """Check that both sides do the same, then let them take turns."""
    from bench.compare import pairs

    case.check()
    sides = [make(case) for make in pairs.SIDES.values()]
    times = take_turns(sides, turns or case.turns)
    per_round = [[1e3 * t / case.rounds for t in side] for side in times]
    floor = None
    if case.floor is not None:
        n_bytes, operations = case.floor
        floor = 1e3 * max(n_bytes / limits[0], operations / limits[1])
    return summary(case.name, case.label, per_round, floor)


HEADER = (
    f"{'case':<41} {'NumPy':>8} {'run':>8} {'observe':>8} {'NumPy/run':>10} {'NumPy/obs.':>10} "
    f"{'of quickest':>11} {'floor':>7} {'run/floor':>9}"
)


def line(result: Result) -> str:
    """One line of the table."""
    r = result
    floor = "" if r.floor is None else f" {r.floor:7.3f} {r.quickest / r.floor:9.2f}"
    return (
        f"{r.name:<41} {r.numpy:8.3f} {r.run:8.3f} {r.observe:8.3f} {r.ratio:10.1f} "
        f"{r.ratio_observe:10.1f} {r.ratio_quickest:11.1f}{floor}"
    )


def machine() -> str:
    """The processor as the system names it, and the number of its cores."""
    model = platform.processor() or platform.machine()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        model = next(x.split(":")[1].strip() for x in text.splitlines() if "model name" in x)
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} cores, load {load()}"


def load() -> str:
    """How many processes want to run, by the system's average over a minute."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit code 2 where the environment slows NumPy down."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare.report",
        description="One round on one thread: fastfw beside NumPy as the paper writes it.",
    )
    parser.add_argument(
        "--case",
        action="append",
        default=[],
        metavar="WORDS",
        help='cases with all these words in their names, like orgfw or "morgfw float64"; '
        "may be given several times",
    )
    parser.add_argument(
        "--pairs", type=int, help="turns of each side (ofw and oaw keep 7, about round 100)"
    )
    parser.add_argument(
        "--peers", action="store_true", help="rounds beside other libraries instead, a table each"
    )
    parser.add_argument("--picture", metavar="FILE", help="draw the times as bars to this file")
    options = parser.parse_args(arguments)
    if options.pairs is not None and options.pairs < 1:
        parser.error("--pairs must be at least 1")
    problem = handicap()
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2

    import numba
    import numpy as np

    import fastfw
    from bench.compare import pairs
    from bench.compare.data import DTYPES

    try:
        cases = [] if options.peers else pairs.choose(options.case)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(machine())
    print(
        f"fastfw {fastfw.__version__}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}"
    )
    with one_thread():
        print(f"BLAS of NumPy: {blas()}")
        if options.peers:
            from bench.compare import peers_report

            return peers_report.main(options.case, options.pairs)
        print("ms per round, medians, one thread\n")
        limits = {dtype: machine_limits(dtype) for dtype in DTYPES}
        print(HEADER)
        results = []
        for case in cases:
            turns = None if case.turns_fixed else options.pairs
            try:
                results.append(measure(case, turns, limits[case.dtype]))
            except AssertionError as error:
                print(f"error: {case.name}: the two sides differ: {error}", file=sys.stderr)
                return 1
            print(line(results[-1]), flush=True)
    print(
        "\nof quickest: NumPy/run, the quickest turn of each; run/floor: the quickest turn of run"
    )
    for dtype, (bandwidth, speed) in limits.items():
        print(
            f"{dtype}: a sum reads {bandwidth / 1e9:.1f} GB/s, "
            f"a 1024 x 1024 product makes {speed / 1e9:.0f} GFLOP/s"
        )
    if options.picture:
        from bench.compare import picture

        picture.draw(results, options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
