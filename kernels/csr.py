"""Softmax regression on sparse rows: losses, gradients, and whole runs on the row-l1 ball.

Features come as a CSR matrix (`indptr`, `indices`, `data`; indices increase within a row),
parameters are stored (features, classes): see `_rows`. A round costs the batch's nonzeros times
classes, whatever the number of features: the estimate is kept as d = s d̃, so that no sweep is
needed to shrink it, and its largest entries are found by bounds, see `bounds`.
"""

from __future__ import annotations

import numpy as np

from . import bounds
from ._bits import magnitude_bits
from ._jit import REASSOCIATE, kernel
from ._rows import row_products, row_updates
from .l1 import LARGEST_LAZY_STEP, SMALLEST_NARROW, SMALLEST_SCALE, store
from .logistic import DENSE_PREVIOUS, LONGEST_BLOCK, NO_PREVIOUS, ONE_VERTEX_BACK
from .loops import LAST_STEP, SCALE, WEIGHT
from .softmax import label_of, log_loss, residual, softmax, weight_of

#: Entries of the scalar state of a run, after those of `loops`.
ESTIMATE_SCALE, LARGEST = 4, 5

#: Below this the estimate's scale is folded into it: long before anything overflows.
SMALLEST_ESTIMATE_SCALE = 2.0**-60

#: Features searched together for the largest entries of the estimate.
SEARCHED = 256

_products_16, _products_8, _products_4 = row_products[16], row_products[8], row_products[4]
_products_2, _products_1 = row_products[2], row_products[1]
_updates_16, _updates_8, _updates_4 = row_updates[16], row_updates[8], row_updates[4]
_updates_2, _updates_1 = row_updates[2], row_updates[1]


@kernel()
def products(values, places, low, high, u, z):
    """Add Σ values[q] u[places[q]] over q from low to high to z."""
    n_classes = u.shape[1]
    c = 0
    while c < n_classes:
        left = n_classes - c
        if left >= 16:
            _products_16(values, places, low, high, u, c, z)
            c += 16
        elif left >= 8:
            _products_8(values, places, low, high, u, c, z)
            c += 8
        elif left >= 4:
            _products_4(values, places, low, high, u, c, z)
            c += 4
        elif left >= 2:
            _products_2(values, places, low, high, u, c, z)
            c += 2
        else:
            _products_1(values, places, low, high, u, c, z)
            c += 1


@kernel()
def updates(values, places, low, high, r, g):
    """Add values[q] r to g[places[q]] for q from low to high."""
    n_classes = g.shape[1]
    c = 0
    while c < n_classes:
        left = n_classes - c
        if left >= 16:
            _updates_16(values, places, low, high, r, c, g)
            c += 16
        elif left >= 8:
            _updates_8(values, places, low, high, r, c, g)
            c += 8
        elif left >= 4:
            _updates_4(values, places, low, high, r, c, g)
            c += 4
        elif left >= 2:
            _updates_2(values, places, low, high, r, c, g)
            c += 2
        else:
            _updates_1(values, places, low, high, r, c, g)
            c += 1


@kernel()
def place(places, low, high, j):
    """First of the increasing places[low:high] that is not below j, by bisection; high if none."""
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low


@kernel()
def logits(indptr, indices, data, rows, u, Z):
    """Z[k] = u A[rows[k]]."""
    for k in range(rows.shape[0]):
        for c in range(u.shape[1]):
            Z[k, c] = u.dtype.type(0.0)
        low, high = np.intp(indptr[rows[k]]), np.intp(indptr[rows[k] + 1])
        products(data, indices, low, high, u, Z[k])


@kernel()
def add_gradient(indptr, indices, data, rows, R, g):
    """Add Σ_k A[rows[k]] ⊗ R[k] to g."""
    for k in range(rows.shape[0]):
        low, high = np.intp(indptr[rows[k]]), np.intp(indptr[rows[k] + 1])
        updates(data, indices, low, high, R[k], g)


