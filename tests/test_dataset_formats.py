"""CSV and svmlight files, and data sets fetched from OpenML."""

import bz2
import gzip
import hashlib
import inspect
import io
import json
import os
import re
import sys
import warnings
from http.client import IncompleteRead
from types import SimpleNamespace
from urllib.error import HTTPError, URLError

import numpy as np
import pytest

from fastfw import datasets
from fastfw._formats import downloads
from fastfw.experiments import compare

# CSV


@pytest.mark.parametrize(
    ("text", "label", "X", "y"),
    [
        ("a,b,kind\n1,2.5,pear\n\n-3,4e1,apple\n", None, [[1, 2.5], [-3, 40]], [1, 0]),
        ('kind;a\n"x;y";1\nz;2\n', "kind", [[1], [2]], [0, 1]),
        ("1\t2\t10\n3\t4\t9\n", None, [[1, 2], [3, 4]], [1, 0]),  # as numbers
        ("5,0,6\n7,1,8\n", "2", [[5, 6], [7, 8]], [0, 1]),
        ("0,1,kind\n5,6,u\n7,8,v\n", None, [[5, 6], [7, 8]], [0, 1]),  # as pandas has it
        ("1,2,b\n3,4,a\n", "3", [[1, 2], [3, 4]], [1, 0]),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_csv_files_are_read(tmp_path, text, label, X, y, mark):
    path = tmp_path / "a.csv"
    path.write_text(mark + text, encoding="utf-8")
    found = datasets.load(str(path), label=label, dtype=np.float32)
    assert (found.X.tolist(), found.y.tolist(), len(found.X_test)) == (X, y, 0)
    assert found.X.dtype == np.float32
    assert found.y.dtype == np.intp


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b,kind\n1,2,x\n3,x,y\n", "line 3, column 'b': 'x' is no finite number; drop"),
        ("a,b,kind\n1,,x\n3,4,y\n", "line 2, column 'b': the cell is empty; drop such rows"),
        ("a,b,kind\n1,nan,x\n3,4,y\n", "line 2, column 'b': 'nan' is no finite number"),
        ("a,b,kind\n1,2,x\n3,4,\n", "line 3, column 'kind': no label"),
        ("a,b,kind\n1,2,x\n3,4\n", "line 3: 2 cells, where 3 are wanted"),
        ("a,b,kind\n1,2,x\n3,4,x\n", "column 'kind' has one label only, 'x'; at least two"),
        ("a,b\n1,2.5\n3,4.5\n", "column 'b' holds 2 different numbers in 2 rows, which are no"),
        ("a,b,kind\n", "holds no row"),
        ("", "no columns between commas"),
        ("one\ntwo\n", "no columns between commas, semicolons or tabs"),
        (b"a,b\n1,\xff\n", "no CSV file in UTF-8, or damaged"),
    ],
)
def test_what_is_wrong_with_a_csv_file_is_named(tmp_path, content, message):
    path = tmp_path / "a.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=r"a\.csv.*" + re.escape(message)):
        datasets.load(path)


