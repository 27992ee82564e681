"""SVRF and SpiderFW: both engines, both problems, against the reference."""

import numpy as np
import pytest

import fastfw as fw
import reference as ref
import reference_network as rn
from fastfw._checks import seed_bits
from fastfw.kernels import rng
from learner_cases import Pairs, engines
from network_cases import RADII, SHAPE, inside, make_data, make_problem
from sizes import quiet, sized

METHODS = {"SVRF": (fw.SVRF, rn.svrf), "SpiderFW": (fw.SpiderFW, rn.spider_fw)}
methods = pytest.mark.parametrize("name", METHODS)
problems = pytest.mark.parametrize("kind", ["softmax", "network"])
SEED = 7
STEP = {"step": 0.05, "epoch_length": 8, "batch_size": 5}


def setting(kind, reduction="mean"):
    """Problem, set, start, and the reference's gradient and oracle."""
    if kind == "softmax":
        problem = fw.SoftmaxRegression(SHAPE.d, SHAPE.n_classes, reduction)
        ball = fw.RowL1Ball(problem.shape, radius=2.0)
        start = ball.project(np.random.default_rng(0).standard_normal(problem.shape))
        return problem, ball, start, ref.gradient, lambda g: ref.lmo(g, 2.0)
    problem, M = make_problem(reduction=reduction)

    def gradient(x, A, y):
        return rn.loss_and_gradient(x, A, y, shape=SHAPE)[1]

    return problem, M, inside(), gradient, lambda g: rn.lmo(g, RADII, shape=SHAPE)


def drawn(sizes, n, seed=SEED):
    """The mini-batches of iterations 1, 2, ...; None for all data."""
    rows = []
    for t, size in enumerate(sizes, start=1):
        picked = None if size is None else np.empty(size, np.intp)
        if picked is not None:
            rng.draw_rows(np.uint64(seed_bits(seed)), t, 0, n, picked)
        rows.append(picked)
    return rows


def constant(N, q, b):
    return [None if t % q == 0 else b for t in range(N)]


def rough(t):
    """Steps so long that nothing of the previous point is left."""
    return (0.3, 1.0, 0.95, 0.0)[t % 4]


@methods
@engines
@problems
@pytest.mark.parametrize(("step", "q", "b"), [(0.05, 8, 5), (rough, 6, 4)])
def test_iterates_are_the_references(step, q, b, name, engine, kind):
    learner, reference = METHODS[name]
    problem, M, start, gradient, oracle = setting(kind)
    X, y = make_data()
    N = sized(120 if step != rough else 40, 20)
    method = learner(problem, M, step, q, b, SEED, start=start, engine=engine)
    assert method.engine == engine
    assert np.array_equal(method.play(), start)
    result = method.fit(X, y, iterations=N, checkpoints=range(1, N + 2))
    rows = drawn(constant(N, q, b), len(X))
    steps = [step(t) if step == rough else step for t in range(1, N + 1)]
    run = reference(start, X, y, rows, steps, gradient, oracle)
    assert np.abs(result.decisions - run.iterates).max() <= 1e-12
    assert np.abs(result.average - run.iterates[:-1].mean(axis=0)).max() <= 1e-12
    assert np.array_equal(result.decision, result.decisions[-1])
    losses = [
        problem.loss(x, (X, y) if r is None else (X[r], y[r]))
        for x, r in zip(run.iterates, rows, strict=False)
    ]
    assert np.abs(result.losses - losses).max() <= 1e-12
    cost = np.cumsum([0] + [len(X) if r is None else 2 * len(r) for r in rows])
    assert np.array_equal(result.checkpoint_evaluations, cost)
    assert result.gradient_evaluations == cost[-1]
    assert result.lmo_calls == N
    assert np.array_equal(method.play(), result.decision)
    assert np.array_equal(method.average, result.average)
    assert method.t == N + 1
    assert (np.diff(result.seconds) >= 0).all()
    assert result.checkpoint_seconds[0] == 0.0
    assert np.array_equal(result.checkpoint_seconds[1:], result.seconds)


@engines
@problems
def test_schedule_of_hazan_and_luo(engine, kind):
    problem, M, start, gradient, oracle = setting(kind)
    X, y = make_data()
    N = sized(60, 18)
    method = fw.SVRF(problem, M, schedule="hazan-luo", seed=SEED, start=start, engine=engine)
    result = method.fit(X, y, iterations=N, checkpoints=range(1, N + 2))
    within = [k for e in range(1, 5) for k in range(1, 2 ** (e + 3) - 1)][:N]
    rows = drawn([None if k == 1 else 96 * (k + 1) for k in within], len(X))
    run = rn.svrf(start, X, y, rows, [2.0 / (k + 1) for k in within], gradient, oracle)
    assert np.abs(result.decisions - run.iterates).max() <= 1e-12


@methods
@engines
def test_sum_of_losses_is_the_same_problem(name, engine):
    X, y = make_data()
    points = []
    for reduction in ("mean", "sum"):
        problem, M, start, *_ = setting("network", reduction)
        method = METHODS[name][0](problem, M, **STEP, start=start, engine=engine)
        points.append(method.fit(X, y, iterations=20).decision)
    assert np.array_equal(*points)


