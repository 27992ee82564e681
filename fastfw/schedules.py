"""Step size and momentum schedules: callables of the round t = 1, 2, ..."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fastfw._checks import (
    FloatArray,
    IndexArray,
    describe,
    fraction,
    in_range,
    non_negative_float,
    positive_float,
)

__all__ = ["PowerSchedule", "Schedule", "power_schedule"]

Schedule: TypeAlias = Callable[[int], float]


@dataclass(frozen=True)
class PowerSchedule:
    """``t -> min(c / (t + offset)**e, 1)``; made by `power_schedule`."""

    c: float
    e: float
    offset: float = 1.0

    def __post_init__(self) -> None:
        """Refuse constants that give no number in [0, 1]."""
        object.__setattr__(self, "c", positive_float(self.c, "c"))
        object.__setattr__(self, "e", non_negative_float(self.e, "e"))
        object.__setattr__(self, "offset", non_negative_float(self.offset, "offset"))

    def __call__(self, t: int) -> float:
        """Value in round t = 1, 2, ..."""
        try:
            power: float = float(t + self.offset) ** self.e
        except OverflowError:
            return 0.0
        return min(self.c / power, 1.0)

    def over(self, rounds: IndexArray) -> FloatArray:
        """Return the values in many rounds: the same bits, in a fifth of the time."""
        try:
            powers = raised(rounds + self.offset, self.e)
        except OverflowError:
            return np.array([self(t) for t in rounds.tolist()])
        found: FloatArray = np.minimum(self.c / powers, 1.0)
        return found


@dataclass(frozen=True)
class RootSchedule:
    """``t -> min(c / sqrt(t), 1)``: the step of RegularizedOFW's theory, with c = 2."""

    c: float

    def __call__(self, t: int) -> float:
        """Value in round t = 1, 2, ..."""
        return min(self.c / math.sqrt(t), 1.0)

    def over(self, rounds: IndexArray) -> FloatArray:
        """Return the values in many rounds."""
        return np.minimum(self.c / np.sqrt(rounds), 1.0)


@dataclass(frozen=True)
class ConstantSchedule:
    """``t -> value``: what a plain number stands for."""

    value: float

    def __call__(self, t: int) -> float:
        """Return the value, whatever the round."""
        return self.value

    def over(self, rounds: IndexArray) -> FloatArray:
        """Return the values in many rounds."""
        return np.full(rounds.size, self.value)


def power_schedule(c: float, e: float, offset: float = 1.0) -> PowerSchedule:
    """Return the schedule ``min(c / (t + offset)**e, 1)`` for t = 1, 2, ...

    Parameters
    ----------
    c, e : float
        c > 0 and e >= 0. Theory: e = 1 for step and momentum of ORGFW on convex problems
        (Theorem 1, Corollary 1), 2/3 on nonconvex ones (Proposition 1).
    offset : float
        At least 0; 1 in all of the paper's.

    Returns
    -------
    PowerSchedule
        A callable of t with values in (0, 1], or 0 where the power is too large for a float.

    Raises
    ------
    TypeError, ValueError
        If one of them is not such a number.

    Examples
    --------
    >>> import fastfw as fw
    >>> schedule = fw.power_schedule(1.0, 1.0)
    >>> [schedule(t) for t in (1, 2, 3)]
    [0.5, 0.3333333333333333, 0.25]
    """
    return PowerSchedule(c, e, offset)


def as_schedule(value: object, name: str) -> Schedule:
    """Take a schedule as it is and a number in [0, 1] as a constant one."""
    if callable(value):
        return value
    try:
        return ConstantSchedule(fraction(value, name))
    except TypeError:
        raise TypeError(
            f"{name} must be a number in [0, 1] or a callable of the round, such as "
            f"power_schedule(1.0, 1.0), but it is {describe(value)}"
        ) from None


_OWN = (PowerSchedule, RootSchedule, ConstantSchedule)


def raised(t: Any, exponent: float) -> Any:
    """Power of a round, or of each of an array of them, by Python: NumPy's have other bits."""
    if not isinstance(t, np.ndarray):
        return float(t) ** exponent
    floats = t.astype(float)
    return floats if exponent == 1.0 else np.array([i**exponent for i in floats.tolist()])


def value_at(schedule: Schedule, t: int, name: str) -> float:
    """Value of a schedule in round t, checked to be a number in [0, 1]."""
    return fraction(schedule(t), f"{name} in round {t}")


class Schedules(dict[str, Schedule]):
    """The schedules of a learner by name; what engines are handed in place of the learner."""

    def at(self, name: str, t: Any) -> Any:
        """Value of one of them in round t, checked, or values in an array of rounds."""
        schedule: Any = self[name]
        many = isinstance(t, np.ndarray)
        if type(schedule) in _OWN:
            return schedule.over(t) if many else schedule(t)
        if many:
            return np.array([value_at(schedule, i, name) for i in t.tolist()])
        return value_at(schedule, t, name)

    @property
    def formulas(self) -> bool:
        """Whether all of them are made here, so that they depend on the round alone."""
        return all(type(schedule) in _OWN for schedule in self.values())

    def require(self, dtype: np.dtype[Any]) -> None:
        """Refuse constants so small that parameters of a dtype would never move."""
        for name, schedule in self.items():
            if isinstance(schedule, ConstantSchedule) and schedule.value > 0.0:
                in_range(schedule.value, name, dtype, "take a larger one")


def to_json(schedule: Schedule) -> dict[str, Any] | None:
    """Describe a schedule made here; None for somebody's own callable."""
    if isinstance(schedule, PowerSchedule):
        offset = {} if schedule.offset == 1.0 else {"offset": schedule.offset}
        return {"c": schedule.c, "e": schedule.e, **offset}
    if isinstance(schedule, RootSchedule):
        return {"root": schedule.c}
    if isinstance(schedule, ConstantSchedule):
        return {"value": schedule.value}
    return None


def from_json(described: dict[str, Any], name: str) -> Schedule:
    """Make the schedule that `to_json` described, checking every number."""
    if {"c", "e"} <= set(described) <= {"c", "e", "offset"}:
        return power_schedule(**described)
    if set(described) == {"root"}:
        return RootSchedule(positive_float(described["root"], "root"))
    if set(described) == {"value"}:
        return as_schedule(described["value"], name)
    raise ValueError(f"{name} is not a known schedule: {described!r}")
