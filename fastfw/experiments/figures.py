"""Pictures of results, drawn without a display and in a style of their own."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fastfw._files import atomic_write
from fastfw._messages import printable
from fastfw._plots import STYLES, draw, new_figure, own_style, tidy
from fastfw.experiments.results import (
    CompareResult,
    Curve,
    NetworkComparison,
    Part,
    Reproduction,
    standard_error,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["regret_figure", "write_regret_png"]

# --- how all are drawn ------------------------------------------------------------------------


def write_png(figure: Figure, path: str | os.PathLike[str], *, palette: bool = False) -> None:
    """Write a figure as a PNG file, which appears whole or not at all.

    A palette of 256 colours is plenty and makes a third of the size.
    """
    drawn = io.BytesIO()
    with own_style():
        figure.savefig(drawn, format="png")
    with atomic_write(path, binary=True) as handle:
        if palette:
            from PIL import Image  # Matplotlib writes its pictures with it

            with Image.open(drawn) as picture:
                picture.convert("RGB").quantize(256).save(handle, format="png", optimize=True)
        else:
            handle.write(drawn.getvalue())


# --- compare ----------------------------------------------------------------------------------


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
        label = run.method.label
        draw(by_round, rounds, run.regret, label, index, count)
        draw(by_time, run.seconds.mean(axis=0) * 1e3, average, label, index, count)
    for axes in rest:
        _draw_bounds(axes, result)
    for axes in figure.axes:
        tidy(axes)
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
                run.bound.rounds, run.bound.values, color=colour, linestyle="--", linewidth=1.4,
                marker=marker if len(run.bound.rounds) == 1 else None, markersize=8,
                label=f"{run.bound.theorem}, {run.method.label}: {run.bound.values[-1]:.2g} "
                f"after round {run.bound.rounds[-1]}",
            )  # fmt: skip
    axes.set(
        xlabel="round", ylabel="cumulative regret and bounds (nats)", xscale="log", yscale="log"
    )
    axes.margins(y=0.15)
    axes.legend(loc="best", frameon=False, handlelength=3.6, fontsize=9)


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


# --- networks, and the paper's figures ---------------------------------------------------------

_LABELS = {
    "regret": "regret (nats)",
    "cost": "time per round (ms)",
    "suboptimality": "suboptimality",
    "accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
}


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials: means, standard errors"


def network_figure(result: NetworkComparison) -> Figure:
    """Draw suboptimality, accuracy and test accuracy by update time."""
    title = f"network with {result.hidden} hidden units ({_trials(result.trials)})"
    return parts_figure([result], title, across=True)


def reproduction_figure(result: Reproduction) -> Figure:
    """Draw a figure of the paper.

    Figures 1 and 2 have a column for each data set and a row for each panel, figure 3 the other way
    round.
    """
    quick = ", cut short" if result.quick else ""
    title = f"Figure {result.figure[-1]} ({_trials(result.trials)}{quick})"
    return parts_figure(result.parts, title, across=result.figure == "figure3")


@own_style()
def parts_figure(parts: Sequence[Part | NetworkComparison], title: str, *, across: bool) -> Figure:
    """Draw all panels of all parts: means over the trials, with bands of their standard errors.

    A part is a column, or a row where it goes across. Where the comparator's certificate leaves
    more than a line's width open, bands reach as far.
    """
    panels = list(parts[0].panels)
    shape = (len(parts), len(panels)) if across else (len(panels), len(parts))
    figure = new_figure(4.6 * shape[1] + 0.4, 3.1 * shape[0] + 0.7, dpi=100)
    grid = figure.subplots(*shape, squeeze=False)
    for p, part in enumerate(parts):
        for q, panel in enumerate(panels):
            axes = grid[p][q] if across else grid[q][p]
            curves = part.panels.get(panel)
            if curves is None:  # no test data
                axes.set_visible(False)
                continue
            _draw_panel(axes, panel, curves)
            if q == 0 or across:
                axes.set_title(printable(part.title), fontsize=10, parse_math=False)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(len(labels), 2 * shape[1] + 1),
        frameon=False, handlelength=3.2, fontsize=9,
    )  # fmt: skip
    figure.suptitle(title, fontsize=11)
    return figure


def _draw_panel(axes: Axes, panel: str, curves: tuple[Curve, ...]) -> None:
    """Draw one panel."""
    tidy(axes)
    axes.set_ylabel(_LABELS[panel])
    if panel == "cost":
        _draw_bars(axes, curves)
        return
    positive = panel == "suboptimality"
    for index, curve in enumerate(curves):
        x: Any = curve.rounds
        if panel != "regret":
            x = np.median(curve.seconds, axis=0)  # one trial may have been held up
        some = x > 0  # the axis may be logarithmic
        draw(
            axes, x[some], curve.values[:, some], curve.label, index, len(curves),
            curve.upper[:, some], positive,
        )  # fmt: skip
    if panel == "regret":
        axes.set(xlabel="round", xlim=(0, int(curves[0].rounds[-1])))
        return
    axes.set(xlabel="time spent on updates (s)", xscale="log")
    if positive:
        axes.set_yscale("log")


def _draw_bars(axes: Axes, curves: tuple[Curve, ...]) -> None:
    """Draw the time of a round as bars on a logarithmic axis."""
    for index, curve in enumerate(curves):
        mean, error = float(curve.final.mean()), standard_error(curve.final)
        error = 0.0 if np.isnan(error) else error
        axes.bar(
            index, mean, yerr=error or None, color=STYLES[index % len(STYLES)][0], width=0.65,
            ecolor="0.3", capsize=3,
        )  # fmt: skip
        axes.annotate(
            f"{mean:.3g}", (index, mean + error), ha="center", va="bottom",
            xytext=(0, 4), textcoords="offset points", fontsize=8,
        )  # fmt: skip
    axes.set_yscale("log")
    axes.margins(y=0.15)
    axes.set_xticks(
        range(len(curves)), [curve.label for curve in curves], fontsize=8, rotation=15, ha="right",
        rotation_mode="anchor",
    )  # fmt: skip
