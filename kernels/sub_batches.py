"""A round of Algorithm 2 with sub-batches: one sweep over estimator and sum per inner step."""

from __future__ import annotations

import numpy as np

from ._atomics import NOT_YET, OVER, claim, edge, next_open, publish, wait_for
from ._jit import REASSOCIATE, kernel
from ._sweep import BLOCK, sweep_tile
from ._tiles import GROUP, WIDEST
from .gradients import block_length
from .l1 import LARGEST_LAZY_STEP, SMALLEST_SCALE
from .meta import answer, blocks
from .products import PAIRED, backward, forward, forward_alone, padded
from .rng import NOISE, draw_rows, key
from .softmax import log_loss, softmax
from .sparse_iterate import few, sparse_forward, support

#: Samples of sub-batches that are multiplied with the same point.
TOGETHER = 8
#: Columns of logits that are passed through the softmax together.
COLUMNS = 256

_sweep_1, _sweep_2, _sweep_3 = sweep_tile[1], sweep_tile[2], sweep_tile[3]
_sweep_4, _sweep_5 = sweep_tile[4], sweep_tile[5]


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
        backward(A, block[:last], group, D, nothing, PAIRED)
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
def draw_samples(rows, size, seed, t, samples):
    """Samples of all sub-batches of round t, each padded by its last one to a whole group."""
    width = padded(size)
    for q in range(samples.shape[0] // width):
        part = samples[q * width : (q + 1) * width]
        draw_rows(seed, t, q + 1, rows.shape[0], part[:size])
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
        if few(counts, u, A.shape[1]):
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
def columns_together(size):
    """Columns of the residuals of sub-batches that are found together, each padded."""
    return max(1, COLUMNS // padded(size)) * padded(size)


@kernel()
def _chunks(K, size):
    """How often the residuals of so many inner steps are found together."""
    at_once = columns_together(size) // padded(size)
    return (K + at_once - 1) // at_once


@kernel()
def batch_loss(A, y, rows, x):
    """Sum over a batch of the losses at x, a mean of a few vertices."""
    n_classes, d = x.shape[0], A.shape[1]
    length = block_length(d, x.itemsize, n_classes)
    Z = np.zeros((n_classes, length), x.dtype)
    P = np.empty((n_classes, length), x.dtype)
    m = np.empty(length, x.dtype)
    total = np.empty(length, x.dtype)
    places = np.empty((n_classes, d + 1), np.uintp)
    counts = np.empty(n_classes, np.intp)
    support(x, d, places, counts)
    sparse = few(counts, x, d)
    loss = 0.0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        if sparse:
            sparse_forward(A, block, x, places, counts, Z)
        else:
            forward_alone(A, block, x, Z, rows[start + length : start + 2 * length])
        softmax(Z, P, m, total)
        loss += log_loss(Z, y, block, block.shape[0], m, total)
    return loss


@kernel()
def _take_losses(A, y, rows, x, team):
    """Losses of parts of the batch until all are taken; returns how many parts there are."""
    losses, words = team
    n = rows.shape[0]
    parts = min(losses.shape[0], (n + GROUP - 1) // GROUP)
    k = claim(words, 1)
    while k < parts:
        part = rows[edge(n, parts, k, GROUP) : edge(n, parts, k + 1, GROUP)]
        losses[k] = batch_loss(A, y, part, x)
        claim(words, 2)
        k = claim(words, 1)
    return parts


@kernel()
def _take_classes(
    A, samples, size, rho, S, rate, kind, seed, t, radius, skip, D, P, new_index, new_value, chunk,
    team,
):  # fmt: skip
    """Line 15 for parts of the classes until all are taken; returns how many parts there are.

    P has the residuals of the inner steps of a chunk.
    """
    losses, words = team
    K, n_classes = S.shape[:2]
    d = A.shape[1]
    real = S.dtype.type
    sums = S.reshape(K * n_classes, S.shape[2])
    width = padded(size)
    at_once = columns_together(size) // width
    parts = min(losses.shape[0], (n_classes + WIDEST - 1) // WIDEST)
    tops = np.empty((n_classes, blocks(d)), S.dtype)
    group = np.empty((n_classes, width), S.dtype)
    noisy = np.empty(BLOCK, np.float64)
    part = claim(words, 3 + 2 * chunk)
    while part < parts:
        low = edge(n_classes, parts, part, WIDEST)
        high = edge(n_classes, parts, part + 1, WIDEST)
        residuals, estimates = P[low:high], D[low:high]
        for k in range(chunk * at_once, min(K, (chunk + 1) * at_once)):
            block = samples[k * width : k * width + size]
            column = (k - chunk * at_once) * width
            keep = real(1.0 - rho[k]) if k > 0 else real(0.0)
            own = key(seed, NOISE, t, k + 1)
            _sweep(
                A, block, residuals, column, keep, estimates, sums, k * n_classes + low, tops,
                group, samples[:0],
            )  # fmt: skip
            for c in range(low, high):
                answer(S[k, c, :d], tops[c - low], rate, kind, own, c, radius, skip, noisy,
                       new_index[k], new_value[k])  # fmt: skip
        claim(words, 4 + 2 * chunk)
        part = claim(words, 3 + 2 * chunk)
    return parts


@kernel()
def help_round(
    A, y, rows, x, samples, size, rho, S, rate, kind, seed, t, radius, skip, D, P, new_index,
    new_value, team,
):  # fmt: skip
    """Take parts of what `sub_batch_round` opens until it is over."""
    now = next_open(team[1], NOT_YET)
    while now != OVER:
        if now == 1:
            _take_losses(A, y, rows, x, team)
        else:
            _take_classes(
                A, samples, size, rho, S, rate, kind, seed, t, radius, skip, D, P, new_index,
                new_value, now - 2, team,
            )  # fmt: skip
        now = next_open(team[1], now)


@kernel()
def sub_batch_round(
    A, y, rows, x, samples, size, weight, recursive, start, eta, rho, S, rate, kind, seed, t,
    radius, skip, index, value, u, D, P, new_index, new_value, team,
):  # fmt: skip
    """Lines 7-15 of Algorithm 2 with sub-batches of `size` rows, and the answers of round t.

    Returns the sum of the losses of the batch `rows` at x. `samples` are the sub-batches' rows from
    `draw_samples`. Each gradient is `weight` times a sum over the sub-batch. The estimator is that
    of MORGFW (``recursive``) or of Meta-Frank-Wolfe. `u` and `D` are space for a point and an
    estimate, P for `columns_together` of residuals. Threads share the batch and the classes by a
    `team`: the parts' losses (threads,) and words as in `parts`, two for the batch and two for each
    of the chunks of inner steps.
    """
    losses, words = team
    publish(words, 0, 1)
    parts = _take_losses(A, y, rows, x, team)  # line 7
    K, n_classes = S.shape[:2]
    d = A.shape[1]
    real = S.dtype.type
    width = padded(size)
    columns = P.shape[1]
    at_once = columns // width
    Z = np.empty((n_classes, max(width, TOGETHER)), S.dtype)
    now = np.zeros((n_classes, columns), S.dtype)
    before = np.zeros((n_classes, columns), S.dtype)
    Q = np.zeros((n_classes, columns), S.dtype)
    m = np.empty(columns, S.dtype)
    total = np.empty(columns, S.dtype)
    total_before = np.zeros(columns, S.dtype)
    alpha = np.zeros(columns, S.dtype)
    beta = np.zeros(columns, S.dtype)
    places = np.empty((n_classes, d + 1), np.uintp)
    counts = np.empty(n_classes, np.intp)
    listed = np.zeros((n_classes, d), np.bool_)
    u[:, :] = start
    D[:, :] = real(0.0)
    support(u, d, places, counts)
    for c in range(n_classes):
        for i in range(counts[c]):
            listed[c, places[c, i]] = True
    s, at = 1.0, np.intp(0)
    wait_for(words, 2, parts)
    loss = 0.0
    for k in range(parts):
        loss += losses[k]
    for chunk in range(_chunks(K, size)):
        first = chunk * at_once
        steps = min(at_once, K - first)
        # lines 9-13: residuals whose product with a sub-batch is what the estimator adds
        part = samples[first * width : (first + steps) * width]
        s, at = _inner_logits(
            A, part, first, steps, width, recursive, eta, index, value, u, s, at, places,
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
        for q in range(steps):
            for i in range(q * width, q * width + size):
                P[y[part[i]], i] -= alpha[i] - beta[i]
        # line 15: estimator, sums and next answers
        publish(words, 0, chunk + 2)
        parts = _take_classes(
            A, samples, size, rho, S, rate, kind, seed, t, radius, skip, D, P, new_index, new_value,
            chunk, team,
        )  # fmt: skip
        wait_for(words, 4 + 2 * chunk, parts)
    publish(words, 0, OVER)
    for k in range(K):
        for c in range(n_classes):
            index[k, c], value[k, c] = new_index[k, c], new_value[k, c]
    return loss
