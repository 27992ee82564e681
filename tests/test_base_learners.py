"""FTPL, OGD and RFTL on their own: online linear optimisation."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from fastfw.base_learners import Turn
from learner_cases import Box

SHAPE, RADIUS = (2, 6), 1.5
BALL = fw.RowL1Ball(SHAPE, RADIUS)


def directions(T, seed=0):
    return np.random.default_rng(seed).uniform(-1.0, 1.0, (T, *SHAPE))


def play(learner, ds):
    """Points played, the last one before a direction that never comes."""
    points = []
    for d in ds:
        points.append(learner.play())
        learner.observe(d)
    return np.array([*points, learner.play()])


@pytest.mark.parametrize("noise", ["uniform", "gaussian", "exponential", "gumbel"])
@pytest.mark.parametrize("fresh", [True, False])
def test_ftpl_equals_reference(noise, fresh):
    ds = directions(20)
    spec = fw.FTPL(scale=3.0, noise=noise, fresh=fresh)

    def n(t):
        return spec.perturbation(SHAPE, t=t if fresh else 1, seed=4)

    wanted = play(ref.FTPL(SHAPE, RADIUS, 3.0, 20, n), ds)
    found = play(spec.on(BALL, rounds=20, seed=4), ds)
    np.testing.assert_array_equal(found, wanted)
    assert len(np.unique(found, axis=0)) > 2


@pytest.mark.parametrize("step", [0.3, lambda t: 2.0 / math.sqrt(t)])
def test_ogd_and_rftl_equal_reference(step):
    ds = directions(20)
    start = np.zeros(SHAPE)
    start[0, 2] = -1.0
    wanted = play(ref.OGD(start, RADIUS, step), ds)
    found = play(fw.OGD(step=step).on(BALL, rounds=20, start=start), ds)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)
    wanted = play(ref.RFTL(SHAPE, RADIUS, step), ds)
    found = play(fw.RFTL(step=step).on(BALL, rounds=20), ds)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-14)


def test_default_steps_are_those_of_the_theory():
    D = BALL.diameter
    d = np.full(SHAPE, 1e-3)
    ogd = fw.OGD(gradient_bound=40.0).on(BALL, rounds=9)
    rftl = fw.RFTL(gradient_bound=40.0).on(BALL, rounds=9)
    x = np.zeros(SHAPE)
    for t in range(1, 4):
        ogd.observe(d)
        rftl.observe(d)
        x = x - D / (40.0 * math.sqrt(t)) * d
        np.testing.assert_allclose(ogd.play(), x, rtol=1e-12)
        np.testing.assert_allclose(rftl.play(), -D / (40.0 * 3.0) * t * d, rtol=1e-12)


def regret(points, ds):
    best = -RADIUS * np.abs(ds.sum(axis=0)).max(axis=1).sum()
    return float((points[:-1] * ds).sum()) - best


def test_ftpl_regret_is_below_its_bound():
    """Expected regret at most (c R A + D / c) √T per row (Kalai and Vempala, Theorem 1.1)."""
    T = 100
    A, R, D = SHAPE[1], RADIUS, 2.0 * RADIUS  # l1 norm, loss, l1 diameter: of one row
    c = math.sqrt(D / (R * A))
    bound = SHAPE[0] * (c * R * A + D / c) * math.sqrt(T)
    for seed in range(3):
        ds = directions(T, seed)
        mean = np.mean(
            [regret(play(fw.FTPL(c).on(BALL, rounds=T, seed=s), ds), ds) for s in range(8)]
        )
        assert mean <= bound


@pytest.mark.parametrize("method", [fw.OGD, fw.RFTL])
def test_regret_of_bases_that_project_is_below_their_bound(method):
    """At most (3/2) D G √T, whatever the directions."""
    T = 100
    for seed in range(3):
        ds = directions(T, seed)
        G = float(np.linalg.norm(ds, axis=(1, 2)).max())
        points = play(method(gradient_bound=G).on(BALL, rounds=T), ds)
        assert regret(points, ds) <= 1.5 * BALL.diameter * G * math.sqrt(T)
        assert all(BALL.contains(x) for x in points)


def test_functions_have_no_side_effects():
    memory, d = directions(2)
    before = memory.copy()
    turn = Turn(3, 1, 5, 1, 17)
    for spec in (fw.FTPL(2.0), fw.OGD(0.1), fw.RFTL(0.1)):
        first = spec.answer(BALL, memory, turn)
        later = spec.remember(BALL, memory, d, turn)
        np.testing.assert_array_equal(spec.answer(BALL, memory, turn), first)
        np.testing.assert_array_equal(memory, before)
        assert not np.shares_memory(later, memory)


def test_bad_directions_change_nothing():
    learner = fw.FTPL(2.0).on(BALL, rounds=5)
    good = directions(1)[0]
    learner.observe(good)
    played = learner.play()
    nan, huge = good.copy(), np.full(SHAPE, 1e308)
    nan[1, 1] = np.nan
    for bad, error, match in (
        (nan, ValueError, "direction must be finite"),
        (good[0], ValueError, "direction must have shape"),
        (good.astype(str), TypeError, "direction must hold real numbers"),
    ):
        with pytest.raises(error, match=match):
            learner.observe(bad)
    np.testing.assert_array_equal(learner.play(), played)
    learner.observe(huge)
    with pytest.raises(FloatingPointError, match="round 3"):
        learner.observe(huge)
    assert learner.t == 3


def test_ftpl_plays_on_any_set():
    learner = fw.FTPL(scale=100.0).on(Box(SHAPE), rounds=10)
    d = directions(1)[0]
    learner.observe(d)
    np.testing.assert_array_equal(learner.play(), -np.sign(d))


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: fw.FTPL(scale=0.0), ValueError, "scale"),
        (lambda: fw.FTPL(scale="1"), TypeError, "scale"),
        (lambda: fw.FTPL(noise="laplace"), ValueError, "noise must be 'uniform', "),
        (lambda: fw.FTPL(fresh=1), TypeError, "fresh"),
        (lambda: fw.OGD(step=-1.0), ValueError, "step"),
        (lambda: fw.RFTL(gradient_bound=0.0), ValueError, "gradient_bound"),
        (lambda: fw.OGD().on(Box(SHAPE), rounds=3), TypeError, "OGD needs a set with project"),
        (lambda: fw.FTPL().on(BALL, rounds=0), ValueError, "rounds"),
        (lambda: fw.FTPL().on(BALL, rounds=3, seed=-1), ValueError, "seed"),
        (lambda: fw.FTPL().on(object(), rounds=3), TypeError, "set must have"),
        (lambda: fw.OGD(step=lambda t: -1.0).on(BALL, rounds=3).observe(directions(1)[0]),
         ValueError, "step in round 1"),
    ],
)  # fmt: skip
def test_bad_arguments(make, error, match):
    with pytest.raises(error, match=match):
        make()
