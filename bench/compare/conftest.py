"""Set the number of threads before any test imports NumPy, and refuse an unfair comparison."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.compare import blas, handicap, one_thread


def pytest_configure(config: pytest.Config) -> None:
    problem = handicap()
    timing = not config.getoption("--benchmark-disable", default=False)
    if problem and timing:
        pytest.exit(problem, returncode=2)


def pytest_report_header() -> str:
    return f"BLAS of NumPy: {blas()}"


@pytest.fixture(autouse=True, scope="session")
def single_thread() -> Iterator[None]:
    with one_thread():
        yield
