"""
Your own method beside fastfw's
===============================

A method is anything that plays a decision and observes a batch. This one is online gradient
descent with projections: a gradient step, then back to the nearest point of the set. Problems,
sets, the comparator and regret are fastfw's.
"""

from time import perf_counter
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

import fastfw as fw

ROUNDS = 300


class GradientDescent:
    """Online gradient descent with steps c/√t."""

    def __init__(self, problem, set, c):
        self.problem, self.set, self.c = problem, set, c
        self.x, self.t = set.start(), 1

    def play(self):
        """Return this round's decision."""
        return self.x

    def observe(self, batch):
        """Suffer the loss of the decision, then improve it."""
        loss, gradient = self.problem.loss_and_gradient(self.x, batch)
        self.x = self.set.project(self.x - self.c / self.t**0.5 * gradient)
        self.t += 1
        return loss


# %%
# Both see the same batches. ``fw.regret`` wants an object with ``losses``. Of 0.05, 0.2, 0.5, 1
# and 2 for c, 0.5 gave gradient descent the least regret.

X, y, X_test, y_test = fw.datasets.load("fashion-mnist-4k")
problem, ball = fw.SoftmaxRegression(784, 10), fw.RowL1Ball((10, 784), radius=8.0)
stream = fw.iid_stream(X, y, batch_size=100, rounds=ROUNDS, seed=0)

own = GradientDescent(problem, ball, c=0.5)
begun = perf_counter()
losses = np.array([own.observe(batch) for batch in stream])
own_ms = 1e3 * (perf_counter() - begun) / ROUNDS

learner = fw.ORGFW(problem, ball, momentum=fw.power_schedule(1.0, 2 / 3))
result = learner.run(stream)

best = fw.best_fixed_decision(problem, ball, X, y)
curves = {
    "ORGFW": fw.regret(result, best, stream),
    "gradient descent": fw.regret(SimpleNamespace(losses=losses), best, stream),
}

# %%
# What a round costs depends on the machine; these times are of the one that built the page.

rows = [
    ("ORGFW", result.decision, 1e3 * result.seconds[-1] / ROUNDS),
    ("gradient descent", own.play(), own_ms),
]
for name, W, ms in rows:
    accuracy = problem.accuracy(W, X_test, y_test)
    print(
        f"{name:>16}: regret {curves[name][-1]:5.1f}, {ms:.2f} ms a round, "
        f"test accuracy {accuracy:.3f}, {np.count_nonzero(W)} weights"
    )

# %%

figure, axes = plt.subplots(layout="constrained")
for name, curve in curves.items():
    curve.plot(axes, label=name)
axes.set(ylabel="regret (nats)")
axes.legend()
plt.show()
