"""Iterations of the offline methods composed of oracle calls."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw.learners._oracles import toward, vertex

__all__ = ["OfflineSteps"]


class OfflineSteps:
    """The point, the sum of those before, and what the method remembers: a point and a gradient.

    The point and the sum are kept in float64; methods get the point rounded.
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
