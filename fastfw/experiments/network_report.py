"""A comparison on networks as a table, two CSV files and a picture."""

from __future__ import annotations

import csv
import os
from typing import Any

import numpy as np

from fastfw._files import atomic_write
from fastfw.experiments._text import counted, fixed_or_dash, number_or_nothing
from fastfw.experiments.comparison import standard_error
from fastfw.experiments.network import NetworkComparison, relative_suboptimality
from fastfw.experiments.plots import STYLES, new_figure, own_style, write_png

__all__ = [
    "format_network_table",
    "network_figure",
    "write_network_png",
    "write_network_summary",
    "write_trace_csv",
]

TRACE_COLUMNS = (
    "trial", "method", "round", "seconds", "loss", "accuracy", "test_accuracy", "gap", "least_gap",
)  # fmt: skip
SUMMARY_COLUMNS = (
    "method", "data", "hidden", "batch_size", "radius", "trials", "seed", "rounds",
    "gradient_evaluations", "seconds", "loss", "loss_standard_error", "suboptimality", "accuracy",
    "test_accuracy", "least_gap", "common_time", "loss_at_common_time",
    "loss_above_first_at_common_time", "loss_above_first_standard_error",
    "accuracy_at_common_time", "test_accuracy_at_common_time",
)  # fmt: skip


def _rows(result: NetworkComparison) -> list[dict[str, Any]]:
    """Return the summary's rows."""
    time = result.common_time
    first = result.runs[0].at(time, "losses")
    return [
        {
            "method": run.name,
            "data": result.data,
            "hidden": result.hidden,
            "batch_size": result.batch_size,
            "radius": result.radius,
            "trials": result.trials,
            "seed": result.seed,
            "rounds": run.rounds,
            "gradient_evaluations": run.evaluations,
            "seconds": float(np.median(run.seconds)),
            "loss": float(run.last("losses").mean()),
            "loss_standard_error": standard_error(run.last("losses")),
            "suboptimality": float(result.suboptimality(run).mean()),
            "accuracy": float(run.last("accuracies").mean()),
            "test_accuracy": float(run.last("test_accuracies").mean()),
            "least_gap": float(run.last("least_gaps").mean()),
            "common_time": time,
            "loss_at_common_time": float(run.at(time, "losses").mean()),
            "loss_above_first_at_common_time": float((run.at(time, "losses") - first).mean()),
            "loss_above_first_standard_error": standard_error(run.at(time, "losses") - first),
            "accuracy_at_common_time": float(run.at(time, "accuracies").mean()),
            "test_accuracy_at_common_time": float(run.at(time, "test_accuracies").mean()),
        }
        for run in result.runs
    ]


def format_network_table(result: NetworkComparison) -> str:
    """Return the table that ``fastfw compare --problem network`` prints."""
    lines = [
        f"network with {result.hidden} hidden units on {result.data}: batches of "
        f"{result.batch_size}, l1 balls of radius {result.radius:g}, "
        f"{counted(result.trials, 'trial')}",
        "",
        f"{'method':<10} {'rounds':>8} {'gradients':>10} {'seconds':>8} {'loss':>8} {'+-':>7} "
        f"{'subopt.':>8} {'train':>6} {'test':>6} {'gap':>8}",
    ]
    rows = _rows(result)
    for run, row in zip(result.runs, rows, strict=True):
        lines.append(
            f"{run.label:<10} {run.rounds:>8} {run.evaluations:>10} {row['seconds']:>8.3f} "
            f"{row['loss']:>8.4f} {fixed_or_dash(row['loss_standard_error'], 4):>7} "
            f"{row['suboptimality']:>8.4f} {fixed_or_dash(row['accuracy'], 3):>6} "
            f"{fixed_or_dash(row['test_accuracy'], 3):>6} {fixed_or_dash(row['least_gap'], 4):>8}"
        )
    first = result.runs[0].label
    lines += [
        "",
        "means over the trials, at the last point; seconds: median; gap: the smallest at the",
        "rounds evaluated; suboptimality is relative to the lowest loss that any method found",
        "",
        f"after {result.common_time:.3g} s of updates, which all methods reached:",
        "",
        f"{'method':<10} {'loss':>8} {'- ' + first:>12} {'+-':>7} {'train':>6} {'test':>6}",
    ]
    for run, row in zip(result.runs, rows, strict=True):
        lines.append(
            f"{run.label:<10} {row['loss_at_common_time']:>8.4f} "
            f"{row['loss_above_first_at_common_time']:>12.4f} "
            f"{fixed_or_dash(row['loss_above_first_standard_error'], 4):>7} "
            f"{fixed_or_dash(row['accuracy_at_common_time'], 3):>6} "
            f"{fixed_or_dash(row['test_accuracy_at_common_time'], 3):>6}"
        )
    return "\n".join([*lines, "", f"- {first}: the difference in the same trial"])


