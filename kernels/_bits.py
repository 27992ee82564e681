"""Floating-point numbers seen as their bits, in loops that vectorise.

Each function has a plain Python body, and for kernels an LLVM bit cast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ._instruction import instruction

__all__ = ["magnitude_bits", "power_of_two"]

#: (integer type, bits of the mantissa, bias of the exponent) by floating type
_LAYOUT = {types.float64: (types.int64, 52, 1023), types.float32: (types.int32, 23, 127)}


def _write_magnitude_bits(context, value):  # type: ignore[no-untyped-def]
    integer = _LAYOUT[value][0]

    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        width = ir.IntType(integer.bitwidth)
        bits = builder.bitcast(args[0], width)
        return builder.and_(bits, ir.Constant(width, 2 ** (integer.bitwidth - 1) - 1))

    return integer(value), build


@instruction(_write_magnitude_bits)
def magnitude_bits(value: Any) -> int:
    """Bits of ``abs(value)`` as an integer: ordered like the magnitudes, NaN above inf."""
    size = value.dtype.itemsize
    return int(abs(value).view(f"i{size}"))


def _write_power_of_two(context, exponent, like):  # type: ignore[no-untyped-def]
    integer, mantissa, bias = _LAYOUT[like]

    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        width = ir.IntType(integer.bitwidth)
        biased = builder.add(args[0], ir.Constant(width, bias))
        bits = builder.shl(biased, ir.Constant(width, mantissa))
        return builder.bitcast(bits, context.get_value_type(like))

    return like(integer, like), build


@instruction(_write_power_of_two)
def power_of_two(exponent: Any, like: Any) -> Any:
    """``2**exponent`` in the type of ``like``, for exponents of normal numbers."""
    return np.ldexp(type(like)(1), exponent)
