"""
Routes through a network
========================

Every round traffic is divided among the routes from one corner of a street grid to the other,
then the travel times of all streets are seen. Decisions are flows; the oracle finds a shortest
path. An adversary jams the route that was best so far, and MORGFW, which is made for
adversaries, plays against it.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

import fastfw as fw

ROUNDS, SIDE = 400, 5

# %%
# One-way streets lead east and north between the crossings of a grid.

crossings = [(i, j) for i in range(SIDE) for j in range(SIDE)]
east = [((i, j), (i + 1, j)) for i, j in crossings if i + 1 < SIDE]
north = [((i, j), (i, j + 1)) for i, j in crossings if j + 1 < SIDE]
flows = fw.FlowPolytope(east + north, source=(0, 0), sink=(SIDE - 1, SIDE - 1))

# %%
# A street takes c plus a little for every share of the traffic that uses it: the loss is ⟨c, x⟩ +
# ‖x‖²/10, convex in the flow x.


def travel_time(x, costs):
    """Mean over the rows c of a batch of ⟨c, x⟩ + ‖x‖²/10, and its gradient."""
    c = costs.mean(axis=0)
    return float(c @ x + 0.1 * (x @ x)), c + 0.2 * x


problem = fw.problem_from_function(travel_time, shape=flows.shape)

# %%
# The adversary looks for the route that was best so far and jams three of its streets for five
# rounds, so that whoever follows the past runs into the jam.

rng = np.random.default_rng(0)
length = rng.uniform(0.1, 1.0, flows.shape)
costs = np.empty((ROUNDS, *flows.shape))
for t in range(ROUNDS):
    costs[t] = length + 0.2 * rng.uniform(size=flows.shape)
    if t % 5 == 0:
        leader = flows.lmo(costs[:t].sum(axis=0) if t else length)
        jammed = rng.choice(leader.indices, size=3, replace=False)
    costs[t, jammed] += 1.0
stream = [row[np.newaxis] for row in costs]

# %%

learner = fw.MORGFW(problem, flows, rounds=ROUNDS, inner_steps=50, base=fw.FTPL(scale=1.0), seed=0)
result = learner.run(stream)

# %%
# The comparator is the best flow in hindsight. Beside MORGFW stands one that divides evenly at
# every crossing.

best = fw.best_fixed_decision(problem, flows, costs, tol=1e-4)
even = [problem.loss(flows.start(), batch) for batch in stream]
curves = {
    "MORGFW": fw.regret(result, best, stream),
    "even at every crossing": fw.regret(SimpleNamespace(losses=np.array(even)), best, stream),
}
for name, curve in curves.items():
    print(f"{name}: regret {curve[-1]:.2f} after {len(curve)} rounds")

# %%

figure, (axes, grid) = plt.subplots(
    1, 2, figsize=(9.6, 4.0), width_ratios=(3, 2), layout="constrained"
)
for name, curve in curves.items():
    curve.plot(axes, label=name)
axes.axhline(0.0, color="black", linestyle=":", label="best fixed decision")
axes.set(ylabel="regret (travel time)")
axes.legend()
for (tail, head), share in zip(flows.edges, result.decision, strict=True):
    grid.plot(*zip(tail, head, strict=True), color="C0", linewidth=0.5 + 8 * share)
grid.set(title="the last flow", xticks=[], yticks=[], aspect="equal")
plt.show()
