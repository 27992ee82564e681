"""The engine of compiled linear rounds, see ``kernels.rounds``: many methods on one loop."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._csr import kernel_features
from fastfw._layout import is_scale, padded
from fastfw._threads import in_team, make_team, quiet
from fastfw.custom import FunctionProblem
from fastfw.kernels import _state
from fastfw.learners._lazy import Arrays, LazyEngine
from fastfw.network import OneHiddenLayer
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.sets._accept import diameter_of
from fastfw.sets._compiled import blocks_of, kernel_rows

__all__ = ["LINEAR", "META", "PAST", "LinearEngine", "Plan", "Rounds", "in_rounds"]

#: The rows of the tails that are part of the state.
_TAILS = {"tail": _state.NOW, "tail_other": _state.OTHER, "tail_sum": _state.SUM}

#: What files of forms 1 and 2 call parts of the state.
_OLD_NAMES = {
    "previous": "other", "snapshot": "other", "gradients": "estimate",
    "tail_previous": "tail_other", "tail_snapshot": "tail_other",
    "tail_gradients": "tail_estimate",
}  # fmt: skip


class Plan(NamedTuple):
    """What an engine has to know of its method beside the coefficients of each round."""

    anchored: bool = False
    """Whether x' is the last point that was kept rather than the previous one."""
    recalls: bool = True
    """Whether there is an x' at all: a beta other than 0."""
    pulls: bool = False
    """Whether there is a pull towards the start."""
    threads: int = 1
    average: bool = True
    """Whether the sum of the decisions is kept."""


class Rounds(NamedTuple):
    """Compiled rounds of some methods: what they are made for."""

    models: tuple[type, ...]
    """Classes of problems."""
    kinds: tuple[str, ...] | None
    """Kinds of rows, see ``kernels.sets``, that the set may be made of; None stands for all.

    Where they are named, the first layer has to be one block."""
    words: str
    """Both, in words."""

    def take(self, problem: Any, set: Any) -> bool:
        """Whether this problem and set are among it."""
        blocks = blocks_of(set)
        if blocks is None or not self.know(problem):
            return False
        if self.kinds is not None and any(block.kind not in self.kinds for block in blocks):
            return False
        if type(problem) is FunctionProblem:
            return True
        rows, length = problem.first_layer
        ends = accumulate(block.n for block in blocks)
        first = [block for block, end in zip(blocks, ends, strict=True) if end <= rows]
        fits = sum(block.n for block in first) == rows and {b.length for b in first} == {length}
        return fits and (self.kinds is None or len(first) == 1)

    def know(self, problem: Any) -> bool:
        """Whether there is a set that they take with this problem."""
        if type(problem) is FunctionProblem and not (problem.compiled and len(problem.shape) <= 2):
            return False
        return type(problem) in self.models


#: Of the methods that are one linear recursion, those that keep the past, those with base learners.
LINEAR = Rounds(
    (SoftmaxRegression, OneHiddenLayer, FunctionProblem),
    None,
    "SoftmaxRegression, OneHiddenLayer and functions of your own that Numba compiled, on sets made "
    "of rows, such as l1 balls and simplices, a CompiledSet and products of them",
)
PAST = Rounds(
    (SoftmaxRegression, OneHiddenLayer),
    ("L1", "L1_RANDOM"),
    "SoftmaxRegression on RowL1Ball and OneHiddenLayer in l1 balls",
)
META = Rounds(
    (SoftmaxRegression,),
    ("L1",),
    'SoftmaxRegression on dense features and RowL1Ball with ties="first", with base FTPL',
)


def in_rounds(
    coefficients: Callable[[Any], tuple[Any, ...]], t: int, k: int
) -> npt.NDArray[np.float64]:
    """Return the coefficients of rounds t, ..., t + k - 1, a column each, d and x being kept."""
    if k == 1:  # in a tenth of the time
        return np.array((*coefficients(t), 1.0)).reshape(6, 1)
    found = np.ones((6, k))
    for row, own in zip(found, coefficients(np.arange(t, t + k)), strict=False):
        row[...] = own
    return found


