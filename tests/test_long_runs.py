"""Runs that fail, that are killed and that never end."""

import itertools
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import fastfw as fw
import long_run

X, Y = long_run.X, long_run.Y
PROBLEM, BALL = fw.SoftmaxRegression(7, 3), fw.RowL1Ball((3, 7), 4.0)
METHODS = {
    "ORGFW": lambda: fw.ORGFW(PROBLEM, BALL),
    "steps": lambda: fw.ORGFW(PROBLEM, BALL, engine="steps"),
    "OFW": lambda: fw.OFW(PROBLEM, BALL),
    "MORGFW": lambda: fw.MORGFW(PROBLEM, BALL, rounds=40, inner_steps=3),
}


def epochs():
    return fw.epoch_stream(X, Y, batch_size=8, epochs=5, seed=3)


def broken(learner, stream, **wishes):
    """Run until a round fails, and return the error."""
    with pytest.raises(ValueError, match="round 8") as caught:
        learner.run(stream, **wishes)
    return caught.value


@pytest.mark.parametrize("method", METHODS)
def test_rounds_before_an_error_are_kept_and_are_those_of_a_shorter_run(method, tmp_path):
    batches = list(itertools.islice(long_run.batches(1), 12))
    bad = [*batches[:7], (X[:2] * np.nan, Y[:2]), *batches[8:]]
    path = tmp_path / "learner.npz"
    learner = METHODS[method]()
    broken(learner, bad, on_error="keep", checkpoint=path, every=5)
    whole = METHODS[method]()
    result = whole.run(batches)
    for kept in (learner, type(learner).load(path)):
        assert kept.t == 8
        rest = kept.run(batches[7:])
        np.testing.assert_array_equal(rest.losses, result.losses[7:])
        np.testing.assert_array_equal(kept.play(), whole.play())
    untouched = METHODS[method]()
    broken(untouched, bad)
    assert untouched.t == 1


@pytest.mark.parametrize("method", ["ORGFW", "OFW"])
def test_rows_that_fail_in_the_middle_of_a_block_keep_those_before(method):
    large = X.copy()
    large[59] = 1e308  # finite, its logits are not
    rows = np.arange(56).reshape(7, 8)
    stream = fw.streams.IndexedStream(fw.Dataset(large, Y), [*rows, [59] * 8])
    learner, whole = METHODS[method](), METHODS[method]()
    with np.errstate(all="ignore"), pytest.raises(FloatingPointError, match="round 8"):
        learner.run(stream, on_error="keep")
    whole.run(fw.streams.IndexedStream(fw.Dataset(large, Y), rows))
    assert learner.t == 8
    np.testing.assert_array_equal(learner.play(), whole.play())


@pytest.mark.parametrize("make", [epochs, lambda: itertools.islice(long_run.batches(1), 40)])
def test_checkpoints_come_when_they_should_and_change_nothing(make, tmp_path):
    path, seen = tmp_path / "learner.npz", []
    plain, learner = METHODS["ORGFW"](), METHODS["ORGFW"]()
    result = plain.run(make())

    def look(t, loss, seconds):
        if path.exists():
            seen.append(fw.ORGFW.load(path).t)

    told = learner.run(make(), checkpoint=path, every=15, callback=look)
    np.testing.assert_array_equal(told.losses, result.losses)
    assert {*seen} == {16, 31}
    assert fw.ORGFW.load(path).t == 41
    assert [p.name for p in tmp_path.iterdir()] == ["learner.npz"]


def test_streams_without_end_leave_a_summary():
    told = []
    result = METHODS["ORGFW"]().run(epochs(), callback=lambda *a: told.append(a))
    lean = METHODS["ORGFW"]().run(epochs(), keep_losses=False)
    assert lean.losses.size == lean.seconds.size == 0
    assert lean.summary.rounds == 40
    assert lean.summary.mean == pytest.approx(result.losses.mean(), rel=1e-14)
    np.testing.assert_array_equal(lean.summary.last, result.losses)
    assert repr(lean.summary).startswith("<RunSummary of 40 rounds: mean loss ")
    assert "40 rounds" in repr(lean)
    t, losses, seconds = zip(*told, strict=True)
    assert [*t] == [*range(1, 41)]
    np.testing.assert_array_equal(losses, result.losses)
    np.testing.assert_array_equal(seconds, result.seconds)


@pytest.mark.parametrize(
    ("wishes", "kind", "words"),
    [
        ({"on_error": "ignore"}, ValueError, "on_error must be 'restore' or 'keep'"),
        ({"every": 3}, TypeError, "give checkpoint"),
        ({"every": 0, "checkpoint": "x"}, ValueError, "every must be"),
        ({"checkpoint": "no/such/folder/x"}, FileNotFoundError, "in a folder that exists"),
        ({"callback": 3}, TypeError, "callback must be a function"),
    ],
)
def test_wishes_that_cannot_be_granted_are_refused_before_the_first_round(wishes, kind, words):
    learner = METHODS["ORGFW"]()
    with pytest.raises(kind, match=words):
        learner.run(epochs(), **wishes)
    assert learner.t == 1


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="services are forked")
@pytest.mark.parametrize("source", ["generator", "epochs"])
def test_a_run_that_is_killed_goes_on_to_the_same_bits(source, tmp_path):
    command = [sys.executable, long_run.__file__, source, str(tmp_path)]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    rounds, signals = np.array([line.split() for line in told.stdout.splitlines()], int).T
    assert rounds[-1] < 2001
    assert (np.diff([1, *rounds]) >= 10).all()
    assert (signals == signal.SIGKILL).all()
    assert rounds.size == 10
    whole, again = (fw.ORGFW.load(tmp_path / f"{name}.npz") for name in ("whole", "killed"))
    assert again.t == whole.t == 2001
    np.testing.assert_array_equal(again.average, whole.average)
    np.testing.assert_array_equal(again.play(), whole.play())
