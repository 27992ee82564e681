"""The scikit-learn estimator: the library's own checks, and what it promises beyond them."""

import datetime
import inspect
import math
import pickle
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
import reference as ref
from sizes import JIT, sized

pytest.importorskip("sklearn", minversion="1.5")

from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.utils.estimator_checks import check_estimator

from fastfw._estimators import fitting
from fastfw.sklearn import ProjectionFreeClassifier, ProjectionFreeRegressor

compiled = pytest.mark.skipif(not JIT, reason="too long without the compiler")


def few_rounds(**changes):
    """An estimator that is quick even where kernels run as plain Python."""
    options = {"radius": 10.0, "max_iter": sized(30, 2), "batch_size": sized(256, 32), "tol": 0.0}
    return ProjectionFreeClassifier(**{**options, **changes})


@pytest.fixture
def short_epochs(monkeypatch):
    """As few rounds as the data asks for, where the compiler is off."""
    monkeypatch.setattr(fitting, "FEWEST_ROUNDS", sized(fitting.FEWEST_ROUNDS, 32))


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, load_iris().target_names[y]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, random_state=0, stratify=y)


# --- scikit-learn's own checks --------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # some checks warn of what they skip
@pytest.mark.parametrize(
    "model",
    [
        # one of the checks wants 1000 epochs: with a tolerance they end earlier
        few_rounds(max_iter=sized(30, 1), tol=0.05),
        pytest.param(ProjectionFreeRegressor(max_iter=10), marks=compiled),
    ],
    ids=type,
)
def test_every_check_of_scikit_learn(model, short_epochs):
    """In full: nothing is expected to fail, and only the array API is not there to be tested."""
    done = []
    options = {}
    if "callback" in inspect.signature(check_estimator).parameters:  # from 1.6 on
        options = {
            "on_fail": None,
            "callback": lambda **result: done.append((result["check_name"], result)),
        }
    check_estimator(model, **options)
    not_passed = {check: result["status"] for check, result in done if result["status"] != "passed"}
    assert set(not_passed.values()) <= {"skipped"}
    if find_spec("pandas"):
        assert all("array_api" in check for check in not_passed)
    assert not any(result["expected_to_fail"] for _, result in done)
    assert len(done) > 50 or not options


# --- data sets ------------------------------------------------------------------------------------


@compiled
def test_digits_as_accurate_as_tuned_logistic_regression(digits):
    X, X_test, y, y_test = digits
    ours = ProjectionFreeClassifier().fit(X, y)
    theirs = [LogisticRegression(C=C, max_iter=2000).fit(X / 16, y) for C in (0.1, 1.0)]
    best = max(theirs, key=lambda model: model.score(X_test / 16, y_test))
    assert ours.score(X_test, y_test) >= best.score(X_test / 16, y_test) - 0.01
    assert np.count_nonzero(ours.coef_) < 0.7 * np.count_nonzero(best.coef_)
    assert ours.gap_ < 0.1
    assert [radius for radius, _ in ours.radius_path_] == [1, 2, 5, 10, 20, 50, 100]
    assert ours.radius_ == min(ours.radius_path_, key=lambda pair: pair[1])[0] == 50


def clouds(n_classes, d, n, spread, *, p=None, useless=0, form=np.asarray):
    """Twice n rows about the centres of classes, and columns that have nothing to do with them."""
    rng = np.random.default_rng(0)
    centres = np.pad(rng.normal(size=(n_classes, d)), ((0, 0), (0, useless)))
    y = rng.choice(n_classes, 2 * n, p=p)
    y[:n_classes] = np.arange(n_classes)
    return form(centres[y] + spread * rng.normal(size=(2 * n, d + useless))), y


MANY_CLASSES = {
    "wide": lambda: clouds(30, 150, 300, 4.0),
    "units": lambda: clouds(40, 30, 600, 2.5, form=lambda X: X * 10.0 ** (np.arange(30) % 7 - 3)),
    "sparse": lambda: clouds(
        40, 40, 600, 2.0, form=lambda X: sparse.csr_array(np.maximum(X - 1.0, 0.0))
    ),
    "uneven": lambda: clouds(40, 30, 600, 4.0, p=np.arange(1, 41) / 820),
    "three": lambda: clouds(3, 20, 300, 3.0),
}


@pytest.mark.slow
@compiled
@pytest.mark.parametrize("name", MANY_CLASSES)
def test_the_radius_suits_many_classes(name):
    X, y = MANY_CLASSES[name]()
    n = len(y) // 2
    options = {"max_iter": 20, "batch_size": 64, "tol": 0.0}
    auto, *fixed = (
        ProjectionFreeClassifier(radius=radius, **options).fit(X[:n], y[:n])
        for radius in ("auto", 20.0, 50.0)
    )
    best = max(model.score(X[n:], y[n:]) for model in fixed)
    assert auto.score(X[n:], y[n:]) >= 0.8 * best


def test_units_do_not_matter(iris, short_epochs):
    """Columns in other units, by powers of two: the same scores, weights in those units."""
    X, y = iris
    units = np.array([1.0, 1024.0, 2.0**-20, 0.5])
    one, other = (few_rounds().fit(A, y) for A in (X, X * units))
    assert np.array_equal(one.coef_, other.coef_ * units)
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X * units))


def test_the_bound_holds(iris, short_epochs):
    X, y = iris
    for scaling, intercept in (("max-abs", True), ("max-abs", False), (None, True)):
        model = few_rounds(scaling=scaling, fit_intercept=intercept, intercept_scaling=2.0)
        model.fit(X, y)
        scale = np.abs(X).max(axis=0) if scaling else 1.0
        norms = (np.abs(model.coef_) * scale).sum(axis=1) + np.abs(model.intercept_) / 2.0
        assert (norms <= 10.0 * (1 + 1e-9)).all()
        assert norms.max() > sized(5.0, 2.0)
        assert intercept or not model.intercept_.any()


