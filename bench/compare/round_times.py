"""Rounds of fastfw, of NumPy as the paper writes them and of other libraries, in turn.

Every side is first checked to play the same decisions as fastfw.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from time import perf_counter, process_time
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bench.compare import peers
from bench.compare.cases import CASES, GOALS, HIDDEN, NETWORK, Case, Player
from bench.compare.pictures import bars
from bench.compare.turns import (
    Limits,
    Side,
    Times,
    Turn,
    Work,
    floor,
    limit_lines,
    load,
    machine_limits,
    made,
    observing,
    playing,
    ratio,
    running,
    seconds,
    take_turns,
)
from bench.data import DTYPES, Shape
from bench.tables import Columns, marked

SIDES = {"run": running, "observe": observing, "NumPy": partial(playing, Player)}
ROUNDS = 10
#: The same where threads are beside one: a whole run of the paper's on CIFAR-10.
THREAD_ROUNDS = 100


# --- beside NumPy as the paper writes it ----------------------------------------------------------

COLUMNS = Columns({
    "ms per round": "<40", "NumPy": ">8.3f", "run": ">8.3f", "observe": ">8.3f", "/run": ">7.1f",
    "/obs.": ">7.1f", "quickest": ">9.1f", "/floor": ">7.2f", "goal": ">6",
})  # fmt: skip


def line(name: str, ms: Mapping[str, Times], least: float | None = None) -> str:
    """One line of the table; marked where the goal is missed."""
    run, observe, numpy = ms.values()
    to_run, goal = ratio(numpy, run), GOALS.get(name.rpartition(" ")[0])
    return COLUMNS.line(
        name, *map(np.median, (numpy, run, observe)), to_run, ratio(numpy, observe),
        numpy.min() / run.min(), least and run.min() / least, goal and marked(goal, to_run >= goal),
    )  # fmt: skip


def beside_numpy(work: Work) -> Iterator[Any]:
    """Sides are NumPy as the paper writes it, `learner.run(stream)` and `learner.observe(batch)`.

    Times are medians of CPU time on one thread. /run and /obs. are how many times as long NumPy
    takes, medians over pairs of turns; quickest the same of the quickest turn of each. /floor is
    the quickest turn of `run` over what no round of two products can do without: reading the batch
    once, or the products, whichever takes longer. An exclamation mark: the goal for /run is missed.
    """
    cases = work.choose({case.name: case for case in CASES})
    limits = {dtype: machine_limits(dtype) for dtype in DTYPES}
    yield COLUMNS.head
    shown = []
    for case in cases.values():
        case.check()
        # rounds of OFW and OAW get longer: their turns have to surround round 100
        turns = None if case.row.gradients == "t" and not work.quick else work.turns
        times = take_turns({name: make(case) for name, make in SIDES.items()}, turns or case.turns)
        ms = {name: 1e3 * own / case.rounds for name, own in times.items()}
        # a round of these is one reading of the batch and two products
        has_floor = case.method in ("orgfw", "regularized-ofw") and not case.shape.csr
        yield line(case.name, ms, floor(case, limits[case.dtype]) if has_floor else None)
        shown.append((case.label, ms["NumPy"], ms["observe"]))
    yield from limit_lines(limits)
    yield "rounds.png", bars(shown)


# --- beside other libraries -----------------------------------------------------------------------


class Entry(NamedTuple):
    """A side, made when it is measured, and how many rounds or solutions a turn of it is."""

    make: Callable[[], Side]
    rounds: float
    note: str = ""


class Table(NamedTuple):
    """Sides of one job, whose times are printed as ratios to the first.

    `unit` begins with ms or us; `floor` is in that unit, `goals` are ratios by name.
    """

    title: str
    sides: Mapping[str, Entry]
    unit: str = "ms/round"
    floor: float | None = None
    goals: Mapping[str, float] = MappingProxyType({})

    def measure(self, turns: int, clock: Callable[[], float] = process_time) -> Iterator[str]:
        """Let the sides take turns; lines of the table, last of what is not installed."""
        there, skipped = made({name: own.make for name, own in self.sides.items()})
        scale = {"ms": 1e3, "us": 1e6}[self.unit[:2]]
        times = take_turns(there, turns, clock)
        each = {name: scale * own / self.sides[name].rounds for name, own in times.items()}
        first = next(iter(each.values()))
        columns = Columns({
            "": f"<{2 + max(map(len, self.sides))}", self.unit: ">10.3f", "to first": ">10.2f",
            "quickest": ">10.2f", **({"to floor": ">10.2f"} if self.floor else {}),
            **({"goal": ">7"} if self.goals else {}),
        })  # fmt: skip
        yield f"{self.title}\n{columns.head}"
        for name, own in each.items():
            cells = [np.median(own), ratio(own, first), own.min() / first.min()]
            cells += [own.min() / self.floor] if self.floor else []
            goal = self.goals.get(name)
            yield columns.line(name, *cells, goal and marked(goal, cells[1] >= goal))
            if self.sides[name].note:
                yield f"  {self.sides[name].note}"
        for name, why in skipped.items():
            yield columns.line(name, f"  {why}")
        if self.floor:
            yield columns.line("floor", self.floor)


# --- the tables: each is made for a dtype and the machine's limits in it --------------------------


def by_fastfw(case: Case) -> dict[str, Entry]:
    """Both ways to play."""
    ways = {"run": running, "observe": observing}
    return {f"fastfw, {way}": Entry(partial(own, case), case.rounds) for way, own in ways.items()}


def by_peers(found: Mapping[str, Callable[[Case], Any]], case: Case) -> dict[str, Entry]:
    """Peers, once they are seen to play what fastfw plays."""

    def checked(make: Callable[[Case], Any]) -> Side:
        case.check(make, rounds=12)
        return playing(make, case)

    return {name: Entry(partial(checked, make), case.rounds) for name, make in found.items()}


def round_table(shape: Shape, dtype: str, limits: Limits) -> Table:
    """ORGFW at a shape, by everyone."""
    case = Case("orgfw", shape, dtype, rounds=ROUNDS)
    coded = replace(case, features=f"uint8 {dtype}")
    return Table(
        f"ORGFW, {shape.label}'s shape (B = {shape.batch_size}, d = {shape.d}), {dtype}",
        {
            **by_fastfw(case),
            "fastfw, uint8 features, run": Entry(partial(running, coded), ROUNDS),
            **by_peers(peers.ROUNDS, case),
        },
        floor=floor(case, limits),
        goals={"NumPy as written": 5, **dict.fromkeys(list(peers.ROUNDS)[2:], 3)},
    )


def network_table(dtype: str, limits: Limits) -> Table:
    """ORGFW on the paper's network."""
    case, s = Case("network", NETWORK, dtype, rounds=200), NETWORK
    sizes = f"B = {s.batch_size}, d = {s.d}, m = {HIDDEN}, C = {s.n_classes}"
    return Table(
        f"ORGFW on a network, {sizes}, {dtype}",
        {**by_fastfw(case), **by_peers(peers.NETWORK_ROUNDS, case)},
        "us/round",
        goals={"NumPy as written": 4, "PyTorch, eager": 10},
    )


