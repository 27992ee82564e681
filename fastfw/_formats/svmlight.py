"""svmlight files, the text format of sparse data: ``label column:value column:value ...``."""

from __future__ import annotations

import bz2
import codecs
import gzip
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, fewer_classes_than_rows
from fastfw._messages import escape

_Part = tuple[FloatArray, IndexArray]

ENDINGS = (".svmlight", ".svm", ".libsvm")
"""How the names of such files end, before ``.gz`` or ``.bz2`` if they are packed."""


def is_svmlight(name: str) -> bool:
    """Tell by its ending whether a file should be read as svmlight."""
    return _bare(name).endswith(ENDINGS)


def _bare(name: str) -> str:
    return name.lower().removesuffix(".gz").removesuffix(".bz2")


def read_split(path: Path, dtype: np.dtype[Any]) -> tuple[_Part, _Part | None]:
    """Read a file, plain or packed, and the test part from ``<name>.t`` beside it if that is there.

    Features become dense, labels are numbered 0, 1, ... in increasing order of the file's. What is
    wrong with a file is a ValueError that names the line.
    """
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
        with ExitStack() as stack:
            opened = [stack.enter_context(_opened(file)) for file in files]
            parts = load_svmlight_files(opened, dtype=dtype)
    # Damage surfaces as several kinds of exception from the reader and from the unpackers.
    except Exception as error:
        for file in files:
            _refuse(file, dtype)
        names = " and ".join(str(file) for file in files)
        raise ValueError(f"{names}: not svmlight, or damaged ({escape(str(error), 200)})") from None
    for X, labels, file in zip(parts[::2], parts[1::2], files, strict=True):
        if not X.shape[0]:
            raise ValueError(f"{file}: holds no row")
        if not (np.isfinite(X.data).all() and np.isfinite(labels).all()):
            _refuse(file, dtype)
            raise ValueError(f"{file}: holds NaN or infinity, or a value beyond {dtype}")
    known, y = np.unique(parts[1], return_inverse=True)
    if len(known) == 1:
        raise ValueError(
            f"{path}: all {len(y)} rows have the label {known[0]:g}; at least two classes are "
            "wanted"
        )
    classes = [y.astype(np.intp), *(_numbered(labels, known, test) for labels in parts[3::2])]
    try:
        fewer_classes_than_rows(y)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    X = parts[0]
    try:
        _check_room(X)
        found = [(A.toarray(), own) for A, own in zip(parts[::2], classes, strict=True)]
    except MemoryError:
        raise MemoryError(
            f"{path}: {X.shape[0]} x {X.shape[1]} numbers do not fit into memory as a dense array"
            f"{_widest_line(path, X)}"
        ) from None
    return found[0], found[1] if len(found) > 1 else None


def _numbered(values: npt.NDArray[Any], known: npt.NDArray[Any], file: Path) -> IndexArray:
    """Return the place of each label among the known ones."""
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    strange = known[places] != values
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"{file}{_line_of(file, row)}: has the label {values[row]:g}, which no training row has"
        )
    return places.astype(np.intp)


def _check_room(X: Any) -> None:
    """Raise MemoryError for a matrix that is larger than the machine's memory as a dense array."""
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        if math.prod(X.shape) * X.dtype.itemsize > memory:
            raise MemoryError


def _widest_line(path: Path, X: Any) -> str:
    """Return which line has the last column, for a message; nothing if none of this file has."""
    if not X.nnz or X.indices.max() + 1 < X.shape[1]:
        return ""
    row = int(np.searchsorted(X.indptr, int(np.argmax(X.indices)), side="right")) - 1
    return f" (the last column is in{_line_of(path, row).removeprefix(',')})"


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """Open a file for reading, unpacked, behind the mark that some editors begin a text with."""
    unpack: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    with unpack(path, "rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            file.seek(0)
        yield file


# Where a fault is: only looked for when there is one


def _rows(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number of each line that holds a row, and its parts, as far as can be read."""
    with suppress(OSError, EOFError, zlib.error), _opened(path) as file:
        for number, line in enumerate(file, start=1):
            parts = line.partition(b"#")[0].split()
            if parts:
                yield number, parts


def _line_of(path: Path, row: int) -> str:
    """Return where a row stands, for a message; nothing if the file cannot be read again."""
    return next((f", line {number}" for i, (number, _) in enumerate(_rows(path)) if i == row), "")


def _refuse(path: Path, dtype: np.dtype[Any]) -> None:
    """Raise ValueError for the first line that is at fault, if there is one."""
    for number, parts in _rows(path):
        fault = _fault(parts, dtype)
        if fault:
            raise ValueError(f"{path}, line {number}: {fault}")


def _fault(parts: list[bytes], dtype: np.dtype[Any]) -> str:
    """Return what is wrong with a row; nothing if nothing is."""
    label, *features = parts
    if b"," in label:
        return f"several labels, {_text(label)}, where one is wanted"
    if b":" in label:
        return f"{_text(label)} stands where the label is wanted"
    if not math.isfinite(_number(label)):
        return f"has a label that is no finite number: {_text(label)}"
    if features and features[0].startswith(b"qid:"):
        del features[0]
    last = -1
    for feature in features:
        name, colon, value = feature.partition(b":")
        column = int(name) if name.lstrip(b"-").isdigit() and len(name) < 20 else None
        if not colon or column is None:
            return f"{_text(feature)} stands where column:value is wanted"
        if not 0 <= column < 2**31:
            return f"column {column}, where 1 to {2**31 - 1} are wanted"
        if column == last:
            return f"column {column} is given twice"
        if column < last:
            return f"column {column} follows {last}; columns must increase within a row"
        last = column
        if not abs(_number(value)) <= float(np.finfo(dtype).max):
            return (
                f"the value of column {column} is {_text(value)}: not a number, NaN, infinity or "
                f"beyond {dtype}"
            )
    return ""


def _number(text: bytes) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _text(part: bytes) -> str:
    return f"'{escape(part.decode('latin-1'))}'"
