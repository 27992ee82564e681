"""
Your own loss and your own set
==============================

Prices are to be predicted from twenty measurements, weights must lie between 0 and 1, and some
prices are wild. So the loss is Huber's, which counts large errors by their size and not by
their square, and the set is a box. Neither is part of fastfw.
"""

import matplotlib.pyplot as plt
import numpy as np

import fastfw as fw

ROUNDS, FEATURES = 400, 20

# %%
# A loss is a function that returns a number and the gradient.


def huber(w, X, y):
    """Mean of Huber's loss of the errors X w - y, and its gradient."""
    error = X @ w - y
    clipped = np.clip(error, -1.0, 1.0)
    return float(np.mean(clipped * (error - 0.5 * clipped))), X.T @ clipped / len(y)


# %%
# A set has a shape, a diameter and an oracle ``lmo``: which point of the set lies furthest
# downhill? It may tell more, see :doc:`/own-problem`.


class Box:
    """All weights between 0 and 1."""

    shape, diameter = (FEATURES,), FEATURES**0.5

    def lmo(self, direction):
        """Return the corner that minimises ⟨direction, v⟩."""
        return (np.asarray(direction) < 0).astype(float)


# %%
# Data: a tenth of the prices is off by something of size 20.

rng = np.random.default_rng(0)
truth = rng.uniform(-0.2, 1.2, FEATURES)  # not all of it is in the box
X = rng.standard_normal((20 * ROUNDS, FEATURES))
y = X @ truth + 0.1 * rng.standard_normal(len(X))
y += np.where(rng.uniform(size=len(y)) < 0.1, 20 * rng.standard_normal(len(y)), 0.0)
stream = [(X[i : i + 20], y[i : i + 20]) for i in range(0, len(y), 20)]

# %%
# Everything takes both, the comparator included.

problem = fw.problem_from_function(huber, shape=FEATURES)
learner = fw.ORGFW(problem, Box(), momentum=fw.power_schedule(1.0, 2 / 3))
result = learner.run(stream)
best = fw.best_fixed_decision(problem, Box(), X, y, tol=1e-4)
curve = fw.regret(result, best, stream)
print(f"regret {curve[-1]:.2f} after {len(curve)} rounds")

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
curve.plot(left, label="ORGFW")
right.plot(truth, "k_", markersize=14, label="truth")
right.plot(best.decision, "o", fillstyle="none", label="best in the box")
right.plot(result.decision, "x", label="ORGFW, last round")
right.axhspan(0.0, 1.0, alpha=0.1)
right.set(xlabel="measurement", ylabel="weight", xticks=range(0, FEATURES, 5))
right.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
plt.show()
