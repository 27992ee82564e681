"""A hint to the memory system: fetch an entry of an array before it is needed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

__all__ = ["prefetch"]


def prefetch(array: Any, index: int) -> None:
    """Ask for the cache line of ``array[index]`` (1-d, contiguous); changes nothing."""


@intrinsic
def _prefetch(context, array, index):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        flag = ir.IntType(32)
        function = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        )
        pointer = builder.bitcast(builder.gep(data, [args[1]]), byte)
        # read, into the second-level cache, data rather than instructions
        builder.call(function, [pointer, flag(0), flag(2), flag(1)])
        return context.get_dummy_value()

    return types.none(array, types.intp), build


@overload(prefetch, inline="always")
def _overload_prefetch(array, index):  # type: ignore[no-untyped-def]
    if isinstance(array, types.Array):
        return lambda array, index: _prefetch(array, index)
    return None
