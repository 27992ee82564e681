"""SPIDER-FW: Frank-Wolfe with sums of gradient differences (Shen et al. 2019)."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw.learners._offline import OfflineLearner
from fastfw.learners._oracles import evaluate, slope

__all__ = ["SpiderFW"]


class SpiderFW(OfflineLearner):
    r"""Frank-Wolfe with gradients of mini-batches that follow the point from step to step.

    Where an epoch starts, d is the gradient over all data; in the other iterations, with a fresh
    mini-batch ξ,

    .. math::

        d_t &= d_{t-1} + \nabla F(x_t, \xi) - \nabla F(x_{t-1}, \xi) \\
        v_t &= \operatorname{argmin}_{v \in M} \langle d_t, v \rangle, \quad
        x_{t+1} = x_t + \eta (v_t - x_t)

    Parameters
    ----------
    problem, set, start, seed, engine, dtype, init
        As in `SVRF`.
    step : float or callable, optional
        η in [0, 1]. By default 1/√N for N iterations.
    epoch_length : int, optional
        q. By default ⌈√n⌉ for n samples.
    batch_size : int, optional
        b. By default ⌈√n⌉.

    Notes
    -----
    n gradients of single samples where an epoch starts, 2 b in the other iterations, and one call
    of the oracle in each. Compiled code finds both gradients of an iteration from one forward and
    one backward product, as in `ORGFW`.

    References
    ----------
    Shen, Fang, Zhao, Huang, Qian, "Complexities in projection-free stochastic non-convex
    minimization", AISTATS 2019.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> problem, ball = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0)
    >>> method = fw.SpiderFW(problem, ball, step=0.05, epoch_length=10, batch_size=2, seed=0)
    >>> result = method.fit(X, y, iterations=100)
    >>> bool(problem.loss(result.decision, (X, y)) < 0.5)
    True
    """

    def __init__(
        self,
        problem: Any,
        set: Any,
        step: object = None,
        epoch_length: int | None = None,
        batch_size: int | None = None,
        seed: int | tuple[int, ...] = 0,
        *,
        start: npt.ArrayLike | None = None,
        engine: str = "fused",
        dtype: npt.DTypeLike | None = None,
        init: str | None = None,
    ) -> None:
        super().__init__(
            problem, set, step=step, epoch_length=epoch_length, batch_size=batch_size, start=start,
            seed=seed, engine=engine, dtype=dtype, init=init,
        )  # fmt: skip

    def _direction(
        self, x: FloatArray, batch: Any, whole: bool, point: FloatArray, gradient: FloatArray
    ) -> Any:
        loss, d = evaluate(self._mean_problem, x, batch)
        if not whole:
            d = gradient + d - slope(self._mean_problem, point, batch)
        return d, loss, x, d
