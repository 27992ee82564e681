"""Rounds by fastfw and by NumPy as the paper writes them.

Every timed call is a turn of several rounds, the same for all sides of a group, whose number is in
``extra_info``; `python -m bench.compare.report` prints times per round and their ratio.
"""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from bench.compare import pairs
from bench.compare.data import CIFAR10, MNIST
from reference import orgfw, power_schedule

cases = pytest.mark.parametrize("case", pairs.CASES, ids=lambda case: case.name.replace(" ", "-"))


@pytest.mark.parametrize("side", pairs.SIDES)
@cases
def test_turn(benchmark, case, side):
    before = 1 if benchmark.disabled else case.before
    turn = pairs.SIDES[side](case, before)
    benchmark.group = case.name
    benchmark.extra_info.update(side=side, rounds=case.rounds, batch_size=case.shape.batch_size)
    turn()()
    benchmark.pedantic(
        lambda play: play(),
        setup=lambda: ((turn(),), {}),
        rounds=case.turns,
        iterations=1,
    )


@cases
def test_both_sides_do_the_same(case):
    case.check()


@pytest.mark.parametrize("shape", [MNIST, CIFAR10], ids=lambda shape: shape.name)
def test_400_rounds_do_the_same(shape):
    pairs.Case("orgfw", shape, "float64").check(400)


def test_numpy_side_is_the_reference():
    case = pairs.CASES[0]
    batches = list(next(case.streams(5, 1)))
    start = np.zeros((case.shape.n_classes, case.shape.d))
    step, momentum = power_schedule(*pairs.ORGFW_STEP), power_schedule(*pairs.ORGFW_MOMENTUM)
    whole = orgfw(start, batches, case.shape.radius, step, momentum)
    side = case.by_numpy()
    assert [side.play_round(batch.rows)[0] for batch in batches] == whole.losses.tolist()
    np.testing.assert_array_equal(side.x, whole.iterates[-1])


@pytest.mark.parametrize("name", ["orgfw mnist float64", "orgfw sparse float64", "ofw once"])
def test_turns_of_all_sides_are_the_same_rounds(name, monkeypatch):
    case = pairs.choose([name])[0]
    played = []

    class Player:
        def run(self, stream):
            played.extend(batch.rows.tolist() for batch in stream)

        def observe(self, batch):
            played.append(batch.rows.tolist())

        def play_round(self, rows):
            played.append(rows.tolist())

    monkeypatch.setattr(pairs.Case, "learner", lambda case: Player())
    monkeypatch.setattr(pairs.Case, "by_numpy", lambda case: Player())
    turns = {}
    for side, make in pairs.SIDES.items():
        turn = make(case)
        assert len(played) == case.before
        for _ in range(2):
            turn()()
        turns[side] = played[:]
        played.clear()
    assert [len(rounds) for rounds in turns.values()] == [case.before + 2 * case.rounds] * 3
    assert turns["fastfw-run"] == turns["fastfw-observe"] == turns["numpy"]


def test_turns_go_on_through_the_same_rows():
    case = pairs.Case("ofw once", MNIST, "float64", once=True)
    parts = islice(case.streams(4, 3), 2)
    rows = [np.concatenate([batch.rows for batch in stream]) for stream in parts]
    assert len(rows[0]) == 4 * MNIST.batch_size
    assert len(np.unique(np.concatenate(rows))) == 7 * MNIST.batch_size
