"""
Matrix completion
=================

120 images of clothes make a matrix, a row for each image and a column for each of 81 pixels, of
which two fifths of the entries can be seen. Every round 400 of those are predicted, then shown;
the loss is the mean squared error. The nuclear norm, the sum of singular values, keeps the rank
low, so that entries never seen are predicted too. The oracle needs the leading pair of singular
vectors only.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np

import fastfw as fw

ROUNDS, IMAGES, SIDE, BATCH = 400, 120, 9, 400

# %%
# The images come with fastfw; here they are averaged over squares of 3 x 3 pixels.

images = fw.datasets.load("fashion-mnist-4k")[0][:IMAGES].reshape(IMAGES, 28, 28)
images = images[:, : 3 * SIDE, : 3 * SIDE].reshape(IMAGES, SIDE, 3, SIDE, 3)
M = images.mean(axis=(2, 4)).reshape(IMAGES, SIDE * SIDE)

rng = np.random.default_rng(0)
seen = rng.choice(M.size, size=2 * M.size // 5, replace=False)
asked = rng.choice(seen, size=(ROUNDS, BATCH))
stream = [(np.column_stack(np.unravel_index(k, M.shape)), M.flat[k]) for k in asked]

# %%
# A batch is a pair: places and what stands there.


def squared_error(x, places, values):
    """Mean of (x_ij - value)² over the places (i, j) of a batch, and its gradient."""
    i, j = places.T
    error = x[i, j] - values
    gradient = np.zeros_like(x)
    np.add.at(gradient, (i, j), 2.0 / len(error) * error)
    return float(error @ error) / len(error), gradient


problem = fw.problem_from_function(squared_error, shape=M.shape)
ball = fw.NuclearNormBall(M.shape, radius=65.0)
learner = fw.ORGFW(
    problem, ball, step=fw.power_schedule(0.2, 2 / 3), momentum=fw.power_schedule(1.0, 2 / 3)
)
result = learner.run(stream)

# %%
# The comparator is the matrix in the ball that fits all rounds best. Beside ORGFW stands the mean
# of the pixels seen, predicted everywhere.

everything = tuple(np.concatenate(parts) for parts in zip(*stream, strict=True))
best = fw.best_fixed_decision(problem, ball, *everything, tol=1e-2)
mean = np.full(M.shape, M.flat[seen].mean())
uniform = [problem.loss(mean, batch) for batch in stream]
curves = {
    "ORGFW": fw.regret(result, best, stream),
    "the mean everywhere": fw.regret(SimpleNamespace(losses=np.array(uniform)), best, stream),
}
for name, curve in curves.items():
    print(f"{name}: regret {curve[-1]:.2f} after {len(curve)} rounds")

# %%

figure, axes = plt.subplots(layout="constrained")
for name, curve in curves.items():
    curve.plot(axes, label=name)
axes.axhline(0.0, color="black", linestyle=":", label="best fixed decision")
axes.set(ylabel="regret (squared error)")
axes.legend()
plt.show()

# %%
# Six images as they were seen, as they were completed, and as they are.

mask = np.ones(M.size)
mask[seen] = 0.0
rows = {"seen": np.ma.array(M, mask=mask), "completed": result.decision, "true": M}
figure, panels = plt.subplots(3, 6, figsize=(9.6, 4.8), layout="constrained")
for line, (title, matrix) in zip(panels, rows.items(), strict=True):
    for panel, image in zip(line, matrix, strict=False):
        panel.imshow(image.reshape(SIDE, SIDE), cmap="Greys", vmin=0, vmax=1)
        panel.set(xticks=[], yticks=[], facecolor="#F0C8B0")
    line[0].set_ylabel(title)
plt.show()
