"""CIFAR-10's pickles, svmlight files, and data sets fetched from OpenML."""

import gzip
import io
import os
import pickle
import struct
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastfw import _fetch, datasets
from fastfw.experiments import compare

BATCHES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


# CIFAR-10's Python version


def batch(rows=2, seed=0):
    rng = np.random.default_rng(seed)
    return {
        b"batch_label": b"training batch",
        b"labels": rng.integers(0, 10, rows).tolist(),
        b"data": rng.integers(20, 240, (rows, 3072), dtype=np.uint8),
        b"filenames": [b"a.png"] * rows,
    }


def write_batches(folder, *, protocol=2, **replaced):
    folder.mkdir(parents=True, exist_ok=True)
    contents = {name: replaced.get(name, batch(seed=i)) for i, name in enumerate(BATCHES)}
    for name, content in contents.items():
        with (folder / name).open("wb") as file:
            pickle.dump(content, file, protocol=protocol)
    return contents


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("order", ["C", "F"])
def test_pickled_batches_are_read(tmp_path, protocol, order):
    contents = write_batches(tmp_path / "cifar-10-batches-py", protocol=protocol)
    if order == "F":
        for name in BATCHES:
            contents[name][b"data"] = np.asfortranarray(contents[name][b"data"])
        write_batches(tmp_path / "cifar-10-batches-py", protocol=protocol, **contents)
    split = datasets.load("cifar10", root=tmp_path)
    train = np.concatenate([contents[name][b"data"] for name in BATCHES[:-1]]).astype(float)
    low, high = train.min(axis=1, keepdims=True), train.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(split.X, (train - low) / (high - low))
    labels = [label for name in BATCHES[:-1] for label in contents[name][b"labels"]]
    assert split.y.tolist() == labels
    assert split.y_test.tolist() == contents["test_batch"][b"labels"]
    assert split.X.flags.writeable
    as_bytes = datasets.load("cifar10", root=tmp_path, dtype=np.uint8)
    np.testing.assert_array_equal(as_bytes.X, train)


def test_pickles_as_python_2_and_numpy_1_wrote_them_are_read(tmp_path):
    write_batches(tmp_path)
    data = bytes(range(256)) * 12  # one image
    # What cPickle made of {'data': array, 'labels': [7]}; NumPy's names were others then.
    content = (
        b"\x80\x02}q\x01(U\x04dataq\x02cnumpy.core.multiarray\n_reconstruct\nq\x03"
        b"cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05(K\x01K\x01M\x00\x0c\x86"
        b"cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07(K\x03U\x01|NNNJ\xff\xff\xff\xff"
        b"J\xff\xff\xff\xffK\x00tb\x89T\x00\x0c\x00\x00"
        + data
        + b"tbU\x06labelsq\x08]q\x09K\x07au."
    )
    (tmp_path / "data_batch_1").write_bytes(content)
    split = datasets.load("cifar10", root=tmp_path)
    assert split.y[0] == 7
    np.testing.assert_array_equal(split.X[0], np.tile(np.arange(256), 12) / 255)


def test_the_binary_version_is_preferred_and_missing_batches_are_named(tmp_path):
    write_batches(tmp_path)
    (tmp_path / "data_batch_3").unlink()
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("cifar10", root=tmp_path)
    assert f"put data_batch_3 into {tmp_path}" in str(caught.value)


