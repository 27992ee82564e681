"""The constant that theory gives to RegularizedOFW, D/(2 G), and learners that wait for it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, positive_float
from fastfw._csr import row_norms
from fastfw.learners._base import OnlineLearner
from fastfw.learners._learner import count
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.sets._accept import diameter_of
from fastfw.sets._convex import norm

__all__ = ["ScaledLearner", "constant_of_batch", "constant_of_rows"]


class ScaledLearner(OnlineLearner):
    """Base of methods with a horizon, and a constant that the first batch decides by default."""

    _rounds: int | None
    _scale: float | None

    def _take(self, rounds: int | None, scale: float | None) -> None:
        """Check what the constructor was given; before it goes on."""
        self._rounds = None if rounds is None else count(rounds, "rounds")
        self._scale = None if scale is None else positive_float(scale, "scale")

    @property
    def scale(self) -> float | None:
        """The constant c; None while it waits for the first batch."""
        if self._scale is None and self._engine is not None:
            engine: Any = self._engine
            return float(engine.constant if self._fused else engine.state["constant"])
        return self._scale

    def _constant(self, batch: Any, gradient: npt.NDArray[Any], unit: float = 1.0) -> float:
        """Return c in a round of the "steps" engine: by theory D/(2 G), over a unit."""
        return self.scale or constant_of_batch(self.problem, self.set, batch, gradient) / unit

    def _first_state(self, start: FloatArray) -> dict[str, Any]:
        return {**super()._first_state(start), "constant": np.array(0.0)}

    def _read(self, engine: Any, stored: dict[str, Any]) -> dict[str, Any]:
        state = super()._read(engine, stored)
        if not state["constant"] > 0.0:
            raise ValueError("its constant is out of range")
        return state

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "rounds": self._rounds, "scale": self._scale}

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Take files of before the constant had its name."""
        return {{"eta": "scale"}.get(name, name): value for name, value in options.items()}


def constant_of_batch(problem: Any, set: Any, batch: Any, gradient: npt.NDArray[Any]) -> float:
    """D/(2 G), with G from the batch for softmax regression, else the gradient's norm."""
    if type(problem) is SoftmaxRegression:
        bound = _gradient_bound(problem, problem.rows(batch))
    else:
        bound = _size(gradient)
    return _constant(diameter_of(set), bound)


def constant_of_rows(problem: Any, set: Any, start: npt.NDArray[Any], rows: Rows) -> float:
    """Return the same for rows that a problem of compiled rounds gave, at the start."""
    if type(problem) is SoftmaxRegression:
        bound = _gradient_bound(problem, rows)
    else:
        bound = _size(problem.of_rows(start, rows)[1])
    return _constant(diameter_of(set), bound)


def _constant(diameter: float, bound: float) -> float:
    """D/(2 G), neither 0 nor infinite: without gradients nothing needs to be held back."""
    if not diameter > 0.0:
        raise ValueError(f"scale must be given for a set of diameter {diameter}")
    found = 0.5 * diameter / max(bound, 1e-300)
    if found < 1e-300:
        raise ValueError(
            f"scale must be given, or the loss or X rescaled: D/(2 G), its default, is less than "
            f"1e-300 for a set of diameter D = {diameter:.3g} and gradients of norm "
            f"G = {bound:.3g} in the first round"
        )
    return min(found, 1e300)


def _size(gradient: npt.NDArray[Any]) -> float:
    """Euclidean norm; 1 where it is not finite, which rounds find by themselves."""
    return norm(gradient) if np.isfinite(gradient).all() else 1.0


def _gradient_bound(problem: SoftmaxRegression, rows: Rows) -> float:
    """√2 max ‖a‖ over the rows, times their number, or the sum of their weights, for the sum.

    The gradient of a sample is (p - e_y) aᵀ and ‖p - e_y‖ <= √2.
    """
    A = rows.gathered()
    longest = float(row_norms(A).max())
    return math.sqrt(2.0) * longest * problem.weight(A.shape[0]) * float(rows.weights.sum())
