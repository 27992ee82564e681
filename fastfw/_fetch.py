"""MNIST and CIFAR-10 from OpenML, by scikit-learn, kept in the layout of their published files."""

from __future__ import annotations

import os
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._files import atomic_write

__all__ = ["FETCHED", "cache_folder", "fetch"]

FETCHED = ("mnist", "cifar10")
"""What `fetch` knows."""

_TEST_ROWS = 10_000
#: By name: number on OpenML, training rows, pixels.
_OPENML = {"mnist": (554, 60_000, 28 * 28), "cifar10": (40_927, 50_000, 3 * 32 * 32)}


def cache_folder() -> Path:
    """Return the folder for fetched data, ``fastfw`` in the user's folder for caches."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "fastfw"


def fetch(name: str, base: Path) -> None:
    """Fetch a data set and write its files into a folder below `base`.

    Parameters
    ----------
    name : str
        One of `FETCHED`.
    base : Path
        Made if missing. MNIST takes 55 MB there, CIFAR-10 184 MB.

    Raises
    ------
    ImportError
        If scikit-learn, or what it needs to read OpenML's files, is not installed.
    ConnectionError
        If OpenML cannot be reached.
    ValueError
        If what came is not the data set.
    """
    number, n_train, width = _OPENML[name]
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise ImportError(
            f"data set {name!r} is fetched by scikit-learn, which cannot be imported ({error}): "
            "pip install scikit-learn pandas"
        ) from None
    try:
        # Nothing is kept in scikit-learn's own cache: the files written below are smaller.
        bunch = fetch_openml(data_id=number, as_frame=False, parser="auto", cache=False)
    except ImportError as error:
        raise ImportError(f"data set {name!r} cannot be read: {error}") from None
    except OSError as error:  # no network, or an answer that is an error
        raise ConnectionError(
            f"data set {name!r} could not be fetched from OpenML ({error}): try again where there "
            "is a network, or put its published files where the message without fetch=True says"
        ) from None
    pixels, labels = _as_bytes(bunch.data, name, "pixels"), _as_bytes(bunch.target, name, "labels")
    n = n_train + _TEST_ROWS
    if pixels.shape != (n, width) or labels.shape != (n,):
        raise ValueError(
            f"data set {name!r}: OpenML sent pixels of shape {pixels.shape} and labels of shape "
            f"{labels.shape}, where ({n}, {width}) and ({n},) are known"
        )
    write = _write_idx if name == "mnist" else _write_cifar
    write(pixels, labels, n_train, base)


def _as_bytes(values: Any, name: str, what: str) -> npt.NDArray[np.uint8]:
    """Return whole numbers from 0 to 255, given as numbers or as text, as bytes."""
    numbers = np.asarray(values).astype(np.float64)
    whole = numbers.astype(np.uint8)
    if not np.array_equal(whole, numbers):
        raise ValueError(f"data set {name!r}: OpenML sent {what} that are not bytes")
    return whole


def _write_idx(
    pixels: npt.NDArray[np.uint8], labels: npt.NDArray[np.uint8], n_train: int, base: Path
) -> None:
    """Write MNIST's four files."""
    folder = base / "mnist"
    folder.mkdir(parents=True, exist_ok=True)
    side = 28
    for part, rows in (("train", slice(n_train)), ("t10k", slice(n_train, None))):
        A, b = pixels[rows], labels[rows]
        with atomic_write(folder / f"{part}-images-idx3-ubyte", binary=True) as file:
            file.write(bytes((0, 0, 8, 3)) + struct.pack(">3I", len(A), side, side))
            file.write(A.tobytes())
        with atomic_write(folder / f"{part}-labels-idx1-ubyte", binary=True) as file:
            file.write(bytes((0, 0, 8, 1)) + struct.pack(">I", len(b)) + b.tobytes())


def _write_cifar(
    pixels: npt.NDArray[np.uint8], labels: npt.NDArray[np.uint8], n_train: int, base: Path
) -> None:
    """Write the six files of CIFAR-10's binary version."""
    folder = base / "cifar-10-batches-bin"
    folder.mkdir(parents=True, exist_ok=True)
    records = np.column_stack([labels, pixels])
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    parts = [*np.split(records[:n_train], 5), records[n_train:]]
    for name, part in zip(names, parts, strict=True):
        with atomic_write(folder / name, binary=True) as file:
            file.write(part.tobytes())
