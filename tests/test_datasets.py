"""Data sets by name and from files: what is read, and how damage is reported."""

import gzip
import importlib.resources
import os
import pickle
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastfw import datasets
from learner_cases import Trap
from sizes import memory_below

IMAGES, LABELS, TEST_IMAGES, TEST_LABELS = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
EVERY_BYTE = np.arange(256, dtype=np.uint8)


def idx(a):
    """Return an array of bytes in the IDX format."""
    a = np.asarray(a, dtype=np.uint8)
    return bytes((0, 0, 8, a.ndim)) + struct.pack(f">{a.ndim}I", *a.shape) + a.tobytes()


def small_mnist():
    rng = np.random.default_rng(0)
    train = rng.integers(0, 256, (6, 4, 3), dtype=np.uint8)
    test = rng.integers(0, 256, (2, 4, 3), dtype=np.uint8)
    return {
        IMAGES: train,
        LABELS: np.array([0, 9, 3, 3, 1, 0]),
        TEST_IMAGES: test,
        TEST_LABELS: np.array([4, 0]),
    }


def write_mnist(folder, *, gzipped=False, arrays=None):
    folder.mkdir(parents=True, exist_ok=True)
    for name, a in (arrays or small_mnist()).items():
        content = idx(a)
        if gzipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)
    return folder


def assert_ready(split, dtype):
    for X, y in ((split.X, split.y), (split.X_test, split.y_test)):
        assert X.dtype == dtype
        assert X.ndim == 2
        assert X.flags.c_contiguous
        assert X.flags.writeable
        assert y.dtype == np.intp
        assert y.shape == (len(X),)
        assert y.flags.writeable


def real(name, *files):
    """Return the root of the real files, or skip."""
    root = os.environ.get("FASTFW_DATA")
    if not root:
        pytest.skip("FASTFW_DATA is not set: the real data sets are not here")
    for file in files:
        if not (Path(root) / name / file).is_file():
            pytest.skip(f"{name}/{file} is not in FASTFW_DATA")
    return Path(root)


# The embedded data


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_embedded_data(dtype):
    split = datasets.load("fashion-mnist-4k", dtype=dtype)
    X, y, X_test, y_test = split
    assert_ready(split, dtype)
    assert X.shape == (4000, 784)
    assert X_test.shape == (1000, 784)
    assert set(y.tolist()) == set(y_test.tolist()) == set(range(10))
    assert X.min() == X_test.min() == 0.0
    assert X.max() == X_test.max() == 1.0


def test_the_embedded_data_are_the_first_published_images():
    root = real("fashion-mnist", f"{IMAGES}.gz", f"{TEST_IMAGES}.gz")
    embedded = importlib.resources.files("fastfw") / "data" / "fashion-mnist-4k.npz"
    with embedded.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        for key, name, n in (("X", IMAGES, 4000), ("X_test", TEST_IMAGES, 1000)):
            with gzip.open(root / "fashion-mnist" / f"{name}.gz") as published:
                published.seek(16)
                assert arrays[key].tobytes() == published.read(n * 784)
        for key, name, n in (("y", LABELS, 4000), ("y_test", TEST_LABELS, 1000)):
            with gzip.open(root / "fashion-mnist" / f"{name}.gz") as published:
                published.seek(8)
                assert arrays[key].tobytes() == published.read(n)


def test_the_licence_is_beside_the_embedded_data():
    folder = importlib.resources.files("fastfw") / "data"
    licence = (folder / "fashion-mnist-LICENSE.txt").read_text(encoding="utf-8")
    assert "Copyright (c) 2017 Zalando SE" in licence
    assert "Permission is hereby granted" in licence
    assert "MIT" in (folder / "README.md").read_text(encoding="utf-8")


