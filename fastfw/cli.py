"""The command line: ``fastfw compare | info | warmup``.

Exit codes: 0 done; 1 the work failed; 2 the input cannot be used (one line on stderr says why);
130 interrupted, 143 terminated. Only what a command needs is imported, and only once its arguments
are known to be fit: help and error messages come at once.
"""

import argparse
import contextlib
import io
import math
import os
import shutil
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TextIO

from fastfw.experiments._files import prepare_folder, remove_empty
from fastfw.experiments.methods import (
    METHODS,
    SETTINGS,
    SUB_BATCH,
    closest,
    default_methods,
    find_methods,
)
from fastfw.experiments.presets import PRESETS

__all__ = ["main"]

COMMANDS = ("compare", "info", "warmup")
DTYPES = ("float64", "float32")
FILES = ("regret.csv", "summary.csv", "regret.png")
NETWORK_FILES = ("trace.csv", "summary.csv", "network.png")
PROBLEMS = ("softmax", "network")
OFFLINE = ("svrf", "spiderfw")
INITS = ("zeros", "vertex", "random")


class UsageError(Exception):
    """The input cannot be used; the message becomes the one line on stderr."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see '{self.prog} --help')")


class _Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows defaults where there are any, and keeps the lines of examples."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is False:
            return action.help
        return super()._get_help_string(action)


# --- values of options ------------------------------------------------------------------------


def _whole(minimum: int) -> Callable[[str], int]:
    """Make the type of options that are whole numbers of at least `minimum`."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = minimum - 1
        if number < minimum:
            raise argparse.ArgumentTypeError(
                f"{text!r} given, a whole number of at least {minimum} wanted"
            )
        return number

    return parse


def _sub_batch(text: str) -> int | None:
    """Parse the rows of a sub-batch; None for the whole batch."""
    if text.casefold() == "all":
        return None
    try:
        return _whole(1)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or 'all'") from None


