"""Softmax regression: gradients, layouts, dtypes, constants, bad input."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastfw as fw
import reference as ref
from layouts import LAYOUTS
from sizes import quick

EPS = np.finfo(np.float64).eps


def make(seed=0, n=11, d=5, C=4, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    return X, rng.integers(0, C, n), rng.standard_normal((C, d))


def bound(X, x, dtype=np.float64):
    """Rounding of a loss or a gradient entry, per sample: logits, exponentials, sums."""
    eps = np.finfo(dtype).eps
    size = np.abs(X).sum(axis=1).max()
    return eps * (1.0 + size) * ((X.shape[1] + 8) * np.abs(x).max() * size * 4 + 40 + len(X))


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@quick
@given(seed=st.integers(0, 999), n=st.integers(1, 70), d=st.integers(1, 20), C=st.integers(2, 12))
def test_loss_and_gradient(reduction, seed, n, d, C):
    X, y, x = make(seed, n, d, C)
    problem = fw.SoftmaxRegression(d, C, reduction=reduction)
    loss, gradient = problem.loss_and_gradient(x, (X, y))
    wanted, wanted_gradient = ref.loss_and_gradient(x, X, y, reduction)
    size = 1 if reduction == "mean" else n
    assert abs(loss - wanted) <= size * bound(X, x)
    assert abs(problem.loss(x, (X, y)) - wanted) <= size * bound(X, x)
    assert np.abs(gradient - wanted_gradient).max() <= size * bound(X, x)
    assert np.array_equal(problem.gradient(x, (X, y)), gradient)
    one_by_one = [ref.loss(x, X[i : i + 1], y[i : i + 1]) for i in range(n)]
    assert np.abs(problem.sample_losses(x, (X, y)) - one_by_one).max() <= bound(X, x)
    assert gradient.shape == (C, d)
    assert gradient.flags.c_contiguous
    assert gradient.flags.writeable


@pytest.mark.parametrize("d", [512, 513, 1024 * 2 + 3, 3072])
def test_rows_that_are_moved_apart(d):
    """Where the kernels get longer rows, nobody sees it."""
    X, y, x = make(1, n=6, d=d, C=3)
    problem = fw.SoftmaxRegression(d, 3)
    loss, gradient = problem.loss_and_gradient(x, (X, y))
    wanted, wanted_gradient = ref.loss_and_gradient(x, X, y)
    assert abs(loss - wanted) <= bound(X, x)
    assert gradient.shape == (3, d)
    assert np.abs(gradient - wanted_gradient).max() <= bound(X, x)
    assert np.array_equal(problem.predict(x, X), np.argmax(X @ x.T, axis=1))


# --- forms of the input ---------------------------------------------------------------------------


@pytest.mark.parametrize("layout", LAYOUTS)
def test_parameters_in_every_form(layout):
    X, y, x = make(2)
    problem = fw.SoftmaxRegression(5, 4)
    point = LAYOUTS[layout](x)
    assert problem.loss(point, (X, y)) == problem.loss(x, (X, y))
    assert np.array_equal(problem.gradient(point, (X, y)), problem.gradient(x, (X, y)))
    assert np.array_equal(problem.predict(point, X), problem.predict(x, X))
    assert np.array_equal(np.array(point), x)


def test_batches_are_taken_by_row_number():
    X, y, x = make(4, n=20)
    problem = fw.SoftmaxRegression(5, 4)
    data = fw.Dataset(X, y)
    batch = fw.Batch(data, [3, 3, 19, 0])
    assert problem.loss(x, batch) == problem.loss(x, (X[batch.rows], y[batch.rows]))
    assert np.array_equal(
        problem.gradient(x, batch), problem.gradient(x, (X[batch.rows], y[batch.rows]))
    )
    found = problem.rows(batch)
    assert np.shares_memory(found.X, X)
    assert found.rows is batch.rows

    thing = SimpleNamespace(X=X, y=y)
    assert problem.loss(x, thing) == problem.loss(x, data) == problem.loss(x, (X, y))


# --- constants, prediction ------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_smoothness_bounds_every_change_of_the_gradient(reduction):
    rng = np.random.default_rng(7)
    for trial in range(20):
        X, y, _ = make(trial, n=3, d=4, C=3)
        problem = fw.SoftmaxRegression(4, 3, reduction=reduction)
        L = problem.smoothness(X)
        scale = 10.0 ** rng.uniform(-3, 1)
        for _ in range(10):
            a, b = scale * rng.standard_normal((2, 3, 4))
            change = problem.gradient(a, (X, y)) - problem.gradient(b, (X, y))
            slack = 1e3 * EPS * np.abs(X).sum()  # rounding of the gradients
            assert np.linalg.norm(change) <= L * np.linalg.norm(a - b) + slack


def test_smoothness_is_reached():
    """Two classes, one sample: the largest eigenvalue of the Hessian at zero is ‖a‖² / 2."""
    X, y = np.array([[3.0, 4.0]]), np.array([0])
    problem = fw.SoftmaxRegression(2, 2)
    assert problem.smoothness(X) == 12.5
    # a batch may consist of the longest row alone
    assert problem.smoothness([[0, 1], [3, 4], [1, 0]]) == 12.5
    h = 1e-6 * np.array([[3.0, 4.0], [-3.0, -4.0]])
    change = problem.gradient(h, (X, y)) - problem.gradient(-h, (X, y))
    assert np.linalg.norm(change) / np.linalg.norm(2 * h) == pytest.approx(12.5, rel=1e-8)
    assert fw.SoftmaxRegression(2, 2, reduction="sum").smoothness([[3, 4], [0, 1]]) == 13.0


def test_prediction_is_the_first_largest_logit():
    problem = fw.SoftmaxRegression(2, 3)
    x = [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    classes = problem.predict(x, [[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [-1.0, -2.0], [1.0, 1.0]])
    assert classes.tolist() == [0, 2, 0, 0, 0]
    assert classes.dtype == np.intp


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"n_features": 0, "n_classes": 2}, ValueError, "n_features must be an integer >= 1"),
        ({"n_features": 3, "n_classes": 1}, ValueError, "n_classes must be an integer >= 2"),
        ({"n_features": 3.0, "n_classes": 2}, TypeError, "n_features .* write 3"),
        ({"n_features": True, "n_classes": 2}, TypeError, "n_features"),
        ({"n_features": 3, "n_classes": "2"}, TypeError, "n_classes"),
        ({"n_features": 3, "n_classes": 2, "reduction": "max"}, ValueError, "'mean' or 'sum'"),
        ({"n_features": 3, "n_classes": 2, "reduction": None}, ValueError, "'mean' or 'sum'"),
    ],
)
def test_bad_constructor_arguments(arguments, error, message):
    with pytest.raises(error, match=message):
        fw.SoftmaxRegression(**arguments)


@pytest.mark.parametrize("method", ["loss", "sample_losses"])
def test_bad_points_and_batches(method):
    X, y, x = make()
    call = getattr(fw.SoftmaxRegression(5, 4), method)
    for shape in [(5, 4), (4, 6), (4,), (20,)]:
        with pytest.raises(ValueError, match=r"x must have shape \(4, 5\)"):
            call(np.zeros(shape), (X, y))
    bad = X.copy()
    bad[3, 2] = np.nan
    for batch, error, message in [
        ((X[:0], y[:0]), ValueError, "X is empty"),
        ((X[:, :4], y), ValueError, "X has 4 columns, but 5 features are wanted"),
        ((X, y[:-1]), ValueError, "y has 10 labels, but 11 are wanted"),
        ((X, y + 1), ValueError, r"with 4 classes, labels must be 0, \.\.\., 3"),
        ((X, y - 1), ValueError, r"y\[\d+\] is -1"),
        ((X, y.astype(float)), TypeError, "y must hold integer class numbers"),
        ((bad, y), ValueError, r"X\[3, 2\] is nan"),
        ((X.astype(object), y), TypeError, "X must hold real numbers"),
        ((X + 1j, y), TypeError, "X must hold real numbers"),
        ((X, y, y), TypeError, "batch must be a pair"),
        (X, TypeError, "batch must be a pair"),
        (None, TypeError, "batch must be a pair"),
        (fw.Dataset(X[:, :4], y), ValueError, "X has 4 columns"),
        (fw.Dataset(X, y + 1), ValueError, "y holds label"),
    ]:
        with pytest.raises(error, match=message):
            call(x, batch)


def test_equality_and_repr():
    a, b = fw.SoftmaxRegression(5, 4), fw.SoftmaxRegression(5, 4)
    assert a == b
    assert hash(a) == hash(b)
    others = [fw.SoftmaxRegression(4, 5), fw.SoftmaxRegression(5, 4, "sum"), "problem"]
    assert all(a != other for other in others)
    assert repr(a) == "SoftmaxRegression(n_features=5, n_classes=4, reduction='mean')"
    assert a.shape == (4, 5)
    assert (a.n_classes, a.n_features, a.reduction) == (4, 5, "mean")
