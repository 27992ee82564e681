"""What `asv run` runs.

Kernels are cached apart for every commit, in the environment that asv made for it. (The cache
also notices changed kernels by itself; this keeps even a bug in that from mixing two commits.)
"""

import os
from pathlib import Path

if {"ASV_ENV_DIR", "ASV_COMMIT"} <= os.environ.keys():
    os.environ["NUMBA_CACHE_DIR"] = str(
        Path(os.environ["ASV_ENV_DIR"]) / "numba-cache" / os.environ["ASV_COMMIT"]
    )
