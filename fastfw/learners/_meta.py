"""What MORGFW and MetaFrankWolfe share: base learners, inner steps, sub-batches, epochs."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastfw import base_learners
from fastfw._checks import FloatArray, IndexArray, batch_parts, positive_int, seed_bits
from fastfw._csr import is_sparse, sound_csr
from fastfw.base_learners import FTPL, BaseLearner, Turn
from fastfw.learners._base import OnlineLearner
from fastfw.learners._engines import Engine
from fastfw.learners._learner import MOST, State, count
from fastfw.learners._meta_engine import FusedMeta, MetaPlan
from fastfw.learners._oracles import slope
from fastfw.learners.compiled import META
from fastfw.sets import Vertex
from fastfw.streams import Batch, Dataset, batch_size

__all__ = ["MetaLearner"]


class MetaLearner(OnlineLearner):
    """Algorithm 2 up to its estimator; see `MORGFW` for the parameters."""

    _compiled = META
    _needs_finite = True
    _threaded = True
    #: Whether the estimator is the recursive one (MORGFW) or an average (Meta-Frank-Wolfe).
    _recursive: ClassVar[bool]

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        rounds: int | None,
        inner_steps: int | None,
        base: BaseLearner | None,
        schedules: dict[str, object],
        sub_batch_size: int | None,
        start: npt.ArrayLike | None,
        seed: int | tuple[int, ...],
        engine: str,
        dtype: npt.DTypeLike | None,
        threads: int | None,
    ) -> None:
        rounds, inner_steps, sub_batch_size = (
            None if given is None else count(given, name)
            for given, name in (
                (rounds, "rounds"), (inner_steps, "inner_steps"), (sub_batch_size, "sub_batch_size")
            )
        )  # fmt: skip
        self._base = FTPL() if base is None else base
        if not isinstance(self._base, BaseLearner):
            raise TypeError(
                "base must be FTPL(...), OGD(...), RFTL(...) or a BaseLearner of your own, "
                f"but it is a {type(base).__name__}"
            )
        super().__init__(
            problem,
            set,
            schedules=schedules,
            start=start,
            seed=seed,
            engine=engine,
            dtype=dtype,
            threads=threads,
        )
        self._base.check(set)
        self._plan = MetaPlan(
            rounds, inner_steps, self._theory_inner_steps, self._schedules, self._base,
            seed_bits(self._seed), sub_batch_size, self._recursive,
        )  # fmt: skip
        K = self.inner_steps
        if MOST // math.prod(set.shape) < K:
            raise ValueError(
                f"inner_steps is {K}, by default chosen by rounds, and no memory holds so many "
                f"base learners of shape {tuple(set.shape)}; give fewer"
            )

    @staticmethod
    @abstractmethod
    def _theory_inner_steps(rounds: int) -> int:
        """K for an epoch of so many rounds."""

    # ------------------------------------------------------------------ what users call

    @property
    def rounds(self) -> int | None:
        """The horizon T, None for the doubling trick."""
        return self._plan.rounds

    @property
    def inner_steps(self) -> int:
        """Number K of base learners and inner steps in the current round."""
        return self._plan.epoch(self._t).inner_steps

    @property
    def base(self) -> BaseLearner:
        """The base learners' method."""
        return self._base

    @property
    def sub_batch_size(self) -> int | None:
        """Rows per sub-batch, None for the whole batch."""
        return self._plan.sub_batch_size

    def sub_batch(self, t: int, k: int, batch_size: int) -> IndexArray:
        """Return the positions, within the batch of round t, of the sub-batch of inner step k.

        A pure function of the seed, t and k: drawn with replacement, the same whenever it is called
        and whatever the engine.

        Raises
        ------
        ValueError
            If the learner takes whole batches.
        """
        if self.sub_batch_size is None:
            raise ValueError("sub_batch_size is None: every inner step takes the whole batch")
        t, k = positive_int(t, "t"), positive_int(k, "k")
        batch_size = positive_int(batch_size, "batch_size")
        from fastfw.kernels import rng

        picked = np.empty(self.sub_batch_size, np.intp)
        rng.draw_rows(np.uint64(self._plan.bits), t, k, batch_size, picked)
        return picked

    # ------------------------------------------------------------------ rounds from oracle calls

    def _turn(self, t: int, k: int) -> Turn:
        epoch = self._plan.epoch(t)
        return Turn(t, epoch.first, epoch.rounds, k, self._plan.bits)

    def _first_state(self, start: FloatArray) -> dict[str, Any]:
        return self._prepared(self._t, start, None)

    def _prepared(self, t: int, start: FloatArray, memory: FloatArray | None) -> dict[str, Any]:
        """Algorithm 2, lines 2-6 of round t: the inner points, the last of which is played."""
        K = self._plan.epoch(t).inner_steps
        if memory is None:
            memory = np.repeat(self._base.first(self.set, start)[np.newaxis], K, axis=0)
        x: FloatArray = start.astype(np.float64)
        inner = [start]  # line 2
        for k in range(1, K + 1):  # line 3
            v = self._base.answer(self.set, memory[k - 1], self._turn(t, k))  # line 4
            eta = self._schedule("step", k)
            # line 5
            x = v.step(x, eta) if isinstance(v, Vertex) else (1.0 - eta) * x + eta * np.asarray(v)
            inner.append(x.astype(start.dtype))
        return {"x": x, "inner": np.stack(inner), "memory": memory}

    def _fed(self, t: int, state: dict[str, Any], directions: list[FloatArray]) -> dict[str, Any]:
        """Line 15, and lines 2-6 of the next round; a new epoch begins with new base learners."""
        memory = None
        if self._plan.epoch(t + 1) == self._plan.epoch(t):
            pairs = enumerate(zip(state["memory"], directions, strict=True), start=1)
            memory = np.stack(
                [
                    self._base.remember(self.set, m, np.asarray(d, m.dtype), self._turn(t, k))
                    for k, (m, d) in pairs
                ]
            )
        for part in (*directions, *(() if memory is None else memory)):
            if not np.isfinite(part).all():
                raise FloatingPointError(f"round {t}: the gradient estimate is not finite")
        return self._prepared(t + 1, state["inner"][0], memory)

    def _gradient(self, x: FloatArray, batch: Any, picked: IndexArray | None) -> FloatArray:
        """Gradient of the batch at x, or its estimate from a sub-batch."""
        if picked is None:
            return slope(self.problem, x, batch)
        gradient = slope(self.problem, x, _part(batch, picked))
        if getattr(self.problem, "reduction", "mean") == "sum":
            return gradient * (batch_size(batch) / picked.size)
        return gradient

    def _picked(self, t: int, k: int, batch: Any) -> IndexArray | None:
        if self.sub_batch_size is None:
            return None
        return self.sub_batch(t, k, batch_size(batch))

    # ------------------------------------------------------------------ plumbing

    def _fresh(self, engine: str, state: State) -> Engine:
        found = state["sums" if engine == "fused" else "memory"].shape[0]
        if found != self.inner_steps:  # before room is made for them
            raise ValueError(f"it has {found} base learners, but {self.inner_steps} are wanted")
        return super()._fresh(engine, state)

    def _can_fuse(self) -> bool:
        return super()._can_fuse() and type(self._base) is FTPL

    def _expects_compiled(self) -> bool:
        return super()._expects_compiled() and type(self._base).__module__ == FTPL.__module__

    def _make_fused(self, start: FloatArray) -> Engine:
        return FusedMeta(self.problem, self.set, start, self._plan, self.t, self.threads)

    def _cost(self, t: int, k: int, batch_size: int) -> tuple[int, int]:
        steps = sum(self._plan.epoch(t + i).inner_steps for i in range(k))
        if self.sub_batch_size is not None:
            batch_size = self.sub_batch_size * (2 if self._recursive else 1)
        return steps * batch_size, steps * self._base.lmo_calls

    def _options(self) -> dict[str, Any]:
        plan = self._plan
        return {
            **super()._options(),
            "rounds": plan.rounds,
            "inner_steps": plan.inner_steps,
            "base": base_learners.to_json(self._base),
            "sub_batch_size": plan.sub_batch_size,
        }

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        if "base" in options:
            return {**options, "base": base_learners.from_json(options["base"])}
        return options


def _part(batch: Any, picked: IndexArray) -> Any:
    """Rows of a batch by their positions."""
    if isinstance(batch, Batch):
        return Batch(batch.data, batch.rows[picked])
    if isinstance(batch, Dataset):
        return Batch(batch, picked)
    X, y = batch_parts(batch)
    rows = sound_csr(X, "X")[picked] if is_sparse(X) else np.asarray(X)[picked]
    return rows, np.asarray(y)[picked]
