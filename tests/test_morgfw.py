"""MORGFW, and what it shares with MetaFrankWolfe, against the reference with the same draws."""

from __future__ import annotations

import numpy as np
import pytest

import fastfw as fw
from learner_cases import ENGINES, Box, Pairs, engines
from meta_cases import SHAPE, assert_equals_reference, data, learner, stream

METHODS = pytest.mark.parametrize("method", [fw.MORGFW, fw.MetaFrankWolfe])


@METHODS
@engines
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("size", [None, 1, 3, 4, 6])
def test_equals_reference(method, engine, reduction, size):
    own = learner(method, rounds=5, sub_batch_size=size, reduction=reduction, engine=engine)
    assert own.engine == engine
    assert own.inner_steps == {fw.MORGFW: 5, fw.MetaFrankWolfe: 12}[method]
    assert_equals_reference(own, list(stream(5)))


@engines
@pytest.mark.parametrize("noise", ["uniform", "gaussian", "exponential", "gumbel"])
@pytest.mark.parametrize("fresh", [True, False])
def test_equals_reference_for_every_noise(engine, noise, fresh):
    base = fw.FTPL(scale=20.0, noise=noise, fresh=fresh)
    own = learner(fw.MORGFW, rounds=5, base=base, sub_batch_size=2, engine=engine)
    assert_equals_reference(own, list(stream(5)))


@METHODS
@pytest.mark.parametrize("base", [fw.OGD(step=0.4), fw.RFTL(step=lambda t: 3 / (t + 1))])
@pytest.mark.parametrize("size", [None, 2])
def test_equals_reference_for_bases_that_project(method, base, size):
    with pytest.warns(fw.EngineWarning, match="base FTPL"):
        own = learner(method, rounds=4, base=base, sub_batch_size=size)
    assert own.engine == "steps"
    assert_equals_reference(own, list(stream(4)))


@engines
@pytest.mark.parametrize("rounds", [1, 6, 7])
@pytest.mark.parametrize("size", [None, 3])
def test_doubling(engine, rounds, size):
    own = learner(fw.MORGFW, sub_batch_size=size, engine=engine)
    wanted = assert_equals_reference(own, list(stream(rounds)))
    assert [len(v) for v in wanted.vertices] == [1, 2, 2, 4, 4, 4, 4][:rounds]
    assert own.inner_steps == {1: 2, 6: 4, 7: 8}[rounds]


@engines
def test_doubling_of_meta_frank_wolfe(engine):
    own = learner(fw.MetaFrankWolfe, sub_batch_size=3, engine=engine)
    wanted = assert_equals_reference(own, list(stream(7)))
    assert [len(v) for v in wanted.vertices] == [1, 3, 3, 8, 8, 8, 8]


def test_theory_inner_steps_of_meta_frank_wolfe():
    """The least K with K^2 >= T^3, for huge T too."""
    for n in (1, 2, 3, 4, 9, 100, 10**6, 10**6 + 1, 10**9 + 7):
        K = fw.MetaFrankWolfe._theory_inner_steps(n)
        assert K**2 >= n**3 > (K - 1) ** 2


@engines
@pytest.mark.parametrize("size", [None, 4])
def test_paper_schedules_and_a_start(engine, size):
    start = np.zeros(SHAPE)
    start[:, 1], start[:, 3] = 0.5, -1.25
    own = learner(
        fw.MORGFW, rounds=6, inner_steps=20, sub_batch_size=size, engine=engine, start=start,
        step=fw.power_schedule(2.0, 1.0), momentum=fw.power_schedule(2.0, 0.5),
    )  # fmt: skip
    assert own._schedule("step", 1) == 1.0
    assert_equals_reference(own, list(stream(6)))


@pytest.mark.parametrize("step", [0.0, 0.5, 0.95, 1.0])
def test_constant_steps(step):
    own = learner(fw.MORGFW, rounds=4, inner_steps=30, sub_batch_size=4, step=step, momentum=0.3)
    assert_equals_reference(own, list(stream(4)))


@pytest.mark.parametrize("shape", [(2, 3), (11, 70), (3, 130)])
@pytest.mark.parametrize("size", [None, 5])
def test_other_shapes(shape, size):
    X, y = data(40, shape)
    own = learner(fw.MORGFW, shape=shape, rounds=3, inner_steps=4, sub_batch_size=size)
    assert_equals_reference(own, [(X[i : i + 13], y[i : i + 13]) for i in (0, 13, 26)])


@METHODS
@pytest.mark.parametrize("size", [None, 4])
def test_more_inner_steps_than_one_block(method, size):
    own = learner(method, rounds=4, inner_steps=75, sub_batch_size=size)
    assert_equals_reference(own, list(stream(4)))


