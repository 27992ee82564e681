"""What the tests of experiments share: small sizes, processes, the rows of what is written."""

import csv
import os
import subprocess
import sys

SIZES = {"rounds": 4, "batch_size": 3, "radius": 2.0, "trials": 2, "seed": 3}
#: The same for the command line.
SMALL = ["--rounds", "4", "--batch-size", "3", "--radius", "2", "--trials", "2", "--seed", "3"]


def rows_of(path):
    """Return the rows of a CSV file by the names of its columns."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def python(program, *arguments, **environment):
    """Run a program in a process group of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )
