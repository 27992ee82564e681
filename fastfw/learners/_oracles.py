"""Oracle calls of the "steps" engines.

What comes back is copied: an oracle may write its answers into the same array every time. What is
handed over is read-only: an oracle that changes it fails instead of changing the learner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["evaluate", "slope", "vertex"]


def evaluate(problem: Any, x: npt.NDArray[Any], batch: Any) -> tuple[float, npt.NDArray[Any]]:
    """Loss and gradient at x, from one call where the problem has one for both."""
    if hasattr(problem, "loss_and_gradient"):
        loss, gradient = problem.loss_and_gradient(_locked(x), batch)
        return float(loss), _own(gradient, x.shape, "problem.loss_and_gradient")
    return float(problem.loss(_locked(x), batch)), slope(problem, x, batch)


def slope(problem: Any, x: npt.NDArray[Any], batch: Any) -> npt.NDArray[Any]:
    """Gradient at x."""
    return _own(problem.gradient(_locked(x), batch), x.shape, "problem.gradient")


def vertex(set: Any, direction: npt.NDArray[Any], t: int) -> npt.NDArray[Any]:
    """Vertex that minimises the direction over the set, dense."""
    if not np.isfinite(direction).all():
        raise FloatingPointError(f"round {t}: the gradient estimate is not finite")
    return _own(set.lmo(_locked(direction)), direction.shape, "set.lmo")


def _locked(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def _own(answer: Any, shape: tuple[int, ...], oracle: str) -> npt.NDArray[Any]:
    array = np.array(answer)
    if array.shape != shape:
        raise ValueError(
            f"{oracle} must give an array of shape {shape}, but it gave one of shape {array.shape}"
        )
    return array
