"""Compiling ahead: in several processes, nothing twice, and it ends when told to."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import pytest

from fastfw import _warmup

no_compiler = pytest.mark.skipif(
    bool(numba.config.DISABLE_JIT), reason="nothing is compiled without the JIT"
)
no_locks = pytest.mark.skipif(sys.platform == "win32", reason="no fcntl here")

#: Two kernels, one calling the other, that a process compiles in the dtypes it is given.
SOURCE = """
import sys
from pathlib import Path

import numpy as np

from fastfw._warmup import one_at_a_time
from fastfw.kernels._jit import kernel


@kernel()
def inner(x):
    return x.sum()


@kernel()
def outer(x):
    return inner(x) + 1


dispatchers = {"inner": inner, "outer": outer}
one_at_a_time(dispatchers, Path(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
for dtype in sys.argv[2:]:
    outer(np.ones(3, dtype))
print(*(sum(d.stats.cache_misses.values()) for d in dispatchers.values()))
"""


def start(source, folder, *dtypes):
    """A process that waits to be told to begin."""
    return subprocess.Popen(
        [sys.executable, str(source), str(folder), *dtypes],
        env={**os.environ, "NUMBA_CACHE_DIR": str(source.parent / "cache")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
@no_compiler
@no_locks
def test_a_variant_is_compiled_by_one_process_and_none_is_lost(tmp_path):
    source = tmp_path / "two.py"
    source.write_text(SOURCE, encoding="utf-8")
    locks = tmp_path / "locks"
    locks.mkdir()
    # Each begins with what the other does last.
    orders = (["float64", "float32", "int64"], ["int64", "float32", "float64"])
    processes = [start(source, locks, *order) for order in orders]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    misses = [tuple(map(int, p.communicate(timeout=120)[0].split())) for p in processes]
    assert sum(outer for _, outer in misses) == 3
    assert [process.returncode for process in processes] == [0, 0]
    # What both left is complete: a third finds every variant of the outer kernel.
    third = start(source, locks, *orders[0])
    assert third.communicate("go\n", timeout=120)[0].split()[1:] == ["0", "0"]


@no_compiler
@pytest.mark.parametrize("fault", ["removed", "damaged", "other sources"])
def test_what_is_warm_is_known_until_something_is_missing(tmp_path, monkeypatch, fault):
    monkeypatch.setattr(_warmup._cache, "place", lambda: (tmp_path, ""))
    kept = tmp_path / "a-0.kernel"
    _warmup._cache.write(kept, b"code")
    assert not _warmup.is_warm()
    _warmup.note_warm()
    _warmup._cache.write(tmp_path / "b-0.kernel", b"one more is no harm")
    assert _warmup.is_warm()
    if fault == "removed":
        kept.unlink()
    elif fault == "damaged":
        kept.write_bytes(kept.read_bytes()[:-1])
    else:
        monkeypatch.setattr(_warmup._cache, "source_digest", lambda folder=None: "edited")
    assert not _warmup.is_warm()


def test_steps_of_all_dtypes_have_the_same_names():
    names = [list(own) for own in _warmup.steps().values()]
    assert names[0] == names[1]
    assert len(set(names[0])) == len(names[0])


@pytest.fixture
def few_steps(monkeypatch):
    """Two steps for each dtype, which write down that they were done."""
    done = []

    def steps():
        return {
            dtype: {name: lambda what=(dtype, name): done.append(what) for name in ("a", "b")}
            for dtype in _warmup.DTYPES
        }

    monkeypatch.setattr(_warmup, "steps", steps)
    return done


def test_one_job_does_everything_here(few_steps):
    told = []
    assert _warmup.warm_up(lambda *what: told.append(what), jobs=1) == 4
    assert few_steps == [(dtype, name) for name in ("a", "b") for dtype in _warmup.DTYPES]
    assert [number for number, _, _ in told] == [0, 1, 2, 3, 4]
    assert {total for _, total, _ in told} == {4}


def test_only_what_is_named_is_compiled(few_steps):
    assert _warmup.warm_up(jobs=1, dtypes=["float32"], names=["b", "c"]) == 1
    assert few_steps == [("float32", "b")]


def test_what_other_processes_leave_undone_is_done_here(few_steps, monkeypatch):
    monkeypatch.setattr(_warmup, "_can_share", lambda: True)
    monkeypatch.setattr(_warmup, "_in_processes", lambda todo, jobs, progress: iter(todo[1:3]))
    assert _warmup.warm_up(jobs=2) == 4
    assert few_steps == [("float64", "a"), ("float32", "b")]


@pytest.mark.slow
@no_locks
def test_an_interrupt_ends_every_process_with_one_line(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "fastfw", "warmup", "--jobs", "2"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(tmp_path), "NUMBA_DISABLE_JIT": "0",
             "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # a job that a script started in the background ignores the signal from the outset
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )  # fmt: skip
    end = time.monotonic() + 60
    while not list(tmp_path.glob("fastfw-warmup-*")) and time.monotonic() < end:
        time.sleep(0.05)
    assert list(tmp_path.glob("fastfw-warmup-*")), "it never began"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, err = process.communicate(timeout=60)
    said = "fastfw: compiling kernels, once, about a minute\nfastfw: interrupted\n"
    assert (process.returncode, out, err) == (130, "", said)
    # Python's own helper of multiprocessing ends a moment after the last process it serves.
    left = True
    while left and time.monotonic() < end + 30:
        try:
            os.killpg(process.pid, 0)
            time.sleep(0.05)
        except ProcessLookupError:
            left = False
    assert not left
    assert not list(Path(tmp_path).glob("fastfw-warmup-*"))
