"""Learners on disk: plain arrays and a JSON header, nothing that executes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from os import PathLike
from typing import IO, TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from fastfw import schedules as _schedules
from fastfw import sets as _sets
from fastfw._files import atomic_write
from fastfw.learners._engines import StepsEngine
from fastfw.network import OneHiddenLayer
from fastfw.problems import SoftmaxRegression

if TYPE_CHECKING:
    from fastfw.learners._base import OnlineLearner
    from fastfw.learners._offline import OfflineLearner

    L = TypeVar("L", bound=OnlineLearner | OfflineLearner)

_FORMAT = 1

#: Sets that are made again from numbers and names alone.
_SETS = (
    "BirkhoffPolytope",
    "FlowPolytope",
    "GroupL1Ball",
    "KSparsePolytope",
    "L1Ball",
    "L2Ball",
    "LInfBall",
    "NuclearNormBall",
    "RowKSparsePolytope",
    "RowL1Ball",
    "Simplex",
)


def save(learner: OnlineLearner | OfflineLearner, path: str | PathLike[str]) -> None:
    """Write a learner to a file, whole or not at all."""
    header = {
        "fastfw learner": _FORMAT,
        "method": type(learner).__name__,
        "t": learner.t,
        "dtype": None if learner._dtype is None else learner._dtype.name,
        "engine": learner.engine,
        "seed": learner._seed,
        "problem": _describe_problem(learner.problem),
        "set": _describe_set(learner.set),
        "schedules": {k: _schedules.to_json(s) for k, s in learner._schedules.items()},
        "options": learner._options(),
    }
    arrays: dict[str, Any] = {"start": np.asarray(learner._start)}
    for name, value in learner._state().items():
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(f"the state {name!r} is not an array, so it cannot be saved")
        arrays[f"state.{name}"] = array
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with atomic_write(path, binary=True) as file:
        np.savez(file, header=text, **arrays)


def load(
    cls: type[L],
    path: str | PathLike[str],
    *,
    problem: Any,
    set: Any,
    schedules: dict[str, object],
) -> L:
    """Read a learner from a file, checking everything that is in it."""
    with open(path, "rb") as file:
        try:
            header, arrays = _read(file)
            return _rebuild(cls, header, arrays, problem, set, schedules)
        except Exception as error:  # a damaged archive makes its readers raise whatever they like
            text = " ".join(str(error).split()) or type(error).__name__
            reason = f"no {text}" if isinstance(error, KeyError) else text
            raise ValueError(
                f"{os.fspath(path)} is not a saved {cls.__name__}: {reason}"
            ) from error


def _read(file: IO[bytes]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Header and arrays of a saved learner; nothing in the file is executed."""
    if file.read(2) != b"PK":  # before NumPy takes it for a pickle, and advises to run it
        raise ValueError("it is not an .npz archive")
    file.seek(0)
    archive = np.load(file, allow_pickle=False)
    with archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(arrays.pop("header").tobytes())
    if not isinstance(header, dict) or header.get("fastfw learner") != _FORMAT:
        raise ValueError("it has no header of this format")
    return header, arrays


def _rebuild(
    cls: type[L],
    header: dict[str, Any],
    arrays: dict[str, Any],
    problem: Any,
    set: Any,
    given: dict[str, object],
) -> L:
    if header["method"] != cls.__name__:
        raise ValueError(f"it holds a learner of {header['method']!r}; use that class's load")
    problem = _rebuild_problem(header["problem"]) if problem is None else problem
    set = _rebuild_set(header["set"]) if set is None else set
    known: dict[str, Any] = dict(given)
    for name, described in header["schedules"].items():
        if name in known:
            continue
        if described is None:
            raise ValueError(f"its {name} is a callable, which is not saved; give {name}=... again")
        known[name] = _schedules.from_json(described, name)
    options = {name: o for name, o in header["options"].items() if name not in known}
    seed = header["seed"]
    learner = cls(
        problem,
        set,
        **known,
        **cls._from_options(options),
        start=arrays.pop("start"),
        seed=tuple(seed) if isinstance(seed, list) else seed,
        engine=header["engine"],
        dtype=header["dtype"],
    )
    if learner.engine != header["engine"]:
        raise ValueError(f"it needs the engine {header['engine']!r} for this problem and set")
    for name in arrays:
        if not name.startswith("state."):
            raise ValueError(f"it holds an unknown array {name!r}")
    learner._restore(header["t"], {k.removeprefix("state."): a for k, a in arrays.items()})
    return learner


