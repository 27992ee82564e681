"""Data that are not in memory: the same rows and decisions as if they were."""

import copy
import importlib
import itertools
import subprocess
import sys
import threading
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
from fastfw import _chunks

regret = importlib.import_module("fastfw.regret")

da = pytest.importorskip("dask.array")

N, D, C = 61, 5, 3
RNG = np.random.default_rng(2)
X = RNG.random((N, D)) * (RNG.random((N, D)) < 0.6)
Y = np.argmax(X @ RNG.normal(size=(D, C)), axis=1)
PROBLEM, BALL = fw.SoftmaxRegression(D, C), fw.RowL1Ball((C, D), 4.0)
SIZES = (20, 1, 17, 23)
ENDS = np.cumsum([0, *SIZES])


class Again:
    """Chunks that can only be read from their beginning."""

    def __iter__(self):
        return (pair for pair in pairs())


def pairs():
    return [(X[i:j], Y[i:j]) for i, j in itertools.pairwise(ENDS)]


def of_dask(kind=np.asarray):
    return da.from_array(X, chunks=(SIZES, D)).map_blocks(kind), da.from_array(Y, chunks=13)


def of_files(tmp_path, kind):
    for k, (A, y) in enumerate(pairs()):
        np.savez(tmp_path / f"{k}.npz", X=A, y=y)
        np.save(tmp_path / f"X{k}.npy", A)
        np.save(tmp_path / f"y{k}.npy", y)
        sparse.save_npz(tmp_path / f"csr{k}.npz", sparse.csr_array(A))

    def all_of(name):
        return [tmp_path / name.format(k) for k in range(len(SIZES))]

    if kind == "npz":
        return (all_of("{}.npz"),)
    return all_of("X{}.npy" if kind == "npy" else "csr{}.npz"), [*map(str, all_of("y{}.npy"))]


SOURCES = {
    "dask": lambda path: of_dask(),
    "dask, columns": lambda path: (da.from_array(X, chunks=(SIZES, 2)), Y),
    "dask csr": lambda path: of_dask(sparse.csr_array),
    "pairs": lambda path: (pairs(),),
    "again": lambda path: (Again(),),
    "npz": lambda path: of_files(path, "npz"),
    "npy": lambda path: of_files(path, "npy"),
    "csr npz": lambda path: of_files(path, "csr npz"),
}
STREAMS = {
    "iid": lambda *data: fw.iid_stream(*data, batch_size=8, rounds=9, seed=4),
    "sorted": lambda *data: fw.sorted_stream(*data, batch_size=8, rounds=7),
    "drifting": lambda *data: fw.drifting_stream(*data, batch_size=4, rounds=9, seed=1),
    "rows": lambda *data: fw.epoch_stream(*data, batch_size=9, epochs=3, seed=4),
    "as they lie": lambda *data: fw.epoch_stream(*data, batch_size=9, shuffle=False),
    "chunks": lambda *data: fw.epoch_stream(
        *data, batch_size=6, epochs=2, shuffle="chunks", chunk_size=3, seed=4
    ),
}


@pytest.fixture(params=[1, 30], ids="at most {} rows".format)
def few(request, monkeypatch):
    """So many rows of five numbers are held at a time."""
    monkeypatch.setattr(_chunks, "_HELD", request.param * D * 8)


def whole(source):
    return fw.Dataset(sparse.csr_array(X) if "csr" in source else X, Y)


