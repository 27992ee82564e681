"""Bars: a round by NumPy and by fastfw, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bench.compare.report import Result

NUMPY, FASTFW = "#9aa5b1", "#d1495b"
#: Pixels that the label of a time keeps from the ratio beside it, at least.
GAP = 12.0


def milliseconds(value: float) -> str:
    """Three figures, like "0.412 ms"."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:.{digits}f} ms"


def draw(results: Sequence[Result], path: str) -> None:
    """Write a picture of the times, on a logarithmic scale, with the ratios beside the bars.

    The side of fastfw is ``observe``, a batch at a time from Python as for NumPy.
    """
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    canvas = FigureCanvasAgg(bars(results))
    canvas.draw()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    pixels.quantize(64).save(path, format="png", optimize=True)


def bars(results: Sequence[Result]) -> Figure:
    """Return what `draw` writes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 0.85 + 0.42 * len(results)), dpi=100, layout="constrained")
    axes = figure.add_subplot()
    places = range(len(results))
    sides = (
        ([p - 0.2 for p in places], [r.numpy for r in results], NUMPY, "NumPy as written"),
        ([p + 0.2 for p in places], [r.observe for r in results], FASTFW, "fastfw"),
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
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_axisbelow(True)
    axes.grid(axis="x", color="#e5e5e5", linewidth=0.6)
    figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=9)
    _leave_room(axes, [time for result in results for time in (result.numpy, result.observe)])
    return figure


def _leave_room(axes: Axes, times: Sequence[float]) -> None:
    """Set the limits of the times so that all labels end left of all ratios.

    Labels keep their size in pixels whatever the limits are, so it is measured.
    """
    shortest, longest = min(times) / 2.0, max(times)
    axes.set_xlim(shortest, 2.0 * longest)
    axes.figure.draw_without_rendering()
    width = axes.get_window_extent().width
    labels = [text.get_window_extent() for text in axes.texts]
    ratios = [box.width for box in labels[len(times) :]]
    room = max(box.width for box in labels[: len(times)]) + max(ratios) + 2 * GAP
    axes.set_xlim(shortest, shortest * (longest / shortest) ** (width / (width - room)))
