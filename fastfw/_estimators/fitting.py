"""Fitting a model to a whole data set by rounds of an online learner.

What `fastfw.sklearn` does between its checks and its attributes: batches as shuffled passes over
the data, the mean of the latest decisions, an end decided by the Frank-Wolfe gap or by rows that
are held out, and a radius chosen by held-out loss.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, freeze
from fastfw._chunks import Chunks, is_dask
from fastfw._csr import is_sparse
from fastfw.learners._base import OnlineLearner
from fastfw.learners._lazy import LazyEngine
from fastfw.problems import Classification
from fastfw.streams import Dataset, IndexedStream, batches

#: Radii that are tried in this order until held-out rows say that it is enough.
RADII = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0)
#: Sparse features of more columns than this are many, such as words: radii are then larger, and
#: what changes with them.
MANY, RADII_OF_MANY = 1000, (300.0, 1000.0, 3000.0)
#: A larger radius has to lower the held-out loss by this part of what it is, or of what it has
#: fallen so far from that of a model without weights if that is less: with many classes the
#: first radii lower it little. Else the sparser model is as good.
LEAST_GAIN = 0.05
#: Nor may it misclassify so many standard errors more of the held-out rows: with few rows of many
#: classes the loss may fall while the model is overfitted.
LARGEST_LOSS = 2.0
#: Of many features, whose weights become many more, it must misclassify so many fewer.
LEAST_WIN = 1.0
#: The radius where there is too little data to hold any of it out, and how little that is.
FEW, RADIUS_OF_FEW = 100, 10.0
#: An epoch has so many rounds at least.
FEWEST_ROUNDS = 64
#: Below so many rows every row is held out once, else a tenth of the rows are.
FOLDS, SMALL = 3, 2000
#: Rows of a round unless a number is given, and of a round of many features.
ROWS, ROWS_OF_MANY = 256, 24
#: Of many features, the least weights that together have this part of the norm are left out.
LEFT_OUT = 0.01
# Rows whose gradients are added up in the parameters' precision.
_AT_ONCE = 4096


def rows_of_a_round(many: bool) -> int:
    """Return what ``batch_size="auto"`` is."""
    return ROWS_OF_MANY if many else ROWS


def are_many(X: Any) -> bool:
    """Whether features are many: sparse ones of many columns, such as words."""
    return is_sparse(X._meta if is_dask(X) else X) and X.shape[1] > MANY


class Sample(NamedTuple):
    """Rows of a data set, by number."""

    data: Dataset | Chunks
    rows: IndexArray

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """What each of the rows counts."""
        weights = self.data._weights
        return np.ones(self.rows.size) if weights is None else weights[self.rows]

    @property
    def weight(self) -> float:
        """What all rows count together."""
        return float(self.weights.sum())


class Plan(NamedTuple):
    """How long and on which batches a learner is trained."""

    batch_size: int
    epochs: int
    tol: float
    average: bool
    held: float = 0.0
    """Part of the rows that say when to end; none of them: the gap does."""
    patience: int = 0
    """Epochs in which the loss on held-out rows has to fall by ``tol``."""
    verbose: bool = False
    many: bool = False
    """Whether features are `MANY`."""


class Look(NamedTuple):
    """A round and the sum of the decisions before it."""

    t: int
    total: FloatArray
    columns: Any = slice(None)
    """Which of its columns are kept; the others are zero."""

    def products(self, A: Any) -> Any:
        """Return A totalᵀ for sparse features A."""
        if self.total.shape[1] == 0:
            return 0.0
        if isinstance(self.columns, slice):
            return A @ self.total.T
        place = np.searchsorted(self.columns, A.indices)
        place[place == self.columns.size] = 0
        here = A.indices == self.columns[place]
        part = type(A)((A.data * here, place, A.indptr), shape=(A.shape[0], self.columns.size))
        return part @ self.total.T


#: Where learners begin.
START = Look(1, np.zeros((1, 0)), np.zeros(0, np.intp))


class Fit(NamedTuple):
    """A model and how good it is on the data it was fitted to."""

    x: FloatArray
    gap: float
    epochs: int
    looks: list[Look]
    """The last two looks, or the start and the last one."""
    losses: list[float]
    """Losses on held-out rows after each epoch, if there are any."""


class Passes(IndexedStream):
    """Epochs of passes over a sample's rows, each in a random order of its own.

    Where all rows fit into one batch, every batch is all of them: rounds then have exact gradients.
    Else heavy rows come several times a pass, and count as much less each time: gradients of
    batches then vary little more than without weights.
    To be read once: orders are drawn as they are needed.
    """

    def __init__(
        self, sample: Sample, batch_size: int, epochs: int, rng: np.random.Generator
    ) -> None:
        (self.data, self._rows), n = sample, sample.rows.size
        self.batch_size = min(batch_size, n)
        if self.data._weights is not None and n > batch_size:
            unit = sample.weight / max(n, FEWEST_ROUNDS * batch_size)
            copies = np.maximum(1.0, np.rint(self.data._weights / unit))
            self.data = weighted(self.data, self.data._weights / copies)
            self._rows = np.repeat(sample.rows, copies[sample.rows].astype(np.intp))
        self._per_epoch = max(FEWEST_ROUNDS, -(-self._rows.size // batch_size))
        self.rounds = epochs * self._per_epoch
        self._epochs, self._rng, self._kind = epochs, rng, "passes"

    def _chunks(self) -> Iterator[IndexArray]:
        n, wanted = self._rows.size, self._per_epoch * self.batch_size
        for _ in range(self._epochs):
            passes = range(-(-wanted // n))
            if n == self.batch_size:
                order = np.tile(self._rows, len(passes))
            else:
                order = np.concatenate([self._order() for _ in passes])
            yield freeze(order)[:wanted].reshape(-1, self.batch_size)

    def _order(self) -> IndexArray:
        """Return the rows in a random order: of more chunks than may be held, those of a few mixed.

        Else every batch would have rows of all chunks.
        """
        rows, data = self._rows, self.data
        if isinstance(data, Dataset) or rows.size <= data.at_once:
            return self._rng.permutation(rows)
        chunk = np.searchsorted(data.ends, rows, side="right") - 1
        place = self._rng.permutation(data.ends.size - 1)[chunk]
        order = np.argsort(place, kind="stable")
        groups = np.cumsum(np.bincount(place)) // data.at_once
        mixed = np.lexsort((self._rng.random(rows.size), groups[place[order]]))
        return rows[order[mixed]]


def weighted(data: Dataset | Chunks, weights: npt.NDArray[np.float64] | None) -> Any:
    """Return the same rows with other weights."""
    if isinstance(data, Dataset):
        return data._reweighted(weights)
    other = copy.copy(data)
    other._weights = weights
    return other


def fit(
    learner: OnlineLearner,
    sample: Sample,
    plan: Plan,
    rng: np.random.Generator,
    looks: list[Look] | None = None,
) -> Fit:
    """Train a learner on a sample, epoch by epoch.

    After epochs 1, 2, 4, ... and the last one the model is looked at: the mean of the decisions
    since the look before (the last but one where that was a moment ago), or the latest decision.
    It is the last one if its Frank-Wolfe gap is at most ``plan.tol``. Where rows are held out, they
    are asked after each epoch. Of many features they are learned in the end as well, in half as
    many epochs of all rows as there were, and the least weights are left out. A learner that has
    played goes on from its looks.
    """
    looks = [START] if looks is None else looks
    held, losses, stale, everything = None, [], False, sample
    if plan.held:
        held, sample = hold_out(sample, plan.held, rng)
    done, gap, due = 0, np.inf, 1
    while gap > plan.tol and done < plan.epochs:
        epochs = 1 if held else min(max(1, done), plan.epochs - done)
        learner.run(Passes(sample, plan.batch_size, epochs, rng))
        done += epochs
        x = learner.play()
        if plan.average:
            recent = learner.t - looks[-1].t >= looks[-1].t // 2
            x = latest(learner, looks[-1 if recent else 0])
        said = f"epoch {done}:"
        if held:
            losses.append(_loss(learner.problem, x, held))
            said += f" held-out loss {losses[-1]:.4g}"
            if done > plan.patience:
                fallen = min(losses[: -plan.patience]) - min(losses[-plan.patience :])
                stale = fallen < plan.tol or fallen == 0.0
        ends = stale or done == plan.epochs
        if done >= due or ends:
            due = 2 * done
            if plan.average:
                looks = [looks[-1], look(learner)]
            gap = _gap(learner, x, sample)
            said += f" Frank-Wolfe gap {gap:.4g}"
        if plan.verbose:
            print(said)
        if ends:
            break
    if held and plan.many:
        more = min(max(1, done // 2), plan.epochs - done)
        if more > 0:
            learner.run(Passes(everything, plan.batch_size, more, rng))
            done, x = done + more, learner.play()
            if plan.average:
                x, looks = latest(learner, looks[-1]), [looks[-1], look(learner)]
        x = _without_least(x)
        gap = _gap(learner, x, everything)
    return Fit(x, gap, done, looks, losses)


def _without_least(x: FloatArray) -> FloatArray:
    """Return weights without the least, which have `LEFT_OUT` of the sum of all magnitudes."""
    sizes = np.abs(x[x != 0.0])
    sizes.sort()
    few = int(np.searchsorted(np.cumsum(sizes), LEFT_OUT * sizes.sum()))
    return np.where(np.abs(x) < sizes[few], x.dtype.type(0.0), x) if few else x


def hold_out(sample: Sample, part: float, rng: np.random.Generator) -> tuple[Sample, Sample]:
    """Split a sample: a part of the rows of every class, and the others."""
    rows = _dealt(sample, rng)
    taken = np.diff(np.floor(part * np.arange(rows.size + 1))) > 0
    if taken.all() or not taken.any():
        raise ValueError(
            f"validation_fraction must leave rows on both sides, but {part:g} of {rows.size} rows "
            f"is {int(taken.sum())}"
        )
    return (sample._replace(rows=np.sort(rows[taken])), sample._replace(rows=np.sort(rows[~taken])))


def _dealt(sample: Sample, rng: np.random.Generator) -> IndexArray:
    """Return rows class by class, those of each class in a random order."""
    rows = sample.rows[rng.permutation(sample.rows.size)]
    if sample.data.n_classes > 1:
        rows = rows[np.argsort(sample.data.y[rows], kind="stable")]
    return rows


def _gap(learner: OnlineLearner, x: FloatArray, sample: Sample) -> float:
    """Return the Frank-Wolfe gap at x of the weighted mean of the losses over a sample."""
    total = np.zeros(x.shape)
    for batch in batches(sample.data, _cut(sample.rows)):
        total += learner.problem.gradient(x, batch)
    least = total.reshape(-1) @ np.asarray(learner.set.lmo(total)).reshape(-1)
    return max(0.0, float(np.vdot(total, x) - least) / sample.weight)


def _cut(rows: IndexArray) -> list[IndexArray]:
    return [rows[first : first + _AT_ONCE] for first in range(0, rows.size, _AT_ONCE)]


def _loss(problem: Any, x: FloatArray, held: Sample) -> float:
    """Return the weighted mean of the losses at x over a sample."""
    cut = [held.rows] if isinstance(held.data, Dataset) else _cut(held.rows)
    loss = sum(problem.loss(x, batch) for batch in batches(held.data, cut))
    return float(loss / held.weight)


def _right(problem: Any, x: FloatArray, held: Sample) -> npt.NDArray[np.float64]:
    """Return what the rows of a sample count of which the class is predicted right."""
    if not isinstance(problem, Classification):
        return np.zeros(0)
    same = [problem.predict(x, b.X) == b.y for b in batches(held.data, _cut(held.rows))]
    right: npt.NDArray[np.float64] = held.weights * np.concatenate(same)
    return right


def look(learner: OnlineLearner) -> Look:
    """Look at a learner that has played; of sparse features only what they touched is copied."""
    engine = learner._engine
    if isinstance(engine, LazyEngine) and engine.sparse:
        columns = engine.support()
        return Look(learner.t, engine.total_of(columns).T, columns)
    return Look(learner.t, engine.total())


def latest(learner: OnlineLearner, since: Look, *, newest: bool = False) -> FloatArray:
    """Return the mean of the decisions played since a look, with the newest if asked.

    The newest decision, which `learner.play` returns, has not been played yet.
    """
    x = learner.play()
    total, count = learner._engine.total(), learner.t - since.t
    total[:, since.columns] -= since.total
    if newest:
        total, count = total + x, count + 1
    mean: FloatArray = (total / count).astype(x.dtype)
    return mean


def latest_products(learner: OnlineLearner, since: Look | None, A: Any) -> FloatArray | None:
    """Return A times the newest mean of `latest`, or the newest decision where there is no look.

    A is sparse, and weights are not written out. None where they have to be.
    """
    engine = learner._engine
    if not isinstance(engine, LazyEngine) or not engine.sparse:
        return None
    x, total = engine.products(A)
    if since is None:
        return x
    products: FloatArray = (total - since.products(A) + x) / (learner.t - since.t + 1)
    return products.astype(x.dtype)


def choose_radius(
    learner: Callable[[float], OnlineLearner],
    sample: Sample,
    plan: Plan,
    rng: np.random.Generator,
) -> tuple[float, list[tuple[float, float]]]:
    """Choose the last of some radii that still does better on held-out rows.

    Also return the radii that were tried, each with its held-out loss: none for fewer than `FEW`
    rows, which get `RADIUS_OF_FEW`. A trial takes a tenth of the plan's epochs, and of many
    features two or fewer.
    """
    n, verbose = sample.rows.size, plan.verbose
    if n < FEW:
        return RADIUS_OF_FEW, []
    epochs = max(1, min(plan.epochs // 10, 2 if plan.many else plan.epochs))
    plan = plan._replace(epochs=epochs, held=0.0, verbose=False)
    # the rows of every class in a random order, dealt out in turn
    folds, parts = (FOLDS, FOLDS) if n <= SMALL else (1, 10)
    rows = _dealt(sample, rng)
    fold = np.empty(n, np.intp)
    fold[np.searchsorted(sample.rows, rows)] = np.arange(n) % parts
    tried: list[tuple[float, float]] = []
    before = np.zeros(0)
    for radius in RADII_OF_MANY if plan.many else RADII:
        losses, right, nothing = [], [], []
        for k in range(folds):
            trained = learner(radius)
            x = fit(trained, sample._replace(rows=sample.rows[fold != k]), plan, rng).x
            held = sample._replace(rows=sample.rows[fold == k])
            losses.append(_loss(trained.problem, x, held))
            nothing.append(_loss(trained.problem, np.zeros_like(x), held))
            right.append(_right(trained.problem, x, held))
        tried.append((radius, float(np.mean(losses))))
        if verbose:
            print(f"radius {radius:g}: held-out loss {tried[-1][1]:.4g}")
        now = np.concatenate(right)
        if len(tried) > 1:
            (smaller, loss), (_, new) = tried[-2:]
            least = LEAST_GAIN * max(0.0, min(loss, float(np.mean(nothing)) - loss))
            lost = before - now
            most = -LEAST_WIN if plan.many and lost.size else LARGEST_LOSS
            if loss - new < least or lost.sum() > most * np.linalg.norm(lost):
                return smaller, tried
        before = now
    return tried[-1][0], tried
