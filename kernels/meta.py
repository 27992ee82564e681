"""Rounds of Algorithm 2 on the row-l1 ball: all inner steps of a round at once.

The answers v^(k), kept as one (index, value) per row, were chosen before the round, so all inner
points x^(k) are known when its batch comes. Afterwards every base learner's sum is
updated and its next answer chosen in one sweep. Nothing here can fail: callers make sure
beforehand that no number can overflow.
"""

from __future__ import annotations

import numpy as np

from ._jit import REASSOCIATE, kernel
from ._tiles import GROUP
from .counter import NOISE, draw_rows, key
from .ftpl import BLOCK, first_largest_perturbed, largest_bits
from .l1 import LARGEST_LAZY_STEP, SMALLEST_SCALE
from .logistic import block_length
from .products import forward, padded
from .softmax import log_loss, softmax

#: Columns of logits that are passed through the softmax together.
COLUMNS = 256


@kernel()
def answers(S, rate, kind, seed, t, radius, skip, index, value):
    """Answers of all base learners in round t from their sums S (K, C, d)."""
    K, n_classes = S.shape[:2]
    draws = np.empty(BLOCK, np.float64)
    for k in range(K):
        own = key(seed, NOISE, t, k + 1)
        for c in range(n_classes):
            answer(S[k, c], largest_bits(S[k, c]), rate, kind, own, c, radius, skip, draws,
                   index[k], value[k])  # fmt: skip


@kernel()
def answer(row, largest, rate, kind, own, c, radius, skip, draws, index, value):
    """Entry c of a vertex: -radius times the sign of the largest perturbed entry."""
    j, positive = first_largest_perturbed(
        row, largest, rate, kind, own, c * row.shape[0], skip, draws
    )
    index[c] = j
    value[c] = -radius if positive else radius


@kernel()
def decision(start, eta, index, value, x):
    """X = x^(K+1): from x_1, steps of lengths eta towards the vertices (index, value)."""
    K, n_classes = index.shape
    weight = np.empty(K, np.float64)
    left = 1.0
    for k in range(K - 1, -1, -1):
        weight[k] = left * eta[k]
        left *= 1.0 - eta[k]
    share = x.dtype.type(left)
    for c in range(n_classes):
        for j in range(x.shape[1]):
            x[c, j] = share * start[c, j]
        for k in range(K):
            x[c, index[k, c]] += x.dtype.type(weight[k] * value[k, c])


@kernel()
def batch_loss(A, y, rows, x):
    """Sum over a batch of the losses at x."""
    n_classes, d = x.shape
    length = block_length(d, x.itemsize)
    Z = np.empty((n_classes, length), x.dtype)
    P = np.empty((n_classes, length), x.dtype)
    m = np.empty(length, x.dtype)
    total = np.empty(length, x.dtype)
    loss = 0.0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        forward(A, block, x, Z, rows[start + length : start + 2 * length])
        softmax(Z, P, m, total)
        loss += log_loss(Z, y, block, block.shape[0], m, total)
    return loss


@kernel(fastmath=REASSOCIATE)
def _estimate_4(a0, a1, a2, a3, r0, r1, r2, r3, keep, d):
    """D ← keep d + r0 a0 + r1 a1 + r2 a2 + r3 a3, one row."""
    for j in range(d.shape[0]):
        d[j] = keep * d[j] + ((r0 * a0[j] + r1 * a1[j]) + (r2 * a2[j] + r3 * a3[j]))


@kernel(fastmath=REASSOCIATE)
def _sweep_4(a0, a1, a2, a3, r0, r1, r2, r3, keep, d, s):
    """As `_estimate_4`, then s ← s + d."""
    for j in range(d.shape[0]):
        new = keep * d[j] + ((r0 * a0[j] + r1 * a1[j]) + (r2 * a2[j] + r3 * a3[j]))
        d[j] = new
        s[j] += new


@kernel()
def _one_step(u, s, index, value, eta):
    """X ← (1 - eta) x + eta v for x = s u; returns the new s."""
    real = u.dtype.type
    s *= 1.0 - eta
    if eta > LARGEST_LAZY_STEP or s < SMALLEST_SCALE:
        scale = real(s)
        for c in range(u.shape[0]):
            for j in range(u.shape[1]):
                u[c, j] *= scale
        s = 1.0
    for c in range(u.shape[0]):
        u[c, index[c]] += real(eta * value[c] / s)
    return s


@kernel(fastmath=REASSOCIATE)
def _residuals(P, total, weight, Q, total_before, weight_before, two):
    """P ← weight P / total - weight_before Q / total_before, column by column."""
    for i in range(total.shape[0]):
        total[i] = weight[i] / total[i]
        total_before[i] = weight_before[i] / total_before[i]
    for c in range(P.shape[0]):
        if two:
            for i in range(total.shape[0]):
                P[c, i] = P[c, i] * total[i] - Q[c, i] * total_before[i]
        else:
            for i in range(total.shape[0]):
                P[c, i] *= total[i]


