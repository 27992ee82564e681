"""The constant that theory gives to RegularizedOFW: D/(2 G)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._csr import is_sparse
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.sets._answers import diameter_of

__all__ = ["constant_of_batch", "constant_of_rows"]


def constant_of_batch(problem: Any, set: Any, batch: Any, gradient: npt.NDArray[Any]) -> float:
    """D/(2 G), with G from the batch for softmax regression, else the gradient's norm."""
    if type(problem) is SoftmaxRegression:
        bound = _gradient_bound(problem, problem.rows(batch))
    else:
        bound = float(np.linalg.norm(gradient))
    return _constant(diameter_of(set), bound)


def constant_of_rows(problem: Any, set: Any, start: npt.NDArray[Any], rows: Rows) -> float:
    """Return the same for rows that a problem of compiled rounds gave, at the start."""
    if type(problem) is SoftmaxRegression:
        bound = _gradient_bound(problem, rows)
    else:
        bound = float(np.linalg.norm(problem.of_rows(start, rows)[1]))
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
