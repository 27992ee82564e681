"""Time rounds of fastfw and of its peers in turn, in one process, and print the ratios.

Run it from the root of a checkout; peers that are not installed are skipped with a word::

    python -m bench.compare.report --peers
    python -m bench.compare.report --peers --case cifar10 --pairs 50

Every peer works in the dtype and with the number of threads of its table, and is first checked to
play the same decisions as fastfw. Ratios are medians over turns of a peer's time over that of
fastfw's `run` in the same turn. On one thread times are CPU times of the whole process, so that
work that a library does in a thread of its own counts and waiting for a core does not; tables of
two threads are in wall-clock time, and say so.
"""

from __future__ import annotations

import statistics
import sys
import warnings
from collections.abc import Callable, Sequence
from time import perf_counter, process_time
from typing import Any

from bench.compare import one_thread, peers
from bench.compare.report import Turn, load, machine_limits, take_turns

ROUNDS = 10
#: The same where threads are beside one: a whole run of the paper's on CIFAR-10.
THREAD_ROUNDS = 100


class Table:
    """Sides of one job, whose times are printed as ratios to the first."""

    def __init__(self, title: str, unit: str, floor: float | None = None) -> None:
        self.title, self.unit, self.floor = title, unit, floor
        self.sides: list[tuple[str, Callable[[], Turn], float, str]] = []
        self.skipped: list[tuple[str, str]] = []

    def add(self, name: str, side: Callable[[], Turn], units: float, note: str = "") -> None:
        """Take a side whose turns are that many rounds or solutions."""
        self.sides.append((name, side, units, note))

    def measure(self, turns: int, clock: Callable[[], float] = process_time) -> list[str]:
        """Let the sides take turns; lines of the table."""
        times = take_turns([side for _, side, _, _ in self.sides], turns, clock)
        each = [
            [1e3 * t / units for t in own]
            for own, (_, _, units, _) in zip(times, self.sides, strict=True)
        ]
        width = max(len(name) for name, *_ in [*self.sides, *self.skipped]) + 2
        head = f"{'':<{width}}{self.unit:>10}{'to first':>10}{'quickest':>10}"
        lines = [self.title, head + (f"{'to floor':>10}" if self.floor else "")]
        for (name, _, _, note), own in zip(self.sides, each, strict=True):
            ratio = statistics.median(a / b for a, b in zip(own, each[0], strict=True))
            line = f"{name:<{width}}{statistics.median(own):>10.3f}{ratio:>10.2f}"
            line += f"{min(own) / min(each[0]):>10.2f}"
            if self.floor:
                line += f"{min(own) / self.floor:>10.2f}"
            lines.append(line + (f"  {note}" if note else ""))
        lines += [f"{name:<{width}}  {why}" for name, why in self.skipped]
        if self.floor:
            lines.append(f"{'floor':<{width}}{self.floor:>10.3f}")
        return lines


def runs(case: peers.ImageCase, rounds: int = ROUNDS) -> Callable[[], Turn]:
    """Turns of fastfw's compiled runs."""
    learner, streams = case.learner(), case.streams(2, rounds)
    learner.run(next(streams))

    def turn() -> Turn:
        stream = next(streams)
        return lambda: learner.run(stream)

    return turn


def observations(case: peers.ImageCase) -> Callable[[], Turn]:
    """Turns of fastfw, a batch at a time from Python."""
    learner, streams = case.learner(), case.streams(2, ROUNDS)
    learner.run(next(streams))

    def turn() -> Turn:
        batches = list(next(streams))
        return lambda: [learner.observe(batch) for batch in batches]

    return turn


def peer_rounds(case: peers.ImageCase, make: Any, rounds: int = ROUNDS) -> Callable[[], Turn]:
    """Turns of a peer."""
    side, streams = make(case), case.streams(2, rounds)
    prepare = getattr(side, "prepare", None)
    if prepare is None:
        for batch in next(streams):
            side.play_round(batch.rows)

    def turn() -> Turn:
        batches = list(next(streams))
        if prepare is not None:
            prepare(batches[0].rows)
        return lambda: [side.play_round(batch.rows) for batch in batches]

    return turn


def round_table(shape: Any, dtype: str, limits: tuple[float, float]) -> Table:
    """ORGFW at a shape in a dtype, by everyone."""
    case = peers.ImageCase("orgfw", shape, dtype)
    size = shape.batch_size * shape.d
    n_bytes, operations = size * int(dtype[-2:]) // 8, 4 * size * shape.n_classes
    floor = 1e3 * max(n_bytes / limits[0], operations / limits[1])
    title = f"ORGFW, {shape.label}'s shape (B = {shape.batch_size}, d = {shape.d}), {dtype}"
    table = Table(title, "ms/round", floor)
    table.add("fastfw, run", runs(case), ROUNDS)
    table.add("fastfw, observe", observations(case), ROUNDS)
    coded = peers.ImageCase("orgfw", shape, "uint8", arithmetic=dtype)
    table.add("fastfw, uint8 features, run", runs(coded), ROUNDS)
    for name, (package, make) in peers.ROUNDS.items():
        why = peers.missing(package)
        if why is None:
            peers.check(case, make)
            table.add(name, peer_rounds(case, make), ROUNDS)
        else:
            table.skipped.append((name, why))
    return table


