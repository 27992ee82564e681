"""Synthetic data of the sizes of real ones, larger than any cache."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from fastfw.streams import Dataset


@dataclass(frozen=True)
class Shape:
    """Sizes of a data set and its batches.

    ``share`` is that of the pixels which are not 0: a fifth in MNIST. ``n`` is a little more than
    MNIST has, so that 110 rounds can go without drawing a row twice.
    """

    name: str
    label: str
    n: int
    d: int
    n_classes: int
    batch_size: int
    radius: float
    share: float = 0.2
    csr: bool = False


MNIST = Shape("mnist", "MNIST", n=66_000, d=784, n_classes=10, batch_size=600, radius=8.0)
DENSE = Shape(
    "dense", "MNIST without zeros", n=20_000, d=784, n_classes=10, batch_size=600, radius=8.0,
    share=1.0,
)  # fmt: skip
CIFAR10 = Shape("cifar10", "CIFAR-10", n=10_000, d=3072, n_classes=10, batch_size=500, radius=32.0)
# Words of documents: one in a hundred, kept as a CSR matrix, and as a dense one of fewer rows.
SPARSE = Shape(
    "sparse", "100,000 features, 1 %, CSR", n=5_000, d=100_000, n_classes=10, batch_size=256,
    radius=32.0, share=0.01, csr=True,
)  # fmt: skip
NETWORK = Shape("mnist", "MNIST", n=20_000, d=784, n_classes=10, batch_size=16, radius=10.0)
WIDE = Shape(
    "wide", "100,000 features, 1 %, dense", n=300, d=100_000, n_classes=10, batch_size=256,
    radius=32.0, share=0.01,
)  # fmt: skip
DTYPES = ("float64", "float32")


#: Share of the pixels that tell classes apart: iterates then have about as many nonzero entries as
#: on MNIST (there ORGFW has 427 of 7,840 after 100 rounds and 516 after 400).
TELLING = 0.22


@lru_cache(maxsize=3)
def dataset(shape: Shape, dtype: str) -> Dataset:
    """Images whose pixels are bytes over 255, dark where they are 0, and labels that few decide.

    For uint8 these are the bytes themselves.
    """
    rng = np.random.default_rng(0)
    if shape.csr:
        return _sparse(shape, dtype, rng)
    size = (shape.n, shape.d)
    pixels = rng.integers(1, 256, size=size, dtype=np.uint8)
    if shape.share < 1.0:
        pixels *= rng.random(size, dtype=np.float32) < shape.share
    y = labels_of(pixels, shape, rng)
    if dtype == "uint8":
        return Dataset(pixels, y, scale=1 / 255)
    X = pixels.astype(dtype)
    X /= 255
    return Dataset(X, y)


def labels_of(X: Any, shape: Shape, rng: np.random.Generator) -> Any:
    """Classes that few of the pixels decide, at least one; the last class occurs."""
    weights = rng.standard_normal((shape.d, shape.n_classes), dtype=np.float32)
    quiet = rng.random(shape.d) >= TELLING
    quiet[0] &= not quiet.all()
    weights[quiet] = 0.0
    y = (X @ weights).argmax(axis=1)
    if y.max() < shape.n_classes - 1:
        y[0] = shape.n_classes - 1
    return y


def _sparse(shape: Shape, dtype: str, rng: np.random.Generator) -> Dataset:
    """The same for a CSR matrix: every row has its share of the columns, drawn at random."""
    size = int(shape.share * shape.d)
    indices = rng.integers(shape.d, size=(shape.n, size), dtype=np.int32)
    X = sparse.csr_array(
        (rng.random(indices.size), indices.ravel(), np.arange(shape.n + 1) * size),
        shape=(shape.n, shape.d),
    )
    weights = rng.standard_normal((shape.d, shape.n_classes))
    weights[rng.random(shape.d) >= TELLING] = 0.0
    return Dataset(X.astype(dtype), (X @ weights).argmax(axis=1))
