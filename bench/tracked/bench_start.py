"""What a new process waits for: imports, first calls, compilation with an empty cache."""

import os
import subprocess
import sys
import tempfile

FIRST_CALL = """
import time
import numpy as np
import fastfw as fw

rng = np.random.default_rng(0)
X, y = rng.random((64, 20)).astype({dtype!r}), rng.integers(3, size=64)
stream = fw.iid_stream(X, y, batch_size=8, rounds=3)
problem = fw.SoftmaxRegression(20, 3)
begun = time.perf_counter()
{call}
print(time.perf_counter() - begun)
"""
CALLS = {
    "ORGFW.run": "fw.ORGFW(problem, fw.RowL1Ball((3, 20), 1.0)).run(stream)",
    "ORGFW.observe": "fw.ORGFW(problem, fw.RowL1Ball((3, 20), 1.0)).observe((X, y))",
    "OSFW.run": "fw.OSFW(problem, fw.RowL1Ball((3, 20), 1.0)).run(stream)",
    "best_fixed_decision": (
        "fw.best_fixed_decision(problem, fw.RowL1Ball((3, 20), 1.0), X, y, tol=1e-2)"
    ),
}


def first_call(call, dtype, cache):
    """Seconds of a call in a new interpreter, imports and data not counted."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL.format(call=CALLS[call], dtype=dtype)],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


class FirstCall:
    """A first call in a new process: with nothing compiled, and with everything cached."""

    params = (list(CALLS), ["float64", "float32"])
    param_names = ("call", "dtype")
    timeout = 600
    number = repeat = 1

    def track_compiling(self, call, dtype):
        with tempfile.TemporaryDirectory() as cache:
            return first_call(call, dtype, cache)

    track_compiling.unit = "seconds"

    def track_cached(self, call, dtype):
        with tempfile.TemporaryDirectory() as cache:
            first_call(call, dtype, cache)
            return min(first_call(call, dtype, cache) for _ in range(3))

    track_cached.unit = "seconds"


class Import:
    """Interpreters that do nothing but import."""

    def timeraw_fastfw(self):
        return "import fastfw"

    def timeraw_numba(self):
        return "import numba"

    def timeraw_help(self):
        return """
        import sys
        sys.argv = ["fastfw", "--help"]
        from fastfw.cli import main
        try:
            main()
        except SystemExit:
            pass
        """
