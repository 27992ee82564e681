"""The row-l1 ball: linear minimisation oracle; and the lazily scaled step.

A vertex has one entry ±r per row and is kept as (index, value) per row. An iterate is kept
as x = s u: a step x ← (1 - η) x + η v multiplies s and changes one entry of u per row.

Steps may be shorter than single precision can tell from zero, and be played by the million. So s
and the sum of the iterates are kept in float64, and of a u in float32 what rounding takes from it
is kept in `low`: the iterate is s (u + low). In float64 `low` is empty.
"""

from __future__ import annotations

import numpy as np

from ._bits import magnitude_bits
from ._jit import kernel
from .rng import hashed

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
def one_of_largest(row, j, drawn):
    """Index of one of the entries of a row as large as entry j, chosen by 64 random bits."""
    largest = magnitude_bits(row[j])
    count = 0
    for i in range(row.shape[0]):
        count += 1 if magnitude_bits(row[i]) == largest else 0
    if count == 1:
        return j
    left = np.intp(drawn >> np.uint64(33)) % count
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
        j = one_of_largest(G[c], index[c], hashed(key, c))
        index[c] = j
        value[c] = -radius if G[c, j] >= 0 else radius


@kernel()
def store(u, low, i, j, exact):
    """Write a number to u + low: what rounding takes from it goes to `low`."""
    u[i, j] = exact
    low[i, j] = exact - np.float64(u[i, j])


@kernel()
def fold(u, low, total, s, weight, support):
    """Take s into u and `weight` into the running sum: afterwards s = 1, weight = 0.

    Only the rows of the support are read, as in `step`.
    """
    narrow, summed = low.size > 0, total.size > 0
    for k in range(1, support[0] + 1):
        r = support[k]
        if narrow:
            for j in range(u.shape[1]):
                exact = np.float64(u[r, j]) + np.float64(low[r, j])
                if summed:
                    total[r, j] += weight * exact
                store(u, low, r, j, s * exact)
        else:
            if summed:
                for j in range(u.shape[1]):
                    total[r, j] += weight * u[r, j]
            for j in range(u.shape[1]):
                u[r, j] *= s


@kernel()
def point(u, low, s, out):
    """Write s (u + low) to `out`."""
    if low.size == 0:
        for c in range(u.shape[0]):
            for j in range(u.shape[1]):
                out[c, j] = s * u[c, j]
        return
    for c in range(u.shape[0]):
        for j in range(u.shape[1]):
            out[c, j] = s * (np.float64(u[c, j]) + np.float64(low[c, j]))


@kernel()
def step(u, low, total, previous, s, weight, places, values, eta, support, known):
    """X ← (1 - η) x + η v for x = s (u + low), v being values at places; the new (s, weight).

    Places are those in u as one flat array. The sum of the points played so far is ``weight *
    (u + low) + total``, kept up at the cost of the entries of v too: an entry of u that moves is
    taken back in `total`. For a step longer than `LARGEST_LAZY_STEP` x is written whole, and the
    old x to `previous`. Both may be empty, for sum and old x that nobody asks for. Steps away
    from v have η below 0.

    The support lists the rows of u that may be other than zero, with their number in front;
    known[r] says whether row r is among them.
    """
    narrow = low.size > 0
    width = u.shape[1]
    if eta > LARGEST_LAZY_STEP:
        fold(u, low, total, s, weight, support)
        if previous.size > 0:
            for k in range(1, support[0] + 1):
                r = support[k]
                for j in range(width):
                    previous[r, j] = u[r, j]
        fold(u, low, total, 1.0 - eta, 0.0, support)
        s, weight = 1.0, 0.0
    else:
        s *= 1.0 - eta
    for k in range(places.shape[0]):
        r = places[k] // width
        if not known[r]:
            known[r] = True
            support[0] += 1
            support[support[0]] = r
        j = places[k] - r * width
        move = eta * values[k] / s
        if narrow:
            store(u, low, r, j, np.float64(u[r, j]) + np.float64(low[r, j]) + move)
        else:
            u[r, j] += move
        if total.size > 0:
            total[r, j] -= weight * move
    if not (SMALLEST_NARROW if narrow else SMALLEST_SCALE) <= s <= LARGEST_SCALE:
        fold(u, low, total, s, weight, support)
        s, weight = 1.0, 0.0
    return s, weight
