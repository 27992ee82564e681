"""The past of OFW and OAW: gradients over all samples so far, from logits that are kept.

For every sample of the past, its logits at the current point are kept, one row each. A step
x ← (1 - η) x + η v changes them by Z ← (1 - η) Z + η value_c A[:, index_c]: C multiply-adds a
sample and no product. This is put off until the samples are visited for the next
gradient, so that they are read once a round. Only the backward product remains.

Gradients of `SAMPLES_PER_SUM` samples are added in the parameters' precision and their sums in
float64: rounding does not grow with the past. Notation: u is the unscaled iterate, x = s u.
"""

from __future__ import annotations

import numpy as np

from ._jit import REASSOCIATE, kernel
from ._shared import NOT_YET, OVER, claim, next_open, publish, wait_for
from .gradients import block_length
from .products import PAIRED, backward, forward
from .softmax import log_loss, residual, softmax

#: Samples whose gradients are added up before the sum moves to float64.
SAMPLES_PER_SUM = 1024


@kernel()
def clear(G):
    """G becomes 0."""
    zero = G.dtype.type(0)
    for c in range(G.shape[0]):
        row = G[c]
        for j in range(row.shape[0]):
            row[j] = zero


@kernel()
def collect(partial, G):
    """G += partial, and partial becomes 0."""
    zero = partial.dtype.type(0)
    for c in range(G.shape[0]):
        p, g = partial[c], G[c]
        for j in range(g.shape[0]):
            g[j] += np.float64(p[j])
            p[j] = zero


@kernel()
def product(A, block, ahead, u, s, Z, kept):
    """Z = s u A[block]ᵀ, and its transpose in `kept`."""
    forward(A, block, u, Z, ahead)
    scale = u.dtype.type(s)
    for c in range(Z.shape[0]):
        z = Z[c]
        for i in range(z.shape[0]):
            z[i] *= scale
    for i in range(block.shape[0]):
        for c in range(Z.shape[0]):
            kept[i, c] = Z[c, i]


@kernel()
def follow(A, block, keep, index, shift, Z, kept):
    """Z = kept ← keep * kept + shift[c] A[block, index[c]]."""
    real = Z.dtype.type
    k = real(keep)
    for i in range(block.shape[0]):
        a, z = A[block[i]], kept[i]
        for c in range(index.shape[0]):
            z[c] = k * z[c] + real(shift[c]) * a[index[c]]
            Z[c, i] = z[c]


@kernel(fastmath=frozenset({"contract"}))
def weighted_residual(P, total, y, block, weights, R):
    """R = weight (P / total - onehot(y)) by column; columns beyond the block become 0."""
    real = R.dtype.type
    n = block.shape[0]
    for i in range(total.shape[0]):
        total[i] = real(weights[i]) / total[i] if i < n else real(0)
    for c in range(P.shape[0]):
        r, p = R[c], P[c]
        for i in range(total.shape[0]):
            r[i] = p[i] * total[i]
    for i in range(n):
        R[y[block[i]], i] -= real(weights[i])


@kernel()
def newest_gradient(A, y, rows, u, s, weight, logits, partial, G):
    """G = weight times the sum of the gradients of a new batch at x = s u.

    The sum of its losses is returned and its logits (B, C) are written. `partial` is scratch.
    """
    n_classes = u.shape[0]
    length = block_length(A.shape[1], u.itemsize, u.shape[0])
    Z = np.zeros((n_classes, length), u.dtype)
    P = np.empty((n_classes, length), u.dtype)
    m = np.empty(length, u.dtype)
    total = np.empty(length, u.dtype)
    loss = 0.0
    clear(partial)
    clear(G)
    pending = 0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        ahead = rows[start + length : start + 2 * length]
        n = block.shape[0]
        product(A, block, ahead, u, s, Z, logits[start : start + n])
        softmax(Z, P, m, total)
        loss += log_loss(Z, y, block, n, m, total)
        residual(P, total, y, block, n, weight, Z, False)
        backward(A, block, Z, partial, ahead, PAIRED)
        pending += n
        if pending >= SAMPLES_PER_SUM:
            collect(partial, G)
            pending = 0
    collect(partial, G)
    return loss


