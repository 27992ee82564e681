"""Compiling ahead: every kernel, in several processes, none of them twice."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import tempfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

from fastfw._info import cache_state, cores, kernels
from fastfw._interrupts import defer_signals, without_interrupts
from fastfw.kernels import _cache
from fastfw.kernels._cache import KernelCache

__all__ = ["is_warm", "note_warm", "one_at_a_time", "steps", "warm_up"]

#: Called as ``progress(done, total, what)`` before each step and once at the end.
Progress = Callable[[int, int, str], None]
DTYPES = ("float64", "float32")


# --- what is compiled -------------------------------------------------------------------------


def steps() -> dict[str, dict[str, Callable[[], object]]]:
    """Return what is to be done for each dtype of the parameters, by name.

    Learners play a few rounds on a handful of rows, which are the very calls that real runs make,
    so that exactly the variants that they need are compiled: what is played stands in one table.
    """
    import numba
    import numpy as np
    from scipy import sparse

    import fastfw
    from fastfw.experiments.methods import METHODS
    from fastfw.learners._linear import RecursiveLearner

    X = np.random.default_rng(0).random((12, 5))
    y = np.arange(12) % 3
    softmax = fastfw.SoftmaxRegression(n_features=5, n_classes=3)
    ball = fastfw.RowL1Ball(shape=(3, 5), radius=1.0)
    network = fastfw.OneHiddenLayer(n_features=5, n_hidden=2, n_classes=3)
    function = fastfw.problem_from_function(numba.njit(lambda x, X, y: (0.0, x)), shape=5)
    rough = fastfw.RowL1Ball(shape=(3, 5), radius=1.0, ties="random")
    problems: dict[str, tuple[Any, Any]] = {
        "softmax": (softmax, ball),
        "network": (network, network.l1_balls()),
        "function": (function, fastfw.L1Ball(5, radius=1.0)),
    }

    meta = [method.learner for method in METHODS if method.meta]
    linear = [
        name
        for name in dict.fromkeys(method.learner for method in METHODS)
        if issubclass(getattr(fastfw, name), RecursiveLearner)
    ]
    sub_batches: dict[str, Any] = {"sub_batch_size": 2}
    #: step: problem, learners, data, options of those learners that take them
    table: dict[str, tuple[str, list[str], str, dict[str, Any]]] = {
        **{
            m.label: ("softmax", [m.learner], "dense", {**sub_batches, **dict(m.options)})
            for m in METHODS
        },
        **{
            f"whole batches, {data}": ("softmax", meta, data, {"sub_batch_size": None})
            for data in ("dense", "mostly zeros")
        },
        "bytes": ("softmax", linear, "bytes", {}),
        "sparse rows": ("softmax", [*linear, "OFW", "OAW"], "sparse rows", {}),
        "threads": ("softmax", [*linear, "MORGFW"], "dense", {**sub_batches, "threads": 2}),
        "threads, bytes": ("softmax", [*linear, "MORGFW"], "bytes", {**sub_batches, "threads": 2}),
        "steps engine": ("softmax", ["MORGFW"], "dense", {**sub_batches, "engine": "steps"}),
        "network": ("network", ["ORGFW", "RegularizedOFW", "OFW", "OAW"], "dense", {}),
        "function": ("function", ["ORGFW"], "dense", {}),
    }

    def play(kind: str, learners: list[str], data: Any, options: dict[str, Any]) -> None:
        problem, M = problems[kind]
        stream = fastfw.iid_stream(data, batch_size=8, rounds=3, seed=0)  # 8: parts for two threads
        for name in learners:
            own = {k: v for k, v in options.items() if k != "sub_batch_size" or name in meta}
            first, second = (getattr(fastfw, name)(problem, M, **own) for _ in range(2))
            for batch in stream:
                first.observe(batch)
                first.observe((batch.X, batch.y))
            first._engine.arrays()  # what `save` writes is computed here
            second.run(stream)
        problem.loss(M.start(), data)

    def evaluate(data: Any) -> None:
        best = fastfw.best_fixed_decision(softmax, ball, data.X, y, tol=0.1)
        softmax.loss(best.decision, data)

    def fit(data: Any) -> None:
        for method in (fastfw.SVRF, fastfw.SpiderFW):
            for problem, M in (problems["softmax"], problems["network"]):
                method(problem, M).fit(data, iterations=3)

    def remember(data: Any) -> None:
        """Play with a past that is long enough for threads to share it."""
        many = fastfw.Dataset(np.tile(data.X, (44, 1)), np.tile(y, 44))
        stream = fastfw.epoch_stream(many, batch_size=len(many), epochs=2)
        fastfw.OFW(softmax, ball, threads=2).run(stream)

    def answer(dtype: str) -> None:
        fastfw.FlowPolytope([(0, 1)], 0, 1).lmo([1.0])
        rough.lmo(np.ones(rough.shape, dtype))
        leader = fastfw.FTPL().on(ball, rounds=2, dtype=dtype)
        leader.observe(np.asarray(leader.play()))

    def work(dtype: str) -> dict[str, Callable[[], object]]:
        few = (X * (X > 0.8)).astype(dtype)  # whole batches of such rows go another way
        data: dict[str, Any] = {
            "dense": fastfw.Dataset(X.astype(dtype), y),
            "mostly zeros": fastfw.Dataset(few, y),
            "sparse rows": fastfw.Dataset(sparse.csr_array(few), y),
            "bytes": fastfw.Dataset((255 * X).astype(np.uint8), y, scale=1 / 255).astype(dtype),
        }
        todo: dict[str, Callable[[], object]] = {"comparator": partial(evaluate, data["dense"])}
        for kind in ("bytes", "sparse rows"):
            todo[f"gradient, {kind}"] = partial(softmax.gradient, ball.start(), data[kind])
        for name, (kind, learners, features, options) in table.items():
            todo[name] = partial(play, kind, learners, data[features], options)
        todo["threads, past"] = partial(remember, data["dense"])
        todo["offline methods"] = partial(fit, data["dense"])
        todo["sets"] = partial(answer, dtype)
        return todo

    return {dtype: work(dtype) for dtype in DTYPES}


# --- nothing twice ----------------------------------------------------------------------------


def _note() -> Path | None:
    """Return the file that lists what these sources had compiled for this processor."""
    import numba
    from numba.core.registry import cpu_target

    folder, _ = _cache.place()
    if folder is None or numba.config.DISABLE_JIT:
        return None
    code = cpu_target.target_context.codegen().magic_tuple()
    sources = _cache.source_digest(Path(__file__).parent)
    return folder / f"{hashlib.sha256(f'{sources} {code}'.encode()).hexdigest()[:16]}.warm"


def note_warm() -> None:
    """Write down that everything is compiled, and in which files."""
    if (note := _note()) is not None:
        names = sorted(path.name for path in note.parent.glob(f"*{_cache.SUFFIX}"))
        _cache.write(note, "\n".join(names).encode())


def is_warm() -> bool:
    """Whether all that a warm-up of these sources compiled is still there, whole."""
    note = _note()
    listed = None if note is None else _cache.read(note)
    if note is None or listed is None:
        return False
    names = bytes(listed).decode().splitlines()
    return all(_cache.read(note.with_name(name)) is not None for name in names)


class _Shared(KernelCache):
    """A kernel's cache, of which each variant is compiled by one process while others wait.

    A variant is locked from the moment it is looked for in vain until it is kept.
    """

    def __init__(self, name: str, folder: Path) -> None:
        super().__init__(name)
        self._folder = folder
        self._held: dict[str, int] = {}

    def _lock(self, key: Any) -> int:
        """Wait for a lock, which ends with the process at the latest."""
        import fcntl

        name = hashlib.sha256(f"{self.name} {key}".encode()).hexdigest()
        handle = os.open(self._folder / name, os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(handle, fcntl.LOCK_EX)
        return handle

    def load(self, key: Any, context: Any, build: Callable[..., Any]) -> Any:
        """Return a variant, or None when it is for this process to compile."""
        found = super().load(key, context, build)
        if found is None and str(key) not in self._held:
            handle = self._lock(key)
            found = super().load(key, context, build)
            if found is None:
                self._held[str(key)] = handle
            else:
                os.close(handle)
        return found

    def save(self, key: Any, content: tuple[Any, ...] | None, context: Any) -> None:
        """Keep a variant that this process has compiled."""
        try:
            super().save(key, content, context)
        finally:
            own = self._held.pop(str(key), None)
            if own is not None:
                os.close(own)


def one_at_a_time(dispatchers: dict[str, Any], folder: Path) -> None:
    """Share the compiling of kernels with other processes, by locks on files in one folder."""
    for dispatcher in dispatchers.values():
        dispatcher._cache = _Shared(dispatcher._cache.name, folder)


_TODO: dict[str, dict[str, Callable[[], object]]] = {}
"""In a process that compiles for others, what there is to do."""


def _begin(folder: Path) -> None:
    """Make a process ready to compile."""
    one_at_a_time(kernels(), folder)
    _TODO.update(steps())


def _do(asked: tuple[str, str]) -> tuple[str, str]:
    """Do one step there."""
    dtype, name = asked
    _TODO[dtype][name]()
    return asked


# --- processes --------------------------------------------------------------------------------


def warm_up(
    progress: Progress | None = None,
    jobs: int | None = None,
    dtypes: Collection[str] = DTYPES,
    names: Collection[str] | None = None,
) -> int:
    """Compile kernels for these dtypes, so that later runs find them; the number of steps made.

    Parameters
    ----------
    progress : callable, optional
        Called as ``progress(done, total, what)``.
    jobs : int, optional
        How many processes share the work, by default one for each core that this one may use. They
        take steps of different dtypes in turn, which have next to no variant in common; what two of
        them come to is compiled by the first, and read from the cache by the second. With one job
        everything is compiled here, and so is what another process left undone.
    dtypes, names : collection of str, optional
        Of the parameters, and of `steps`; by default all of them.
    """
    table = steps()
    chosen = [name for name in table[DTYPES[0]] if names is None or name in names]
    todo = [(dtype, name) for name in chosen for dtype in dtypes]
    total = len(todo)
    jobs = min(cores() if jobs is None else jobs, total)
    tell = progress or (lambda *_: None)
    if jobs > 1 and _can_share():
        done = set(_in_processes(todo, jobs, tell))
        todo = [asked for asked in todo if asked not in done]
    for number, (dtype, name) in enumerate(todo, total - len(todo)):
        tell(number, total, f"{name}, {dtype}")
        table[dtype][name]()
    tell(total, total, "done")
    return total


def _can_share() -> bool:
    """Whether what one process compiles reaches another, and locks exist."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return cache_state().writable


def _in_processes(
    todo: list[tuple[str, str]], jobs: int, tell: Progress
) -> Iterator[tuple[str, str]]:
    """Let other processes do steps; those that are done, as they are done.

    A step that fails is left to this process, and so are all when one of the others dies.
    """
    with (
        tempfile.TemporaryDirectory(prefix="fastfw-warmup-") as folder,
        contextlib.ExitStack() as at_end,
    ):
        # Whatever happens, no process may be left, not even one that is about to begin.
        with defer_signals(), without_interrupts():
            executor = ProcessPoolExecutor(
                jobs, multiprocessing.get_context("spawn"), _begin, (Path(folder),)
            )
            at_end.callback(executor.shutdown, cancel_futures=True)
            futures = [executor.submit(_do, asked) for asked in todo]
            for process in executor._processes.values():
                at_end.callback(process.terminate)
        tell(0, len(todo), "starting")
        for number, future in enumerate(as_completed(futures), start=1):
            if future.exception() is None:
                tell(number, len(todo), "{1}, {0}".format(*future.result()))
                yield future.result()
