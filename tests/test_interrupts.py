"""Exceptions that come from outside, at any moment: signals whose handlers raise, and Ctrl-C.

``python tests/test_interrupts.py 2000`` interrupts every learner 2,000 times.
"""

from __future__ import annotations

import ctypes
import faulthandler
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import fastfw as fw
from learner_cases import snapshot
from sizes import JIT

N, D, C, B = 400, 60, 4, 300
T = 12
ONLINE = {"step": fw.power_schedule(1, 1)}
META = {"rounds": T, "inner_steps": 20, "base": fw.FTPL(scale=8.0)}
LEARNERS = {
    "ORGFW": (fw.ORGFW, ONLINE),
    "OSFW": (fw.OSFW, ONLINE),
    "RegularizedOFW": (fw.RegularizedOFW, ONLINE),
    "OFW": (fw.OFW, ONLINE),
    "OAW": (fw.OAW, ONLINE),
    "MORGFW": (fw.MORGFW, {**META, "sub_batch_size": 3}),
    "MORGFW, doubling": (fw.MORGFW, {"inner_steps": 20, "sub_batch_size": 3}),
    "MORGFW, whole batches": (fw.MORGFW, META),
    "MetaFrankWolfe": (fw.MetaFrankWolfe, {**META, "sub_batch_size": 3}),
    "MetaFrankWolfe, whole batches": (fw.MetaFrankWolfe, META),
}


class Stop(Exception):
    """What comes from outside."""


def raise_stop(*_):
    raise Stop


def wait():
    while True:  # for a signal that comes between a look and a sleep there is the next one
        time.sleep(1e-4)


def by_alarm(call, seconds):
    """Call, with a signal whose handler raises after so many seconds."""
    signal.signal(signal.SIGALRM, raise_stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        call()
        wait()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def by_interrupt(call, seconds):
    """Call, with Ctrl-C after so many seconds."""

    def send():
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored
    sender = threading.Thread(target=send)
    try:
        sender.start()
        call()
        wait()
    except KeyboardInterrupt:
        sender.join()
        raise Stop from None


def in_a_thread(call, seconds):
    """Call in another thread, into which an exception is thrown after so many seconds."""
    came = []

    def work():
        try:
            call()
            wait()
        except Stop as error:
            came.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    time.sleep(seconds)
    kind = ctypes.py_object(Stop)
    while not ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(worker.ident), kind):
        time.sleep(1e-4)
    worker.join()
    raise came[0]


WAYS = [by_alarm, by_interrupt]
#: Those whose rounds are each one call of compiled code, which nothing at all interrupts.
AT_ONE_STROKE = ("ORGFW", "OSFW", "RegularizedOFW")
ALL_WAYS = [*WAYS, in_a_thread]


def data():
    rng = np.random.default_rng(0)
    return rng.random((N, D)), rng.integers(C, size=N)


def make(name):
    kind, options = LEARNERS[name]
    problem = fw.SoftmaxRegression(D, C)
    return kind(problem, fw.RowL1Ball(problem.shape, 3.0), threads=2, **options)


def helpers_are_idle():
    """Whether the threads that help have nothing to do, now or soon."""
    for _ in range(1000):
        frames = sys._current_frames()
        helpers = [thread for thread in threading.enumerate() if thread.name.startswith("fastfw")]
        if all(frames[helper.ident].f_code.co_name == "_serve" for helper in helpers):
            return True
        time.sleep(0.01)
    return False


def interrupt(name, count, folder, seed=0):
    """Interrupt a learner so many times, in `observe` and in `run`; it is in a whole round."""
    rng = random.Random(f"{name} {seed}")
    path = Path(folder) / "learner.npz"
    stream = fw.iid_stream(*data(), batch_size=B, rounds=T, seed=1)
    batches = list(stream)
    learner = make(name)
    wanted = {1: snapshot(learner, path)}
    a_round = 1.0
    for batch in batches:
        begun = time.perf_counter()
        learner.observe(batch)
        a_round = min(a_round, time.perf_counter() - begun)
        wanted[learner.t] = snapshot(learner, path)
    begun = time.perf_counter()
    make(name).run(stream)
    a_run = time.perf_counter() - begun
    seen = {"before": 0, "after": 0}
    learner = make(name)
    ways = ALL_WAYS if name in AT_ONE_STROKE else WAYS
    cases = itertools.cycle(itertools.product(ways, (False, True)))
    for way, whole in itertools.islice(cases, count):
        if whole or learner.t > T:
            learner = make(name)
        t = learner.t
        play = partial(*((learner.run, stream) if whole else (learner.observe, batches[t - 1])))
        try:
            way(play, rng.uniform(0, a_run if whole else a_round))
        except Stop:
            now = snapshot(learner, path)
        after = T + 1 if whole else t + 1
        assert now[0] in (t, after), (way, whole, now[0])
        assert now == wanted[now[0]], (way, whole, now[0])
        seen["after" if now[0] == after else "before"] += 1
    assert helpers_are_idle()
    return seen


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="without the compiler, rounds are not made at one stroke")
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_learners_survive_interrupts():
    """In a process of its own, which ends even if it hangs."""
    done = subprocess.run(
        [sys.executable, __file__, "12"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    faulthandler.dump_traceback_later(float(os.environ.get("LIMIT", 280)), exit=True)
    chosen = sys.argv[2:] or LEARNERS
    with tempfile.TemporaryDirectory() as folder:
        for each in chosen:
            print(each, interrupt(each, int(sys.argv[1]), folder), flush=True)
