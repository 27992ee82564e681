"""Trials, the runner that does them, and the store that keeps them.

A trial is (method, constants, data, seed) → arrays; every experiment is a list of them and a
report of what they gave. In a folder each is kept when it is done, as a file of arrays whose name
ends in a digest of all that determines the outcome. It is written whole or not at all: whoever
kills the process loses at most the trial it is at, and other settings, data or versions take no
stale trial for theirs.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Generic, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fastfw import _checks
from fastfw._files import atomic_write, remove_abandoned
from fastfw._interrupts import without_interrupts
from fastfw._version import __version__

Arrays = dict[str, npt.NDArray[Any]]
Settings = Mapping[str, Any]

Progress: TypeAlias = Callable[[int, int, str], None]
"""Called as ``progress(done, total, what)`` before each step and once at the end."""

KEPT = "kept"
"""What progress is told of a step that an earlier run has done."""

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_SETTINGS = "settings"
_NAME = re.compile(r"([^/]+-)?[0-9a-f]{20}\.npz")
_WARM: set[tuple[str, ...]] = set()
"""Kinds of trials that this process has compiled."""


class Task(NamedTuple):
    """One piece of work, which other processes can do as well."""

    label: str
    #: How it is done.
    do: Callable[[], Arrays]
    #: All that determines its outcome, in types that JSON knows; None where it is not kept.
    settings: Settings | None
    #: Shapes of arrays that have to come of it.
    shapes: Mapping[str, tuple[int, ...]]
    #: What is to be done once in a process for all tasks of a kind, before the clock runs.
    kind: tuple[str, ...] = ()
    warm_up: Callable[[], object] | None = None


class TrialStore:
    """A folder of finished trials, made when the first is kept."""

    def __init__(self, folder: str | os.PathLike[str]):
        self.folder = Path(folder)

    def path(self, settings: Settings) -> Path:
        """Return the file of a trial; its name says `what`, `method` and `seed` for people."""
        digest = hashlib.blake2b(self._text(settings).encode(), digest_size=10).hexdigest()
        words = [str(settings[key]) for key in ("what", "method", "seed") if key in settings]
        return self.folder / f"{'-'.join([*words, digest])}.npz"

    def tidy(self) -> None:
        """Remove what killed processes have left of trials that they were about to keep."""
        remove_abandoned(self.folder, lambda name: _NAME.fullmatch(name) is not None)

    def get(self, settings: Settings) -> Arrays | None:
        """Return the arrays of a trial, or None where it is not kept or its file is damaged."""
        try:
            with self.path(settings).open("rb") as handle:
                file = np.load(handle, allow_pickle=False)
                arrays = {name: file[name] for name in file.files}
        # Damage surfaces as a dozen kinds of exception; the trial is simply done again.
        except Exception:
            return None
        known = arrays.pop(_SETTINGS, None)
        return arrays if known is not None and str(known) == self._text(settings) else None

    def put(self, settings: Settings, arrays: Mapping[str, npt.ArrayLike]) -> None:
        """Keep a finished trial; the file appears whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = np.array(self._text(settings))
        contents: dict[str, Any] = {**arrays, _SETTINGS: text}
        with atomic_write(self.path(settings), binary=True) as file:
            np.savez(file, **contents)

    @staticmethod
    def _text(settings: Settings) -> str:
        return json.dumps({**settings, "fastfw": __version__}, sort_keys=True)


# --- the runner -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan(Generic[R]):
    """Work that is ready to be done, everything checked, and what its outcomes are made into."""

    tasks: Sequence[Task]
    assemble: Callable[[list[Arrays]], R]
    #: Where outcomes are kept as they come, and taken from.
    folder: str | os.PathLike[str] | None = None
    #: From `parallel_for`, for tasks that are done at the same time.
    parallel: Any = None
    progress: Progress | None = None
    #: What the trials share.
    setup: Any = None

    def __post_init__(self) -> None:
        """Refuse what nothing can be kept in or told to."""
        if self.progress is not None and not callable(self.progress):
            raise TypeError(
                "progress must be a function of (done, total, what), but it is "
                f"{_checks.describe(self.progress)}"
            )
        name = None if self.folder is None else os.fspath(self.folder)
        if name is not None and os.path.exists(name) and not os.path.isdir(name):
            raise NotADirectoryError(f"folder must name a folder, but {name} is a file")

    def carry_out(self) -> R:
        """Do what is not kept in the folder, and put everything together."""
        return self.assemble(run_all(self.tasks, self.folder, self.parallel, self.progress))

    run = carry_out

    def forget(self) -> None:
        """Remove what is kept, and the folder if nothing else is in it."""
        if self.folder is None:
            return
        store = TrialStore(self.folder)
        with suppress(OSError):
            for task in self.tasks:
                if task.settings is not None:
                    store.path(task.settings).unlink(missing_ok=True)
            store.folder.rmdir()


class Runnable(Protocol[R_co]):
    """A plan, or several."""

    def run(self) -> R_co:
        """Carry it out."""
        ...


