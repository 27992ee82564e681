"""A service of 2000 rounds, and how it fares if it is killed at ten random moments.

``python long_run.py generator|epochs FOLDER`` writes ``whole.npz`` in one go and ``killed.npz``
with all the killing, of which it tells: where the service had to begin again, and what ended it.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import fastfw as fw

X = np.random.default_rng(0).random((60, 7))
Y = np.random.default_rng(1).integers(0, 3, 60)


def batches(first):
    for t in range(first, 2001):
        rows = np.random.default_rng((5, t)).integers(0, 60, 6)
        yield X[rows], Y[rows]


def serve(source, path, callback=None):
    if path.exists():
        learner = fw.ORGFW.load(path)
    else:
        learner = fw.ORGFW(fw.SoftmaxRegression(7, 3), fw.RowL1Ball((3, 7), 4.0))
    if source == "generator":
        stream = batches(learner.t)
    else:
        stream = fw.epoch_stream(X, Y, batch_size=8, epochs=250, seed=3).from_round(learner.t)
    learner.run(stream, checkpoint=path, every=10, callback=callback, keep_losses=False)


def kill_after(seconds, source, path):
    """Kill a service after it has written a checkpoint and so many seconds, and tell."""
    before = path.stat().st_mtime_ns if path.exists() else None
    child = os.fork()
    if not child:
        serve(source, path, lambda *told: time.sleep(0.002))
        os._exit(0)
    while not path.exists() or path.stat().st_mtime_ns == before:
        time.sleep(0.001)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    print(fw.ORGFW.load(path).t, os.WTERMSIG(os.waitpid(child, 0)[1]))


if __name__ == "__main__":
    source, folder = sys.argv[1], Path(sys.argv[2])
    serve(source, folder / "whole.npz")
    for seconds in np.random.default_rng().uniform(0.0, 0.04, 10):
        kill_after(seconds, source, folder / "killed.npz")
    serve(source, folder / "killed.npz")
