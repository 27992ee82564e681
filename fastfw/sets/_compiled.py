"""Sets as compiled rounds take them: rows, each in a set of its own; see ``kernels.sets``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

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


def blocks_of(set: Any) -> tuple[Block, ...] | None:
    """Return what rows a set is made of, as its class says; None if not of rows.

    What a class says is not its subclasses', which may have another oracle.
    """
    own = vars(type(set)).get("_blocks")
    blocks = None if own is None else own(set)
    return None if blocks is None else tuple(blocks)


@lru_cache(maxsize=8)
def kernel_rows(blocks: tuple[Block, ...], n_first: int) -> Any:
    """Return these blocks as in ``kernels.sets``, where nobody writes; the first n have no end."""
    from fastfw.kernels import rng, sets

    counts = [block.n for block in blocks]
    ends = np.cumsum(np.repeat([block.length for block in blocks], counts), dtype=np.intp)
    ends -= ends[n_first - 1] if n_first else 0
    ends[:n_first] = 0
    drawn = [rng.hashed(block.key, r) for block in blocks for r in range(block.n)]
    return sets.Rows(
        kind=np.repeat([getattr(sets, block.kind) for block in blocks], counts),
        radius=np.repeat([float(block.size) for block in blocks], counts),
        count=np.repeat([block.entries for block in blocks], counts),
        drawn=np.array(drawn, np.uint64),
        end=ends,
        address=np.repeat([block.address for block in blocks], counts),
    )
