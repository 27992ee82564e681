"""How parameter arrays lie in memory for the kernels."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray

__all__ = ["copied", "is_scale", "named_blocks", "padded", "remainder_of", "scaled", "unpadded"]

# Addresses this far apart fall into the same set of a first-level cache.
_ALIAS = 4096
# Entries from which it pays to look whether there is anything but zeros.
_LARGE = 1 << 16
# What rows are moved apart by: eight cache lines.
_SHIFT = 512


def _row_length(d: int, itemsize: int) -> int:
    """Entries per row: d, or a few more where d would put all rows into the same cache sets.

    A tile works on five rows of parameters and four samples side by side. With CIFAR-10's 3,072
    features all nine rows fall into the same eight-way set, and the round takes 1.5 times as long.
    """
    apart = d * itemsize % _ALIAS
    near = min(apart, _ALIAS - apart) < _SHIFT // 2 and d * itemsize >= _ALIAS // 2
    return d + _SHIFT // itemsize if near else d


def copied(a: npt.NDArray[Any], dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """Return a C-contiguous copy, or an empty array itself.

    In large copies zeros that nobody wrote take no memory either.
    """
    if not a.size and dtype is None:
        return a
    if a.size < _LARGE or a.any():
        return np.array(a, dtype, order="C")
    return np.zeros(a.shape, a.dtype if dtype is None else dtype)


def named_blocks(
    x: npt.ArrayLike, shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, npt.NDArray[Any]]:
    """Return the blocks that lie one after the other in a flat array, by name: views."""
    array, size = np.asarray(x), sum(map(math.prod, shapes.values()))
    if array.shape != (size,):
        raise ValueError(f"x must have shape ({size},), but it has {array.shape}")
    blocks, stop = {}, 0
    for name, shape in shapes.items():
        start, stop = stop, stop + math.prod(shape)
        blocks[name] = array[start:stop].reshape(shape)
    return blocks


def padded(x: npt.ArrayLike, dtype: npt.DTypeLike) -> FloatArray:
    """Return a copy of parameters (..., d) as kernels take them; beyond column d it is zero."""
    array = np.asarray(x)
    *leading, d = array.shape
    copy = np.zeros((*leading, _row_length(d, np.dtype(dtype).itemsize)), dtype)
    if array.any():  # zeros that nobody has written to take no memory
        copy[..., :d] = array
    return copy


def unpadded(x: FloatArray, d: int) -> FloatArray:
    """Return the d columns that count, C-contiguous: x itself where there are no more."""
    return np.ascontiguousarray(x[..., :d])


def remainder_of(u: FloatArray) -> FloatArray:
    """Return space for what rounding takes from u, see ``kernels.l1``: none in float64."""
    return np.zeros(u.shape if u.dtype == np.float32 else (0, 0), u.dtype)


def scaled(u: FloatArray, low: FloatArray, s: float, dtype: npt.DTypeLike) -> FloatArray:
    """Return s (u + low), found in float64, as an array of a dtype."""
    from fastfw.kernels import l1

    out = np.empty(u.shape, dtype)
    l1.point(u, low, s, out)
    return out


def is_scale(s: float, largest: float = 1.0) -> bool:
    """Whether kernels may have left such a scale of an iterate behind."""
    from fastfw.kernels.l1 import SMALLEST_NARROW

    return SMALLEST_NARROW <= s <= largest
