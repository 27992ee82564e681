"""StronglyConvexOFW: online Frank-Wolfe for strongly convex losses (Wan and Zhang 2021)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, in_range, positive_float
from fastfw.learners._base import OnlineLearner
from fastfw.learners._oracles import evaluate, line_search, toward, vertex

__all__ = ["StronglyConvexOFW"]


class StronglyConvexOFW(OnlineLearner):
    r"""Online Frank-Wolfe with a line search, regularised by the losses' own strong convexity.

    .. math::

        g_t &= \sum_{\tau \le t} \bigl(\nabla f_\tau(x_\tau) + \beta (x_t - x_\tau)\bigr) \\
        v_t &= \operatorname{argmin}_{v \in M} \langle g_t, v \rangle, \quad
        \sigma_t = \min\Bigl(1,
        \frac{\langle g_t, x_t - v_t \rangle}{\beta t \|x_t - v_t\|^2}\Bigr) \\
        x_{t+1} &= x_t + \sigma_t (v_t - x_t)

    Parameters
    ----------
    problem, set, start, seed, engine, dtype, init
        As in `ORGFW`. There are no compiled rounds: the engine is always "steps".
    strong_convexity : float
        beta > 0, of every loss, in its own unit: where the problem's reduction is the sum, B times
        that of the mean.

    Notes
    -----
    Per round one gradient per sample and one call of the oracle. O(n) memory for n parameters,
    whatever T, and no horizon. Regret O(T^{2/3}) on any set and O(√T) on strongly convex ones, such
    as `L2Ball`, for losses that an adversary may choose;
    see `fastfw.theory.strongly_convex_regret_bound`. A loss with a penalty beta ‖x‖²/2 is
    beta-strongly convex; softmax regression by itself is not, and has no guarantee.

    References
    ----------
    Wan, Zhang, "Projection-free online learning over strongly convex sets", AAAI 2021,
    Algorithm 2.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> def squares(x, a):
    ...     return 0.5 * ((x - a) ** 2).sum(), x - a
    >>> problem = fw.problem_from_function(squares, 2)
    >>> learner = fw.StronglyConvexOFW(problem, fw.L2Ball(2, radius=1.0), strong_convexity=1.0)
    >>> for _ in range(20):
    ...     _ = learner.observe(np.array([3.0, 4.0]))
    >>> learner.play().round(6)
    array([0.6, 0.8])
    """

    _points = ("total_gradient",)

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        strong_convexity: float,
        start: npt.ArrayLike | None = None,
        seed: int | tuple[int, ...] = 0,
        engine: str = "fused",
        dtype: npt.DTypeLike | None = None,
        init: str | None = None,
    ) -> None:
        self._beta = positive_float(strong_convexity, "strong_convexity")
        super().__init__(
            problem, set, schedules={}, start=start, seed=seed, engine=engine, dtype=dtype,
            init=init,
        )  # fmt: skip

    @property
    def strong_convexity(self) -> float:
        """The losses' beta."""
        return self._beta

    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        x = state["exact"]
        loss, gradient = evaluate(self.problem, state["x"], batch)
        total = state["total_gradient"] + gradient
        g = total + self._beta * (t * x - state["total"])  # of t decisions
        v = vertex(self.set, g.astype(gradient.dtype), t, state)
        sigma = line_search(x, v, g, self._beta * t)
        return loss, {"x": toward(x, v, sigma), "total_gradient": total}

    def _begin(self, dtype: np.dtype[Any]) -> FloatArray:
        in_range(self._beta, "strong_convexity", dtype, "rescale the loss")
        return super()._begin(dtype)

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "strong_convexity": self._beta}
