"""What the tests of the methods that keep the past share."""

import numpy as np
import pytest

import fastfw as fw
from learner_cases import RADIUS, make_data, problem_and_ball, same
from sizes import sized

#: Steps of full length, which drop everything before them, and ordinary ones.
ROUGH = (1.0, 0.3, 0.95, 0.0, 0.5)
SCHEDULES = {
    "theory": fw.power_schedule(2.0, 1.0),
    "paper": fw.power_schedule(0.5, 2 / 3),
    "long": fw.power_schedule(3.0, 0.5),
    "rough": lambda t: ROUGH[t % len(ROUGH)],
}
T = sized(40, 15)
#: (C, d, B): batches that fill tiles of samples and classes and such that do not.
SHAPES = [(2, 3, 1), (3, 6, 7), (10, 17, 12)]
#: Every schedule with every shape; sums of losses with few.
runs = pytest.mark.parametrize(
    ("step", "shape", "reduction"),
    [
        *((name, shape, "mean") for name in SCHEDULES for shape in SHAPES),
        ("paper", SHAPES[1], "sum"),
        ("rough", SHAPES[2], "sum"),
    ],
)


def case(shape, reduction="mean", rounds=T, dtype=np.float64, seed=0, n=40):
    """Return problem, ball, a stream that draws rows again and again, and its batches as arrays."""
    n_classes, d, B = shape
    problem, ball = problem_and_ball(d, n_classes, reduction)
    X, y = make_data(seed, n=n, d=d, n_classes=n_classes, dtype=dtype)
    stream = fw.iid_stream(X, y, batch_size=B, rounds=rounds, seed=seed + 1)
    return problem, ball, stream, [(batch.X, batch.y) for batch in stream]


def pieces(rounds=T, dtype=np.float64, seed=0):
    """Batches of 1 to 9 rows as arrays."""
    rng = np.random.default_rng(seed)
    X, y = make_data(seed, dtype=dtype)
    draws = [rng.integers(len(X), size=rng.integers(1, 10)) for _ in range(rounds)]
    return [(X[rows], y[rows]) for rows in draws]


def all_rounds(learner, batches):
    """Run and keep every decision."""
    batches = list(batches) if isinstance(batches, list) else batches
    return learner.run(batches, checkpoints=range(1, len(batches) + 2))


def assert_follows(result, run, tolerance=1e-12, reduction="mean", size=1):
    """Check decisions, losses and the average against the reference's."""
    assert np.abs(result.decisions - run.iterates).max() <= tolerance * RADIUS
    scale = size if reduction == "sum" else 1
    assert np.abs(result.losses - run.losses).max() <= 10 * tolerance * scale
    assert np.abs(result.average - run.iterates[:-1].mean(axis=0)).max() <= tolerance * RADIUS


def assert_same(one, other):
    """Check that two runs ended in the same bits."""
    assert one.losses.tolist() == other.losses.tolist()
    assert same(one.decision, other.decision)
    assert same(one.average, other.average)
