"""A round of Algorithm 2 with whole batches: all gradients as a product of large matrices."""

from __future__ import annotations

import numpy as np

from ._gather import gather_tile, tile_width
from ._jit import REASSOCIATE, kernel
from ._sweep import BLOCK
from .ftpl import block_tops
from .meta import answer, blocks
from .rng import NOISE, key
from .softmax import log_loss, softmax

#: Samples whose residuals in a tile fit the nearest cache.
SAMPLES = 48


@kernel()
def transpose(A, out):
    """Out = Aᵀ, in blocks of eight rows."""
    for low in range(0, A.shape[0], 8):
        block = A[low : low + 8]
        for j in range(A.shape[1]):
            for i in range(block.shape[0]):
                out[j, low + i] = block[i, j]


@kernel()
def gather_transposed(A, rows, out):
    """out[j, i] = A[rows[i], j]."""
    for low in range(0, rows.shape[0], 8):
        block = rows[low : low + 8]
        for j in range(A.shape[1]):
            for i in range(block.shape[0]):
                out[j, low + i] = A[block[i], j]


@kernel()
def compress(At, values, places, starts):
    """List the nonzero entries of At (d, B), `SAMPLES` columns at a time, row by row.

    Those of row j in the b-th group of columns are listed from starts[b * d + j] on. `values` and
    `places` have room for one entry more.
    """
    d, n = At.shape
    total = 0
    for low in range(0, n, SAMPLES):
        for j in range(d):
            starts[low // SAMPLES * d + j] = total
            part = At[j, low : min(low + SAMPLES, n)]
            for i in range(part.shape[0]):
                values[total], places[total] = part[i], low + i
                total += 1 if part[i] != 0 else 0
    starts[starts.shape[0] - 1] = total


@kernel()
def sparse_gradients(values, places, starts, R, Rt, Gt, G):
    """G (lanes, d) = R (lanes, B) A for the transposed batch A in the form of `compress`.

    `Rt` and `Gt` are space for the transposes, their lanes padded to whole tiles. Samples are
    taken in groups whose residuals stay in the nearest cache.
    """
    d = G.shape[1]
    transpose(R, Rt)
    for i in range(Rt.shape[0]):
        for k in range(R.shape[0], Rt.shape[1]):
            Rt[i, k] = G.dtype.type(0.0)
    for j in range(d):
        for k in range(Gt.shape[1]):
            Gt[j, k] = G.dtype.type(0.0)
    for k in range(0, R.shape[0], tile_width(R.itemsize)):
        for first in range(0, starts.shape[0] - 1, d):
            for j in range(d):
                low, high = starts[first + j], starts[first + j + 1]
                gather_tile(values, places, low, high, Rt, k, Gt, j)
    for low in range(0, d, 8):
        block = Gt[low : min(low + 8, d)]
        for k in range(G.shape[0]):
            for i in range(block.shape[0]):
                G[k, low + i] = block[i, k]


@kernel(fastmath=REASSOCIATE)
def _blend_residuals(P, total, weight, R, keep, out):
    """Out = keep R + weight P / total, one class."""
    for i in range(total.shape[0]):
        out[i] = keep * R[i] + weight * (P[i] * total[i])


@kernel(fastmath=REASSOCIATE)
def _move_logits(z, keep, moved, a):
    """Z ← keep z + moved a, one class."""
    for i in range(z.shape[0]):
        z[i] = keep * z[i] + moved * a[i]


@kernel()
def whole_batch_residuals(At, y, weight, recursive, eta, rho, index, value, Z, first, R):
    """Residuals R (steps, C - 1, B) at x^(first+1), ...; their products with A are the d^(k).

    Residuals of a sample add up to zero, so that the last class can be left out.
    Z holds the logits at x^(first+1) and is moved on to those after the last step, every step
    costing one column of the transposed batch per class. ``R[-1]`` must hold the residuals
    of the step before, for the average of Meta-Frank-Wolfe.
    """
    steps, n = R.shape[0], R.shape[2]
    n_classes = Z.shape[0]
    real = Z.dtype.type
    P = np.empty((n_classes, n), Z.dtype)
    m = np.empty(n, Z.dtype)
    total = np.empty(n, Z.dtype)
    for q in range(steps):
        k = first + q
        softmax(Z, P, m, total)
        for i in range(n):
            total[i] = real(1.0) / total[i]
        for i in range(n):
            P[y[i], i] -= real(1.0) / total[i]
        fresh = recursive or k == 0
        keep = real(0.0) if fresh else real(1.0 - rho[k])
        w = real(weight) if recursive else real(weight * rho[k])
        before = R[steps - 1] if q == 0 else R[q - 1]
        for c in range(n_classes):
            if c < n_classes - 1:
                _blend_residuals(P[c], total, w, P[c] if fresh else before[c], keep, R[q, c])
            _move_logits(Z[c], real(1.0 - eta[k]), real(eta[k] * value[k, c]), At[index[k, c]])


@kernel()
def logits_loss(Z, y):
    """Sum of the losses of samples with logits Z (C, B)."""
    n = Z.shape[1]
    P = np.empty_like(Z)
    m = np.empty(n, Z.dtype)
    total = np.empty(n, Z.dtype)
    softmax(Z, P, m, total)
    return log_loss(Z, y, np.arange(n), n, m, total)


@kernel()
def _add(row, gradient, last):
    """Row += gradient, last -= gradient."""
    for j in range(row.shape[0]):
        row[j] += gradient[j]
        last[j] -= gradient[j]


@kernel()
def add_and_answer(G, S, first, rate, kind, seed, t, radius, skip, index, value):
    """S[first:] += G (steps, C - 1, d), and answers of those base learners in round t.

    The entries of the last class are those that make each column of a gradient add up to zero.
    """
    steps, rest, d = G.shape
    noisy = np.empty(BLOCK, np.float64)
    tops = np.empty(blocks(d), S.dtype)
    last = np.empty(d, S.dtype)
    for q in range(steps):
        k = first + q
        own = key(seed, NOISE, t, k + 1)
        for j in range(d):
            last[j] = S.dtype.type(0.0)
        for c in range(rest + 1):
            row = S[k, c, :d]
            if c < rest:
                _add(row, G[q, c], last)
            else:
                for j in range(d):
                    row[j] += last[j]
            block_tops(row, tops)
            answer(row, tops, rate, kind, own, c, radius, skip, noisy, index[k], value[k])