OWN_STEP = {"step": lambda t: 0.5 / t}


@pytest.mark.parametrize(
    ("learner", "options"),
    [
        (fw.SVRF, {"schedule": "hazan-luo"}),
        (fw.SpiderFW, {"step": fw.power_schedule(0.5, 0.5)}),
        (fw.SpiderFW, OWN_STEP),
    ],
)
def test_schedules_and_options_are_saved(learner, options, tmp_path):
    problem, M, start, *_ = setting("network")
    X, y = make_data()
    path = tmp_path / "fit.npz"
    whole, half = (learner(problem, M, start=start, **options) for _ in range(2))
    half.fit(X, y, iterations=5)
    half.save(path)
    given = {}
    if options is OWN_STEP:
        given = options
        with pytest.raises(ValueError, match="step is a callable, which is not saved"):
            learner.load(path)
    twin = learner.load(path, **given)
    wanted = whole.fit(X, y, iterations=12).decision
    assert twin.fit(X, y, iterations=12, resume=True).decision.tobytes() == wanted.tobytes()
    for other in {fw.SVRF, fw.SpiderFW, fw.ORGFW} - {learner}:
        said = f"not a saved {other.__name__}: it holds a learner of '{learner.__name__}'"
        with pytest.raises(ValueError, match=said):
            other.load(path)


@methods
def test_what_cannot_be_resumed_changes_nothing(name):
    problem, M, start, *_ = setting("softmax")
    X, y = make_data()
    method = METHODS[name][0](problem, M, **STEP, start=start)
    method.fit(X, y, iterations=9)
    before = method.play().tobytes(), method.average.tobytes(), method.t
    with quiet(), pytest.raises(ValueError, match=r"X has 39 samples; the fit .* had 40"):
        method.fit(X[1:], y[1:], iterations=12, resume=True)
    with pytest.raises(ValueError, match="to resume at 10, it is 9"):
        method.fit(X, y, iterations=9, resume=True)
    with pytest.raises(ValueError, match="iterations"):
        method.fit(X, y, iterations=0)
    with pytest.raises(ValueError, match="checkpoints has 11"):
        method.fit(X, y, iterations=9, checkpoints=[11])
    with pytest.raises(ValueError, match="from 10 on"):
        method.fit(X, y, iterations=12, checkpoints=[9], resume=True)
    assert (method.play().tobytes(), method.average.tobytes(), method.t) == before
    wanted = METHODS[name][0](problem, M, **STEP, start=start).fit(X, y, iterations=20)
    after = method.fit(X, y, iterations=20, resume=True)
    assert after.decision.tobytes() == wanted.decision.tobytes()


@methods
def test_batches_one_by_one_are_refused(name):
    problem, M, *_ = setting("network")
    method = METHODS[name][0](problem, M)
    X, y = make_data()
    with pytest.raises(TypeError, match=rf"{name} .* cannot observe batches .*\.fit\(X, y"):
        method.observe((X, y))
    with pytest.raises(TypeError, match="cannot run batches"):
        method.run(fw.iid_stream(X, y, batch_size=5, rounds=3, seed=0), checkpoints=[2])
    assert method.t == 1


@methods
def test_defaults_are_the_theorys(name):
    problem, M, start, *_ = setting("network")
    X, y = make_data(n=40)
    result = METHODS[name][0](problem, M, start=start).fit(X, y, iterations=25)
    q, b = (4, 12) if name == "SVRF" else (7, 7)
    rows = constant(25, q, b)
    assert result.gradient_evaluations == sum(40 if r is None else 2 * r for r in rows)
    given = METHODS[name][0](problem, M, 0.2, q, b, start=start).fit(X, y, iterations=25)
    assert given.decision.tobytes() == result.decision.tobytes()


@methods
def test_problems_of_ones_own(name):
    X = np.random.default_rng(0).standard_normal((50, 2))
    method = METHODS[name][0](Pairs((2,)), fw.L1Ball(2, 1.0), 0.02, 10, 5)
    assert method.engine == "steps"
    result = method.fit(X, np.zeros(50), iterations=300)
    # the minimiser is inside; steps of 0.02 circle it
    assert np.abs(result.decision - X.mean(axis=0)).sum() <= 0.1
    same = method.fit(fw.Dataset(X, np.zeros(50, int)), iterations=300)
    assert np.array_equal(same.decision, result.decision)
    with pytest.raises(ValueError, match="equally long"):
        method.fit(X, np.zeros(3), iterations=2)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"step": 1.5}, ValueError, "step"),
        ({"epoch_length": 0}, ValueError, "epoch_length"),
        ({"batch_size": 2.5}, TypeError, "batch_size"),
        ({"engine": "gpu"}, ValueError, "engine"),
        ({"schedule": "cosine"}, ValueError, "schedule"),
        ({"schedule": "hazan-luo", "step": 0.1}, ValueError, "has its own step"),
    ],
)
def test_bad_arguments(options, kind, message):
    problem, M, *_ = setting("network")
    with pytest.raises(kind, match=message):
        fw.SVRF(problem, M, **options)
    with pytest.raises(ValueError, match="same shape"):
        fw.SpiderFW(problem, fw.L1Ball(3, 1.0))
