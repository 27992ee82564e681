"""Skinny products: logits Z = A Uᵀ (stored transposed) and the backward product G += Rᵀ A.

A has many rows (samples), U and G few (classes). Samples are addressed by index, so that
a batch is never copied. Features are cut into spans, so that the rows of U or G in use
stay in the nearest cache while the samples of a block pass by, and the samples' span in the next
one while all classes do.

Blocks of samples are padded to a multiple of 4 by repeating the last one: products
write to the padded columns, and read residuals of zero there.

Rows of U and G may be longer than those of A: what lies beyond is not touched.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from ._tiles import GROUP, WIDEST, backward_tile, forward_tile

#: Whether a backward product has no forward product to go with. Typed, as literals would have it
#: compiled twice.
PAIRED = np.bool_(False)

#: Features that are few: tiles would spend more on adding up their vectors than on products.
SHORT = 8

#: Rows of each group ahead that a forward product fetches, likewise.
_HALF, _ALL = np.intp(GROUP // 2), np.intp(GROUP)

#: Features per span: 5 rows of U or G this long fill about one first-level cache.
SPAN = 1024

_forward_1, _forward_2, _forward_3 = forward_tile[1], forward_tile[2], forward_tile[3]
_forward_4, _forward_5 = forward_tile[4], forward_tile[5]
_backward_1, _backward_2, _backward_3 = backward_tile[1], backward_tile[2], backward_tile[3]
_backward_4, _backward_5 = backward_tile[4], backward_tile[5]


@kernel()
def padded(n):
    """Smallest multiple of `GROUP` not below n."""
    return (n + GROUP - 1) // GROUP * GROUP


@kernel()
def span_length(d):
    """Length of equal spans of at most `SPAN` features, a multiple of 16."""
    spans = (d + SPAN - 1) // SPAN
    return ((d + spans - 1) // spans + 15) // 16 * 16


@kernel()
def _wanted(ahead, k, slot, default):
    """Row to fetch from a place in the group of rows ahead that begins at k, or the default."""
    return ahead[k + slot] if slot >= 0 and k + slot < ahead.shape[0] else default


@kernel()
def _slots(c, n_classes, first, count):
    """Which two of each group of 4 rows ahead a tile asks for, -1 for none.

    A product asks for the `count` rows of a group from `first` on, two or four, over its first two
    tiles; where there is one tile it asks for two.
    """
    if count == GROUP:
        slot = first + 2 * (c // WIDEST)
        return (slot, slot + 1) if slot < GROUP else (-1, -1)
    if n_classes <= WIDEST:
        return first, first + 1
    slot = first + c // WIDEST
    return (slot, slot) if c <= WIDEST else (-1, -1)


@kernel(fastmath=frozenset({"contract"}))
def add_multiple(z, factor, a):
    """Z += factor a."""
    for i in range(a.shape[0]):
        z[i] += factor * a[i]


@kernel()
def _forward_short(A, rows, U, Z):
    """Product of `forward` for few features: along the samples, whose features are transposed."""
    n, d = rows.shape[0], A.shape[1]
    At = np.empty((d, padded(n)), U.dtype)
    for k in range(At.shape[1]):
        row = A[rows[min(k, n - 1)]]
        for j in range(d):
            At[j, k] = row[j]
    for c in range(U.shape[0]):
        for j in range(d):
            add_multiple(Z[c], U[c, j], At[j])


@kernel()
def _forward(A, rows, U, Z, ahead, count):
    """Product of `forward`, fetching `count` of each group of rows ahead."""
    n = rows.shape[0]
    last = n - 1
    n_classes, d = U.shape[0], A.shape[1]
    span = span_length(d)
    for c in range(n_classes):
        for k in range(Z.shape[1]):
            Z[c, k] = U.dtype.type(0)
    if d <= SHORT:
        _forward_short(A, rows, U, Z)
        return
    for start in range(0, d, span):
        stop = min(start + span, d)
        c = 0
        while c < n_classes:
            width = min(WIDEST, n_classes - c)
            one, two = _slots(np.intp(c), n_classes, np.intp(0), count)
            for k in range(0, n, GROUP):
                i0, i1 = rows[k], rows[min(k + 1, last)]
                i2, i3 = rows[min(k + 2, last)], rows[min(k + 3, last)]
                p, q = _wanted(ahead, k, one, i0), _wanted(ahead, k, two, i0)
                if width == 5:
                    _forward_5(A, i0, i1, i2, i3, U, c, start, stop, Z, k, p, q)
                elif width == 4:
                    _forward_4(A, i0, i1, i2, i3, U, c, start, stop, Z, k, p, q)
                elif width == 3:
                    _forward_3(A, i0, i1, i2, i3, U, c, start, stop, Z, k, p, q)
                elif width == 2:
                    _forward_2(A, i0, i1, i2, i3, U, c, start, stop, Z, k, p, q)
                else:
                    _forward_1(A, i0, i1, i2, i3, U, c, start, stop, Z, k, p, q)
            c += width


@kernel(apart=True)
def forward(A, rows, U, Z, ahead):
    """Z[:, k] = U A[rows[k]]; Z has padded(len(rows)) columns or more, all written.

    On the way the first half of the rows `ahead` is fetched, `backward` fetches the other.
    """
    _forward(A, rows, U, Z, ahead, _HALF)


@kernel(apart=True)
def forward_alone(A, rows, U, Z, ahead):
    """As `forward` where no backward product goes with it: all of the rows ahead are fetched."""
    _forward(A, rows, U, Z, ahead, _ALL)


@kernel(apart=True)
def backward(A, rows, R, G, ahead, alone):
    """G += R[:, k] A[rows[k]] summed over k; R is zero in the padded columns.

    Rows ahead are fetched on the way: all of them where no forward product goes with this one
    (`alone`), else the half that `forward` leaves (`PAIRED`).
    """
    first = 0 if alone else 2
    n = rows.shape[0]
    last = n - 1
    n_classes, d = G.shape[0], A.shape[1]
    span = span_length(d)
    for start in range(0, d, span):
        stop = min(start + span, d)
        c = 0
        while c < n_classes:
            width = min(WIDEST, n_classes - c)
            one, two = _slots(np.intp(c), n_classes, first, GROUP - first)
            for k in range(0, n, GROUP):
                i0, i1 = rows[k], rows[min(k + 1, last)]
                i2, i3 = rows[min(k + 2, last)], rows[min(k + 3, last)]
                p, q = _wanted(ahead, k, one, i0), _wanted(ahead, k, two, i0)
                if width == 5:
                    _backward_5(A, i0, i1, i2, i3, R, c, k, start, stop, G, p, q)
                elif width == 4:
                    _backward_4(A, i0, i1, i2, i3, R, c, k, start, stop, G, p, q)
                elif width == 3:
                    _backward_3(A, i0, i1, i2, i3, R, c, k, start, stop, G, p, q)
                elif width == 2:
                    _backward_2(A, i0, i1, i2, i3, R, c, k, start, stop, G, p, q)
                else:
                    _backward_1(A, i0, i1, i2, i3, R, c, k, start, stop, G, p, q)
            c += width
