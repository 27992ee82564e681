"""Stable softmax, residuals and log-loss of a block of logits.

Logits are stored (classes, rows): every loop runs along rows, so that the exponential
vectorises. Only the first ``n`` columns of a block hold samples; the rest is padding
up to a whole group of rows and gets residual zero.

Labels come as an array of class numbers, or as a pair of it and of weights, one for each sample,
that its loss and gradient are multiplied by; no weights are as many of 1.
"""

from __future__ import annotations

import math

import numpy as np

from ._bits import power_of_two
from ._dispatch import ByType
from ._jit import kernel

_LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts, the first with enough trailing zeros that n times it is exact.
_LN2_64 = (0.6931471803691238, 1.9082149292705877e-10)
_LN2_32 = (0.693359375, -2.1219444005469057e-4)
_INVERSE_FACTORIAL = tuple(1.0 / math.factorial(k) for k in range(14))


@kernel()
def _label(y, i):
    return y[i]


@kernel()
def _label_of_pair(y, i):
    return y[0][i]


@kernel()
def _one(y, i):
    return 1.0


@kernel()
def _weight_of_pair(y, i):
    return y[1][i] if y[1].shape[0] > 0 else 1.0


#: Class of sample i, of labels or a pair of labels and weights.
label_of = ByType({tuple: _label_of_pair, object: _label})
#: Weight of sample i, 1 where there are none.
weight_of = ByType({tuple: _weight_of_pair, object: _one})


@kernel(fastmath=frozenset({"contract"}))
def exp_shifted(z, m, p):
    """p[i] = exp(z[i] - m[i]) for z <= m; 0 for differences below -708 (-87 in single precision).

    NaN stays NaN. The argument is reduced to [-ln(2)/2, ln(2)/2]; there a Taylor polynomial
    (degree 13, or 7 in single precision: remainders 4e-18 and 5e-9) is evaluated and
    the power of two is put together from its bits.
    """
    real = p.dtype.type
    double = p.itemsize == 8
    lowest = real(-708.0) if double else real(-87.0)
    high = real(_LN2_64[0]) if double else real(_LN2_32[0])
    low = real(_LN2_64[1]) if double else real(_LN2_32[1])
    c = _INVERSE_FACTORIAL
    for i in range(p.shape[0]):
        t = z[i] - m[i]
        bounded = t if t > lowest else lowest
        n = np.floor(bounded * real(_LOG2_E) + real(0.5))
        r = (t - n * high) - n * low
        e = real(c[7])
        if double:
            e = ((real(c[13]) * r + real(c[12])) * r + real(c[11])) * r + real(c[10])
            e = ((e * r + real(c[9])) * r + real(c[8])) * r + real(c[7])
        e = ((e * r + real(c[6])) * r + real(c[5])) * r + real(c[4])
        e = ((e * r + real(c[3])) * r + real(c[2])) * r + real(c[1])
        e = e * r + real(c[0])
        p[i] = real(0.0) if t < lowest else e * power_of_two(np.int32(n), e)


@kernel(fastmath=frozenset({"contract"}))
def softmax(Z, P, m, total):
    """P = exp(Z - m), m = max over classes, total = sum of P over classes, by column."""
    real = P.dtype.type
    width = m.shape[0]
    for i in range(width):
        m[i] = Z[0, i]
        total[i] = real(0.0)
    for c in range(1, Z.shape[0]):
        for i in range(width):
            z = Z[c, i]
            m[i] = z if z > m[i] else m[i]
    for c in range(Z.shape[0]):
        exp_shifted(Z[c], m, P[c])
        for i in range(width):
            total[i] += P[c, i]


@kernel()
def log_loss(Z, y, rows, n, m, total):
    """Sum over the first n columns of log Σ_c exp(z_c) - z_y, from `softmax`'s m and total.

    The logarithm is taken of products of totals, many at a time; a total lies in
    [1, C], so the product is taken out before it can overflow.
    """
    loss = 0.0
    product = 1.0
    for i in range(n):
        w = weight_of(y, rows[i])
        loss += w * (np.float64(m[i]) - np.float64(Z[label_of(y, rows[i]), i]))
        if w == 1.0:
            product *= np.float64(total[i])
        else:
            loss += w * math.log(np.float64(total[i]))
        if product > 1e200:
            loss += math.log(product)
            product = 1.0
    return loss + math.log(product)


@kernel(fastmath=frozenset({"contract"}))
def residual(P, total, y, rows, n, factor, R, accumulate):
    """R = factor (P / total - onehot(y)), or R += the same; columns from n on become 0."""
    real = R.dtype.type
    f = real(factor)
    width = total.shape[0]
    for i in range(width):
        total[i] = f * real(weight_of(y, rows[i])) / total[i] if i < n else real(0.0)
    for c in range(P.shape[0]):
        if accumulate:
            for i in range(width):
                R[c, i] += P[c, i] * total[i]
        else:
            for i in range(width):
                R[c, i] = P[c, i] * total[i]
    for i in range(n):
        R[label_of(y, rows[i]), i] -= f * real(weight_of(y, rows[i]))
