"""Tables of text, whose lines are printed as they are found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from fastfw.experiments.results import standard_error


class Columns:
    """Columns by their heads, each with a format such as ``"<26"`` or ``">9.4f"``."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self.formats = list(columns.values())
        self.head = self.line(*columns)

    def line(self, *cells: Any) -> str:
        """One line; texts, and what is not there (None), only have a column's width."""
        return "".join(map(_cell, cells, self.formats)).rstrip()


def _cell(value: Any, form: str) -> str:
    if value is None or isinstance(value, str):
        return format(value or "", re.match(r"[<>]\d+", form)[0])  # type: ignore[index]
    return format(value, form)


def marked(goal: float, met: bool) -> str:
    """A goal, with an exclamation mark where it is missed."""
    return f"{goal:g}{'' if met else ' !'}"


def mean_and_error(values: Any, mean: str, error: str) -> str:
    """The mean over trials and its standard error, in these formats."""
    return f"{np.mean(values):{mean}} ± {standard_error(values):{error}}"
