"""MNIST and CIFAR-10 from OpenML, by scikit-learn, kept in the layout of their published files."""

from __future__ import annotations

import importlib.metadata
import os
import struct
import tempfile
from http.client import HTTPException
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import platformdirs

from fastfw._files import atomic_write
from fastfw._messages import escape

FETCHED = ("mnist", "cifar10")
"""What `fetch` knows."""

_TEST_ROWS = 10_000
#: By name: number on OpenML, training rows, pixels.
_OPENML = {"mnist": (554, 60_000, 28 * 28), "cifar10": (40_927, 50_000, 3 * 32 * 32)}


def cache_folder() -> Path | None:
    """Return the folder for fetched data in the user's for caches; None for a user without one."""
    try:
        folder = platformdirs.user_cache_path("fastfw", appauthor=False, opinion=False)
    except RuntimeError:
        return None
    # "~" stays as it is where nobody knows whose home it is
    return folder if folder.is_absolute() else None


def fetch(name: str, base: Path) -> None:
    """Fetch a data set of `FETCHED` and write its files, 55 or 184 MB, to a folder below `base`."""
    number, n_train, width = _OPENML[name]
    try:
        from sklearn.datasets import fetch_openml
    except ImportError as error:
        raise ImportError(
            f"data set {name!r} is fetched by scikit-learn, which cannot be imported ({error}): "
            "pip install scikit-learn"
        ) from None
    _check_writable(name, base)
    elsewhere = "or put its published files where the message without fetch=True says"
    parser = "pandas" if _pandas_parses() else "liac-arff"
    try:
        # Nothing stays in scikit-learn's own cache: the files written below are smaller.
        with tempfile.TemporaryDirectory() as scratch:
            bunch = fetch_openml(data_id=number, data_home=scratch, as_frame=False, parser=parser)
    except (OSError, HTTPException) as error:  # no network, or an answer that is none or half
        reason = escape(str(error) or type(error).__name__, 300)
        raise ConnectionError(
            f"data set {name!r} could not be fetched from OpenML ({reason}): "
            f"try again where there is a network, {elsewhere}"
        ) from None
    except MemoryError:
        raise
    # Unknown there, differs from its checksum, or damaged: a dozen kinds of exception.
    except Exception as error:
        raise ValueError(
            f"data set {name!r}: what OpenML sent cannot be used ({escape(str(error), 300)}): "
            f"try again later, {elsewhere}"
        ) from None
    pixels, labels = _as_bytes(bunch.data, name, "pixels"), _as_bytes(bunch.target, name, "labels")
    n = n_train + _TEST_ROWS
    if pixels.shape != (n, width) or labels.shape != (n,):
        raise ValueError(
            f"data set {name!r}: OpenML sent pixels of shape {pixels.shape} and labels of shape "
            f"{labels.shape}, where ({n}, {width}) and ({n},) are known"
        )
    if labels.max() > 9:
        raise ValueError(
            f"data set {name!r}: OpenML sent the label {labels.max()}; 0 to 9 are known"
        )
    write = _write_idx if name == "mnist" else _write_cifar
    write(pixels, labels, n_train, base)


def _pandas_parses() -> bool:
    """Whether pandas is there, and older than 3, with which scikit-learn 1.9 misreads labels."""
    try:
        return int(importlib.metadata.version("pandas").partition(".")[0]) < 3
    except importlib.metadata.PackageNotFoundError:
        return False


def _check_writable(name: str, base: Path) -> None:
    """Refuse a folder that files cannot go to, before they are fetched."""
    parent = next(folder for folder in (base, *base.absolute().parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise PermissionError(
            f"data set {name!r} would be kept in {base}, but {parent} takes no files: name another "
            "folder with root= or the environment variable FASTFW_DATA"
        )


def _as_bytes(values: Any, name: str, what: str) -> npt.NDArray[np.uint8]:
    """Return whole numbers from 0 to 255, given as numbers or as text, as bytes."""
    numbers = np.asarray(values)
    try:
        if numbers.dtype.kind not in "uif":
            numbers = numbers.astype(np.float64)
        with np.errstate(invalid="ignore"):
            whole = numbers.astype(np.uint8)
    except (TypeError, ValueError):
        whole = np.zeros(0, np.uint8)
    # Row by row, as CIFAR-10 takes 1.5 GB as it comes.
    if whole.shape != numbers.shape or not all(
        np.array_equal(a, b) for a, b in zip(whole, numbers, strict=True)
    ):
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
