"""Measurements: pages of ``python -m bench.report``, and benchmarks that asv tracks.

One place for each: synthetic data in `data`, tables of text in `tables`, timing in turns in
`compare.turns`, rounds by fastfw and by NumPy in `compare.cases`. A section of the report is a
function that yields lines, and pictures with their file's name; `report` lists them. What asv runs
is in `tracked`. NumPy's side is tests/reference.py, which is no part of the installed package.
"""

import sys
from pathlib import Path

_TESTS = str(Path(__file__).resolve().parents[1] / "tests")
if _TESTS not in sys.path:
    sys.path.append(_TESTS)
