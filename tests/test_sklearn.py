"""The scikit-learn estimator: the library's own checks, and what it promises beyond them."""

import inspect
import io
import pickle
import subprocess
import sys
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
import reference as ref
from sizes import JIT, sized

pytest.importorskip("sklearn", minversion="1.5")

import joblib
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from fastfw import _fitting
from fastfw._estimator import repetitions
from fastfw.sklearn import ProjectionFreeClassifier

compiled = pytest.mark.skipif(not JIT, reason="too long without the compiler")


def few_rounds(**changes):
    """An estimator that is quick even where kernels run as plain Python."""
    options = {"radius": 10.0, "max_iter": sized(30, 2), "batch_size": sized(256, 32), "tol": 0.0}
    return ProjectionFreeClassifier(**{**options, **changes})


@pytest.fixture
def short_epochs(monkeypatch):
    """As few rounds as the data asks for, where the compiler is off."""
    monkeypatch.setattr(_fitting, "FEWEST_ROUNDS", sized(_fitting.FEWEST_ROUNDS, 32))


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, load_iris().target_names[y]


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, random_state=0, stratify=y)


# --- scikit-learn's own checks --------------------------------------------------------------------


ESTIMATORS = {
    # one of the checks wants 1000 epochs: with a tolerance they end earlier
    "defaults": lambda: ProjectionFreeClassifier() if JIT else few_rounds(max_iter=1, tol=0.05),
    "osfw": lambda: few_rounds(method="osfw", average=False, tol=0.05),
    "without scaling": lambda: few_rounds(scaling=None, tol=0.05),
}


@pytest.mark.filterwarnings("ignore")  # some checks warn of what they skip
@pytest.mark.parametrize("name", ESTIMATORS if JIT else ["defaults"])
def test_every_check_of_scikit_learn(name, short_epochs):
    """In full: nothing is expected to fail, and only the array API is not there to be tested."""
    done = []
    options = {}
    if "callback" in inspect.signature(check_estimator).parameters:  # from 1.6 on
        options = {
            "on_fail": None,
            "callback": lambda **result: done.append((result["check_name"], result)),
        }
    check_estimator(ESTIMATORS[name](), **options)
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


@compiled
def test_embedded_images_as_accurate_as_tuned_logistic_regression():
    X, y, X_test, y_test = fw.datasets.load("fashion-mnist-4k")
    X, X_test = X.astype(np.float32), X_test.astype(np.float32)
    ours = ProjectionFreeClassifier().fit(X, y)
    # the best of C = 0.001, 0.01, ..., 10; later iterations change its accuracy little
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        theirs = LogisticRegression(C=0.1, max_iter=30).fit(X, y)
    assert ours.score(X_test, y_test) >= theirs.score(X_test, y_test) - 0.01
    assert np.count_nonzero(ours.coef_) < 0.4 * np.count_nonzero(theirs.coef_)
    assert ours.coef_.dtype == np.float32


@compiled
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_raw_columns_of_very_different_size(load):
    X, y = load(return_X_y=True)
    scores = cross_val_score(ProjectionFreeClassifier(), X, y, cv=5)
    assert scores.mean() >= 0.95


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


def test_ends_where_the_gap_is_small(iris, short_epochs):
    X, y = iris
    model = few_rounds(tol=0.5, max_iter=50).fit(X, y)
    assert model.gap_ <= 0.5
    assert model.n_iter_ < 50


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


def test_feature_names(iris, short_epochs):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(iris[0], columns=load_iris().feature_names)
    model = few_rounds(max_iter=1).fit(frame, iris[1])
    assert model.feature_names_in_.tolist() == load_iris().feature_names
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[frame.columns[::-1]])


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


def test_integer_weights_are_repetitions_where_batches_are_whole(iris, short_epochs):
    X, y = iris[0][::3], iris[1][::3]
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    one = few_rounds().fit(X, y, sample_weight=weights)
    other = few_rounds().fit(X.repeat(weights, axis=0), y.repeat(weights))
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=0, atol=1e-9)
    equal = few_rounds().fit(X, y, sample_weight=np.full(len(y), 0.3))
    assert np.array_equal(equal.coef_, few_rounds().fit(X, y).coef_)


def test_frequencies_are_in_proportion():
    rng = np.random.default_rng(0)
    weights = rng.random(50)
    for total in (7, 50, 1000):
        counts = _fitting.frequencies(weights, 50, total, rng)
        assert counts.sum() == total
        assert (np.abs(counts - weights * total / weights.sum()) < 1.0 + 1e-9).all()
        assert _fitting.frequencies(None, 50, total, rng).sum() == total
    mean = np.mean([_fitting.frequencies(weights, 50, 7, rng) for _ in range(4000)], axis=0)
    # a count is Bernoulli about its expectation: 5 standard errors
    assert np.abs(mean - weights * 7 / weights.sum()).max() < 5 * 0.5 / np.sqrt(4000)
    integers = rng.integers(1, 5, 50).astype(float)
    assert _fitting.frequencies(integers, 50, int(integers.sum()), rng).tolist() == list(integers)


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


