"""The largest magnitudes of columns that change in few rows at a time.

An array d has a row a feature and a column a class. Above its rows stands a tree: each row of it
bounds the magnitudes in `FAN` rows below, column by column. A row of d that changes raises the
bounds above it where it has to; where entries shrink, bounds are left as they are, too high. Who
looks for the largest entry follows the largest bounds down, and lowers those that prove too high.
So a search reads a few rows of each level, however many rows there are, and is exact.

The levels lie in one array, the lowest first: level k has the rows ``edges[k]`` to
``edges[k + 1]``, and the last level at most `FAN`.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel
from .sets import sift_down

#: Rows below each row of the tree: two to the power of `SHIFT`.
SHIFT = 5
FAN = 1 << SHIFT


@kernel()
def levels(n):
    """Return the edges of the levels above n rows."""
    edges = np.zeros(16, np.intp)
    k = 0
    while True:
        n = (n + FAN - 1) >> SHIFT
        edges[k + 1] = edges[k] + n
        k += 1
        if n <= FAN:
            return edges[: k + 1].copy()


@kernel()
def _raise(rows, j, tree, node):
    """Raise the bounds of a node to the magnitudes in row j; return whether any was too low."""
    raised = False
    for c in range(rows.shape[1]):
        top, bound = abs(rows[j, c]), tree[node, c]
        raised |= top > bound
        tree[node, c] = top if top > bound else bound
    return raised


@kernel()
def forget(tree):
    """Note that the array has changed otherwise: bounds will be made anew when they are needed."""
    tree[-1, 0] = np.inf


@kernel()
def _rebuild(d, edges, tree):
    """Make all bounds anew, as low as they can be. O(size of d)."""
    for b in range(tree.shape[0]):
        for c in range(tree.shape[1]):
            tree[b, c] = tree.dtype.type(0.0)
    for j in range(d.shape[0]):
        _raise(d, j, tree, j >> SHIFT)
    for k in range(1, edges.shape[0] - 1):
        for b in range(edges[k] - edges[k - 1]):
            _raise(tree, edges[k - 1] + b, tree, edges[k] + (b >> SHIFT))


@kernel()
def raise_bounds(places, starts, rows, d, edges, tree):
    """Raise the bounds above rows of d that have changed.

    These are places[starts[i]:starts[i + 1]] for i in rows, as in a CSR matrix. What does not raise
    the bounds of one level cannot raise those of the next.
    """
    if tree[-1, 0] == np.inf:
        _rebuild(d, edges, tree)
        return
    for i in rows:
        for q in range(starts[i], starts[i + 1]):
            j = np.intp(places[q])
            node = j >> SHIFT
            k = 0
            while _raise(d, j, tree, edges[k] + node) and k < edges.shape[0] - 2:
                node >>= SHIFT
                k += 1


@kernel()
def shrink(keep, tree):
    """Multiply all bounds by what the array was multiplied by."""
    for b in range(tree.shape[0]):
        for c in range(tree.shape[1]):
            tree[b, c] = tree[b, c] * keep if keep > 0 else tree.dtype.type(0.0)


@kernel()
def _first(rows, low, high, c):
    """First of the rows from low to high with the largest magnitude in column c, and that."""
    first, top = low, abs(rows[low, c])
    for b in range(low + 1, high):
        other = abs(rows[b, c])
        if other > top:
            first, top = b, other
    return first, top


@kernel()
def first_largest(d, edges, tree, index):
    """index[c] = the first row with the largest magnitude in column c; return the largest of all.

    Of level bounds the first is followed, so that all rows before have lower ones.
    """
    n, top_level = d.shape[0], edges.shape[0] - 2
    largest = 0.0
    for c in range(d.shape[1]):
        k = top_level
        node, bound = _first(tree, edges[k], edges[k + 1], c)
        while k >= 0:
            low = (node - edges[k]) << SHIFT
            if k > 0:
                first = edges[k - 1]
                child, found = _first(tree, first + low, min(first + low + FAN, edges[k]), c)
            else:
                child, found = _first(d, low, min(low + FAN, n), c)
            if found < bound:  # it is too high: begin again
                tree[node, c] = found
                k = top_level
                node, bound = _first(tree, edges[k], edges[k + 1], c)
            else:
                node = child
                k -= 1
        index[c] = node
        largest = max(largest, np.float64(bound))
    return largest


@kernel()
def _sort(places):
    """Put places in order."""
    n = places.shape[0]
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            place, k = places[i], i
            while k >= gap and places[k - gap] > place:
                places[k] = places[k - gap]
                k -= gap
            places[k] = place
        gap //= 2


@kernel()
def _floor(column, last):
    """A magnitude that as many entries reach as there are places: those of last time."""
    least = abs(column[last[0]])
    for q in range(1, last.shape[0]):
        if last[q] <= last[q - 1]:  # there is no last time
            return column.dtype.type(0.0)
        least = min(least, abs(column[last[q]]))
    return least


@kernel()
def _collect(d, c, low, high, floor, found, index):
    """Take rows into the heap of largest entries; return how many are in it, and the largest."""
    column, top = d[:, c], abs(d[low, c])
    k = index.shape[0]
    for j in range(low, high):
        size = abs(column[j])
        top = size if size > top else top
        if found < k and size >= floor:
            index[found] = j
            found += 1
            if found == k:
                for i in range(k // 2, -1, -1):
                    sift_down(column, index, i)
        elif found == k and size > abs(column[index[0]]):
            index[0] = j
            sift_down(column, index, 0)
    return found, top


@kernel()
def k_largest(d, edges, tree, c, last, index):
    """Index: the first places of the largest magnitudes in column c, in order; return the largest.

    `last` are those of another time. The tree is walked in the order of the rows, past what
    cannot have one of them.
    """
    column, top_level = d[:, c], edges.shape[0] - 2
    at, end = edges[:-1].copy(), edges[1:].copy()
    floor, found = _floor(column, last), 0
    k = top_level
    while True:
        if at[k] == end[k]:
            if k == top_level:
                break
            k += 1
            low = edges[k - 1] + ((at[k] - edges[k]) << SHIFT)
            _, tree[at[k], c] = _first(tree, low, end[k - 1], c)
            at[k] += 1
        elif (
            tree[at[k], c] < floor
            or (found == index.shape[0] and tree[at[k], c] <= abs(column[index[0]]))
        ):  # fmt: skip
            at[k] += 1
        elif k > 0:
            at[k - 1] = edges[k - 1] + ((at[k] - edges[k]) << SHIFT)
            end[k - 1] = min(at[k - 1] + FAN, edges[k])
            k -= 1
        else:
            low = at[0] << SHIFT
            high = min(low + FAN, d.shape[0])
            found, tree[at[0], c] = _collect(d, c, low, high, floor, found, index)
            at[0] += 1
    largest = 0.0
    for q in range(found):
        largest = max(largest, np.float64(abs(column[index[q]])))
    _sort(index)
    return largest
