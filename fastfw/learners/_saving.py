"""Learners on disk: plain arrays and a JSON header, nothing that executes.

Files are taken for hostile: names and sizes are looked at before anything is read or made of them.
"""

from __future__ import annotations

import inspect
import json
import math
import os
import zipfile
from os import PathLike
from typing import Any

import numpy as np

from fastfw import schedules as _schedules
from fastfw import sets as _sets
from fastfw._files import atomic_write
from fastfw._formats.npz import Stored, stored_arrays
from fastfw.network import OneHiddenLayer
from fastfw.problems import SoftmaxRegression

__all__ = ["load", "save"]

#: What is written; 1 is of version 0.1.0, and from 3 on the five linear methods have one state.
_FORMAT = 3

#: Problems that are made again from numbers and names alone, with the names of these.
_PROBLEMS: dict[type, tuple[str, ...]] = {
    SoftmaxRegression: ("n_features", "n_classes", "reduction"),
    OneHiddenLayer: ("n_features", "n_hidden", "n_classes", "activation", "reduction"),
}
#: Sets likewise, from what their `to_json` gives.
_SETS: dict[str, type] = {
    name: getattr(_sets, name)
    for name in _sets.SETS.keys() - {"CompiledSet", "ConvexSet", "ProductSet"}
}


class Earlier(dict[str, Any]):
    """A state of an earlier form; version 0.1.0 kept all in the decisions' dtype."""

    def upgraded(self, engine: Any, forms: dict[str, Any]) -> dict[str, Any]:
        """Return it as it is written now, in arrays that are about as large as the file."""
        arrays = {name: found.read() for name, found in self.items()}
        if hasattr(engine, "upgraded"):
            arrays = engine.upgraded(arrays)
        for name, own in forms.items():
            if name == "low":
                arrays.setdefault(name, np.zeros_like(own))
            elif own.dtype == np.float64 and name in arrays and arrays[name].dtype == np.float32:
                arrays[name] = arrays[name].astype(np.float64)
        return {name: array for name, array in arrays.items() if array.size or name in forms}


def save(learner: Any, path: str | PathLike[str]) -> None:
    """Write a learner to a file, whole or not at all."""
    header = {
        "fastfw learner": _FORMAT,
        "method": type(learner).__name__,
        "t": learner._t,
        "dtype": None if learner._dtype is None else learner._dtype.name,
        "engine": learner.engine,
        "fused": learner._fused,
        "seed": learner._seed,
        "problem": _describe_problem(learner.problem),
        "set": _describe_set(learner.set),
        "schedules": {k: _schedules.to_json(s) for k, s in learner._schedules.items()},
        "options": learner._options(),
    }
    arrays: dict[str, Any] = {"start": np.asarray(learner._start)}
    for name, value in learner._state().items():
        # what is more than an array says of which arrays it is made
        parts = value.arrays() if hasattr(value, "arrays") else {name: value}
        for part, found in parts.items():
            array = np.asarray(found)
            if array.dtype.hasobject:
                raise TypeError(f"the state {part!r} is not an array, so it cannot be saved")
            arrays[f"state.{part}"] = array
    text = np.frombuffer(json.dumps(header).encode(), np.uint8)
    with atomic_write(path, binary=True) as file:
        np.savez(file, header=text, **{name: arrays[name] for name in sorted(arrays)})


def load(
    cls: Any,
    path: str | PathLike[str],
    *,
    problem: Any,
    set: Any,
    schedules: dict[str, object],
) -> Any:
    """Read a learner from a file, checking everything that is in it."""
    fixed = {"start", "init", "seed", "engine", "dtype", "average"}  # as the file has them
    takes = [name for name in inspect.signature(cls).parameters if name not in fixed]
    for name in schedules:
        if name not in takes:
            raise ValueError(
                f"{cls.__name__}.load takes {', '.join(takes)}, but not {name}"
                + (", which the file says" if name in fixed else "")
            )
    given = [name for name, value in (("problem", problem), ("set", set)) if value is not None]
    given += schedules
    with open(path, "rb") as file:
        try:
            if file.read(2) != b"PK":
                raise ValueError("it is not an .npz archive")
            with zipfile.ZipFile(file) as archive:
                stored = stored_arrays(archive, os.fstat(file.fileno()).st_size)
                return _rebuild(cls, stored, problem, set, schedules)
        except Exception as error:  # a damaged archive makes its readers raise whatever they like
            text = " ".join(str(error).split()) or type(error).__name__
            reason = f"no {text}" if isinstance(error, KeyError) else text
            unfit = f"; or it is not for the {', '.join(given)} given" if given else ""
            raise ValueError(
                f"{os.fspath(path)} is not a saved {cls.__name__}: {reason}{unfit}"
            ) from error


