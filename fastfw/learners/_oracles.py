"""Oracle calls of the "steps" engines."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["evaluate", "vertex"]


def evaluate(problem: Any, x: npt.NDArray[Any], batch: Any) -> tuple[float, npt.NDArray[Any]]:
    """Loss and gradient at x, from one call where the problem has one for both."""
    if hasattr(problem, "loss_and_gradient"):
        loss, gradient = problem.loss_and_gradient(x, batch)
        return float(loss), np.asarray(gradient)
    return float(problem.loss(x, batch)), np.asarray(problem.gradient(x, batch))


def vertex(set: Any, direction: npt.NDArray[Any], t: int) -> npt.NDArray[Any]:
    """Vertex that minimises the direction over the set, dense."""
    if not np.isfinite(direction).all():
        raise FloatingPointError(
            f"round {t}: the gradient estimate is not finite. The learner is as before this round"
        )
    return np.asarray(set.lmo(direction))
