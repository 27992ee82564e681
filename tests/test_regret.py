"""The best fixed decision and its certificate; regret against it."""

from __future__ import annotations

import itertools
import math
import pickle
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given, settings
from scipy.optimize import minimize

import fastfw as fw
import reference as ref
from fastfw import _solver
from learner_cases import Box, LeastSquares
from sizes import JIT


def assert_certified(best, X, y, radius, tol=1e-6, reduction="mean"):
    """Feasible, and value and gap are what plain NumPy finds at the decision."""
    W = best.decision
    assert max(math.fsum(row) for row in np.abs(W).tolist()) <= radius
    value, gradient = ref.loss_and_gradient(W, np.asarray(X, float), y, reduction)
    assert best.value == pytest.approx(value, rel=1e-12, abs=1e-14 * len(y))
    gap = np.vdot(gradient, W) + radius * np.abs(gradient).max(axis=1).sum()
    terms = radius * len(W) * np.abs(X).max() * (1.0 if reduction == "mean" else len(y))
    assert best.gap == pytest.approx(gap, rel=1e-9, abs=1e-14 * terms)
    initial = np.log(len(W)) * (1.0 if reduction == "mean" else len(y))
    assert 0.0 <= best.gap <= tol * max(best.value, 1e-6 * initial)
    assert best.lower_bound == best.value - best.gap


def solve(X, y, n_classes, radius, reduction="mean", **options):
    d = np.shape(X)[1]
    problem = fw.SoftmaxRegression(d, n_classes, reduction=reduction)
    return fw.best_fixed_decision(problem, fw.RowL1Ball((n_classes, d), radius), X, y, **options)


def blobs(seed, n, d, n_classes, spread=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n_classes, d))[y] + spread * rng.normal(size=(n, d)), y


# --- certified values ---------------------------------------------------------------------------


@pytest.mark.skipif(not JIT, reason="too slow without compiled kernels")
@pytest.mark.parametrize(
    ("radius", "value", "tol"), [(1.0, 1.8959529118, 1e-6), (8.0, 0.5367297510, 1e-10)]
)
def test_digits(radius, value, tol):
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = datasets.load_digits(return_X_y=True)
    best = solve(X / 16, y, 10, radius, tol=tol)
    assert_certified(best, X / 16, y, radius, tol)
    assert best.value == pytest.approx(value, abs=1e-10)
    assert best.n_samples == 1797
    assert best.seconds > 0.0


def test_by_hand():
    # Two samples e_1, e_2 of classes 0, 1: the differences of their logits add up to at most 2 r,
    # and are r each by symmetry.
    best = solve(np.eye(2), [0, 1], 2, 1.0, tol=1e-12)
    assert best.value == pytest.approx(np.log1p(np.exp(-1.0)), rel=1e-12)
    np.testing.assert_allclose(best.decision[0] - best.decision[1], [1, -1], rtol=0, atol=1e-6)
    # One feature: W = (-r, r), as long as that is wanted.
    best = solve([[1.0], [2.0]], [1, 1], 2, 3.0)
    np.testing.assert_array_equal(best.decision, [[-3.0], [3.0]])


def slsqp(X, y, n_classes, radius):
    """Solve with scipy: W = U - V, U, V >= 0."""
    d = X.shape[1]

    def split(z):
        U, V = z.reshape(2, n_classes, d)
        return U - V

    def objective(z):
        value, gradient = ref.loss_and_gradient(split(z), X, y)
        return value, np.concatenate([gradient.ravel(), -gradient.ravel()])

    rows = np.kron(np.eye(n_classes), np.ones(d))
    normal = np.hstack([rows, rows])
    constraint = {"type": "ineq", "fun": lambda z: radius - normal @ z, "jac": lambda z: -normal}
    start = np.full(2 * n_classes * d, 0.1 * radius / d)
    return minimize(
        objective,
        start,
        jac=True,
        bounds=[(0, None)] * start.size,
        constraints=[constraint],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    ).fun


@pytest.mark.parametrize(("seed", "radius"), [(0, 0.2), (1, 1.0), (2, 5.0), (3, 1.0)])
def test_agrees_with_scipy(seed, radius):
    X, y = blobs(seed, n=25, d=4, n_classes=3)
    best = solve(X, y, 3, radius, tol=1e-10)
    assert_certified(best, X, y, radius, 1e-10)
    assert best.value == pytest.approx(slsqp(X, y, 3, radius), abs=1e-7)


