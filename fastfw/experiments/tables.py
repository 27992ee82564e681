"""Results as tables for people and as CSV files for programs."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fastfw import _checks
from fastfw._files import atomic_write
from fastfw.experiments.claims import find, paired
from fastfw.experiments.methods import find_methods
from fastfw.experiments.results import (
    CompareResult,
    Curve,
    GridPoint,
    GridSearch,
    MethodResult,
    NetworkComparison,
    Part,
    Reproduction,
    standard_error,
)
from fastfw.learners._method import Pair

__all__ = [
    "format_grid",
    "format_network_table",
    "format_table",
    "write_grid_csv",
    "write_regret_csv",
    "write_summary_csv",
]

StrPath = str | os.PathLike[str]


# --- numbers, tables, files -------------------------------------------------------------------


def counted(number: int, noun: str) -> str:
    """Return a number and its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _dash(value: float, decimals: int) -> str:
    """Return a number for a table; what is not known, such as one trial's error, is a dash."""
    return "-" if math.isnan(value) else f"{value:.{decimals}f}"


def _cell(value: float) -> float | str:
    """Return a number for a CSV file, where a cell is left empty for what is not known."""
    return "" if math.isnan(value) else value


def _aligned(rows: Sequence[Sequence[str]], left: int = 0) -> list[str]:
    """Return the lines of a table, columns set flush right, the first few flush left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i < left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _write_csv(path: StrPath, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a CSV file, which appears whole or not at all; floats keep their bits."""
    with atomic_write(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


# --- compare ----------------------------------------------------------------------------------

REGRET_COLUMNS = ("trial", "method", "round", "loss", "regret", "seconds")
"""Columns of the file of curves: one row for each trial, method and round."""

SUMMARY_COLUMNS = (
    "method", "data", "setting", "rounds", "batch_size", "radius", "trials", "seed", "dtype",
    "preset", "step", "momentum", "eta", "ftpl_scale", "inner_steps", "sub_batch_size", "regret",
    "regret_standard_error", "regret_bound", "ms_per_round", "least_ms_per_round",
    "suboptimality", "nonzeros", "gradient_evaluations", "lmo_calls", "comparator_loss",
    "comparator_gap", "test_accuracy",
)  # fmt: skip
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
        are means over the trials, times the median. Where momenta are theory's, a line says what
        that means.
    """
    times = [run.ms_per_round for run in result.methods]
    decimals = _decimals(times, 3)
    weights = result.n_classes * result.n_features
    tested = ["test accuracy"] if result.methods[0].test_accuracy is not None else []
    head = ["method", "regret (nats)", "ms/round", "suboptimality", f"nonzeros of {weights}"]
    rows = [head + tested]
    for run, regret, ms in zip(result.methods, _regret_cells(result), times, strict=True):
        means = [f"{run.suboptimality.mean():.2e}", f"{run.nonzeros.mean():.1f}"]
        if run.test_accuracy is not None:
            means.append(f"{run.test_accuracy.mean():.4f}")
        rows.append([run.method.label, regret, f"{ms:.{decimals}f}", *means])
    header, *lines = _aligned(rows, left=1)
    rule = "  ".join("-" * max(map(len, column)) for column in zip(*rows, strict=True))
    best = result.comparator
    where = "training rows" if result.setting == "stochastic" else "rows played"
    foot = [] if result.trials == 1 else ["+-: standard error of the mean over the trials"]
    foot += [
        f"comparator: best fixed decision for all {best.n_rows} {where}, "
        f"loss {best.value:.6f} nats,",
        f"proved to be within {best.gap:.1e} nats of optimal "
        f"(relative gap {best.relative_gap:.1e})",
    ]
    if best.inside:
        foot += ["it lies inside the set: larger radii have the same best loss"]
    for run in result.methods:
        if run.bound is not None:
            foot += [
                f"bound on {run.method.label}'s regret after round {run.bound.rounds[-1]}: "
                f"{run.bound.values[-1]:.3g} nats ({run.bound.theorem},",
                f"with probability {1 - run.bound.failure_probability:g})",
            ]
    if result.trials > 1 and len(result.methods) > 1:
        foot += _differences(result)
    guaranteed = [run for run in result.methods if result.setting in run.method.guarantees]
    if any(run.momentum == "theory" for run in guaranteed):
        foot += [
            "momentum is theory's: constants with a guarantee, not the fastest ones; see also "
            "--momentum 1,2/3",
            "or search with fastfw tune",
        ]
    return "\n".join(
        [
            f"{result.data}, {result.setting} setting, preset {result.preset}",
            f"{counted(result.trials, 'trial')} of {counted(result.rounds, 'round')}, batches of "
            f"{result.batch_size}, radius {result.radius:g}, {result.dtype}",
            "", header, rule, *lines, "", *foot,
        ]
    )  # fmt: skip


def _differences(result: CompareResult) -> list[str]:
    """Compare the first method with the others trial by trial.

    All methods see the same batches, so what a trial's batches do to all of them drops out.
    """
    first, *others = result.methods
    parts = []
    for run in others:
        mean, error = paired(first.final_regret, run.final_regret)
        decimals = min(max(_decimals([error], 2), 1), 4)
        parts.append(
            f"{run.method.label} {_fixed(mean, decimals, '+')} +- {_fixed(error, decimals)}"
        )
    lines = [f"regret above {first.method.label}'s, trial by trial: {parts[0]}"]
    for part in parts[1:]:
        if len(lines[-1]) + len(part) + 3 > _WIDTH:
            lines[-1] += ","
            lines.append(f"  {part}")
        else:
            lines[-1] += f", {part}"
    return lines


def write_regret_csv(result: CompareResult, path: StrPath) -> None:
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

    def rows() -> Iterator[Sequence[Any]]:
        for trial in range(result.trials):
            for run in result.methods:
                curves = (run.losses[trial], run.regret[trial], run.seconds[trial])
                for t, values in enumerate(zip(*(c.tolist() for c in curves), strict=True), 1):
                    yield (trial + 1, run.method.name, t, *values)

    _write_csv(path, REGRET_COLUMNS, rows())


def write_summary_csv(result: CompareResult, path: StrPath) -> None:
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
    the median and ``least_ms_per_round`` that of the quickest trial. ``eta`` is RegularizedOFW's
    c, ``ftpl_scale`` that of FTPL. With one trial the standard error is left empty, as is
    ``regret_bound`` where none was asked for or none applies, and constants that a method does
    not have. ``test_accuracy`` is empty without test data.
    """

    def row(run: MethodResult) -> Sequence[Any]:
        scales = ("", run.scale) if run.method.meta else (run.scale, "")
        bound = "" if run.bound is None else float(run.bound.values[-1])
        return (
            run.method.name, result.data, result.setting, result.rounds, result.batch_size,
            result.radius, result.trials, result.seed, result.dtype, result.preset, run.step,
            run.momentum, *scales, run.inner_steps, run.sub_batch_size,
            float(run.final_regret.mean()), _cell(standard_error(run.final_regret)), bound,
            run.ms_per_round, run.least_ms_per_round, float(run.suboptimality.mean()),
            float(run.nonzeros.mean()), float(run.gradient_evaluations.mean()),
            float(run.lmo_calls.mean()), result.comparator.value, result.comparator.gap,
            "" if run.test_accuracy is None else float(run.test_accuracy.mean()),
        )  # fmt: skip

    _write_csv(path, SUMMARY_COLUMNS, map(row, result.methods))


# --- networks ---------------------------------------------------------------------------------

_TRACE_COLUMNS = (
    "trial", "method", "round", "seconds", "loss", "accuracy", "test_accuracy", "gap", "least_gap",
)  # fmt: skip


#: Headings of the printed tables, and which columns of the summary stand below, with how many
#: decimals.
_ENDS = {
    "seconds": ("seconds", 3), "loss": ("loss", 4), "+-": ("loss_standard_error", 4),
    "subopt.": ("suboptimality", 4), "train": ("accuracy", 3), "test": ("test_accuracy", 3),
    "gap": ("least_gap", 4),
}  # fmt: skip
_TIMES = (
    ("loss_at_common_time", 4), ("loss_above_first_at_common_time", 4),
    ("loss_above_first_standard_error", 4), ("accuracy_at_common_time", 3),
    ("test_accuracy_at_common_time", 3),
)  # fmt: skip


def _network_rows(result: NetworkComparison) -> list[dict[str, Any]]:
    """Return the rows of the summary by the names of its columns."""
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
    """Return the table that ``fastfw compare-network`` prints."""
    first = result.runs[0].label
    ends = [("method", "rounds", "gradients", *_ENDS)]
    times: list[Sequence[str]] = [("method", "loss", f"- {first}", "+-", "train", "test")]
    for run, row in zip(result.runs, _network_rows(result), strict=True):
        numbers = (_dash(row[name], decimals) for name, decimals in _ENDS.values())
        ends.append((run.label, str(run.rounds), str(run.evaluations), *numbers))
        times.append((run.label, *(_dash(row[name], decimals) for name, decimals in _TIMES)))
    return "\n".join(
        [
            f"network with {result.hidden} hidden units on {result.data}: batches of "
            f"{result.batch_size}, l1 balls of radius {result.radius:g}, "
            f"{counted(result.trials, 'trial')}",
            "", *_aligned(ends, left=1), "",
            "means over the trials, at the last point; seconds: median; gap: the smallest at the",
            "rounds evaluated; suboptimality is relative to the lowest loss that any method found",
            "", f"after {result.common_time:.3g} s of updates, which all methods reached:",
            "", *_aligned(times, left=1), "",
            f"- {first}: the difference in the same trial",
        ]
    )  # fmt: skip


def write_trace_csv(result: NetworkComparison, path: StrPath) -> None:
    """Write one row for each trial, method and round evaluated."""

    def rows() -> Iterator[Sequence[Any]]:
        for trial in range(result.trials):
            for run in result.runs:
                t = run.traces[trial]
                worth = t.losses, t.accuracies, t.test_accuracies, t.gaps, t.least_gaps
                columns = t.seconds, *worth
                for i, number in enumerate(t.rounds):
                    cells = ("" if c is None else float(c[i]) for c in columns)
                    yield (trial, run.name, int(number), *cells)

    _write_csv(path, _TRACE_COLUMNS, rows())


def write_network_summary(result: NetworkComparison, path: StrPath) -> None:
    """Write one row for each method, means over the trials; empty where nothing is known."""
    rows = _network_rows(result)
    cells = ([_cell(v) if isinstance(v, float) else v for v in row.values()] for row in rows)
    _write_csv(path, list(rows[0]), cells)


# --- grids ------------------------------------------------------------------------------------

_GRID_COLUMNS = (
    "rank", "method", "step_c", "step_e", "momentum_c", "momentum_e", "eta", "ftpl_scale",
    "trials", "score", "standard_error", "above_best", "above_best_standard_error", "seconds",
)  # fmt: skip


def format_grid(search: GridSearch, rows: int = 10) -> str:
    """Return the best points as a table.

    Parameters
    ----------
    search : GridSearch
        From `grid_search`.
    rows : int
        How many points are shown.

    Returns
    -------
    str
        What was searched, and a line for each point; ``above best`` is paired by trial. A dash
        stands for standard errors of one trial, and for whatever overflow leaves undefined.

    Raises
    ------
    TypeError, ValueError
        If `rows` is no whole number from 1 on.
    """
    rows = _checks.positive_int(rows, "rows")
    (method,) = find_methods([search.method])
    extra = [] if search.best.scale is None else ["scale"]
    table = [["step c,e", "momentum c,e", *extra, "loss", "+-", "above best", "+-", "seconds"]]
    for point in search.points[:rows]:
        above, error = paired(search.best.scores, point.scores)
        momentum = "" if point.momentum is None else _pair(point.momentum)
        loss = "overflow" if math.isnan(point.score) else f"{point.score:.5f}"
        numbers = [_dash(number, 5) for number in (standard_error(point.scores), above, error)]
        scale = [f"{point.scale:g}" for _ in extra]
        table.append([_pair(point.step), momentum, *scale, loss, *numbers, _dash(point.seconds, 3)])
    what = {"regret": "mean loss of the decisions played", "last": "loss of the last decision"}
    return "\n".join(
        [
            f"{method.label} on {search.data}, {search.setting} setting: "
            f"{counted(len(search.points), 'point')}, {counted(search.trials, 'trial')} of "
            f"{counted(search.rounds, 'round')},",
            f"batches of {search.batch_size}, radius {search.radius:g}; "
            f"ranked by {what[search.criterion]}",
            "", *_aligned(table),
        ]
    )  # fmt: skip


def _pair(pair: Pair) -> str:
    return f"{pair[0]:g},{pair[1]:.3g}"


def write_grid_csv(search: GridSearch, path: StrPath) -> None:
    """Write all points, best first; constants that a method does not have are left empty."""
    (method,) = find_methods([search.method])

    def row(rank: int, point: GridPoint) -> Sequence[Any]:
        scale = "" if point.scale is None else point.scale
        above = paired(search.best.scores, point.scores)
        numbers = (point.score, standard_error(point.scores), *above, point.seconds)
        return (
            rank, search.method, *point.step, *(point.momentum or ("", "")),
            *(("", scale) if method.meta else (scale, "")), search.trials, *map(_cell, numbers),
        )  # fmt: skip

    _write_csv(path, _GRID_COLUMNS, (row(*pair) for pair in enumerate(search.points, start=1)))


# --- the paper's figures -----------------------------------------------------------------------

_NUMBERS_COLUMNS = ("data", "panel", "method", "trial", "round", "seconds", "value", "value_upper")
_LAST_COLUMNS = (
    "data", "panel", "method", "trials", "seed", "round", "value", "standard_error", "value_upper",
    "seconds", "gradient_evaluations", "lmo_calls", "comparator_loss", "comparator_gap",
    "constants",
)  # fmt: skip

_TITLE = "# The paper's claims, answered"


def _curves(result: Reproduction) -> Iterator[tuple[Part, str, Curve, bool]]:
    """Yield all curves, and whether they depend on what the certificate leaves open."""
    for part in result.parts:
        for panel, curves in part.panels.items():
            for curve in curves:
                yield part, panel, curve, part.comparator is not None and panel != "cost"


def write_numbers(result: Reproduction, path: StrPath) -> None:
    """Write every point of every curve.

    ``trial`` counts from 1; ``value_upper`` is the value against the least loss that the
    comparator's certificate leaves open, empty where there is none.
    """

    def rows() -> Iterator[Sequence[Any]]:
        for part, panel, curve, bounded in _curves(result):
            for trial, values in enumerate(curve.values):
                columns = [curve.rounds, curve.seconds[trial], values, curve.upper[trial]]
                for *point, upper in zip(*(c.tolist() for c in columns), strict=True):
                    last = upper if bounded else ""
                    yield (part.data, panel, curve.method, trial + 1, *point, last)

    _write_csv(path, _NUMBERS_COLUMNS, rows())


def write_last(result: Reproduction, path: StrPath) -> None:
    """Write the last point of every curve, means over the trials."""

    def rows() -> Iterator[Sequence[Any]]:
        for part, panel, curve, bounded in _curves(result):
            best = part.comparator
            certificate = ("", "") if best is None else (best.value, best.gap)
            yield (
                part.data, panel, curve.method, result.trials, result.seed, int(curve.rounds[-1]),
                float(curve.final.mean()), _cell(standard_error(curve.final)),
                float(curve.upper[:, -1].mean()) if bounded else "",
                float(curve.seconds[:, -1].mean()), curve.work, curve.oracle_calls,
                *certificate, part.constants[curve.method],
            )  # fmt: skip

    _write_csv(path, _LAST_COLUMNS, rows())


def write_claims(result: Reproduction, path: Path) -> None:
    """Write the figure's section into the file of claims, beside those of the other figures."""
    sections: dict[str, str] = {}
    if path.is_file():
        text = path.read_text(encoding="utf-8", errors="replace")
        for section in re.split(r"^(?=## Figure \d)", text, flags=re.MULTILINE)[1:]:
            sections[section.split("\n", 1)[0].strip()] = section.strip()
    sections[f"## Figure {result.figure[-1]}"] = format_claims(result)
    with atomic_write(path) as handle:
        ordered = [sections[heading] for heading in sorted(sections)]
        handle.write("\n\n".join([_TITLE, *ordered]) + "\n")


def format_claims(result: Reproduction) -> str:
    """Return the section of a figure in Markdown: what was run, and the answer to each claim."""
    from fastfw._info import machine

    lines = [f"## Figure {result.figure[-1]}", ""]
    short = " Cut short by --quick: fewer rounds and trials than in the paper." * result.quick
    how = (
        "Differences are paired by trial; ± is their standard error. Confirmed: more than two of "
        "these on the side that the paper says; refuted: on the other side; open: in between."
    )
    if result.trials == 1:
        how = (
            "One trial gives no standard error, so differences are left open; times are judged by "
            "their ratio."
        )
    how += (
        " Times must agree in all trials. Far below: by as much as the regret itself is from "
        "zero; slightly above: by less than that; far less time: half at the most; comparable: no "
        "further apart than a tenth of what lies between them and the next method. After equal "
        "time: when the first of the two methods has finished; earlier it may have been "
        "otherwise, see the picture."
    )
    said = f"{counted(result.trials, 'trial')} from seed {result.seed}.{short} {how}"
    lines += [said, "", f"Machine: {machine()}."]
    for part in result.parts:
        lines += ["", *_about(part)]
    lines += ["", "| claim | what the paper says | data | verdict | numbers |", "|---" * 5 + "|"]
    for finding in find(result):
        cells = finding._replace(verdict=f"**{finding.verdict}**")
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    return "\n".join(lines)


def _about(part: Part) -> list[str]:
    """Say what was run on a data set."""
    settings = ", ".join(f"{name} {_plain(value)}" for name, value in part.settings.items())
    lines = [
        f"**{part.title}** ({part.n_samples:,} x {part.n_features}, {part.n_classes} classes): "
        f"{settings}. Wall time, summed over all runs that trials were kept from: "
        f"{_duration(part.seconds)}, evaluation included."
    ]
    if (best := part.comparator) is not None:
        lines += [
            "",
            f"Best fixed decision for {best.n_rows:,} rows: loss {best.value:.8g}, proved to be "
            f"within {best.gap:.1e} of the least possible (relative {best.relative_gap:.1e}; found "
            f"in {_duration(best.seconds)}).",
        ]
    lines.append("")
    curves = next(iter(part.panels.values()))
    lines += [f"- {curve.label}: {part.constants[curve.method]}" for curve in curves]
    return lines


def _plain(value: Any) -> str:
    return format(value, {int: ",", float: "g"}.get(type(value), ""))


def _duration(seconds: float) -> str:
    """Return a time for people.

    >>> _duration(59.2), _duration(4000.0)
    ('59 s', '66.7 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
