"""Rounds of fastfw, of NumPy as the paper writes them and of other libraries, in turn.

Every side is first checked to play the same decisions as fastfw.
"""

from __future__ import annotations

import statistics
import threading
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter, process_time
from typing import Any

import numpy as np

from bench.compare import peers
from bench.compare.cases import CASES, GOALS, HIDDEN, NETWORK, Case, Player
from bench.compare.pictures import bars
from bench.compare.turns import (
    Limits,
    Result,
    Side,
    Work,
    floor,
    limit_lines,
    load,
    machine_limits,
    observing,
    playing,
    ratio,
    running,
    summary,
    take_turns,
)
from bench.data import DTYPES, Shape

SIDES = {
    "fastfw-run": running,
    "fastfw-observe": observing,
    "numpy": partial(playing, Player),
}
ROUNDS = 10
#: The same where threads are beside one: a whole run of the paper's on CIFAR-10.
THREAD_ROUNDS = 100


# --- beside NumPy as the paper writes it ----------------------------------------------------------


def measure(case: Case, turns: int | None, limits: Limits) -> Result:
    """Check that both sides do the same, then let them take turns."""
    case.check()
    sides = [make(case) for make in SIDES.values()]
    times = take_turns(sides, turns or case.turns)
    per_round = [[1e3 * t / case.rounds for t in side] for side in times]
    least = floor(case, limits) if case.has_floor else None
    return summary(case.name, case.label, per_round, least)


HEADER = (
    f"{'ms per round':<40} {'NumPy':>7} {'run':>7} {'observe':>7} {'/run':>6} {'/obs.':>6} "
    f"{'quickest':>8} {'/floor':>6} {'goal':>5}"
)


def line(r: Result) -> str:
    """One line of the table; marked where the goal is missed."""
    floor = "" if r.floor is None else f"{r.quickest / r.floor:.2f}"
    goal = GOALS.get(r.name.rpartition(" ")[0])
    text = "" if goal is None else f"{goal}{'' if r.ratio >= goal else ' !'}"
    return (
        f"{r.name:<40} {r.numpy:7.3f} {r.run:7.3f} {r.observe:7.3f} {r.ratio:6.1f} "
        f"{r.ratio_observe:6.1f} {r.ratio_quickest:8.1f} {floor:>6} {text:>5}"
    ).rstrip()


def beside_numpy(work: Work) -> Iterator[Any]:
    """Sides are NumPy as the paper writes it, `learner.run(stream)` and `learner.observe(batch)`.

    Times are medians of CPU time on one thread. /run and /obs. are how many times as long NumPy
    takes, medians over pairs of turns; quickest the same of the quickest turn of each. /floor is
    the quickest turn of `run` over what no round of two products can do without: reading the batch
    once, or the products, whichever takes longer. An exclamation mark: the goal for /run is missed.
    """
    cases = work.choose({case.name: case for case in CASES})
    limits = {dtype: machine_limits(dtype) for dtype in DTYPES}
    yield HEADER
    results = []
    for case in cases.values():
        # rounds of OFW and OAW get longer: their turns have to surround round 100
        turns = None if case.turns_fixed and not work.quick else work.turns
        results.append(measure(case, turns, limits[case.dtype]))
        yield line(results[-1])
    yield from limit_lines(limits)
    yield "rounds.png", bars(results)


# --- beside other libraries -----------------------------------------------------------------------


