"""Threads that share the rows of a batch.

Kernels release Python's global lock, so ordinary threads do: no threading layer of Numba is
entered, calls from several Python threads share the workers, and a forked process makes its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, positive_int
from fastfw._info import cores

__all__ = ["VARIABLE", "call_helpers", "in_team", "make_team", "number_of_threads", "quiet"]

#: The environment variable that says how many threads learners use by default.
VARIABLE = "FASTFW_NUM_THREADS"

# Tasks that may wait for a helper, beyond which nobody would come in time.
_MOST_WAITING = 64

Tasks = SimpleQueue[Callable[[], object]]

# One team, as more helpers than cores help nobody; they come when they are needed, and stay.
_tasks: Tasks = SimpleQueue()
_helpers: list[Thread] = []


def _forget() -> None:
    """In a forked process there are no other threads, and what they held is never given back."""
    global _tasks
    _tasks = SimpleQueue()
    _helpers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def number_of_threads(threads: int | None) -> int:
    """Return the number of threads asked for: the argument's, the variable's, or 1."""
    if threads is not None:
        return positive_int(threads, "threads")
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return 1
    if not given.isdecimal() or int(given) < 1:
        raise ValueError(f"{VARIABLE} must be an integer of at least 1, but it is {given!r}")
    return int(given)


def _serve(tasks: Tasks) -> None:
    while True:
        tasks.get()()


def call_helpers(task: Callable[[], object], n: int) -> None:
    """Have up to n other threads call a task as soon as they can; at most one for each core.

    Nobody waits for them: those that come too late must see for themselves that it is over. They
    do not keep a program from ending.
    """
    n = min(n, cores())
    with suppress(RuntimeError):  # threads cannot be started any more: the program is ending
        while len(_helpers) < n:
            helper = Thread(target=_serve, args=(_tasks,), name="fastfw helper", daemon=True)
            helper.start()
            _helpers.append(helper)
    if _tasks.qsize() < _MOST_WAITING:
        for _ in range(n):
            _tasks.put(task)


# --- compiled rounds that share a batch -------------------------------------------------------


def make_team(
    threads: int, starts: IndexArray, u: FloatArray, entries: int
) -> tuple[npt.NDArray[Any], ...]:
    """Return what so many threads share that play rounds, or fewer, see ``kernels.teams``."""
    from fastfw.kernels.teams import GROUP, LISTS

    if threads > 1:  # not more than the largest batch has parts
        threads = max(1, min(threads, -(-int(np.diff(starts).max(initial=0)) // GROUP)))
    others = np.empty((threads - 1, *u.shape), u.dtype)
    return others, np.empty(LISTS + entries + threads), np.zeros(2 * starts.size - 1, np.int64)


def in_team(
    lead: Callable[[], Any],
    assist: Callable[[], object],
    words: npt.NDArray[np.int64],
    threads: int,
) -> Any:
    """Return what `lead` returns, with threads - 1 helpers that do `assist` until words[0] says so.

    Both are compiled. The words are new, so that helpers who come late find theirs, and it is over.
    """
    lead = quiet(lead)
    if threads == 1:
        return lead()
    from fastfw.kernels._atomics import NOT_YET, OVER

    words[0] = OVER
    assist()  # is over at once, and compiled
    words[0] = NOT_YET
    try:
        call_helpers(quiet(assist), threads - 1)
        return lead()
    finally:  # which `lead` has said already, unless it was not called or failed
        words[0] = OVER


def quiet(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """Return the kernel; without the JIT one that is as silent on what overflows as with it."""
    return np.errstate(over="ignore", invalid="ignore")(kernel) if _interpreted() else kernel


@cache
def _interpreted() -> bool:
    import numba

    return bool(numba.config.DISABLE_JIT)
