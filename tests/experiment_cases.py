"""What the tests of experiments share: small sizes, and the rows of what they write."""

import csv

SIZES = {"rounds": 4, "batch_size": 3, "radius": 2.0, "trials": 2, "seed": 3}
#: The same for the command line.
SMALL = ["--rounds", "4", "--batch-size", "3", "--radius", "2", "--trials", "2", "--seed", "3"]


def rows_of(path):
    """Return the rows of a CSV file by the names of its columns."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
