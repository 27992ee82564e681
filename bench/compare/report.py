"""Time fastfw and NumPy in turn, in one process, and print the ratios.

Run it from the root of a checkout::

    python -m bench.compare.report
    python -m bench.compare.report --pairs 50 --case "mnist float64"

The two sides take turns (A B A B ...), so that whatever else the machine does meets both
alike; each ratio is the median over the pairs of the ratio within a pair. On a busy machine the
ratio of the quickest turns, printed beside it, is the steadier one. The floor is what a round
cannot do without: reading the batch once or two products, whichever takes longer, at the
bandwidth and the speed measured in the same run.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from bench.compare import blas, handicap, one_thread


def seconds(call: Callable[[], Any]) -> float:
    """Time one call."""
    begun = perf_counter()
    call()
    return perf_counter() - begun


def take_turns(calls: Sequence[Callable[[], Any]], turns: int) -> list[list[float]]:
    """Times of each call, the calls taking turns and the order turning round each time."""
    times: list[list[float]] = [[] for _ in calls]
    order = list(range(len(calls)))
    for call in calls:
        call()
    for _ in range(turns):
        for i in order:
            times[i].append(seconds(calls[i]))
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


def measure(case: Any, rounds: int, turns: int, limits: tuple[float, float]) -> str:
    """One line of the table."""
    from bench.compare import pairs

    calls = (
        pairs.fastfw_rounds(case, rounds),
        pairs.fastfw_observations(case, rounds),
        pairs.numpy_rounds(case, rounds),
    )
    times = take_turns(calls, turns)
    run, observe, numpy = (1e3 * statistics.median(t) / rounds for t in times)
    ratio = [statistics.median(n / f for n, f in zip(times[2], t, strict=True)) for t in times[:2]]
    quickest = [1e3 * min(t) / rounds for t in times]
    n_bytes, operations = case.floor
    floor = 1e3 * max(n_bytes / limits[0], operations / limits[1])
    return (
        f"{case.name:<16} {numpy:8.3f} {run:8.3f} {observe:8.3f} {floor:8.3f} {ratio[0]:10.2f} "
        f"{ratio[1]:10.2f} {quickest[2] / quickest[0]:11.2f} {quickest[0] / floor:9.2f}"
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit code 2 where the environment slows NumPy down."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare.report",
        description="One round of ORGFW on one thread: fastfw beside NumPy as the paper writes it.",
    )
    parser.add_argument("--pairs", type=int, default=25, help="turns of each side (default 25)")
    parser.add_argument("--rounds", type=int, default=10, help="rounds per turn (default 10)")
    parser.add_argument("--case", action="append", help='only this case, like "mnist float64"')
    options = parser.parse_args(arguments)
    problem = handicap()
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2

    import numba
    import numpy as np

    import fastfw
    from bench.compare import pairs

    known = [case.name for case in pairs.CASES]
    unknown = sorted(set(options.case or []) - set(known))
    if unknown:
        print(f"error: no case {unknown[0]!r}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    print(
        f"fastfw {fastfw.__version__}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}"
    )
    print(
        f"one round of ORGFW in ms (medians of {options.pairs} turns of {options.rounds} rounds), "
        "one thread"
    )
    with one_thread():
        print(f"BLAS of NumPy: {blas()}\n")
        limits = {dtype: machine_limits(dtype) for dtype in pairs.DTYPES}
        print(
            f"{'case':<16} {'NumPy':>8} {'run':>8} {'observe':>8} {'floor':>8} {'NumPy/run':>10} "
            f"{'NumPy/obs.':>10} {'of quickest':>11} {'run/floor':>9}"
        )
        for case in pairs.CASES:
            if not options.case or case.name in options.case:
                print(measure(case, options.rounds, options.pairs, limits[case.dtype]), flush=True)
                vars(case).pop("data")  # a third of a gigabyte
    print(
        "\nof quickest: NumPy/run, the quickest turn of each; run/floor: the quickest turn of run"
    )
    for dtype, (bandwidth, speed) in limits.items():
        print(
            f"{dtype}: a sum reads {bandwidth / 1e9:.1f} GB/s, "
            f"a 1024 x 1024 product makes {speed / 1e9:.0f} GFLOP/s"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
