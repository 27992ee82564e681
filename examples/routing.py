"""Online routing: unit flows through a network, costs chosen by an adversary, MORGFW.

Every round traffic is divided among the routes from one corner of a street grid to the other, then
the travel times of all streets are seen. A street takes c_t plus a little for every share of the
traffic that uses it: the loss is ⟨c_t, x⟩ + ‖x‖²/10, convex in the flow x. The adversary looks for
the route that was best so far and jams three of its streets for five rounds, so that whoever
follows the past runs into the jam. The best fixed decision is the best flow in hindsight; a fixed
uniform decision divides evenly at every crossing.

The network and the costs are made up: streets differ in length, at random.

    python -m examples.routing
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import fastfw as fw

try:
    from examples._drawing import draw, fixed_regret, main
except ImportError:  # started as a file
    from _drawing import draw, fixed_regret, main

SIDE = 5


def streets() -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """One-way streets between the crossings of a grid, eastward and northward."""
    crossings = [(i, j) for i in range(SIDE) for j in range(SIDE)]
    east = [((i, j), (i + 1, j)) for i, j in crossings if i + 1 < SIDE]
    north = [((i, j), (i, j + 1)) for i, j in crossings if j + 1 < SIDE]
    return east + north


def travel_time(x, costs):
    """Mean over the rows c of a batch of ⟨c, x⟩ + ‖x‖²/10, and its gradient."""
    c = costs.mean(axis=0)
    return float(c @ x + 0.1 * (x @ x)), c + 0.2 * x


def adversary(flows: fw.FlowPolytope, rounds: int, seed: int) -> np.ndarray:
    """Costs of all streets, shape (rounds, streets)."""
    rng = np.random.default_rng(seed)
    length = rng.uniform(0.1, 1.0, flows.shape)
    costs = np.empty((rounds, *flows.shape))
    for t in range(rounds):
        costs[t] = length + 0.2 * rng.uniform(size=flows.shape)
        if t % 5 == 0:
            leader = flows.lmo(costs[:t].sum(axis=0) if t else length)
            jammed = rng.choice(leader.indices, size=3, replace=False)
        costs[t, jammed] += 1.0
    return costs


def run(rounds: int = 400, seed: int = 0, out: Path | None = None) -> dict[str, Any]:
    """Route the traffic and return the regret curves; draw them where a folder is given."""
    flows = fw.FlowPolytope(streets(), source=(0, 0), sink=(SIDE - 1, SIDE - 1))
    costs = adversary(flows, rounds, seed)
    stream = [row[np.newaxis] for row in costs]

    problem = fw.problem_from_function(travel_time, shape=flows.shape)
    learner = fw.MORGFW(
        problem, flows, rounds=rounds, inner_steps=50, base=fw.FTPL(scale=1.0), seed=seed
    )
    result = learner.run(stream)

    best = fw.best_fixed_decision(problem, flows, costs, tol=1e-4)
    curves = {
        "MORGFW": fw.regret(result, best, stream),
        "even at every crossing": fixed_regret(problem, flows.start(), best, stream),
    }
    if out is not None:
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.add_subplot()
        draw(axes, curves, "travel time")
        axes.set_title(f"Routes through {len(flows.edges)} streets, adversarial jams", fontsize=11)
        figure.savefig(out / "routing.png", dpi=110)
    return curves


if __name__ == "__main__":
    main(run, 400, "Online routing with MORGFW.")