class Table:
    """Sides of one job, whose times are printed as ratios to the first.

    `unit` begins with ms or us.
    """

    def __init__(self, title: str, unit: str = "ms/round", floor: float | None = None) -> None:
        self.title, self.unit, self.floor = title, unit, floor
        self.sides: list[tuple[str, Side, float, str]] = []
        self.goals: dict[str, float] = {}
        self.skipped: list[tuple[str, str]] = []

    def add(self, name: str, side: Side, units: float, note: str = "") -> None:
        """Take a side whose turns are that many rounds or solutions."""
        self.sides.append((name, side, units, note))

    def add_peers(self, found: dict[str, tuple[str, Callable[[Case], Any]]], case: Case) -> None:
        """Take the peers that are installed, once they are seen to play what fastfw plays."""
        for name, (package, make) in found.items():
            why = peers.missing(package)
            if why is None:
                case.check(make, rounds=12)
                self.add(name, playing(make, case), case.rounds)
            else:
                self.skipped.append((name, why))

    def measure(self, turns: int, clock: Callable[[], float] = process_time) -> list[str]:
        """Let the sides take turns; lines of the table."""
        times = take_turns([side for _, side, _, _ in self.sides], turns, clock)
        scale = {"ms": 1e3, "us": 1e6}[self.unit[:2]]
        each = [
            [scale * t / units for t in own]
            for own, (_, _, units, _) in zip(times, self.sides, strict=True)
        ]
        width = max(len(name) for name, *_ in [*self.sides, *self.skipped]) + 2
        head = f"{'':<{width}}{self.unit:>10}{'to first':>10}{'quickest':>10}"
        head += f"{'to floor':>10}" if self.floor else ""
        lines = [self.title, head + (f"{'goal':>7}" if self.goals else "")]
        for (name, _, _, note), own in zip(self.sides, each, strict=True):
            to_first = ratio(own, each[0])
            line = f"{name:<{width}}{statistics.median(own):>10.3f}{to_first:>10.2f}"
            line += f"{min(own) / min(each[0]):>10.2f}"
            if self.floor:
                line += f"{min(own) / self.floor:>10.2f}"
            if name in self.goals:
                line += f"{self.goals[name]:>7g}{'' if to_first >= self.goals[name] else ' !'}"
            lines.append(line)
            lines += [f"  {note}"] if note else []
        lines += [f"{name:<{width}}  {why}" for name, why in self.skipped]
        if self.floor:
            lines.append(f"{'floor':<{width}}{self.floor:>10.3f}")
        return lines


# --- the tables: each is made for a dtype and the machine's limits in it --------------------------


def round_table(shape: Shape, dtype: str, limits: Limits) -> Table:
    """ORGFW at a shape, by everyone."""
    case = Case("orgfw", shape, dtype, rounds=ROUNDS)
    title = f"ORGFW, {shape.label}'s shape (B = {shape.batch_size}, d = {shape.d}), {dtype}"
    table = Table(title, floor=floor(case, limits))
    table.goals = {"NumPy as written": 5, **dict.fromkeys(list(peers.ROUNDS)[2:], 3)}
    table.add("fastfw, run", running(case), ROUNDS)
    table.add("fastfw, observe", observing(case), ROUNDS)
    coded = Case("orgfw", shape, f"uint8 {dtype}")
    table.add("fastfw, uint8 features, run", running(coded, ROUNDS), ROUNDS)
    table.add_peers(peers.ROUNDS, case)
    return table


def network_table(dtype: str, limits: Limits) -> Table:
    """ORGFW on the paper's network."""
    case = Case("network", NETWORK, dtype, rounds=200)
    s = case.shape
    title = f"ORGFW on a network, B = {s.batch_size}, d = {s.d}, m = {HIDDEN}, C = {s.n_classes}"
    table = Table(f"{title}, {dtype}", "us/round")
    table.goals = {"NumPy as written": 4, "PyTorch, eager": 10}
    table.add("fastfw, run", running(case), case.rounds)
    table.add("fastfw, observe", observing(case), case.rounds)
    table.add_peers(peers.NETWORK_ROUNDS, case)
    return table


def bytes_table(shape: Shape, dtype: str, limits: Limits) -> Table:
    """uint8 features in float32 arithmetic beside NumPy as the paper writes it in float64."""
    coded = Case("orgfw", shape, f"uint8 {dtype}", rounds=ROUNDS)
    floats = Case("orgfw", shape, "float64", rounds=ROUNDS)
    table = Table(f"ORGFW, {shape.label}'s shape, bytes beside NumPy in float64")
    table.goals = {"NumPy as written, float64": 14}
    table.add(f"fastfw, uint8, {dtype} arithmetic", running(coded), ROUNDS)
    table.add("NumPy as written, float64", playing(Player, floats), ROUNDS)
    table.add("NumPy, stacked products, float64", playing(peers.StackedNumpy, floats), ROUNDS)
    return table


def thread_table(shape: Shape, dtype: str, limits: Limits) -> Table:
    """One thread beside two, in wall-clock time."""
    table = Table(f"ORGFW, {shape.label}'s shape, {dtype}, wall-clock time")
    table.goals = {"fastfw, 1 thread": 1.7}
    for threads in (2, 1):
        case = Case("orgfw", shape, dtype, threads=threads, rounds=THREAD_ROUNDS)
        name = f"fastfw, {threads} thread{'s' * (threads > 1)}"
        table.add(name, running(case), THREAD_ROUNDS)
    return table


