"""Loss and gradients of a network with one hidden layer, and whole runs of momentum methods on it.

H = activation(A W1ᵀ + b1), Z = H W2ᵀ + b2, softmax cross-entropy. Only W1 is large. It is kept
lazily scaled, W1 = s u, and the products with the features are those of ``products``. The other
parameters stand in one short array, the *tail*: b1 (m), W2 (C, m) row by row, b2 (C). Tails are
kept in float64: they are scaled in every round.

The first layer is linear: after a step towards a vertex its output at the previous point follows
from that at the present one, as the logits of softmax regression do. So a round passes the
batch forward once and backward once. Values of a block of samples are stored (units, samples).
"""

from __future__ import annotations

import numpy as np

from ._jit import REASSOCIATE, kernel
from .l1 import LARGEST_LAZY_STEP, first_largest, one_of_largest, step
from .logistic import (
    DENSE_PREVIOUS,
    LONGEST_BLOCK,
    NO_PREVIOUS,
    ONE_VERTEX_BACK,
    block_length,
)
from .products import PAIRED, backward, forward, padded
from .softmax import exp_shifted, log_loss, residual, softmax
from .storm import estimate

#: Activations.
SIGMOID, TANH, RELU = 0, 1, 2

#: Entries of the scalar state of a run.
SCALE, WEIGHT, LAST_STEP, PARITY = 0, 1, 2, 3
#: Rows of the tails of a run: the present, the previous, two estimates in turns, the sum so far.
NOW, BEFORE, ESTIMATES, SUM = 0, 1, 2, 4
N_TAILS = 5


@kernel()
def n_outputs(m, tail):
    """Number of classes, from the hidden units and the length of a tail."""
    return (tail.shape[0] - m) // (m + 1)


@kernel(fastmath=frozenset({"contract"}))
def _activate(z, bias, code, zeros, e, h):
    """One unit: h = activation(z + bias); `e` is scratch."""
    real = h.dtype.type
    one, nothing = real(1.0), real(0.0)
    n = h.shape[0]
    if code == RELU:
        for i in range(n):
            t = z[i] + bias
            h[i] = nothing if t < nothing else t  # NaN stays
        return
    # tanh(t) = 2 sigmoid(2 t) - 1
    factor = one if code == SIGMOID else real(2.0)
    for i in range(n):
        h[i] = -abs(factor * (z[i] + bias))
    exp_shifted(h, zeros, e)
    for i in range(n):
        q = one / (one + e[i])
        h[i] = q if z[i] + bias >= nothing else e[i] * q
    if code == TANH:
        for i in range(n):
            h[i] = real(2.0) * h[i] - one


@kernel(fastmath=frozenset({"contract"}))
def _multiply_slope(h, code, d):
    """Multiply d by the activation's derivative, found from its values h."""
    real = h.dtype.type
    one, nothing = real(1.0), real(0.0)
    if code == SIGMOID:
        for i in range(h.shape[0]):
            d[i] *= h[i] * (one - h[i])
    elif code == TANH:
        for i in range(h.shape[0]):
            d[i] *= one - h[i] * h[i]
    else:
        for i in range(h.shape[0]):
            d[i] = d[i] if h[i] > nothing else nothing


@kernel(fastmath=frozenset({"contract"}))
def _add_multiple(a, x, out):
    """Add a x to `out`."""
    for i in range(out.shape[0]):
        out[i] += a * x[i]


