"""The compiled engines of ORGFW and OSFW: which there are, and the one for networks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._layout import is_scale, padded, padded_zeros, remainder_of, scaled, unpadded
from fastfw.learners._engines import Engine, FusedMomentum, in_rounds, on_row_l1_ball
from fastfw.learners._function import FusedFunction, on_function
from fastfw.network import OneHiddenLayer
from fastfw.problems import Rows
from fastfw.sets import L1Ball, ProductSet, RowL1Ball

__all__ = ["FusedNetwork", "balls", "can_fuse", "can_play", "fused_momentum", "on_network"]

Coefficients = Callable[[int], tuple[float, float, float, float]]


def on_network(problem: Any, set: Any) -> bool:
    """Whether the kernels for networks in l1 balls apply."""
    if type(problem) is not OneHiddenLayer or type(set) is not ProductSet:
        return False
    kinds = (RowL1Ball, L1Ball, RowL1Ball, L1Ball)
    blocks = list(set.sets.values())
    shapes = list(problem.block_shapes.values())
    return [(type(b), b.shape) for b in blocks] == list(zip(kinds, shapes, strict=True))


def can_fuse(problem: Any, set: Any) -> bool:
    """Whether there is a compiled engine for this problem and set."""
    return on_row_l1_ball(problem, set) or on_network(problem, set)


def can_play(problem: Any, set: Any) -> bool:
    """Whether `fused_momentum` has an engine for this problem and set."""
    return can_fuse(problem, set) or on_function(problem, set)


def fused_momentum(
    problem: Any, set: Any, start: FloatArray, coefficients: Coefficients, threads: int = 1
) -> Engine:
    """Return the compiled engine; see `FusedMomentum`. All others take one thread."""
    if on_row_l1_ball(problem, set):
        return FusedMomentum(problem, set, start, coefficients, threads)
    if on_function(problem, set):
        return FusedFunction(problem, set, start, coefficients)
    return FusedNetwork(problem, set, start, coefficients)


def balls(set: ProductSet) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Radii, tie keys and whether ties are random, of each block, as kernels take them."""
    blocks = set.sets.values()
    return (
        np.array([block.radius for block in blocks]),
        np.array([block.tie_key for block in blocks], np.uint64),
        np.array([block.ties == "random" for block in blocks]),
    )


class FusedNetwork:
    """As `FusedMomentum`, for a network: W1 lazily scaled, the other blocks in short tails."""

    _names = ("u", "low", "estimates", "previous", "sum", "tails", "index", "value", "scalars")

    def __init__(
        self,
        problem: OneHiddenLayer,
        set: ProductSet,
        start: FloatArray,
        coefficients: Coefficients,
    ) -> None:
        from fastfw.kernels import network

        self._mean = problem.reduction == "mean"
        self._activation = problem.activation_number
        self._balls = balls(set)
        self._radius = float(self._balls[0][0])
        self.coefficients = coefficients
        m, self._d = problem.block_shapes["W1"]
        W1 = problem.blocks(start)["W1"]
        self.u = padded(W1, start.dtype)
        self.estimates = padded_zeros((2, m, self._d), start.dtype)
        self.low = remainder_of(self.u)
        self.previous = np.zeros_like(self.u)
        self.sum = np.zeros(self.u.shape)
        self.tails = np.zeros((network.N_TAILS, start.size - W1.size))
        self.tails[network.NOW] = start[W1.size :]
        self.index = np.zeros(m, np.intp)
        self.value = np.zeros(m)
        self.scalars = np.array([1.0, 0.0, 0.0, 0.0])

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Play rounds t, t + 1, ..., see `Engine`."""
        from fastfw.kernels import network

        k = starts.size - 1
        alpha, beta, gamma, eta = in_rounds(self.coefficients, t, k)
        done: int = network.momentum_rounds(
            *rows, starts, self._mean, alpha, beta, gamma, eta, *self._balls, self._activation,
            self.u, self.low, self.estimates, self.previous, self.sum,
            self.index, self.value, self.tails, self.scalars, losses,
        )  # fmt: skip
        return done

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of the state; of the two estimates, the one that is not scratch."""
        parity = int(self.scalars[3])
        names = ("u", "low", "previous", "sum", "index", "value", "scalars")
        return {
            "estimate": self.estimates[parity],
            "tail": self.tails[0],
            "tail_previous": self.tails[1],
            "tail_estimate": self.tails[2 + parity],
            "tail_sum": self.tails[4],
            **{name: getattr(self, name) for name in names},
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        scale, weight, last, parity = arrays["scalars"]
        if not (
            ((arrays["index"] >= 0) & (arrays["index"] < self._d)).all()
            and parity in (0.0, 1.0)
            and is_scale(scale)
            and 0.0 <= last <= 1.0
            and np.isfinite(weight)
            and np.isin(np.abs(arrays["value"]), (0.0, self._radius)).all()
        ):
            raise ValueError("its state is out of range")
        self.scalars[...] = arrays["scalars"]  # says which estimate is the current one
        for name, own in self.arrays().items():
            own[...] = arrays[name]

    def copy(self) -> FusedNetwork:
        """Return an independent engine in the same state."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        for name in self._names:
            setattr(other, name, getattr(self, name).copy())
        return other

    def decision(self) -> FloatArray:
        """Return x_t, a new array."""
        W1 = unpadded(scaled(self.u, self.low, self.scalars[0], self.u.dtype), self._d)
        return np.concatenate([W1.reshape(-1), self.tails[0].astype(self.u.dtype)])

    def total(self) -> FloatArray:
        """Return the sum of the decisions played, a new array."""
        whole = scaled(self.u, self.low, self.scalars[1], np.float64) + self.sum
        W1 = unpadded(whole, self._d)
        return np.concatenate([W1.reshape(-1), self.tails[4]])
