"""RegularizedOFW: online Frank-Wolfe with a pull towards the start (Hazan 2016)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, in_range, non_negative_float, renamed
from fastfw.learners._constant import ScaledLearner, constant_of_rows
from fastfw.learners._linear import RecursiveLearner, State
from fastfw.learners._oracles import evaluate, line_search, toward, vertex
from fastfw.learners.compiled import Plan
from fastfw.problems import Rows
from fastfw.schedules import RootSchedule, raised

__all__ = ["RegularizedOFW"]


class RegularizedOFW(ScaledLearner, RecursiveLearner):
    r"""Online Frank-Wolfe on the sum of the gradients received and a regulariser.

    .. math::

        g_t &= \sum_{\tau \le t} \nabla f_\tau(x_\tau) + \frac2\eta (x_t - x_1),
        \quad \eta = \frac{c}{T^{3/4}} \\
        v_t &= \operatorname{argmin}_{v \in M} \langle g_t, v \rangle \\
        x_{t+1} &= x_t + \sigma_t (v_t - x_t)

    Parameters
    ----------
    problem, set, start, seed, engine, dtype, init, threads, average
        As in `ORGFW`.
    rounds : int, optional
        T, the number of rounds to come. Without it round t uses t in place of T.
    step : float, callable or "line-search", optional
        Step size sigma_t in [0, 1]. By default min(2/√t, 1), the theory's. With ``"line-search"``
        it is the best one for the sum and the regulariser, and on a set that states its
        `strong_convexity`, such as `L2Ball`, eta = c / (T + 2)^{2/3}.
    scale : float, optional
        The constant c above. By default the theory's D/(2 G): D is the set's diameter and G a
        bound on gradients, found in the first round. For `SoftmaxRegression` it is √2 max ‖a‖
        over the first batch, times B for the sum; for other problems the first gradient's norm.
    eta : float, optional
        Deprecated: an earlier name of `scale`.

    Notes
    -----
    Per round one gradient per sample and one call of the oracle. O(C d) memory, whatever T.
    Regret O(T^{3/4}) for convex losses that an adversary may choose; by line search on strongly
    convex sets O(T^{2/3}), see `fastfw.theory.line_search_regret_bound`.

    References
    ----------
    Hazan, "Introduction to online convex optimization", 2016, Algorithm 24. Wan, Zhang,
    "Projection-free online learning over strongly convex sets", AAAI 2021, Algorithm 1.

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

    _points = ("total_gradient",)
    _plan = Plan(recalls=False, pulls=True)
    eta = ScaledLearner.scale  # an earlier name

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
        average: bool = True,
        eta: float | None = None,
    ) -> None:
        self._take(rounds, renamed("eta", eta, "scale", scale))
        self._searches = isinstance(step, str)
        if self._searches and step != "line-search":
            raise TypeError(f'step must be a number, a callable or "line-search", not {step!r}')
        if self._searches:
            non_negative_float(getattr(set, "strong_convexity", 0.0), "set.strong_convexity")
        self._shareable = not self._searches
        schedules = {} if self._searches else {"step": RootSchedule(2.0) if step is None else step}
        super().__init__(
            problem, set, schedules=schedules, start=start, seed=seed, engine=engine, dtype=dtype,
            init=init, threads=threads, average=average,
        )  # fmt: skip

    def _round(self, t: int, batch: Any, state: State) -> tuple[float, State]:
        x, exact = state["x"], state["exact"]
        loss, gradient = evaluate(self.problem, x, batch)
        c = self._constant(batch, gradient)
        total = state["total_gradient"] + gradient if t > 1 else gradient
        pull = self._strength(t, c)
        g = total + pull * (x - self._start.astype(x.dtype))
        v = vertex(self.set, g, t, state)
        sigma = line_search(exact, v, g, pull) if self._searches else self._schedule("step", t)
        after = {"x": toward(exact, v, sigma), "total_gradient": total, "constant": np.array(c)}
        return loss, after

    def _begin(self, dtype: np.dtype[Any]) -> FloatArray:
        if self._scale is not None:
            in_range(self._strength(1, self._scale), "2 / eta, of the scale,", dtype, "rescale X")
        return super()._begin(dtype)

    def _strength(self, t: Any, c: float) -> Any:
        """2/eta in round t, with eta = c / T^{3/4}, or c / (T + 2)^{2/3}."""
        T = t if self._rounds is None else self._rounds
        faster = self._searches and getattr(self.set, "strong_convexity", 0.0) > 0.0
        return 2.0 / (c / (raised(T + 2, 2.0 / 3.0) if faster else raised(T, 0.75)))

    def _recursion(self, t: Any, c: float = 1.0) -> tuple[Any, ...]:
        step = np.nan if self._searches else self._schedules.at("step", t)
        return 1.0, 0.0, 1.0, self._strength(t, c), step

    def _coefficients(self, t: int, batch: Any, state: State) -> tuple[tuple[float, ...], State]:
        c = self.scale or constant_of_rows(
            self.problem, self.set, state["x"], self.problem.rows(batch.held())
        )
        return self._recursion(t, c), {"constant": np.array(c)}

    def _play_rounds(self, engine: Any, rows: Rows, starts: IndexArray, losses: FloatArray) -> int:
        c = float(engine.constant) or self._scale
        if not c:
            first = Rows(rows.X, rows.y, rows.rows[: starts[1]])
            c = constant_of_rows(self.problem, self.set, engine.decision(), first)
        engine.constant[...] = c  # of an engine that nobody has seen, if it had none
        return int(engine.rounds(self._in_rounds(starts.size - 1, c), rows, starts, losses))

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), **({"step": "line-search"} if self._searches else {})}
