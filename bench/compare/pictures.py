"""The pictures: bars of times, and a roofline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from bench.compare.cases import Case
from bench.compare.turns import Limits, Times, ratio
from fastfw._plots import STYLES, new_figure, own_style, tidy

FASTFW, STACKED, NUMPY = STYLES[0], STYLES[1], ("#999999", "-", "s")
GREY = "#333333"


def milliseconds(value: float) -> str:
    """Three figures, like "0.412 ms"."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f} ms"


def note(axes: Axes, text: str, at: Any, off: Any, coordinates: Any = "data", **style: Any) -> None:
    """Write a small text, so many points off a place."""
    style = {"fontsize": 7.5, "color": GREY, **style}
    axes.annotate(text, at, off, coordinates, textcoords="offset points", **style)


# --- bars: a round by NumPy and by fastfw, case by case -------------------------------------------


@own_style()
def bars(results: Sequence[tuple[str, Times, Times]]) -> Figure:
    """Labels, and milliseconds by NumPy and by fastfw: medians, with ratios beside the bars.

    The side of fastfw is ``observe``, a batch at a time from Python as for NumPy.
    """
    labels, *times = zip(*results, strict=True)
    figure = new_figure(9.0, 0.85 + 0.42 * len(results), dpi=100)
    axes = figure.add_subplot()
    places = range(len(results))
    medians = np.array([[np.median(own) for own in side] for side in times])
    styles = ((-0.2, NUMPY[0], "NumPy as written"), (0.2, FASTFW[0], "fastfw"))
    for side, (off, colour, label) in zip(medians, styles, strict=True):
        drawn = axes.barh(np.add(places, off), side, height=0.38, color=colour, label=label)
        axes.bar_label(drawn, [*map(milliseconds, side)], padding=3, fontsize=7.5, color=GREY)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    for place, (_, numpy, own) in zip(places, results, strict=True):
        note(
            axes, f"{ratio(numpy, own):.1f} ×", (1.0, place), (-6, 0), ("axes fraction", "data"),
            ha="right", va="center", fontsize=10, weight="bold", color="black",
        )  # fmt: skip
    axes.set_yticks(list(places), labels, fontsize=9)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("milliseconds per round, one thread (logarithmic)")
    tidy(axes)
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=9)
    low, high = medians.min() / 2.0, medians.max()
    axes.set_xlim(low, high * (high / low) ** 0.4)  # labels end there, and ratios stand there
    return figure


# --- roofline: work over time, over work per byte ------------------------------------------------


@own_style()
def roofline(points: Sequence[tuple[Case, Any]], limits: dict[str, Limits]) -> Figure:
    """The roofline of each dtype, with a round of each shape, by milliseconds, below it."""
    figure = new_figure(9.0, 4.2, dpi=100)
    dtypes = list(dict.fromkeys(case.dtype for case, _ in points))
    sides = (
        ("run", FASTFW, "fastfw"),
        ("stacked", STACKED, "NumPy, stacked products"),
        ("written", NUMPY, "NumPy as written"),
    )
    all_axes = figure.subplots(1, len(dtypes), sharey=True, squeeze=False)[0]
    for axes, dtype in zip(all_axes, dtypes, strict=True):
        bandwidth, speed = limits[dtype]
        x = np.geomspace(0.5, 1500, 200)
        axes.plot(x, np.minimum(x * bandwidth, speed) / 1e9, color=GREY, linewidth=1.2)
        own = [(c, ms) for c, ms in points if c.dtype == dtype and c.shape.d >= 100]
        for k, (name, (colour, _, marker), label) in enumerate(sides):
            axes.scatter(
                [c.operations / c.batch_bytes * 1.06 ** (k - 1) for c, _ in own],
                [c.operations / ms[name] / 1e6 for c, ms in own],
                s=22, color=colour, marker=marker, label=label, alpha=0.85, linewidths=0,
            )  # fmt: skip
        for n, at in {c.shape.n_classes: c.operations / c.batch_bytes for c, _ in own}.items():
            note(axes, str(n), (at, 0.0), (0, 3), ("data", "axes fraction"), ha="center")
        note(axes, "classes:", (0.0, 0.0), (3, 3), "axes fraction")
        axes.set(xscale="log", yscale="log", title=dtype)
        axes.set_xlabel("operations of a round per byte of the batch")
        note(axes, f"reading {bandwidth / 1e9:.0f} GB/s", (0.5, speed / 1e9), (0, 9))
        note(axes, f"large product {speed / 1e9:.0f} GFLOP/s", (6.0, speed / 1e9), (0, 9))
        tidy(axes)
    all_axes[0].set_ylabel("GFLOP/s of the two products")
    low, high = all_axes[0].get_ylim()
    all_axes[0].set_ylim(low / 1.8, high * 1.3)
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    return figure