def test_columns_of_labels_are_known_by_name(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a,b,kind\n1,0,u\n2,1,v\n")
    with pytest.raises(ValueError, match=r"label: .* has no column 'c'; there are a, b, kind"):
        datasets.load(path, label="c")
    with pytest.raises(ValueError, match=r"label: it is for CSV files.*, not for mnist"):
        datasets.load("mnist", label="c")
    with pytest.raises(ValueError, match="label: it is for the path of a CSV file"):
        compare((np.eye(2), [0, 1]), label="c")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        datasets.load(tmp_path / "b.csv")


# svmlight


SVM = "+1 1:0.5 3:2\n-1 2:1.5\n+1 3:-1 # a comment\n"


@pytest.mark.parametrize("ending", ["svm", "svmlight", "libsvm", "svm.gz", "svm.bz2"])
@pytest.mark.parametrize(("dtype", "mark"), [(np.float64, b""), (np.float32, b"\xef\xbb\xbf")])
def test_svmlight_files_are_read(tmp_path, ending, dtype, mark):
    path = tmp_path / f"a.{ending}"
    content = mark + SVM.encode()
    pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(ending.split(".")[-1], bytes)
    path.write_bytes(pack(content))
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
    (tmp_path / "a.svm.t").write_text("# unknown\n3 1:1\n")
    with pytest.raises(
        ValueError, match=r"a\.svm\.t, line 2: has the label 3, which no training row has"
    ):
        datasets.load(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": holds no row"),
        ("# nothing\n\n", ": holds no row"),
        ("5 1:1\n5 2:1\n", ": all 2 rows have the label 5; at least two classes are wanted"),
        ("1 1:x\n", ", line 1: the value of column 1 is 'x': not a number"),
        ("1 1:1\n\n# c\n2 1:\n", ", line 4: the value of column 1 is '': not a number"),
        ("1,2 1:1\n", ", line 1: several labels, '1,2', where one is wanted"),
        ("1 1:1\nx 1:1\n", ", line 2: has a label that is no finite number: 'x'"),
        ("inf 1:1\n2 1:1\n", ", line 1: has a label that is no finite number: 'inf'"),
        ("0 1:1\n1:1\n", ", line 2: '1:1' stands where the label is wanted"),
        ("0 1:1\n1 2:nan # c\n", ", line 2: the value of column 2 is 'nan'"),
        ("0 1:1e400\n1 2:1\n", ", line 1: the value of column 1 is '1e400': not a number, NaN"),
        ("0 1:1\n1 2:1 2:3\n", ", line 2: column 2 is given twice"),
        ("0 1:1\n1 3:1 2:3\n", ", line 2: column 2 follows 3; columns must increase"),
        ("0 1:1\n1 -1:3\n", ", line 2: column -1, where 1 to 2147483647 are wanted"),
        ("0 1:1\n1 3000000000:3\n", ", line 2: column 3000000000, where 1 to 2147483647 are"),
        (f"0 1:1\n1 {'9' * 30}:3\n", ":3' stands where column:value is wanted"),
        ("0 1:1\n1 1.5:3\n", ", line 2: '1.5:3' stands where column:value is wanted"),
        ("0 1:1\n1 2\n", ", line 2: '2' stands where column:value is wanted"),
        ("0 1:1\n1 qid:3 2:\x1b[31m\n", r", line 2: the value of column 2 is '\x1b[31m'"),
    ],
)
def test_damaged_svmlight_files(tmp_path, content, message):
    path = tmp_path / "a.svm"
    path.write_text(content)
    with pytest.raises(ValueError, match=re.escape(message)) as caught:
        datasets.load(path)
    assert str(caught.value).startswith(str(path))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("ending", ["svm.gz", "svm.bz2"])
def test_damage_to_packed_svmlight_files(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    whole = {"svm.gz": gzip.compress, "svm.bz2": bz2.compress}[ending](SVM.encode() * 100)
    for content in (whole[:-9], whole[:20], b"", b"plain", whole[:30] + b"\0" * 9 + whole[39:]):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=re.escape(str(path))):
            datasets.load(path)


