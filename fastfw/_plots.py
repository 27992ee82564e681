"""How pictures are drawn: one palette, and Matplotlib imported when the first of them is."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Okabe and Ito's palette, told apart by the colour-blind; dashes and markers tell the methods apart
# in black and white as well. Ordered so that neighbours also differ in lightness.
STYLES: tuple[tuple[str, Any, str], ...] = (
    ("#0072B2", "-", "o"),
    ("#D55E00", (0, (5, 1.5)), "s"),
    ("#009E73", (0, (1.2, 1.2)), "^"),
    ("#000000", (0, (6, 1.5, 1.2, 1.5)), "D"),
    ("#CC79A7", (0, (3, 1.2)), "v"),
    ("#56B4E9", (0, (8, 2)), "P"),
    ("#E69F00", (0, (3, 1, 1, 1, 1, 1)), "X"),
    # for all methods at once, of Tol's palette
    ("#882255", "-", "<"),
    ("#999999", (0, (5, 1.5)), ">"),
    ("#332288", (0, (1.2, 1.2)), "*"),
    ("#999933", (0, (6, 1.5, 1.2, 1.5)), "h"),
    ("#88CCEE", (0, (3, 1.2)), "p"),
)

_SPACING = 0.11  # between markers, as a part of the axes' diagonal
_POINTS = 2000  # points a curve: more than a picture can show


def import_matplotlib() -> Any:
    """Import Matplotlib, or say what to install."""
    try:
        return import_module("matplotlib")
    except ImportError as error:
        raise ImportError(
            'drawing needs matplotlib, which is not installed: pip install "fastfw[plots]"'
        ) from error


# --- figures of our own, without a display -----------------------------------------------------


@contextlib.contextmanager
def own_style() -> Iterator[None]:
    """Draw in Matplotlib's own style; the user's, which may want LaTeX, is as before afterwards.

    MPLBACKEND may name what only a notebook has. Nothing but Agg is used here; for other pictures
    of this process the user's choice holds.
    """
    if "matplotlib" not in sys.modules:
        given = os.environ.pop("MPLBACKEND", None)
        try:
            matplotlib = import_matplotlib()
        finally:
            if given is not None:
                os.environ["MPLBACKEND"] = given
        if given:
            with contextlib.suppress(ValueError):
                matplotlib.rcParams["backend"] = given
    import_matplotlib()
    from matplotlib import style

    with style.context("default"):
        yield


def new_figure(width: float, height: float, dpi: int) -> Figure:
    """Return an empty figure that needs no display; within `own_style`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


# --- on axes -----------------------------------------------------------------------------------


def axes_of(ax: Axes | None) -> Axes:
    """Return the axes to draw on: those given, or new ones in which no text is cut."""
    if ax is not None:
        if not hasattr(ax, "set_xlabel"):
            raise TypeError(
                "ax must be matplotlib axes, such as plt.subplots()[1], or None for new ones, but "
                f"it is {describe(ax)}"
            )
        return ax
    import_matplotlib()
    pyplot: Any = import_module("matplotlib.pyplot")
    made: Axes = pyplot.subplots(layout="constrained")[1]
    tidy(made)
    return made


def tidy(axes: Axes) -> None:
    """Draw a light grid behind, and no frame."""
    axes.grid(True, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def draw(
    axes: Axes, x: Any, curves: Any, label: str | None, index: int | None = None,
    count: int = len(STYLES), upper: Any = None, positive: bool = False,
) -> Line2D:  # fmt: skip
    """Draw the mean of (trials, k) curves, and a band of its standard error.

    The style is that of `index` among `count`, by default the first whose colour the axes have not.
    The band reaches as far up as that of `upper`; where only what is positive can be shown, no
    lower than half the mean.
    """
    if index is None:
        there = {line.get_color() for line in axes.lines}
        index = next((i for i, style in enumerate(STYLES) if style[0] not in there), 0)
    colour, dashes, marker = STYLES[index % len(STYLES)]
    places = np.unique(np.linspace(0, len(x) - 1, min(len(x), _POINTS)).astype(np.intp))
    error, top = np.zeros(len(x)), curves if upper is None else upper
    if len(curves) > 1:
        error = curves.std(axis=0, ddof=1) / np.sqrt(len(curves))
    x, mean, error, top = (
        x[places],
        *(a[places] for a in (curves.mean(axis=0), error, top.mean(axis=0))),
    )
    (line,) = axes.plot(
        x, mean, color=colour, linestyle=dashes, linewidth=1.8, marker=marker, markersize=6,
        markeredgecolor="white", markeredgewidth=0.6, label=label, zorder=3,
        # Evenly spaced along the axes, and set off so that methods do not cover each other's.
        markevery=(0.02 + _SPACING * index / count, _SPACING) if len(places) > 2 else None,
    )  # fmt: skip
    if len(curves) > 1 or upper is not None:
        low = np.maximum(mean - error, 0.5 * np.maximum(mean, 1e-12)) if positive else mean - error
        axes.fill_between(x, low, top + error, color=colour, alpha=0.22, linewidth=0, zorder=2)
    return line


def draw_curve(
    ax: Axes | None, x: npt.ArrayLike, y: npt.ArrayLike, label: str | None, xlabel: str,
    ylabel: str, upper: npt.ArrayLike | None = None,
) -> Axes:  # fmt: skip
    """Draw one curve of a result, with a legend where it has a name."""
    ax = axes_of(ax)
    draw(
        ax, np.asarray(x), np.asarray(y)[np.newaxis], label,
        upper=None if upper is None else np.asarray(upper)[np.newaxis],
    )  # fmt: skip
    ax.set(xlabel=xlabel, ylabel=ylabel)
    if label is not None:
        ax.legend(frameon=False, handlelength=3.6)
    return ax


def draw_losses(
    losses: npt.NDArray[np.float64], ax: Axes | None, label: str | None, unit: str
) -> Axes:
    """Draw losses by round, and their running mean."""
    rounds = np.arange(1, len(losses) + 1)
    mean = np.cumsum(losses) / rounds
    ax = draw_curve(ax, rounds, mean, label or "mean so far", unit, "loss")
    colour = ax.lines[-1].get_color()
    ax.plot(rounds, losses, color=colour, alpha=0.3, linewidth=0.8, zorder=1)
    return ax


def draw_weights(
    ax: Axes | None, weights: npt.NDArray[Any], shape: tuple[int, int] | None,
    names: Sequence[str], top: int, unit: str,
) -> Axes:  # fmt: skip
    """Draw weights as an image, or the largest of them as bars beside their names.

    The unit is what the weights are called below.
    """
    ax = axes_of(ax)
    if shape is not None:
        largest = np.abs(weights).max() or 1.0
        ax.imshow(weights.reshape(shape), cmap="RdBu", vmin=-largest, vmax=largest)
        ax.grid(False)
        ax.set(xticks=[], yticks=[], xlabel=unit)
        return ax
    order = np.argsort(-np.abs(weights), kind="stable")[:top]
    order = order[weights[order] != 0]
    order = order[np.argsort(-weights[order], kind="stable")]
    colours = [STYLES[0][0] if w > 0 else STYLES[1][0] for w in weights[order]]
    places = np.arange(len(order))
    ax.barh(places, weights[order], color=colours, height=0.7)
    # Long names go over several lines, and dollar signs are no formulas.
    labels = [textwrap.fill(names[j], 30) for j in order]
    ax.set_yticks(places, labels, parse_math=False)
    ax.axvline(0.0, color="0.3", linewidth=0.8)
    ax.invert_yaxis()
    ax.set(xlabel=unit)
    return ax
