"""What sets and problems of one's own give, checked where it comes in.

Whatever is not finite is put down to an oracle only if what it was asked about is finite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray
from fastfw._layout import copied
from fastfw.sets._vertex import Vertex


def accept(
    found: Any,
    shape: tuple[int, ...],
    oracle: str,
    dtype: npt.DTypeLike | None = None,
    *,
    finite: bool = True,
) -> npt.NDArray[Any]:
    """Return what an oracle gave as a new array, checked, of a dtype where one is wanted."""
    try:
        plain = type(found) is np.ndarray and found.dtype.kind == "f"
        array = copied(found) if plain else np.array(found)
    except (TypeError, ValueError) as error:
        kind = type(found).__name__
        ragged = isinstance(found, list | tuple)
        gave = f"a ragged {kind}" if ragged else f"a {kind} that NumPy cannot read: {error}"
        raise _unusable(TypeError, oracle, shape, gave) from None
    if array.dtype.kind not in "fiub" or isinstance(found, np.ma.MaskedArray):
        raise _unusable(TypeError, oracle, shape, _kind(found, array))
    if array.shape != shape:
        raise _unusable(ValueError, oracle, shape, f"one of shape {array.shape}")
    if dtype is not None:
        with np.errstate(over="ignore"):  # infinity is refused below
            array = array.astype(dtype, copy=False)
    if finite and not np.isfinite(array).all():
        raise _not_finite(oracle, shape, array)
    return array


def accept_vertex(
    found: Any, direction: npt.NDArray[Any], *, look: bool = True
) -> Vertex | npt.NDArray[Any]:
    """Return what an oracle gave for a finite direction: structured, or else a new array.

    A structured vertex is looked at through its inner product, at no more than its own cost; not
    without `look`, where it is to be a part of another one.
    """
    if not isinstance(found, Vertex) or found.shape != direction.shape:
        return accept(found, direction.shape, "set.lmo")
    if look:
        with np.errstate(over="ignore", invalid="ignore"):
            slope = found.dot(direction)
        if not math.isfinite(slope) and not np.isfinite(dense := found.toarray()).all():
            raise _not_finite("set.lmo", direction.shape, dense)
    return found


def call_oracle(set: Any, direction: npt.NDArray[Any], start: Vertex | None = None) -> Any:
    """Return what the set's oracle gives, told an earlier answer where it can begin from one."""
    return set.lmo(direction, start) if getattr(set, "warm_starts", False) else set.lmo(direction)


def dense_vertex(set: Any, direction: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the set's vertex for a direction as a new array of float64."""
    finite = bool(np.isfinite(direction).all())
    found = call_oracle(set, direction)
    return accept(found, tuple(set.shape), "set.lmo", np.float64, finite=finite)


def start_of(set: Any) -> npt.NDArray[np.float64]:
    """Return the set's own start, where it has none the vertex for zeros; a new array."""
    shape = tuple(set.shape)
    if hasattr(set, "start"):
        return accept(set.start(), shape, "set.start", np.float64)
    return dense_vertex(set, np.zeros(shape))


def project_onto(set: Any, x: FloatArray, dtype: npt.DTypeLike = np.float64) -> FloatArray:
    """Return the set's projection of a point as a new array."""
    finite = bool(np.isfinite(x).all())
    return accept(set.project(x), x.shape, "set.project", dtype, finite=finite)


def diameter_of(set: Any) -> float:
    """Return the set's diameter, a finite number of at least 0."""
    given = set.diameter
    try:
        diameter = float(given)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"set.diameter must be a finite number >= 0, but it is {given!r}") from None
    if not 0.0 <= diameter < math.inf:
        raise ValueError(f"set.diameter must be a finite number >= 0, but it is {diameter}")
    return diameter


def _unusable(kind: type[Exception], oracle: str, shape: tuple[int, ...], gave: str) -> Exception:
    return kind(
        f"{oracle} must give an array of shape {shape} of finite real numbers, but it gave {gave}"
    )


def _not_finite(oracle: str, shape: tuple[int, ...], array: npt.NDArray[Any]) -> Exception:
    at = np.argwhere(~np.isfinite(array))[0].tolist()
    return _unusable(ValueError, oracle, shape, f"one with {array[tuple(at)]} at {at}")


def _kind(found: Any, array: npt.NDArray[Any]) -> str:
    """Describe what holds no real numbers."""
    if found is None:
        return "None; does it lack a return?"
    if isinstance(found, np.ndarray | list | tuple) and type(found) is not np.ma.MaskedArray:
        return f"one of dtype {array.dtype}"
    return f"a {type(found).__name__}"
