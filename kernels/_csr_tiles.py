"""Products of one sparse row with parameters stored (features, classes), as vector instructions.

The classes of a feature lie side by side: a nonzero of a row serves all of them with one or two
loads. Classes are taken 16, 8, 4, 2 and 1 at a time, so that nothing beyond them is touched.
See `_tiles`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types

from ._instruction import instruction
from ._tiles import _CONTRACT, _add_product, _loop, _Matrix, _splat, _variable

__all__ = ["WIDTHS", "row_products", "row_updates"]

#: Classes per tile.
WIDTHS = (16, 8, 4, 2, 1)


def _products(width: int) -> Callable[..., None]:
    def tile(values, places, low, high, U, c, z):  # type: ignore[no-untyped-def]
        """z[c:c+width] += Σ values[q] U[places[q], c:c+width] over q from low to high."""
        z[c : c + width] += values[low:high] @ U[places[low:high], c : c + width]

    return tile


def _updates(width: int) -> Callable[..., None]:
    def tile(values, places, low, high, r, c, G):  # type: ignore[no-untyped-def]
        """G[places[q], c:c+width] += values[q] r[c:c+width] for q from low to high."""
        G[places[low:high], c : c + width] += values[low:high, None] * r[c : c + width]

    return tile


class _Row:
    """Values and places of a sparse row inside generated code."""

    def __init__(self, context: Any, builder: Any, kinds: Any, values: Any, places: Any) -> None:
        arrays = zip(kinds, (values, places), strict=True)
        data = [context.make_array(kind)(context, builder, a).data for kind, a in arrays]
        self.builder, (self.values, self.places) = builder, data

    def place(self, q: Any) -> Any:
        j = self.builder.load(self.builder.gep(self.places, [q]))
        return self.builder.sext(j, q.type) if j.type.width < q.type.width else j

    def value(self, q: Any, lanes: int) -> Any:
        return _splat(self.builder, self.builder.load(self.builder.gep(self.values, [q])), lanes)


def _vector(array: _Matrix, lanes: int) -> Any:
    return ir.VectorType(array.type, lanes) if lanes > 1 else array.type


def _pointer(builder: Any, array: Any, k: Any, lanes: int, kind: Any) -> Any:
    return builder.bitcast(builder.gep(array, [k]), kind.as_pointer())


def _build_products(width: int) -> Any:
    def tile(context, values, places, low, high, U, c, z):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
            row = _Row(context, builder, signature.args[:2], *args[:2])
            low, high, c = args[2], args[3], args[5]
            U = _Matrix(context, builder, signature.args[4], args[4])
            kind = _vector(U, width)
            data = context.make_array(signature.args[6])(context, builder, args[6]).data
            own = _pointer(builder, data, c, width, kind)
            # two sums: one multiply-add takes longer to finish than several to begin
            zero = ir.Constant(kind, None if width > 1 else 0.0)
            sums = [_variable(builder, v) for v in (builder.load(own, align=U.size), zero)]
            even = builder.sub(high, builder.srem(builder.sub(high, low), low.type(2)))
            with _loop(builder, low, even, 2) as q:
                for k, slot in enumerate(sums):
                    p = builder.add(q, q.type(k))
                    _add_product(builder, slot, row.value(p, width), U.load(row.place(p), c, width))
            with _loop(builder, even, high, 1) as q:
                _add_product(builder, sums[0], row.value(q, width), U.load(row.place(q), c, width))
            total = builder.fadd(*(builder.load(slot) for slot in sums))
            builder.store(total, own, align=U.size)
            return context.get_dummy_value()

        n = types.intp
        return types.none(values, places, n, n, U, n, z), build

    return tile


def _build_updates(width: int) -> Any:
    def tile(context, values, places, low, high, r, c, G):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
            row = _Row(context, builder, signature.args[:2], *args[:2])
            low, high, c = args[2], args[3], args[5]
            G = _Matrix(context, builder, signature.args[6], args[6])
            kind = _vector(G, width)
            data = context.make_array(signature.args[4])(context, builder, args[4]).data
            weights = builder.load(_pointer(builder, data, c, width, kind), align=G.size)
            with _loop(builder, low, high, 1) as q:
                j = row.place(q)
                product = builder.fmul(row.value(q, width), weights, flags=_CONTRACT)
                G.store(builder.fadd(G.load(j, c, width), product, flags=_CONTRACT), j, c, width)
            return context.get_dummy_value()

        n = types.intp
        return types.none(values, places, n, n, r, n, G), build

    return tile


#: By number of classes.
row_products = {width: instruction(_build_products(width))(_products(width)) for width in WIDTHS}
row_updates = {width: instruction(_build_updates(width))(_updates(width)) for width in WIDTHS}