# --- robustness -----------------------------------------------------------------------------------


@settings(deadline=None, max_examples=20)
@example(n=3, d=5, n_classes=3, exponent=2, reduction="mean", kind="scales", seed=2)
@given(
    n=st.integers(1, 12),
    d=st.integers(1, 6),
    n_classes=st.integers(2, 4),
    exponent=st.integers(-6, 4),
    reduction=st.sampled_from(["mean", "sum"]),
    kind=st.sampled_from(["normal", "binary", "duplicates", "scales", "one class"]),
    seed=st.integers(0, 1000),
)
def test_any_instance(n, d, n_classes, exponent, reduction, kind, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.integers(n_classes, size=n)
    if kind == "binary":
        X = (X > 0).astype(float)
    elif kind == "duplicates":
        X[:, d // 2 :] = X[:, :1]
    elif kind == "scales":
        X *= 10.0 ** rng.integers(-2, 3, size=d)
    elif kind == "one class":
        y[:] = n_classes - 1
    radius = 10.0**exponent
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        best = solve(X, y, n_classes, radius, reduction)
    # Only where rounding in the gradient, times the radius, exceeds the least tolerance (a
    # millionth of a millionth of the starting loss) may it stop early; and then it says so.
    loose = bool(caught)
    rounding = np.finfo(np.float64).eps * n_classes * radius * np.abs(X).max()
    assert all("best_fixed_decision stopped at gap" in str(w.message) for w in caught)
    assert not loose or rounding >= 1e-12
    assert_certified(best, X, y, radius, np.inf if loose else 1e-6, reduction)
    # Weak duality: nothing feasible is better than the lower bound.
    for _ in range(5):
        W = rng.normal(size=(n_classes, d)) ** 3
        W *= (radius * rng.random((n_classes, 1))) / np.abs(W).sum(axis=1, keepdims=True)
        other = ref.loss_and_gradient(W, X, y, reduction)[0]
        assert other >= best.lower_bound - 1e-12 * max(1.0, best.value)


def test_separable_with_a_large_radius():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(20, 3)) + 4, rng.normal(size=(20, 3)) - 4])
    y = np.repeat([0, 1], 20)
    for radius in (10.0, 1e3, 1e5):
        best = solve(X, y, 2, radius)
        assert_certified(best, X, y, radius)
        assert best.value < 1e-8


FEW_ROWS = {"three": (3, 7, 2), "wide": (4, 30, 3), "few": (2, 3, 2), "more": (8, 12, 4)}


def few_rows(seed, kind):
    n, d, n_classes = FEW_ROWS[kind]
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, np.minimum(np.arange(n), n_classes - 1), n_classes


@pytest.mark.parametrize(
    ("seed", "kind", "radius"),
    [
        (0, "wide", 1e2), (2, "three", 1e6), (4, "wide", 1e4), (6, "more", 1e6), (11, "few", 1e6),
    ],
)  # fmt: skip
def test_rows_summed_without_rounding_stay_in_the_ball(seed, kind, radius):
    X, y, n_classes = few_rows(seed, kind)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "best_fixed_decision stopped")
        best = solve(X, y, n_classes, radius, max_iterations=60)
    assert max(math.fsum(row) for row in np.abs(best.decision).tolist()) <= radius


@pytest.mark.parametrize(("seed", "radius"), [(135, 1e4), (200, 1e4), (212, 1e2)])
def test_matrices_that_rounding_has_made_indefinite(seed, radius):
    X = np.random.default_rng(seed).standard_normal((3, 7))
    assert_certified(solve(X, [0, 1, 1], 2, radius), X, np.array([0, 1, 1]), radius)


