"""Every method again in plain NumPy, straight from the paper; nothing of fastfw is imported.

These functions are what the package is tested against and what its benchmarks call "NumPy as the
paper writes it".  They are written to be compared with the pseudocode line by line, not to be
fast: batches are gathered (``A = X[rows]``), gradients are two matrix products each, nothing is
shared between products.

Conventions
-----------
``W``, ``x``, ``v``, ``d``
    (C, d) arrays: one row per class.  The paper writes W as d x C and bounds column sums; here it
    is row sums.
``A``, ``y``
    One batch: (B, d) features and (B,) integer labels.  ``batches`` is a sequence of such pairs.
``t``, ``k``
    Count from 1, as in the paper.
``step``, ``momentum``
    A float or a callable of ``t`` (of ``k`` in the adversarial methods).

The dtype of the features and of the start is kept throughout: float32 in, float32 out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Schedule = float | Callable[[int], float]
Batches = Sequence[tuple[Array, Array]]


# --- schedules and batches ------------------------------------------------------------------------


def power_schedule(c: float, e: float) -> Callable[[int], float]:
    """``t -> min(c / (t + 1)**e, 1)`` for t = 1, 2, ..."""
    return lambda t: min(c / (t + 1) ** e, 1.0)


def value_at(schedule: Schedule, t: int) -> float:
    """Value of a schedule, which is a float or a callable, in round ``t``."""
    return float(schedule(t)) if callable(schedule) else float(schedule)


def gather(X: Array, y: Array, rows: Array) -> list[tuple[Array, Array]]:
    """Batches of given rows: ``rows`` is (T, B), the result T pairs ``(X[rows], y[rows])``."""
    return [(X[r], y[r]) for r in rows]


# --- softmax regression ---------------------------------------------------------------------------


def log_sum_exp(Z: Array) -> Array:
    """Row by row ``log(sum_j exp(z_j))``, the row's maximum subtracted first."""
    top = Z.max(axis=1)
    return np.asarray(top + np.log(np.exp(Z - top[:, None]).sum(axis=1)))


def softmax(Z: Array) -> Array:
    """Row by row ``exp(z_j) / sum_i exp(z_i)``, the row's maximum subtracted first."""
    E = np.exp(Z - Z.max(axis=1, keepdims=True))
    return np.asarray(E / E.sum(axis=1, keepdims=True))


def _scale(reduction: str, n: int) -> float:
    """Weight of one sample: 1/n for the mean, 1 for the sum (the paper's formula)."""
    return {"mean": 1.0 / n, "sum": 1.0}[reduction]


def loss(W: Array, A: Array, y: Array, reduction: str = "mean") -> float:
    """Softmax loss ``sum_i log(sum_j exp(z_ij)) - z_iy_i`` with Z = A W^T, or its mean."""
    Z = A @ W.T
    own = Z[np.arange(len(y)), y]
    return float((log_sum_exp(Z) - own).sum() * _scale(reduction, len(y)))


def gradient(W: Array, A: Array, y: Array, reduction: str = "mean") -> Array:
    """Gradient ``R^T A`` of the loss, R = softmax(A W^T) - onehot(y); divided by B for the mean."""
    return weighted_gradient(W, A, y, _scale(reduction, len(y)))


def weighted_gradient(W: Array, A: Array, y: Array, weight: float | Array) -> Array:
    """Gradient of the sum of the samples' losses, each times a weight: one number, or (B, 1)."""
    R = softmax(A @ W.T)
    R[np.arange(len(y)), y] -= 1.0
    R *= weight
    return np.asarray(R.T @ A)


def loss_and_gradient(W: Array, A: Array, y: Array, reduction: str = "mean") -> tuple[float, Array]:
    """Loss and gradient from one forward product and one exponential per logit."""
    Z = A @ W.T
    own = Z[np.arange(len(y)), y]
    top = Z.max(axis=1)
    E = np.exp(Z - top[:, None])
    S = E.sum(axis=1)
    scale = _scale(reduction, len(y))
    value = float((top + np.log(S) - own).sum() * scale)
    R = E / S[:, None]
    R[np.arange(len(y)), y] -= 1.0
    R *= scale
    return value, np.asarray(R.T @ A)


