"""Sets made of rows: the vertex that minimises ⟨g, v⟩, row by row.

`row_vertex` finds the vertex of one row as k entries (index, value). Rows of the first layer come
first. Those of the tail follow: row r ends at ``end[r]`` there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._bits import magnitude_bits
from ._jit import kernel
from .functions import call_vertex
from .l1 import first_largest, one_of_largest

__all__ = ["Rows", "row_vertex", "sift_down", "tail_vertex", "vertices"]

#: What a row may be in: the l1 ball, with the first or one of several largest entries for a vertex;
#: the simplex; the hull of vectors with k entries of one size; a set of the user's.
L1, L1_RANDOM, SIMPLEX, SPARSE_ENTRIES = np.intp(0), np.intp(1), np.intp(2), np.intp(3)
OWN = np.intp(4)


class Rows(NamedTuple):
    """Each row in a set of its own."""

    kind: Any
    """One of the above, of each row."""
    radius: Any
    """Size of a vertex' entries, of each row."""
    count: Any
    """How many entries a vertex has there."""
    drawn: Any
    """64 random bits that choose among ties."""
    end: Any
    """Where a row of the tail ends."""
    address: Any
    """Of the function of a row of a user's set, see `functions.compiled_vertex`."""


@kernel()
def first_smallest(row):
    """First index of the smallest entry of a row, and whether the row is finite."""
    largest = magnitude_bits(row[0])
    least = row[0]
    for j in range(row.shape[0]):
        bits = magnitude_bits(row[j])
        largest = bits if bits > largest else largest
        least = row[j] if row[j] < least else least
    n = row.shape[0]
    first = n
    where = n
    for j in range(n):
        candidate = j if row[j] == least else n
        first = candidate if candidate < first else first
        candidate = j if magnitude_bits(row[j]) == largest else n
        where = candidate if candidate < where else where
    return first, np.isfinite(row[where])


@kernel()
def sift_down(row, heap, i):
    """Let an entry sink below those that are less: of smaller magnitude, or later."""
    k = heap.shape[0]
    while 2 * i + 1 < k:
        child = 2 * i + 1
        if child + 1 < k and _is_less(row, heap[child + 1], heap[child]):
            child += 1
        if not _is_less(row, heap[child], heap[i]):
            return
        heap[i], heap[child] = heap[child], heap[i]
        i = child


@kernel()
def _is_less(row, i, j):
    return abs(row[i]) < abs(row[j]) or (abs(row[i]) == abs(row[j]) and i > j)


@kernel()
def k_largest(row, index):
    """The first places of the k largest magnitudes of a row, increasing; whether it is finite."""
    n, k = row.shape[0], index.shape[0]
    if k == 1:
        index[0], finite = first_largest(row)
        return finite
    for i in range(k):
        index[i] = i
    for i in range(k // 2, -1, -1):
        sift_down(row, index, i)
    finite = True
    for j in range(n):
        finite = finite and np.isfinite(row[j])
        if j >= k and abs(row[j]) > abs(row[index[0]]):
            index[0] = j
            sift_down(row, index, np.intp(0))
    last = index[0]
    found = 0
    for j in range(n):
        if finite and not _is_less(row, j, last):
            index[found] = j
            found += 1
    return finite


@kernel()
def _own_vertex(address, g, index, value):
    """The vertex that a function writes; False where g is not finite, or that is no vertex."""
    n = g.shape[0]
    direction = np.empty(n, np.float64)
    fits = True
    for j in range(n):
        direction[j] = g[j]
        fits = fits and np.isfinite(direction[j])
    if fits:
        call_vertex(address, direction, index, value)
    for q in range(index.shape[0]):
        fits = fits and 0 <= index[q] < n and np.isfinite(value[q])
    return fits


@kernel()
def row_vertex(set, g, r, index, value):
    """The vertex of row r; False, with it unfinished, where g is not finite.

    Entries that a vertex does not need stay (0, 0.0).
    """
    kind, radius, used = set.kind[r], set.radius[r], set.count[r]
    for q in range(index.shape[0]):
        index[q] = 0
        value[q] = 0.0
    if kind == OWN:
        if not _own_vertex(set.address[r], g, index[:used], value[:used]):
            return False
    elif kind == SPARSE_ENTRIES:
        if not k_largest(g, index[:used]):
            return False
        for q in range(used):
            value[q] = -radius if g[index[q]] >= 0 else radius
    elif kind == SIMPLEX:
        j, finite = first_smallest(g)
        if not finite:
            return False
        index[0] = j
        value[0] = radius
    else:
        j, finite = first_largest(g)
        if not finite:
            return False
        if kind == L1_RANDOM:
            j = one_of_largest(g, j, set.drawn[r])
        index[0] = j
        value[0] = -radius if g[j] >= 0 else radius
    return True


@kernel()
def vertices(set, G, index, value):
    """The vertices of the first rows; False, with them unfinished, where G is not finite."""
    finite = True
    for r in range(G.shape[0]):
        finite = finite and row_vertex(set, G[r], r, index[r], value[r])
    return finite


@kernel()
def tail_vertex(set, g, first, index, value):
    """The vertex of the rows from `first` on, for a direction in the tail; places are the tail's.

    False, with it unfinished, where g is not finite.
    """
    start = 0
    for r in range(first, index.shape[0]):
        stop = set.end[r]
        if not row_vertex(set, g[start:stop], r, index[r], value[r]):
            return False
        for q in range(index.shape[1]):
            index[r, q] += start
        start = stop
    return True
