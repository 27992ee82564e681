"""How much the tests do: less where the compiler is off and kernels run as plain Python."""

import contextlib
import tracemalloc

import numba
import numpy as np
import pytest
from hypothesis import settings

#: Whether kernels are compiled; off with NUMBA_DISABLE_JIT=1.
JIT = not numba.config.DISABLE_JIT


def sized(compiled, interpreted):
    """Choose an amount of work."""
    return compiled if JIT else interpreted


#: For property tests.
quick = settings(deadline=None, max_examples=sized(60, 8))

about_compiling = pytest.mark.skipif(not JIT, reason="about compiling, which is switched off")


def quiet():
    """Silence what only plain Python says: compiled code does not warn of overflow or inf - inf."""
    return contextlib.nullcontext() if JIT else np.errstate(over="ignore", invalid="ignore")


@contextlib.contextmanager
def memory_below(most):
    """Expect that never more than so many bytes are held at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