def sub_batch_gradient(W: Array, A: Array, y: Array, picked: Array, reduction: str) -> Array:
    """Unbiased estimate of the batch's gradient from the rows ``picked`` of the batch.

    The mean of the sub-batch, or for the sum over B rows B / b times the sum of the sub-batch.
    """
    g = gradient(W, A[picked], y[picked], reduction)
    return g if reduction == "mean" else g * (len(y) / len(picked))


# --- the row-wise l1 ball -------------------------------------------------------------------------


def lmo_parts(g: Array, radius: float) -> tuple[Array, Array]:
    """Position and value of the only nonzero entry of each row of the vertex.

    Per row: the first index of largest ``|g_i|``, the value ``-radius * sign(g_i)`` there, and
    sign(0) = sign(-0) = +1, so that the result is a vertex whatever the direction.
    """
    indices = np.argmax(np.abs(g), axis=1)
    picked = g[np.arange(len(g)), indices]
    values = np.where(picked >= 0, -radius, radius).astype(g.dtype)
    return indices, values


def lmo(g: Array, radius: float) -> Array:
    """Linear minimisation oracle: a vertex v of the row l1 ball that minimises ``<g, v>``."""
    indices, values = lmo_parts(g, radius)
    v = np.zeros_like(g)
    v[np.arange(len(g)), indices] = values
    return v


def project_l1(z: Array, radius: float) -> Array:
    """Euclidean projection of a vector onto the l1 ball, by sorting (Duchi et al. 2008, fig. 1).

    Where ``||z||_1 > radius`` the projection shrinks every entry by the one theta for which the
    result has norm ``radius``.  With u = sorted |z|, largest first, the shrunk entries are the
    first k of u, k the largest index with ``u_k > (u_1 + ... + u_k - radius) / k``.
    """
    size = np.abs(z)
    if size.sum() <= radius:
        return z.copy()
    u = np.sort(size)[::-1]
    thetas = (np.cumsum(u) - radius) / np.arange(1, len(u) + 1)
    theta = thetas[np.nonzero(u > thetas)[0][-1]]
    return np.asarray(np.sign(z) * np.maximum(size - theta, 0.0))


def project(x: Array, radius: float) -> Array:
    """Projection onto the row l1 ball: every row on its own."""
    return np.array([project_l1(row, radius) for row in x])


def frank_wolfe_gap(x: Array, g: Array, radius: float) -> float:
    """Frank-Wolfe gap ``max_v <g, x - v>`` over the row l1 ball (equation (4) of the paper)."""
    return float((g * (x - lmo(g, radius))).sum())


# --- the stochastic setting -----------------------------------------------------------------------


class Run(NamedTuple):
    """What a whole run leaves behind.

    Attributes
    ----------
    iterates : (T + 1, C, d) array
        Decisions x_1, ..., x_{T+1}; the last one is never played.
    losses : (T,) array
        f_t(x_t), before the update of round t.
    directions : (T, C, d) array
        What the oracle was asked about in round t (``d_t`` or ``g_t``).
    """

    iterates: Array
    losses: Array
    directions: Array


Rounds = Iterator[tuple[float, Array, Array]]


def collected(start: Array, rounds: Rounds) -> Run:
    """Put rounds together: ``f_t(x_t)``, ``x_{t+1}`` and what the oracle was asked about."""
    losses, xs, ds = zip(*rounds, strict=True)
    return Run(np.array([start, *xs]), np.array(losses), np.array(ds))


def whole_run(rounds: Callable[..., Rounds]) -> Any:
    """Make a method that plays round by round one that plays all; ``.rounds`` is the former."""

    @wraps(rounds)
    def run(start: Array, *arguments: Any, **options: Any) -> Run:
        return collected(start, rounds(start, *arguments, **options))

    run.rounds = rounds  # type: ignore[attr-defined]
    return run