@kernel()
def _transposed(rows, s, block):
    """block[:, i] = s rows[i]; further columns become 0."""
    real = block.dtype.type
    scale = real(s)
    n = rows.shape[0]
    for c in range(block.shape[0]):
        for i in range(n):
            block[c, i] = scale * rows[i, c]
        for i in range(n, block.shape[1]):
            block[c, i] = real(0.0)


@kernel()
def sample_losses(indptr, indices, data, y, rows, x, out):
    """out[k] = log Σ_c exp(z_c) - z_y for z = x A[rows[k]]."""
    n_classes = x.shape[1]
    scores = np.empty((rows.shape[0], n_classes), x.dtype)
    logits(indptr, indices, data, rows, x, scores)
    Z = np.empty((n_classes, LONGEST_BLOCK), x.dtype)
    P = np.empty_like(Z)
    m = np.empty(LONGEST_BLOCK, x.dtype)
    total = np.empty(LONGEST_BLOCK, x.dtype)
    for start in range(0, rows.shape[0], LONGEST_BLOCK):
        block = rows[start : start + LONGEST_BLOCK]
        _transposed(scores[start : start + LONGEST_BLOCK], 1.0, Z)
        softmax(Z, P, m, total)
        for i in range(block.shape[0]):
            spread = np.float64(m[i]) - np.float64(Z[label_of(y, block[i]), i])
            out[start + i] = weight_of(y, block[i]) * (np.log(np.float64(total[i])) + spread)


@kernel()
def residuals(
    indptr, indices, data, y, rows, u, s, mode, previous, index, moved, shrink, alpha, beta, R
):
    """Loss at x = s u, and R[k] = alpha (p_k(x) - e_y) - beta (p_k(x') - e_y) for rows[k].

    x' is the previous point, in one of the ways of `logistic.recursive_gradient`.
    """
    n_classes = u.shape[1]
    real = u.dtype.type
    Z = np.empty((n_classes, LONGEST_BLOCK), u.dtype)
    P = np.empty_like(Z)
    r = np.empty_like(Z)
    m = np.empty(LONGEST_BLOCK, u.dtype)
    total = np.empty(LONGEST_BLOCK, u.dtype)
    back = real(shrink)
    other = R[:0]
    if mode == DENSE_PREVIOUS:
        other = np.empty_like(R)
        logits(indptr, indices, data, rows, previous, other)
    logits(indptr, indices, data, rows, u, R)
    loss = 0.0
    for start in range(0, rows.shape[0], LONGEST_BLOCK):
        block = rows[start : start + LONGEST_BLOCK]
        n = block.shape[0]
        _transposed(R[start : start + n], s, Z)
        softmax(Z, P, m, total)
        loss += log_loss(Z, y, block, n, m, total)
        residual(P, total, y, block, n, alpha, r, False)
        if mode != NO_PREVIOUS:
            if mode == ONE_VERTEX_BACK:
                for i in range(n):
                    low, high = np.intp(indptr[block[i]]), np.intp(indptr[block[i] + 1])
                    for c in range(n_classes):
                        q = place(indices, low, high, index[c])
                        a = data[q] if q < high and indices[q] == index[c] else real(0.0)
                        Z[c, i] = (Z[c, i] - real(moved[c]) * a) * back
            else:
                _transposed(other[start : start + n], 1.0, Z)
            softmax(Z, P, m, total)
            residual(P, total, y, block, n, -beta, r, True)
        for i in range(n):
            for c in range(n_classes):
                R[start + i, c] = r[c, i]
    return loss


@kernel()
def loss_and_gradient(indptr, indices, data, y, rows, x, g):
    """Sum of losses at x, returned, and of gradients, added to g."""
    R = np.empty((rows.shape[0], x.shape[1]), x.dtype)
    index, moved = np.empty(0, np.intp), np.empty(0, np.float64)
    loss = residuals(
        indptr, indices, data, y, rows, x, 1.0, NO_PREVIOUS, x, index, moved, 1.0, 1.0, 0.0, R
    )
    add_gradient(indptr, indices, data, rows, R, g)
    return loss