def take_over(
    engine: Any,
    arrays: dict[str, npt.NDArray[Any]],
    set: Any,
    check_names: Callable[[Any, dict[str, npt.NDArray[Any]]], None],
) -> None:
    """Give an engine a saved state, whose arrays must have the names and forms of a live one."""
    for name, found in arrays.items():
        if found.dtype.kind == "f" and not np.isfinite(found).all():
            raise ValueError(f"its state {name!r} is not finite")
    # Names of arrays whose first axis grows with the rounds, where an engine has any.
    growing: frozenset[str] = getattr(engine, "growing", frozenset())
    for name, own in engine.arrays().items():
        if name not in arrays:
            raise ValueError(f"its state lacks {name!r}")
        found = arrays[name]
        fits = found.shape == own.shape
        if name in growing:
            fits = found.ndim == own.ndim and found.shape[1:] == own.shape[1:]
        if not fits or found.dtype != own.dtype:
            raise ValueError(f"its state {name!r} does not fit: {found.dtype} {found.shape}")
    check_names(engine, arrays)
    engine.restore(arrays)
    if isinstance(set, _sets.ConvexSet):
        slack = float(np.sqrt(np.finfo(engine.decision().dtype).eps))  # far more than rounding
        if not set.contains(engine.decision(), tol=slack):
            raise ValueError("its decision lies outside the set")


def take_over_start(engine: Any, warm: npt.NDArray[Any], set: Any) -> None:
    """Give an engine of oracle calls the vertex, saved as its code, that the oracle begins from."""
    if not (isinstance(engine, StepsEngine) and getattr(set, "warm_starts", False)):
        raise ValueError("its state has an unknown array 'warm'")
    form = set.lmo(np.zeros(tuple(set.shape))).code
    if warm.shape != form.shape or warm.dtype != form.dtype or not np.isfinite(warm).all():
        raise ValueError("its state 'warm' does not fit")
    engine.state["warm"] = warm


def _describe_problem(problem: Any) -> dict[str, Any] | None:
    if type(problem) not in (SoftmaxRegression, OneHiddenLayer):
        return None
    described = {
        "name": type(problem).__name__,
        "n_features": problem.n_features,
        "n_classes": problem.n_classes,
        "reduction": problem.reduction,
    }
    if type(problem) is OneHiddenLayer:
        described.update(n_hidden=problem.n_hidden, activation=problem.activation)
    return described


def _rebuild_problem(described: dict[str, Any] | None) -> SoftmaxRegression | OneHiddenLayer:
    if described is None:
        raise ValueError("its problem is not saved; give problem=... again")
    kinds: dict[str, Any] = {
        "SoftmaxRegression": SoftmaxRegression,
        "OneHiddenLayer": OneHiddenLayer,
    }
    kind = kinds.get(described.pop("name"))
    if kind is None:
        raise ValueError("its problem is unknown")
    problem: SoftmaxRegression | OneHiddenLayer = kind(**described)
    return problem


def _describe_set(set: Any) -> dict[str, Any] | None:
    if type(set) is _sets.ProductSet:
        blocks = [[name, _describe_set(block)] for name, block in set.sets.items()]
        known = all(block is not None for _, block in blocks)
        return {"name": "ProductSet", "blocks": blocks} if known else None
    if type(set).__name__ not in _SETS or type(set) is not getattr(_sets, type(set).__name__):
        return None
    arguments = set.to_json()
    return None if arguments is None else {"name": type(set).__name__, **arguments}


def _rebuild_set(described: dict[str, Any] | None) -> _sets.ConvexSet:
    if described is None:
        raise ValueError("its set is not saved; give set=... again")
    name = described.pop("name")
    if name == "ProductSet":
        blocks = {block: _rebuild_set(own) for block, own in described["blocks"]}
        return _sets.ProductSet(blocks)
    if name not in _SETS:
        raise ValueError("its set is unknown")
    made: _sets.ConvexSet = getattr(_sets, name)(**described)
    return made
