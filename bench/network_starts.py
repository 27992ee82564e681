"""What each start of a network gives after equal work: the table of docs/network.md.

Run it from the root of a checkout, with the data sets' folder in FASTFW_DATA::

    python -m bench.network_starts                      # Fashion-MNIST, some minutes
    python -m bench.network_starts --data mnist --trials 2
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import fastfw as fw

STARTS = {
    "zeros": ("zeros", "first"),
    "zeros, random ties": ("zeros", "random"),
    "vertex": ("vertex", "first"),
    "random": ("random", "first"),
}
Run = Callable[[Any, Any, str, int, Any], Any]


def _online(kind: Any, rounds: int, step: Any, momentum: Any) -> Run:
    def run(problem: Any, M: Any, init: str, seed: int, data: Any) -> Any:
        stream = fw.iid_stream(data, None, batch_size=16, rounds=rounds, seed=100 + seed)
        learner = kind(problem, M, step=step, momentum=momentum, init=init, seed=seed)
        return learner.run(stream).decision

    return run


def _offline(kind: Any, iterations: int, step: float) -> Run:
    def run(problem: Any, M: Any, init: str, seed: int, data: Any) -> Any:
        method = kind(problem, M, step, 240, 50, seed, init=init)
        return method.fit(data, iterations=iterations).decision

    return run


P = fw.power_schedule
METHODS: dict[str, Run] = {
    "ORGFW, 50,000 rounds": _online(fw.ORGFW, 50_000, P(2, 1), P(0.25, 0.5)),
    "OSFW, 100,000 rounds": _online(fw.OSFW, 100_000, P(1, 1), P(0.1, 0.5)),
    "SpiderFW, 4,560 iterations": _offline(fw.SpiderFW, 4560, 2e-3),
    "SVRF, 4,560 iterations": _offline(fw.SVRF, 4560, 2.5e-3),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.network_starts", description=__doc__)
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--trials", type=int, default=6)
    options = parser.parse_args()
    X, y, X_test, y_test = fw.datasets.load(options.data, dtype=np.float32)
    data = fw.Dataset(X, y)
    problem = fw.OneHiddenLayer(data.n_features, 10, data.n_classes)
    print("| method | start | training loss | train | test |\n|---|---|---|---|---|")
    for name, run in METHODS.items():
        for start, (init, ties) in STARTS.items():
            rows = []
            for seed in range(options.trials):
                M = problem.l1_balls(10.0, 10.0, ties=ties, seed=seed)
                x = run(problem, M, init, seed, data)
                test = problem.accuracy(x, X_test, y_test) if len(X_test) else np.nan
                rows.append((problem.loss(x, data), problem.accuracy(x, X, y), test))
            loss, train, test = np.mean(rows, axis=0)
            error = np.std(rows, axis=0, ddof=1)[0] / options.trials**0.5
            row = f"{loss:.3f} ± {error:.3f} | {train:.3f} | {test:.3f}"
            print(f"| {name} | {start} | {row} |", flush=True)


if __name__ == "__main__":
    main()