@kernel(fastmath=REASSOCIATE)
def _sum_of_magnitudes(values):
    total = 0.0
    for q in range(values.shape[0]):
        total += abs(np.float64(values[q]))
    return total


@kernel()
def _maxima(d, bits):
    """bits[k] = the largest magnitude in column k of d, by its bits."""
    for k in range(d.shape[1]):
        bits[k] = magnitude_bits(d[0, k])
    for i in range(1, d.shape[0]):
        for k in range(d.shape[1]):
            other = magnitude_bits(d[i, k])
            bits[k] = other if other > bits[k] else bits[k]


@kernel()
def lmo(d, radius, index, value):
    """Vertex minimising ⟨d, v⟩ for d (features, classes), as `l1.lmo`; and the largest magnitude.

    Features are searched block by block. Where a block has a new largest entry, its place is
    looked for after the sweep. Within a block eight features at a time make long rows.
    """
    n, n_classes = d.shape
    flat = d.reshape(-1)
    wide = 8 * n_classes
    bits = np.zeros(wide, np.int64)
    best = np.full(n_classes, -1, np.int64)
    where = np.zeros(n_classes, np.intp)
    for first in range(0, n, SEARCHED):
        last = min(first + SEARCHED, n)
        whole = first + (last - first) // 8 * 8
        for k in range(wide):
            bits[k] = 0
        if whole > first:
            _maxima(flat[first * n_classes : whole * n_classes].reshape(-1, wide), bits)
        for j in range(whole, last):
            for c in range(n_classes):
                bits[c] = max(bits[c], np.int64(magnitude_bits(d[j, c])))
        for k in range(wide):
            c = k % n_classes
            if bits[k] > best[c]:
                best[c] = bits[k]
                where[c] = first
    largest = 0.0
    for c in range(n_classes):
        j = where[c]
        while np.int64(magnitude_bits(d[j, c])) != best[c]:
            j += 1
        index[c] = j
        value[c] = -radius if d[j, c] >= 0 else radius
        largest = max(largest, abs(np.float64(d[j, c])))
    return largest


@kernel()
def _fold(u, low, total, s, weight, support):
    """As `l1.fold`, in the features of the support alone: all others are zero."""
    narrow = low.shape[1] > 0
    for k in range(1, support[0] + 1):
        j = support[k]
        for c in range(u.shape[1]):
            exact = np.float64(u[j, c])
            if narrow:
                exact += np.float64(low[j, c])
            total[j, c] += weight * exact
            if narrow:
                store(u, low, j, c, s * exact)
            else:
                u[j, c] *= s


@kernel()
def step(u, low, total, previous, s, weight, index, value, eta, support, known):
    """As `l1.step` for u (features, classes), which is zero in features outside the support.

    The support is a list with its length in front; known[j] says whether feature j is in it.
    """
    narrow = low.shape[1] > 0
    n_classes = u.shape[1]
    if eta > LARGEST_LAZY_STEP:
        _fold(u, low, total, s, weight, support)
        for k in range(1, support[0] + 1):
            for c in range(n_classes):
                previous[support[k], c] = u[support[k], c]
        _fold(u, low, total, 1.0 - eta, 0.0, support)
        s, weight = 1.0, 0.0
    else:
        s *= 1.0 - eta
    for c in range(n_classes):
        j = index[c]
        if not known[j]:
            known[j] = True
            support[0] += 1
            support[support[0]] = j
        move = eta * value[c] / s
        if narrow:
            store(u, low, j, c, np.float64(u[j, c]) + np.float64(low[j, c]) + move)
        else:
            u[j, c] += move
        total[j, c] -= weight * move
    if s < (SMALLEST_NARROW if narrow else SMALLEST_SCALE):
        _fold(u, low, total, s, weight, support)
        s, weight = 1.0, 0.0
    return s, weight


