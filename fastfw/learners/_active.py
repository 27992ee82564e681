"""The active set of OAW, whole vertices with weights, and the compiled engine that keeps one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw.learners._history import FusedPast
from fastfw.learners._lazy import Arrays
from fastfw.sets._vertex import decoded, signed_code

__all__ = ["ActiveSet", "FusedAway"]


class ActiveSet:
    """Vertices whose weighted sum, with x_1's share, is the decision.

    A vertex is known by its bytes, the key of a dictionary in which vertices stand in the
    order in which they became active.

    Attributes
    ----------
    weights : dict of bytes to float
        The active vertices' weights, above 0.
    start_weight : float
        The share of x_1, which is never an away vertex.
    steps : int
        Number of Frank-Wolfe steps so far.
    """

    def __init__(
        self, weights: dict[bytes, float] | None = None, start_weight: float = 1.0, steps: int = 0
    ) -> None:
        self.weights = {} if weights is None else weights
        self.start_weight = start_weight
        self.steps = steps

    def copy(self) -> ActiveSet:
        """Return an independent copy."""
        return ActiveSet(dict(self.weights), self.start_weight, self.steps)

    def vertices(self, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> npt.NDArray[Any]:
        """Return the active vertices stacked in one array, oldest first."""
        flat = np.frombuffer(b"".join(self.weights), dtype)
        return flat.reshape(len(self.weights), *shape)

    def gaps(self, slopes: Sequence[float], start_slope: float, v_slope: float) -> tuple[Any, ...]:
        """Compare the two ways to go, for slopes ⟨g, ·⟩ of vertices, of x_1 and of the oracle's v.

        Returns
        -------
        toward : float
            ⟨g, x - v⟩.
        away : float
            ⟨g, a - x⟩ for the active vertex a of largest slope, the oldest of several; -inf
            where none is active. Both gaps are sums of differences, so that equal vertices give
            exactly equal gaps.
        a : bytes or None
            That vertex.
        """
        if not self.weights:
            return self.start_weight * (start_slope - v_slope), -math.inf, None
        at = np.array(slopes)
        weights = np.fromiter(self.weights.values(), np.float64, len(at))
        steepest = int(at.argmax())
        toward = float((weights * (at - v_slope)).sum())
        away = float((weights * (at[steepest] - at)).sum())
        if self.start_weight:
            toward += self.start_weight * (start_slope - v_slope)
            away += self.start_weight * (slopes[steepest] - start_slope)
        return toward, away, list(self.weights)[steepest]

    def step_toward(self, v: bytes, eta: float) -> None:
        """Multiply all weights by 1 - eta and give v eta more; drop what has no weight left."""
        self.steps += 1
        self._scale(1.0 - eta)
        self.weights[v] = self.weights.get(v, 0.0) + eta
        self.weights = {a: w for a, w in self.weights.items() if w > 0.0}

    def largest_step(self, a: bytes) -> float:
        """Away step that takes all its weight from a; infinite where a has all the weight."""
        w = self.weights[a]
        return w / (1.0 - w) if w < 1.0 else math.inf

    def step_away(self, a: bytes, gamma: float) -> None:
        """Multiply all weights by 1 + gamma and take gamma from a, dropping it at weight 0."""
        last = gamma == self.largest_step(a)
        self._scale(1.0 + gamma)
        self.weights[a] -= gamma
        if last or self.weights[a] <= 0.0:
            del self.weights[a]

    def _scale(self, factor: float) -> None:
        self.start_weight *= factor
        self.weights = {a: w * factor for a, w in self.weights.items()}

    def arrays(self, dtype: npt.DTypeLike, shape: tuple[int, ...]) -> dict[str, npt.NDArray[Any]]:
        """Return the set as arrays, for an engine's state."""
        return {
            "vertices": self.vertices(dtype, shape),
            "weights": np.array(list(self.weights.values()), np.float64),
            "start_weight": np.array(self.start_weight, np.float64),
            "steps": np.array(self.steps, np.intp),
        }

    @classmethod
    def of(cls, state: dict[str, npt.NDArray[Any]]) -> ActiveSet:
        """Return the set that `arrays` described; an empty one for a state without it."""
        if "vertices" not in state:
            return cls()
        keys = [vertex.tobytes() for vertex in state["vertices"]]
        weights = dict(zip(keys, state["weights"].tolist(), strict=True))
        start_weight, steps = float(state["start_weight"]), int(state["steps"])
        shares = np.array([start_weight, *weights.values()])
        whole = (shares >= 0.0).all() and abs(shares.sum() - 1.0) < 1e-6
        if len(weights) < len(keys) or steps < 0 or not whole:
            raise ValueError("its active set is out of range")
        return cls(weights, start_weight, steps)


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
