"""Base learners: online linear optimisation on a convex set.

Each round a learner plays a point x of the set, sees a direction d and suffers ⟨d, x⟩. `FTPL`,
`OGD` and `RFTL` describe such a method; ``.on(set, rounds=T)`` makes a learner that plays by it.
`MORGFW` and `MetaFrankWolfe` run K of them side by side and take the description as ``base``.

A method is three functions without state: of the memory before any direction, of the answer a
memory gives, and of the memory after a direction. What changes from round to round is one array
of the set's shape, so that a learner can be copied, saved and taken back for free. An argument that
cannot be used raises a TypeError or a ValueError that names it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw import schedules
from fastfw._checks import (
    FloatArray,
    boolean,
    check_seed,
    choice,
    float_dtype,
    freeze,
    positive_float,
    positive_int,
    require,
    seed_bits,
)
from fastfw._guard import Guard
from fastfw.schedules import PowerSchedule, power_schedule
from fastfw.sets._accept import accept_vertex, diameter_of, project_onto
from fastfw.sets._convex import OVERFLOW, finite, point_of
from fastfw.sets._starts import given_or_usual

__all__ = ["FTPL", "OGD", "RFTL", "BaseLearner", "LinearLearner", "Turn"]

_NOISES = ("uniform", "gaussian", "exponential", "gumbel")


class Turn(NamedTuple):
    """Where a base learner stands: what its answer may depend on beside its memory."""

    t: int
    """Number of the round."""
    first: int
    """The round it began in; it has seen t - first directions."""
    rounds: int
    """The horizon T its constants are chosen for."""
    k: int
    """Its number among the base learners of a meta learner; 1 on its own."""
    seed: int
    """Of its draws, 64 bits."""


class BaseLearner(ABC):
    """Description of a method for online linear optimisation; subclass it for your own.

    A subclass gives `first`, `answer` and `remember`, functions without side effects.
    """

    #: Calls of the linear minimisation oracle per answer.
    lmo_calls: ClassVar[int] = 0

    def check(self, set: Any) -> None:
        """Raise TypeError if the method cannot play on this set."""
        require(set, "set", ("shape", "lmo", "diameter"))

    @abstractmethod
    def first(self, set: Any, start: FloatArray) -> FloatArray:
        """Memory before any direction; its dtype is the one of `start`."""

    @abstractmethod
    def answer(self, set: Any, memory: FloatArray, turn: Turn) -> Any:
        """Point to play: an array, or a `Vertex` of the set."""

    @abstractmethod
    def remember(
        self, set: Any, memory: FloatArray, direction: FloatArray, turn: Turn
    ) -> FloatArray:
        """Memory after the direction of this turn, as a new array."""

    def on(
        self,
        set: Any,
        *,
        rounds: int,
        seed: int | tuple[int, ...] = 0,
        start: npt.ArrayLike | None = None,
        dtype: npt.DTypeLike = np.float64,
    ) -> LinearLearner:
        """Return a learner that plays by this method, in round 1.

        Parameters
        ----------
        set : object
            Feasible set: `RowL1Ball`, or any object with ``shape``, ``lmo(direction)`` and
            ``diameter``; for `OGD` and `RFTL` also ``project(x)``.
        rounds : int
            T, which the method's constants depend on. Later rounds may be played too, with the
            same constants.
        seed : int or tuple of int
            Of the method's draws.
        start : array_like, optional
            Where `OGD` begins. By default zeros, or a vertex where zeros are not feasible.
        dtype : {float64, float32}
            Of memory and answers.

        Raises
        ------
        TypeError, ValueError
            If an argument cannot be used; the message names it.
        """
        self.check(set)
        memory = self.first(set, given_or_usual(set, start, float_dtype(dtype)))
        turn = Turn(1, 1, positive_int(rounds, "rounds"), 1, seed_bits(check_seed(seed)))
        return LinearLearner(self, set, memory, turn)


class LinearLearner:
    """A base learner at play; made by ``FTPL(...).on(set, rounds=T)`` and the like.

    Examples
    --------
    >>> import fastfw as fw
    >>> learner = fw.FTPL(scale=50.0).on(fw.RowL1Ball((2, 3), radius=1.0), rounds=100, seed=0)
    >>> for _ in range(20):
    ...     x = learner.play()
    ...     learner.observe([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0]])
    >>> learner.play()
    array([[ 0., -1.,  0.],
           [ 0.,  0.,  1.]])
    """

    def __init__(self, method: BaseLearner, set: Any, memory: FloatArray, turn: Turn) -> None:
        self._method = method
        self._set = set
        self._memory = memory
        self._turn = turn
        self._played: FloatArray | None = None
        self._guard = Guard()

    @property
    def method(self) -> BaseLearner:
        """The description it plays by."""
        return self._method

    @property
    def set(self) -> Any:
        """The feasible set."""
        return self._set

    @property
    def t(self) -> int:
        """Number of the current round, 1 at first."""
        return self._turn.t

    def play(self) -> FloatArray:
        """Return this round's point, a read-only array of the set's shape."""
        with self._guard.state:
            if self._played is None:
                played = self._method.answer(self._set, self._memory, self._turn)
                # A copy: a method of the user's own may keep the array that it gave.
                self._played = freeze(np.array(played, self._memory.dtype))
            return self._played

    def observe(self, direction: npt.ArrayLike) -> None:
        """Receive the linear loss ⟨direction, ·⟩ of this round, which is not changed and not kept.

        Raises
        ------
        TypeError, ValueError
            If the direction is not finite numbers of the set's shape.
        FloatingPointError
            If the memory would not be finite. In every case the learner is as before. Ctrl-C comes
            before the change or after it.
        """
        self._guard.alone(self._observe, direction)

    def _observe(self, direction: npt.ArrayLike) -> None:
        given = point_of(direction, tuple(self._set.shape), "direction")
        d = finite(given, "direction", OVERFLOW).astype(self._memory.dtype)
        with np.errstate(over="ignore"):
            memory = self._method.remember(self._set, self._memory, d, self._turn)
        if not np.isfinite(memory).all():
            raise FloatingPointError(
                f"round {self.t}: the sum of the directions overflowed; rescale them"
            )
        turn = self._turn._replace(t=self._turn.t + 1)
        with self._guard.state:  # at one stroke
            self._memory, self._turn, self._played = memory, turn, None

    def __getstate__(self) -> dict[str, Any]:
        with self._guard.state:
            return {**vars(self), "_guard": Guard()}

    def __repr__(self) -> str:
        return f"<LinearLearner in round {self.t}: {self._method!r} over {self._set!r}>"


@dataclass(frozen=True)
class FTPL(BaseLearner):
    r"""Follow the perturbed leader.

    .. math::

        x_t = \operatorname{argmin}_{v \in M}
        \Bigl\langle \frac{c}{\sqrt T} \sum_{\tau < t} d_\tau + n_t, v \Bigr\rangle

    Parameters
    ----------
    scale : float
        c > 0. It has the unit of one over a direction: theory's value for directions of l1 norm at
        most A and losses within a range of W on a set of l1 diameter D is √(D / (2 W A)).
    noise : {"uniform", "gaussian", "exponential", "gumbel"}
        Distribution of the independent entries of n_t: uniform on [-1/2, 1/2), standard gaussian,
        one-sided standard exponential, standard Gumbel.
    fresh : bool
        Whether noise is drawn anew in every round (default) or once, in the first.

    Notes
    -----
    One call of the oracle per round and no projection. Noise is a pure function of
    (seed, round, k, entry), see `perturbation`. In expectation over uniform noise the regret is at
    most (c W A + D / (2 c)) √T; see `fastfw.theory.ftpl_regret_bound`.

    References
    ----------
    Kalai, Vempala, "Efficient algorithms for online decision problems", JCSS 71, 2005, Theorem 1.1.

    Examples
    --------
    >>> import fastfw as fw
    >>> fw.FTPL(scale=100.0)
    FTPL(scale=100.0, noise='uniform', fresh=True)
    """

    scale: float = 1.0
    noise: str = "uniform"
    fresh: bool = True

    lmo_calls: ClassVar[int] = 1

    def __post_init__(self) -> None:
        """Check the arguments."""
        object.__setattr__(self, "scale", positive_float(self.scale, "scale"))
        choice(self.noise, "noise", _NOISES)
        object.__setattr__(self, "fresh", boolean(self.fresh, "fresh"))

    @property
    def kind(self) -> int:
        """Number of the noise's distribution in the kernels."""
        return _NOISES.index(self.noise)

    def rate(self, rounds: int) -> float:
        """Return c / √T, the weight of the sum of directions."""
        return self.scale / math.sqrt(rounds)

    def perturbation(
        self, shape: tuple[int, ...], *, t: int, k: int = 1, seed: int | tuple[int, ...] = 0
    ) -> npt.NDArray[np.float64]:
        """Return the noise n_t of base learner k for a seed, as a new array of this shape.

        With ``fresh=False`` the noise of all rounds is that of the round the learner began in: give
        its number as `t`.
        """
        t, k = positive_int(t, "t"), positive_int(k, "k")
        return self._draw(shape, t, k, seed_bits(check_seed(seed)))

    def _draw(self, shape: tuple[int, ...], t: int, k: int, bits: int) -> npt.NDArray[np.float64]:
        from fastfw.kernels import ftpl

        noise = np.empty(shape)
        ftpl.draw(self.kind, np.uint64(bits), t, k, noise.reshape(-1))
        return noise

    def first(self, set: Any, start: FloatArray) -> FloatArray:
        """Zeros: the sum of no directions."""
        return np.zeros_like(start)

    def answer(self, set: Any, memory: FloatArray, turn: Turn) -> Any:
        """Vertex for the perturbed sum, as the set gives it; noise is added in float64."""
        drawn = self._draw(memory.shape, turn.t if self.fresh else turn.first, turn.k, turn.seed)
        drawn += self.rate(turn.rounds) * memory.astype(np.float64)
        return accept_vertex(set.lmo(drawn), drawn)

    def remember(
        self, set: Any, memory: FloatArray, direction: FloatArray, turn: Turn
    ) -> FloatArray:
        """Add to the sum of the directions."""
        return memory + direction


