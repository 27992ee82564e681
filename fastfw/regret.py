"""The best fixed decision, with a certificate, and what is measured against it.

Regret compares a learner with the best fixed decision in hindsight: sum_t f_t(x_t) - f_t(x*). x* is
the solution of an optimisation problem, so every regret is only as good as the solver; here the
solver returns, with its decision x, the Frank-Wolfe gap max_v <grad f(x), x - v>, which bounds
f(x) - f(x*) for a convex f. Curves carry that bound.
"""

from __future__ import annotations

import math
import os
import sys
import time
import warnings
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from html import escape
from importlib import import_module
from itertools import pairwise
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw import _solver
from fastfw._checks import (
    batch_parts,
    is_pair,
    positive_float,
    positive_int,
    read_only,
    require_pair,
)
from fastfw._chunks import Chunks, chunks_of
from fastfw._plots import draw_curve
from fastfw._show import data_frame, html_table, short
from fastfw._solver import Limits, Outcome, Point
from fastfw.custom import FunctionProblem, what_is_not_finite
from fastfw.learners._oracles import evaluate
from fastfw.problems import Classification, SoftmaxRegression
from fastfw.sets import RowL1Ball
from fastfw.sets._accept import dense_vertex, project_onto, start_of
from fastfw.streams import Batch, Dataset, IndexedStream, batch_size, dataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "BestDecision",
    "IntervalRegret",
    "RegretCurve",
    "best_fixed_decision",
    "interval_regret",
    "regret",
    "suboptimality",
]

Array = npt.NDArray[np.float64]

#: Rows per task of the parallel gradient: fixed, so that sums do not depend on the thread count.
_CHUNK = 4096
#: The smallest sample of the data on which a first solution is sought.
_SMALLEST_SAMPLE = 2000
#: Losses below this part of the starting loss count as this part of it in a relative gap.
_NEGLIGIBLE = 1e-6


class BestDecision(NamedTuple):
    """A feasible decision and the proof of how good it is.

    Attributes
    ----------
    decision, value : ndarray, float
        Feasible point x, of the set's shape, in float64, and f(x), the loss over the whole data in
        the problem's reduction.
    gap : float
        max_v <grad f(x), x - v> over the set. For a convex problem, the least loss over the set
        lies in [value - gap, value].
    seconds, iterations : float, int
        Wall time, and steps over the whole data (not those over samples of it).
    problem : object
        The problem that was solved. Where its `convex` is False, as for `OneHiddenLayer`, this is a
        local point: the gap says how nearly it is stationary, and certifies nothing.
    n_samples : int
        Number of rows in the data.
    """

    decision: Array
    value: float
    gap: float
    seconds: float
    iterations: int
    problem: Any
    n_samples: int

    @property
    def lower_bound(self) -> float:
        """No decision in the set has a loss below this (convex problems)."""
        return self.value - self.gap

    def __repr__(self) -> str:
        gap = f"{self.gap:.2g}"
        proof = {
            True: f"at most {gap} above the least",
            False: f"a local point of gap {gap}, no certificate (not convex)",
            None: f"at most {gap} above the least if convex",
        }[_convexity(self.problem)]
        return (
            f"<BestDecision: loss {self.value:.6g}, {proof}, {self.iterations} iterations, "
            f"{self.seconds:.3g} s>"
        )

    def _repr_html_(self) -> str:
        least = f"{self.lower_bound:.8g}"
        proof = {
            True: ("least possible loss", least),
            False: ("certificate", "none: a local point, not convex"),
            None: ("least possible loss, if convex", least),
        }[_convexity(self.problem)]
        return html_table(
            "BestDecision",
            [
                ("loss", f"{self.value:.8g}"),
                ("gap", f"{self.gap:.2g}"),
                proof,
                ("decision", f"{self.decision.shape}, {np.count_nonzero(self.decision)} nonzero"),
                ("rows", self.n_samples),
                ("iterations", self.iterations),
                ("time", f"{self.seconds:.3g} s"),
            ],
        )


def _convexity(problem: Any) -> bool | None:
    """Whether a problem says that it is convex, or that it is not; None where it says neither."""
    convex = getattr(problem, "convex", None)
    return convex if isinstance(convex, bool) else None