def test_columns_may_begin_with_0(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 0:5 2:1\n2 1:1\n")
    (tmp_path / "a.svm.t").write_text("2 1:7\n")
    split = datasets.load(path)
    assert split.X.tolist() == [[5, 0, 1], [0, 1, 0]]
    assert split.X_test.tolist() == [[0, 7, 0]]  # counts like the training part


def test_missing_svmlight_files_and_scikit_learn(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"b\.svm: there is no such file"):
        datasets.load(tmp_path / "b.svm")
    (tmp_path / "b.svm").write_text(SVM)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        datasets.load(tmp_path / "b.svm")


# OpenML


@pytest.fixture
def openml(monkeypatch):
    """Stand for scikit-learn's fetcher, with its signature; what was asked for is kept."""
    import sklearn.datasets

    asked, real = [], inspect.signature(sklearn.datasets.fetch_openml)

    def fetch_openml(*arguments, **options):
        given = real.bind(*arguments, **options).arguments
        asked.append(given["data_id"])
        assert given["as_frame"] is False
        assert given["parser"] in ("pandas", "liac-arff")
        rng = np.random.default_rng(given["data_id"])
        width = {554: 784, 40_927: 3072}[given["data_id"]]
        pixels = rng.integers(0, 256, (30, width))
        return sklearn.utils.Bunch(
            # what its two parsers give
            data=pixels if given["parser"] == "pandas" else pixels.astype(np.float64),
            target=rng.integers(0, 10, 30).astype(str).astype(object),
            frame=None,
        )

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", fetch_openml)
    shrink(monkeypatch)
    return asked


def shrink(monkeypatch):
    """Expect 25 and 5 images in place of all."""
    monkeypatch.setattr(downloads, "_TEST_ROWS", 5)
    monkeypatch.setattr(
        downloads, "_OPENML", {"mnist": (554, 25, 784), "cifar10": (40_927, 25, 3072)}
    )


class Response(io.BytesIO):
    """An answer of a web server."""

    def info(self):
        return {}


@pytest.fixture
def server(monkeypatch):
    """Stand for OpenML's server under scikit-learn's own fetcher; its answers by address."""
    openml = pytest.importorskip("sklearn.datasets._openml")
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(0, 256, (30, 784)), rng.integers(0, 10, 30)
    names = [f"pixel{i}" for i in range(1, 785)]
    head = [
        "@RELATION mnist_784",
        *(f"@ATTRIBUTE {name} real" for name in names),
        "@ATTRIBUTE class {0,1,2,3,4,5,6,7,8,9}",
        "@DATA",
    ]
    rows = [",".join(map(str, [*row, label])) for row, label in zip(pixels, labels, strict=True)]
    arff = "\n".join([*head, *rows]).encode() + b"\n"
    columns = [
        {
            "index": str(index),
            "name": name,
            "data_type": "numeric" if name != "class" else "nominal",
            "is_target": str(name == "class").lower(),
            "is_ignore": "false",
            "is_row_identifier": "false",
            "number_of_missing_values": "0",
        }
        for index, name in enumerate([*names, "class"])
    ]
    description = {
        "id": "554",
        "name": "mnist_784",
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "description": "digits",
        "url": "https://api.openml.org/data/v1/download/52667/mnist_784.arff",
        "md5_checksum": hashlib.md5(arff).hexdigest(),
    }
    answers = {
        "/api/v1/json/data/554": {"data_set_description": description},
        "/api/v1/json/data/features/554": {"data_features": {"feature": columns}},
        "/api/v1/json/data/qualities/554": {
            "data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "30.0"}]}
        },
    }
    found = {path: json.dumps(answer).encode() for path, answer in answers.items()}
    found["/data/v1/download/52667/mnist_784.arff"] = arff
    asked = []

    def urlopen(request, *_, **__):
        path = request.full_url.partition(".org")[2]
        asked.append(path)
        answer = found[path]
        if isinstance(answer, Exception):
            raise answer
        return Response(answer)

    monkeypatch.setattr(openml, "urlopen", urlopen)
    monkeypatch.setattr(openml.time, "sleep", lambda seconds: None)
    shrink(monkeypatch)
    return SimpleNamespace(answers=found, asked=asked, pixels=pixels, labels=labels)


ARFF = "/data/v1/download/52667/mnist_784.arff"


def test_scikit_learn_s_fetcher_is_understood(tmp_path, server):
    split = datasets.load("mnist", root=tmp_path / "root", fetch=True)
    np.testing.assert_array_equal(split.X, server.pixels[:25] / 255)
    np.testing.assert_array_equal(split.X_test, server.pixels[25:] / 255)
    assert split.y.tolist() == server.labels[:25].tolist()
    assert split.y_test.tolist() == server.labels[25:].tolist()
    assert server.asked.count(ARFF) == 1
    assert sorted(os.listdir(tmp_path)) == ["root"]
    datasets.load("mnist", root=tmp_path / "root", fetch=True)
    assert server.asked.count(ARFF) == 1


@pytest.mark.parametrize(
    ("address", "answer", "kind", "message"),
    [
        (ARFF, URLError("Name or service not known"), ConnectionError, "Name or service not known"),
        (ARFF, TimeoutError("timed out"), ConnectionError, "(timed out)"),
        (ARFF, ConnectionResetError("reset by peer"), ConnectionError, "(reset by peer)"),
        (ARFF, IncompleteRead(b"abc"), ConnectionError, "IncompleteRead(3 bytes read)"),
        (ARFF, b"@RELATION another\n", ValueError, "md5 checksum"),
        ("/api/v1/json/data/554", HTTPError("u", 412, "no", {}, None), ValueError, "not found"),
        ("/api/v1/json/data/554", HTTPError("u", 503, "busy", {}, None), ConnectionError, "503"),
        ("/api/v1/json/data/554", b"<html>", ValueError, "cannot be used"),
    ],
)
def test_whatever_goes_wrong_there_is_one_error(tmp_path, server, address, answer, kind, message):
    server.answers[address] = answer
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn says that it tries again
        with pytest.raises(kind) as caught:
            datasets.load("mnist", root=tmp_path, fetch=True)
    text = str(caught.value)
    assert text.startswith("data set 'mnist'")
    assert message in text
    assert "try again" in text
    assert "or put its published files where the message without fetch=True says" in text
    assert "\n" not in text
    assert not list(tmp_path.iterdir())


def test_a_place_that_takes_no_files_is_refused_before_anything_is_fetched(tmp_path, openml):
    (tmp_path / "file").touch()
    with pytest.raises(PermissionError, match=r"would be kept in .*name another folder with root="):
        datasets.load("mnist", root=tmp_path / "file", fetch=True)
    assert not openml


@pytest.mark.parametrize(("name", "width"), [("mnist", 784), ("cifar10", 3072)])
@pytest.mark.parametrize("where", ["root", "environment", "cache"])
def test_fetched_data_is_kept(tmp_path, monkeypatch, openml, name, width, where):
    monkeypatch.delenv("FASTFW_DATA", raising=False)
    monkeypatch.setattr(downloads, "cache_folder", lambda: tmp_path / "cache")
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


def test_what_is_fetched_is_checked(tmp_path, monkeypatch, openml):
    import sklearn.datasets

    for data, message in (
        (np.zeros((29, 784)), "pixels of shape"),
        (np.full((30, 784), 0.5), "pixels that are not bytes"),
        (np.full((30, 784), 256), "pixels that are not bytes"),
        (np.full((30, 784), -1), "pixels that are not bytes"),
        (np.full((30, 784), np.nan), "pixels that are not bytes"),
        (np.full((30, 784), "x", object), "pixels that are not bytes"),
        (np.full((30, 784), None), "pixels that are not bytes"),
    ):
        bunch = SimpleNamespace(data=data, target=np.zeros(30, int))
        monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda bunch=bunch, **_: bunch)
        with pytest.raises(ValueError, match=message):
            datasets.load("mnist", root=tmp_path, fetch=True)
    assert not list(tmp_path.iterdir())


