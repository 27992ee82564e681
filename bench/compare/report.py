"""Time fastfw and NumPy in turn, in one process, and print the ratios.

Run it from the root of a checkout::

    python -m bench.compare.report
    python -m bench.compare.report --case orgfw --case "morgfw float64" --pairs 50
    python -m bench.compare.report --picture docs/round.png
    python -m bench.compare.report --peers

Each case first checks that both sides play the same decisions. Then they take turns
(A B A B ...), see `bench.compare.turns`. Times are CPU times of the one thread that
works, so that waiting for a core does not count. The floor is what a round of two products
cannot do without: reading the batch once or two products, whichever takes longer, at the
bandwidth and the speed measured in the same run.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from functools import partial

import numba
import numpy as np

import fastfw
from bench.compare import blas, handicap, one_thread, peers_report, pictures
from bench.compare.cases import Case, choose
from bench.compare.data import DTYPES
from bench.compare.turns import (
    Limits,
    Result,
    floor,
    machine,
    machine_limits,
    observing,
    playing,
    print_limits,
    running,
    summary,
    take_turns,
)

SIDES = {
    "fastfw-run": running,
    "fastfw-observe": observing,
    "numpy": partial(playing, Case.by_numpy),
}


def measure(case: Case, turns: int | None, limits: Limits) -> Result:
    """Check that both sides do the same, then let them take turns."""
    case.check()
    sides = [make(case) for make in SIDES.values()]
    times = take_turns(sides, turns or case.turns)
    per_round = [[1e3 * t / case.rounds for t in side] for side in times]
    least = floor(case, limits) if case.has_floor else None
    return summary(case.name, case.label, per_round, least)


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

    try:
        chosen = [] if options.peers else choose(options.case)
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
            return peers_report.main(options.case, options.pairs)
        print("ms per round, medians, one thread\n")
        limits = {dtype: machine_limits(dtype) for dtype in DTYPES}
        print(HEADER)
        results = []
        for case in chosen:
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
    print_limits(limits)
    if options.picture:
        pictures.save(pictures.bars(results), options.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
