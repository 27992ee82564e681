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
from ._sweep import BLOCK
from .rng import NOISE, hashed, key, magnitude, unit

#: Kinds of noise.
UNIFORM, GAUSSIAN, EXPONENTIAL, GUMBEL = 0, 1, 2, 3
#: No draw is larger in magnitude: ½, √(2·52 ln 2), 52 ln 2, 53 ln 2, each rounded up.
BOUNDS = (0.5, 8.5, 36.1, 36.8)


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
def _perturb(row, rate, kind, own, first, out):
    """Out = rate row + noise; returns the bits of the largest magnitude."""
    top = magnitude_bits(np.float64(0.0))
    if kind == UNIFORM:
        for j in range(out.shape[0]):
            noisy = rate * np.float64(row[j]) + (unit(hashed(own, first + j)) - 0.5)
            out[j] = noisy
            bits = magnitude_bits(noisy)
            top = bits if bits > top else top
    else:
        for j in range(out.shape[0]):
            noisy = rate * np.float64(row[j]) + noise(kind, own, first + j)
            out[j] = noisy
            bits = magnitude_bits(noisy)
            top = bits if bits > top else top
    return top


@kernel()
def block_tops(row, tops):
    """tops[b] = largest magnitude in block b of a row."""
    for b in range(tops.shape[0]):
        tops[b] = magnitude(largest_bits(row[b * BLOCK : (b + 1) * BLOCK]), row[0])


@kernel()
def first_largest_perturbed(row, tops, rate, kind, own, first, skip, noisy):
    """First index of the largest |rate row + noise|, and whether that entry is >= 0.

    `tops` holds the largest magnitudes of the row's blocks, `first` is the number of its
    first entry and `noisy` is space for a block. With ``skip=False`` every entry is drawn.
    """
    bound = BOUNDS[kind]
    leader = 0
    for b in range(tops.shape[0]):
        leader = b if tops[b] > tops[leader] else leader
    # The leading entry ends at this or above it, and its block is likely to set a high mark.
    least = rate * np.float64(tops[leader]) - bound
    found, positive, best = row.shape[0], True, -1.0
    for turn in range(tops.shape[0] + 1):
        b = leader if turn == 0 else turn - 1
        if turn > 0 and (b == leader or (skip and rate * np.float64(tops[b]) + bound < least)):
            continue
        start = b * BLOCK
        part = row[start : start + BLOCK]
        wanted = _perturb(part, rate, kind, own, first + start, noisy[: part.shape[0]])
        top = magnitude(wanted, noisy[0])
        if top > best or (top == best and start < found):
            at = part.shape[0]
            for j in range(part.shape[0]):
                candidate = j if magnitude_bits(noisy[j]) == wanted else at
                at = candidate if candidate < at else at
            found, positive, best = start + at, noisy[at] >= 0.0, top
            least = max(least, top)
    return found, positive