@whole_run
def orgfw(
    start: Array,
    batches: Batches,
    radius: float,
    step: Schedule,
    momentum: Schedule,
    reduction: str = "mean",
) -> Rounds:
    """ORGFW, Algorithm 1: ``step`` is eta_t, ``momentum`` is rho_t (not read in round 1).

    Four matrix products a round.
    """
    x_prev, x = start, start  # input: x_0 = x_1
    for t, (A, y) in enumerate(batches, start=1):  # 1: for t = 1, ..., T
        value, g = loss_and_gradient(x, A, y, reduction)  # 2: play x_t, receive f_t and gradient
        if t == 1:  # 3: if t = 1
            d = g  # 4: d_t <- grad F_t(x_t)
        else:  # 5: else
            g_prev = gradient(x_prev, A, y, reduction)  # 2: the gradient at x_{t-1}, same batch
            d = g + (1.0 - value_at(momentum, t)) * (d - g_prev)  # 6: the recursive estimator
        v = lmo(d, radius)  # 8: v_t <- argmin <d_t, v>
        x_prev, x = x, x + value_at(step, t) * (v - x)  # 9: x_{t+1} <- x_t + eta_t (v_t - x_t)
        yield value, x, d


@whole_run
def osfw(
    start: Array,
    batches: Batches,
    radius: float,
    step: Schedule,
    momentum: Schedule,
    reduction: str = "mean",
) -> Rounds:
    """OSFW (Chen et al. 2018): averaged stochastic gradients, d_0 = 0; two products a round."""
    x, d = start, np.zeros_like(start)
    for t, (A, y) in enumerate(batches, start=1):
        value, g = loss_and_gradient(x, A, y, reduction)  # play x_t, receive f_t and gradient
        rho = value_at(momentum, t)
        d = (1.0 - rho) * d + rho * g  # d_t <- (1 - rho_t) d_{t-1} + rho_t grad F_t(x_t)
        v = lmo(d, radius)  # v_t <- argmin <d_t, v>
        x = x + value_at(step, t) * (v - x)  # x_{t+1} <- x_t + eta_t (v_t - x_t)
        yield value, x, d


@whole_run
def ofw(
    start: Array,
    batches: Batches,
    radius: float,
    step: Schedule,
    reduction: str = "mean",
) -> Rounds:
    """OFW (Hazan and Kale 2012): the gradient of all losses so far, at the newest decision.

    Two products a round for every batch so far.
    """
    x, past = start, list[tuple[Array, Array]]()
    for t, (A, y) in enumerate(batches, start=1):
        value, total = loss_and_gradient(x, A, y, reduction)  # play x_t, receive f_t
        for earlier in past:
            total = total + gradient(x, *earlier, reduction)
        past.append((A, y))
        g = total / t  # g_t <- (1/t) sum_{tau <= t} grad f_tau(x_t)
        v = lmo(g, radius)  # v_t <- argmin <g_t, v>
        x = x + value_at(step, t) * (v - x)  # x_{t+1} <- x_t + eta_t (v_t - x_t)
        yield value, x, g


@whole_run
def regularised_ofw(
    start: Array,
    batches: Batches,
    radius: float,
    step: Schedule,
    c: float,
    rounds: int | None,
    reduction: str = "mean",
) -> Rounds:
    """RegularizedOFW (Hazan 2016): ``step`` is sigma_t, eta = c / T^(3/4) with T = ``rounds``.

    With ``rounds=None`` the horizon is not known and round t uses ``eta = c / t^(3/4)``.
    """
    x, total = start, np.zeros_like(start)
    for t, (A, y) in enumerate(batches, start=1):
        eta = c / (t if rounds is None else rounds) ** 0.75
        value, g_t = loss_and_gradient(x, A, y, reduction)  # play x_t, receive f_t and gradient
        total = total + g_t  # sum_{tau <= t} grad f_tau(x_tau)
        g = total + (2.0 / eta) * (x - start)  # g_t <- total + (2 / eta) (x_t - x_1)
        v = lmo(g, radius)  # v_t <- argmin <g_t, v>
        x = x + value_at(step, t) * (v - x)  # x_{t+1} <- x_t + sigma_t (v_t - x_t)
        yield value, x, g


