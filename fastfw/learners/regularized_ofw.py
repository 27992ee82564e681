"""RegularizedOFW: online Frank-Wolfe with a pull towards the start (Hazan 2016)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, in_range, positive_float, renamed
from fastfw.learners._base import OnlineLearner
from fastfw.learners._engines import Engine
from fastfw.learners._learner import count
from fastfw.learners._momentum import can_fuse
from fastfw.learners._oracles import evaluate, toward, vertex
from fastfw.learners._regularised import FusedRegularised, strength, theory_constant
from fastfw.schedules import RootSchedule

__all__ = ["RegularizedOFW"]


class RegularizedOFW(OnlineLearner):
    r"""Online Frank-Wolfe on the sum of the gradients received and a regulariser.

    .. math::

        g_t &= \sum_{\tau \le t} \nabla f_\tau(x_\tau) + \frac2\eta (x_t - x_1),
        \quad \eta = \frac{c}{T^{3/4}} \\
        v_t &= \operatorname{argmin}_{v \in M} \langle g_t, v \rangle \\
        x_{t+1} &= x_t + \sigma_t (v_t - x_t)

    Parameters
    ----------
    problem, set, start, seed, engine, dtype, init, threads
        As in `ORGFW`.
    rounds : int, optional
        T, the number of rounds to come. Without it round t uses t in place of T.
    step : float or callable, optional
        Step size sigma_t in [0, 1]. By default min(2/√t, 1), the theory's.
    scale : float, optional
        The constant c above. By default the theory's D/(2 G): D is the set's diameter and G a
        bound on gradients, found in the first round. For `SoftmaxRegression` it is
        √2 max ‖a‖ over the first batch, times B for the sum; for other problems the
        norm of the first gradient.
    eta : float, optional
        Deprecated: an earlier name of `scale`.

    Notes
    -----
    Per round one gradient per sample and one call of the oracle. O(C d) memory, whatever T.
    Regret O(T^{3/4}) for convex losses that an adversary may choose.

    References
    ----------
    Hazan, "Introduction to online convex optimization", 2016, Algorithm 24.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> problem, ball = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0)
    >>> learner = fw.RegularizedOFW(problem, ball, rounds=200)
    >>> result = learner.run(fw.iid_stream(X, y, batch_size=2, rounds=200, seed=0))
    >>> bool(result.losses[-20:].mean() < result.losses[0])
    True
    >>> round(learner.scale, 12)   # D = 4 √2, G = √2
    2.0
    """

    _fuses_codes = True
    _loops = True
    _threaded = True

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        rounds: int | None = None,
        step: object = None,
        scale: float | None = None,
        start: npt.ArrayLike | None = None,
        seed: int | tuple[int, ...] = 0,
        engine: str = "fused",
        dtype: npt.DTypeLike | None = None,
        init: str | None = None,
        threads: int | None = None,
        eta: float | None = None,
    ) -> None:
        scale = renamed("eta", eta, "scale", scale)
        self._rounds = None if rounds is None else count(rounds, "rounds")
        self._scale = None if scale is None else positive_float(scale, "scale")
        super().__init__(
            problem, set, schedules={"step": RootSchedule(2.0) if step is None else step},
            start=start, seed=seed, engine=engine, dtype=dtype, init=init, threads=threads,
        )  # fmt: skip

    @property
    def scale(self) -> float | None:
        """The constant c of eta = c / T^{3/4}; None while it waits for the first batch."""
        if self._scale is None and self._engine is not None:
            return float(self._engine.arrays()["constant"])
        return self._scale

    eta = scale  # an earlier name

    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        sigma, x = self._schedule("step", t), state["x"]
        loss, gradient = evaluate(self.problem, x, batch)
        c = self.scale or theory_constant(self.problem, self.set, batch, gradient)
        total = state["total_gradient"] + gradient if t > 1 else gradient
        x_1 = self._start.astype(x.dtype)
        v = vertex(self.set, total + strength(self._rounds, t, c) * (x - x_1), t, state)
        return loss, {
            "x": toward(state["exact"], v, sigma), "total_gradient": total, "constant": np.array(c)
        }  # fmt: skip

    def _begin(self, dtype: np.dtype[Any]) -> FloatArray:
        if self._scale is not None:
            first = strength(self._rounds, 1, self._scale)
            in_range(first, "2 T^(3/4) / scale", dtype, "rescale X")
        return super()._begin(dtype)

    def _first_state(self, start: FloatArray) -> dict[str, Any]:
        return {"x": start, "total_gradient": np.zeros_like(start), "constant": np.array(0.0)}

    def _read(self, engine: Any, stored: dict[str, Any]) -> dict[str, Any]:
        state = super()._read(engine, stored)
        if not state["constant"] > 0.0:
            raise ValueError("its constant is out of range")
        return state

    def _can_fuse(self) -> bool:
        return can_fuse(self.problem, self.set)

    def _make_fused(self, start: FloatArray) -> Engine:
        return FusedRegularised(
            self.problem, self.set, start, self._scale, partial(strength, self._rounds),
            partial(self._schedules.at, "step"), self.threads,
        )  # fmt: skip

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "rounds": self._rounds, "scale": self._scale}

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Take files of before the constant had its name."""
        return {{"eta": "scale"}.get(name, name): value for name, value in options.items()}
