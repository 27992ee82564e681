"""Fitting a softmax regression to a whole data set by rounds of an online learner.

What `fastfw.sklearn` does between its checks and its attributes: batches as shuffled passes over
the data, weights as frequencies, the mean of the latest decisions, an end decided by the
Frank-Wolfe gap, and a radius chosen by held-out loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw.learners._base import OnlineLearner
from fastfw.streams import Dataset, IndexedStream

__all__ = [
    "RADII", "Fit", "Look", "Plan", "Sample", "choose_radius", "fit", "frequencies", "latest",
    "mean_loss",
]  # fmt: skip

#: Radii that are tried in this order until the held-out loss stops falling.
RADII = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
#: A larger radius has to lower the held-out loss by this part of it: else the sparser model.
LEAST_GAIN = 0.05
#: The radius where there is too little data to hold any of it out, and how little that is.
FEW, RADIUS_OF_FEW = 100, 10.0
#: An epoch has so many rounds at least.
FEWEST_ROUNDS = 64
#: Below so many rows every row is held out once, else a tenth of the rows are.
FOLDS, SMALL = 3, 2000
# Rows looked at together when a loss over much data is computed.
_AT_ONCE = 4096


class Sample(NamedTuple):
    """Rows of a data set, in a form that learners take, and how much each counts."""

    data: Dataset
    rows: IndexArray
    weights: npt.NDArray[np.float64] | None
    """One for each of `rows`, positive; None where all count the same."""

    @property
    def size(self) -> int:
        """Number of rows, counted as often as their weights say where these are small integers."""
        if self.weights is not None and not (self.weights % 1.0).any():
            total = self.weights.sum()
            if total <= 4 * self.rows.size:
                return int(total)
        return self.rows.size

    def part(self, chosen: npt.NDArray[Any]) -> Sample:
        """Return some of the rows: a mask, or positions among them."""
        weights = None if self.weights is None else self.weights[chosen]
        return Sample(self.data, self.rows[chosen], weights)


class Plan(NamedTuple):
    """How long and on which batches a learner is trained."""

    batch_size: int
    epochs: int
    tol: float
    average: bool


class Look(NamedTuple):
    """A round and the sum of the decisions before it."""

    t: int
    total: FloatArray


class Fit(NamedTuple):
    """A model and how good it is on the data it was fitted to."""

    x: FloatArray
    loss: float
    gap: float
    epochs: int
    looks: list[Look]
    """The last two looks, or the start and the last one."""


def frequencies(
    weights: npt.NDArray[np.float64] | None, n: int, total: int, rng: np.random.Generator
) -> IndexArray:
    """Return how often each of n rows occurs among `total`, in proportion to the weights.

    Systematic sampling: every row occurs its expected number of times, rounded up or down, and
    exactly that often where it is an integer for all rows.
    """
    if weights is None:
        expected = np.full(n, total / n)
        ends = np.arange(1, n + 1) * total / n
    else:
        expected = weights * (total / weights.sum())
        ends = np.cumsum(expected)
    whole = np.rint(expected)
    if whole.sum() == total and np.abs(expected - whole).max() <= 1e-9:
        return np.asarray(whole, np.intp)
    ends[-1] = total
    reached = np.floor(ends + rng.random())
    return np.asarray(np.diff(reached, prepend=0.0), np.intp)


def rounds_per_epoch(sample: Sample, batch_size: int) -> int:
    """Return the number of rounds that an epoch has."""
    return max(FEWEST_ROUNDS, -(-sample.size // batch_size))


def epoch(sample: Sample, batch_size: int, rng: np.random.Generator) -> IndexedStream:
    """Return the batches of one epoch: all rows in a random order.

    Where all rows fit into a batch, every batch is all of them: rounds then have exact gradients.
    """
    rounds = rounds_per_epoch(sample, batch_size)
    if sample.size <= batch_size:
        counts = frequencies(sample.weights, sample.rows.size, sample.size, rng)
        rows = np.tile(np.repeat(sample.rows, counts), (rounds, 1))
    else:
        total = rounds * batch_size
        counts = frequencies(sample.weights, sample.rows.size, total, rng)
        rows = np.repeat(sample.rows, counts)
        rng.shuffle(rows)
        rows = rows.reshape(rounds, batch_size)
    return IndexedStream(sample.data, rows)


def mean_loss(
    x: FloatArray, sample: Sample, *, gradient: bool = True
) -> tuple[float, npt.NDArray[np.float64]]:
    """Return the weighted mean of the losses at x over a sample, and its gradient.

    Plain NumPy, or scipy.sparse for CSR features: O(nonzeros C) time, blocks of rows in memory.
    """
    X, y = sample.data.X, sample.data.y
    loss, total = 0.0, np.zeros(x.shape)
    everything = sample.rows.size == len(sample.data) and sample.weights is None
    for first in range(0, sample.rows.size, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        # all rows count the same, so that their order does not matter: blocks without a copy
        A = X[part] if everything else X[sample.rows[part]]
        labels = y[part] if everything else y[sample.rows[part]]
        w = np.ones(len(labels)) if sample.weights is None else sample.weights[part]
        Z = np.asarray(A @ x.T, np.float64)
        Z -= Z.max(axis=1, keepdims=True)
        own = Z[np.arange(len(labels)), labels]
        P = np.exp(Z)
        sums = P.sum(axis=1, keepdims=True)
        loss += float(w @ (np.log(sums[:, 0]) - own))
        if gradient:
            P /= sums
            P[np.arange(len(labels)), labels] -= 1.0
            P *= w[:, np.newaxis]
            total += np.asarray((A.T @ P.astype(x.dtype)).T)
    weight = sample.rows.size if sample.weights is None else float(sample.weights.sum())
    return loss / weight, total / weight


def fit(learner: OnlineLearner, sample: Sample, plan: Plan, rng: np.random.Generator) -> Fit:
    """Train a learner on a sample, epoch by epoch.

    After epochs 1, 2, 4, ... and the last one the model is looked at: the mean of the decisions
    since the look before (the last but one where that was a moment ago), or the latest decision.
    It is the last one if its Frank-Wolfe gap is at most ``plan.tol``.
    """
    looks = [Look(1, np.zeros(learner.set.shape))]
    look = 1
    for done in range(1, plan.epochs + 1):
        learner.run(epoch(sample, plan.batch_size, rng))
        if done < min(look, plan.epochs):
            continue
        x = learner.play()
        if plan.average:
            recent = learner.t - looks[-1].t >= looks[-1].t // 2
            x, now = latest(learner, looks[-1 if recent else 0])
            looks = [looks[-1], now]
        loss, gradient = mean_loss(x, sample)
        least = gradient.reshape(-1) @ np.asarray(learner.set.lmo(gradient)).reshape(-1)
        gap = max(0.0, float(np.vdot(gradient, x) - least))
        if gap <= plan.tol:
            break
        look *= 2
    return Fit(x, loss, gap, done, looks)


def latest(learner: OnlineLearner, since: Look, *, newest: bool = False) -> tuple[FloatArray, Look]:
    """Return the mean of the decisions played since a look, with the newest if asked, and a look.

    The newest decision, which `learner.play` returns, has not been played yet.
    """
    x = learner.play()
    now = Look(learner.t, learner.average * np.float64(learner.t - 1))
    total, count = now.total - since.total, now.t - since.t
    if newest:
        total, count = total + x, count + 1
    return (total / count).astype(x.dtype), now


def choose_radius(
    learner: Callable[[float], OnlineLearner], sample: Sample, plan: Plan, rng: np.random.Generator
) -> tuple[float, list[tuple[float, float]]]:
    """Choose the last radius of `RADII` that still lowers the held-out loss.

    Parameters
    ----------
    learner : callable
        Makes a learner of a radius.
    sample, plan, rng
        As in `fit`; a tenth of the epochs.

    Returns
    -------
    radius : float
    tried : list of pairs
        Radius and held-out loss. Empty for fewer than `FEW` rows, which get `RADIUS_OF_FEW`.
    """
    if sample.size < FEW:
        return RADIUS_OF_FEW, []
    plan = plan._replace(epochs=max(1, plan.epochs // 10))
    # the rows of every class in a random order, dealt out in turn
    order = rng.permutation(sample.rows.size)
    order = order[np.argsort(sample.data.y[sample.rows[order]], kind="stable")]
    small = sample.size <= SMALL
    fold = np.empty(order.size, np.intp)
    fold[order] = np.arange(order.size) % (FOLDS if small else 10)
    tried: list[tuple[float, float]] = []
    for radius in RADII:
        losses = []
        for k in range(FOLDS if small else 1):
            found = fit(learner(radius), sample.part(fold != k), plan, rng)
            losses.append(mean_loss(found.x, sample.part(fold == k), gradient=False)[0])
        tried.append((radius, float(np.mean(losses))))
        if len(tried) > 1 and tried[-1][1] > (1.0 - LEAST_GAIN) * tried[-2][1]:
            return tried[-2][0], tried
    return tried[-1][0], tried
