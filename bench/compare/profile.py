"""Where the time of a round goes: its parts by themselves, beside the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

import fastfw as fw
from bench.compare.cases import META, SUB_BATCH, Case
from bench.compare.data import CIFAR10, MNIST
from bench.compare.turns import Work, load, seconds
from fastfw.kernels import (
    _features,
    gradients,
    meta,
    products,
    rounds,
    sets,
    softmax,
    sparse_iterate,
    sub_batches,
)
from fastfw.kernels._jit import REASSOCIATE, kernel
from fastfw.learners.compiled import in_rounds

Part = tuple[str, Callable[[Any], Any]]


# --- loops over blocks, as in `gradients.recursive_gradient` --------------------------------------


@kernel(fastmath=REASSOCIATE, cache=False)
def read(A: Any, rows: Any, u: Any) -> Any:
    """Sum of the entries of rows, which are fetched as a round does."""
    length = gradients.block_length(_features.n_features(A), u.itemsize, u.shape[0])
    space = _features.block_space(A, length, u)
    total = u.dtype.type(0.0)
    for start in range(0, rows.shape[0], length):
        block = rows[start : start + length]
        ahead = rows[start + length : start + 2 * length]
        features, at = _features.block_features(A, block, ahead, space)
        for k in range(block.shape[0]):
            row = features[at[k]]
            for j in range(row.shape[0]):
                total += row[j]
    return total


@kernel(cache=False)
def forward(A: Any, rows: Any, u: Any, Z: Any) -> None:
    """Logits of blocks, entry by entry where the round does so; of one block again and again."""
    n_classes, d = u.shape[0], A.shape[1]
    places = np.empty((n_classes, d + 1), np.uintp)
    counts = np.empty(n_classes, np.intp)
    sparse_iterate.support(u, d, places, counts)
    few = sparse_iterate.few(counts, u, d)
    length = Z.shape[1]
    block = rows[:length]
    for _ in range(0, rows.shape[0], length):
        if few:
            sparse_iterate.sparse_forward(A, block, u, places, counts, Z)
        else:
            products.forward(A, block, u, Z, block[:0])


@kernel(cache=False)
def backward(A: Any, rows: Any, R: Any, G: Any) -> None:
    """Gradients of blocks; of one block again and again."""
    length = R.shape[1]
    block = rows[:length]
    for _ in range(0, rows.shape[0], length):
        products.backward(A, block, R, G, block[:0], products.PAIRED)


@kernel(cache=False)
def estimate(D: Any, G: Any, set: Any, index: Any, value: Any) -> None:
    """The new estimate, and its vertices."""
    real = G.dtype.type
    for c in range(G.shape[0]):
        rounds.blend(D[c], G[c], real(0.5), real(0.01))
    sets.vertices(sets.Rows(*set), G, index, value)


@kernel(cache=False)
def exponentials(Z: Any, P: Any, m: Any, total: Any, times: Any) -> None:
    """Softmax of a block, twice for each block of a batch."""
    for _ in range(times):
        softmax.softmax(Z, P, m, total)
        softmax.softmax(Z, P, m, total)


# --- what is measured -----------------------------------------------------------------------------


def batches(case: Case) -> Iterator[Any]:
    """Row numbers of batches, never ending."""
    for stream in case.streams(1, 1):
        rows = next(iter(stream)).rows
        rows.flags.writeable = False
        yield rows


def momentum(case: Case, data: fw.Dataset) -> tuple[list[Part], Callable[[Any], Any]]:
    """Parts of a round of ORGFW after 100 rounds, and the whole."""
    learner = case.learner()
    learner.run(fw.iid_stream(data, batch_size=case.shape.batch_size, rounds=100, seed=3))
    engine = learner._engine
    dtype = engine.u.dtype
    whole = learner.problem.rows(data, dtype, coded=True)
    A, u = whole.X, engine.u
    coded = isinstance(A, tuple)
    d, B, n_classes = case.shape.d, case.shape.batch_size, len(u)
    length = gradients.block_length(d, u.itemsize, n_classes)
    floats = data.X[: 4 * length].astype(dtype)
    floats.flags.writeable = False
    first = np.arange(B) % length
    Z, P = np.zeros((n_classes, length), dtype), np.empty((n_classes, length), dtype)
    m, total = np.empty(length, dtype), np.empty(length, dtype)
    R, G, D = np.full_like(P, 0.01), np.zeros_like(u), np.zeros_like(u)
    index, value = np.zeros((n_classes, 1), np.intp), np.zeros((n_classes, 1))
    times = -(-B // length)
    parts: list[Part] = [
        ("read and decode" if coded else "read", lambda rows: read(A, rows, u)),
        ("forward product", lambda rows: forward(floats, first, u, Z)),
        ("exponentials", lambda rows: exponentials(Z, P, m, total, times)),
        ("backward product", lambda rows: backward(floats, first, R, G)),
        (
            "estimate and vertex",
            lambda rows: estimate(D, G, engine._rows, index, value),
        ),
    ]
    starts = np.array([0, B], np.intp)
    how = in_rounds(learner._recursion, 200, 1)
    losses = np.empty(2)
    return parts, lambda rows: engine.rounds(
        how, fw.problems.Rows(A, whole.y, rows), starts, losses
    )


def sub_batch(case: Case) -> tuple[list[Part], Callable[[Any], Any]]:
    """Parts of a round with sub-batches after some rounds, and the whole."""
    learner = case.learner()
    learner.run(next(case.streams(case.before + 6, 1)))
    engine = learner._engine
    data = case.data
    A = learner.problem.rows(data, engine.x.dtype)
    K, (n_classes, d) = len(engine._eta), (case.shape.n_classes, case.shape.d)
    width = products.padded(SUB_BATCH)
    samples = np.empty(K * width, np.intp)
    index, value = engine.index.copy(), engine.value.copy()
    noise = engine._noise(9)
    bits = np.uint64(engine._plan.bits)
    D = np.zeros((n_classes, engine.x.shape[1]), engine.x.dtype)
    P = np.full((n_classes, K * width), 1e-9, D.dtype)
    sums = engine.sums.copy()
    flat = sums.reshape(K * n_classes, -1)
    tops = np.empty((n_classes, meta.blocks(d)), D.dtype)
    drawn = np.zeros(K * width, np.intp)
    drawn.flags.writeable = False

    @kernel(cache=False)
    def sweeps(A: Any, block: Any, P: Any, D: Any, flat: Any, tops: Any) -> None:
        for k in range(K):
            sub_batches._sweep(
                A, block, P, k * width, D.dtype.type(0.5), D, flat, k * n_classes, tops, P,
                block[:0],
            )  # fmt: skip

    def draw(rows: Any) -> None:
        sub_batches.draw_samples(rows, SUB_BATCH, bits, 9, samples)

    def sweep(rows: Any) -> None:
        sweeps(A.X, rows[:SUB_BATCH], P, D, flat, tops)

    parts: list[Part] = [
        ("loss of the batch", lambda rows: sub_batches.batch_loss(A.X, A.y, rows, engine.x)),
        ("draw sub-batches", draw),
        ("sweep estimator and sums", sweep),
        (
            "answers, with a search of the sums",
            lambda rows: meta.answers(sums, d, *noise, index, value),
        ),
    ]
    starts = np.array([0, case.shape.batch_size], np.intp)
    losses = np.empty(2)
    return parts, lambda rows: engine.rounds(9, fw.problems.Rows(A.X, A.y, rows), starts, losses)


def table(
    title: str, parts: list[Part], whole: Callable[[Any], Any], case: Case, turns: int
) -> str:
    """Medians of all parts and of the whole, in milliseconds and shares."""
    calls = [*(call for _, call in parts), whole]
    rows = batches(case)
    for call in calls:
        call(next(rows))
    times = [[seconds(partial(call, next(rows))) for call in calls] for _ in range(turns)]
    medians = 1e3 * np.median(times, axis=0)
    lines = [title]
    for (name, _), time in zip(parts, medians, strict=False):
        lines.append(f"  {name:<38} {time:7.3f} {time / medians[-1]:6.0%}")
    rest = medians[-1] - medians[:-1].sum()
    lines.append(f"  {'the rest, or what they share':<38} {rest:7.3f} {rest / medians[-1]:6.0%}")
    lines.append(f"  {'the whole':<38} {medians[-1]:7.3f}  load {load()}\n")
    return "\n".join(lines)


def coded(case: Case) -> fw.Dataset:
    """The case's data as bytes."""
    return fw.Dataset((255 * case.data.X).astype(np.uint8), case.data.y, scale=1 / 255)


