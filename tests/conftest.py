"""What is run where: see "The checks" in CONTRIBUTING.md."""

from pathlib import Path

import numpy as np
import pytest

import experiment_cases

#: Tests about what kernels, problems, sets and learners compute: whole files, or some of their
#: tests. They run without the compiler too, where every index is checked and every line is seen;
#: the others say nothing new there.
MATHEMATICS = {
    "test_base_learners",
    "test_codes",
    "test_contract::test_engines_layouts_and_precisions_agree",
    "test_contract::test_rounds_that_overflow_leave_no_trace",
    "test_csr",
    "test_ftpl",
    "test_history",
    "test_hostile_files::test_states_that_no_round_leaves",
    "test_kernels",
    "test_learners::test_engines_agree_in_other_shapes",
    "test_learners::test_rounds_follow_the_reference",
    "test_learners::test_run_is_a_loop_of_observe_where_nothing_of_a_point_is_left",
    "test_morgfw",
    "test_network",
    "test_oaw",
    "test_offline::test_iterates_are_the_references",
    "test_offline::test_schedule_of_hazan_and_luo",
    "test_ofw",
    "test_problems",
    "test_reference",
    "test_regret",
    "test_regularized_ofw",
    "test_sets",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark those tests as mathematics, but for slow ones."""
    for item in items:
        file, test = Path(item.path).stem, getattr(item, "originalname", item.name)
        if {file, f"{file}::{test}"} & MATHEMATICS and not item.get_closest_marker("slow"):
            item.add_marker("mathematics")


@pytest.fixture(scope="session")
def blobs(tmp_path_factory):
    """Return the path of a small data set with a test part."""
    X, y = experiment_cases.blobs()
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    np.savez(path, X=X[:21], y=y[:21], X_test=X[21:], y_test=y[21:])
    return str(path)
