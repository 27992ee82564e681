"""Images in the files that MNIST and CIFAR-10 are published in, as rows of numbers in [0, 1].

Files are taken for untrusted: damage ends in one ValueError that names the file, nothing that a
pickle asks for is run, and no memory is reserved on the word of a header alone.
"""

from __future__ import annotations

import gzip
import io
import math
import pickle
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._messages import escape

_CIFAR_PIXELS = 3 * 32 * 32

_ByteArray = npt.NDArray[np.uint8]
#: Images (n, d) and their labels (n,).
_Batch = tuple[_ByteArray, _ByteArray]


# --- MNIST ----------------------------------------------------------------------------------------


def read_idx_pair(
    images: Path, classes: Path, dtype: np.dtype[Any]
) -> tuple[FloatArray, IndexArray]:
    """Read one file of images and the file of its labels."""
    y = _class_numbers(_read_idx(classes, ndim=1), classes)
    pixels = _read_idx(images, ndim=3)
    if len(pixels) != len(y):
        raise ValueError(f"{images} has {len(pixels)} images, but {classes} has {len(y)} labels")
    return scale_pixels(pixels, dtype), y


def _read_idx(path: Path, *, ndim: int) -> _ByteArray:
    """Read an IDX file of unsigned bytes, gzipped or not, whatever its name says."""
    # Told apart by content: browsers are known to unpack a download and keep its name.
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else path.open("rb") as file:
            shape = _idx_shape(file.read(4 + 4 * ndim), path, ndim)
            content = file.read()
    except EOFError:
        raise ValueError(f"{path}: the gzip file is truncated; fetch it again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path}: the gzip file is corrupt ({error})") from None
    promised, held = math.prod(shape), len(content)
    if held != promised:
        fault = "truncated" if held < promised else "longer than its header says"
        raise ValueError(
            f"{path}: {fault}: shape {shape} takes {promised} bytes, but {held} follow the header"
        )
    return np.frombuffer(content, np.uint8).reshape(shape)


def _idx_shape(header: bytes, path: Path, ndim: int) -> tuple[int, ...]:
    """Return the shape that an IDX header promises."""
    length, magic = 4 + 4 * ndim, bytes((0, 0, 8, ndim))
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
    return shape


def scale_pixels(pixels: _ByteArray, dtype: np.dtype[Any], largest: int = 255) -> FloatArray:
    """Return pixels / largest as an (n, d) array, in one pass and with no other array made.

    Bytes stay as they are.
    """
    flat = pixels.reshape(len(pixels), -1)
    X: npt.NDArray[Any] = np.empty(flat.shape, dtype=dtype)
    if dtype == np.uint8:
        X[...] = flat
    else:
        np.divide(flat, largest, out=X, dtype=dtype)
    return X


def _class_numbers(values: _ByteArray, path: Path) -> IndexArray:
    """Return label bytes as intp, having checked that they are 0, ..., 9."""
    if values.max() > 9:
        i = int(np.argmax(values > 9))
        raise ValueError(f"{path}: label {i} is {values[i]}, but classes are 0, ..., 9")
    return values.astype(np.intp)


# --- CIFAR-10 -------------------------------------------------------------------------------------


def read_cifar(
    paths: list[Path], read: Callable[[Path], _Batch], dtype: np.dtype[Any]
) -> tuple[FloatArray, IndexArray]:
    """Read batches by `read_records` or `read_pickle`: each image scaled by its own extremes."""
    batches = [read(path) for path in paths]
    y = [_class_numbers(labels, path) for (_, labels), path in zip(batches, paths, strict=True)]
    X: npt.NDArray[Any] = np.empty((sum(map(len, y)), _CIFAR_PIXELS), dtype)
    stop = 0
    for pixels, _ in batches:
        start, stop = stop, stop + len(pixels)
        _stretch(pixels, out=X[start:stop])
    return X, np.concatenate(y)


def _stretch(pixels: _ByteArray, *, out: npt.NDArray[Any]) -> None:
    """Write images into `out`, each scaled by its own minimum and maximum; bytes as they are."""
    if out.dtype == np.uint8:
        out[...] = pixels
        return
    low = pixels.min(axis=1, keepdims=True)
    # An image of one colour is zeros once its minimum is gone: dividing by 1 keeps them.
    span = np.maximum(pixels.max(axis=1, keepdims=True) - low, 1)
    # exact in bytes: no pixel is below the minimum
    np.divide(pixels - low, span, out=out, dtype=out.dtype)


def read_records(path: Path) -> _Batch:
    """Read a file of CIFAR-10's binary version."""
    record = 1 + _CIFAR_PIXELS
    content = np.fromfile(path, np.uint8)
    if content.size == 0 or content.size % record:
        raise ValueError(
            f"{path}: truncated or not a CIFAR-10 binary file: "
            f"{content.size} bytes are not a whole number of records of {record} bytes"
        )
    records = content.reshape(-1, record)
    return records[:, 1:], records[:, 0]