def test_gap_is_the_frank_wolfe_gap(iris, short_epochs):
    """By the definition, on scaled columns with the intercept's."""
    X, y = iris
    model = few_rounds(tol=0.0).fit(X, y)
    scale = np.abs(X).max(axis=0)
    A = np.column_stack([X / scale, np.ones(len(X))])
    W = np.column_stack([model.coef_ * scale, model.intercept_])
    labels = np.searchsorted(model.classes_, y)
    g = ref.gradient(W, A, labels)
    wanted = (g * W).sum() + 10.0 * np.abs(g).max(axis=1).sum()
    assert model.gap_ == pytest.approx(wanted, rel=1e-9)
    assert model.n_iter_ == model.max_iter


# --- two classes, labels, dtypes ------------------------------------------------------------------


def test_two_classes(iris, short_epochs):
    X, y = iris[0][:100], iris[1][:100]
    model = few_rounds().fit(X, y)
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_[0] + model.intercept_[0], rtol=1e-12)
    proba = model.predict_proba(X)
    np.testing.assert_allclose(proba[:, 1], 1.0 / (1.0 + np.exp(-scores)), rtol=1e-12)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-15)
    assert (model.predict(X) == np.array(["setosa", "versicolor"])[(scores > 0).astype(int)]).all()
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(proba))
    assert model.score(X, y) == 1.0


@pytest.mark.parametrize("dtype", ["f8", "f4"])
@pytest.mark.parametrize(
    "scores",
    [
        [370.35], [-370.35], [800.0], [-1e6], [1e-9], [0.0, 60.0],  # two classes
        [[0.0, 0.0, 0.0]], [[0.0, 200.0, -300.0]], [[900.0, -900.0, 0.0]], [[1e5, 0.0, 1e5 - 1.0]],
        [[40.0, 0.0, -40.0], [-1.0, 2.0, 700.0]],
    ],
)  # fmt: skip
def test_logarithms_of_probabilities_that_round_to_0_or_1(scores, dtype, monkeypatch):
    """By a sum that leaves the largest term out, so that nothing rounds to 1."""
    scores = np.array(scores, dtype)
    model = few_rounds()
    monkeypatch.setattr(model, "decision_function", lambda X: scores, raising=False)
    columns = scores if scores.ndim == 2 else np.stack([0.0 * scores, scores], axis=1)
    exact = np.empty(columns.shape)
    for row, out in zip(columns.tolist(), exact, strict=True):
        high = max(row)
        rest = sum(math.exp(z - high) for z in row) - 1.0 if len(set(row)) == 1 else 0.0
        rest = rest or sum(math.exp(z - high) for z in row if z != high)
        out[:] = [z - high - math.log1p(rest) for z in row]
    rtol, atol = (1e-6, 1e-7) if dtype == "f4" else (1e-14, 1e-16)
    for found, wanted in [
        (model.predict_log_proba(None), exact), (model.predict_proba(None), np.exp(exact))
    ]:  # fmt: skip
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
    if scores.ndim == 1:  # the smaller of two has all its digits
        np.testing.assert_allclose(model.predict_log_proba(None), exact, rtol=rtol, atol=1e-45)


@pytest.mark.parametrize(
    "labels",
    [["c", "a", "b"], [3, -1, 7], [True, False], [2.0, 0.0], np.array(["x", "y"], object)],
)
def test_labels_of_any_type(labels, iris, short_epochs):
    labels = np.asarray(labels)
    numbers = np.repeat(np.arange(3), 50) % len(labels)
    model = few_rounds(max_iter=1).fit(iris[0], labels[numbers])
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert set(model.predict(iris[0])) <= set(labels.tolist())
    assert model.predict(iris[0]).dtype == labels.dtype


def test_dtypes(iris, short_epochs):
    X, y = iris
    for given, asked, wanted in [
        ("f8", None, "f8"), ("f4", None, "f4"), ("f8", np.float32, "f4"), ("u1", None, "f8"),
    ]:  # fmt: skip
        model = few_rounds(dtype=asked, max_iter=1).fit(X.astype(given), y)
        assert model.coef_.dtype == model.intercept_.dtype == wanted


# --- sparse features ------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix])
def test_sparse_and_dense_features_give_the_same_model(kind, intercept, digits, short_epochs):
    X, _, y, _ = digits
    X, y = X[:300], y[:300]
    options = {"max_iter": sized(3, 1), "fit_intercept": intercept}
    radius = sized("auto", 10.0)
    models = [few_rounds(radius=radius, **options).fit(A, y) for A in (X, kind(X))]
    assert models[0].radius_ == models[1].radius_
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=0, atol=1e-10)
    np.testing.assert_allclose(models[0].intercept_, models[1].intercept_, rtol=0, atol=1e-10)
    scores = [model.decision_function(A) for model, A in zip(models, (X, kind(X)), strict=True)]
    np.testing.assert_allclose(*scores, rtol=0, atol=1e-10)
    parts = [few_rounds(**options).partial_fit(A, y, classes=range(10)) for A in (X, kind(X))]
    np.testing.assert_allclose(parts[0].coef_, parts[1].coef_, rtol=0, atol=1e-10)


def counted(n, **changes):
    """Term counts as scipy's documentation builds them: ones, one entry for each occurrence."""
    arrays = {"data": np.ones(n + 1), "indices": np.array([0] * n + [1]), "indptr": [0, n, n + 1]}
    arrays = {**arrays, **changes}
    parts = arrays["data"], arrays["indices"], np.array(arrays["indptr"])
    return sparse.csr_array(parts, shape=(len(parts[2]) - 1, 2))


def as_coo(X):
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    return sparse.coo_array((X.data, (rows, X.indices)), shape=X.shape)


