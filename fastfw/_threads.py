"""Threads that share the rows of a batch.

Kernels release Python's global lock, so ordinary threads do: no threading layer of Numba is
entered, calls from several Python threads share the workers, and a forked process makes its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread

from fastfw._checks import positive_int
from fastfw._info import cores

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
