"""OFW and OAW against the reference, and the past that they keep."""

import copy

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from fastfw.learners import _history
from history_cases import (
    SCHEDULES,
    SHAPES,
    T,
    all_rounds,
    assert_follows,
    assert_same,
    case,
    pieces,
    runs,
    same,
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
    saved_goes_on,
    snapshot,
)
from sizes import quiet

both = pytest.mark.parametrize("method", [fw.OFW, fw.OAW])
STEP = SCHEDULES["paper"]


def fresh(method=fw.OFW, engine="fused", **options):
    problem, ball = problem_and_ball()
    options.setdefault("step", STEP)
    return method(problem, ball, engine=engine, **options)


def dataset(seed=0, **options):
    return fw.Dataset(*make_data(seed, **options))


# --- against the reference ------------------------------------------------------------------------


@both
@engines
@runs
def test_rounds_follow_the_reference(method, engine, step, reduction, shape):
    given = {} if step == "theory" else {"step": SCHEDULES[step]}  # which is the default
    problem, ball, stream, batches = case(shape, reduction)
    learner = method(problem, ball, **given, engine=engine)
    assert learner.engine == engine
    reference = ref.ofw if method is fw.OFW else ref.oaw
    run = reference(np.zeros(ball.shape), batches, RADIUS, SCHEDULES[step], reduction)
    result = all_rounds(learner, stream)
    assert_follows(result, run, reduction=reduction, size=shape[2])
    assert result.gradient_evaluations == shape[2] * T * (T + 1) // 2
    assert result.lmo_calls == T


@engines
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_batches_of_many_sizes_that_do_not_come_back(engine, reduction):
    batches = pieces()
    problem, ball = problem_and_ball(reduction=reduction)
    start = np.zeros((C, D))
    start[:, 2], start[0, 4] = -0.75, 1.0
    learner = fw.OFW(problem, ball, step=STEP, engine=engine, start=start)
    run = ref.ofw(start, batches, RADIUS, STEP, reduction)
    result = all_rounds(learner, batches)
    assert_follows(result, run, reduction=reduction, size=9)
    assert result.gradient_evaluations == np.cumsum([len(y) for _, y in batches]).sum()


def test_logits_computed_anew(monkeypatch):
    """Logits that have been moved often enough come from a product again."""
    problem, ball, stream, batches = case(SHAPES[1])
    run = ref.ofw(np.zeros(ball.shape), batches, RADIUS, STEP)
    monkeypatch.setattr(_history, "_LARGEST_DRIFT", 3.0)
    assert_follows(all_rounds(fw.OFW(problem, ball, step=STEP), stream), run)
    assert_follows(all_rounds(fw.OFW(problem, ball, step=STEP), batches), run)


def test_drift_counts_roundings():
    learner = fresh(step=0.25)
    learner.run(case(SHAPES[1], rounds=40)[2])
    # e <- (1 - step) e + 1
    assert learner._engine.arrays()["scalars"][2] == pytest.approx(4 * (1 - 0.75**40))


# --- what is kept ---------------------------------------------------------------------------------


@both
def test_each_row_is_kept_once(method):
    data = dataset()
    learner = fresh(method)
    for rows in ([7, 3, 7], [3], [39, 0, 20], [7, 7]):
        learner.observe(fw.Batch(data, rows))
    state = learner._engine.arrays()
    assert state["sources"].tolist() == [[0, 40, 5]]
    assert state["numbers"].tolist() == [0, 3, 7, 20, 39]
    wanted = [1 / 3, 1 / 3 + 1, 2 / 3 + 1, 1 / 3, 1 / 3]
    assert np.allclose(state["shares"], wanted, rtol=0, atol=1e-15)
    x = learner.play()
    assert np.abs(state["logits"] - data.X[state["numbers"]] @ x.T).max() <= 1e-14
    assert same(state["features"], data.X[state["numbers"]])


def test_memory_is_bounded_by_the_rows_of_the_data():
    problem, ball, stream, _ = case((3, 6, 25), rounds=T)
    learner = fw.OFW(problem, ball, step=STEP)
    learner.run(stream)
    (source,) = learner._engine.sources
    assert source.X is stream.data.X
    assert source.numbers.size == source.weights.size == 40 == len(source.logits)


def test_memory_of_batches_that_do_not_come_back():
    """Copies in buffers that double: no more than twice what came."""
    learner = fresh()
    for _ in range(10):
        learner.run(pieces(rounds=8))
    sources = learner._engine.sources
    kept = sum(source.count for source in sources)
    assert kept == learner._engine.samples[-1]
    assert sum(source.n for source in sources) <= 2 * kept + 9
    assert len(sources) <= 10


@both
@engines
def test_batches_may_be_reused_by_their_owner(method, engine):
    batches = pieces(rounds=12)
    wanted = fresh(method, engine).run(batches)
    learner = fresh(method, engine)
    for X, y in batches:
        mine = X.copy(), y.copy()
        learner.observe(mine)
        mine[0][:] = np.nan
        mine[1][:] = 0
    assert same(learner.play(), wanted.decision)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy])
