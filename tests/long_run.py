"""A service of 400 rounds that can be killed and started again.

``python long_run.py generator|epochs PATH [wait]`` starts it, or goes on from the file.

With "wait" it says that a checkpoint is there, and plays a round every ten milliseconds.
"""

import sys
import time
from pathlib import Path

import numpy as np

import fastfw as fw

X = np.random.default_rng(0).random((60, 7))
Y = np.random.default_rng(1).integers(0, 3, 60)


def batches(first):
    for t in range(first, 401):
        rows = np.random.default_rng((5, t)).integers(0, 60, 6)
        yield X[rows], Y[rows]


def tell(t, loss, seconds):
    if t % 50 == 25:
        print(t, flush=True)
    time.sleep(0.01)


def serve(source, path, callback=None):
    if path.exists():
        learner = fw.ORGFW.load(path)
    else:
        learner = fw.ORGFW(fw.SoftmaxRegression(7, 3), fw.RowL1Ball((3, 7), 4.0))
    if source == "generator":
        stream = batches(learner.t)
    else:
        stream = fw.epoch_stream(X, Y, batch_size=8, epochs=50, seed=3).from_round(learner.t)
    learner.run(stream, checkpoint=path, every=10, callback=callback, keep_losses=False)
    return learner


if __name__ == "__main__":
    serve(sys.argv[1], Path(sys.argv[2]), tell if len(sys.argv) > 3 else None)