def experiment(prepare: Callable[P, Runnable[R]]) -> Callable[P, R]:
    """Make of a function that checks its arguments and returns a plan one that carries it out."""

    @wraps(prepare)
    def carry_out(*arguments: P.args, **options: P.kwargs) -> R:
        return prepare(*arguments, **options).run()

    return carry_out


def prepared(carry_out: Callable[P, R]) -> Callable[P, Any]:
    """Return the function that makes the plan of an experiment and leaves it at that."""
    prepare: Callable[P, Any] = carry_out.__wrapped__  # type: ignore[attr-defined]
    return prepare


def run_all(
    tasks: Sequence[Task],
    folder: str | os.PathLike[str] | None,
    parallel: Any,
    progress: Progress | None,
) -> list[Arrays]:
    """Do all tasks, each only where no earlier run has, and return what they gave, in order."""
    store = None if folder is None else TrialStore(os.path.abspath(folder))
    outcomes: dict[int, Arrays] = {}

    def tell(what: str) -> None:
        if progress is not None:
            progress(len(outcomes), len(tasks), what)

    if store is not None:
        store.tidy()
        for i, task in enumerate(tasks):
            arrays = None if task.settings is None else store.get(task.settings)
            if arrays is not None and _fits(arrays, task):
                tell(KEPT)
                outcomes[i] = arrays
    pending = [(i, task) for i, task in enumerate(tasks) if i not in outcomes]
    if parallel is None:
        for i, task in pending:
            if task.kind not in _WARM and task.warm_up is not None:
                tell(f"{task.kind[0]}, compiling")
                _warm_up(task)
            tell(task.label)
            outcomes[i] = _finish(task, store)
    elif pending:
        if store is not None:
            store.folder.mkdir(parents=True, exist_ok=True)
        tell(pending[0][1].label)
        with closing(_at_the_same_time(parallel, pending, store)) as ended:
            for i, arrays in ended:
                own = tasks[i].settings
                if store is not None and own is not None and not store.path(own).exists():
                    store.put(own, arrays)  # the worker has another file system
                outcomes[i] = arrays
                tell(tasks[i].label)
    tell("done")
    return [outcomes[i] for i in range(len(tasks))]


def _fits(arrays: Arrays, task: Task) -> bool:
    """Whether what is kept has the form that is wanted."""
    return all(
        name in arrays and arrays[name].shape == shape and arrays[name].dtype.kind in "fi"
        for name, shape in task.shapes.items()
    )


def _warm_up(task: Task) -> None:
    """Compile, and touch the memory; numbers that overflow will be met again."""
    if task.warm_up is not None and task.kind not in _WARM:
        with suppress(FloatingPointError):
            task.warm_up()
        _WARM.add(task.kind)


def _finish(task: Task, store: TrialStore | None) -> Arrays:
    """Do a task, and keep it at once: whoever asked for it may be gone by then."""
    _warm_up(task)
    begun = time.perf_counter()
    arrays = task.do()
    arrays["wall"] = np.array(time.perf_counter() - begun)
    if store is not None and task.settings is not None:
        store.put(task.settings, arrays)
    return arrays


# --- at the same time -------------------------------------------------------------------------


def parallel_for(n_jobs: Any) -> Any:
    """Return joblib's Parallel, handing results over as they come where its backend can."""
    if n_jobs is None:
        return None
    try:
        from joblib import Parallel
    except ImportError as error:
        raise ImportError(
            f"n_jobs: trials at the same time need joblib, which cannot be imported ({error}): "
            "pip install joblib, or leave n_jobs (--jobs) out"
        ) from None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0, but it is {n_jobs!r}")
    try:
        # A batch of one: a trial is handed over, and kept, when it ends.
        return Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # this backend cannot
        return Parallel(n_jobs=n_jobs)


def _numbered(i: int, task: Task, store: TrialStore | None) -> tuple[int, Arrays]:
    """Do a task in a process that may lie on another machine, out of the store's reach."""
    return i, _finish(task, store if store is not None and store.folder.is_dir() else None)


def _at_the_same_time(
    parallel: Any, pending: Sequence[tuple[int, Task]], store: TrialStore | None
) -> Generator[tuple[int, Arrays], None, None]:
    """Yield outcomes as they come; close it to stop the trials that are still running."""
    from concurrent.futures import BrokenExecutor

    from joblib import delayed

    calls = [delayed(_numbered)(*task, store) for task in pending]
    if not parallel.return_generator:
        # By portions, so that progress is seen.
        size = max(1, 2 * parallel._effective_n_jobs())
        for start in range(0, len(calls), size):
            yield from parallel(calls[start : start + size])
        return
    with without_interrupts():
        outcomes = parallel(calls)
    try:
        # `yield from` would hand a close on to joblib before `finally` is reached.
        for outcome in outcomes:  # noqa: UP028
            yield outcome
    except BrokenExecutor as error:
        raise ChildProcessError(
            "n_jobs: a process that ran trials was ended from outside, perhaps for want of "
            f"memory; with fewer at the same time it may not be ({type(error).__name__})"
        ) from error
    finally:
        with warnings.catch_warnings():  # a stopped search leaves trials undone: no news
            warnings.filterwarnings("ignore", category=UserWarning, module=r"joblib\b")
            outcomes.close()
