"""How results show themselves: tables in notebooks, data frames, pictures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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


def axes_of(ax: Axes | None) -> Axes:
    """Return the axes to draw on: those given, or new ones."""
    if ax is not None:
        if not hasattr(ax, "set_xlabel"):
            raise TypeError(
                "ax must be matplotlib axes, such as plt.subplots()[1], or None for new ones, but "
                f"it is {shown(ax)}"
            )
        return ax
    pyplot: Any = import_module("matplotlib.pyplot")
    made: Axes = pyplot.subplots()[1]
    return made


def draw_losses(
    losses: npt.NDArray[np.float64], ax: Axes | None, label: str | None, unit: str
) -> Axes:
    """Draw losses by round, and their running mean."""
    ax = axes_of(ax)
    rounds = np.arange(1, len(losses) + 1)
    (line,) = ax.plot(
        rounds, np.cumsum(losses) / rounds, linewidth=1.8, label=label or "mean so far"
    )
    ax.plot(rounds, losses, color=line.get_color(), alpha=0.3, linewidth=0.8, zorder=1)
    ax.set_xlabel(unit)
    ax.set_ylabel("loss")
    ax.legend()
    return ax
