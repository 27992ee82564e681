"""The regressor of scikit-learn, and what it shares with the classifier beyond a single fit."""

import io
import pickle
import warnings

import numpy as np
import pytest
from scipy import optimize, sparse

from sizes import JIT, sized

pytest.importorskip("sklearn", minversion="1.5")

import joblib
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from fastfw._estimators import fitting, regression
from fastfw.sklearn import ProjectionFreeClassifier, ProjectionFreeRegressor


@pytest.fixture(autouse=True)
def short_epochs(monkeypatch):
    monkeypatch.setattr(fitting, "FEWEST_ROUNDS", sized(fitting.FEWEST_ROUNDS, 8))


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 10))
    return X, 1000.0 + 30.0 * X[:, 1] - 20.0 * X[:, 4] + 5.0 * rng.normal(size=120)


def made(kind, **options):
    """A regressor or classifier with few rounds, and its targets from numbers."""
    model = ProjectionFreeRegressor if kind == "regressor" else ProjectionFreeClassifier
    return model(**{"radius": 5.0, "max_iter": sized(16, 2), "tol": 0.0, **options})


def targets(kind, y):
    return y if kind == "regressor" else np.where(y > y.mean(), "more", "less")


KINDS = ["regressor", "classifier"]


# --- losses ---------------------------------------------------------------------------------------


LOSSES = {
    "squared_error": (lambda u: u**2 / 2, {}),
    "huber": (lambda u: np.where(np.abs(u) < 1.5, u**2 / 2, 1.5 * np.abs(u) - 1.125),
              {"epsilon": 1.5}),
    "quantile": (lambda u: np.maximum(-0.8 * u, 0.2 * u), {"quantile": 0.8}),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_gradients(name):
    """By their definitions; the quantile loss up to what its rounded corner leaves out."""
    by_definition, options = LOSSES[name]
    loss = regression.loss_of(name, **{"epsilon": 1.35, "quantile": 0.5, **options})
    rng = np.random.default_rng(0)
    X, y, w = rng.normal(size=(9, 3)), 2.0 * rng.normal(size=9), rng.uniform(0.5, 2.0, 9)
    rows = regression.Targets.of(X, y, w, loss)
    x = rng.normal(size=(1, 3))
    value, gradient = regression.row_losses(x, X, rows.y)
    away = regression.ROUNDED * w.sum() / 2 if name == "quantile" else 1e-12
    assert 0.0 <= (w * by_definition(X @ x[0] - y)).sum() - value + 1e-12 <= away
    slope = optimize.approx_fprime(
        x[0], lambda x: regression.row_losses(x[np.newaxis], X, rows.y)[0], 1e-7
    )
    np.testing.assert_allclose(gradient[0], slope, rtol=1e-5, atol=1e-5)
    for other in (regression.row_by_row(x, X, rows.y),
                  regression.row_losses(x, sparse.csr_array(X), rows.y)):  # fmt: skip
        np.testing.assert_allclose(other[0], value, rtol=1e-12)
        np.testing.assert_allclose(other[1], gradient, rtol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
def test_medians(weighted):
    y, w = np.array([5.0, -1.0, 3.0, 9.0]), np.array([1, 4, 2, 3])
    found = regression.units_of(y, w if weighted else None, True)
    repeated = np.sort(y.repeat(w) if weighted else y)
    zero = repeated[(repeated.size - 1) // 2]
    away = np.sort(np.abs(repeated - zero))[(repeated.size - 1) // 2]
    assert found == pytest.approx((zero, 1.4826 * away))
    assert regression.units_of(np.ones(3), None, weighted) == (1.0, 1.0)


@pytest.mark.skipif(not JIT, reason="wants many rounds")
@pytest.mark.parametrize("name", LOSSES)
def test_what_is_predicted(name, data):
    """Means, middles and quantiles; an outlier moves squares alone."""
    X, y = data
    model = ProjectionFreeRegressor(name, radius=5.0, tol=0.02, quantile=0.8).fit(X, y)
    assert model.score(X, y) > (0.95 if name != "quantile" else 0.9)
    assert (y < model.predict(X)).mean() == pytest.approx(0.8 if name == "quantile" else 0.5,
                                                          abs=0.1)  # fmt: skip
    assert model.gap_ <= model.tol
    wild = np.where(np.arange(120) == 7, 1e6, y)
    moved = np.abs(clone(model).fit(X, wild).predict(X) - model.predict(X)).mean()
    assert (moved > 1000.0) == (name == "squared_error")
    assert model.coef_.shape == (10,)
    assert np.ndim(model.intercept_) == 0


@pytest.mark.parametrize("name", LOSSES)
def test_units_do_not_matter(name, data):
    """Nor does zero, up to rounding; the bound holds in these units."""
    X, y = data
    one = made("regressor", loss=name).fit(X, y)
    other = made("regressor", loss=name).fit(X * 4.0, 2.0 * y + 6.0)
    np.testing.assert_allclose(other.predict(X * 4.0), 2.0 * one.predict(X) + 6.0, rtol=1e-9)
    units = one._online.known
    norm = np.abs(one.coef_ * np.abs(X).max(axis=0)).sum() + abs(one.intercept_ - units.zero)
    assert norm <= 5.0 * units.one * (1 + 1e-9)


@pytest.mark.parametrize("way", ["fit", "partial_fit", "mixed"])
def test_sparse_and_dense_features_give_the_same_model(way, data, monkeypatch):
    """Made dense where that is little, played by oracle calls else, or in turns."""
    X, y = data
    models = []
    for form in ("dense", "made dense", "sparse"):
        monkeypatch.setattr("fastfw.sklearn._SMALL", 0 if form == "sparse" else 1 << 24)
        kind = np.asarray if form == "dense" else sparse.csr_array
        model = made("regressor", batch_size=16, max_iter=2)
        if way == "fit":
            model.fit(kind(X), y)
        else:
            model.partial_fit(kind(X), y, sample_weight=np.linspace(0.5, 2.0, 120))
            model.partial_fit(X if way == "mixed" else kind(X), y)
            model.partial_fit(kind(X), y)
        models.append(model)
    for other in models[1:]:
        np.testing.assert_allclose(other.coef_, models[0].coef_, rtol=0, atol=1e-8)
        np.testing.assert_allclose(other.predict(sparse.csr_array(X)), models[0].predict(X))


def test_weights_are_repetitions(data):
    X, y = (a[:60] for a in data)
    counts = np.random.default_rng(0).integers(0, 4, 60)
    for loss in LOSSES:
        one = made("regressor", loss=loss).fit(X, y, counts)
        other = made("regressor", loss=loss).fit(X.repeat(counts, axis=0), y.repeat(counts))
        np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"loss": "absolute"}, [1, 2, 3], "loss must be 'squared_error', 'huber' or 'quantile'"),
        ({"quantile": 1.0}, [1, 2, 3], "quantile must be a number above 0 and below 1"),
        ({"epsilon": 0.0}, [1, 2, 3], "epsilon must be a positive number"),
        ({"vertex_size": "many"}, [1, 2, 3], "vertex_size must be an integer .* or give 'auto'"),
        ({}, [1e200, 2, 3], "y is so large"),
        ({}, ["a", "b", "c"], "could not convert|numeric"),
        ({}, [1.0, np.nan, 2.0], "NaN"),
    ],
)
def test_what_cannot_be_used(options, y, message):
    model = ProjectionFreeRegressor(**options)
    for call in (model.fit, model.partial_fit):
        with pytest.raises((TypeError, ValueError), match=message):
            call(np.eye(3), y)
        assert not hasattr(model, "n_features_in_")


