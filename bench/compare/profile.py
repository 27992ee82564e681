"""Where the time of a round goes: its parts by themselves, beside the whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import fastfw as fw
from bench.compare.cases import CIFAR10, MNIST, SUB_BATCH, Case
from bench.compare.turns import Work, load, seconds
from bench.data import DTYPES
from bench.tables import Columns
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
def estimate(D: Any, G: Any, set: Any, index: Any, value: Any) -> None:
    """The new estimate, and its vertices."""
    real = G.dtype.type
    for c in range(G.shape[0]):
        rounds.blend(D[c], G[c], real(0.5), real(0.01))
    sets.vertices(sets.Rows(*set), G, index, value)


def batches(case: Case) -> Iterator[Any]:
    """Row numbers of batches, never ending."""
    for stream in case.streams(1, 1):
        yield _row_numbers(next(iter(stream)).rows)


def _row_numbers(rows: Any) -> Any:
    """Row numbers as kernels get them, read-only."""
    rows.flags.writeable = False
    return rows


def momentum(case: Case) -> tuple[list[Part], Callable[[Any], Any]]:
    """Parts of a round of ORGFW after 100 rounds, and the whole."""
    learner, data = case.learner(), case.data
    learner.run(fw.iid_stream(data, batch_size=case.shape.batch_size, rounds=100, seed=3))
    engine = learner._engine
    u, dtype = engine.u, engine.u.dtype
    given = learner.problem.rows(data, dtype, coded=True)
    (n_classes, d), B = learner.set.shape, case.shape.batch_size
    # a block of rows again and again, which the caches hold
    length = gradients.block_length(d, u.itemsize, n_classes)
    block = data.X[:length].astype(dtype)
    block.flags.writeable = False
    cached = _row_numbers(np.arange(B) % length)
    Z, P = (np.zeros((n_classes, products.padded(B)), dtype) for _ in range(2))
    m, total = np.empty(Z.shape[1], dtype), np.empty(Z.shape[1], dtype)
    R, G, D = np.full_like(P, 0.01), np.zeros_like(u), np.zeros_like(u)
    places, counts = np.empty((n_classes, d + 1), np.uintp), np.empty(n_classes, np.intp)
    sparse_iterate.support(u, d, places, counts)
    few = sparse_iterate.few(counts, u, d)
    index, value = np.zeros((n_classes, 1), np.intp), np.zeros((n_classes, 1))

    def forward(rows: Any) -> None:
        if few:
            sparse_iterate.support(u, d, places, counts)
            sparse_iterate.sparse_forward(block, cached, u, places, counts, Z)
        else:
            products.forward(block, cached, u, Z, cached[:0])

    def exponentials(rows: Any) -> None:
        for _ in range(2):  # at both points
            softmax.softmax(Z, P, m, total)

    def backward(rows: Any) -> None:
        products.backward(block, cached, R, G, cached[:0], products.PAIRED)

    parts: list[Part] = [
        ("read and decode" if isinstance(given.X, tuple) else "read",
         lambda rows: read(given.X, rows, u)),
        ("forward product", forward),
        ("exponentials", exponentials),
        ("backward product", backward),
        ("estimate and vertex", lambda rows: estimate(D, G, engine._rows, index, value)),
    ]  # fmt: skip
    starts, losses = np.array([0, B], np.intp), np.empty(2)
    how = in_rounds(learner._recursion, 200, 1)
    return parts, lambda rows: engine.rounds(
        how, fw.problems.Rows(given.X, given.y, rows), starts, losses
    )


def sub_batch(case: Case) -> tuple[list[Part], Callable[[Any], Any]]:
    """Parts of a round with sub-batches after some rounds, and the whole."""
    learner = case.learner()
    learner.run(next(case.streams(case.before + 6, 1)))
    engine, t = learner._engine, 9
    given = learner.problem.rows(case.data, engine.x.dtype)
    K, (n_classes, d), width = len(engine._eta), learner.set.shape, products.padded(SUB_BATCH)
    samples, bits = np.empty(K * width, np.intp), np.uint64(engine._plan.bits)
    index, value, noise = engine.index.copy(), engine.value.copy(), engine._noise(t)
    D = np.zeros((n_classes, engine.x.shape[1]), engine.x.dtype)
    P = np.full((n_classes, K * width), 1e-9, D.dtype)
    sums = engine.sums.copy()
    flat, tops = sums.reshape(K * n_classes, -1), np.empty((n_classes, meta.blocks(d)), D.dtype)

    @kernel(cache=False)
    def sweeps(A: Any, block: Any, P: Any, D: Any, flat: Any, tops: Any) -> None:
        for k in range(K):
            sub_batches._sweep(
                A, block, P, k * width, D.dtype.type(0.5), D, flat, k * n_classes, tops, P,
                block[:0],
            )  # fmt: skip

    parts: list[Part] = [
        ("loss of the batch",
         lambda rows: sub_batches.batch_loss(given.X, given.y, rows, engine.x)),
        ("draw sub-batches",
         lambda rows: sub_batches.draw_samples(rows, SUB_BATCH, bits, t, samples)),
        ("sweep estimator and sums",
         lambda rows: sweeps(given.X, rows[:SUB_BATCH], P, D, flat, tops)),
        ("answers, with a search of the sums",
         lambda rows: meta.answers(sums, d, *noise, index, value)),
    ]  # fmt: skip
    starts, losses = np.array([0, case.shape.batch_size], np.intp), np.empty(2)
    return parts, lambda rows: engine.rounds(
        t, fw.problems.Rows(given.X, given.y, rows), starts, losses
    )


COLUMNS = Columns({"": "<40", "ms": ">8.3f", "share": ">7.0%"})


def table(
    title: str, parts: list[Part], whole: Callable[[Any], Any], case: Case, turns: int
) -> str:
    """Medians of all parts and of the whole, in milliseconds and shares."""
    calls = [*(call for _, call in parts), whole]
    rows = batches(case)
    for call in calls:
        call(next(rows))
    times = [[seconds(partial(call, next(rows))) for call in calls] for _ in range(turns)]
    *own, total = 1e3 * np.median(times, axis=0)
    names = [*(name for name, _ in parts), "the rest, or what they share"]
    found = zip(names, [*own, total - sum(own)], strict=True)
    lines = [title, *(COLUMNS.line(f"  {name}", ms, ms / total) for name, ms in found)]
    lines.append(f"{COLUMNS.line('  the whole', total)}  load {load()}\n")
    return "\n".join(lines)


def parts(work: Work) -> Iterator[Any]:
    """Parts of a round by themselves, beside the whole: medians of CPU time, and shares.

    Each part is the kernel that the round has in its place, with the decision of the same learner,
    on as many rows as a batch has: from memory where they are read, else in the caches. In a round
    parts overlap, above all reading the next rows with computing on the present ones: they need not
    add up, and the rest may be negative.
    """
    turns = work.turns or 40
    words = {"uint8 float32": "bytes, float32 arithmetic"}
    for shape in (MNIST,) if work.quick else (MNIST, CIFAR10):
        for features in (*DTYPES, *words):
            case = Case("orgfw", shape, features)
            title = f"ORGFW, {shape.label}'s shape, {words.get(features, features)}"
            yield table(title, *momentum(case), case, turns)
    for method in ("morgfw sub-batch",) if work.quick else ("morgfw sub-batch", "metafw"):
        for dtype in DTYPES:
            case = Case(method, MNIST, dtype)
            title = f"{case.label.split(',')[0]}, sub-batches of {SUB_BATCH}, {dtype}"
            yield table(title, *sub_batch(case), case, turns)
