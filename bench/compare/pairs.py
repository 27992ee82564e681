"""The work that is compared: the same rounds by fastfw and by NumPy as the paper writes them.

Both sides get the rows of batches by number, and go on from round to round with the same
schedules: the paper's for MNIST. A side is a function; each call makes ready for some rounds
and returns the function that plays them, which alone is timed.
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
from bench.compare import numpy_side
from bench.compare.data import CIFAR10, DENSE, DTYPES, MNIST, SPARSE, WIDE, Shape, dataset
from fastfw.streams import Dataset, IndexedStream

HORIZON = 100
SUB_BATCH = 4


@dataclass(frozen=True)
class Case:
    """A method at a shape and a dtype.

    Attributes
    ----------
    method : str
        What the name begins with.
    rounds : int
        Rounds per turn, of either side.
    turns : int
        Turns of each side.
    before : int
        Rounds played before the first turn, which is not timed either.
    checked : int
        Rounds in which both sides' decisions are compared.
    once : bool
        Whether no row comes twice, as in the adversarial setting; else rows are drawn.
    """

    method: str
    shape: Shape
    dtype: str
    # 15 turns of 26 rounds: about the 400 rounds of the paper
    rounds: int = 26
    turns: int = 15
    before: int = 2
    checked: int = 20
    once: bool = False

    @property
    def name(self) -> str:
        return f"{self.method} {self.shape.name} {self.dtype}"

    @property
    def label(self) -> str:
        """The name as a picture shows it."""
        return f"{LABELS[self.method]}, {self.shape.label}, {self.dtype}"

    @property
    def data(self) -> Dataset:
        return dataset(self.shape, self.dtype)

    @property
    def turns_fixed(self) -> bool:
        """Whether rounds get longer, so that the turns have to surround round 100."""
        return self.method.split()[0] in ("ofw", "oaw")

    @property
    def floor(self) -> tuple[int, int] | None:
        """Bytes and operations no round can do without: one reading of the batch, two products."""
        if self.method not in ("orgfw", "regularized-ofw") or self.shape.csr:
            return None
        size = self.shape.batch_size * self.shape.d
        return size * np.dtype(self.dtype).itemsize, 4 * size * self.shape.n_classes

    def streams(self, first: int, then: int) -> Iterator[IndexedStream]:
        """A stream of the first rounds, and streams that go on where the one before ended."""
        n, size = self.shape.n, self.shape.batch_size
        rng = np.random.default_rng(1)
        order = rng.permutation(n) if self.once else None
        used = 0
        for rounds in chain([first], repeat(then)):
            count = rounds * size
            rows = rng.integers(n, size=count) if order is None else order[used : used + count]
            used += count
            yield IndexedStream(self.data, rows.reshape(rounds, size))

    def learner(self) -> Any:
        """The learner of fastfw at round 1; its decisions take the dtype of the data."""
        s = self.shape
        problem = fw.SoftmaxRegression(s.d, s.n_classes)
        ball = fw.RowL1Ball((s.n_classes, s.d), s.radius)
        return METHODS[self.method.split()[0]][0](self, problem, ball)

    def by_numpy(self, learner: Any = None) -> numpy_side.Side:
        """NumPy's side at round 1, with the draws of a learner if one is given."""
        return METHODS[self.method.split()[0]][1](self, learner)

    def check(self, rounds: int | None = None) -> None:
        """Raise AssertionError unless both sides play the same decisions on the same draws."""
        rounds = self.checked if rounds is None else rounds
        stream = next(self.streams(rounds, 1))
        result = self.learner().run(stream, checkpoints=range(1, rounds + 1, 2))
        side = self.by_numpy(self.learner())
        played = [side.play_round(batch.rows) for batch in stream]
        # Rounding grows little in so few rounds; entries are at most the radius.
        tolerance = {"float64": 1e-12, "float32": 1e-5}[self.dtype]
        losses, decisions = [loss for loss, _ in played], [x for _, x in played[::2]]
        np.testing.assert_allclose(result.decisions, np.array(decisions), rtol=0, atol=tolerance)
        np.testing.assert_allclose(result.losses, losses, rtol=tolerance, atol=0)


