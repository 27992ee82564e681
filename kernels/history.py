"""The past of OFW and OAW: gradients over all samples so far, from outputs that are kept.

The first layer is linear in the features: for every sample of the past its outputs at the current
point are kept, one row each; of softmax regression these are logits. A step
x ← (1 - η) x + η v changes them by Z ← (1 - η) Z + η value_c A[:, index_c]: C multiply-adds a
sample and no product. This is put off until the samples are visited for the next
gradient, so that they are read once a round. Only the backward product remains, and of a network
what follows the first layer.

Gradients of `SAMPLES_PER_SUM` samples are added in the parameters' precision and their sums in
float64: rounding does not grow with the past. Notation: u is the unscaled first layer, x = s u;
it is stored (rows, features), of sparse rows (features, rows). `used` lists the rows of gradients
as they are stored that may be other than zero: all, or features that were seen so far.
"""

from __future__ import annotations

import numpy as np

from ._atomics import NOT_YET, OVER, claim, next_open, publish, wait_for
from ._dispatch import ByType
from ._jit import REASSOCIATE, kernel
from .csr import CSR, outputs, place, transposed, updates
from .gradients import FIRST, LONGEST_BLOCK, block_length
from .models import derivatives, scores, workspace
from .products import backward, forward, padded
from .sets import row_vertex
from .softmax import label_of, log_loss, softmax

#: Samples whose gradients are added up before the sum moves to float64.
SAMPLES_PER_SUM = 1024

#: Whether samples are of the newest batch. Typed, as literals would each be compiled.
NEWEST, _PAST = np.bool_(True), np.bool_(False)


@kernel()
def clear(G, used):
    """Rows of G become 0."""
    zero = G.dtype.type(0)
    for k in range(used.shape[0]):
        row = G[used[k]]
        for j in range(row.shape[0]):
            row[j] = zero


@kernel()
def collect(partial, G, used):
    """G += partial, and partial becomes 0."""
    zero = partial.dtype.type(0)
    for k in range(used.shape[0]):
        p, g = partial[used[k]], G[used[k]]
        for j in range(g.shape[0]):
            g[j] += np.float64(p[j])
            p[j] = zero


# ---------------------------------------------------------------------- floats


@kernel()
def _dense_length(A, u):
    return block_length(A.shape[1], u.itemsize, u.shape[0])


@kernel()
def _dense_product(A, block, ahead, u, s, Z, kept):
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
def _dense_follow(A, block, keep, index, shift, Z, kept):
    real = Z.dtype.type
    k = real(keep)
    for i in range(block.shape[0]):
        a, z = A[block[i]], kept[i]
        for c in range(index.shape[0]):
            z[c] = k * z[c] + real(shift[c]) * a[index[c]]
            Z[c, i] = z[c]


@kernel()
def _dense_backward(A, block, R, partial, ahead, alone):
    backward(A, block, R, partial, ahead, alone)


# ---------------------------------------------------------------------- sparse rows


@kernel()
def _sparse_length(A, u):
    return LONGEST_BLOCK


@kernel()
def _sparse_product(A, block, ahead, u, s, Z, kept):
    outputs(A, block, u, kept)
    transposed(kept, s, Z)
    for i in range(block.shape[0]):
        for c in range(Z.shape[0]):
            kept[i, c] = Z[c, i]


@kernel()
def _sparse_follow(A, block, keep, index, shift, Z, kept):
    real = Z.dtype.type
    k = real(keep)
    for i in range(block.shape[0]):
        low, high = np.intp(A.indptr[block[i]]), np.intp(A.indptr[block[i] + 1])
        z = kept[i]
        for c in range(index.shape[0]):
            z[c] *= k
            q = place(A.indices, low, high, index[c])
            if q < high and A.indices[q] == index[c]:
                z[c] += real(shift[c]) * A.data[q]
            Z[c, i] = z[c]


@kernel()
def _sparse_backward(A, block, R, partial, ahead, alone):
    r = np.empty(R.shape[0], R.dtype)
    for i in range(block.shape[0]):
        for c in range(r.shape[0]):
            r[c] = R[c, i]
        low, high = np.intp(A.indptr[block[i]]), np.intp(A.indptr[block[i] + 1])
        updates(A.data, A.indices, low, high, r, partial)


# ---------------------------------------------------------------------- both

#: Samples per block.
_length = ByType({CSR: _sparse_length, object: _dense_length})
#: Z = s u A[block]ᵀ, and its transpose in `kept`.
_product = ByType({CSR: _sparse_product, object: _dense_product})
#: Z = kept ← keep * kept + shift[c] A[block, index[c]].
_follow = ByType({CSR: _sparse_follow, object: _dense_follow})
#: Add the product of residuals R and A[block] to `partial`.
_backward = ByType({CSR: _sparse_backward, object: _dense_backward})


