"""One round of ORGFW on the paper's network by fastfw, NumPy, and PyTorch where it is installed.

Every timed call is `ROUNDS` rounds, so divide by that; `python -m bench.compare.network_report`
prints times per round and their ratios.
"""

from __future__ import annotations

import numpy as np
import pytest

from bench.compare import network_pairs as pairs
from bench.compare import network_report

ROUNDS = 100
dtypes = pytest.mark.parametrize("dtype", ["float64", "float32"])
needs_torch = pytest.mark.skipif(not pairs.HAS_TORCH, reason="PyTorch is not installed")
SIDES = {
    "fastfw-run": pairs.fastfw_rounds,
    "fastfw-observe": pairs.fastfw_observations,
    "numpy": pairs.numpy_rounds,
    "pytorch": pairs.torch_rounds,
}


@dtypes
@pytest.mark.parametrize("side", [*list(SIDES)[:3], pytest.param("pytorch", marks=needs_torch)])
def test_hundred_rounds(benchmark, dtype, side):
    benchmark.group = f"ORGFW on a network, {ROUNDS} rounds, {dtype}"
    benchmark.extra_info.update(side=side, rounds=ROUNDS, batch_size=pairs.BATCH_SIZE)
    turn = SIDES[side](pairs.NetworkCase(dtype), ROUNDS)
    turn()()
    benchmark.pedantic(lambda play: play(), setup=lambda: ((turn(),), {}), rounds=15, iterations=1)


@pytest.mark.parametrize("side", ["NumpyNetwork", pytest.param("TorchNetwork", marks=needs_torch)])
def test_both_sides_do_the_same(side):
    case = pairs.NetworkCase("float64")
    stream = case.stream(rounds=100)
    result = case.learner().run(stream)
    other = getattr(pairs, side)(case)
    losses = [other.observe(batch.rows) for batch in stream]
    np.testing.assert_allclose(result.losses, losses, rtol=1e-10, atol=0)


def test_the_report_prints_every_side(capsys, monkeypatch):
    monkeypatch.setattr(network_report, "handicap", lambda: None)
    assert network_report.main(["--pairs", "2", "--rounds", "3"]) == 0
    table = capsys.readouterr().out
    for name in ("float64", "float32", "run", "observe", "NumPy"):
        assert name in table