# --- methods --------------------------------------------------------------------------------------

ORGFW_STEP, ORGFW_MOMENTUM = (1.0, 1.0), (1.0, 2 / 3)
OFW_STEP = {False: (0.5, 2 / 3), True: (1.0, 1 / 2)}
REGULARIZED = {"rounds": 400, "eta": 1e4}
META = {"morgfw": {"momentum": (2.0, 1 / 2), "scale": 100.0, "K": HORIZON}}
META["metafw"] = {"momentum": (4.0, 1 / 2), "scale": 20.0, "K": HORIZON * 10}


def _orgfw(case: Case, problem: Any, ball: Any) -> Any:
    step, momentum = fw.power_schedule(*ORGFW_STEP), fw.power_schedule(*ORGFW_MOMENTUM)
    return fw.ORGFW(problem, ball, step=step, momentum=momentum)


def _numpy_orgfw(case: Case, learner: Any) -> numpy_side.Side:
    powers = (reference.power_schedule(*pair) for pair in (ORGFW_STEP, ORGFW_MOMENTUM))
    return numpy_side.ORGFW(case.data, case.shape.radius, *powers)


def _regularized(case: Case, problem: Any, ball: Any) -> Any:
    return fw.RegularizedOFW(problem, ball, step=fw.power_schedule(1.0, 1.0), **REGULARIZED)


def _numpy_regularized(case: Case, learner: Any) -> numpy_side.Side:
    eta = REGULARIZED["eta"] / REGULARIZED["rounds"] ** 0.75
    step = reference.power_schedule(1.0, 1.0)
    return numpy_side.RegularizedOFW(case.data, case.shape.radius, step, eta)


def _past(case: Case, problem: Any, ball: Any) -> Any:
    method = fw.OAW if case.method.startswith("oaw") else fw.OFW
    return method(problem, ball, step=fw.power_schedule(*OFW_STEP[case.once]))


def _numpy_past(case: Case, learner: Any) -> numpy_side.Side:
    side = numpy_side.OAW if case.method.startswith("oaw") else numpy_side.OFW
    return side(case.data, case.shape.radius, reference.power_schedule(*OFW_STEP[case.once]))


def _sub_batch(case: Case) -> int | None:
    return None if "whole" in case.method else SUB_BATCH


def _meta(case: Case, problem: Any, ball: Any) -> Any:
    name = case.method.split()[0]
    own = META[name]
    return {"morgfw": fw.MORGFW, "metafw": fw.MetaFrankWolfe}[name](
        problem, ball, rounds=HORIZON, inner_steps=own["K"], base=fw.FTPL(scale=own["scale"]),
        step=fw.power_schedule(1.0, 1.0), momentum=fw.power_schedule(*own["momentum"]),
        sub_batch_size=_sub_batch(case),
    )  # fmt: skip


def _numpy_meta(case: Case, learner: Any) -> numpy_side.Side:
    name, s = case.method.split()[0], case.shape
    own = META[name]
    draws: dict[str, Any] = {}
    if learner is not None:

        def noise(t: int, k: int) -> Any:
            return learner.base.perturbation((s.n_classes, s.d), t=t, k=k)

        draws = {"noise": noise, "picked": lambda t, k: learner.sub_batch(t, k, s.batch_size)}
    return numpy_side.Meta(
        case.data, s.radius, reference.power_schedule(1.0, 1.0),
        reference.power_schedule(*own["momentum"]), inner_steps=own["K"], scale=own["scale"],
        horizon=HORIZON, batch_size=s.batch_size, sub_batch_size=_sub_batch(case),
        directions={
            "morgfw": partial(reference.morgfw_directions, literally="literal" in case.method),
            "metafw": reference.meta_frank_wolfe_directions,
        }[name],
        **draws,
    )  # fmt: skip


