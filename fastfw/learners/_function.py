"""The compiled engine for a loss that the user compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw.custom import FunctionProblem
from fastfw.learners._engines import in_rounds
from fastfw.problems import Rows
from fastfw.sets import L1Ball, RowL1Ball, Simplex

__all__ = ["FusedFunction", "on_function"]


def on_function(problem: Any, set: Any) -> bool:
    """Whether rounds with this function over this set can be compiled."""
    if type(problem) is not FunctionProblem or not problem.compiled:
        return False
    return type(set) is Simplex or (type(set) in (RowL1Ball, L1Ball) and set.ties == "first")


class FusedFunction:
    """As `FusedMomentum`, with the user's own compiled function for loss and gradient."""

    _names = ("x", "previous", "estimate", "sum")

    def __init__(
        self,
        problem: FunctionProblem,
        set: Any,
        start: FloatArray,
        coefficients: Callable[[int], tuple[float, float, float, float]],
    ) -> None:
        from fastfw.kernels import function

        move = function.simplex_move if type(set) is Simplex else function.l1_move
        self._loop = function.momentum_rounds(problem.function, problem.takes_pairs, move)
        self._problem = problem
        self._radius = float(set.radius)
        self._coefficients = coefficients
        self.x, self.sum = start.astype(np.float64), np.zeros(start.shape)
        self.previous, self.estimate = np.zeros_like(start), np.zeros_like(start)

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Play rounds t, t + 1, ..., see `Engine`."""
        k = starts.size - 1
        coefficients = in_rounds(self._coefficients, t, k)
        trial = np.empty_like(self.estimate)
        try:
            done: int = self._loop(
                *rows, starts, *coefficients, self._radius,
                self.x, self.previous, self.estimate, trial, self.sum, losses,
            )  # fmt: skip
        except Exception as error:
            self._raise_if_wrong(rows)
            self._problem.raise_short(error)
            if isinstance(error, UnboundLocalError):  # Numba's own, of a list where arrays belong
                raise TypeError(
                    "the function must return its gradient as an array, not a list, to be called "
                    'from compiled rounds; or use engine="steps"'
                ) from error
            raise
        if done < 0:
            self._raise_if_wrong(rows)
            raise ValueError(f"the function must return gradients of shape {self.x.shape}")
        return done

    def _raise_if_wrong(self, rows: Rows) -> None:
        """Say what is wrong with what the function returns, by a call of its own."""
        X, y = rows.X[rows.rows], rows.y[rows.rows]
        self._problem.loss_and_gradient(self.decision(), (X, y) if self._problem.takes_pairs else X)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of the state."""
        return {name: getattr(self, name) for name in self._names}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave."""
        for name, own in self.arrays().items():
            own[...] = arrays[name]

    def copy(self) -> FusedFunction:
        """Return an independent engine in the same state."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in self._names:
            setattr(other, name, getattr(self, name).copy())
        return other

    def decision(self) -> FloatArray:
        """Return x_t, a new array."""
        return self.x.astype(self.estimate.dtype)

    def total(self) -> FloatArray:
        """Return the sum of the decisions played, a new array."""
        return self.sum.copy()
