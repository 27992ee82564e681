"""Floating-point numbers seen as their bits, in loops that vectorise.

Each function has a plain Python body, used when the JIT is disabled, and an overload
made of an LLVM bit cast.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

__all__ = ["magnitude_bits", "power_of_two"]

#: (integer type, bits of the mantissa, bias of the exponent) by floating type
_LAYOUT = {types.float64: (types.int64, 52, 1023), types.float32: (types.int32, 23, 127)}


def magnitude_bits(value: Any) -> int:
    """Bits of ``abs(value)`` as an integer: ordered like the magnitudes, NaN above inf."""
    size = value.dtype.itemsize
    return int(abs(value).view(f"i{size}"))


def power_of_two(exponent: Any, like: Any) -> Any:
    """``2**exponent`` in the type of ``like``, for exponents of normal numbers."""
    return np.ldexp(type(like)(1), exponent)


@intrinsic
def _magnitude_bits(context, value):  # type: ignore[no-untyped-def]
    integer = _LAYOUT[value][0]

    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        width = ir.IntType(integer.bitwidth)
        bits = builder.bitcast(args[0], width)
        return builder.and_(bits, ir.Constant(width, 2 ** (integer.bitwidth - 1) - 1))

    return integer(value), build


@intrinsic
def _power_of_two(context, exponent, like):  # type: ignore[no-untyped-def]
    integer, mantissa, bias = _LAYOUT[like]

    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        width = ir.IntType(integer.bitwidth)
        biased = builder.add(args[0], ir.Constant(width, bias))
        bits = builder.shl(biased, ir.Constant(width, mantissa))
        return builder.bitcast(bits, context.get_value_type(like))

    return like(integer, like), build


@overload(magnitude_bits, inline="always")
def _overload_magnitude_bits(value):  # type: ignore[no-untyped-def]
    if value in _LAYOUT:
        return lambda value: _magnitude_bits(value)
    return None


@overload(power_of_two, inline="always")
def _overload_power_of_two(exponent, like):  # type: ignore[no-untyped-def]
    if like == types.float64:
        return lambda exponent, like: _power_of_two(np.int64(exponent), like)
    if like == types.float32:
        return lambda exponent, like: _power_of_two(np.int32(exponent), like)
    return None
