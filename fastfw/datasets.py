"""Named data sets, the embedded default, and the file formats they come in.

`load` never touches the network.  ``fashion-mnist-4k`` is part of the package, ``digits`` is part
of scikit-learn; the others are read from their published files, wherever you keep them.  Files are
taken for untrusted: damage of any kind ends in one ValueError that names the file, nothing is
unpickled, and no memory is reserved on the word of a header alone.
"""

from __future__ import annotations

import difflib
import gzip
import importlib.resources
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import (
    FloatArray,
    IndexArray,
    features,
    fewer_classes_than_rows,
    float_dtype,
    labels,
)

__all__ = ["NAMES", "Split", "load"]

NAMES = ("fashion-mnist-4k", "mnist", "fashion-mnist", "cifar10", "digits")
"""The names that `load` knows."""

_ENVIRONMENT = "FASTFW_DATA"

_IDX_FILES = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
_CIFAR_TRAIN = tuple(f"data_batch_{i}.bin" for i in range(1, 6))
_CIFAR_TEST = "test_batch.bin"
_CIFAR_PIXELS = 3 * 32 * 32

# Deflate cannot shrink anything by more than this factor, so a larger claim is a lie.
_DEFLATE_LIMIT = 1032

_READ = 1 << 20

_ByteArray = npt.NDArray[np.uint8]


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
) -> Split:
    """Load a data set by name, or from an .npz file.

    ====================  =========================================  ==============================
    name                  rows x features, classes                   where it comes from
    ====================  =========================================  ==============================
    ``fashion-mnist-4k``  4,000 (test 1,000) x 784, 10               embedded: the first images of
                                                                     Fashion-MNIST
    ``mnist``             60,000 (test 10,000) x 784, 10             four IDX files, gzipped or not
    ``fashion-mnist``     60,000 (test 10,000) x 784, 10             likewise
    ``cifar10``           50,000 (test 10,000) x 3072, 10            the six files of the binary
                                                                     version
    ``digits``            1,797 (no test part) x 64, 10              scikit-learn
    ====================  =========================================  ==============================

    Pixels are divided by 255 (`digits`: by 16); each `cifar10` image is instead scaled by its own
    minimum and maximum to [0, 1], and an image of one colour becomes zeros.  The values are those
    of the exact quotient, correctly rounded.

    Parameters
    ----------
    name_or_path : str or path-like
        One of the names above, or the path of an .npz file that holds `X` (n, d), `y` (n,) and,
        together or not at all, `X_test` and `y_test`.  Such arrays are taken as they are, without
        scaling.
    root : path-like, optional
        The folder with the files of `mnist`, `fashion-mnist` or `cifar10`: in the folder itself or
        in one below it that has the data set's name.  By default the environment variable
        FASTFW_DATA says where.
    dtype : {float64, float32}
        The features' dtype.

    Returns
    -------
    Split
        ``(X, y, X_test, y_test)``: C-contiguous features, intp labels.

    Raises
    ------
    FileNotFoundError
        If files are missing; the message says which, and where to put them.
    ImportError
        If `digits` is asked for and scikit-learn is not installed.
    ValueError
        If the name is unknown, or a file is damaged or does not hold what it should; the message
        names the file.

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
    fashion-mnist, cifar10, digits, and paths of .npz files
    """
    wanted = float_dtype(dtype)
    if not isinstance(name_or_path, str | os.PathLike):
        raise TypeError(
            f"name_or_path must be a name or a path, but it is a {type(name_or_path).__name__}"
        )
    name = os.fspath(name_or_path)
    if name in _LOADERS:
        return _LOADERS[name](name, root, wanted)
    if name.lower().endswith(".npz") or isinstance(name_or_path, os.PathLike):
        return _load_npz(Path(name).expanduser(), wanted)
    close = difflib.get_close_matches(name.lower(), NAMES, n=1)
    suggestion = f"; did you mean {close[0]!r}?" if close else "."
    raise ValueError(
        f"unknown data set {name!r}{suggestion} Known are {', '.join(NAMES)}, "
        "and paths of .npz files"
    )


# Named data sets


def _load_embedded(name: str, root: object, dtype: np.dtype[Any]) -> Split:
    """Read the data set that is part of the package; works from a zipped install as well."""
    resource = importlib.resources.files("fastfw") / "data" / f"{name}.npz"
    with resource.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return Split(
            _scaled(arrays["X"], dtype),
            arrays["y"].astype(np.intp),
            _scaled(arrays["X_test"], dtype),
            arrays["y_test"].astype(np.intp),
        )


