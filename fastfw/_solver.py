"""Convex minimisation over a set, with a certificate: the engine of :mod:`fastfw.regret`.

Every method is an instance of one loop, :func:`descend`. At a feasible ``x`` a *model* of the
objective proposes the minimiser ``z`` over the set of

    q(z) = <g, z - x> + 1/2 <z - x, H (z - x)>,      g the exact gradient at x,

a line search walks from ``x`` toward ``z``, and the loop ends when the Frank-Wolfe gap
``max_v <g, x - v>`` is small. For a convex objective the gap bounds ``f(x) - min f``,
whatever H was.

- :class:`FaceNewton` takes for H the exact Hessian of softmax regression on the few parameters
  that can be nonzero: quadratic convergence, for the price of one small dense matrix.
- :class:`QuasiNewton` takes an L-BFGS matrix: any smooth problem, any set with a projection.
- :func:`decompose` needs only linear minimisation: it minimises over the hull of the vertices found
  so far, with the two tools above.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Executor
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_factor, cho_solve

from fastfw._chunks import Chunks
from fastfw._csr import is_sparse
from fastfw.sets._projections import project_simplex

Array = npt.NDArray[np.float64]
Objective = Callable[[Array], tuple[float, Array]]


_PRECISION = float(np.finfo(float).eps)

#: Quasi-Newton steps between attempts at Newton's.
_SPELL = 200

#: Pairs that a quasi-Newton matrix is made of, and parameters of the largest Hessian.
_MEMORY, _LARGEST = 20, 6000

#: Rows in a task of building a Hessian, and the largest one that is built in double precision.
_BLOCK, _SINGLE = 4096, 1000


class Point(NamedTuple):
    """A feasible point with everything that is known about it."""

    x: Array
    value: float
    gradient: Array
    gap: float


class Outcome(NamedTuple):
    """The point of smallest gap, the number of steps, and why the loop ended."""

    point: Point
    iterations: int
    reason: str  # "converged", "stalled", "iterations", "time", "model"


class Limits(NamedTuple):
    """When to stop: the gap is at most tol |value| or `least`, or a budget is spent."""

    iterations: int
    deadline: float  # a reading of time.perf_counter
    tol: float = 0.0
    least: float = 0.0
    scale: float = 0.0  # a typical loss: it is computed no better than this times the precision

    def reached(self, point: Point) -> bool:
        """Whether the certificate at ``point`` is good enough."""
        return point.gap <= max(self.tol * abs(point.value), self.least)

    def rounding(self, point: Point) -> float:
        """Return the size of rounding errors in values and slopes near a point."""
        terms = float(np.abs(point.gradient * point.x).sum())
        return 4.0 * _PRECISION * max(abs(point.value), terms, self.scale)


def descend(
    evaluate: Callable[[Array], Point],
    model: FaceNewton | QuasiNewton,
    start: Point,
    limits: Limits,
    *,
    polish: int = 0,
) -> Outcome:
    """Minimise by model steps from ``start``; see the module's first lines.

    A model proposes a minimiser, or None where it does not apply, learns from a step of a length in
    (0, 1], and forgets after a failed line search: False if there was nothing to forget.
    ``polish`` more steps are made after the certificate is reached: with a Newton model one step
    squares the error for the price of one gradient.
    """
    point = best = start
    lowest, idle = start.value, 0

    def ended(iterations: int, reason: str) -> Outcome:
        return Outcome(best, iterations, "converged" if limits.reached(best) else reason)

    for iteration in range(limits.iterations + 1):
        if limits.reached(point):
            if polish == 0 or point.gap <= _PRECISION * abs(point.value):  # nothing to gain
                return Outcome(best, iteration, "converged")
            polish -= 1
        if iteration == limits.iterations:
            break
        if time.perf_counter() > limits.deadline:
            return Outcome(best, iteration, "time")
        new = None
        try:
            proposal = model.minimiser(point)
        except np.linalg.LinAlgError:  # rounding has left nothing of a matrix to work with
            pass
        else:
            if proposal is None:
                return Outcome(best, iteration, "model")
            new, length = _line_search(evaluate, point, proposal, limits.rounding(point))
        if new is None:
            if model.reset():
                continue
            return ended(iteration, "stalled")
        model.learn(point, new, length)
        point = new
        if point.value < lowest - limits.rounding(point) or point.gap < best.gap:
            lowest, idle = min(lowest, point.value), 0
        else:
            idle += 1
        if point.gap <= best.gap:
            best = point
        if idle == 20:  # wandering where values differ by rounding alone
            return ended(iteration + 1, "stalled")
    return ended(limits.iterations, "iterations")


def alternate(
    evaluate: Callable[[Array], Point],
    newton: FaceNewton,
    quasi: QuasiNewton,
    start: Point,
    limits: Limits,
) -> Outcome:
    """Minimise by Newton steps, and by cheaper ones wherever those do not apply.

    Newton steps need few entries that can be nonzero, of which there may be many far from the
    solution. A spell of quasi-Newton steps, to a tenth of the gap, then sets most of them to zero.
    Where Newton's steps stall, quasi-Newton steps go on to the end.
    """
    done, point = 0, start
    while True:
        rest = limits._replace(iterations=limits.iterations - done)
        outcome = descend(evaluate, newton, point, rest, polish=1)
        done += outcome.iterations
        if outcome.reason not in ("model", "stalled"):
            return outcome._replace(iterations=done)
        rest = limits._replace(iterations=limits.iterations - done)
        last = outcome.reason == "stalled"
        if not last:
            rest = rest._replace(
                tol=0.0, least=0.1 * outcome.point.gap, iterations=min(_SPELL, rest.iterations)
            )
        before = outcome.point.gap
        outcome = descend(evaluate, quasi, outcome.point, rest)
        done += outcome.iterations
        outcome = outcome._replace(iterations=done)
        if limits.reached(outcome.point):
            return outcome._replace(reason="converged")
        if last or done >= limits.iterations or outcome.reason in ("time", "stalled"):
            return outcome
        if outcome.point.gap > 0.9 * before:  # they will not help next time either
            return outcome._replace(reason="stalled")
        point = outcome.point


def _line_search(
    evaluate: Callable[[Array], Point], point: Point, proposal: Array, rounding: float
) -> tuple[Point | None, float]:
    """Backtrack from the proposal to sufficient decrease; None when there is no descent left."""
    direction = proposal - point.x
    slope = float(np.vdot(point.gradient, direction))
    # Near the end decreases are below rounding; there, a smaller gap is the better judge.
    length = 1.0
    while length > 1e-10 and slope <= rounding:
        new = evaluate(point.x + length * direction)
        change = new.value - point.value
        if change <= 1e-4 * length * slope:
            return new, length
        if change <= rounding and new.gap <= 0.9 * point.gap:
            return new, length
        if slope >= -rounding:
            break
        # Minimiser of the parabola through both values and the slope, kept away from the ends.
        excess = change - length * slope
        parabola = -0.5 * slope * length / excess if np.isfinite(excess) else 0.0
        length *= min(max(parabola, 0.1), 0.5)
    return None, 0.0


def _spectral_steps(
    product: Callable[[Array], Array],
    project: Callable[[Array], Array],
    z: Array,
    residual: Array,
    *,
    steps: int,
    curvature: float,
    accuracy: float = 0.0,
) -> tuple[Array, Array]:
    """Projected-gradient steps of Barzilai-Borwein length on a quadratic, exact line search.

    ``residual`` is the quadratic's gradient at ``z``; both are returned, updated. Ends early once
    the predicted decrease of a step is below ``accuracy`` times that of the first.
    """
    first = None
    length = 1.0 / curvature
    for _ in range(steps):
        d = project(z - length * residual) - z
        decrease = -float(residual @ d)
        first = decrease if first is None else first
        if decrease <= max(accuracy * first, 1e-200):
            break
        hd = product(d)
        bend = float(d @ hd)
        t = 1.0 if bend <= decrease else decrease / bend
        z = z + t * d
        residual = residual + t * hd
        # Far longer steps than the set is wide would drown z in rounding.
        square, steepest = float(d @ d), float(np.abs(residual).max())
        reach = 100.0 * float(np.abs(z).max() + np.abs(d).max())
        length = square / bend if square * steepest < reach * bend else reach / steepest
    return z, residual


class QuasiNewton:
    """L-BFGS model (Schmidt et al., 2009: projected quasi-Newton) for any set with a projection.

    H = s I - N M^-1 N^T with N = [s S, Y], the compact form of the last 20 pairs of steps S
    and gradient differences Y. The model's minimiser is found by projected-gradient steps, which
    cost 20 times the dimension and one projection each, and no gradient of the problem.
    """

    def __init__(self, project: Callable[[Array], Array]):
        self._project = project
        self._pairs: list[tuple[Array, Array]] = []

    def reset(self) -> bool:
        """Forget all pairs."""
        had = bool(self._pairs)
        self._pairs.clear()
        return had

    def learn(self, old: Point, new: Point, length: float) -> None:
        """Keep the pair if the objective curved upward along the step."""
        s = (new.x - old.x).ravel()
        y = (new.gradient - old.gradient).ravel()
        if s @ y > 1e-12 * np.sqrt((s @ s) * (y @ y)):
            self._pairs.append((s, y))
            del self._pairs[:-_MEMORY]

    def minimiser(self, point: Point) -> Array | None:
        """Minimise the L-BFGS model over the set."""
        shape = point.x.shape
        x, g = point.x.ravel(), point.gradient.ravel()

        def project(v: Array) -> Array:
            return np.asarray(self._project(v.reshape(shape)), dtype=float).ravel()

        if not self._pairs:
            # Far enough to matter: as far as x is from 0, or the width that the gap tells of.
            norm = max(float(np.linalg.norm(g)), np.finfo(float).tiny)
            reach = max(float(np.linalg.norm(x)), point.gap / norm)
            return project(x - (reach / norm) * g).reshape(shape)
        product, scale = self._matrix()
        z, _ = _spectral_steps(product, project, x, g, steps=40, curvature=scale, accuracy=1e-4)
        return z.reshape(shape)

    def _matrix(self) -> tuple[Callable[[Array], Array], float]:
        steps = np.array([s for s, _ in self._pairs])
        changes = np.array([y for _, y in self._pairs])
        cross = steps @ changes.T
        scale = float(changes[-1] @ changes[-1] / cross[-1, -1])
        lower = np.tril(cross, -1)
        middle = np.block([[scale * (steps @ steps.T), lower], [lower.T, -np.diag(np.diag(cross))]])
        factors = np.vstack([scale * steps, changes])
        inverse = np.linalg.pinv(middle)

        def product(v: Array) -> Array:
            return scale * v - factors.T @ (inverse @ (factors @ v))

        return product, scale


class FaceNewton:
    """Exact Newton steps of softmax regression over the row-l1 ball, on a working set.

    At the solution most entries of W are zero: outside the rows' largest gradient entries nothing
    can move. The working set holds the nonzero entries and, per row, the columns of largest
    ``|gradient|``; on it the Hessian, with a_i the samples and p_i their class probabilities,

        H[(c, j), (k, l)] = scale * sum_i p_ic (1[c = k] - p_ik) a_ij a_il,

    is one symmetric product of a (rows, size) matrix with itself, built by blocks of rows in
    parallel. The quadratic is minimised to high accuracy (:func:`_minimise_quadratic`). As long as
    the gap falls tenfold per step the Hessian is kept; a gradient is much cheaper.
    """

    def __init__(
        self, X: Array | Chunks, radius: float, scale: float, project: Any, *, pool: Executor
    ):
        self._X = X
        self._pool = pool
        self._radius = radius
        self._scale = scale
        self._project = project  # (C, m) -> its projection, for any m
        self._mask: npt.NDArray[np.bool_] | None = None
        self._hessian: Array | None = None
        self._keep = False  # the Hessian serves for the next step
        self._fresh = False  # it was built at the current point

    def reset(self) -> bool:
        """Rebuild the Hessian at the next step, unless it is the current point's."""
        self._keep = False
        return not self._fresh

    def learn(self, old: Point, new: Point, length: float) -> None:
        """Keep the Hessian while it works."""
        self._keep = length == 1.0 and new.gap <= 0.1 * old.gap
        self._fresh = False

    def minimiser(self, point: Point) -> Array | None:
        """Minimise the second-order model over the working set."""
        x, g = point.x, point.gradient
        size = np.abs(g)
        if self._mask is not None and self._keep:
            hidden = size.max(axis=1) - np.where(self._mask, size, 0.0).max(axis=1)
            self._keep = self._radius * float(hidden.sum()) <= 0.1 * point.gap
        if not self._keep or self._mask is None or self._hessian is None:
            self._mask = _working_set(x, size)
            if self._mask is None:
                return None
            self._hessian = self._build(x, self._mask)
            if not np.isfinite(self._hessian).all():  # squares of huge features
                return None
            self._keep = self._fresh = True
        mask = self._mask
        z = np.zeros_like(x)
        z[mask] = _minimise_quadratic(
            self._hessian, g[mask], x[mask], mask, self._radius, self._project, 0.01 * point.gap
        )
        return z

    def _build(self, x: Array, mask: npt.NDArray[np.bool_]) -> Array:
        from scipy.special import softmax

        classes, columns = np.nonzero(mask)
        used, position = np.unique(columns, return_inverse=True)
        ends = np.searchsorted(classes, np.arange(len(mask) + 1))
        # Whatever H is, the certificate is exact, so that large ones may be built in single
        # precision: twice as fast, and steps nearly as good.
        dtype: Any = np.float64 if len(classes) <= _SINGLE else np.float32

        def part(block: Any, y: Any = None) -> tuple[npt.NDArray[Any]]:
            logits = np.asarray(block @ x.T)
            p: npt.NDArray[Any] = softmax(logits, axis=1).astype(dtype, copy=False)
            columns: Any = block[:, used]
            a: npt.NDArray[Any] = columns.toarray() if is_sparse(columns) else columns
            a = a.astype(dtype, copy=False)
            m: npt.NDArray[Any] = a[:, position]
            m *= p[:, classes]
            h: npt.NDArray[Any] = m.T @ m
            np.negative(h, out=h)
            root = np.sqrt(p)
            for c, (i, j) in enumerate(pairwise(ends)):
                q = a[:, position[i:j]] * root[:, c : c + 1]
                h[i:j, i:j] += q.T @ q
            return (h,)

        hessian = np.zeros((len(classes), len(classes)))
        if isinstance(self._X, Chunks):
            hessian += self._X.total(part)[0]
        else:
            X = self._X
            blocks = (X[first : first + _BLOCK] for first in range(0, X.shape[0], _BLOCK))
            for (h,) in self._pool.map(part, blocks):  # added in a fixed order
                hessian += h
        hessian *= self._scale
        return hessian


