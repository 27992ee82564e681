"""Random numbers as pure functions of where they are used: no state, no order.

The number of entry i under a key is the i-th output of SplitMix64 started at that key: the
finaliser of Stafford's variant 13, of key + (i + 1) times the golden ratio (Steele, Lea, Flood,
"Fast splittable pseudorandom number generators", OOPSLA 2014). A key is such a hash itself: of
the seed, then of what is drawn, the round t and the inner step k, one after the other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ._instruction import instruction
from ._jit import kernel

__all__ = ["NOISE", "ROWS", "draw_batches", "draw_rows", "hashed", "key", "magnitude", "unit"]

#: What is drawn: the second part of a key.
NOISE, ROWS = 0, 1

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15
_FIRST = 0xBF58476D1CE4E5B9
_SECOND = 0x94D049BB133111EB


def _write_hashed(context, key, i):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        word = ir.IntType(64)
        z = builder.mul(builder.add(args[1], word(1)), word(_GOLDEN))
        z = builder.add(args[0], z)
        for shift, factor in ((30, _FIRST), (27, _SECOND)):
            z = builder.mul(builder.xor(z, builder.lshr(z, word(shift))), word(factor))
        return builder.xor(z, builder.lshr(z, word(31)))

    return types.uint64(types.uint64, types.uint64), build


@instruction(_write_hashed)
def hashed(key: Any, i: Any) -> Any:
    """64 random bits: output i = 0, 1, ... of SplitMix64 started at `key`."""
    z = (int(key) + (int(i) + 1) * _GOLDEN) & _MASK
    z = ((z ^ (z >> 30)) * _FIRST) & _MASK
    z = ((z ^ (z >> 27)) * _SECOND) & _MASK
    return np.uint64(z ^ (z >> 31))


def _write_unit(context, bits):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        # The mantissa of a number of [1, 2): unlike a conversion, this vectorises everywhere.
        word = ir.IntType(64)
        mantissa = builder.or_(builder.lshr(args[0], word(12)), word(0x3FF0000000000000))
        return builder.fsub(builder.bitcast(mantissa, ir.DoubleType()), ir.DoubleType()(1.0))

    return types.float64(types.uint64), build


@instruction(_write_unit)
def unit(bits: Any) -> Any:
    """A number of [0, 1) from the upper 52 of 64 bits: a multiple of 2**-52."""
    return np.float64((int(bits) >> 12) * 2.0**-52)


def _write_magnitude(context, bits, like):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        value = builder.bitcast(args[0], context.get_value_type(like))
        return context.cast(builder, value, like, types.float64)

    return types.float64(bits, like), build


@instruction(_write_magnitude)
def magnitude(bits: Any, like: Any) -> Any:
    """The number >= 0 whose bits are those of an integer, in float64; see `magnitude_bits`."""
    size = like.dtype.itemsize
    return np.float64(np.array(bits, f"i{size}").view(f"f{size}")[()])


@kernel()
def key(seed, what, t, k):
    """Key of inner step k in round t for what is drawn (`NOISE` or `ROWS`)."""
    return hashed(hashed(hashed(seed, what), t), k)


@kernel()
def draw_rows(seed, t, k, n, out):
    """out[i] = a number of 0, ..., n - 1, with replacement: positions of a sub-batch.

    The upper 32 bits are scaled to the range (n < 2**31); no number's probability is off by
    more than 2**-32.
    """
    own = key(seed, ROWS, t, k)
    for i in range(out.shape[0]):
        out[i] = np.intp((np.int64(hashed(own, i) >> np.uint64(32)) * np.int64(n)) >> 32)


@kernel()
def draw_batches(seed, t, n, whole, starts, rows):
    """Rows of the iterations t, t + 1, ...: 0, ..., n - 1 where `whole` says so, else drawn.

    Iteration t + i has rows[starts[i]:starts[i + 1]]; what is drawn depends on seed and t + i only.
    """
    for i in range(whole.shape[0]):
        own = rows[starts[i] : starts[i + 1]]
        if whole[i]:
            for k in range(own.shape[0]):
                own[k] = k
        else:
            draw_rows(seed, t + i, 0, n, own)