def _load_idx(name: str, root: str | os.PathLike[str] | None, dtype: np.dtype[Any]) -> Split:
    """Read the four IDX files of MNIST or of Fashion-MNIST."""
    paths = _find(name, root, _IDX_FILES, folders=(name, "."), endings=("", ".gz"))
    X, y = _read_idx_pair(paths[0], paths[1], dtype)
    X_test, y_test = _read_idx_pair(paths[2], paths[3], dtype)
    if X.shape[1] != X_test.shape[1]:
        raise ValueError(
            f"{paths[2]}: images of {X_test.shape[1]} pixels, but those of {paths[0]} "
            f"have {X.shape[1]}"
        )
    return Split(X, y, X_test, y_test)


def _load_cifar10(name: str, root: str | os.PathLike[str] | None, dtype: np.dtype[Any]) -> Split:
    """Read the six files of CIFAR-10's binary version."""
    folder = "cifar-10-batches-bin"
    paths = _find(
        name,
        root,
        (*_CIFAR_TRAIN, _CIFAR_TEST),
        folders=(folder, f"{name}/{folder}", name, "."),
    )
    X, y = _read_cifar(paths[:-1], dtype)
    return Split(X, y, *_read_cifar(paths[-1:], dtype))


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
    X = np.empty(pixels.shape, dtype=dtype)
    np.divide(pixels, 16.0, out=X, casting="same_kind")
    y = np.asarray(classes).astype(np.intp)
    return Split(X, y, *_no_rows(X.shape[1], dtype))


_LOADERS: dict[str, Callable[[str, str | os.PathLike[str] | None, np.dtype[Any]], Split]] = {
    "fashion-mnist-4k": _load_embedded,
    "mnist": _load_idx,
    "fashion-mnist": _load_idx,
    "cifar10": _load_cifar10,
    "digits": _load_digits,
}


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
    if given is None:
        raise FileNotFoundError(
            f"data set {name!r} is not part of the package: put {', '.join(files)}{gzipped} "
            f"into a folder FOLDER/{folders[0]} and give root=FOLDER or set the environment "
            f"variable {_ENVIRONMENT}=FOLDER"
        )
    base = Path(given).expanduser()
    if not base.is_dir():
        raise FileNotFoundError(
            f"data set {name!r}: {base}, given by {where}, is not a folder; put "
            f"{', '.join(files)}{gzipped} into FOLDER/{folders[0]} and give root=FOLDER or set the "
            f"environment variable {_ENVIRONMENT}=FOLDER"
        )
    best: list[str] = list(files)
    best_folder = base / folders[0]
    for folder in folders:
        found: list[Path] = []
        missing: list[str] = []
        for file in files:
            candidates = [base / folder / (file + ending) for ending in endings]
            existing = next((path for path in candidates if path.is_file()), None)
            if existing is None:
                missing.append(file)
            else:
                found.append(existing)
        if not missing:
            return found
        if len(missing) < len(best):
            best, best_folder = missing, base / folder
    looked = ", ".join(str(base / folder) for folder in folders)
    raise FileNotFoundError(
        f"data set {name!r} was not found in any of {looked}: put {', '.join(best)}{gzipped} into "
        f"{best_folder}, or give another folder with root= or the environment variable "
        f"{_ENVIRONMENT}"
    )


# IDX, the format of MNIST


def _read_idx_pair(
    images: Path, classes: Path, dtype: np.dtype[Any]
) -> tuple[FloatArray, IndexArray]:
    """Read one file of images and the file of its labels."""
    y = _class_numbers(_read_idx(classes, ndim=1), classes)
    pixels = _read_idx(images, ndim=3)
    if len(pixels) != len(y):
        raise ValueError(f"{images} has {len(pixels)} images, but {classes} has {len(y)} labels")
    return _scaled(pixels, dtype), y


