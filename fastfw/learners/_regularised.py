"""The compiled engine of RegularizedOFW, and the theory's constant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._csr import is_sparse
from fastfw.learners._engines import on_row_l1_ball
from fastfw.learners._lazy import Arrays, LazyEngine
from fastfw.learners._momentum import balls
from fastfw.learners._threaded import shared_rounds
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.sets._answers import diameter_of

__all__ = ["FusedRegularised", "strength", "theory_constant"]


def strength(rounds: int | None, t: int, c: float) -> float:
    """2/eta in round t, with eta = c / T^{3/4}."""
    T = t if rounds is None else rounds
    return float(2.0 / (c / T**0.75))


def theory_constant(problem: Any, set: Any, batch: Any, gradient: npt.NDArray[Any]) -> float:
    """D/(2 G), with G from the batch for softmax regression, else the gradient's norm."""
    if type(problem) is SoftmaxRegression:
        bound = _gradient_bound(problem, problem.rows(batch))
    else:
        bound = float(np.linalg.norm(gradient))
    return _constant(diameter_of(set), bound)


def _constant(diameter: float, bound: float) -> float:
    """D/(2 G), neither 0 nor infinite: without gradients nothing needs to be held back."""
    if not diameter > 0.0:
        raise ValueError(f"scale must be given for a set of diameter {diameter}")
    return min(diameter / (2.0 * min(max(bound, 1e-300), 1e300)), 1e300)


def _gradient_bound(problem: SoftmaxRegression, rows: Rows) -> float:
    """√2 max ‖a‖ over the rows, times their number, or the sum of their weights, for the sum.

    The gradient of a sample is (p - e_y) aᵀ and ‖p - e_y‖ <= √2.
    """
    A = rows.gathered()
    n: int = A.shape[0]
    if is_sparse(A):
        longest = math.sqrt(2.0 * float(problem.with_reduction("mean").smoothness(A)))
    else:
        longest = math.sqrt(float(np.einsum("ij,ij->i", A, A, dtype=np.float64).max()))
    return float(math.sqrt(2.0) * longest * problem.weight(n) * rows.weights.sum())


class FusedRegularised(LazyEngine):
    """A growing sum of gradients, a pull towards the start, a vertex, a step: compiled.

    ``strength(t, c)`` is 2/eta and ``step(t)`` the step size of round t. The constant c
    comes from the first batch where it is None.
    """

    names: ClassVar[tuple[str, ...]] = (*LazyEngine.names, "constant")

    def __init__(
        self,
        problem: Any,
        set: Any,
        start: FloatArray,
        constant: float | None,
        strength: Callable[[int, float], float],
        step: Callable[[int], float],
        threads: int = 1,
    ) -> None:
        # scalars: scale, weight of the sum, which of the two sums of gradients is the valid one
        super().__init__(problem, start, 3)
        self._problem, self._set = problem, set
        self._strength, self._step, self._threads = strength, step, threads
        self.sums = np.zeros((2, *self.u.shape), start.dtype)
        self._first = self._split(problem, start)
        self.tail_sums = np.zeros((2, self.tails.shape[1]))
        #: c, 0 while it waits for the first batch.
        self.constant = np.array(constant or 0.0)

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Play rounds t, t + 1, ..., see `Engine`."""
        from fastfw.kernels import network_regularised, regularised

        problem, set = self._problem, self._set
        c = float(self.constant) or self._theory(Rows(rows.X, rows.y, rows.rows[: starts[1]]))
        self.constant[...] = c  # of an engine that nobody has seen yet, if it had none
        k = starts.size - 1
        strength = np.array([self._strength(t + i, c) for i in range(k)])
        eta = np.array([self._step(t + i) for i in range(k)])
        mean = problem.reduction == "mean"
        W_1, tail_1 = self._first
        state = self.u, self.low, W_1, self.sums, self.sum, self.scalars
        if on_row_l1_ball(problem, set):

            def lead(team: tuple[Any, ...]) -> int:
                rounds: int = regularised.regularised_rounds(
                    *rows, starts, mean, strength, eta, set.radius, *state, team, losses
                )
                return rounds

            index = np.zeros(len(self.u), np.intp)
            done = shared_rounds(
                lead, self._threads, rows, starts, self.u, self.sums, self.u, index
            )
        else:
            done = network_regularised.regularised_rounds(
                *rows, starts, mean, strength, eta, *balls(set), problem.activation_number, *state,
                self.tails, tail_1, self.tail_sums, losses,
            )  # fmt: skip
        return done

    def _theory(self, first: Rows) -> float:
        """Return the theory's constant for the rows of the first batch."""
        if type(self._problem) is SoftmaxRegression:
            bound = _gradient_bound(self._problem, first)
        else:
            bound = float(np.linalg.norm(self._problem.of_rows(self._start, first)[1]))
        return _constant(diameter_of(self._set), bound)

    def arrays(self) -> Arrays:
        """All of the state; of the two sums of gradients, the one that is not scratch."""
        parity = int(self.scalars[2])
        arrays = {**super().arrays(), "gradients": self.sums[parity]}
        return {**arrays, "tail_gradients": self.tail_sums[parity]} if self.tails.size else arrays

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        parity, sums = arrays["scalars"][2], arrays["gradients"]
        if parity not in (0.0, 1.0) or not np.isfinite(sums).all() or arrays["constant"] <= 0.0:
            raise ValueError("its state is out of range")
        super().restore(arrays)
        self.sums[int(parity)] = sums
        self.tail_sums[int(parity)] = arrays.get("tail_gradients", 0.0)

    def copy(self) -> Any:
        """Return an independent engine in the same state."""
        other = super().copy()
        other.sums, other.tail_sums = self.sums.copy(), self.tail_sums.copy()
        return other
