"""The network: gradients, and every online method on it against the reference."""

import numpy as np
import pytest

import fastfw as fw
import reference_network as rn
from learner_cases import ENGINES, POWER, engines, read, write
from network_cases import (
    RADII,
    SHAPE,
    inside,
    make_data,
    make_problem,
    make_stream,
)
from sizes import about_compiling, sized

EPS = np.finfo(np.float64).eps
ACTIVATIONS = ["sigmoid", "tanh", "relu"]
ROUGH = {
    "step": lambda t: (1.0, 0.3, 0.95, 0.0, 0.9)[t % 5],
    "momentum": lambda t: (0.5, 1.0, 0.0, 0.25)[t % 4],
}
STEP = {"step": fw.power_schedule(1.0, 0.75)}
LEARNERS = {
    "ORGFW": (fw.ORGFW, "orgfw", POWER),
    "ORGFW, rough": (fw.ORGFW, "orgfw", ROUGH),
    "OSFW": (fw.OSFW, "osfw", POWER),
    "OSFW, rough": (fw.OSFW, "osfw", ROUGH),
    "OFW": (fw.OFW, "ofw", STEP),
    "RegularizedOFW": (fw.RegularizedOFW, "regularised_ofw", {**STEP, "rounds": 30, "scale": 50.0}),
    "OAW": (fw.OAW, "oaw", STEP),
}
every_learner = pytest.mark.parametrize("name", LEARNERS)


def make(name, engine="fused", *, shape=SHAPE, activation="sigmoid", reduction="mean", **changes):
    problem, M = make_problem(shape, activation, reduction)
    kind, _, options = LEARNERS[name]
    return kind(problem, M, engine=engine, **{"start": inside(shape), **options, **changes})


def reference_run(name, stream, *, shape=SHAPE, activation="sigmoid", reduction="mean", start=None):
    _, method, options = LEARNERS[name]
    options = {"c" if key == "scale" else key: value for key, value in options.items()}
    run = getattr(rn.methods(shape, activation), method)
    start = inside(shape) if start is None else start
    return run(start, [(b.X, b.y) for b in stream], RADII, reduction=reduction, **options)


# --- the problem ----------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(
    ("shape", "n"), [(SHAPE, 7), ((1, 1, 2), 1), ((9, 5, 2), 4), ((33, 11, 12), 90)]
)
def test_loss_and_gradient_are_the_references(activation, reduction, shape, n):
    shape = rn.Shape(*shape)
    X, y = make_data(shape, n=max(n, shape.n_classes))
    problem, _ = make_problem(shape, activation, reduction)
    x = np.random.default_rng(3).standard_normal(problem.shape)
    value, gradient = problem.loss_and_gradient(x, (X, y))
    wanted, by_blocks = rn.loss_and_gradient(x, X, y, reduction, shape=shape, activation=activation)
    scale = len(y) if reduction == "sum" else 1
    assert abs(value - wanted) <= 1e-14 * scale * (1 + abs(wanted))
    assert np.abs(gradient - by_blocks).max() <= 1e-13 * scale
    assert problem.loss(x, (X, y)) == pytest.approx(value, rel=1e-14)
    assert problem.sample_losses(x, (X, y)).shape == (len(y),)
    assert np.array_equal(problem.gradient(x, (X, y)), gradient)


@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
@pytest.mark.parametrize("block", ["W1", "b1", "W2", "b2"])
def test_gradient_of_every_block_is_that_of_finite_differences(activation, block):
    X, y = make_data()
    problem, _ = make_problem(activation=activation)
    x = np.random.default_rng(4).standard_normal(problem.shape)
    own = problem.blocks(problem.gradient(x, (X, y)))[block]
    h = 1e-5
    for index in np.ndindex(own.shape):
        values = []
        for sign in (1, -1):
            moved = x.copy()
            problem.blocks(moved)[block][index] += sign * h
            values.append(problem.loss(moved, (X, y)))
        # central differences: third derivatives times h^2 / 6, and rounding of the loss over h
        assert abs((values[0] - values[1]) / (2 * h) - own[index]) <= 1e-9


