"""Line search, StronglyConvexOFW and OSPF against the reference and against their bounds."""

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from fastfw import theory
from fastfw._options import method_names
from fastfw.experiments import grid_search
from fastfw.experiments.methods import METHODS, NETWORK_METHODS
from fastfw.learners import TABLE
from history_cases import SHAPES, T, all_rounds, assert_follows, case
from learner_cases import RADIUS, Box, Quadratic

SEEDS = 20


def towards(radius):
    """The oracle of the Euclidean ball."""
    return lambda d: -radius * d / np.linalg.norm(d)


def corner(d):
    """That of rows in l1 balls."""
    return ref.lmo(d, RADIUS)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("method", ["search", "search, T", "strong", "ospf", "ospf, T"])
def test_rounds_follow_the_reference(method, curved, shape, reduction):
    problem, ball, stream, batches = case(shape, reduction)
    set, oracle = (fw.L2Ball(ball.shape, RADIUS), towards(RADIUS)) if curved else (ball, corner)
    start, rounds = np.zeros(ball.shape), T if method.endswith("T") else None
    if method == "strong":
        learner = fw.StronglyConvexOFW(problem, set, strong_convexity=0.3)
        run = ref.strongly_convex_ofw(start, batches, oracle, 0.3, reduction)
    elif method.startswith("search"):
        learner = fw.RegularizedOFW(problem, set, step="line-search", rounds=rounds, scale=1.5)
        run = ref.line_search_ofw(start, batches, oracle, 1.5, rounds, curved, reduction)
    else:
        block = 4 if shape == SHAPES[0] else None
        learner = fw.OSPF(problem, set, rounds=rounds, scale=1.5, seed=7, block_size=block)

        def noise(t):
            return fw.FTPL().perturbation(ball.shape, t=t, seed=7)

        run = ref.ospf(start, batches, oracle, noise, 1.5, rounds, block, reduction)
    result = all_rounds(learner, stream)
    # vertices on the sphere move with the direction, by its rounding
    assert_follows(result, run, 1e-11 if curved else 1e-12, reduction, shape[2])
    assert (learner.engine, result.lmo_calls) == ("steps", T)
    assert result.gradient_evaluations == shape[2] * T


# --- bounds: losses are known, and so are all constants -------------------------------------------

N, ROUNDS, LONG = 3, 60, 1500


class Linear:
    """f(x) = ⟨g, x⟩."""

    shape = (N,)

    def loss(self, x, g):
        return g @ x

    def gradient(self, x, g):
        return g


class Bent(Quadratic):
    """f(x) = ‖x - a‖² / 2 for a single point a."""

    def loss(self, x, a):
        return super().loss(x, a[np.newaxis])

    def gradient(self, x, a):
        return super().gradient(x, a[np.newaxis])


def points(kind, seed, rounds=ROUNDS):
    """Unit vectors: one in all rounds, its two signs in turns or in ever longer blocks, or any."""
    rng = np.random.default_rng(seed)
    if kind == "any":
        found = rng.standard_normal((rounds, N))
    else:
        t = np.arange(rounds)
        signs = {"one": t**0, "turns": (-1) ** t, "blocks": (-1) ** np.log2(1 + t).astype(int)}
        found = signs[kind][:, np.newaxis] * rng.standard_normal(N)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


KINDS = ("one", "turns", "blocks", "any")


def best(problem, set, batches):
    """The least possible loss: of a sum of linear functions, or at the mean if that lies inside."""
    total = np.sum(batches, axis=0)
    if isinstance(problem, Linear):
        v = set.lmo(total)
        return float(total @ (v.toarray() if hasattr(v, "toarray") else v))
    return sum(problem.loss(total / len(batches), a) for a in batches)


def line_search(set, alpha, rounds):
    bound = theory.line_search_regret_bound(
        rounds, diameter=set.diameter, gradient_bound=1.0, set_convexity=alpha
    )
    learner = fw.RegularizedOFW(Linear(), set, step="line-search", rounds=rounds)
    return learner, bound


def strongly_convex(set, alpha, rounds):
    bound = theory.strongly_convex_regret_bound(
        rounds, diameter=set.diameter, gradient_bound=1.0 + set.diameter / 2, strong_convexity=1.0,
        set_convexity=alpha,
    )  # fmt: skip
    return fw.StronglyConvexOFW(Bent((N,)), set, strong_convexity=1.0), bound


