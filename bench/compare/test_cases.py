"""Sides of a case play the same rounds, and decide alike."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from bench.compare.cases import CASES, CIFAR10, MNIST, Case, Player
from bench.compare.round_times import SIDES
from bench.compare.turns import Work


def by_name(case):
    return case.name.replace(" ", "-")


every_case = pytest.mark.parametrize("case", CASES, ids=by_name)


@every_case
def test_both_sides_do_the_same(case):
    case.check()


@pytest.mark.parametrize("shape", [MNIST, CIFAR10], ids=lambda shape: shape.name)
def test_400_rounds_do_the_same(shape):
    Case("orgfw", shape, "float64").check(rounds=400)


@pytest.mark.parametrize("name", ["orgfw mnist float64", "orgfw sparse float64", "ofw once"])
def test_turns_of_all_sides_are_the_same_rounds(name, monkeypatch):
    case = next(iter(Work([name]).choose({case.name: case for case in CASES}).values()))
    played = []

    class Learner:
        def run(self, stream):
            played.extend(batch.rows.tolist() for batch in stream)

        def observe(self, batch):
            played.append(batch.rows.tolist())

    monkeypatch.setattr(Case, "learner", lambda case: Learner())
    monkeypatch.setattr(Player, "play_round", lambda side, rows: played.append(rows.tolist()))
    turns = {}
    for side, make in SIDES.items():
        turn = make(case)
        assert len(played) == case.before
        for _ in range(2):
            turn()()
        turns[side] = played[:]
        played.clear()
    assert [len(rounds) for rounds in turns.values()] == [case.before + 2 * case.rounds] * 3
    assert turns["run"] == turns["observe"] == turns["NumPy"]


def test_turns_go_on_through_the_same_rows():
    case = Case("ofw once", MNIST, "float64")
    parts = islice(case.streams(4, 3), 2)
    rows = [np.concatenate([batch.rows for batch in stream]) for stream in parts]
    assert len(rows[0]) == 4 * MNIST.batch_size
    assert len(np.unique(np.concatenate(rows))) == 7 * MNIST.batch_size
