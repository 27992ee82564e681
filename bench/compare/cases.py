"""The work that is compared: the same rounds by fastfw and by NumPy as the paper writes them.

Both sides get the rows of batches by number, and go on from round to round with the same
schedules: the paper's for MNIST.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import Any

import numpy as np

import fastfw as fw
import reference
import reference_network
from bench.data import DTYPES, Shape, dataset
from fastfw.experiments.methods import NETWORK_PRESETS, PRESETS, Constants, Method, find_methods
from fastfw.learners._method import SUB_BATCH
from fastfw.streams import Dataset, IndexedStream

HIDDEN = 10
#: Share of the pixels that tell classes apart.
TELLING = 0.22

# A little more than MNIST has, so that 110 rounds can go without drawing a row twice.
MNIST = Shape(66_000, 784, 10, 600, 8.0, telling=TELLING, name="mnist", label="MNIST")
DENSE = MNIST._replace(n=20_000, share=1.0, name="dense", label="MNIST without zeros")
NETWORK = MNIST._replace(n=20_000, batch_size=16, radius=10.0)
CIFAR10 = Shape(10_000, 3072, 10, 500, 32.0, telling=TELLING, name="cifar10", label="CIFAR-10")
# Words of documents: one in a hundred, kept as a CSR matrix, and as a dense one of fewer rows.
SPARSE = Shape(
    5_000, 100_000, 10, 256, 32.0, share=0.01, telling=TELLING, csr=True, name="sparse",
    label="100,000 features, 1 %, CSR",
)  # fmt: skip
WIDE = SPARSE._replace(n=300, csr=False, name="wide", label="100,000 features, 1 %, dense")


@dataclass(frozen=True)
class Case:
    """A method at a shape and a dtype.

    Attributes
    ----------
    method : str
        What the name begins with.
    features : str
        Those of `dataset`: a dtype, or bytes and that of the decisions.
    rounds : int
        Rounds per turn, of either side.
    turns : int
        Turns of each side.
    before : int
        Rounds played before the first turn, which is not timed either.
    checked : int
        Rounds in which both sides' decisions are compared.
    """

    method: str
    shape: Shape
    features: str
    # 15 turns of 26 rounds: about the 400 rounds of the paper
    rounds: int = 26
    turns: int = 15
    before: int = 2
    checked: int = 20
    threads: int = 1

    @property
    def name(self) -> str:
        return f"{self.method} {self.shape.name} {self.features}"

    @property
    def label(self) -> str:
        """The name as a picture shows it."""
        return f"{LABELS[self.method]}, {self.shape.label}, {self.features}"

    @property
    def dtype(self) -> str:
        return self.features.split()[-1]

    @property
    def data(self) -> Dataset:
        return dataset(self.shape, self.features)

    @property
    def once(self) -> bool:
        """Whether no row comes twice, as in the adversarial setting; else rows are drawn."""
        return self.method.endswith("once")

    @property
    def network(self) -> bool:
        return self.method == "network"

    @property
    def row(self) -> Method:
        """The method's row of the table."""
        return find_methods(["orgfw" if self.network else self.method.split()[0]])[0]

    @property
    def horizon(self) -> int:
        """The number of rounds that the method is told; of meta methods it gives K."""
        return 100 if self.row.meta else 400

    @property
    def constants(self) -> Constants:
        setting = "adversarial" if self.once or self.row.meta else "stochastic"
        presets = NETWORK_PRESETS["mnist"] if self.network else PRESETS[f"mnist-{setting}"]
        return presets[self.row.name]

    @property
    def schedules(self) -> list[Callable[[int], float]]:
        """Step and, if the method has it, momentum, in plain Python."""
        pairs = self.constants.step, self.constants.momentum
        return [reference.power_schedule(*pair) for pair in pairs if isinstance(pair, tuple)]

    @property
    def operations(self) -> int:
        """Of the two products of a round."""
        return 4 * self.shape.batch_size * self.shape.d * self.shape.n_classes

    @property
    def batch_bytes(self) -> int:
        """Of a batch of floats."""
        return self.shape.batch_size * self.shape.d * np.dtype(self.dtype).itemsize

    def streams(self, first: int | None = None, then: int | None = None) -> Iterator[IndexedStream]:
        """A stream of the first rounds, and streams that go on where the one before ended.

        By default those before the first turn, and those of a turn.
        """
        n, size = self.shape.n, self.shape.batch_size
        rng = np.random.default_rng(1)
        order = rng.permutation(n) if self.once else None
        used = 0
        for rounds in chain([first or self.before], repeat(then or self.rounds)):
            count = rounds * size
            rows = rng.integers(n, size=count) if order is None else order[used : used + count]
            used += count
            yield IndexedStream(self.data, rows.reshape(rounds, size))

    def problem_set_start(self) -> tuple[Any, Any, Any]:
        """The problem, its set, and where to start: a network at a vertex, where no two tie."""
        s = self.shape
        if not self.network:
            problem = fw.SoftmaxRegression(s.d, s.n_classes)
            return problem, fw.RowL1Ball(problem.shape, s.radius), np.zeros(problem.shape)
        network = fw.OneHiddenLayer(s.d, HIDDEN, s.n_classes)
        balls = network.l1_balls(s.radius, s.radius)
        direction = np.random.default_rng(1).standard_normal(network.shape)
        return network, balls, np.asarray(balls.lmo(direction))

    def learner(self) -> Any:
        """The learner of fastfw at round 1."""
        problem, set, start = self.problem_set_start()
        return self.row.build(
            problem, set, self.constants, rounds=self.horizon, seed=0,
            sub_batch_size=None if "whole" in self.method else SUB_BATCH,
            start=start if self.network else None, dtype=self.dtype, threads=self.threads,
        )  # fmt: skip

    def check(self, make: Callable[[Case], Any] | None = None, rounds: int | None = None) -> None:
        """Raise AssertionError unless fastfw and another side play the same decisions.

        By default the other side is NumPy, with the same draws.
        """
        rounds = self.checked if rounds is None else rounds
        stream = next(self.streams(rounds))
        result = self.learner().run(stream, checkpoints=range(1, rounds + 1))
        side = Player(self, self.learner()) if make is None else make(self)
        # Rounding grows little in so few rounds; entries are at most the radius. Other libraries
        # add in another order than the reference.
        tolerance = {"float64": 1e-12, "float32": 1e-5}[self.dtype]
        tolerance *= 1 if make is None else 10
        for batch, x, wanted in zip(stream, result.decisions, result.losses, strict=True):
            loss, played = side.play_round(batch.rows)
            np.testing.assert_allclose(played, x, rtol=0, atol=tolerance)
            np.testing.assert_allclose(loss, wanted, rtol=tolerance, atol=0)


