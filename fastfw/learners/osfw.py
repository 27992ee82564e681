"""OSFW: online Frank-Wolfe with a gradient averaged over rounds (Chen et al. 2018)."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fastfw.learners._linear import RecursiveLearner
from fastfw.learners._oracles import evaluate, toward, vertex
from fastfw.learners.compiled import Plan
from fastfw.schedules import power_schedule

__all__ = ["OSFW"]


class OSFW(RecursiveLearner):
    r"""Online stochastic Frank-Wolfe: one gradient a round, averaged with momentum.

    .. math::

        d_t &= (1 - \rho_t) d_{t-1} + \rho_t \nabla F_t(x_t), \quad d_0 = 0 \\
        v_t &= \operatorname{argmin}_{v \in M} \langle d_t, v \rangle \\
        x_{t+1} &= x_t + \eta_t (v_t - x_t)

    Parameters
    ----------
    problem, set, start, seed, engine, dtype, init, threads, average
        As in `ORGFW`.
    step : float or callable, optional
        Step size eta_t in [0, 1]. By default 1/(t + 1).
    momentum : float or callable, optional
        rho_t in [0, 1]. By default 1/(t + 1)^{2/3}.

    Notes
    -----
    Per round one gradient per sample and one call of the oracle. O(C d) memory, whatever T.
    Regret O(T^{2/3}) in expectation for i.i.d. convex losses.

    References
    ----------
    Chen, Harshaw, Hassani, Karbasi, "Projection-free online optimization with stochastic gradient:
    from convexity to submodularity", ICML 2018.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> problem = fw.SoftmaxRegression(n_features=4, n_classes=2)
    >>> learner = fw.OSFW(problem, fw.RowL1Ball((2, 4), radius=2.0))
    >>> learner.observe((np.eye(4), [0, 1, 0, 1])).t, learner.t
    (1, 2)
    """

    _points = ("d",)
    _plan = Plan(recalls=False)

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        step: object = None,
        momentum: object = None,
        start: npt.ArrayLike | None = None,
        seed: int | tuple[int, ...] = 0,
        engine: str = "fused",
        dtype: npt.DTypeLike | None = None,
        init: str | None = None,
        threads: int | None = None,
        average: bool = True,
    ) -> None:
        super().__init__(
            problem,
            set,
            schedules={
                "step": power_schedule(1.0, 1.0) if step is None else step,
                "momentum": power_schedule(1.0, 2.0 / 3.0) if momentum is None else momentum,
            },
            start=start,
            seed=seed,
            engine=engine,
            dtype=dtype,
            init=init,
            threads=threads,
            average=average,
        )

    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        eta, rho = self._schedule("step", t), self._schedule("momentum", t)
        x = state["x"]
        loss, gradient = evaluate(self.problem, x, batch)
        d = (1.0 - rho) * state["d"] + rho * gradient if t > 1 else rho * gradient
        v = vertex(self.set, d, t, state)
        return loss, {"x": toward(state["exact"], v, eta), "d": d}

    def _recursion(self, t: Any) -> tuple[Any, ...]:
        """D ← gamma d + alpha ∇F(x_t) - beta ∇F(x_{t-1}), and the step."""
        rho = self._schedules.at("momentum", t)
        return rho, 0.0, 1.0 - rho, 0.0, self._schedules.at("step", t)
