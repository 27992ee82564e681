"""Engines: where a learner's numbers live and how rounds change them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._csr import is_sparse
from fastfw._layout import is_scale, padded, padded_zeros, remainder_of, scaled, unpadded
from fastfw.learners._threaded import shared_rounds
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.sets import RowL1Ball

__all__ = ["Engine", "FusedMomentum", "StepsEngine", "in_rounds", "on_row_l1_ball"]


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

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Play rounds t, t + 1, ..., t + i on rows[starts[i]:starts[i+1]]: how many were done.

        losses[i] is written, and into losses[-1] the number of rounds done as each of them is
        whole; after theirs stands the loss of a round that failed, which changes nothing else.
        """


class StepsEngine:
    """Rounds composed of oracle calls; the state is made anew in each of them.

    The point is kept in float64, whatever the decisions' dtype: methods find it rounded as "x" and
    whole as "exact", and give the next one as "x".
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
        given = {**self.state, "x": self.decision(), "exact": self.state["x"]}
        with np.errstate(over="ignore", invalid="ignore"):  # what overflows is found and refused
            loss, changes = play(t, batch, given)
        loss = float(loss)
        if not np.isfinite(loss):
            return loss, self
        x = np.array(changes["x"], np.float64)
        x.flags.writeable = False
        other = copy.copy(self)
        other._total = self._total + given.pop("exact")
        other.state = {**given, **changes, "x": x}
        return loss, other

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        raise NotImplementedError("the steps engine takes batches one at a time")

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


def in_rounds(
    coefficients: Callable[[int], tuple[float, ...]], t: int, k: int
) -> npt.NDArray[np.float64]:
    """Return the coefficients of rounds t, ..., t + k - 1: an array (k,) for each."""
    if k == 1:  # observe: the same in a third of the time
        return np.array(coefficients(t), np.float64)[:, np.newaxis]
    return np.array([coefficients(t + i) for i in range(k)]).T.copy()


def on_row_l1_ball(problem: Any, set: Any) -> bool:
    """Whether the kernels for softmax regression on the row-l1 ball apply."""
    own = type(problem) is SoftmaxRegression and type(set) is RowL1Ball
    return own and set.ties == "first"


class FusedMomentum:
    """d ← gamma d + alpha ∇f(x_t) - beta ∇f(x_{t-1}), a vertex and a step: one compiled loop.

    ``coefficients(t)`` gives (alpha, beta, gamma, eta) of round t. Rows are dense, and shared by
    threads if there are more than one; `suited` returns
    the engine in the same state for the rows that come next.
    """

    #: Whether rows are sparse.
    sparse = False

    def __init__(
        self,
        problem: SoftmaxRegression,
        ball: RowL1Ball,
        start: FloatArray,
        coefficients: Callable[[int], tuple[float, float, float, float]],
        threads: int = 1,
    ) -> None:
        self._problem, self._ball = problem, ball
        self._mean = problem.reduction == "mean"
        self.radius = ball.radius
        self.coefficients, self.threads = coefficients, threads
        n_classes, self._d = start.shape
        self.u = padded(start, start.dtype)
        self.estimates = padded_zeros((2, *start.shape), start.dtype)
        self.low = remainder_of(self.u)
        self.previous = np.zeros_like(self.u)
        self.sum = np.zeros(self.u.shape)
        self.index = np.zeros(n_classes, np.intp)
        self.value = np.zeros(n_classes)
        # scale, weight of the sum, last step, which estimate, the estimate's scale; for sparse rows
        # also the estimate's largest magnitude
        self.scalars = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])

    def suited(self, rows: Rows) -> FusedMomentum:
        """Return the engine that goes on with such rows: this one, or one in the same state."""
        if is_sparse(rows.X) == self.sparse:
            return self
        from fastfw.learners._csr_momentum import CsrMomentum

        kind = FusedMomentum if self.sparse else CsrMomentum
        other = kind(self._problem, self._ball, self.decision(), self.coefficients, self.threads)
        other.restore(self.arrays())
        return other

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        from fastfw.kernels import loops

        self._unscale()
        k = starts.size - 1
        alpha, beta, gamma, eta = in_rounds(self.coefficients, t, k)

        def lead(team: tuple[Any, ...]) -> int:
            done: int = loops.momentum_rounds(
                *rows, starts, self._mean, alpha, beta, gamma, eta, self.radius,
                self.u, self.low, self.estimates, self.previous, self.sum,
                self.index, self.value, self.scalars, team, losses,
            )  # fmt: skip
            return done

        done = shared_rounds(
            lead, self.threads, rows, starts, self.u, self.estimates, self.previous, self.index
        )
        return done

    def _unscale(self) -> None:
        """Take over the estimate's scale that rounds on sparse rows have left."""
        if self.scalars[4] != 1.0:
            self.estimates *= self.estimates.dtype.type(self.scalars[4])
            self.scalars[4] = 1.0

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        # The other of the two estimates is scratch: a round that fails may leave anything there.
        names = ("u", "low", "previous", "sum", "index", "value", "scalars")
        estimate = self.estimates[int(self.scalars[3])]
        return {"estimate": estimate, **{name: getattr(self, name) for name in names}}

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        self._check(arrays)
        self.scalars[...] = arrays["scalars"]  # says which estimate is the current one
        for name, own in self.arrays().items():
            own[...] = arrays[name]

    def _check(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        scale, weight, last, parity, shrunk, largest = arrays["scalars"]
        if not (
            ((arrays["index"] >= 0) & (arrays["index"] < self._d)).all()
            and parity in (0.0, 1.0)
            and is_scale(scale)
            and 0.0 <= last <= 1.0
            and 0.0 < shrunk <= 1.0
            and np.isfinite((weight, largest)).all()
            and np.isin(np.abs(arrays["value"]), (0.0, self.radius)).all()
        ):
            raise ValueError("its state is out of range")

    def copy(self) -> FusedMomentum:
        other = copy.copy(self)
        for name in ("u", "low", "estimates", "previous", "sum", "index", "value", "scalars"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def decision(self) -> FloatArray:
        return unpadded(scaled(self.u, self.low, self.scalars[0], self.u.dtype), self._d)

    def total(self) -> FloatArray:
        return unpadded(scaled(self.u, self.low, self.scalars[1], np.float64) + self.sum, self._d)
