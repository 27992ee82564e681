"""The row-l1 ball: linear minimisation oracle, lazily scaled step, Frank-Wolfe gap.

A vertex has one entry ±r per row and is kept as (index, value) per row. An iterate is kept
as x = s u: a step x ← (1 - η) x + η v multiplies s and changes one entry of u per row.
"""

from __future__ import annotations

import numpy as np

from ._bits import magnitude_bits
from ._jit import kernel
from .counter import hashed

#: Below this scale s is folded back into u, so that rounding errors cannot grow.
SMALLEST_SCALE = 1.0 / 16.0
#: Above this step size x_{t-1} is kept whole: recovering it would divide by 1 - η.
LARGEST_LAZY_STEP = 0.9


@kernel()
def first_largest(row):
    """First index of the largest magnitude in a row, and whether the row is finite.

    Magnitudes are compared through their bits, as integers: those loops vectorise as they
    stand, and NaN and infinity come out on top.
    """
    largest = magnitude_bits(row[0])
    for j in range(row.shape[0]):
        bits = magnitude_bits(row[j])
        largest = bits if bits > largest else largest
    n = row.shape[0]
    first = n
    for j in range(n):
        candidate = j if magnitude_bits(row[j]) == largest else n
        first = candidate if candidate < first else first
    return first, np.isfinite(row[first])


@kernel()
def lmo(G, radius, index, value):
    """Vertex of the ball minimising ⟨G, v⟩: value = -r sign(g) at the first largest |g|.

    Sign(0) counts as +1, so that the result is always a vertex. Returns False, with
    index and value unfinished, where G is not finite.
    """
    for c in range(G.shape[0]):
        j, finite = first_largest(G[c])
        if not finite:
            return False
        index[c] = j
        value[c] = -radius if G[c, j] >= 0 else radius
    return True


@kernel()
def one_of_largest(row, j, key, r):
    """Index of one of the entries of a row as large as entry j, chosen by a hash of key and r."""
    largest = magnitude_bits(row[j])
    count = 0
    for i in range(row.shape[0]):
        count += 1 if magnitude_bits(row[i]) == largest else 0
    if count == 1:
        return j
    left = np.intp(hashed(key, r) >> np.uint64(33)) % count
    for i in range(row.shape[0]):
        if magnitude_bits(row[i]) == largest:
            if left == 0:
                return i
            left -= 1
    return j


@kernel()
def break_ties(G, radius, key, index, value):
    """Let a vertex that `lmo` found have another of the largest entries of each row."""
    for c in range(G.shape[0]):
        j = one_of_largest(G[c], index[c], key, c)
        index[c] = j
        value[c] = -radius if G[c, j] >= 0 else radius


@kernel()
def fold(u, total, s, weight):
    """Take s into u and `weight` into the running sum: afterwards s = 1, weight = 0."""
    scale, w = u.dtype.type(s), u.dtype.type(weight)
    for c in range(u.shape[0]):
        for j in range(u.shape[1]):
            total[c, j] += w * u[c, j]
            u[c, j] *= scale


@kernel()
def step(u, total, previous, s, weight, index, value, eta):
    """X ← (1 - η) x + η v for x = s u; returns the new (s, weight).

    The sum of the points played so far is ``weight * u + total``, kept up at the cost of
    one entry per row too: an entry of u that moves is taken back in `total`.
    A step longer than `LARGEST_LAZY_STEP` writes x whole and leaves the old x in `previous`.
    """
    real = u.dtype.type
    if eta > LARGEST_LAZY_STEP:
        fold(u, total, s, weight)
        keep = real(1.0 - eta)
        for c in range(u.shape[0]):
            for j in range(u.shape[1]):
                previous[c, j] = u[c, j]
                u[c, j] *= keep
        s, weight = 1.0, 0.0
    else:
        s *= 1.0 - eta
    w = real(weight)
    for c in range(u.shape[0]):
        move = real(eta * value[c] / s)
        u[c, index[c]] += move
        total[c, index[c]] -= w * move
    if s < SMALLEST_SCALE:
        fold(u, total, s, weight)
        s, weight = 1.0, 0.0
    return s, weight
