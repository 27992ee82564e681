"""svmlight files, the text format of sparse data: ``label column:value column:value ...``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import IndexArray

__all__ = ["ENDINGS", "is_svmlight", "read_svmlight"]

ENDINGS = (".svmlight", ".svm", ".libsvm")
"""How the names of such files end, before ``.gz`` or ``.bz2`` if they are packed."""


def is_svmlight(name: str) -> bool:
    """Tell by its ending whether a file should be read as svmlight.

    >>> is_svmlight("a1a.svm.bz2"), is_svmlight("a1a.npz")
    (True, False)
    """
    return _bare(name).endswith(ENDINGS)


def _bare(name: str) -> str:
    return name.lower().removesuffix(".gz").removesuffix(".bz2")


def read_svmlight(
    path: Path, dtype: np.dtype[Any]
) -> tuple[Any, IndexArray, Any | None, IndexArray | None]:
    """Read a file, and the test part from ``<name>.t`` beside it if that is there.

    Parameters
    ----------
    path : Path
        The file of training data, plain or packed by gzip or bzip2.
    dtype : dtype
        Of the features.

    Returns
    -------
    X, y, X_test, y_test
        Sparse (CSR) features; labels numbered 0, 1, ... in increasing order of the file's.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ImportError
        If scikit-learn, whose reader is used, is not installed.
    ValueError
        If a file is damaged, holds several labels a row, or the test part has a label that the
        training part has not.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    try:
        from sklearn.datasets import load_svmlight_files
    except ImportError as error:
        raise ImportError(
            f"{path}: svmlight files are read by scikit-learn, which cannot be imported ({error}): "
            "pip install scikit-learn"
        ) from None
    packed = path.name[len(_bare(path.name)) :]
    test = path.with_name(f"{path.name[: len(_bare(path.name))]}.t{packed}")
    files = [path, *([test] if test.is_file() else [])]
    try:
        parts = load_svmlight_files([str(file) for file in files], dtype=dtype)
    # Damage surfaces as several kinds of exception from the reader and from the unpackers.
    except Exception as error:
        names = " and ".join(str(file) for file in files)
        raise ValueError(f"{names}: not svmlight, or damaged ({error})") from None
    for X, file in zip(parts[::2], files, strict=True):
        if not X.shape[0]:
            raise ValueError(f"{file}: holds no row")
        if not np.isfinite(X.data).all():
            raise ValueError(f"{file}: holds NaN or infinity, or a value beyond {dtype}")
    for labels, file in zip(parts[1::2], files, strict=True):
        if not np.isfinite(labels).all():
            raise ValueError(f"{file}: has a label that is NaN or infinite")
    known, y = np.unique(parts[1], return_inverse=True)
    if len(parts) == 2:
        return parts[0], y.astype(np.intp), None, None
    return parts[0], y.astype(np.intp), parts[2], _numbered(parts[3], known, test)


def _numbered(values: npt.NDArray[Any], known: npt.NDArray[Any], file: Path) -> IndexArray:
    """Return the place of each label among the known ones."""
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    strange = known[places] != values
    if strange.any():
        raise ValueError(
            f"{file}: has the label {values[np.argmax(strange)]:g}, which no training row has"
        )
    return places.astype(np.intp)
