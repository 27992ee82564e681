"""Sets as compiled rounds take them: rows, each in a set of its own; see ``kernels.sets``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fastfw.sets.ksparse import KSparsePolytope, RowKSparsePolytope
from fastfw.sets.l1 import L1Ball
from fastfw.sets.own import CompiledSet
from fastfw.sets.product import ProductSet
from fastfw.sets.rows import RowL1Ball
from fastfw.sets.simplex import Simplex

__all__ = ["Block", "blocks_of", "kernel_rows"]


class Block(NamedTuple):
    """Rows that are alike."""

    kind: str
    """Name of the kind in ``kernels.sets``."""
    n: int
    """Number of rows."""
    length: int
    """Entries of a row."""
    size: float
    """Size of a vertex' entries."""
    entries: int = 1
    """Number of a vertex' entries in a row."""
    key: Any = np.uint64(0)
    """Of random ties."""
    address: int = 0
    """Of a function of the user's."""


def _l1(set: Any, n: int, length: int) -> Block:
    kind = "L1" if set.ties == "first" else "L1_RANDOM"
    return Block(kind, n, length, set.radius, 1, set.tie_key)


def _k_sparse(set: Any, n: int, length: int, size: float) -> Block:
    return Block("SPARSE_ENTRIES", n, length, size, set.k)


def _own(set: Any) -> Block | None:
    if not set.compiled:
        return None
    n, length = (1, *set.shape)[-2:]
    return Block("OWN", n, length, math.nan, set.entries, address=set.address)


#: What rows a set is made of, by its class.
_BLOCKS: dict[type, Callable[[Any], Block | None]] = {
    CompiledSet: _own,
    RowL1Ball: lambda set: _l1(set, *set.shape),
    L1Ball: lambda set: _l1(set, 1, *set.shape),
    Simplex: lambda set: Block("SIMPLEX", 1, set.shape[0], set.radius),
    RowKSparsePolytope: lambda set: _k_sparse(set, set.shape[0], set.shape[1], set.radius / set.k),
    KSparsePolytope: lambda set: _k_sparse(set, 1, math.prod(set.shape), set.radius),
}


def blocks_of(set: Any) -> list[Block] | None:
    """Return what rows a set is made of, those of a product in its order; None if not of rows."""
    if type(set) is ProductSet:
        found: list[Block] = []
        for own in map(blocks_of, set.sets.values()):
            if own is None:
                return None
            found += own
        return found
    make = _BLOCKS.get(type(set))
    block = None if make is None else make(set)
    return None if block is None else [block]


def kernel_rows(blocks: list[Block], n_first: int) -> Any:
    """Return these blocks as in ``kernels.sets``; the first n rows have no end."""
    from fastfw.kernels import rng, sets

    counts = [block.n for block in blocks]
    radii = np.repeat([float(block.size) for block in blocks], counts)
    ends = np.cumsum([block.length for block in blocks for _ in range(block.n)])
    ends -= ends[n_first - 1] if n_first else 0
    ends[:n_first] = 0
    ends = ends.astype(np.intp)
    drawn = [rng.hashed(block.key, r) for block in blocks for r in range(block.n)]
    return sets.Rows(
        np.repeat([getattr(sets, block.kind) for block in blocks], counts),
        radii,
        np.repeat([block.entries for block in blocks], counts),
        np.array(drawn, np.uint64),
        ends,
        np.repeat([block.address for block in blocks], counts),
    )