# IDX


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize("below", [False, True])
@pytest.mark.parametrize("by_environment", [False, True])
def test_idx_files_are_found_and_read(tmp_path, monkeypatch, name, gzipped, below, by_environment):
    write_mnist(tmp_path / name if below else tmp_path, gzipped=gzipped)
    monkeypatch.delenv("FASTFW_DATA", raising=False)
    if by_environment:
        monkeypatch.setenv("FASTFW_DATA", str(tmp_path))
        split = datasets.load(name)
    else:
        monkeypatch.setenv("FASTFW_DATA", str(tmp_path / "elsewhere"))
        split = datasets.load(name, root=tmp_path)
    raw = small_mnist()
    assert_ready(split, np.float64)
    np.testing.assert_array_equal(split.X, raw[IMAGES].reshape(6, 12) / 255)
    np.testing.assert_array_equal(split.y, raw[LABELS])
    np.testing.assert_array_equal(split.X_test, raw[TEST_IMAGES].reshape(2, 12) / 255)
    np.testing.assert_array_equal(split.y_test, raw[TEST_LABELS])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pixels_are_the_rounded_quotients(tmp_path, dtype):
    arrays = small_mnist()
    arrays[IMAGES] = EVERY_BYTE.reshape(1, 16, 16)
    arrays[TEST_IMAGES] = EVERY_BYTE[::-1].reshape(1, 16, 16)
    arrays[LABELS] = arrays[TEST_LABELS] = np.zeros(1)
    split = datasets.load("mnist", root=write_mnist(tmp_path, arrays=arrays), dtype=dtype)
    expected = np.array([dtype(i) / dtype(255) for i in range(256)], dtype=dtype)
    np.testing.assert_array_equal(split.X[0], expected)
    np.testing.assert_array_equal(split.X_test[0], expected[::-1])


@pytest.mark.parametrize("really_gzipped", [False, True])
def test_the_content_decides_whether_a_file_is_gzipped(tmp_path, really_gzipped):
    write_mnist(tmp_path, gzipped=really_gzipped)
    for name in small_mnist():
        if really_gzipped:
            (tmp_path / f"{name}.gz").rename(tmp_path / name)
        else:
            (tmp_path / name).rename(tmp_path / f"{name}.gz")
    assert datasets.load("mnist", root=tmp_path).X.shape == (6, 12)


