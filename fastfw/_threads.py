"""Threads that share the rows of a batch.

Kernels release Python's global lock, so ordinary threads do: no threading layer of Numba is
entered, calls from several Python threads share the workers, and a forked process makes its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastfw._checks import positive_int

__all__ = ["VARIABLE", "cuts", "in_threads", "number_of_threads"]

#: The environment variable that says how many threads learners use by default.
VARIABLE = "FASTFW_NUM_THREADS"

_pools: dict[int, ThreadPoolExecutor] = {}
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


def cuts(n: int, threads: int, unit: int) -> list[int]:
    """Return 0, ..., n: where rows are cut into at most so many parts of whole units, but the last.

    >>> cuts(22, 3, 4), cuts(3, 2, 4)
    ([0, 8, 16, 22], [0, 3])
    """
    units = -(-n // unit)
    parts = min(threads, units)
    return [min(n, units * k // parts * unit) for k in range(parts)] + [n]


def in_threads(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return what jobs return, in their order; the first of them is done by the caller."""
    if len(jobs) == 1:
        return [jobs[0]()]
    workers = len(jobs) - 1
    pool = _pools.get(workers)
    if pool is None:
        pool = _pools.setdefault(workers, ThreadPoolExecutor(workers, "fastfw"))
    others = [pool.submit(job) for job in jobs[1:]]
    try:
        first = jobs[0]()
    finally:
        # nothing of a round may still be running when an interrupt is handled
        found = [other.result() for other in others]
    return [first, *found]