@both
def test_a_copy_keeps_its_own_batches(method, make):
    problem, ball = problem_and_ball()
    X, y = make_data()
    batches = [(X[i : i + 4], y[i : i + 4]) for i in range(0, 24, 4)]
    learner, other = method(problem, ball), method(problem, ball)
    for batch in batches[:3]:
        learner.observe(batch), other.observe(batch)
    twin = make(learner)
    learner.observe(batches[3]), other.observe(batches[3])
    twin.observe(batches[4])
    learner.observe(batches[5]), other.observe(batches[5])
    assert learner.play().tobytes() == other.play().tobytes()


@both
@engines
def test_batches_from_everywhere(method, engine):
    """Rows of two data sets, whole data sets and arrays, in turns."""
    one, other = dataset(0), dataset(1, n=25)
    turns = [
        fw.Batch(one, [1, 5, 5]), fw.Batch(other, [1, 24]), make_data(2, n=4), one,
        fw.Batch(one, [0]), make_data(3, n=9), other, fw.Batch(other, [3, 1]), make_data(4, n=2),
    ]  # fmt: skip
    pairs = [(b.X, b.y) if hasattr(b, "X") else b for b in turns]
    learner = fresh(method, engine)
    reference = {fw.OFW: ref.ofw, fw.OAW: ref.oaw}[method]
    run = reference(np.zeros((C, D)), pairs, RADIUS, STEP)
    assert_follows(all_rounds(learner, turns), run)
    if engine == "fused":
        assert len(learner._engine.sources) <= 5


def test_data_sets_over_the_same_memory_are_one():
    X, y = make_data()
    learner = fresh()
    for seed in range(3):
        learner.run(fw.iid_stream(X, y.astype(np.int32), batch_size=6, rounds=4, seed=seed))
    assert len(learner._engine.sources) == 1
    learner.run(fw.iid_stream(X, (y + 1) % C, batch_size=6, rounds=4))
    assert len(learner._engine.sources) == 2


# --- the same bits --------------------------------------------------------------------------------


@both
def test_a_saved_learner_goes_on_with_other_data(method, tmp_path):
    one, other = dataset(0), dataset(5)
    learner = fresh(method)
    first = fw.iid_stream(one, batch_size=5, rounds=10)
    learner.run(first)
    learner.save(tmp_path / "learner.npz")
    twin = method.load(tmp_path / "learner.npz")
    second = fw.iid_stream(other, batch_size=5, rounds=10)
    assert_same(twin.run(second), learner.run(second))
    assert_same(twin.run(first), learner.run(first))
    assert len(twin._engine.sources) == 2


# --- rounds that fail -----------------------------------------------------------------------------


@both
@engines
@pytest.mark.parametrize("drift", [64.0, 2.0])
def test_a_direction_that_overflows(method, engine, drift, tmp_path, monkeypatch):
    """The loss is finite, the sum of the gradients is not, after the past was gone through."""
    monkeypatch.setattr(_history, "_LARGEST_DRIFT", drift)
    problem, ball = problem_and_ball(reduction="sum")
    learner = method(problem, ball, step=STEP, engine=engine)
    batches = pieces(rounds=10)
    learner.run(batches[:5])
    twin = copy.deepcopy(learner)
    # a feature that no weight touches: logits stay, gradients overflow
    column = int(np.flatnonzero(~learner.play().any(axis=0))[0])
    X = np.zeros((3, D))
    X[:, column] = 1.7e308
    path = tmp_path / "l"
    shown = learner.play().tobytes(), learner.average.tobytes()
    with pytest.raises(FloatingPointError, match=r"round 6: "), quiet():
        learner.observe((X, [0, 0, 0]))
    assert (learner.play().tobytes(), learner.average.tobytes()) == shown
    if drift == 64.0:
        assert snapshot(learner, path) == snapshot(twin, path)
    assert_same(learner.run(batches[5:]), twin.run(batches[5:]))


# --- custom problems ------------------------------------------------------------------------------


@both
def test_the_past_of_custom_problems(method, tmp_path):
    """Any batch will do for a problem that takes it; batches that are arrays can be saved."""
    batches = 0.3 + np.random.default_rng(0).standard_normal((12, 4, 2, 3))
    problem, box = Quadratic((2, 3)), Box((2, 3))
    learner = method(problem, box)
    for batch in batches:
        loss = problem.loss(learner.play(), batch)
        assert learner.observe(batch).loss == pytest.approx(loss, abs=1e-13)
    saved_goes_on(learner, batches[0], tmp_path, problem=problem, set=box)
    learner.observe(batches[0].tolist())
    with pytest.raises(TypeError, match="cannot be saved"):
        learner.save(tmp_path / "learner")


def test_a_run_copies_no_features():
    """A run begins with a copy of the state, to go back to; the data are part of no copy."""
    X, y = np.eye(6), np.arange(6) % 3
    stream = fw.iid_stream(X, y, batch_size=2, rounds=3, seed=0)
    learner = fw.OFW(fw.SoftmaxRegression(6, 3), fw.RowL1Ball((3, 6), 1.0))
    learner.run(stream)
    before = learner._engine
    learner.run(stream)
    assert learner._engine is not before
    shared = [
        np.shares_memory(old.X, new.X)
        for old, new in zip(before.sources, learner._engine.sources, strict=True)
    ]
    assert shared == [True]
    assert copy.deepcopy(learner)._engine.sources[0].X is stream.data.X
