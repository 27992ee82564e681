"""What becomes of the result of an experiment: a text, files, a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from fastfw.experiments import figures, tables
from fastfw.experiments.results import CompareResult, GridSearch, NetworkComparison, Reproduction


class Report(NamedTuple):
    """A text; what writes tables, and pictures, by the names of their files; notes."""

    text: str
    tables: Mapping[str, Any]
    pictures: Mapping[str, Any]
    notes: Sequence[str] = ()


def report(result: Any) -> Report:
    """Return what is to be printed and written of a result."""
    notes: list[str] = []
    files: dict[str, Any]
    picture: dict[str, Any] = {}
    if isinstance(result, CompareResult):
        text = tables.format_table(result)
        files = {"regret.csv": tables.write_regret_csv, "summary.csv": tables.write_summary_csv}
        picture = {"regret.png": figures.write_regret_png}
        notes = [run.no_bound for run in result.methods if run.no_bound]
    elif isinstance(result, NetworkComparison):
        text = tables.format_network_table(result)
        files = {"trace.csv": tables.write_trace_csv, "summary.csv": tables.write_network_summary}
        picture = {"network.png": figures.write_network_png}
    elif isinstance(result, GridSearch):
        text, files = tables.format_grid(result), {"tune.csv": tables.write_grid_csv}
    else:
        assert isinstance(result, Reproduction)
        text, name = tables.format_claims(result), result.figure
        files = {f"{name}.csv": tables.write_numbers, f"{name}-summary.csv": tables.write_last,
                 "claims.md": tables.write_claims}  # fmt: skip
        picture = {f"{name}.png": figures.write_reproduction_png}
    bound = [
        {name: partial(write, result) for name, write in group.items()}
        for group in (files, picture)
    ]
    return Report(text, bound[0], bound[1], notes)
