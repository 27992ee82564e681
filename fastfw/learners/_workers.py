"""Rounds on the workers of a Dask cluster: they keep rows and iterate, the client the estimate.

A round sends the workers the numbers of its rows, and of the last one the vertex and the step; they
send back the sum of their rows' losses and gradients. Those that had no rows in the last round are
sent the iterate itself; so are all where a worker has died, when Dask has made its rows again, and
the round is repeated. Sums are added in a fixed order of shards, one for each worker that
there was at the start.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._chunks import DaskChunks, Form, check_chunk
from fastfw.learners._oracles import toward
from fastfw.problems import Classification
from fastfw.streams import Batch, Dataset, IndexedStream, held

__all__ = ["Shared", "shared_rounds"]

#: Partial gradients that are added by one worker.
_FAN_IN = 8
#: Batches that are made to see what it takes to collect them.
_TRIED = 8
#: No round on workers is shorter: what is quicker here is played here without a trial.
_QUICKEST = 2e-3
#: How often a round is begun again, and tenths of a second that a cluster gets to notice a loss.
_RETRIES, _PATIENCE = 5, 300


class Step(NamedTuple):
    """What changed in the last round, or the iterate itself."""

    vertex: Any = None
    eta: float = 0.0
    point: tuple[FloatArray, FloatArray | None] | None = None
    """The exact iterate, and the one before as it was played."""


class Columns(NamedTuple):
    """A matrix by the columns that are not zero."""

    columns: IndexArray
    values: FloatArray
    shape: tuple[int, ...]

    def dense(self) -> FloatArray:
        """Return it whole."""
        whole: FloatArray = np.zeros(self.shape, self.values.dtype)
        whole[:, self.columns] = self.values
        return whole


# --- what workers do ------------------------------------------------------------------------------


def _checked(blocks: Any, form: Form, ends: list[int], y: IndexArray) -> list[Dataset]:
    """Return the chunks of a shard, checked, with their labels."""
    made = []
    for block, (first, end) in zip(blocks, pairwise(ends), strict=True):
        X = check_chunk(block, form, first)
        made.append(Dataset._ready(X, y[first - ends[0] : end - ends[0]], None).astype(form.dtype))
    return made


class Shard:
    """An actor: some rows and the iterate, on a worker."""

    def __init__(self, chunks: list[Dataset], problem: Any, dtype: Any) -> None:
        from distributed import get_worker

        self._chunks, self._problem, self._dtype = chunks, problem, dtype
        self._exact: FloatArray = np.zeros(0)
        self._before: FloatArray | None = None
        self._threads = get_worker().state.nthreads

    def sums(self, rows: list[tuple[int, Any]], step: Step, below: list[Any], how: Any) -> Any:
        """Return the losses and α ∇f(x) - β ∇f(x') of own rows, and of those of shards below."""
        found = [shard.sums(own, its, deeper, how) for shard, own, its, deeper in below]
        if step.point is not None:
            self._exact, self._before = step.point
        else:
            self._before = self._exact.astype(self._dtype, copy=False)
            self._exact = np.array(toward(self._exact, step.vertex, step.eta), np.float64)
        own = partial(self._of_chunk, how, self._exact.astype(self._dtype, copy=False))
        if self._threads > 1 and len(rows) > 1:
            with ThreadPoolExecutor(self._threads) as pool:
                parts = [*pool.map(own, rows)]
        else:
            parts = [own(given) for given in rows]
        return _add([*parts, *(future.result() for future in found)])

    def _of_chunk(self, how: Any, x: FloatArray, given: tuple[int, Any]) -> tuple[float, Any]:
        weight, alpha, beta = how
        data, rows = self._chunks[given[0]], given[1].astype(np.intp)
        batch = Batch._trusted(data, rows)
        share, real = weight / self._problem.weight(rows.size), self._dtype.type
        loss, total = self._problem.loss_and_gradient(x, batch)
        total *= real(share * alpha)
        if beta != 0.0:
            total -= real(share * beta) * self._problem.gradient(self._before, batch)
        if data.is_sparse and total.ndim == 2:
            features: Any = batch.X
            columns = np.unique(features.indices)
            if 2 * columns.size < total.shape[1]:
                return share * loss, Columns(columns, total[:, columns], total.shape)
        return share * loss, total


def _add(parts: list[Any]) -> Any:
    """Add up losses and gradients, in order."""
    loss, total = parts[0]
    for value, gradient in parts[1:]:
        loss = loss + value
        if isinstance(total, Columns) and isinstance(gradient, Columns):
            columns = np.union1d(total.columns, gradient.columns)
            values = np.zeros((len(total.values), columns.size), total.values.dtype)
            for part in (total, gradient):
                values[:, np.searchsorted(columns, part.columns)] += part.values
            total = Columns(columns, values, total.shape)
        else:
            total = _dense(total) + _dense(gradient)
    return loss, total


def _dense(gradient: Any) -> FloatArray:
    found: FloatArray = gradient.dense() if isinstance(gradient, Columns) else gradient
    return found


# --- what the client does -------------------------------------------------------------------------


class Shared:
    """Rows that the workers of a cluster keep, each of them a shard."""

    def __init__(self, client: Any, data: DaskChunks, problem: Any, dtype: Any) -> None:
        import dask

        self._client, self.data, self._problem, self._dtype = client, data, problem, dtype
        places = sorted(client.nthreads().items())
        self.n_workers = len(places)
        shares = np.cumsum([threads for _, threads in places])
        cuts = np.searchsorted(data.ends, len(data) * shares[:-1] / shares[-1])
        self._first = np.unique([0, *cuts, data.ends.size - 1]).tolist()
        make = dask.delayed(_checked, pure=False)
        self._rows = []
        for (a, b), (at, _) in zip(pairwise(self._first), places, strict=False):
            ends = data.ends[a : b + 1].tolist()
            form = Form(data.n_features, dtype)
            made = make(data.blocks[a:b], form, ends, data.y[ends[0] : ends[-1]])
            self._rows.append(client.compute(made, workers=[at], allow_other_workers=True))
        self._shards = [self._actor(rows) for rows in self._rows]
        #: The round that each shard is in.
        self._rounds: list[int | None] = [None] * len(self._shards)

    def _actor(self, rows: Any) -> Any:
        """Return a shard with rows that are on a worker, or will be."""
        made = self._client.submit(
            Shard, rows, self._problem, self._dtype, actor=True, pure=False
        )  # fmt: skip
        return made.result()

    def sums(
        self, t: int, rows: IndexArray, step: Step, full: Step, alpha: float, beta: float
    ) -> tuple[float, FloatArray]:
        """Return the loss of some rows and α ∇f(x) - β ∇f(x') in round t, from the workers."""
        wanted: dict[int, list[tuple[int, Any]]] = {}
        for k, _, own in self.data.split(np.sort(rows)):  # so that workers read in order
            i = bisect_right(self._first, k) - 1
            few = np.min_scalar_type(int(own.max()))  # as few bytes as they need on their way
            wanted.setdefault(i, []).append((k - self._first[i], own.astype(few)))
        how = self._problem.weight(rows.size), alpha, beta
        for _ in range(_RETRIES):
            tasks: list[Any] = [
                (self._shards[i], own, step if self._rounds[i] == t - 1 else full, [])
                for i, own in wanted.items()
            ]
            places = {actor._address for actor, *_ in tasks}
            if len(places) == len(tasks):  # else workers might wait for themselves
                tasks = _tree(tasks)
            try:
                found = [actor.sums(own, its, below, how) for actor, own, its, below in tasks]
                loss, total = _add([future.result() for future in found])
            except (OSError, RuntimeError, CancelledError) as error:
                self._replace_lost(error)
                continue
            for i in wanted:
                self._rounds[i] = t
            return loss, _dense(total)
        raise RuntimeError(f"workers were lost {_RETRIES} times in a round")

    def _replace_lost(self, error: BaseException) -> None:
        """Begin shards anew whose workers are gone, or raise an error that is none of that."""
        for _ in range(_PATIENCE):
            alive = self._client.nthreads()
            lost = [i for i, shard in enumerate(self._shards) if shard._address not in alive]
            if lost and alive:
                for i in lost:
                    self._shards[i] = self._actor(self._rows[i])
                self._rounds = [None] * len(self._shards)  # some may have taken the step
                return
            time.sleep(0.1)
        raise error


def _tree(tasks: list[Any]) -> list[Any]:
    """Put all but a few shards below others, which add up what they get."""
    if len(tasks) <= _FAN_IN:
        return tasks
    cuts = [len(tasks) * i // _FAN_IN for i in range(_FAN_IN + 1)]
    groups = [tasks[a:b] for a, b in pairwise(cuts)]
    return [(*group[0][:3], _tree(group[1:])) for group in groups]


class SharedBatch:
    """A batch whose rows are with the workers."""

    def __init__(self, shared: Shared, rows: IndexArray, last: Step) -> None:
        self._shared, self._rows, self.step = shared, rows, last

    def sums(self, t: int, state: Any, alpha: float, beta: float) -> tuple[float, FloatArray]:
        """Return the loss at state["x"] and α ∇f(x) - β ∇f(x'), x' being the point before."""
        full = Step(point=(state["exact"], state.get("x_previous")))
        return self._shared.sums(t, self._rows, self.step, full, alpha, beta)

    def moved(self, vertex: Any, eta: float) -> None:
        """Note the step of this round, which the workers take when the next one begins."""
        self.step = Step(vertex, eta)

    def held(self) -> Batch:
        """Return the rows, here."""
        data, places = held(self._shared.data, self._rows)
        return Batch._trusted(data.astype(self._shared._dtype), places)


def _client() -> Any:
    """Return the cluster's client that Dask would use, if any."""
    if "distributed" not in sys.modules:
        return None
    import dask
    from distributed import Client

    owner = getattr(dask.base.get_scheduler(), "__self__", None)
    return owner if isinstance(owner, Client) else None


def shared_rounds(
    learner: Any, stream: IndexedStream
) -> Iterator[tuple[Callable[[], Any], int, int]] | None:
    """Return what plays the rounds of a stream on workers; None where they are played here."""
    data, problem = stream.data, learner.problem
    if not isinstance(data, DaskChunks) or data._weights is not None or not len(stream):
        return None  # and Dask is not asked, whose client may have gone
    client = _client()
    if client is None or not isinstance(problem, Classification):
        return None
    shared: Shared | None
    if learner._shares:
        shared = Shared(client, data, problem, learner._dtype or data.dtype)
        learner._why = f"asked for: {shared.n_workers} workers"
    elif learner._fused and learner._shareable and learner._engine is None:
        shared, learner._why = _tried(learner, stream, client)
        learner._shares, learner._fused = shared is not None, shared is None
    else:
        return None
    return None if shared is None else _rounds(learner, stream, shared)


def _tried(learner: Any, stream: IndexedStream, client: Any) -> tuple[Shared | None, str]:
    """Measure a round here and on the workers, without playing one."""
    data, problem = stream.data, learner.problem
    n = min(_TRIED, len(stream), max(1, data.at_once // stream.batch_size))
    block = next(stream.row_blocks(n))
    gradients = 1 + learner._plan.recalls
    dtype = learner._dtype or data.dtype
    begun = time.perf_counter()
    found, places = held(data, block.reshape(-1))
    here = (time.perf_counter() - begun) / len(block)
    x = learner._begin(dtype)
    first = Batch._trusted(found.astype(dtype), places[: block.shape[1]])
    problem.loss_and_gradient(x, first)  # compiles
    begun = time.perf_counter()
    for _ in range(gradients):
        problem.loss_and_gradient(x, first)
    here += time.perf_counter() - begun
    words = f"a round takes {1e3 * here:.3g} ms with rows collected at the client"
    if here < _QUICKEST:
        return None, f"{words}, less than any on workers"
    shared = Shared(client, data, problem, dtype)
    full = Step(point=(np.array(x, np.float64), x))
    there = []
    for _ in range(3):  # the first one waits for the shards
        begun = time.perf_counter()
        shared.sums(-1, block[0], full, full, 1.0, float(gradients - 1))
        there.append(time.perf_counter() - begun)
    words = f"{words}, {1e3 * min(there):.3g} ms on {shared.n_workers} workers"
    return (shared if min(there) < here else None), words


def _rounds(
    learner: Any, stream: IndexedStream, shared: Shared
) -> Iterator[tuple[Callable[[], Any], int, int]]:
    """Yield the rounds, one at a time."""
    dtype = learner._dtype or stream.data.dtype
    step = Step()
    for block in stream.row_blocks(max(1, 4096 // stream.batch_size)):
        for rows in block:
            batch = SharedBatch(shared, rows, step)

            def play(batch: SharedBatch = batch) -> npt.NDArray[np.float64]:
                return np.array([learner._play_steps(learner._shared_round, batch, dtype).loss])

            yield play, 1, rows.size
            step = batch.step
