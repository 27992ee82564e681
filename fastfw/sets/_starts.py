"""Where learners start."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, freeze, real_array
from fastfw._layout import copied
from fastfw.sets._accept import dense_vertex, start_of
from fastfw.sets._convex import point_inside, random_vertex, require_dtype

__all__ = ["INITS", "begin", "first_point", "given_or_usual"]

#: Names of the ways to choose x_1.
INITS = ("zeros", "vertex", "random")

# Part of the seed, so that the start and batches drawn with the same seed do not go together.
_STREAM = 0x696E6974


def first_point(
    problem: Any,
    set: Any,
    start: npt.ArrayLike | None,
    init: str | None,
    seed: int | tuple[int, ...],
    dtype: np.dtype[Any] | None,
) -> FloatArray:
    """Return x_1, read-only: the start given, if feasible, or a point chosen as `init` says.

    With neither, the problem's ``default_init`` if it has one; else the set's own start, zeros
    where feasible, or a vertex.
    """
    if init is not None and init not in INITS:
        raise ValueError(f"init must be one of {INITS}, but it is {init!r}")
    if start is not None:
        if init is not None:
            raise ValueError("start and init both say where to start; give one of them")
        return freeze(_given(set, start, dtype))
    init = getattr(problem, "default_init", None) if init is None else init
    shape = tuple(set.shape)
    if init is None:
        return freeze(_usual(set))
    if init == "zeros":
        if not _may_contain_zero(set, shape):
            raise ValueError(f"init is 'zeros', but they do not lie in {set!r}; try 'vertex'")
        return freeze(np.zeros(shape))
    rng = np.random.default_rng((*((seed,) if isinstance(seed, int) else seed), _STREAM))
    if init == "vertex":
        return freeze(random_vertex(set, rng))
    return freeze(point_inside(set, rng))


def given_or_usual(set: Any, start: npt.ArrayLike | None, dtype: np.dtype[Any]) -> FloatArray:
    """Return a start that does not depend on the problem, in a dtype."""
    return begin(set, _usual(set) if start is None else _given(set, start, dtype), dtype)


def begin(set: Any, start: FloatArray, dtype: np.dtype[Any]) -> FloatArray:
    """Return x_1 as a new array of the dtype that is settled, if that can hold the set."""
    require_dtype(set, dtype)
    return copied(start, dtype)


def _usual(set: Any) -> FloatArray:
    shape = tuple(set.shape)
    if not hasattr(set, "start") and _may_contain_zero(set, shape):
        return np.zeros(shape)
    return start_of(set)


def _given(set: Any, start: npt.ArrayLike, dtype: np.dtype[Any] | None) -> FloatArray:
    """Return a start that lies in the set, as it was rounded when given or will be when played."""
    shape = tuple(set.shape)
    given = real_array(start, "start")
    single = given.dtype.newbyteorder("=") == np.float32
    with np.errstate(over="ignore"):  # infinity is refused below
        point: FloatArray = np.array(given, np.float32 if single else np.float64, order="C")
    if point.shape != shape:
        raise ValueError(f"start must have shape {shape}, but it has {point.shape}")
    if not np.isfinite(point).all():
        raise ValueError("start must be finite, but it holds NaN or infinity")
    if hasattr(set, "contains") and not any(
        set.contains(point.astype(real)) for real in {point.dtype, dtype or point.dtype}
    ):
        raise ValueError(
            f"start must lie in {set!r}, but it does not; leave start out, or project it first"
        )
    return point


def _may_contain_zero(set: Any, shape: tuple[int, ...]) -> bool:
    """Zero is outside a set if the oracle's minimum over it is positive in some direction."""
    if hasattr(set, "contains"):
        return bool(set.contains(np.zeros(shape)))
    rng = np.random.default_rng(0)
    directions = [np.ones(shape), *(rng.standard_normal(shape) for _ in range(4))]
    return all(
        np.vdot(sign * g, dense_vertex(set, sign * g)) <= 0.0
        for g in directions
        for sign in (1.0, -1.0)
    )
