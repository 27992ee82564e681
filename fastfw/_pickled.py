"""CIFAR-10's pickled version, read without running anything that a pickle may ask for.

A pickle is a program: by its ``GLOBAL`` instruction it can name any function of any module, and
call it. `_Reader` knows eight names, which stand for arrays and bytes in pickles of Python 2 and 3
and of NumPy 1 and 2, and gives them stand-ins of its own that keep what they are given and check
it later; neither NumPy's unpickling nor any import takes part. Every other name is refused.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._images import CIFAR_PIXELS, class_numbers, stretched

__all__ = ["read_cifar_pickles"]


class _Refused(Exception):
    """A name that a pickle asks for and does not get."""


class _Dtype:
    """Stands for ``numpy.dtype``: unsigned bytes, and nothing else."""

    def __init__(self, code: object = None, *_: object) -> None:
        name = code.decode("ascii", "replace") if isinstance(code, bytes) else code
        if name not in ("u1", "|u1", "uint8"):
            raise ValueError(f"an array of type {name!r}, where bytes (u1) are wanted")

    def __setstate__(self, state: object) -> None:
        """Take no notice: bytes have no byte order, fields or metadata."""


class _Array:
    """Stands for ``numpy.ndarray``, and for the function that makes one without content."""

    def __init__(self, *_: object) -> None:
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        """Keep ``(version, shape, dtype, Fortran order, content)`` as they are."""
        self.state = state


class _Function:
    """A function whose attributes a pickle cannot set."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: object) -> Any:
        """Call it."""
        return self._call(*arguments)

    def __setstate__(self, state: object) -> NoReturn:
        """Refuse; without this method a pickle could set what it wants."""
        raise ValueError("sets attributes of a function")


@_Function
def _from_buffer(content: object, dtype: object, shape: object, order: object) -> _Array:
    """Stand for NumPy's function of the same purpose, which newer pickles use."""
    array = _Array()
    array.state = (1, shape, dtype, order == "F", content)
    return array


@_Function
def _latin_bytes(text: object, encoding: object = None) -> bytes:
    """Stand for ``_codecs.encode``, by which Python 3 writes bytes into older kinds of pickles."""
    if not isinstance(text, str) or encoding not in ("latin1", b"latin1"):
        raise ValueError("text that is encoded in another way than bytes are")
    return text.encode("latin1")


@_Function
def _no_bytes() -> bytes:
    """Stand for ``bytes``, called without arguments for no bytes."""
    return b""


_STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "_reconstruct"): _Array,
    ("numpy._core.multiarray", "_reconstruct"): _Array,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): _latin_bytes,
    ("__builtin__", "bytes"): _no_bytes,
}


class _Reader(pickle._Unpickler):
    """An unpickler for plain data and arrays of bytes.

    The one written in Python: the other reserves memory for as many objects as a file says.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return a stand-in; refuse everything else."""
        try:
            return _STAND_INS[module, name]
        except KeyError:
            raise _Refused(ascii(f"{module}.{name}")[1:-1]) from None

    def persistent_load(self, pid: object) -> NoReturn:
        """Refuse references to objects outside of the file."""
        raise _Refused("an object outside of the file")


def read_cifar_pickles(paths: list[Path], dtype: np.dtype[Any]) -> tuple[FloatArray, IndexArray]:
    """Read batches of CIFAR-10's Python version, each image scaled by its minimum and maximum.

    Parameters
    ----------
    paths : list of Path
        The files; each a pickled dictionary with ``data``, an (n, 3072) array of bytes, and
        ``labels``, a list of n numbers below 10.
    dtype : dtype
        Of the features.

    Returns
    -------
    tuple
        Features (n, 3072) and labels (n,) of all files, in order.

    Raises
    ------
    ValueError
        If a file is damaged, holds something else, or asks for a function: nothing of it is run.
    """
    batches = [_read_batch(path) for path in paths]
    X = np.empty((sum(len(labels) for _, labels in batches), CIFAR_PIXELS), dtype=dtype)
    y = np.empty(len(X), dtype=np.intp)
    start = 0
    for pixels, labels in batches:
        rows = slice(start, start + len(labels))
        stretched(pixels, out=X[rows])
        y[rows] = labels
        start += len(labels)
    return X, y


def _read_batch(path: Path) -> tuple[npt.NDArray[np.uint8], IndexArray]:
    """Read one file: pixels and labels."""
    try:
        with path.open("rb") as file:
            content = _Reader(file, encoding="bytes").load()
        entries = _by_name(content)
        pixels = _pixels(entries.get(b"data"))
        labels = _labels(entries.get(b"labels"), len(pixels))
    except _Refused as error:
        raise ValueError(
            f"{path}: asks for {error}, which is neither an array nor bytes, a list or a "
            "dictionary; such a pickle can run any code, so nothing of it was loaded or run: fetch "
            "the file again from where CIFAR-10 is published, and trust this copy no further"
        ) from None
    except OSError:
        raise
    except MemoryError:
        raise ValueError(f"{path}: claims more content than fits into memory") from None
    # Damage surfaces as a dozen kinds of exception from the unpickler.
    except Exception as error:
        raise ValueError(f"{path}: not a batch of CIFAR-10's Python version: {error}") from None
    return pixels, class_numbers(labels, path)


def _by_name(content: object) -> dict[bytes, Any]:
    """Return the dictionary with its keys as bytes, as Python 2 wrote them."""
    if not isinstance(content, dict):
        raise ValueError(f"a {type(content).__name__}, where a dictionary is wanted")
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}


def _pixels(array: object) -> npt.NDArray[np.uint8]:
    """Return the array that a stand-in describes."""
    if not isinstance(array, _Array):
        raise ValueError("no array 'data'")
    if not (isinstance(array.state, tuple) and len(array.state) == 5):
        raise ValueError("'data' is an array without content")
    _, shape, dtype, fortran, content = array.state
    if not isinstance(dtype, _Dtype) or not isinstance(content, bytes | bytearray):
        raise ValueError("'data' is not an array of bytes")
    if not (
        isinstance(shape, tuple)
        and len(shape) == 2
        and all(type(n) is int for n in shape)
        and shape[0] > 0
        and shape[1] == CIFAR_PIXELS
    ):
        raise ValueError(f"'data' has shape {shape!r}, (n, {CIFAR_PIXELS}) is wanted")
    if math.prod(shape) != len(content):
        raise ValueError(f"'data' has {len(content)} bytes, but shape {shape} takes another number")
    flat = np.frombuffer(content, np.uint8)
    if fortran:
        return flat.reshape(shape[::-1]).T.copy()
    return flat.reshape(shape).copy()


def _labels(values: object, count: int) -> npt.NDArray[np.uint8]:
    """Return the list of labels as bytes."""
    if not isinstance(values, list) or not all(type(value) is int for value in values):
        raise ValueError("no list 'labels' of whole numbers")
    if len(values) != count:
        raise ValueError(f"{count} images, but {len(values)} labels")
    if not all(0 <= value < 256 for value in values):
        raise ValueError("labels beyond 0, ..., 9")
    return np.array(values, dtype=np.uint8)