DUPLICATES = {
    "twice": lambda: (counted(2), counted(12)),
    "single precision": lambda: (counted(2).astype("f4"), counted(12).astype("f4")),
    "integers": lambda: (counted(2).astype(int), counted(12).astype(int)),
    "coordinates": lambda: (as_coo(counted(2)), as_coo(counted(12))),
    "by columns": lambda: (counted(2).tocsc(), counted(12).tocsc()),
    "signs": lambda: (counted(2), counted(4, data=np.array([9.0, -8.0, 1.5, -0.5, 1.0]))),
    "unsorted": lambda: (counted(2), counted(3, indices=np.array([0, 1, 0, 1]))),
}


@pytest.mark.parametrize("name", DUPLICATES)
def test_duplicates_are_added_up_first(name, short_epochs):
    """In all entrances, and what was given stays as it was."""
    first, second = DUPLICATES[name]()
    before = [[a.copy() for a in (X.data, *indices(X))] for X in (first, second)]
    sparsely, densely = few_rounds(max_iter=1), few_rounds(max_iter=1)
    for X in (first, second):
        sparsely.partial_fit(X, [0, 1], classes=[0, 1])
        densely.partial_fit(X.toarray(), [0, 1], classes=[0, 1])
    for X in (first, second):
        np.testing.assert_allclose(sparsely.coef_, densely.coef_, rtol=1e-6, atol=1e-9)
        scores = sparsely.decision_function(X)
        np.testing.assert_allclose(scores, densely.decision_function(X.toarray()), rtol=1e-6)
    sparsely.fit(second, [0, 1])
    densely.fit(second.toarray(), [0, 1])
    np.testing.assert_allclose(sparsely.coef_, densely.coef_, rtol=1e-6, atol=1e-9)
    for X, arrays in zip((first, second), before, strict=True):
        for now, then in zip((X.data, *indices(X)), arrays, strict=True):
            assert np.array_equal(now, then)


def indices(X):
    return X.coords if X.format == "coo" else (X.indices, X.indptr)


@pytest.mark.parametrize("change", [{"indices": np.array([0, 0, 10**8])}, {"indptr": [0, 9, 3]}])
def test_sparse_matrices_that_are_none(change, iris):
    model = few_rounds().fit(np.eye(2), [0, 1])
    broken = counted(2)
    for name, value in change.items():
        setattr(broken, name, np.asarray(value, np.int32))
    for call in (model.fit, model.partial_fit, lambda X, y: model.predict(X)):
        with pytest.raises(ValueError, match=rf"X\.{next(iter(change))}"):
            call(broken, [0, 1])


def test_sparsify(iris, short_epochs):
    X, y = iris
    model = few_rounds(max_iter=1).fit(X, y)
    dense, scores = model.coef_.copy(), model.decision_function(X)
    assert sparse.issparse(model.sparsify().coef_)
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-12)
    np.testing.assert_allclose(model.decision_function(sparse.csr_array(X)), scores, rtol=1e-12)
    assert np.array_equal(model.densify().coef_, dense)
    assert model.densify().coef_ is model.coef_


# --- weights --------------------------------------------------------------------------------------


WEIGHTS = {
    "small integers": lambda y: 1.0 + y,
    "fractions": lambda y: np.linspace(0.3, 1.7, len(y)),
    "tiny": lambda y: 1e-150 * (1.0 + y),
    "huge": lambda y: 1e150 * (1.0 + y),
    "one heavy row": lambda y: np.where(np.arange(len(y)) == 3, 1e3, 1.0),
    "some zeros": lambda y: np.where(np.arange(len(y)) % 4 == 0, 0.0, 1.5 + y),
    "many magnitudes": lambda y: 10.0 ** (np.arange(len(y)) % 7 - 3),
}