def ospf(set, alpha, rounds):
    learner = fw.OSPF(Linear(), set, rounds=rounds)
    bound = theory.ospf_regret_bound(
        rounds, scale=0.5, block_size=learner.block_size, smoothness=0.0, diameter=set.diameter,
        l1_diameter=2 * N if not alpha else 2 * np.sqrt(N), direction_l1=np.sqrt(N),
        loss_range=set.diameter,
    )  # fmt: skip
    return learner, bound


def climb(problem, monkeypatch):
    """Break a method: its gradients have the wrong sign."""
    down = type(problem).gradient
    monkeypatch.setattr(type(problem), "gradient", lambda self, x, batch: -down(self, x, batch))


@pytest.mark.parametrize("set", [fw.L2Ball(N, 1.0), Box((N,))], ids=["l2", "box"])
@pytest.mark.parametrize("method", [line_search, strongly_convex, ospf])
def test_regret_stays_below_the_bound(method, set, monkeypatch):
    alpha = getattr(set, "strong_convexity", 0.0)

    def excess(batches):
        learner, bound = method(set, alpha, len(batches))
        least = best(learner.problem, set, batches)
        return learner.run(list(batches)).losses.sum() - least - bound

    for seed in range(SEEDS):
        assert excess(points(KINDS[seed % len(KINDS)], seed)) <= 0.0
    climb(method(set, alpha, 1)[0].problem, monkeypatch)
    assert excess(points("one", 0, LONG)) > 0.0


@pytest.mark.parametrize(
    ("bound", "curved", "flat"),
    [
        (lambda T, a: theory.line_search_regret_bound(
            T, diameter=2.0, gradient_bound=3.0, set_convexity=a), 2 / 3, 3 / 4),
        (lambda T, a: theory.strongly_convex_regret_bound(
            T, diameter=2.0, gradient_bound=3.0, strong_convexity=0.5, set_convexity=a,
        ), 1 / 2, 2 / 3),
        (lambda T, a: [theory.ospf_regret_bound(
            t, scale=1.0, block_size=round(t ** (1 / 3)), smoothness=1.0, diameter=1.0,
            l1_diameter=1.0, direction_l1=1.0, loss_range=1.0) for t in T], 2 / 3, 2 / 3),
    ],
    ids=["line search", "strongly convex", "ospf"],
)  # fmt: skip
def test_orders_of_the_bounds(bound, curved, flat):
    for alpha, order in ((1.0, curved), (0.0, flat)):
        few, many = bound(np.array([1000, 27_000]), alpha)
        assert np.log(many / few) / np.log(27.0) == pytest.approx(order, abs=0.03)


def test_theory_is_the_default_of_ospf():
    """c = 1/(2 G) with G of the first round; blocks of ⌈T^{1/3}⌉."""
    problem, ball, stream, batches = case(SHAPES[1])
    learner = fw.OSPF(problem, ball)
    assert (learner.scale, learner.block_size) == (None, 1)
    learner.run(stream)
    G = np.sqrt(2.0) * np.linalg.norm(batches[0][0], axis=1).max()
    assert learner.scale == pytest.approx(0.5 / G, rel=1e-14)
    sizes = [fw.OSPF(problem, ball, rounds=T).block_size for T in (1, 8, 9, 1000, 1001)]
    assert sizes == [1, 2, 3, 10, 11]


def test_what_is_refused():
    problem, ball, *_ = case(SHAPES[1])
    with pytest.raises(TypeError, match="step"):
        fw.RegularizedOFW(problem, ball, step="line")
    with pytest.raises(ValueError, match="strong_convexity"):
        fw.StronglyConvexOFW(problem, ball, strong_convexity=0.0)
    with pytest.raises(ValueError, match="block_size"):
        fw.OSPF(problem, ball, block_size=0)
    with pytest.raises(ValueError, match="OSPF finds its own steps"):
        grid_search(method="ospf")


def test_all_methods_by_one_word():
    """Offline ones only for networks, though `compare` takes them to say where they belong."""
    online = tuple(method.name for method in METHODS)
    assert method_names(TABLE)("all") == method_names(METHODS)("ALL") == online
    assert method_names(NETWORK_METHODS)("all")[-2:] == ("svrf", "spiderfw")
