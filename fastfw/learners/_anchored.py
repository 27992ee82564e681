"""The compiled engine of SVRF, for softmax regression and for networks."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw._layout import is_scale, padded, padded_zeros, remainder_of, scaled, unpadded
from fastfw.learners._engines import on_row_l1_ball
from fastfw.learners._momentum import balls
from fastfw.problems import Rows

__all__ = ["FusedAnchored"]


class FusedAnchored:
    """Gradients corrected by those at a snapshot, a vertex and a step: one compiled loop."""

    def __init__(self, problem: Any, set: Any, start: FloatArray) -> None:
        self._set = set
        self._convex = on_row_l1_ball(problem, set)
        W = start if self._convex else problem.blocks(start)["W1"]
        self._activation = 0 if self._convex else problem.activation_number
        self._d = W.shape[1]
        self.u = padded(W, start.dtype)
        self.estimates = padded_zeros((2, *W.shape), start.dtype)
        self.low = remainder_of(self.u)
        self.snapshot = np.zeros_like(self.u)
        self.sum = np.zeros(self.u.shape)
        self.scalars = np.array([1.0, 0.0, 0.0])
        self.tails = np.zeros((5, start.size - W.size))
        self.tails[0] = start.reshape(-1)[W.size :]

    def iterations(
        self,
        t: int,
        rows: Rows,
        starts: npt.NDArray[np.intp],
        whole: npt.NDArray[np.bool_],
        eta: npt.NDArray[np.float64],
    ) -> tuple[int, npt.NDArray[np.float64]]:
        """Play iterations on rows[starts[i]:starts[i+1]]: how many were done, and losses."""
        from fastfw.kernels import anchored

        losses = np.empty(eta.size)
        state = self.u, self.low, self.estimates, self.snapshot, self.sum
        if self._convex:
            done: int = anchored.rounds(
                *rows, starts, whole, eta, self._set.radius, *state, self.scalars, losses
            )
        else:
            done = anchored.network_rounds(
                *rows, starts, whole, eta, *balls(self._set), self._activation, *state, self.tails,
                self.scalars, losses,
            )  # fmt: skip
        return done, losses[: done + 1]

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of the state; of the two estimates, the one that is not scratch."""
        parity = int(self.scalars[2])
        return {
            **{name: getattr(self, name) for name in ("u", "low", "snapshot", "sum", "scalars")},
            "estimate": self.estimates[parity],
            "tail": self.tails[0],
            "tail_snapshot": self.tails[1],
            "tail_estimate": self.tails[2 + parity],
            "tail_sum": self.tails[4],
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        scale, weight, parity = arrays["scalars"]
        if parity not in (0.0, 1.0) or not is_scale(scale) or not np.isfinite(weight):
            raise ValueError("its state is out of range")
        self.scalars[...] = arrays["scalars"]  # says which estimate is the current one
        for name, own in self.arrays().items():
            own[...] = arrays[name]

    def copy(self) -> FusedAnchored:
        """Return an independent engine in the same state."""
        other = copy.copy(self)
        for name in ("u", "low", "estimates", "snapshot", "sum", "scalars", "tails"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def decision(self) -> FloatArray:
        """Return x_t, a new array."""
        return self._point(scaled(self.u, self.low, self.scalars[0], self.u.dtype), self.tails[0])

    def total(self) -> FloatArray:
        """Return the sum of x_1, ..., x_{t-1}, a new array."""
        whole = scaled(self.u, self.low, self.scalars[1], np.float64) + self.sum
        return self._point(whole, self.tails[4])

    def _point(self, W: FloatArray, tail: FloatArray) -> FloatArray:
        W = unpadded(W, self._d)
        return W if self._convex else np.concatenate([W.reshape(-1), tail.astype(W.dtype)])
