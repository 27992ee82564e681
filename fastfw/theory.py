"""The paper's bounds, and those of later methods, as functions.

Each function evaluates one statement: what it bounds, under which step sizes, and where it
is printed, or how it is proved, stands in its docstring.  Their arguments are those of one table
below, which says what each means and checks it.

D is a length in the space of decisions, the loss has its own unit, sigma is loss per length
and L loss per length squared.  Everything that depends on the loss must belong to the same
reduction; the sum over B samples has B times the L, sigma, M and gap of the mean.  `log` is the
natural logarithm.

What is no number, or no integer where one is wanted, raises a TypeError; an argument outside the
range stated, or shapes that do not go together, a ValueError.  A bound that is larger than every
float is infinite.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any, Literal, NamedTuple, ParamSpec, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfw._checks import choice, features, non_negative_float, positive_float, positive_int
from fastfw._csr import row_norms

__all__ = [
    "SoftmaxDirections",
    "SoftmaxNoise",
    "convex_convergence_bound",
    "ftpl_regret_bound",
    "gradient_error_bound",
    "line_search_regret_bound",
    "morgfw_regret_bound",
    "nonconvex_gap_bound",
    "orgfw_regret_bound",
    "ospf_regret_bound",
    "softmax_direction_bounds",
    "softmax_noise_bounds",
    "strongly_convex_regret_bound",
]

FloatOrArray: TypeAlias = float | npt.NDArray[np.float64]
Check: TypeAlias = Callable[[Any, str], Any]
P = ParamSpec("P")


def _rounds(rounds: npt.ArrayLike, name: str = "rounds") -> npt.NDArray[np.float64]:
    """Return round numbers as float64 (T**2 of a large int64 would overflow)."""
    given = np.asarray(rounds)
    if given.dtype.kind not in "iu":
        raise TypeError(
            f"rounds must be an integer or an array of integers, but it is {rounds!r}"
            f" of dtype {given.dtype}"
        )
    if given.size and given.min() < 1:
        raise ValueError(f"rounds must be at least 1, but it holds {given.min()}")
    return given.astype(np.float64)


def _probability(value: float, name: str) -> float:
    number = positive_float(value, name)
    if number >= 1.0:
        raise ValueError(
            f"{name} must be a number between 0 and 1, both excluded, but it is {value}; it is the "
            "probability with which the bound may fail, for instance 0.05"
        )
    return number


def _exponent(value: float, name: str) -> float:
    number = positive_float(value, name)
    if number > 1.0:
        raise ValueError(f"{name} must be a number in (0, 1], but it is {value}")
    return number


def _non_negative(value: npt.ArrayLike, name: str) -> npt.NDArray[np.float64]:
    """Return a number or an array of numbers, finite and at least 0, as float64."""
    given = np.asarray(value)
    if given.ndim == 0:
        return np.asarray(non_negative_float(given.item(), name))
    if given.dtype.kind not in "iuf":
        raise TypeError(f"{name} must hold numbers, but its dtype is {given.dtype}")
    bad = np.argwhere(~(np.isfinite(given) & (given >= 0)))
    if len(bad):
        place = tuple(int(i) for i in bad[0])
        raise ValueError(
            f"{name} must hold finite numbers >= 0, but {name}{list(place)} is {given[place]}"
        )
    return given.astype(np.float64)


_form = partial(choice, options=("printed", "proved"))

#: How each argument is checked, and what it means.
_ARGUMENTS: dict[str, tuple[Check, str]] = {
    "rounds": (_rounds, "Number of rounds T, or of the round, t; at least 1."),
    "smoothness": (positive_float, "L > 0, ``problem.smoothness(X)``: Lipschitz, of gradients."),
    "diameter": (positive_float, "D > 0, Euclidean, of the set."),
    "gradient_noise": (non_negative_float, "sigma >= 0: largest error of a batch's gradient."),
    "value_noise": (non_negative_float, "M >= 0: largest error of a batch's loss."),
    "initial_gap": (non_negative_float, "Loss of x_1 above the best decision's, at least 0."),
    "failure_probability": (_probability, "delta in (0, 1) with which the bound may fail."),
    "exponent": (_exponent, "alpha in (0, 1], of both schedules."),
    "form": (_form, "The formula above, or the one in the notes."),
    "base_regret": (_non_negative, "R_T >= 0: bounds each base learner's regret."),
    "scale": (positive_float, "c > 0 of the learners."),
    "l1_diameter": (positive_float, "D_1 > 0: largest l1 distance of two points of the set."),
    "direction_l1": (non_negative_float, "A >= 0: largest l1 norm of a direction, or gradient."),
    "loss_range": (non_negative_float, "W >= 0: largest difference of a direction's products."),
    "learners": (positive_int, "K >= 1."),
    "block_size": (positive_int, "k >= 1."),
    "gradient_bound": (positive_float, "G > 0: largest norm of a gradient."),
    "strong_convexity": (positive_float, "beta > 0, of every loss."),
    "set_convexity": (non_negative_float, "``strong_convexity`` of the set, 0 where it has none."),
}

#: What checks take, where that is not one float.
_KINDS: dict[Check, str] = {
    _rounds: "int or array of int",
    _non_negative: "float or array",
    _form: "{'printed', 'proved'}",
    positive_int: "int",
}

_RETURNS = """
Returns
-------
float or ndarray of float64
    The bound, in the unit of what it bounds; an array of the common shape where an argument is one.