def test_reading_needs_one_byte_a_pixel_beyond_the_result(tmp_path):
    n, d = 2000, 400
    rng = np.random.default_rng(0)
    arrays = small_mnist()
    arrays[IMAGES] = rng.integers(0, 256, (n, 20, d // 20), dtype=np.uint8)
    arrays[TEST_IMAGES] = np.zeros((2, 20, d // 20), dtype=np.uint8)
    arrays[LABELS] = np.zeros(n)
    for gzipped in (False, True):
        folder = write_mnist(tmp_path / str(gzipped), gzipped=gzipped, arrays=arrays)
        # 2 MB: labels, the test part, and the pieces in which a gzip file is unpacked.
        with memory_below(8 * n * d + 1.2 * n * d + 2e6):
            datasets.load("mnist", root=folder)


def test_missing_files_are_named_with_their_place(tmp_path, monkeypatch):
    monkeypatch.delenv("FASTFW_DATA", raising=False)
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("mnist")
    for part in (*small_mnist(), ".gz", "root=FOLDER", "FASTFW_DATA=FOLDER", "FOLDER/mnist"):
        assert part in str(caught.value)

    write_mnist(tmp_path / "mnist")
    (tmp_path / "mnist" / LABELS).unlink()
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("mnist", root=tmp_path)
    assert f"put {LABELS} (or the same with .gz) into {tmp_path / 'mnist'}," in str(caught.value)
    assert "FASTFW_DATA" in str(caught.value)

    with pytest.raises(FileNotFoundError, match=r"not a folder.*FASTFW_DATA"):
        datasets.load("fashion-mnist", root=tmp_path / "nowhere")
    monkeypatch.setenv("FASTFW_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="given by the environment variable FASTFW_DATA"):
        datasets.load("fashion-mnist")
    monkeypatch.setenv("FASTFW_DATA", "")
    with pytest.raises(FileNotFoundError, match="not part of the package"):
        datasets.load("fashion-mnist")


def load_damaged(folder, file, content):
    """Load with one file replaced, expecting one clear ValueError that names it."""
    (folder / file).write_bytes(content)
    with pytest.raises(ValueError) as caught:  # noqa: PT011  the message is checked below
        datasets.load("mnist", root=folder)
    message = str(caught.value)
    assert str(folder / file) in message
    assert "\n" not in message
    return message


GOOD_IMAGES = idx(small_mnist()[IMAGES])
GOOD_LABELS = idx(small_mnist()[LABELS])


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (IMAGES, b"", "begins with nothing, not with 00 00 08 03"),
        (IMAGES, GOOD_IMAGES[:10], "truncated: an IDX header has 16 bytes, but the file 10"),
        (IMAGES, GOOD_IMAGES[:-1], "truncated: shape (6, 4, 3) takes 72 bytes, but 71"),
        (IMAGES, GOOD_IMAGES + b"\0", "longer than its header says"),
        (IMAGES, GOOD_LABELS, "begins with 00 00 08 01, not with 00 00 08 03"),
        (LABELS, GOOD_IMAGES, "begins with 00 00 08 03, not with 00 00 08 01"),
        (IMAGES, b"<html>not found</html>", "begins with 3c 68 74 6d"),
        (IMAGES, idx(np.zeros((5, 4, 3))), "has 5 images, but"),
        (IMAGES, idx(np.zeros((6, 0, 3))), "the empty shape (6, 0, 3)"),
        (TEST_IMAGES, idx(np.zeros((2, 5, 5))), "images of 25 pixels, but those of"),
        (LABELS, idx([0, 1, 2, 10, 4, 5]), "label 3 is 10, but classes are 0, ..., 9"),
        (LABELS, idx([]), "the empty shape (0,)"),
    ],
)
def test_damaged_idx_files(tmp_path, gzipped, file, content, message):
    write_mnist(tmp_path, gzipped=gzipped)
    if gzipped:
        file, content = f"{file}.gz", gzip.compress(content)
    assert message in load_damaged(tmp_path, file, content)


def test_damaged_gzip_files(tmp_path):
    write_mnist(tmp_path, gzipped=True)
    file = f"{IMAGES}.gz"
    good = gzip.compress(GOOD_IMAGES)
    for length in range(2, len(good)):
        assert "truncated" in load_damaged(tmp_path, file, good[:length])
    wrong_sum = good[:-8] + bytes((good[-8] ^ 1,)) + good[-7:]
    assert "the gzip file is corrupt" in load_damaged(tmp_path, file, wrong_sum)
    wrong_block = good[:10] + b"\xff" * 20 + good[30:]
    assert "the gzip file is corrupt" in load_damaged(tmp_path, file, wrong_block)
    assert "the gzip file is corrupt" in load_damaged(tmp_path, file, good + b"garbage")


@pytest.mark.parametrize("gzipped", [False, True])
def test_a_header_cannot_make_us_reserve_memory(tmp_path, gzipped):
    write_mnist(tmp_path, gzipped=gzipped)
    boast = bytes((0, 0, 8, 3)) + b"\xff" * 12 + bytes(100)
    file, content = (f"{IMAGES}.gz", gzip.compress(boast)) if gzipped else (IMAGES, boast)
    with memory_below(5e6):
        message = load_damaged(tmp_path, file, content)
    assert "truncated: shape (4294967295, 4294967295, 4294967295)" in message


# CIFAR-10

CIFAR_FILES = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]


def write_cifar(folder, *, rows=2):
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    records = {}
    for file in CIFAR_FILES:
        a = rng.integers(20, 240, (rows, 3073), dtype=np.uint8)
        a[:, 0] = rng.integers(0, 10, rows)
        a.tofile(folder / file)
        records[file] = a
    return records


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "below", [".", "cifar10", "cifar-10-batches-bin", "cifar10/cifar-10-batches-bin"]
)
def test_cifar10_images_are_scaled_one_by_one(tmp_path, below, dtype):
    records = write_cifar(tmp_path / below)
    split = datasets.load("cifar10", root=tmp_path, dtype=dtype)
    assert_ready(split, dtype)
    train = np.concatenate([records[file] for file in CIFAR_FILES[:-1]])
    for X, y, raw in (
        (split.X, split.y, train),
        (split.X_test, split.y_test, records["test_batch.bin"]),
    ):
        assert y.tolist() == raw[:, 0].tolist()
        pixels = raw[:, 1:].astype(dtype)
        low, high = pixels.min(axis=1, keepdims=True), pixels.max(axis=1, keepdims=True)
        np.testing.assert_array_equal(X, (pixels - low) / (high - low))
        assert (X.min(axis=1) == 0).all()
        assert (X.max(axis=1) == 1).all()


def test_a_cifar10_image_of_one_colour_becomes_zeros(tmp_path):
    records = write_cifar(tmp_path)["test_batch.bin"]
    records[1, 1:] = 77
    records.tofile(tmp_path / "test_batch.bin")
    X_test = datasets.load("cifar10", root=tmp_path).X_test
    assert (X_test[1] == 0).all()
    assert X_test[0].max() == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "0 bytes are not a whole number of records"),
        (bytes(3073 + 100), "truncated or not a CIFAR-10 binary file: 3173 bytes"),
        (bytes((10,)) + bytes(3072), "label 0 is 10, but classes are 0, ..., 9"),
    ],
)
def test_damaged_cifar10_files(tmp_path, content, message):
    write_cifar(tmp_path)
    path = tmp_path / "data_batch_3.bin"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="data_batch_3") as caught:
        datasets.load("cifar10", root=tmp_path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)