@pytest.mark.parametrize("calls", [range(999), range(1, 999), range(3, 999, 2)])
@pytest.mark.parametrize(
    ("kind", "name"),
    [("faces", "cho_factor"), ("faces", "solve"), ("ball", "pinv"), ("oracle", "pinv")],
)
def test_decompositions_that_fail_leave_the_best_point(monkeypatch, kind, name, calls):
    """Whatever fails, and when: the certificate, or a warning."""
    place = _solver if name == "cho_factor" else np.linalg
    count, whole = itertools.count(), getattr(place, name)

    def failing(*args, **options):
        if next(count) in calls:
            raise np.linalg.LinAlgError("no convergence")
        return whole(*args, **options)

    monkeypatch.setattr(place, name, failing)
    X, y, n_classes = few_rows(3, "more")
    ball = fw.RowL1Ball((n_classes, X.shape[1]), 30.0)
    if kind == "faces":  # with the interior-point method, which is not asked where all goes well
        monkeypatch.setattr(_solver, "_spectral_steps", lambda product, project, z, r, **_: (z, r))
    own = {"faces": ball, "ball": fw.LInfBall(ball.shape, 9.0), "oracle": without_faces(ball)}[kind]
    problem, steps = fw.SoftmaxRegression(X.shape[1], n_classes), 5 if kind == "oracle" else 40
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        best = fw.best_fixed_decision(problem, own, X, y, max_iterations=steps)
    assert next(count) > 0
    assert {str(w.message)[:27] for w in warned} <= {"best_fixed_decision stopped"}
    assert warned or best.gap <= 1e-6 * max(best.value, 1e-6 * np.log(n_classes))
    assert best.value < np.log(n_classes)


def without_faces(own):
    """A set of one's own: its oracle and nothing else."""
    return SimpleNamespace(shape=own.shape, lmo=own.lmo)


def test_useless_features():
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=20)
    best = solve(np.zeros((20, 4)), y, 3, 5.0)
    assert best.value == pytest.approx(np.log(3.0), rel=1e-14)
    assert best.gap == 0.0
    X = np.hstack([rng.normal(size=(20, 2)), np.ones((20, 2)), np.zeros((20, 1))])
    assert_certified(solve(X, y, 3, 5.0), X, y, 5.0)


def test_bad_scales_reach_the_interior_point_method(monkeypatch):
    called = []
    original = _solver._interior_point

    def spy(*arguments):
        called.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(_solver, "_interior_point", spy)
    rng = np.random.default_rng(1)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 6)) * 10.0 ** np.arange(-3, 3)
        y = rng.integers(3, size=60)
        assert_certified(solve(X, y, 3, 100.0), X, y, 100.0)
    assert called


def test_float32_features_are_used_in_float64():
    X, y = blobs(2, n=40, d=5, n_classes=3)
    single = solve(X.astype(np.float32), y, 3, 2.0, tol=1e-10)
    double = solve(X.astype(np.float32).astype(float), y, 3, 2.0, tol=1e-10)
    np.testing.assert_array_equal(single.decision, double.decision)
    assert single.decision.dtype == np.float64


def test_samples_first(monkeypatch):
    monkeypatch.setattr(sys.modules["fastfw.regret"], "_SMALLEST_SAMPLE", 10)
    monkeypatch.setattr(sys.modules["fastfw.regret"], "_CHUNK", 7)
    X, y = blobs(5, n=100, d=4, n_classes=3)
    assert_certified(solve(X, y, 3, 2.0), X, y, 2.0)


def test_dataset_and_pair_like_input():
    X, y = blobs(6, n=30, d=4, n_classes=3)
    expected = solve(X, y, 3, 1.0)
    problem, ball = fw.SoftmaxRegression(4, 3), fw.RowL1Ball((3, 4), 1.0)
    for data in (fw.Dataset(X, y), SimpleNamespace(X=X, y=y)):
        best = fw.best_fixed_decision(problem, ball, data)
        np.testing.assert_array_equal(best.decision, expected.decision)


# --- other methods: quasi-Newton, simplicial decomposition --------------------------------------


@pytest.mark.parametrize("radius", [0.5, 4.0])
def test_quasi_newton_where_the_working_set_is_too_large(monkeypatch, radius):
    monkeypatch.setattr(_solver, "_LARGEST", 5)
    X, y = blobs(7, n=30, d=4, n_classes=3)
    best = solve(X, y, 3, radius)
    assert_certified(best, X, y, radius)
    assert best.iterations > 5


