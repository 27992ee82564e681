"""Sparse rows: losses, gradients, and the vertex of l1 balls.

Features come as a CSR matrix whose indices increase within a row, the first layer is stored
(features, rows): see `_csr_tiles`. Losses and gradients cost the batch's nonzeros times rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._bits import magnitude_bits
from ._csr_tiles import row_products, row_updates
from ._jit import REASSOCIATE, kernel
from .gradients import (
    ADDED,
    DENSE_PREVIOUS,
    FIRST,
    LONGEST_BLOCK,
    NO_PREVIOUS,
    ONE_VERTEX_BACK,
    scaled,
)
from .models import block_losses, head, workspace
from .sets import row_vertex


class CSR(NamedTuple):
    """Features as a CSR matrix."""

    indptr: Any
    indices: Any
    data: Any


#: Features searched together for the largest entries of the estimate.
SEARCHED = 256

_products_16, _products_8, _products_4 = row_products[16], row_products[8], row_products[4]
_products_2, _products_1 = row_products[2], row_products[1]
_updates_16, _updates_8, _updates_4 = row_updates[16], row_updates[8], row_updates[4]
_updates_2, _updates_1 = row_updates[2], row_updates[1]


@kernel()
def products(values, places, low, high, u, z):
    """Add Σ values[q] u[places[q]] over q from low to high to z."""
    n_classes = u.shape[1]
    c = 0
    while c < n_classes:
        left = n_classes - c
        if left >= 16:
            _products_16(values, places, low, high, u, c, z)
            c += 16
        elif left >= 8:
            _products_8(values, places, low, high, u, c, z)
            c += 8
        elif left >= 4:
            _products_4(values, places, low, high, u, c, z)
            c += 4
        elif left >= 2:
            _products_2(values, places, low, high, u, c, z)
            c += 2
        else:
            _products_1(values, places, low, high, u, c, z)
            c += 1


@kernel()
def updates(values, places, low, high, r, g):
    """Add values[q] r to g[places[q]] for q from low to high."""
    n_classes = g.shape[1]
    c = 0
    while c < n_classes:
        left = n_classes - c
        if left >= 16:
            _updates_16(values, places, low, high, r, c, g)
            c += 16
        elif left >= 8:
            _updates_8(values, places, low, high, r, c, g)
            c += 8
        elif left >= 4:
            _updates_4(values, places, low, high, r, c, g)
            c += 4
        elif left >= 2:
            _updates_2(values, places, low, high, r, c, g)
            c += 2
        else:
            _updates_1(values, places, low, high, r, c, g)
            c += 1


@kernel()
def place(places, low, high, j):
    """First of the increasing places[low:high] that is not below j, by bisection; high if none."""
    while low < high:
        middle = (low + high) >> 1
        if places[middle] < j:
            low = middle + 1
        else:
            high = middle
    return low


@kernel()
def _tabulate(index, moved, slots, table):
    """Table[slots[j], c] = the sum of moved[c] at feature j, for the features with an entry."""
    n = 0
    for c in range(index.shape[0]):
        for k in range(index.shape[1]):
            j = index[c, k]
            if slots[j] == 0:
                n += 1
                slots[j] = n
                for i in range(table.shape[1]):
                    table[n, i] = 0.0
            table[slots[j], c] += table.dtype.type(moved[c, k])


@kernel()
def _take_back(A, block, slots, table, Z):
    """Subtract the products of samples and the entries of `_tabulate` from Z."""
    for i in range(block.shape[0]):
        for q in range(A.indptr[block[i]], A.indptr[block[i] + 1]):
            slot = slots[A.indices[q]]
            if slot > 0:
                for c in range(Z.shape[0]):
                    Z[c, i] -= table[slot, c] * A.data[q]


@kernel()
def outputs(A, rows, u, Z):
    """Z[k] = u A[rows[k]]."""
    for k in range(rows.shape[0]):
        for c in range(u.shape[1]):
            Z[k, c] = u.dtype.type(0.0)
        low, high = np.intp(A.indptr[rows[k]]), np.intp(A.indptr[rows[k] + 1])
        products(A.data, A.indices, low, high, u, Z[k])


@kernel()
def add_gradient(A, rows, R, g):
    """Add Σ_k A[rows[k]] ⊗ R[k] to g."""
    for k in range(rows.shape[0]):
        low, high = np.intp(A.indptr[rows[k]]), np.intp(A.indptr[rows[k] + 1])
        updates(A.data, A.indices, low, high, R[k], g)


@kernel()
def transposed(rows, s, block):
    """Block[:, i] = s rows[i]; further columns become 0."""
    real = block.dtype.type
    scale = real(s)
    n = rows.shape[0]
    for c in range(block.shape[0]):
        for i in range(n):
            block[c, i] = scale * rows[i, c]
        for i in range(n, block.shape[1]):
            block[c, i] = real(0.0)


@kernel()
def sample_losses(A, model, y, rows, u, tail, out):
    """out[k] = the loss of sample rows[k]."""
    n_rows = u.shape[1]
    first = np.empty((rows.shape[0], n_rows), u.dtype)
    outputs(A, rows, u, first)
    Z = np.empty((n_rows, LONGEST_BLOCK), u.dtype)
    space = workspace(model, Z, tail)
    for start in range(0, rows.shape[0], LONGEST_BLOCK):
        block = rows[start : start + LONGEST_BLOCK]
        n = block.shape[0]
        transposed(first[start : start + n], 1.0, Z)
        block_losses(model, space, Z, tail, y, block, out[start : start + n])


@kernel()
def room_for(model, u, tail, n, entries):
    """Room that `residuals` needs for batches of up to n samples and vertices of some entries."""
    Z = np.empty((u.shape[1], min(LONGEST_BLOCK, (n + 7) // 8 * 8)), u.dtype)
    table = np.empty((1 + entries, u.shape[1]), u.dtype)
    return Z, np.empty_like(Z), workspace(model, Z, tail), table


@kernel()
def residuals(
    A, model, y, rows, u, s, tail, mode, previous, tail_previous, index, moved, slots, shrink,
    alpha, beta, R, tail_gradient, room,
):  # fmt: skip
    """Loss at x = s u; alpha times the derivative at x by the outputs, less beta times that at x'.

    Those of rows[k] are in R[k]; the derivatives by the tail are added up. x' is another point, in
    one of the ways of `gradients.recursive_gradient`. `room` is that of `room_for`.
    """
    n_rows = u.shape[1]
    real = u.dtype.type
    Z, r, space, table = room
    other = R[:0]
    if mode == DENSE_PREVIOUS:
        other = np.empty_like(R)
        outputs(A, rows, previous, other)
    outputs(A, rows, u, R)
    for j in range(tail_gradient.shape[0]):
        tail_gradient[j] = 0.0
    if mode == ONE_VERTEX_BACK:
        _tabulate(index, moved, slots, table)
    loss = 0.0
    for start in range(0, rows.shape[0], LONGEST_BLOCK):
        block = rows[start : start + LONGEST_BLOCK]
        n = block.shape[0]
        transposed(R[start : start + n], s, Z)
        loss += head(model, space, Z, tail, y, block, alpha, r, FIRST, tail_gradient)
        if mode != NO_PREVIOUS:
            if mode == ONE_VERTEX_BACK:
                _take_back(A, block, slots, table, Z)
                scaled(Z, real(shrink))
            else:
                transposed(other[start : start + n], 1.0, Z)
            head(model, space, Z, tail_previous, y, block, -beta, r, ADDED, tail_gradient)
        for i in range(n):
            for c in range(n_rows):
                R[start + i, c] = r[c, i]
    if mode == ONE_VERTEX_BACK:
        for c in range(index.shape[0]):
            for k in range(index.shape[1]):
                slots[index[c, k]] = 0
    return loss


@kernel()
def loss_and_gradient(A, model, y, rows, u, tail, g, tail_gradient):
    """Sum of losses, returned, and of gradients: added to g, and written to the tail's."""
    R = np.empty((rows.shape[0], u.shape[1]), u.dtype)
    index, moved = np.empty((0, 1), np.intp), np.empty((0, 1), np.float64)
    loss = residuals(
        A, model, y, rows, u, 1.0, tail, NO_PREVIOUS, u, tail, index, moved, np.empty(0, np.int32),
        1.0, 1.0, 0.0, R, tail_gradient, room_for(model, u, tail, rows.shape[0], 0),
    )  # fmt: skip
    add_gradient(A, rows, R, g)
    return loss