def bytes_table(shape: Shape, dtype: str, limits: Limits) -> Table:
    """uint8 features in float32 arithmetic beside NumPy as the paper writes it in float64."""
    coded = Case("orgfw", shape, f"uint8 {dtype}", rounds=ROUNDS)
    floats = replace(coded, features="float64")
    sides = {f"fastfw, uint8, {dtype} arithmetic": Entry(partial(running, coded), ROUNDS)}
    for name in ("NumPy as written", "NumPy, stacked products"):
        make = partial(playing, peers.ROUNDS[name], floats)
        sides[f"{name}, float64"] = Entry(make, ROUNDS)
    title = f"ORGFW, {shape.label}'s shape, bytes beside NumPy in float64"
    return Table(title, sides, goals={"NumPy as written, float64": 14})


def thread_table(shape: Shape, dtype: str, limits: Limits) -> Table:
    """One thread beside two, in wall-clock time."""
    case = Case("orgfw", shape, dtype, rounds=THREAD_ROUNDS)
    two, one = (Entry(partial(running, replace(case, threads=n)), case.rounds) for n in (2, 1))
    title = f"ORGFW, {shape.label}'s shape, {dtype}, wall-clock time"
    goals = {"fastfw, 1 thread": 1.7}
    return Table(title, {"fastfw, 2 threads": two, "fastfw, 1 thread": one}, goals=goals)


def at_once(turns: int = 9) -> float:
    """How much sooner two large products are done in two threads: what the machine allows now."""
    square = np.ones((700, 700))

    def product() -> None:
        for _ in range(5):
            square @ square

    def two(together: bool) -> None:
        other = threading.Thread(target=product)
        other.start()
        if not together:
            other.join()
        product()
        other.join()

    return float(np.median([
        seconds(lambda: two(False), perf_counter) / seconds(lambda: two(True), perf_counter)
        for _ in range(turns)
    ]))  # fmt: skip


def whole_table(dtype: str, limits: Limits) -> Table:
    """Frank-Wolfe with whole gradients, by copt and chop."""
    s, ours = peers.WHOLE, peers.whole_by_fastfw(dtype)

    def checked(make: Callable[[str], Turn]) -> Side:
        theirs = make(dtype)
        tolerance = {"float64": 1e-11, "float32": 2e-5}[dtype]
        np.testing.assert_allclose(theirs(), ours(), rtol=0, atol=tolerance)
        return lambda: theirs

    makers = {name: partial(checked, make) for name, make in peers.WHOLE_SIDES.items()}
    makers = {"fastfw, OSFW without memory": lambda: lambda: ours, **makers}
    return Table(
        f"Frank-Wolfe, whole gradients, {s.label} (d = {s.d}, C = {s.n_classes}), "
        f"{peers.ITERATIONS} iterations, {dtype}",
        {name: Entry(make, peers.ITERATIONS) for name, make in makers.items()},
        "ms/iter.",
    )


def streamed_table(shape: Shape, dtype: str, limits: Limits) -> Table:
    """Libraries whose job is nearly the same, with what differs."""
    case = Case("orgfw", shape, dtype, rounds=ROUNDS)
    sides = {"fastfw, ORGFW, observe": Entry(partial(observing, case), ROUNDS)}
    for name, make in peers.STREAMED.items():
        share = (make.samples or shape.batch_size) / shape.batch_size
        sides[name] = Entry(partial(playing, make, replace(case, rounds=1)), share, make.note)
    title = f"not quite the same: learning from a batch, {shape.label}'s shape, {dtype}"
    return Table(title, sides, "ms/batch")


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