def test_missing_cifar10_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("cifar10", root=tmp_path)
    for part in (*CIFAR_FILES, str(tmp_path / "cifar-10-batches-bin"), "FASTFW_DATA"):
        assert part in str(caught.value)
    assert ".gz" not in str(caught.value)


# digits


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_digits(dtype):
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    split = datasets.load("digits", dtype=dtype)
    assert_ready(split, dtype)
    pixels, classes = sklearn_datasets.load_digits(return_X_y=True)
    np.testing.assert_array_equal(split.X, pixels / 16)
    np.testing.assert_array_equal(split.y, classes)
    assert split.X_test.shape == (0, 64)


def test_digits_without_scikit_learn_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(ImportError, match="pip install scikit-learn"):
        datasets.load("digits")


# .npz


@pytest.fixture
def own(tmp_path):
    return tmp_path / "own.npz"


X_OWN = np.arange(6.0).reshape(3, 2)
Y_OWN = np.array([0, 1, 1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("stored", ["f8", ">f8", "f4", "f2", "u1", "i8", "?"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_an_npz_file_is_taken_as_it_is(own, dtype, stored, save):
    X = np.asfortranarray(X_OWN.astype(stored))
    save(own, X=X, y=Y_OWN.astype(">i2"), X_test=X[:1], y_test=Y_OWN[:1], other=[1])
    for path in (own, str(own)):
        split = datasets.load(path, dtype=dtype)
        assert_ready(split, dtype)
        np.testing.assert_array_equal(split.X, X.astype(dtype))
        np.testing.assert_array_equal(split.y, Y_OWN)
        np.testing.assert_array_equal(split.X_test, X[:1].astype(dtype))
        np.testing.assert_array_equal(split.y_test, Y_OWN[:1])


def test_the_test_part_may_be_missing_or_empty(own):
    np.savez(own, X=X_OWN, y=Y_OWN)
    split = datasets.load(own)
    assert_ready(split, np.float64)
    assert split.X_test.shape == (0, 2)
    np.savez(own, **split._asdict())
    again = datasets.load(own)
    for a, b in zip(split, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X_OWN}, r"holds no array y; to write one: np\.savez_compressed"),
        ({"a": X_OWN}, r"holds no array X and no y"),
        ({"X": X_OWN, "y": Y_OWN, "X_test": X_OWN}, r"X_test and y_test must be there together"),
        ({"X": X_OWN, "y": Y_OWN[:2]}, r"y has 2 labels, but 3 are wanted"),
        ({"X": X_OWN[0], "y": Y_OWN}, r"X must be a matrix .* shape \(2,\)"),
        ({"X": X_OWN[:0], "y": Y_OWN[:0]}, r"X is empty"),
        ({"X": X_OWN * np.nan, "y": Y_OWN}, r"X\[0, 0\] is nan"),
        ({"X": X_OWN, "y": Y_OWN / 2}, r"y must hold integer class numbers"),
        ({"X": X_OWN, "y": [0, 99, 1]}, r"y\[1\] is 99, but y has 3 labels, 3 of them distinct"),
        ({"X": X_OWN, "y": Y_OWN - 1}, r"y\[0\] is -1"),
        ({"X": X_OWN.astype(str), "y": Y_OWN}, r"X must hold real numbers"),
        ({"X": X_OWN.astype(object), "y": Y_OWN}, r"X is an array of Python objects"),
        ({"X": X_OWN, "y": Y_OWN.astype(object)}, r"y is .* Python objects.* np\.unique\(y"),
        (
            {"X": X_OWN, "y": Y_OWN, "X_test": X_OWN[:, :1], "y_test": Y_OWN},
            r"X_test has 1 columns, but 2 features are wanted",
        ),
    ],
)
def test_npz_files_with_the_wrong_content(own, arrays, message):
    np.savez(own, **arrays)
    with pytest.raises(ValueError, match=message) as caught:
        datasets.load(own)
    assert str(own) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("protocol", [2, pickle.HIGHEST_PROTOCOL])
def test_a_pickle_is_not_loaded(own, tmp_path, protocol):
    own.write_bytes(pickle.dumps({"X": Trap(tmp_path / "trace")}, protocol=protocol))
    with pytest.raises(ValueError, match=r"own\.npz: a pickle, not an \.npz file"):
        datasets.load(own)
    assert not (tmp_path / "trace").exists()


def test_a_pickle_inside_is_not_loaded(own, tmp_path):
    np.savez(own, X=np.array([[Trap(tmp_path / "trace")]]), y=[0])
    with pytest.raises(ValueError, match=r"X is an array of Python objects"):
        datasets.load(own)
    assert not (tmp_path / "trace").exists()


@pytest.mark.parametrize(
    "content", [b"", b"X,y\n1,2\n", pickle.dumps([1], protocol=0), idx([1]), b"PK\x03\x04"]
)
def test_other_files_called_npz(own, content):
    own.write_bytes(content)
    with pytest.raises(ValueError, match=r"own\.npz: not an \.npz file, or a damaged one"):
        datasets.load(own)


def write_member(own, content, *, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(own, "w", compression) as archive:
        archive.writestr("X.npy", content)


def npy_header(text, version=(1, 0)):
    padded = text.ljust(117) + "\n"
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H", len(padded)) + padded.encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (99999999, 99999999)}"),
            r"X is damaged: shape \(99999999, 99999999\) of float64 takes",
        ),
        (
            npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -2)}") + bytes(16),
            r"damaged",
        ),
        (npy_header("{'descr': '<f8'}"), r"damaged one"),
        (npy_header("{'descr': '<q9', 'fortran_order': False, 'shape': (1,)}"), r"damaged one"),
        (npy_header("((((" * 20), r"damaged one"),
        (npy_header("{}", version=(3, 0)), r"X is not an array of numbers"),
        (npy_header("{}", version=(9, 9)), r"X is not an array of numbers"),
        (b"\x93NUMPZ" + bytes(100), r"damaged one"),
        (b"", r"damaged one"),
    ],
)
def test_headers_inside_are_checked(own, content, message):
    write_member(own, content)
    with memory_below(5e6), pytest.raises(ValueError, match=message) as caught:
        datasets.load(own)
    assert str(own) in str(caught.value)