def _read_idx(path: Path, *, ndim: int) -> _ByteArray:
    """Read an IDX file of unsigned bytes, gzipped or not, whatever its name says."""
    # Told apart by content: browsers are known to unpack a download and keep its name.
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        if not packed:
            shape, header = _idx_header(file, path, ndim)
            promised, held = math.prod(shape), os.fstat(file.fileno()).st_size - header
            if held != promised:
                raise ValueError(_wrong_size(path, shape, promised, held))
            values = np.fromfile(file, dtype=np.uint8)
            if values.size != promised:
                raise ValueError(_wrong_size(path, shape, promised, values.size))
            return values.reshape(shape)
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                shape, header = _idx_header(unpacked, path, ndim)
                promised = math.prod(shape)
                # Grows with what really arrives, never beyond what was promised.
                content = bytearray()
                while len(content) < promised:
                    piece = unpacked.read(min(_READ, promised - len(content)))
                    if not piece:
                        raise ValueError(_wrong_size(path, shape, promised, len(content)))
                    content += piece
                if unpacked.read(1):  # reaching the end also checks the checksum
                    raise ValueError(
                        f"{path}: longer than its header says: {promised} bytes for shape {shape}"
                    )
        except EOFError:
            raise ValueError(f"{path}: the gzip file is truncated; fetch it again") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{path}: the gzip file is corrupt ({error})") from None
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def _idx_header(
    file: IO[bytes] | gzip.GzipFile, path: Path, ndim: int
) -> tuple[tuple[int, ...], int]:
    """Return the shape that an IDX header promises, and the header's length."""
    length = 4 + 4 * ndim
    header = file.read(length)
    magic = bytes((0, 0, 8, ndim))
    if header[:4] != magic:
        raise ValueError(
            f"{path}: not an IDX file of unsigned bytes with {ndim} dimension"
            f"{'s' if ndim > 1 else ''}: it begins with "
            f"{header[:4].hex(' ') or 'nothing'}, not with {magic.hex(' ')}"
        )
    if len(header) < length:
        raise ValueError(
            f"{path}: truncated: an IDX header has {length} bytes, but the file {len(header)}"
        )
    shape: tuple[int, ...] = struct.unpack(f">{ndim}I", header[4:])
    if 0 in shape:
        raise ValueError(f"{path}: its header gives the empty shape {shape}")
    return shape, length


def _wrong_size(path: Path, shape: tuple[int, ...], promised: int, held: int) -> str:
    fault = "truncated" if held < promised else "longer than its header says"
    return f"{path}: {fault}: shape {shape} takes {promised} bytes, but {held} follow the header"


# CIFAR-10's binary version: records of one label and 3072 pixels


def _read_cifar(paths: list[Path], dtype: np.dtype[Any]) -> tuple[FloatArray, IndexArray]:
    """Read files of records, one at a time, each image scaled by its own minimum and maximum."""
    record = 1 + _CIFAR_PIXELS
    counts = []
    for path in paths:
        size = path.stat().st_size
        if size == 0 or size % record:
            raise ValueError(
                f"{path}: truncated or not a CIFAR-10 binary file: "
                f"{size} bytes are not a whole number of records of {record} bytes"
            )
        counts.append(size // record)
    X = np.empty((sum(counts), _CIFAR_PIXELS), dtype=dtype)
    y = np.empty(len(X), dtype=np.intp)
    start = 0
    for path, count in zip(paths, counts, strict=True):
        content = np.fromfile(path, dtype=np.uint8)
        if content.size != count * record:
            raise ValueError(f"{path}: changed while it was read")
        records = content.reshape(count, record)
        rows = slice(start, start + count)
        y[rows] = _class_numbers(records[:, 0], path)
        pixels = records[:, 1:]
        low = pixels.min(axis=1, keepdims=True)
        span = pixels.max(axis=1, keepdims=True) - low
        # An image of one colour is zeros once its minimum is gone: dividing by 1 keeps them.
        np.maximum(span, 1, out=span)
        np.subtract(pixels, low, out=pixels)  # exact in bytes: no pixel is below the minimum
        np.divide(pixels, span, out=X[rows], dtype=dtype)
        start += count
    return X, y


# .npz files


def _load_npz(path: Path, dtype: np.dtype[Any]) -> Split:
    """Read X and y, and X_test and y_test if they are there, from an .npz file."""
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    arrays = _read_npz(path, ("X", "y", "X_test", "y_test"))
    recipe = "to write one: np.savez_compressed(path, X=X, y=y)"
    missing = [key for key in ("X", "y") if key not in arrays]
    if missing:
        raise ValueError(f"{path}: holds no array {' and no '.join(missing)}; {recipe}")
    if ("X_test" in arrays) != ("y_test" in arrays):
        raise ValueError(f"{path}: X_test and y_test must be there together, or neither of them")

    def checked(X: str, y: str, width: int | None) -> tuple[FloatArray, IndexArray]:
        try:
            # Taken out, so that an array that has to be converted does not outlive its copy.
            rows = features(arrays.pop(X), name=X, n_features=width, dtype=dtype)
            classes = labels(arrays.pop(y), name=y, n_samples=len(rows))
            if y == "y":  # the test part may be small
                fewer_classes_than_rows(classes)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}: {error}") from None
        # Nobody else holds this memory; what a caller does with it is the caller's affair.
        rows.flags.writeable = True
        classes.flags.writeable = True
        return rows, classes

    X, y = checked("X", "y", None)
    width = X.shape[1]
    if "X_test" not in arrays or (
        arrays["X_test"].shape == (0, width) and arrays["y_test"].shape == (0,)
    ):
        return Split(X, y, *_no_rows(width, dtype))
    return Split(X, y, *checked("X_test", "y_test", width))


