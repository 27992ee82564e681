"""What the online methods that are one linear recursion share."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from fastfw._checks import FloatArray, IndexArray
from fastfw.learners._base import OnlineLearner
from fastfw.learners._engines import Engine
from fastfw.learners.compiled import LINEAR, LinearEngine, Plan, Rounds, in_rounds
from fastfw.problems import Rows

__all__ = ["LinearLearner"]


class LinearLearner(OnlineLearner):
    """Base of the methods that `LinearEngine` plays."""

    _compiled: Rounds | None = LINEAR
    _fuses_sparse = True
    _fuses_codes = True
    _loops = True
    _threaded = True
    #: What the engine has to know of the method.
    _plan: ClassVar[Plan] = Plan()

    @abstractmethod
    def _recursion(self, t: int) -> tuple[float, float, float, float, float]:
        """Alpha, beta, gamma, lambda and eta of round t, see `LinearEngine`."""

    def _make_fused(self, start: FloatArray) -> Engine:
        plan = self._plan._replace(threads=self.threads)
        return LinearEngine(self.problem, self.set, start, plan)

    def _play_rounds(self, engine: Any, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        how = in_rounds(self._recursion, self._t, starts.size - 1)
        done: int = engine.rounds(how, rows, starts, losses)
        return done
