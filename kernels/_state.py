"""What linear rounds change, see `rounds`."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Entries of the scalars: x = s u, the weight of u in the sum of points, the last step, which of
#: two estimates is valid; on sparse rows, d = scale d̃ and the largest entry of d̃.
SCALE, WEIGHT, LAST_STEP, PARITY, ESTIMATE_SCALE, LARGEST = 0, 1, 2, 3, 4, 5

#: Rows of the tails: the present, x', two estimates in turns, the sum so far, the start.
NOW, OTHER, ESTIMATES, SUM, START = 0, 1, 2, 4, 5


class State(NamedTuple):
    """Arrays; of sparse rows, the first layer is stored (features, rows)."""

    u: Any
    """The first layer, x = s (u + low), see `l1`."""
    low: Any
    other: Any
    """x' where it is kept whole; empty for methods that have no use for it."""
    estimates: Any
    """Two in turns; of sparse rows one, and scratch where there is need of it."""
    start: Any
    """x_1; empty for methods without a pull."""
    total: Any
    """The sum of points so far, less the weight of u in it."""
    tails: Any
    """The other parameters, a row for each of those above."""
    index: Any
    """Places of the last vertex in the first layer, (rows, entries)."""
    value: Any
    scalars: Any
    edges: Any
    """Of sparse rows, levels, bounds and leaders of the estimate, see `bounds`."""
    tree: Any
    leaders: Any
    slots: Any
    """Scratch of sparse rows: a number for each feature, 0 between uses."""
    support: Any
    """Rows of u as it is stored that may be other than zero, see `l1.step`."""
    known: Any
