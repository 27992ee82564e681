"""The pictures: bars of times, and a roofline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.compare.turns import Limits, Result
from fastfw._plots import STYLES, new_figure, own_style, tidy

FASTFW, STACKED, NUMPY = STYLES[0], STYLES[1], ("#999999", "-", "s")


def milliseconds(value: float) -> str:
    """Three figures, like "0.412 ms"."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f} ms"


# --- bars: a round by NumPy and by fastfw, case by case -------------------------------------------


@own_style()
def bars(results: Sequence[Result]) -> Figure:
    """Times on a logarithmic scale, with the ratios beside the bars.

    The side of fastfw is ``observe``, a batch at a time from Python as for NumPy.
    """
    figure = new_figure(9.0, 0.85 + 0.42 * len(results), dpi=100)
    axes = figure.add_subplot()
    places = range(len(results))
    sides = (
        ([p - 0.2 for p in places], [r.numpy for r in results], NUMPY[0], "NumPy as written"),
        ([p + 0.2 for p in places], [r.observe for r in results], FASTFW[0], "fastfw"),
    )
    for where, times, colour, label in sides:
        axes.barh(where, times, height=0.38, color=colour, label=label)
        for y, value in zip(where, times, strict=True):
            axes.annotate(
                milliseconds(value), (value, y), (3, 0), textcoords="offset points",
                va="center", fontsize=7.5, color="#333333",
            )  # fmt: skip
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    for place, result in zip(places, results, strict=True):
        axes.annotate(
            f"{result.ratio_observe:.1f} ×", (1.0, place), (-6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", va="center", fontsize=10, weight="bold",
        )  # fmt: skip
    axes.set_yticks(list(places), [r.label for r in results], fontsize=9)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("milliseconds per round, one thread (logarithmic)")
    tidy(axes)
    axes.grid(False, axis="y")
    axes.spines["left"].set_visible(False)
    figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=9)
    times = [time for result in results for time in (result.numpy, result.observe)]
    low, high = min(times) / 2.0, max(times)
    axes.set_xlim(low, high * (high / low) ** 0.4)  # labels end there, and ratios stand there
    return figure


# --- roofline: work over time, over work per byte ------------------------------------------------


@own_style()
def roofline(points: Sequence[Any], limits: dict[str, Limits]) -> Figure:
    """The roofline of each dtype, with a round of each shape below it."""
    figure = new_figure(9.0, 4.2, dpi=100)
    dtypes = list(dict.fromkeys(p.dtype for p in points))
    sides = (
        ("run", FASTFW, "fastfw"),
        ("stacked", STACKED, "NumPy, stacked products"),
        ("written", NUMPY, "NumPy as written"),
    )
    all_axes = figure.subplots(1, len(dtypes), sharey=True, squeeze=False)[0]
    for axes, dtype in zip(all_axes, dtypes, strict=True):
        bandwidth, speed = limits[dtype]
        x = np.geomspace(0.5, 1500, 200)
        axes.plot(x, np.minimum(x * bandwidth, speed) / 1e9, color="#333333", linewidth=1.2)
        own = [p for p in points if p.dtype == dtype and p.d >= 100]
        for k, (name, (colour, _, marker), label) in enumerate(sides):
            axes.scatter(
                [p.intensity * 1.06 ** (k - 1) for p in own],
                [p.operations / getattr(p, name) / 1e6 for p in own],
                s=22, color=colour, marker=marker, label=label, alpha=0.85, linewidths=0,
            )  # fmt: skip
        for c in sorted({p.n_classes for p in own}):
            at = next(p.intensity for p in own if p.n_classes == c)
            axes.annotate(
                str(c), (at, 0.0), (0, 3), xycoords=("data", "axes fraction"),
                textcoords="offset points", ha="center", fontsize=7.5, color="#333333",
            )  # fmt: skip
        axes.annotate(
            "classes:", (0.0, 0.0), (3, 3), xycoords="axes fraction",
            textcoords="offset points", fontsize=7.5, color="#333333",
        )  # fmt: skip
        axes.set(xscale="log", yscale="log", title=dtype)
        axes.set_xlabel("operations of a round per byte of the batch")
        axes.annotate(
            f"reading {bandwidth / 1e9:.0f} GB/s", (0.5, speed / 1e9), (0, 9),
            textcoords="offset points", fontsize=7.5, ha="left",
        )  # fmt: skip
        axes.annotate(
            f"large product {speed / 1e9:.0f} GFLOP/s", (6.0, speed / 1e9), (0, 9),
            textcoords="offset points", fontsize=7.5, ha="left",
        )  # fmt: skip
        tidy(axes)
    all_axes[0].set_ylabel("GFLOP/s of the two products")
    low, high = all_axes[0].get_ylim()
    all_axes[0].set_ylim(low / 1.8, high * 1.3)
    handles, labels = all_axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False, fontsize=9)
    return figure