def read_pickle(path: Path) -> _Batch:
    """Read a file of CIFAR-10's Python version, running nothing that it may ask for."""
    content = path.read_bytes()
    try:
        found = _Unpickler(content).load()
        if not isinstance(found, dict):
            raise ValueError(f"a {type(found).__name__}, where a dictionary is wanted")
        # Python 2 wrote the keys as bytes
        entries = {k.encode() if isinstance(k, str) else k: v for k, v in found.items()}
        array, labels = entries.get(b"data"), entries.get(b"labels")
        pixels = array.values if isinstance(array, _Array) else None
        if pixels is None:
            raise ValueError("no array 'data'")
        if pixels.ndim != 2 or pixels.shape[1] != _CIFAR_PIXELS or not len(pixels):
            raise ValueError(f"'data' has shape {pixels.shape}, (n, {_CIFAR_PIXELS}) is wanted")
        if not isinstance(labels, list):
            raise ValueError("no list 'labels'")
        if len(labels) != len(pixels):
            raise ValueError(f"{len(pixels)} images, but {len(labels)} labels")
        return pixels, np.frombuffer(bytes(labels), np.uint8)
    except _Refused as error:
        raise ValueError(
            f"{path}: asks for {error}, which is neither an array nor bytes, a list or a "
            "dictionary; such a pickle can run any code, so nothing of it was loaded or run: "
            "fetch the file again from where CIFAR-10 is published, and trust this copy no further"
        ) from None
    # Damage surfaces as a dozen kinds of exception from the unpickler.
    except Exception as error:
        raise ValueError(
            f"{path}: not a batch of CIFAR-10's Python version, or damaged: "
            f"{escape(str(error) or type(error).__name__, 200)}"
        ) from None


class _Refused(Exception):
    """A pickle asks for what it does not get."""


class _Dtype:
    """Stands for the dtype of unsigned bytes."""

    def __init__(self, code: object, *_: object) -> None:
        if code not in ("u1", b"u1"):
            raise ValueError(f"an array of type '{escape(code)}', where bytes (u1) are wanted")

    def __setstate__(self, state: object) -> None: ...


class _Array:
    """Stands for an array of unsigned bytes."""

    values: _ByteArray | None = None

    def __init__(self, *_: object) -> None: ...

    def __setstate__(self, state: object) -> None:
        match state:
            case _, tuple(shape), _Dtype(), fortran, bytes(content) | bytearray(content):
                flat = np.frombuffer(content, np.uint8)
                self.values = flat.reshape(shape, order="F" if fortran else "C")
            case _:
                raise ValueError("an array that holds no bytes")


def _from_buffer(content: object, dtype: object, shape: object, order: object) -> _Array:
    array = _Array()
    array.__setstate__((1, shape, dtype, order == "F", content))
    return array


class _Entries(dict[Any, Any]):
    """A dictionary whose keys are text: to hash others may take more stack than there is."""

    def __setitem__(self, key: object, value: object) -> None:
        if not isinstance(key, str | bytes):
            raise ValueError("a dictionary with keys that are not text")
        super().__setitem__(key, value)


def _dict(unpickler: Any) -> None:
    """Begin a dictionary as the oldest kind of pickles does, empty."""
    if unpickler.pop_mark():
        raise ValueError("a dictionary that begins with entries")
    unpickler.append(_Entries())


def _build(unpickler: Any) -> None:
    """Set the state of what stands for an array, and of nothing else."""
    built = unpickler.stack[-2]
    if not isinstance(built, _Array | _Dtype):
        raise _Refused(f"attributes of {type(built).__name__}")
    pickle._Unpickler.dispatch[pickle.BUILD[0]](unpickler)


def _bytearray(unpickler: Any) -> None:
    """Take as many bytes as are there."""
    (size,) = struct.unpack("<Q", unpickler.read(8))
    unpickler.append(bytearray(unpickler.read(size)))


class _Unpickler(pickle._Unpickler):
    """Python's unpickler for plain data and arrays of bytes, which refuses all else.

    The one in Python: the one in C makes room for whatever is promised.
    """

    dispatch: ClassVar[dict[int, Any]] = {
        **pickle._Unpickler.dispatch,
        pickle.EMPTY_DICT[0]: lambda unpickler: unpickler.append(_Entries()),
        pickle.DICT[0]: _dict,
        pickle.BUILD[0]: _build,
        pickle.BYTEARRAY8[0]: _bytearray,
    }
    for _set in (pickle.EMPTY_SET, pickle.FROZENSET):
        del dispatch[_set[0]]

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="bytes")
        self._room = len(content)

    def find_class(self, module: str, name: str) -> Any:
        """Return what stands for a name that arrays and bytes need; nothing is imported."""
        match module.replace("numpy._core.", "numpy.core."), name:  # NumPy 2's, NumPy 1's
            case ("numpy", "ndarray") | ("numpy.core.multiarray", "_reconstruct"):
                return _Array
            case "numpy.core.numeric", "_frombuffer":
                return _from_buffer
            case "numpy", "dtype":
                return _Dtype
            case "_codecs", "encode":  # by which Python 3 writes bytes into older kinds of pickles
                return self._encode
        raise _Refused(escape(f"{module}.{name}"))

    def get_extension(self, code: int) -> None:
        """Refuse what programs register with `copyreg`."""
        raise _Refused(f"the object registered under number {code}")

    def _encode(self, text: str, encoding: object) -> bytes:
        self._room -= len(text)
        if self._room < 0:
            raise ValueError("more bytes than the file has")
        return text.encode("latin-1")
