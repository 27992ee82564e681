"""What is run where: see "The checks" in CONTRIBUTING.md."""

from pathlib import Path

import pytest

#: Files about what kernels, problems, sets and learners compute. They run without the compiler
#: too, where every index is checked and every line is seen; the others say nothing new there.
MATHEMATICS = {
    "test_base_learners",
    "test_codes",
    "test_contract",
    "test_csr",
    "test_custom",
    "test_ftpl",
    "test_history",
    "test_kernels",
    "test_learners",
    "test_meta_frank_wolfe",
    "test_morgfw",
    "test_network",
    "test_oaw",
    "test_ofw",
    "test_offline",
    "test_problems",
    "test_reference",
    "test_regret",
    "test_regularized_ofw",
    "test_sets",
    "test_single_precision",
    "test_starts",
    "test_threads",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests of the files above as mathematics, but for the slow ones."""
    for item in items:
        if Path(item.path).stem in MATHEMATICS and not item.get_closest_marker("slow"):
            item.add_marker("mathematics")