# --- rounds of tests/reference.py, one at a time --------------------------------------------------


class Player:
    """NumPy's side at round 1, with the draws of a learner if one is given.

    ``play_round(rows)`` gathers the batch as ``X[rows]``, plays the round and returns its loss and
    the decision that was played.
    """

    def __init__(self, case: Case, learner: Any = None) -> None:
        self.X, self.y = case.data.X, case.data.y
        self.rows: Any = None
        self.rounds = (_meta if case.row.meta else _rounds)(case, self._batches(), learner)

    def _batches(self) -> Iterator[tuple[Any, Any]]:
        while True:
            yield self.X[self.rows], self.y[self.rows]

    def play_round(self, rows: Any) -> tuple[float, Any]:
        self.rows = rows
        return next(self.rounds)


def _rounds(case: Case, batches: Iterator[Any], learner: Any) -> Iterator[tuple[float, Any]]:
    """Loss and decision of rounds by methods that draw nothing."""
    name, radius = case.row.learner.lower(), case.shape.radius
    x = case.problem_set_start()[2].astype(case.dtype)
    if case.network:
        sizes = reference_network.Shape(case.shape.d, HIDDEN, case.shape.n_classes)
        rounds = reference_network.methods(sizes).orgfw.rounds(
            x, batches, (radius,) * 4, *case.schedules
        )
    elif name == "oaw":
        rounds = reference.oaw_rounds(reference.ActiveSet(x), batches, radius, *case.schedules)
    elif name == "regularizedofw":
        c, T = case.constants.scale, case.horizon
        rounds = reference.regularised_ofw.rounds(x, batches, radius, *case.schedules, c, T)
    else:
        rounds = getattr(reference, name).rounds(x, batches, radius, *case.schedules)
    for loss, x_next, *_ in rounds:
        yield float(loss), x
        x = x_next


