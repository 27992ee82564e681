"""Oracle calls of the "steps" engines.

What comes back is copied: an oracle may write its answers into the same array every time. What is
handed over is read-only: an oracle that changes it fails instead of changing the learner.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import read_only
from fastfw.sets import Vertex
from fastfw.sets._accept import accept, accept_vertex, call_oracle
from fastfw.sets._vertex import decode, encode

__all__ = ["evaluate", "line_search", "loss_at", "slope", "toward", "vertex"]


def evaluate(problem: Any, x: npt.NDArray[Any], batch: Any) -> tuple[float, npt.NDArray[Any]]:
    """Loss and gradient at x, from one call where the problem has one for both."""
    if hasattr(problem, "loss_and_gradient"):
        loss, gradient = problem.loss_and_gradient(read_only(x), read_only(batch))
        name = "problem.loss_and_gradient"
        return float(loss), accept(gradient, x.shape, name, finite=False)
    return loss_at(problem, x, batch), slope(problem, x, batch)


def loss_at(problem: Any, x: npt.NDArray[Any], batch: Any) -> float:
    """Loss at x."""
    return float(problem.loss(read_only(x), read_only(batch)))


def slope(problem: Any, x: npt.NDArray[Any], batch: Any) -> npt.NDArray[Any]:
    """Gradient at x."""
    found = problem.gradient(read_only(x), read_only(batch))
    # the estimates made of it are looked at
    return accept(found, x.shape, "problem.gradient", finite=False)


def vertex(
    set: Any, direction: npt.NDArray[Any], t: int, state: dict[str, Any] | None = None
) -> Vertex | npt.NDArray[Any]:
    """Vertex that minimises the direction over the set: structured, or else a dense array.

    Where the set's oracle can begin from an earlier answer, that is kept in the state as "warm".
    """
    if not np.isfinite(direction).all():
        raise FloatingPointError(f"round {t}: the gradient estimate is not finite")
    if state is not None and getattr(set, "warm_starts", False):
        start = decode(set, state["warm"], direction.dtype) if "warm" in state else None
        found = accept_vertex(call_oracle(set, read_only(direction), start), direction)
        state["warm"] = encode(set, found, direction.dtype)
        return found
    return accept_vertex(call_oracle(set, read_only(direction)), direction)


def toward(x: npt.NDArray[Any], v: Vertex | npt.NDArray[Any], eta: float) -> npt.NDArray[Any]:
    """X + eta (v - x), a new array; away from v for eta below 0."""
    return v.step(x, eta) if isinstance(v, Vertex) else x + eta * (v - x)


def line_search(
    x: npt.NDArray[Any], v: Vertex | npt.NDArray[Any], gradient: npt.NDArray[Any], curvature: float
) -> float:
    """Best step in [0, 1] from x towards a vertex for ⟨gradient, ·⟩ + curvature/2 ‖· - x‖²."""
    away = x - toward(x, v, 1.0)
    # in a power of 2 near its length: no square leaves the range of floats, no bit changes
    unit = math.frexp(float(np.abs(away).max(initial=0.0)))[1] - 1
    away = np.ldexp(away, -unit)
    gap, bend = float(np.vdot(gradient, away)), curvature * 2.0**unit * float(np.vdot(away, away))
    if gap >= bend:
        return 1.0
    return gap / bend if gap > 0.0 else 0.0