class ActiveSet:
    """Whole vertices with their weights; x_1 carries the weight that is left.

    Attributes
    ----------
    start : (C, d) array
        x_1.
    start_weight : float
        Its weight; 1 before the first round.
    vertices : list of (C, d) arrays
        Active vertices, in the order in which they became active.
    weights : list of float
        Their weights.
    frank_wolfe_steps : int
        Number n of Frank-Wolfe steps taken so far.
    """

    def __init__(self, start: Array) -> None:
        self.start = start
        self.start_weight = 1.0
        self.vertices: list[Array] = []
        self.weights: list[float] = []
        self.frank_wolfe_steps = 0

    def find(self, v: Array) -> int | None:
        """Place of a vertex among the active ones, None where it is not active."""
        for i, a in enumerate(self.vertices):
            if np.array_equal(a, v):
                return i
        return None

    def scale(self, factor: float) -> None:
        """Multiply every weight, the one of x_1 included."""
        self.start_weight *= factor
        self.weights = [w * factor for w in self.weights]

    def add(self, v: Array, weight: float) -> None:
        """Give a vertex more weight, making it active if it was not."""
        i = self.find(v)
        if i is None:
            self.vertices.append(v)
            self.weights.append(weight)
        else:
            self.weights[i] += weight

    def drop(self, i: int) -> None:
        """Forget an active vertex."""
        del self.vertices[i], self.weights[i]


class OAWRound(NamedTuple):
    """What one round of OAW did: "frank-wolfe", "away" or "drop", and where it moved."""

    loss: float
    x_next: Array
    direction: Array
    vertex: Array
    kind: str


def oaw_round(
    x: Array,
    active: ActiveSet,
    past: Batches,
    step: Schedule,
    radius: float,
    reduction: str = "mean",
) -> OAWRound:
    """One round of OAW (Lafond et al. 2015, with whole vertices).  Changes ``active``.

    A Frank-Wolfe step with step size 1 leaves all other weights at exactly 0; such vertices are
    no longer part of the decision and are dropped.
    """
    value, total = loss_and_gradient(x, *past[-1], reduction)  # play x_t, receive f_t
    for A, y in past[:-1]:
        total = total + gradient(x, A, y, reduction)
    g = total / len(past)  # g <- (1/t) sum_{tau <= t} grad f_tau(x_t)
    v = lmo(g, radius)  # v <- argmin <g, v>
    slopes = [float((g * a).sum()) for a in active.vertices]
    i = int(np.argmax(slopes)) if slopes else None  # a <- active vertex of largest <g, a>
    if i is None or float((g * v).sum()) + slopes[i] <= 2.0 * float((g * x).sum()):
        # Frank-Wolfe step: the counter goes up before the schedule is read.
        active.frank_wolfe_steps += 1
        eta = value_at(step, active.frank_wolfe_steps)
        x_next = x + eta * (v - x)
        active.scale(1.0 - eta)
        active.add(v, eta)
        for j in reversed(range(len(active.weights))):
            if active.weights[j] == 0.0:
                active.drop(j)
        return OAWRound(value, x_next, g, v, "frank-wolfe")
    # Away step: gamma_max is where the weight of a reaches 0.
    a, w = active.vertices[i], active.weights[i]
    # w >= 1 happens by rounding only: x is a itself, no step can empty it.
    gamma_max = w / (1.0 - w) if w < 1.0 else math.inf
    gamma = min(value_at(step, active.frank_wolfe_steps), gamma_max)
    x_next = x + gamma * (x - a)
    active.scale(1.0 + gamma)
    if gamma == gamma_max:
        active.drop(i)
        return OAWRound(value, x_next, g, a, "drop")
    active.weights[i] -= gamma
    return OAWRound(value, x_next, g, a, "away")


class OAWRun(NamedTuple):
    """A run of OAW: as `Run`, and what happened to the active set.

    ``vertices[t - 1]`` is v in a Frank-Wolfe step and a in an away step.  ``kinds`` names the
    steps.  ``weights[t]`` and ``start_weights[t]`` belong to x_{t+1}.
    """

    iterates: Array
    losses: Array
    directions: Array
    vertices: Array
    kinds: list[str]
    weights: list[list[float]]
    start_weights: list[float]


def oaw_rounds(
    active: ActiveSet, batches: Batches, radius: float, step: Schedule, reduction: str = "mean"
) -> Iterator[OAWRound]:
    """Play OAW round by round, from x_1 of an active set that is otherwise empty."""
    x, past = active.start, list[tuple[Array, Array]]()
    for batch in batches:
        past.append(batch)
        played = oaw_round(x, active, past, step, radius, reduction)
        x = played.x_next
        yield played