@kernel(fastmath=REASSOCIATE)
def _sum_of_magnitudes(values):
    total = 0.0
    for q in range(values.shape[0]):
        total += abs(np.float64(values[q]))
    return total


@kernel()
def added(A, rows, R):
    """A bound on how much `add_gradient` changes an entry, and how many nonzeros it goes through.

    The bound is not finite where R or A is not.
    """
    total, touched = 0.0, np.intp(0)
    for k in range(rows.shape[0]):
        low, high = np.intp(A.indptr[rows[k]]), np.intp(A.indptr[rows[k] + 1])
        total += _sum_of_magnitudes(R[k]) * _sum_of_magnitudes(A.data[low:high])
        touched += high - low
    return total, touched


@kernel()
def scale_all(d, scale):
    """Multiply all of d by a scale."""
    keep = d.dtype.type(scale)
    flat = d.reshape(-1)
    for j in range(flat.shape[0]):
        flat[j] *= keep


@kernel()
def _maxima(d, bits):
    """bits[k] = the largest magnitude in column k of d, by its bits."""
    for k in range(d.shape[1]):
        bits[k] = magnitude_bits(d[0, k])
    for i in range(1, d.shape[0]):
        for k in range(d.shape[1]):
            other = magnitude_bits(d[i, k])
            bits[k] = other if other > bits[k] else bits[k]


