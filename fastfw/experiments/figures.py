"""The pictures of `reproduce`, in the paper's arrangement of panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fastfw.experiments.comparison import standard_error
from fastfw.experiments.plots import STYLES, new_figure, own_style
from fastfw.experiments.reproduction import Curve, Reproduction

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["reproduction_figure"]

_LABELS = {
    "regret": "regret (nats)",
    "cost": "time per round (ms)",
    "suboptimality": "suboptimality",
    "accuracy": "training accuracy",
    "test_accuracy": "test accuracy",
}
_BY_ROUND = ("regret",)
_POINTS = 400  # points a curve: more than a picture can show


@own_style()
def reproduction_figure(result: Reproduction) -> Figure:
    """Draw a figure of the paper.

    Parameters
    ----------
    result : Reproduction
        From `reproduce`.

    Returns
    -------
    matplotlib.figure.Figure
        Figures 1 and 2: a column for each data set, a row for each panel; figure 3 the other way
        round. Lines are means over the trials, bands their standard errors; where the
        comparator's certificate leaves more than a line's width open, the band reaches as far.
        Drawn without a display; no global state of matplotlib is touched.
    """
    panels = list(result.parts[0].panels)
    across = result.figure == "figure3"
    shape = (len(result.parts), len(panels)) if across else (len(panels), len(result.parts))
    figure = new_figure(4.6 * shape[1] + 0.4, 3.1 * shape[0] + 0.7, dpi=100)
    grid = figure.subplots(*shape, squeeze=False)
    for p, part in enumerate(result.parts):
        for q, panel in enumerate(panels):
            axes = grid[p][q] if across else grid[q][p]
            curves = part.panels.get(panel)
            if curves is None:  # no test data
                axes.set_visible(False)
                continue
            _draw(axes, panel, curves)
            if q == 0 or across:
                axes.set_title(part.title, fontsize=10, parse_math=False)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(len(labels), 2 * shape[1] + 1),
        frameon=False,
        handlelength=3.2,
        fontsize=9,
    )
    quick = ", cut short" if result.quick else ""
    trials = "1 trial" if result.trials == 1 else f"{result.trials} trials: means, standard errors"
    figure.suptitle(f"Figure {result.figure[-1]} ({trials}{quick})", fontsize=11)
    return figure


def _draw(axes: Axes, panel: str, curves: tuple[Curve, ...]) -> None:
    """Draw one panel."""
    axes.grid(True, color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylabel(_LABELS[panel])
    if panel == "cost":
        _draw_bars(axes, curves)
        return
    for index, curve in enumerate(curves):
        _draw_curve(axes, panel, curve, index, len(curves))
    if panel in _BY_ROUND:
        axes.set(xlabel="round", xlim=(0, int(curves[0].rounds[-1])))
        return
    axes.set(xlabel="time spent on updates (s)", xscale="log")
    if panel == "suboptimality":
        axes.set_yscale("log")


def _draw_bars(axes: Axes, curves: tuple[Curve, ...]) -> None:
    """Draw the time of a round as bars on a logarithmic axis."""
    for index, curve in enumerate(curves):
        mean, error = float(curve.final.mean()), standard_error(curve.final)
        error = 0.0 if np.isnan(error) else error
        axes.bar(
            index,
            mean,
            yerr=error or None,
            color=STYLES[index % len(STYLES)][0],
            width=0.65,
            ecolor="0.3",
            capsize=3,
        )
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


def _draw_curve(axes: Axes, panel: str, curve: Curve, index: int, count: int) -> None:
    """Draw the mean of the trials and its band."""
    colour, dashes, marker = STYLES[index % len(STYLES)]
    shown = np.unique(
        np.linspace(0, len(curve.rounds) - 1, min(len(curve.rounds), _POINTS)).astype(np.intp)
    )
    x: Any = curve.rounds[shown]
    if panel not in _BY_ROUND:
        seconds = np.median(curve.seconds, axis=0)[shown]  # one trial may have been held up
        shown, x = shown[seconds > 0], seconds[seconds > 0]  # the axis is logarithmic
    values, upper = curve.values[:, shown], curve.upper[:, shown]
    mean = values.mean(axis=0)
    many = len(shown) > 60
    axes.plot(
        x, mean, color=colour, linestyle=dashes, linewidth=1.6, marker=marker, markersize=5,
        markeredgecolor="white", markeredgewidth=0.5, label=curve.label, zorder=3,
        markevery=(0.02 + 0.11 * index / count, 0.11) if many else (index % 4, 4),
    )  # fmt: skip
    error = np.zeros(len(shown))
    if len(values) > 1:
        error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    low, high = mean - error, upper.mean(axis=0) + error
    if panel == "suboptimality":
        low = np.maximum(low, 0.5 * np.maximum(mean, 1e-12))  # the axis is logarithmic
    axes.fill_between(x, low, high, color=colour, alpha=0.2, linewidth=0, zorder=2)
