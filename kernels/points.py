"""Points with few nonzero entries, such as means of a few vertices, times the rows of a batch."""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from .gradients import block_length
from .products import forward_alone
from .softmax import log_loss, softmax
from .sparse import few, sparse_forward, support


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
    sparse = few(counts.sum(), x, d)
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
