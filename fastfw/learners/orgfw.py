"""ORGFW: online Frank-Wolfe with a stochastic recursive gradient (Algorithm 1)."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fastfw.learners._linear import RecursiveLearner
from fastfw.learners._oracles import evaluate, slope, toward, vertex
from fastfw.schedules import power_schedule

__all__ = ["ORGFW"]


class ORGFW(RecursiveLearner):
    r"""Online Frank-Wolfe with a stochastic recursive gradient estimator.

    .. math::

        d_t &= \nabla F_t(x_t) + (1 - \rho_t) (d_{t-1} - \nabla F_t(x_{t-1})), \quad
        d_1 = \nabla F_1(x_1) \\
        v_t &= \operatorname{argmin}_{v \in M} \langle d_t, v \rangle \\
        x_{t+1} &= x_t + \eta_t (v_t - x_t)

    Parameters
    ----------
    problem : object
        Losses: `SoftmaxRegression`, `OneHiddenLayer`, or any object with ``shape``,
        ``loss(x, batch)`` and ``gradient(x, batch)``.
    set : object
        Feasible set M: one of `fastfw.sets`, or any object with ``shape``,
        ``lmo(direction)`` and ``diameter``.
    step : float or callable, optional
        Step size eta_t in [0, 1]. By default 1/(t + 1), for which Theorem 1 holds.
    momentum : float or callable, optional
        rho_t in [0, 1]. By default 1/(t + 1).
    start : array_like, optional
        x_1, a point of the set. By default as `init` says.
    seed : int, optional
        For what is drawn: here the start, if at all.
    engine : {"fused", "steps", "dask"}
        "fused" plays rounds in compiled code where it exists (softmax regression, a network with
        one hidden layer and functions that Numba compiled, on sets made of rows, such as
        `RowL1Ball` and `Simplex`, a `CompiledSet`, and products of them) and otherwise falls back
        to "steps": the same algorithm composed of oracle calls. Both agree to rounding; where
        vertices tie, as in the last layer of a network with two classes, rounding decides.
        `EngineWarning` says so where one might think otherwise. "dask" plays the rounds of a Dask
        array on the workers of the cluster whose client is Dask's scheduler, which keep the rows;
        all others as "steps". With "fused" that is what a learner does from its first round on
        where it measures that it is quicker; ``learner.engine.reason`` says what was measured.
    dtype : {float64, float32}, optional
        Of the decisions. By default float32 if the first batch is, else float64.
    init : {"zeros", "vertex", "random"}, optional
        x_1 where `start` is not given: zeros, the vertex of a random direction, or a random point
        inside (of l1 balls: at half the radius, all entries nonzero). By default the problem's
        ``default_init``, see `OneHiddenLayer`; else zeros, or a vertex where zeros are not
        feasible.
    threads : int, optional
        That share the rows of a batch in compiled rounds of softmax regression, on a dense matrix
        or bytes. By default what the environment variable FASTFW_NUM_THREADS says, else 1. A number
        always gives the same bits.
    average : bool, optional
        Whether `average` is kept up, for which wide learners need a third more memory.

    Notes
    -----
    Per round and sample two gradients and per round one call of the oracle; the fused engine gets
    both gradients from one forward and one backward product. O(C d) memory, whatever T.
    Regret Õ(√T) with high probability for i.i.d. convex losses (Theorem 1).

    References
    ----------
    Xie et al., "Efficient Projection-Free Online Methods with Stochastic Recursive Gradient",
    AAAI 2020, Algorithm 1.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> problem = fw.SoftmaxRegression(n_features=4, n_classes=2)
    >>> learner = fw.ORGFW(problem, fw.RowL1Ball((2, 4), radius=2.0))
    >>> result = learner.run(fw.iid_stream(X, y, batch_size=4, rounds=200, seed=0))
    >>> bool(result.losses[-50:].mean() < result.losses[0])
    True
    """

    _points = ("x_previous", "d")

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
        theory = power_schedule(1.0, 1.0)
        super().__init__(
            problem,
            set,
            schedules={
                "step": theory if step is None else step,
                "momentum": theory if momentum is None else momentum,
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
        """Algorithm 1, lines 2-9."""
        eta, x = self._schedule("step", t), state["x"]
        loss, gradient = evaluate(self.problem, x, batch)  # line 2
        if t == 1:  # line 3
            d = gradient  # line 4
        else:  # line 5
            rho = self._schedule("momentum", t)
            back = slope(self.problem, state["x_previous"], batch)
            d = gradient + (1.0 - rho) * (state["d"] - back)  # line 6
        v = vertex(self.set, d, t, state)  # line 8
        return loss, {"x": toward(state["exact"], v, eta), "x_previous": x, "d": d}  # line 9

    def _recursion(self, t: Any) -> tuple[Any, ...]:
        """Line 6 as d ← gamma d + alpha ∇F(x_t) - beta ∇F(x_{t-1}), and the step of line 9."""
        keep = (t > 1) * (1.0 - self._schedules.at("momentum", t + (t == 1)))  # none in round 1
        return 1.0, keep, keep, 0.0, self._schedules.at("step", t)

    def _cost(self, t: int, k: int, batch_size: int) -> tuple[int, int]:
        return 2 * k * batch_size, k
