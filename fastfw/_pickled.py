"""CIFAR-10's pickled version, read without running anything that a pickle may ask for."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._images import CIFAR_PIXELS, class_numbers, stretched
from fastfw._messages import shown
from fastfw._unpickle import ArrayOfBytes, Refused, unpickle

__all__ = ["read_cifar_pickles", "refuse_calls"]


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


def refuse_calls(path: Path) -> None:
    """Raise ValueError if a pickle, of whose content nothing is wanted, asks for a function."""
    try:
        with path.open("rb") as file:
            unpickle(file, os.fstat(file.fileno()).st_size)
    except Refused as error:
        raise _refusal(path, error) from None
    except Exception:  # damage does no harm
        return


def _refusal(path: Path, error: Refused) -> ValueError:
    return ValueError(
        f"{path}: asks for {error}, which is neither an array nor bytes, a list or a dictionary; "
        "such a pickle can run any code, so nothing of it was loaded or run: fetch the file again "
        "from where CIFAR-10 is published, and trust this copy no further"
    )


def _read_batch(path: Path) -> tuple[npt.NDArray[np.uint8], IndexArray]:
    """Read one file: pixels and labels."""
    try:
        with path.open("rb") as file:
            content = unpickle(file, os.fstat(file.fileno()).st_size)
        entries = _by_name(content)
        pixels = _pixels(entries.get(b"data"))
        labels = _labels(entries.get(b"labels"), len(pixels))
    except Refused as error:
        raise _refusal(path, error) from None
    except OSError:
        raise
    except MemoryError:
        raise ValueError(f"{path}: claims more content than fits into memory") from None
    # Damage surfaces as a dozen kinds of exception from the unpickler.
    except Exception as error:
        fault = shown(str(error), 200)
        raise ValueError(
            f"{path}: not a batch of CIFAR-10's Python version, or damaged: {fault}"
        ) from None
    return pixels, class_numbers(labels, path)


def _by_name(content: object) -> dict[bytes, Any]:
    """Return the dictionary with its keys as bytes, as Python 2 wrote them."""
    if not isinstance(content, dict):
        raise ValueError(f"a {type(content).__name__}, where a dictionary is wanted")
    return {key.encode() if isinstance(key, str) else key: value for key, value in content.items()}


def _pixels(array: object) -> npt.NDArray[np.uint8]:
    """Return the array that is described."""
    if not isinstance(array, ArrayOfBytes):
        raise ValueError("no array 'data'")
    try:
        shape, fortran, content = array.parts()
    except ValueError as error:
        raise ValueError(f"'data' is {error}") from None
    if not (
        isinstance(shape, tuple)
        and len(shape) == 2
        and all(type(n) is int for n in shape)
        and shape[0] > 0
        and shape[1] == CIFAR_PIXELS
    ):
        raise ValueError(f"'data' has shape {shown(shape)}, (n, {CIFAR_PIXELS}) is wanted")
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