@kernel(fastmath=REASSOCIATE)
def _dot(a, b):
    total = a.dtype.type(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@kernel(fastmath=REASSOCIATE)
def _sum(a):
    total = a.dtype.type(0)
    for i in range(a.shape[0]):
        total += a[i]
    return total


@kernel()
def upper(Z, tail, code, zeros, e, H, Z2):
    """H = activation(Z + b1) and the logits Z2 = W2 H + b2."""
    m, n_classes = Z.shape[0], Z2.shape[0]
    real = Z.dtype.type
    for j in range(m):
        _activate(Z[j], real(tail[j]), code, zeros, e, H[j])
    for c in range(n_classes):
        z = Z2[c]
        bias = real(tail[m + n_classes * m + c])
        for i in range(z.shape[0]):
            z[i] = bias
        for j in range(m):
            _add_multiple(real(tail[m + c * m + j]), H[j], z)


@kernel()
def backpropagate(R, H, tail, code, scratch, D, gradient):
    """D += derivative by the hidden layer's inputs, gradient += that by the tail.

    R is the derivative by the logits, zero in the padded columns.
    """
    m, n_classes = H.shape[0], R.shape[0]
    real = D.dtype.type
    for c in range(n_classes):
        for j in range(m):
            gradient[m + c * m + j] += _dot(R[c], H[j])
        gradient[m + n_classes * m + c] += _sum(R[c])
    for j in range(m):
        for i in range(scratch.shape[0]):
            scratch[i] = real(0)
        for c in range(n_classes):
            _add_multiple(real(tail[m + c * m + j]), R[c], scratch)
        _multiply_slope(H[j], code, scratch)
        gradient[j] += _sum(scratch)
        d = D[j]
        for i in range(scratch.shape[0]):
            d[i] += scratch[i]


@kernel()
def recursive_gradient(
    A, y, rows, u, s, tail, code, previous, u_previous, tail_previous, index, moved, shrink,
    alpha, beta, G, gradient, upcoming,
):  # fmt: skip
    """Loss at x and Σ_i [alpha ∇loss_i(x) - beta ∇loss_i(x')], in G (W1) and `gradient` (tail).

    x has W1 = s u. x' is the previous point, as in ``logistic.recursive_gradient``: with
    ``previous == ONE_VERTEX_BACK``, W1' = (W1 - moved[j] at index[j]) * shrink in each row j. Its
    tail is given. The loss is the sum over the batch, in float64.
    """
    m = u.shape[0]
    n_classes = n_outputs(m, tail)
    real = u.dtype.type
    nothing = real(0.0)
    length = min(block_length(A.shape[1], u.itemsize, u.shape[0]), padded(rows.shape[0]))
    Z = np.empty((m, length), u.dtype)
    H = np.empty((m, length), u.dtype)
    D = np.empty((m, length), u.dtype)
    Z2 = np.empty((n_classes, length), u.dtype)
    P = np.empty((n_classes, length), u.dtype)
    largest = np.empty(length, u.dtype)
    total = np.empty(length, u.dtype)
    zeros = np.zeros(length, u.dtype)
    e = np.empty(length, u.dtype)
    scale, back = real(s), real(shrink)
    loss = 0.0
    for j in range(m):
        g = G[j]
        for i in range(g.shape[0]):
            g[i] = nothing
    for i in range(gradient.shape[0]):
        gradient[i] = 0.0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        following = rows[start + length : start + 2 * length]
        ahead = following if following.shape[0] > 0 else upcoming
        n = block.shape[0]
        forward(A, block, u, Z, ahead)
        for j in range(m):
            z, d = Z[j], D[j]
            for i in range(length):
                z[i] *= scale
            for i in range(length):
                d[i] = nothing
        upper(Z, tail, code, zeros, e, H, Z2)
        softmax(Z2, P, largest, total)
        loss += log_loss(Z2, y, block, n, largest, total)
        residual(P, total, y, block, n, alpha, Z2, False)
        backpropagate(Z2, H, tail, code, e, D, gradient)
        if previous != NO_PREVIOUS:
            if previous == ONE_VERTEX_BACK:
                for j in range(m):
                    column, shift = index[j], real(moved[j])
                    z = Z[j]
                    for i in range(n):
                        z[i] = (z[i] - shift * A[block[i], column]) * back
            else:
                forward(A, block, u_previous, Z, ahead[:0])
            upper(Z, tail_previous, code, zeros, e, H, Z2)
            softmax(Z2, P, largest, total)
            residual(P, total, y, block, n, -beta, Z2, False)
            backpropagate(Z2, H, tail_previous, code, e, D, gradient)
        backward(A, block, D, G, ahead, PAIRED)
    return loss


@kernel()
def loss_and_gradient(A, y, rows, W1, tail, code, G, gradient):
    """Sum of losses, returned, and of gradients, written to G (W1) and `gradient` (tail)."""
    index, moved = np.empty(0, np.intp), np.empty(0, np.float64)
    return recursive_gradient(
        A, y, rows, W1, 1.0, tail, code, NO_PREVIOUS, W1, tail, index, moved, 1.0,
        1.0, 0.0, G, gradient, rows[:0],
    )  # fmt: skip


@kernel()
def sample_losses(A, y, rows, W1, tail, code, out):
    """out[k] = log Σ_c exp(z_c) - z_y for the logits z of sample rows[k]."""
    m = W1.shape[0]
    n_classes = n_outputs(m, tail)
    length = min(block_length(A.shape[1], W1.itemsize, m), padded(rows.shape[0]))
    Z = np.empty((m, length), W1.dtype)
    H = np.empty((m, length), W1.dtype)
    Z2 = np.empty((n_classes, length), W1.dtype)
    P = np.empty((n_classes, length), W1.dtype)
    largest = np.empty(length, W1.dtype)
    total = np.empty(length, W1.dtype)
    zeros = np.zeros(length, W1.dtype)
    e = np.empty(length, W1.dtype)
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        forward(A, block, W1, Z, rows[start + length : start + 2 * length])
        upper(Z, tail, code, zeros, e, H, Z2)
        softmax(Z2, P, largest, total)
        for i in range(block.shape[0]):
            spread = np.float64(largest[i]) - np.float64(Z2[y[block[i]], i])
            out[start + i] = np.log(np.float64(total[i])) + spread


@kernel(fastmath=REASSOCIATE)
def blend_tail(d, g, gamma, scale):
    """In the tail, G ← gamma d + scale g."""
    for i in range(g.shape[0]):
        g[i] = gamma * d[i] + scale * g[i]


@kernel()
def break_ties(G, d, radius, key, index, value):
    """As ``l1.break_ties``, for rows that may be longer than d."""
    for j in range(G.shape[0]):
        i = one_of_largest(G[j, :d], index[j], key, j)
        index[j] = i
        value[j] = -radius if G[j, i] >= 0 else radius


@kernel()
def tail_lmo(g, m, radii, keys, random, index, value):
    """Vertex of the tail's balls: b1, each row of W2, b2. False where g is not finite.

    Index[k] is a position in the tail and value[k] the entry there.
    """
    n_rows = index.shape[0]  # C + 2
    start = 0
    for k in range(n_rows):
        stop = start + (m if k < n_rows - 1 else n_rows - 2)
        j, finite = first_largest(g[start:stop])
        if not finite:
            return False
        block = 1 if k == 0 else 3 if k == n_rows - 1 else 2
        radius = radii[block]
        if random[block]:
            j = one_of_largest(g[start:stop], j, keys[block], k - 1 if block == 2 else 0)
        index[k] = start + j
        value[k] = -radius if g[start + j] >= 0 else radius
        start = stop
    return True


@kernel()
def copy_tail(tail, out):
    """Write a tail to `out`."""
    for i in range(out.shape[0]):
        out[i] = tail[i]


@kernel()
def tail_step(now, total, index, value, eta):
    """Add the present tail to the sum, and step to the vertex."""
    keep = 1.0 - eta
    for i in range(now.shape[0]):
        total[i] += now[i]
        now[i] = keep * now[i]
    for k in range(index.shape[0]):
        now[index[k]] += eta * value[k]


@kernel()
def momentum_rounds(
    A, y, rows, starts, mean, alpha, beta, gamma, eta, radii, keys, random, code, u, low, estimates,
    previous, total, index, value, tails, scalars, losses,
):  # fmt: skip
    """Play rounds of a momentum Frank-Wolfe method on a network with l1 balls.

    As ``loops.momentum_rounds``; `radii` are those of the rows of W1, b1, the rows of W2, and b2;
    of each block, ``random[block]`` says whether ties are broken with ``keys[block]``.
    The state of W1 is that of a softmax regression, the tails are rows of `tails`.

    Returns the number of rounds done, which ``losses[-1]`` is when each of them is whole. It is
    less than asked for where a loss or an estimate is not finite; losses[t] then holds that loss,
    and the state is as before that round.
    """
    m = u.shape[0]
    n_rows = n_outputs(m, tails[NOW]) + 2
    moved = np.empty(m, np.float64)
    new_index, new_value = np.empty_like(index), np.empty_like(value)
    tail_index, tail_value = np.empty(n_rows, np.intp), np.empty(n_rows, np.float64)
    n = starts.shape[0] - 1
    for t in range(n):
        batch = rows[starts[t] : starts[t + 1]]
        parity = int(scalars[PARITY])
        d, g = estimates[parity], estimates[1 - parity]
        tail_d, tail_g = tails[ESTIMATES + parity], tails[ESTIMATES + 1 - parity]
        last = scalars[LAST_STEP]
        mode = NO_PREVIOUS
        if beta[t] != 0.0:
            mode = DENSE_PREVIOUS if last > LARGEST_LAZY_STEP else ONE_VERTEX_BACK
        for j in range(m):
            moved[j] = last * value[j]
        shrink = 1.0 / (1.0 - last) if mode == ONE_VERTEX_BACK else 1.0
        # Algorithm 1, lines 2-7: play, receive the loss, update the estimate
        loss = recursive_gradient(
            A, y, batch, u, scalars[SCALE], tails[NOW], code, mode, previous, tails[BEFORE],
            index, moved, shrink, alpha[t], beta[t], g, tail_g,
            rows[starts[t + 1] : starts[t + 1] + LONGEST_BLOCK],
        )  # fmt: skip
        reduction = 1.0 / batch.shape[0] if mean else 1.0
        losses[t] = loss * reduction
        if not np.isfinite(loss):
            return t
        # line 8
        blend_tail(tail_d, tail_g, gamma[t], reduction)
        if not tail_lmo(tail_g, m, radii, keys, random, tail_index, tail_value):
            return t
        if not estimate(d, g, gamma[t], reduction, radii[0], new_index, new_value):
            return t
        if random[0]:
            break_ties(g, A.shape[1], radii[0], keys[0], new_index, new_value)
        for j in range(m):
            index[j], value[j] = new_index[j], new_value[j]
        # line 9
        scalars[SCALE], scalars[WEIGHT] = step(
            u, low, total, previous, scalars[SCALE], scalars[WEIGHT] + scalars[SCALE], index, value,
            eta[t],
        )  # fmt: skip
        copy_tail(tails[NOW], tails[BEFORE])
        tail_step(tails[NOW], tails[SUM], tail_index, tail_value, eta[t])
        scalars[LAST_STEP] = eta[t]
        scalars[PARITY] = 1 - parity
        losses[n] = t + 1
    return n