def write_trace_csv(result: NetworkComparison, path: str | os.PathLike[str]) -> None:
    """Write one row for each trial, method and round evaluated."""
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(TRACE_COLUMNS)
        for trial in range(result.trials):
            for run in result.runs:
                t = run.traces[trial]
                columns = [t.seconds, t.losses, t.accuracies, t.test_accuracies]
                columns += [t.gaps, t.least_gaps]
                for i, number in enumerate(t.rounds):
                    cells = ["" if c is None else repr(float(c[i])) for c in columns]
                    writer.writerow([trial, run.name, int(number), *cells])


def write_network_summary(result: NetworkComparison, path: str | os.PathLike[str]) -> None:
    """Write one row for each method, means over the trials; empty where nothing is known."""
    with atomic_write(path) as file:
        writer = csv.DictWriter(file, SUMMARY_COLUMNS, lineterminator="\n")
        writer.writeheader()
        for row in _rows(result):
            writer.writerow(
                {k: number_or_nothing(v) if isinstance(v, float) else v for k, v in row.items()}
            )


@own_style()
def network_figure(result: NetworkComparison) -> Any:
    """Draw suboptimality, accuracy and test accuracy by update time.

    Means over the trials, with bands of their standard errors; see `NetworkComparison`.

    Returns
    -------
    matplotlib.figure.Figure
        Drawn without a display; no global state of matplotlib is touched.
    """
    figure = new_figure(14, 4.4, dpi=150)
    panels = {
        "losses": "suboptimality",
        "accuracies": "training accuracy",
        "test_accuracies": "test accuracy",
    }
    for axes, (what, label) in zip(figure.subplots(1, 3), panels.items(), strict=True):
        for index, run in enumerate(result.runs):
            colour, dashes, marker = STYLES[index % len(STYLES)]
            values = [getattr(t, what) for t in run.traces]
            if any(v is None for v in values):
                continue
            curves = np.array(values)[:, 1:]
            if what == "losses":
                start = np.array(values)[:, :1]
                curves = relative_suboptimality(curves, start, result.lowest_loss)
            mean, time = curves.mean(axis=0), run.times[1:]
            axes.plot(
                time, mean, color=colour, linestyle=dashes,
                marker=marker, markersize=5, linewidth=1.8, label=run.label,
            )  # fmt: skip
            if len(curves) > 1:
                error = curves.std(axis=0, ddof=1) / len(curves) ** 0.5
                axes.fill_between(
                    time, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0
                )
        axes.set(xlabel="update time (s)", ylabel=label, xscale="log")
        if what == "losses":
            axes.set_yscale("log")
        axes.grid(True, color="0.9", linewidth=0.8)
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].legend(loc="best", frameon=False, handlelength=3.6)
    return figure


def write_network_png(result: NetworkComparison, path: str | os.PathLike[str]) -> None:
    """Write the picture."""
    write_png(network_figure(result), path)