def test_blocks():
    problem, M = make_problem()
    x = np.arange(float(problem.shape[0]))
    blocks = problem.blocks(x)
    for own, wanted in zip(blocks.values(), rn.split(x, SHAPE), strict=True):
        assert np.array_equal(own, wanted)
        assert np.shares_memory(own, x)
    assert list(blocks) == list(M.sets) == list(problem.block_shapes) == ["W1", "b1", "W2", "b2"]
    assert {n: b.shape for n, b in M.blocks(x).items()} == problem.block_shapes
    assert [M.sets[name].radius for name in blocks] == list(RADII)
    assert problem.shape == M.shape == (SHAPE.size,)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_predictions(activation):
    X, y = make_data()
    problem, _ = make_problem(activation=activation)
    x = np.random.default_rng(5).standard_normal(problem.shape)
    W1, b1, W2, b2 = rn.split(x, SHAPE)
    Z = rn.activate(X @ W1.T + b1, activation) @ W2.T + b2
    assert np.abs(problem.logits(x, X) - Z).max() <= 1e-13
    assert np.array_equal(problem.predict(x, X), Z.argmax(axis=1))
    assert problem.accuracy(x, X, y) == np.mean(Z.argmax(axis=1) == y)
    softmax = fw.SoftmaxRegression(SHAPE.d, SHAPE.n_classes)
    W = np.random.default_rng(6).standard_normal(softmax.shape)
    assert softmax.accuracy(W, X, y) == np.mean((X @ W.T).argmax(axis=1) == y)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_huge_inputs_stay_finite(activation):
    X, y = make_data()
    problem, _ = make_problem(activation=activation)
    x = 1e3 * np.random.default_rng(7).standard_normal(problem.shape)
    value, gradient = problem.loss_and_gradient(x, (1e3 * X, y))
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    wanted, _ = rn.loss_and_gradient(x, 1e3 * X, y, shape=SHAPE, activation=activation)
    assert value == pytest.approx(wanted, rel=1e-12)


def test_equality_and_text():
    problem, _ = make_problem()
    assert problem == make_problem()[0]
    assert hash(problem) == hash(make_problem()[0])
    assert problem != make_problem(activation="tanh")[0]
    assert problem != 3
    assert (problem.n_hidden, problem.activation) == (SHAPE.m, "sigmoid")
    assert "n_hidden=4" in repr(problem)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda p, b: fw.OneHiddenLayer(3, 0, 2), ValueError, "n_hidden"),
        (lambda p, b: fw.OneHiddenLayer(3, 2, 1), ValueError, "n_classes"),
        (lambda p, b: fw.OneHiddenLayer(3, 2.5, 2), TypeError, "n_hidden"),
        (lambda p, b: fw.OneHiddenLayer(3, 2, 2, activation="step"), ValueError, "activation"),
        (lambda p, b: fw.OneHiddenLayer(3, 2, 2, reduction="max"), ValueError, "reduction"),
        (lambda p, b: p.loss(np.zeros(3), b), ValueError, r"x must have shape \(43,\)"),
        (lambda p, b: p.loss(np.zeros(43), (b[0][:, 1:], b[1])), ValueError, "6 features"),
        (lambda p, b: p.loss(np.zeros(43), (b[0], b[1] + 1)), ValueError, "labels must be 0"),
    ],
)
def test_bad_calls(call, kind, message):
    problem, _ = make_problem()
    with pytest.raises(kind, match=message):
        call(problem, make_data())


# --- learners -------------------------------------------------------------------------------------


@every_learner
@engines
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_rounds_follow_the_reference(name, engine, activation):
    slow = name in ("OFW", "OAW")
    # later on, hidden units at their bounds make entries of W2's gradient equal but for rounding
    T = sized(30 if slow else 100, 10 if slow else 20)
    stream = make_stream(rounds=T)
    learner = make(name, engine, activation=activation)
    result = learner.run(stream, checkpoints=range(1, T + 2))
    run = reference_run(name, stream, activation=activation)
    assert np.abs(result.decisions - run.iterates).max() <= 1e-11
    assert np.abs(result.losses - run.losses).max() <= 1e-11
    assert np.abs(result.average - run.iterates[:-1].mean(axis=0)).max() <= 1e-11
    for t, x in enumerate(result.decisions, start=1):
        slack = 1.0 + 4 * EPS * t
        for part, radius in zip(rn.split(x, SHAPE), RADII, strict=True):
            assert np.abs(part).sum(axis=-1).max() <= radius * slack
        assert learner.set.contains(x)


@pytest.mark.parametrize("name", ["ORGFW", "OSFW"])
@engines
def test_sum_of_losses(name, engine):
    stream = make_stream(rounds=sized(100, 15))
    result = make(name, engine, reduction="sum").run(stream)
    run = reference_run(name, stream, reduction="sum")
    assert np.abs(result.decision - run.iterates[-1]).max() <= 1e-11
    assert np.abs(result.losses - run.losses).max() <= 1e-10


@every_learner
@pytest.mark.parametrize(
    ("shape", "B"), [((1, 1, 3), 1), ((16, 5, 11), 67), ((1024, 3, 4), 6), ((2051, 7, 3), 9)]
)
def test_engines_agree_in_other_shapes(name, shape, B):
    shape = rn.Shape(*shape)
    T = sized(20 if name in ("OFW", "OAW") else 40, 4)
    stream = make_stream(shape, rounds=T, batch_size=B)
    one, other = (make(name, engine, shape=shape).run(stream) for engine in ENGINES)
    assert np.abs(one.decision - other.decision).max() <= 1e-11
    assert np.abs(one.losses - other.losses).max() <= 1e-11
    assert np.abs(one.average - other.average).max() <= 1e-11


