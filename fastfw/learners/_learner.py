"""What all learners share: the constructor's checks, and the record that files and pickles hold.

The record is what the learner was told, the engine in use, and the engine's state as arrays.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import (
    FloatArray,
    check_seed,
    choice,
    float_dtype,
    freeze,
    positive_int,
    require_pair,
    warn_from_outside,
)
from fastfw._guard import Guard
from fastfw.learners import _saving
from fastfw.learners._engines import Choice, EngineWarning, StepsEngine
from fastfw.learners.compiled import LINEAR, Rounds
from fastfw.schedules import Schedules, as_schedule
from fastfw.sets import ConvexSet
from fastfw.sets._starts import begin, first_point

__all__ = ["MOST", "Learner", "State", "count"]

Self = TypeVar("Self", bound="Learner")
State = Mapping[str, Any]

#: Rounds and samples are counted no further: floats hold all integers up to here.
MOST = 2**53


def count(value: object, name: str) -> int:
    """Return a number of rounds or the like, checked."""
    return positive_int(value, name, maximum=MOST)


class Learner(ABC):
    """Base of online and offline learners."""

    #: Combinations that have compiled rounds, if any.
    _compiled: Rounds | None = None
    #: Whether rounds can be played on a cluster, and whether they are; what was measured.
    _shareable: bool = False
    _shares = False
    _why = ""
    #: Whether the average is kept.
    _averages = True
    #: Attributes that are not in a record.
    _made: ClassVar[tuple[str, ...]] = ("_engine", "_guard")
    #: Arrays of the state whose first axis grows.
    _growing: ClassVar[frozenset[str]] = frozenset()

    def __init__(
        self,
        problem: Any,
        set: Any,
        *,
        schedules: Mapping[str, object],
        start: npt.ArrayLike | None,
        seed: int | tuple[int, ...],
        engine: str,
        dtype: npt.DTypeLike | None,
        init: str | None,
    ) -> None:
        require_pair(problem, set, ("diameter",))
        engines = ("fused", "steps", "dask") if self._shareable else ("fused", "steps")
        choice(engine, "engine", engines)
        self._problem, self._set = problem, set
        self._schedules = Schedules({name: as_schedule(s, name) for name, s in schedules.items()})
        self._seed = check_seed(seed)
        self._dtype = None if dtype is None else float_dtype(dtype)
        self._start = first_point(problem, set, start, init, self._seed, self._dtype)
        if self._dtype is not None:
            self._begin(self._dtype)
        self._fused = engine == "fused" and self._can_fuse()
        self._shares = engine == "dask"
        if engine == "fused" and not self._fused and self._expects_compiled():
            self._warn_of_steps(f"{problem!r} over {set!r}")
        self._t = 1
        self._engine: Any = None
        self._guard = Guard()

    def _can_fuse(self) -> bool:
        """Whether compiled code exists for this problem and set."""
        return self._compiled is not None and self._compiled.take(self._problem, self._set)

    def _expects_compiled(self) -> bool:
        """Whether problem and set might well be thought to be compiled: own Python is not."""
        own = not type(self._set).__module__.startswith("fastfw.")
        compiled = getattr(self._set, "compiled", True)  # unless compiling is switched off
        known = self._compiled is not None and LINEAR.know(self._problem)
        return bool(known and compiled and not own)

    def _warn_of_steps(self, of: str) -> None:
        """Say that rounds are not compiled, where who asked for it was not to know."""
        assert self._compiled is not None
        warn_from_outside(
            f"{type(self).__name__} has no compiled rounds for {of}: it plays the same rounds by "
            f"oracle calls from Python, which are slower the smaller a batch is. Compiled ones "
            f'exist for {self._compiled.words}. engine="steps" says that this is meant',
            EngineWarning,
        )

    def _begin(self, dtype: np.dtype[Any]) -> FloatArray:
        """Return x_1 in the dtype that is settled, if that can hold what the learner computes."""
        self._schedules.require(dtype)
        return begin(self._set, self._start, dtype)

    def _options(self) -> dict[str, Any]:
        """Further arguments of the constructor, as JSON holds them."""
        return {}

    @classmethod
    def _from_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the constructor from what `_options` gave."""
        return options

    @property
    def problem(self) -> Any:
        """The losses' family."""
        return self._problem

    @property
    def set(self) -> Any:
        """The feasible set."""
        return self._set

    @property
    def engine(self) -> Choice:
        """The engine in use: "steps" where no compiled code exists for problem and set.

        Its attribute ``reason`` says what was measured where a stream was a cluster's.
        """
        return Choice("fused" if self._fused else "dask" if self._shares else "steps", self._why)

    # ------------------------------------------------------------------ the record

    def save(self, path: str | PathLike[str]) -> None:
        """Write the learner to a file from which `load` continues with the same bits.

        The file is a NumPy archive of plain arrays and a JSON header; it is written beside `path`
        and renamed, so that it is never half-written. The data of an offline method are not in it.

        Raises
        ------
        TypeError
            For the "steps" engine with state that is not made of arrays.
        OSError
            If the file cannot be written.
        """
        with self._guard.state:
            _saving.save(self, path)

    @classmethod
    def load(
        cls: type[Self],
        path: str | PathLike[str],
        *,
        problem: Any = None,
        set: Any = None,
        **schedules: object,
    ) -> Self:
        """Read a learner that `save` wrote; offline methods go on with ``fit(..., resume=True)``.

        Parameters
        ----------
        path : path-like
            The file. Nothing in it is executed; what does not fit is refused.
        problem, set : object, optional
            Needed where they are not of this package.
        **schedules : float or callable
            ``step=...`` and the like; needed for schedules that are callables of your own.

        Raises
        ------
        ValueError
            If the file is not such a file, is damaged, or holds another method's learner.
        OSError
            If it cannot be read.
        """
        learner: Self = _saving.load(cls, path, problem=problem, set=set, schedules=schedules)
        return learner

    def __getstate__(self) -> dict[str, Any]:
        """Return the record: all attributes, but of the engine what `save` writes of it."""
        other = copy.copy(self)  # of whole rounds, which no later one changes
        own = {name: value for name, value in vars(other).items() if name not in self._made}
        return {**own, "record": (other.engine, other._state())}

    def __setstate__(self, record: dict[str, Any]) -> None:
        own = dict(record)
        engine, state = own.pop("record")
        vars(self).update(own, _engine=None, _guard=Guard(), _start=freeze(own["_start"]))
        made = None
        if state:
            made = self._fresh(engine, state)
            made.restore(state)
        self._resume(made)

    def __copy__(self: Self) -> Self:
        """Return an independent learner in the same state; problem and set are shared."""
        other = type(self).__new__(type(self))
        with self._guard.state:
            vars(other).update(vars(self), _guard=Guard())
            if self._engine is not None:
                other._engine = self._engine.copy()
        return other

    def __deepcopy__(self: Self, memo: dict[int, Any]) -> Self:
        """Return the same with problem, set and schedules of its own; data are shared."""
        other = memo[id(self)] = copy.copy(self)
        for name, value in [*vars(other).items()]:
            if name not in (*self._made, "_start"):
                setattr(other, name, copy.deepcopy(value, memo))
        return other

    def _state(self) -> dict[str, Any]:
        """Return the engine's state as arrays; nothing before round 1."""
        return {} if self._engine is None else self._engine.arrays()

    @abstractmethod
    def _fresh(self, engine: str, state: State) -> Any:
        """Return an engine before its first round, to take over this state."""

    @abstractmethod
    def _resume(self, engine: Any) -> None:
        """Go on with an engine that has taken over a state, or with None before round 1."""

    # ------------------------------------------------------------------ states that files hold

    def _restore(self, t: int, engine: str, stored: dict[str, Any]) -> None:
        """Take over the state of a file, whose arrays are read once all is known to fit."""
        self._t = count(t, "t")
        if t == 1 and not stored:
            return
        if t == 1 or not stored:
            raise ValueError(f"it is in round {t}, but has {'a' if t == 1 else 'no'} state")
        made = self._fresh(engine, stored)
        made.restore(self._read(made, stored))
        if isinstance(self.set, ConvexSet):
            eps = max(float(np.finfo(x.dtype).eps) for x in (self._start, made.decision()))
            slack = math.sqrt(eps)  # far more than rounding
            if not self.set.contains(made.decision(), tol=slack):
                raise ValueError("its decision lies outside the set")
            # sums that 0.1.0 kept in single precision have drifted
            if self._averages and not self.set.contains(
                made.total() / (t - 1.0), tol=min(slack + 4 * t * eps, 0.1)
            ):
                raise ValueError("the average of its decisions lies outside the set")
        self._resume(made)

    def _forms(self, engine: Any) -> dict[str, npt.NDArray[Any]]:
        """Return arrays of the names, shapes and dtypes that those of the state must have."""
        return {k: own for k, own in engine.arrays().items() if isinstance(own, np.ndarray)}

    def _read(self, engine: Any, stored: dict[str, Any]) -> dict[str, Any]:
        """Read a state, once its arrays are known to have the names and forms of a live one."""
        forms = self._forms(engine)
        steps = isinstance(engine, StepsEngine)
        if steps and "warm" in stored and getattr(self.set, "warm_starts", False):
            forms["warm"] = self.set.lmo(np.zeros(tuple(self.set.shape))).code
        if isinstance(stored, _saving.Earlier):
            stored = stored.upgraded(engine, forms)
        for name in stored:
            if name not in forms:
                raise ValueError(f"its state has an unknown array {name!r}")
        for name, own in forms.items():
            if name not in stored:
                raise ValueError(f"its state lacks {name!r}")
            found = stored[name]
            first = 1 if name in self._growing else 0
            fits = len(found.shape) == own.ndim and found.shape[first:] == own.shape[first:]
            # oracles of one's own may answer in another precision
            exact = {"x", "total", *self._growing}
            free = steps and name not in exact and found.dtype.kind == "f"
            if not fits or (found.dtype != own.dtype and not free):
                raise ValueError(f"its state {name!r} does not fit: {found.dtype} {found.shape}")
        arrays = {
            name: found if isinstance(found, np.ndarray) else found.read()
            for name, found in stored.items()
        }
        for name, array in arrays.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise ValueError(f"its state {name!r} is not finite")
        return arrays
