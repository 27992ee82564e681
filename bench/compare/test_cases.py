"""Sides of a case play the same rounds, and decide alike."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from bench.compare import cases
from bench.compare.cases import CASES, Case
from bench.compare.data import CIFAR10, MNIST
from bench.compare.round_times import SIDES
from bench.compare.turns import Work
from reference import orgfw, power_schedule


def by_name(case):
    return case.name.replace(" ", "-")


every_case = pytest.mark.parametrize("case", CASES, ids=by_name)


@every_case
def test_both_sides_do_the_same(case):
    case.check()


@pytest.mark.parametrize("shape", [MNIST, CIFAR10], ids=lambda shape: shape.name)
def test_400_rounds_do_the_same(shape):
    Case("orgfw", shape, "float64").check(rounds=400)


def test_numpy_side_is_the_reference():
    case = CASES[0]
    batches = list(next(case.streams(5, 1)))
    start = np.zeros((case.shape.n_classes, case.shape.d))
    step, momentum = power_schedule(*cases.ORGFW_STEP), power_schedule(*cases.ORGFW_MOMENTUM)
    whole = orgfw(start, batches, case.shape.radius, step, momentum)
    side = case.by_numpy()
    assert [side.play_round(batch.rows)[0] for batch in batches] == whole.losses.tolist()
    np.testing.assert_array_equal(side.x, whole.iterates[-1])


@pytest.mark.parametrize("name", ["orgfw mnist float64", "orgfw sparse float64", "ofw once"])
def test_turns_of_all_sides_are_the_same_rounds(name, monkeypatch):
    case = next(iter(Work([name]).choose({case.name: case for case in CASES}).values()))
    played = []

    class Player:
        def run(self, stream):
            played.extend(batch.rows.tolist() for batch in stream)

        def observe(self, batch):
            played.append(batch.rows.tolist())

        def play_round(self, rows):
            played.append(rows.tolist())

    players = (lambda *_: Player(), lambda *_: Player())
    monkeypatch.setitem(cases.METHODS, name.split()[0], players)
    turns = {}
    for side, make in SIDES.items():
        turn = make(case)
        assert len(played) == case.before
        for _ in range(2):
            turn()()
        turns[side] = played[:]
        played.clear()
    assert [len(rounds) for rounds in turns.values()] == [case.before + 2 * case.rounds] * 3
    assert turns["fastfw-run"] == turns["fastfw-observe"] == turns["numpy"]


def test_turns_go_on_through_the_same_rows():
    case = Case("ofw once", MNIST, "float64", once=True)
    parts = islice(case.streams(4, 3), 2)
    rows = [np.concatenate([batch.rows for batch in stream]) for stream in parts]
    assert len(rows[0]) == 4 * MNIST.batch_size
    assert len(np.unique(np.concatenate(rows))) == 7 * MNIST.batch_size