def _positive(text: str) -> float:
    """Parse a finite number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text!r} given, a finite number above 0 wanted")
    return number


def _folder(text: str) -> str:
    """Take the name of a folder, which an empty one is not."""
    if not text:
        raise argparse.ArgumentTypeError("'' given, a folder wanted; the working folder is '.'")
    return text


def _one_of(candidates: Sequence[str]) -> Callable[[str], str]:
    """Make the type of options that are one of a few words."""

    def parse(text: str) -> str:
        word = text.casefold()
        if word not in candidates:
            raise argparse.ArgumentTypeError(f"unknown {text!r}; {closest(text, candidates)}")
        return word

    return parse


def _methods(text: str) -> tuple[str, ...]:
    """Parse names of methods between commas; offline ones, for networks only, go last."""
    given = text.split(",")
    plain = ["".join(c for c in name.casefold() if c not in "-_ ") for name in given]
    offline = tuple(name for name in OFFLINE if name in plain)
    rest = [name for name, word in zip(given, plain, strict=True) if word not in OFFLINE]
    if offline and not rest:
        return offline
    try:
        return (*(method.name for method in find_methods(rest)), *offline)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).removeprefix("methods: ")) from None


def _schedule(text: str) -> tuple[float, float]:
    """Parse ``c,e``; fractions such as 2/3 are understood."""
    try:
        c, e = (float(Fraction(part.strip())) for part in text.split(","))
    except (ValueError, ZeroDivisionError, OverflowError):
        c = e = math.nan
    if not (math.isfinite(c) and c > 0 and math.isfinite(e) and e >= 0):
        raise argparse.ArgumentTypeError(
            f"{text!r} given, C,E wanted with C above 0 and E at least 0, such as 1,2/3"
        )
    return c, e


def _parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line."""
    parser = _Parser(
        prog="fastfw",
        description="Projection-free online learning: compare Frank-Wolfe methods on a stream.",
        epilog="example:\n  fastfw compare\n\nFASTFW_DATA names the folder of data sets that are "
        "not embedded.\nExit codes: 0 done, 1 failed, 2 unusable input, 130 interrupted.",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="{" + ",".join(COMMANDS) + "}"
    )
    _add_compare(commands)
    commands.add_parser(
        "info",
        help="versions, processor, threads, kernel cache",
        description="Print versions, processor, cores and threads, the BLAS of NumPy, the kernel "
        "cache\nand the data folder: what a bug report should say.",
        epilog="example:\n  fastfw info",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    commands.add_parser(
        "warmup",
        help="compile and cache every kernel",
        description="Compile every kernel for float64 and float32 and keep the result on disk, so "
        "that\nlater runs start at once. A second call finds everything there and is quick.",
        epilog="example:\n  fastfw warmup",
        formatter_class=_Help,
        allow_abbrev=False,
    )
    return parser


def _add_compare(commands: Any) -> None:
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
        formatter_class=_Help,
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
    option(
        "--root",
        metavar="DIR",
        type=_folder,
        help="folder of the data sets, in place of FASTFW_DATA",
        default=None,
    )
    option(
        "--problem",
        metavar="|".join(PROBLEMS),
        type=_one_of(PROBLEMS),
        default="softmax",
        help="multiclass logistic regression, or a network with one hidden layer: then at equal "
        "gradient evaluations, with the offline methods svrf and spiderfw too",
    )
    option(
        "--hidden",
        metavar="M",
        type=_whole(1),
        default=None,
        help="hidden units of the network (default: 10)",
    )
    option(
        "--init",
        metavar="|".join(INITS),
        type=_one_of(INITS),
        default=None,
        help="where methods start on the network (default: random)",
    )
    option(
        "--setting",
        metavar="|".join(SETTINGS),
        type=_one_of(SETTINGS),
        default="stochastic",
        help="batches drawn at random with replacement, or rows sorted by label, block by block",
    )
    option(
        "--methods",
        metavar="A,B,C",
        type=_methods,
        help=f"which methods, of: {names} (default: {standard})",
    )
    option("--rounds", metavar="T", type=_whole(1), help=f"rounds in a trial ({fit})")
    option("--batch-size", metavar="B", type=_whole(1), help=f"rows in a batch ({fit})")
    option(
        "--radius",
        metavar="R",
        type=_positive,
        help=f"l1 norm that each row of the decision may have ({fit})",
    )
    option("--trials", metavar="N", type=_whole(1), default=6, help="runs of each method")
    option("--seed", metavar="SEED", type=_whole(0), default=0, help="seed of the first trial")
    option(
        "--dtype",
        metavar="|".join(DTYPES),
        type=_one_of(DTYPES),
        default="float64",
        help="of features and decisions while learning; regret is always computed in float64",
    )
    option(
        "--preset",
        metavar="NAME",
        type=_one_of(tuple(PRESETS)),
        help=f"constants of the paper's experiments, or theory; one of: "
        f"{', '.join(PRESETS)} (default: the paper's for the data set where it has any, else "
        "theory)",
    )
    option(
        "--step",
        metavar="C,E",
        type=_schedule,
        help="step min(C/(t+1)^E, 1) for all methods, in place of the preset's",
    )
    option(
        "--momentum",
        metavar="C,E",
        type=_schedule,
        help="momentum min(C/(t+1)^E, 1) for the methods that have one, likewise",
    )
    option(
        "--inner-steps",
        metavar="K",
        type=_whole(1),
        help="inner steps of morgfw and metafw in a round (default: theory's, T and T^(3/2))",
    )
    option(
        "--sub-batch-size",
        metavar="N|all",
        type=_sub_batch,
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
        type=_folder,
        default="fastfw-compare",
        help="folder for the three files, made if missing; files of these names are replaced",
    )


# --- commands ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _bar() -> Iterator[Callable[[int, int, str], None] | None]:
    """Yield a progress function that draws a bar on a terminal; None where stderr is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(
        total=1,
        bar_format="{desc} {bar} {n_fmt}/{total_fmt} [{elapsed}]",
        leave=False,
        # Some terminals say that they have no columns and no rows; no bar would be drawn there.
        ncols=shutil.get_terminal_size().columns - 1,
        nrows=20,
        file=sys.stderr,
    ) as bar:

        def progress(done: int, total: int, what: str) -> None:
            bar.total = total
            bar.n = done
            bar.set_description_str(f"{what:<20}")

        yield progress


@contextlib.contextmanager
def _unusable_input() -> Iterator[None]:
    """Turn the errors of loading and checking input into usage errors."""
    try:
        yield
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise UsageError(str(error)) from error
    except MemoryError as error:
        raise UsageError(str(error) or "not enough memory for this data") from error


def _take_folder(out: str, names: tuple[str, ...] = FILES) -> list[Path]:
    """Make sure that the result files can be written; the folders made for that."""
    try:
        return prepare_folder(out, names)
    except OSError as error:
        raise UsageError(
            f"argument --out: no files can be written in {out!r}: {error.strerror or error}"
        ) from error


def _compare(options: argparse.Namespace) -> int:
    """Run ``fastfw compare``."""
    if options.problem == "network":
        return _compare_network(options)
    for name, given in (("--hidden", options.hidden), ("--init", options.init)):
        if given is not None:
            raise UsageError(f"argument {name}: it is for --problem network")
    if set(OFFLINE) & set(options.methods or ()):
        raise UsageError(f"argument --methods: {', '.join(OFFLINE)} are for --problem network")
    made = _take_folder(options.out)
    try:
        from fastfw.experiments import comparison, plots, report

        with _bar() as progress:
            if progress is not None:
                progress(0, 1, "data")
            race = _prepare(options)
            for method in race.methods:
                caution = method.caution(race.setting)
                if caution is not None:
                    _say(f"note: {caution}")
            try:
                result = comparison.run(race, progress=progress)
            except FloatingPointError as error:  # features too large or too small
                raise UsageError(str(error)) from error
            if progress is not None:
                progress(race.steps, race.steps, "picture")
            for outcome in result.methods:
                if outcome.no_bound:
                    _say(f"note: {outcome.no_bound}")
            figure = plots.regret_figure(result)
        table = report.format_table(result)
        folder = Path(options.out)
        # Before the table: whoever reads it may have left.
        try:
            report.write_regret_csv(result, folder / FILES[0])
            report.write_summary_csv(result, folder / FILES[1])
            plots.write_regret_png(figure, folder / FILES[2])
        except OSError:
            _print(table)  # so that the work is not lost
            raise
    except BaseException:
        remove_empty(made)
        raise
    _print(f"{table}\nfiles: {', '.join(str(folder / name) for name in FILES)}")
    return 0


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
    made = _take_folder(options.out, NETWORK_FILES)
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
        with _bar() as progress, _unusable_input():
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
        figure = network_report.network_figure(result)
        print(network_report.format_network_table(result), flush=True)
        folder = Path(options.out)
        network_report.write_trace_csv(result, folder / NETWORK_FILES[0])
        network_report.write_network_summary(result, folder / NETWORK_FILES[1])
        network_report.write_network_png(figure, folder / NETWORK_FILES[2])
    except BaseException:
        remove_empty(made)
        raise
    print(f"files: {', '.join(str(folder / name) for name in NETWORK_FILES)}")
    return 0


def _prepare(options: argparse.Namespace) -> Any:
    """Load the data and check all that can only be checked with it."""
    from fastfw.experiments.comparison import prepare
    from fastfw.schedules import power_schedule

    with _unusable_input():
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


def _info(options: argparse.Namespace) -> int:
    """Run ``fastfw info``."""
    from fastfw._info import describe

    facts = describe()
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        _print(f"{name:<{width}}  {value}")
    return 0


def _warmup(options: argparse.Namespace) -> int:
    """Run ``fastfw warmup``."""
    begun = time.perf_counter()
    from fastfw._info import cache_state, warm_up

    before = cache_state()
    with _bar() as progress:
        warm_up(progress)
    after = cache_state()
    seconds = time.perf_counter() - begun
    if after.folder is None:
        _print(f"nothing cached: {after.reason} ({seconds:.1f} s)")
        return 0
    added = after.variants - before.variants
    _print(f"compiled {added} kernel variants, {after.variants} in the cache, in {seconds:.1f} s")
    _print(f"cache: {after}")
    return 0


_RUN = {"compare": _compare, "info": _info, "warmup": _warmup}


# --- the door ---------------------------------------------------------------------------------


def _say(message: str) -> None:
    """Print one line on stderr, above a progress bar if there is one."""
    line = f"fastfw: {' '.join(message.split())}"
    with contextlib.suppress(OSError):  # nobody is left to tell
        if "tqdm" in sys.modules and sys.stderr.isatty():
            from tqdm import tqdm

            tqdm.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)


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


def _silence_stdout() -> None:
    """Let what is left in the buffer of a broken stdout go nowhere when Python flushes at exit."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
        descriptor = sys.stdout.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def _print(text: str = "", end: str = "\n") -> None:
    """Print on stdout at once; an error says that it is stdout's."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        _silence_stdout()
        raise OSError(f"standard output: {error.strerror or error}") from error


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning without the line of code that it comes from."""
    _say(f"warning: {message}")


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the command line; a mistyped command gets a suggestion."""
    parser = _parser()
    if arguments and not arguments[0].startswith("-") and arguments[0] not in COMMANDS:
        parser.error(f"unknown command {arguments[0]!r}; {closest(arguments[0], COMMANDS)}")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        By default those of the process.

    Returns
    -------
    int
        The exit code: 0 done, 1 the work failed, 2 the input cannot be used, 130 interrupted.
    """
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
            _print(end="")
            raise
        if options.version:
            import fastfw

            _print(f"fastfw {fastfw.__version__}")
            return 0
        if options.command is None:
            _parser().print_help()
            _print(end="")
            return 0
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            return _RUN[options.command](options)
    except UsageError as error:
        _say(f"error: {error}")
        return 2
    except KeyboardInterrupt:
        _say("interrupted")
        return 130
    except BrokenPipeError:
        _silence_stdout()  # the reader has seen enough
        return 1
    except (OSError, MemoryError, FloatingPointError) as error:
        _say(f"error: {error or type(error).__name__}")
        try:
            sys.stdout.flush()
        except OSError:  # which may be the error itself
            _silence_stdout()
        return 1


if __name__ == "__main__":
    sys.exit(main())
