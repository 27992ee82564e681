"""Rounds on the workers of a cluster: the decisions of the same rounds in memory."""

import itertools
import os

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
from fastfw.learners import _workers
from learner_cases import RECURSIVE

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, D, C = 90, 12, 3
RNG = np.random.default_rng(2)
X = RNG.random((N, D)) * (RNG.random((N, D)) < 0.3)
Y = np.argmax(X @ RNG.normal(size=(D, C)), axis=1)
PROBLEM, BALL = fw.SoftmaxRegression(D, C), fw.RowL1Ball((C, D), 4.0)
NETWORK = fw.OneHiddenLayer(D, 2, C, "tanh")
WORLDS = {
    "softmax": (PROBLEM, BALL),
    "sum": (PROBLEM.with_reduction("sum"), fw.RowKSparsePolytope((C, D), 2, 3.0)),
    "network": (NETWORK, NETWORK.l1_balls(2.0, 1.0)),
}
KINDS = {"dense": np.asarray, "csr": sparse.csr_array}


@pytest.fixture(scope="module")
def cluster():
    """Two workers in this process."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client


def lazy(kind, dtype=float):
    return da.from_array(X.astype(dtype), chunks=((20, 1, 29, 40), D)).map_blocks(KINDS[kind])


def streams(*data, **options):
    yield fw.iid_stream(*data, batch_size=30, rounds=6, seed=1)
    yield fw.epoch_stream(*data, batch_size=17, epochs=2, shuffle=False)  # of one shard or two


@pytest.mark.parametrize(
    ("world", "method", "kind"),
    [
        *itertools.product(["softmax"], RECURSIVE, KINDS),
        *itertools.product(["sum", "network"], RECURSIVE[::2], ["dense"]),
    ],
)
def test_decisions_are_those_in_memory(cluster, method, world, kind, tmp_path):
    problem, ball = WORLDS[world]
    start = 0.01 * RNG.random(problem.shape)
    here, there = (method(problem, ball, engine=e, start=start) for e in ("fused", "dask"))
    for found, wanted in zip(streams(lazy(kind), Y), streams(KINDS[kind](X), Y), strict=True):
        a, b = there.run(found), here.run(wanted)
        np.testing.assert_allclose(a.losses, b.losses, rtol=1e-9)
        np.testing.assert_allclose(a.decision, b.decision, atol=1e-12)
        np.testing.assert_allclose(a.average, b.average, atol=1e-12)
        there.save(tmp_path / "learner.npz")
        there = method.load(tmp_path / "learner.npz")
    assert there.engine == "dask"
    if method is fw.RegularizedOFW:
        assert there.scale == pytest.approx(here.scale, rel=1e-12)


def test_one_precision_and_the_same_bits_again(cluster):
    def run():
        learner = fw.ORGFW(PROBLEM, BALL, engine="dask")
        return learner.run(next(streams(lazy("dense", np.float32), Y)))

    first, again = run(), run()
    assert first.decision.dtype == np.float32
    np.testing.assert_array_equal(first.decision, again.decision)
    wanted = fw.ORGFW(PROBLEM, BALL).run(next(streams(X.astype(np.float32), Y)))
    np.testing.assert_allclose(first.losses, wanted.losses, rtol=1e-5)


def test_where_rounds_are_played_is_measured_and_said(cluster, monkeypatch):
    learner = fw.ORGFW(PROBLEM, BALL)
    assert (learner.engine, learner.engine.reason) == ("fused", "")
    monkeypatch.setattr(_workers, "_QUICKEST", 10.0)
    learner.run(next(streams(lazy("dense"), Y)))
    assert learner.engine == "fused"
    assert "collected at the client" in learner.engine.reason
    monkeypatch.setattr(_workers, "_QUICKEST", 0.0)
    gather = _workers.DaskChunks.gather
    monkeypatch.setattr(  # a slow network
        _workers.DaskChunks, "gather", lambda *a: _workers.time.sleep(0.5) or gather(*a)
    )
    learner = fw.ORGFW(PROBLEM, BALL)
    learner.run(next(streams(lazy("dense"), Y)))
    assert learner.engine == "dask"
    assert "ms on 2 workers" in learner.engine.reason
    with pytest.raises(ValueError, match="engine must be 'fused' or 'steps', but it is 'dask'"):
        fw.OAW(PROBLEM, BALL, engine="dask")


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_collected_and_summed_by_a_cluster_is_the_same(cluster, kind, monkeypatch):
    monkeypatch.setattr(_workers, "_QUICKEST", 1e9)
    for method in RECURSIVE:
        here, there = method(PROBLEM, BALL), method(PROBLEM, BALL)
        result = there.run(next(streams(lazy(kind), Y)))
        wanted = here.run(next(streams(KINDS[kind](X), Y)))
        assert there.engine == "fused"
        np.testing.assert_array_equal(result.losses, wanted.losses)
        np.testing.assert_array_equal(result.decision, wanted.decision)
    for method in (fw.SVRF(PROBLEM, BALL, 0.1), fw.SpiderFW(PROBLEM, BALL, 0.1)):
        found, wanted = method.fit(lazy(kind), Y, iterations=9), method.fit(X, Y, iterations=9)
        np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-9)
        np.testing.assert_allclose(found.decision, wanted.decision, atol=1e-12)
    best = fw.best_fixed_decision(PROBLEM, BALL, lazy(kind), Y, tol=1e-9)
    same = fw.best_fixed_decision(PROBLEM, BALL, KINDS[kind](X), Y, tol=1e-9)
    assert best.value == pytest.approx(same.value, rel=1e-9)
    assert best.gap <= 1e-9 * best.value


def test_few_columns_travel_alone():
    a, b = (
        (1.0, _workers.Columns(np.array(columns), np.ones((C, len(columns))), (C, D)))
        for columns in ([1, 5], [0, 5, 7])
    )
    loss, total = _workers._add([a, b, a])
    assert loss == 3.0
    assert total.columns.tolist() == [0, 1, 5, 7]
    np.testing.assert_array_equal(total.dense()[0, [0, 1, 5, 7, 2]], [1, 2, 3, 1, 0])
    np.testing.assert_array_equal(_workers._add([a, (0.0, np.ones((C, D)))])[1][0, :2], [1, 2])


def test_rounds_that_fail_leave_the_learner_as_it_was(cluster):
    learner = fw.ORGFW(PROBLEM, BALL, engine="dask")
    bad = lazy("dense") * np.where(np.arange(D) == 3, np.nan, 1.0)
    with pytest.raises(ValueError, match="chunk of X that begins with row"):
        learner.run(next(streams(bad, Y)))
    assert (learner.t, learner.engine) == (1, "dask")


# the oldest distributed warns of what it does itself when one actor calls another
@pytest.mark.filterwarnings("ignore:The `Worker.actors` attribute:FutureWarning")
def test_many_shards_make_a_tree(monkeypatch, cluster):
    monkeypatch.setattr(_workers, "_FAN_IN", 2)
    tasks = [(k, "rows", "step", []) for k in range(7)]
    tree = _workers._tree(tasks)
    flat, level = [], tree
    while level:
        assert len(level) <= 2 * max(1, len(flat))
        flat += [task[0] for task in level]
        level = [below for task in level for below in task[3]]
    assert sorted(flat) == [*range(7)]
    monkeypatch.setattr(_workers, "_FAN_IN", 1)  # one worker below the other
    learner, wanted = fw.ORGFW(PROBLEM, BALL, engine="dask"), fw.ORGFW(PROBLEM, BALL)
    learner.run(next(streams(lazy("dense"), Y)))
    wanted.run(next(streams(X, Y)))
    np.testing.assert_allclose(learner.play(), wanted.play(), atol=1e-12)


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path):
    wanted = fw.ORGFW(PROBLEM, BALL).run(next(streams(X, Y)))
    killed = []

    def kill(t, loss, seconds):
        if t == 3:
            address, pid = next(iter(client.run(os.getpid).items()))
            killed.append(address)
            os.kill(pid, 9)

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as made,
        distributed.Client(made) as client,
    ):
        learner = fw.ORGFW(PROBLEM, BALL, engine="dask")
        result = learner.run(next(streams(lazy("dense"), Y)), callback=kill)
    assert killed
    np.testing.assert_allclose(result.losses, wanted.losses, rtol=1e-9)
    np.testing.assert_allclose(result.decision, wanted.decision, atol=1e-12)


def test_rows_in_memory_ask_for_no_client(monkeypatch):
    """That of Dask's configuration may be gone, which Dask says by an error."""
    monkeypatch.setattr(_workers, "_client", lambda: pytest.fail("there is no client"))
    learner = fw.ORGFW(PROBLEM, BALL)
    learner.run(fw.iid_stream(X, Y, batch_size=2, rounds=2))
    assert learner.t == 3