def oaw(
    start: Array,
    batches: Batches,
    radius: float,
    step: Schedule,
    reduction: str = "mean",
) -> OAWRun:
    """OAW: OFW with away steps; x_1 is never an away vertex."""
    active = ActiveSet(start)
    xs, losses, ds, vs = [start], [], [], []
    kinds: list[str] = []
    weights, start_weights = [list[float]()], [1.0]
    for value, x, g, v, kind in oaw_rounds(active, batches, radius, step, reduction):
        xs.append(x)
        losses.append(value)
        ds.append(g)
        vs.append(v)
        kinds.append(kind)
        weights.append(list(active.weights))
        start_weights.append(active.start_weight)
    arrays = (np.array(a) for a in (xs, losses, ds, vs))
    return OAWRun(*arrays, kinds, weights, start_weights)


# --- base learners for online linear optimisation -------------------------------------------------


class FTPL:
    """Follow the perturbed leader: ``v = LMO( (c / sqrt(T)) sum_{tau < t} d_tau + n_t )``.

    Parameters
    ----------
    shape : (C, d)
    radius : float
        Of the row l1 ball.
    scale : float
        The constant c.
    horizon : int
        T.
    noise : callable
        ``noise(t)`` is the (C, d) array n_t; t = ``first_round``, ``first_round`` + 1, ...
    dtype : dtype
        Of the sum and the vertices.
    first_round : int
        Number of the learner's first round.
    """

    def __init__(
        self,
        shape: tuple[int, int],
        radius: float,
        scale: float,
        horizon: int,
        noise: Callable[[int], Array],
        dtype: Any = np.float64,
        first_round: int = 1,
    ) -> None:
        self.radius = radius
        self.rate = scale / math.sqrt(horizon)
        self.noise = noise
        self.total = np.zeros(shape, dtype)
        self.t = first_round

    def play(self) -> Array:
        """Vertex of the perturbed sum of the directions seen so far."""
        n = np.asarray(self.noise(self.t), dtype=self.total.dtype)
        return lmo(self.rate * self.total + n, self.radius)

    def observe(self, d: Array) -> None:
        """Receive the linear loss ``<d, .>`` of this round."""
        self.total = self.total + d
        self.t += 1


class OGD:
    """Online gradient descent: ``x <- P(x - gamma_t d)``, from ``start``."""

    def __init__(self, start: Array, radius: float, step: Schedule) -> None:
        self.x = start
        self.radius = radius
        self.step = step
        self.t = 1

    def play(self) -> Array:
        """Return the current point."""
        return self.x

    def observe(self, d: Array) -> None:
        """Receive the linear loss ``<d, .>`` of this round."""
        self.x = project(self.x - value_at(self.step, self.t) * d, self.radius)
        self.t += 1


class RFTL:
    """Regularised follow the leader: ``argmin gamma sum <d, x> + ||x||^2 / 2 = P(-gamma sum d)``.

    A schedule is read as gamma_t once t directions have been seen.
    """

    def __init__(
        self, shape: tuple[int, int], radius: float, step: Schedule, dtype: Any = np.float64
    ) -> None:
        self.radius = radius
        self.step = step
        self.total = np.zeros(shape, dtype)
        self.seen = 0

    def play(self) -> Array:
        """Projection of the scaled sum of the directions seen so far; zeros at first."""
        if self.seen == 0:
            return np.zeros_like(self.total)
        return project(-value_at(self.step, self.seen) * self.total, self.radius)

    def observe(self, d: Array) -> None:
        """Receive the linear loss ``<d, .>`` of this round."""
        self.total = self.total + d
        self.seen += 1


# --- the adversarial setting ----------------------------------------------------------------------

# rows(t, k): positions within the batch of round t of the sub-batch of inner step k.
SubBatches = Callable[[int, int], Array]
# base(k): the base learner of inner step k.
BaseLearners = Callable[[int], Any]


class MetaRun(NamedTuple):
    """A run of MORGFW or MetaFrankWolfe.

    Attributes
    ----------
    iterates : (T + 1, C, d) array
        Decisions x_t = x_t^(K+1); the last one is never played.
    losses : (T,) array
        f_t(x_t).
    inner : list of T (K + 1, C, d) arrays
        The inner points x_t^(1), ..., x_t^(K+1).
    vertices : list of T (K, C, d) arrays
        The base learners' answers v_t^(1), ..., v_t^(K).
    directions : list of T (K, C, d) arrays
        What they were fed: d_t^(1), ..., d_t^(K).
    """

    iterates: Array
    losses: Array
    inner: list[Array]
    vertices: list[Array]
    directions: list[Array]