def _read_npz(path: Path, keys: tuple[str, ...]) -> dict[str, npt.NDArray[Any]]:
    """Read those of the named arrays that an .npz file has, without unpickling anything."""
    with path.open("rb") as file:
        if file.read(1) == b"\x80":
            raise ValueError(
                f"{path}: a pickle, not an .npz file, and pickles are not loaded: they can run any "
                "code; write the arrays with np.savez_compressed(path, X=X, y=y)"
            )
        size = os.fstat(file.fileno()).st_size
        arrays: dict[str, npt.NDArray[Any]] = {}
        try:
            with zipfile.ZipFile(file) as archive:
                members = {info.filename: info for info in archive.infolist()}
                for key in keys:
                    if f"{key}.npy" in members:
                        arrays[key] = _read_npy(archive, members[f"{key}.npy"], key, size)
        except _ArrayError as error:
            raise ValueError(f"{path}: {error}") from None
        except MemoryError:
            raise
        # Damage surfaces as a dozen kinds of exception from zipfile, zlib and NumPy's parser.
        except Exception as error:
            raise ValueError(f"{path}: not an .npz file, or a damaged one ({error})") from None
    return arrays


class _ArrayError(Exception):
    """An array inside an .npz file that is refused, and why."""


def _read_npy(
    archive: zipfile.ZipFile, member: zipfile.ZipInfo, key: str, size: int
) -> npt.NDArray[Any]:
    """Read one array, after checking that what its header promises can be there."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise _ArrayError(f"{key} is compressed in a way that NumPy does not use")
    if member.file_size > _DEFLATE_LIMIT * min(member.compress_size, size):
        raise _ArrayError(
            f"{key} is damaged: {member.file_size} bytes cannot have been packed into "
            f"{member.compress_size}"
        )
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        if version == (1, 0):
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        elif version == (2, 0):
            shape, _, dtype = np.lib.format.read_array_header_2_0(file)
        else:
            raise _ArrayError(f"{key} is not an array of numbers")
        if dtype.hasobject:
            raise _ArrayError(
                f"{key} is an array of Python objects, stored as a pickle, and pickles are not "
                f"loaded: they can run any code; convert it to numbers before writing the file"
            )
        promised, held = math.prod(shape) * dtype.itemsize, member.file_size - file.tell()
        if promised != held:
            raise _ArrayError(
                f"{key} is damaged: shape {shape} of {dtype} takes {promised} bytes, "
                f"but there are {held}"
            )
    with archive.open(member) as file:
        array: npt.NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        file.read(1)  # reaching the end checks the checksum
    return array


# Shared


def _scaled(pixels: _ByteArray, dtype: np.dtype[Any]) -> FloatArray:
    """Return pixels / 255 as an (n, d) array, in one pass and with no other array made."""
    flat = pixels.reshape(len(pixels), -1)
    X: FloatArray = np.empty(flat.shape, dtype=dtype)
    np.divide(flat, 255, out=X, dtype=dtype)
    return X


def _class_numbers(values: _ByteArray, path: Path) -> IndexArray:
    """Return label bytes as intp, having checked that they are 0, ..., 9."""
    if values.max() > 9:
        i = int(np.argmax(values > 9))
        raise ValueError(f"{path}: label {i} is {values[i]}, but classes are 0, ..., 9")
    return values.astype(np.intp)


def _no_rows(n_features: int, dtype: np.dtype[Any]) -> tuple[FloatArray, IndexArray]:
    """Return the test part of a data set that has none."""
    return np.empty((0, n_features), dtype=dtype), np.empty(0, dtype=np.intp)
