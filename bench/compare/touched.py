"""Rounds that touch little: of sparse rows, of single rows, of one call from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, product
from typing import Any

import numpy as np
from scipy import sparse

import fastfw as fw
from bench.compare.classifiers import sgd, vowpal_lines
from bench.compare.turns import Side, Turn, Work, all_of, made, take_turns
from bench.tables import Columns
from fastfw.sklearn import ProjectionFreeClassifier

#: Nonzeros of a sparse row, and features: few and many.
NONZEROS, FEATURES = 100, (2**14, 2**20)
RADIUS = 100.0


def _words(n: int, d: int, n_classes: int) -> fw.Dataset:
    """Rows with features that are as frequent as words: that of rank j in one of about j rows."""
    rng = np.random.default_rng(0)
    indices = (d ** rng.random(n * NONZEROS)).astype(np.int32) - 1
    ends = np.arange(n + 1, dtype=np.int32) * NONZEROS
    values = np.full(indices.size, NONZEROS**-0.5)
    X = sparse.csr_array((values, indices, ends), shape=(n, d))
    X.sum_duplicates()
    return fw.Dataset(X, rng.integers(n_classes, size=n))


def _numbers(n: int, d: int, n_classes: int) -> fw.Dataset:
    rng = np.random.default_rng(0)
    return fw.Dataset(rng.standard_normal((n, d)), rng.integers(n_classes, size=n))


def _learner(method: str, data: fw.Dataset, **options: Any) -> Any:
    problem = fw.SoftmaxRegression(data.n_features, data.n_classes)
    return getattr(fw, method)(problem, fw.RowL1Ball(problem.shape, RADIUS), **options)


def _running(method: str, data: fw.Dataset, size: int, rounds: int) -> Side:
    learner = _learner(method, data, average=False)
    seeds = count()

    def ready() -> Turn:
        stream = fw.iid_stream(data, batch_size=size, rounds=rounds, seed=next(seeds))
        return partial(learner.run, stream, on_error="keep")  # what it was need not be remembered

    return ready


def _observing(data: fw.Dataset, size: int, rounds: int) -> Side:
    learner = _learner("ORGFW", data)
    batches = [slice(i * size, (i + 1) * size) for i in range(rounds)]
    calls = [partial(learner.observe, (data.X[rows], data.y[rows])) for rows in batches]
    return lambda: all_of(calls)


def _partial(model: Any, data: fw.Dataset) -> Side:
    singles = [(data.X[[i]], data.y[[i]]) for i in range(len(data))]
    model.partial_fit(*singles[0], classes=np.arange(data.n_classes))
    return lambda: all_of([partial(model.partial_fit, *single) for single in singles])


def _vowpal_wabbit(data: fw.Dataset) -> Side:
    import vowpalwabbit

    options = "--loss_function logistic -b 22 --quiet"
    model = vowpalwabbit.Workspace(f"--oaa {data.n_classes} {options}")
    lines = vowpal_lines(data.X, data.y)
    return lambda: all_of([partial(model.learn, line) for line in lines])


def touched(work: Work) -> Iterator[Any]:
    """Times of rounds and calls that touch little, in CPU microseconds.

    Medians of turns, which alternate between lines that stand together; ratios are to the first of
    these. Sparse rows have about 90 nonzeros, as frequent as words. A learner of single rows stands
    beside ``SGDClassifier.partial_fit`` with an l1 penalty and Vowpal Wabbit, which read the same
    rows one by one, the latter as lines of text.
    """
    turns = work.turns or (3 if work.quick else 9)
    most = FEATURES[0] if work.quick else FEATURES[-1]
    columns = Columns({"": "<72", "us": ">10.2f", "ratio": ">8.2f"})

    def run(method: str, data: fw.Dataset, size: int, rounds: int) -> dict[str, Any]:
        sizes = f"C={data.n_classes}, B={size}, d={data.n_features}"
        dense = "" if sparse.issparse(data.X) else ", dense"
        return {f"{method}.run, {sizes}{dense}": partial(_running, method, data, size, rounds)}

    def measure(sides: dict[str, Callable[[], Side]], n: int) -> Iterator[str]:
        there, skipped = made(sides)
        for name, why in skipped.items():
            yield columns.line(name, f" {why}")
        times = {name: np.median(own) for name, own in take_turns(there, turns).items()}
        for name, own in times.items():
            yield columns.line(name, 1e6 * own / n, own / next(iter(times.values())))
        yield ""

    yield columns.head
    for method, C, B in product(("ORGFW", "OSFW"), (2, 20), (1, 16)):
        few, many = (_words(2000, d, C) for d in (FEATURES[0], most))
        n = 400 // B
        yield from measure(run(method, few, B, n) | run(method, many, B, n), n)
    yield from measure(run("ORGFW", _words(2000, most, 20), 256, 10), 10)
    data = _words(400, 2**18, 20)
    others = {
        "SGDClassifier(penalty='l1').partial_fit, row by row": partial(
            _partial, sgd("l1", 1e-5), data
        ),
        "Vowpal Wabbit, row by row": partial(_vowpal_wabbit, data),
    }
    yield from measure(run("ORGFW", data, 1, 400) | others, 400)
    for C, d in ((2, 10), (3, 50), (10, 784)):
        yield from measure(run("ORGFW", _numbers(4000, d, C), 1, 20_000), 20_000)
    sides = {
        f"ORGFW.observe, C=3, B={B}, d=50, dense": partial(
            _observing, _numbers(1000 * B, 50, 3), B, 1000
        )
        for B in (1, 4, 16)
    }
    yield from measure(sides, 1000)
    data = _words(400, most, 20)
    sides = {
        f"ProjectionFreeClassifier(vertex_size={k!r}).partial_fit, C=20, a row": partial(
            _partial, ProjectionFreeClassifier(vertex_size=k), data
        )
        for k in (1, "auto")
    }
    yield from measure(sides, 400)
