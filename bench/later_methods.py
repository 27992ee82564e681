"""Regret and time of adversarial methods where their claims differ: the tables of docs/later.md.

Run it from the root of a checkout::

    python -m bench.later_methods exponents    # three minutes; --seeds 2 --most 1000 for a look
    python -m bench.later_methods images       # two minutes
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fastfw as fw

Make = Callable[[Any, Any, int, int], Any]
METHODS: dict[str, Make] = {
    "RegularizedOFW": lambda p, M, T, seed: fw.RegularizedOFW(p, M, rounds=T),
    "OFW-LS": lambda p, M, T, seed: fw.RegularizedOFW(p, M, rounds=T, step="line-search"),
    "SC-OFW": lambda p, M, T, seed: fw.StronglyConvexOFW(p, M, strong_convexity=1.0),
    "OSPF": lambda p, M, T, seed: fw.OSPF(p, M, rounds=T, seed=seed),
}


class Linear:
    """f(x) = ⟨g, x⟩: costs of the edges of a network, or any others."""

    def __init__(self, n: int) -> None:
        self.shape = (n,)

    def loss(self, x: Any, g: Any) -> float:
        return float(g @ x)

    def gradient(self, x: Any, g: Any) -> Any:
        return g


class Squares(Linear):
    """f(x) = ‖x - g‖² / 2, strongly convex and smooth."""

    def loss(self, x: Any, g: Any) -> float:
        return 0.5 * float((x - g) @ (x - g))

    def gradient(self, x: Any, g: Any) -> Any:
        return x - g


class World(NamedTuple):
    """A problem, a set, and what an adversary says in T rounds."""

    problem: Any
    set: Any
    points: Callable[[int, int], Any]

    def least(self, points: Any) -> float:
        """Loss of the best fixed decision, which both families have in closed form."""
        total = points.sum(axis=0)
        if isinstance(self.problem, Squares):
            mean = total / len(points)
            x = self.set.project(mean)
            return 0.5 * float(((x - points) ** 2).sum())
        v = self.set.lmo(total).toarray()
        return float(total @ v)


def around(n: int, turns: bool) -> Callable[[int, int], Any]:
    """Unit vectors about a direction, which turns round once after three eighths, or does not."""

    def points(T: int, seed: int) -> Any:
        rng = np.random.default_rng((seed, T))
        found = 0.5 * rng.standard_normal((T, n)) / np.sqrt(n)
        found[:, 0] += np.where(turns & (np.arange(T) < 3 * T // 8), -1.0, 1.0)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    return points


def grid(side: int) -> tuple[list[tuple[int, int]], int]:
    """Edges to the right and down of a square grid, and its last node."""
    nodes = np.arange(side * side).reshape(side, side)
    across = zip(nodes[:, :-1].ravel(), nodes[:, 1:].ravel(), strict=True)
    down = zip(nodes[:-1].ravel(), nodes[1:].ravel(), strict=True)
    return [(int(a), int(b)) for a, b in (*across, *down)], side * side - 1


def costs(n: int) -> Callable[[int, int], Any]:
    """Costs in [0, 1] of the edges, half of which are dear first and cheap later."""

    def points(T: int, seed: int) -> Any:
        rng = np.random.default_rng((seed, T))
        dear = rng.random(n) < 0.5
        level = np.where((np.arange(T) < 3 * T // 8)[:, np.newaxis] == dear, 0.75, 0.25)
        return level + 0.25 * rng.uniform(-1.0, 1.0, (T, n))

    return points


def worlds() -> dict[str, World]:
    """Where exponents are measured."""
    edges, last = grid(4)
    n = len(edges)
    return {
        "l2 ball, linear": World(Linear(10), fw.L2Ball(10, 1.0), around(10, True)),
        "l2 ball, squares": World(Squares(10), fw.L2Ball(10, 0.5), around(10, False)),
        "routing, linear": World(Linear(n), fw.FlowPolytope(edges, 0, last), costs(n)),
    }


def exponents(part: str, most: int, seeds: int) -> None:
    """Print regret at T = 10^2, 10^2.5, ..., and the slope of its logarithm with standard error."""
    print(f"{'world':18} {'method':15} {'exponent':>15}  mean regret at T (ms a round)")
    for name, world in worlds().items():
        for label, make in METHODS.items() if part in name else ():
            logs, shown = [], []
            for T in (round(10 ** (e / 2)) for e in range(4, 10)):
                if most < T:
                    break
                found, seconds = [], []
                for seed in range(seeds):
                    points = world.points(T, seed)
                    learner = make(world.problem, world.set, T, seed)
                    result = learner.run(list(points))
                    found.append(result.losses.sum() - world.least(points))
                    seconds.append(result.seconds[-1] / T)
                logs += [(np.log(T), np.log(value)) for value in found if value > 0]
                shown.append(f"{T}: {np.mean(found):.4g} ({1e3 * np.mean(seconds):.3f})")
            x, y = np.transpose(logs)
            slope, cut = np.polyfit(x, y, 1)
            rest = y - slope * x - cut
            error = np.sqrt((rest @ rest) / (len(x) - 2) / ((x - x.mean()) ** 2).sum())
            print(
                f"{name:18} {label:15} {slope:7.3f} +-{error:5.3f}   {', '.join(shown)}", flush=True
            )


def images(rounds: int) -> None:
    """Print regret on sorted and on drifting images, and on the worst interval."""
    X, y, *_ = fw.datasets.load("fashion-mnist-4k")
    data = fw.Dataset(X, y)
    problem = fw.SoftmaxRegression(data.n_features, data.n_classes)
    ball = fw.RowL1Ball(problem.shape, 8.0)
    B = len(data) // rounds
    makes: dict[str, Make] = {
        **METHODS,
        "SC-OFW": lambda p, M, T, seed: fw.StronglyConvexOFW(p, M, strong_convexity=0.1),
        "MORGFW": lambda p, M, T, seed: fw.MORGFW(
            p, M, rounds=T, base=fw.FTPL(100.0), sub_batch_size=4, seed=seed
        ),
    }
    streams = {
        "sorted": fw.sorted_stream(data, batch_size=B, rounds=rounds),
        "drift, pieces": fw.drifting_stream(data, batch_size=B, rounds=rounds, seed=0),
        "drift, smooth": fw.drifting_stream(data, batch_size=B, rounds=rounds, smooth=True, seed=0),
    }
    print(f"{'stream':15} {'method':15} {'regret':>9} {'worst interval':>24} {'ms a round':>11}")
    for name, stream in streams.items():
        for label, make in makes.items():
            make(problem, ball, rounds, 0).run(fw.sorted_stream(data, batch_size=B, rounds=2))
            result = make(problem, ball, rounds, 0).run(stream)
            worst = fw.interval_regret(
                result, problem, ball, stream, shortest=rounds // 4, tol=1e-3
            )
            whole = worst.intervals[(worst.intervals[:, 1] - worst.intervals[:, 0]).argmax(), 2]
            where = f"{worst.value:.4g} in {worst.first}..{worst.last}"
            ms = 1e3 * result.seconds[-1] / rounds
            print(f"{name:15} {label:15} {whole:9.4g} {where:>24} {ms:11.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", choices=["exponents", "images"])
    parser.add_argument("--most", type=int, default=10_000, help="largest T of the exponents")
    parser.add_argument("--world", default="", help="part of the names of worlds")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=100, help="rounds on images")
    given = parser.parse_args()
    if given.table == "images":
        images(given.rounds)
    else:
        exponents(given.world, given.most, given.seeds)


if __name__ == "__main__":
    main()
