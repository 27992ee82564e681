"""Streams whose mixture moves, and regret on intervals of rounds."""

import numpy as np
import pytest

import fastfw as fw

X, Y = np.arange(60.0).reshape(20, 3) % 7, np.repeat([0, 1, 3], [4, 10, 6])
DATA = fw.Dataset(X, Y)


def rows(stream):
    return np.array([batch.rows for batch in stream])


@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("pieces", [1, 3])
def test_same_seed_same_batches(smooth, pieces):
    options = {"batch_size": 5, "rounds": 9, "pieces": pieces, "smooth": smooth}
    stream = fw.drifting_stream(DATA, **options, seed=2)
    first = rows(stream)
    np.testing.assert_array_equal(rows(stream), first)
    np.testing.assert_array_equal(rows(fw.drifting_stream(X, Y, **options, seed=2)), first)
    np.testing.assert_array_equal(rows(stream.from_round(4)), first[3:])
    assert (rows(fw.drifting_stream(DATA, **options, seed=3)) != first).any()
    assert first.shape == (9, 5)
    assert first.min() >= 0 <= first.max() < len(X)


def test_the_mixture_moves():
    """By pieces it stays between jumps; smoothly it goes through the same mixtures in between."""
    B, T, pieces = 4000, 9, 3

    def shares(**options):
        stream = fw.drifting_stream(DATA, batch_size=B, rounds=T, pieces=pieces, seed=5, **options)
        return np.array([np.bincount(batch.y, minlength=4) / B for batch in stream])

    wanted = np.zeros((pieces, 4))
    wanted[:, [0, 1, 3]] = np.random.default_rng(5).dirichlet(np.ones(3), pieces)
    noise = 4.0 * 0.5 / np.sqrt(B)
    np.testing.assert_allclose(shares(), np.repeat(wanted, 3, axis=0), atol=noise)
    places = np.linspace(0.0, pieces - 1.0, T)
    line = [np.interp(places, np.arange(pieces), column) for column in wanted.T]
    np.testing.assert_allclose(shares(smooth=True), np.transpose(line), atol=noise)


def test_rows_of_a_class_are_drawn_alike():
    drawn = rows(fw.drifting_stream(DATA, batch_size=4000, rounds=1, pieces=1)).ravel()
    for c in (0, 1, 3):
        own = drawn[Y[drawn] == c]
        count = np.bincount(own, minlength=len(X))[c == Y]
        assert np.abs(count / own.size - 1.0 / count.size).max() <= 2.0 / np.sqrt(own.size)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"pieces": 10}, ValueError, "pieces must be at most rounds, 9"),
        ({"pieces": 0}, ValueError, "pieces"),
        ({"smooth": 1}, TypeError, "smooth"),
    ],
)
def test_refused(options, error, message):
    with pytest.raises(error, match=message):
        fw.drifting_stream(DATA, batch_size=2, rounds=9, **options)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_interval_regret(reduction):
    """Each interval's is what `regret` says of a run of these rounds alone."""
    problem, ball = fw.SoftmaxRegression(3, 4, reduction), fw.RowL1Ball((4, 3), 2.0)
    stream = fw.drifting_stream(DATA, batch_size=3, rounds=11, seed=1)
    result = fw.ORGFW(problem, ball).run(stream)
    worst = fw.interval_regret(result, problem, ball, stream, shortest=3)
    spans = [(1, 4), (1, 8), (1, 11), (5, 8)]
    assert [tuple(row) for row in worst.intervals[:, :2]] == spans
    drawn = rows(stream)
    for (first, last), (value, upper) in zip(spans, worst.intervals[:, 2:], strict=True):
        own = drawn[first - 1 : last]
        best = fw.best_fixed_decision(problem, ball, X[own.ravel()], Y[own.ravel()])
        lost = sum(problem.loss(best.decision, (X[i], Y[i])) for i in own)
        assert value == pytest.approx(result.losses[first - 1 : last].sum() - lost, abs=1e-10)
        gap = best.gap * (len(own) if reduction == "mean" else 1)
        assert upper - value == pytest.approx(gap, abs=1e-10)
    assert worst.value == worst.intervals[:, 2].max()
    assert (worst.first, worst.last) in spans
    assert worst.upper == worst.intervals[:, 3].max()


def test_interval_regret_wants_a_stream_of_row_numbers():
    problem, ball = fw.SoftmaxRegression(3, 4), fw.RowL1Ball((4, 3), 2.0)
    stream = fw.drifting_stream(DATA, batch_size=3, rounds=6)
    result = fw.ORGFW(problem, ball).run(stream)
    with pytest.raises(TypeError, match="stream must be one of row numbers"):
        fw.interval_regret(result, problem, ball, list(stream))
    with pytest.raises(ValueError, match="as many batches"):
        fw.interval_regret(result, problem, ball, stream.from_round(2))
