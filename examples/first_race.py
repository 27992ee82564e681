"""
A first race
============

Three methods learn to tell ten kinds of clothes apart, from one batch of 100 images a round.
Each sees the same batches. **Regret** is the loss suffered so far less that of the best single
model, known only in hindsight.
"""

import matplotlib.pyplot as plt
import numpy as np

import fastfw as fw

ROUNDS = 300

# %%
# The problem is multiclass logistic regression, the constraint set a budget of 8 on the absolute
# weights of every class. The images come with fastfw.

X, y, X_test, y_test = fw.datasets.load("fashion-mnist-4k")
problem = fw.SoftmaxRegression(n_features=784, n_classes=10)
ball = fw.RowL1Ball((10, 784), radius=8.0)
stream = fw.iid_stream(X, y, batch_size=100, rounds=ROUNDS, seed=0)

# %%
# ``fw.best_fixed_decision`` finds the best single model, with a proof: its loss is at most
# ``best.gap`` above the least possible.

best = fw.best_fixed_decision(problem, ball, X, y)
print(f"best loss {best.value:.4f}, gap {best.gap:.1e}")

# %%
# Now the race.

memory = fw.power_schedule(1.0, 2 / 3)
racers = {
    "ORGFW": fw.ORGFW(problem, ball, momentum=memory),
    "OSFW": fw.OSFW(problem, ball, momentum=memory),
    "OFW": fw.OFW(problem, ball),
}
results = {name: learner.run(stream) for name, learner in racers.items()}
curves = {name: fw.regret(result, best, stream) for name, result in results.items()}
for name, result in results.items():
    accuracy = problem.accuracy(result.decision, X_test, y_test)
    print(f"{name}: regret {curves[name][-1]:6.1f}, test accuracy {accuracy:.3f}")

# %%
# Curves that flatten have caught up with the best model. OFW looks at all batches of the past in
# every round, so that its rounds get dearer; the others cost the same in each.

figure, axes = plt.subplots(1, 2, figsize=(9.6, 4.0), layout="constrained")
dashes = ["-", "--", "-."]
for (name, curve), dash in zip(curves.items(), dashes, strict=True):
    curve.plot(axes[0], label=name)
    axes[1].plot(1e3 * results[name].seconds, linestyle=dash, label=name)
axes[0].set(xlabel="round", ylabel="regret (nats)")
axes[1].set(xlabel="round", ylabel="time so far (ms)", yscale="log")
plt.show()

# %%
# Most weights are zero. These are ORGFW's, a picture for each class: blue speaks for it, red
# against.

W = results["ORGFW"].decision
print(f"{np.count_nonzero(W)} of {W.size} weights are not zero")
figure, panels = plt.subplots(2, 5, figsize=(9.6, 4.2), layout="constrained")
names = [
    "top",
    "trousers",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "boot",
]
for panel, row, name in zip(panels.flat, W, names, strict=True):
    panel.imshow(row.reshape(28, 28), cmap="RdBu", vmin=-0.4, vmax=0.4)
    panel.set(xticks=[], yticks=[], title=name)
plt.show()