@kernel(fastmath=REASSOCIATE)
def _pulled(d, scale, strength, u, s, start, out):
    """Out = scale d + strength (s u - start)."""
    for i in range(out.shape[0]):
        out[i] = scale * d[i] + strength * (s * u[i] - start[i])


@kernel()
def _direction(d, scale, strength, u, s, start, first, last, made):
    """Features from first on, before last, of the direction of `l1_vertex`, in one row."""
    n_rows = d.shape[1]
    low, high = first * n_rows, last * n_rows
    flat = d.reshape(-1)[low:high]
    if strength == 0.0:
        return flat
    real = d.dtype.type
    part = made[: high - low]
    _pulled(
        flat, real(scale), real(strength), u.reshape(-1)[low:high], real(s),
        start.reshape(-1)[low:high], part,
    )  # fmt: skip
    return part


@kernel()
def l1_vertex(d, scale, strength, u, s, start, radius, index, value):
    """Vertex of l1 balls for the direction scale d + strength (s u - start); its largest magnitude.

    All are (features, rows). Without `strength` the direction is d, whatever its scale. Features
    are searched block by block. Where a block has a new largest entry, its place is looked for
    after the sweep. Within a block eight features at a time make long rows.
    """
    n, n_rows = d.shape
    wide = 8 * n_rows
    bits = np.zeros(wide, np.int64)
    best = np.full(n_rows, -1, np.int64)
    where = np.zeros(n_rows, np.intp)
    made = np.empty(SEARCHED * n_rows if strength != 0.0 else 0, d.dtype)
    for first in range(0, n, SEARCHED):
        last = min(first + SEARCHED, n)
        part = _direction(d, scale, strength, u, s, start, first, last, made)
        whole = (last - first) // 8 * wide
        for k in range(wide):
            bits[k] = 0
        if whole > 0:
            _maxima(part[:whole].reshape(-1, wide), bits)
        for k in range(whole, part.shape[0]):
            c = (k - whole) % n_rows
            bits[c] = max(bits[c], np.int64(magnitude_bits(part[k])))
        for k in range(wide):
            c = k % n_rows
            if bits[k] > best[c]:
                best[c] = bits[k]
                where[c] = first
    largest = 0.0
    for c in range(n_rows):
        last = min(where[c] + SEARCHED, n)
        part = _direction(d, scale, strength, u, s, start, where[c], last, made)
        j = 0
        while np.int64(magnitude_bits(part[j * n_rows + c])) != best[c]:
            j += 1
        entry = part[j * n_rows + c]
        index[c, 0] = where[c] + j
        value[c, 0] = -radius[c] if entry >= 0 else radius[c]
        largest = max(largest, abs(np.float64(entry)))
    return largest


@kernel()
def direction_of(d, scale, strength, u, s, start, c):
    """Row c of the direction of `l1_vertex`, written out."""
    real = d.dtype.type
    row = np.empty(d.shape[0], d.dtype)
    for j in range(row.shape[0]):
        row[j] = real(scale) * d[j, c]
    if strength != 0.0:
        for j in range(row.shape[0]):
            row[j] += real(strength) * (real(s) * u[j, c] - start[j, c])
    return row


@kernel()
def rows_vertex(set, d, scale, strength, u, s, start, index, value):
    """As `l1_vertex` for any set made of rows, whose directions are written out one at a time.

    Returns the largest magnitude in d; infinity where a direction is not finite.
    """
    largest = 0.0
    for c in range(d.shape[1]):
        for j in range(d.shape[0]):
            largest = max(largest, abs(np.float64(d[j, c])))
        row = direction_of(d, scale, strength, u, s, start, c)
        if not row_vertex(set, row, c, index[c], value[c]):
            return np.inf
    return largest
