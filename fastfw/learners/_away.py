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
from fastfw.sets._vertex import decoded, signed_code

__all__ = ["FusedAway"]


class FusedAway(FusedPast):
    """The past of `FusedPast`, and an active set of vertices with one number per l1 ball.

    ``direction(active, v, slopes, start_slope, v_slope)`` chooses the vertex and the step,
    below 0 for a step away from it, and updates the active set.
    """

    def __init__(
        self,
        problem: Any,
        set: Any,
        start: FloatArray,
        direction: Callable[[ActiveSet, bytes, list[float], float, float], tuple[bytes, float]],
        threads: int = 1,
    ) -> None:
        super().__init__(problem, set, start, threads=threads)
        self.active = ActiveSet()
        self._direction = direction

    def _choose(self, t: int) -> tuple[IndexArray, npt.NDArray[np.float64], float] | None:
        vertex = self._gradient.vertex()
        if vertex is None:
            return None
        index, value = vertex
        v = signed_code(index, value)
        codes = np.concatenate([v[np.newaxis], self.active.vertices(np.intp, v.shape)])
        v_slope, *slopes = self._gradient.slopes(codes).tolist()
        start_slope = self._gradient.slope(self._start) if self.active.start_weight else 0.0
        moved, eta = self._direction(self.active, v.tobytes(), slopes, start_slope, v_slope)
        return *decoded(np.frombuffer(moved, np.intp), self._gradient.radii), eta

    def arrays(self) -> Arrays:
        """All of the state, with the active vertices' codes."""
        return {**super().arrays(), **self.active.arrays(np.intp, self._gradient.radii.shape)}

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless kernels could not go on from it."""
        super().restore(arrays)
        codes = arrays["vertices"]
        places, _ = decoded(codes, self._gradient.radii)
        if ((places < self._gradient.first) | (places >= self._gradient.end)).any():
            raise ValueError("its active set is out of range")
        self.active = ActiveSet.of(arrays)

    def copy(self) -> Any:
        """Return an independent engine in the same state."""
        other = super().copy()
        other.active = self.active.copy()
        return other
