"""The command line: ``fastfw compare | reproduce | tune | info | warmup``.

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
from types import FrameType
from typing import NoReturn, TextIO

from fastfw._commands import compare, reproduce, tune
from fastfw._commands.options import Help, Parser, UsageError, whole
from fastfw._commands.output import progress_bar, say, silence_stdout, write
from fastfw.experiments.methods import closest

__all__ = ["main"]

COMMANDS = ("compare", "reproduce", "tune", "info", "warmup")


def _parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command line."""
    parser = Parser(
        prog="fastfw",
        description="Projection-free online learning: compare Frank-Wolfe methods on a stream.",
        epilog="example:\n  fastfw compare\n\nFASTFW_DATA names the folder of data sets that are "
        "not embedded.\nExit codes: 0 done, 1 failed, 2 unusable input, 130 interrupted.",
        formatter_class=Help,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="store_true", help="print the version and stop")
    commands = parser.add_subparsers(
        title="commands", dest="command", metavar="{" + ",".join(COMMANDS) + "}"
    )
    compare.add_parser(commands)
    reproduce.add_parser(commands)
    tune.add_parser(commands)
    commands.add_parser(
        "info",
        help="versions, processor, threads, kernel cache",
        description="Print versions, processor, cores and threads, the BLAS of NumPy, the kernel "
        "cache\nand the data folder: what a bug report should say.",
        epilog="example:\n  fastfw info",
        formatter_class=Help,
        allow_abbrev=False,
    )
    warmup = commands.add_parser(
        "warmup",
        help="compile and cache every kernel",
        description="Compile every kernel for float64 and float32 and keep the result on disk, so "
        "that\nlater runs start at once. A second call finds everything there and is quick.",
        epilog="examples:\n  fastfw warmup\n  fastfw warmup --jobs 1",
        formatter_class=Help,
        allow_abbrev=False,
    )
    warmup.add_argument(
        "--jobs",
        type=whole(1),
        metavar="N",
        help="processes that compile, each what no other does (default: one for each core)",
    )
    return parser


# --- commands ---------------------------------------------------------------------------------


def _info(options: argparse.Namespace) -> int:
    """Run ``fastfw info``."""
    from fastfw._info import describe

    facts = describe()
    width = max(len(name) for name, _ in facts)
    for name, value in facts:
        write(f"{name:<{width}}  {value}")
    return 0


def _warmup(options: argparse.Namespace) -> int:
    """Run ``fastfw warmup``."""
    begun = time.perf_counter()
    from fastfw._info import cache_state
    from fastfw._warmup import warm_up

    before = cache_state()
    with progress_bar() as progress:
        warm_up(progress, jobs=options.jobs)
    after = cache_state()
    seconds = time.perf_counter() - begun
    if after.folder is None:
        write(f"nothing cached: {after.reason} ({seconds:.1f} s)")
        return 0
    had, has = (sum(state.variants.values()) for state in (before, after))
    write(f"compiled {has - had} kernel variants, {has} in the cache, in {seconds:.1f} s")
    write(f"cache: {after}")
    return 0


_RUN = {
    "compare": compare.run,
    "reproduce": reproduce.run,
    "tune": tune.run,
    "info": _info,
    "warmup": _warmup,
}


# --- the door ---------------------------------------------------------------------------------


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


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Show a warning without the line of code that it comes from."""
    say(f"warning: {message}")


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
