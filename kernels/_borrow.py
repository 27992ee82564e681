"""Arrays whose references nobody counts.

Numba counts references to an array when it is taken from a tuple or a row of it is looked at, in an
atomic instruction each: small rounds took half of their time for that. What a caller holds as long
as a kernel runs can be borrowed; an array that a kernel has made must be `held` after its last use.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import cgutils

from ._instruction import instruction

__all__ = ["borrow", "hold"]


def _without_count(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        parts = cgutils.unpack_tuple(builder, value, len(kind))
        own = [_without_count(context, builder, *part) for part in zip(kind, parts, strict=True)]
        return context.make_tuple(builder, kind, own)
    return value


def _write_borrow(context, value):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return _without_count(context, builder, value, args[0])

    return value(value), build


@instruction(_write_borrow)
def borrow(value: Any) -> Any:
    """Return arrays, or tuples of them, without a count of references; anything else as it is."""
    return value


def _write_hold(context, value):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return context.get_dummy_value()

    return types.none(value), build


@instruction(_write_hold)
def hold(value: Any) -> None:
    """Keep arrays, of which borrowed ones are used, until here."""
