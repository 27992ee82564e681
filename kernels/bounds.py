"""The largest magnitudes of columns that change in few rows at a time.

An array d has a row a feature and a column a class. Above its rows stands a tree: each row of it
bounds the magnitudes in `FAN` rows below, column by column. A row of d that changes raises the
bounds above it where it has to; where entries shrink, bounds are left as they are, too high. Who
looks for the largest entry follows the largest bounds down, and lowers those that prove too high.
So a search reads a few rows of each level, however many rows there are, and is exact.

The levels lie in one array, the lowest first: level k has the rows ``edges[k]`` to
``edges[k + 1]``, and the last level at most `FAN`.

Who looks for many entries of a column keeps its *leaders*: more places than are looked for, in
order, ``leaders[c, 1 : 1 + leaders[c, 0]]``. No other entry exceeds their ceiling, ``tree[-1, c]``;
those that come to do so join them. So the k largest entries are leaders while the least of them is
above the ceiling, and only then, or where too many have joined, is there something to search.
"""

from __future__ import annotations

import numpy as np

from ._bits import magnitude_bits
from ._jit import kernel
from .csr import place
from .sets import sift_down

#: Rows below each row of the tree: two to the power of `SHIFT`.
SHIFT = 5
FAN = 1 << SHIFT

#: Leaders of a column, for each entry that is looked for.
LEADERS = 2


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
    tree[0, 0] = np.inf


@kernel()
def _rebuild(d, edges, tree):
    """Make all bounds anew, as low as they can be, and forget the leaders. O(size of d)."""
    for b in range(tree.shape[0]):
        for c in range(tree.shape[1]):
            tree[b, c] = tree.dtype.type(0.0)
    for j in range(d.shape[0]):
        _raise(d, j, tree, j >> SHIFT)
    for k in range(1, edges.shape[0] - 1):
        for b in range(edges[k] - edges[k - 1]):
            _raise(tree, edges[k - 1] + b, tree, edges[k] + (b >> SHIFT))
    for c in range(tree.shape[1]):
        tree[-1, c] = np.inf


@kernel()
def raise_bounds(places, starts, rows, d, edges, tree, leads, leaders, slots):
    """Raise the bounds above rows of d that have changed; if it `leads`, let new leaders join.

    These are places[starts[i]:starts[i + 1]] for i in rows, as in a CSR matrix; `slots` are 0 for
    each before and after. What does not raise the bounds of one level cannot raise those of the
    next.
    """
    if tree[0, 0] == np.inf:
        _rebuild(d, edges, tree)
        return
    for i in rows:
        for q in range(starts[i], starts[i + 1]):
            j = np.intp(places[q])
            if leads:  # a feature of several samples is asked once
                if slots[j] != 0:
                    continue
                slots[j] = 1
            node = j >> SHIFT
            k = 0
            while _raise(d, j, tree, edges[k] + node) and k < edges.shape[0] - 2:
                node >>= SHIFT
                k += 1
            if leads:
                for c in range(d.shape[1]):
                    if abs(d[j, c]) > tree[-1, c]:
                        _join(d, c, j, leaders[c], tree[-1])
    if leads:
        for i in rows:
            for q in range(starts[i], starts[i + 1]):
                slots[places[q]] = 0


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
def _n_from(bits, least):
    """How many of these are not below `least`."""
    n = 0
    for i in range(bits.shape[0]):
        n += bits[i] >= least
    return n


@kernel()
def _level(bits, k):
    """A number that k of these reach and not k + 1; where there is none, the k-th largest of them.

    By bisection: whatever their order, in a few passes that nothing interrupts.
    """
    low, high = bits.min(), bits.max() + 1
    while high - low > 1:
        middle = low + ((high - low) >> 1)
        n = _n_from(bits, middle)
        if n == k:
            return middle
        if n > k:
            low = middle
        else:
            high = middle
    return low


@kernel()
def _lead(column, leaders, index):
    """Index: the first of the leaders with the largest magnitudes, in order; return the least."""
    bits = np.empty(leaders[0], np.int64)
    for i in range(bits.shape[0]):
        bits[i] = magnitude_bits(column[leaders[1 + i]])
    k = index.shape[0]
    level = _level(bits, k)
    ties = k - _n_from(bits, level + 1)  # room for those at that level
    found, least = 0, column.dtype.type(np.inf)
    for i in range(bits.shape[0]):
        if bits[i] > level or (bits[i] == level and ties > 0):
            ties -= bits[i] == level
            index[found] = leaders[1 + i]
            least = min(least, abs(column[index[found]]))
            found += 1
    return least


@kernel()
def _n_kept(leaders):
    """How many leaders stay where some have to go: fewer than there is room for."""
    return (leaders.shape[0] - 1) * 3 // 4


@kernel()
def _keep(leaders, index):
    """Make these the leaders."""
    leaders[0] = index.shape[0]
    for q in range(index.shape[0]):
        leaders[1 + q] = index[q]


@kernel()
def _join(d, c, j, leaders, ceilings):
    """Let row j be a leader of column c; where there is no room others cease to be."""
    n = leaders[0]
    if n + 1 == leaders.shape[0]:
        best = np.empty(_n_kept(leaders), np.intp)
        # what leaders lost may leave the least of them below others that never were
        ceilings[c] = max(ceilings[c], _lead(d[:, c], leaders, best))
        _keep(leaders, best)
        n = leaders[0]
        if not abs(d[j, c]) > ceilings[c]:
            return
    at = place(leaders, 1, n + 1, j)
    if at <= n and leaders[at] == j:
        return
    for i in range(n, at - 1, -1):
        leaders[i + 1] = leaders[i]
    leaders[at] = j
    leaders[0] = n + 1


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
            sift_down(column, index, np.intp(0))
    return found, top


@kernel()
def _search(d, edges, tree, c, leaders):
    """Make the first places of the largest magnitudes in column c its leaders.

    The tree is walked in the order of the rows, past what cannot have one of them: it is below
    what as many of the former leaders reach, or no more than what has been found.
    """
    column, top_level = d[:, c], edges.shape[0] - 2
    at, end = edges[:-1].copy(), edges[1:].copy()
    index, found = np.empty(min(_n_kept(leaders), d.shape[0]), np.intp), 0
    floor = column.dtype.type(0.0)
    if leaders[0] >= index.shape[0]:
        floor = _lead(column, leaders, index)
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
    everything = index.shape[0] == d.shape[0]
    tree[-1, c] = -1.0 if everything else abs(column[index[0]])
    _sort(index)
    _keep(leaders, index)


@kernel()
def first_k_largest(d, edges, tree, leaders, c, index):
    """Index: the first places of the largest magnitudes in column c, in order; return the largest.

    Places outside of the leaders that are as large as the ceiling may come first: where one could
    be among those looked for, there is a search. Right after it leaders are the first of all.
    """
    column = d[:, c]
    if leaders[c, 0] < index.shape[0] or not _lead(column, leaders[c], index) > tree[-1, c]:
        _search(d, edges, tree, c, leaders[c])
        _lead(column, leaders[c], index)
    largest = 0.0
    for q in range(index.shape[0]):
        largest = max(largest, np.float64(abs(column[index[q]])))
    return largest