@pytest.mark.parametrize("source", SOURCES)
def test_streams_send_the_same_batches(source, few, tmp_path):
    data = SOURCES[source](tmp_path)
    for name, make in STREAMS.items():
        stream, same = make(*data), make(whole(source))
        assert len(stream) == len(same), name
        for _ in range(1 + (name == "rows")):
            for batch, wanted in zip(stream, same, strict=True):
                found, other = (
                    a.toarray() if sparse.issparse(a) else a for a in (batch.X, wanted.X)
                )
                np.testing.assert_array_equal(found, other, err_msg=name)
                np.testing.assert_array_equal(batch.y, wanted.y)
        np.testing.assert_array_equal(
            np.concatenate([a.ravel() for a in stream.row_blocks(3)]),
            np.concatenate([a.ravel() for a in same.row_blocks(3)]),
        )


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        *itertools.product([fw.ORGFW, fw.OSFW, fw.RegularizedOFW], ["dask", "dask csr"]),
        (fw.OFW, "dask csr"),
        (fw.ORGFW, "again"),
    ],
)
def test_runs_make_the_same_decisions_and_go_on_in_the_middle(kind, source, monkeypatch, tmp_path):
    monkeypatch.setattr(_chunks, "_HELD", 20 * D * 8)
    data = SOURCES[source](tmp_path)
    for name in ("rows", "chunks", "iid") if kind is fw.ORGFW else ("chunks",):
        stream, learner, same = STREAMS[name](*data), kind(PROBLEM, BALL), kind(PROBLEM, BALL)
        result, wanted = learner.run(stream), same.run(STREAMS[name](whole(source)))
        np.testing.assert_array_equal(result.losses, wanted.losses)
        np.testing.assert_array_equal(result.decision, wanted.decision)
        path, cut = tmp_path / "learner.npz", kind(PROBLEM, BALL)
        cut.run(itertools.islice(stream, 5), checkpoint=path)
        rest = kind.load(path).run(copy.copy(stream).from_round(6))
        np.testing.assert_array_equal(rest.losses, wanted.losses[5:])
        np.testing.assert_array_equal(rest.decision, wanted.decision)


@pytest.mark.parametrize("source", ["dask", "dask csr", "again", "npz"])
@pytest.mark.parametrize("kind", [fw.SVRF, fw.SpiderFW])
def test_offline_methods_are_those_in_memory(kind, source, few, tmp_path):
    data, same = SOURCES[source](tmp_path), whole(source)
    method = kind(PROBLEM, BALL, step=0.1, epoch_length=4, batch_size=9, seed=5)
    found = method.fit(*data, iterations=11, checkpoints=[1, 5, 12])
    wanted = copy.deepcopy(method).fit(same, iterations=11, checkpoints=[1, 5, 12])
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-12)
    np.testing.assert_allclose(found.decisions, wanted.decisions, atol=1e-12)
    assert found.gradient_evaluations == wanted.gradient_evaluations
    method.fit(*data, iterations=6)
    method.save(tmp_path / "method.npz")
    rest = kind.load(tmp_path / "method.npz").fit(*data, iterations=11, resume=True)
    np.testing.assert_array_equal(rest.decision, found.decision)
    in_memory = kind(PROBLEM, BALL, step=0.1)
    in_memory.fit(same, iterations=2)
    with pytest.raises(TypeError, match="the fit to be resumed was of data in memory"):
        in_memory.fit(*data, iterations=4, resume=True)
    with pytest.raises(ValueError, match="columns, but 7 features are wanted"):
        kind(fw.SoftmaxRegression(7, 3), fw.RowL1Ball((3, 7), 1.0)).fit(*data, iterations=2)


def test_a_pass_over_the_chunks_reads_each_once(monkeypatch):
    read = []
    X_read = da.from_array(X, chunks=(10, D)).map_blocks(
        lambda block: read.append(len(block)) or block, meta=np.empty((0, 0))
    )
    monkeypatch.setattr(_chunks, "_HELD", 30 * D * 8)
    stream = fw.epoch_stream(X_read, Y, batch_size=7, shuffle="chunks", chunk_size=10, seed=0)
    monkeypatch.setattr(fw.streams, "_BUFFERED", 3)
    assert sum(len(batch) for batch in stream) == sum(read) == N


def test_memory_is_used_again_where_nobody_has_its_rows(monkeypatch):
    memory = _chunks.Memory()
    first = memory.lend(memory.take((4, 2), np.dtype(float)))
    part, at = first[1:], first.ctypes.data
    del first
    assert memory.take((4, 2), np.dtype(float)).ctypes.data != at
    with pytest.raises(ValueError, match="WRITEABLE"):
        part.flags.writeable = True
    del part
    assert memory.take((3, 2), np.dtype(float)).ctypes.data == at
    monkeypatch.setattr(_chunks, "_HELD", 20 * D * 8)
    kept = [*STREAMS["as they lie"](*of_dask())]
    np.testing.assert_array_equal(np.concatenate([batch.X for batch in kept]), X)


def test_many_columns_that_are_nearly_empty_are_held_as_such():
    wide = sparse.csr_array((np.ones(9), np.arange(9) * 10**8, np.arange(10)), (9, 10**9))
    lazy = da.from_array(wide, chunks=(3, 10**9), asarray=False)
    for data in ((lazy, Y[:9]), ([(wide[:5], Y[:5]), (wide[5:], Y[5:9])],)):
        batches = fw.epoch_stream(*data, batch_size=4, shuffle=False)
        assert [batch.X.nnz for batch in batches] == [4, 4, 1]


