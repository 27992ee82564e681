"""OSPF: blocks of rounds, each played at a mean of perturbed leaders (Hazan and Minasyan 2020)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, seed_bits
from fastfw.base_learners import FTPL, Turn
from fastfw.learners._constant import ScaledLearner
from fastfw.learners._learner import count
from fastfw.learners._oracles import evaluate, toward
from fastfw.sets import ConvexSet
from fastfw.sets._accept import diameter_of

__all__ = ["OSPF"]


class _Place(NamedTuple):
    """Where a round stands: its epoch, and its place in a block of so many rounds."""

    first: int
    rounds: int
    block: int
    i: int
    last: bool


class OSPF(ScaledLearner):
    r"""Online smooth projection-free: the mean of a block's perturbed leaders in place of a pull.

    Rounds come in blocks of k, in each of which the same point is played. A round of block b asks

    .. math::

        v_t = \operatorname{argmin}_{v \in M} \Bigl\langle \frac{c}{\sqrt{k T}}
        \sum_{\tau \text{ in blocks} < b} \nabla f_\tau(x_\tau) + n_t, v \Bigr\rangle

    with noise of entries uniform on [-1/2, 1/2); the mean of a block's k vertices is
    what the next block plays.

    Parameters
    ----------
    problem, set, start, seed, engine, dtype, init
        As in `ORGFW`. There are no compiled rounds: the engine is always "steps".
    rounds : int, optional
        The horizon T. Later rounds may be played too, with the same constants. Without it, the
        doubling trick: epochs of 1, 2, 4, ... rounds, each of which forgets the gradients before.
    block_size : int, optional
        k, rounds and samples of a block. By default ⌈T^{1/3}⌉, T the rounds (of the epoch).
    scale : float, optional
        The constant c above. By default 1/(2 G): G is a bound on gradients, found in the first
        round as `RegularizedOFW` does.

    Notes
    -----
    Per round one gradient per sample and one call of the oracle. O(n) memory for n parameters,
    whatever T. Regret O(T^{2/3}) in expectation for smooth convex losses in any order that is
    settled before the first round; see `fastfw.theory.ospf_regret_bound`.

    References
    ----------
    Hazan, Minasyan, "Faster projection-free online learning", COLT 2020.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> problem, ball = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0)
    >>> learner = fw.OSPF(problem, ball, rounds=1000)
    >>> result = learner.run(fw.iid_stream(X, y, batch_size=2, rounds=1000, seed=0))
    >>> bool(result.losses[-20:].mean() < result.losses[0])
    True
    >>> learner.block_size
    10
    """

    _points = ("past", "block")

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        rounds: int | None = None,
        block_size: int | None = None,
        scale: float | None = None,
        start: npt.ArrayLike | None = None,
        seed: int | tuple[int, ...] = 0,
        engine: str = "fused",
        dtype: npt.DTypeLike | None = None,
        init: str | None = None,
    ) -> None:
        self._take(rounds, scale)
        self._block = None if block_size is None else count(block_size, "block_size")
        super().__init__(
            problem, set, schedules={}, start=start, seed=seed, engine=engine, dtype=dtype,
            init=init,
        )  # fmt: skip

    @property
    def block_size(self) -> int:
        """Rounds k of the current block."""
        return self._place(self._t).block

    def _place(self, t: int) -> _Place:
        first, n = 1, self._rounds
        if n is None:
            first = n = 1 << (t.bit_length() - 1)  # epochs begin with rounds 1, 2, 4, ...
        k = self._block or math.ceil(round(n ** (1.0 / 3.0), 9))  # 1000 rounds: 10, not 11
        i = (t - first) % k + 1
        return _Place(first, n, k, i, i == k or (self._rounds is None and t + 1 == 2 * first))

    def _round(self, t: int, batch: Any, state: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        loss, gradient = evaluate(self.problem, state["x"], batch)
        c = self._constant(batch, gradient, diameter_of(self.set))
        place, past = self._place(t), state["past"]
        if t == place.first > 1:
            past = np.zeros_like(past)
        turn = Turn(t, place.first, place.rounds * place.block, 1, seed_bits(self._seed))
        v = FTPL(c).answer(self.set, past, turn)
        block = state["block"] + gradient
        mean = toward(state["mean"], v, 1.0 / place.i)  # of the i vertices of this block
        after = {"x": state["exact"], "past": past, "block": block, "mean": mean}
        if place.last:
            after |= {"x": mean, "past": past + block, "block": np.zeros_like(block)}
        if not np.isfinite(c * (past + block)).all():
            raise FloatingPointError(f"round {t}: scale times the sum of gradients is not finite")
        return loss, {**after, "constant": np.array(c)}

    def _first_state(self, start: FloatArray) -> dict[str, Any]:
        return {**super()._first_state(start), "mean": np.zeros(start.shape)}

    def _read(self, engine: Any, stored: dict[str, Any]) -> dict[str, Any]:
        state = super()._read(engine, stored)
        slack = float(np.finfo(self.dtype).eps) ** 0.5  # far more than rounding
        if isinstance(self.set, ConvexSet) and not self.set.contains(state["mean"], slack):
            raise ValueError("the mean of its vertices lies outside the set")
        return state

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), "block_size": self._block}
