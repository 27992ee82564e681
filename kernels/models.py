"""Models: what becomes of the outputs of the first layer, which is linear in the features.

A model is known by its type, and three functions chosen by it: `workspace` for a block of samples,
`scores` from the outputs Z (units, samples), and `derivatives`, which are those by Z and by the
*tail*, the parameters beyond the first layer in one short array.

None stands for softmax regression, where outputs are scores and there is no tail. A number stands
for a network with one hidden layer and this activation: H = activation(Z + b1), scores W2 H + b2.
Its tail is b1 (m), W2 (C, m) row by row, b2 (C). Tails are kept in float64: they are scaled in
every round.
"""

from __future__ import annotations

import numpy as np

from ._dispatch import ByType
from ._jit import REASSOCIATE, kernel
from .products import add_multiple
from .softmax import exp_shifted, label_of, log_loss, residual, softmax, weight_of

__all__ = [
    "backpropagate",
    "block_losses",
    "dot",
    "head",
    "may_be_sparse",
    "scores",
    "workspace",
]

#: Activations.
SIGMOID, TANH, RELU = 0, 1, 2


# ---------------------------------------------------------------------- softmax regression


@kernel()
def _softmax_workspace(model, Z, tail):
    length = Z.shape[1]
    return (
        Z, np.empty(Z.shape, Z.dtype), np.empty(length, Z.dtype), np.empty(length, Z.dtype),
    )  # fmt: skip


@kernel()
def _softmax_scores(model, space, Z, tail):
    pass


@kernel()
def _softmax_derivatives(model, space, y, block, weight, tail, R, add, gradient):
    residual(space[1], space[3], y, block, block.shape[0], weight, R, add)


@kernel()
def _yes(model):
    return True


# ---------------------------------------------------------------------- network


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


@kernel(fastmath=REASSOCIATE)
def dot(a, b):
    """⟨a, b⟩ in their precision, of as many entries as b has."""
    total = a.dtype.type(0)
    for i in range(b.shape[0]):
        total += a[i] * b[i]
    return total


@kernel(fastmath=REASSOCIATE)
def _sum(a):
    total = a.dtype.type(0)
    for i in range(a.shape[0]):
        total += a[i]
    return total


@kernel()
def _network_workspace(model, Z, tail):
    m, length = Z.shape
    n_classes = n_outputs(m, tail)
    return (
        np.empty((n_classes, length), Z.dtype), np.empty((n_classes, length), Z.dtype),
        np.empty(length, Z.dtype), np.empty(length, Z.dtype), np.empty((m, length), Z.dtype),
        np.zeros(length, Z.dtype), np.empty(length, Z.dtype),
    )  # fmt: skip


@kernel()
def _network_scores(model, space, Z, tail):
    Z2, _, _, _, H, zeros, e = space
    m, n_classes = Z.shape[0], Z2.shape[0]
    real = Z.dtype.type
    for j in range(m):
        _activate(Z[j], real(tail[j]), model, zeros, e, H[j])
    for c in range(n_classes):
        z = Z2[c]
        bias = real(tail[m + n_classes * m + c])
        for i in range(z.shape[0]):
            z[i] = bias
        for j in range(m):
            add_multiple(z, real(tail[m + c * m + j]), H[j])


@kernel()
def backpropagate(model, space, tail, R, add, gradient):
    """From derivatives by the scores, where those were, to R and `gradient`."""
    Z2, _, _, _, H, _, scratch = space
    m, n_classes = H.shape[0], Z2.shape[0]
    real = R.dtype.type
    for c in range(n_classes):
        for j in range(m):
            gradient[m + c * m + j] += dot(Z2[c], H[j])
        gradient[m + n_classes * m + c] += _sum(Z2[c])
    for j in range(m):
        for i in range(scratch.shape[0]):
            scratch[i] = real(0.0)
        for c in range(n_classes):
            add_multiple(scratch, real(tail[m + c * m + j]), Z2[c])
        _multiply_slope(H[j], model, scratch)
        gradient[j] += _sum(scratch)
        r = R[j]
        if add:
            for i in range(scratch.shape[0]):
                r[i] += scratch[i]
        else:
            for i in range(scratch.shape[0]):
                r[i] = scratch[i]


@kernel()
def _network_derivatives(model, space, y, block, weight, tail, R, add, gradient):
    residual(space[1], space[3], y, block, block.shape[0], weight, space[0], False)
    backpropagate(model, space, tail, R, add, gradient)


@kernel()
def _no(model):
    return False


# ---------------------------------------------------------------------- both

#: Scratch for a block of samples: first scores, their exponentials, their maxima and sums.
workspace = ByType({type(None): _softmax_workspace, int: _network_workspace})
#: Write the scores for outputs Z to the first array of the workspace.
scores = ByType({type(None): _softmax_scores, int: _network_scores})
#: R = or += weight times the derivative by Z; add that by the tail to `gradient`.
derivatives = ByType(
    {type(None): _softmax_derivatives, int: _network_derivatives},
)
#: Whether the first layer may be so sparse that it is worth a look.
may_be_sparse = ByType({type(None): _yes, int: _no})


@kernel()
def head(model, space, Z, tail, y, block, weight, R, add, gradient):
    """From outputs to derivatives, weighted, of a block of samples; returns its sum of losses.

    What is added to an earlier result (`add`) has no loss. R becomes 0 in columns beyond the block.
    """
    scores(model, space, Z, tail)
    softmax(space[0], space[1], space[2], space[3])
    loss = 0.0
    if not add:
        loss = log_loss(space[0], y, block, block.shape[0], space[2], space[3])
    derivatives(model, space, y, block, weight, tail, R, add, gradient)
    return loss


@kernel()
def block_losses(model, space, Z, tail, y, block, out):
    """out[i] = the loss of sample block[i]."""
    scores(model, space, Z, tail)
    softmax(space[0], space[1], space[2], space[3])
    for i in range(block.shape[0]):
        spread = np.float64(space[2][i]) - np.float64(space[0][label_of(y, block[i]), i])
        out[i] = weight_of(y, block[i]) * (np.log(np.float64(space[3][i])) + spread)
