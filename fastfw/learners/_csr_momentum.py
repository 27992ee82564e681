"""The compiled engine of ORGFW and OSFW for sparse rows."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._csr import csr_parts
from fastfw._layout import padded, remainder_of, scaled
from fastfw.learners._engines import FusedMomentum, in_rounds
from fastfw.learners._threaded import quiet
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.sets import RowL1Ball

__all__ = ["CsrMomentum"]

# Attributes that are matrices of the parameters' dtype.
_MATRICES = ("estimate", "u", "low", "previous")


class CsrMomentum(FusedMomentum):
    """As `FusedMomentum`, with parameters stored (features, classes) and the estimate as d = s d̃.

    What `arrays` returns is stored as `FusedMomentum` stores it.
    """

    sparse = True

    def __init__(
        self,
        problem: SoftmaxRegression,
        ball: RowL1Ball,
        start: FloatArray,
        coefficients: Callable[[int], tuple[float, float, float, float]],
        threads: int = 1,
    ) -> None:
        self._problem, self._ball = problem, ball
        self.coefficients, self.threads = coefficients, threads
        self.radius = ball.radius
        n_classes, self._d = start.shape
        self.u = np.array(start.T, order="C")
        self.low = remainder_of(self.u)
        self.estimate = np.zeros_like(self.u)
        self.previous = np.zeros_like(self.u)
        self.sum = np.zeros(self.u.shape)
        self.index = np.zeros(n_classes, np.intp)
        self.value = np.zeros(n_classes)
        self.scalars = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        self._make_room()

    def _make_room(self) -> None:
        """Derive from the state the bounds of the estimate, and the features in use."""
        from fastfw.kernels import bounds

        d, n_classes = self.u.shape
        self._edges = bounds.levels(d)
        self._tree = np.zeros((self._edges[-1], n_classes), self.u.dtype)
        bounds.forget(self._tree)
        used = [a.any(axis=1) for a in (self.u, self.previous, self.sum)]
        self._known = np.logical_or.reduce(used)
        self._support = np.zeros(d + 1, np.intp)
        features = np.flatnonzero(self._known)
        self._support[0] = features.size
        self._support[1 : 1 + features.size] = features

    def rounds(self, t: int, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        """Play rounds t, t + 1, ..., see `Engine`."""
        from fastfw.kernels import csr

        k = starts.size - 1
        alpha, beta, gamma, eta = in_rounds(self.coefficients, t, k)
        limit = float(np.finfo(self.u.dtype).max) / 4.0
        mean = self._problem.reduction == "mean"
        done: int = quiet(csr.momentum_rounds)(
            *csr_parts(rows.X), rows.y, rows.rows, starts, mean,
            alpha, beta, gamma, eta, self.radius, limit,
            self.u, self.low, self.estimate, self._edges, self._tree, self.previous, self.sum,
            self.index, self.value, self._support, self._known, self.scalars, losses,
        )  # fmt: skip
        return done

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """All of the state, by name."""
        arrays = {name: padded(getattr(self, name).T, self.u.dtype) for name in _MATRICES}
        total = np.zeros(arrays["u"].shape)
        total[:, : self._d] = self.sum.T
        return {
            **arrays,
            "sum": total,
            "index": self.index,
            "value": self.value,
            "scalars": self.scalars,
        }

    def restore(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        self._check(arrays)
        for name in (*_MATRICES, "sum"):
            getattr(self, name)[...] = arrays[name][:, : self._d].T
        for name in ("index", "value", "scalars"):
            getattr(self, name)[...] = arrays[name]
        self.scalars[3] = 0.0  # there is but one estimate
        self.scalars[5] = np.abs(self.estimate).max()
        self._make_room()

    def copy(self) -> CsrMomentum:
        """Return an independent engine in the same state."""
        other = copy.copy(self)
        names = (*_MATRICES, "sum", "index", "value", "scalars")
        for name in (*names, "_tree", "_support", "_known"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def decision(self) -> FloatArray:
        """Return x_t as a new array."""
        return np.ascontiguousarray(scaled(self.u, self.low, self.scalars[0], self.u.dtype).T)

    def total(self) -> FloatArray:
        """Return the sum of the decisions played, as a new array."""
        whole = scaled(self.u, self.low, self.scalars[1], np.float64) + self.sum
        return np.ascontiguousarray(whole.T)