@kernel()
def add_gradient(
    A, model, y, rows, weights, newest, kept, keep, index, shift, again, u, s, tail, partial, G,
    gradient, used,
):  # fmt: skip
    """Add to G, and to the tail's `gradient`, weights[i] times the gradients of samples rows[i].

    Their outputs (n, rows of the first layer) are first moved by the last step,
    ``keep * kept + shift A[:, index]``, or computed anew where `again` says so. The sum of the
    losses of the newest batch is returned. `partial` is scratch, zero before and after.
    """
    n_rows = kept.shape[1]
    length = min(_length(A, u), padded(rows.shape[0]))
    Z = np.zeros((n_rows, length), u.dtype)
    space = workspace(model, Z, tail)
    partial_tail = np.zeros(gradient.shape[0])
    here, labels = np.arange(length), np.empty(length, np.intp)
    loss = 0.0
    pending = 0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        ahead = rows[start + length : start + 2 * length]
        n = block.shape[0]
        if again:
            _product(A, block, ahead, u, s, Z, kept[start : start + n])
        else:
            _follow(A, block, keep, index, shift, Z, kept[start : start + n])
        scores(model, space, Z, tail)
        softmax(space[0], space[1], space[2], space[3])
        if newest:
            loss += log_loss(space[0], y, block, n, space[2], space[3])
        for i in range(n):
            labels[i] = label_of(y, block[i])
        weighted = labels[:n], weights[start : start + n]
        # outputs have served, and make room for the derivatives
        derivatives(model, space, weighted, here[:n], 1.0, tail, Z, FIRST, partial_tail)
        _backward(A, block, Z, partial, ahead, not again)
        pending += n
        if pending >= SAMPLES_PER_SUM or start + n == rows.shape[0]:
            collect(partial, G, used)
            for j in range(gradient.shape[0]):
                gradient[j] += partial_tail[j]
                partial_tail[j] = 0.0
            pending = 0
    return loss


@kernel()
def _take_parts(
    A, model, y, rows, weights, kept, keep, index, shift, again, u, s, tail, partial, G, gradient,
    used, partials, sums, tails, words,
):  # fmt: skip
    """Gradients of parts of the samples until all are taken; returns how many parts there are.

    The first is added to G, the others are what `sums` become, and `tails` beside them.
    """
    n, parts = rows.shape[0], 1 + sums.shape[0]
    k = claim(words, 1)
    while k < parts:
        low, high = n * k // parts, n * (k + 1) // parts
        own, total, own_tail = partial, G, gradient
        if k > 0:
            own, total, own_tail = partials[k - 1], sums[k - 1], tails[k - 1]
            clear(total, used)
            for j in range(own_tail.shape[0]):
                own_tail[j] = 0.0
        add_gradient(
            A, model, y, rows[low:high], weights[low:high], _PAST, kept[low:high], keep, index,
            shift, again, u, s, tail, own, total, own_tail, used,
        )  # fmt: skip
        claim(words, 2)
        k = claim(words, 1)
    return parts


@kernel()
def help_past(
    A, model, y, rows, weights, kept, keep, index, shift, again, u, s, tail, partial, G, gradient,
    used, partials, sums, tails, words,
):  # fmt: skip
    """Take parts of what `share_past` opens."""
    if next_open(words, NOT_YET) != OVER:
        _take_parts(
            A, model, y, rows, weights, kept, keep, index, shift, again, u, s, tail, partial, G,
            gradient, used, partials, sums, tails, words,
        )  # fmt: skip


@kernel()
def share_past(
    A, model, y, rows, weights, kept, keep, index, shift, again, u, s, tail, partial, G, gradient,
    used, partials, sums, tails, words,
):  # fmt: skip
    """As `add_gradient`, by all threads, whose sums are added in the order of the samples.

    Threads but the first have scratch in `partials` and sums in `sums` and `tails`. The words are
    what is open, the parts that are taken, and the parts that are done; see `_atomics`.
    """
    publish(words, 0, 1)
    parts = _take_parts(
        A, model, y, rows, weights, kept, keep, index, shift, again, u, s, tail, partial, G,
        gradient, used, partials, sums, tails, words,
    )  # fmt: skip
    wait_for(words, 2, parts)
    publish(words, 0, OVER)
    for p in range(sums.shape[0]):
        for k in range(used.shape[0]):
            r = used[k]
            for j in range(G.shape[1]):
                G[r, j] += sums[p, r, j]
        for j in range(gradient.shape[0]):
            gradient[j] += tails[p, j]


@kernel()
def move_outputs(A, rows, keep, index, shift, kept):
    """Kept ← keep * kept + shift A[rows, index], as `add_gradient` moves them."""
    Z = np.empty((kept.shape[1], LONGEST_BLOCK), kept.dtype)
    for start in range(0, rows.shape[0], LONGEST_BLOCK):
        block = rows[start : start + LONGEST_BLOCK]
        _follow(A, block, keep, index, shift, Z, kept[start : start + block.shape[0]])


@kernel()
def vertices_of_columns(set, G, used, index, value):
    """As ``sets.vertices`` for the columns of a G that is zero in all rows but those used.

    These increase.
    """
    row = np.empty(used.shape[0], G.dtype)
    for c in range(G.shape[1]):
        zero = True
        for k in range(used.shape[0]):
            row[k] = G[used[k], c]
            zero = zero and row[k] == 0.0
        if zero:  # all places are equal, those that are not used too
            row_vertex(set, np.zeros(G.shape[0], G.dtype), c, index[c], value[c])
            continue
        if not row_vertex(set, row, c, index[c], value[c]):
            return False
        for q in range(index.shape[1]):
            index[c, q] = used[index[c, q]]
    return True


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


@kernel()
def add_tail_slopes(gradient, vertices, radii, out):
    """out[k] += ⟨gradient, vertex k⟩: codes as in `slopes`, one for each l1 ball."""
    for k in range(vertices.shape[0]):
        total = 0.0
        for b in range(vertices.shape[1]):
            code = vertices[k, b]
            total += gradient[code] * radii[b] if code >= 0 else -gradient[-1 - code] * radii[b]
        out[k] += total
