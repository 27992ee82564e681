"""One round of ORGFW by fastfw and by NumPy as the paper writes it.

Every timed call is `ROUNDS` rounds, so divide by that; `python -m bench.compare.report` prints
times per round and their ratio.
"""

from __future__ import annotations

import numpy as np
import pytest

from bench.compare import pairs
from reference import orgfw

ROUNDS = 10
cases = pytest.mark.parametrize("case", pairs.CASES, ids=lambda case: case.name.replace(" ", "-"))
SIDES = {
    "fastfw-run": pairs.fastfw_rounds,
    "fastfw-observe": pairs.fastfw_observations,
    "numpy": pairs.numpy_rounds,
}


@pytest.mark.parametrize("side", SIDES)
@cases
def test_ten_rounds(benchmark, case, side):
    benchmark.group = f"ORGFW, {ROUNDS} rounds, {case.name}"
    benchmark.extra_info.update(side=side, rounds=ROUNDS, batch_size=case.shape.batch_size)
    benchmark.pedantic(SIDES[side](case, ROUNDS), rounds=15, iterations=1, warmup_rounds=1)


@pytest.mark.parametrize("shape", pairs.SHAPES, ids=lambda shape: shape.name)
def test_both_sides_do_the_same(shape):
    case = pairs.Case(shape, "float64")
    stream = case.stream(rounds=400)
    checkpoints = [2, 10, 100, 400]
    result = case.learner().run(stream, checkpoints=checkpoints)
    by_numpy = pairs.NumpyORGFW(case)
    losses, decisions = [], []
    for batch in stream:
        if by_numpy.t in checkpoints:
            decisions.append(by_numpy.x)
        losses.append(by_numpy.observe(batch.rows))
    np.testing.assert_allclose(result.decisions, np.array(decisions), rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.decision, by_numpy.x, rtol=0, atol=1e-12)
    np.testing.assert_allclose(result.losses, losses, rtol=1e-12, atol=0)


def test_numpy_side_is_the_reference():
    case = pairs.CASES[0]
    batches = list(case.stream(rounds=5))
    start = np.zeros((case.shape.n_classes, case.shape.d))
    whole = orgfw(start, batches, case.shape.radius, pairs.STEP, pairs.MOMENTUM)
    by_numpy = pairs.NumpyORGFW(case)
    assert [by_numpy.observe(batch.rows) for batch in batches] == whole.losses.tolist()
    np.testing.assert_array_equal(by_numpy.x, whole.iterates[-1])