def meta_play(x_1: Array, bases: Sequence[Any], step: Schedule) -> tuple[list[Array], list[Array]]:
    """Algorithm 2, lines 2-6: K Frank-Wolfe steps towards the base learners' answers.

    Returns the K + 1 inner points, the last of which is played, and the K answers.
    """
    x = x_1  # 2: x^(1) = x_1
    points, answers = [x], list[Array]()
    for k, base in enumerate(bases, start=1):  # 3: for k = 1, ..., K
        v = base.play()  # 4: v^(k), from base learner k, which has seen the rounds before t
        eta = value_at(step, k)
        x = (1.0 - eta) * x + eta * v  # 5: x^(k+1) <- (1 - eta_k) x^(k) + eta_k v^(k)
        points.append(x)
        answers.append(v)
    return points, answers


def morgfw_directions(
    points: list[Array],
    A: Array,
    y: Array,
    momentum: Schedule,
    rows: Callable[[int], Array] | None,
    reduction: str = "mean",
    *,
    literally: bool = False,
) -> list[Array]:
    """Algorithm 2, lines 8-14: the recursive estimator along the inner points.

    ``rows(k)`` gives the positions of sub-batch k; None means the whole batch in every inner step,
    where the estimator is the exact gradient and is replaced by it, as the paper allows, unless
    line 13 is to be taken ``literally``. With sub-batches or then: four products for each k > 1.
    """

    def at(x: Array, picked: Array | None) -> Array:
        if picked is None:
            return gradient(x, A, y, reduction)
        return sub_batch_gradient(x, A, y, picked, reduction)

    ds: list[Array] = []
    for k, x in enumerate(points[:-1], start=1):  # 8: for k = 1, ..., K
        picked = None if rows is None else rows(k)  # 9: sample xi^(k)
        g = at(x, picked)
        if k == 1 or (rows is None and not literally):  # 10: if k = 1
            ds.append(g)  # 11: d^(1) <- grad F_t(x^(1), xi^(1))
        else:  # 12: else
            g_prev = at(points[k - 2], picked)
            rho = value_at(momentum, k)
            ds.append(g + (1.0 - rho) * (ds[-1] - g_prev))  # 13: the recursive estimator
    return ds


def meta_frank_wolfe_directions(
    points: list[Array],
    A: Array,
    y: Array,
    momentum: Schedule,
    rows: Callable[[int], Array] | None,
    reduction: str = "mean",
) -> list[Array]:
    """MetaFrankWolfe (Chen et al. 2018): ``d^(k) = (1 - rho_k) d^(k-1) + rho_k grad F(x^(k))``.

    d^(0) = 0.  ``rows`` as in `morgfw_directions`; None means the whole batch.
    """
    d = np.zeros_like(points[0])
    ds: list[Array] = []
    for k, x in enumerate(points[:-1], start=1):
        if rows is None:
            g = gradient(x, A, y, reduction)
        else:
            g = sub_batch_gradient(x, A, y, rows(k), reduction)
        rho = value_at(momentum, k)
        d = (1.0 - rho) * d + rho * g
        ds.append(d)
    return ds


Directions = Callable[
    [list[Array], Array, Array, Schedule, Callable[[int], Array] | None, str], list[Array]
]


class MetaRound(NamedTuple):
    """What one round of Algorithm 2 leaves behind: K + 1 points, K vertices, K directions."""

    loss: float
    inner: list[Array]
    vertices: list[Array]
    directions: list[Array]


def meta_round(
    x_1: Array,
    bases: Sequence[Any],
    A: Array,
    y: Array,
    step: Schedule,
    momentum: Schedule,
    rows: Callable[[int], Array] | None = None,
    reduction: str = "mean",
    directions: Directions = morgfw_directions,
) -> MetaRound:
    """One round of Algorithm 2.  Feeds ``bases``."""
    points, answers = meta_play(x_1, bases, step)  # 2-6
    value = loss(points[-1], A, y, reduction)  # 7: play x^(K+1), receive f_t
    ds = directions(points, A, y, momentum, rows, reduction)  # 8-14
    for base, d in zip(bases, ds, strict=True):
        base.observe(d)  # 15: feed <v^(k), d^(k)> to base learner k
    return MetaRound(value, points, answers, ds)


