"""The sweep of a base learner's sum as vector instructions; see `_tiles`.

One pass over 4 samples and up to 5 classes updates the estimator and the sum and notes how large
the sum's entries are, block by block, for the search that follows. It asks for the rows that the
next tile needs, as sums of many base learners come from main memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from ._instruction import instruction
from ._tiles import (
    _CONTRACT,
    GROUP,
    WIDEST,
    _fetch,
    _lanes,
    _loop,
    _Matrix,
    _splat,
    _variable,
    _whole_vectors,
)

__all__ = ["BLOCK", "sweep_tile"]

#: Entries of a row whose largest magnitude is noted; a multiple of the longest vector.
BLOCK = 64


def _sweep(width: int) -> Callable[..., None]:
    def tile(A, i0, i1, i2, i3, R, c, k, keep, D, S, row, tops):  # type: ignore[no-untyped-def]
        """D = keep D + R[:, k:k+4] A[i], S[row:] += D; tops[:, b] = max |S| in block b.

        D, R and tops from row c on. `tops` comes in filled with zeros.
        """
        a, d = A[[i0, i1, i2, i3]], A.shape[1]
        classes, sums = slice(c, c + width), S[row : row + width, :d]
        D[classes, :d] = keep * D[classes, :d] + R[classes, k : k + GROUP] @ a
        sums += D[classes, :d]
        starts = np.arange(0, d, BLOCK)
        tops[classes, : len(starts)] = np.maximum.reduceat(np.abs(sums), starts, axis=1)

    return tile


def _larger(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered(">", a, b), a, b)


def _magnitude(builder: Any, value: Any, size: int, lanes: int) -> Any:
    """The value or vector without its signs."""
    integer = ir.IntType(8 * size)
    rest = 2 ** (8 * size - 1) - 1
    kind = integer if lanes == 1 else ir.VectorType(integer, lanes)
    mask = ir.Constant(kind, rest if lanes == 1 else [rest] * lanes)
    return builder.bitcast(builder.and_(builder.bitcast(value, kind), mask), value.type)


def _largest(builder: Any, vector: Any, lanes: int) -> Any:
    """Largest of a vector's entries, by halves."""
    while lanes > 1:
        lanes //= 2
        index = ir.VectorType(ir.IntType(32), lanes)
        nothing = ir.Constant(vector.type, ir.Undefined)
        low = builder.shuffle_vector(vector, nothing, ir.Constant(index, list(range(lanes))))
        high = builder.shuffle_vector(
            vector, nothing, ir.Constant(index, list(range(lanes, 2 * lanes)))
        )
        vector = _larger(builder, low, high)
    return builder.extract_element(vector, ir.IntType(32)(0))


def _build_sweep(width: int) -> Any:
    def tile(context, A, i0, i1, i2, i3, R, c, k, keep, D, S, row, tops):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
            A, R, D, S, tops = (
                _Matrix(context, builder, signature.args[n], args[n]) for n in (0, 5, 9, 10, 12)
            )
            samples, c, k, keep, row = args[1:5], args[6], args[7], args[8], args[11]
            classes = [builder.add(c, c.type(m)) for m in range(width)]
            sums = [builder.add(row, row.type(m)) for m in range(width)]
            ahead = [builder.add(row, row.type(m + width)) for m in range(width)]
            columns = [builder.add(k, k.type(r)) for r in range(GROUP)]
            single = [[R.load(m, r, 1) for r in columns] for m in classes]
            zero, end, block = c.type(0), A.columns, c.type(BLOCK)

            def advance(j: Any, lanes: int, weights: Any, kept: Any) -> list[Any]:
                """Update `lanes` entries of all classes from j on; their new magnitudes."""
                a = [A.load(i, j, lanes) for i in samples]
                magnitudes = []
                for m in range(width):
                    d = builder.fmul(D.load(classes[m], j, lanes), kept)
                    for r in range(GROUP):
                        product = builder.fmul(weights[m][r], a[r], flags=_CONTRACT)
                        d = builder.fadd(d, product, flags=_CONTRACT)
                    D.store(d, classes[m], j, lanes)
                    s = builder.fadd(S.load(sums[m], j, lanes), d)
                    S.store(s, sums[m], j, lanes)
                    magnitudes.append(_magnitude(builder, s, S.size, lanes))
                    if lanes > 1:
                        _fetch(builder, S.at(ahead[m], j))
                return magnitudes

            lanes = _lanes(context, S.size)
            middle = _whole_vectors(builder, zero, end, lanes)
            weights = [[_splat(builder, w, lanes) for w in own] for own in single]
            kept = _splat(builder, keep, lanes)
            none = ir.Constant(ir.VectorType(S.type, lanes), None)
            slots = [_variable(builder, none) for _ in range(width)]
            with _loop(builder, zero, middle, BLOCK) as start:
                full = builder.add(start, block)
                stop = builder.select(builder.icmp_signed("<", full, middle), full, middle)
                for slot in slots:
                    builder.store(none, slot)
                with _loop(builder, start, stop, lanes) as j:
                    for slot, size in zip(slots, advance(j, lanes, weights, kept), strict=True):
                        builder.store(_larger(builder, size, builder.load(slot)), slot)
                b = builder.sdiv(start, block)
                for m, slot in enumerate(slots):
                    tops.store(_largest(builder, builder.load(slot), lanes), classes[m], b, 1)
            with _loop(builder, middle, end, 1) as j:
                b = builder.sdiv(j, block)
                for m, size in enumerate(advance(j, 1, single, keep)):
                    before = tops.load(classes[m], b, 1)
                    tops.store(_larger(builder, size, before), classes[m], b, 1)
            return context.get_dummy_value()

        n = types.intp
        return types.none(A, n, n, n, n, R, n, n, S.dtype, D, S, n, tops), build

    return tile


#: By number of classes.
sweep_tile = {
    width: instruction(_build_sweep(width))(_sweep(width)) for width in range(1, WIDEST + 1)
}
