"""Register tiles of the skinny products, written as vector instructions.

A tile is 4 samples by up to 5 classes: its products stay in vector registers while the
loop runs along the features, and each loaded vector serves 4 or 5 multiply-adds. The
compiler's own vectoriser gets close to this, but checks every pair of rows for overlap
and leaves no place for prefetching; here the loop of a tile also asks for two rows of
samples that are needed later, one cache line per vector, so that memory and arithmetic
are busy at the same time.

`forward_tile` and `backward_tile` have plain Python bodies, used when the JIT is disabled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types

from ._instruction import instruction

__all__ = ["GROUP", "WIDEST", "backward_tile", "forward_tile"]

#: Samples per tile.
GROUP = 4
#: Classes per tile at the most.
WIDEST = 5

_CONTRACT = ("contract",)


def _forward(width: int) -> Callable[..., None]:
    def tile(A, i0, i1, i2, i3, U, c, start, stop, Z, k, p, q):  # type: ignore[no-untyped-def]
        """Z[c:c+width, k:k+4] += U[c:c+width, start:stop] A[i, start:stop]ᵀ; fetch rows p, q."""
        a = A[[i0, i1, i2, i3], start:stop]
        Z[c : c + width, k : k + GROUP] += U[c : c + width, start:stop] @ a.T

    return tile


def _backward(width: int) -> Callable[..., None]:
    def tile(A, i0, i1, i2, i3, R, c, k, start, stop, G, p, q):  # type: ignore[no-untyped-def]
        """G[c:c+width, start:stop] += R[c:c+width, k:k+4] A[i, start:stop]; fetch rows p, q."""
        a = A[[i0, i1, i2, i3], start:stop]
        G[c : c + width, start:stop] += R[c : c + width, k : k + GROUP] @ a

    return tile


# ---------------------------------------------------------------------- code generation


class _Matrix:
    """A C-contiguous matrix inside generated code."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.builder, self.data = builder, array.data
        self.columns = builder.extract_value(array.shape, 1)
        self.type = context.get_value_type(kind.dtype)
        self.size = kind.dtype.bitwidth // 8

    def at(self, i: Any, j: Any) -> Any:
        """Pointer to entry (i, j)."""
        offset = self.builder.add(self.builder.mul(i, self.columns), j)
        return self.builder.gep(self.data, [offset])

    def load(self, i: Any, j: Any, lanes: int) -> Any:
        """Entries (i, j), ..., (i, j + lanes - 1), or one number for a single lane."""
        pointer = self.at(i, j)
        if lanes > 1:
            vector = ir.VectorType(self.type, lanes)
            pointer = self.builder.bitcast(pointer, vector.as_pointer())
        return self.builder.load(pointer, align=self.size)

    def store(self, value: Any, i: Any, j: Any, lanes: int) -> None:
        pointer = self.at(i, j)
        if lanes > 1:
            pointer = self.builder.bitcast(pointer, value.type.as_pointer())
        self.builder.store(value, pointer, align=self.size)


def _lanes(context: Any, size: int) -> int:
    """Numbers per vector register of the machine compiled for."""
    features = context.codegen().magic_tuple()[2]
    register = 64 if "+avx512f" in features else 32 if "+avx" in features else 16
    return register // size


@contextmanager
def _loop(builder: Any, start: Any, stop: Any, step: int) -> Iterator[Any]:
    """For (j = start; j < stop; j += step), not to be vectorised again."""
    head = builder.append_basic_block("head")
    body = builder.append_basic_block("body")
    end = builder.append_basic_block("end")
    before = builder.block
    builder.branch(head)
    builder.position_at_end(head)
    j = builder.phi(start.type)
    j.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", j, stop), body, end)
    builder.position_at_end(body)
    yield j
    following = builder.add(j, start.type(step), flags=("nsw",))
    j.add_incoming(following, builder.block)
    back = builder.branch(head)
    module = builder.module
    off = module.add_metadata(
        [ir.MetaDataString(module, "llvm.loop.vectorize.enable"), ir.IntType(1)(0)]
    )
    back.set_metadata("llvm.loop", module.add_metadata([off]))
    builder.position_at_end(end)


def _variable(builder: Any, value: Any) -> Any:
    """A variable, made a register by the compiler."""
    with builder.goto_entry_block():
        slot = builder.alloca(value.type)
    builder.store(value, slot)
    return slot


def _add_product(builder: Any, slot: Any, a: Any, b: Any) -> None:
    product = builder.fmul(a, b, flags=_CONTRACT)
    builder.store(builder.fadd(builder.load(slot), product, flags=_CONTRACT), slot)


def _splat(builder: Any, value: Any, lanes: int) -> Any:
    if lanes == 1:
        return value
    vector = ir.VectorType(value.type, lanes)
    single = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    order = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(single, ir.Constant(vector, ir.Undefined), order)


def _halved(builder: Any, vector: Any, lanes: int) -> Any:
    """Sum of a vector's two halves of so many lanes; of two lanes, a number."""
    if lanes == 1:
        low, high = (builder.extract_element(vector, ir.IntType(32)(k)) for k in (0, 1))
        return builder.fadd(low, high)
    index = ir.VectorType(ir.IntType(32), lanes)
    nothing = ir.Constant(vector.type, ir.Undefined)
    low = builder.shuffle_vector(vector, nothing, ir.Constant(index, list(range(lanes))))
    high = builder.shuffle_vector(
        vector, nothing, ir.Constant(index, list(range(lanes, 2 * lanes)))
    )
    return builder.fadd(low, high)


