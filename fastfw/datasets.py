"""Named data sets, the embedded default, and the file formats they come in.

`load` touches the network only if it is told to.  ``fashion-mnist-4k`` is part of the package,
``digits`` is part of scikit-learn; the others are read from their published files, wherever you
keep them.  Files are taken for untrusted: damage of any kind ends in one ValueError that names the
file, nothing in them is run, and no memory is reserved on the word of a header alone.
"""

from __future__ import annotations

import difflib
import importlib.resources
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, float_dtype
from fastfw._formats import downloads, images, npz, svmlight, table

__all__ = ["NAMES", "Split", "image_scaling", "load"]

NAMES = ("fashion-mnist-4k", "mnist", "fashion-mnist", "cifar10", "digits")
"""The names that `load` knows."""

_ENVIRONMENT = "FASTFW_DATA"

_IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_CIFAR_BINARY = (*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin")
_CIFAR_PICKLED = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")


class Split(NamedTuple):
    """Training and test data; unpacks as ``X, y, X_test, y_test``.

    `X` and `X_test` are (n, d) float64 or float32, `y` and `y_test` (n,) intp.  Where a data set
    has no test part, `X_test` and `y_test` have no rows.
    """

    X: FloatArray
    y: IndexArray
    X_test: FloatArray
    y_test: IndexArray


def load(
    name_or_path: str | os.PathLike[str],
    *,
    root: str | os.PathLike[str] | None = None,
    dtype: npt.DTypeLike = np.float64,
    fetch: bool = False,
    label: str | None = None,
) -> Split:
    """Load a data set by name, or from an .npz, CSV or svmlight file.

    ====================  =========================================  ==============================
    name                  rows x features, classes                   where it comes from
    ====================  =========================================  ==============================
    ``fashion-mnist-4k``  4,000 (test 1,000) x 784, 10               embedded: the first images of
                                                                     Fashion-MNIST
    ``mnist``             60,000 (test 10,000) x 784, 10             four IDX files, gzipped or not
    ``fashion-mnist``     60,000 (test 10,000) x 784, 10             likewise
    ``cifar10``           50,000 (test 10,000) x 3072, 10            the six files of the binary
                                                                     version, or of the Python one
    ``digits``            1,797 (no test part) x 64, 10              scikit-learn
    ====================  =========================================  ==============================

    Pixels are divided by 255 (`digits`: by 16); each `cifar10` image is instead scaled by its own
    minimum and maximum to [0, 1], and an image of one colour becomes zeros.  The values are those
    of the exact quotient, correctly rounded.

    Parameters
    ----------
    name_or_path : str or path-like
        One of the names above, or the path of a file whose numbers are taken as they are, without
        scaling: an .npz file that holds `X` (n, d), `y` (n,) and, together or not at all, `X_test`
        and `y_test`; a .csv or .tsv file with a line for each row, all of whose columns but that
        of the labels hold numbers; or an svmlight file (.svmlight, .svm or .libsvm, and these
        packed as .gz or .bz2), with a test part if a file of the same name ending in ``.t`` is
        beside it. Labels of CSV and svmlight files are numbered from 0 in increasing order; columns
        of the latter count from 1, or from 0 if a column 0 is there.
    root : path-like, optional
        The folder with the files of `mnist`, `fashion-mnist` or `cifar10`: in the folder itself or
        in one below it that has the data set's name.  By default the environment variable
        FASTFW_DATA says where, and without it the folder that `fetch` writes to.
    dtype : {float64, float32, uint8}
        The features' dtype. With uint8 the pixels of a named data set come as the bytes they are,
        not scaled: give them to `Dataset` with ``scale=1 / 255`` (`digits`: 1/16), those of
        `cifar10` with the scale and offset of `image_scaling`.
    fetch : bool, default False
        Whether to fetch `mnist` or `cifar10` from OpenML if files are missing, by scikit-learn's
        `fetch_openml`, which is quicker where pandas is installed. They are written to `root` (by
        default FASTFW_DATA, or ``fastfw`` in the user's folder for caches), where later calls find
        them.
    label : str, optional
        The name of the column of labels in a CSV file, or its number, counted from 1, where the
        first line has no names. By default the last one.

    Returns
    -------
    Split
        ``(X, y, X_test, y_test)``: C-contiguous features, intp labels.

    Raises
    ------
    FileNotFoundError
        If files are missing; the message says which, and where to put them.
    ImportError
        If `digits`, `fetch` or an svmlight file is asked for and scikit-learn is not installed.
    ConnectionError
        If `fetch` reaches no network, or the answer breaks off.
    ValueError
        If the name is unknown, or a file is damaged or does not hold what it should; the message
        names the file. A pickle of CIFAR-10's Python version that asks for anything beside arrays,
        bytes, lists and dictionaries ends here too: nothing of it is run.

    Notes
    -----
    Peak memory is the result plus one byte a pixel of the part being read.

    Examples
    --------
    >>> X, y, X_test, y_test = load("fashion-mnist-4k")
    >>> X.shape, X_test.shape, float(X.min()), float(X.max())
    ((4000, 784), (1000, 784), 0.0, 1.0)
    >>> load("mnits")
    Traceback (most recent call last):
        ...
    ValueError: unknown data set 'mnits'; did you mean 'mnist'? Known are fashion-mnist-4k, mnist,
    fashion-mnist, cifar10, digits, and paths of .npz, CSV and svmlight files
    """
    wanted = np.dtype(np.uint8) if _asks_for_bytes(dtype) else float_dtype(dtype)
    if not isinstance(name_or_path, str | os.PathLike):
        raise TypeError(
            f"name_or_path must be a name or a path, but it is a {type(name_or_path).__name__}"
        )
    name = os.fspath(name_or_path)
    is_table = name.lower().endswith(table.ENDINGS)
    if label is not None and not is_table:
        raise ValueError(f"label: it is for CSV files, with columns of names, not for {name}")
    if name in _LOADERS:
        try:
            return _LOADERS[name](name, root, wanted)
        except FileNotFoundError:
            if not fetch or name not in downloads.FETCHED:
                raise
        given = root or os.environ.get(_ENVIRONMENT) or downloads.cache_folder()
        if given is None:
            raise FileNotFoundError(
                f"data set {name!r}: this user has no folder to fetch it to; name one with root= "
                f"or the environment variable {_ENVIRONMENT}"
            )
        base = _expanded(given)
        downloads.fetch(name, base)
        return _LOADERS[name](name, base, wanted)
    path, is_svmlight = _expanded(name), svmlight.is_svmlight(name)
    has_ending = is_svmlight or is_table or name.lower().endswith(".npz")
    if wanted == np.uint8 and has_ending:
        raise ValueError(f"dtype must be float64 or float32 for a file, but it is uint8: {name}")
    if has_ending or isinstance(name_or_path, os.PathLike):
        if not path.is_file():
            wrong = "it is a folder, not a file" if path.is_dir() else "there is no such file"
            raise FileNotFoundError(f"{path}: {wrong}")
        if is_table:
            train, test = table.read_table(path, label, wanted), None
        else:
            train, test = (svmlight if is_svmlight else npz).read_split(path, wanted)
        return Split(*train, *(test or _no_rows(train[0].shape[1], wanted)))
    if os.path.isfile(path):
        raise ValueError(
            f"{name} is no .npz, .csv or svmlight file (.svmlight, .svm, .libsvm); with "
            "features X and class numbers y, np.savez('data.npz', X=X, y=y) makes one"
        )
    close = difflib.get_close_matches(name.lower(), NAMES, n=1)
    suggestion = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(
        f"unknown data set {name!r}{suggestion} Known are {', '.join(NAMES)}, "
        "and paths of .npz, CSV and svmlight files"
    )


def image_scaling(
    X: npt.NDArray[np.uint8],
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return scale and offset that bring each image to [0, 1] by its own minimum and maximum.

    Parameters
    ----------
    X : ndarray, shape (n, d), uint8
        Images.

    Returns
    -------
    scale, offset : ndarray, shape (n,), float64
        ``scale[i] * X[i] + offset[i]`` lies in [0, 1]; 1 / (max - min) and -min / (max - min). An
        image of one colour becomes zeros.

    Raises
    ------
    TypeError
        If `X` is not a matrix of bytes.

    Examples
    --------
    >>> scale, offset = image_scaling(np.array([[10, 30, 20], [7, 7, 7]], np.uint8))
    >>> scale, offset
    (array([0.05, 1.  ]), array([-0.5, -7. ]))
    """
    if getattr(X, "dtype", None) != np.uint8 or X.ndim != 2:
        raise TypeError(
            f"X must be an (n, d) array of uint8, but it is {getattr(X, 'dtype', type(X))} "
            f"of shape {np.shape(X)}; load(..., dtype=np.uint8) gives one"
        )
    low = X.min(axis=1).astype(np.float64)
    scale = 1.0 / np.maximum(X.max(axis=1) - low, 1.0)
    return scale, -low * scale


def _asks_for_bytes(dtype: object) -> bool:
    try:
        return bool(np.dtype(dtype) == np.uint8)  # type: ignore[call-overload]
    except TypeError:
        return False


# Named data sets


def _load_embedded(name: str, root: object, dtype: np.dtype[Any]) -> Split:
    """Read the data set that is part of the package; works from a zipped install as well."""
    resource = importlib.resources.files("fastfw") / "data" / f"{name}.npz"
    with resource.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Split(
            images.scale_pixels(arrays["X"], dtype),
            arrays["y"].astype(np.intp),
            images.scale_pixels(arrays["X_test"], dtype),
            arrays["y_test"].astype(np.intp),
        )


def _load_idx(name: str, root: str | os.PathLike[str] | None, dtype: np.dtype[Any]) -> Split:
    """Read the four IDX files of MNIST or of Fashion-MNIST."""
    paths = _find(name, root, _IDX_FILES, folders=(name, "."), endings=("", ".gz"))
    X, y = images.read_idx_pair(paths[0], paths[1], dtype)
    X_test, y_test = images.read_idx_pair(paths[2], paths[3], dtype)
    if X.shape[1] != X_test.shape[1]:
        raise ValueError(
            f"{paths[2]}: images of {X_test.shape[1]} pixels, but those of {paths[0]} "
            f"have {X.shape[1]}"
        )
    return Split(X, y, X_test, y_test)


def _load_cifar10(name: str, root: str | os.PathLike[str] | None, dtype: np.dtype[Any]) -> Split:
    """Read the six files of CIFAR-10's binary version, or those of its Python version."""
    read = images.read_records
    try:
        paths = _find_cifar(name, root, "cifar-10-batches-bin", _CIFAR_BINARY)
    except FileNotFoundError as error:
        try:
            paths = _find_cifar(name, root, "cifar-10-batches-py", _CIFAR_PICKLED)
        except FileNotFoundError as other:
            if isinstance(other, _FilesMissing) and other.count < len(_CIFAR_PICKLED):
                raise  # some are there
            raise FileNotFoundError(
                f"{error}; the Python version's files ({_CIFAR_PICKLED[0]}, ...) in "
                "cifar-10-batches-py do as well"
            ) from None
        read = images.read_pickle
    X, y = images.read_cifar(paths[:-1], read, dtype)
    return Split(X, y, *images.read_cifar(paths[-1:], read, dtype))


def _find_cifar(
    name: str, root: str | os.PathLike[str] | None, folder: str, files: tuple[str, ...]
) -> list[Path]:
    return _find(name, root, files, folders=(folder, f"{name}/{folder}", name, "."))


def _load_digits(name: str, root: object, dtype: np.dtype[Any]) -> Split:
    """Take the 8 x 8 digits from scikit-learn."""
    try:
        from sklearn.datasets import load_digits
    except ImportError as error:
        raise ImportError(
            f"data set {name!r} is part of scikit-learn, which cannot be imported ({error}): "
            "pip install scikit-learn"
        ) from None
    pixels, classes = load_digits(return_X_y=True)
    X = images.scale_pixels(pixels.astype(np.uint8), dtype, largest=16)
    y = np.asarray(classes).astype(np.intp)
    return Split(X, y, *_no_rows(X.shape[1], dtype))


_LOADERS: dict[str, Callable[[str, str | os.PathLike[str] | None, np.dtype[Any]], Split]] = {
    "fashion-mnist-4k": _load_embedded,
    "mnist": _load_idx,
    "fashion-mnist": _load_idx,
    "cifar10": _load_cifar10,
    "digits": _load_digits,
}


class _FilesMissing(FileNotFoundError):
    """Files of a data set are missing; knows how many."""

    def __init__(self, count: int, message: str) -> None:
        super().__init__(message)
        self.count = count


def _find(
    name: str,
    root: str | os.PathLike[str] | None,
    files: tuple[str, ...],
    *,
    folders: tuple[str, ...],
    endings: tuple[str, ...] = ("",),
) -> list[Path]:
    """Return the paths of all the files, from the first folder below root that has them all."""
    gzipped = " (or the same with .gz)" if ".gz" in endings else ""
    given = root if root is not None else os.environ.get(_ENVIRONMENT) or None
    where = "root" if root is not None else f"the environment variable {_ENVIRONMENT}"
    if given is None and (cache := downloads.cache_folder()) is not None:
        names = [file + ending for file in files for ending in endings]
        if any((cache / folder / file).is_file() for folder in folders for file in names):
            given, where = cache, "the folder of what was fetched"  # compiled kernels are there too
    fetch = ", or give fetch=True where there is a network" if name in downloads.FETCHED else ""
    way_out = (
        f"put {', '.join(files)}{gzipped} into a folder FOLDER/{folders[0]} and give root=FOLDER "
        f"or set the environment variable {_ENVIRONMENT}=FOLDER{fetch}"
    )
    if given is None:
        raise FileNotFoundError(f"data set {name!r} is not part of the package: {way_out}")
    base = _expanded(given)
    if not base.is_dir():
        raise FileNotFoundError(
            f"data set {name!r}: {base}, given by {where}, is not a folder; {way_out}"
        )
    missing: dict[Path, list[str]] = {}
    for place in (base / folder for folder in folders):
        found = [
            next(filter(Path.is_file, (place / (file + ending) for ending in endings)), None)
            for file in files
        ]
        if None not in found:
            return [path for path in found if path is not None]
        missing[place] = [file for file, path in zip(files, found, strict=True) if path is None]
    place = min(missing, key=lambda place: len(missing[place]))
    raise _FilesMissing(
        len(missing[place]),
        f"data set {name!r} was not found in any of {', '.join(map(str, missing))}: put "
        f"{', '.join(missing[place])}{gzipped} into {place}, or give another folder with root= or "
        f"the environment variable {_ENVIRONMENT}{fetch}",
    )


# Shared


def _expanded(path: str | os.PathLike[str]) -> Path:
    """Return a path with a leading ~ expanded, where anybody knows whose home it is."""
    return Path(os.path.expanduser(path))


def _no_rows(n_features: int, dtype: np.dtype[Any]) -> tuple[FloatArray, IndexArray]:
    """Return the test part of a data set that has none."""
    return np.empty((0, n_features), dtype=dtype), np.empty(0, dtype=np.intp)
