"""Data in chunks: rounds on workers beside a model of their cost, and what memory a run needs."""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import fastfw as fw
from bench.compare.turns import Work, seconds, take_turns
from bench.tables import Columns
from fastfw._plots import draw, new_figure, own_style, tidy

C, D = 10, 784
#: Rows of a chunk, and chunks, of the data that workers keep.
ROWS, CHUNKS = 10_000, 8
BATCHES = (600, 20_000, 100_000)
#: Seconds that a worker waits before it answers, as a slower network would.
LATENCIES = (0.0, 0.02)


# --- rounds on workers ----------------------------------------------------------------------------


class Costs(NamedTuple):
    """What a round costs: overhead, a row, a level of the tree, a byte."""

    fixed: float
    row: float
    latency: float
    byte: float

    def round(self, workers: int, batch: float, sent: float) -> float:
        """Seconds of a round: compute / p + latency + bytes / bandwidth, up a tree of eights."""
        levels = max(1, math.ceil(math.log(workers, 8))) if workers > 1 else 1
        width = min(workers, 8)
        numbers = 4.0 * batch / workers * self.byte
        tree = levels * (self.latency + width * sent * self.byte)
        return self.fixed + batch * self.row / workers + numbers + tree


def _chunk(block_info: Any = None) -> Any:
    place = block_info[None]["chunk-location"][0]
    return np.random.default_rng(place).random((ROWS, D))


def _wait(seconds: float) -> None:
    """Let this worker's shards wait before they answer."""
    from fastfw.learners._workers import Shard

    own = getattr(Shard, "quick", Shard.sums)
    Shard.quick = own  # type: ignore[attr-defined]

    def late(*arguments: Any) -> Any:
        time.sleep(seconds)
        return own(*arguments)

    Shard.sums = late if seconds else own  # type: ignore[method-assign]


def _least_round(stream: Any, T: int) -> float:
    """Return the seconds of the quickest of T rounds of ORGFW, but for the first two."""
    problem, ball = fw.SoftmaxRegression(D, C), fw.RowL1Ball((C, D), 8.0)
    result = fw.ORGFW(problem, ball, engine="dask").run(stream)
    return float(np.diff(result.seconds)[1:].min())