def _meta(case: Case, batches: Iterator[Any], learner: Any) -> Iterator[tuple[float, Any]]:
    """The same of meta methods; draws that no learner gives come from NumPy's generator.

    Inner points of a round are found in it, not when the round before ends.
    """
    s, start = case.shape, case.problem_set_start()[2].astype(case.dtype)
    rng = np.random.default_rng(0)

    def noise(t: int, k: int) -> Any:
        if learner is not None:
            return learner.base.perturbation(start.shape, t=t, k=k)
        return rng.random(start.shape, dtype=start.dtype.type) - start.dtype.type(0.5)

    def picked(t: int, k: int) -> Any:
        if learner is not None:
            return learner.sub_batch(t, k, s.batch_size)
        return rng.integers(s.batch_size, size=SUB_BATCH)

    def base(k: int) -> Any:
        return reference.FTPL(
            start.shape, s.radius, case.constants.scale, case.horizon, partial(noise, k=k),
            start.dtype,
        )  # fmt: skip

    directions = {
        "morgfw": partial(reference.morgfw_directions, literally="literal" in case.method),
        "metafw": reference.meta_frank_wolfe_directions,
    }[case.row.name]
    bases = [base(k) for k in range(1, case.learner().inner_steps + 1)]
    for t, batch in enumerate(batches, start=1):
        rows = None if "whole" in case.method else partial(picked, t)
        played = reference.meta_round(
            start, bases, *batch, *case.schedules, rows, directions=directions
        )
        yield played.loss, played.inner[-1]


# --- the cases ------------------------------------------------------------------------------------

LABELS = {
    "orgfw": "ORGFW",
    "regularized-ofw": "RegularizedOFW",
    "morgfw sub-batch": "MORGFW K = 100, sub-batches",
    "morgfw whole-batch": "MORGFW K = 100, whole batches",
    "morgfw whole-batch literal": "MORGFW K = 100, whole batches, line 13 literally",
    "metafw": "MetaFrankWolfe K = 1000, sub-batches",
    "ofw": "OFW round 100",
    "ofw once": "OFW round 100, no row twice",
    "oaw": "OAW round 100",
    "network": "ORGFW on a network, B = 16",
}

# 86 rounds before, a turn of 3 that is not timed, and 7 that are: rounds 90 to 110.
_AT_100: dict[str, Any] = {"rounds": 3, "turns": 7, "before": 86, "checked": 6}

CASES = (
    *(Case("orgfw", shape, dtype) for shape in (MNIST, CIFAR10) for dtype in DTYPES),
    *(Case("orgfw", SPARSE, dtype, rounds=10, checked=6) for dtype in DTYPES),
    Case("orgfw", WIDE, "float64", rounds=3, turns=7, checked=3),
    Case("regularized-ofw", MNIST, "float64"),
    *(Case("morgfw sub-batch", MNIST, dtype, rounds=12, turns=15, checked=3) for dtype in DTYPES),
    *(
        Case("morgfw whole-batch", shape, dtype, rounds=3, turns=9, checked=3)
        for shape, dtype in ((MNIST, "float64"), (MNIST, "float32"), (DENSE, "float64"))
    ),
    *(
        Case("morgfw whole-batch literal", MNIST, dtype, rounds=3, turns=7, checked=3)
        for dtype in DTYPES
    ),
    Case("metafw", MNIST, "float64", rounds=3, turns=7, checked=3),
    *(Case("ofw", MNIST, dtype, **_AT_100) for dtype in DTYPES),
    Case("ofw once", MNIST, "float64", **_AT_100),
    Case("oaw", MNIST, "float64", **_AT_100),
    *(Case("network", NETWORK, dtype, rounds=100, checked=100) for dtype in DTYPES),
)

#: How many times as long NumPy is to take as `run`.
GOALS = {
    "orgfw mnist": 5, "orgfw cifar10": 5, "morgfw sub-batch mnist": 30,
    "morgfw whole-batch mnist": 15, "morgfw whole-batch literal mnist": 15, "metafw mnist": 30,
    "ofw mnist": 3, "ofw once mnist": 3, "network mnist": 4,
}  # fmt: skip
