"""Engines: where a learner's numbers live and how rounds change them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw.learners._oracles import toward, vertex

__all__ = ["Choice", "Engine", "EngineWarning", "OfflineSteps", "StepsEngine"]


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


class OfflineSteps:
    """Iterations of offline methods by oracle calls: the point, the sum of those before, a memory.

    The point and the sum are kept in float64; methods get the point rounded. What they remember is
    a point and a gradient.
    """

    def __init__(self, set: Any, start: FloatArray) -> None:
        self._set = set
        self._dtype = start.dtype
        self.x, self._total = start.astype(np.float64), np.zeros(start.shape)
        self._remembered = start, np.zeros_like(start)

    def iterations(
        self,
        direction: Callable[..., Any],
        t: int,
        batches: Iterator[Any],
        whole: npt.NDArray[np.bool_],
        eta: npt.NDArray[np.float64],
    ) -> tuple[int, npt.NDArray[np.float64]]:
        """Play iterations on the batches: how many were done, and losses.

        ``direction(x, batch, whole, point, gradient)`` of a method gives d, the loss, and the next
        two to remember.
        """
        losses = np.empty(eta.size)
        real = self._dtype
        for i, batch in enumerate(batches):
            with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused
                d, loss, point, gradient = direction(
                    self.decision(), batch, bool(whole[i]), *self._remembered
                )
            losses[i] = loss
            if not np.isfinite(loss):
                return i, losses[: i + 1]
            v = vertex(self._set, d, t + i)
            self._total += self.x
            self.x = toward(self.x, v, float(eta[i]))
            self._remembered = point, gradient.astype(real, copy=False)
        return eta.size, losses

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of the state, by name."""
        point, gradient = self._remembered
        return {"x": self.x, "sum": self._total, "point": point, "gradient": gradient}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave."""
        self.x, self._total = arrays["x"], arrays["sum"]
        self._remembered = arrays["point"], arrays["gradient"]

    def copy(self) -> OfflineSteps:
        """Return an independent engine in the same state."""
        other = copy.copy(self)
        other._total = self._total.copy()  # the other arrays are made anew
        return other

    def decision(self) -> FloatArray:
        """Return x_t, a new array."""
        return self.x.astype(self._dtype)

    def total(self) -> FloatArray:
        """Return the sum of x_1, ..., x_{t-1}, a new array."""
        return self._total.copy()
