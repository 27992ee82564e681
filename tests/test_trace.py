"""Runs at their checkpoints."""

import numpy as np
import pytest

import fastfw as fw
import reference as ref
import reference_network as rn
from learner_cases import Pairs
from network_cases import RADII, SHAPE, inside, make_data, make_problem, make_stream
from sizes import sized


def test_log_spaced():
    assert fw.log_spaced(1).tolist() == [1]
    assert fw.log_spaced(5, 30).tolist() == [1, 2, 3, 4, 5]
    rounds = fw.log_spaced(150_001, 40)
    assert rounds[0] == 1
    assert rounds[-1] == 150_001
    assert (np.diff(rounds) > 0).all()
    with pytest.raises(ValueError, match="last"):
        fw.log_spaced(0)
    with pytest.raises(ValueError, match="count"):
        fw.log_spaced(3, 0)


def test_gap_is_the_references():
    X, y = make_data()
    rng = np.random.default_rng(0)
    softmax, ball = fw.SoftmaxRegression(SHAPE.d, 3), fw.RowL1Ball((3, SHAPE.d), 2.0)
    W = ball.project(rng.standard_normal(softmax.shape))
    wanted = ref.frank_wolfe_gap(W, ref.gradient(W, X, y), 2.0)
    assert fw.frank_wolfe_gap(softmax, ball, W, (X, y)) == pytest.approx(wanted, rel=1e-13)
    network, M = make_problem()
    x = inside()
    g = rn.loss_and_gradient(x, X, y, shape=SHAPE)[1]
    wanted = float(g @ (x - rn.lmo(g, RADII, shape=SHAPE)))
    assert fw.frank_wolfe_gap(network, M, x, fw.Dataset(X, y)) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("offline", [False, True])
def test_trace(offline):
    X, y = make_data()
    X_test, y_test = make_data(seed=5)
    problem, M = make_problem()
    N = sized(60, 15)
    keep = fw.log_spaced(N + 1, 8)
    if offline:
        method = fw.SpiderFW(problem, M, 0.1, 6, 4, start=inside())
        result = method.fit(X, y, iterations=N, checkpoints=keep)
    else:
        result = fw.ORGFW(problem, M, start=inside()).run(make_stream(rounds=N), checkpoints=keep)
    curve = fw.trace(result, problem, M, X, y, X_test=X_test, y_test=y_test, gap=True)
    assert np.array_equal(curve.rounds, keep)
    assert np.array_equal(curve.seconds, result.checkpoint_seconds)
    for i, x in enumerate(result.decisions):
        assert curve.losses[i] == pytest.approx(rn.loss(x, X, y, SHAPE), rel=1e-13)
        assert curve.gaps[i] == fw.frank_wolfe_gap(problem, M, x, (X, y))
        assert curve.least_gaps[i] == curve.gaps[: i + 1].min()
        assert curve.accuracies[i] == problem.accuracy(x, X, y)
        assert curve.test_accuracies[i] == problem.accuracy(x, X_test, y_test)
    assert "checkpoints up to round" in repr(curve)
    plain = fw.trace(result, problem, M, fw.Dataset(X, y))
    assert plain.gaps is plain.least_gaps is plain.test_accuracies is None
    assert np.array_equal(plain.losses, curve.losses)
    no_tests = fw.trace(result, problem, M, X, y, X_test=X[:0], y_test=y[:0])
    assert no_tests.test_accuracies is None


def test_problems_of_ones_own():
    X = np.random.default_rng(0).standard_normal((20, 2))
    ball = fw.L1Ball(2, 1.0)
    result = fw.ORGFW(Pairs((2,)), ball).run([(X, X)] * 5, checkpoints=[1, 6])
    curve = fw.trace(result, Pairs((2,)), ball, X, X, gap=True)
    assert curve.accuracies is None
    assert curve.losses[1] < curve.losses[0]
    empty = fw.trace(fw.ORGFW(Pairs((2,)), ball).run([(X, X)]), Pairs((2,)), ball, X, X)
    assert repr(empty) == "<Trace: no checkpoints>"
