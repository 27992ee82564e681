"""Features as kernels take them: a matrix of floats, or bytes with a scale and an offset.

Bytes come as a pair (codes, affine): uint8 (n, d), and (n, 2) or (1, 2) in the parameters' dtype,
scale and offset of each row or of all. Sample i is affine[i, 0] codes[i] + affine[i, 1]. A block of
samples is decoded into space in the nearest caches when it is needed, so that an eighth or a
quarter of the bytes is read from memory, and everything after that is as for floats.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types

from ._dispatch import ByType
from ._instruction import instruction
from ._jit import kernel
from ._tiles import _fetch, _loop, _Matrix

__all__ = ["ahead_of", "block_features", "block_space", "decode", "n_features"]

#: Bytes in a cache line.
_LINE = 64


def _write_fetch_row(context, A, i):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        matrix = _Matrix(context, builder, signature.args[0], args[0])
        zero = args[1].type(0)
        with _loop(builder, zero, matrix.columns, _LINE) as j:
            _fetch(builder, matrix.at(args[1], j))
        return context.get_dummy_value()

    return types.none(A, types.intp), build


@instruction(_write_fetch_row)
def fetch_row(A: Any, i: Any) -> None:
    """Ask for a row of bytes."""


@kernel(fastmath=frozenset({"contract"}))
def decode(codes, affine, block, ahead, out):
    """out[k] = scale codes[block[k]] + offset."""
    real = out.dtype.type
    for k in range(block.shape[0]):
        if k < ahead.shape[0]:
            fetch_row(codes, ahead[k])
        i = block[k]
        at = min(i, affine.shape[0] - 1)
        scale, offset = affine[at, 0], affine[at, 1]
        row, decoded = codes[i], out[k]
        for j in range(row.shape[0]):
            decoded[j] = real(row[j]) * scale + offset


@kernel()
def _columns(A):
    return A.shape[1]


@kernel()
def _columns_of_bytes(A):
    return A[0].shape[1]


@kernel()
def _no_space(A, length, like):
    return np.empty((0, 1), like.dtype), np.empty(0, np.intp)


@kernel()
def _space_for_bytes(A, length, like):
    return np.empty((length, A[0].shape[1]), like.dtype), np.arange(length)


@kernel()
def _as_they_are(A, block, ahead, space):
    return A, block


@kernel()
def _decoded(A, block, ahead, space):
    decode(A[0], A[1], block, ahead, space[0])
    return space[0], space[1][: block.shape[0]]


@kernel()
def _all_ahead(A, ahead):
    return ahead


@kernel()
def _none_ahead(A, ahead):
    return ahead[:0]


#: Columns of features.
n_features = ByType({tuple: _columns_of_bytes, object: _columns})
#: Space for decoded samples, and their row numbers in it; both empty for floats.
block_space = ByType({tuple: _space_for_bytes, object: _no_space})
#: Features of a block of samples: a matrix, and the samples' rows in it. Those of floats are where
#: they are; bytes are decoded into the space, while the samples ahead are fetched.
block_features = ByType({tuple: _decoded, object: _as_they_are})
#: Rows that a product should fetch on the way: those ahead, or none that are decoded.
ahead_of = ByType({tuple: _none_ahead, object: _all_ahead})
