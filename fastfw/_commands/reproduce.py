"""``fastfw reproduce``."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from fastfw._commands.options import (
    Help,
    UsageError,
    add_root,
    add_seed,
    folder_name,
    one_of,
    positive,
    whole,
)
from fastfw._commands.output import (
    deliver,
    progress_bar,
    resumable,
    take_folder,
    unusable_input,
)
from fastfw.experiments._files import remove_empty

__all__ = ["add_parser", "run"]

FIGURES = ("figure1", "figure2", "figure3")


def add_parser(commands: Any) -> None:
    """Add the options of ``fastfw reproduce``."""
    parser = commands.add_parser(
        "reproduce",
        help="run one of the paper's figures: picture, numbers, claims",
        description="Run one of the paper's figures and write its picture, a CSV file with every "
        "number, a\nsummary, and claims.md, which answers the paper's claims with these numbers.\n"
        "  figure1  stochastic setting: regret, time per round, suboptimality by time\n"
        "  figure2  adversarial setting: regret, time per round\n"
        "  figure3  network with one hidden layer: suboptimality and accuracies by time",
        epilog="examples:\n  fastfw reproduce figure1 --quick\n"
        "  fastfw reproduce figure2 --data mnist --out results\n\n"
        "Every finished trial is kept in DIR/trials. A run that was stopped, by Ctrl-C or "
        "otherwise,\ngoes on from there when the same command is given again.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("figure", metavar="|".join(FIGURES), type=one_of(FIGURES), help="which figure")
    option(
        "--data",
        metavar="NAME|PATH",
        nargs="+",
        action="extend",
        default=None,
        help="one data set or several, as for compare (default: mnist cifar10; with --quick the "
        "embedded one)",
    )
    option(
        "--titles",
        metavar="TITLE",
        nargs="+",
        action="extend",
        default=None,
        help="what pictures call them, one title for each data set",
    )
    add_root(option)
    option("--quick", action="store_true", help="fewer rounds and trials: a minute or two")
    option(
        "--trials",
        metavar="N",
        type=whole(1),
        default=None,
        help="runs of each method (default: 6; with --quick 3)",
    )
    add_seed(option)
    for name, metavar, what in (
        ("--rounds", "T", "rounds, also those of ORGFW against time"),
        ("--batch-size", "B", "rows in a batch"),
    ):
        option(name, metavar=metavar, type=whole(1), help=f"{what} (default: the paper's)")
    option(
        "--radius",
        metavar="R",
        type=positive,
        help="l1 norm that each row may have (default: the paper's)",
    )
    option(
        "--out",
        metavar="DIR",
        type=folder_name,
        default="fastfw-reproduce",
        help="folder for the files and for the trials, made if missing",
    )


def run(options: argparse.Namespace) -> int:
    """Run ``fastfw reproduce``."""
    for given in options.data or ():
        if "," in given and not Path(given).exists():
            raise UsageError(
                f"argument --data: {given!r} given; data sets are given with spaces between them"
            )
    names = (f"{options.figure}.png", f"{options.figure}.csv", "claims.md")
    made = take_folder(options.out, names)
    try:
        from fastfw.experiments import reproduction_report as report
        from fastfw.experiments.reproduction import run_figure

        kept = resumable(Path(options.out) / "trials")
        with kept, progress_bar() as progress, unusable_input():
            result = run_figure(
                options.figure,
                options.data,
                root=options.root,
                out=options.out,
                quick=options.quick,
                trials=options.trials,
                seed=options.seed,
                titles=options.titles,
                rounds=options.rounds,
                batch_size=options.batch_size,
                radius=options.radius,
                progress=progress,
            )
        picture, *tables = report.file_names(options.figure)
        writers = zip(tables, report.WRITERS, strict=True)
        return deliver(
            report.format_claims(result),
            Path(options.out),
            {name: partial(writer, result) for name, writer in writers},
            (picture, partial(report.write_picture, result)),
        )
    finally:
        remove_empty(made)
