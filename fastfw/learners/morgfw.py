"""MORGFW: meta Frank-Wolfe with a stochastic recursive gradient (Algorithm 2)."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from fastfw.base_learners import BaseLearner
from fastfw.learners._meta import MetaLearner
from fastfw.learners._oracles import loss_at
from fastfw.schedules import power_schedule

__all__ = ["MORGFW"]


class MORGFW(MetaLearner):
    r"""Meta algorithm for losses chosen by an adversary, with a recursive gradient estimator.

    In round t it takes K Frank-Wolfe steps from x_1 towards the answers of K base learners, plays
    where they end, and feeds base learner k the linear loss d^(k):

    .. math::

        x^{(1)} &= x_1, \qquad x^{(k+1)} = (1 - \eta_k) x^{(k)} + \eta_k v^{(k)} \\
        d^{(k)} &= \nabla F_t(x^{(k)}, \xi^{(k)})
            + (1 - \rho_k) (d^{(k-1)} - \nabla F_t(x^{(k-1)}, \xi^{(k)})), \quad
        d^{(1)} = \nabla F_t(x^{(1)}, \xi^{(1)})

    Parameters
    ----------
    problem, set, start, seed, engine, dtype
        As in `ORGFW`. The fused engine exists for softmax regression on a row-l1 ball with base
        `FTPL`.
    rounds : int, optional
        The horizon T. Later rounds may be played too, with the same constants. Without it, the
        doubling trick: epochs of 1, 2, 4, ... rounds, each with new base learners.
    inner_steps : int, optional
        K, by default the number of rounds (of the epoch).
    base : BaseLearner, optional
        The base learners' method: `FTPL` (default), `OGD`, `RFTL` or one of your own.
    step : float or callable, optional
        eta_k in [0, 1] of the inner step k. By default 1/(k + 1), as in Theorem 2.
    momentum : float or callable, optional
        rho_k in [0, 1]. By default 1/(k + 1). Not used with whole batches.
    sub_batch_size : int, optional
        b, the rows of the sub-batch xi^(k), drawn with replacement from the round's batch anew for
        every k. Without it every inner step takes the whole batch, where d^(k) is the exact
        gradient at x^(k).

    threads : int, optional
        As in `ORGFW`: they share the batch and, with sub-batches, the classes of every inner step.
        A matrix product of whole batches takes the threads of NumPy's BLAS.

    Notes
    -----
    Per round 2 b K gradients of single samples (K per sample with whole batches) and K calls of the
    oracle. O(K C d) memory. Regret Õ(√T) with high probability (Theorem 2).
    Rows and noise are pure functions of seed, round and inner step; see `sub_batch` and
    `FTPL.perturbation`.

    References
    ----------
    Xie et al., "Efficient Projection-Free Online Methods with Stochastic Recursive Gradient",
    AAAI 2020, Algorithm 2.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> problem, ball = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0)
    >>> learner = fw.MORGFW(problem, ball, rounds=50, base=fw.FTPL(scale=20.0), sub_batch_size=2)
    >>> result = learner.run(fw.iid_stream(X, y, batch_size=4, rounds=50, seed=0))
    >>> bool(result.losses[-20:].mean() < result.losses[0])
    True
    """

    _recursive = True

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
        theory = power_schedule(1.0, 1.0)
        super().__init__(
            problem,
            set,
            rounds=rounds,
            inner_steps=inner_steps,
            base=base,
            schedules={
                "step": theory if step is None else step,
                "momentum": theory if momentum is None else momentum,
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
        return rounds

    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Algorithm 2, lines 7-16; lines 2-6 were done when the round before ended."""
        inner = state["inner"]
        loss = loss_at(self.problem, state["x"], batch)  # line 7
        d, directions = inner[0], []
        for k in range(1, len(inner)):  # line 8
            picked = self._picked(t, k, batch)  # line 9
            gradient = self._gradient(inner[k - 1], batch, picked)
            if k == 1 or picked is None:  # line 10
                d = gradient  # line 11
            else:  # line 12
                back = self._gradient(inner[k - 2], batch, picked)
                d = gradient + (1.0 - self._schedule("momentum", k)) * (d - back)  # line 13
            directions.append(d)
        return loss, self._fed(t, state, directions)  # line 15
