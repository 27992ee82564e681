"""Threads that share the rows of a batch.

Kernels release Python's global lock, so ordinary threads do: no threading layer of Numba is
entered, calls from several Python threads share the workers, and a forked process makes its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from fastfw._checks import positive_int
from fastfw._info import cores

__all__ = ["VARIABLE", "number_of_threads", "share", "with_helpers"]

#: The environment variable that says how many threads learners use by default.
VARIABLE = "FASTFW_NUM_THREADS"

# One pool, as more helpers than cores help nobody; made when it is needed.
_pools: list[ThreadPoolExecutor] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pools.clear)


def number_of_threads(threads: int | None) -> int:
    """Return the number of threads asked for: the argument's, the variable's, or 1.

    Raises
    ------
    TypeError, ValueError
        If it is not an integer of at least 1.
    """
    if threads is not None:
        return positive_int(threads, "threads")
    given = os.environ.get(VARIABLE, "").strip()
    if not given:
        return 1
    if not given.isdecimal() or int(given) < 1:
        raise ValueError(f"{VARIABLE} must be an integer of at least 1, but it is {given!r}")
    return int(given)


def with_helpers(lead: Callable[[], Any], assist: Callable[[], None], helpers: int) -> Any:
    """Return what `lead` returns, while up to so many threads run `assist`, which ends by itself.

    There are no more helpers than cores. Those that have not begun when `lead` is done, because
    others keep them busy, are no longer needed.
    """
    others: list[Future[None]] = []
    try:
        with suppress(RuntimeError):  # threads cannot be started any more: the program is ending
            for _ in range(min(helpers, cores())):
                if not _pools:
                    _pools.append(ThreadPoolExecutor(cores(), "fastfw"))
                others.append(_pools[0].submit(assist))
        return lead()
    finally:
        # nothing of a round may still be running when an interrupt is handled
        for other in others:
            if not other.cancel():
                other.result()


def share(work: Callable[[int], None], parts: int) -> None:
    """Call ``work(0)``, ..., ``work(parts - 1)``, each once, in as many threads.

    >>> done = []
    >>> share(done.append, 3)
    >>> sorted(done)
    [0, 1, 2]
    """
    numbers = iter(range(parts))

    def take() -> None:
        for k in numbers:
            work(k)

    if parts == 1:
        take()
    else:
        with_helpers(take, take, parts - 1)
