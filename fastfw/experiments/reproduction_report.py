"""The files of `reproduce`: a picture, every number, a summary, the claims."""

from __future__ import annotations

import csv
import io
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastfw._files import atomic_write
from fastfw.experiments._text import counted, number_or_nothing
from fastfw.experiments.claims import Finding, find
from fastfw.experiments.comparison import Comparator, standard_error
from fastfw.experiments.figures import reproduction_figure
from fastfw.experiments.plots import own_style
from fastfw.experiments.reproduction import Part, Reproduction

__all__ = ["CLAIMS_FILE", "file_names", "format_claims", "write_all"]

CLAIMS_FILE = "claims.md"

COLUMNS = ("data", "panel", "method", "trial", "round", "seconds", "value", "value_upper")
"""Columns of the file with every number: one row for each point of each trial's curve."""

SUMMARY_COLUMNS = (
    "data",
    "panel",
    "method",
    "trials",
    "seed",
    "round",
    "value",
    "standard_error",
    "value_upper",
    "seconds",
    "gradient_evaluations",
    "lmo_calls",
    "comparator_loss",
    "comparator_gap",
    "constants",
)
"""Columns of the summary: the curves' last points, means over the trials."""

_TITLE = "# The paper's claims, answered"


def file_names(figure: str) -> tuple[str, str, str, str]:
    """Return the names of the files that a figure writes.

    Examples
    --------
    >>> file_names("figure1")
    ('figure1.png', 'figure1.csv', 'figure1-summary.csv', 'claims.md')
    """
    return f"{figure}.png", f"{figure}.csv", f"{figure}-summary.csv", CLAIMS_FILE


def write_all(result: Reproduction, folder: Path) -> Reproduction:
    """Write the four files into a folder, made if missing; the result with their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = tuple(folder / name for name in file_names(result.figure))
    picture, *tables = files
    for write, path in zip(WRITERS, tables, strict=True):
        write(result, path)
    write_picture(result, picture)  # last: what a picture needs may be missing
    return replace(result, files=files)


def write_picture(result: Reproduction, path: str | os.PathLike[str]) -> None:
    """Write the figure as a PNG file."""
    from PIL import Image  # Matplotlib writes its pictures with it

    drawn = io.BytesIO()
    with own_style():
        reproduction_figure(result).savefig(drawn, format="png")
    with Image.open(drawn) as picture, atomic_write(path, binary=True) as handle:
        # 256 colours are plenty here and make a third of the size.
        picture.convert("RGB").quantize(256).save(handle, format="png", optimize=True)


def write_numbers(result: Reproduction, path: str | os.PathLike[str]) -> None:
    """Write every point of every curve; floats are read back as the same bits.

    ``trial`` counts from 1; ``value_upper`` is the value against the least loss that the
    comparator's certificate leaves open, empty where there is none.
    """
    with atomic_write(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(COLUMNS)
        for part in result.parts:
            for panel, curves in part.panels.items():
                for curve in curves:
                    for trial, columns in enumerate(
                        zip(
                            curve.seconds.tolist(),
                            curve.values.tolist(),
                            curve.upper.tolist(),
                            strict=True,
                        ),
                        start=1,
                    ):
                        writer.writerows(
                            (part.data, panel, curve.method, trial, t, *point[:2])
                            + ((point[2],) if _bounded(part, panel) else ("",))
                            for t, point in zip(
                                curve.rounds.tolist(), zip(*columns, strict=True), strict=True
                            )
                        )


def write_summary(result: Reproduction, path: str | os.PathLike[str]) -> None:
    """Write the last point of every curve, means over the trials."""
    with atomic_write(path) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(SUMMARY_COLUMNS)
        for part in result.parts:
            best = part.comparator
            for panel, curves in part.panels.items():
                for curve in curves:
                    writer.writerow(
                        (
                            part.data,
                            panel,
                            curve.method,
                            result.trials,
                            result.seed,
                            int(curve.rounds[-1]),
                            float(curve.final.mean()),
                            number_or_nothing(standard_error(curve.final)),
                            float(curve.upper[:, -1].mean()) if _bounded(part, panel) else "",
                            float(curve.seconds[:, -1].mean()),
                            curve.work,
                            curve.oracle_calls,
                            "" if best is None else best.value,
                            "" if best is None else best.gap,
                            part.constants[curve.method],
                        )
                    )


def _bounded(part: Part, panel: str) -> bool:
    """Tell whether values depend on what the comparator's certificate leaves open."""
    return part.comparator is not None and panel != "cost"


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


#: Of the files after the picture, in order.
WRITERS = (write_numbers, write_summary, write_claims)


def format_claims(result: Reproduction) -> str:
    """Return the section of a figure: what was run, and the answer to each claim.

    Parameters
    ----------
    result : Reproduction
        The figure.

    Returns
    -------
    str
        Markdown.
    """
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
    lines += [
        f"{counted(result.trials, 'trial')} from seed {result.seed}.{short} {how}",
        "",
        f"Machine: {machine()}.",
    ]
    for part in result.parts:
        lines += ["", *_about(part)]
    lines += [
        "",
        "| claim | what the paper says | data | verdict | numbers |",
        "|---|---|---|---|---|",
    ]
    lines += [_row(finding) for finding in find(result)]
    return "\n".join(lines)


def _row(finding: Finding) -> str:
    cells = (
        finding.claim, finding.statement, finding.data, f"**{finding.verdict}**", finding.numbers,
    )  # fmt: skip
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def _about(part: Part) -> list[str]:
    """Say what was run on a data set."""
    settings = ", ".join(f"{name} {_plain(value)}" for name, value in part.settings.items())
    lines = [
        f"**{part.title}** ({part.n_samples:,} x {part.n_features}, {part.n_classes} classes): "
        f"{settings}. Wall time, summed over all runs that trials were kept from: "
        f"{_duration(part.seconds)}, evaluation included."
    ]
    if part.comparator is not None:
        lines += ["", _certificate(part.comparator)]
    lines.append("")
    curves = next(iter(part.panels.values()))
    lines += [f"- {curve.label}: {part.constants[curve.method]}" for curve in curves]
    return lines


def _certificate(best: Comparator) -> str:
    return (
        f"Best fixed decision for {best.n_rows:,} rows: loss {best.value:.8g}, proved to be within "
        f"{best.gap:.1e} of the least possible (relative {best.relative_gap:.1e}; found in "
        f"{_duration(best.seconds)})."
    )


def _plain(value: Any) -> str:
    return (
        f"{value:,}"
        if isinstance(value, int)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )


def _duration(seconds: float) -> str:
    """Return a time for people.

    >>> _duration(59.2), _duration(4000.0)
    ('59 s', '66.7 min')
    """
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
