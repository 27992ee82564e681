"""Networks small enough for plain Python, and streams for them."""

import numpy as np

import fastfw as fw
import reference_network as rn

SHAPE = rn.Shape(d=6, m=4, n_classes=3)
WEIGHT_RADIUS, BIAS_RADIUS = 3.0, 2.0
RADII = (WEIGHT_RADIUS, BIAS_RADIUS, WEIGHT_RADIUS, BIAS_RADIUS)


def make_data(shape=SHAPE, n=40, seed=0, dtype=np.float64):
    """Labels that depend on the features, every class among them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, shape.d)).astype(dtype)
    scores = np.tanh(X @ rng.standard_normal((shape.d, shape.n_classes)))
    y = np.argmax(scores + 0.3 * rng.standard_normal(scores.shape), axis=1)
    y[: shape.n_classes] = np.arange(shape.n_classes)
    return X, y


def make_problem(shape=SHAPE, activation="sigmoid", reduction="mean"):
    """A network and the paper's set for it."""
    problem = fw.OneHiddenLayer(*shape, activation=activation, reduction=reduction)
    return problem, problem.l1_balls(WEIGHT_RADIUS, BIAS_RADIUS)


def inside(shape=SHAPE, seed=0):
    """A point of the set with nothing equal in it: oracles meet no ties."""
    rng = np.random.default_rng(seed)
    problem, M = make_problem(shape)
    return M.project(rng.standard_normal(problem.shape))


def make_stream(shape=SHAPE, rounds=60, seed=1, batch_size=5, dtype=np.float64):
    X, y = make_data(shape, dtype=dtype)
    return fw.iid_stream(X, y, batch_size=batch_size, rounds=rounds, seed=seed)
