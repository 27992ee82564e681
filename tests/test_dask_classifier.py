"""The classifier on Dask arrays: the model of the same rows in memory."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

from fastfw import _chunks

pytest.importorskip("sklearn")
da = pytest.importorskip("dask.array")
from fastfw.sklearn import ProjectionFreeClassifier  # noqa: E402

N, D = 230, 6
RNG = np.random.default_rng(3)
X = RNG.random((N, D)) * (RNG.random((N, D)) < 0.7) * [1, 5, 0.1, 1, 2, 1]
Y = np.array(["a", "b", "c"])[np.argmax(X @ RNG.normal(size=(D, 3)), axis=1)]
KINDS = {"dense": np.asarray, "csr": sparse.csr_array}


def lazy(kind, features=X):
    return da.from_array(features, chunks=(60, 4)).rechunk({1: -1}).map_blocks(KINDS[kind])


def model(**options):
    return ProjectionFreeClassifier(**{"max_iter": 2, "tol": 0.0, "batch_size": 20, **options})


def same(found, wanted):
    np.testing.assert_allclose(found.coef_, wanted.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.intercept_, wanted.intercept_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.gap_, wanted.gap_, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"radius": "auto"}, "dense"),
        ({"method": "osfw", "scaling": None, "fit_intercept": False, "radius": 5.0}, "csr"),
        ({"method": "regularized_ofw", "radius": 5.0, "class_weight": "balanced"}, "csr"),
        ({"radius": 3.0, "batch_size": 500, "class_weight": {"a": 0.0, "b": 2.0}}, "dense"),
        ({"radius": 3.0, "dtype": np.float32}, "csr"),
    ],
)
def test_fit_gives_the_model_of_the_rows_in_memory(options, kind):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="radius='auto'")
        found = model(**options).fit(lazy(kind), da.from_array(Y, chunks=50))
        wanted = model(**options).fit(KINDS[kind](X), Y)
    same(found, wanted)
    np.testing.assert_allclose(found.radius_path_, wanted.radius_path_, rtol=1e-9)
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
        lazily = getattr(found, name)(lazy(kind))
        assert isinstance(lazily, da.Array)
        inside = getattr(wanted, name)(X)
        assert (lazily.dtype, lazily.shape) == (inside.dtype, inside.shape)
        if inside.dtype.kind == "f":
            np.testing.assert_allclose(lazily.compute(), inside, rtol=1e-6, atol=1e-9)
        else:
            np.testing.assert_array_equal(lazily.compute(), inside)
    assert found.score(lazy(kind), da.from_array(Y)) == wanted.score(X, Y)


@pytest.mark.parametrize("kind", KINDS)
def test_partial_fit_goes_on_as_in_memory(kind, monkeypatch):
    monkeypatch.setattr(_chunks, "_HELD", 50 * D * 8)
    found, wanted = model(radius=4.0), model(radius=4.0)
    weights = RNG.random(N)
    for part, weight in ((X, None), (2 * X[:25], None), (X, weights)):
        own = None if weight is None else da.from_array(weight)
        found.partial_fit(lazy(kind, part), Y[: len(part)], ["a", "b", "c"], sample_weight=own)
        before = found.predict_proba(lazy(kind))
        wanted.partial_fit(KINDS[kind](part), Y[: len(part)], ["a", "b", "c"], sample_weight=weight)
        kept = wanted.predict_proba(KINDS[kind](X))
    same(found, wanted)
    found.partial_fit(lazy(kind), Y)  # predictions are of the model as it was
    np.testing.assert_allclose(before.compute(), kept)


def test_two_classes_have_one_column_of_scores():
    y = Y == "a"
    found = model(radius=4.0).fit(lazy("dense"), y)
    assert found.decision_function(lazy("dense")).shape == (N,)
    np.testing.assert_array_equal(found.predict(lazy("dense")).compute(), found.predict(X))


def test_more_than_may_be_held_is_shuffled_among_chunks(monkeypatch):
    monkeypatch.setattr(_chunks, "_HELD", 120 * (D + 1) * 8)
    found = model(radius=4.0, max_iter=10).fit(lazy("dense"), Y)
    wanted = model(radius=4.0, max_iter=10).fit(X, Y)
    assert found.gap_ == pytest.approx(wanted.gap_, abs=0.05)
    assert found.score(X, Y) == pytest.approx(wanted.score(X, Y), abs=0.03)


def nan():
    return lazy("dense", np.where(np.arange(N)[:, np.newaxis] == 70, np.nan, X))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (lambda: (lazy("dense")[:, :4], Y), "X has 4 features, but ProjectionFreeClassifier is"),
        (lambda: (lazy("dense"), Y[:9]), "y has 9 labels"),
        (lambda: (lazy("dense")[da.from_array(Y) == "a"], Y), "compute_chunk_sizes"),
        (lambda: (nan(), Y), r"X\[10, 0\] is nan"),
        (lambda: (da.zeros(9), Y), "X must be a matrix"),
    ],
)
def test_what_is_refused_leaves_the_model_as_it_was(data, words):
    fitted = model(radius=4.0).partial_fit(X, Y, ["a", "b", "c"])
    before = pickle.dumps(fitted)
    with pytest.raises(ValueError, match=words):
        fitted.partial_fit(*data())
    assert pickle.dumps(fitted) == before
    if "4 features" in words:
        with pytest.raises(ValueError, match=words):
            fitted.predict(data()[0])


def test_parquet_files_are_fitted_saved_and_predicted(tmp_path):
    pandas, frames = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    pytest.importorskip("pyarrow")
    names = [f"x{j}" for j in range(D)]
    for k, rows in enumerate(np.array_split(np.arange(N), 3)):
        frame = pandas.DataFrame(X[rows], columns=names).assign(label=Y[rows])
        frame.to_parquet(tmp_path / f"{k}.parquet")
    table = frames.read_parquet(tmp_path / "*.parquet")
    features = table[names].to_dask_array(lengths=True)
    labels = table["label"].compute()
    fitted = model(radius=4.0).fit(features, labels)
    same(fitted, model(radius=4.0).fit(X, Y))
    (tmp_path / "model.pickle").write_bytes(pickle.dumps(fitted))
    again = pickle.loads((tmp_path / "model.pickle").read_bytes())
    np.testing.assert_array_equal(again.predict(features).compute(), fitted.predict(X))