def test_which_engine():
    problem, M = make_problem()
    kinds = (fw.ORGFW, fw.OSFW, fw.RegularizedOFW, fw.OFW, fw.OAW, fw.SVRF, fw.SpiderFW)
    fused = {kind: kind(problem, M).engine for kind in kinds}
    assert set(fused.values()) == {"fused"}
    others = [
        fw.ProductSet(list(M.sets.values())[::-1]),
        fw.ProductSet({**M.sets, "b1": fw.LInfBall(SHAPE.m, 2.0)}),
        fw.L1Ball(problem.shape[0], 2.0),
    ]
    for other in others:
        with pytest.warns(fw.EngineWarning):
            learner = fw.ORGFW(problem, other)
        assert learner.engine == "steps"
        learner.run(make_stream(rounds=3))


def test_places_of_vertices_are_those_of_their_balls(tmp_path):
    """A vertex of the tail may not have its entry in another ball of the tail."""
    learner = make("OAW")
    learner.run(make_stream(rounds=3))
    learner.save(tmp_path / "a.npz")
    header, arrays = read(tmp_path / "a.npz")
    m, d, n_classes = SHAPE.m, SHAPE.d, SHAPE.n_classes
    first = [0] * m + [m * k for k in range(n_classes + 2)]
    end = [d] * m + [m * (k + 1) for k in range(n_classes + 1)] + [m * (n_classes + 1) + n_classes]
    for ball, (low, high) in enumerate(zip(first, end, strict=True)):
        for place in (low - 1, high):
            for code in (place, ~place):
                vertices = arrays["state.vertices"].copy()
                vertices[0, ball] = code
                fine = low == 0 and place == -1  # -1 is the code of 0 with the other sign
                if fine:
                    continue
                write(tmp_path / "b.npz", header, {**arrays, "state.vertices": vertices})
                with pytest.raises(ValueError, match="out of range"):
                    fw.OAW.load(tmp_path / "b.npz")


@engines
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_regularised_constant_is_the_theorys(engine, reduction):
    """D/(2 G), G the norm of the first gradient."""
    stream = make_stream(rounds=12)
    learner = make("RegularizedOFW", engine, reduction=reduction, scale=None)
    run = learner.run(stream)
    first = next(iter(stream))
    gradient = learner.problem.gradient(inside(), first)
    assert learner.scale == pytest.approx(learner.set.diameter / (2 * np.linalg.norm(gradient)))
    same = make("RegularizedOFW", engine, reduction=reduction, scale=learner.scale).run(stream)
    assert same.decision.tobytes() == run.decision.tobytes()


@engines
def test_away_steps(engine):
    """OAW goes away from vertices of all blocks together, and drops some."""
    T = 60
    learner = make("OAW", engine, step=lambda t: 0.1)
    stream = make_stream(rounds=T, batch_size=3)
    result = learner.run(stream)
    batches = [(b.X, b.y) for b in stream]
    run = rn.methods(SHAPE).oaw(inside(), batches, RADII, step=lambda t: 0.1)
    assert set(run.kinds) == {"frank-wolfe", "away", "drop"}
    assert int(learner._engine.arrays()["steps"]) == run.kinds.count("frank-wolfe")
    assert np.abs(result.decision - run.iterates[-1]).max() <= 1e-10


@about_compiling
@pytest.mark.parametrize("name", ["OFW", "OAW"])
def test_outputs_of_the_first_layer_do_not_drift(name, monkeypatch):
    """They are computed anew once rounding may have grown: the iterates stay the reference's."""
    from fastfw.learners import _history

    monkeypatch.setattr(_history, "_LARGEST_DRIFT", 3.0)
    stream = make_stream(rounds=25)
    result = make(name).run(stream)
    assert np.abs(result.decision - reference_run(name, stream).iterates[-1]).max() <= 1e-11


def test_zeros_keep_hidden_units_equal():
    """The paper's start: all units are alike, so every class chooses the first of them."""
    problem, M = make_problem()
    learner = fw.ORGFW(problem, M, start=np.zeros(problem.shape))
    result = learner.run(make_stream(rounds=20), checkpoints=[2])
    blocks = problem.blocks(result.decisions[0])
    assert np.count_nonzero(blocks["W2"][:, 0]) == SHAPE.n_classes
    assert np.count_nonzero(blocks["W2"][:, 1:]) == 0
    assert np.array_equal(blocks["W1"], np.tile(blocks["W1"][0], (SHAPE.m, 1)))
    by_steps = fw.ORGFW(problem, M, start=np.zeros(problem.shape), engine="steps")
    assert np.abs(by_steps.run(make_stream(rounds=20)).decision - result.decision).max() <= 1e-12
