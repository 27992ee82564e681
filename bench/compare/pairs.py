"""The work that is compared: the same rounds by fastfw and by NumPy as the paper writes them.

A *case* is a shape and a dtype with synthetic data of that shape. Both sides get the rows of
the same batches by number, from data much larger than the caches, and go on from round to
round with the same schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np

import fastfw as fw
import reference
from fastfw.streams import Dataset, IndexedStream


@dataclass(frozen=True)
class Shape:
    """Sizes of a data set and its batches; ``n`` is enough to leave every cache behind."""

    name: str
    n: int
    d: int
    n_classes: int
    batch_size: int
    radius: float


SHAPES = (
    Shape("mnist", n=20_000, d=784, n_classes=10, batch_size=600, radius=8.0),
    Shape("cifar10", n=10_000, d=3072, n_classes=10, batch_size=500, radius=32.0),
)
DTYPES = ("float64", "float32")

STEP = reference.power_schedule(1.0, 1.0)
MOMENTUM = reference.power_schedule(1.0, 2 / 3)


@dataclass(frozen=True)
class Case:
    """One shape and dtype, its data made on first use."""

    shape: Shape
    dtype: str

    @property
    def name(self) -> str:
        return f"{self.shape.name} {self.dtype}"

    @cached_property
    def data(self) -> Dataset:
        """Pixels in [0, 1], four fifths of them dark as in MNIST, and labels that they decide."""
        rng = np.random.default_rng(0)
        s = self.shape
        X = rng.random((s.n, s.d), dtype=np.float32)
        X *= rng.random((s.n, s.d), dtype=np.float32) < 0.2
        scores = X @ rng.standard_normal((s.d, s.n_classes), dtype=np.float32)
        return Dataset(X.astype(self.dtype), scores.argmax(axis=1))

    def stream(self, rounds: int, seed: int = 0) -> IndexedStream:
        """Batches of rows drawn with replacement."""
        return fw.iid_stream(
            self.data, None, batch_size=self.shape.batch_size, rounds=rounds, seed=seed
        )

    def learner(self) -> fw.ORGFW:
        """ORGFW at round 1; its decisions take the dtype of the data."""
        s = self.shape
        problem = fw.SoftmaxRegression(s.d, s.n_classes)
        ball = fw.RowL1Ball((s.n_classes, s.d), s.radius)
        return fw.ORGFW(problem, ball, step=STEP, momentum=MOMENTUM)

    @cached_property
    def floor(self) -> tuple[int, int]:
        """Bytes and operations no round can do without: one reading of the batch, two products."""
        s = self.shape
        size = s.batch_size * s.d
        return size * np.dtype(self.dtype).itemsize, 4 * size * s.n_classes


CASES = tuple(Case(shape, dtype) for shape in SHAPES for dtype in DTYPES)


class NumpyORGFW:
    """The reference's round, called again and again."""

    def __init__(self, case: Case) -> None:
        s = case.shape
        self.X, self.y, self.radius = case.data.X, case.data.y, s.radius
        self.x = self.x_prev = np.zeros((s.n_classes, s.d), dtype=case.dtype)
        self.d: Any = None
        self.t = 1

    def observe(self, rows: Any) -> float:
        """One round on the rows of that number, gathered as ``X[rows]``."""
        value, x, self.d = reference.orgfw_round(
            self.x,
            self.x_prev,
            self.d,
            self.X[rows],
            self.y[rows],
            MOMENTUM(self.t),
            STEP(self.t),
            self.radius,
            self.t == 1,
        )
        self.x_prev, self.x = self.x, x
        self.t += 1
        return value


def fastfw_rounds(case: Case, rounds: int) -> Callable[[], Any]:
    """A call that goes on for that many rounds in compiled code."""
    learner = case.learner()
    streams = _fresh(case, rounds)
    learner.run(next(streams))
    return lambda: learner.run(next(streams))


def fastfw_observations(case: Case, rounds: int) -> Callable[[], Any]:
    """A call that observes that many batches one by one from Python."""
    learner = case.learner()
    streams = _fresh(case, rounds)
    learner.run(next(streams))

    def go_on() -> None:
        for batch in next(streams):
            learner.observe(batch)

    go_on()
    return go_on


def numpy_rounds(case: Case, rounds: int) -> Callable[[], Any]:
    """A call that goes on for that many rounds in NumPy as the paper writes them."""
    learner = NumpyORGFW(case)
    streams = _fresh(case, rounds)

    def go_on() -> None:
        for batch in next(streams):
            learner.observe(batch.rows)

    go_on()
    return go_on


def _fresh(case: Case, rounds: int) -> Iterator[IndexedStream]:
    """Streams of that many rounds, endlessly: eight seeds, so that no cache learns the rows."""
    return chain.from_iterable(repeat([case.stream(rounds, seed) for seed in range(8)]))
