"""Independent learners at once, in threads and after a fork: the same bits as alone."""

import copy
import os
import pickle
import sys
import threading
from functools import partial
from queue import SimpleQueue

import numpy as np
import pytest

import fastfw as fw
from fastfw import _threads
from fastfw._threads import call_helpers, in_team
from fastfw.kernels._atomics import NOT_YET, OVER, claim, next_open, peek, publish, rest
from fastfw.kernels._jit import kernel
from learner_cases import (
    ENGINES,
    METHODS,
    RECURSIVE,
    make,
    make_data,
    make_stream,
    problem_and_ball,
)
from sizes import sized

THREADS = 4
T = sized(200, 15)


def work(method, engine, seed, dtype):
    """A run, then rounds one by one; everything that comes out of it, as bytes."""
    X, y = make_data(dtype=dtype)
    learner = make(method, engine)
    result = learner.run(fw.iid_stream(X, y, batch_size=7, rounds=T, seed=seed))
    for batch in make_stream(dtype, rounds=5, seed=seed):
        learner.observe(batch)
    arrays = (result.losses, result.decision, result.average, learner.play(), learner.average)
    return b"".join(a.tobytes() for a in arrays)


def jobs():
    for seed in range(THREADS):
        method = list(METHODS.values())[seed % len(METHODS)]
        yield method, ENGINES[seed % 4 == 3], seed, (np.float64, np.float32)[seed % 2]


