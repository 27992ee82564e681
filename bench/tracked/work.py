"""Synthetic data of the sizes of real ones, shared by the benchmarks."""

from functools import lru_cache

import numpy as np

import fastfw as fw
from fastfw.streams import Dataset

#: name: (samples, features, classes, batch size, radius)
SHAPES = {
    "mnist": (12_000, 784, 10, 600, 8.0),
    "cifar10": (5_000, 3072, 10, 500, 32.0),
    "small-batch": (12_000, 784, 10, 16, 8.0),
}
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


def problem_and_ball(shape):
    """Softmax regression and the row l1 ball of that shape."""
    _, d, n_classes, _, radius = SHAPES[shape]
    return (
        fw.SoftmaxRegression(d, n_classes),
        fw.RowL1Ball((n_classes, d), radius),
    )


def stream(shape, dtype, rounds, seed=0):
    """Batches of rows drawn with replacement."""
    batch_size = SHAPES[shape][3]
    return fw.iid_stream(data(shape, dtype), None, batch_size=batch_size, rounds=rounds, seed=seed)