@kernel()
def add_past_gradient(A, y, rows, weights, logits, keep, index, shift, again, u, s, partial, G):
    """G += Σ_i weights[i] times the gradient of sample rows[i] at x = s u.

    Its logits (n, C) are first moved by the last step, ``keep * logits + shift A[:, index]``, or
    computed anew where `again` says so. `partial` is scratch and zero before and after.
    """
    n_classes = u.shape[0]
    length = block_length(A.shape[1], u.itemsize, u.shape[0])
    Z = np.zeros((n_classes, length), u.dtype)
    P = np.empty((n_classes, length), u.dtype)
    m = np.empty(length, u.dtype)
    total = np.empty(length, u.dtype)
    pending = 0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        ahead = rows[start + length : start + 2 * length]
        n = block.shape[0]
        if again:
            product(A, block, ahead, u, s, Z, logits[start : start + n])
        else:
            follow(A, block, keep, index, shift, Z, logits[start : start + n])
        softmax(Z, P, m, total)
        weighted_residual(P, total, y, block, weights[start : start + n], Z)
        backward(A, block, Z, partial, ahead, not again)
        pending += n
        if pending >= SAMPLES_PER_SUM:
            collect(partial, G)
            pending = 0
    collect(partial, G)


@kernel()
def _take_parts(
    A, y, rows, weights, logits, keep, index, shift, again, u, s, partial, G, partials, sums, words
):
    """Gradients of parts of the samples until all are taken; returns how many parts there are.

    The first is added to G, the others are what `sums` become.
    """
    n, parts = rows.shape[0], 1 + sums.shape[0]
    k = claim(words, 1)
    while k < parts:
        low, high = n * k // parts, n * (k + 1) // parts
        own, total = partial, G
        if k > 0:
            own, total = partials[k - 1], sums[k - 1]
            clear(total)
        add_past_gradient(
            A, y, rows[low:high], weights[low:high], logits[low:high], keep, index, shift, again,
            u, s, own, total,
        )  # fmt: skip
        claim(words, 2)
        k = claim(words, 1)
    return parts


@kernel()
def help_past(
    A, y, rows, weights, logits, keep, index, shift, again, u, s, partial, G, partials, sums, words
):
    """Take parts of what `share_past` opens."""
    if next_open(words, NOT_YET) != OVER:
        _take_parts(
            A, y, rows, weights, logits, keep, index, shift, again, u, s, partial, G, partials,
            sums, words,
        )  # fmt: skip


@kernel()
def share_past(
    A, y, rows, weights, logits, keep, index, shift, again, u, s, partial, G, partials, sums, words
):
    """As `add_past_gradient`, by all threads, whose sums are added in the order of the samples.

    Threads but the first have scratch in `partials` and sums in `sums`. The words are what is
    open, the parts that are taken, and the parts that are done; see `_shared`.
    """
    publish(words, 0, 1)
    parts = _take_parts(
        A, y, rows, weights, logits, keep, index, shift, again, u, s, partial, G, partials, sums,
        words,
    )  # fmt: skip
    wait_for(words, 2, parts)
    publish(words, 0, OVER)
    for other in sums:
        for c in range(G.shape[0]):
            for j in range(G.shape[1]):
                G[c, j] += other[c, j]


@kernel()
def move_logits(A, rows, keep, index, shift, logits):
    """Logits ← keep * logits + shift A[rows, index], as `add_past_gradient` moves them."""
    length = block_length(A.shape[1], logits.itemsize, logits.shape[1])
    Z = np.empty((logits.shape[1], length), logits.dtype)
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        follow(A, block, keep, index, shift, Z, logits[start : start + block.shape[0]])


@kernel()
def insert(count, numbers, weights, logits, new_numbers, new_weights, new_logits):
    """Merge samples in increasing order of number into the first `count`, which are so too.

    The arrays have room; no number is in both.
    """
    n_classes = logits.shape[1]
    i, j = count - 1, new_numbers.shape[0] - 1
    while j >= 0:
        k = i + j + 1
        if i >= 0 and numbers[i] > new_numbers[j]:
            numbers[k], weights[k] = numbers[i], weights[i]
            for c in range(n_classes):
                logits[k, c] = logits[i, c]
            i -= 1
        else:
            numbers[k], weights[k] = new_numbers[j], new_weights[j]
            for c in range(n_classes):
                logits[k, c] = new_logits[j, c]
            j -= 1


@kernel()
def slopes(G, vertices, radius, out):
    """out[k] = ⟨G, vertex k⟩, a vertex being one code per row: j for +r at j, -1 - j for -r."""
    for k in range(vertices.shape[0]):
        total = 0.0
        for c in range(vertices.shape[1]):
            code = vertices[k, c]
            total += G[c, code] * radius if code >= 0 else -G[c, -1 - code] * radius
        out[k] = total


@kernel(fastmath=REASSOCIATE)
def _dot(g, x):
    total = 0.0
    for j in range(g.shape[0]):
        total += g[j] * np.float64(x[j])
    return total


@kernel()
def inner(G, x):
    """⟨G, x⟩, row by row as in `slopes`."""
    total = 0.0
    for c in range(G.shape[0]):
        total += _dot(G[c], x[c])
    return total
