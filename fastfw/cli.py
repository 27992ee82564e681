"""The command line: ``fastfw compare | compare-network | reproduce | tune | info | warmup``.

Exit codes: 0 done; 1 the work failed; 2 the input cannot be used (one line on stderr says why);
130 interrupted, 143 terminated. Only what a command needs is imported, and only once its arguments
are known to be fit: help and error messages come at once.
"""

import argparse
import contextlib
import io
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from fastfw._options import (
    Parser,
    UsageError,
    add_options,
    each,
    method_names,
    one_of,
    positive,
    schedule,
    whole,
)
from fastfw._output import (
    deliver,
    on_cluster,
    prepare_folder,
    progress_bar,
    remove_empty,
    resumable,
    say,
    silence_stdout,
    tell_if_cold,
    unusable_input,
    write,
)
from fastfw.experiments.methods import (
    FIGURES,
    METHODS,
    NETWORK_METHODS,
    Method,
    closest,
    default_methods,
    find_methods,
)
from fastfw.learners import TABLE
from fastfw.learners._method import SUB_BATCH

__all__ = ["main"]


def _parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line."""
    parser = Parser(
        prog="fastfw",
        description="Projection-free online learning: compare Frank-Wolfe methods on a stream.",
        epilog="example:\n  fastfw compare\n\nFASTFW_DATA names the folder of data sets that are "
        "not embedded.\nExit codes: 0 done, 1 failed, 2 unusable input, 130 interrupted.",
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="{" + ",".join(_RUN) + "}"
    )

    def command(name: str, help: str, description: str, epilog: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=help, description=description, epilog=epilog)

    hidden = {"help": argparse.SUPPRESS}
    compare = command(
        "compare",
        "run methods on the same batches and measure their regret",
        "Run several methods on the same batches, measure their regret against the best "
        "fixed\ndecision, print a table and write regret.csv, summary.csv and regret.png.",
        "examples:\n  fastfw compare\n"
        "  fastfw compare --data mnist --rounds 400 --batch-size 600 --radius 8 --trials 6\n"
        "  fastfw compare --setting adversarial --methods morgfw,metafw,rofw,ofw,oaw\n"
        "  fastfw compare --data my.csv --label species\n"
        "  fastfw compare --data my.npz --methods orgfw --step 1,1 --momentum 1,2/3\n"
        "  fastfw compare --preset theory --bounds\n\n"
        "Trial i (from 0) draws its batches with seed SEED + i, the same for all methods.\n"
        + _GO_ON,
    )
    add_options(
        compare,
        "data label root problem hidden init setting methods rounds batch_size radius trials "
        "seed dtype preset step momentum inner_steps sub_batch_size bounds jobs scheduler out",
        problem={
            "metavar": "softmax|network",
            "type": one_of(("softmax", "network")),
            "default": "softmax",
            "help": "multiclass logistic regression; network is another name of compare-network",
        },
        hidden=hidden,
        init=hidden,
        out={"default": "fastfw-compare"},
    )  # fmt: skip
    network = command(
        "compare-network",
        "train a network with several methods at equal work",
        "Train a network with one hidden layer at equal gradient evaluations, with the "
        "offline\nmethods svrf and spiderfw too, print a table and write trace.csv, summary.csv "
        "and network.png.",
        "examples:\n  fastfw compare-network --hidden 10\n"
        "  fastfw compare-network --data mnist --methods orgfw,osfw,spiderfw --trials 3\n\n"
        "Trial i (from 0) has the seed SEED + i, the same for all methods.\n" + _GO_ON,
    )
    names = ",".join(method.name for method in NETWORK_METHODS)
    add_options(
        network,
        "data label root hidden init methods rounds batch_size radius trials seed dtype step "
        "momentum jobs scheduler out",
        methods={
            "type": method_names(NETWORK_METHODS), "help": f"which methods (default: {names})"
        },
        rounds={"help": "rounds of orgfw in a trial (default: 4000)"},
        batch_size={"help": "rows in a batch (default: 16)"},
        radius={"help": "radius of all l1 balls (default: 10)"},
        dtype={"help": "of features and parameters"},
        step={"help": "step min(C/(t+1)^E, 1) for all online methods, in place of the paper's"},
        out={"default": "fastfw-compare-network"},
    )  # fmt: skip
    reproduce = command(
        "reproduce",
        "run one of the paper's figures: picture, numbers, claims",
        "Run one of the paper's figures and write its picture, a CSV file with every "
        "number, a\nsummary, and claims.md, which answers the paper's claims with these numbers.\n"
        "  figure1  stochastic setting: regret, time per round, suboptimality by time\n"
        "  figure2  adversarial setting: regret, time per round\n"
        "  figure3  network with one hidden layer: suboptimality and accuracies by time",
        "examples:\n  fastfw reproduce figure1 --quick\n"
        "  fastfw reproduce figure2 --data mnist --out results\n\n" + _GO_ON,
    )
    several: dict[str, Any] = {"nargs": "+", "action": "extend", "default": None}
    reproduce.add_argument(
        "figure", metavar="|".join(FIGURES), type=one_of(FIGURES), help="which figure"
    )
    add_options(
        reproduce,
        "data titles root quick trials seed rounds batch_size radius jobs scheduler out",
        data={
            **several,
            "help": "one data set or several, as for compare (default: mnist cifar10; with --quick "
            "the embedded one)",
        },
        titles={
            **several,
            "metavar": "TITLE",
            "help": "what pictures call them, one title for each data set",
        },
        trials={"default": None, "help": "runs of each method (default: 6; with --quick 3)"},
        rounds={"help": "rounds, also those of ORGFW against time (default: the paper's)"},
        batch_size={"help": "rows in a batch (default: the paper's)"},
        radius={"help": "l1 norm that each row may have (default: the paper's)"},
        out={"default": "fastfw-reproduce"},
    )  # fmt: skip
    tune = command(
        "tune",
        "search constants of step and momentum on a grid",
        "Run a method with all combinations of constants, print the best ones and write tune.csv.",
        "examples:\n  fastfw tune\n"
        "  fastfw tune --method osfw --step 1,1 0.5,2/3 --momentum 1,2/3 --jobs 2\n\n"
        + _GO_ON
        + "\nA finer grid needs no trial twice.",
    )
    pairs: dict[str, Any] = {**several, "type": each(schedule, commas=1)}
    add_options(
        tune,
        "method data label root setting step momentum scale eta rounds batch_size radius "
        "trials seed criterion jobs scheduler out",
        step={
            **pairs,
            "help": "steps min(C/(t+1)^E, 1) to try (default: C of 0.1, 0.5, 1, 2, E of 1/2, 2/3, "
            "1)",
        },
        momentum={
            **pairs,
            "help": "momenta likewise, for methods that have one (default: C of 0.5, 1, 2)",
        },
        eta={**several, "metavar": "C", "type": each(positive), "help": argparse.SUPPRESS},
        trials={"default": 3, "help": "runs of each combination"},
        out={"default": "fastfw-tune"},
    )  # fmt: skip
    command(
        "info",
        "versions, processor, threads, kernel cache",
        "Print versions, processor, cores and threads, the BLAS of NumPy, the kernel "
        "cache\nand the data folder: what a bug report should say.",
        "example:\n  fastfw info",
    )
    command(
        "warmup",
        "compile and cache every kernel",
        "Compile every kernel for float64 and float32 and keep the result on disk, so "
        "that\nlater runs start at once. A second call finds everything there and is quick.",
        "examples:\n  fastfw warmup\n  fastfw warmup --jobs 1",
    ).add_argument(
        "--jobs",
        type=whole(1),
        metavar="N",
        help="processes that compile, each what no other does (default: one for each core)",
    )
    return parser


_GO_ON = (
    "Every finished trial is kept in DIR/trials. What was stopped, by Ctrl-C or otherwise, goes "
    "on\nfrom there when the same command is given again."
)


# --- experiments ------------------------------------------------------------------------------


def _run(
    options: argparse.Namespace,
    function: str,
    names: str,
    files: tuple[str, ...],
    notes: Sequence[str | None] = (),
    keep: bool = False,
    kernels: Sequence[str] = (),
    **more: Any,
) -> int:
    """Carry out an experiment with the options of these names, and deliver its report.

    What is wrong before the work begins is the input's fault. On an empty cache, all cores compile
    `kernels` first, steps of the warm-up. Trials are kept as they finish, and, unless `keep` says
    so, no longer than until the files are there.
    """
    out = Path(options.out)
    try:
        made = prepare_folder(out, files)
    except OSError as error:
        raise UsageError(
            f"argument --out: no files can be written in {options.out!r}: {error.strerror or error}"
        ) from error
    given = {name: getattr(options, name) for name in f"{names} root trials seed".split()}
    given = {name: value for name, value in given.items() if value is not None}
    try:
        with on_cluster(options.scheduler), resumable(out / "trials"), progress_bar() as progress:
            if progress is not None:
                progress(0, 1, "data")
            with unusable_input():
                from fastfw import experiments
                from fastfw.experiments.trials import prepared

                experiment = getattr(experiments, function)
                jobs = -1 if options.scheduler and options.jobs is None else options.jobs
                plan = prepared(experiment)(**given, **more, n_jobs=jobs, progress=progress)
            for note in filter(None, notes):
                say(f"note: {note}")
            if tell_if_cold(progress) and kernels:
                from fastfw._warmup import warm_up

                warm_up(progress, dtypes=[options.dtype or "float64"], names=kernels)
            try:
                result = plan.carry_out()
            except FloatingPointError as error:  # features too large or too small
                raise UsageError(str(error)) from error
        from fastfw.experiments.reports import report

        return deliver(out, report(result), (lambda: None) if keep else plan.forget)
    finally:
        remove_empty([out / "trials", *made])


def _compare(options: argparse.Namespace) -> int:
    """Run ``fastfw compare``."""
    if options.problem == "network":
        for name, given in (
            ("--setting adversarial", options.setting != "stochastic"),
            ("--preset", options.preset is not None),
            ("--inner-steps", options.inner_steps is not None),
            ("--bounds", options.bounds),
            ("--sub-batch-size", options.sub_batch_size != SUB_BATCH),
        ):
            if given:
                raise UsageError(f"argument {name.split()[0]}: {name} is not for --problem network")
        return _compare_network(options)
    for name, given in (("--hidden", options.hidden), ("--init", options.init)):
        if given is not None:
            raise UsageError(f"argument {name}: it is for --problem network")
    offline = [method.name for method in TABLE if method.offline]
    if set(offline) & set(options.methods or ()):
        raise UsageError(f"argument --methods: {', '.join(offline)} are for --problem network")

    methods = find_methods(options.methods or default_methods(options.setting))
    notes = [*_unfit(options, methods), *(method.caution(options.setting) for method in methods)]
    return _run(
        options,
        "compare",
        "data label setting methods rounds batch_size radius dtype preset step momentum "
        "inner_steps bounds",
        ("regret.csv", "summary.csv", "regret.png"),
        notes,
        kernels=["comparator", *(method.label for method in methods)],
        sub_batch_size=options.sub_batch_size,
        folder=Path(options.out) / "trials",
    )


def _unfit(options: argparse.Namespace, methods: Sequence[Method]) -> list[str]:
    """Refuse options that no method takes; return notes on those that some do not take."""
    for option, kind, usual in (
        ("step", "step", None),
        ("momentum", "momentum", None),
        ("scale", "scale", None),
        ("inner_steps", "meta", None),
        ("sub_batch_size", "meta", SUB_BATCH),
    ):
        given = getattr(options, option, usual) != usual
        if given and not any(getattr(method, kind) and not method.offline for method in methods):
            raise UsageError(
                f"argument --{option.replace('_', '-')}: it is not for "
                f"{', '.join(method.name for method in methods)}; leave it out"
            )
    others = ", ".join(method.name for method in methods if not method.step)
    if options.step is None or not others:
        return []
    return [f"--step is not for {others}, with steps of their own"]


def _compare_network(options: argparse.Namespace) -> int:
    """Run ``fastfw compare-network``."""
    names = options.methods or [method.name for method in NETWORK_METHODS]
    with unusable_input():
        methods = find_methods(names, NETWORK_METHODS)
    return _run(
        options,
        "compare_network",
        "data label methods rounds batch_size radius dtype hidden init step momentum",
        ("trace.csv", "summary.csv", "network.png"),
        _unfit(options, methods),
        folder=Path(options.out) / "trials",
    )


def _reproduce(options: argparse.Namespace) -> int:
    """Run ``fastfw reproduce``."""
    for given in options.data or ():
        if "," in given and not Path(given).exists():
            raise UsageError(
                f"argument --data: {given!r} given; data sets are given with spaces between them"
            )
    return _run(
        options,
        "reproduce",
        "figure data out quick titles rounds batch_size radius",
        (f"{options.figure}.png", f"{options.figure}.csv", "claims.md"),
        keep=True,
    )


def _tune(options: argparse.Namespace) -> int:
    """Run ``fastfw tune``."""
    options.method = options.method or ("orgfw",)
    if len(options.method) != 1:
        raise UsageError(
            f"argument --method: {', '.join(options.method)} given, one method is wanted, of "
            f"{', '.join(method.name for method in METHODS)}"
        )
    if options.scale and options.eta:
        raise UsageError("argument --eta: it is the former name of --scale; give one of them")
    _unfit(options, find_methods(options.method))
    return _run(
        options,
        "grid_search",
        "data label setting rounds batch_size radius criterion",
        ("tune.csv",),
        keep=True,
        method=options.method[0],
        steps=options.step,
        momenta=options.momentum,
        scales=options.scale or options.eta,
        folder=Path(options.out) / "trials",
    )


# --- other commands ---------------------------------------------------------------------------


def _info(options: argparse.Namespace) -> int:
    """Run ``fastfw info``."""
    import fastfw
    from fastfw._info import describe

    facts = [("fastfw", f"{fastfw.__version__} in {Path(__file__).parent}"), *describe()]
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        write(f"{name:<{width}}  {value}")
    return 0


def _warmup(options: argparse.Namespace) -> int:
    """Run ``fastfw warmup``."""
    begun = time.perf_counter()
    from fastfw._info import cache_state
    from fastfw._warmup import is_warm, note_warm, warm_up

    before = after = cache_state()
    if not is_warm():
        with progress_bar() as progress:
            tell_if_cold(progress)
            warm_up(progress, jobs=options.jobs)
        note_warm()
        after = cache_state()
    seconds = time.perf_counter() - begun
    if after.folder is None:
        write(f"nothing cached: {after.reason} ({seconds:.1f} s)")
        return 0
    had, has = (sum(state.variants.values()) for state in (before, after))
    write(f"{has} kernel variants in the cache, {has - had} of them new, in {seconds:.1f} s")
    write(f"cache: {after}")
    return 0


_RUN = {
    "compare": _compare,
    "compare-network": _compare_network,
    "reproduce": _reproduce,
    "tune": _tune,
    "info": _info,
    "warmup": _warmup,
}


# --- start and end ----------------------------------------------------------------------------


@contextlib.contextmanager
def _open_streams() -> Iterator[None]:
    """Stand in for standard streams that are closed, which Python shows as None."""
    with contextlib.ExitStack() as stack:
        for name, redirect in (
            ("stdout", contextlib.redirect_stdout),
            ("stderr", contextlib.redirect_stderr),
        ):
            if getattr(sys, name) is None:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.enter_context(redirect(nowhere))
        yield


@contextlib.contextmanager
def _tidy_termination() -> Iterator[None]:
    """Let SIGTERM end the process as an exception does, so that empty folders are removed."""

    def end(number: int, frame: FrameType | None) -> NoReturn:
        raise SystemExit(128 + number)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    """Show a warning without the line of code that it comes from."""
    say(f"warning: {message}")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; a mistyped command gets a suggestion."""
    parser = _parser()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in tuple(_RUN):
        parser.error(f"unknown command {arguments[0]!r}; {closest(arguments[0], tuple(_RUN))}")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process, and return the exit code."""
    with _open_streams(), _tidy_termination():
        return _main(sys.argv[1:] if arguments is None else arguments)


def _main(arguments: Sequence[str]) -> int:
    """Run the command line, with streams that are there."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names that the terminal cannot show
    try:
        try:
            options = _parse(arguments)
        except SystemExit:  # after --help
            write(end="")
            raise
        if options.version:
            import fastfw

            write(f"fastfw {fastfw.__version__}")
            return 0
        if options.command is None:
            _parser().print_help()
            write(end="")
            return 0
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return _RUN[options.command](options)
    except UsageError as error:
        say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except BrokenPipeError:
        silence_stdout()  # the reader has seen enough
        return 1
    except (OSError, MemoryError, FloatingPointError) as error:
        say(f"error: {error or type(error).__name__}")
        try:
            sys.stdout.flush()
        except OSError:  # which may be the error itself
            silence_stdout()
        return 1


if __name__ == "__main__":
    sys.exit(main())
