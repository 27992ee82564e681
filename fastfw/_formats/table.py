"""CSV files: a line for each row, a column of labels beside columns of numbers."""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._messages import escape

ENDINGS = (".csv", ".tsv")
"""How the names of such files end."""

_RECIPE = "drop such rows, or fill gaps and number words, say with a pipeline of scikit-learn"


def read_table(
    path: Path, label: str | None, dtype: np.dtype[Any]
) -> tuple[FloatArray, IndexArray]:
    """Read features and labels; those are in the named column, by default the last one.

    Without a line of names columns are named 1, 2, .... Labels, words or numbers, are numbered from
    0 in increasing order. What is wrong is a ValueError that names line and column.
    """
    numbers, words = array("d"), list[str]()
    try:
        lines = _lines(path)
        line, first = next(lines, (0, []))
        if len(first) < 2:
            raise ValueError(f"{path}: no columns between commas, semicolons or tabs")
        names = [cell.strip() for cell in first]
        if not _are_names(names):
            names = [str(number) for number in range(1, len(first) + 1)]
            lines = _lines(path)
        place = _place(names, label, path)
        for line, row in lines:
            if len(row) != len(names):
                raise ValueError(
                    f"{path}, line {line}: {len(row)} cells, where {len(names)} are wanted"
                )
            word = row.pop(place).strip()
            if not word:
                raise ValueError(f"{path}, line {line}, column {names[place]!r}: no label")
            words.append(word)
            try:
                numbers.extend(map(float, row))
            except ValueError:
                raise _refused(path, line, names, place, row) from None
            if not all(map(math.isfinite, numbers[-len(row) :])):
                raise _refused(path, line, names, place, row)
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: no CSV file in UTF-8, or damaged ({error})") from None
    if not words:
        raise ValueError(f"{path}: holds no row")
    with np.errstate(over="ignore"):
        X = np.array(numbers).reshape(len(words), -1).astype(dtype)
    if not np.isfinite(X).all():
        raise ValueError(f"{path}: holds a number beyond {X.dtype}")
    labels: npt.NDArray[Any] = np.array(words)
    if all(map(_is_number, words)):
        labels = labels.astype(np.float64)
    classes, y = np.unique(labels, return_inverse=True)
    column = f"{path}: column {names[place]!r}"
    if len(classes) == 1:
        raise ValueError(
            f"{column} has one label only, '{escape(words[0])}'; at least two classes are wanted"
        )
    if 2 * len(classes) > len(y) and labels.dtype.kind == "f" and (classes % 1 != 0).any():
        raise ValueError(
            f"{column} holds {len(classes)} different numbers in {len(y)} rows, which are no "
            "classes; name the column of labels"
        )
    return X, y.astype(np.intp)


def _lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not empty."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        head = file.readline()
        file.seek(0)
        rows = csv.reader(file, delimiter=max(",;\t", key=head.count))
        for row in rows:
            if row:
                yield rows.line_num, row


def _are_names(first: list[str]) -> bool:
    """Whether a first line names the columns, by words, or by 0, 1, ... beside that of labels."""
    numbers = [cell for cell in first if _is_number(cell)]
    return not numbers or numbers == [str(k) for k in range(len(first) - 1)]


def _place(names: list[str], label: str | None, path: Path) -> int:
    """Return which column holds the labels."""
    if label is None:
        return len(names) - 1
    if names.count(label) != 1:
        raise ValueError(
            f"label: {path} has {names.count(label) or 'no'} column {label!r}; there are "
            f"{escape(', '.join(names), 200)}"
        )
    return names.index(label)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _refused(path: Path, line: int, names: list[str], place: int, row: list[str]) -> ValueError:
    """Return the error for the first cell of a row that is no finite number."""
    columns = names[:place] + names[place + 1 :]
    column, cell = next(
        pair
        for pair in zip(columns, row, strict=True)
        if not (_is_number(pair[1]) and math.isfinite(float(pair[1])))
    )
    what = f"'{escape(cell)}' is no finite number" if cell.strip() else "the cell is empty"
    return ValueError(f"{path}, line {line}, column {escape(column)!r}: {what}; {_RECIPE}")
