"""RegularizedOFW against the reference, and the constant of its theory."""

import math

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from history_cases import (
    SCHEDULES,
    SHAPES,
    T,
    all_rounds,
    assert_follows,
    case,
    pieces,
    runs,
)
from learner_cases import (
    RADIUS,
    Box,
    C,
    D,
    Quadratic,
    engines,
    make_data,
    problem_and_ball,
    read,
    write,
)

STEP = SCHEDULES["paper"]


def fresh(engine="fused", **options):
    problem, ball = problem_and_ball()
    return fw.RegularizedOFW(problem, ball, engine=engine, **options)


@engines
@runs
@pytest.mark.parametrize("rounds", [T, None])
def test_rounds_follow_the_reference(engine, step, reduction, shape, rounds):
    step = SCHEDULES[step]
    problem, ball, stream, batches = case(shape, reduction)
    learner = fw.RegularizedOFW(problem, ball, rounds=rounds, step=step, scale=5.0, engine=engine)
    assert learner.engine == engine
    assert learner.scale == 5.0
    run = ref.regularised_ofw(np.zeros(ball.shape), batches, RADIUS, step, 5.0, rounds, reduction)
    result = all_rounds(learner, stream)
    assert_follows(result, run, reduction=reduction, size=shape[2])
    assert result.gradient_evaluations == shape[2] * T
    assert result.lmo_calls == T


@engines
def test_start_and_batches_of_many_sizes(engine):
    start = np.zeros((C, D))
    start[:, 2], start[0, 4] = -0.75, 1.0
    batches = pieces()
    learner = fresh(engine, step=STEP, scale=0.8, start=start)
    run = ref.regularised_ofw(start, batches, RADIUS, STEP, 0.8, None)
    result = all_rounds(learner, batches)
    assert_follows(result, run)
    assert result.gradient_evaluations == sum(len(y) for _, y in batches)


@engines
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_theory_is_the_default(engine, reduction):
    """Steps min(2/√t, 1); eta = D/(2 G T^{3/4}) with G = √2 max ‖a‖ over the first batch."""
    problem, ball, stream, batches = case(SHAPES[1], reduction)
    learner = fw.RegularizedOFW(problem, ball, rounds=T, engine=engine)
    assert learner.scale is None
    X = batches[0][0]
    G = math.sqrt(2.0) * np.linalg.norm(X, axis=1).max() * (1 if reduction == "mean" else len(X))
    c = 2.0 * RADIUS * math.sqrt(3) / (2.0 * G)

    def step(t):
        return min(2.0 / math.sqrt(t), 1.0)

    run = ref.regularised_ofw(np.zeros(ball.shape), batches, RADIUS, step, c, T, reduction)
    assert_follows(all_rounds(learner, stream), run, reduction=reduction, size=SHAPES[1][2])
    assert learner.scale == pytest.approx(c, rel=1e-14)
    # the bound holds for the gradient of every batch of these rows
    for x in run.iterates:
        assert np.linalg.norm(ref.gradient(x, *batches[0], reduction)) <= G


def test_the_gradient_bound_of_other_problems_is_the_first_gradient():
    rng = np.random.default_rng(0)
    batches = [rng.standard_normal((4, 2, 3)) for _ in range(10)]
    learner = fw.RegularizedOFW(Quadratic((2, 3)), Box((2, 3)), rounds=10)
    assert learner.engine == "steps"
    learner.run(batches)
    G = np.linalg.norm(batches[0].mean(axis=0))
    assert learner.scale == pytest.approx(2.0 * math.sqrt(6) / (2.0 * G), rel=1e-14)


@engines
def test_a_first_batch_without_a_gradient(engine):
    """Nothing but zeros: no bound, hence no pull; the learner goes on."""
    learner = fresh(engine, rounds=10)
    learner.observe((np.zeros((3, D)), [0, 1, 2]))
    assert math.isfinite(learner.scale)
    for batch in pieces(rounds=9):
        learner.observe(batch)
    assert learner.set.contains(learner.play())


def test_a_set_of_one_point_needs_eta():
    class Point:
        shape, diameter = (2, 3), 0.0

        def lmo(self, direction):
            return np.ones((2, 3))

    learner = fw.RegularizedOFW(Quadratic((2, 3)), Point())
    with pytest.raises(ValueError, match="scale must be given"):
        learner.observe(np.ones((4, 2, 3)))


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rounds": 0}, ValueError, "rounds must be an integer from 1 to"),
        ({"rounds": 2.0}, TypeError, "rounds must be an integer"),
        ({"scale": 0.0}, ValueError, "scale must be a positive number"),
        ({"scale": "large"}, TypeError, "scale must be a positive number"),
        ({"scale": math.nan}, ValueError, "scale must be a positive number"),
        ({"step": 1.5}, ValueError, "step must be a number in"),
    ],
    ids=str,
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        fresh(**options)


def test_an_earlier_name_of_the_constant(tmp_path):
    with pytest.warns(DeprecationWarning, match="eta is called scale now") as caught:
        learner = fresh(eta=3.0, step=STEP)
    assert caught[0].filename == __file__
    assert learner.scale == learner.eta == 3.0
    with pytest.raises(TypeError, match="eta is an earlier name of scale: give one of them"):
        fresh(eta=3.0, scale=3.0)
    learner.observe(make_data(n=4))
    learner.save(tmp_path / "new.npz")
    header, arrays = read(tmp_path / "new.npz")
    header["options"]["eta"] = header["options"].pop("scale")  # as it was written before
    write(tmp_path / "old.npz", header, arrays)
    assert fw.RegularizedOFW.load(tmp_path / "old.npz").scale == 3.0
