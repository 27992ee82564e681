"""The row-l1 ball: linear minimisation oracle, lazily scaled step, Frank-Wolfe gap.

A vertex has one entry ±r per row and is kept as (index, value) per row. An iterate is kept
as x = s u: a step x ← (1 - η) x + η v multiplies s and changes one entry of u per row.

Steps may be shorter than single precision can tell from zero, and be played by the million. So s
and the sum of the iterates are kept in float64, and of a u in float32 what rounding takes from it
is kept in `low`: the iterate is s (u + low). In float64 `low` has no columns.
"""

from __future__ import annotations

import numpy as np

from ._bits import magnitude_bits
from ._jit import kernel
from .counter import hashed

#: Outside these bounds s is folded back into u, so that rounding errors in the sum cannot grow.
SMALLEST_SCALE, LARGEST_SCALE = 1.0 / 16.0, 16.0
#: The lower bound for a u in float32, whose sum has digits to spare.
SMALLEST_NARROW = 1.0 / 65536.0
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
def store(u, low, i, j, exact):
    """Write a number to u + low: what rounding takes from it goes to `low`."""
    u[i, j] = exact
    low[i, j] = exact - np.float64(u[i, j])


@kernel()
def fold(u, low, total, s, weight):
    """Take s into u and `weight` into the running sum: afterwards s = 1, weight = 0."""
    if low.shape[1] == 0:
        for c in range(u.shape[0]):
            for j in range(u.shape[1]):
                total[c, j] += weight * u[c, j]
                u[c, j] *= s
        return
    for c in range(u.shape[0]):
        for j in range(u.shape[1]):
            exact = np.float64(u[c, j]) + np.float64(low[c, j])
            total[c, j] += weight * exact
            store(u, low, c, j, s * exact)


@kernel()
def _shrink(u, low, previous, keep):
    """Leave u in `previous` and scale it by `keep`."""
    if low.shape[1] == 0:
        for c in range(u.shape[0]):
            for j in range(u.shape[1]):
                previous[c, j] = u[c, j]
                u[c, j] *= keep
        return
    for c in range(u.shape[0]):
        for j in range(u.shape[1]):
            previous[c, j] = u[c, j]
            store(u, low, c, j, keep * (np.float64(u[c, j]) + np.float64(low[c, j])))


@kernel()
def point(u, low, s, out):
    """Write s (u + low) to `out`."""
    if low.shape[1] == 0:
        for c in range(u.shape[0]):
            for j in range(u.shape[1]):
                out[c, j] = s * u[c, j]
        return
    for c in range(u.shape[0]):
        for j in range(u.shape[1]):
            out[c, j] = s * (np.float64(u[c, j]) + np.float64(low[c, j]))


@kernel()
def step(u, low, total, previous, s, weight, index, value, eta):
    """X ← (1 - η) x + η v for x = s (u + low); returns the new (s, weight).

    The sum of the points played so far is ``weight * (u + low) + total``, kept up at the cost of
    one entry per row too: an entry of u that moves is taken back in `total`.
    A step longer than `LARGEST_LAZY_STEP` writes x whole and leaves the old x in `previous`.
    Steps away from v have η below 0.
    """
    narrow = low.shape[1] > 0
    if eta > LARGEST_LAZY_STEP:
        fold(u, low, total, s, weight)
        _shrink(u, low, previous, 1.0 - eta)
        s, weight = 1.0, 0.0
    else:
        s *= 1.0 - eta
    for c in range(u.shape[0]):
        j = index[c]
        move = eta * value[c] / s
        if narrow:
            store(u, low, c, j, np.float64(u[c, j]) + np.float64(low[c, j]) + move)
        else:
            u[c, j] += move
        total[c, j] -= weight * move
    if not (SMALLEST_NARROW if narrow else SMALLEST_SCALE) <= s <= LARGEST_SCALE:
        fold(u, low, total, s, weight)
        s, weight = 1.0, 0.0
    return s, weight
