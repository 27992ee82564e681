"""What commands say, where, and the folders they write to."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from fastfw._commands.options import UsageError
from fastfw._messages import printable
from fastfw.experiments._files import prepare_folder

__all__ = [
    "KEPT",
    "deliver",
    "progress_bar",
    "resumable",
    "say",
    "silence_stdout",
    "take_folder",
    "unusable_input",
    "write",
]


KEPT = "kept"
"""What progress is told of a step that an earlier run has done."""


def say(message: str) -> None:
    """Print one line on stderr, above a progress bar if there is one."""
    line = f"fastfw: {printable(' '.join(message.split()))}"
    with contextlib.suppress(OSError):  # nobody is left to tell
        if "tqdm" in sys.modules and sys.stderr.isatty():
            from tqdm import tqdm

            tqdm.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)


def silence_stdout() -> None:
    """Let what is left in the buffer of a broken stdout go nowhere when Python flushes at exit."""
    with contextlib.suppress(OSError, ValueError):  # a stream without a descriptor
        descriptor = sys.stdout.fileno()
        os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)


def write(text: str = "", end: str = "\n") -> None:
    """Print on stdout at once; an error says that it is stdout's."""
    try:
        print(printable(text), end=end, flush=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        silence_stdout()
        raise OSError(f"standard output: {error.strerror or error}") from error


@contextlib.contextmanager
def progress_bar() -> Iterator[Callable[[int, int, str], None] | None]:
    """Yield a progress function that draws a bar on a terminal; None where stderr is none."""
    if not sys.stderr.isatty():
        yield None
        return
    from tqdm import tqdm

    with tqdm(
        total=1,
        bar_format="{desc} {bar} {n_fmt}/{total_fmt} [{elapsed}, {remaining} left]",
        leave=False,
        # Some terminals say that they have no columns and no rows; no bar would be drawn there.
        ncols=shutil.get_terminal_size().columns - 1,
        nrows=20,
        file=sys.stderr,
    ) as bar:

        def progress(done: int, total: int, what: str) -> None:
            bar.total = total
            bar.n = done
            if what == KEPT:  # by an earlier run: it says nothing about the time that is left
                bar.initial = done + 1
                return
            bar.set_description_str(f"{what:<20}")

        yield progress


@contextlib.contextmanager
def resumable(trials: Path) -> Iterator[None]:
    """Where the work is interrupted or terminated, say what is kept of it and how to go on."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        count = sum(1 for _ in trials.glob("*.npz"))
        if count:
            kept = "1 finished trial is" if count == 1 else f"{count} finished trials are"
            say(f"{kept} kept in {trials}; the same command goes on from there")
        raise


@contextlib.contextmanager
def unusable_input() -> Iterator[None]:
    """Turn the errors of loading and checking input into usage errors."""
    try:
        yield
    except ChildProcessError:
        raise
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise UsageError(str(error)) from error
    except MemoryError as error:
        raise UsageError(str(error) or "not enough memory for this data") from error


def deliver(
    text: str,
    folder: Path,
    tables: Mapping[str, Callable[[Path], None]],
    picture: tuple[str, Callable[[Path], None]],
) -> int:
    """Write result files and print the text; the exit code.

    A picture is the last and the least: where it fails, one line says so, and the rest stands.
    """
    files = [folder / name for name in tables]
    # Before the text: whoever reads it may have left.
    try:
        for path, write_table in zip(files, tables.values(), strict=True):
            write_table(path)
    except OSError:
        write(text)  # so that the work is not lost
        raise
    code = 0
    name, draw = picture
    try:
        draw(folder / name)
        files.append(folder / name)
    except Exception as error:  # of Matplotlib, whose kinds are many
        say(f"error: {folder / name} cannot be drawn: {error or type(error).__name__}")
        code = 1
    write(f"{text}\nfiles: {', '.join(str(file) for file in files)}")
    return code


def take_folder(out: str, names: tuple[str, ...]) -> list[Path]:
    """Make sure that the result files can be written; the folders made for that."""
    try:
        return prepare_folder(out, names)
    except OSError as error:
        raise UsageError(
            f"argument --out: no files can be written in {out!r}: {error.strerror or error}"
        ) from error
