"""Time a round of ORGFW on the paper's network in turn by all sides, and print the ratios.

Run it from the root of a checkout::

    python -m bench.compare.network_report
    python -m bench.compare.network_report --pairs 50 --rounds 200

As `bench.compare.report`: CPU times of one thread. PyTorch takes part where it is installed.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from bench.compare import blas, handicap, one_thread
from bench.compare.report import take_turns


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; exit code 2 where the environment slows NumPy down."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare.network_report",
        description="One round of ORGFW on a network, d = 784, m = C = 10, B = 16, one thread.",
    )
    parser.add_argument("--pairs", type=int, default=25, help="turns of each side (default 25)")
    parser.add_argument("--rounds", type=int, default=100, help="rounds per turn (default 100)")
    options = parser.parse_args(arguments)
    problem = handicap()
    if problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2

    from bench.compare import network_pairs as pairs

    sides = {"run": pairs.fastfw_rounds, "observe": pairs.fastfw_observations}
    sides["NumPy"] = pairs.numpy_rounds
    if pairs.HAS_TORCH:
        sides["PyTorch"] = pairs.torch_rounds
    with one_thread():
        print(f"BLAS of NumPy: {blas()}\n")
        print("CPU microseconds per round: median (quickest turn); ratio to run: median (quickest)")
        for dtype in ("float64", "float32"):
            case = pairs.NetworkCase(dtype)
            turns = [side(case, options.rounds) for side in sides.values()]
            times = take_turns(turns, options.pairs)
            print(dtype)
            for name, t in zip(sides, times, strict=True):
                ratio = statistics.median(a / b for a, b in zip(t, times[0], strict=True))
                each = 1e6 / options.rounds
                print(
                    f"  {name:<8} {each * statistics.median(t):9.1f} ({each * min(t):8.1f})"
                    f" {ratio:8.2f} ({min(t) / min(times[0]):6.2f})"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