def test_the_archive_cannot_make_us_reserve_memory_either(own):
    """Both the directory of the archive and the header inside promise 800 MB."""
    claimed = 800_000_128
    header = npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (100000, 1000)}")
    write_member(own, header + bytes(1000), compression=zipfile.ZIP_STORED)
    content = bytearray(own.read_bytes())
    true_size = struct.pack("<I", len(header) + 1000)
    entry = content.index(b"PK\x01\x02")
    assert content[entry + 24 : entry + 28] == true_size
    content[entry + 24 : entry + 28] = struct.pack("<I", claimed)
    own.write_bytes(content)
    with pytest.raises(ValueError, match=r"X is damaged: 800000128 bytes cannot have been packed"):
        datasets.load(own)


def test_other_compressions_are_refused(own):
    pytest.importorskip("bz2")
    write_member(own, b"abc", compression=zipfile.ZIP_BZIP2)
    with pytest.raises(ValueError, match=r"compressed in a way that NumPy does not use"):
        datasets.load(own)


@pytest.mark.parametrize("kind", ["idx", "idx, gzipped", "npz", "npz, compressed"])
@settings(
    deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_no_damage_raises_anything_else(kind, own, data):
    """Up to three bytes are others, the end is cut off anywhere."""
    if "idx" in kind:
        write_mnist(own.parent, gzipped="gzipped" in kind)
        path = own.parent / (f"{IMAGES}.gz" if "gzipped" in kind else IMAGES)
    else:
        path, save = own, np.savez_compressed if "compressed" in kind else np.savez
        save(path, X=X_OWN, y=Y_OWN)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        datasets.load("mnist" if "idx" in kind else own, root=own.parent)
    except ValueError as error:
        assert str(path) in str(error)  # noqa: PT017  damage may also pass unseen


def test_a_path_that_leads_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere\.npz: there is no such file"):
        datasets.load(tmp_path / "nowhere.npz")
    with pytest.raises(FileNotFoundError, match="it is a folder, not a file"):
        datasets.load(tmp_path)


# Names and arguments


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("mnits", "mnist"),
        ("MNIST", "mnist"),
        ("fashion_mnist", "fashion-mnist"),
        ("cifar-10", "cifar10"),
        ("digit", "digits"),
    ],
)
def test_unknown_names_get_a_suggestion(name, suggestion):
    with pytest.raises(ValueError, match=f"unknown data set '{name}'; did you mean '{suggestion}'"):
        datasets.load(name)


def test_a_file_of_another_kind_is_named_as_such(tmp_path):
    file = tmp_path / "own.parquet"
    file.write_text("1,2,a\n")
    with pytest.raises(ValueError, match=r"own\.parquet is no \.npz, \.csv or .* np\.savez"):
        datasets.load(str(file))


@pytest.mark.parametrize("name", [None, 3, b"mnist", ["mnist"]])
def test_a_name_is_a_string_or_a_path(name):
    with pytest.raises(TypeError, match="name_or_path must be a name or a path"):
        datasets.load(name)


def test_other_dtypes_are_refused():
    with pytest.raises(ValueError, match="dtype must be float64 or float32, but it is int16"):
        datasets.load("fashion-mnist-4k", dtype=np.int16)


# The published files


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_published_files(name):
    root = real(name, f"{IMAGES}.gz", f"{LABELS}.gz", f"{TEST_IMAGES}.gz", f"{TEST_LABELS}.gz")
    split = datasets.load(name, root=root, dtype=np.float32)
    assert_ready(split, np.float32)
    assert split.X.shape == (60_000, 784)
    assert split.X_test.shape == (10_000, 784)
    assert np.bincount(split.y_test).shape == (10,)
    assert split.X.min() == 0
    assert split.X.max() == 1
