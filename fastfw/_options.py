"""Parsers whose errors are one line, and the types of options."""

import argparse
import contextlib
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn, TypeVar

from fastfw.experiments.methods import (
    CRITERIA,
    METHODS,
    PRESETS,
    SETTINGS,
    Method,
    closest,
    default_methods,
    find_methods,
)
from fastfw.learners import TABLE
from fastfw.learners._method import SUB_BATCH

T = TypeVar("T")


class UsageError(Exception):
    """The input cannot be used; the message becomes the one line on stderr."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=Help, allow_abbrev=False)
        # No option begins with a digit: "-1,1" and "-1e3" are values, if poor ones.
        self._negative_number_matcher = re.compile(r"-[.,]?\d")

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}{self._way_out(message)} (see '{self.prog} --help')")

    def print_help(self, file: Any = None) -> None:
        """Print the help; an error comes with the flush that follows, as from Python 3.11 on."""
        with contextlib.suppress(OSError):
            super().print_help(file)

    def _way_out(self, message: str) -> str:
        """Return what may help where argparse only says what it misses."""
        argument = re.match(r"argument (--\S+): expected ", message)
        if argument is not None:
            return f"; one that begins with '-' is given as {argument[1]}=VALUE"
        if "arguments are required" in message:
            return "; name it before any option"
        if message.startswith("unrecognized arguments") and " -" not in message:
            return "; a value has to follow its option, and a list like A,B,C has no spaces in it"
        return ""


class Help(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Shows defaults where there are any, and keeps the lines of examples."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.default is None or action.default is False:
            return action.help
        return super()._get_help_string(action)


def _parsed(text: str, parse: Callable[[str], T], fits: Callable[[T], bool], wanted: str) -> T:
    """Return what a text stands for if it fits, else say what is wanted."""
    with contextlib.suppress(ValueError, ZeroDivisionError, OverflowError):
        value = parse(text)
        if fits(value):
            return value
    raise argparse.ArgumentTypeError(f"{text!r} given, {wanted}")


def whole(minimum: int) -> Callable[[str], int]:
    """Make the type of options that are whole numbers of at least `minimum`."""
    wanted = f"a whole number of at least {minimum} wanted"
    return lambda text: _parsed(text, int, lambda number: number >= minimum, wanted)


def sub_batch(text: str) -> int | None:
    """Parse the rows of a sub-batch; None for the whole batch."""
    if text.casefold() == "all":
        return None
    wanted = "a whole number of at least 1 wanted, or 'all'"
    return _parsed(text, int, lambda number: number >= 1, wanted)


def positive(text: str) -> float:
    """Parse a finite number above zero."""
    return _parsed(text, float, lambda x: 0 < x < math.inf, "a finite number above 0 wanted")


def each(parse: Callable[[str], Any], commas: int = 0) -> Callable[[str], Any]:
    """Make the type of options that take several values, each with so many commas in it."""

    def parse_one(text: str) -> Any:
        try:
            return parse(text)
        except argparse.ArgumentTypeError as error:
            if text.count(",") <= commas:
                raise
            hint = "several are given with spaces between them"
            raise argparse.ArgumentTypeError(f"{error}; {hint}") from None

    return parse_one


def folder_name(text: str) -> str:
    """Take the name of a folder, which an empty one is not."""
    if not text:
        raise argparse.ArgumentTypeError("'' given, a folder wanted; the working folder is '.'")
    return text


def one_of(candidates: Sequence[str]) -> Callable[[str], str]:
    """Make the type of options that are one of a few words."""

    def parse(text: str) -> str:
        word = text.casefold()
        if word not in candidates:
            raise argparse.ArgumentTypeError(f"unknown {text!r}; {closest(text, candidates)}")
        return word

    return parse


def method_names(among: Sequence[Method]) -> Callable[[str], tuple[str, ...]]:
    """Make the type of options that name methods between commas, or all; offline ones go last."""

    def parse(text: str) -> tuple[str, ...]:
        names = text.split(",")
        if "all" in (name.strip().casefold() for name in names):
            if len(names) > 1:
                raise argparse.ArgumentTypeError(f"{text!r} given; all stands alone")
            return tuple(method.name for method in (METHODS if among is TABLE else among))
        try:
            found = find_methods(names, among)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error).removeprefix("methods: ")) from None
        return tuple(method.name for method in sorted(found, key=lambda method: method.offline))

    return parse


def jobs(text: str) -> int:
    """Parse a number of jobs, negative ones counting from the number of cores."""
    return _parsed(text, int, lambda number: number != 0, "a whole number other than 0 wanted")


def schedule(text: str) -> tuple[float, float]:
    """Parse ``c,e``; fractions such as 2/3 are understood."""

    def pair(text: str) -> tuple[float, float]:
        c, e = (float(Fraction(part.strip())) for part in text.split(","))
        return c, e

    return _parsed(
        text,
        pair,
        lambda found: 0 < found[0] < math.inf and 0 <= found[1] < math.inf,
        "C,E wanted with C above 0 and E at least 0, such as 1,2/3",
    )


# --- options that commands share ---------------------------------------------------------------

_FIT = "default: a value that suits the data"
_NAMES = [method.name for method in METHODS]
_STANDARD = "; ".join(f"{s}: {','.join(default_methods(s))}" for s in SETTINGS)


def _option(
    name: str, metavar: str, type: Callable[[str], Any], help: str, default: Any = None, **more: Any
) -> tuple[str, dict[str, Any]]:
    return name, {"metavar": metavar, "type": type, "help": help, "default": default, **more}


def _word(
    name: str, words: Sequence[str], help: str, default: Any = None
) -> tuple[str, dict[str, Any]]:
    return _option(name, "|".join(words), one_of(words), help, default)


#: By name, arguments of `add_argument`.
_OPTIONS: dict[str, dict[str, Any]] = dict(
    [
        _option("--data", "NAME|PATH", str, "fashion-mnist-4k (embedded), mnist, fashion-mnist, "
                "cifar10, digits, or the path of a .csv file, or of an .npz file with X and y",
                "fashion-mnist-4k"),
        _option("--label", "COLUMN", str,
                "which column of a CSV file has the labels (default: the last one)"),
        _option("--root", "DIR", folder_name,
                "folder of the data sets, in place of FASTFW_DATA"),
        _word("--setting", SETTINGS, "batches drawn at random with replacement, or rows sorted by "
              "label, block by block", "stochastic"),
        _option("--hidden", "M", whole(1), "hidden units (default: 10)"),
        _word("--init", ("zeros", "vertex", "random"), "where methods start (default: random)"),
        _option("--methods", "A,B,C", method_names(TABLE),
                f"which methods, all or of: {','.join(_NAMES)} (default: {_STANDARD})"),
        _option("--method", "NAME", method_names(METHODS), f"one of {', '.join(_NAMES)} "
                "(default: orgfw)"),
        _option("--rounds", "T", whole(1), f"rounds in a trial ({_FIT})"),
        _option("--batch-size", "B", whole(1), f"rows in a batch ({_FIT})"),
        _option("--radius", "R", positive,
                f"l1 norm that each row of the decision may have ({_FIT})"),
        _option("--trials", "N", whole(1), "runs of each method", 6),
        _option("--seed", "SEED", whole(0), "seed of the first trial", 0),
        _word("--dtype", ("float64", "float32"), "of features and decisions while learning; "
              "regret is always computed in float64", "float64"),
        _option("--preset", "NAME", one_of(tuple(PRESETS)), "constants of the paper's "
                f"experiments, or theory; one of: {', '.join(PRESETS)} (default: the paper's for "
                "the data set where it has any, else theory)"),
        _option("--step", "C,E", schedule,
                "step min(C/(t+1)^E, 1) for all methods that take one, in place of the preset's"),
        _option("--momentum", "C,E", schedule,
                "momentum min(C/(t+1)^E, 1) for the methods that have one, likewise"),
        _option("--scale", "C", each(positive), "regularized-ofw's c, or c of FTPL for meta "
                "methods", nargs="+", action="extend"),
        _option("--inner-steps", "K", whole(1), "inner steps of morgfw and metafw in a round "
                "(default: theory's, T and T^(3/2))"),
        _option("--sub-batch-size", "N|all", sub_batch,
                "rows that morgfw and metafw draw from the batch for an inner step", SUB_BATCH),
        ("--bounds", {"action": "store_true", "help": "draw into the picture what the paper "
                      "proves regret to be at most: of orgfw (stochastic) and morgfw "
                      "(adversarial), with --preset theory"}),
        ("--quick", {"action": "store_true", "help": "fewer rounds and trials: a minute or two"}),
        _word("--criterion", CRITERIA, "what should be low: the loss of the decisions "
              "played, or that of the last one", "regret"),
        _option("--jobs", "N", jobs, "trials at the same time, by joblib; -1 for all cores "
                "(default: one, without joblib)"),
        ("--scheduler", {"metavar": "ADDRESS", "help": "do trials on the workers of this Dask "
                         "scheduler, such as tcp://10.0.0.1:8786, --jobs of them at a time "
                         "(default: as many as there are threads)"}),
        _option("--out", "DIR", folder_name, "folder for the files, made if missing; files of "
                "these names are replaced"),
    ]
)  # fmt: skip


def add_options(parser: argparse.ArgumentParser, names: str, **changes: dict[str, Any]) -> None:
    """Add options by their names, with what is different in this command."""
    for name in names.split():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, **{**_OPTIONS.get(option, {}), **changes.get(name, {})})
