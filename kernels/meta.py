"""Rounds of Algorithm 2 on the row-l1 ball: all inner steps of a round at once.

The answers v^(k), kept as one (index, value) per row, were chosen before the round, so all inner
points x^(k) are known when its batch comes. Afterwards every base learner's sum is
updated and its next answer chosen in one sweep. Nothing here can fail: callers make sure
beforehand that no number can overflow.
"""

from __future__ import annotations

import numpy as np

from ._gather import gather_tile, tile_width
from ._jit import REASSOCIATE, kernel
from ._sweep import BLOCK, sweep_tile
from ._tiles import GROUP, WIDEST
from .counter import NOISE, draw_rows, key
from .ftpl import block_tops, first_largest_perturbed
from .l1 import LARGEST_LAZY_STEP, SMALLEST_SCALE
from .logistic import block_length
from .products import backward, forward, padded
from .softmax import log_loss, softmax

#: A point with at most one nonzero entry in so many is multiplied entry by entry.
SPARSE = 8
#: Samples of sub-batches that are multiplied with the same point.
TOGETHER = 8
#: Samples whose residuals in a tile fit the nearest cache.
SAMPLES = 48
#: Columns of logits that are passed through the softmax together.
COLUMNS = 256


_sweep_1, _sweep_2, _sweep_3 = sweep_tile[1], sweep_tile[2], sweep_tile[3]
_sweep_4, _sweep_5 = sweep_tile[4], sweep_tile[5]


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


@kernel(fastmath=frozenset({"contract"}))
def _sparse_products(a0, a1, a2, a3, a4, a5, a6, a7, u, places, z):
    """Products of eight rows with u, whose only nonzero entries are at the given places."""
    z0 = z1 = z2 = z3 = z4 = z5 = z6 = z7 = u.dtype.type(0.0)
    for q in range(places.shape[0]):
        j = places[q]
        v = u[j]
        z0 += v * a0[j]
        z1 += v * a1[j]
        z2 += v * a2[j]
        z3 += v * a3[j]
        z4 += v * a4[j]
        z5 += v * a5[j]
        z6 += v * a6[j]
        z7 += v * a7[j]
    z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = z0, z1, z2, z3, z4, z5, z6, z7


