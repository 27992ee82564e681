"""What the tests of experiments share: small sizes, processes, the rows of what is written."""

import csv
import os
import subprocess
import sys

import numpy as np

SIZES = {"rounds": 4, "batch_size": 3, "radius": 2.0, "trials": 2, "seed": 3}
#: The same for the command line.
SMALL = ["--rounds", "4", "--batch-size", "3", "--radius", "2", "--trials", "2", "--seed", "3"]


def blobs(n=30, d=5, n_classes=3, seed=0):
    """Return features and labels with something to learn."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + 2.0 * np.eye(n_classes, d)[y], y


def rows_of(path):
    """Return the rows of a CSV file by the names of its columns."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def python(program, *arguments, cwd=None, **environment):
    """Run a program in a process group of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        check=False,
        start_new_session=True,
    )