def parts(work: Work) -> Iterator[Any]:
    """Parts of a round by themselves, beside the whole: medians of CPU time, and shares.

    Each part is a kernel, or a loop over the blocks of a batch with the kernel that the round has
    in its place, on the same data and the decision of the same learner. In a round parts overlap,
    above all reading the next rows with computing on the present ones: they need not add up, and
    the rest may be negative.
    """
    turns = work.turns or 40
    for shape in (MNIST,) if work.quick else (MNIST, CIFAR10):
        for dtype in ("float64", "float32"):
            case = Case("orgfw", shape, dtype)
            title = f"ORGFW, {shape.label}'s shape, {dtype}"
            yield table(title, *momentum(case, case.data), case, turns)
        case = Case("orgfw", shape, "float32")
        title = f"ORGFW, {shape.label}'s shape, bytes, float32 arithmetic"
        yield table(title, *momentum(case, coded(case).astype("float32")), case, turns)
    for method in ("morgfw sub-batch",) if work.quick else ("morgfw sub-batch", "metafw"):
        for dtype in ("float64", "float32"):
            case = replace(Case(method, MNIST, dtype), before=2)
            K = META[method.split()[0]]["K"]
            title = f"{case.label.split(',')[0]} of {SUB_BATCH}, {dtype}, K = {K}"
            yield table(title, *sub_batch(case), case, turns)
