"""What becomes of the result of an experiment: a text, files, a picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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

    def table(write: Callable[[Any, Path], None]) -> Write:
        return lambda path: write(result, path)

    def picture(draw: Callable[[Any], Any], **options: Any) -> Write:
        return lambda path: figures.write_png(draw(result), path, **options)

    if isinstance(result, CompareResult):
        return Report(
            tables.format_table(result),
            {"regret.csv": table(tables.write_regret_csv),
             "summary.csv": table(tables.write_summary_csv)},
            {"regret.png": picture(figures.regret_figure)},
            [*result.hints, *(run.no_bound for run in result.methods if run.no_bound)],
        )  # fmt: skip
    if isinstance(result, NetworkComparison):
        return Report(
            tables.format_network_table(result),
            {"trace.csv": table(tables.write_trace_csv),
             "summary.csv": table(tables.write_network_summary)},
            {"network.png": picture(figures.network_figure)},
        )  # fmt: skip
    if isinstance(result, GridSearch):
        return Report(tables.format_grid(result), {"tune.csv": table(tables.write_grid_csv)}, {})
    assert isinstance(result, Reproduction)
    name, last = result.figure, table(tables.write_last)
    return Report(
        tables.format_claims(result),
        {f"{name}.csv": table(tables.write_numbers), f"{name}-summary.csv": last,
         "claims.md": table(tables.write_claims)},
        {f"{name}.png": picture(figures.reproduction_figure, palette=True)},
    )  # fmt: skip