@kernel(fastmath=frozenset({"contract"}))
def _sparse_products_4(a0, a1, a2, a3, u, places, z):
    """As `_sparse_products` for four rows, with two sums each.

    One multiply-add takes longer to finish than four or eight to begin.
    """
    z0 = z1 = z2 = z3 = y0 = y1 = y2 = y3 = u.dtype.type(0.0)
    odd = places.shape[0] % 2
    for q in range(places.shape[0] // 2):
        j, k = places[np.uintp(2 * q)], places[np.uintp(2 * q + 1)]
        v, w = u[j], u[k]
        z0 += v * a0[j]
        z1 += v * a1[j]
        z2 += v * a2[j]
        z3 += v * a3[j]
        y0 += w * a0[k]
        y1 += w * a1[k]
        y2 += w * a2[k]
        y3 += w * a3[k]
    if odd == 1:
        j = places[places.shape[0] - 1]
        v = u[j]
        z0 += v * a0[j]
        z1 += v * a1[j]
        z2 += v * a2[j]
        z3 += v * a3[j]
    z[0], z[1], z[2], z[3] = z0 + y0, z1 + y1, z2 + y2, z3 + y3


@kernel()
def sparse_forward(A, rows, u, places, counts, Z):
    """As `forward`, for u whose only nonzero entries in row c are at places[c, :counts[c]]."""
    n, last = rows.shape[0], rows.shape[0] - 1
    k = 0
    while k < n:
        a0, a1 = A[rows[k]], A[rows[min(k + 1, last)]]
        a2, a3 = A[rows[min(k + 2, last)]], A[rows[min(k + 3, last)]]
        if n - k >= 8:
            a4, a5, a6, a7 = A[rows[k + 4]], A[rows[k + 5]], A[rows[k + 6]], A[rows[k + 7]]
            for c in range(u.shape[0]):
                _sparse_products(
                    a0, a1, a2, a3, a4, a5, a6, a7, u[c], places[c, : counts[c]], Z[c, k : k + 8]
                )
            k += 8
        else:
            for c in range(u.shape[0]):
                _sparse_products_4(
                    a0, a1, a2, a3, u[c], places[c, : counts[c]], Z[c, k : k + GROUP]
                )
            k += GROUP


@kernel()
def support(x, d, places, counts):
    """List the places of the nonzero entries of x row by row."""
    for c in range(x.shape[0]):
        n = 0
        for j in range(d):
            places[c, n] = j
            n += 1 if x[c, j] != 0 else 0
        counts[c] = n


@kernel()
def few(total, n_classes, d):
    """Whether so many nonzero entries are better taken one by one than with the zeros."""
    return total * SPARSE <= n_classes * d


@kernel()
def batch_loss(A, y, rows, x):
    """Sum over a batch of the losses at x, a mean of a few vertices."""
    n_classes, d = x.shape[0], A.shape[1]
    length = block_length(d, x.itemsize)
    Z = np.zeros((n_classes, length), x.dtype)
    P = np.empty((n_classes, length), x.dtype)
    m = np.empty(length, x.dtype)
    total = np.empty(length, x.dtype)
    places = np.empty((n_classes, d + 1), np.uintp)
    counts = np.empty(n_classes, np.intp)
    support(x, d, places, counts)
    sparse = few(counts.sum(), n_classes, d)
    loss = 0.0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        if sparse:
            sparse_forward(A, block, x, places, counts, Z)
        else:
            forward(A, block, x, Z, rows[start + length : start + 2 * length])
        softmax(Z, P, m, total)
        loss += log_loss(Z, y, block, block.shape[0], m, total)
    return loss


@kernel()
def _sweep(A, block, R, low, keep, D, S, row, tops, group, nothing):
    """D ← keep D + R[:, low:] A[block]; S[row:] += D; tops = largest magnitudes of S by block.

    `group` is space for the residuals of a sub-batch.
    """
    n_classes, size = D.shape[0], block.shape[0]
    last = (size - 1) // GROUP * GROUP
    if last > 0:
        for c in range(n_classes):
            for j in range(A.shape[1]):
                D[c, j] *= keep
            for i in range(last):
                group[c, i] = R[c, low + i]
        backward(A, block[:last], group, D, nothing)
        keep = D.dtype.type(1.0)
    for c in range(n_classes):
        for b in range(tops.shape[1]):
            tops[c, b] = D.dtype.type(0.0)
    i0, i1 = block[last], block[min(last + 1, size - 1)]
    i2, i3 = block[min(last + 2, size - 1)], block[size - 1]
    k = low + last
    c = 0
    while c < n_classes:
        width = min(WIDEST, n_classes - c)
        if width == 5:
            _sweep_5(A, i0, i1, i2, i3, R, c, k, keep, D, S, row + c, tops)
        elif width == 4:
            _sweep_4(A, i0, i1, i2, i3, R, c, k, keep, D, S, row + c, tops)
        elif width == 3:
            _sweep_3(A, i0, i1, i2, i3, R, c, k, keep, D, S, row + c, tops)
        elif width == 2:
            _sweep_2(A, i0, i1, i2, i3, R, c, k, keep, D, S, row + c, tops)
        else:
            _sweep_1(A, i0, i1, i2, i3, R, c, k, keep, D, S, row + c, tops)
        c += width


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


@kernel()
def _list(index, listed, places, counts):
    """Add the places of a vertex to the lists."""
    for c in range(index.shape[0]):
        if not listed[c, index[c]]:
            listed[c, index[c]] = True
            places[c, counts[c]] = index[c]
            counts[c] += 1


@kernel(fastmath=REASSOCIATE)
def _residuals(P, total, weight, Q, total_before, weight_before, two):
    """P ← weight P / total - weight_before Q / total_before, column by column."""
    for i in range(total.shape[0]):
        total[i] = weight[i] / total[i]
    if two:
        for i in range(total.shape[0]):
            total_before[i] = weight_before[i] / total_before[i]
    for c in range(P.shape[0]):
        if two:
            for i in range(total.shape[0]):
                P[c, i] = P[c, i] * total[i] - Q[c, i] * total_before[i]
        else:
            for i in range(total.shape[0]):
                P[c, i] *= total[i]


@kernel()
def _draw_samples(rows, size, width, seed, t, first, steps, samples):
    """Samples of the sub-batches first + 1, ...; each is padded to `width` by its last one."""
    for q in range(steps):
        part = samples[q * width : (q + 1) * width]
        draw_rows(seed, t, first + q + 1, rows.shape[0], part[:size])
        for i in range(size):
            part[i] = rows[part[i]]
        for i in range(size, width):
            part[i] = part[size - 1]


@kernel()
def _advance(Z, low, stop, A, samples, eta, index, value):
    """Logits of some samples at x, in Z[:, low:stop], become those at (1 - eta) x + eta v."""
    real = Z.dtype.type
    keep = real(1.0 - eta)
    for c in range(Z.shape[0]):
        moved, j = real(eta * value[c]), index[c]
        for i in range(low, stop):
            Z[c, i] = keep * Z[c, i] + moved * A[samples[i], j]


@kernel()
def _inner_logits(
    A, samples, first, steps, width, recursive, eta, index, value, u, s, at, places, counts,
    listed, Z, before, now,
):  # fmt: skip
    """Logits of each sub-batch at its own point x^(k), and at x^(k-1) in `before`.

    The point x^(at+1) is s u, its nonzero entries are listed; s and `at` are returned as they are
    in the end. Neighbouring sub-batches are multiplied with the same point, and a step from
    there costs one multiply-add per class.
    """
    n_classes = u.shape[0]
    together = max(1, TOGETHER // width)
    for q in range(0, steps, together):
        k, n = first + q, min(together, steps - q)
        base = k - 1 if recursive and k > 0 else k
        while at < base:
            s = _one_step(u, s, index[at], value[at], eta[at])
            _list(index[at], listed, places, counts)
            at += 1
        low, stop = q * width, (q + n) * width
        block = samples[low:stop]
        if few(counts.sum(), n_classes, A.shape[1]):
            sparse_forward(A, block, u, places, counts, Z)
        else:
            forward(A, block, u, Z, block[:0])
        scale = u.dtype.type(s)
        for c in range(n_classes):
            for i in range(block.shape[0]):
                now[c, low + i] = scale * Z[c, i]
        for own in range(k, k + n):
            low, stop = (own - first) * width, (own - first + 1) * width
            for r in range(base, own - 1 if recursive else own):
                _advance(now, low, stop, A, samples, eta[r], index[r], value[r])
            if recursive:
                for c in range(n_classes):
                    for i in range(low, stop):
                        before[c, i] = now[c, i]
                if own > 0:
                    r = own - 1
                    _advance(now, low, stop, A, samples, eta[r], index[r], value[r])
    return s, at


@kernel()
def sub_batch_round(
    A, y, rows, size, weight, recursive, start, eta, rho, S, rate, kind, seed, t, after, radius,
    index, value, u, D,
):  # fmt: skip
    """Lines 8-15 of Algorithm 2 with sub-batches of `size` rows, and the next answers.

    Their noise is that of round `after`. Each gradient is `weight` times a sum over the
    sub-batch. The estimator is that of MORGFW (``recursive``) or of Meta-Frank-Wolfe.
    `u` and `D` are space for a point and an estimate.
    """
    K, n_classes = S.shape[:2]
    d = A.shape[1]
    real = S.dtype.type
    sums = S.reshape(K * n_classes, S.shape[2])
    tops = np.empty((n_classes, blocks(d)), S.dtype)
    width = padded(size)
    at_once = max(1, COLUMNS // width)
    columns = at_once * width
    Z = np.empty((n_classes, max(width, TOGETHER)), S.dtype)
    now = np.zeros((n_classes, columns), S.dtype)
    before = np.zeros((n_classes, columns), S.dtype)
    P = np.zeros((n_classes, columns), S.dtype)
    Q = np.zeros((n_classes, columns), S.dtype)
    m = np.empty(columns, S.dtype)
    total = np.empty(columns, S.dtype)
    total_before = np.zeros(columns, S.dtype)
    alpha = np.zeros(columns, S.dtype)
    beta = np.zeros(columns, S.dtype)
    samples = np.empty(columns, np.intp)
    noisy = np.empty(BLOCK, np.float64)
    new_index = np.empty_like(index)
    new_value = np.empty_like(value)
    places = np.empty((n_classes, d + 1), np.uintp)
    counts = np.empty(n_classes, np.intp)
    listed = np.zeros((n_classes, d), np.bool_)
    u[:, :] = start
    D[:, :] = real(0.0)
    support(u, d, places, counts)
    for c in range(n_classes):
        for i in range(counts[c]):
            listed[c, places[c, i]] = True
    s, at = 1.0, 0
    for first in range(0, K, at_once):
        steps = min(at_once, K - first)
        # lines 9-13: residuals whose product with a sub-batch is what the estimator adds
        _draw_samples(rows, size, width, seed, t, first, steps, samples)
        s, at = _inner_logits(
            A, samples, first, steps, width, recursive, eta, index, value, u, s, at, places,
            counts, listed, Z, before, now,
        )  # fmt: skip
        for q in range(steps):
            k = first + q
            forth = real(weight) if recursive else real(weight * rho[k])
            back = real(weight * (1.0 - rho[k])) if recursive and k > 0 else real(0.0)
            for i in range(size):
                alpha[q * width + i], beta[q * width + i] = forth, back
        softmax(now, P, m, total)
        if recursive:
            softmax(before, Q, m, total_before)
        _residuals(P, total, alpha, Q, total_before, beta, recursive)
        # line 15: estimator, sums and next answers
        for q in range(steps):
            k, low = first + q, q * width
            block = samples[low : low + size]
            for i in range(size):
                P[y[block[i]], low + i] -= alpha[low + i] - beta[low + i]
            keep = real(1.0 - rho[k]) if k > 0 else real(0.0)
            own = key(seed, NOISE, after, k + 1)
            _sweep(A, block, P, low, keep, D, sums, k * n_classes, tops, Z, samples[:0])
            for c in range(n_classes):
                answer(S[k, c, :d], tops[c], rate, kind, own, c, radius, True, noisy,
                       new_index[k], new_value[k])  # fmt: skip
    for k in range(K):
        for c in range(n_classes):
            index[k, c], value[k, c] = new_index[k, c], new_value[k, c]


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
def add_and_answer(G, S, first, rate, kind, seed, t, radius, index, value):
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
            answer(row, tops, rate, kind, own, c, radius, True, noisy, index[k], value[k])


@kernel()
def _add(row, gradient, last):
    """Row += gradient, last -= gradient."""
    for j in range(row.shape[0]):
        row[j] += gradient[j]
        last[j] -= gradient[j]
