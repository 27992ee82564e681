"""Numbers, names and seeds, checked once at the door; arrays are checked in `fastfw._checks`."""

from __future__ import annotations

import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = [
    "boolean",
    "choice",
    "fraction",
    "non_negative_float",
    "positive_float",
    "positive_int",
    "seed",
    "shown",
]


def boolean(value: object, name: str) -> bool:
    """Return True or False, Python's or NumPy's, as a plain bool.

    Raises
    ------
    TypeError
        If `value` is anything else.

    Examples
    --------
    >>> boolean(np.True_, "average")
    True
    """
    value = _scalar(value)
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, but it is {shown(value)}")
    return bool(value)


def choice(value: object, name: str, options: Iterable[str | None]) -> Any:
    """Return `value` if it is one of some names, or None where that is an option.

    Raises
    ------
    ValueError
        If it is not.

    Examples
    --------
    >>> choice("max-abs", "scaling", ("max-abs", None))
    'max-abs'
    """
    options = list(options)
    if (value is None or isinstance(value, str)) and value in options:
        return value
    names = [repr(option) for option in options]
    wanted = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    raise ValueError(f"{name} must be {wanted}, but it is {shown(value)}")


def positive_float(value: object, name: str, *, wanted: str = "a positive number") -> float:
    """Return a finite number above zero as a plain float; `wanted` words the error.

    Raises
    ------
    TypeError
        If `value` is not a real number (booleans are not).
    ValueError
        If it is NaN, infinite, zero or negative.

    Examples
    --------
    >>> positive_float(8, "radius")
    8.0
    """
    number = _real(value, name, wanted)
    if not number > 0.0:
        raise ValueError(f"{name} must be {wanted}, but it is {value}")
    return number


def non_negative_float(value: object, name: str) -> float:
    """Return a finite number of at least zero as a plain float.

    Raises
    ------
    TypeError
        If `value` is not a real number (booleans are not).
    ValueError
        If it is NaN, infinite or negative.

    Examples
    --------
    >>> non_negative_float(0, "tol")
    0.0
    """
    number = _real(value, name, "a number >= 0")
    if number < 0.0:
        raise ValueError(f"{name} must be a number >= 0, but it is {value}")
    return number


def fraction(value: object, name: str, *, positive: bool = False) -> float:
    """Return a number in [0, 1], or in (0, 1] if `positive`, as a plain float.

    Raises
    ------
    TypeError
        If `value` is not a real number (booleans are not).
    ValueError
        If it lies outside the interval or is NaN.

    Examples
    --------
    >>> fraction(0.5, "step")
    0.5
    """
    wanted = "a number in (0, 1]" if positive else "a number in [0, 1]"
    number = _real(value, name, wanted)
    if not 0.0 <= number <= 1.0 or (positive and number == 0.0):
        raise ValueError(f"{name} must be {wanted}, but it is {value}")
    return number


def positive_int(value: object, name: str, *, minimum: int = 1) -> int:
    """Return an integer of at least `minimum` as a plain int.

    Raises
    ------
    TypeError
        If `value` is not an integer; booleans and floats are not, whatever their value.
    ValueError
        If it is below `minimum`.

    Examples
    --------
    >>> positive_int(600, "batch_size")
    600
    """
    number = _integer(value, name, f"an integer >= {minimum}")
    if number < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, but it is {number}")
    return number


def seed(value: object, name: str = "seed") -> int | tuple[int, ...]:
    """Return a seed that gives the same random numbers whenever it is used.

    Parameters
    ----------
    value : int or sequence of int
        Integers >= 0.  A sequence such as ``(seed, trial)`` makes independent streams.
    name : str
        The argument's name, for error messages.

    Returns
    -------
    int or tuple of int
        What ``np.random.default_rng`` takes.

    Raises
    ------
    TypeError
        If it is not an integer or a sequence of integers.  ``None`` and generators are refused:
        a second pass would draw other numbers than the first.
    ValueError
        If an integer is negative or the sequence is empty.

    Examples
    --------
    >>> seed((0, 3))
    (0, 3)
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return positive_int(value, name, minimum=0)
        parts = tuple(positive_int(part, f"{name}[{i}]", minimum=0) for i, part in enumerate(value))
        if not parts:
            raise ValueError(f"{name} must not be an empty sequence; give an integer >= 0")
        return parts
    return positive_int(value, name, minimum=0)


def _scalar(value: object) -> object:
    """Unwrap a zero-dimensional array."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _real(value: object, name: str, wanted: str) -> float:
    value = _scalar(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {wanted}, but it is {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be {wanted}, but it is {shown(value, bare=True)}")
    return number


def _integer(value: object, name: str, wanted: str) -> int:
    value = _scalar(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        hint = ""
        if isinstance(value, float | np.floating) and float(value).is_integer():
            hint = f"; write {int(value)}"
        raise TypeError(f"{name} must be {wanted}, but it is {shown(value)}{hint}")
    return operator.index(value)


def shown(value: object, *, bare: bool = False) -> str:
    """Show a value on one short line, with its type unless `bare`."""
    text = repr(value) if not isinstance(value, np.generic) else str(value)
    text = " ".join(text.split())
    if len(text) > 60:
        text = text[:57] + "..."
    return text if bare else f"{text} ({type(value).__name__})"