def best_fixed_decision(
    problem: Any,
    set: Any,
    X: Any,
    y: Any = None,
    *,
    tol: float = 1e-6,
    max_iterations: int = 1000,
    time_limit: float | None = None,
) -> BestDecision:
    """Minimise a problem's loss over a set and certify the result.

    Softmax regression over the row-l1 ball is solved by Newton's method on the faces of the ball,
    first on samples of the data, then on all of it, with quasi-Newton steps wherever too many
    entries can be nonzero; other problems by projected quasi-Newton steps if the set has
    ``project``, and by simplicial decomposition if it has ``lmo`` alone. The end is always
    decided by the Frank-Wolfe gap over the whole set.

    Parameters
    ----------
    problem : SoftmaxRegression or object
        Has ``loss_and_gradient(x, batch)``, or ``loss`` and ``gradient``. The certificate holds
        for convex problems; otherwise ``gap`` only measures stationarity. An object may say which
        it is by ``convex``, True or False.
    set : RowL1Ball or object
        Has ``shape`` and ``lmo(direction)``; ``project(x)`` and ``start()`` are used if present.
    X : array_like, shape (n, d), Dataset, Dask array, files or chunks
        Features. Computations are in float64, whatever the dtype. What is not in memory, see
        `epoch_stream`, is gone through chunk by chunk, with the same certificate. For problems of
        your own without `y`: a batch that holds all the data, in any form that the problem takes.
    y : array_like, shape (n,), optional
        Labels; left out if `X` brings its own, as anything with ``.X`` and ``.y``.
    tol : float
        Stop when ``gap <= tol * |value|``. Where the loss falls below a millionth of the loss at
        the start, as on separable data with a large radius, that millionth takes its place.
    max_iterations : int
        The most steps over the whole data.
    time_limit : float, optional
        Stop after about this many seconds (after the step that exceeds it).

    Returns
    -------
    BestDecision
        The point of smallest gap found. Never an infeasible one over `RowL1Ball`: rows are scaled
        down by an ulp where rounding takes them out, so that ``math.fsum`` of a row's magnitudes is
        at most the radius. Over other sets the point is inside up to rounding, by ``contains``.

    Warns
    -----
    RuntimeWarning
        If the tolerance was not reached, be it that matrices are singular to rounding; the result
        is the best found, with its true gap.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used; the message names it.
    FloatingPointError
        If loss or gradient are not finite at the start, or the squares of all features vanish.

    Notes
    -----
    A Newton step costs one pass over the data, O(n C d); where the working set of K entries of W
    has changed, or the last step's progress was poor, also O(n K^2) for the Hessian, built by all
    cores, and memory for a few (K, K) matrices. While K is above 6,000, steps are quasi-Newton
    ones. Solutions with thousands of nonzeros, as for 50,000 images of 3,072 features at a radius
    of 32, take minutes. Same data and BLAS threads, same bits. BLAS threads hinder each other on
    busy machines: if threadpoolctl is installed, BLAS is held to one thread during the call;
    without it, ``OPENBLAS_NUM_THREADS=1`` does the same.

    Examples
    --------
    >>> import numpy as np
    >>> import fastfw as fw
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 1])
    >>> problem = fw.SoftmaxRegression(n_features=2, n_classes=2)
    >>> best = fw.best_fixed_decision(problem, fw.RowL1Ball((2, 2), radius=1.0), X, y)
    >>> round(best.value, 6)   # log(1 + 1/e)
    0.313262
    >>> bool(best.gap <= 1e-6 * best.value)
    True
    """
    started = time.perf_counter()
    tol = positive_float(tol, "tol")
    limits = Limits(
        positive_int(max_iterations, "max_iterations"),
        np.inf if time_limit is None else started + positive_float(time_limit, "time_limit"),
    )
    require_pair(problem, set)
    chunks = chunks_of(X, y)
    if isinstance(problem, SoftmaxRegression) or (chunks and isinstance(problem, Classification)):
        if chunks is None and y is None and not isinstance(X, Dataset):
            X, y = batch_parts(X)
        data = problem.fitting(chunks or dataset(X, y), np.float64)
        n_samples = len(data)
        with ThreadPoolExecutor(os.cpu_count()) as pool, _one_blas_thread():
            if isinstance(problem, SoftmaxRegression) and isinstance(set, RowL1Ball):
                outcome = _solve_faces(problem, set, data, pool, tol, limits)
            else:
                outcome = _solve(problem, _chunked(problem, data, pool), set, tol, limits)
    elif chunks is not None:
        raise TypeError(
            f"X is in chunks, which only problems of this package go through; a "
            f"{type(problem).__name__} takes data in memory"
        )
    else:
        batch = (X, y) if y is not None else batch_parts(X) if is_pair(X) else X
        n_samples = batch_size(batch)
        outcome = _solve(problem, _whole(problem, batch), set, tol, limits)
    point = outcome.point
    if outcome.reason != "converged":
        _warn(outcome, tol, limits, time_limit)
    return BestDecision(
        decision=point.x,
        value=point.value,
        gap=max(point.gap, 0.0),
        seconds=time.perf_counter() - started,
        iterations=outcome.iterations,
        problem=problem,
        n_samples=n_samples,
    )


