"""How results show themselves: tables in notebooks, and data frames."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt


def html_table(title: str, rows: Iterable[tuple[str, Any]]) -> str:
    """Return a table of names and values for a notebook."""
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td>{escape(str(value))}</td></tr>'
        for name, value in rows
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{cells}</tbody></table>"


def short(number: float) -> str:
    """Return a number with four significant digits."""
    return f"{number:.4g}"


def data_frame(columns: Mapping[str, npt.ArrayLike], index: npt.ArrayLike, name: str) -> Any:
    """Return a pandas data frame; without pandas the error says how to install it."""
    try:
        pandas = import_module("pandas")
    except ImportError as error:
        raise ImportError(
            "to_pandas() needs pandas, which is not installed: python -m pip install pandas"
        ) from error
    return pandas.DataFrame(dict(columns), index=pandas.Index(np.asarray(index), name=name))
