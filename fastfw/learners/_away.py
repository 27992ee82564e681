"""The compiled engine of OAW."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw.learners._active import ActiveSet
from fastfw.learners._history import FusedPast
from fastfw.learners._lazy import Arrays
from fastfw.problems import SoftmaxRegression
from fastfw.sets import RowL1Ball

__all__ = ["FusedAway"]


class FusedAway(FusedPast):
    """The past of `FusedPast`, and an active set of vertices with one number per row.

    ``direction(active, v, slopes, start_slope, v_slope)`` chooses the vertex and the step,
    below 0 for a step away from it, and updates the active set.
    """

    growing = FusedPast.growing | {"vertices", "weights"}

    def __init__(
        self,
        problem: SoftmaxRegression,
        ball: RowL1Ball,
        start: FloatArray,
        direction: Callable[[ActiveSet, bytes, list[float], float, float], tuple[bytes, float]],
    ) -> None:
        super().__init__(problem, ball, start)
        self.active = ActiveSet()
        self._start = start.copy()
        self._direction = direction

    def _choose(self, t: int) -> tuple[IndexArray, npt.NDArray[np.float64], float] | None:
        from fastfw.kernels import history

        vertex = self._oracle()
        if vertex is None:
            return None
        index, value = vertex
        # +r at column j is j, -r is -1 - j
        v = np.where(value > 0.0, index, ~index)
        codes = np.concatenate([v[np.newaxis], self.active.vertices(np.intp, v.shape)])
        slopes = np.empty(len(codes))
        radius = float(self.u.dtype.type(self._radius))  # as in the iterate
        history.slopes(self._gradient, codes, radius, slopes)
        start_slope = 0.0
        if self.active.start_weight:
            start_slope = history.inner(self._gradient, self._start)
        v_slope, *active_slopes = slopes.tolist()
        moved, eta = self._direction(self.active, v.tobytes(), active_slopes, start_slope, v_slope)
        code = np.frombuffer(moved, np.intp)
        return (
            np.where(code >= 0, code, ~code),
            np.where(code >= 0, self._radius, -self._radius),
            eta,
        )

    def arrays(self) -> Arrays:
        """All of the state, with the active vertices' codes."""
        return {**super().arrays(), **self.active.arrays(np.intp, (len(self.u),))}

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        super().restore(arrays)
        codes, d = arrays["vertices"], self.u.shape[1]
        if ((codes < -d) | (codes >= d)).any():
            raise ValueError("its active set is out of range")
        self.active = ActiveSet.of(arrays)

    def copy(self) -> Any:
        """Return an independent engine in the same state."""
        other = super().copy()
        other.active = self.active.copy()
        return other
