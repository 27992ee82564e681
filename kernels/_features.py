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
from numba.extending import intrinsic, overload

from ._jit import kernel
from ._tiles import _fetch, _loop, _Matrix

__all__ = ["ahead_of", "block_features", "block_space", "decode", "n_features"]

#: Bytes in a cache line.
_LINE = 64


def n_features(A: Any) -> int:
    """Columns of features."""
    return int(A[0].shape[1] if isinstance(A, tuple) else A.shape[1])


def block_space(A: Any, length: int, like: Any) -> tuple[Any, Any]:
    """Space for decoded samples, and their row numbers in it; both empty for floats."""
    if isinstance(A, tuple):
        return np.empty((length, A[0].shape[1]), like.dtype), np.arange(length)
    return np.empty((0, 1), like.dtype), np.arange(0)


def block_features(A: Any, block: Any, ahead: Any, space: Any) -> tuple[Any, Any]:
    """Features of a block of samples: a matrix, and the samples' rows in it.

    Those of floats are where they are; bytes are decoded into `space`, while the samples `ahead`
    are fetched.
    """
    if not isinstance(A, tuple):
        return A, block
    decode(A[0], A[1], block, ahead, space[0])
    return space[0], space[1][: block.shape[0]]


def ahead_of(A: Any, ahead: Any) -> Any:
    """Rows that a product should fetch on the way: those ahead, or none that are decoded."""
    return ahead[:0] if isinstance(A, tuple) else ahead


@intrinsic
def _fetch_row(context, A, i):  # type: ignore[no-untyped-def]
    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        matrix = _Matrix(context, builder, signature.args[0], args[0])
        zero = args[1].type(0)
        with _loop(builder, zero, matrix.columns, _LINE) as j:
            _fetch(builder, matrix.at(args[1], j))
        return context.get_dummy_value()

    return types.none(A, types.intp), build


def fetch_row(A: Any, i: Any) -> None:
    """Ask for a row of bytes."""


@overload(fetch_row, inline="always")
def _overload_fetch_row(A, i):  # type: ignore[no-untyped-def]
    return lambda A, i: _fetch_row(A, i)


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


def _coded(A: Any) -> bool:
    return isinstance(A, types.BaseTuple)


@overload(n_features, inline="always")
def _overload_n_features(A):  # type: ignore[no-untyped-def]
    return (lambda A: A[0].shape[1]) if _coded(A) else (lambda A: A.shape[1])


@overload(block_space, inline="always")
def _overload_block_space(A, length, like):  # type: ignore[no-untyped-def]
    if _coded(A):
        return lambda A, length, like: (
            np.empty((length, A[0].shape[1]), like.dtype),
            np.arange(length),
        )
    return lambda A, length, like: (np.empty((0, 1), like.dtype), np.arange(0))


@overload(block_features, inline="always")
def _overload_block_features(A, block, ahead, space):  # type: ignore[no-untyped-def]
    if not _coded(A):
        return lambda A, block, ahead, space: (A, block)

    def block_features(A, block, ahead, space):  # type: ignore[no-untyped-def]
        decode(A[0], A[1], block, ahead, space[0])
        return space[0], space[1][: block.shape[0]]

    return block_features


@overload(ahead_of, inline="always")
def _overload_ahead_of(A, ahead):  # type: ignore[no-untyped-def]
    return (lambda A, ahead: ahead[:0]) if _coded(A) else (lambda A, ahead: ahead)
