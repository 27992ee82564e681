"""Online low-rank matrix completion: the nuclear norm, squared error, ORGFW.

A matrix has a row for each of 120 images of clothes and a column for each of 81 pixels; two fifths
of its entries can be seen. Every round 400 of those are asked for, predicted from the present
matrix, then shown, and the loss is the mean squared error. The nuclear norm bounds the sum of
singular values, which keeps the rank low, so that entries never seen are predicted too. The best
fixed decision is the matrix in the ball that fits all rounds best; a fixed uniform decision
predicts the same number everywhere, the mean of the pixels seen.

Data: the images that come with fastfw (Fashion-MNIST), averaged over squares of 3 x 3 pixels; the
last row and column of pixels are left out.

    python -m examples.matrix_completion
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

import fastfw as fw

try:
    from examples._drawing import draw, fixed_regret, main
except ImportError:  # started as a file
    from _drawing import draw, fixed_regret, main

IMAGES, SIDE, BATCH = 120, 9, 400


def squared_error(x, places, values):
    """Mean of (x_ij - value)² over the places (i, j) of a batch, and its gradient."""
    i, j = places.T
    error = x[i, j] - values
    gradient = np.zeros_like(x)
    np.add.at(gradient, (i, j), 2.0 / len(error) * error)
    return float(error @ error) / len(error), gradient


def matrix() -> np.ndarray:
    """Return the images as rows, shape (images, pixels), entries in [0, 1]."""
    X, *_ = fw.datasets.load("fashion-mnist-4k")
    images = X[:IMAGES].reshape(IMAGES, 28, 28)[:, : 3 * SIDE, : 3 * SIDE]
    return images.reshape(IMAGES, SIDE, 3, SIDE, 3).mean(axis=(2, 4)).reshape(IMAGES, -1)


def run(rounds: int = 400, seed: int = 0, out: Path | None = None) -> dict[str, Any]:
    """Complete the matrix and return the regret curves; draw them where a folder is given."""
    M = matrix()
    rng = np.random.default_rng(seed)
    seen = rng.choice(M.size, size=2 * M.size // 5, replace=False)
    asked = rng.choice(seen, size=(rounds, BATCH))
    stream = [(np.column_stack(np.unravel_index(k, M.shape)), M.flat[k]) for k in asked]

    problem = fw.problem_from_function(squared_error, shape=M.shape)
    ball = fw.NuclearNormBall(M.shape, radius=65.0)
    learner = fw.ORGFW(
        problem,
        ball,
        step=fw.power_schedule(0.2, 2 / 3),
        momentum=fw.power_schedule(1.0, 2 / 3),
    )
    result = learner.run(stream)

    everything = tuple(np.concatenate(parts) for parts in zip(*stream, strict=True))
    best = fw.best_fixed_decision(problem, ball, *everything, tol=1e-2)
    uniform = np.full(M.shape, M.flat[seen].mean())
    assert ball.contains(uniform)
    curves = {
        "ORGFW": fw.regret(result, best, stream),
        "the mean everywhere": fixed_regret(problem, uniform, best, stream),
    }
    if out is not None:
        figure = Figure(figsize=(9.6, 4.0), layout="constrained")
        left, right = figure.subfigures(1, 2, width_ratios=(3, 2))
        axes = left.add_subplot()
        draw(axes, curves, "squared error")
        axes.set_title(f"A matrix of shape {M.shape}, 40% of it seen", fontsize=11)
        mask = np.ones(M.size)
        mask[seen] = 0.0
        shown = np.ma.array(M, mask=mask)
        panels = right.subplots(3, 4)
        rows = {"seen": shown, "completed": result.decision, "true": M}
        for line, (title, whole) in zip(panels, rows.items(), strict=True):
            for panel, image in zip(line, whole, strict=False):
                panel.imshow(image.reshape(SIDE, SIDE), cmap="Greys", vmin=0, vmax=1)
                panel.set(xticks=[], yticks=[], facecolor="#F0C8B0")
            line[0].set_ylabel(title)
        figure.savefig(out / "matrix_completion.png", dpi=110)
    return curves


if __name__ == "__main__":
    main(run, 400, "Online low-rank matrix completion with ORGFW.")
