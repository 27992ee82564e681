"""RegularizedOFW against the tight worst case of its first rounds, by semidefinite programs.

Over all sets of diameter D, in any dimension, and all linear losses of norm at most G.
"""

import numpy as np
import pytest

import fastfw as fw
from learner_cases import Box, Linear

pytest.importorskip("PEPit", reason="worst cases are found by PEPit: pip install pepit")

D = G = 1.0


class Hull:
    """The convex hull of some points; of vertices as good as each other a given one comes first."""

    diameter = D

    def __init__(self, points):
        self.points, self.shape, self.first = np.array(points), (len(points[0]),), iter(points)

    def lmo(self, direction):
        values = self.points @ direction
        wanted = next(self.first)
        tied = wanted @ direction <= values.min() + 1e-3
        return wanted if tied else self.points[values.argmin()]


def dense(v):
    return v.toarray() if hasattr(v, "toarray") else v


def worst_case(rounds):
    """The largest regret of theory's step and scale, and where it is suffered."""
    from PEPit import PEP, Expression, Point
    from PEPit.functions import ConvexIndicatorFunction

    problem = PEP()
    inside = problem.declare_function(ConvexIndicatorFunction, D=D)
    start, best = problem.set_initial_point(), Point()
    inside.oracle(start), inside.oracle(best)
    pull = 2.0 / (D / (2.0 * G) / rounds**0.75)
    x, total, regret, gradients, vertices = start, 0 * start, 0, [], []
    for t in range(1, rounds + 1):
        g, v = Point(), Point()
        problem.set_initial_condition(g**2 <= G**2)
        regret, total = regret + g * (x - best), total + g
        # v minimises a direction: its opposite is a subgradient of the set's indicator there
        inside.add_point((v, -(total + pull * (x - start)), Expression()))
        x = x + min(2.0 / np.sqrt(t), 1.0) * (v - x)
        gradients.append(g), vertices.append(v)
    problem.set_performance_metric(regret)
    value = problem.solve(verbose=0)
    return value, [[p.eval() for p in some] for some in ([start, best], vertices, gradients)]


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_regret_is_at_most_the_worst_and_can_be_it(rounds):
    worst, ((start, best), vertices, gradients) = worst_case(rounds)
    hull = Hull([*vertices, start, best])
    options = {"rounds": rounds, "scale": D / (2.0 * G)}
    learner = fw.RegularizedOFW(Linear((start.size,)), hull, start=start, **options)
    regret = learner.run(gradients).losses.sum() - np.sum(gradients, axis=0) @ best
    assert regret == pytest.approx(worst, rel=1e-3)  # the solver's points are feasible to 1e-4
    for seed in range(20):
        points = np.random.default_rng(seed).standard_normal((rounds, 3))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        for set in (fw.L2Ball(3, 3.0), Box((3,))):
            losses = points / set.diameter  # what counts is D times G
            options = {"rounds": rounds, "scale": set.diameter**2 / 2.0}
            start = dense(set.lmo(points[-1]))
            learner = fw.RegularizedOFW(Linear((3,)), set, start=start, **options)
            total = losses.sum(axis=0)
            least = total @ dense(set.lmo(total))
            assert learner.run(list(losses)).losses.sum() - least <= worst * (1.0 + 1e-6)