def test_chunks_are_made_ahead_by_as_many_threads_as_there_are_cores(monkeypatch):
    """As elsewhere; Dask has more of them for threads that are not the main one."""
    monkeypatch.setattr(importlib.import_module("dask.system"), "CPU_COUNT", 1)
    busy = threading.Lock()

    def made(block):
        assert busy.acquire(blocking=False)
        time.sleep(0.002)
        busy.release()
        return block

    lazy = da.from_array(X, chunks=(5, D)).map_blocks(made, meta=np.empty((0, 0)))
    sent = [batch.X for batch in STREAMS["as they lie"](lazy, Y)]
    np.testing.assert_array_equal(np.concatenate(sent), X)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8])
def test_the_dtype_is_that_of_data_in_memory(dtype):
    A = (9 * X).astype(dtype)
    stream = STREAMS["rows"](da.from_array(A, chunks=(20, D)), Y)
    assert next(iter(stream)).X.dtype == fw.Dataset(A, Y).dtype
    assert "61 rows x 5 features in 4 chunks, 3 classes" in repr(stream)


def bad():
    A = X.copy()
    A[43, 2] = np.nan
    return A


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (lambda: (of_dask()[0][da.from_array(Y, chunks=13) > 0], Y), ValueError,
         r"X is a Dask array whose chunks are of unknown sizes: call X.compute_chunk_sizes\(\)"),
        (lambda: (X, of_dask()[1][of_dask()[1] > 0]), ValueError, "y has"),
        (lambda: (of_dask()[0], of_dask()[1][of_dask()[1] > 0]), ValueError, "y.compute_chunk"),
        (lambda: (of_dask()[0],), TypeError, "y is missing"),
        (lambda: (of_dask()[0], Y[:9]), ValueError, "y has 9 labels, but 61 are wanted"),
        (lambda: (da.zeros((3, 3, 3)), Y), ValueError, "a matrix"),
        (lambda: (da.from_array(bad(), chunks=(20, D)), Y), ValueError,
         r"chunk of X that begins with row 40: X\[3, 2\] is nan"),
        (lambda: (iter(pairs()),), TypeError, "X is an iterator, which gives its chunks once"),
        (lambda: ([(X, Y), (X[:3, :2], Y[:3])],), ValueError, "row 61: X has 2 columns, but 5"),
        (lambda: ([(X, Y), (X[:3], Y[:2])],), ValueError, "chunk 1 has 3 rows of X, but 2"),
        (lambda: ([],), TypeError, "y is missing"),
        (lambda: (["no.npz"],), FileNotFoundError, "no.npz"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(data, kind, words):
    with pytest.raises(kind, match=words):
        [*fw.iid_stream(*data(), batch_size=50, rounds=9)]


@pytest.mark.parametrize("kind", ["ORGFW", "OFW", "SVRF", "comparator"])
def test_what_is_not_finite_is_named_where_it_was_made(kind, few):
    """Rounds do not look for it until a loss tells."""
    lazy = da.from_array(bad(), chunks=(20, D))
    if kind == "comparator":
        play = partial(fw.best_fixed_decision, PROBLEM, BALL, lazy, Y)
    elif kind == "SVRF":
        play = partial(fw.SVRF(PROBLEM, BALL).fit, lazy, Y, iterations=3)
    else:
        play = partial(getattr(fw, kind)(PROBLEM, BALL).run, STREAMS["chunks"](lazy, Y))
    with pytest.raises(ValueError, match=r"chunk of X that begins with row 40: X\[3, 2\] is nan"):
        play()


def test_iterables_of_ones_own_are_read_by_the_thread_that_runs(few):
    threads = set()

    class Bound(Again):
        def __iter__(self):
            threads.add(threading.get_ident())
            return super().__iter__()

    fw.ORGFW(PROBLEM, BALL).run(STREAMS["rows"](Bound()))
    assert threads == {threading.get_ident()}


def test_files_that_hold_something_else(tmp_path):
    np.savez(tmp_path / "a.npz", A=X)
    with pytest.raises(ValueError, match=r"a\.npz holds no y: write np\.savez"):
        fw.epoch_stream([tmp_path / "a.npz"], batch_size=3)
    np.savez(tmp_path / "b.npz", X=np.array([{}]), y=np.array([0]))
    with pytest.raises(ValueError, match="allow_pickle"):
        [*fw.epoch_stream([tmp_path / "b.npz"], batch_size=3)]


def test_data_frames_are_told_the_way():
    frames = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    frame = frames.from_pandas(pandas.DataFrame(X), npartitions=2)
    with pytest.raises(TypeError, match=r"X\.to_dask_array\(lengths=True\)"):
        fw.iid_stream(frame, Y, batch_size=3, rounds=2)


class OracleAlone:
    """A set without a projection."""

    shape, diameter, lmo = BALL.shape, BALL.diameter, BALL.lmo


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        *itertools.product(["faces", "projection"], ["dask", "dask csr", "again"]),
        *[(kind, "dask") for kind in ("sum", "oracle alone", "network")],
    ],
)
def test_the_comparator_and_its_certificate_are_those_in_memory(kind, source, tmp_path):
    if kind == "network":
        problem = fw.OneHiddenLayer(D, 2, C, "tanh")
        ball = problem.l1_balls(1.0, 1.0)
    else:
        problem = PROBLEM.with_reduction("sum") if kind == "sum" else PROBLEM
        ball = {"projection": fw.L2Ball((C, D), 2.0), "oracle alone": OracleAlone()}.get(kind, BALL)
    data, same = SOURCES[source](tmp_path), whole(source)
    limits = {"tol": 1e-10, "max_iterations": 20} if kind == "network" else {"tol": 1e-10}
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no convergence, of the network
        best = fw.best_fixed_decision(problem, ball, *data, **limits)
        wanted = fw.best_fixed_decision(problem, ball, same, **limits)
    for name in ("value", "gap"):
        assert getattr(best, name) == pytest.approx(getattr(wanted, name), rel=1e-9, abs=1e-9), name
    if kind == "network":
        return
    # what losses see of decisions: they are the same when all classes move together
    seen, expected = (W - W.mean(axis=0) for W in (best.decision, wanted.decision))
    np.testing.assert_allclose(seen, expected, atol=1e-5)
    stream, other = STREAMS["rows"](*data), STREAMS["rows"](same)
    curve = fw.regret(fw.ORGFW(problem, BALL).run(stream), best, stream)
    expected = fw.regret(fw.ORGFW(problem, BALL).run(other), wanted, other)
    np.testing.assert_allclose(curve.upper, expected.upper, rtol=1e-9, atol=1e-7)
    if source != "again":
        assert problem.loss(best.decision, data) == pytest.approx(best.value, rel=1e-9)