def in_threads(calls):
    """Results of calls that all begin at the same moment."""
    barrier = threading.Barrier(len(calls))
    results = [None] * len(calls)

    def target(i, call):
        barrier.wait()
        try:
            results[i] = call()
        except BaseException as error:  # shown by the comparison
            results[i] = error

    threads = [
        threading.Thread(target=target, args=(i, call), daemon=True) for i, call in enumerate(calls)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_learners_in_threads():
    alone = [work(*job) for job in jobs()]
    together = in_threads([lambda job=job: work(*job) for job in jobs()])
    assert together == alone


def everybody():
    """All learners, each with both engines, as functions that make them."""
    problem, ball = problem_and_ball()
    meta = {"rounds": 60, "inner_steps": 4}
    online = (*RECURSIVE, fw.OFW, fw.OAW)
    cases = [(method, {}) for method in online]
    cases += [(fw.MORGFW, {**meta, "sub_batch_size": 2}), (fw.MORGFW, meta)]
    cases += [(fw.MetaFrankWolfe, meta)]
    for method, options in cases:
        for engine in ENGINES:
            for threads in (1, 2) if engine == "fused" else (1,):
                name = f"{method.__name__}-{options.get('sub_batch_size')}-{engine}-{threads}"
                make = partial(method, problem, ball, engine=engine, threads=threads, **options)
                yield pytest.param(make, id=name)


@pytest.mark.parametrize("make", [*everybody()])
def test_one_learner_in_several_threads(make, tmp_path):
    """Rounds are played one after the other; whoever looks sees whole rounds."""
    rounds = sized(40, 12)
    batches = [(batch.X, batch.y) for batch in make_stream(rounds=rounds)]
    one_by_one = make()
    decisions = {1: one_by_one.play().tobytes()}
    for batch in [batches[0]] * rounds:
        one_by_one.observe(batch)
        decisions[one_by_one.t] = one_by_one.play().tobytes()
    learner, seen, over = make(), [], threading.Event()

    def play(batches):
        return [learner.observe(batch).t for batch in batches]

    def look(path):
        while not over.is_set():
            learner.save(path)
            for other in (
                learner, type(learner).load(path), copy.copy(learner), copy.deepcopy(learner),
                pickle.loads(pickle.dumps(learner)),
            ):  # fmt: skip
                seen.append((other.t if other is not learner else None, other.play().tobytes()))

    looking = threading.Thread(target=look, args=(tmp_path / "learner.npz",))
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        looking.start()
        # the same batch, so that it does not matter whose turn it is
        numbers = in_threads([partial(play, [batches[0]] * (rounds // 2))] * 2)
    finally:
        sys.setswitchinterval(interval)
        over.set()
        looking.join()
    assert sorted(numbers[0] + numbers[1]) == list(range(1, rounds + 1))
    assert learner.play().tobytes() == decisions[rounds + 1]
    assert seen
    for t, decision in seen:
        assert decision in decisions.values() if t is None else decision == decisions[t]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_learner_that_is_called_back(engine):
    """It may be looked at, not played on."""
    X, y = make_data()
    calls = []

    def step(t):
        if calls:
            assert learner.t <= t
            assert learner.set.contains(learner.play())
            calls[0]()
        return 0.5

    learner = make(METHODS["ORGFW"], engine, step=step)
    other = learner.observe((X, y)).t
    before = learner.t, learner.play().tobytes(), learner.average.tobytes()
    for call in (lambda: learner.observe((X, y)), lambda: learner.run([(X, y)])):
        calls[:] = [call]
        for play in (lambda: learner.observe((X, y)), lambda: learner.run([(X, y)] * 2)):
            with pytest.raises(RuntimeError, match="may look at it, but not play on"):
                play()
            assert before == (learner.t, learner.play().tobytes(), learner.average.tobytes())
    calls.clear()
    with pytest.raises(RuntimeError, match="may look at it"):
        learner.run([(X, y)], progress=lambda k: learner.observe((X, y)))
    assert before[0] == learner.t == other + 1
    assert learner.run([(X, y)], progress=lambda k: copy.copy(learner).observe((X, y))).losses.size


def in_a_child(call):
    """What a process that begins as a copy of this one finds, as bytes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        code = 1
        try:
            os.close(reader)
            with os.fdopen(writer, "wb") as file:
                file.write(call())
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        found = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    return found


def forks(test):
    """Mark what forks, of which Python warns where other threads run."""
    quiet = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")(
        quiet(test)
    )


def test_who_looks_waits_for_a_round_that_is_played_in_its_turn():
    begun, ends, looked = threading.Event(), threading.Event(), threading.Event()

    def step(t):
        begun.set()
        ends.wait()
        return 0.5

    problem, ball = problem_and_ball()
    learner = fw.OSFW(problem, ball, step=step)
    batch = next(iter(make_stream(rounds=1)))
    playing = threading.Thread(target=learner.run, args=([(batch.X, batch.y)],))
    looking = threading.Thread(target=lambda: (learner.play(), looked.set()))
    playing.start()
    begun.wait()
    looking.start()
    early = looked.wait(0.2)
    ends.set()
    playing.join(), looking.join()
    assert not early
    assert learner.t == 2


@forks
def test_locks_are_free_after_a_fork():
    learner = make(METHODS["ORGFW"])
    held, over = threading.Event(), threading.Event()

    def hold():
        with learner._guard.turn, learner._guard.state:
            held.set()
            over.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    found = in_a_child(lambda: bytes([learner.observe(make_data()).t]))
    over.set()
    holder.join()
    assert found == b"\x01"


@forks
def test_learners_after_a_fork():
    job = next(jobs())
    X, y = make_data()
    learner = make(METHODS["ORGFW"])
    learner.run(list(make_stream())[:3])  # state and compiled code from before
    wanted = work(*job), learner.run([(X, y)] * 3).losses.tobytes()
    learner = make(METHODS["ORGFW"])
    learner.run(list(make_stream())[:3])
    found = in_a_child(lambda: work(*job) + learner.run([(X, y)] * 3).losses.tobytes())
    assert found == b"".join(wanted)
    # and the parent goes on
    assert learner.run([(X, y)] * 3).losses.tobytes() == wanted[1]


# --- words that threads share ---------------------------------------------------------------------


@kernel(cache=False)
def take(taken, opened, out):
    """Wait until opened, then take numbers until all are taken; count how often each is."""
    turns = 0
    while peek(opened, 0) == 0:
        turns = rest(turns)
    k = claim(taken, 0)
    while k < out.shape[0]:
        out[k] += 1
        k = claim(taken, 0)


def test_no_number_is_claimed_twice():
    taken, opened = np.zeros(1, np.int64), np.zeros(1, np.int64)
    out = np.zeros(sized(200_000, 2_000), np.int64)
    takers = [threading.Thread(target=take, args=(taken, opened, out)) for _ in range(THREADS)]
    for taker in takers:
        taker.start()
    set_word(opened)
    for taker in takers:
        taker.join()
    np.testing.assert_array_equal(out, 1)
    assert taken[0] == out.size + THREADS


@kernel(cache=False)
def set_word(opened):
    publish(opened, 0, 1)


@pytest.fixture
def one_helper(monkeypatch):
    """A team of its own, of one."""
    monkeypatch.setattr(_threads, "_tasks", SimpleQueue())
    monkeypatch.setattr(_threads, "_helpers", [])
    monkeypatch.setattr(_threads, "cores", lambda: 1)


def test_helpers_that_come_too_late_are_not_waited_for(one_helper):
    wanted = shared(fw.ORGFW, 1)[0].losses
    begun, busy = threading.Event(), threading.Event()

    def occupied():
        begun.set()
        busy.wait()

    call_helpers(occupied, 5)
    begun.wait()
    np.testing.assert_allclose(shared(fw.ORGFW, 2)[0].losses, wanted)
    for _ in range(1000):  # what waits for helpers does not pile up
        call_helpers(occupied, 5)
    assert _threads._tasks.qsize() < 100
    assert [helper.is_alive() for helper in _threads._helpers] == [True]
    busy.set()


def test_a_leader_that_never_comes_is_not_waited_for():
    for word in (NOT_YET, OVER):
        assert next_open(np.full(1, word), NOT_YET) == OVER


def test_more_threads_than_anybody_has():
    """They are as many parts as there are at most, and no more helpers than cores."""
    wanted = shared(fw.ORGFW, 6)[0].decisions  # 23 rows are six parts
    before = threading.active_count()
    found = shared(fw.ORGFW, 10**9)[0].decisions
    np.testing.assert_array_equal(found, wanted)
    assert threading.active_count() <= before + _threads.cores()


def test_threads_when_no_more_can_be_started(monkeypatch):
    """As at the end of a program: rounds are played without helpers, and end with the same bits."""
    wanted = shared(fw.ORGFW, 2)[0].decisions

    def refuse(self):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_threads, "_helpers", [])
    monkeypatch.setattr(threading.Thread, "start", refuse)
    np.testing.assert_array_equal(shared(fw.ORGFW, 2)[0].decisions, wanted)


def test_an_error_of_the_leader_ends_the_helpers():
    words = np.zeros(3, np.int64)

    def lead():
        assert words[0] == NOT_YET
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_team(lead, lambda: None, words, 2)
    assert words[0] == OVER


# --- threads that share a batch -------------------------------------------------------------------


def shared(method, threads, dtype=np.float64, coded=False):
    """A run, then a save, a load and rounds one by one: decisions, losses and the learner."""
    X, y = make_data(dtype=dtype)
    data = fw.Dataset(X, y)
    if coded:
        codes = np.random.default_rng(3).integers(0, 256, X.shape).astype(np.uint8)
        data = fw.Dataset(codes, y, scale=1 / 255).astype(dtype)
    problem = fw.SoftmaxRegression(data.n_features, data.n_classes)
    learner = method(
        problem, fw.RowL1Ball(problem.shape, 3.0), step=fw.power_schedule(1, 1), threads=threads
    )
    stream = fw.iid_stream(data, batch_size=23, rounds=12, seed=2)
    result = learner.run(stream, checkpoints=range(1, 14))
    return result, learner, stream


@pytest.mark.parametrize("method", [*RECURSIVE, fw.OFW, fw.OAW])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("coded", [False, True])
def test_threads_change_nothing_but_rounding(method, dtype, coded, monkeypatch):
    monkeypatch.setattr("fastfw.learners._gradients._FEWEST", 3)
    alone, _, _ = shared(method, 1, dtype, coded)
    for threads in (2, 3, 9):
        result, learner, stream = shared(method, threads, dtype, coded)
        again, _, _ = shared(method, threads, dtype, coded)
        np.testing.assert_array_equal(result.decisions, again.decisions)
        np.testing.assert_array_equal(result.losses, again.losses)
        looped = method(learner.problem, learner.set, step=fw.power_schedule(1, 1), threads=threads)
        losses = [looped.observe(batch).loss for batch in stream]
        np.testing.assert_array_equal(losses, result.losses)
        np.testing.assert_array_equal(looped.play(), learner.play())
        # vertices are the same; sums of 23 rows are rounded in another order
        tolerance = 1e3 * np.finfo(dtype).eps
        np.testing.assert_allclose(result.decisions, alone.decisions, rtol=0, atol=tolerance)
        np.testing.assert_allclose(result.losses, alone.losses, rtol=tolerance)


@pytest.mark.parametrize("method", [fw.OFW, fw.OAW])
def test_threads_share_the_past(method, monkeypatch):
    parts = []

    def spy(lead, assist, words, threads):
        parts.append(threads)
        return in_team(lead, assist, words, threads)

    monkeypatch.setattr("fastfw.learners._gradients.in_team", spy)
    shared(method, 2)
    assert set(parts) == {1}  # so few samples are not worth a thread
    monkeypatch.setattr("fastfw.learners._gradients._FEWEST", 3)
    shared(method, 2)
    assert parts[-1] == 2


@pytest.mark.parametrize("method", [fw.MORGFW, fw.MetaFrankWolfe])
@pytest.mark.parametrize("n_classes", [3, 13])
@pytest.mark.parametrize("size", [3, 6, None])
def test_threads_share_classes(method, n_classes, size):
    """Every class is worked on alone, so that the decisions are the same to the bit."""
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((60, 70)), rng.integers(0, n_classes, 60)
    problem = fw.SoftmaxRegression(70, n_classes)
    ball = fw.RowL1Ball(problem.shape, 2.0)
    stream = fw.iid_stream(X, y, batch_size=23, rounds=4, seed=2)
    inner = 100 if size == 6 else 7  # more residuals than are found together
    options = {"rounds": 4, "inner_steps": inner, "sub_batch_size": size}
    one, *others = (
        method(problem, ball, **options, threads=threads).run(stream, checkpoints=range(1, 6))
        for threads in (1, 2, 5)
    )
    for other in others:
        np.testing.assert_array_equal(other.decisions, one.decisions)
        np.testing.assert_allclose(other.losses, one.losses, rtol=1e-14)


def test_threads_are_saved(tmp_path):
    _, learner, stream = shared(fw.ORGFW, 3)
    learner.save(tmp_path / "learner.npz")
    other = fw.ORGFW.load(tmp_path / "learner.npz")
    assert other.threads == 3
    for each in (learner, other):
        each.run(stream)
    np.testing.assert_array_equal(learner.play(), other.play())


def test_threads_by_the_environment(monkeypatch):
    monkeypatch.setenv("FASTFW_NUM_THREADS", "2")
    assert shared(fw.ORGFW, None)[1].threads == 2
    assert shared(fw.ORGFW, 1)[1].threads == 1
    monkeypatch.setenv("FASTFW_NUM_THREADS", "two")
    with pytest.raises(ValueError, match="FASTFW_NUM_THREADS must be an integer of at least 1"):
        shared(fw.ORGFW, None)
    for wrong, error in ((0, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match="threads must be"):
            shared(fw.ORGFW, wrong)