def at_once(turns: int = 9) -> float:
    """How much sooner two large products are done in two threads: what the machine allows now."""
    square = np.ones((700, 700))

    def product() -> None:
        for _ in range(5):
            square @ square

    def two(together: bool) -> float:
        begun = perf_counter()
        other = threading.Thread(target=product)
        other.start()
        if not together:
            other.join()
        product()
        other.join()
        return perf_counter() - begun

    return statistics.median(two(False) / two(True) for _ in range(turns))


def whole_table(dtype: str, limits: Limits) -> Table:
    """Frank-Wolfe with whole gradients, by copt and chop."""
    s = peers.WHOLE
    table = Table(
        f"Frank-Wolfe, whole gradients, {s.label} (d = {s.d}, C = {s.n_classes}), "
        f"{peers.ITERATIONS} iterations, {dtype}",
        "ms/iter.",
    )
    ours = peers.whole_by_fastfw(dtype)
    table.add("fastfw, OSFW without memory", lambda: ours, peers.ITERATIONS)
    for name, (package, dtypes, make) in peers.WHOLE_SIDES.items():
        why = peers.missing(package)
        if why is None and dtype not in dtypes:
            why = f"skipped: {package} works in {dtypes[0]}"
        if why is None:
            try:
                theirs = make(dtype)
            except (ImportError, RuntimeError) as error:  # what it needs is missing or broken
                first = str(error).splitlines()[0]
                why = f"skipped: {package} cannot be used ({first})"
        if why is None:
            tolerance = {"float64": 1e-11, "float32": 2e-5}[dtype]
            np.testing.assert_allclose(theirs(), ours(), rtol=0, atol=tolerance)
            table.add(name, lambda theirs=theirs: theirs, peers.ITERATIONS)  # type: ignore[misc]
        else:
            table.skipped.append((name, why))
    return table


def streamed_table(shape: Shape, dtype: str, limits: Limits) -> Table:
    """Libraries whose job is nearly the same, with what differs."""
    case = Case("orgfw", shape, dtype, rounds=ROUNDS)
    table = Table(
        f"not quite the same: learning from a batch, {shape.label}'s shape, {dtype}", "ms/batch"
    )
    table.add("fastfw, ORGFW, observe", observing(case), ROUNDS)
    for name, (package, make) in peers.STREAMED.items():
        why = peers.missing(package)
        if why is None:
            table.add(name, playing(make, case, 1), make(case).share, make.note)
        else:
            table.skipped.append((name, why))
    return table


#: name: the table, for limits in the dtype
TABLES: dict[str, tuple[Callable[[Limits], Table], str]] = {
    **{
        f"orgfw {s.name} {d}": (partial(round_table, s, d), d)
        for s in (peers.MNIST, peers.CIFAR10)
        for d in DTYPES
    },
    **{f"network mnist {d}": (partial(network_table, d), d) for d in DTYPES},
    **{
        f"bytes {s.name}": (partial(bytes_table, s, "float32"), "float32")
        for s in (peers.MNIST, peers.CIFAR10)
    },
    **{f"threads cifar10 {d}": (partial(thread_table, peers.CIFAR10, d), d) for d in DTYPES},
    **{f"whole {d}": (partial(whole_table, d), d) for d in DTYPES},
    "streamed mnist float64": (partial(streamed_table, peers.MNIST, "float64"), "float64"),
}


def beside_others(work: Work) -> Iterator[Any]:
    """Rounds of ORGFW on the same rows by everyone who is installed, a table for each job.

    All but "NumPy as written" get both gradients from one forward product with the two points
    stacked and one backward product. Times are medians; to first: the median of ratios to the first
    side within a turn; quickest: the same of the quickest turns; an exclamation mark: the goal is
    missed. On one thread times are CPU times of the whole process, so that what a library does in a
    thread of its own counts and waiting for a core does not; tables of two threads are in
    wall-clock time.

    SGDClassifier and river's SoftmaxRegression take a step for every sample and have neither ball
    nor oracle: they say what learning from a batch costs elsewhere. copt and chop know Frank-Wolfe
    with whole gradients only, hence the comparison with OSFW without memory on the whole data.
    """
    warnings.filterwarnings("ignore", module="chop")
    tables = work.choose(TABLES)
    limits = {dtype: machine_limits(dtype) for dtype in DTYPES}
    for name, (make, dtype) in tables.items():
        clock = perf_counter if name.startswith("threads") else process_time
        yield from make(limits[dtype]).measure(work.turns or 25, clock)
        if clock is perf_counter:
            yield f"two large products at once, beside one after the other: {at_once():.2f}x"
        yield f"load {load()}\n"
    yield from limit_lines(limits)
