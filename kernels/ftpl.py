"""Follow the perturbed leader: noise, perturbed argmin, cumulative update.

The answer in round t is the vertex that minimises ⟨rate S + n_t, v⟩ over the row-l1 ball, S the
sum of the directions so far. Noise is a pure function of (seed, t, k, entry), so that a draw
that cannot change the answer may be left out: every kind of noise is bounded at
52 random bits, and where |rate S| plus the bound stays below the best entry so far no draw
is made. Sums may be float32; perturbed entries are float64.
"""

from __future__ import annotations

import math

import numpy as np

from ._bits import magnitude_bits
from ._jit import kernel
from .counter import NOISE, hashed, key, magnitude, unit

#: Kinds of noise.
UNIFORM, GAUSSIAN, EXPONENTIAL, GUMBEL = 0, 1, 2, 3
#: No draw is larger in magnitude: ½, √(2·52 ln 2), 52 ln 2, 53 ln 2, each rounded up.
BOUNDS = (0.5, 8.5, 36.1, 36.8)

#: Entries of a row that are drawn or skipped together.
BLOCK = 64


@kernel()
def noise(kind, own, j):
    """Draw of entry j under the key `own`.

    Uniform on [-½, ½); standard gaussian from two numbers (Box and Muller 1958); one-sided
    exponential and standard Gumbel by inverting their distribution functions.
    """
    if kind == UNIFORM:
        return unit(hashed(own, j)) - 0.5
    if kind == GAUSSIAN:
        length = math.sqrt(-2.0 * math.log(1.0 - unit(hashed(own, 2 * j))))
        return length * math.cos(2.0 * math.pi * unit(hashed(own, 2 * j + 1)))
    if kind == EXPONENTIAL:
        return -math.log(1.0 - unit(hashed(own, j)))
    return -math.log(-math.log(unit(hashed(own, j)) + 2.0**-53))


@kernel()
def fill(kind, own, first, out):
    """out[j] = draw of entry first + j."""
    if kind == UNIFORM:
        for j in range(out.shape[0]):
            out[j] = unit(hashed(own, first + j)) - 0.5
    else:
        for j in range(out.shape[0]):
            out[j] = noise(kind, own, first + j)


@kernel()
def draw(kind, seed, t, k, out):
    """Write the noise of base learner k in round t to `out`, one entry after the other."""
    fill(kind, key(seed, NOISE, t, k), 0, out)


@kernel()
def largest_bits(row):
    """Bits of the largest magnitude of a row."""
    largest = magnitude_bits(row[0])
    for j in range(row.shape[0]):
        bits = magnitude_bits(row[j])
        largest = bits if bits > largest else largest
    return largest


@kernel()
def largest_magnitude(A):
    """Largest magnitude of a matrix; NaN if there is one."""
    top = magnitude_bits(A[0, 0])
    for i in range(A.shape[0]):
        bits = largest_bits(A[i])
        top = bits if bits > top else top
    return magnitude(top, A[0, 0])


@kernel()
def first_largest_perturbed(row, largest, rate, kind, own, first, skip, draws):
    """First index of the largest |rate row + noise|, and whether that entry is >= 0.

    `largest` holds the bits of the largest magnitude of the row, `first` the number of
    its first entry; `draws` is space for a block. With ``skip=False`` every entry is drawn.
    """
    n = row.shape[0]
    bound = BOUNDS[kind]
    # The entry of largest |rate row| ends at this or above it.
    best = rate * magnitude(largest, row[0]) - bound if skip else -1.0
    best_bits = magnitude_bits(max(best, 0.0))
    found, positive = n, True
    for start in range(0, n, BLOCK):
        part = row[start : start + BLOCK]
        if rate * magnitude(largest_bits(part), row[0]) + bound < best:
            continue
        noisy = draws[: part.shape[0]]
        fill(kind, own, first + start, noisy)
        top = magnitude_bits(0.0)
        for j in range(noisy.shape[0]):
            noisy[j] += rate * np.float64(part[j])
            bits = magnitude_bits(noisy[j])
            top = bits if bits > top else top
        if top > best_bits or (found == n and top == best_bits):
            best_bits = top
            at = noisy.shape[0]
            for j in range(noisy.shape[0]):
                candidate = j if magnitude_bits(noisy[j]) == top else at
                at = candidate if candidate < at else at
            found, positive = start + at, noisy[at] >= 0.0
            best = magnitude(top, noisy[0])
    return found, positive
