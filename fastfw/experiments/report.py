"""A comparison as a table for people and as two CSV files for programs."""

import csv
import math
import os
from collections.abc import Iterable

from fastfw._files import atomic_write
from fastfw.experiments._text import counted, number_or_nothing
from fastfw.experiments.comparison import CompareResult, MethodResult, standard_error

__all__ = [
    "REGRET_COLUMNS",
    "SUMMARY_COLUMNS",
    "format_table",
    "write_regret_csv",
    "write_summary_csv",
]

REGRET_COLUMNS = ("trial", "method", "round", "loss", "regret", "seconds")
"""Columns of the file of curves: one row for each trial, method and round."""

SUMMARY_COLUMNS = (
    "method",
    "data",
    "setting",
    "rounds",
    "batch_size",
    "radius",
    "trials",
    "seed",
    "dtype",
    "preset",
    "step",
    "momentum",
    "eta",
    "ftpl_scale",
    "inner_steps",
    "sub_batch_size",
    "regret",
    "regret_standard_error",
    "regret_bound",
    "ms_per_round",
    "least_ms_per_round",
    "suboptimality",
    "nonzeros",
    "gradient_evaluations",
    "lmo_calls",
    "comparator_loss",
    "comparator_gap",
)
"""Columns of the summary: one row for each method, means over the trials."""


_WIDTH = 100  # columns of a line of the table's notes


def _decimals(values: Iterable[float], digits: int) -> int:
    """Return how many decimals show the smallest of `values` with `digits` significant digits."""
    sizes = [abs(value) for value in values if math.isfinite(value) and value != 0]
    return min(max(digits - 1 - math.floor(math.log10(min(sizes))), 0), 9) if sizes else 0


def _fixed(value: float, decimals: int, sign: str = "") -> str:
    """Return a number with so many decimals, without a sign before zero, short if it is huge."""
    if abs(value) >= 1e9:
        return f"{value:{sign}.3e}"
    return f"{round(value, decimals) + 0.0:{sign}.{decimals}f}"


def _regret_cells(result: CompareResult) -> list[str]:
    """Return ``mean +- error`` for each method, all to the same number of decimals."""
    means = [float(run.final_regret.mean()) for run in result.methods]
    errors = [standard_error(run.final_regret) for run in result.methods]
    decimals = min(max(_decimals(errors, 2), 1), 4)
    if not any(error > 0 for error in errors):  # NaN for one trial
        decimals = min(max(_decimals(means, 4), 1), 6)
    cells = [_fixed(mean, decimals) for mean in means]
    if result.trials == 1:
        return cells
    errors_as_text = [_fixed(error, decimals) for error in errors]
    width = max(len(text) for text in errors_as_text)
    return [f"{cell} +- {text:>{width}}" for cell, text in zip(cells, errors_as_text, strict=True)]


