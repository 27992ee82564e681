"""Functions of the user's, which compiled rounds call by their addresses.

So rounds are compiled once for all functions, and kept; what is compiled for a function is an
adapter around it, of the same type for all: losses get features and labels as bytes.
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

__all__ = [
    "Function",
    "Gathered",
    "call_vertex",
    "compiled_vertex",
    "evaluate",
    "function_rounds",
]


class Gathered(NamedTuple):
    """Features as functions take them: arrays whose rows are gathered for each batch."""

    X: Any
    """The bytes of each row."""


class Function(NamedTuple):
    """A model: a loss and its gradient."""

    address: Any
    """That of an adapter for these types of points, features and labels."""
    n_rows: Any
    """Rows in which points are handed over, 0 where they are flat."""


def _by_address(context, builder, signature, args):  # type: ignore[no-untyped-def]
    """Generate the call of a function that returns a float64, its address being the first of args.

    What it raises is raised here.
    """
    convention, kinds = context.call_conv, signature.args[1:]
    form = convention.get_function_type(types.float64, kinds)
    pointer = builder.inttoptr(args[0], form.as_pointer())
    status, found = convention.call_function(builder, pointer, types.float64, kinds, args[1:])
    with cgutils.if_unlikely(builder, status.is_error):
        convention.return_status_propagate(builder, status)
    return found


@intrinsic
def _call(context, address, x, X, y, batch, n_rows, out):  # type: ignore[no-untyped-def]
    return types.float64(address, x, X, y, batch, n_rows, out), _by_address


@intrinsic
def call_vertex(context, address, g, index, value):  # type: ignore[no-untyped-def]
    """Let the function of `compiled_vertex` write a vertex."""
    return types.float64(address, g, index, value), _by_address


@kernel()
def evaluate(model, x, X, y, batch, out):
    """Loss at x on rows of features and labels, and the gradient in `out`.

    Neither is a number where the gradient does not have the shape of x.
    """
    return _call(model.address, x, X, y, batch, model.n_rows, out)


@kernel()
def _fits(gradient, n_rows, n):
    """Whether a gradient has the shape of x: n entries, in rows unless n_rows is 0."""
    return (
        gradient.ndim == (1 if n_rows == 0 else 2)
        and gradient.size == n
        and (n_rows == 0 or gradient.shape[0] == n_rows)
    )


@kernel(cache=False)
def _write(answer, n_rows, out):
    """Put the gradient of an answer to `out`, or what is not a number; return the loss."""
    loss, gradient = answer
    if not _fits(gradient, n_rows, out.shape[0]):
        out[:] = np.nan
        return np.nan
    flat = np.ascontiguousarray(gradient).reshape(-1)
    for j in range(out.shape[0]):
        out[j] = flat[j]
    return np.float64(loss)


def _reader(dtype, rest):
    """Return the kernel that gathers rows of this dtype and shape from bytes."""

    def read(data, batch):
        every = data.view(dtype)
        return every.reshape((every.shape[0], *rest))[batch]

    return kernel(cache=False)(read)


@lru_cache(maxsize=64)
def _compiled(function, pairs, rows, real, features, labels):
    """Return the adapter around a function for such arrays, and its address.

    It is one of (x, X, y), or of (x, X) without `pairs`, and gets copies that are its own to spoil.
    """
    gather, gather_labels = _reader(*features), _reader(*labels)

    if pairs and rows:

        def call(x, X, y, batch, n_rows, out):
            W = x.reshape((n_rows, x.size // n_rows))
            return _write(function(W, gather(X, batch), gather_labels(y, batch)), n_rows, out)

    elif pairs:

        def call(x, X, y, batch, n_rows, out):
            return _write(function(x, gather(X, batch), gather_labels(y, batch)), n_rows, out)

    elif rows:

        def call(x, X, y, batch, n_rows, out):
            W = x.reshape((n_rows, x.size // n_rows))
            return _write(function(W, gather(X, batch)), n_rows, out)

    else:

        def call(x, X, y, batch, n_rows, out):
            return _write(function(x, gather(X, batch)), n_rows, out)

    data = types.Array(types.uint8, 2, "C", readonly=True)
    batch = types.Array(types.intp, 1, "C", readonly=True)
    point = types.Array(from_dtype(real), 1, "C")
    signature = types.float64(point, data, data, batch, types.intp, types.float64[::1])
    return _addressed(call, signature)


def _addressed(call, signature):
    """Return an adapter, compiled for a signature, and its address, good while it lives."""
    adapter: Any = kernel(cache=False)(call)
    found = adapter.get_compile_result(signature)
    return adapter, found.library.get_pointer_to_function(found.fndesc.llvm_func_name)


def compiled_vertex(function):
    """Return the adapter around a function that writes a vertex, and its address."""

    def call(g, index, value):
        function(g, index, value)
        return 0.0

    places = types.Array(types.intp, 1, "C")
    return _addressed(call, types.float64(types.float64[::1], places, types.float64[::1]))


def function_rounds(play, function, pairs, rows):
    """Return rounds that call a function, from those of all functions.

    Its model is the number of rows in which points are handed over, 0 where they are flat.
    """

    def as_bytes(array):
        data = array.reshape(len(array), -1).view(np.uint8)
        data.flags.writeable = False  # as of all arrays that kernels read
        # of matrices one adapter takes any width
        return data, (array.dtype, array.shape[1:] if array.ndim != 2 else (-1,))

    def rounds(X, mean, n_rows, set, y, batches, starts, anchored, reach, how, u, *rest):
        (A, features), (b, labels) = as_bytes(X), as_bytes(y)
        kept = _compiled(function, pairs, rows, u.dtype, features, labels)  # while it is called
        model = Function(kept[1], n_rows)
        return play(
            Gathered(A), False, model, set, b, batches, starts, anchored, reach, how, u, *rest
        )

    return rounds
