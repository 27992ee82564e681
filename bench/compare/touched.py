"""Rounds that touch little: of sparse rows, of single rows, of one call from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np

import fastfw as fw
from bench.compare.classifiers import sgd, vowpal_lines
from bench.compare.turns import Side, Turn, Work, all_of, made, take_turns
from bench.tables import Columns
from fastfw.sklearn import ProjectionFreeClassifier

#: Nonzeros of a sparse row, and features: few and many.
NONZEROS, FEATURES = 100, (2**14, 2**20)
RADIUS = 100.0

Rows = tuple[Any, np.ndarray]


def _words(n: int, d: int, n_classes: int) -> Rows:
    """Rows with features that are as frequent as words: that of rank j in one of about j rows."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    indices = (d ** rng.random(n * NONZEROS)).astype(np.int32) - 1
    ends = np.arange(n + 1, dtype=np.int32) * NONZEROS
    values = np.full(indices.size, NONZEROS**-0.5)
    X = sparse.csr_array((values, indices, ends), shape=(n, d))
    X.sum_duplicates()
    return X, rng.integers(n_classes, size=n)


def _numbers(n: int, d: int, n_classes: int) -> Rows:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)), rng.integers(n_classes, size=n)


def _running(method: str, rows: Rows, n_classes: int, size: int, rounds: int) -> Side:
    d = rows[0].shape[1]
    learner = getattr(fw, method)(
        fw.SoftmaxRegression(d, n_classes), fw.RowL1Ball((n_classes, d), RADIUS), average=False
    )
    seeds = iter(range(10**6))

    def ready() -> Turn:
        stream = fw.iid_stream(*rows, batch_size=size, rounds=rounds, seed=next(seeds))
        return partial(learner.run, stream, on_error="keep")  # what it was need not be remembered

    return ready


def _observing(rows: Rows, n_classes: int, size: int, rounds: int) -> Side:
    d = rows[0].shape[1]
    learner = fw.ORGFW(fw.SoftmaxRegression(d, n_classes), fw.RowL1Ball((n_classes, d), RADIUS))
    parts = [tuple(part[i * size : (i + 1) * size] for part in rows) for i in range(rounds)]
    return lambda: all_of([partial(learner.observe, part) for part in parts])


def _partial(model: Any, rows: Rows, n_classes: int) -> Side:
    singles = [(rows[0][[i]], rows[1][[i]]) for i in range(rows[0].shape[0])]
    model.partial_fit(*singles[0], classes=np.arange(n_classes))
    return lambda: all_of([partial(model.partial_fit, *single) for single in singles])


def _sgd(rows: Rows, n_classes: int) -> Side:
    return _partial(sgd("l1", 1e-5), rows, n_classes)


def _vowpal_wabbit(rows: Rows, n_classes: int) -> Side:
    import vowpalwabbit

    model = vowpalwabbit.Workspace(f"--oaa {n_classes} --loss_function logistic -b 22 --quiet")
    lines = vowpal_lines(*rows)
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
    orgfw = partial(_running, "ORGFW")
    columns = Columns({"": "<72", "us": ">10.2f", "ratio": ">8.2f"})

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
        n = 400 // B
        sides = {
            f"{method}.run, C={C}, B={B}, d={d}": partial(
                _running, method, _words(2000, d, C), C, B, n
            )
            for d in (FEATURES[0], most)
        }
        yield from measure(sides, n)
    rows = _words(2000, most, 20)
    sides = {f"ORGFW.run, C=20, B=256, d={most}": partial(orgfw, rows, 20, 256, 10)}
    yield from measure(sides, 10)
    rows = _words(400, 2**18, 20)
    sides = {
        f"ORGFW.run, C=20, B=1, d={2**18}": partial(orgfw, rows, 20, 1, 400),
        "SGDClassifier(penalty='l1').partial_fit, row by row": partial(_sgd, rows, 20),
        "Vowpal Wabbit, row by row": partial(_vowpal_wabbit, rows, 20),
    }
    yield from measure(sides, 400)
    for C, d in ((2, 10), (3, 50), (10, 784)):
        sides = {f"ORGFW.run, C={C}, B=1, d={d}, dense": partial(
            orgfw, _numbers(4000, d, C), C, 1, 20_000
        )}  # fmt: skip
        yield from measure(sides, 20_000)
    sides = {
        f"ORGFW.observe, C=3, B={B}, d=50, dense": partial(
            _observing, _numbers(1000 * B, 50, 3), 3, B, 1000
        )
        for B in (1, 4, 16)
    }
    yield from measure(sides, 1000)
    rows = _words(400, most, 20)
    sides = {
        f"ProjectionFreeClassifier(vertex_size={k!r}).partial_fit, C=20, a row": partial(
            _partial, ProjectionFreeClassifier(vertex_size=k), rows, 20
        )
        for k in (1, "auto")
    }
    yield from measure(sides, 400)
