"""OFW: online Frank-Wolfe with the gradient of all losses so far (Hazan and Kale 2012)."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastfw._checks import FloatArray
from fastfw.learners._engines import Engine
from fastfw.learners._history import FusedPast, HistoryLearner
from fastfw.learners._oracles import toward, vertex

__all__ = ["OFW"]


class OFW(HistoryLearner):
    r"""Online Frank-Wolfe: a step towards the vertex best for all losses so far.

    .. math::

        g_t &= \frac1t \sum_{\tau \le t} \nabla f_\tau(x_t) \\
        v_t &= \operatorname{argmin}_{v \in M} \langle g_t, v \rangle \\
        x_{t+1} &= x_t + \eta_t (v_t - x_t)

    Parameters
    ----------
    problem, set, start, seed, engine, dtype, init, threads
        As in `ORGFW`.
    step : float or callable, optional
        Step size eta_t in [0, 1]. By default min(2/(t + 1), 1), the choice of Lafond et al. (2015).

    Notes
    -----
    In round t the method asks for the gradients of all samples so far: B t(t + 1)/2 evaluations
    in t rounds of B samples, and one call of the oracle a round.

    The past is kept. Batches of a `Dataset` in memory cost a row number, a weight and a row of
    logits for each *different* row seen, at most n of them. Batches that come as arrays are copied,
    features and all. A step changes logits by one column per class, so the fused engine
    needs one backward product over the past each round and no forward product, and evaluates a row
    that was drawn several times once. Of a network the outputs of the first layer are kept in the
    same way, m numbers a row; the rest is nonlinear and evaluated for the whole past each round. On
    sparse rows a round costs their nonzeros times C, and what it looks through are the features
    seen so far.

    `save` writes the features and labels of all rows seen, so that the file stands alone. A loaded
    learner recognises the data set by these rows when its batches come again.

    References
    ----------
    Hazan and Kale, "Projection-free online learning", ICML 2012, Algorithm 1.

    Lafond, Wai, Moulines, "On the online Frank-Wolfe algorithms for convex and non-convex
    optimizations", 2015.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> learner = fw.OFW(fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0))
    >>> result = learner.run(fw.iid_stream(X, y, batch_size=2, rounds=100, seed=0))
    >>> bool(result.losses[-20:].mean() < result.losses[0])
    True
    >>> result.gradient_evaluations   # 2 + 4 + ... + 200
    10100
    """

    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        eta = self._schedule("step", t)
        loss, g, past = self._past_gradient(t, batch, state)
        v = vertex(self.set, g, t, state)
        return loss, {"x": toward(state["exact"], v, eta), "past": past}

    def _make_fused(self, start: FloatArray) -> Engine:
        step = partial(self._schedules.at, "step")
        return FusedPast(self.problem, self.set, start, step, self.threads)