@dataclass(frozen=True)
class _Projecting(BaseLearner):
    """What `OGD` and `RFTL` share."""

    step: float | Callable[[int], float] | None = None
    gradient_bound: float = 1.0

    def __post_init__(self) -> None:
        """Check the arguments."""
        if self.step is not None and not callable(self.step):
            object.__setattr__(self, "step", positive_float(self.step, "step"))
        bound = positive_float(self.gradient_bound, "gradient_bound")
        object.__setattr__(self, "gradient_bound", bound)

    def check(self, set: Any) -> None:
        """Raise TypeError if the set has no projection, or no diameter that the step needs."""
        super().check(set)
        if not hasattr(set, "project"):
            raise TypeError(
                f"{type(self).__name__} needs a set with project(x), which a "
                f"{type(set).__name__} has not; FTPL does without"
            )
        if self.step is None:
            diameter_of(set)

    def _gamma(self, set: Any, i: int, horizon: int) -> float:
        """Step i = 1, 2, ...; without a schedule D / (G √horizon)."""
        if self.step is None:
            return diameter_of(set) / (self.gradient_bound * math.sqrt(horizon))
        if callable(self.step):
            return positive_float(self.step(i), f"step in round {i}")
        return self.step


@dataclass(frozen=True)
class OGD(_Projecting):
    r"""Online gradient descent.

    .. math:: x_{t+1} = P_M(x_t - \gamma_t d_t)

    Parameters
    ----------
    step : float or callable, optional
        gamma_t > 0, t = 1, 2, ...; unlike a Frank-Wolfe step it may exceed 1. By default
        D / (G √t) with D the set's diameter: regret at most (3/2) D G √T.
    gradient_bound : float
        G, a bound on the directions' Euclidean norm; used by the default step only.

    Notes
    -----
    Needs the set's projection ``project(x)``.

    References
    ----------
    Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent", ICML 2003.

    Examples
    --------
    >>> import fastfw as fw
    >>> learner = fw.OGD(step=0.5).on(fw.RowL1Ball((1, 2), radius=1.0), rounds=10)
    >>> learner.observe([[1.0, 0.0]])
    >>> learner.play()
    array([[-0.5,  0. ]])
    """

    def first(self, set: Any, start: FloatArray) -> FloatArray:
        """Point to begin at."""
        return start

    def answer(self, set: Any, memory: FloatArray, turn: Turn) -> FloatArray:
        """Return the memory itself, the current point."""
        return memory

    def remember(
        self, set: Any, memory: FloatArray, direction: FloatArray, turn: Turn
    ) -> FloatArray:
        """Step against the direction and project."""
        i = turn.t - turn.first + 1
        moved = memory - self._gamma(set, i, i) * direction
        return project_onto(set, moved, memory.dtype)


