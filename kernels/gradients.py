"""Losses and gradients in one pass over a batch of floats or bytes.

A block of samples is passed forward, through the model and backward while it is in the cache.
Notation: u is the unscaled first layer, x = s u; A the features (see `_features`), y the labels.
The other parameters are the model's tail, see `models`.
"""

from __future__ import annotations

import numpy as np

from ._features import ahead_of, block_features, block_space, n_features
from ._jit import kernel
from ._tiles import GROUP
from .models import block_losses, head, may_be_sparse, workspace
from .products import backward, forward, forward_alone, padded
from .sparse_iterate import few, sparse_forward, support

#: Where the outputs at x' come from. Typed: as literals each would compile a kernel of its own.
NO_PREVIOUS, ONE_VERTEX_BACK, DENSE_PREVIOUS = np.intp(0), np.intp(1), np.intp(2)
#: Whether derivatives are added to earlier ones, likewise.
FIRST, ADDED = np.bool_(False), np.bool_(True)

#: A block of samples is cut to about this many bytes, and to so many samples at the most.
BLOCK_BYTES = 196608
LONGEST_BLOCK = 64


#: Parameters of more than so many bytes are not passed over for a few samples, unless there are so
#: few classes that it is cheaper than reading the samples twice.
LARGE_BYTES, FEW_CLASSES = 1 << 20, 8


@kernel()
def block_length(d, itemsize, n_rows):
    """Samples per block: a multiple of the group, from 8 to 64."""
    if n_rows >= FEW_CLASSES and n_rows * d * itemsize > LARGE_BYTES:
        return LONGEST_BLOCK
    fitting = BLOCK_BYTES // (d * itemsize) // GROUP * GROUP
    return min(LONGEST_BLOCK, max(8, fitting))


@kernel()
def scaled(Z, scale):
    """Multiply outputs by a scale."""
    for c in range(Z.shape[0]):
        z = Z[c]
        for i in range(z.shape[0]):
            z[i] *= scale


@kernel()
def sample_losses(A, model, y, rows, u, s, tail, out):
    """out[k] = the loss at x = s u of sample rows[k]."""
    n_rows = u.shape[0]
    length = min(block_length(n_features(A), u.itemsize, n_rows), padded(rows.shape[0]))
    features_space = block_space(A, length, u)
    Z = np.zeros((n_rows, length), u.dtype)
    space = workspace(model, Z, tail)
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        ahead = rows[start + length : start + 2 * length]
        features, at = block_features(A, block, ahead, features_space)
        forward_alone(features, at, u, Z, ahead_of(A, ahead))
        scaled(Z, u.dtype.type(s))
        block_losses(model, space, Z, tail, y, block, out[start : start + block.shape[0]])


@kernel()
def room_for(A, model, u, tail, n):
    """Room that `recursive_gradient` needs for batches of n samples."""
    n_rows, d = u.shape[0], n_features(A)
    length = min(block_length(d, u.itemsize, n_rows), padded(n))
    places = np.empty((n_rows if may_be_sparse(model) else 0, d + 1), np.uintp)
    Z = np.zeros((n_rows, length), u.dtype)
    space = workspace(model, Z, tail)
    R = np.empty_like(Z)
    return Z, R, space, block_space(A, length, u), places, np.zeros(n_rows, np.intp)


@kernel()
def recursive_gradient(
    A, model, y, rows, u, s, tail, previous, u_previous, tail_previous, index, moved, shrink,
    alpha, beta, G, tail_gradient, upcoming, room,
):  # fmt: skip
    """Loss at x = s u; alpha ∇(x) - beta ∇(x') in G (first layer) and `tail_gradient`.

    x' is another point. With ``previous == ONE_VERTEX_BACK``, x = (x' + shifted vertex) moved by
    one step: the first layer of x' is (x - moved[c] at index[c]) * shrink in each row c, so its
    outputs cost one multiply-add a row and entry (no second product). With ``DENSE_PREVIOUS`` it
    is u_previous. With ``NO_PREVIOUS``, beta is not used. Loss and gradients are sums over the
    batch, the loss in float64. The rows `upcoming`, those of the next batch, are fetched while the
    last block is worked on. `room` is that of `room_for`; if it is for other sizes it is not used.

    While u has few nonzero entries its outputs are computed from these alone. Features that are
    not finite then need not show in the loss, but they always do in G.
    """
    n_rows = u.shape[0]
    real = u.dtype.type
    d = n_features(A)
    length = min(block_length(d, u.itemsize, n_rows), padded(rows.shape[0]))
    if room[0].shape[1] != length:
        room = room_for(A, model, u, tail, rows.shape[0])
    Z, R, space, features_space, places, counts = room
    sparse = False
    if may_be_sparse(model):
        support(u, d, places, counts)
        sparse = few(counts, u, d)
    loss = 0.0
    for c in range(n_rows):
        g = G[c]
        for j in range(g.shape[0]):
            g[j] = real(0.0)
    for j in range(tail_gradient.shape[0]):
        tail_gradient[j] = 0.0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        following = rows[start + length : start + 2 * length]
        ahead = following if following.shape[0] > 0 else upcoming
        n = block.shape[0]
        features, at = block_features(A, block, ahead, features_space)
        if sparse:
            sparse_forward(features, at, u, places, counts, Z)
        else:
            forward(features, at, u, Z, ahead_of(A, ahead))
        scaled(Z, real(s))
        loss += head(model, space, Z, tail, y, block, alpha, R, FIRST, tail_gradient)
        if previous != NO_PREVIOUS:
            if previous == ONE_VERTEX_BACK:
                for c in range(n_rows):
                    for q in range(index.shape[1]):
                        j, shift = index[c, q], real(moved[c, q])
                        for i in range(n):
                            Z[c, i] -= shift * features[at[i], j]
                scaled(Z, real(shrink))
            else:
                forward(features, at, u_previous, Z, ahead[:0])
            head(model, space, Z, tail_previous, y, block, -beta, R, ADDED, tail_gradient)
        backward(features, at, R, G, ahead_of(A, ahead), sparse)
    return loss


@kernel()
def loss_and_gradient(A, model, y, rows, u, tail, G, tail_gradient):
    """Sum of losses, returned, and of gradients, written."""
    nothing = np.empty((0, 1), np.intp), np.empty((0, 1), np.float64)
    return recursive_gradient(
        A, model, y, rows, u, 1.0, tail, NO_PREVIOUS, u, tail, nothing[0], nothing[1], 1.0, 1.0,
        0.0, G, tail_gradient, rows[:0], room_for(A, model, u, tail, rows.shape[0]),
    )  # fmt: skip