def test_large_numbers_that_do_not_overflow(tmp_path):
    """Near the largest number a round is played on a copy; its outcome is the same."""
    X, y = data(8)
    batches = [(X * 4e306, y)] * 3
    own, steps = (learner(fw.MORGFW, rounds=3, engine=e) for e in ENGINES)
    for batch in batches:
        assert own._engine is None or not own._engine._bound(batch[0], 8) < np.inf
        assert own.observe(batch).loss == pytest.approx(steps.observe(batch).loss, rel=1e-12)
        np.testing.assert_allclose(own.play(), steps.play(), rtol=0, atol=1e-12)
    own.save(tmp_path / "learner.npz")
    np.testing.assert_array_equal(fw.MORGFW.load(tmp_path / "learner.npz").play(), own.play())


@engines
def test_a_schedule_that_fails_in_the_next_epoch_leaves_no_trace(engine):
    limit = [2]

    def step(k):
        if k > limit[0]:
            raise RuntimeError("no such step")
        return 1.0 / (k + 1)

    own = learner(fw.MORGFW, sub_batch_size=2, engine=engine, step=step)
    other = learner(fw.MORGFW, sub_batch_size=2, engine=engine)
    batches = list(stream(4))
    for batch in batches[:2]:
        assert own.observe(batch).loss == other.observe(batch).loss
    with pytest.raises(RuntimeError, match="no such step"):
        own.observe(batches[2])
    assert own.t == 3
    np.testing.assert_array_equal(own.average, other.average)
    limit[0] = 100
    for batch in batches[2:]:
        assert own.observe(batch).loss == other.observe(batch).loss
    np.testing.assert_array_equal(own.average, other.average)


@METHODS
def test_rounds_beyond_the_horizon(method):
    own = learner(method, rounds=2, sub_batch_size=2)
    steps = learner(method, rounds=2, sub_batch_size=2, engine="steps")
    for batch in stream(5):
        assert own.observe(batch).loss == pytest.approx(steps.observe(batch).loss, abs=1e-12)
    assert own.t == 6
    np.testing.assert_allclose(own.play(), steps.play(), rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [None, 2])
def test_any_problem_and_set(size):
    problem, box = Pairs((2, 3)), Box((2, 3))
    own = fw.MORGFW(problem, box, rounds=40, base=fw.FTPL(50.0), sub_batch_size=size)
    assert own.engine == "steps"
    batch = (np.full((4, 2, 3), 0.25), np.zeros(4, int))
    losses = [own.observe(batch).loss for _ in range(40)]
    assert np.mean(losses[-10:]) < 0.3 * losses[0]
    assert np.abs(own.play()).max() <= 1.0
    with pytest.raises(TypeError, match="OGD needs a set with project"):
        fw.MORGFW(problem, box, base=fw.OGD())


def test_counts():
    whole, sub = learner(fw.MORGFW, rounds=4), learner(fw.MORGFW, rounds=4, sub_batch_size=2)
    result = whole.run(stream(4))
    assert (result.gradient_evaluations, result.lmo_calls) == (4 * 4 * 8, 16)
    result = sub.run(stream(4))
    assert (result.gradient_evaluations, result.lmo_calls) == (4 * 4 * 2 * 2, 16)
    result = learner(fw.MORGFW, sub_batch_size=1).run(stream(6))
    assert result.lmo_calls == 1 + 2 + 2 + 4 + 4 + 4
    result = learner(fw.MetaFrankWolfe, rounds=4, sub_batch_size=2).run(stream(4))
    assert (result.gradient_evaluations, result.lmo_calls) == (4 * 8 * 2, 32)


def test_sub_batches_are_a_pure_function():
    own = learner(fw.MORGFW, rounds=4, sub_batch_size=3)
    drawn = {(t, k): own.sub_batch(t, k, 8) for t in (1, 2) for k in (1, 2, 3)}
    again = {key: own.sub_batch(*key, 8) for key in reversed(drawn)}
    for key, picked in drawn.items():
        np.testing.assert_array_equal(picked, again[key])
        assert picked.min() >= 0
        assert picked.max() < 8
    assert len({tuple(p) for p in drawn.values()}) == 6
    with pytest.raises(ValueError, match="sub_batch_size is None"):
        learner(fw.MORGFW).sub_batch(1, 1, 8)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"rounds": 0}, ValueError, "rounds"),
        ({"rounds": 2.5}, TypeError, "rounds"),
        ({"inner_steps": 0}, ValueError, "inner_steps"),
        ({"sub_batch_size": -1}, ValueError, "sub_batch_size"),
        ({"base": "FTPL"}, TypeError, "base must be FTPL"),
        ({"step": 2.0}, ValueError, "step"),
        ({"momentum": "x"}, TypeError, "momentum"),
        ({"engine": "gpu"}, ValueError, "engine"),
    ],
)
def test_bad_arguments(options, error, match):
    with pytest.raises(error, match=match):
        learner(fw.MORGFW, **options)


def test_files_of_own_bases(tmp_path):
    path = tmp_path / "learner.npz"
    base = fw.RFTL(step=lambda t: 1.0 / t)
    own = learner(fw.MORGFW, rounds=3, base=base, engine="steps")
    own.observe(next(iter(stream(1))))
    own.save(path)
    with pytest.raises(ValueError, match="base is not saved"):
        fw.MORGFW.load(path)
    loaded = fw.MORGFW.load(path, base=base)
    np.testing.assert_array_equal(loaded.play(), own.play())
