"""Skinny products: logits Z = A Uᵀ (stored transposed) and the backward product G += Rᵀ A.

A has many rows (samples), U and G few (classes). A tile of 4 samples by 5 classes is
kept in scalar accumulators, which the compiler turns into vector registers along the
features; each loaded vector then serves several multiply-adds. Samples are addressed by
index, so that a batch is never copied. Features are cut into spans, so that the
rows of U or G in use stay in the nearest cache while the samples of a block pass by.

Blocks of samples are padded to a multiple of 4 by repeating the last one: products
write to the padded columns, and read residuals of zero there.
"""

from __future__ import annotations

from ._jit import REASSOCIATE, kernel
from ._memory import prefetch

#: Features per span: 5 rows of U or G this long fill about one first-level cache.
SPAN = 1024
#: Samples per tile.
GROUP = 4


@kernel()
def padded(n):
    """Smallest multiple of `GROUP` not below n."""
    return (n + GROUP - 1) // GROUP * GROUP


@kernel()
def span_length(d):
    """Length of equal spans of at most `SPAN` features, a multiple of 16."""
    spans = (d + SPAN - 1) // SPAN
    return ((d + spans - 1) // spans + 15) // 16 * 16


@kernel(fastmath=REASSOCIATE)
def _forward_5(a0, a1, a2, a3, U, c, start, Z, k):
    """Z[c:c+5, k:k+4] += U[c:c+5] A[i]ᵀ."""
    stop = start + a0.shape[0]
    u0, u1 = U[c, start:stop], U[c + 1, start:stop]
    u2, u3 = U[c + 2, start:stop], U[c + 3, start:stop]
    u4 = U[c + 4, start:stop]
    z00, z01, z02, z03 = Z[c, k], Z[c, k + 1], Z[c, k + 2], Z[c, k + 3]
    z10, z11, z12, z13 = Z[c + 1, k], Z[c + 1, k + 1], Z[c + 1, k + 2], Z[c + 1, k + 3]
    z20, z21, z22, z23 = Z[c + 2, k], Z[c + 2, k + 1], Z[c + 2, k + 2], Z[c + 2, k + 3]
    z30, z31, z32, z33 = Z[c + 3, k], Z[c + 3, k + 1], Z[c + 3, k + 2], Z[c + 3, k + 3]
    z40, z41, z42, z43 = Z[c + 4, k], Z[c + 4, k + 1], Z[c + 4, k + 2], Z[c + 4, k + 3]
    for j in range(a0.shape[0]):
        p0, p1, p2, p3 = a0[j], a1[j], a2[j], a3[j]
        q0, q1, q2, q3, q4 = u0[j], u1[j], u2[j], u3[j], u4[j]
        z00 += q0 * p0
        z01 += q0 * p1
        z02 += q0 * p2
        z03 += q0 * p3
        z10 += q1 * p0
        z11 += q1 * p1
        z12 += q1 * p2
        z13 += q1 * p3
        z20 += q2 * p0
        z21 += q2 * p1
        z22 += q2 * p2
        z23 += q2 * p3
        z30 += q3 * p0
        z31 += q3 * p1
        z32 += q3 * p2
        z33 += q3 * p3
        z40 += q4 * p0
        z41 += q4 * p1
        z42 += q4 * p2
        z43 += q4 * p3
    Z[c, k], Z[c, k + 1], Z[c, k + 2], Z[c, k + 3] = z00, z01, z02, z03
    Z[c + 1, k], Z[c + 1, k + 1], Z[c + 1, k + 2], Z[c + 1, k + 3] = z10, z11, z12, z13
    Z[c + 2, k], Z[c + 2, k + 1], Z[c + 2, k + 2], Z[c + 2, k + 3] = z20, z21, z22, z23
    Z[c + 3, k], Z[c + 3, k + 1], Z[c + 3, k + 2], Z[c + 3, k + 3] = z30, z31, z32, z33
    Z[c + 4, k], Z[c + 4, k + 1], Z[c + 4, k + 2], Z[c + 4, k + 3] = z40, z41, z42, z43


@kernel(fastmath=REASSOCIATE)
def _forward_2(a0, a1, a2, a3, U, c, start, Z, k):
    """Z[c:c+2, k:k+4] += U[c:c+2] A[i]ᵀ."""
    stop = start + a0.shape[0]
    u0, u1 = U[c, start:stop], U[c + 1, start:stop]
    z00, z01, z02, z03 = Z[c, k], Z[c, k + 1], Z[c, k + 2], Z[c, k + 3]
    z10, z11, z12, z13 = Z[c + 1, k], Z[c + 1, k + 1], Z[c + 1, k + 2], Z[c + 1, k + 3]
    for j in range(a0.shape[0]):
        p0, p1, p2, p3 = a0[j], a1[j], a2[j], a3[j]
        q0, q1 = u0[j], u1[j]
        z00 += q0 * p0
        z01 += q0 * p1
        z02 += q0 * p2
        z03 += q0 * p3
        z10 += q1 * p0
        z11 += q1 * p1
        z12 += q1 * p2
        z13 += q1 * p3
    Z[c, k], Z[c, k + 1], Z[c, k + 2], Z[c, k + 3] = z00, z01, z02, z03
    Z[c + 1, k], Z[c + 1, k + 1], Z[c + 1, k + 2], Z[c + 1, k + 3] = z10, z11, z12, z13


@kernel(fastmath=REASSOCIATE)
def _forward_1(a0, a1, a2, a3, U, c, start, Z, k):
    """Z[c, k:k+4] += U[c] A[i]ᵀ."""
    u0 = U[c, start : start + a0.shape[0]]
    z0, z1, z2, z3 = Z[c, k], Z[c, k + 1], Z[c, k + 2], Z[c, k + 3]
    for j in range(a0.shape[0]):
        q0 = u0[j]
        z0 += q0 * a0[j]
        z1 += q0 * a1[j]
        z2 += q0 * a2[j]
        z3 += q0 * a3[j]
    Z[c, k], Z[c, k + 1], Z[c, k + 2], Z[c, k + 3] = z0, z1, z2, z3


@kernel(fastmath=REASSOCIATE)
def _backward_5(a0, a1, a2, a3, R, c, k, start, G):
    """G[c:c+5] += R[c:c+5, k:k+4] A[i]."""
    stop = start + a0.shape[0]
    g0, g1 = G[c, start:stop], G[c + 1, start:stop]
    g2, g3 = G[c + 2, start:stop], G[c + 3, start:stop]
    g4 = G[c + 4, start:stop]
    r00, r01, r02, r03 = R[c, k], R[c, k + 1], R[c, k + 2], R[c, k + 3]
    r10, r11, r12, r13 = R[c + 1, k], R[c + 1, k + 1], R[c + 1, k + 2], R[c + 1, k + 3]
    r20, r21, r22, r23 = R[c + 2, k], R[c + 2, k + 1], R[c + 2, k + 2], R[c + 2, k + 3]
    r30, r31, r32, r33 = R[c + 3, k], R[c + 3, k + 1], R[c + 3, k + 2], R[c + 3, k + 3]
    r40, r41, r42, r43 = R[c + 4, k], R[c + 4, k + 1], R[c + 4, k + 2], R[c + 4, k + 3]
    for j in range(a0.shape[0]):
        p0, p1, p2, p3 = a0[j], a1[j], a2[j], a3[j]
        g0[j] += r00 * p0 + r01 * p1 + r02 * p2 + r03 * p3
        g1[j] += r10 * p0 + r11 * p1 + r12 * p2 + r13 * p3
        g2[j] += r20 * p0 + r21 * p1 + r22 * p2 + r23 * p3
        g3[j] += r30 * p0 + r31 * p1 + r32 * p2 + r33 * p3
        g4[j] += r40 * p0 + r41 * p1 + r42 * p2 + r43 * p3


@kernel(fastmath=REASSOCIATE)
def _backward_2(a0, a1, a2, a3, R, c, k, start, G):
    """G[c:c+2] += R[c:c+2, k:k+4] A[i]."""
    stop = start + a0.shape[0]
    g0, g1 = G[c, start:stop], G[c + 1, start:stop]
    r00, r01, r02, r03 = R[c, k], R[c, k + 1], R[c, k + 2], R[c, k + 3]
    r10, r11, r12, r13 = R[c + 1, k], R[c + 1, k + 1], R[c + 1, k + 2], R[c + 1, k + 3]
    for j in range(a0.shape[0]):
        p0, p1, p2, p3 = a0[j], a1[j], a2[j], a3[j]
        g0[j] += r00 * p0 + r01 * p1 + r02 * p2 + r03 * p3
        g1[j] += r10 * p0 + r11 * p1 + r12 * p2 + r13 * p3


@kernel(fastmath=REASSOCIATE)
def _backward_1(a0, a1, a2, a3, R, c, k, start, G):
    """G[c] += R[c, k:k+4] A[i]."""
    g0 = G[c, start : start + a0.shape[0]]
    r0, r1, r2, r3 = R[c, k], R[c, k + 1], R[c, k + 2], R[c, k + 3]
    for j in range(a0.shape[0]):
        g0[j] += r0 * a0[j] + r1 * a1[j] + r2 * a2[j] + r3 * a3[j]


@kernel()
def fetch(A, rows, k, count, start, stop):
    """Ask for features start:stop of the samples rows[k:k+count]."""
    line = 64 // A.itemsize
    for i in range(k, min(k + count, rows.shape[0])):
        a = A[rows[i], start:stop]
        for j in range(0, a.shape[0], line):
            prefetch(a, j)


@kernel()
def forward(A, rows, U, Z, ahead):
    """Z[:, k] = U A[rows[k]] for all k; Z has padded(len(rows)) columns, all written."""
    n = rows.shape[0]
    last = n - 1
    n_classes, d = U.shape
    span = span_length(d)
    for c in range(n_classes):
        for k in range(Z.shape[1]):
            Z[c, k] = U.dtype.type(0)
    c = 0
    while c < n_classes:
        width = 5 if n_classes - c >= 5 else (2 if n_classes - c >= 2 else 1)
        for start in range(0, d, span):
            stop = min(start + span, d)
            for k in range(0, n, GROUP):
                if c == 0:
                    fetch(A, ahead, k, 2, start, stop)
                a0 = A[rows[k], start:stop]
                a1 = A[rows[min(k + 1, last)], start:stop]
                a2 = A[rows[min(k + 2, last)], start:stop]
                a3 = A[rows[min(k + 3, last)], start:stop]
                if width == 5:
                    _forward_5(a0, a1, a2, a3, U, c, start, Z, k)
                elif width == 2:
                    _forward_2(a0, a1, a2, a3, U, c, start, Z, k)
                else:
                    _forward_1(a0, a1, a2, a3, U, c, start, Z, k)
        c += width


@kernel()
def backward(A, rows, R, G, ahead):
    """G += R[:, k] A[rows[k]] summed over k; R is zero in the padded columns."""
    n = rows.shape[0]
    last = n - 1
    n_classes, d = G.shape
    span = span_length(d)
    c = 0
    while c < n_classes:
        width = 5 if n_classes - c >= 5 else (2 if n_classes - c >= 2 else 1)
        for start in range(0, d, span):
            stop = min(start + span, d)
            for k in range(0, n, GROUP):
                if c == 0:
                    fetch(A, ahead, k + 2, 2, start, stop)
                a0 = A[rows[k], start:stop]
                a1 = A[rows[min(k + 1, last)], start:stop]
                a2 = A[rows[min(k + 2, last)], start:stop]
                a3 = A[rows[min(k + 3, last)], start:stop]
                if width == 5:
                    _backward_5(a0, a1, a2, a3, R, c, k, start, G)
                elif width == 2:
                    _backward_2(a0, a1, a2, a3, R, c, k, start, G)
                else:
                    _backward_1(a0, a1, a2, a3, R, c, k, start, G)
        c += width