@pytest.mark.parametrize("batch_size", [256, 7])
@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_exact(name, batch_size, short_epochs):
    """The model converges to the weighted optimum, whose gap is by the definition."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 4)), np.arange(20) % 3
    w = WEIGHTS[name](y)
    options = {"batch_size": batch_size, "max_iter": sized(64, 4)}
    model = few_rounds(**options).fit(X, y, w)
    A = np.column_stack([X, np.ones(20)])
    scale = np.abs(A[w > 0]).max(axis=0)
    W = np.column_stack([model.coef_, model.intercept_]) * scale
    g = ref.weighted_gradient(W, A / scale, y, (w / w.sum())[:, np.newaxis])
    gap = (g * W).sum() + 10.0 * np.abs(g).max(axis=1).sum()
    assert model.gap_ == pytest.approx(gap, rel=1e-9)
    assert gap < sized(0.02 if batch_size > 20 else 0.1, 1.0)
    if batch_size > 20:  # what weights are multiplied by is seen in their rounding alone
        other = few_rounds(**options).fit(X, y, w * 3.7)
        np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("method", "kind"),
    [("orgfw", sparse.csr_array), ("osfw", np.asarray), ("ofw", sparse.csr_array),
     ("oaw", np.asarray), ("regularized_ofw", np.asarray)],
)  # fmt: skip
def test_integer_weights_are_repetitions_where_batches_are_whole(method, kind, iris, short_epochs):
    X, y = (a[:: sized(6, 15)] for a in iris)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    options = {"method": method, "max_iter": sized(4, 1), "batch_size": 64}
    one, other, equal, none = (few_rounds(**options) for _ in range(4))
    one.fit(kind(X), y, sample_weight=weights)
    other.fit(kind(X.repeat(weights, axis=0)), y.repeat(weights))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-9)
    assert one.gap_ == pytest.approx(other.gap_, rel=1e-9)
    equal.fit(kind(X), y, sample_weight=np.full(len(y), 0.3))
    assert np.array_equal(equal.coef_, none.fit(kind(X), y).coef_)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("method", ["orgfw", "ofw", "oaw"])
def test_pickles_keep_the_weights_of_the_past(method, kind, iris, short_epochs):
    X, y = (a[:: sized(6, 15)] for a in iris)
    w = np.linspace(0.1, 3.0, len(y))
    one = few_rounds(method=method, max_iter=1, batch_size=64).fit(kind(X), y, w)
    other = pickle.loads(pickle.dumps(one))
    for model in (one, other):
        model.partial_fit(kind(X[::-1]), y[::-1], sample_weight=w)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch_size", [2, 5, 10])
def test_passes_over_weighted_rows(batch_size, monkeypatch):
    """Every row comes; its copies in a pass together count as its weight says."""
    monkeypatch.setattr(fitting, "FEWEST_ROUNDS", 7)
    weights = np.array([0.001, 0.4, 1.0, 2.0, 9.0])
    data = fw.Dataset._weighted(np.eye(5), np.arange(5), weights)
    stream = fitting.Passes(
        fitting.Sample(data, np.arange(5)), batch_size, 3, np.random.default_rng(0)
    )
    batches = list(stream)
    copies = np.bincount(np.concatenate([batch.rows for batch in batches]), minlength=5)
    each = stream.data._weights
    if batch_size >= 5:
        assert [sorted(batch.rows) for batch in batches] == [list(range(5))] * 21
        assert np.array_equal(each, weights)
    else:  # 14 rows an epoch or more: 12.4 as if each unit of weight were a row, 1 for the light
        once = np.round(weights / each)
        np.testing.assert_allclose(once * each, weights)
        assert once.tolist() == [1, 1, 1, 2, 10]
        assert (copies >= 3 * once - 1).all()
        assert len(batches) == 3 * 8


def test_class_weights(short_epochs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2)) + 1.0
    y = np.where(np.arange(300) < 270, "often", "rare")
    X[270:] -= 1.5
    plain, balanced = (few_rounds(class_weight=weight).fit(X, y) for weight in (None, "balanced"))
    rare = y == "rare"
    assert np.mean(plain.predict(X)[rare] == "rare") < 0.6
    assert np.mean(balanced.predict(X)[rare] == "rare") > 0.7
    assert np.mean(balanced.predict(X)[~rare] == "rare") < 0.4


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -2.0, 1.0], r"sample_weight\[1\] is -2.0; weights must be at least 0"),
        ([0.0] * 3, "zero|0 for all"),
        ([1.0, np.nan, 1.0], "sample_weight contains NaN"),
        ([1.0, np.inf, 1.0], "sample_weight contains infinity"),
        ([1e308] * 3, "sample_weight sums to inf, .* multiply all weights by one factor"),
        ([9e307, 1.0, 1.0], r"sample_weight sums to 9e\+307"),
        ([1e-310] * 3, "sample_weight sums to 3e-310"),
        ([1.0, 1.0], r"sample_weight.shape == \(2,\), expected \(3,\)"),
        ([[1.0]] * 3, "must be 1D"),
        (["a", "b", "c"], "could not convert"),
        ([1j, 1.0, 1.0], "sample_weight must hold real numbers"),
    ],
)
def test_weights_that_cannot_be_used(weights, message):
    begun = few_rounds().partial_fit(np.eye(3), ["a", "b", "b"], classes=["a", "b"])
    before = pickle.dumps(begun)
    for call in (few_rounds().fit, begun.partial_fit):
        with pytest.raises((TypeError, ValueError), match=message):
            call(np.eye(3), ["a", "b", "b"], sample_weight=weights)
        assert pickle.dumps(begun) == before


def test_weights_that_leave_one_class():
    with pytest.raises(ValueError, match="one class only, 'a', where weights are not 0"):
        few_rounds().fit(np.eye(3), ["a", "b", "b"], sample_weight=[1.0, 0.0, 0.0])


def test_labels_without_a_weight_have_weight_one(iris, short_epochs):
    X, y = iris
    given = few_rounds(max_iter=1, class_weight={"setosa": 2.0}).fit(X, y)
    weights = np.where(y == "setosa", 2.0, 1.0)
    wanted = few_rounds(max_iter=1).fit(X, y, sample_weight=weights)
    assert np.array_equal(given.coef_, wanted.coef_)
    # of real labels too, whatever their type, and in calls that lack the class
    for labels in ([-1.0, 0.0, 2.0], [0, 10, 20], ["0", "1", "a"]):
        named = np.asarray(labels)[np.searchsorted(np.unique(y), y)]
        model = few_rounds(class_weight={labels[2]: 3.0})
        model.partial_fit(X[:100], named[:100], classes=labels).partial_fit(X[100:], named[100:])


DATES = {
    "days": (["2020-01-01", "2021-05-03"], "M8[D]", lambda d: d),
    "nanoseconds": (["2020-01-01", "2021-05-03"], "M8[ns]", lambda d: d),
    "nanoseconds for days": (["2020-01-01", "2021-05-03"], "M8[D]", lambda d: d.astype("M8[ns]")),
    "dates for nanoseconds": (
        ["2020-01-01", "2021-05-03"], "M8[ns]", lambda d: d.astype("M8[D]").item()
    ),
    "strings": (["2020-01-01", "2021-05-03"], "M8[D]", str),
    "durations": ([1, 5], "m8[s]", lambda d: d),
    "durations of Python": (
        [1000, 5000], "m8[ns]", lambda d: datetime.timedelta(microseconds=int(d) / 1000)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DATES)
def test_dates_as_labels_have_class_weights(name, iris, short_epochs):
    labels, dtype, key = DATES[name]
    dates = np.array(labels, dtype)
    X, numbers = iris[0][:30:2], np.arange(15) % 2
    given = {key(dates[1]): 5.0}
    model = few_rounds(max_iter=1, class_weight=given).fit(X, dates[numbers])
    wanted = few_rounds(max_iter=1).fit(X, numbers, sample_weight=1.0 + 4.0 * numbers)
    assert np.array_equal(model.coef_, wanted.coef_)
    few_rounds(class_weight=given).partial_fit(X, dates[numbers], classes=dates)
    with pytest.raises(ValueError, match="class_weight has the label 'never', which is no class"):
        few_rounds(class_weight={"never": 2.0, key(dates[1]): 1.0}).fit(X, dates[numbers])


GOOD = {"X": np.eye(3), "y": np.array([0, 1, 1]), "classes": [0, 1, 2], "sample_weight": np.ones(3)}
CALLS = {
    "fit": ("X", "y", "sample_weight"),
    "partial_fit": ("X", "y", "classes", "sample_weight"),
    "score": ("X", "y", "sample_weight"),
    **dict.fromkeys(("predict", "predict_proba", "predict_log_proba", "decision_function"), ("X",)),
}
ENTRANCES = [(call, argument) for call, names in CALLS.items() for argument in names]


@pytest.mark.parametrize(("call", "argument"), ENTRANCES)
def test_masks_do_not_vanish(call, argument):
    """As in learners, though nothing is masked; nor do those of single rows in lists."""
    whole = np.ma.array(GOOD[argument])
    rows = [*GOOD[argument][:2], whole[2] if whole.ndim > 1 else np.ma.masked]
    model = few_rounds().partial_fit(GOOD["X"], GOOD["y"], classes=GOOD["classes"])
    before = pickle.dumps(model)
    for value, name in ((whole, argument), (rows, rf"{argument}\[2\]")):
        given = {**{name: GOOD[name] for name in CALLS[call]}, argument: value}
        with pytest.raises(TypeError, match=rf"{name} is a masked array; .*filled"):
            getattr(model, call)(**given)
        assert pickle.dumps(model) == before


# --- partial_fit ----------------------------------------------------------------------------------


def test_partial_fit_is_online_learning(iris):
    """Rounds of the learner on scaled batches, one after the other."""
    X, y = iris
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order] / np.abs(X).max(axis=0), y[order]
    X = np.vstack([np.eye(4), X])  # so that the scale is 1 from the first batch on
    y = np.concatenate([y[:4], y])
    model = few_rounds(average=False)
    learner = fw.ORGFW(
        fw.SoftmaxRegression(5, 3), fw.RowL1Ball((3, 5), 10.0), momentum=fw.power_schedule(1, 2 / 3)
    )
    classes = ["versicolor", "setosa", "virginica"]
    for first in range(0, len(y), 14):
        part = slice(first, first + 14)
        model.partial_fit(X[part], y[part], classes=classes if first == 0 else None)
        A = np.column_stack([X[part], np.ones(len(X[part]))])
        learner.observe((A, np.searchsorted(sorted(classes), y[part])))
        np.testing.assert_array_equal(model.coef_, learner.play()[:, :4])
        np.testing.assert_array_equal(model.intercept_, learner.play()[:, 4])
    assert model.n_iter_ == 11
    assert np.isnan(model.gap_)


@pytest.mark.parametrize(("rows", "rounds"), [(1, 1), (5, 1), (6, 2), (100, 25)])
def test_calls_of_partial_fit_are_rounds_of_few_rows(iris, rows, rounds):
    """By default; else as many as were asked for."""
    X, y = iris[0][:rows], iris[1][:rows]
    model = ProjectionFreeClassifier().partial_fit(X, y, classes=np.unique(iris[1]))
    assert model._online.learner.t == 1 + rounds
    assert model.partial_fit(X, y)._online.learner.t == 1 + 2 * rounds
    wide = ProjectionFreeClassifier(batch_size=256).partial_fit(X, y, classes=np.unique(iris[1]))
    assert wide._online.learner.t == 2


def test_partial_fit_goes_on_where_fit_ended(iris, short_epochs):
    """By rounds of few rows, too, and counts its calls as epochs are."""
    X, y = iris[0][::3], iris[1][::3]
    model = ProjectionFreeClassifier(radius=10.0, max_iter=1, tol=0.0).fit(X, y)
    begun = model._online.learner.t
    assert model.partial_fit(X, y)._online.learner.t == begun + 12
    assert model.n_iter_ == 2


def test_one_wild_value_takes_half_of_its_column_at_most(iris):
    """What a column has learned is not lost; from then on it is scaled by twice what it was."""
    X, y = iris
    model = few_rounds().partial_fit(X, y, classes=np.unique(y))
    for _ in range(sized(60, 20)):
        model.partial_fit(X, y)
    before, score = model.coef_.copy(), model.score(X, y)
    for kind in (np.array, sparse.csr_array):
        wild, other = X.copy(), pickle.loads(pickle.dumps(model))
        wild[0, 2] = 1e6
        other.partial_fit(kind(wild), y)
        step = 2 * 10.0 / (model._online.learner.t - 1)  # no weight moves further in one round
        small = np.abs(X).max(axis=0)
        assert (np.abs(other.coef_[:, 2] - before[:, 2] / 2) * small[2] <= step).all()
        assert (np.abs(other.coef_ - before)[:, [0, 1, 3]] * small[[0, 1, 3]] <= step).all()
        assert other.score(X, y) >= score - 0.1
        # what lies beyond counts as twice the largest before
        wild[0, 2] = 2 * X[:, 2].max()
        wanted = pickle.loads(pickle.dumps(model)).partial_fit(kind(wild), y)
        assert np.array_equal(other.coef_, wanted.coef_)


def test_columns_that_grow_are_followed(iris):
    X, y = iris
    model = few_rounds().partial_fit(X, y, classes=np.unique(y))
    for _ in range(11):
        model.partial_fit(X * 1000.0, y)
    assert np.array_equal(model._online.scale, np.abs(X).max(axis=0) * 1000.0)
    # and columns that had nothing take what comes
    empty = few_rounds().partial_fit(X * [1, 1, 0, 1], y, classes=np.unique(y)).partial_fit(X, y)
    assert np.array_equal(empty._online.scale, np.abs(X).max(axis=0))


def test_rows_of_weight_two_count_as_two_in_any_call(iris):
    X, y = iris
    counts = np.random.default_rng(1).integers(0, 4, 40)
    classes = np.unique(y)
    one, other = (
        few_rounds(batch_size=64).partial_fit(X[::4], y[::4], classes=classes) for _ in range(2)
    )
    for part in (slice(0, 40), slice(60, 100), slice(100, 140)):
        one.partial_fit(X[part], y[part], sample_weight=counts)
        other.partial_fit(X[part].repeat(counts, axis=0), y[part].repeat(counts))
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-12)
    for i in range(0, 150, 30):  # one row a call
        one.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=[3.0])
        other.partial_fit(X[[i, i, i]], y[[i, i, i]])
        np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-12)
    # weights are proportions to the mean of the first call
    one, other = (few_rounds() for _ in range(2))
    for part in (slice(0, 150, 2), slice(1, 150, 2)):
        one.partial_fit(X[part], y[part], classes, sample_weight=np.full(75, 1e-3))
        other.partial_fit(X[part], y[part], classes)
        assert np.array_equal(one.coef_, other.coef_)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("unit", [1.0, 0.3])
def test_weights_in_partial_fit_are_exact(unit, kind, iris):
    """By rounds of the learner on gradients that are multiplied by the weights."""
    X, y = iris
    classes, labels = np.unique(y, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(y)).reshape(10, 15)
    w = np.linspace(0.1, 2.3, 15)
    model = few_rounds(method="osfw", average=False, momentum=0.5, scaling=None)
    x, d = np.zeros((3, 5)), np.zeros((3, 5))
    for t, rows in enumerate(order, start=1):
        model.partial_fit(kind(X[rows]), y[rows], classes, sample_weight=unit * w)
        A = np.column_stack([X[rows], np.ones(15)])
        d = 0.5 * d + 0.5 * ref.weighted_gradient(x, A, labels[rows], w[:, np.newaxis] / w.mean())
        x = x + (ref.lmo(d, 10.0) - x) / (t + 1)
        np.testing.assert_allclose(model.coef_, x[:, :4], rtol=0, atol=1e-12)
    # enormous weights count for four times the rows, or for a batch
    one = pickle.loads(pickle.dumps(model)).partial_fit(kind(X), y, sample_weight=np.full(150, 1e9))
    other = model.partial_fit(kind(X), y, sample_weight=np.full(150, 1e12))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("n_classes", "dtype", "rtol"), [(2, "f8", 1e-12), (3, "f4", 1e-5)])
@pytest.mark.parametrize("options", [{}, {"average": False}, {"scaling": None}, {"method": "ofw"}])
def test_weights_are_made_when_they_are_asked_for(options, dtype, rtol, n_classes, monkeypatch):
    """Rounds do without, and so do predictions on sparse rows: of methods with rounds for them."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((48, 40), density=0.2, format="csr", rng=rng).astype(dtype)
    y = np.arange(48) % n_classes
    model = few_rounds(batch_size=2, **options)
    with monkeypatch.context() as patched:
        if "method" not in options:
            for name in ("play", "average"):
                patched.delattr(fw.learners._base.OnlineLearner, name)
        for low, high in [(0, 1), (1, 2), (2, 12), (12, 48)]:
            model.partial_fit(X[low:high], y[low:high], classes=np.unique(y))
            scores = model.decision_function(X)
    exact = pickle.loads(pickle.dumps(model))
    found = X @ exact.coef_.T + exact.intercept_
    np.testing.assert_allclose(scores.reshape(found.shape), found, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(model.decision_function(X.toarray()), scores, rtol=rtol, atol=rtol)
    exact.coef_[...] = 0.0  # what is changed counts, here and in copies
    for changed in (exact, pickle.loads(pickle.dumps(exact))):
        assert np.unique(changed.decision_function(X), axis=0).shape[0] == 1
    exact.partial_fit(X, y)
    assert exact.coef_.any()


def test_partial_fit_does_not_balance(iris):
    with pytest.raises(ValueError, match="'balanced' needs all labels"):
        few_rounds(class_weight="balanced").partial_fit(*iris, classes=np.unique(iris[1]))


@pytest.mark.parametrize(
    ("classes", "kind", "message"),
    [
        ([None, "setosa"], TypeError, "classes must be labels of one kind"),
        ([[0, 1], [2, 3]], ValueError, "classes must be a list of labels"),
        ([0.0, np.nan], ValueError, "classes must be a list of labels, without NaN"),
        ("setosa", ValueError, "classes must be a list of labels"),
        (["setosa"], ValueError, "classes must be at least two"),
        ([0, 1, 2], ValueError, "the label 'setosa', which is not among the classes"),
    ],
)
def test_classes_that_cannot_be_used(classes, kind, message, iris):
    model = few_rounds()
    with pytest.raises(kind, match=message):
        model.partial_fit(*iris, classes=classes)
    assert not hasattr(model, "n_features_in_")


@pytest.mark.parametrize(
    "change", [{"radius": 3.0}, {"fit_intercept": False}, {"method": "osfw"}, {"step": 0.5}]
)
def test_what_the_learner_is_made_of_cannot_be_changed_later(change, iris):
    X, y = iris
    model = few_rounds().partial_fit(X, y, classes=np.unique(y))
    ((name, _),) = change.items()
    with pytest.raises(ValueError, match=f"{name} was .* when the model was begun"):
        model.set_params(**change).partial_fit(X, y)
    model.set_params(**{name: getattr(few_rounds(), name)}, batch_size=10).partial_fit(X, y)


def test_partial_fit_learns(iris):
    X, y = iris
    rng = np.random.default_rng(0)
    model = ProjectionFreeClassifier()
    for _ in range(sized(300, 100)):
        rows = rng.integers(len(y), size=20)
        model.partial_fit(X[rows], y[rows], classes=np.unique(y))
    assert model.radius_ == 30.0
    assert model.score(X, y) > sized(0.9, 0.8)
    before = model.coef_.copy()
    model.partial_fit(X, y, sample_weight=np.linspace(0.0, 1.0, len(y)))
    assert 0 < np.abs(model.coef_ - before).max() < 1.0  # late steps are short


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_vertex_size(k, kind, iris):
    """Rounds of the learner on a k-sparse polytope; wider vertices bring in more weights."""
    X, y = iris
    X = kind(np.hstack([X / np.abs(X).max(axis=0), np.eye(len(X))[:, :3]]))
    model = few_rounds(vertex_size=k, fit_intercept=False, average=False, batch_size=150)
    learner = fw.ORGFW(
        fw.SoftmaxRegression(7, 3), fw.RowKSparsePolytope((3, 7), k, 10.0),
        momentum=fw.power_schedule(1, 2 / 3),
    )  # fmt: skip
    for t in range(1, 4):
        model.partial_fit(X, y, classes=np.unique(y))
        learner.observe((X, np.unique(y, return_inverse=True)[1]))
        np.testing.assert_allclose(model.coef_, learner.play(), rtol=0, atol=1e-12)
        assert (np.count_nonzero(model.coef_, axis=1) <= k * t).all()
    assert model.vertex_size_ == k


def test_many_features_have_rules_of_their_own(monkeypatch, short_epochs):
    """One unit, vertices of several entries, larger radii, smaller batches, an early end."""
    monkeypatch.setattr("fastfw._estimators.fitting.MANY", 50)
    monkeypatch.setattr(fitting, "RADII_OF_MANY", (12.0, 24.0))
    rng = np.random.default_rng(0)
    n = sized(400, 160)
    y = np.arange(n) % 4
    columns = np.hstack([rng.integers(0, 6, (n, 3)) * 4 + y[:, np.newaxis],
                         rng.integers(24, 60, (n, 4))])  # fmt: skip
    X = sparse.coo_array((np.ones(columns.size), (np.arange(n).repeat(7), columns.ravel())))
    X, test = X.tocsr()[: n - 40], X.tocsr()[n - 40 :]
    model = ProjectionFreeClassifier(max_iter=sized(60, 6)).fit(X, y[: n - 40])
    assert [radius for radius, _ in model.radius_path_] == [12.0, 24.0]
    assert model.vertex_size_ == round(model.radius_ / 6.0)
    assert model._online.plan.batch_size == 24
    asked, most = len(model.validation_loss_), sized(60, 6)
    assert asked <= sized(30, 6)
    assert model.n_iter_ == min(asked + max(1, asked // 2), most)  # in the end of all rows
    norms = np.sqrt(X.power(2).sum(axis=1))
    np.testing.assert_allclose(model._online.scale, norms.mean())
    norm = np.abs(model.coef_).sum(axis=1) * norms.mean() + 10.0 * np.abs(model.intercept_)
    assert (norm <= model.radius_ * (1 + 1e-9)).all()
    assert model.score(test, y[n - 40 :]) > 0.8
    # in units ten times as large the same; a dense matrix is nothing of the kind
    other = clone(model).fit(10.0 * X, y[: n - 40])
    np.testing.assert_allclose(other.coef_, model.coef_ / 10.0, rtol=0, atol=1e-9)
    dense = few_rounds(max_iter=1).fit(X.toarray(), y[: n - 40])
    assert (dense.vertex_size_, dense._online.plan.batch_size) == (1, sized(256, 32))
    online = ProjectionFreeClassifier().partial_fit(X, y[: n - 40], classes=range(4))
    assert (online.radius_, online.vertex_size_) == (1000.0, 61)
    online = ProjectionFreeClassifier().partial_fit(X, y[: n - 40], classes=range(25))
    assert online.radius_ == 2500.0


def test_the_least_weights_are_left_out():
    """As many as have a hundredth of the sum of magnitudes, and not one more."""
    x = np.random.default_rng(0).standard_normal((4, 100)) ** 5
    found = fitting._without_least(x)
    kept = found != 0.0
    np.testing.assert_array_equal(found[kept], x[kept])
    gone, most = np.abs(x[~kept]).sum(), 0.01 * np.abs(x).sum()
    assert 0.0 < gone < most <= gone + np.abs(x[kept]).min()
    for same in (np.zeros((2, 3)), np.eye(3)):
        np.testing.assert_array_equal(fitting._without_least(same), same)


def test_a_rejected_batch_changes_nothing(iris):
    X, y = iris
    model = few_rounds()
    with pytest.raises(ValueError, match="classes must be given in the first call"):
        model.partial_fit(X, y)
    model.partial_fit(X, y, classes=np.unique(y))
    before = pickle.dumps(model)
    for X_bad, y_bad, classes, message in [
        (X, np.where(y == "setosa", "rose", y), None, "label 'rose', which is not among"),
        (X[:, :2], y, None, "2 features"),
        (np.where(X > 7, np.nan, X), y, None, "NaN"),
        (X, y, ["a", "b"], "in the first call they were"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X_bad, y_bad, classes=classes)
        assert pickle.dumps(model) == before


# --- parameters, tools ----------------------------------------------------------------------------


REFUSED = {
    "method": ["sgd", "ORGFW", None, ["orgfw"], 3],
    "radius": [0.0, -1, "big", None, np.nan, np.inf, True, [1.0], 1e-310, np.array(["auto"])],
    "vertex_size": [0, -3, 2.0, "all", None, True],
    "batch_size": [0, -3, 2.0, "all", None, True],
    "step": [1.5, -0.1, "fast", np.nan, [0.5], True],
    "momentum": [1.5, "heavy", np.inf],
    "average": ["x", 1, None, "False"],
    "fit_intercept": ["no", 0, None, 1.0],
    "intercept_scaling": [0.0, -1.0, "1", None, np.nan, True],
    "scaling": ["std", "None", True, 1.0, np.ones(4)],
    "max_iter": [0, -1, 10.0, "many", None, np.inf],
    "tol": [-1.0, "small", None, np.nan],
    "early_stopping": ["yes", None, 1],
    "validation_fraction": [0.0, 1.0, -0.1, 2, "all", None],
    "n_iter_no_change": [0, 2.0, None, "few"],
    "warm_start": ["yes", None, 1],
    "verbose": [-1, "loud", None, 1.5],
    "n_jobs": [0, 1.5, "all", True],
    "class_weight": ["equal", 2.0, [1, 2], {0: -1.0}, {0: "a"}, {0: np.nan}, {0: None}],
    "dtype": ["f2", np.float16, int, complex, "number", 3.5],
    "random_state": ["seed", -1, 1.5, np.random.default_rng(0), [-1]],
}


def test_every_parameter_has_a_test():
    assert REFUSED.keys() == ProjectionFreeClassifier().get_params().keys()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in REFUSED.items() for value in values]
)
def test_parameters_are_checked_in_fit(name, value):
    """The message names the parameter, what was given and what is wanted; nothing is changed."""
    model = ProjectionFreeClassifier(**{name: value})  # not here
    given = getattr(value, "dtype", None) is None and repr(value)[:40]
    for call in (model.fit, lambda X, y: model.partial_fit(X, y, classes=[0, 1])):
        before = dict(vars(model))
        with pytest.raises((TypeError, ValueError), match=rf"{name}.* must be ") as refused:
            call(np.eye(3), [0, 1, 1])
        assert not given or given in str(refused.value) or name in ("dtype", "class_weight", "step")
        assert vars(model) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "ofw", "momentum": 0.5}, "has no momentum"),
        (
            {"class_weight": {0: 1.0, 7: 2.0}},
            "the label 7, which is no class, and no weight for .* 1",
        ),
        ({"class_weight": {0: 0.0, 1: 0.0}}, "must not be 0 for all rows"),
        (
            {"intercept_scaling": 1e300, "dtype": np.float32},
            "intercept_scaling is .* float32 cannot",
        ),
        ({"step": lambda t: 2.0}, r"step in round 1 must be a number in \[0, 1\]"),
    ],
)
def test_parameters_that_do_not_go_together(options, message):
    model = ProjectionFreeClassifier(**options)
    for call in (model.fit, lambda X, y: model.partial_fit(X, y, classes=[0, 1])):
        with pytest.raises(ValueError, match=message):
            call(np.eye(3), [0, 1, 1])
        assert not hasattr(model, "n_features_in_")


