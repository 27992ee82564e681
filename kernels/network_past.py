"""The past of OFW and OAW on a network with one hidden layer.

The first layer is linear: a step x ← (1 - η) x + η v changes its outputs A W1ᵀ by one column of
features a unit, as it changes the logits of softmax regression. So for every sample of the past
these m numbers are kept, as ``history`` keeps logits, and the product with W1 is never done again.
All else is nonlinear and computed anew: O(m C) a sample, and the backward product.

Notation as in ``models``: W1 = s u, the other parameters in the tail, one gradient of each.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from .gradients import FIRST, block_length
from .history import SAMPLES_PER_SUM, clear, collect, follow, product, weighted_residual
from .models import backpropagate, scores, workspace
from .products import backward, padded
from .softmax import log_loss, residual, softmax

#: Whether outputs are computed and not moved. Typed, as a literal would have `_add` compiled twice.
_ANEW = np.bool_(True)


@kernel()
def _collect_tail(partial, gradient):
    """Gradient += partial, and partial becomes 0."""
    for i in range(gradient.shape[0]):
        gradient[i] += partial[i]
        partial[i] = 0.0


@kernel()
def newest_gradient(A, y, rows, u, s, tail, model, weight, outputs, partial, G, gradient):
    """G (W1) and `gradient` (tail) = weight times the sum of the gradients of a new batch.

    The sum of its losses is returned and its first layer's outputs (B, m), without bias, are
    written. `partial` is scratch.
    """
    clear(G)
    for i in range(gradient.shape[0]):
        gradient[i] = 0.0
    nothing = np.empty(0, np.intp), np.empty(0, np.float64)
    return _add(
        A, y, rows, nothing[1], weight, outputs, 1.0, nothing[0], nothing[1], _ANEW, u, s, tail,
        model, partial, G, gradient,
    )  # fmt: skip


@kernel()
def add_past_gradient(
    A, y, rows, weights, outputs, keep, index, shift, again, u, s, tail, model, partial, G, gradient
):
    """G and `gradient` += Σ_i weights[i] times the gradient of sample rows[i].

    The first layer's outputs (n, m) are first moved by the last step or computed anew, as
    ``history.add_past_gradient`` does with logits. `partial` is scratch.
    """
    _add(
        A, y, rows, weights, 0.0, outputs, keep, index, shift, again, u, s, tail, model, partial, G,
        gradient,
    )  # fmt: skip


@kernel()
def _add(
    A, y, rows, weights, weight, outputs, keep, index, shift, again, u, s, tail, model, partial, G,
    gradient,
):  # fmt: skip
    """Add gradients; with ``weights`` empty, all of one weight, and return the sum of losses."""
    m = u.shape[0]
    length = min(block_length(A.shape[1], u.itemsize, u.shape[0]), padded(rows.shape[0]))
    Z = np.zeros((m, length), u.dtype)
    D = np.empty((m, length), u.dtype)
    space = workspace(model, Z, tail)
    Z2, P, largest, total = space[0], space[1], space[2], space[3]
    partial_tail = np.zeros(gradient.shape[0])
    clear(partial)
    alike = weights.shape[0] == 0
    loss = 0.0
    pending = 0
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        ahead = rows[start + length : start + 2 * length]
        n = block.shape[0]
        if again:
            product(A, block, ahead, u, s, Z, outputs[start : start + n])
        else:
            follow(A, block, keep, index, shift, Z, outputs[start : start + n])
        scores(model, space, Z, tail)
        softmax(Z2, P, largest, total)
        if alike:
            loss += log_loss(Z2, y, block, n, largest, total)
            residual(P, total, y, block, n, weight, Z2, False)
        else:
            weighted_residual(P, total, y, block, weights[start : start + n], Z2)
        backpropagate(model, space, tail, D, FIRST, partial_tail)
        backward(A, block, D, partial, ahead, not again)
        pending += n
        if pending >= SAMPLES_PER_SUM:
            collect(partial, G)
            _collect_tail(partial_tail, gradient)
            pending = 0
    collect(partial, G)
    _collect_tail(partial_tail, gradient)
    return loss


@kernel()
def add_tail_slopes(gradient, vertices, radii, out):
    """out[k] += ⟨gradient, vertex k⟩: codes as in ``history.slopes``, one for each l1 ball."""
    for k in range(vertices.shape[0]):
        total = 0.0
        for b in range(vertices.shape[1]):
            code = vertices[k, b]
            total += gradient[code] * radii[b] if code >= 0 else -gradient[-1 - code] * radii[b]
        out[k] += total