def _rebuild(
    cls: Any,
    stored: dict[str, Stored],
    problem: Any,
    set: Any,
    schedules: dict[str, object],
) -> Any:
    header = json.loads(stored.pop("header").read().tobytes())
    if not isinstance(header, dict) or header.get("fastfw learner") not in (1, 2, _FORMAT):
        raise ValueError("it has no header of this format")
    if header["method"] != cls.__name__:
        raise ValueError(f"it holds a learner of {header['method']!r}; use that class's load")
    # Nothing is made that is large beside the start, which is there.
    start = stored.pop("start")
    problem = _rebuild_problem(header["problem"]) if problem is None else problem
    set = _rebuild_set(header["set"], math.prod(start.shape)) if set is None else set
    for name, given in (("problem", problem), ("set", set)):
        if tuple(given.shape) != start.shape:
            raise ValueError(f"its start has shape {start.shape}, but its {name} {given.shape}")
    known: dict[str, Any] = dict(schedules)
    for name, described in header["schedules"].items():
        if name in known:
            continue
        if described is None:
            raise ValueError(f"its {name} is a callable, which is not saved; give {name}=... again")
        known[name] = _schedules.from_json(described, name)
    options = {name: o for name, o in header["options"].items() if name not in known}
    # offline methods of 0.1.0 noted the engine that was asked for
    engine = "steps" if "state.point" in stored else header["engine"]
    if engine not in ("fused", "steps", "dask"):
        raise ValueError(f"its engine is unknown: {engine!r}")
    seed = header["seed"]
    learner = cls(
        problem,
        set,
        **known,
        **cls._from_options(options),
        start=start.read(),
        seed=tuple(seed) if isinstance(seed, list) else seed,
        engine="fused" if header.get("fused") is True else header["engine"],
        dtype=header["dtype"],
    )
    if engine == "fused" != learner.engine:
        raise ValueError(f"it needs the engine {engine!r} for this problem and set")
    for name in stored:
        if not name.startswith("state."):
            raise ValueError(f"it holds an unknown array {name!r}")
    kind = Earlier if header["fastfw learner"] < _FORMAT else dict
    state = kind((name.removeprefix("state."), array) for name, array in stored.items())
    learner._restore(header["t"], engine, state)
    return learner


def _describe_problem(problem: Any) -> dict[str, Any] | None:
    for kind, names in _PROBLEMS.items():
        if type(problem) is kind:
            return {"name": kind.__name__, **{name: getattr(problem, name) for name in names}}
    return None


def _rebuild_problem(described: dict[str, Any] | None) -> Any:
    if described is None:
        raise ValueError("its problem is not saved; give problem=... again")
    name = described.pop("name")
    for kind in _PROBLEMS:
        if kind.__name__ == name:
            return kind(**described)
    raise ValueError("its problem is unknown")


def _describe_set(set: Any) -> dict[str, Any] | None:
    if type(set) is _sets.ProductSet:
        blocks = [[name, _describe_set(block)] for name, block in set.sets.items()]
        known = all(block is not None for _, block in blocks)
        return {"name": "ProductSet", "blocks": blocks} if known else None
    if type(set) not in _SETS.values():
        return None
    arguments = set.to_json()
    return None if arguments is None else {"name": type(set).__name__, **arguments}


def _rebuild_set(described: dict[str, Any] | None, most: int) -> _sets.ConvexSet:
    """Make a set again whose points have at most so many entries."""
    if described is None:
        raise ValueError("its set is not saved; give set=... again")
    name = described.pop("name")
    if name == "ProductSet":
        blocks = {block: _rebuild_set(own, most) for block, own in described["blocks"]}
        return _sets.ProductSet(blocks)
    if name not in _SETS:
        raise ValueError("its set is unknown")
    size = described.get("shape", described.get("size", 0))
    if any(n > most for n in (size if isinstance(size, list) else [size])):
        raise ValueError(f"its set is larger than its start: {size}")
    made: _sets.ConvexSet = _SETS[name](**described)
    return made