def test_newton_goes_on_once_few_entries_are_left(monkeypatch):
    # The start has more nonzeros than the limit allows, the solution fewer.
    X, y = blobs(9, n=60, d=30, n_classes=3, spread=2.0)
    expected = solve(X, y, 3, 1.0, tol=1e-9)
    nonzeros = np.count_nonzero(expected.decision)
    assert nonzeros < 40
    steps = []
    original = _solver.FaceNewton.minimiser

    def spy(self, point):
        proposal = original(self, point)
        steps.append(proposal is not None)
        return proposal

    monkeypatch.setattr(_solver.FaceNewton, "minimiser", spy)
    monkeypatch.setattr(_solver, "_LARGEST", nonzeros + 10)
    evaluate = _evaluation(X, y, 1.0)
    start = evaluate(np.full((3, 30), 1.0 / 31))
    project = fw.RowL1Ball((3, 30), 1.0).project
    with ThreadPoolExecutor(2) as pool:
        newton = _solver.FaceNewton(X, 1.0, 1.0 / 60, lambda v: _projected(v, 1.0), pool=pool)
        limits = _solver.Limits(1000, np.inf, tol=1e-9, scale=start.value)
        outcome = _solver.alternate(evaluate, newton, _solver.QuasiNewton(project), start, limits)
    assert outcome.reason == "converged"
    assert steps[0] is False  # 90 nonzeros are too many
    assert any(steps)
    assert outcome.point.value == pytest.approx(expected.value, rel=1e-9)


def _projected(rows, radius):
    return fw.RowL1Ball(rows.shape, radius).project(rows)


def _evaluation(X, y, radius):
    problem = fw.SoftmaxRegression(X.shape[1], int(y.max()) + 1)
    ball = fw.RowL1Ball(problem.shape, radius)

    def evaluate(x):
        value, gradient = problem.loss_and_gradient(x, (X, y))
        gradient = np.array(gradient)
        gap = float(np.vdot(gradient, x - np.asarray(ball.lmo(gradient))))
        return _solver.Point(x, float(value), gradient, gap)

    return evaluate


def test_hessians_in_single_precision_cost_no_accuracy(monkeypatch):
    X, y = blobs(10, n=60, d=8, n_classes=3)
    expected = solve(X, y, 3, 2.0, tol=1e-10)
    monkeypatch.setattr(_solver, "_SINGLE", 0)
    monkeypatch.setattr(_solver, "_BLOCK", 7)
    best = solve(X, y, 3, 2.0, tol=1e-10)
    assert_certified(best, X, y, 2.0, 1e-10)
    assert best.value == pytest.approx(expected.value, abs=1e-10)


@pytest.mark.parametrize("project", [True, False])
def test_custom_problem_and_set(project):
    rng = np.random.default_rng(9)
    A, b = rng.normal(size=(30, 5)), 3.0 * rng.normal(size=30)
    b += A @ np.array([3.0, -3.0, 0.5, 0.2, -0.1])
    box = Box((5,))
    if project:
        box.project = lambda x: np.clip(x, -1.0, 1.0)
    best = fw.best_fixed_decision(LeastSquares((5,)), box, A, b, tol=1e-9)
    reference = minimize(
        lambda x: 0.5 * np.mean((A @ x - b) ** 2),
        np.zeros(5),
        jac=lambda x: A.T @ (A @ x - b) / len(b),
        bounds=[(-1, 1)] * 5,
        options={"ftol": 1e-15, "gtol": 1e-12},
    )
    assert (np.abs(best.decision) <= 1.0 + 1e-15).all()
    assert best.gap <= 1e-9 * best.value
    assert best.value == pytest.approx(reference.fun, rel=1e-9)


def test_project_simplex():
    rng = np.random.default_rng(0)
    for _ in range(20):
        v = 2.0 * rng.normal(size=6)
        p = _solver.project_simplex(v)
        assert p.min() >= 0.0
        assert p.sum() == pytest.approx(1.0, rel=1e-14)
        # Optimality: v - p is largest, and equal, where p is positive.
        assert np.ptp((v - p)[p > 0]) <= 1e-14
        assert (v - p).max() <= (v - p)[p > 0].min() + 1e-14


# --- limits and errors --------------------------------------------------------------------------