def test_parameters_of_numpys_types(iris, short_epochs):
    options = {
        "radius": np.float32(10.0), "max_iter": np.int64(1), "batch_size": np.uint8(32),
        "average": np.True_, "fit_intercept": np.False_, "tol": np.float64(0.0),
    }  # fmt: skip
    plain = {name: value.item() for name, value in options.items()}
    one, other = (ProjectionFreeClassifier(**given).fit(*iris) for given in (options, plain))
    assert np.array_equal(one.coef_, other.coef_)


def test_a_refused_fit_leaves_the_model_as_it_was(iris, short_epochs):
    X, y = iris
    model = few_rounds(max_iter=1).fit(X, y)
    before = pickle.dumps(model)
    for bad_X, bad_y in [(X[:, :2], y[:-1]), (X * np.inf, y), (X[:3], y[:3])]:
        with pytest.raises(ValueError, match=r"."):
            model.fit(bad_X, bad_y)
        assert pickle.dumps(model) == before


# --- the end of fit -------------------------------------------------------------------------------


def test_warns_where_the_gap_is_not_reached(iris, short_epochs):
    X, y = iris
    with pytest.warns(ConvergenceWarning, match="gap is .* after max_iter=1 .* than tol=1e-08"):
        model = few_rounds(max_iter=1, tol=1e-8).fit(X, y)
    assert model.gap_ > 1e-8
    wide = few_rounds(max_iter=1, tol=model.gap_).fit(X, y)  # without a warning
    assert wide.n_iter_ == 1
    few_rounds(max_iter=1, tol=0.0).fit(X, y)
    few_rounds(max_iter=1, tol=1e-8).partial_fit(X, y, classes=np.unique(y))


