"""Engines: where a learner's numbers live and how rounds change them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray

__all__ = ["Choice", "Engine", "EngineWarning", "StepsEngine"]


class Choice(str):
    """The name of an engine, with the reason for which it is used."""

    __slots__ = ("reason",)

    reason: str

    def __new__(cls, name: str, reason: str) -> Choice:
        choice = super().__new__(cls, name)
        choice.reason = reason
        return choice

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        """Be a plain name in copies and files."""
        return str, (str(self),)


class EngineWarning(UserWarning):
    """Rounds are not compiled where one might think they are; ``engine="steps"`` avoids it."""


class Engine(Protocol):
    """State of a learner and the code that plays rounds."""

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of the state, by name; views, not copies."""

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over the arrays of another engine of the kind, already of the right form."""

    def copy(self) -> Engine:
        """Return an independent engine in the same state."""

    def decision(self) -> FloatArray:
        """Return x_t as a new array or one that is never changed."""

    def total(self) -> FloatArray:
        """Return the sum of the decisions played, as a new array of float64."""


class StepsEngine:
    """Rounds composed of oracle calls; the state is made anew in each of them.

    The point is kept in float64, whatever the decisions' dtype: methods find it rounded as "x",
    whole as "exact" and added to those before as "total", and give the next one as "x".
    """

    def __init__(self, state: dict[str, Any], dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        x = np.array(state["x"], np.float64)
        x.flags.writeable = False
        self.state = {**state, "x": x}
        self._total: FloatArray = np.zeros_like(x)

    def observe(
        self,
        play: Callable[[int, Any, dict[str, Any]], tuple[float, dict[str, Any]]],
        t: int,
        batch: Any,
    ) -> tuple[float, StepsEngine]:
        """Play a round of a method: the loss, and the engine after it; this one does not change."""
        # the method may put "warm" into it
        exact = self.state["x"]
        own = {"x": self.decision(), "exact": exact, "total": self._total + exact}
        given = {**self.state, **own}
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found and refused
            loss, changes = play(t, batch, given)
        loss = float(loss)
        if not np.isfinite(loss):
            return loss, self
        x = np.array(changes["x"], np.float64)
        x.flags.writeable = False
        other = copy.copy(self)
        other._total = given.pop("total")
        del given["exact"]
        other.state = {**given, **changes, "x": x}
        return loss, other

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        return {**self.state, "total": self._total}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave."""
        self.state = {name: a for name, a in arrays.items() if name != "total"}
        self.state["x"].flags.writeable = False
        self._total = np.array(arrays["total"])

    def copy(self) -> StepsEngine:
        return copy.copy(self)

    def decision(self) -> FloatArray:
        x: FloatArray = self.state["x"].astype(self._dtype, copy=False)
        x.flags.writeable = False
        return x

    def total(self) -> FloatArray:
        return self._total.copy()