def _working_set(x: Array, size: Array) -> npt.NDArray[np.bool_] | None:
    """Nonzeros, and in every row half as many again (16 or more) of largest gradient.

    Fewer are added where the set would grow beyond `_LARGEST`; None if the nonzeros do.
    """
    mask: npt.NDArray[np.bool_] = x != 0.0
    room = (_LARGEST - np.count_nonzero(mask)) // len(mask)
    if room < 0:
        return None
    for row, magnitude in zip(mask, size, strict=True):
        extra = min(max(16, int(np.count_nonzero(row)) // 2), room)
        order = np.argsort(np.where(row, 0.0, -magnitude), kind="stable")
        row[order[:extra]] = True
    return mask


def _minimise_quadratic(
    hessian: Array,
    g: Array,
    x: Array,
    mask: npt.NDArray[np.bool_],
    radius: float,
    project_rows: Callable[[Array], Array],
    tol: float,
) -> Array:
    """Minimise <g, z-x> + 1/2 <z-x, H (z-x)> with every row's l1 norm at most ``radius``.

    ``mask`` (C, d) says which entry of which row each of the K variables is. Once the face is
    known (which variables are nonzero, their signs, which rows are tight), the problem is a
    linear system. So steps on faces, while they shrink, alternate with gradient projection, which
    changes faces, until the quadratic's own Frank-Wolfe gap is below ``tol``. Where that is slow,
    as on ill-conditioned data, an interior-point method finds the face.
    """
    counts = np.count_nonzero(mask, axis=1)
    rows = np.repeat(np.arange(len(counts)), counts)
    padded = np.arange(counts.max()) < counts[:, None]  # rows side by side, zeros at the end

    def unflatten(v: Array) -> Array:
        full = np.zeros(padded.shape)
        full[padded] = v
        return full

    def project(v: Array) -> Array:
        flat: Array = project_rows(unflatten(v))[padded]
        return flat

    def gap_and_slopes(z: Array) -> tuple[float, Array]:
        slopes = g + hessian @ (z - x)
        return float(slopes @ z) + radius * float(np.abs(unflatten(slopes)).max(1).sum()), slopes

    def on_faces(z: Array) -> tuple[float, Array, Array]:
        gap, slopes = gap_and_slopes(z)
        for _ in range(3):
            if gap <= tol:
                break
            z, minimal = _face_step(hessian, slopes, z, rows, radius, project)
            gap, slopes = gap_and_slopes(z)
            if minimal:
                break
        return gap, z, slopes

    curvature = max(10.0 * float(np.trace(hessian)) / len(g), np.finfo(float).tiny)
    gap, z, slopes = on_faces(x)
    for _ in range(3):
        if gap <= tol:
            return z
        # 150 steps cost about as much as a factorisation
        z, _ = _spectral_steps(
            hessian.__matmul__, project, z, slopes, steps=150, curvature=curvature, accuracy=1e-6
        )
        gap, z, slopes = on_faces(z)
    if gap <= tol:
        return np.asarray(z)
    interior, sparse = _interior_point(hessian, g, x, rows, radius, 0.01 * tol)
    candidates = [(gap, z), on_faces(sparse)[:2], (gap_and_slopes(interior)[0], interior)]
    best: Array
    gap, best = min(candidates, key=lambda candidate: candidate[0])
    # Interior points have no zeros, and the next working set holds all that is not zero: a point
    # on a face is preferred even where its gap is ten times what was asked for.
    norms = np.bincount(rows, np.abs(best))
    for level in (1e-4, 1e-5, 1e-6):
        cut = np.where(np.abs(best) > level * radius, best, 0.0)
        kept = np.bincount(rows, np.abs(cut), minlength=len(norms))
        cut *= np.divide(norms, kept, out=np.ones(len(norms)), where=kept > 0.0)[rows]
        reached, cut = on_faces(cut)[:2]
        if reached <= max(10.0 * tol, gap):
            return cut
    return best


def _face_step(
    hessian: Array,
    residual: Array,
    z: Array,
    rows: npt.NDArray[np.intp],
    radius: float,
    project: Callable[[Array], Array],
) -> tuple[Array, bool]:
    """Newton step within the face of ``z``; (new z, whether it is the face's minimiser).

    The nonzeros keep their signs s, and where a row is tight its norm: the largest entry p of the
    row pays for the others, step_p = -s_p sum_j s_j step_j, and the rest are free. That leaves an
    unconstrained quadratic. If its minimiser is off the face, takes the better of its projection
    and the point where the way to it leaves the face.
    """
    face = np.flatnonzero(z)
    if not len(face):
        return z, True
    signs, row = np.sign(z[face]), rows[face]
    norms = np.bincount(row, np.abs(z[face]), minlength=rows[-1] + 1)
    tight = norms >= radius * (1.0 - 1e-12)
    ascending = np.argsort(np.abs(z[face]), kind="stable")
    payers = np.zeros(len(norms), dtype=np.intp)
    payers[row[ascending]] = ascending  # the last assignment to a row stays: its largest entry
    payer = payers[row]
    free = np.flatnonzero(~(tight[row] & (payer == np.arange(len(face)))))
    payer = payer[free]
    share = np.where(tight[row[free]], signs[free] * signs[payer], 0.0)
    h = hessian[np.ix_(face, face)]
    h = h[:, free] - h[:, payer] * share
    h = h[free] - share[:, None] * h[payer]
    slope = residual[face[free]] - share * residual[face[payer]]
    u = cho_solve(_factor(h), -slope, check_finite=False)
    step = np.zeros(len(face))
    step[free] = u
    np.subtract.at(step, payer, share * u)
    full = np.zeros_like(z)
    full[face] = step

    projected = project(z + full) - z
    if np.abs(projected - full).max() <= 1e-12 * radius:
        return z + projected, True

    # How far z + t * full stays on the face: no sign changes, no row grows beyond the radius.
    crossing = signs * (z[face] + step) <= 0.0
    ratios = np.divide(-z[face], step, out=np.full(len(face), np.inf), where=crossing & (step != 0))
    growth = np.bincount(row, signs * step, minlength=len(norms))
    growing = (growth > 0.0) & ~tight
    growths = np.divide(radius - norms, growth, out=np.full(len(norms), np.inf), where=growing)
    t = min(1.0, float(ratios.min()), float(growths.min()))
    truncated = t * full
    truncated[face[ratios <= t]] = -z[face[ratios <= t]]

    bend = float(projected @ (hessian @ projected))
    decrease = -float(residual @ projected)
    s = 0.0 if decrease <= 0.0 else 1.0 if bend <= decrease else decrease / bend
    value = s * (0.5 * s * bend - decrease)
    other = float(residual @ truncated + 0.5 * truncated @ (hessian @ truncated))
    if min(value, other) >= 0.0:
        return z, True
    return (z + s * projected, False) if value <= other else (z + truncated, False)


def _factor(matrix: Array) -> tuple[Array, bool]:
    """Cholesky factor, with the least shift of the diagonal that makes the matrix definite."""
    diagonal = np.diag(matrix).copy()
    shift = 1e-12 * float(diagonal.mean()) + np.finfo(float).tiny if len(diagonal) else 0.0
    for _ in range(8):
        np.fill_diagonal(matrix, diagonal + shift)
        try:
            factor, lower = cho_factor(matrix, lower=True, check_finite=False)
            return factor, bool(lower)
        except np.linalg.LinAlgError:
            shift *= 100.0
    raise np.linalg.LinAlgError("the matrix is far from positive definite, or not finite")


class _PrimalDual(NamedTuple):
    """Complementary pairs of the interior-point method (or changes of them): u a, w b, slack y."""

    u: Array
    w: Array
    slack: Array
    a: Array
    b: Array
    y: Array

    def gap(self) -> float:
        return float(self.u @ self.a + self.w @ self.b + self.slack @ self.y)

    def moved(self, t: float, change: _PrimalDual) -> _PrimalDual:
        return _PrimalDual(*(v + t * dv for v, dv in zip(self, change, strict=True)))

    def longest(self, change: _PrimalDual) -> float:
        """Return the longest step, 1 at most, that keeps everything nonnegative."""
        shrinking = [float((-dv / v).max()) for v, dv in zip(self, change, strict=True)]
        return 1.0 / max(1.0, *shrinking)


def _newton_system(
    hessian: Array, indicator: Array, at: _PrimalDual
) -> Callable[[Array, Array, Array], _PrimalDual]:
    """Linearise the optimality conditions at an interior point, reduced to (H + D) dz = ... .

    Returns a solver for the changes that move the products u a, w b, slack y by given amounts, to
    first order.
    """
    p, q = at.u / at.a, at.w / at.b
    d = 1.0 / (p + q)
    factor = _factor(hessian + np.diag(d))
    pull = (d * (p - q))[:, None] * indicator
    response = cho_solve(factor, pull, check_finite=False)
    schur = pull.T @ response + np.diag(at.slack / at.y + (4.0 * p * q * d) @ indicator)

    def solve(cu: Array, cw: Array, cs: Array) -> _PrimalDual:
        rho = cu / at.a - cw / at.b
        plain = cho_solve(factor, d * rho, check_finite=False)
        right = cs / at.y + (cu / at.a + cw / at.b) @ indicator - pull.T @ (rho - plain)
        dy = np.asarray(np.linalg.solve(schur, right), dtype=float)
        slopes = np.asarray(hessian @ (plain - response @ dy), dtype=float)
        each: Array = indicator @ dy
        da, db = each + slopes, each - slopes
        du, dw = (cu - at.u * da) / at.a, (cw - at.w * db) / at.b
        return _PrimalDual(du, dw, -(du + dw) @ indicator, da, db, dy)

    return solve


def _interior_point(
    hessian: Array, g: Array, x: Array, rows: npt.NDArray[np.intp], radius: float, tol: float
) -> tuple[Array, Array]:
    """Minimise the same quadratic by a primal-dual method; (solution, its guess at zeros made).

    With z = u - w, slopes s = g + H (z - x) and a multiplier y per row, the solution satisfies

        u, w >= 0,   slack = radius - sum_row (u + w) >= 0,   y >= 0,
        a = y + s >= 0,   b = y - s >= 0,   u a = w b = slack y = 0.

    All but the products hold throughout; those are driven to zero by predictor-corrector steps
    (Mehrotra, 1992).
    """
    counts = np.bincount(rows)
    indicator = (rows[:, None] == np.arange(len(counts))).astype(float)
    margin = 0.025 * radius / counts[rows]
    u = 0.9 * np.maximum(x, 0.0) + margin
    w = 0.9 * np.maximum(-x, 0.0) + margin
    slopes = g + hessian @ (u - w - x)
    steepest: Array = np.abs(slopes[:, None] * indicator).max(axis=0) + np.finfo(float).tiny
    y = 1.1 * steepest
    each = indicator @ y
    at = _PrimalDual(u, w, radius - (u + w) @ indicator, each + slopes, each - slopes, y)
    for _ in range(60):
        gap = at.gap()
        if gap <= tol:
            break
        try:
            solve = _newton_system(hessian, indicator, at)
            ua, wb, sl = at.u * at.a, at.w * at.b, at.slack * at.y
            ahead = solve(-ua, -wb, -sl)
            left = at.moved(at.longest(ahead), ahead).gap() / gap
            centre = left**3 * gap / (2 * len(g) + len(counts))
            step = solve(
                centre - ua - ahead.u * ahead.a,
                centre - wb - ahead.w * ahead.b,
                centre - sl - ahead.slack * ahead.y,
            )
        except np.linalg.LinAlgError:  # rounding, when variables are all but zero
            break
        t = 0.99 * at.longest(step)
        at = at.moved(t, step)
        if t < 0.1:  # the limit of rounding, for a nearly singular Hessian
            break
    # Which of each pair is the zero one?
    z, each = at.u - at.w, indicator @ at.y
    tight = at.slack / radius < at.y / steepest
    nonzero = np.maximum(at.u * each - radius * at.a, at.w * each - radius * at.b) > 0.0
    sparse = np.where(nonzero | ~tight[rows], z, 0.0)
    norms = np.abs(sparse) @ indicator
    grow = np.divide(radius, norms, out=np.ones(len(norms)), where=tight & (norms > 0.0))
    return z, sparse * grow[rows]


def decompose(
    evaluate: Callable[[Array], Point],
    objective: Objective,
    lmo: Callable[[Array], Array],
    start: Point,
    limits: Limits,
) -> Outcome:
    """Simplicial decomposition, for sets that only know linear minimisation.

    x is a convex combination of vertices (and the start). Each round adds the vertex the gradient
    points to and minimises over the hull of all, which is :func:`descend` on the weights over a
    simplex, to a tenth of the gap; weights that become zero drop their vertex. The certificate
    is the gap over the whole set.
    """
    point = best = start
    shape = start.x.shape
    atoms = point.x.ravel()[None, :]
    weights = np.ones(1)
    for iteration in range(limits.iterations + 1):
        if limits.reached(best):
            return Outcome(best, iteration, "converged")
        if iteration == limits.iterations:
            break
        if time.perf_counter() > limits.deadline:
            return Outcome(best, iteration, "time")
        keep = weights > 0.0
        atoms = np.vstack([atoms[keep], lmo(point.gradient).ravel()])
        weights = np.append(weights[keep], 0.0)

        def on_hull(w: Array, atoms: Array = atoms) -> Point:
            value, gradient = objective((w @ atoms).reshape(shape))
            slopes = atoms @ gradient.ravel()
            slopes -= slopes.min()  # constants mean nothing on the simplex
            return Point(w, value, slopes, float(slopes @ w))

        inside = limits._replace(tol=0.0, least=0.1 * point.gap, iterations=50)
        inner = descend(on_hull, QuasiNewton(project_simplex), on_hull(weights), inside)
        if inner.iterations == 0:
            return Outcome(best, iteration, "stalled")
        weights = inner.point.x
        point = evaluate((weights @ atoms).reshape(shape))
        if point.gap <= best.gap:
            best = point
    return Outcome(best, limits.iterations, "iterations")
