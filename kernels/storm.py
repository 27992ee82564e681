"""The recursive gradient estimator, updated in the sweep that looks for the vertex."""

from __future__ import annotations

from ._jit import REASSOCIATE, kernel
from .l1 import first_largest


@kernel(fastmath=REASSOCIATE)
def _blend(d, g, gamma, scale):
    """G ← gamma d + scale g, one row."""
    for j in range(g.shape[0]):
        g[j] = gamma * d[j] + scale * g[j]


@kernel()
def estimate(d, g, gamma, scale, radius, index, value):
    """G ← gamma d + scale g, and the vertex minimising ⟨g, v⟩ over the row-l1 ball.

    Row by row, so that each row is searched while it is in the cache. The estimate
    takes the place of the gradient and d stays: a caller who meets a number that is not finite
    (return value False) still has the old estimate.
    """
    real = g.dtype.type
    a, b = real(gamma), real(scale)
    for c in range(g.shape[0]):
        _blend(d[c], g[c], a, b)
        j, finite = first_largest(g[c])
        if not finite:
            return False
        index[c] = j
        value[c] = -radius if g[c, j] >= 0 else radius
    return True