def bytes_table(shape: Any) -> Table:
    """uint8 features in float32 arithmetic beside NumPy as the paper writes it in float64."""
    coded = peers.ImageCase("orgfw", shape, "uint8", arithmetic="float32")
    floats = peers.ImageCase("orgfw", shape, "float64")
    table = Table(f"ORGFW, {shape.label}'s shape, bytes beside NumPy in float64", "ms/round")
    table.add("fastfw, uint8, float32 arithmetic", runs(coded), ROUNDS)
    table.add("NumPy as written, float64", peer_rounds(floats, peers.WrittenNumpy), ROUNDS)
    table.add("NumPy, stacked products, float64", peer_rounds(floats, peers.StackedNumpy), ROUNDS)
    return table


def thread_table(shape: Any, dtype: str) -> Table:
    """One thread beside two, in wall-clock time."""
    table = Table(f"ORGFW, {shape.label}'s shape, {dtype}, wall-clock time", "ms/round")
    for threads in (2, 1):
        case = peers.ImageCase("orgfw", shape, dtype, threads=threads)
        name = f"fastfw, {threads} thread{'s' * (threads > 1)}"
        table.add(name, runs(case, THREAD_ROUNDS), THREAD_ROUNDS)
    return table


def at_once(turns: int = 9) -> float:
    """How much sooner two large products are done in two threads: what the machine allows now."""
    import threading

    import numpy as np

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


def whole_table(dtype: str) -> Table:
    """Frank-Wolfe with whole gradients, by copt and chop."""
    import numpy as np

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
                table.skipped.append((name, f"skipped: {package} cannot be used ({first})"))
                continue
            tolerance = {"float64": 1e-11, "float32": 2e-5}[dtype]
            np.testing.assert_allclose(theirs(), ours(), rtol=0, atol=tolerance)
            table.add(name, lambda theirs=theirs: theirs, peers.ITERATIONS)  # type: ignore[misc]
        else:
            table.skipped.append((name, why))
    return table


def streamed_table(shape: Any, dtype: str) -> Table:
    """Libraries whose job is nearly the same, with what differs."""
    case = peers.ImageCase("orgfw", shape, dtype)
    table = Table(
        f"not quite the same: learning from a batch, {shape.label}'s shape, {dtype}", "ms/batch"
    )
    table.add("fastfw, ORGFW, observe", observations(case), ROUNDS)
    for name, (package, make) in peers.STREAMED.items():
        why = peers.missing(package)
        if why is None:
            table.add(name, peer_rounds(case, make, 1), make(case).share, make.note)
        else:
            table.skipped.append((name, why))
    return table


def tables(wanted: Sequence[str]) -> list[tuple[str, Callable[[Any], Table], str]]:
    """Names, makers and dtypes of the tables whose names have all words of one string."""
    both = (peers.MNIST, peers.CIFAR10)
    dtypes = ("float64", "float32")
    found: list[tuple[str, Callable[[Any], Table], str]] = [
        (f"orgfw {s.name} {d}", lambda limits, s=s, d=d: round_table(s, d, limits), d)  # type: ignore[misc]
        for s in both
        for d in dtypes
    ]
    found += [
        (f"bytes {s.name}", lambda limits, s=s: bytes_table(s), "float32")  # type: ignore[misc]
        for s in both
    ]
    found += [
        (f"threads cifar10 {d}", lambda limits, d=d: thread_table(peers.CIFAR10, d), d)  # type: ignore[misc]
        for d in dtypes
    ]
    found += [(f"whole {d}", lambda limits, d=d: whole_table(d), d) for d in dtypes]  # type: ignore[misc]
    found.append(
        ("streamed mnist float64", lambda limits: streamed_table(peers.MNIST, "float64"), "float64")
    )
    for words in wanted:
        if not any(set(words.split()) <= set(name.split()) for name, *_ in found):
            names = ", ".join(name for name, *_ in found)
            raise ValueError(f"no table {words!r}; there are {names}")
    return [
        entry
        for entry in found
        if not wanted or any(set(w.split()) <= set(entry[0].split()) for w in wanted)
    ]


def versions() -> str:
    """Versions of the peers that are installed."""
    from importlib.metadata import PackageNotFoundError, version

    found = []
    for name in ("torch", "jax", "copt", "chop-pytorch", "scikit-learn", "river"):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def main(wanted: Sequence[str], turns: int | None) -> int:
    """Print the tables; exit code 1 where two sides differ, 2 for an unknown table."""
    try:
        chosen = tables(wanted)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"peers: {versions()}")
    print("medians; to first: median of ratios in a turn; quickest: the same of quickest turns\n")
    warnings.filterwarnings("ignore", module="chop")
    with one_thread():
        limits = {dtype: machine_limits(dtype) for dtype in ("float64", "float32")}
        for name, make, dtype in chosen:
            try:
                table = make(limits[dtype])
            except AssertionError as error:
                print(f"error: {name}: the two sides differ: {error}", file=sys.stderr)
                return 1
            clock = perf_counter if name.startswith("threads") else process_time
            print("\n".join(table.measure(turns or 25, clock)))
            if clock is perf_counter:
                print(f"two large products at once, beside one after the other: {at_once():.2f}x")
            print(f"load {load()}\n", flush=True)
    for dtype, (bandwidth, speed) in limits.items():
        print(
            f"{dtype}: a sum reads {bandwidth / 1e9:.1f} GB/s, "
            f"a 1024 x 1024 product makes {speed / 1e9:.0f} GFLOP/s"
        )
    return 0
