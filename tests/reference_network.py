"""The one-hidden-layer network and the offline methods again in plain NumPy.

Nothing of fastfw is imported. As in ``reference``: batches are gathered, every gradient is
written out, nothing is shared.

Conventions
-----------
``x``
    One flat array: W1 (m, d) row by row, then b1 (m,), W2 (C, m) row by row, b2 (C,).
``radii``
    Of the l1 balls of each row of W1, of b1, of each row of W2, of b2.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import reference as ref

Array = np.ndarray[Any, np.dtype[Any]]
Radii = tuple[float, float, float, float]


class Shape(NamedTuple):
    """Sizes of a network."""

    d: int
    m: int
    n_classes: int

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.m * self.d + self.m + self.n_classes * self.m + self.n_classes


def split(x: Array, shape: Shape) -> tuple[Array, Array, Array, Array]:
    """W1, b1, W2, b2 of a flat array, as views."""
    d, m, C = shape
    ends = np.cumsum([m * d, m, C * m])
    W1, b1, W2, b2 = np.split(x, ends)
    return W1.reshape(m, d), b1, W2.reshape(C, m), b2


def join(W1: Array, b1: Array, W2: Array, b2: Array) -> Array:
    """The flat array of four blocks."""
    return np.concatenate([W1.ravel(), b1, W2.ravel(), b2])


# --- the network ----------------------------------------------------------------------------------


def activate(Z: Array, activation: str) -> Array:
    """The hidden layer's values at its inputs."""
    if activation == "sigmoid":
        e = np.exp(-np.abs(Z))
        return np.where(Z >= 0, 1.0, e) / (1.0 + e)
    return np.asarray({"tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}[activation](Z))


def slope(H: Array, activation: str) -> Array:
    """The activation's derivative, from its values."""
    if activation == "sigmoid":
        return H * (1.0 - H)
    return 1.0 - H * H if activation == "tanh" else (H > 0).astype(H.dtype)


def loss(x: Array, A: Array, y: Array, shape: Shape, activation: str = "sigmoid") -> float:
    """Mean of ``log(sum_j exp(z_ij)) - z_iy_i``, Z = H W2^T + b2, H = activation(A W1^T + b1)."""
    W1, b1, W2, b2 = split(x, shape)
    Z = activate(A @ W1.T + b1, activation) @ W2.T + b2
    return float((ref.log_sum_exp(Z) - Z[np.arange(len(y)), y]).mean())


def loss_and_gradient(
    x: Array,
    A: Array,
    y: Array,
    reduction: str = "mean",
    *,
    shape: Shape,
    activation: str = "sigmoid",
) -> tuple[float, Array]:
    """Loss and gradient by the chain rule, block by block."""
    W1, b1, W2, b2 = split(x, shape)
    H = activate(A @ W1.T + b1, activation)  # hidden layer
    Z = H @ W2.T + b2  # logits
    value = float((ref.log_sum_exp(Z) - Z[np.arange(len(y)), y]).sum())
    R = ref.softmax(Z)  # derivative with respect to the logits
    R[np.arange(len(y)), y] -= 1.0
    D = (R @ W2) * slope(H, activation)  # with respect to the hidden layer's inputs
    scale = 1.0 / len(y) if reduction == "mean" else 1.0
    return value * scale, join(D.T @ A, D.sum(axis=0), R.T @ H, R.sum(axis=0)) * x.dtype.type(scale)


def lmo(g: Array, radii: Radii, *, shape: Shape) -> Array:
    """A vertex of each block's l1 balls: row by row for the matrices."""
    W1, b1, W2, b2 = split(g, shape)
    return join(
        ref.lmo(W1, radii[0]),
        ref.lmo(b1[None], radii[1])[0],
        ref.lmo(W2, radii[2]),
        ref.lmo(b2[None], radii[3])[0],
    )


def methods(shape: Shape, activation: str = "sigmoid") -> ModuleType:
    """The online methods of ``reference``, with the network's gradients and oracle in place of
    softmax regression's: the same lines, run as a module of their own. ``radius`` is `Radii`.
    """
    spec = importlib.util.spec_from_file_location("reference_methods", ref.__file__)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    both = partial(loss_and_gradient, shape=shape, activation=activation)
    module.loss_and_gradient = both  # type: ignore[attr-defined]
    module.gradient = lambda *args: both(*args)[1]  # type: ignore[attr-defined]
    module.lmo = partial(lmo, shape=shape)  # type: ignore[attr-defined]
    return module


# --- offline methods ------------------------------------------------------------------------------

Gradient = Callable[[Array, Array, Array], Array]
Oracle = Callable[[Array], Array]


class OfflineRun(NamedTuple):
    """Decisions x_1, ..., x_{N+1}, and the estimates d_1, ..., d_N."""

    iterates: Array
    directions: Array


def svrf(
    start: Array,
    X: Array,
    y: Array,
    rows: list[Array | None],
    steps: list[float],
    gradient: Gradient,
    oracle: Oracle,
) -> OfflineRun:
    """SVRF (Hazan and Luo 2016): ``rows[t-1]`` is None where an epoch starts, else a mini-batch."""
    x = start
    xs, ds = [x], []
    for picked, eta in zip(rows, steps, strict=True):
        if picked is None:
            snapshot, full = x, gradient(x, X, y)
            d = full
        else:
            A, labels = X[picked], y[picked]
            d = gradient(x, A, labels) - gradient(snapshot, A, labels) + full
        x = x + eta * (oracle(d) - x)
        xs.append(x)
        ds.append(d)
    return OfflineRun(np.array(xs), np.array(ds))


def spider_fw(
    start: Array,
    X: Array,
    y: Array,
    rows: list[Array | None],
    steps: list[float],
    gradient: Gradient,
    oracle: Oracle,
) -> OfflineRun:
    """SPIDER-FW (Shen et al. 2019): as `svrf`, with differences added up within an epoch."""
    x = x_previous = start
    xs, ds = [x], []
    for picked, eta in zip(rows, steps, strict=True):
        if picked is None:
            d = gradient(x, X, y)
        else:
            A, labels = X[picked], y[picked]
            d = d + gradient(x, A, labels) - gradient(x_previous, A, labels)
        x_previous, x = x, x + eta * (oracle(d) - x)
        xs.append(x)
        ds.append(d)
    return OfflineRun(np.array(xs), np.array(ds))
