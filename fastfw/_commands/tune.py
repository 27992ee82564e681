"""``fastfw tune``."""

import argparse
from pathlib import Path
from typing import Any

from fastfw._commands.options import (
    OFFLINE,
    Help,
    UsageError,
    add_root,
    add_seed,
    add_setting,
    each,
    folder_name,
    method_names,
    one_of,
    positive,
    schedule,
    whole,
)
from fastfw._commands.output import progress_bar, resumable, take_folder, unusable_input, write
from fastfw.experiments._files import remove_empty
from fastfw.experiments.methods import METHODS

__all__ = ["add_parser", "run"]

CRITERIA = ("regret", "last")
FILE = "tune.csv"


def _jobs(text: str) -> int:
    """Parse a number of jobs, negative ones counting from the number of cores."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number == 0:
        raise argparse.ArgumentTypeError(f"{text!r} given, a whole number other than 0 wanted")
    return number


def add_parser(commands: Any) -> None:
    """Add the options of ``fastfw tune``."""
    names = ", ".join(method.name for method in METHODS)
    parser = commands.add_parser(
        "tune",
        help="search constants of step and momentum on a grid",
        description="Run a method with all combinations of constants, print the best ones and "
        "write tune.csv.",
        epilog="examples:\n  fastfw tune\n"
        "  fastfw tune --method osfw --step 1,1 0.5,2/3 --momentum 1,2/3 --jobs 2\n\n"
        "Every finished trial is kept in DIR/trials. A search that was stopped goes on from "
        "there when\nthe same command is given again, and a finer grid needs no trial twice.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    option = parser.add_argument
    fit = "default: a value that suits the data"
    option("--method", metavar="NAME", type=method_names, default="orgfw", help=f"one of {names}")
    option(
        "--data",
        metavar="NAME|PATH",
        default="fashion-mnist-4k",
        help="a data set, as for compare",
    )
    add_root(option)
    add_setting(option)
    option(
        "--step",
        metavar="C,E",
        nargs="+",
        action="extend",
        type=each(schedule, commas=1),
        help="steps min(C/(t+1)^E, 1) to try (default: C of 0.1, 0.5, 1, 2, E of 1/2, 2/3, 1)",
    )
    option(
        "--momentum",
        metavar="C,E",
        nargs="+",
        action="extend",
        type=each(schedule, commas=1),
        help="momenta likewise, for methods that have one (default: C of 0.5, 1, 2)",
    )
    for name, what in (
        ("--eta", "regularized-ofw's c"),
        ("--scale", "c of FTPL, for meta methods"),
    ):
        option(name, metavar="C", nargs="+", action="extend", type=each(positive), help=what)
    option("--rounds", metavar="T", type=whole(1), help=f"rounds in a trial ({fit})")
    option("--batch-size", metavar="B", type=whole(1), help=f"rows in a batch ({fit})")
    option("--radius", metavar="R", type=positive, help=f"l1 norm that each row may have ({fit})")
    option("--trials", metavar="N", type=whole(1), default=3, help="runs of each combination")
    add_seed(option)
    option(
        "--criterion",
        metavar="|".join(CRITERIA),
        type=one_of(CRITERIA),
        default="regret",
        help="what should be low: the loss of the decisions played, or that of the last one",
    )
    option(
        "--jobs",
        metavar="N",
        type=_jobs,
        default=None,
        help="trials at the same time, by joblib; -1 for all cores (default: one, without joblib)",
    )
    option(
        "--out",
        metavar="DIR",
        type=folder_name,
        default="fastfw-tune",
        help="folder for the table and for the trials, made if missing",
    )


def run(options: argparse.Namespace) -> int:
    """Run ``fastfw tune``."""
    if len(options.method) != 1 or options.method[0] in OFFLINE:
        raise UsageError(
            f"argument --method: {', '.join(options.method)} given, one method is wanted, of "
            f"{', '.join(method.name for method in METHODS)}"
        )
    folder = Path(options.out)
    made = take_folder(options.out, (FILE,))
    try:
        from fastfw.experiments.tuning import format_grid, grid_search, write_grid_csv

        (method,) = options.method
        with resumable(folder / "trials"), progress_bar() as progress, unusable_input():
            search = grid_search(
                options.data,
                method=method,
                setting=options.setting,
                steps=options.step,
                momenta=options.momentum,
                etas=options.eta,
                scales=options.scale,
                rounds=options.rounds,
                batch_size=options.batch_size,
                radius=options.radius,
                trials=options.trials,
                seed=options.seed,
                criterion=options.criterion,
                folder=folder / "trials",
                n_jobs=options.jobs,
                root=options.root,
                progress=progress,
            )
        write_grid_csv(search, folder / FILE)
    finally:
        remove_empty(made)
    write(format_grid(search))
    write(f"files: {folder / FILE}")
    return 0