def test_says_when_the_tolerance_is_not_reached():
    X, y = blobs(10, n=50, d=8, n_classes=4)
    with pytest.warns(RuntimeWarning, match=r"gap .* after 1 iterations.*raise max_iterations"):
        best = solve(X, y, 4, 5.0, max_iterations=1)
    assert_certified(best, X, y, 5.0, np.inf)
    assert best.gap > 1e-6 * best.value
    with pytest.warns(RuntimeWarning, match="raise time_limit"):
        best = solve(X, y, 4, 5.0, time_limit=1e-9)
    assert_certified(best, X, y, 5.0, np.inf)
    with pytest.warns(RuntimeWarning, match="rounding"):
        best = solve(X, y, 4, 5.0, tol=1e-300)
    assert_certified(best, X, y, 5.0, 1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tol": 0.0}, ValueError, "tol"),
        ({"tol": "small"}, TypeError, "tol"),
        ({"max_iterations": 0}, ValueError, "max_iterations"),
        ({"max_iterations": 1.5}, TypeError, "max_iterations"),
        ({"time_limit": -1.0}, ValueError, "time_limit"),
        ({"X": np.ones((4, 3))}, ValueError, "3 columns, but 2 features"),
        ({"X": np.full((4, 2), np.nan)}, ValueError, "nan"),
        ({"y": [0, 1, 2, 0]}, ValueError, "with 2 classes, labels must be"),
        ({"y": [0, 1, 1]}, ValueError, "y"),
        ({"y": [0.0, 1.0, 1.0, 0.0]}, TypeError, "y"),
        ({"set": fw.RowL1Ball((3, 2), 1.0)}, ValueError, "same shape"),
        ({"X": fw.Dataset(np.ones((4, 2)), [0, 1, 1, 0])}, TypeError, "left out"),
        ({"X": np.full((4, 2), 1e308)}, FloatingPointError, "scale"),
    ],
)
def test_errors(options, error, message):
    arguments = {
        "problem": fw.SoftmaxRegression(2, 2),
        "set": fw.RowL1Ball((2, 2), 10.0),
        "X": np.ones((4, 2)),
        "y": [0, 1, 1, 1],
        **options,
    }
    with pytest.raises(error, match=message):
        fw.best_fixed_decision(**arguments)


# --- regret ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("kind", ["iid", "sorted"])
def test_regret_is_the_sum_of_differences(reduction, kind):
    X, y = blobs(11, n=40, d=4, n_classes=3)
    problem, ball = fw.SoftmaxRegression(4, 3, reduction=reduction), fw.RowL1Ball((3, 4), 2.0)
    make = fw.iid_stream if kind == "iid" else fw.sorted_stream
    stream = make(X, y, batch_size=5, rounds=8)
    best = fw.best_fixed_decision(problem, ball, X, y)._replace(gap=0.25)
    losses = np.random.default_rng(0).normal(size=8)
    result = SimpleNamespace(losses=losses)
    fixed = [ref.loss_and_gradient(best.decision, b.X, b.y, reduction)[0] for b in stream]
    expected = np.cumsum(losses - np.array(fixed))
    per_round = 0.25 * (5 / 40 if reduction == "sum" else 1.0)
    pairs = [(b.X, b.y) for b in stream]
    for same in (stream, pairs, [SimpleNamespace(X=b.X, y=b.y) for b in stream], iter(pairs)):
        curve = fw.regret(result, best, same)
        assert curve.shape == (8,)
        np.testing.assert_allclose(curve, expected, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(curve.lower, np.asarray(curve))
        upper = expected + per_round * np.arange(1, 9)
        np.testing.assert_allclose(curve.upper, upper, rtol=0, atol=1e-12)


def test_regret_of_the_best_decision_over_all_data_is_bracketed():
    X, y = blobs(12, n=40, d=4, n_classes=3)
    problem, ball = fw.SoftmaxRegression(4, 3), fw.RowL1Ball((3, 4), 2.0)
    with pytest.warns(RuntimeWarning):
        rough = fw.best_fixed_decision(problem, ball, X, y, tol=1e-12, max_iterations=2)
    exact = fw.best_fixed_decision(problem, ball, X, y, tol=1e-12)
    stream = fw.sorted_stream(X, y, batch_size=5, rounds=8)
    result = SimpleNamespace(losses=np.ones(8))
    curve = fw.regret(result, rough, stream)
    truth = fw.regret(result, exact, stream)[-1]
    assert curve.lower[-1] - 1e-10 <= truth <= curve.upper[-1] + 1e-10


@pytest.mark.parametrize("wanted", [3, 5])
def test_regret_needs_as_many_batches_as_rounds(wanted):
    X, y = blobs(15, n=20, d=3, n_classes=2)
    problem, ball = fw.SoftmaxRegression(3, 2), fw.RowL1Ball((2, 3), 1.0)
    best = fw.best_fixed_decision(problem, ball, X, y)
    stream = fw.iid_stream(X, y, batch_size=5, rounds=4)
    result = SimpleNamespace(losses=np.zeros(wanted))
    for same in (stream, list(stream), iter(list(stream))):
        with pytest.raises(ValueError, match=f"as many batches as the run had rounds, {wanted}"):
            fw.regret(result, best, same)
    used = iter([])
    with pytest.raises(ValueError, match="a generator can be used only once"):
        fw.regret(result, best, used)
    with pytest.raises(ValueError, match=r"result\.losses"):
        fw.regret(SimpleNamespace(losses=np.zeros((4, 1))), best, stream)


def test_curve_keeps_its_bounds():
    curve = fw.RegretCurve([1.0, 2.0, 3.0], [0.1, 0.2, 0.3])
    np.testing.assert_array_equal(curve.upper, [1.0 + 0.1, 2.0 + 0.2, 3.0 + 0.3])
    assert type(curve.lower) is type(curve.upper) is np.ndarray
    np.testing.assert_array_equal(curve[1:].upper, curve.upper[1:])
    assert isinstance(curve[-1], float)
    assert curve.max() == 3.0
    same = pickle.loads(pickle.dumps(curve))
    np.testing.assert_array_equal(same, curve)
    np.testing.assert_array_equal(same.upper, curve.upper)
    with pytest.raises(AttributeError, match="no bounds"):
        _ = (curve / 2.0).upper
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(curve / 2.0)), curve / 2.0)


