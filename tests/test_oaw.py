"""OAW's away steps against the reference, and its active set; test_ofw.py has plain rounds."""

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from fastfw.learners._active import ActiveSet
from history_cases import SCHEDULES, SHAPES, all_rounds, assert_follows, case, pieces
from learner_cases import RADIUS, C, D, engines, problem_and_ball, saved_goes_on
from sizes import sized

STEP = SCHEDULES["paper"]
EPS = np.finfo(np.float64).eps


def active(learner):
    """The active vertices as matrices, their weights, x_1's share, the number of steps."""
    state = learner._engine.arrays()
    codes, (_, d) = state["vertices"], learner.set.shape
    vertices = np.zeros((*codes.shape, d))
    for k, c in np.ndindex(*codes.shape):
        code = int(codes[k, c])
        vertices[k, c, max(code, -1 - code)] = RADIUS if code >= 0 else -RADIUS
    return vertices, state["weights"], float(state["start_weight"]), int(state["steps"])


@engines
@pytest.mark.parametrize("name", ["paper", "rough"])
def test_every_kind_of_step_is_taken_as_in_the_reference(name, engine):
    """Round by round: the same kind of step, the same vertices, the same weights."""
    rounds, step = sized(80, 25), SCHEDULES[name]
    problem, ball, stream, batches = case(SHAPES[1], rounds=rounds, seed=10)
    run = ref.oaw(np.zeros(ball.shape), batches, RADIUS, step)
    assert name == "rough" or {"frank-wolfe", "away", "drop"} == set(run.kinds)
    learner = fw.OAW(problem, ball, step=step, engine=engine)
    steps = 0
    for t, batch in enumerate(stream, start=1):
        learner.observe(batch)
        vertices, weights, start_weight, now = active(learner)
        assert (now > steps) == (run.kinds[t - 1] == "frank-wolfe")
        steps = now
        assert len(weights) == len(run.weights[t])
        assert np.abs(weights - run.weights[t]).max() <= 1e-13
        assert abs(start_weight - run.start_weights[t]) <= 1e-13
        # invariants: shares of one whole, whose mean is the decision
        assert weights.min() > 0.0
        assert start_weight >= 0.0
        assert abs(weights.sum() + start_weight - 1.0) <= 20 * EPS
        combination = np.tensordot(weights, vertices, 1)
        assert np.abs(combination - learner.play()).max() <= 50 * EPS * RADIUS
        assert len({vertex.tobytes() for vertex in vertices}) == len(vertices)


@engines
def test_start_and_batches_that_do_not_come_back(engine):
    start = np.zeros((C, D))
    start[:, 1], start[2, 0] = 1.5, -0.5
    batches = pieces()
    problem, ball = problem_and_ball()
    learner = fw.OAW(problem, ball, step=STEP, engine=engine, start=start)
    run = ref.oaw(start, batches, RADIUS, STEP)
    assert_follows(all_rounds(learner, batches), run)
    vertices, weights, start_weight, _ = active(learner)
    combination = start_weight * start + np.tensordot(weights, vertices, 1)
    assert np.abs(combination - learner.play()).max() <= 50 * EPS * RADIUS


@engines
def test_long_away_steps(engine):
    """Constant steps: away steps of half a length blow the scale up, full ones empty the set."""
    for step in (0.5, 1.0):
        problem, ball, stream, batches = case((2, 5, 9), seed=3)
        run = ref.oaw(np.zeros(ball.shape), batches, RADIUS, step)
        assert_follows(all_rounds(fw.OAW(problem, ball, step=step, engine=engine), stream), run)


@engines
@pytest.mark.parametrize("step", [1.0, fw.power_schedule(2.0, 1.0)])
def test_a_vertex_that_is_best_stays_best(engine, step):
    """At the minimiser, a vertex, both ways are equally good: Frank-Wolfe steps, x stays."""
    X, y = np.array([[4.0, 0.1], [-4.0, 0.1], [3.0, -0.1]]), [0, 1, 0]
    problem, ball = fw.SoftmaxRegression(2, 2), fw.RowL1Ball((2, 2), 0.1)
    learner = fw.OAW(problem, ball, step=step, engine=engine)
    result = all_rounds(learner, [(X, y)] * 12)
    run = ref.oaw(np.zeros((2, 2)), [(X, np.array(y))] * 12, 0.1, step)
    assert set(run.kinds) == {"frank-wolfe"}
    assert np.abs(result.decisions - run.iterates).max() <= 1e-15
    assert np.abs(learner.play() - [[0.1, 0.0], [-0.1, 0.0]]).max() <= 1e-16
    assert int(learner._engine.arrays()["steps"]) == 12


def test_the_step_is_a_function_of_frank_wolfe_steps():
    asked = []

    def step(n):
        asked.append(n)
        return STEP(n)

    problem, ball, stream, batches = case(SHAPES[1])
    learner = fw.OAW(problem, ball, step=step)
    learner.run(stream)
    run = ref.oaw(np.zeros(ball.shape), batches, RADIUS, STEP)
    steps = np.cumsum([kind == "frank-wolfe" for kind in run.kinds])
    assert asked == steps.tolist()


# --- the active set -------------------------------------------------------------------------------


def test_the_vertex_active_longest_wins_ties():
    chosen = ActiveSet({b"new": 0.25, b"old": 0.5}, 0.25).gaps([2.0, 2.0], 0.0, -1.0)
    assert chosen == (2.5, 0.5, b"new")
    chosen = ActiveSet({b"old": 0.5, b"new": 0.25}, 0.25).gaps([2.0, 2.0], 0.0, -1.0)
    assert chosen == (2.5, 0.5, b"old")


def test_weights_do_not_fall_below_zero():
    rng = np.random.default_rng(0)
    for w in rng.uniform(0.0, 0.9, 2000):
        found = ActiveSet({b"a": w}, 1.0 - w)
        found.step_away(b"a", np.nextafter(found.largest_step(b"a"), 0.0))
        assert found.weights.get(b"a", 1.0) > 0.0


def test_an_active_vertex_at_the_first_entry_of_the_biases_is_read_again(tmp_path):
    problem = fw.OneHiddenLayer(n_features=4, n_hidden=1, n_classes=3)
    X, y = np.random.default_rng(0).random((8, 4)), np.arange(8) % 3
    learner = fw.OAW(problem, problem.l1_balls())
    learner.observe((X, y))
    assert saved_goes_on(learner, (X, y), tmp_path).engine == "fused"