"""


def _bound(**checks: Check) -> Callable[[Callable[P, FloatOrArray]], Callable[P, FloatOrArray]]:
    """Check the arguments of a bound by the table, or as said here, and describe them."""

    def decorate(formula: Callable[P, FloatOrArray]) -> Callable[P, FloatOrArray]:
        @wraps(formula)
        def bound(*args: Any, **given: Any) -> FloatOrArray:
            for name, value in given.items():
                if name in _ARGUMENTS:
                    given[name] = checks.get(name, _ARGUMENTS[name][0])(value, name)
            return formula(*map(_rounds, args[:1]), *args[1:], **given)  # type: ignore[arg-type]

        entries = ""
        for name in inspect.signature(formula).parameters:
            check, text = _ARGUMENTS[name]
            kind = _KINDS.get(checks.get(name, check), "float")
            entries += f"{name} : {kind}\n    {text}\n"
        described = f"Parameters\n----------\n{entries}{_RETURNS}"
        doc = inspect.cleandoc(formula.__doc__ or "")
        bound.__doc__ = doc.replace("Examples\n---", described + "Examples\n---", 1)
        return bound

    return decorate


@_bound()
def gradient_error_bound(
    rounds: npt.ArrayLike,
    *,
    smoothness: float,
    diameter: float,
    gradient_noise: float,
    failure_probability: float = 0.05,
    exponent: float = 1.0,
) -> FloatOrArray:
    r"""Bound on the error of ORGFW's gradient estimate in one round (Lemma 1).

    With :math:`\eta_t = \rho_t = (t + 1)^{-\alpha}`, with probability at least
    :math:`1 - \delta` (for each t, not for all t at once),

    .. math::

        \|d_t - \nabla \bar f(x_t)\| \le 2 \Bigl(2 L D + \frac{3^\alpha \sigma}{3^\alpha - 1}\Bigr)
        (t + 1)^{-\alpha/2} \sqrt{2 \log(4 / \delta)}.

    Notes
    -----
    For all of T rounds at once, give ``failure_probability=delta / T``.

    Examples
    --------
    >>> round(gradient_error_bound(99, smoothness=1, diameter=2, gradient_noise=1), 4)
    3.2565
    """
    t, alpha = np.asarray(rounds), exponent
    L, D, sigma = smoothness, diameter, gradient_noise
    decay = (t + 1.0) ** (-alpha / 2.0)
    root = math.sqrt(2.0 * (math.log(4.0) - math.log(failure_probability)))
    # sigma / less = 3^a sigma / (3^a - 1), for small a too
    less = -math.expm1(-alpha * math.log(3.0))
    return _total([4.0, L, D, decay, root], [2.0, sigma, decay, root], per=[1.0, less])


@_bound()
def orgfw_regret_bound(
    rounds: npt.ArrayLike,
    *,
    smoothness: float,
    diameter: float,
    gradient_noise: float,
    value_noise: float,
    initial_gap: float,
    failure_probability: float = 0.05,
) -> FloatOrArray:
    r"""Bound on ORGFW's regret in the stochastic setting (Theorem 1).

    With :math:`\eta_t = \rho_t = 1 / (t + 1)` and convex :math:`\bar f`, with probability at least
    :math:`1 - \delta` (for each T, not for all T at once),

    .. math::

        \sum_{t=1}^T f_t(x_t) - f_t(x^*) \le &(\log T + 1) \bigl(\bar f(x_1) - \bar f(x^*)\bigr)
        + \frac{L D^2 (\log T + 1)^2}{2} \\
        &+ (16 L D^2 + 16 \sigma D + 4 M) \sqrt{2 T \log(8 T / \delta)}.

    Notes
    -----
    The proof gives slightly more than the statement: ``4 M sqrt(T log(8 / delta))`` for the term
    with M.

    Examples
    --------
    >>> bound = orgfw_regret_bound(
    ...     400, smoothness=1, diameter=1, gradient_noise=1, value_noise=1, initial_gap=1
    ... )
    >>> round(bound, 2)
    3418.74
    """
    T = np.asarray(rounds)
    L, D, sigma = smoothness, diameter, gradient_noise
    logs = np.log(T) + 1.0
    root = np.sqrt(2.0 * T * (np.log(8.0 * T) - math.log(failure_probability)))
    return _total(
        [logs, initial_gap],
        [0.5, L, D, D, logs, logs],
        [16.0, L, D, D, root],
        [16.0, sigma, D, root],
        [4.0, value_noise, root],
    )


@_bound()
def convex_convergence_bound(
    rounds: npt.ArrayLike,
    *,
    smoothness: float,
    diameter: float,
    gradient_noise: float,
    initial_gap: float,
    failure_probability: float = 0.05,
) -> FloatOrArray:
    r"""Bound on the excess loss of the mean of ORGFW's decisions (Corollary 1).

    With :math:`\eta_t = \rho_t = 1 / (t + 1)`, convex :math:`\bar f` and
    :math:`\hat x = (x_1 + \cdots + x_T) / T`, with probability at least :math:`1 - \delta`,

    .. math::

        \bar f(\hat x) - \bar f(x^*) \le \frac{\log T + 1}{T} \bigl(\bar f(x_1) - \bar f(x^*)\bigr)
        + \frac{L D^2 (\log T + 1)^2}{2 T}
        + 16 (L D^2 + \sigma D) \sqrt{\frac{2 \log(4 T / \delta)}{T}}.

    Examples
    --------
    >>> bound = convex_convergence_bound(
    ...     400, smoothness=1, diameter=1, gradient_noise=1, initial_gap=1
    ... )
    >>> round(bound, 4)
    7.3664
    """
    T = np.asarray(rounds)
    L, D, sigma = smoothness, diameter, gradient_noise
    logs = np.log(T) + 1.0
    root = np.sqrt(2.0 * (np.log(4.0 * T) - math.log(failure_probability)) / T)
    return _total(
        [logs / T, initial_gap],
        [0.5 / T, L, D, D, logs, logs],
        [16.0, L, D, D, root],
        [16.0, sigma, D, root],
    )


@_bound()
def nonconvex_gap_bound(
    rounds: npt.ArrayLike,
    *,
    smoothness: float,
    diameter: float,
    gradient_noise: float,
    initial_gap: float,
    failure_probability: float = 0.05,
    form: Literal["printed", "proved"] = "printed",
) -> FloatOrArray:
    r"""Bound on the smallest Frank-Wolfe gap that ORGFW meets (Proposition 1).

    With :math:`\eta_t = \rho_t = (t + 1)^{-2/3}`, convex or not, with probability at least
    :math:`1 - \delta`, as printed,

    .. math::

        \min_{t \le T} G(x_t) \le \frac{2 (\bar f(x_1) - \bar f(x^*))}{T^{1/3}}
        + \frac{4 \log(T + 1)}{T^{1/3}}
        \Bigl(L D^2 + (2 L D^2 + 3 \sigma^2) \sqrt{2 \log(4 T / \delta)}\Bigr),

    where :math:`G(x) = \max_{u} \langle \nabla \bar f(x), x - u \rangle`.

    Notes
    -----
    The printed bound cannot hold in general: multiplying the loss by s multiplies the gap by s but
    :math:`\sigma^2` by :math:`s^2`, and for small s it fails (``tests/test_theory.py`` has an
    example).  The proof puts Lemma 1 into
    :math:`\bar f(x_{t+1}) - \bar f(x_t) \le -\eta_t G(x_t) + 2 \eta_t D \|\epsilon_t\|
    + L D^2 \eta_t^2 / 2`; the middle term is then
    :math:`4 (2 L D^2 + 3 \sigma D) \sqrt{2 \log(4 T / \delta)} / (t + 1)`, where the paper has
    :math:`2 (2 L D^2 + 3 \sigma^2)`.  With it, and otherwise the paper's steps, follows
    ``form="proved"``:

    .. math::

        \min_{t \le T} G(x_t) \le \frac{2 (\bar f(x_1) - \bar f(x^*))}{T^{1/3}}
        + \frac{\log(T + 1)}{T^{1/3}}
        \Bigl(L D^2 + 8 (2 L D^2 + 3 \sigma D) \sqrt{2 \log(4 T / \delta)}\Bigr).

    Examples
    --------
    >>> bound = nonconvex_gap_bound(
    ...     400, smoothness=1, diameter=1, gradient_noise=1, initial_gap=1
    ... )
    >>> round(bound, 3)
    77.634
    """
    T = np.asarray(rounds)
    L, D, sigma = smoothness, diameter, gradient_noise
    slow = np.log(T + 1.0) / np.cbrt(T)
    root = np.sqrt(2.0 * (np.log(4.0 * T) - math.log(failure_probability)))
    if form == "proved":
        rest = [[slow, L, D, D], [16.0, slow, L, D, D, root], [24.0, slow, sigma, D, root]]
    else:
        rest = [[4.0, slow, L, D, D], [8.0, slow, L, D, D, root], [12.0, slow, sigma, sigma, root]]
    return _total([2.0 / np.cbrt(T), initial_gap], *rest)


@_bound(initial_gap=_non_negative)
def morgfw_regret_bound(
    rounds: npt.ArrayLike,
    *,
    smoothness: float,
    diameter: float,
    gradient_noise: float,
    base_regret: npt.ArrayLike,
    initial_gap: npt.ArrayLike,
    failure_probability: float = 0.05,
) -> FloatOrArray:
    r"""Bound on MORGFW's regret in the adversarial setting (Theorem 2).

    With :math:`K = T`, :math:`\rho_k = \eta_k = 1 / (k + 1)` and convex losses, with probability
    at least :math:`1 - \delta`,

    .. math::

        \sum_{t=1}^T f_t(x_t) - f_t(x^*) \le
        16 (L D^2 + \hat\sigma D) \sqrt{2 T \log(4 T^2 / \delta)}
        + 2 L D^2 \log(T + 1) + Q + R_T.

    Here :math:`\hat\sigma` is the largest distance of a sub-batch's gradient from that of its
    batch, 0 where the whole batch is used, and Q, one number or one for each of `rounds`, is
    :math:`\max_t f_t(x_1) - f_t(x^*)`.

    Notes
    -----
    The statement follows from the proof.  Two slips on the way do not reach it: the last line in
    the appendix lacks the factor 2 under the square root, and the inequality that sums over t
    lacks a factor D beside :math:`C_3`.

    Examples
    --------
    >>> bound = morgfw_regret_bound(
    ...     100, smoothness=1, diameter=1, gradient_noise=0, base_regret=10, initial_gap=1
    ... )
    >>> round(bound, 2)
    854.45
    """
    T = np.asarray(rounds)
    L, D, sigma = smoothness, diameter, gradient_noise
    try:
        T, base, Q = np.broadcast_arrays(T, base_regret, initial_gap)
    except ValueError:
        raise ValueError(
            f"rounds, base_regret and initial_gap have shapes {T.shape}, {np.shape(base_regret)} "
            f"and {np.shape(initial_gap)}; give one value, or one for each of rounds"
        ) from None
    root = np.sqrt(2.0 * T * (np.log(4.0 * T**2) - math.log(failure_probability)))
    return _total(
        [16.0, L, D, D, root],
        [16.0, sigma, D, root],
        [2.0, L, D, D, np.log(T + 1.0)],
        [Q],
        [base],
    )


@_bound()
def ftpl_regret_bound(
    rounds: npt.ArrayLike,
    *,
    scale: float,
    l1_diameter: float,
    direction_l1: float,
    loss_range: float,
    learners: int = 1,
    failure_probability: float = 0.05,
) -> FloatOrArray:
    r"""Bound on the regret of follow-the-perturbed-leader: the :math:`R_T` of Theorem 2.

    For `FTPL` with uniform noise, drawn anew in every round, and directions :math:`d_t` that do not
    depend on its own draws, with probability at least :math:`1 - \delta` for all of K
    learners together,

    .. math::

        \sum_{t=1}^T \langle d_t, v_t \rangle - \min_{v \in M} \sum_{t=1}^T \langle d_t, v \rangle
        \le \Bigl(c W A + \frac{D_1}{2 c}\Bigr) \sqrt T + W \sqrt{\tfrac12 T \log(K / \delta)}.

    Notes
    -----
    The two terms with c are Theorem 1.1 of Kalai and Vempala, "Efficient algorithms for online
    decision problems", JCSS 71, 2005, in expectation, with :math:`\varepsilon = c / \sqrt T`: noise
    of entries up to :math:`1 / (2 \varepsilon)` costs the leader at most
    :math:`D_1 / (2 \varepsilon)`, and one direction moves the cube of noise by at most A in all,
    so that at most :math:`\varepsilon A` of its mass gets another answer, which costs at most W.
    The last term is Hoeffding's inequality for T draws that are independent given the directions,
    and the union over K learners. In `MORGFW` the direction that base learner k is fed
    depends on the draws of learners 1, ..., k - 1 only.

    Examples
    --------
    >>> bound = ftpl_regret_bound(
    ...     100, scale=1.0, l1_diameter=2.0, direction_l1=1.0, loss_range=2.0
    ... )
    >>> round(bound, 3)
    54.477
    """
    T, c, D_1, A, W = np.asarray(rounds), scale, l1_diameter, direction_l1, loss_range
    root = np.sqrt(0.5 * T * (math.log(learners) - math.log(failure_probability)))
    return _total([c, W, A, np.sqrt(T)], [0.5, D_1, np.sqrt(T)], [W, root], per=[1.0, c, 1.0])


@_bound()
def line_search_regret_bound(
    rounds: npt.ArrayLike, *, diameter: float, gradient_bound: float, set_convexity: float = 0.0
) -> FloatOrArray:
    r"""Bound on the regret of ``RegularizedOFW(rounds=T, step="line-search")``, any convex losses.

    With the default scale, and so with :math:`\eta = D / (2 G (T + 2)^{2/3})` on a strongly convex
    set, :math:`\eta = D / (2 G T^{3/4})` on others,

    .. math::

        \sum_{t=1}^T f_t(x_t) - f_t(x^*) \le \frac{D^2}{\eta} + G \sum_{t=1}^T \rho_t

    which is of order T^{2/3} on strongly convex sets and T^{3/4} on others.

    Notes
    -----
    The orders are those of Wan and Zhang, "Projection-free online learning over strongly convex
    sets", AAAI 2021; the constants are found here, round by round. Let
    :math:`F_t(x) = \eta \sum_{\tau \le t} \langle \nabla f_\tau(x_\tau), x \rangle
    + \|x - x_1\|^2`, :math:`x^*_{t+1}` its least point and h the excess of :math:`F_{t-1}` at
    :math:`x_t`, at first 0. To be the leader costs at most :math:`D^2 / \eta`, and to be late
    :math:`G \rho_t`, where :math:`\rho_t` bounds :math:`\|x_t - x^*_{t+1}\|`. With L = 2, by which
    :math:`F_t` curves, :math:`L \rho^2 / 2 \le H \le h + \eta G \rho`, H being the excess of
    :math:`F_t` at :math:`x_t`. The step leaves of it

    .. math::

        h' = H - \min\Bigl(\frac H2, \max\Bigl(\frac{H^2}{2 L D^2},
        \frac{\alpha H^{3/2}}{8} \sqrt{\frac2L}\Bigr)\Bigr)

    as the gap g is at least H and, for a set's strong convexity :math:`\alpha`, at least
    :math:`\alpha \|x - v\|^2 \|\nabla F\| / 4`, while :math:`\|\nabla F\|^2 \ge 2 L H`. After
    65,536 rounds one ceiling of h is found from where a step makes up for what a round adds.

    Examples
    --------
    >>> bound = line_search_regret_bound(
    ...     1000, diameter=2.0, gradient_bound=1.0, set_convexity=1.0
    ... )
    >>> round(bound, 2)
    673.02
    """
    times, D, G = np.asarray(rounds), diameter, gradient_bound
    alpha = _convexity_of_unit_set(set_convexity, D)
    units = np.empty(times.shape)  # of D G
    for i, T in np.ndenumerate(times):
        slope = 0.5 / ((T + 2.0) ** (2.0 / 3.0) if alpha else T**0.75)
        n = min(int(T), _BY_ROUND)
        rho, h = _distances(np.full(n, 2.0), 0.0, slope, alpha)
        h = min(_ceiling(h, 2.0, slope, alpha, power) for power in _POWERS)
        units[i] = 1.0 / slope + rho.sum() + (T - n) * min(1.0, _reach(h, 2.0, slope))
    return _total([units, D, G])


@_bound()
def strongly_convex_regret_bound(
    rounds: npt.ArrayLike,
    *,
    diameter: float,
    gradient_bound: float,
    strong_convexity: float,
    set_convexity: float = 0.0,
) -> FloatOrArray:
    r"""Bound on the regret of `StronglyConvexOFW`, losses strongly convex.

    Of order T^{1/2} on strongly convex sets and T^{2/3} on others.

    Notes
    -----
    The orders are those of Wan and Zhang, "Projection-free online learning over strongly convex
    sets", AAAI 2021. The sum of :math:`G \rho_t`, found as in `line_search_regret_bound` but with
    L = beta t for the sum of t lower bounds
    :math:`\langle \nabla f_\tau(x_\tau), x \rangle + \beta \|x - x_\tau\|^2 / 2`, the leader of
    which costs nothing; :math:`\beta (t + 1) \rho^2 / 2 \le h + G \rho`.

    Examples
    --------
    >>> bound = strongly_convex_regret_bound(
    ...     1000, diameter=2.0, gradient_bound=2.0, strong_convexity=1.0, set_convexity=1.0
    ... )
    >>> round(bound, 2)
    671.31
    """
    times, D, G, beta = np.asarray(rounds), diameter, gradient_bound, strong_convexity
    alpha = _convexity_of_unit_set(set_convexity, D)
    n = int(min(times.max(initial=1.0), _BY_ROUND))
    slope = float(_product(_product(G, per=beta), per=D))  # of beta D
    slope = min(max(slope, 1e-100), 1e100)
    rho, h = _distances(np.arange(1.0, n + 1.0), 1.0, slope, alpha)  # in units of beta
    sums = np.cumsum(rho)[np.minimum(times, n).astype(np.int64) - 1]
    T = np.maximum(times, n)
    later = T - n
    for power in _POWERS:
        # the sum of _reach from n + 1 to T is below its integral, of s/t + √(s² + a t^(p + 1)) / t
        a = 2.0 * _ceiling(h, n + 1.0, slope, alpha, power) / (n + 1.0) ** power
        ends = []
        for t in (T, np.float64(n)):
            root = np.sqrt(slope**2 + a * t ** (power + 1.0))
            ends.append(2.0 * (root - slope * np.log(root + slope)) / (power + 1.0))
        later = np.minimum(later, 2.0 * slope * np.log(T / n) + ends[0] - ends[1])
    return _total([sums + later, D, G])


def _convexity_of_unit_set(set_convexity: float, diameter: float) -> float:
    return min(float(_product(set_convexity, diameter)), 1e100)


#: After so many rounds the distances are bounded all at once.
_BY_ROUND = 1 << 16


def _distances(
    curvatures: npt.NDArray[np.float64], extra: float, slope: float, alpha: float
) -> tuple[npt.NDArray[np.float64], float]:
    """Return rho_t over D for rounds whose sums curve so much, and h after them.

    See `line_search_regret_bound`.
    """
    found, h = np.empty(len(curvatures)), 0.0
    for t, L in enumerate(curvatures.tolist()):
        M = L + extra
        rho = min(1.0, (slope + math.sqrt(slope * slope + 2.0 * M * h)) / M)
        H = h + slope * rho
        progress = max(H * H / (2.0 * L), alpha * H * math.sqrt(2.0 * H / L) / 8.0)
        h = H - min(0.5 * H, progress)
        found[t] = rho
    return found, h


def _reach(h: float, L: float, slope: float) -> float:
    """Return what rho_t is at most, where sums curve by L or more."""
    return slope / L + math.sqrt((slope / L) ** 2 + 2.0 * h / L)


#: The power of t by which what is left of F_t grows at most: by a step's two kinds of progress.
_POWERS = (1.0 / 3.0, 0.0)


def _ceiling(h: float, L: float, slope: float, alpha: float, power: float) -> float:
    """Return H so that what is left stays below H (t/L)^power where sums curve by t >= L, or by L.

    There a step's progress makes up for what a round adds, slope times `_reach`. It does so for
    larger t, too: reach falls like t^((power - 1)/2) or faster, progress like t^(2 power - 1) for
    the power 1/3, and like t^(-1/2) for 0, which wants a set's strong convexity.
    """
    level = h
    for _ in range(200):  # towards the least such H: powers of at most 1/2 of what was
        added = slope * _reach(level, L, slope)
        if power:
            enough = math.sqrt(2.0 * L * added)
        else:
            enough = (8.0 * added * math.sqrt(0.5 * L) / alpha) ** (2.0 / 3.0) if alpha else 1e200
        level = min(max(h, 2.0 * added, enough), 1e200)  # far more than T
    return level * (1.0 + 1e-9)


@_bound(smoothness=non_negative_float)
def ospf_regret_bound(
    rounds: npt.ArrayLike,
    *,
    scale: float,
    block_size: int,
    smoothness: float,
    diameter: float,
    l1_diameter: float,
    direction_l1: float,
    loss_range: float,
) -> FloatOrArray:
    r"""Bound on the expected regret of ``OSPF(rounds=T)`` for smooth convex losses, chosen before.

    .. math::

        \mathbb E \sum_{t=1}^T f_t(x_t) - f_t(x^*) \le \frac{D_1 \sqrt{k T}}{2 c}
        + \frac{2 c N k^2 A W}{\sqrt{k T}} + \frac{N L D^2}{2} + k W, \qquad N = \lceil T / k \rceil

    Notes
    -----
    The method and the order T^{2/3} are those of Hazan and Minasyan, "Faster projection-free online
    learning", COLT 2020; this is for the noise of `OSPF`, proved as follows. Let
    :math:`\bar x_b` be the expected leader that block b's point is a mean of k draws of. Given the
    past, the draws differ from it by :math:`D^2 / (2 k)` in mean square, so gradients at
    them cost :math:`k L D^2 / (2 k)` a block more than those of :math:`\bar x_b`. The expected
    leaders follow the slopes of a concave potential, so that to know a block's
    gradients costs the noise's :math:`D_1 / (2 \eta)` in all, :math:`\eta = c / \sqrt{k T}`; not to
    know two blocks' moves the cube of noise by at most :math:`2 \eta k A`, which costs
    :math:`k W` on so much of its mass. The first block plays x_1.

    Examples
    --------
    >>> bound = ospf_regret_bound(
    ...     1000, scale=0.5, block_size=10, smoothness=1.0, diameter=1.0, l1_diameter=2.0,
    ...     direction_l1=1.0, loss_range=1.0,
    ... )
    >>> round(bound, 2)
    360.0
    """
    T, c, k, L, D = np.asarray(rounds), scale, block_size, smoothness, diameter
    D_1, A, W = l1_diameter, direction_l1, loss_range
    blocks, root = np.ceil(T / k), np.sqrt(k * T)
    return _total(
        [0.5, D_1, root], [2.0 * k * k, c, A, W, blocks / root], [0.5, L, D, D, blocks], [k, W],
        per=[c, 1.0, 1.0, 1.0],
    )  # fmt: skip


class SoftmaxDirections(NamedTuple):
    """Bounds on what MORGFW feeds its base learners in softmax regression."""

    direction_l1: float
    loss_range: float


def softmax_direction_bounds(
    X: npt.ArrayLike, n_classes: int, radius: float, *, recursive: bool = True
) -> SoftmaxDirections:
    r"""Return A and W of `ftpl_regret_bound` for softmax regression on given rows, row l1 ball.

    For ``reduction="mean"``, whatever the labels and the sub-batches, with
    :math:`\eta_k = \rho_k = 1 / (k + 1)`; for ``reduction="sum"`` over B samples multiply
    both by B.

    Parameters
    ----------
    X : array of shape (n, d)
        Every row that can occur in a batch.
    n_classes : int
        C, at least 2.
    radius : float
        r: the l1 norm of every row of a decision is at most r.
    recursive : bool
        Whether directions are MORGFW's estimates from sub-batches, or exact gradients of batches.

    Returns
    -------
    SoftmaxDirections
        ``direction_l1`` (A) and ``loss_range`` (W).

    Notes
    -----
    A sample's gradient is the outer product of :math:`p - e_y` and a; the first has an l1
    norm of at most 2. So the l1 norm of a gradient is at most :math:`2 \|a\|_1`, and the sum over
    classes of its largest entries at most :math:`2 \|a\|_\infty`; W is 2 r times the latter.

    MORGFW's estimates obey :math:`(k + 1) d^{(k)} = g_k + k d^{(k-1)} + k (g_k - g'_k)`, with
    gradients of the same sub-batch at :math:`x^{(k)}` and :math:`x^{(k-1)}`. Between these a logit
    changes by at most :math:`2 r \|a\|_\infty / k`, and softmax is 1-Lipschitz from the largest
    norm to the l1 norm. By induction over k, in the norms above, :math:`d^{(k)}` is at most a
    gradient plus :math:`2 r \|a\|_\infty` times :math:`\|a\|_1` or :math:`\|a\|_\infty`.

    Examples
    --------
    >>> softmax_direction_bounds([[3.0, 4.0], [0.0, 1.0]], n_classes=2, radius=0.5)
    SoftmaxDirections(direction_l1=42.0, loss_range=24.0)
    """
    A = features(X, name="X")
    positive_int(n_classes, "n_classes", minimum=2)
    r = positive_float(radius, "radius")
    magnitude = np.abs(A)
    with np.errstate(over="ignore"):
        total = float(magnitude.sum(axis=1, dtype=np.float64).max())
    largest = float(magnitude.max())
    factor = 2.0 + (float(_product(2.0, r, largest)) if recursive else 0.0)
    return SoftmaxDirections(
        float(_total([factor, total])), float(_total([2.0, r, factor, largest]))
    )


class SoftmaxNoise(NamedTuple):
    """Bounds for softmax regression: sigma and M of the paper's assumptions."""

    gradient_noise: float
    value_noise: float


def softmax_noise_bounds(X: npt.ArrayLike, n_classes: int, radius: float) -> SoftmaxNoise:
    r"""Return valid sigma and M for softmax regression on given rows, over a row l1 ball.

    The bounds hold for ``reduction="mean"``, whatever the labels, for batches and sub-batches of
    any size and any way of drawing them from the rows of `X`: they bound how far the means over any
    two selections of rows can lie apart.  For ``reduction="sum"`` over B samples multiply both
    by B.

    Parameters
    ----------
    X, n_classes, radius
        As in `softmax_direction_bounds`.

    Returns
    -------
    SoftmaxNoise
        ``gradient_noise`` (sigma, in Assumptions 3a and 4) and ``value_noise`` (M, in
        Assumption 3b).

    Notes
    -----
    For one sample (a, y) and W in the set, a logit is
    :math:`|\langle w_j, a \rangle| \le r \|a\|_\infty`, so two of them differ by at most
    :math:`u = 2 r \|a\|_\infty`.

    *Values.*  The loss is :math:`\log(1 + \sum_{j \ne y} e^{z_j - z_y})`, so it lies between
    :math:`\log(1 + (C - 1) e^{-u})` and :math:`\log(1 + (C - 1) e^{u})`.  With the largest u of all
    rows this interval holds every sample's loss, hence every mean of them, and M is its length.

    *Gradients.*  A sample's gradient is the outer product of :math:`p - e_y` and a, p the softmax
    of the logits.  As the other entries of p are positive with sum :math:`1 - p_y`,
    :math:`\|p - e_y\|^2 \le 2 (1 - p_y)^2`, and
    :math:`1 - p_y \le q = (C - 1) e^u / (1 + (C - 1) e^u) < 1`.  So the gradient's norm is at most
    :math:`\sqrt 2\, q \|a\|`, and means of such gradients differ by at most
    :math:`\sigma = 2 \sqrt 2 \max_i q_i \|a_i\|`.

    Both are worst cases; typical batches deviate far less.  O(n d) time.

    Examples
    --------
    >>> noise = softmax_noise_bounds([[3.0, 4.0], [0.0, 1.0]], n_classes=2, radius=0.5)
    >>> [round(value, 4) for value in noise]
    [13.8878, 4.0]
    """
    A = features(X, name="X")
    C = positive_int(n_classes, "n_classes", minimum=2)
    r = positive_float(radius, "radius")
    largest = np.maximum(A.max(axis=1), -A.min(axis=1)).astype(np.float64)
    log_others = math.log(C - 1)
    u = _product(2.0, r, largest)
    q = np.exp(-np.logaddexp(0.0, -(log_others + u)))  # no overflow, whatever u
    sigma = np.max(_product(2.0 * math.sqrt(2.0), q, row_norms(A)))
    top = float(np.max(u))
    M = float(np.logaddexp(0.0, log_others + top) - np.logaddexp(0.0, log_others - top))
    return SoftmaxNoise(gradient_noise=float(sigma), value_noise=M)


def _product(*factors: npt.ArrayLike, per: float = 1.0) -> npt.NDArray[np.float64]:
    """Multiply numbers >= 0 and divide by one: infinite or 0 only where the result has to be."""
    mantissa, exponent = np.frexp(1.0 / np.frexp(per)[0])
    exponent = exponent - np.frexp(per)[1]
    for factor in factors:
        m, e = np.frexp(factor)
        mantissa, exponent = mantissa * m, exponent + e
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(np.ldexp(mantissa, exponent))


def _total(*terms: Sequence[npt.ArrayLike], per: Sequence[float] | None = None) -> FloatOrArray:
    """Add products, each divided by its number in `per`; a float for a single value."""
    with np.errstate(over="ignore"):
        value = sum(
            _product(*term, per=divisor)
            for term, divisor in zip(terms, per or [1.0] * len(terms), strict=True)
        )
    return float(value) if np.ndim(value) == 0 else np.asarray(value)