@kernel()
def sub_batch_round(
    A, y, rows, size, weight, recursive, start, eta, rho, S, rate, kind, seed, t, after, radius,
    index, value,
):  # fmt: skip
    """Lines 8-15 of Algorithm 2 with sub-batches of `size` rows, and the next answers.

    Their noise is that of round `after`. Each gradient is `weight` times a sum over the
    sub-batch. The estimator is that of MORGFW (``recursive``) or of Meta-Frank-Wolfe.
    """
    K, n_classes, d = S.shape
    real = S.dtype.type
    width = padded(size)
    at_once = max(1, COLUMNS // width)
    columns = at_once * width
    Z = np.empty((n_classes, width), S.dtype)
    now = np.empty((n_classes, columns), S.dtype)
    before = np.empty((n_classes, columns), S.dtype)
    P = np.empty((n_classes, columns), S.dtype)
    Q = np.empty((n_classes, columns), S.dtype)
    m = np.empty(columns, S.dtype)
    total = np.empty(columns, S.dtype)
    total_before = np.empty(columns, S.dtype)
    alpha = np.empty(columns, S.dtype)
    beta = np.empty(columns, S.dtype)
    samples = np.empty(columns, np.intp)
    picked = np.empty(size, np.intp)
    draws = np.empty(BLOCK, np.float64)
    new_index = np.empty_like(index)
    new_value = np.empty_like(value)
    u = start.copy()
    D = np.zeros((n_classes, d), S.dtype)
    s = 1.0
    for first in range(0, K, at_once):
        steps = min(at_once, K - first)
        # logits of every sub-batch at x^(k), and at x^(k-1) for the recursive estimator
        for q in range(steps):
            k = first + q
            draw_rows(seed, t, k + 1, rows.shape[0], picked)
            low = q * width
            block = samples[low : low + size]
            for i in range(size):
                block[i] = rows[picked[i]]
            if k > 0 and not recursive:
                s = _one_step(u, s, index[k - 1], value[k - 1], eta[k - 1])
            forward(A, block, u, Z, block[:0])
            scale = real(s)
            step = k > 0 and recursive
            keep = real(1.0 - eta[k - 1]) if step else real(1.0)
            for c in range(n_classes):
                moved = real(eta[k - 1] * value[k - 1, c]) if step else real(0.0)
                j = index[k - 1, c] if step else 0
                for i in range(width):
                    z = scale * Z[c, i]
                    before[c, low + i] = z
                    now[c, low + i] = keep * z + (moved * A[block[i], j] if i < size else real(0.0))
            if step:
                s = _one_step(u, s, index[k - 1], value[k - 1], eta[k - 1])
            back = 1.0 - rho[k] if step else 0.0
            forth = 1.0 if recursive else rho[k]
            for i in range(width):
                alpha[low + i] = real(weight * forth) if i < size else real(0.0)
                beta[low + i] = real(weight * back) if i < size else real(0.0)
        softmax(now, P, m, total)
        if recursive:
            softmax(before, Q, m, total_before)
        _residuals(P, total, alpha, Q, total_before, beta, recursive)
        # estimator, sums and next answers
        for q in range(steps):
            k = first + q
            low = q * width
            for i in range(size):
                P[y[samples[low + i]], low + i] -= alpha[low + i] - beta[low + i]
            kept = real(1.0 - rho[k]) if k > 0 else real(0.0)
            own = key(seed, NOISE, after, k + 1)
            for c in range(n_classes):
                row, cumulative = D[c], S[k, c]
                for i in range(0, size, GROUP):
                    a0 = A[samples[low + i]]
                    a1 = A[samples[low + min(i + 1, size - 1)]]
                    a2 = A[samples[low + min(i + 2, size - 1)]]
                    a3 = A[samples[low + min(i + 3, size - 1)]]
                    r0, r1 = P[c, low + i], P[c, low + i + 1]
                    r2, r3 = P[c, low + i + 2], P[c, low + i + 3]
                    keep = kept if i == 0 else real(1.0)
                    if i + GROUP < size:
                        _estimate_4(a0, a1, a2, a3, r0, r1, r2, r3, keep, row)
                    else:
                        _sweep_4(a0, a1, a2, a3, r0, r1, r2, r3, keep, row, cumulative)
                answer(cumulative, largest_bits(cumulative), rate, kind, own, c, radius, True,
                       draws, new_index[k], new_value[k])  # fmt: skip
    for k in range(K):
        for c in range(n_classes):
            index[k, c] = new_index[k, c]
            value[k, c] = new_value[k, c]


@kernel()
def gather_transposed(A, rows, out):
    """out[j, i] = A[rows[i], j]."""
    n = rows.shape[0]
    for low in range(0, n, 8):
        block = rows[low : min(low + 8, n)]
        for j in range(A.shape[1]):
            for i in range(block.shape[0]):
                out[j, low + i] = A[block[i], j]


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
    """Residuals R (steps, C, B) at x^(first+1), x^(first+2), ...; their products with A are d^(k).

    Z holds the logits at x^(first+1) and is moved on to those after the last step, every step
    costing one column of the transposed batch per class. ``R[-1]`` must hold the residuals
    of the step before, for the average of Meta-Frank-Wolfe.
    """
    steps, n_classes, n = R.shape
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
def add_and_answer(G, S, first, rate, kind, seed, t, radius, index, value):
    """S[first:] += G (steps, C, d), and answers of those base learners in round t."""
    steps, n_classes, d = G.shape
    draws = np.empty(BLOCK, np.float64)
    for q in range(steps):
        k = first + q
        own = key(seed, NOISE, t, k + 1)
        for c in range(n_classes):
            row = S[k, c]
            for j in range(d):
                row[j] += G[q, c, j]
            answer(row, largest_bits(row), rate, kind, own, c, radius, True, draws, index[k],
                   value[k])  # fmt: skip
