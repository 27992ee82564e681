"""What becomes of the result of an experiment: a text, files, a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from fastfw.experiments import figures, tables
from fastfw.experiments.results import CompareResult, GridSearch, NetworkComparison, Reproduction

Write = Callable[[Path], None]


class Report(NamedTuple):
    """A text; what writes tables, and pictures, by the names of their files; notes."""

    text: str
    tables: Mapping[str, Write]
    pictures: Mapping[str, Write]
    notes: Sequence[str] = ()


def report(result: Any) -> Report:
    """Return what is to be printed and written of a result."""

    def picture(draw: Callable[[Any], Any], **options: Any) -> Write:
        return lambda path: figures.write_png(draw(result), path, **options)

    if isinstance(result, CompareResult):
        return Report(
            tables.format_table(result),
            {"regret.csv": partial(tables.write_regret_csv, result),
             "summary.csv": partial(tables.write_summary_csv, result)},
            {"regret.png": picture(figures.regret_figure)},
            [*result.hints, *(run.no_bound for run in result.methods if run.no_bound)],
        )  # fmt: skip
    if isinstance(result, NetworkComparison):
        return Report(
            tables.format_network_table(result),
            {"trace.csv": partial(tables.write_trace_csv, result),
             "summary.csv": partial(tables.write_network_summary, result)},
            {"network.png": picture(figures.network_figure)},
        )  # fmt: skip
    if isinstance(result, GridSearch):
        file = {"tune.csv": partial(tables.write_grid_csv, result)}
        return Report(tables.format_grid(result), file, {})
    assert isinstance(result, Reproduction)
    name = result.figure
    return Report(
        tables.format_claims(result),
        {f"{name}.csv": partial(tables.write_numbers, result),
         f"{name}-summary.csv": partial(tables.write_last, result),
         "claims.md": partial(tables.write_claims, result)},
        {f"{name}.png": picture(figures.reproduction_figure, palette=True)},
    )  # fmt: skip
