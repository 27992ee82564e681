"""Product of a sparse column with many residuals, as vector instructions; see `_tiles`."""

from __future__ import annotations

from numba import types

from ._instruction import instruction
from ._jit import kernel
from ._tiles import _add_product, _lanes, _loop, _Matrix, _splat, _variable

__all__ = ["SPREAD", "gather_tile", "tile_width"]

#: Bytes of residuals that a tile keeps in registers: eight of the longest vectors.
SPREAD = 512


@kernel()
def tile_width(itemsize):
    """Residuals per tile."""
    return SPREAD // itemsize


def _write(context, values, places, low, high, R, k, G, j):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        values, places = (
            context.make_array(signature.args[n])(context, builder, args[n]).data for n in (0, 1)
        )
        low, high, k, j = args[2], args[3], args[5], args[7]
        R, G = (_Matrix(context, builder, signature.args[n], args[n]) for n in (4, 6))
        lanes = _lanes(context, R.size)
        steps = [builder.add(k, k.type(m)) for m in range(0, SPREAD // R.size, lanes)]
        slots = [_variable(builder, G.load(j, step, lanes)) for step in steps]
        with _loop(builder, low, high, 1) as q:
            i = builder.load(builder.gep(places, [q]))
            a = _splat(builder, builder.load(builder.gep(values, [q])), lanes)
            for slot, step in zip(slots, steps, strict=True):
                _add_product(builder, slot, a, R.load(i, step, lanes))
        for slot, step in zip(slots, steps, strict=True):
            G.store(builder.load(slot), j, step, lanes)
        return context.get_dummy_value()

    n = types.intp
    return types.none(values, places, n, n, R, n, G, n), build


@instruction(_write)
def gather_tile(values, places, low, high, R, k, G, j):  # type: ignore[no-untyped-def]
    """G[j, k:k+w] += Σ values[q] R[places[q], k:k+w] over q from low to high; w as `tile_width`."""
    w = tile_width(R.itemsize)
    G[j, k : k + w] += values[low:high] @ R[places[low:high], k : k + w]
