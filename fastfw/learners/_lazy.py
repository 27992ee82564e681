"""What compiled engines with a lazily scaled iterate have in common."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._layout import is_scale, remainder_of, scaled
from fastfw.network import OneHiddenLayer

__all__ = ["LazyEngine"]

Arrays = dict[str, npt.NDArray[Any]]


class LazyEngine:
    """The iterate s (u + low) and the sum w (u + low) + sum of those played, see ``kernels.l1``.

    ``scalars`` begins with s and w. Of a network, u is W1; `tails` has the other parameters in
    one row and the sum of those played in the next, see ``kernels.models``. Elsewhere it has
    no columns.
    """

    #: Attributes that hold the state in arrays of fixed size, where they hold anything.
    names: tuple[str, ...] = ("u", "low", "sum", "scalars", "tails")

    def __init__(self, problem: Any, start: FloatArray, n_scalars: int = 2) -> None:
        self._start = start
        self.u, tail = self._split(problem, start)
        # all rows are in use
        self._every = (
            np.array([len(self.u), *range(len(self.u))]), np.ones(len(self.u), np.bool_)
        )  # fmt: skip
        self.low = remainder_of(self.u)
        self.sum = np.zeros(self.u.shape)
        self.tails = np.array([tail, np.zeros_like(tail)])
        self.scalars = np.zeros(n_scalars)
        self.scalars[0] = 1.0
        self.names = tuple(name for name in self.names if getattr(self, name).size)

    @staticmethod
    def _split(problem: Any, x: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the matrix that is large and the tail in float64, copies."""
        W = problem.blocks(x)["W1"] if type(problem) is OneHiddenLayer else x
        return W.copy(), x.reshape(-1)[W.size :].astype(np.float64)

    def move(self, index: IndexArray, value: npt.NDArray[np.float64], eta: float) -> None:
        """X ← x + eta (v - x), v having one nonzero entry in each row of u and ball of the tail."""
        from fastfw.kernels import l1
        from fastfw.kernels import rounds as kernels

        rows, d = self.u.shape
        s, weight = self.scalars[:2]
        places = np.arange(rows) * d + index[:rows]
        self.scalars[:2] = l1.step(
            self.u, self.low, self.sum, self.u[:0], s, weight + s, places, value[:rows], eta,
            *self._every,
        )  # fmt: skip
        if self.tails.size:
            kernels.move_tail(self.tails[0], self.tails[1], index[rows:], value[rows:], eta)

    def arrays(self) -> Arrays:
        """All of the state, by name."""
        return {name: getattr(self, name) for name in self.names}

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        for name in self.names:
            if arrays[name].dtype.kind == "f" and not np.isfinite(arrays[name]).all():
                raise ValueError(f"its state {name!r} is not finite")
        if not is_scale(arrays["scalars"][0], 32.0):
            raise ValueError("its state is out of range")
        for name in self.names:
            getattr(self, name)[...] = arrays[name]

    def copy(self) -> Any:
        """Return an independent engine in the same state."""
        other = copy.copy(self)
        for name in self.names:
            setattr(other, name, getattr(self, name).copy())
        return other

    def decision(self) -> FloatArray:
        """Return x_t, a new array."""
        x = scaled(self.u, self.low, self.scalars[0], self.u.dtype)
        return self._joined(x, self.tails[0].astype(x.dtype))

    def total(self) -> FloatArray:
        """Return the sum of the decisions played, a new array."""
        whole = scaled(self.u, self.low, self.scalars[1], np.float64) + self.sum
        return self._joined(whole, self.tails[1])

    def _joined(self, W: FloatArray, tail: FloatArray) -> FloatArray:
        if not tail.size:
            return W
        joined: FloatArray = np.concatenate([W.reshape(-1), tail])
        return joined
