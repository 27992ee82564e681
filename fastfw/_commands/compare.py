"""``fastfw compare``."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from fastfw._commands.options import (
    OFFLINE,
    Help,
    UsageError,
    add_root,
    add_seed,
    add_setting,
    folder_name,
    method_names,
    one_of,
    positive,
    schedule,
    sub_batch,
    whole,
)
from fastfw._commands.output import deliver, progress_bar, say, take_folder, unusable_input
from fastfw.experiments._files import remove_empty
from fastfw.experiments.methods import METHODS, SETTINGS, SUB_BATCH, default_methods
from fastfw.experiments.presets import PRESETS

__all__ = ["add_parser", "run"]

DTYPES = ("float64", "float32")
FILES = ("regret.csv", "summary.csv", "regret.png")
NETWORK_FILES = ("trace.csv", "summary.csv", "network.png")
PROBLEMS = ("softmax", "network")
INITS = ("zeros", "vertex", "random")


def add_parser(commands: Any) -> None:
    """Add the options of ``fastfw compare``."""
    names = ",".join(method.name for method in METHODS)
    standard = "; ".join(f"{s}: {','.join(default_methods(s))}" for s in SETTINGS)
    fit = "default: a value that suits the data"
    compare = commands.add_parser(
        "compare",
        help="run methods on the same batches and measure their regret",
        description="Run several methods on the same batches, measure their regret against the "
        "best fixed\ndecision, print a table and write regret.csv, summary.csv and regret.png.",
        epilog="examples:\n  fastfw compare\n"
        "  fastfw compare --data mnist --rounds 400 --batch-size 600 --radius 8 --trials 6\n"
        "  fastfw compare --setting adversarial --methods morgfw,metafw,rofw,ofw,oaw\n"
        "  fastfw compare --data my.npz --methods orgfw --step 1,1 --momentum 1,2/3\n"
        "  fastfw compare --preset theory --bounds\n"
        "  fastfw compare --problem network --hidden 10\n\n"
        "Trial i (from 0) draws its batches with seed SEED + i, the same for all methods.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    option = compare.add_argument
    option(
        "--data",
        metavar="NAME|PATH",
        default="fashion-mnist-4k",
        help="fashion-mnist-4k (embedded), mnist, fashion-mnist, cifar10, digits, or the path of "
        "an .npz file with X and y",
    )
    add_root(option)
    option(
        "--problem",
        metavar="|".join(PROBLEMS),
        type=one_of(PROBLEMS),
        default="softmax",
        help="multiclass logistic regression, or a network with one hidden layer: then at equal "
        "gradient evaluations, with the offline methods svrf and spiderfw too",
    )
    option(
        "--hidden",
        metavar="M",
        type=whole(1),
        default=None,
        help="hidden units of the network (default: 10)",
    )
    option(
        "--init",
        metavar="|".join(INITS),
        type=one_of(INITS),
        default=None,
        help="where methods start on the network (default: random)",
    )
    add_setting(option)
    option(
        "--methods",
        metavar="A,B,C",
        type=method_names,
        help=f"which methods, of: {names} (default: {standard})",
    )
    option("--rounds", metavar="T", type=whole(1), help=f"rounds in a trial ({fit})")
    option("--batch-size", metavar="B", type=whole(1), help=f"rows in a batch ({fit})")
    option(
        "--radius",
        metavar="R",
        type=positive,
        help=f"l1 norm that each row of the decision may have ({fit})",
    )
    option("--trials", metavar="N", type=whole(1), default=6, help="runs of each method")
    add_seed(option)
    option(
        "--dtype",
        metavar="|".join(DTYPES),
        type=one_of(DTYPES),
        default="float64",
        help="of features and decisions while learning; regret is always computed in float64",
    )
    option(
        "--preset",
        metavar="NAME",
        type=one_of(tuple(PRESETS)),
        help=f"constants of the paper's experiments, or theory; one of: "
        f"{', '.join(PRESETS)} (default: the paper's for the data set where it has any, else "
        "theory)",
    )
    option(
        "--step",
        metavar="C,E",
        type=schedule,
        help="step min(C/(t+1)^E, 1) for all methods, in place of the preset's",
    )
    option(
        "--momentum",
        metavar="C,E",
        type=schedule,
        help="momentum min(C/(t+1)^E, 1) for the methods that have one, likewise",
    )
    option(
        "--inner-steps",
        metavar="K",
        type=whole(1),
        help="inner steps of morgfw and metafw in a round (default: theory's, T and T^(3/2))",
    )
    option(
        "--sub-batch-size",
        metavar="N|all",
        type=sub_batch,
        default=SUB_BATCH,
        help="rows that morgfw and metafw draw from the batch for an inner step",
    )
    option(
        "--bounds",
        action="store_true",
        help="draw the theorems' bounds on regret into the picture, where they apply",
    )
    option(
        "--out",
        metavar="DIR",
        type=folder_name,
        default="fastfw-compare",
        help="folder for the three files, made if missing; files of these names are replaced",
    )


def run(options: argparse.Namespace) -> int:
    """Run ``fastfw compare``."""
    if options.problem == "network":
        return _compare_network(options)
    for name, given in (("--hidden", options.hidden), ("--init", options.init)):
        if given is not None:
            raise UsageError(f"argument {name}: it is for --problem network")
    if set(OFFLINE) & set(options.methods or ()):
        raise UsageError(f"argument --methods: {', '.join(OFFLINE)} are for --problem network")
    made = take_folder(options.out, FILES)
    try:
        from fastfw.experiments import comparison, plots, report

        with progress_bar() as progress:
            if progress is not None:
                progress(0, 1, "data")
            race = _prepare(options)
            for method in race.methods:
                caution = method.caution(race.setting)
                if caution is not None:
                    say(f"note: {caution}")
            try:
                result = comparison.run(race, progress=progress)
            except FloatingPointError as error:  # features too large or too small
                raise UsageError(str(error)) from error
            for outcome in result.methods:
                if outcome.no_bound:
                    say(f"note: {outcome.no_bound}")
        return deliver(
            report.format_table(result),
            Path(options.out),
            {
                FILES[0]: partial(report.write_regret_csv, result),
                FILES[1]: partial(report.write_summary_csv, result),
            },
            (FILES[2], partial(plots.write_regret_png, result)),
        )
    except BaseException:
        remove_empty(made)
        raise


def _compare_network(options: argparse.Namespace) -> int:
    """Run ``fastfw compare --problem network``."""
    for name, given in (
        ("--setting adversarial", options.setting != "stochastic"),
        ("--preset", options.preset is not None),
        ("--inner-steps", options.inner_steps is not None),
        ("--bounds", options.bounds),
    ):
        if given:
            raise UsageError(f"argument {name.split()[0]}: {name} is not for --problem network")
    made = take_folder(options.out, NETWORK_FILES)
    try:
        from fastfw.experiments import network, network_report
        from fastfw.schedules import power_schedule

        chosen = {
            "methods": options.methods,
            "rounds": options.rounds,
            "batch_size": options.batch_size,
            "radius": options.radius,
            "hidden": options.hidden,
            "step": options.step and power_schedule(*options.step),
            "momentum": options.momentum and power_schedule(*options.momentum),
        }
        with progress_bar() as progress, unusable_input():
            result = network.compare_network(
                options.data,
                root=options.root,
                trials=options.trials,
                seed=options.seed,
                dtype=options.dtype,
                init=options.init,
                progress=progress,
                **{name: value for name, value in chosen.items() if value is not None},
            )
        return deliver(
            network_report.format_network_table(result),
            Path(options.out),
            {
                NETWORK_FILES[0]: partial(network_report.write_trace_csv, result),
                NETWORK_FILES[1]: partial(network_report.write_network_summary, result),
            },
            (NETWORK_FILES[2], partial(network_report.write_network_png, result)),
        )
    except BaseException:
        remove_empty(made)
        raise


def _prepare(options: argparse.Namespace) -> Any:
    """Load the data and check all that can only be checked with it."""
    from fastfw.experiments.comparison import prepare
    from fastfw.schedules import power_schedule

    with unusable_input():
        return prepare(
            options.data,
            root=options.root,
            setting=options.setting,
            methods=options.methods,
            rounds=options.rounds,
            batch_size=options.batch_size,
            radius=options.radius,
            trials=options.trials,
            seed=options.seed,
            dtype=options.dtype,
            preset=options.preset,
            step=None if options.step is None else power_schedule(*options.step),
            momentum=None if options.momentum is None else power_schedule(*options.momentum),
            inner_steps=options.inner_steps,
            sub_batch_size=options.sub_batch_size,
            bounds=options.bounds,
        )