class Evil:
    """Pickles itself as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def refuse(folder, content):
    """Load with a bad first batch: one clear error, which names the file."""
    write_batches(folder)
    path = folder / "data_batch_1"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the message is checked below
        datasets.load("cifar10", root=folder)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("inside", [False, True])
def test_a_malicious_pickle_runs_nothing_and_is_named(tmp_path, protocol, inside):
    trace = tmp_path / "it-ran"
    evil = Evil(os.mkdir, str(trace))
    content = pickle.dumps({**batch(), b"extra": [evil]} if inside else evil, protocol=protocol)
    message = refuse(tmp_path / "data", content)
    assert not trace.exists()
    assert f"asks for {os.name}.mkdir" in message or "asks for posix.mkdir" in message
    pickle.loads(content)  # the test can fail: it is a working attack
    assert trace.exists()


@pytest.mark.parametrize(
    ("function", "arguments", "name"),
    [
        (eval, ("1",), "builtins.eval"),
        (getattr, ("x", "upper"), "builtins.getattr"),
        (np.load, ("x",), "load"),
        (np.array, ([1],), "numpy.array"),
        (np.ndarray.tolist, (np.zeros(1),), "getattr"),
        (io.StringIO, ("x",), "_io.StringIO"),
        (bytearray, (b"x",), "builtins.bytearray"),
    ],
)
def test_other_globals_are_refused_by_name(tmp_path, function, arguments, name):
    message = refuse(tmp_path, pickle.dumps(Evil(function, *arguments), protocol=2))
    assert "asks for " in message
    assert name.split(".")[-1] in message.split(",")[0]


def test_references_outside_of_the_file_are_refused(tmp_path):
    assert "outside of the file" in refuse(tmp_path, b"\x80\x02K\x01Q.")


def test_stand_ins_cannot_be_tampered_with(tmp_path):
    # BUILD on a global would set attributes of it.
    for name in (b"cnumpy\nndarray\n", b"c_codecs\nencode\n", b"cnumpy\ndtype\n"):
        refuse(tmp_path, b"\x80\x02" + name + b"}X\x03\x00\x00\x00abcK\x01sb.")
        split = write_batches(tmp_path)
        assert len(datasets.load("cifar10", root=tmp_path).y) == 10, split
    from fastfw import _pickled

    assert not hasattr(_pickled._Array, "abc")
    assert not hasattr(_pickled._latin_bytes, "abc")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({b"data": None}, "no array 'data'"),
        ({b"data": np.zeros((2, 3072))}, "an array of type 'f8'"),
        ({b"data": np.zeros((2, 3072), dtype=object)}, "an array of type 'O8'"),
        ({b"data": np.zeros((2, 3071), np.uint8)}, "shape (2, 3071), (n, 3072) is wanted"),
        ({b"data": np.zeros(3072, np.uint8)}, "shape (3072,)"),
        ({b"data": np.zeros((3, 3072), np.uint8)}, "3 images, but 2 labels"),
        ({b"labels": "ab"}, "no list 'labels'"),
        ({b"labels": [1, True]}, "no list 'labels'"),
        ({b"labels": [1, 300]}, "labels beyond 0, ..., 9"),
        ({b"labels": [1, 10]}, "label 1 is 10, but classes are 0, ..., 9"),
    ],
)
def test_batches_with_other_content(tmp_path, change, message):
    assert message in refuse(tmp_path, pickle.dumps({**batch(), **change}, protocol=2))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        pickle.dumps([1]),
        pickle.dumps(batch(), protocol=2)[:-50],
        b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"x",  # claims an exabyte
        b"\x80\x02" + b"(" * 50 + b"t" * 60 + b".",
        # numpy's array without content, and with a state that is none
        b"\x80\x02}U\x04datacnumpy\nndarray\n)Rs.",
        b"\x80\x02}U\x04datacnumpy\nndarray\n)RK\x01bs.",
    ],
)
def test_damaged_pickles(tmp_path, content):
    refuse(tmp_path, content)


@settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_no_damage_to_a_pickle_raises_anything_else(tmp_path, data):
    good = pickle.dumps(batch(rows=1), protocol=data.draw(st.sampled_from([0, 2, 4, 5])))
    at = data.draw(st.integers(0, min(len(good) - 1, 300)))
    path = tmp_path / "data_batch_1"
    write_batches(tmp_path)
    path.write_bytes(good[:at] + bytes([data.draw(st.integers(0, 255))]) + good[at + 1 :])
    try:
        datasets.load("cifar10", root=tmp_path)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017  damage may also pass unseen


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