def test_suboptimality():
    best = fw.BestDecision(np.zeros((2, 1)), 0.5, 0.0, 0.0, 1, None, 10)
    assert fw.suboptimality(1.0, best, 1.5) == 0.5
    np.testing.assert_array_equal(fw.suboptimality([1.5, 0.5], best, 1.5), [1.0, 0.0])
    for initial in (0.5, 0.1, np.nan):
        with pytest.raises(ValueError, match="initial"):
            fw.suboptimality(1.0, best, initial)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(("size", "radius"), [(1e-200, 2.0), (1e-310, 2.0), (1.0, 2.3e-308)])
def test_tiny_features_or_radii(reduction, size, radius):
    """Every decision is as good as zero, to rounding, and is proved to be."""
    X, y = np.random.default_rng(0).normal(size=(30, 5)) * size, np.arange(30) % 3
    problem, ball = fw.SoftmaxRegression(5, 3, reduction), fw.RowL1Ball((3, 5), radius)
    best = fw.best_fixed_decision(problem, ball, X, y)
    assert best.value == pytest.approx(np.log(3) * problem.weight(30) * 30, rel=1e-14)
    assert 0.0 <= best.gap < 1e-190
    assert ball.contains(best.decision)


@pytest.mark.parametrize("size", [1e-155, 1e-200, 1e-300])
def test_features_whose_squares_vanish_are_named(size):
    X, y = np.random.default_rng(0).normal(size=(30, 5)) * size, np.arange(30) % 3
    problem, ball = fw.SoftmaxRegression(5, 3), fw.RowL1Ball((3, 5), 1.0 / size)
    with pytest.raises(FloatingPointError, match=r"^X: .* rescale X, and divide the radius"):
        fw.best_fixed_decision(problem, ball, X, y)
    best = fw.best_fixed_decision(problem, fw.RowL1Ball((3, 5), 1.0), X / size, y)
    assert best.gap <= 1e-6 * best.value


def test_swapped_arguments_are_named():
    X, y = np.eye(3), np.arange(3)
    problem, ball = fw.SoftmaxRegression(3, 3), fw.RowL1Ball((3, 3), 2.0)
    stream = fw.iid_stream(X, y, batch_size=2, rounds=5)
    result = fw.ORGFW(problem, ball).run(stream)
    best = fw.best_fixed_decision(problem, ball, X, y)
    for arguments, message in (
        ((best, result, stream), r"^result must be what learner\.run\(stream\) returned, .*BestD"),
        ((result, stream, best), r"^best must be what best_fixed_decision\(...\) returned, but it"),
        ((result, best, None), r"^stream must be the iterable of batches .* a NoneType"),
    ):
        with pytest.raises(TypeError, match=message):
            fw.regret(*arguments)
