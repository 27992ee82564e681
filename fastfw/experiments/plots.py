"""Pictures of results, drawn without a display and in a style of their own."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastfw._files import atomic_write
from fastfw._messages import printable
from fastfw.experiments.comparison import CompareResult, MethodResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["STYLES", "new_figure", "own_style", "regret_figure", "write_png", "write_regret_png"]

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
)


def _import_matplotlib() -> None:
    """Import Matplotlib whatever MPLBACKEND says: it may name what only a notebook has.

    Nothing but Agg is used here; for other pictures of this process the user's choice holds.
    """
    if "matplotlib" in sys.modules:
        return
    given = os.environ.pop("MPLBACKEND", None)
    try:
        import matplotlib
    finally:
        if given is not None:
            os.environ["MPLBACKEND"] = given
    if given:
        with contextlib.suppress(ValueError):
            matplotlib.rcParams["backend"] = given


@contextlib.contextmanager
def own_style() -> Iterator[None]:
    """Draw in Matplotlib's own style; the user's, which may want LaTeX, is as before afterwards."""
    _import_matplotlib()
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


def write_png(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure as a PNG file, which appears whole or not at all."""
    with own_style(), atomic_write(path, binary=True) as handle:
        figure.savefig(handle, format="png")


_SPACING = 0.11  # between markers, as a part of the axes' diagonal
_POINTS = 2000  # points a curve: more than a picture can show


def _draw(axes: Axes, x: Any, curves: Any, run: MethodResult, index: int, count: int) -> None:
    """Draw the mean of (trials, T) curves and a band of its standard error."""
    colour, dashes, marker = STYLES[index % len(STYLES)]
    trials, rounds = curves.shape
    shown = np.unique(np.linspace(0, rounds - 1, min(rounds, _POINTS)).astype(np.intp))
    mean = curves.mean(axis=0)[shown]
    axes.plot(
        x[shown],
        mean,
        color=colour,
        linestyle=dashes,
        linewidth=1.8,
        marker=marker,
        markersize=6,
        markeredgecolor="white",
        markeredgewidth=0.6,
        # Evenly spaced along the axes, and set off so that methods do not cover each other's.
        markevery=(0.02 + _SPACING * index / count, _SPACING) if len(shown) > 2 else None,
        label=run.method.label,
        zorder=3,
    )
    if trials > 1:
        band = (curves.std(axis=0, ddof=1) / np.sqrt(trials))[shown]
        axes.fill_between(
            x[shown], mean - band, mean + band, color=colour, alpha=0.22, linewidth=0, zorder=2
        )


def _draw_bounds(axes: Axes, result: CompareResult) -> None:
    """Draw regret and bounds on logarithmic axes: the bounds are larger by orders of magnitude."""
    rounds = np.arange(1, result.rounds + 1)
    for index, run in enumerate(result.methods):
        colour, _, marker = STYLES[index % len(STYLES)]
        mean = run.regret.mean(axis=0)
        # Regret may be negative; there the curve has a gap.
        axes.plot(rounds, np.where(mean > 0, mean, np.nan), color=colour, linewidth=1.8)
        if run.bound is not None:
            axes.plot(
                run.bound.rounds,
                run.bound.values,
                color=colour,
                linestyle="--",
                linewidth=1.4,
                marker=marker if len(run.bound.rounds) == 1 else None,
                markersize=8,
                label=f"{run.bound.theorem}, {run.method.label}: {run.bound.values[-1]:.2g} "
                f"after round {run.bound.rounds[-1]}",
            )
    axes.set(
        xlabel="round", ylabel="cumulative regret and bounds (nats)", xscale="log", yscale="log"
    )
    axes.margins(y=0.15)
    axes.legend(loc="best", frameon=False, handlelength=3.6, fontsize=9)


@own_style()
def regret_figure(result: CompareResult) -> Figure:
    """Draw cumulative regret by round and average regret by time.

    Parameters
    ----------
    result : CompareResult
        The outcome of `compare`.

    Returns
    -------
    matplotlib.figure.Figure
        Two panels: regret R_t against t, and R_t / t against the time that the updates took.
        Lines are means over the trials, bands their standard errors. Where methods have bounds, a
        third panel with logarithmic axes shows these beside the regret. No global state of
        matplotlib is touched and no display is needed.
    """
    bounded = any(run.bound is not None for run in result.methods)
    figure = new_figure(14 if bounded else 10, 4.4, dpi=150)
    by_round, by_time, *rest = figure.subplots(1, 3 if bounded else 2)
    count = len(result.methods)
    rounds = np.arange(1, result.rounds + 1)
    lowest = np.inf
    for index, run in enumerate(result.methods):
        average = run.regret / rounds
        lowest = min(lowest, float(average.mean(axis=0).min()))
        _draw(by_round, rounds, run.regret, run, index, count)
        _draw(by_time, run.seconds.mean(axis=0) * 1e3, average, run, index, count)
    for axes in rest:
        _draw_bounds(axes, result)
    for axes in (by_round, by_time, *rest):
        axes.grid(True, color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    by_round.set(xlabel="round", ylabel="cumulative regret (nats)", xlim=(0, result.rounds))
    by_round.legend(loc="best", frameon=False, handlelength=3.6)
    by_time.set(
        xlabel="time spent on updates (ms)",
        ylabel="average regret (nats per round)",
        xscale="log",
        # Regret may be negative where the comparator suits later rounds better than the first.
        yscale="log" if lowest > 0 else "linear",
    )
    trials = "1 trial"
    if result.trials > 1:
        trials = f"mean and standard error of {result.trials} trials"
    figure.suptitle(
        f"{printable(Path(result.data).name)}, {result.setting} setting: "
        f"batches of {result.batch_size}, radius {result.radius:g} ({trials})",
        fontsize=11,
        parse_math=False,  # a file's name may hold dollar signs
    )
    return figure


def write_regret_png(result: CompareResult | Figure, path: str | os.PathLike[str]) -> None:
    """Write `regret_figure` as a PNG file.

    Parameters
    ----------
    result : CompareResult or Figure
        The outcome of `compare`, or the figure if it has been drawn before.
    path : path-like
        The file; it appears whole or not at all.
    """
    write_png(regret_figure(result) if isinstance(result, CompareResult) else result, path)