@compiled
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_defaults_reach_their_gap(load):
    """On raw columns of very different size, and they are accurate."""
    X, X_test, y, y_test = train_test_split(*load(return_X_y=True), random_state=0)
    model = ProjectionFreeClassifier().fit(X, y)
    assert model.gap_ <= model.tol
    assert model.score(X_test, y_test) >= 0.95


def test_schedules(iris, short_epochs):
    one = few_rounds(step=0.25, momentum=0.5, max_iter=1).fit(*iris)
    other = few_rounds(step=lambda t: 0.25, momentum=lambda t: 0.5, max_iter=1).fit(*iris)
    assert np.array_equal(one.coef_, other.coef_)
    assert not np.array_equal(one.coef_, few_rounds(max_iter=1).fit(*iris).coef_)


def test_import_without_scikit_learn():
    code = """
import sys
sys.modules["sklearn"] = None
import fastfw
try:
    import fastfw.sklearn
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "fastfw[sklearn]"' in done.stdout


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_that_overflow_are_refused(classes):
    X, y = np.linspace(-1, 1, 40)[:, np.newaxis], np.arange(40) * classes // 40
    model = ProjectionFreeClassifier(radius=1e3, max_iter=2, tol=1e9).fit(X, y)
    for call in (model.predict, model.predict_proba, model.predict_log_proba):
        with pytest.raises(ValueError, match=r"X\[1\] is so large that its scores overflow"):
            call([[1.0], [1e308]])
