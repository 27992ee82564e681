"""Functions of the user's, which compiled rounds call by their addresses.

So rounds are compiled once for all functions, and kept; what is compiled for a function is an
adapter around it, of the same type for all.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.numpy_support import from_dtype

from ._jit import kernel

__all__ = ["Function", "Gathered", "evaluate", "function_rounds"]


class Gathered(NamedTuple):
    """Features as functions take them: arrays whose rows are gathered for each batch."""

    X: Any


class Function(NamedTuple):
    """A model: a loss and its gradient."""

    address: Any
    """That of an adapter, for these types of points, features and labels, see `adapted`."""
    n_rows: Any
    """Rows in which points are handed over, 0 where they are flat."""


@kernel()
def _fits(gradient, n_rows, n):
    """Whether a gradient has the shape of x: n entries, in rows unless n_rows is 0."""
    return (
        gradient.ndim == (1 if n_rows == 0 else 2)
        and gradient.size == n
        and (n_rows == 0 or gradient.shape[0] == n_rows)
    )


@kernel(cache=False)
def _write(loss, gradient, n_rows, out):
    """Put a gradient to `out`, or what is not a number where it does not fit; return the loss."""
    if not _fits(gradient, n_rows, out.shape[0]):
        out[:] = np.nan
        return np.nan
    flat = np.ascontiguousarray(gradient).reshape(-1)
    for j in range(out.shape[0]):
        out[j] = flat[j]
    return np.float64(loss)


def _adapter(function, pairs, rows):
    """Return the kernel that calls a function (x, X, y), or (x, X) without `pairs`."""
    if pairs and rows:

        def call(x, X, y, n_rows, out):
            loss, gradient = function(x.reshape((n_rows, x.size // n_rows)), X, y)
            return _write(loss, gradient, n_rows, out)

    elif pairs:

        def call(x, X, y, n_rows, out):
            loss, gradient = function(x, X, y)
            return _write(loss, gradient, n_rows, out)

    elif rows:

        def call(x, X, y, n_rows, out):
            loss, gradient = function(x.reshape((n_rows, x.size // n_rows)), X)
            return _write(loss, gradient, n_rows, out)

    else:

        def call(x, X, y, n_rows, out):
            loss, gradient = function(x, X)
            return _write(loss, gradient, n_rows, out)

    return kernel(cache=False)(call)


@lru_cache(maxsize=64)
def _compiled(function, pairs, rows, kinds):
    """Return the adapter for arrays of such dtypes and dimensions, and its address."""
    arrays = [types.Array(from_dtype(dtype), ndim, "C") for dtype, ndim in kinds]
    signature = types.float64(*arrays, types.intp, types.float64[::1])
    adapter = _adapter(function, pairs, rows)
    found = adapter.get_compile_result(signature)
    return adapter, found.library.get_pointer_to_function(found.fndesc.llvm_func_name)


@intrinsic
def _call(context, address, x, X, y, n_rows, out):  # type: ignore[no-untyped-def]
    signature = types.float64(address, x, X, y, n_rows, out)

    def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
        convention, kinds = context.call_conv, signature.args[1:]
        form = convention.get_function_type(types.float64, kinds)
        status, loss = convention.call_function(
            builder, builder.inttoptr(args[0], form.as_pointer()), types.float64, kinds, args[1:]
        )
        with cgutils.if_unlikely(builder, status.is_error):
            convention.return_status_propagate(builder, status)
        return loss

    return signature, build


@kernel()
def evaluate(model, x, X, y, out):
    """Loss at x on a batch, and the gradient in `out`; not a number if it has another shape.

    The function gets arrays that are its own to spoil.
    """
    return _call(model.address, x, X, y, np.intp(model.n_rows), out)


def function_rounds(play, function, pairs, rows):
    """Return rounds that call a function, from those of all functions.

    Its model is the number of rows in which points are handed over, 0 where they are flat.
    """

    def rounds(X, mean, n_rows, set, y, batches, starts, anchored, reach, how, u, *rest):
        kinds = (u.dtype, 1), (X.dtype, X.ndim), (y.dtype, y.ndim)
        kept = _compiled(function, pairs, rows, kinds)  # as long as it is called
        model = Function(kept[1], n_rows)
        return play(
            Gathered(X), False, model, set, y, batches, starts, anchored, reach, how, u, *rest
        )

    return rounds
