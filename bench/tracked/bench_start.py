"""What a new process waits for: imports, first calls, compilation with an empty cache."""

import os
import subprocess
import sys

FIRST_CALL = """
import time
import numpy as np
import fastfw as fw

rng = np.random.default_rng(0)
X, y = rng.random((64, 20)).astype({dtype!r}), rng.integers(3, size=64)
stream = fw.iid_stream(X, y, batch_size=8, rounds=3)
problem, ball = fw.SoftmaxRegression(20, 3), fw.RowL1Ball((3, 20), 1.0)
fw.ORGFW, fw.MORGFW, fw.best_fixed_decision  # imports them
begun = time.perf_counter()
{call}
print(time.perf_counter() - begun)
"""
#: name: (statement, dtype)
CALLS = {
    "ORGFW.run float64": ("fw.ORGFW(problem, ball).run(stream)", "float64"),
    "MORGFW.run float64": (
        "fw.MORGFW(problem, ball, rounds=3, sub_batch_size=2).run(stream)",
        "float64",
    ),
    "best_fixed_decision": ("fw.best_fixed_decision(problem, ball, X, y, tol=1e-2)", "float64"),
}


def first_call(name, cache):
    """Seconds of a call in a new interpreter, imports and data not counted."""
    statement, dtype = CALLS[name]
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL.format(call=statement, dtype=dtype)],
        env={**os.environ, "NUMBA_CACHE_DIR": cache},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout)


class FirstCall:
    """A first call in a new process: with nothing compiled, and with everything cached."""

    params = (list(CALLS),)
    param_names = ("call",)
    timeout = 300

    def setup_cache(self):
        """Compile once per call, each into an empty folder, which asv keeps for this commit."""
        caches = {name: os.path.abspath(f"kernels-{i}") for i, name in enumerate(CALLS)}
        return {name: (first_call(name, cache), cache) for name, cache in caches.items()}

    setup_cache.timeout = 900

    def track_compiling(self, compiled, name):
        return compiled[name][0]

    track_compiling.unit = "seconds"

    def track_cached(self, compiled, name):
        return min(first_call(name, compiled[name][1]) for _ in range(3))

    track_cached.unit = "seconds"


class Import:
    """Interpreters that import, and no more."""

    def timeraw_fastfw(self):
        return "import fastfw"

    def timeraw_learner(self):
        return "from fastfw import ORGFW"

    def timeraw_numba(self):
        return "import numba"

    def timeraw_help(self):
        return """
        import contextlib, os, sys
        sys.argv = ["fastfw", "--help"]
        from fastfw.cli import main
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            with contextlib.suppress(SystemExit):
                main()
        """
