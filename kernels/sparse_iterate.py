"""Products with points that have few nonzero entries, as Frank-Wolfe iterates do.

After t rounds from zero an iterate has at most t nonzero entries per row. While they are few,
logits are cheaper entry by entry than by the dense product.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._tiles import GROUP

#: A point with at most one nonzero entry in so many (in single precision, half as many) is
#: multiplied entry by entry.
SPARSE = 16


@kernel(fastmath=frozenset({"contract"}))
def _sparse_products(a0, a1, a2, a3, a4, a5, a6, a7, u, places, z):
    """Products of eight rows with u, whose only nonzero entries are at the given places."""
    z0 = z1 = z2 = z3 = z4 = z5 = z6 = z7 = u.dtype.type(0.0)
    for q in range(places.shape[0]):
        j = places[q]
        v = u[j]
        z0 += v * a0[j]
        z1 += v * a1[j]
        z2 += v * a2[j]
        z3 += v * a3[j]
        z4 += v * a4[j]
        z5 += v * a5[j]
        z6 += v * a6[j]
        z7 += v * a7[j]
    z[0], z[1], z[2], z[3], z[4], z[5], z[6], z[7] = z0, z1, z2, z3, z4, z5, z6, z7


@kernel(fastmath=frozenset({"contract"}))
def _sparse_products_4(a0, a1, a2, a3, u, places, z):
    """As `_sparse_products` for four rows, with two sums each.

    One multiply-add takes longer to finish than four or eight to begin.
    """
    z0 = z1 = z2 = z3 = y0 = y1 = y2 = y3 = u.dtype.type(0.0)
    odd = places.shape[0] % 2
    for q in range(places.shape[0] // 2):
        j, k = places[np.uintp(2 * q)], places[np.uintp(2 * q + 1)]
        v, w = u[j], u[k]
        z0 += v * a0[j]
        z1 += v * a1[j]
        z2 += v * a2[j]
        z3 += v * a3[j]
        y0 += w * a0[k]
        y1 += w * a1[k]
        y2 += w * a2[k]
        y3 += w * a3[k]
    if odd == 1:
        j = places[places.shape[0] - 1]
        v = u[j]
        z0 += v * a0[j]
        z1 += v * a1[j]
        z2 += v * a2[j]
        z3 += v * a3[j]
    z[0], z[1], z[2], z[3] = z0 + y0, z1 + y1, z2 + y2, z3 + y3


@kernel()
def sparse_forward(A, rows, u, places, counts, Z):
    """As `forward`, for u whose only nonzero entries in row c are at places[c, :counts[c]]."""
    n, last = rows.shape[0], rows.shape[0] - 1
    k = 0
    while k < n:
        a0, a1 = A[rows[k]], A[rows[min(k + 1, last)]]
        a2, a3 = A[rows[min(k + 2, last)]], A[rows[min(k + 3, last)]]
        if n - k >= 8:
            a4, a5, a6, a7 = A[rows[k + 4]], A[rows[k + 5]], A[rows[k + 6]], A[rows[k + 7]]
            for c in range(u.shape[0]):
                _sparse_products(
                    a0, a1, a2, a3, a4, a5, a6, a7, u[c], places[c, : counts[c]], Z[c, k : k + 8]
                )
            k += 8
        else:
            for c in range(u.shape[0]):
                _sparse_products_4(
                    a0, a1, a2, a3, u[c], places[c, : counts[c]], Z[c, k : k + GROUP]
                )
            k += GROUP


@kernel()
def support(x, d, places, counts):
    """List the places of the nonzero entries of x row by row."""
    for c in range(x.shape[0]):
        n = 0
        for j in range(d):
            places[c, n] = j
            n += 1 if x[c, j] != 0 else 0
        counts[c] = n


@kernel()
def few(counts, x, d):
    """Whether so many nonzero entries in each row are better taken one by one than with the zeros.

    A dense product takes as many entries at a time as a vector holds.
    """
    total = 0
    for c in range(counts.shape[0]):
        total += counts[c]
    return total * SPARSE * 8 <= x.shape[0] * d * x.itemsize