def test_samples_are_held_where_they_may_be(monkeypatch):
    rng = np.random.default_rng(0)
    A, y = rng.random((600, 4)), rng.integers(0, 3, 600)
    problem, ball = fw.SoftmaxRegression(4, 3), fw.RowL1Ball((3, 4), 2.0)
    monkeypatch.setattr(regret, "_SMALLEST_SAMPLE", 20)
    monkeypatch.setattr(_chunks, "_BLOCK", 64)
    wanted = fw.best_fixed_decision(problem, ball, A, y, tol=1e-9)
    for held in (100, 1000):
        monkeypatch.setattr(_chunks, "_HELD", held * 4 * 8)
        best = fw.best_fixed_decision(problem, ball, da.from_array(A, chunks=(250, 4)), y, tol=1e-9)
        assert best.value == pytest.approx(wanted.value, rel=1e-9)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_data():
    code = (
        "from fastfw import _chunks; _chunks._HELD = 1 << 22\n"
        "from bench.scale import pass_over; print(*pass_over(160, rows=250))"
    )
    root = Path(__file__).resolve().parents[1]
    told = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=root
    )
    growth = float(told.stdout.split()[0])
    assert growth < 100.0  # MB, of 160


def test_own_problems_and_intervals_want_data_in_memory():
    own = fw.problem_from_function(lambda x, X, y: (0.0, np.zeros_like(x)), (C, D))
    with pytest.raises(TypeError, match="X is in chunks, which only problems of this package"):
        fw.best_fixed_decision(own, BALL, *of_dask())
    stream = STREAMS["iid"](*of_dask())
    with pytest.raises(TypeError, match="must be of data in memory"):
        fw.interval_regret(fw.ORGFW(PROBLEM, BALL).run(stream), PROBLEM, BALL, stream)
