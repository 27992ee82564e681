"""svmlight files, and data sets fetched from OpenML."""

import gzip
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from fastfw import _fetch, datasets
from fastfw.experiments import compare

# svmlight


SVM = "+1 1:0.5 3:2\n-1 2:1.5\n+1 3:-1 # a comment\n"


@pytest.mark.parametrize("ending", ["svm", "svmlight", "libsvm", "svm.gz"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_svmlight_files_are_read(tmp_path, ending, dtype):
    path = tmp_path / f"a.{ending}"
    content = SVM.encode()
    path.write_bytes(gzip.compress(content) if ending.endswith("gz") else content)
    X, y, X_test, y_test = datasets.load(str(path), dtype=dtype)
    assert X.dtype == dtype
    assert X.tolist() == [[0.5, 0, 2], [0, 1.5, 0], [0, 0, -1]]
    assert y.tolist() == [1, 0, 1]  # numbered in increasing order
    assert X_test.shape == (0, 3)
    assert y_test.shape == (0,)


def test_the_test_part_of_svmlight_files_lies_beside_them(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(SVM)
    (tmp_path / "a.svm.t").write_text("-1 1:1\n+1 4:3\n")
    split = datasets.load(path)
    assert split.X.shape == (3, 4)  # as wide as both need
    assert split.X_test.tolist() == [[1, 0, 0, 0], [0, 0, 0, 3]]
    assert split.y_test.tolist() == [0, 1]
    (tmp_path / "a.svm.t").write_text("3 1:1\n")
    with pytest.raises(ValueError, match=r"a\.svm\.t: has the label 3, which no training row has"):
        datasets.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1 1:x\n", "not svmlight, or damaged"),
        ("", "not svmlight|holds no row"),
        ("1,2 1:1\n", "not svmlight, or damaged"),
        ("0 1:1\n1 2:nan\n", "NaN or infinity"),
        ("0 1:1e400\n1 2:1\n", "NaN or infinity"),
    ],
)
def test_damaged_svmlight_files(tmp_path, content, message):
    path = tmp_path / "a.svm"
    path.write_text(content)
    with pytest.raises(ValueError, match=message) as caught:
        datasets.load(path)
    assert str(path) in str(caught.value)


def test_missing_svmlight_files_and_scikit_learn(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"b\.svm: there is no such file"):
        datasets.load(tmp_path / "b.svm")
    (tmp_path / "b.svm").write_text(SVM)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        datasets.load(tmp_path / "b.svm")


def test_svmlight_files_can_be_compared_on(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text(SVM * 3)
    result = compare(str(path), rounds=2, batch_size=2, radius=1.0, trials=1, methods=["orgfw"])
    assert (result.n_samples, result.n_features, result.n_classes) == (9, 3, 2)


# OpenML


@pytest.fixture
def openml(monkeypatch):
    """Stand for scikit-learn's fetcher; what was asked for is kept."""
    asked = []

    def fetch_openml(*, data_id, as_frame, parser, cache):
        asked.append(data_id)
        rng = np.random.default_rng(data_id)
        shape = {554: (30, 784), 40_927: (30, 3072)}[data_id]
        return SimpleNamespace(
            data=rng.integers(0, 256, shape).astype(float),
            target=rng.integers(0, 10, 30).astype(str).astype(object),
        )

    import sklearn.datasets

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    monkeypatch.setattr(_fetch, "_TEST_ROWS", 5)
    monkeypatch.setattr(_fetch, "_OPENML", {"mnist": (554, 25, 784), "cifar10": (40_927, 25, 3072)})
    return asked


@pytest.mark.parametrize(("name", "width"), [("mnist", 784), ("cifar10", 3072)])
@pytest.mark.parametrize("where", ["root", "environment", "cache"])
def test_fetched_data_is_kept(tmp_path, monkeypatch, openml, name, width, where):
    monkeypatch.delenv("FASTFW_DATA", raising=False)
    monkeypatch.setattr(_fetch, "cache_folder", lambda: tmp_path / "cache")
    options = {"root": tmp_path / "root"} if where == "root" else {}
    if where == "environment":
        monkeypatch.setenv("FASTFW_DATA", str(tmp_path / "env"))
    with pytest.raises(FileNotFoundError, match="or give fetch=True"):
        datasets.load(name, **options)
    first = datasets.load(name, fetch=True, **options)
    assert first.X.shape == (25, width)
    assert first.X_test.shape == (5, width)
    again = datasets.load(name, **options)  # from the files
    np.testing.assert_array_equal(first.X, again.X)
    datasets.load(name, fetch=True, **options)
    assert len(openml) == 1
    raw = np.random.default_rng(554 if name == "mnist" else 40_927).integers(0, 256, (30, width))
    if name == "mnist":
        np.testing.assert_array_equal(first.X, raw[:25] / 255)


def test_without_a_network_the_error_says_what_to_do(tmp_path, monkeypatch, openml):
    import sklearn.datasets

    def offline(**_):
        raise OSError("Name or service not known")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", offline)
    with pytest.raises(ConnectionError, match=r"'mnist' could not be fetched.*not known.*network"):
        datasets.load("mnist", root=tmp_path, fetch=True)
    assert not list(tmp_path.iterdir())


def test_what_is_fetched_is_checked(tmp_path, monkeypatch, openml):
    import sklearn.datasets

    for data, message in (
        (np.zeros((29, 784)), "pixels of shape"),
        (np.full((30, 784), 0.5), "pixels that are not bytes"),
        (np.full((30, 784), 256), "pixels that are not bytes"),
    ):
        bunch = SimpleNamespace(data=data, target=np.zeros(30, int))
        monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda bunch=bunch, **_: bunch)
        with pytest.raises(ValueError, match=message):
            datasets.load("mnist", root=tmp_path, fetch=True)
    assert not list(tmp_path.iterdir())


def test_fetching_without_scikit_learn(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        datasets.load("mnist", root=tmp_path, fetch=True)


def test_only_mnist_and_cifar10_are_fetched(tmp_path, openml):
    with pytest.raises(FileNotFoundError, match="fashion-mnist"):
        datasets.load("fashion-mnist", root=tmp_path, fetch=True)
    assert not openml


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_folder_for_caches_belongs_to_the_user(monkeypatch, tmp_path, platform):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    folder = _fetch.cache_folder()
    assert folder.name == "fastfw"
    assert tmp_path in folder.parents


def test_dense_arrays_larger_than_the_memory_are_refused(tmp_path):
    pytest.importorskip("sklearn")
    path = tmp_path / "wide.svm"
    path.write_text("1 2000000000:1\n2 1:1\n" * 200)
    with pytest.raises(MemoryError, match=r"wide\.svm: 400 x 2000000000 numbers do not fit"):
        datasets.load(path)


def test_labels_that_are_no_numbers_are_refused(tmp_path):
    pytest.importorskip("sklearn")
    path = tmp_path / "odd.svm"
    path.write_text("nan 1:1\n2 1:1\n")
    with pytest.raises(ValueError, match=r"odd\.svm: has a label that is NaN"):
        datasets.load(path)
