"""What commands say, where, and the folders and files they write."""

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fastfw._files import open_beside
from fastfw._messages import printable
from fastfw._options import UsageError


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
            if what == "kept":  # by an earlier run: it says nothing about the time that is left
                bar.initial = done + 1
                return
            bar.set_description_str(f"{what:<20}")

        yield progress


def tell_if_cold(progress: Callable[[int, int, str], None] | None) -> bool:
    """Whether no kernel is kept yet; who sees no bar is told that they are compiled."""
    import numba

    from fastfw.kernels import _cache

    folder, _ = _cache.place()
    kept = folder is not None and any(folder.glob(f"*{_cache.SUFFIX}"))
    cold = not (kept or numba.config.DISABLE_JIT)
    if cold and progress is None:
        say("compiling kernels, once, about a minute")
    return cold


@contextlib.contextmanager
def on_cluster(address: str | None) -> Iterator[None]:
    """Let joblib hand what is done in the block to the workers of a Dask scheduler, if any."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
        from joblib import parallel_config
    except ImportError as error:
        raise UsageError(
            f"argument --scheduler: {error}; it needs pip install 'fastfw[dask]' joblib"
        ) from error
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"argument --scheduler: no Dask scheduler answers at {address!r}: {error}"
        ) from error
    with client, parallel_config("dask"):
        yield


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
    except (ValueError, TypeError, OSError, ImportError) as error:
        raise UsageError(str(error)) from error
    except MemoryError as error:
        raise UsageError(str(error) or "not enough memory for this data") from error


def deliver(folder: Path, report: Any, forget: Callable[[], None]) -> int:
    """Write what a report has written and print its text; the exit code.

    Pictures are the last and the least: where one fails, one line says so, and the rest stands.
    When all files are there, what they were made of may be forgotten.
    """
    for note in report.notes:
        say(f"note: {note}")
    files = [folder / name for name in report.tables]
    # Before the text: whoever reads it may have left.
    try:
        for path in files:
            report.tables[path.name](path)
    except OSError:
        write(report.text)  # so that the work is not lost
        raise
    code = 0
    for name, draw in report.pictures.items():
        path = folder / name
        try:
            draw(path)
            files.append(path)
        except Exception as error:  # of Matplotlib, whose kinds are many
            say(f"error: {path} cannot be drawn: {error or type(error).__name__}")
            code = 1
    if code == 0:
        forget()
    write(f"{report.text}\nfiles: {', '.join(str(file) for file in files)}")
    return code


def prepare_folder(folder: str | os.PathLike[str], names: tuple[str, ...]) -> list[Path]:
    """Make `folder` where it is missing and prove that the files `names` can be written in it.

    Return the folders that were made, innermost first, so that a run that fails can take away what
    it left empty. What was made before an OSError is removed again.
    """
    folder = Path(folder)
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        if made:
            folder.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            raise NotADirectoryError(f"{str(folder)!r} is a file, not a folder")
        for name in names:
            if (folder / name).is_dir():
                raise IsADirectoryError(f"{str(folder / name)!r} is a folder, not a file")
        # Only a write tells: permission bits say nothing about full disks, read-only mounts, root.
        descriptor, temporary = open_beside(folder / names[0])
        os.close(descriptor)
        with contextlib.suppress(FileNotFoundError):  # another process has tidied up
            os.unlink(temporary)
    except OSError:
        remove_empty(made)
        raise
    return made


def remove_empty(folders: list[Path]) -> None:
    """Remove `folders` (innermost first) as far as they are there and empty."""
    for folder in folders:
        with contextlib.suppress(OSError):
            folder.rmdir()
