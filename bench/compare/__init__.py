"""fastfw beside its peers, on one thread.

Importing this package before NumPy and Numba keeps both to one thread.
"""

from __future__ import annotations

import os

THREADS = (
    "BLIS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
)
#: Variables that make OpenBLAS use other kernels than the best for this processor.
OVERRIDES = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")

for _name in THREADS:
    os.environ[_name] = "1"
# JAX has no such variable of its own; it reads this when it is imported.
os.environ["XLA_FLAGS"] = (
    f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false "
    "intra_op_parallelism_threads=1"
).strip()


def handicap() -> str | None:
    """What in the environment slows NumPy down, or None: a comparison would flatter fastfw."""
    found = [name for name in OVERRIDES if name in os.environ]
    if not found:
        return None
    flags = " ".join(f"-u {name}" for name in found)
    return (
        f"{' and '.join(found)} set: OpenBLAS, and so NumPy, runs slower than it can, and the "
        f"comparison would flatter fastfw. Run the command again behind: env {flags}"
    )


def blas() -> str:
    """Which BLAS NumPy runs, and its kernels for this processor."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.ones((2, 2)) @ np.ones((2, 2))
    found = [
        f"{lib['internal_api']} {lib['version']} ({lib.get('architecture', 'unknown')}, "
        f"{lib['num_threads']} thread{'s' if lib['num_threads'] != 1 else ''})"
        for lib in threadpool_info()
        if lib["user_api"] == "blas" and "numpy" in lib["filepath"]
    ]
    return "; ".join(found) or "unknown"
