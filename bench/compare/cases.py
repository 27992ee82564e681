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
from bench.compare import numpy_side
from bench.compare.data import (
    CIFAR10,
    DENSE,
    DTYPES,
    MNIST,
    NETWORK,
    SPARSE,
    WIDE,
    Shape,
    dataset,
)
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
    dtype, arithmetic : str
        That of the features, and that of the decisions where it is another (features are bytes).
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
    arithmetic: str = ""
    threads: int = 1

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
    def has_floor(self) -> bool:
        """Whether a round is one reading of the batch and two products."""
        return self.method in ("orgfw", "regularized-ofw") and not self.shape.csr

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

    def learner(self) -> Any:
        """The learner of fastfw at round 1."""
        s = self.shape
        problem = fw.SoftmaxRegression(s.d, s.n_classes)
        ball = fw.RowL1Ball((s.n_classes, s.d), s.radius)
        return METHODS[self.method.split()[0]][0](self, problem, ball)

    def by_numpy(self, learner: Any = None) -> Any:
        """NumPy's side at round 1, with the draws of a learner if one is given."""
        return METHODS[self.method.split()[0]][1](self, learner)

    def check(self, make: Callable[[Case], Any] | None = None, rounds: int | None = None) -> None:
        """Raise AssertionError unless fastfw and another side play the same decisions.

        By default the other side is NumPy, with the same draws.
        """
        rounds = self.checked if rounds is None else rounds
        stream = next(self.streams(rounds))
        result = self.learner().run(stream, checkpoints=range(1, rounds + 1))
        side = self.by_numpy(self.learner()) if make is None else make(self)
        # Rounding grows little in so few rounds; entries are at most the radius. Other libraries
        # add in another order than the reference.
        tolerance = {"float64": 1e-12, "float32": 1e-5}[self.arithmetic or self.dtype]
        tolerance *= 1 if make is None else 10
        for batch, x, wanted in zip(stream, result.decisions, result.losses, strict=True):
            loss, played = side.play_round(batch.rows)
            np.testing.assert_allclose(played, x, rtol=0, atol=tolerance)
            np.testing.assert_allclose(loss, wanted, rtol=tolerance, atol=0)


# --- methods --------------------------------------------------------------------------------------

ORGFW_STEP, ORGFW_MOMENTUM = (1.0, 1.0), (1.0, 2 / 3)
NETWORK_STEP, NETWORK_MOMENTUM = (2.0, 1.0), (0.25, 0.5)
HIDDEN = 10
OFW_STEP = {False: (0.5, 2 / 3), True: (1.0, 1 / 2)}
REGULARIZED = {"rounds": 400, "scale": 1e4}
META = {"morgfw": {"momentum": (2.0, 1 / 2), "scale": 100.0, "K": HORIZON}}
META["metafw"] = {"momentum": (4.0, 1 / 2), "scale": 20.0, "K": HORIZON * 10}


def _orgfw(case: Case, problem: Any, ball: Any) -> Any:
    return fw.ORGFW(
        problem, ball, step=fw.power_schedule(*ORGFW_STEP),
        momentum=fw.power_schedule(*ORGFW_MOMENTUM), dtype=case.arithmetic or case.dtype,
        threads=case.threads,
    )  # fmt: skip


def _numpy_orgfw(case: Case, learner: Any) -> Any:
    return numpy_side.ORGFW(case.data, case.shape.radius, *orgfw_schedules())


def orgfw_schedules() -> tuple[Any, Any]:
    """Step and momentum of ORGFW."""
    return reference.power_schedule(*ORGFW_STEP), reference.power_schedule(*ORGFW_MOMENTUM)


def _regularized(case: Case, problem: Any, ball: Any) -> Any:
    return fw.RegularizedOFW(problem, ball, step=fw.power_schedule(1.0, 1.0), **REGULARIZED)


def _numpy_regularized(case: Case, learner: Any) -> Any:
    eta = REGULARIZED["scale"] / REGULARIZED["rounds"] ** 0.75
    step = reference.power_schedule(1.0, 1.0)
    return numpy_side.RegularizedOFW(case.data, case.shape.radius, step, eta)


def _past(case: Case, problem: Any, ball: Any) -> Any:
    method = fw.OAW if case.method.startswith("oaw") else fw.OFW
    return method(problem, ball, step=fw.power_schedule(*OFW_STEP[case.once]))


def _numpy_past(case: Case, learner: Any) -> Any:
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


def _numpy_meta(case: Case, learner: Any) -> Any:
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


def network_problem(case: Case) -> tuple[Any, Any, Any]:
    """The paper's network, its set, and a vertex to start at, so that no oracle meets ties."""
    problem = fw.OneHiddenLayer(case.shape.d, HIDDEN, case.shape.n_classes)
    M = problem.l1_balls(case.shape.radius, case.shape.radius)
    vertex = M.lmo(np.random.default_rng(1).standard_normal(problem.shape))
    return problem, M, np.asarray(vertex).astype(case.dtype)


def _network(case: Case, *_: Any) -> Any:
    problem, M, start = network_problem(case)
    step, momentum = fw.power_schedule(*NETWORK_STEP), fw.power_schedule(*NETWORK_MOMENTUM)
    return fw.ORGFW(problem, M, step=step, momentum=momentum, start=start, dtype=case.dtype)


def _numpy_network(case: Case, learner: Any) -> Any:
    _, _, start = network_problem(case)
    shape = reference_network.Shape(case.shape.d, HIDDEN, case.shape.n_classes)
    powers = (reference.power_schedule(*pair) for pair in (NETWORK_STEP, NETWORK_MOMENTUM))
    return numpy_side.Network(case.data, shape, start, case.shape.radius, *powers)


#: name: the learner, from case, problem and set, and NumPy's side, from case and learner
METHODS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "orgfw": (_orgfw, _numpy_orgfw),
    "regularized-ofw": (_regularized, _numpy_regularized),
    "ofw": (_past, _numpy_past),
    "oaw": (_past, _numpy_past),
    "morgfw": (_meta, _numpy_meta),
    "metafw": (_meta, _numpy_meta),
    "network": (_network, _numpy_network),
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
    "network": "ORGFW on a network, B = 16",
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
    Case("ofw once", MNIST, "float64", once=True, **_AT_100),
    Case("oaw", MNIST, "float64", **_AT_100),
    *(Case("network", NETWORK, dtype, rounds=100, checked=100) for dtype in DTYPES),
)

#: How many times as long NumPy is to take as `run`.
GOALS = {
    "orgfw mnist": 5, "orgfw cifar10": 5, "morgfw sub-batch mnist": 30,
    "morgfw whole-batch mnist": 15, "morgfw whole-batch literal mnist": 15, "metafw mnist": 30,
    "ofw mnist": 3, "ofw once mnist": 3, "network mnist": 4,
}  # fmt: skip