@dataclass(frozen=True)
class RFTL(_Projecting):
    r"""Regularised follow the leader, with half the squared Euclidean norm.

    .. math::

        x_t = \operatorname{argmin}_{x \in M} \gamma \sum_{\tau < t} \langle d_\tau, x \rangle
        + \tfrac12 \|x\|^2 = P_M\Bigl(-\gamma \sum_{\tau < t} d_\tau\Bigr)

    Parameters
    ----------
    step : float or callable, optional
        gamma > 0. A callable is read as gamma_i once i directions have been seen. By default
        D / (G √T) with D the set's diameter: regret at most (3/2) D G √T.
    gradient_bound : float
        G, as in `OGD`.

    Notes
    -----
    Needs the set's projection ``project(x)``.

    References
    ----------
    Shalev-Shwartz, Singer, "A primal-dual perspective of online learning algorithms", Machine
    Learning 69, 2007.

    Examples
    --------
    >>> import fastfw as fw
    >>> learner = fw.RFTL(step=0.5).on(fw.RowL1Ball((1, 2), radius=1.0), rounds=10)
    >>> learner.observe([[1.0, 0.0]])
    >>> learner.play()
    array([[-0.5,  0. ]])
    """

    def first(self, set: Any, start: FloatArray) -> FloatArray:
        """Zeros: the sum of no directions."""
        return np.zeros_like(start)

    def answer(self, set: Any, memory: FloatArray, turn: Turn) -> FloatArray:
        """Projection of the scaled sum; of zeros before any direction."""
        seen = turn.t - turn.first
        gamma = self._gamma(set, seen, turn.rounds) if seen else 0.0
        # 0 - ..., so that zeros stay +0
        return project_onto(set, 0.0 - gamma * memory, memory.dtype)

    def remember(
        self, set: Any, memory: FloatArray, direction: FloatArray, turn: Turn
    ) -> FloatArray:
        """Add to the sum of the directions."""
        return memory + direction


#: Those that can be saved.
_KNOWN: dict[str, Any] = {"FTPL": FTPL, "OGD": OGD, "RFTL": RFTL}


def to_json(base: BaseLearner) -> dict[str, Any] | None:
    """Describe a base learner of this module; None for somebody's own."""
    if type(base) not in _KNOWN.values():
        return None
    described = {"name": type(base).__name__, **vars(base)}
    step = described.get("step")
    if isinstance(step, PowerSchedule):
        described["step"] = schedules.to_json(step)
    elif callable(step):
        return None
    return described


def from_json(described: dict[str, Any] | None) -> BaseLearner:
    """Make the base learner that `to_json` described, checking every number."""
    if described is None:
        raise ValueError("its base is not saved; give base=... again")
    given = dict(described)
    name = given.pop("name")
    if name not in _KNOWN:
        raise ValueError(f"its base is unknown: {name!r}")
    if isinstance(given.get("step"), dict):
        given["step"] = power_schedule(**given["step"])
    base: BaseLearner = _KNOWN[name](**given)
    return base
