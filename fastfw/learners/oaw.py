"""OAW: online Frank-Wolfe with away steps (Lafond, Wai and Moulines 2015)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from fastfw._checks import FloatArray
from fastfw.learners._active import ActiveSet, FusedAway
from fastfw.learners._engines import Engine, StepsEngine
from fastfw.learners._history import HistoryLearner
from fastfw.learners._oracles import toward, vertex
from fastfw.schedules import Schedules
from fastfw.sets import ConvexSet
from fastfw.sets._vertex import decode, encode

__all__ = ["OAW"]


class OAW(HistoryLearner):
    r"""Online away-step Frank-Wolfe: towards the best vertex, or away from the worst in use.

    With :math:`g = \frac1t \sum_{\tau \le t} \nabla f_\tau(x_t)`, v the vertex that minimises
    ⟨g, v⟩ and a the active vertex of largest ⟨g, a⟩:

    .. math::

        x_{t+1} = \begin{cases}
        x_t + \eta_n (v - x_t)
        & \text{if } \langle g, x_t - v \rangle \ge \langle g, a - x_t \rangle \\
        x_t + \gamma (x_t - a), \quad
        \gamma = \min(\eta_n, w_a / (1 - w_a)) & \text{otherwise} \end{cases}

    where n counts the first kind of steps. The decision is a weighted mean of x_1 and of active
    vertices: whole matrices, all rows together. An away step that reaches its bound takes all
    weight from a, which is then no longer active.

    Parameters
    ----------
    problem, set, start, seed, engine, dtype, init, threads
        As in `ORGFW`.
    step : float or callable, optional
        Step size eta_n in [0, 1] as a function of the number of Frank-Wolfe steps, the present one
        included. By default min(2/(n + 1), 1).

    Notes
    -----
    The past is kept, and its gradients are found, as in `OFW`; so are evaluations counted. One call
    of the oracle a round. At most one vertex a round becomes active, kept as a column
    and a sign for each row. x_1 carries the weight that the vertices leave and is never moved
    away from. Of several worst vertices the one active longest is taken.

    References
    ----------
    Lafond, Wai, Moulines, "On the online Frank-Wolfe algorithms for convex and non-convex
    optimizations", 2015.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> learner = fw.OAW(fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0))
    >>> result = learner.run(fw.iid_stream(X, y, batch_size=2, rounds=100, seed=0))
    >>> bool(result.losses[-20:].mean() < result.losses[0])
    True
    """

    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        x, active = state["x"], ActiveSet.of(state)
        loss, g, past = self._past_gradient(t, batch, state)
        code = encode(self.set, vertex(self.set, g, t, state), x.dtype)
        codes = [code, *active.vertices(code.dtype, code.shape)]
        v_slope, *slopes = (decode(self.set, c, x.dtype).dot(g) for c in codes)
        start_slope = float(np.vdot(g, self._start.astype(x.dtype)))
        moved, eta = self._direction(
            self._schedules, active, code.tobytes(), slopes, start_slope, v_slope
        )
        x = toward(state["exact"], decode(self.set, np.frombuffer(moved, code.dtype), x.dtype), eta)
        return loss, {"x": x, "past": past, **active.arrays(code.dtype, code.shape)}

    @staticmethod
    def _direction(
        schedules: Schedules,
        active: ActiveSet,
        v: bytes,
        slopes: list[float],
        start_slope: float,
        v_slope: float,
    ) -> tuple[bytes, float]:
        """Vertex and step, below 0 for a step away from it, of a round; changes the active set."""
        toward, away, a = active.gaps(slopes, start_slope, v_slope)
        if a is None or toward >= away:  # Frank-Wolfe step
            eta = schedules.at("step", active.steps + 1)
            active.step_toward(v, eta)
            return v, eta
        gamma = min(schedules.at("step", active.steps), active.largest_step(a))
        active.step_away(a, gamma)
        return a, -gamma

    def _forms(self, engine: Any) -> dict[str, Any]:
        forms = super()._forms(engine)
        if isinstance(engine, StepsEngine):
            x = engine.decision()
            code = encode(self.set, vertex(self.set, np.zeros_like(x), 1), x.dtype)
            forms.update(ActiveSet().arrays(code.dtype, code.shape))
        return forms

    def _read(self, engine: Any, stored: dict[str, Any]) -> dict[str, Any]:
        state = super()._read(engine, stored)
        if isinstance(engine, StepsEngine) and isinstance(self.set, ConvexSet):
            dtype = engine.decision().dtype
            points = (np.asarray(decode(self.set, code, dtype)) for code in state["vertices"])
            if not all(self.set.contains(point) for point in points):
                raise ValueError("its active vertices lie outside the set")
        if ActiveSet.of(state).steps >= self._t:
            raise ValueError("its active set is out of range")
        return state

    def _make_fused(self, start: FloatArray) -> Engine:
        direction = partial(self._direction, self._schedules)
        return FusedAway(self.problem, self.set, start, direction, self.threads)