def test_only_mnist_and_cifar10_are_fetched(tmp_path, openml):
    with pytest.raises(FileNotFoundError, match="fashion-mnist"):
        datasets.load("fashion-mnist", root=tmp_path, fetch=True)
    assert not openml


def test_the_folder_for_caches_belongs_to_the_user(monkeypatch, tmp_path):
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    folder = downloads.cache_folder()
    assert folder.name == "fastfw"
    assert tmp_path in folder.parents


@pytest.mark.skipif(os.name == "nt", reason="users without a home are those of POSIX")
def test_users_without_a_home_are_told_what_to_do(monkeypatch):
    for name in ("HOME", "XDG_CACHE_HOME", "FASTFW_DATA"):
        monkeypatch.delenv(name, raising=False)
    pwd = pytest.importorskip("pwd")
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: {}[uid])
    for given, message in (
        ({}, "not part of the package: .*root=FOLDER"),
        ({"fetch": True}, "no folder to fetch it to; name one with root="),
        ({"root": "~/data"}, "~/data, given by root, is not a folder"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            datasets.load("mnist", **given)
    for path in ("~/a.npz", "~/a.svm"):
        with pytest.raises(FileNotFoundError, match=f"{path}: there is no such file"):
            datasets.load(path)


def test_dense_arrays_larger_than_the_memory_are_refused(tmp_path):
    pytest.importorskip("sklearn")
    path = tmp_path / "wide.svm"
    path.write_text("2 1:1\n" * 199 + "1 2000000000:1\n" + "2 1:1\n" * 200)
    with pytest.raises(MemoryError, match=r"wide\.svm: 400 x 2000000000 .*column is in line 200\)"):
        datasets.load(path)
