"""What the online methods that are one linear recursion share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np

from fastfw._checks import FloatArray, IndexArray
from fastfw.learners._base import OnlineLearner
from fastfw.learners._engines import Engine
from fastfw.learners._oracles import toward, vertex
from fastfw.learners.compiled import LINEAR, LinearEngine, Plan, Rounds, in_rounds
from fastfw.problems import Rows

__all__ = ["RecursiveLearner", "State"]

State = dict[str, Any]

# Rounds whose coefficients are found at once where they are played one by one, from the second on.
_AHEAD = 64


class RecursiveLearner(OnlineLearner):
    """Base of the methods that are the recursion of `LinearEngine`; the shortest is `OSFW`.

    A method has its `_recursion` beside `_round`, and a `_plan` of what it has to remember. The
    last of its `_points` is d, and ``x_previous`` is among them where beta is not 0.
    """

    _compiled: Rounds | None = LINEAR
    _fuses_sparse = True
    _fuses_codes = True
    _loops = True
    _threaded = True
    _shareable = True
    #: What the engine has to know of the method.
    _plan: ClassVar[Plan] = Plan()
    _made = (*OnlineLearner._made, "_ahead")
    #: A round, the constants and the coefficients of that round and of the next ones.
    _ahead: tuple[int, tuple[float, ...], FloatArray] = (0, (), np.empty((0, 6, 1)))

    @abstractmethod
    def _recursion(self, t: Any) -> tuple[Any, ...]:
        """Alpha, beta, gamma, lambda and eta of round t, or of an array of rounds: the same bits.

        ``self._schedules.at`` and `fastfw.schedules.raised` take either.
        """

    def _shared_round(self, t: int, batch: Any, state: State) -> tuple[float, State]:
        """Play the recursion of `LinearEngine` once, with losses and gradients from a cluster."""
        (alpha, beta, gamma, pull, eta), kept = self._coefficients(t, batch, state)
        loss, gradient = batch.sums(t, state, alpha, beta)
        name, x = self._points[-1], state["x"]
        d = gamma * state[name] + gradient
        direction = d + pull * (x - self._start.astype(x.dtype)) if pull else d
        v = vertex(self.set, direction, t, state)
        batch.moved(v, eta)
        after = {"x": toward(state["exact"], v, eta), name: d, **kept}
        if "x_previous" in self._points:
            after["x_previous"] = x
        return loss, after

    def _coefficients(self, t: int, batch: Any, state: State) -> tuple[tuple[float, ...], State]:
        """Return the recursion's coefficients, and what of the state a round decides."""
        return self._recursion(t), {}

    def _make_fused(self, start: FloatArray) -> Engine:
        plan = self._plan._replace(threads=self.threads, average=self._averages)
        return LinearEngine(self.problem, self.set, start, plan)

    def _play_rounds(self, engine: Any, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        done: int = engine.rounds(self._in_rounds(starts.size - 1), rows, starts, losses)
        return done

    def _in_rounds(self, k: int, *constants: float) -> Any:
        """Return the coefficients of the next k rounds, a column each, see `_recursion`."""
        t = self._t
        first, given, ahead = self._ahead
        if k == 1 and 0 <= t - first < len(ahead) and constants == given:
            return ahead[t - first]
        known = k == 1 and self._schedules.formulas
        goes_on = known and t == first + len(ahead)
        found = in_rounds(lambda t: self._recursion(t, *constants), t, _AHEAD if goes_on else k)
        if not known:
            return found
        ahead = np.ascontiguousarray(found.T)[:, :, np.newaxis]
        self._ahead = t, constants, ahead
        return ahead[0]