def _solve_faces(
    problem: SoftmaxRegression,
    ball: RowL1Ball,
    data: Dataset | Chunks,
    pool: ThreadPoolExecutor,
    tol: float,
    limits: Limits,
) -> Outcome:
    """Newton on faces for growing samples of the data; quasi-Newton if that does not apply."""
    radius = float(ball.radius)

    rows_of = lru_cache(lambda shape: RowL1Ball(shape, radius))

    def project(rows: Array) -> Array:
        return np.asarray(rows_of(rows.shape).project(rows))

    # A solution for part of the rows is a good start for all of them and costs as much less.
    # The seed is fixed and the generator local: same data, same bits.
    order = np.random.default_rng(0).permutation(len(data))
    sizes = [len(data)]
    # With fewer rows than a few times the columns it has far more nonzeros than the solution.
    smallest = max(_SMALLEST_SAMPLE, 4 * data.n_features)
    while sizes[-1] >= 4 * smallest:
        sizes.append(sizes[-1] // 4)
    if isinstance(data, Chunks):  # samples are held
        sizes = [size for size in sizes if size == len(data) or size <= data.at_once]
    x = zeros = np.zeros(tuple(ball.shape))
    for size in reversed(sizes):
        part = data
        if size < len(data):
            rows = np.sort(order[:size])
            X = data.gather(rows) if isinstance(data, Chunks) else data.X[rows]
            part = Dataset(X, data.y[rows])
        objective = _chunked(problem, part, pool)

        def evaluate(x: Array, objective: _solver.Objective = objective) -> Point:
            x = _inside(x, radius)
            value, gradient = objective(x)
            largest = float(np.abs(gradient).max(axis=1).sum())
            return Point(x, value, gradient, float(np.vdot(gradient, x)) + radius * largest)

        at_zero = _finite(evaluate(zeros))
        point = min(evaluate(x), at_zero, key=lambda point: point.value)
        scale = 1.0 / size if problem.reduction == "mean" else 1.0
        A: Any = part if isinstance(part, Chunks) else part.X
        newton = _solver.FaceNewton(A, radius, scale, project, pool=pool)
        if size < len(data):
            stage = _relative(limits, 1e-2, at_zero)._replace(iterations=50)
            x = _solver.descend(evaluate, newton, point, stage).point.x
    final = _relative(limits, tol, at_zero)
    _check_squares(A, final, at_zero)
    return _solver.alternate(evaluate, newton, _solver.QuasiNewton(project), point, final)


def _solve(
    problem: Any, objective: _solver.Objective, set: Any, tol: float, limits: Limits
) -> Outcome:
    """Projected quasi-Newton, or simplicial decomposition where there is no projection."""

    def lmo(direction: Array) -> Array:
        return dense_vertex(set, read_only(direction))

    def project(x: Array) -> Array:
        return project_onto(set, x).astype(float, copy=False)

    def evaluate(x: Array) -> Point:
        value, gradient = objective(x)
        return Point(x, value, gradient, float(np.vdot(gradient, x - lmo(gradient))))

    start = start_of(set)
    value, gradient = objective(start)
    finite = bool(np.isfinite(value) and np.isfinite(gradient).all())
    if not finite and isinstance(problem, FunctionProblem):
        raise FloatingPointError(f"at the start, {what_is_not_finite(problem, value)}")
    gap = float(np.vdot(gradient, start - lmo(gradient))) if finite else np.nan
    point = _finite(Point(start, value, gradient, gap))
    limits = _relative(limits, tol, point)
    if hasattr(set, "project"):
        return _solver.descend(evaluate, _solver.QuasiNewton(project), point, limits)
    return _solver.decompose(evaluate, objective, lmo, point, limits)


def _one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread, if threadpoolctl is installed.

    The matrices are small, and BLAS threads wait for each other actively: on a busy machine two
    take several times as long as one. Rows are divided among the pool's threads, which do not wait.
    """
    try:
        threadpoolctl = import_module("threadpoolctl")
    except ImportError:
        return nullcontext()
    one: AbstractContextManager[Any] = threadpoolctl.threadpool_limits(limits=1, user_api="blas")
    return one


def _relative(limits: Limits, tol: float, start: Point) -> Limits:
    """Return limits that ask for a gap relative to the value."""
    scale = abs(start.value)
    return limits._replace(tol=tol, least=tol * (_NEGLIGIBLE * scale), scale=scale)


def _finite(start: Point) -> Point:
    if not (np.isfinite(start.value) and np.isfinite(start.gap)):
        raise FloatingPointError(
            f"the loss at the start is {start.value} and its gap {start.gap}: "
            "look for overflow, as from very large features, and scale them"
        )
    return start


def _largest(X: npt.NDArray[Any], y: Any = None) -> float:
    return float(np.abs(X).max())


def _check_squares(X: Any, limits: Limits, start: Point) -> None:
    """Refuse features whose squares vanish, where the solution is not already at the start."""
    if limits.reached(start):
        return
    largest = max(X.map(_largest)) if isinstance(X, Chunks) else _largest(X)
    if largest < np.sqrt(np.finfo(float).tiny):
        raise FloatingPointError(
            f"X: its largest entry is {largest:.3g}, whose square vanishes in float64: rescale X, "
            "and divide the radius by the same factor"
        )


def _inside(x: Array, radius: float) -> Array:
    """Scale rows down whose l1 norm, summed without rounding, exceeds the radius."""
    magnitudes = np.abs(x)
    near = np.flatnonzero(magnitudes.sum(axis=1) > (1.0 - 1e-9) * radius)
    if not near.size:
        return x
    x = x.copy()
    for i in near:
        shrink = float(np.finfo(float).eps)
        while (norm := math.fsum(np.abs(x[i]).tolist())) > radius:
            x[i] *= min(radius / norm, 1.0 - shrink)
            shrink *= 2.0  # the smallest numbers lose nothing to an ulp
    return x


def _chunked(problem: Any, data: Dataset | Chunks, pool: ThreadPoolExecutor) -> _solver.Objective:
    """Loss and gradient over all rows, chunks of them in parallel, added in a fixed order."""
    if isinstance(data, Chunks):
        return lambda x: problem.loss_and_gradient(x, data)
    bounds = [*range(0, len(data), _CHUNK), len(data)]
    batches = [Batch(data, np.arange(i, j)) for i, j in pairwise(bounds)]
    if problem.reduction == "mean":
        weights = [len(batch) / len(data) for batch in batches]
    else:
        weights = [1.0] * len(batches)

    def objective(x: Array) -> tuple[float, Array]:
        value, gradient = 0.0, np.zeros(x.shape)
        parts = pool.map(lambda batch: problem.loss_and_gradient(x, batch), batches)
        for weight, (loss, slope) in zip(weights, parts, strict=True):
            value += weight * float(loss)
            gradient += weight * slope
        return value, gradient

    return objective


def _whole(problem: Any, batch: Any) -> _solver.Objective:
    """Loss and gradient of any problem, as it gives them for the whole data."""

    def objective(x: Array) -> tuple[float, Array]:
        value, gradient = evaluate(problem, x, batch)
        return value, gradient.astype(np.float64, copy=False)

    return objective


def _warn(outcome: Outcome, tol: float, limits: Limits, time_limit: float | None) -> None:
    point = outcome.point
    relative = point.gap / max(abs(point.value), np.finfo(float).tiny)
    advice = {
        "iterations": f"raise max_iterations (now {limits.iterations})",
        "time": f"raise time_limit (now {time_limit})",
        "stalled": "rounding allows no further progress: raise tol, or reduce the radius",
    }[outcome.reason]
    warnings.warn(
        f"best_fixed_decision stopped at gap {point.gap:.3g} ({relative:.3g} of the loss "
        f"{point.value:.6g}) after {outcome.iterations} iterations, tol={tol:g} was asked for; "
        f"to get further, {advice}",
        RuntimeWarning,
        stacklevel=3,
    )


class RegretCurve(np.ndarray[Any, np.dtype[np.float64]]):
    """Cumulative regret by round, an ndarray of shape (T,) with bounds.

    Parameters
    ----------
    values : array_like, shape (T,)
        The curve.
    margin : array_like, shape (T,) or ()
        How far its upper bound is above it.

    Attributes
    ----------
    lower, upper : ndarray, shape (T,)
        The curve itself, and the curve plus what the comparator's certificate leaves open; without
        a certificate, as for `OneHiddenLayer`, regret may be above both. Slices keep their part of
        the bounds; results of arithmetic have none.
    """

    _margin: Array | None

    def __new__(cls, values: npt.ArrayLike, margin: npt.ArrayLike) -> RegretCurve:
        """Make a curve from the reported values and the distance to the upper bound."""
        curve = np.array(values, dtype=float).view(cls)
        curve._margin = np.broadcast_to(np.asarray(margin, dtype=float), curve.shape)
        return curve

    def __array_finalize__(self, obj: Any) -> None:
        """Start without bounds: what arithmetic makes of a curve is no curve."""
        self._margin = None

    def __getitem__(self, key: Any) -> Any:
        """Index or slice, bounds included."""
        part = super().__getitem__(key)
        if isinstance(part, RegretCurve) and self._margin is not None:
            part._margin = self._margin[key]
        return part

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle with the bounds."""
        if self._margin is None:
            return super().__reduce_ex__(protocol)
        return RegretCurve, (np.asarray(self), self._margin)

    @property
    def lower(self) -> Array:
        """The reported curve."""
        return np.array(self, dtype=float, subok=False)

    @property
    def upper(self) -> Array:
        """The reported curve plus the accumulated gap."""
        if self._margin is None:
            raise AttributeError(
                "this array was computed from a regret curve and has no bounds of its own: "
                "compute from .lower and .upper of the curve that regret() returned"
            )
        return np.asarray(self) + self._margin

    def _repr_html_(self) -> str:
        if self._margin is None or self.ndim != 1 or not self.size:
            return f"<pre>{escape(repr(self))}</pre>"
        return html_table(
            "RegretCurve",
            [
                ("rounds", self.size),
                ("regret", f"{short(self.lower[-1])} to {short(self.upper[-1])}"),
                ("regret per round", short(self.lower[-1] / self.size)),
            ],
        )

    def to_pandas(self) -> Any:
        """Return a pandas data frame of the curve and its upper bound, a row for each round.

        Raises ImportError where pandas is missing, and AttributeError where `upper` does.
        """
        columns = {"regret": self.lower, "upper": self.upper}
        return data_frame(columns, np.arange(1, self.size + 1), "round")

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the curve, and a band up to its upper bound where that can be seen.

        On `ax`, matplotlib axes, or new ones, which are returned; `label` is for the legend.
        """
        rounds = np.arange(1, self.size + 1)
        upper = None if self._margin is None else self.upper
        return draw_curve(ax, rounds, self.lower, label, "round", "regret", upper)


def regret(result: Any, best: BestDecision, stream: Iterable[Any]) -> RegretCurve:
    """Cumulative regret of a run against the best fixed decision.

    Parameters
    ----------
    result : RunResult
        What ``learner.run(stream)`` returned; only ``losses``, shape (T,), is read.
    best : BestDecision
        The comparator x, from :func:`best_fixed_decision`.
    stream : iterable of batches
        The stream of the run, which is iterated once more: T batches.

    Returns
    -------
    RegretCurve, shape (T,)
        ``curve[t-1]`` is the sum over rounds s <= t of f_s(x_s) - f_s(x). Where the rounds' losses
        add up to the loss of a convex problem that x minimises to within ``best.gap``, regret
        against the exact minimiser lies between ``curve.lower`` (the curve) and ``curve.upper``,
        which adds ``best.gap`` per round; for ``reduction="sum"`` in proportion to the rows seen.
        For batches drawn at random that holds in expectation.

    Raises
    ------
    TypeError, ValueError
        If an argument is not what it must be, as where two were swapped, or the stream has not as
        many batches as the run had rounds.

    Notes
    -----
    For softmax regression on a stream of row numbers, each sample's loss is computed once:
    O(n C d) however long the stream.

    Examples
    --------
    >>> import numpy as np
    >>> import fastfw as fw
    >>> X, y = np.eye(3), np.arange(3)
    >>> problem, ball = fw.SoftmaxRegression(3, 3), fw.RowL1Ball((3, 3), radius=2.0)
    >>> stream = fw.iid_stream(X, y, batch_size=2, rounds=5, seed=0)
    >>> result = fw.ORGFW(problem, ball).run(stream)
    >>> curve = fw.regret(result, fw.best_fixed_decision(problem, ball, X, y), stream)
    >>> curve.shape, bool(np.all(curve.lower <= curve.upper))
    ((5,), True)
    """
    losses = _losses_of(result)
    if not all(hasattr(best, attribute) for attribute in ("decision", "gap", "problem")):
        raise TypeError(
            f"best must be what best_fixed_decision(...) returned, but it is a "
            f"{type(best).__name__}"
        )
    if not isinstance(stream, Iterable):
        raise TypeError(
            "stream must be the iterable of batches that was run, but it is a "
            f"{type(stream).__name__}"
        )
    if isinstance(stream, IndexedStream):
        _require_rounds(len(losses), len(stream))
    if isinstance(stream, IndexedStream) and isinstance(best.problem, SoftmaxRegression):
        fixed, rows = _indexed_losses(best, stream)
    else:
        fixed, rows = _batch_losses(best, stream, len(losses))
    weights = rows / best.n_samples if _is_sum(best.problem) else np.ones(len(losses))
    return RegretCurve(np.cumsum(losses - fixed), best.gap * np.cumsum(weights))


def _losses_of(result: Any) -> Array:
    """Return the losses of a run."""
    if not hasattr(result, "losses"):
        raise TypeError(
            f"result must be what learner.run(stream) returned, but it is a {type(result).__name__}"
        )
    losses: Array = np.asarray(result.losses, dtype=float)
    if losses.ndim != 1:
        raise ValueError(f"result.losses must have shape (T,), but has shape {losses.shape}")
    return losses


class IntervalRegret(NamedTuple):
    """The regret on the worst of some intervals of rounds; see `interval_regret`.

    Attributes
    ----------
    value, first, last : float, int, int
        The largest regret that was found, and the rounds between which it was suffered, both
        included.
    upper : float
        What regret against the exact minimisers is at most, on each of the intervals. Of a problem
        that is not convex, such as `OneHiddenLayer`, comparators are local points: no bound.
    intervals : ndarray of float, shape (m, 4)
        First and last round, regret and its upper bound, of all intervals.
    """

    value: float
    first: int
    last: int
    upper: float
    intervals: Array


def interval_regret(
    result: Any,
    problem: Any,
    set: Any,
    stream: IndexedStream,
    *,
    shortest: int | None = None,
    tol: float = 1e-6,
) -> IntervalRegret:
    """Regret on the worst dyadic interval, each against its own best fixed decision.

    Adaptive regret, as the largest over all intervals is called, is small only for methods that
    follow what changes: on drifting data regret over all rounds compares with a decision that
    is good nowhere.

    Parameters
    ----------
    result, problem, set, stream, tol
        As for `regret`, on a stream of row numbers, and `best_fixed_decision`.
    shortest : int, optional
        Intervals have at least so many rounds: lengths are powers of two and begin after multiples
        of themselves. By default T/8, which makes about 15 of them; all rounds are one, too.

    Returns
    -------
    IntervalRegret
        The worst, and all of them.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used; the message names it.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> problem, ball = fw.SoftmaxRegression(3, 3), fw.RowL1Ball((3, 3), radius=4.0)
    >>> data = np.eye(3), np.arange(3)
    >>> stream = fw.drifting_stream(*data, batch_size=2, rounds=16, pieces=2, seed=0)
    >>> result = fw.ORGFW(problem, ball).run(stream)
    >>> worst = fw.interval_regret(result, problem, ball, stream, shortest=4)
    >>> len(worst.intervals), bool(worst.value == worst.intervals[:, 2].max())
    (7, True)
    """
    if not isinstance(stream, IndexedStream):
        raise TypeError(
            "stream must be one of row numbers, such as drifting_stream(...), but it is a "
            f"{type(stream).__name__}"
        )
    if isinstance(stream.data, Chunks):
        raise TypeError(
            f"stream must be of data in memory: every interval's rows are, but it is {stream!r}"
        )
    losses = _losses_of(result)
    T = len(losses)
    _require_rounds(T, len(stream))
    least = -(-T // 8) if shortest is None else positive_int(shortest, "shortest")
    blocks = [*stream.row_blocks(T)]
    sizes = sorted({block.shape[1] for block in blocks})
    if len(sizes) > 1:
        raise ValueError(
            f"stream must have batches of one size, but it has some of {sizes[0]} and some of "
            f"{sizes[-1]} rows: choose a batch_size that divides the number of rows"
        )
    rows = np.concatenate(blocks)
    lengths = [1 << i for i in range(T.bit_length()) if 1 << i >= least]
    spans = {(first, first + n) for n in lengths for first in range(0, T - n + 1, n)} | {(0, T)}
    found = []
    for first, end in sorted(spans):
        part = IndexedStream(stream.data, rows[first:end])
        own = part.data.X[part._rows.ravel()], part.data.y[part._rows.ravel()]
        best = best_fixed_decision(problem, set, *own, tol=tol)
        curve = regret(SimpleNamespace(losses=losses[first:end]), best, part)
        found.append((first + 1, end, curve[-1], curve.upper[-1]))
    intervals = np.array(found, dtype=float)
    first, last, value, _ = found[int(np.argmax(intervals[:, 2]))]
    return IntervalRegret(float(value), first, last, float(intervals[:, 3].max()), intervals)


def _is_sum(problem: Any) -> bool:
    return getattr(problem, "reduction", "mean") == "sum"


def _require_rounds(rounds: int, found: int | str) -> None:
    """Refuse a stream that has not as many batches as the run had rounds."""
    if found != rounds:
        raise ValueError(
            f"stream must have as many batches as the run had rounds, {rounds}, but it has {found};"
            " give the stream that was run (a generator can be used only once: make a list of it)"
        )


def _indexed_losses(best: BestDecision, stream: IndexedStream) -> tuple[Array, Array]:
    """Losses of the fixed decision by round, and rows by round, from one pass over the data."""
    data = stream.data
    if isinstance(data, Chunks):
        per_sample = best.problem.sample_losses(best.decision, data.astype(np.float64))
    else:
        per_sample = np.empty(len(data))
        for first in range(0, len(data), _CHUNK):
            rows = slice(first, first + _CHUNK)
            chunk = data.X[rows].astype(np.float64, copy=False), data.y[rows]
            per_sample[rows] = best.problem.sample_losses(best.decision, chunk)
    sums, sizes = np.empty(len(stream)), np.empty(len(stream))
    t = 0
    for block in stream.row_blocks(256):
        sums[t : t + len(block)] = per_sample[block].sum(axis=1)
        sizes[t : t + len(block)] = block.shape[1]
        t += len(block)
    return sums if _is_sum(best.problem) else sums / sizes, sizes


def _batch_losses(best: BestDecision, stream: Iterable[Any], rounds: int) -> tuple[Array, Array]:
    fixed: list[float] = []
    rows: list[int] = []
    for batch in stream:
        if len(fixed) == rounds:
            _require_rounds(rounds, "more")
        fixed.append(best.problem.loss(best.decision, read_only(batch)))
        rows.append(batch_size(batch))
    _require_rounds(rounds, len(fixed))
    return np.array(fixed, float), np.array(rows, float)


def suboptimality(
    value: npt.ArrayLike, best: BestDecision, initial: float
) -> float | npt.NDArray[np.float64]:
    """Loss above the optimum, as a part of what it was at the start.

    Parameters
    ----------
    value, initial : float or array_like, float
        f(x_t) and f(x_1), losses over the whole data, in the same reduction as ``best.value``.
    best : BestDecision
        The optimum f* is taken to be ``best.value``.

    Returns
    -------
    float or ndarray
        (f(x_t) - f*) / (f(x_1) - f*), of the shape of `value`.

    Raises
    ------
    ValueError
        If `initial` is not above the optimum, so that there is nothing to measure.

    Examples
    --------
    >>> best = BestDecision(np.zeros((2, 1)), 0.5, 0.0, 0.0, 1, None, 10)
    >>> suboptimality([1.5, 1.0, 0.5], best, initial=1.5)
    array([1. , 0.5, 0. ])
    """
    span = float(initial) - best.value
    if not (np.isfinite(span) and span > 0.0):
        raise ValueError(
            f"initial must be the loss of a decision worse than the best one, above "
            f"{best.value!r}, but it is {initial!r}"
        )
    part = (np.asarray(value, dtype=float) - best.value) / span
    return part if part.ndim else float(part)


class _CallableModule(ModuleType):
    """The function `regret` under the module's name, to which any import of it binds that name."""

    __call__ = staticmethod(regret)


sys.modules[__name__].__class__ = _CallableModule