def test_partial_fit_learns(data):
    X, y = data
    model = ProjectionFreeRegressor(batch_size=8)
    for first in range(0, 120, 24):
        model.partial_fit(X[first : first + 24], y[first : first + 24])
    assert (model.radius_, model.n_iter_) == (30.0, 5)
    score = model.score(X, y)
    for _ in range(sized(20, 4)):
        model.partial_fit(X, y)
    assert model.score(X, y) > max(score, sized(0.9, 0.0))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="10 features"):
        model.partial_fit(X[:, :2], y)
    with pytest.raises(ValueError, match=r"quantile was 0\.5 when the model was begun and is 0.6"):
        model.set_params(quantile=0.6).partial_fit(X, y)
    assert pickle.dumps(model.set_params(quantile=0.5)) == before


# --- both estimators ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["fit", "partial_fit"])
def test_pickle_joblib_and_skops(way, kind, data):
    """What comes back predicts the same and goes on learning the same."""
    X, y = data[0], targets(kind, data[1])
    model = made(kind)
    more = {"classes": np.unique(y)} if (kind, way) == ("classifier", "partial_fit") else {}
    getattr(model, way)(X, y, **more)
    file = io.BytesIO()
    joblib.dump(model, file)
    file.seek(0)
    copies = [pickle.loads(pickle.dumps(model)), joblib.load(file)]
    try:
        import skops.io as skops
    except ImportError:
        pass
    else:
        kept = skops.dumps(model)
        copies.append(skops.loads(kept, trusted=skops.get_untrusted_types(data=kept)))
    after = pickle.loads(pickle.dumps(model)).partial_fit(X, y).predict(X)
    for other in copies:
        assert np.array_equal(other.predict(X), model.predict(X))
        assert np.array_equal(other.partial_fit(X, y).predict(X), after)