METHODS: dict[str, tuple[Callable[..., Any], Callable[..., numpy_side.Side]]] = {
    "orgfw": (_orgfw, _numpy_orgfw),
    "regularized-ofw": (_regularized, _numpy_regularized),
    "ofw": (_past, _numpy_past),
    "oaw": (_past, _numpy_past),
    "morgfw": (_meta, _numpy_meta),
    "metafw": (_meta, _numpy_meta),
}

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
}

# 86 rounds before, a turn of 3 that is not timed, and 7 that are: rounds 90 to 110.
_AT_100: dict[str, Any] = {
    "rounds": 3, "turns": 7, "before": 86, "checked": 6,
}  # fmt: skip

CASES = (
    *(Case("orgfw", shape, dtype) for shape in (MNIST, CIFAR10) for dtype in DTYPES),
    *(Case("orgfw", SPARSE, dtype, rounds=10, checked=6) for dtype in DTYPES),
    Case("orgfw", WIDE, "float64", rounds=3, turns=7, checked=3),
    Case("regularized-ofw", MNIST, "float64"),
    *(
        Case("morgfw sub-batch", MNIST, dtype, rounds=12, turns=15, checked=3)
        for dtype in DTYPES
    ),
    *(
        Case("morgfw whole-batch", shape, dtype, rounds=3, turns=9, checked=3)
        for shape, dtype in ((MNIST, "float64"), (MNIST, "float32"), (DENSE, "float64"))
    ),
    *(
        Case(
            "morgfw whole-batch literal", MNIST, dtype, rounds=3, turns=7, checked=3
        )
        for dtype in DTYPES
    ),
    Case("metafw", MNIST, "float64", rounds=3, turns=7, checked=3),
    *(Case("ofw", MNIST, dtype, **_AT_100) for dtype in DTYPES),
    Case("ofw once", MNIST, "float64", once=True, **_AT_100),
    Case("oaw", MNIST, "float64", **_AT_100),
)


def choose(wanted: list[str]) -> list[Case]:
    """Cases whose names have all words of one of the given strings.

    Raises
    ------
    ValueError
        If a string chooses none.
    """
    for words in wanted:
        if not any(set(words.split()) <= set(case.name.split()) for case in CASES):
            names = ", ".join(case.name for case in CASES)
            raise ValueError(f"no case {words!r}; there are {names}")
    return [
        case
        for case in CASES
        if not wanted or any(set(w.split()) <= set(case.name.split()) for w in wanted)
    ]


# --- sides ----------------------------------------------------------------------------------------

Turn = Callable[[], Any]


def fastfw_rounds(case: Case, before: int | None = None) -> Callable[[], Turn]:
    """Rounds in compiled code, after `before` rounds (by default the case's own number)."""
    learner, streams = case.learner(), case.streams(before or case.before, case.rounds)
    learner.run(next(streams))

    def turn() -> Turn:
        stream = next(streams)
        return lambda: learner.run(stream)

    return turn


def fastfw_observations(case: Case, before: int | None = None) -> Callable[[], Turn]:
    """Batches observed one by one from Python."""
    learner, streams = case.learner(), case.streams(before or case.before, case.rounds)
    learner.run(next(streams))

    def turn() -> Turn:
        batches = list(next(streams))

        def play() -> None:
            for batch in batches:
                learner.observe(batch)

        return play

    return turn


def numpy_rounds(case: Case, before: int | None = None) -> Callable[[], Turn]:
    """Rounds in NumPy as the paper writes them."""
    side, streams = case.by_numpy(), case.streams(before or case.before, case.rounds)
    for batch in next(streams):
        side.play_round(batch.rows)

    def turn() -> Turn:
        batches = list(next(streams))

        def play() -> None:
            for batch in batches:
                side.play_round(batch.rows)

        return play

    return turn


SIDES = {
    "fastfw-run": fastfw_rounds,
    "fastfw-observe": fastfw_observations,
    "numpy": numpy_rounds,
}