def workers(work: Work) -> Iterator[Any]:
    """A round of ORGFW on a local cluster, d = 784, C = 10, float64, one thread for each worker.

    The least of some rounds. The model is fixed + rows / p + latency + bytes / bandwidth: its first
    two numbers are fitted to the rounds of one worker, the third is what was added, and all others
    are predicted. Then it is followed to 1,000 workers with 1 TB of rows on 10 Gbit/s and
    0.5 ms: batches of 1,000,000 rows, dense as here, and sparse, of 100 nonzeros among 1,000,000
    columns, where workers send the columns that their rows have.
    """
    import dask.array as da
    from distributed import Client, LocalCluster

    X = da.map_blocks(_chunk, chunks=((ROWS,) * CHUNKS, (D,)), dtype=float)
    y = np.random.default_rng(0).integers(0, C, ROWS * CHUNKS)
    rounds = 2 + (work.turns or 23)
    batches = BATCHES[:2] if work.quick else BATCHES
    measured: dict[tuple[int, int, float], float] = {}
    for p in (1, 2):
        with (
            LocalCluster(n_workers=p, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
        ):
            for B in batches:
                for wait in LATENCIES:
                    client.run(_wait, wait)
                    stream = fw.iid_stream(X, y, batch_size=B, rounds=rounds, seed=0)
                    measured[p, B, wait] = _least_round(stream, rounds)
    small, large = (measured[1, B, 0.0] for B in (batches[0], batches[-1]))
    row = (large - small) / (batches[-1] - batches[0])
    local = Costs(max(0.0, small - batches[0] * row), row, 0.0, 1e-9)
    columns = Columns({
        "workers": "<10", "batch": ">9", "added ms": ">10.0f", "ms": ">10.1f", "model": ">10.1f"
    })  # fmt: skip
    yield columns.head
    for (p, B, wait), spent in measured.items():
        predicted = local._replace(latency=wait).round(p, B, 8.0 * C * D)
        yield columns.line(p, B, 1e3 * wait, 1e3 * spent, 1e3 * predicted)
    gain = measured[1, batches[-1], 0.0] / measured[2, batches[-1], 0.0]
    yield f"two workers beside one, {batches[-1]} rows: {gain:.2f} times as fast"
    yield ""
    far = Costs(local.fixed, row, 5e-4, 8.0 / 10e9)
    counts = [1, 2, 4, 8, 16, 32, 64, 125, 250, 500, 1000]
    B, curves = 1_000_000, np.empty((2, len(counts)))
    columns = Columns({
        "workers": "<10", "dense ms": ">10.0f", "hours/TB": ">10.2f",
        "sparse ms": ">11.0f", " hours/TB": ">10.2f",
    })  # fmt: skip
    yield columns.head
    for i, p in enumerate(counts):
        # of sparse rows those columns are sent, with their numbers, that a worker's rows have
        sent = min(1e6, 100.0 * B / p) * (8.0 * C + 8.0)
        sparse = far._replace(row=row * 200 / D)
        curves[:, i] = 1e3 * far.round(p, B, 8.0 * C * D), 1e3 * sparse.round(p, B, sent)
        hours = curves[:, i] / 3.6e6 * 1e12 / B / [8.0 * D, 1200.0]  # by the bytes of a row
        yield columns.line(p, *np.ravel([curves[:, i], hours], order="F"))
    with own_style():
        figure = new_figure(6.0, 3.6, 150)
        axes = figure.subplots()
        for kind, ms in zip(("dense", "sparse"), curves, strict=True):
            colour = draw(axes, np.array(counts), ms[np.newaxis], f"{kind} rows").get_color()
            ideal = [ms[0] / p for p in counts]
            axes.plot(counts, ideal, color=colour, linewidth=0.7, alpha=0.6)
        axes.set(xlabel="workers", ylabel="ms a round", xscale="log", yscale="log")
        axes.legend(frameon=False)
        tidy(axes)
    yield "workers.png", figure


# --- memory ---------------------------------------------------------------------------------------


def peak() -> float:
    """Return the most memory that this process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _epoch(X: Any, y: Any, rows: int) -> None:
    stream = fw.epoch_stream(X, y, batch_size=1000, shuffle="chunks", chunk_size=rows, seed=0)
    fw.ORGFW(*_world(X)).run(stream)


def _comparator(X: Any, y: Any, rows: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # ten steps need not suffice
        fw.best_fixed_decision(*_world(X), X, y, max_iterations=10, tol=1e-12)


def _world(X: Any) -> tuple[Any, Any]:
    d = X.shape[1]
    return fw.SoftmaxRegression(d, C), fw.RowL1Ball((C, d), 1.0)


def wall_and_cpu() -> Any:
    """A clock of both."""
    return np.array([time.perf_counter(), time.process_time()])


def pass_over(megabytes: float, rows: int = 2000) -> tuple[float, float, float, int]:
    """One epoch of ORGFW and ten steps of the comparator on lazily made chunks.

    Returns the growth of the peak in MB, seconds of either, and how many chunks were made.
    """
    import dask.array as da

    d = 1000  # chunks of 16 MB
    made = []

    def chunk(block_info: Any = None) -> Any:
        place = block_info[None]["chunk-location"][0]
        made.append(place)
        return np.random.default_rng(place).random((rows, d))

    def go(n: int) -> list[float]:
        X = da.map_blocks(chunk, chunks=((rows,) * n, (d,)), dtype=float, meta=np.empty((0, 0)))
        y = X[:, :C].argmax(axis=1).compute()
        plays = (_epoch, _comparator)
        return [seconds(partial(play, X, y, rows), time.perf_counter) for play in plays]

    go(1)  # compiles
    made.clear()
    before = peak()
    epoch, comparator = go(max(1, round(megabytes * 125 / rows)))
    return peak() - before, epoch, comparator, len(made)


def memory(work: Work) -> Iterator[Any]:
    """An epoch and a comparator over 8 GB of chunks that are made when needed, nothing on disk.

    Growth of the process's peak memory. Then the same rows in memory, as a NumPy array and as a
    Dask array of slices of it, whose chunks cost nothing to make: what is compared is a pass of
    ORGFW, with its stream, and ten steps of the comparator. The least of some turns, which
    alternate, of wall time and of the process's CPU time; a pass in memory uses one core, all else
    uses all.
    """
    import dask.array as da

    size = 400 if work.quick else 8000
    code = f"from bench.scale import pass_over; print(*pass_over({size}))"
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    growth, epoch, comparator, made = map(float, told.stdout.split())
    passes = made / (size / 16)
    yield f"{size} MB: peak grows by {growth:.0f} MB; all chunks were made {passes:.1f} times"
    yield f"epoch of ORGFW {epoch:.0f} s, ten steps of the comparator {comparator:.0f} s"
    X, y = np.random.default_rng(0).random((60_000, D)), np.arange(60_000) % C
    layouts = {"in memory": X, "Dask array": da.from_array(X, chunks=(2_000, D))}
    for name, play in (("epoch of ORGFW", _epoch), ("comparator", _comparator)):
        sides = {kind: partial(partial, play, own, y, 2_000) for kind, own in layouts.items()}
        times = take_turns(sides, work.turns or 7, wall_and_cpu)
        least = np.min(list(times.values()), axis=1)
        for what, (here, chunks) in zip(("wall", "CPU"), least.T, strict=True):
            yield (
                f"{name}, {what}: in memory {here:.3f} s, of a Dask array {chunks:.3f} s: "
                f"{here / chunks:.2f} times as fast"
            )