class LinearEngine(LazyEngine):
    """d ← γ d + α ∇f(x) - β ∇f(x'); v = argmin ⟨d + λ (x - x₁), v⟩; x ← x + η (v - x)."""

    _matrices = ("u", "low", "other", "start", "sum")
    _bounds = "edges", "tree", "leaders", "slots"
    _others = (*LazyEngine._others, "estimates", "index", "value", "constant", *_bounds)
    _tail_sum = _TAILS["tail_sum"]

    def __init__(self, problem: Any, set: Any, start: FloatArray, plan: Plan) -> None:
        first, blocks = problem.first_layer, blocks_of(set)
        assert blocks is not None
        self._problem, self._plan = problem, plan
        self._model, self._play = problem.kernel_model(), quiet(problem.kernel_rounds())
        self._is_function = type(problem) is FunctionProblem
        rows = kernel_rows(blocks, first[0])
        self._radius = rows.radius
        # a function of the user's, which may fail
        self._own_set = set if any(block.kind == "OWN" for block in blocks) else None
        self._rows = tuple(rows)  # a named tuple takes a call from Python a microsecond more
        self._mean = problem.reduction == "mean"
        self._reach = diameter_of(set) if plan.pulls else 0.0
        u = padded(start.reshape(-1)[: math.prod(first)].reshape(first), start.dtype)
        self.other = np.zeros((len(u) if plan.recalls else 0, u.shape[1]), u.dtype)
        self.start = u.copy() if plan.pulls else u[:0].copy()
        super().__init__(first, start, u, (1.0, 0.0, 0.0, 0.0, 1.0, 0.0), 6)
        if not plan.average:
            self.sum = self.sum[:0]
        self.tails[_state.START] = self.tails[_state.NOW]
        self.estimates = np.zeros((2, *u.shape), start.dtype)
        entries = max(block.entries for block in blocks)
        self.index = np.zeros((first[0], entries), np.intp)
        self.value = np.zeros((first[0], entries))
        self._forget_bounds()
        self._alone = make_team(1, np.zeros(1, np.intp), u, self.index.size)[:2]
        #: A constant that the first batch decides; 0 while it waits for it.
        self.constant = np.array(0.0)

    # ------------------------------------------------------------------ rounds

    def rounds(
        self, how: npt.NDArray[np.float64], rows: Rows, starts: IndexArray, losses: FloatArray
    ) -> int:
        """Play rounds of these coefficients on features that the engine is `suited` to.

        See `OnlineLearner._play_rounds` for what is returned, and for `losses`.
        """
        alone = self.sparse or self.tails.size or self._plan.threads == 1
        team = (
            (*self._alone, np.zeros(2 * starts.size - 1, np.int64))
            if alone
            else make_team(self._plan.threads, starts, self.u, self.index.size)
        )
        features = kernel_features(rows.X) if self.sparse else rows.X
        y = rows.y if self._is_function else rows.pair
        given = (
            features, self._mean, self._model, self._rows, y, rows.rows, starts,
            self._plan.anchored, self._reach, how, self.u, self.low, self.other, self.estimates,
            self.start, self.sum, self.tails, self.index, self.value, self.scalars, self.edges,
            self.tree, self.leaders, self.slots, self.in_use, self.known, *team, losses,
        )  # fmt: skip
        try:
            done: int = self._play(*given) if alone else self._share(given, team)
        except Exception as error:
            self._explain(error, rows)
            raise
        if done < starts.size - 1:
            self._blame(
                rows._replace(rows=rows.rows[starts[done] : starts[done + 1]]), losses[done]
            )
        return done

    def _blame(self, failed: Rows, loss: float) -> None:
        """Let functions of the user's, called from Python, say what is wrong with what they do."""
        if not self._is_function and self._own_set is None:
            return
        gradient = self._problem.of_rows(self.decision(), failed)[1]
        if self._own_set is not None and np.isfinite(loss) and np.isfinite(gradient).all():
            self._own_set.lmo(gradient)
            raise ValueError(
                f"in {self._own_set!r} a vertex has a place outside of its row, or an entry that "
                "is not finite"
            )

    def _share(self, given: Any, team: Any) -> int:
        """Let a team play the rounds."""
        from fastfw.kernels import teams

        features, _, model, _, y, rows, starts, *_ = given
        state = self.u, self.other, self.estimates, self.tails, self.index
        help_rounds: Any = teams.help_rounds
        assist = partial(help_rounds, features, model, y, rows, starts, *state, team)
        done: int = in_team(partial(self._play, *given), assist, team[2], 1 + len(team[0]))
        return done

    def _explain(self, error: Exception, rows: Rows) -> None:
        """Say what is wrong with a function of the user's that could not be called."""
        if not self._is_function:
            return
        self._problem.of_rows(self.decision(), rows)
        self._problem.raise_short(error)
        if isinstance(error, UnboundLocalError):  # Numba's own, of a list where arrays belong
            raise TypeError(
                "the function must return its gradient as an array, not a list, to be called "
                'from compiled rounds; or use engine="steps"'
            ) from error

    # ------------------------------------------------------------------ layouts

    def _suits(self, sparse: bool) -> bool:
        settled = sparse or self.scalars[_state.ESTIMATE_SCALE] == 1.0
        return settled and sparse == self.sparse

    def lay(self, sparse: bool) -> None:
        """As `LazyEngine.lay`; of sparse rows one estimate and its bounds will do."""
        estimate = self._by_rows(self._estimate)
        if not sparse and self.scalars[_state.ESTIMATE_SCALE] != 1.0:
            # as rounds on sparse rows left it
            estimate = estimate * estimate.dtype.type(self.scalars[_state.ESTIMATE_SCALE])
            self.scalars[_state.ESTIMATE_SCALE] = 1.0
        elif sparse == self.sparse:
            return
        super().lay(sparse)
        # and space for one that does not stay
        aside = self._plan.anchored or self._own_set is not None
        count = 1 + aside if sparse else 2
        self.estimates = np.zeros((count, *self.u.shape), self.u.dtype)
        self._estimate[...] = self._stored(estimate)
        self.scalars[_state.LARGEST] = np.abs(estimate).max(initial=0.0)
        self._forget_bounds()

    def _forget_bounds(self) -> None:
        """Make room for the bounds of the estimate on sparse rows."""
        self.edges, self.tree = np.zeros(1, np.intp), self.u[:0].copy()
        self.leaders, self.slots = np.zeros((self._n_rows, 0), np.intp), np.zeros(0, np.int32)
        if self.sparse:
            from fastfw.kernels import bounds

            self.edges = bounds.levels(self._d)
            self.tree = np.zeros((self.edges[-1] + 1, self._n_rows), self.u.dtype)
            self.leaders = np.zeros(
                (self._n_rows, bounds.LEADERS * (1 + self.index.shape[1])), np.intp
            )
            self.slots = np.zeros(self._d, np.int32)
            bounds.forget(self.tree)

    @property
    def _estimate(self) -> FloatArray:
        """The valid one of the estimates, without its scale."""
        valid: FloatArray = self.estimates[0 if self.sparse else int(self.scalars[_state.PARITY])]
        return valid

    # ------------------------------------------------------------------ what there is

    def arrays(self) -> Arrays:
        """All of the state, by name; of the two estimates, the one that is not scratch."""
        found = self._as_saved(("u", "low", "other", "sum"))
        found.update(estimate=self._wide(self._estimate.T) if self.sparse else self._estimate)
        parity = int(self.scalars[_state.PARITY])
        found.update({name: self.tails[i] for name, i in _TAILS.items()})
        found["tail_estimate"] = self.tails[_state.ESTIMATES + parity]
        found.update(index=self.index, value=self.value)
        kept = {name: a for name, a in found.items() if a.size or name == "u"}
        constant = {"constant": self.constant} if self._plan.pulls else {}
        return {**kept, "scalars": self.scalars, **constant}

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless kernels could not go on from it."""
        scale, weight, last, parity, shrunk, largest = arrays["scalars"]
        index, value = arrays.get("index", self.index), arrays.get("value", self.value)
        size = self._radius[: len(self.index), np.newaxis]  # no number where it is anything
        if not (
            ((index >= 0) & (index < self._d)).all()
            and ((value == 0.0) | (np.abs(value) == size) | np.isnan(size)).all()
            and parity in (0.0, 1.0)
            and is_scale(scale)
            and 0.0 <= last <= 1.0
            and 0.0 < shrunk <= 1.0
            and np.isfinite((weight, largest)).all()
            and (not self._plan.pulls or arrays["constant"] > 0.0)
        ):
            raise ValueError("its state is out of range")
        self.lay(False)
        self.scalars[...] = arrays["scalars"]  # says which estimate is the valid one
        for name, own in self.arrays().items():
            own[...] = arrays[name]

    def upgraded(self, arrays: Arrays) -> Arrays:
        """Return a state of an earlier form under the names and in the form of `arrays`."""
        found = {_OLD_NAMES.get(name, name): a for name, a in arrays.items() if a.size}
        if "x" in found:
            found = {f"tail_{name}": a.reshape(-1) for name, a in found.items()}
            found["tail"] = found.pop("tail_x")
        if self._is_function:  # its state has no first layer
            found["u"] = self.u
        if "tails" in found:
            found["tail"], found["tail_sum"] = found.pop("tails")
        if not self._plan.recalls:
            found.pop("other", None)
        # scale, weight, last step where there was one, parity; then those of sparse rows
        old = found.get("scalars", self.scalars).tolist()
        scale, weight, *last, parity = old[:4]
        rest = old[4:] or [1.0, 0.0]
        found["scalars"] = np.array([scale, weight, *(last or [0.0]), parity, *rest])
        for name, own in self.arrays().items():
            if name in ("low", "index", "value", "tail_other"):  # not everybody kept these
                found.setdefault(name, np.zeros_like(own))
            if name in ("index", "value"):
                found[name] = found[name].reshape(own.shape)
            if name in ("u", "sum", "estimate") and found[name].ndim == 2:
                found[name] = self._wide(found[name][:, : self._width])
            if name == "sum" or name.startswith("tail"):
                found[name] = found[name].astype(np.float64)
        return found

    def copy(self) -> LinearEngine:
        """Return an independent engine in the same state."""
        other = super().copy()
        other._alone = tuple(part.copy() for part in self._alone)
        return other
