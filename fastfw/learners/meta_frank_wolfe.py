"""MetaFrankWolfe: the meta algorithm with averaged gradients (Chen et al. 2018)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw.base_learners import BaseLearner
from fastfw.learners._meta import MetaLearner
from fastfw.learners._oracles import loss_at
from fastfw.schedules import power_schedule

__all__ = ["MetaFrankWolfe"]


class MetaFrankWolfe(MetaLearner):
    r"""Meta-Frank-Wolfe: `MORGFW` with a gradient averaged over the inner steps.

    .. math::

        x^{(1)} &= x_1, \qquad x^{(k+1)} = (1 - \eta_k) x^{(k)} + \eta_k v^{(k)} \\
        d^{(k)} &= (1 - \rho_k) d^{(k-1)} + \rho_k \nabla F_t(x^{(k)}, \xi^{(k)}), \quad
        d^{(0)} = 0

    Parameters
    ----------
    problem, set, rounds, base, start, seed, engine, dtype, threads
        As in `MORGFW`.
    inner_steps : int, optional
        K, by default T^{3/2} rounded up.
    step : float or callable, optional
        eta_k in [0, 1]. By default 1/(k + 1).
    momentum : float or callable, optional
        rho_k in [0, 1]. By default 1/(k + 1)^{2/3}, the rate of the theory.
    sub_batch_size : int, optional
        As in `MORGFW`; the gradients of whole batches are averaged over k all the same.

    Notes
    -----
    Per round b K gradients of single samples and K calls of the oracle. O(K C d) memory. Regret
    O(√T) in expectation.

    References
    ----------
    Chen, Harshaw, Hassani, Karbasi, "Projection-free online optimization with stochastic gradient:
    from convexity to submodularity", ICML 2018.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> problem, ball = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0)
    >>> learner = fw.MetaFrankWolfe(problem, ball, rounds=10, sub_batch_size=2)
    >>> learner.observe((np.eye(4), [0, 1, 0, 1])).t, learner.inner_steps
    (1, 32)
    """

    _recursive = False

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        rounds: int | None = None,
        inner_steps: int | None = None,
        base: BaseLearner | None = None,
        step: object = None,
        momentum: object = None,
        sub_batch_size: int | None = None,
        start: npt.ArrayLike | None = None,
        seed: int | tuple[int, ...] = 0,
        engine: str = "fused",
        dtype: npt.DTypeLike | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(
            problem,
            set,
            rounds=rounds,
            inner_steps=inner_steps,
            base=base,
            schedules={
                "step": power_schedule(1.0, 1.0) if step is None else step,
                "momentum": power_schedule(1.0, 2.0 / 3.0) if momentum is None else momentum,
            },
            sub_batch_size=sub_batch_size,
            start=start,
            seed=seed,
            engine=engine,
            dtype=dtype,
            threads=threads,
        )

    @staticmethod
    def _theory_inner_steps(rounds: int) -> int:
        cube = rounds**3
        root = math.isqrt(cube)
        return root + (root * root < cube)

    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Algorithm 2 of MORGFW, lines 7-16, with another line 13."""
        inner = state["inner"]
        loss = loss_at(self.problem, state["x"], batch)  # line 7
        d, directions = np.zeros_like(inner[0]), []
        for k in range(1, len(inner)):  # line 8
            gradient = self._gradient(inner[k - 1], batch, self._picked(t, k, batch))  # line 9
            rho = self._schedule("momentum", k)
            d = (1.0 - rho) * d + rho * gradient  # in place of lines 10-14
            directions.append(d)
        return loss, self._fed(t, state, directions)  # line 15