def format_table(result: CompareResult) -> str:
    """Lay the summary out as an aligned table, without the colours and boxes of a terminal.

    Parameters
    ----------
    result : CompareResult
        The outcome of `compare`.

    Returns
    -------
    str
        A line that says what was run, the table, and one on the comparator. Regret is in nats
        and comes with its standard error over the trials when there are at least two; the rest
        are means over the trials, times the median.
    """
    times = [run.ms_per_round for run in result.methods]
    decimals = _decimals(times, 3)
    rows = [("method", "regret (nats)", "ms/round", "suboptimality", "nonzeros")]
    for run, regret_cell, ms in zip(result.methods, _regret_cells(result), times, strict=True):
        rows.append(
            (
                run.method.label,
                regret_cell,
                f"{ms:.{decimals}f}",
                f"{run.suboptimality.mean():.2e}",
                f"{run.nonzeros.mean():.1f}",
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    rule = "  ".join("-" * width for width in widths)
    foot = [_comparator_line(result)]
    foot += [_bound_line(run) for run in result.methods if run.bound is not None]
    if result.trials > 1 and len(result.methods) > 1:
        foot.append(_difference_line(result))
    return "\n".join([_head(result), "", lines[0], rule, *lines[1:], "", *foot])


def _head(result: CompareResult) -> str:
    """Say what was run."""
    return (
        f"{result.data}, {result.setting} setting, preset {result.preset}\n"
        f"{counted(result.trials, 'trial')} of {counted(result.rounds, 'round')}, "
        f"batches of {result.batch_size}, "
        f"radius {result.radius:g}, {result.dtype}"
    )


def _comparator_line(result: CompareResult) -> str:
    """Say what regret is measured against and how sure that is."""
    best = result.comparator
    where = "training rows" if result.setting == "stochastic" else "rows played"
    return (
        f"comparator: best fixed decision for all {best.n_rows} {where}, "
        f"loss {best.value:.6f} nats,\nproved to be within {best.gap:.1e} nats of optimal "
        f"(relative gap {best.relative_gap:.1e})"
    )


def _bound_line(run: MethodResult) -> str:
    """Say what the theorem promises for the last round."""
    bound = run.bound
    assert bound is not None
    return (
        f"bound on {run.method.label}'s regret after round {bound.rounds[-1]}: "
        f"{bound.values[-1]:.3g} nats ({bound.theorem},\n"
        f"with probability {1 - bound.failure_probability:g})"
    )


def _difference_line(result: CompareResult) -> str:
    """Compare the first method with the others trial by trial.

    All methods see the same batches, so what a trial's batches do to all of them drops out.
    """
    first, *others = result.methods
    parts = []
    for run in others:
        difference = run.final_regret - first.final_regret
        error = standard_error(difference)
        decimals = min(max(_decimals([error], 2), 1), 4)
        parts.append(
            f"{run.method.label} {_fixed(float(difference.mean()), decimals, '+')} "
            f"+- {_fixed(error, decimals)}"
        )
    lines = [f"regret above {first.method.label}'s, trial by trial: {parts[0]}"]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 > _WIDTH:
            lines[-1] += ","
            lines.append(f"  {part}")
        else:
            lines[-1] += f", {part}"
    return "\n".join(lines)


def write_regret_csv(result: CompareResult, path: str | os.PathLike[str]) -> None:
    """Write the curves: `REGRET_COLUMNS`, one row for each trial, method and round.

    Parameters
    ----------
    result : CompareResult
        The outcome of `compare`.
    path : path-like
        The file; it appears whole or not at all.

    Notes
    -----
    Trials and rounds count from 1. ``loss`` is the loss of the decision played in that round,
    ``regret`` and ``seconds`` are cumulative. Floats are written so that reading them back gives
    the same bits.
    """
    with atomic_write(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(REGRET_COLUMNS)
        for trial in range(result.trials):
            for run in result.methods:
                curves = zip(
                    run.losses[trial].tolist(),
                    run.regret[trial].tolist(),
                    run.seconds[trial].tolist(),
                    strict=True,
                )
                writer.writerows(
                    (trial + 1, run.method.name, t, *values)
                    for t, values in enumerate(curves, start=1)
                )


def write_summary_csv(result: CompareResult, path: str | os.PathLike[str]) -> None:
    """Write the table and all that is needed to repeat it: `SUMMARY_COLUMNS`, one row a method.

    Parameters
    ----------
    result : CompareResult
        The outcome of `compare`.
    path : path-like
        The file; it appears whole or not at all.

    Notes
    -----
    Regret, suboptimality, nonzeros and the counts are means over the trials, ``ms_per_round`` is
    the median and ``least_ms_per_round`` that of the quickest trial. With one trial the standard
    error is left empty, as is ``regret_bound`` where none was asked for or none applies, and
    constants that a method does not have.
    """
    with atomic_write(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(SUMMARY_COLUMNS)
        for run in result.methods:
            writer.writerow(
                (
                    run.method.name,
                    result.data,
                    result.setting,
                    result.rounds,
                    result.batch_size,
                    result.radius,
                    result.trials,
                    result.seed,
                    result.dtype,
                    result.preset,
                    run.step,
                    run.momentum,
                    run.eta,
                    run.scale,
                    run.inner_steps,
                    run.sub_batch_size,
                    float(run.final_regret.mean()),
                    number_or_nothing(standard_error(run.final_regret)),
                    "" if run.bound is None else float(run.bound.values[-1]),
                    run.ms_per_round,
                    run.least_ms_per_round,
                    float(run.suboptimality.mean()),
                    float(run.nonzeros.mean()),
                    float(run.gradient_evaluations.mean()),
                    float(run.lmo_calls.mean()),
                    result.comparator.value,
                    result.comparator.gap,
                )
            )