def meta_run(
    start: Array,
    batches: Batches,
    inner_steps: int,
    base: BaseLearners,
    step: Schedule,
    momentum: Schedule,
    rows: SubBatches | None = None,
    reduction: str = "mean",
    directions: Directions = morgfw_directions,
    first_round: int = 1,
) -> MetaRun:
    """Algorithm 2: MORGFW, or MetaFrankWolfe with its ``directions``.

    Parameters
    ----------
    start : (C, d) array
        x_1, where every round's inner steps begin.
    batches : sequence of (A, y)
        The rounds.
    inner_steps : int
        K.
    base : callable
        ``base(k)`` makes base learner k = 1, ..., K.
    step, momentum : float or callable of k
        eta_k and rho_k.
    rows : callable or None
        ``rows(t, k)``: positions within the batch of round t of the sub-batch of inner step k.
        None: the whole batch.
    reduction : {"mean", "sum"}
        Of the loss.
    directions : callable
        `morgfw_directions` or `meta_frank_wolfe_directions`.
    first_round : int
        Number of the first round, handed to ``rows``.
    """
    bases = [base(k) for k in range(1, inner_steps + 1)]
    xs, losses = [], []
    inner, vertices, fed = [], [], []
    for t, (A, y) in enumerate(batches, start=first_round):  # 1: for t = 1, ..., T
        rows_t = None if rows is None else partial(rows, t)
        r = meta_round(start, bases, A, y, step, momentum, rows_t, reduction, directions)
        xs.append(r.inner[-1])
        losses.append(r.loss)
        inner.append(np.array(r.inner))
        vertices.append(np.array(r.vertices))
        fed.append(np.array(r.directions))
    xs.append(meta_play(start, bases, step)[0][-1])
    return MetaRun(np.array(xs), np.array(losses), inner, vertices, fed)


#: MORGFW, Algorithm 2.  Theory: K = T, 1/(k + 1) for both schedules.
morgfw = meta_run
#: MetaFrankWolfe.  Theory: K = ceil(T^(3/2)).
meta_frank_wolfe = partial(meta_run, directions=meta_frank_wolfe_directions)


def epochs(rounds: int) -> list[tuple[int, int]]:
    """Doubling trick: epochs of 1, 2, 4, ... rounds until there are more than ``rounds`` rounds.

    Returns pairs (number of the first round, length).  The last epoch begins at or before round
    ``rounds`` + 1, whose decision is part of a run, and may be cut short.
    """
    pairs, first, length = [], 1, 1
    while first <= rounds + 1:
        pairs.append((first, length))
        first, length = first + length, 2 * length
    return pairs


def doubling(
    start: Array,
    batches: Batches,
    inner_steps: Callable[[int], int],
    base: Callable[..., Any],
    step: Schedule,
    momentum: Schedule,
    rows: SubBatches | None = None,
    reduction: str = "mean",
    directions: Directions = morgfw_directions,
) -> MetaRun:
    """Algorithm 2 without a known T: a fresh learner for every epoch of `epochs`.

    ``inner_steps(n)`` is K in an epoch of n rounds: n for MORGFW, ceil(n^(3/2)) for
    MetaFrankWolfe.  ``base(k, length=n, first_round=t)`` makes base learner k of the epoch of n
    rounds that begins with round t.  ``rows(t, k)`` counts t through the whole run.
    """
    xs: list[Array] = []
    losses: list[float] = []
    inner, vertices, fed = list[Array](), list[Array](), list[Array]()
    for first, n in epochs(len(batches)):
        bases = partial(base, length=n, first_round=first)
        run = meta_run(
            start,
            batches[first - 1 : first - 1 + n],
            inner_steps(n),
            bases,
            step,
            momentum,
            rows,
            reduction,
            directions,
            first,
        )
        xs.extend(run.iterates[:-1])
        losses.extend(run.losses)
        inner.extend(run.inner)
        vertices.extend(run.vertices)
        fed.extend(run.directions)
    xs.append(run.iterates[-1])  # the newest epoch's next decision
    return MetaRun(np.array(xs), np.array(losses), inner, vertices, fed)
