"""Parsers whose errors are one line, and the types of options."""

import argparse
import contextlib
import math
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NoReturn

from fastfw.experiments.methods import SETTINGS, closest, find_methods

__all__ = [
    "OFFLINE",
    "Help",
    "Parser",
    "UsageError",
    "add_root",
    "add_seed",
    "add_setting",
    "each",
    "folder_name",
    "method_names",
    "one_of",
    "positive",
    "schedule",
    "sub_batch",
    "whole",
]

OFFLINE = ("svrf", "spiderfw")


class UsageError(Exception):
    """The input cannot be used; the message becomes the one line on stderr."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, without the usage."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
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


def whole(minimum: int) -> Callable[[str], int]:
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


def sub_batch(text: str) -> int | None:
    """Parse the rows of a sub-batch; None for the whole batch."""
    if text.casefold() == "all":
        return None
    try:
        return whole(1)(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error}, or 'all'") from None


def positive(text: str) -> float:
    """Parse a finite number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise argparse.ArgumentTypeError(f"{text!r} given, a finite number above 0 wanted")
    return number


def each(parse: Callable[[str], Any], commas: int = 0) -> Callable[[str], Any]:
    """Make the type of options that take several values, each with so many commas in it."""

    def parse_one(text: str) -> Any:
        try:
            return parse(text)
        except argparse.ArgumentTypeError as error:
            hint = (
                "; several are given with spaces between them" if text.count(",") > commas else ""
            )
            raise argparse.ArgumentTypeError(f"{error}{hint}") from None

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


def method_names(text: str) -> tuple[str, ...]:
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


def schedule(text: str) -> tuple[float, float]:
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


# Options that commands share. `option` is a parser's add_argument.


def add_root(option: Callable[..., Any]) -> None:
    """Add the folder of the data sets."""
    option(
        "--root",
        metavar="DIR",
        type=folder_name,
        default=None,
        help="folder of the data sets, in place of FASTFW_DATA",
    )


def add_setting(option: Callable[..., Any]) -> None:
    """Add how batches arrive."""
    option(
        "--setting",
        metavar="|".join(SETTINGS),
        type=one_of(SETTINGS),
        default="stochastic",
        help="batches drawn at random with replacement, or rows sorted by label, block by block",
    )


def add_seed(option: Callable[..., Any]) -> None:
    """Add the seed of the first trial."""
    option("--seed", metavar="SEED", type=whole(0), default=0, help="seed of the first trial")