@kernel()
def _scale_all(d, scale):
    keep = d.dtype.type(scale)
    for j in range(d.shape[0]):
        for c in range(d.shape[1]):
            d[j, c] *= keep


@kernel()
def momentum_rounds(
    indptr, indices, data, y, rows, starts, mean, alpha, beta, gamma, eta, radius, limit,
    u, low, d, edges, tree, previous, total, index, value, support, known, scalars, losses,
):  # fmt: skip
    """As `loops.momentum_rounds`, on sparse rows.

    Nothing is changed before a round is known to go well: the loss is finite, and the estimate
    stays below `limit` whatever is added to it.
    """
    n_classes = u.shape[1]
    real = u.dtype.type
    moved = np.empty(n_classes, np.float64)
    longest = 0
    n = starts.shape[0] - 1
    for t in range(n):
        longest = max(longest, starts[t + 1] - starts[t])
    residual_rows = np.empty((longest, n_classes), u.dtype)
    for t in range(n):
        batch = rows[starts[t] : starts[t + 1]]
        R = residual_rows[: batch.shape[0]]
        last = scalars[LAST_STEP]
        mode = NO_PREVIOUS
        if beta[t] != 0.0:
            mode = DENSE_PREVIOUS if last > LARGEST_LAZY_STEP else ONE_VERTEX_BACK
        for c in range(n_classes):
            moved[c] = last * value[c]
        shrink = 1.0 / (1.0 - last) if mode == ONE_VERTEX_BACK else 1.0
        # Algorithm 1, lines 2-7: play, receive the loss, update the estimate
        loss = residuals(
            indptr, indices, data, y, batch, u, scalars[SCALE], mode, previous, index, moved,
            shrink, alpha[t], beta[t], R,
        )  # fmt: skip
        reduction = 1.0 / batch.shape[0] if mean else 1.0
        losses[t] = loss * reduction
        if not np.isfinite(loss):
            return t
        magnitudes, touched = 0.0, 0
        for k in range(batch.shape[0]):
            own = data[indptr[batch[k]] : indptr[batch[k] + 1]]
            magnitudes += weight_of(y, batch[k]) * _sum_of_magnitudes(own)
            touched += own.shape[0]
        added = reduction * (alpha[t] + beta[t]) * magnitudes
        scale, largest = scalars[ESTIMATE_SCALE] * gamma[t], scalars[LARGEST]
        if scale < SMALLEST_ESTIMATE_SCALE or not largest + added / scale < limit:
            if not largest * scale + added < limit:
                return t
            if largest > 0.0:
                _scale_all(d, scale)
                bounds.shrink(real(scale), tree)
            scale = 1.0
        w = real(reduction / scale)
        for k in range(batch.shape[0]):
            for c in range(n_classes):
                R[k, c] *= w
        add_gradient(indptr, indices, data, batch, R, d)
        # line 8: by bounds, or by a sweep where that is less to look at
        if touched < d.shape[0]:
            bounds.raise_bounds(indices, indptr, batch, d, edges, tree)
            scalars[LARGEST] = bounds.first_largest(d, edges, tree, index)
            for c in range(n_classes):
                value[c] = -radius if d[index[c], c] >= 0 else radius
        else:
            scalars[LARGEST] = lmo(d, radius, index, value)
            bounds.forget(tree)
        # line 9
        scalars[SCALE], scalars[WEIGHT] = step(
            u, low, total, previous, scalars[SCALE], scalars[WEIGHT] + scalars[SCALE], index, value,
            eta[t], support, known,
        )  # fmt: skip
        scalars[LAST_STEP] = eta[t]
        scalars[ESTIMATE_SCALE] = scale
        losses[n] = t + 1
    return n
