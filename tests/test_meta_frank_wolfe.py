"""MetaFrankWolfe against the reference with the same draws; see test_morgfw.py too."""

from __future__ import annotations

import pytest

import fastfw as fw
from meta_cases import assert_equals_reference, learner, stream

ENGINES = ["fused", "steps"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("size", [None, 1, 3, 4, 6])
def test_equals_reference(engine, reduction, size):
    own = learner(
        fw.MetaFrankWolfe, rounds=5, sub_batch_size=size, reduction=reduction, engine=engine
    )
    assert own.inner_steps == 12
    assert_equals_reference(own, list(stream(5)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("noise", ["gaussian", "exponential", "gumbel"])
def test_equals_reference_for_every_noise(engine, noise):
    base = fw.FTPL(scale=20.0, noise=noise)
    own = learner(fw.MetaFrankWolfe, rounds=4, base=base, sub_batch_size=2, engine=engine)
    assert_equals_reference(own, list(stream(4)))


@pytest.mark.parametrize("base", [fw.OGD(step=0.4), fw.RFTL(step=0.7)])
@pytest.mark.parametrize("size", [None, 2])
def test_equals_reference_for_bases_that_project(base, size):
    with pytest.warns(fw.EngineWarning, match="base FTPL"):
        own = learner(fw.MetaFrankWolfe, rounds=4, base=base, sub_batch_size=size)
    assert own.engine == "steps"
    assert_equals_reference(own, list(stream(4)))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [None, 3])
def test_doubling(engine, size):
    own = learner(fw.MetaFrankWolfe, sub_batch_size=size, engine=engine)
    wanted = assert_equals_reference(own, list(stream(7)))
    assert [len(v) for v in wanted.vertices] == [1, 3, 3, 8, 8, 8, 8]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("size", [None, 4])
def test_paper_schedules(engine, size):
    own = learner(
        fw.MetaFrankWolfe, rounds=4, inner_steps=20, sub_batch_size=size, engine=engine,
        step=fw.power_schedule(1.0, 1.0), momentum=fw.power_schedule(4.0, 0.5),
    )  # fmt: skip
    assert_equals_reference(own, list(stream(4)))


def test_theory_inner_steps():
    """The least K with K^2 >= T^3, for huge T too."""
    for n in (1, 2, 3, 4, 9, 100, 10**6, 10**6 + 1, 10**9 + 7):
        K = fw.MetaFrankWolfe._theory_inner_steps(n)
        assert K**2 >= n**3 > (K - 1) ** 2


def test_counts():
    result = learner(fw.MetaFrankWolfe, rounds=4, sub_batch_size=2).run(stream(4))
    assert (result.gradient_evaluations, result.lmo_calls) == (4 * 8 * 2, 32)