@pytest.mark.parametrize("kind", KINDS)
def test_warm_start_goes_on(kind, data):
    """Steps stay as short as they have become, and what is rejected changes nothing."""
    X, y = data[0], targets(kind, data[1])
    model = made(kind, warm_start=True, batch_size=200).fit(X, y)
    rounds, gap = model._online.learner.t, model.gap_
    model.fit(X, y)
    assert model._online.learner.t == 2 * rounds - 1
    assert model.gap_ < sized(gap, np.inf)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"radius was 5.0 when the model was begun and is 6.0"):
        model.set_params(radius=6.0).fit(X, y)
    assert pickle.dumps(model.set_params(radius=5.0)) == before
    with pytest.raises(ValueError, match="10 features"):
        model.fit(X[:, :3], y)
    if kind == "classifier":
        with pytest.raises(ValueError, match="'other', which is not among the classes"):
            model.fit(X, np.where(y == "less", "other", y))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("kind", KINDS)
def test_early_stopping(kind, data, capsys):
    """It ends where the held-out loss has not fallen by tol for so many epochs, without a doubt."""
    X, y = data[0], targets(kind, data[1])
    options = {"early_stopping": True, "n_iter_no_change": 3, "validation_fraction": 0.25}
    model = made(kind, max_iter=60, tol=1e-3, batch_size=8, verbose=1, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        model.fit(X, y)
    losses = model.validation_loss_
    assert len(losses) == model.n_iter_ < 60
    # the first epoch of which that is so
    ends = [
        n
        for n in range(4, losses.size + 1)
        if losses[: n - 3].min() - losses[n - 3 : n].min() < 1e-3
    ]
    assert ends[0] == model.n_iter_
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_iter_
    assert lines[-1].startswith(f"epoch {model.n_iter_}: held-out loss {losses[-1]:.4g}")
    # held-out rows are of every class, and are not fitted to
    held, rest = fitting.hold_out(
        fitting.Sample(model._dataset(X, model._label(X, y, None, None, whole=True)),
                        np.arange(120)), 0.25, np.random.default_rng(0)
    )  # fmt: skip
    assert (held.rows.size, rest.rows.size) == (30, 90)
    assert not set(held.rows) & set(rest.rows)
    assert not hasattr(made(kind).fit(X, y), "validation_loss_")
    with pytest.raises(ValueError, match="validation_fraction must leave rows on both sides"):
        made(kind, early_stopping=True).fit(X[:3], targets(kind, np.arange(3.0)))


def test_radii_are_told(data, capsys):
    made("regressor", radius="auto", max_iter=1, verbose=1).fit(*data)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("radius 1: held-out loss ")
    assert lines[-1].startswith("epoch 1: Frank-Wolfe gap ")


@pytest.mark.parametrize("kind", KINDS)
def test_metadata_is_routed(kind, data):
    """Weights reach `fit` through a search that is told to pass them on."""
    import sklearn
    from sklearn.model_selection import cross_validate

    X, y = data[0], targets(kind, data[1])
    weights = np.where(np.arange(120) % 2, 1.0, 0.0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = made(kind).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        whole = [(np.arange(120), np.arange(120))]
        found = cross_validate(
            model, X, y, cv=whole, params={"sample_weight": weights}, return_estimator=True
        )["estimator"][0]
    wanted = made(kind).fit(X[1::2], y[1::2])
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-9)


# --- the classifier's twin ------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("labels", ["strings", "numbers"])
def test_logistic_regression_with_the_same_weights(labels, n_classes, data):
    X, y = data[0], np.arange(120) % n_classes
    y = np.array(["a", "b", "c"])[y] if labels == "strings" else y
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(X, columns=list("qrstuvwxyz"))
    model = made("classifier").fit(X, y)
    twin = model.to_logistic_regression()
    np.testing.assert_allclose(twin.predict_proba(X), model.predict_proba(X), rtol=1e-12)
    assert np.array_equal(twin.predict(X), model.predict(X))
    assert twin.feature_names_in_.tolist() == list("qrstuvwxyz")
    before = model.coef_.copy()
    twin.coef_[...] = 0.0
    assert np.array_equal(model.sparsify().coef_.toarray(), before)
    assert np.array_equal(model.to_logistic_regression().coef_, before)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_onnx(n_classes, data):
    convert = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed").to_onnx
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X = data[0].astype(np.float32)
    model = made("classifier").fit(X, np.arange(120) % n_classes)
    written = convert(model.to_logistic_regression(), X[:1], options={"zipmap": False})
    session = runtime.InferenceSession(written.SerializeToString())
    found = session.run(["label", "probabilities"], {"X": X})
    assert np.array_equal(found[0], model.predict(X))
    np.testing.assert_allclose(found[1], model.predict_proba(X), rtol=1e-4, atol=1e-6)


def test_threads_share_rows(data):
    """-1 is one a core; they say what they want."""
    X, y = data[0], targets("classifier", data[1])
    one, two = (made("classifier", n_jobs=n).fit(X, y) for n in (None, 2))
    assert (one._online.learner.threads, two._online.learner.threads) == (1, 2)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=0, atol=1e-6)
    with pytest.raises(TypeError, match="n_jobs must be an integer other than 0"):
        made("classifier", n_jobs=0).fit(X, y)
