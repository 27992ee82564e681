"""
A streaming service
===================

A service answers requests and learns their labels afterwards, batch by batch, for as long as it
runs. It is stopped and goes on where it was. One day the camera is mounted upside down: what was
learned before is wrong, and nobody tells.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import fastfw as fw

ROUNDS = 600

# %%
# The images come with fastfw; in the second half of the rounds they are turned.

X, y, _, _ = fw.datasets.load("fashion-mnist-4k")
problem = fw.SoftmaxRegression(n_features=784, n_classes=10)
ball = fw.RowL1Ball((10, 784), radius=8.0)
rows = np.random.default_rng(0).integers(len(X), size=(ROUNDS, 50))


def request(t):
    """Images and labels of round t."""
    images = X[rows[t]]
    return (images[:, ::-1] if t >= ROUNDS // 2 else images), y[rows[t]]


# %%
# A request is answered with the weights of the present round; its labels come later and are
# learned. Every hundred rounds the learner is saved. A file appears whole or not at all, so that
# a service that is killed finds its last one.


def serve(learner, first, last, file):
    """Answer requests, learn, save; return the share of wrong answers in every round."""
    wrong = []
    for t in range(first, last):
        images, labels = request(t)
        wrong.append(np.mean(problem.predict(learner.play(), images) != labels))
        learner.observe((images, labels))
        if (t + 1) % 100 == 0:
            learner.save(file)
    return wrong


# %%
# With steps that shrink a learner settles, as it should where batches are drawn at random. With
# steps and a memory that stay the same it forgets, and follows.

learners = {
    "shrinking steps": fw.ORGFW(problem, ball, momentum=fw.power_schedule(1.0, 2 / 3)),
    "constant steps": fw.ORGFW(problem, ball, step=0.02, momentum=0.1),
}
errors = {}
with tempfile.TemporaryDirectory() as folder:
    for name, learner in learners.items():
        file = Path(folder) / "service.npz"
        half = ROUNDS // 2
        errors[name] = serve(learner, 0, half, file)
        learner = fw.ORGFW.load(file)  # another process, the next day
        errors[name] += serve(learner, learner.t - 1, ROUNDS, file)
        late = np.mean(errors[name][-ROUNDS // 6 :])
        print(f"{name}: {late:.0%} of the last answers wrong, {learner.t - 1} rounds")

# %%

figure, axes = plt.subplots(figsize=(9.6, 4.0), layout="constrained")
for name, dash in zip(errors, ["--", "-"], strict=True):
    smooth = np.convolve(errors[name], np.ones(20) / 20, mode="valid")
    axes.plot(np.arange(20, ROUNDS + 1), smooth, linestyle=dash, label=name)
axes.axvline(ROUNDS / 2, color="black", linestyle=":", label="the camera is turned")
axes.set(xlabel="round", ylabel="wrong answers (mean of 20 rounds)", ylim=(0, 1))
axes.legend()
plt.show()
