"""Answers of base learners and the points they lead to: Algorithm 2 on the row-l1 ball.

The answers v^(k) of a round are kept as one (index, value) per row. They are chosen when the round
before ends, so that all inner points x^(k) are known when the round's batch comes. Nothing
here and in the rounds built on it can fail: callers make sure beforehand that no number can
overflow.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._sweep import BLOCK
from .ftpl import block_tops, first_largest_perturbed
from .rng import NOISE, key


@kernel()
def blocks(d):
    """Number of blocks of a row."""
    return (d + BLOCK - 1) // BLOCK


@kernel()
def answer(row, tops, rate, kind, own, c, radius, skip, noisy, index, value):
    """Entry c of a vertex: -radius times the sign of the largest perturbed entry."""
    j, positive = first_largest_perturbed(row, tops, rate, kind, own, c * row.shape[0], skip, noisy)
    index[c] = j
    value[c] = -radius if positive else radius


@kernel()
def answers(S, d, rate, kind, seed, t, radius, skip, index, value):
    """Answers of all base learners in round t from their sums, the first d of S (K, C, >= d)."""
    K, n_classes = S.shape[:2]
    noisy = np.empty(BLOCK, np.float64)
    tops = np.empty(blocks(d), S.dtype)
    for k in range(K):
        own = key(seed, NOISE, t, k + 1)
        for c in range(n_classes):
            row = S[k, c, :d]
            block_tops(row, tops)
            answer(row, tops, rate, kind, own, c, radius, skip, noisy, index[k], value[k])


@kernel()
def decision(start, eta, index, value, x):
    """X = x^(K+1): from x_1, steps of lengths eta towards the vertices (index, value).

    It is added up in float64 and rounded once.
    """
    K, n_classes = index.shape
    weight = np.empty(K, np.float64)
    left = 1.0
    for k in range(K - 1, -1, -1):
        weight[k] = left * eta[k]
        left *= 1.0 - eta[k]
    exact = np.empty(x.shape[1], np.float64)
    for c in range(n_classes):
        for j in range(x.shape[1]):
            exact[j] = left * np.float64(start[c, j])
        for k in range(K):
            exact[index[k, c]] += weight[k] * value[k, c]
        for j in range(x.shape[1]):
            x[c, j] = exact[j]