def _remainders(builder: Any, middle: Any, stop: Any, lanes: int) -> Iterator[tuple[int, Any, Any]]:
    """What whole vectors leave, as vectors of half the lanes, a quarter, ..., one number.

    Each at most once: how many lanes, whether it is needed, and where it begins.
    """
    rest = builder.sub(stop, middle)
    while lanes > 1:
        begin = builder.add(middle, builder.and_(rest, rest.type(-lanes)))
        lanes //= 2
        needed = builder.icmp_signed("!=", builder.and_(rest, rest.type(lanes)), rest.type(0))
        yield lanes, needed, begin


def _fetch(builder: Any, pointer: Any) -> None:
    """Ask for a cache line, into the second-level cache."""
    byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    function = builder.module.declare_intrinsic(
        "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
    )
    builder.call(function, [builder.bitcast(pointer, byte), flag(0), flag(2), flag(1)])


def _whole_vectors(builder: Any, start: Any, stop: Any, lanes: int) -> Any:
    """End of the whole vectors that fit between start and stop."""
    length = builder.sub(stop, start)
    return builder.sub(stop, builder.srem(length, start.type(lanes)))


def _build_forward(width: int) -> Any:
    def tile(context, A, i0, i1, i2, i3, U, c, start, stop, Z, k, p, q):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
            A, U, Z = (_Matrix(context, builder, signature.args[n], args[n]) for n in (0, 5, 9))
            samples, c, start, stop, k = args[1:5], args[6], args[7], args[8], args[10]
            classes = [builder.add(c, c.type(m)) for m in range(width)]
            columns = [builder.add(k, k.type(r)) for r in range(GROUP)]
            lanes = _lanes(context, U.size)
            middle = _whole_vectors(builder, start, stop, lanes)
            zero = ir.Constant(ir.VectorType(U.type, lanes), None)
            sums = {(m, r): _variable(builder, zero) for m in range(width) for r in range(GROUP)}
            with _loop(builder, start, middle, lanes) as j:
                a = [A.load(i, j, lanes) for i in samples]
                for m in range(width):
                    u = U.load(classes[m], j, lanes)
                    for r in range(GROUP):
                        _add_product(builder, sums[m, r], a[r], u)
                for row in args[11:13]:
                    _fetch(builder, A.at(row, j))
            # sums become one number by halves, and each half takes what is left of its length
            for half, needed, j in _remainders(builder, middle, stop, lanes):
                for place, slot in sums.items():
                    total = _halved(builder, builder.load(slot), half)
                    sums[place] = _variable(builder, total)
                with builder.if_then(needed):
                    a = [A.load(i, j, half) for i in samples]
                    for m in range(width):
                        u = U.load(classes[m], j, half)
                        for r in range(GROUP):
                            _add_product(builder, sums[m, r], a[r], u)
            for (m, r), slot in sums.items():
                total = builder.fadd(builder.load(slot), Z.load(classes[m], columns[r], 1))
                Z.store(total, classes[m], columns[r], 1)
            return context.get_dummy_value()

        n = types.intp
        return types.none(A, n, n, n, n, U, n, n, n, Z, n, n, n), build

    return tile


def _build_backward(width: int) -> Any:
    def tile(context, A, i0, i1, i2, i3, R, c, k, start, stop, G, p, q):  # type: ignore[no-untyped-def]
        def build(context, builder, signature, args):  # type: ignore[no-untyped-def]
            A, R, G = (_Matrix(context, builder, signature.args[n], args[n]) for n in (0, 5, 10))
            samples, c, k, start, stop = args[1:5], args[6], args[7], args[8], args[9]
            classes = [builder.add(c, c.type(m)) for m in range(width)]
            columns = [builder.add(k, k.type(r)) for r in range(GROUP)]
            single = [[R.load(m, r, 1) for r in columns] for m in classes]

            def update(j: Any, lanes: int, weights: Any) -> None:
                a = [A.load(i, j, lanes) for i in samples]
                for m in range(width):
                    g = G.load(classes[m], j, lanes)
                    for r in range(GROUP):
                        product = builder.fmul(weights[m][r], a[r], flags=_CONTRACT)
                        g = builder.fadd(g, product, flags=_CONTRACT)
                    G.store(g, classes[m], j, lanes)

            def spread(lanes: int) -> Any:
                return [[_splat(builder, w, lanes) for w in row] for row in single]

            lanes = _lanes(context, G.size)
            middle = _whole_vectors(builder, start, stop, lanes)
            weights = spread(lanes)
            with _loop(builder, start, middle, lanes) as j:
                update(j, lanes, weights)
                for row in args[11:13]:
                    _fetch(builder, A.at(row, j))
            for part, needed, j in _remainders(builder, middle, stop, lanes):
                with builder.if_then(needed):
                    update(j, part, spread(part))
            return context.get_dummy_value()

        n = types.intp
        return types.none(A, n, n, n, n, R, n, n, n, n, G, n, n), build

    return tile


_WIDTHS = range(1, WIDEST + 1)

#: By number of classes.
forward_tile = {width: instruction(_build_forward(width))(_forward(width)) for width in _WIDTHS}
backward_tile = {width: instruction(_build_backward(width))(_backward(width)) for width in _WIDTHS}
