"""Rounds of a few samples, which tiles would have to be filled up for.

Their gradients are never written: the estimate is moved by the samples themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._features import block_features, block_space
from ._jit import REASSOCIATE, kernel
from .gradients import ADDED, DENSE_PREVIOUS, FIRST, NO_PREVIOUS, scaled
from .models import dot, head, workspace

#: Samples of a batch that is few: always, and where they have no more features than this.
ALWAYS, OF_SHORT, SHORT = 3, 16, 64


@kernel()
def is_few(n, d):
    """Whether a batch of n samples is one of a few."""
    return n <= (OF_SHORT if d <= SHORT else ALWAYS)


@kernel()
def few_of(starts, d):
    """The length of the longest batch of a few, 0 if there is none, and whether all are such."""
    longest: Any = np.intp(0)
    alone = True
    for t in range(starts.shape[0] - 1):
        n = starts[t + 1] - starts[t]
        if is_few(n, d):
            longest = max(longest, n)
        else:
            alone = False
    return longest, alone


@kernel()
def room_for_few(A, model, u, tail, n):
    """Room for `few_residuals`: derivatives by the outputs, decoded samples, outputs, scratch."""
    Z = np.zeros((u.shape[0], n), u.dtype)
    return np.empty_like(Z), block_space(A, n, u), Z, workspace(model, Z, tail)


@kernel()
def _outputs(features, at, u, s, Z):
    for c in range(u.shape[0]):
        for k in range(at.shape[0]):
            Z[c, k] = s * dot(u[c], features[at[k]])


@kernel()
def few_residuals(
    A, model, y, rows, u, s, tail, mode, previous, tail_previous, index, moved, shrink, alpha, beta,
    tail_gradient, room,
):  # fmt: skip
    """As `csr.residuals`; the derivatives by the outputs are the first array of `room_for_few`."""
    R, features_space, Z, space = room
    real = u.dtype.type
    features, at = block_features(A, rows, rows[:0], features_space)
    _outputs(features, at, u, real(s), Z)
    for j in range(tail_gradient.shape[0]):
        tail_gradient[j] = 0.0
    loss = head(model, space, Z, tail, y, rows, alpha, R, FIRST, tail_gradient)
    if mode != NO_PREVIOUS:
        if mode == DENSE_PREVIOUS:
            _outputs(features, at, previous, real(1.0), Z)
        else:
            for c in range(index.shape[0]):
                for q in range(index.shape[1]):
                    for k in range(at.shape[0]):
                        Z[c, k] -= real(moved[c, q]) * features[at[k], index[c, q]]
            scaled(Z, real(shrink))
        head(model, space, Z, tail_previous, y, rows, -beta, R, ADDED, tail_gradient)
    return loss


@kernel(fastmath=REASSOCIATE)
def _blend(d, gamma, a, r, g):
    for j in range(a.shape[0]):
        g[j] = gamma * d[j] + r * a[j]


@kernel()
def add_few(d, features, at, r, gamma, scale, g):
    """G = gamma d + scale times the sum of samples, each times its entry of r."""
    _blend(d, gamma, features[at[0]], scale * r[0], g)
    for k in range(1, at.shape[0]):
        _blend(g, d.dtype.type(1.0), features[at[k]], scale * r[k], g)
