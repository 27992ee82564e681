"""Synthetic data of the sizes of real ones, shared by the benchmarks."""

from functools import lru_cache

import numpy as np
from scipy import sparse

import fastfw as fw
from fastfw.streams import Dataset

#: name: (samples, features, classes, batch size, radius)
SHAPES = {
    "mnist": (12_000, 784, 10, 600, 8.0),
    "cifar10": (5_000, 3072, 10, 500, 32.0),
    "small-batch": (12_000, 784, 10, 16, 8.0),
}
#: (samples, features, classes, batch size, radius, nonzeros per row) of features in a CSR matrix
SPARSE = (5_000, 100_000, 10, 256, 32.0, 1_000)
DTYPES = ("float64", "float32")


@lru_cache(maxsize=1)
def data(shape, dtype):
    """Sparse non-negative features and labels that a linear model can learn."""
    n, d, n_classes, _, _ = SHAPES[shape]
    rng = np.random.default_rng(0)
    X = rng.random((n, d), dtype=np.float32)
    X *= rng.random((n, d), dtype=np.float32) < 0.2
    scores = X @ rng.standard_normal((d, n_classes), dtype=np.float32)
    return Dataset(X.astype(dtype), scores.argmax(axis=1))


@lru_cache(maxsize=2)
def pixels(n, d):
    """Bytes, a fifth of which are not 0."""
    rng = np.random.default_rng(0)
    found = rng.integers(256, size=(n, d), dtype=np.uint8)
    found *= rng.random((n, d), dtype=np.float32) < 0.2
    return found


@lru_cache(maxsize=1)
def sparse_data(dtype):
    """Rows of few nonzeros at random places."""
    n, d, n_classes, _, _, size = SPARSE
    rng = np.random.default_rng(0)
    indices = rng.integers(d, size=n * size, dtype=np.int32)
    values = rng.random(n * size)
    X = sparse.csr_array((values, indices, np.arange(n + 1) * size), shape=(n, d))
    scores = X @ rng.standard_normal((d, n_classes))
    return Dataset(X.astype(dtype), scores.argmax(axis=1))


def problem_and_ball(shape):
    """Softmax regression and the row l1 ball of that shape."""
    _, d, n_classes, _, radius = SHAPES[shape]
    return (
        fw.SoftmaxRegression(d, n_classes),
        fw.RowL1Ball((n_classes, d), radius),
    )


def _tuned(step, momentum=None):
    """Schedules by the constants of the paper's experiments."""
    schedules = {"step": fw.power_schedule(*step)}
    if momentum is not None:
        schedules["momentum"] = fw.power_schedule(*momentum)
    return schedules


_MORGFW = {
    "rounds": 100,
    "inner_steps": 100,
    "base": fw.FTPL(scale=100.0),
    **_tuned((1.0, 1.0), (2.0, 1 / 2)),
}
#: name: (class, its arguments)
METHODS = {
    "ORGFW": (fw.ORGFW, _tuned((1.0, 1.0), (1.0, 2 / 3))),
    "OSFW": (fw.OSFW, _tuned((1.0, 1.0), (1.0, 2 / 3))),
    "OFW": (fw.OFW, _tuned((0.5, 2 / 3))),
    "OAW": (fw.OAW, _tuned((0.5, 2 / 3))),
    "RegularizedOFW": (fw.RegularizedOFW, {"rounds": 400, "eta": 1e4, **_tuned((1.0, 1.0))}),
    "MORGFW, sub-batches": (fw.MORGFW, {"sub_batch_size": 4, **_MORGFW}),
    "MORGFW, whole batches": (fw.MORGFW, _MORGFW),
    "MetaFrankWolfe": (
        fw.MetaFrankWolfe,
        {
            "rounds": 100,
            "inner_steps": 1000,
            "base": fw.FTPL(scale=20.0),
            "sub_batch_size": 4,
            **_tuned((1.0, 1.0), (4.0, 1 / 2)),
        },
    ),
}


def learner(method, shape):
    """Return a learner in round 1."""
    kind, options = METHODS[method]
    return kind(*problem_and_ball(shape), **options)


def stream(shape, dtype, rounds, seed=0):
    """Batches of rows drawn with replacement."""
    batch_size = SHAPES[shape][3]
    return fw.iid_stream(data(shape, dtype), None, batch_size=batch_size, rounds=rounds, seed=seed)
