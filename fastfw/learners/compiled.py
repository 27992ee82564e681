"""The engine of compiled linear rounds, see ``kernels.rounds``: five methods on one loop."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw._csr import csr_parts
from fastfw._layout import is_scale, padded, remainder_of, scaled
from fastfw.custom import FunctionProblem
from fastfw.learners._threaded import in_team, make_team, quiet
from fastfw.network import OneHiddenLayer
from fastfw.problems import Rows, SoftmaxRegression
from fastfw.sets import RowL1Ball
from fastfw.sets._answers import diameter_of
from fastfw.sets._compiled import blocks_of, kernel_rows

__all__ = ["LinearEngine", "Plan", "has_rounds", "in_l1_balls", "in_rounds", "on_row_l1_ball"]

Arrays = dict[str, npt.NDArray[Any]]

#: The parts of the state that are matrices, those that are rows of the tails, and the others.
_MATRICES = ("u", "low", "other", "start", "sum")
_TAILS = {"tail": 0, "tail_other": 1, "tail_sum": 4}
_SMALL = ("index", "value", "scalars", "constant")

_PARITY, _ESTIMATE_SCALE, _LARGEST = 3, 4, 5

#: Problems that kernels have a model of.
_MODELS = (SoftmaxRegression, OneHiddenLayer, FunctionProblem)

#: What version 0.1.0 called parts of the state.
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


def has_rounds(problem: Any, set: Any) -> bool:
    """Whether there are compiled linear rounds for this problem and set."""
    blocks = blocks_of(set)
    if type(problem) not in _MODELS or blocks is None:
        return False
    if type(problem) is FunctionProblem:
        return problem.compiled and len(problem.shape) <= 2
    return bool((blocks[0].n, blocks[0].length) == problem.first_layer)


def in_l1_balls(problem: Any, set: Any) -> bool:
    """Whether there are compiled rounds whose vertices have one entry in each l1 ball."""
    if not has_rounds(problem, set) or type(problem) is FunctionProblem:
        return False
    return all(block.kind in ("L1", "L1_RANDOM") for block in blocks_of(set) or ())


def on_row_l1_ball(problem: Any, set: Any) -> bool:
    """Whether it is softmax regression on a row-l1 ball whose ties are decided by place."""
    own = type(problem) is SoftmaxRegression and type(set) is RowL1Ball
    return own and set.ties == "first"


def in_rounds(
    coefficients: Callable[[int], tuple[float, ...]], t: int, k: int
) -> npt.NDArray[np.float64]:
    """Return the coefficients of rounds t, ..., t + k - 1, a column each, d and x being kept."""
    if k == 1:  # observe: the same in a third of the time
        return np.array((*coefficients(t), 1.0))[:, np.newaxis]
    return np.array([(*coefficients(t + i), 1.0) for i in range(k)]).T.copy()


class LinearEngine:
    """d ← γ d + α ∇f(x) - β ∇f(x'); v = argmin ⟨d + λ (x - x₁), v⟩; x ← x + η (v - x).

    The first layer's arrays are stored (rows, features), or (features, rows) while features are
    sparse; what `arrays` returns is stored as the former.
    """

    def __init__(self, problem: Any, set: Any, start: FloatArray, plan: Plan) -> None:
        first, blocks = problem.first_layer, blocks_of(set)
        assert blocks is not None
        self._problem, self._plan = problem, plan
        self._model, self._play = problem.kernel_model(), problem.kernel_rounds()
        rows = kernel_rows(blocks, first[0])
        self._radius = rows.radius
        # a named tuple takes a call from Python a microsecond more
        self._rows = tuple(rows) if len(rows) == 2 else rows
        self._mean = problem.reduction == "mean"
        self._reach = diameter_of(set) if plan.pulls else 0.0
        self._shape, self._d = start.shape, first[1]
        size = first[0] * first[1]
        flat = start.reshape(-1)
        self.sparse = False
        self.u = padded(flat[:size].reshape(first), start.dtype)
        self._width = self.u.shape[1]
        self.low = remainder_of(self.u)
        self.other = np.zeros((len(self.u) if plan.recalls else 0, self._width), start.dtype)
        self.estimates = np.zeros((2, *self.u.shape), start.dtype)
        self.start = self.u.copy() if plan.pulls else self.u[:0].copy()
        self.sum = np.zeros(self.u.shape)
        self.tails = np.zeros((6, flat.size - size))
        self.tails[0] = self.tails[5] = flat[size:]
        entries = max(block.entries for block in blocks)
        self.index = np.zeros((first[0], entries), np.intp)
        self.value = np.zeros((first[0], entries))
        self.scalars = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0])
        self._room = self._make_room()
        self._alone = make_team(1, np.zeros(1, np.intp), self.u, self.index.size)[:2]
        #: A constant that the first batch decides; 0 while it waits for it.
        self.constant = np.array(0.0)

    # ------------------------------------------------------------------ rounds

    def rounds(
        self, how: npt.NDArray[np.float64], rows: Rows, starts: IndexArray, losses: FloatArray
    ) -> int:
        """Play rounds of these coefficients on features that the engine is `suited` to.

        See `OnlineLearner._play_rounds` for what is returned, and for `losses`.
        """
        threads = 1 if self.sparse or self.tails.size else self._plan.threads
        team = self._team(starts, threads)
        batch = self._features(rows.X), self._model, rows.y, rows.rows, starts
        given = (
            batch[0], self._mean, self._model, self._rows, *batch[2:], self._plan.anchored,
            self._reach, how, self.u, self.low, self.other, self.estimates, self.start, self.sum,
            self.tails, self.index, self.value, self.scalars, *self._room, *team, losses,
        )  # fmt: skip
        try:
            done: int = (
                quiet(self._play)(*given) if threads == 1 else self._share(batch, given, team)
            )
        except Exception as error:
            self._explain(error, rows)
            raise
        if done < starts.size - 1 and type(self._problem) is FunctionProblem:
            # called from Python, the function says what is wrong with what it returns
            failed = rows.rows[starts[done] : starts[done + 1]]
            self._problem.of_rows(self.decision(), Rows(rows.X, rows.y, failed))
        return done

    def _team(self, starts: IndexArray, threads: int) -> tuple[npt.NDArray[Any], ...]:
        """Return what threads share, see ``kernels.parts``; one alone uses its own again."""
        if threads > 1:
            return make_team(threads, starts, self.u, self.index.size)
        return *self._alone, np.zeros(2 * starts.size - 1, np.int64)

    def _share(self, batch: Any, given: Any, team: Any) -> int:
        """Let a team play the rounds."""
        from fastfw.kernels import parts

        state = self.u, self.other, self.estimates, self.tails, self.index
        help_rounds: Any = parts.help_rounds
        assist = partial(help_rounds, *batch, *state, team)
        done: int = in_team(partial(self._play, *given), assist, team[2], 1 + len(team[0]))
        return done

    def _features(self, X: Any) -> Any:
        """Features as kernels tell them apart."""
        if not self.sparse:
            return X
        from fastfw.kernels.csr import CSR

        return CSR(*csr_parts(X))

    def _explain(self, error: Exception, rows: Rows) -> None:
        """Say what is wrong with a function of the user's that could not be called."""
        if type(self._problem) is not FunctionProblem:
            return
        self._problem.of_rows(self.decision(), rows)
        self._problem.raise_short(error)
        if isinstance(error, UnboundLocalError):  # Numba's own, of a list where arrays belong
            raise TypeError(
                "the function must return its gradient as an array, not a list, to be called "
                'from compiled rounds; or use engine="steps"'
            ) from error

    # ------------------------------------------------------------------ layouts

    def suited(self, sparse: bool) -> LinearEngine:
        """Return an engine in the same state for features of this kind, itself if it is one."""
        if sparse == self.sparse and (sparse or self.scalars[_ESTIMATE_SCALE] == 1.0):
            return self
        other = self.copy()
        other.lay(sparse)
        return other

    def lay(self, sparse: bool) -> None:
        """Store the first layer for features of this kind."""
        estimate = self._by_rows(self._estimate)
        if not sparse and self.scalars[_ESTIMATE_SCALE] != 1.0:  # as rounds on sparse rows left it
            estimate = estimate * estimate.dtype.type(self.scalars[_ESTIMATE_SCALE])
            self.scalars[_ESTIMATE_SCALE] = 1.0
        elif sparse == self.sparse:
            return
        parts = {name: self._by_rows(getattr(self, name)) for name in _MATRICES}
        self.sparse = sparse
        for name, part in parts.items():
            setattr(self, name, self._stored(part))
        # of sparse rows one estimate will do, and space for one that does not stay
        count = 1 + self._plan.anchored if sparse else 2
        self.estimates = np.zeros((count, *self.u.shape), self.u.dtype)
        self._estimate[...] = self._stored(estimate)
        self.scalars[_LARGEST] = np.abs(estimate).max(initial=0.0)
        self._room = self._make_room()

    def _make_room(self) -> tuple[npt.NDArray[Any], ...]:
        """Derive from the state the bounds of the estimate, and the rows of u in use."""
        if not self.sparse:
            every = np.arange(-1, len(self.u))
            every[0] = len(self.u)
            return np.zeros(1, np.intp), self.u[:0], every, np.ones(len(self.u), np.bool_)
        from fastfw.kernels import bounds

        edges = bounds.levels(self._d)
        tree = np.zeros((edges[-1], len(self.index)), self.u.dtype)
        bounds.forget(tree)
        parts = (self.u, self.sum, *((self.other,) if self.other.size else ()))
        known = np.logical_or.reduce([a.any(axis=1) for a in parts])
        features = np.flatnonzero(known)
        support = np.zeros(self._d + 1, np.intp)
        support[0] = features.size
        support[1 : 1 + features.size] = features
        return edges, tree, support, known

    @property
    def _estimate(self) -> FloatArray:
        """The valid one of the estimates, without its scale."""
        valid: FloatArray = self.estimates[0 if self.sparse else int(self.scalars[_PARITY])]
        return valid

    def _by_rows(self, a: FloatArray) -> FloatArray:
        """Return the (rows, d) of an array of the state, a view."""
        return a.T if self.sparse else a[:, : self._d]

    def _stored(self, a: FloatArray) -> FloatArray:
        """Return (rows, d) as kernels take it, a copy."""
        if not self.sparse:
            return self._wide(a)
        # zeros that nobody has written to take no memory
        return np.array(a.T, order="C") if a.any() else np.zeros(a.T.shape, a.dtype)

    def _wide(self, a: FloatArray) -> FloatArray:
        """Return (rows, d) with the rows of u, which may be longer than d."""
        copy = np.zeros((len(a), self._width), a.dtype)
        copy[:, : a.shape[1]] = a
        return copy

    # ------------------------------------------------------------------ what there is

    def decision(self) -> FloatArray:
        """Return x_t, a new array."""
        rows = self.support()
        u, low = self.u[rows], self.low[rows] if self.low.size else self.low
        W = scaled(u, low, self.scalars[0], u.dtype)
        return self._point(W, rows, self.tails[0].astype(W.dtype))

    def total(self) -> FloatArray:
        """Return the sum of the decisions played, a new array of float64."""
        rows = self.support()
        return self._point(self.total_of(rows), rows, self.tails[4])

    def total_of(self, rows: Any) -> FloatArray:
        """Return some rows, as they are stored, of the sum of the decisions played."""
        low = self.low[rows] if self.low.size else self.low
        total: FloatArray = scaled(self.u[rows], low, self.scalars[1], np.float64) + self.sum[rows]
        return total

    def products(self, A: Any) -> tuple[FloatArray, FloatArray]:
        """Return the products of sparse features and the decision, and the sum of those played."""
        u = A @ self.u
        if self.low.size:
            u = u.astype(np.float64) + A @ self.low
        s, weight = self.scalars[:2]
        return (s * u).astype(self.u.dtype), weight * u + A @ self.sum

    def support(self) -> Any:
        """Which rows as they are stored may be other than zero, increasing; all unless sparse."""
        support = self._room[2]
        return np.sort(support[1 : 1 + support[0]]) if self.sparse else slice(None)

    def _point(self, W: FloatArray, rows: Any, tail: FloatArray) -> FloatArray:
        """Return a point of the problem's shape from rows as they are stored."""
        if self.sparse:
            whole = np.zeros((len(self.index), self._d), W.dtype)
            whole[:, rows] = W.T
            W = whole
        else:
            W = self._by_rows(W)
        if not tail.size:
            return np.ascontiguousarray(W)
        return np.concatenate([W[: len(self.index)].reshape(-1), tail]).reshape(self._shape)

    def arrays(self) -> Arrays:
        """All of the state, by name; of the two estimates, the one that is not scratch."""
        matrices = {name: getattr(self, name) for name in ("u", "low", "other", "sum")}
        matrices["estimate"] = self._estimate
        parity = int(self.scalars[_PARITY])
        found = {name: self._wide(a.T) if self.sparse else a for name, a in matrices.items()}
        found.update({name: self.tails[i] for name, i in _TAILS.items()})
        found["tail_estimate"] = self.tails[2 + parity]
        found.update(index=self.index, value=self.value)
        kept = {name: a for name, a in found.items() if a.size or name == "u"}
        constant = {"constant": self.constant} if self._plan.pulls else {}
        return {**kept, "scalars": self.scalars, **constant}

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless kernels could not go on from it."""
        scale, weight, last, parity, shrunk, largest = arrays["scalars"]
        index, value = arrays.get("index", self.index), arrays.get("value", self.value)
        n = len(self.index)
        if not (
            ((index >= 0) & (index < self._d)).all()
            and ((value == 0.0) | (np.abs(value) == self._radius[:n, np.newaxis])).all()
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
        """Return a state that version 0.1.0 wrote under the names and in the form of `arrays`."""
        found = {_OLD_NAMES.get(name, name): a for name, a in arrays.items() if a.size}
        if "x" in found:  # a function's state has no first layer
            found = {f"tail_{name}": a.reshape(-1) for name, a in found.items()}
            found["tail"] = found.pop("tail_x")
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
                found[name] = found[name].reshape(-1, 1)
            if name in ("u", "sum", "estimate") and found[name].ndim == 2:
                found[name] = self._wide(found[name][:, : self._width])
            if name == "sum" or name.startswith("tail"):
                found[name] = found[name].astype(np.float64)
        return found

    def copy(self) -> LinearEngine:
        """Return an independent engine in the same state."""
        other = copy.copy(self)
        for name in (*_MATRICES, "estimates", "tails", *_SMALL):
            setattr(other, name, getattr(self, name).copy())
        other._room = tuple(part.copy() for part in self._room)
        other._alone = tuple(part.copy() for part in self._alone)
        return other
