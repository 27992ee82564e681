"""What a new process waits for: imports, first calls, compilation with an empty cache."""

import json
import os
import subprocess
import sys

FIRST_CALL = """
import json, time
import numpy as np
import fastfw as fw

rng = np.random.default_rng(0)
X, y = rng.random((64, 20)), np.arange(64) % 3
stream = fw.iid_stream(X, y, batch_size=8, rounds=3)
problem, ball = fw.SoftmaxRegression(20, 3), fw.RowL1Ball((3, 20), 1.0)
network = fw.OneHiddenLayer(20, 2, 3)
balls = network.l1_balls(1.0, 1.0)
fw.ORGFW, fw.MORGFW, fw.best_fixed_decision  # imports them
begun = time.perf_counter()
{call}
seconds = time.perf_counter() - begun
from fastfw.kernels import _jit
compiled = sum(len(kernel.signatures) for kernel in _jit.dispatchers.values())
print(json.dumps([seconds, compiled]))
"""
#: name: statement
CALLS = {
    "ORGFW.run": "fw.ORGFW(problem, ball).run(stream)",
    "ORGFW.run, network": "fw.ORGFW(network, balls).run(stream)",
    "MORGFW.run": "fw.MORGFW(problem, ball, rounds=3, sub_batch_size=2).run(stream)",
    "best_fixed_decision": "fw.best_fixed_decision(problem, ball, X, y, tol=1e-2)",
}
HEAVY = ("numba", "llvmlite", "matplotlib", "scipy", "sklearn", "tqdm")


def run(code, **environment):
    """What a new interpreter prints, read as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    return json.loads(done.stdout)


def first_call(name, cache):
    """Seconds of a call in a new interpreter, imports and data not counted; signatures in use."""
    return run(FIRST_CALL.format(call=CALLS[name]), NUMBA_CACHE_DIR=cache)


class FirstCall:
    """A first call in a new process: with nothing compiled, and with everything cached."""

    params = (list(CALLS),)
    param_names = ("call",)

    def setup_cache(self):
        """Compile once per call, each into an empty folder, which asv keeps for this commit."""
        caches = {name: os.path.abspath(f"kernels-{i}") for i, name in enumerate(CALLS)}
        return {name: (first_call(name, cache), cache) for name, cache in caches.items()}

    setup_cache.timeout = 1200

    def track_compiling(self, compiled, name):
        return compiled[name][0][0]

    track_compiling.unit = "seconds"

    def track_cached(self, compiled, name):
        return min(first_call(name, compiled[name][1])[0] for _ in range(3))

    track_cached.unit = "seconds"

    def track_signatures(self, compiled, name):
        """Kernels that one call has compiled: what it does not use costs time as well."""
        return compiled[name][0][1]

    track_signatures.unit = "signatures"


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

    def track_heavy_packages(self):
        """Packages that `from fastfw import ORGFW` should leave for later; 0."""
        code = "import json, sys; from fastfw import ORGFW; print(json.dumps([*sys.modules]))"
        return len(set(HEAVY) & set(run(code)))

    track_heavy_packages.unit = "packages"
