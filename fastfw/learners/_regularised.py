"""The compiled engine of RegularizedOFW, and the theory's constant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw._csr import is_sparse
from fastfw.learners._lazy import Arrays, LazyEngine
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.sets import RowL1Ball

__all__ = ["FusedRegularised", "theory_constant"]


def theory_constant(problem: Any, set: Any, batch: Any, gradient: npt.NDArray[Any]) -> float:
    """D/(2 G), with G from the batch for softmax regression, else the gradient's norm."""
    if type(problem) is SoftmaxRegression:
        bound = _gradient_bound(problem, problem.rows(batch))
    else:
        bound = float(np.linalg.norm(gradient))
    return _constant(float(set.diameter), bound)


def _constant(diameter: float, bound: float) -> float:
    """D/(2 G), neither 0 nor infinite: without gradients nothing needs to be held back."""
    if not diameter > 0.0:
        raise ValueError(f"eta must be given for a set of diameter {diameter}")
    return min(diameter / (2.0 * min(max(bound, 1e-300), 1e300)), 1e300)


def _gradient_bound(problem: SoftmaxRegression, rows: Rows) -> float:
    """√2 max ‖a‖ over the rows, times their number for the sum.

    The gradient of a sample is (p - e_y) aᵀ and ‖p - e_y‖ <= √2.
    """
    A = rows.X[rows.rows]
    n = A.shape[0]
    if is_sparse(A):
        longest = math.sqrt(2.0 * problem.with_reduction("mean").smoothness(A))
    else:
        longest = math.sqrt(float(np.einsum("ij,ij->i", A, A, dtype=np.float64).max()))
    return math.sqrt(2.0) * longest * problem.weight(n) * n


class FusedRegularised(LazyEngine):
    """A growing sum of gradients, a pull towards the start, a vertex, a step: compiled.

    ``strength(t, c)`` is 2/eta and ``step(t)`` the step size of round t. The constant c
    comes from the first batch where it is None.
    """

    names: ClassVar[tuple[str, ...]] = (*LazyEngine.names, "constant")

    def __init__(
        self,
        problem: SoftmaxRegression,
        ball: RowL1Ball,
        start: FloatArray,
        constant: float | None,
        strength: Callable[[int, float], float],
        step: Callable[[int], float],
    ) -> None:
        # scalars: scale, weight of the sum, which of the two sums of gradients is the valid one
        super().__init__(start, 3)
        self._problem, self._ball = problem, ball
        self._start = start.copy()
        self._strength, self._step = strength, step
        self.sums = np.zeros((2, *start.shape), start.dtype)
        #: c, 0 while it waits for the first batch.
        self.constant = np.array(constant or 0.0)

    def rounds(
        self, t: int, rows: Rows, starts: npt.NDArray[np.intp]
    ) -> tuple[int, npt.NDArray[np.float64]]:
        """Play rounds t, t + 1, ...: how many were done, and losses (one more where it failed)."""
        from fastfw.kernels import regularised

        c = float(self.constant)
        if not c:
            first = Rows(rows.X, rows.y, rows.rows[: starts[1]])
            c = _constant(self._ball.diameter, _gradient_bound(self._problem, first))
        k = starts.size - 1
        strength = np.array([self._strength(t + i, c) for i in range(k)])
        eta = np.array([self._step(t + i) for i in range(k)])
        losses = np.empty(k)
        done: int = regularised.regularised_rounds(
            *rows, starts, self._problem.reduction == "mean", strength, eta, self._ball.radius,
            self.u, self._start, self.sums, self.sum, self.scalars, losses,
        )  # fmt: skip
        if done:
            self.constant[...] = c
        return done, losses[: done + 1]

    def arrays(self) -> Arrays:
        """All of the state; of the two sums of gradients, the one that is not scratch."""
        return {**super().arrays(), "gradients": self.sums[int(self.scalars[2])]}

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        parity, sums = arrays["scalars"][2], arrays["gradients"]
        if parity not in (0.0, 1.0) or not np.isfinite(sums).all() or arrays["constant"] <= 0.0:
            raise ValueError("its state is out of range")
        super().restore(arrays)
        self.sums[int(self.scalars[2])] = arrays["gradients"]

    def copy(self) -> Any:
        """Return an independent engine in the same state."""
        other = super().copy()
        other.sums = self.sums.copy()
        return other