def test_only_proportions_of_weights_count(iris, short_epochs):
    X, y = iris
    weights = np.random.default_rng(0).integers(1, 9, len(y)).astype(float)
    one, *others = (
        few_rounds(max_iter=1).fit(X, y, sample_weight=weights * factor).coef_
        for factor in (0.5, 2.0**-600, 2.0**600)
    )
    assert all(np.array_equal(one, other) for other in others)


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
    one, other = (few_rounds().partial_fit(X[::4], y[::4], classes=classes) for _ in range(2))
    for part in (slice(0, 40), slice(60, 100), slice(100, 140)):
        one.partial_fit(X[part], y[part], sample_weight=counts)
        other.partial_fit(X[part].repeat(counts, axis=0), y[part].repeat(counts))
        assert np.array_equal(one.coef_, other.coef_)
    for i in range(0, 150, 30):  # one row a call
        one.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=[3.0])
        other.partial_fit(X[[i, i, i]], y[[i, i, i]])
        assert np.array_equal(one.coef_, other.coef_)
    # weights are proportions to the mean of the first call
    one, other = (few_rounds() for _ in range(2))
    for part in (slice(0, 150, 2), slice(1, 150, 2)):
        one.partial_fit(X[part], y[part], classes, sample_weight=np.full(75, 1e-3))
        other.partial_fit(X[part], y[part], classes)
        assert np.array_equal(one.coef_, other.coef_)


def test_light_rows_are_drawn_in_proportion():
    rng = np.random.default_rng(0)
    weights = np.array([0.1, 0.3, 0.05])
    drawn = [repetitions(weights, 1.0, 256, rng) for _ in range(4000)]
    counts = np.array([np.bincount(rows, minlength=3) for rows in drawn])
    # Bernoulli: 5 standard errors
    assert (np.abs(counts.mean(axis=0) - weights) < 5 * np.sqrt(weights / 4000)).all()
    assert repetitions(np.full(3, 1e9), 1.0, 12, rng).tolist() == [0] * 4 + [1] * 4 + [2] * 4


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


def test_partial_fit_goes_on_after_fit(iris, short_epochs):
    X, y = iris
    model = few_rounds(max_iter=3).fit(X, y)
    score = model.score(X, y)
    model.partial_fit(X, y)
    assert model.radius_ == 10.0
    assert model.score(X, y) >= score - 0.1


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
    "batch_size": [0, -3, 2.0, "all", None, True],
    "step": [1.5, -0.1, "fast", np.nan, [0.5], True],
    "momentum": [1.5, "heavy", np.inf],
    "average": ["x", 1, None, "False"],
    "fit_intercept": ["no", 0, None, 1.0],
    "intercept_scaling": [0.0, -1.0, "1", None, np.nan, True],
    "scaling": ["std", "None", True, 1.0, np.ones(4)],
    "max_iter": [0, -1, 10.0, "many", None, np.inf],
    "tol": [-1.0, "small", None, np.nan],
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
@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_digits])
def test_defaults_reach_their_gap(load):
    X, y = load(return_X_y=True)
    model = ProjectionFreeClassifier().fit(X, y)
    assert model.gap_ <= model.tol


@pytest.mark.parametrize("method", ["orgfw", "osfw", "ofw", "oaw", "regularized_ofw"])
def test_methods(method, iris, short_epochs):
    X, y = iris
    model = few_rounds(method=method, max_iter=2).fit(X, y)
    proba = model.predict_proba(X)
    own = proba[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    assert -np.log(own).mean() < sized(0.9, 1.0) * np.log(3.0)  # what zeros lose


def test_schedules(iris, short_epochs):
    one = few_rounds(step=0.25, momentum=0.5, max_iter=1).fit(*iris)
    other = few_rounds(step=lambda t: 0.25, momentum=lambda t: 0.5, max_iter=1).fit(*iris)
    assert np.array_equal(one.coef_, other.coef_)
    assert not np.array_equal(one.coef_, few_rounds(max_iter=1).fit(*iris).coef_)


def test_seeds(digits, short_epochs):
    X, _, y, _ = digits
    models = [
        few_rounds(max_iter=1, batch_size=32, random_state=seed).fit(X[:200], y[:200])
        for seed in (0, 0, 1, np.random.RandomState(0))
    ]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    assert np.array_equal(models[0].coef_, models[3].coef_)
    assert not np.array_equal(models[0].coef_, models[2].coef_)


def test_pickle_joblib_and_clone(iris, short_epochs):
    X, y = iris
    model = few_rounds(max_iter=1, momentum=fw.power_schedule(1, 0.5)).fit(X, y)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    for other in (pickle.loads(pickle.dumps(model)), joblib.load(file)):
        assert np.array_equal(other.predict_proba(X), model.predict_proba(X))
        other.partial_fit(X, y)
        again = pickle.loads(pickle.dumps(model)).partial_fit(X, y)
        assert np.array_equal(other.coef_, again.coef_)
    assert np.array_equal(clone(model).fit(X, y).coef_, model.coef_)


@pytest.mark.parametrize("average", [True, False])
def test_grid_search_in_a_pipeline_with_string_labels(average, iris, short_epochs):
    X, y = iris
    pipe = make_pipeline(StandardScaler(), few_rounds(average=average))
    grid = {"projectionfreeclassifier__radius": [0.01, 3.0, 30.0]}
    search = GridSearchCV(pipe, grid, cv=sized(5, 2)).fit(X, y)
    assert search.best_params_["projectionfreeclassifier__radius"] >= 3.0
    assert search.best_score_ > 0.85
    assert search.predict(X[:1]).tolist() == ["setosa"]


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
