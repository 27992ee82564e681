"""SVRF: stochastic variance-reduced Frank-Wolfe (Hazan and Luo 2016)."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw.learners._offline import Iteration, OfflineLearner
from fastfw.learners._oracles import evaluate, slope
from fastfw.learners.compiled import Plan

__all__ = ["SVRF"]

SCHEDULES = ("constant", "hazan-luo")


class SVRF(OfflineLearner):
    r"""Frank-Wolfe with gradients of mini-batches, corrected by a full one from time to time.

    Where an epoch starts, the point :math:`\tilde x = x_t` and the gradient over all data are kept
    and d is that gradient; in the other iterations, with a fresh mini-batch ξ,

    .. math::

        d_t &= \nabla F(x_t, \xi) - \nabla F(\tilde x, \xi) + \nabla f(\tilde x) \\
        v_t &= \operatorname{argmin}_{v \in M} \langle d_t, v \rangle, \quad
        x_{t+1} = x_t + \eta (v_t - x_t)

    Parameters
    ----------
    problem, set : object
        As in `ORGFW`. The loss of a batch is taken to be a mean over its samples.
    step : float or callable, optional
        η in [0, 1]. By default 1/√N for N iterations (Reddi et al. 2016).
    epoch_length : int, optional
        q: an epoch starts every so many iterations. By default ⌈n^{1/3}⌉ for n samples.
    batch_size : int, optional
        b, samples in a mini-batch, drawn with replacement. By default ⌈n^{2/3}⌉.
    schedule : {"constant", "hazan-luo"}
        "constant" is the above. "hazan-luo" is the schedule of the method's inventors for convex
        problems: epoch e = 1, 2, ... has 2^{e+3} - 2 iterations, of which the k-th has the step
        2/(k + 1) and a mini-batch of 96 (k + 1); `step`, `epoch_length` and `batch_size` are then
        not to be given.
    start : array_like, optional
        As in `ORGFW`.
    seed : int, optional
        Of the mini-batches. That of iteration t is a function of seed and t alone.
    engine : {"fused", "steps"}
        As in `ORGFW`; compiled code exists for the same problems and sets.
    dtype : {float64, float32}, optional
        Of the points. By default float32 if the features are, else float64.
    init : {"zeros", "vertex", "random"}, optional
        As in `ORGFW`.

    Notes
    -----
    n gradients of single samples where an epoch starts, 2 b in the other iterations, and one call
    of the oracle in each. Memory for five points.

    References
    ----------
    Hazan and Luo, "Variance-reduced and projection-free stochastic optimization", ICML 2016.

    Reddi, Sra, Poczos, Smola, "Stochastic Frank-Wolfe methods for nonconvex optimization", 2016.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> problem, ball = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0)
    >>> method = fw.SVRF(problem, ball, step=0.05, epoch_length=10, batch_size=2, seed=0)
    >>> result = method.fit(X, y, iterations=100)
    >>> result.gradient_evaluations   # 10 epochs of 4 + 9 * 2 * 2
    400
    >>> bool(problem.loss(result.decision, (X, y)) < 0.5)
    True
    """

    _exponents = (1 / 3, 2 / 3)
    _plan = Plan(anchored=True)

    def __init__(
        self,
        problem: Any,
        set: Any,
        step: object = None,
        epoch_length: int | None = None,
        batch_size: int | None = None,
        seed: int | tuple[int, ...] = 0,
        *,
        schedule: str = "constant",
        start: npt.ArrayLike | None = None,
        engine: str = "fused",
        dtype: npt.DTypeLike | None = None,
        init: str | None = None,
    ) -> None:
        if schedule not in SCHEDULES:
            raise ValueError(f"schedule must be one of {SCHEDULES}, but it is {schedule!r}")
        if schedule != "constant" and not step is epoch_length is batch_size is None:
            raise ValueError(
                f"schedule {schedule!r} has its own step, epoch_length and "
                "batch_size; leave them out"
            )
        self._schedule = schedule
        super().__init__(
            problem, set, step=step, epoch_length=epoch_length, batch_size=batch_size, start=start,
            seed=seed, engine=engine, dtype=dtype, init=init,
        )  # fmt: skip

    def _iteration(self, t: int, n: int, N: int) -> Iteration:
        if self._schedule == "constant":
            return super()._iteration(t, n, N)
        # Epochs 1, ..., e - 1 have 2^{e+3} - 16 - 2 (e - 1) iterations together.
        e, k, length = 1, t, 14
        while k > length:
            e, k = e + 1, k - length
            length = 2 ** (e + 3) - 2
        return Iteration(None if k == 1 else 96 * (k + 1), 2.0 / (k + 1))

    def _direction(
        self, x: FloatArray, batch: Any, whole: bool, point: FloatArray, gradient: FloatArray
    ) -> Any:
        loss, g = evaluate(self._mean_problem, x, batch)
        if whole:
            return g, loss, x, g
        d = g - slope(self._mean_problem, point, batch) + gradient
        return d, loss, point, gradient

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "schedule": self._schedule}
