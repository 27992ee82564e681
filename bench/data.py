"""Synthetic data of the sizes of real ones."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

import fastfw as fw
from fastfw.streams import Dataset

DTYPES = ("float64", "float32")


class Shape(NamedTuple):
    """Sizes of a data set and its batches.

    ``share`` is that of the pixels which are not 0: a fifth in MNIST. ``telling`` is that of those
    which tell classes apart. With 0.22 iterates have about as many nonzero entries as on MNIST
    (there ORGFW has 427 of 7,840 after 100 rounds and 516 after 400). ``csr`` data has that share
    of its columns in every row, and would not fit into memory as a matrix.
    """

    n: int
    d: int
    n_classes: int
    batch_size: int
    radius: float
    share: float = 0.2
    telling: float = 1.0
    csr: bool = False
    name: str = ""
    label: str = ""


@lru_cache(maxsize=1)
def pixels(shape: Shape) -> tuple[Any, Any]:
    """Bytes of which some are not 0, and labels that a linear model can learn."""
    rng = np.random.default_rng(0)
    size = (shape.n, shape.d)
    found = rng.integers(1, 256, size=size, dtype=np.uint8)
    if shape.share < 1.0:
        found *= rng.random(size, dtype=np.float32) < shape.share
    return found, _labels(found, shape, rng)


def _labels(X: Any, shape: Shape, rng: np.random.Generator) -> Any:
    """Classes that the telling features decide, at least one of them; the last class occurs."""
    weights = rng.standard_normal((shape.d, shape.n_classes), dtype=np.float32)
    quiet = rng.random(shape.d) >= shape.telling
    quiet[0] &= not quiet.all()
    weights[quiet] = 0.0
    y = (X @ weights).argmax(axis=1)
    if y.max() < shape.n_classes - 1:
        y[0] = shape.n_classes - 1
    return y


@lru_cache(maxsize=3)
def dataset(shape: Shape, features: str) -> Dataset:
    """The same data as "float64", "csr float64" or "uint8 float64" (bytes, to be divided by 255).

    The last word is the dtype of the parameters.
    """
    kind, dtype = features.split()[0], features.split()[-1]
    if shape.csr:
        rng, size = np.random.default_rng(0), int(shape.share * shape.d)
        places = rng.integers(shape.d, size=shape.n * size, dtype=np.int32)
        parts = rng.random(places.size), places, np.arange(shape.n + 1) * size
        X = sparse.csr_array(parts, shape=(shape.n, shape.d))
        return Dataset(X.astype(dtype), _labels(X, shape, rng))
    codes, y = pixels(shape)
    if kind == "uint8":
        return Dataset(codes, y, scale=1 / 255).astype(dtype)
    X = np.divide(codes, 255, dtype=dtype)
    return Dataset(sparse.csr_array(X) if kind == "csr" else X, y)


def grid(side: int) -> fw.FlowPolytope:
    """Paths through a square grid of nodes, to the right and down."""
    nodes = np.arange(side * side).reshape(side, side)
    pairs = (nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:])
    edges = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
    return fw.FlowPolytope(edges.tolist(), 0, side * side - 1)
