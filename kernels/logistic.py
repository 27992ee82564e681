"""Softmax-logistic loss and gradients in one pass over a batch.

A block of samples is passed forward, through the softmax and backward while it is in the
cache. Notation: u is the unscaled iterate, x = s u; A the features, floats or bytes (see
`_features`), y the labels.
"""

from __future__ import annotations

import numpy as np

from ._features import ahead_of, block_features, block_space, n_features
from ._jit import kernel
from ._tiles import GROUP
from .products import backward, forward, forward_alone, padded
from .softmax import label_of, log_loss, residual, softmax, weight_of
from .sparse import few, sparse_forward, support

#: Where the logits at the previous point come from. Typed: as literals each would compile a kernel
#: of its own.
NO_PREVIOUS, ONE_VERTEX_BACK, DENSE_PREVIOUS = np.intp(0), np.intp(1), np.intp(2)

#: A block of samples is cut to about this many bytes, and to so many samples at the most.
BLOCK_BYTES = 196608
LONGEST_BLOCK = 64


#: Parameters of more than so many bytes are not passed over for a few samples, unless there are so
#: few classes that it is cheaper than reading the samples twice.
LARGE_BYTES, FEW_CLASSES = 1 << 20, 8


@kernel()
def block_length(d, itemsize, n_classes):
    """Samples per block: a multiple of the group, from 8 to 64."""
    if n_classes >= FEW_CLASSES and n_classes * d * itemsize > LARGE_BYTES:
        return LONGEST_BLOCK
    fitting = BLOCK_BYTES // (d * itemsize) // GROUP * GROUP
    return min(LONGEST_BLOCK, max(8, fitting))


@kernel()
def sample_losses(A, y, rows, u, s, out):
    """out[k] = log Σ_c exp(z_c) - z_y for z = s u A[rows[k]]."""
    n_classes = u.shape[0]
    length = block_length(n_features(A), u.itemsize, n_classes)
    space = block_space(A, length, u)
    Z = np.zeros((n_classes, length), u.dtype)
    P = np.empty((n_classes, length), u.dtype)
    m = np.empty(length, u.dtype)
    total = np.empty(length, u.dtype)
    scale = u.dtype.type(s)
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        ahead = rows[start + length : start + 2 * length]
        n = block.shape[0]
        width = padded(n)
        features, at = block_features(A, block, ahead, space)
        forward_alone(features, at, u, Z, ahead_of(A, ahead))
        for c in range(n_classes):
            for i in range(width):
                Z[c, i] *= scale
        softmax(Z, P, m, total)
        for i in range(n):
            spread = np.float64(m[i]) - np.float64(Z[label_of(y, block[i]), i])
            out[start + i] = weight_of(y, block[i]) * (np.log(np.float64(total[i])) + spread)


@kernel()
def recursive_gradient(
    A, y, rows, u, s, previous, u_previous, index, step, shrink, alpha, beta, G, upcoming
):
    """Loss at x = s u and G = Σ_i [alpha (p_i(x) - e_y) - beta (p_i(x') - e_y)] a_iᵀ.

    x' is the previous point. With ``previous == ONE_VERTEX_BACK``, x = (x' + shifted vertex)
    moved by one step: x' = (x - step[c] at index[c]) * shrink in each row c, so its logits cost
    one multiply-add per class (no second product). With ``DENSE_PREVIOUS``, x' = u_previous.
    With ``NO_PREVIOUS``, beta is not used. The loss is the sum over the batch, in float64.
    The rows `upcoming`, those of the next batch, are fetched while the last block is worked on.

    While u has few nonzero entries its logits are computed from these alone. Features that are
    not finite then need not show in the loss, but they always do in G.
    """
    n_classes = u.shape[0]
    real = u.dtype.type
    d = n_features(A)
    length = block_length(d, u.itemsize, n_classes)
    space = block_space(A, length, u)
    places = np.empty((n_classes, d + 1), np.uintp)
    counts = np.empty(n_classes, np.intp)
    support(u, d, places, counts)
    sparse = few(counts.sum(), u, d)
    Z = np.zeros((n_classes, length), u.dtype)
    P = np.empty((n_classes, length), u.dtype)
    R = np.empty((n_classes, length), u.dtype)
    m = np.empty(length, u.dtype)
    total = np.empty(length, u.dtype)
    scale, back = real(s), real(shrink)
    loss = 0.0
    for c in range(n_classes):
        for j in range(G.shape[1]):
            G[c, j] = real(0.0)
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        following = rows[start + length : start + 2 * length]
        ahead = following if following.shape[0] > 0 else upcoming
        n = block.shape[0]
        features, at = block_features(A, block, ahead, space)
        if sparse:
            sparse_forward(features, at, u, places, counts, Z)
        else:
            forward(features, at, u, Z, ahead_of(A, ahead))
        for c in range(n_classes):
            for i in range(length):
                Z[c, i] *= scale
        softmax(Z, P, m, total)
        loss += log_loss(Z, y, block, n, m, total)
        residual(P, total, y, block, n, alpha, R, False)
        if previous != NO_PREVIOUS:
            if previous == ONE_VERTEX_BACK:
                for c in range(n_classes):
                    j, moved = index[c], real(step[c])
                    for i in range(n):
                        Z[c, i] = (Z[c, i] - moved * features[at[i], j]) * back
            else:
                forward(features, at, u_previous, Z, ahead[:0])
            softmax(Z, P, m, total)
            residual(P, total, y, block, n, -beta, R, True)
        backward(features, at, R, G, ahead_of(A, ahead), sparse)
    return loss


@kernel()
def loss_and_gradient(A, y, rows, x, G):
    """Sum of losses at x, returned, and of gradients, written to G."""
    nothing = np.empty(0, np.intp), np.empty(0, np.float64)
    return recursive_gradient(
        A, y, rows, x, 1.0, NO_PREVIOUS, x, nothing[0], nothing[1], 1.0, 1.0, 0.0, G, rows[:0]
    )
