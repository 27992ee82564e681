"""Coercion and validation, done once, where something comes in.

What lies behind works on one canonical form, so that every kernel is compiled once per dtype:
C-contiguous, aligned, native byte order, read-only; float64 or float32 features and intp labels.
Arrays that have it are passed on as a read-only view of the same memory, others are copied once.

What cannot be used raises a TypeError (it is of the wrong kind) or a ValueError that names the
argument, what was given and what is wanted.  Nothing that is given is ever changed.
"""

from __future__ import annotations

import math
import numbers
import operator
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfw._csr import (
    canonical_array,
    check_matrix,
    check_structure,
    csr_features,
    is_sparse,
    not_finite,
)

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IndexArray: TypeAlias = npt.NDArray[np.intp]

_FLOAT64 = np.dtype(np.float64)
_FLOAT32 = np.dtype(np.float32)
_INTP = np.dtype(np.intp)

# Least and largest size of numbers that arithmetic in a dtype starts from: with all of its digits,
# and with room for sums of 65,536 of them.
_RANGES = {
    dtype: (float(np.finfo(dtype).tiny), float(np.finfo(dtype).max) / 65536)
    for dtype in (_FLOAT64, _FLOAT32)
}

# Elements of an array that the finiteness check makes a mask for.
_BLOCK = 1 << 16
# Labels that Python looks through before NumPy has begun.
_FEW = 32

_SEQUENCES = (tuple, list)


# --- data -----------------------------------------------------------------------------------------


def features(
    X: object,
    *,
    name: str = "X",
    n_features: int | None = None,
    dtype: npt.DTypeLike | None = None,
    finite: bool = True,
    sparse: bool = False,
) -> FloatArray:
    """Return features (n, d) in canonical form, finite unless a caller looks for that later.

    By default float64 and float32 are kept and everything else becomes float64. Sparse matrices,
    where they are welcome, become canonical CSR arrays, see `fastfw._csr`.

    >>> features([[0.0, float("nan")]])
    Traceback (most recent call last):
        ...
    ValueError: X[0, 1] is nan; X must be finite: drop or impute such rows
    """
    target = None if dtype is None else float_dtype(dtype)
    if sparse and is_sparse(X):
        csr: FloatArray = csr_features(X, name=name, n_features=n_features, dtype=target)
        return csr
    given = real_array(X, name)
    check_matrix(given, name, n_features)
    if target is None:
        native = given.dtype.newbyteorder("=")
        target = native if native in (_FLOAT64, _FLOAT32) else _FLOAT64

    canonical = canonical_array(given, target)
    if finite and given.dtype.kind == "f" and not all_finite(canonical):
        i, j = divmod(int(np.isfinite(canonical).argmin()), given.shape[1])
        raise not_finite(name, i, j, given[i, j], target)
    return canonical


def labels(
    y: object,
    *,
    n_samples: int | None = None,
    n_classes: int | None = None,
    name: str = "y",
) -> IndexArray:
    """Return class numbers 0, 1, ..., below `n_classes` if given, in canonical form (n,).

    >>> labels([2, 0, 3], n_classes=3)
    Traceback (most recent call last):
        ...
    ValueError: y[2] is 3; with 3 classes, labels must be 0, ..., 2
    """
    given = as_array(y, name)
    if given.size == 0:
        raise ValueError(f"{name} is empty: at least one label is needed")
    if given.dtype.kind not in "iub":
        raise TypeError(
            f"{name} must hold integer class numbers 0, 1, ..., but its dtype is {given.dtype}; "
            f"to number the classes: classes, {name} = np.unique({name}, return_inverse=True)"
        )
    if given.ndim != 1:
        if given.ndim == 2 and given.shape[1] == 1:
            hint = f"; use {name}.ravel()"
        elif given.ndim == 2:
            hint = f"; from one-hot rows: {name} = np.argmax({name}, axis=1)"
        else:
            hint = ""
        raise ValueError(
            f"{name} must have shape (n_samples,), but it has shape {given.shape}{hint}"
        )
    if n_samples is not None and len(given) != n_samples:
        raise ValueError(
            f"{name} has {len(given)} labels, but {n_samples} are wanted: one for each row"
        )
    canonical = canonical_array(given, _INTP)
    limit = sys.maxsize if n_classes is None else n_classes
    if canonical.size <= _FEW:
        few = canonical.tolist()
        fit = min(few) >= 0 and max(few) < limit
    else:
        fit = canonical.view(np.uintp).max() < limit
    if not fit:
        # Seen as unsigned, a negative label is larger than any class number, and so is an uint64
        # label that intp cannot hold.
        i = int(np.argmax(canonical.view(np.uintp) >= limit))
        if n_classes is None:
            raise ValueError(f"{name}[{i}] is {given[i]}; labels must be 0, 1, ...")
        raise ValueError(
            f"{name}[{i}] is {given[i]}; with {n_classes} classes, "
            f"labels must be 0, ..., {n_classes - 1}"
        )
    return canonical


def sort_classes(classes: Any) -> npt.NDArray[Any]:
    """Return the labels there are to be, sorted."""
    given = as_array(classes, "classes")
    if given.ndim != 1 or (given.dtype.kind == "f" and not np.isfinite(given).all()):
        raise ValueError(
            "classes must be a list of labels, without NaN, but it is "
            f"{describe(classes, bare=True)}"
        )
    try:
        return np.unique(given)
    except TypeError:
        raise TypeError(
            f"classes must be labels of one kind, but they are {describe(classes, bare=True)}"
        ) from None


def as_list(labels: npt.NDArray[Any]) -> list[Any]:
    """Return labels as objects of Python; dates, which it has not in all units, as NumPy's."""
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()


def class_numbers(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> IndexArray:
    """Return the places of labels of any kind among sorted classes."""
    places = classes.searchsorted(y)
    strange = np.asarray(classes.take(places, mode="clip") != y)
    if strange.any():
        label = as_list(y[strange])[0]
        raise ValueError(f"y has the label {label!r}, which is not among the classes")
    return places


def fewer_classes_than_rows(y: IndexArray) -> None:
    """Refuse canonical labels of which the largest is not below their number.

    Parameters have a row for each class number, used or not: one stray label makes them enormous.
    """
    i = int(np.argmax(y))
    if y[i] >= len(y):
        raise ValueError(
            f"y[{i}] is {y[i]}, but y has {len(y)} labels, {len(np.unique(y))} of them "
            "distinct; class numbers must be 0, 1, ... without gaps: "
            "classes, y = np.unique(y, return_inverse=True)"
        )


def batch_parts(batch: object) -> tuple[Any, Any]:
    """Split a pair ``(X, y)``, or anything with ``.X`` and ``.y``, without looking at either."""
    if isinstance(batch, _SEQUENCES) and len(batch) == 2:
        return batch[0], batch[1]
    try:
        return batch.X, batch.y  # type: ignore[attr-defined]
    except AttributeError:
        length = f" of length {len(batch)}" if isinstance(batch, tuple | list) else ""
        raise TypeError(
            f"batch must be a pair (X, y) or have attributes .X and .y, "
            f"but it is a {type(batch).__name__}{length}"
        ) from None


def is_pair(batch: object) -> bool:
    """Whether a batch has features and labels."""
    try:
        batch_parts(batch)
    except TypeError:
        return False
    return True


def reworded(error: TypeError | ValueError, words: str) -> TypeError | ValueError:
    """Return an error of the same kind in other words."""
    return ValueError(words) if isinstance(error, ValueError) else TypeError(words)


# --- arrays and objects ---------------------------------------------------------------------------


def refuse_masks(value: object, name: str) -> None:
    """Refuse a masked array, and a sequence of some, whose masks NumPy would drop silently."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it in first, with {name}.filled(...)")
    if isinstance(value, list | tuple):
        for i, part in enumerate(value):
            if isinstance(part, np.ma.MaskedArray):
                raise TypeError(
                    f"{name}[{i}] is a masked array; fill it in first, with {name}[{i}].filled(...)"
                )


def as_array(value: object, name: str) -> npt.NDArray[Any]:
    """Return anything array-like as a plain ndarray; masks must not vanish silently."""
    if type(value) is np.ndarray:
        return value
    refuse_masks(value, name)
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as a NumPy array: {error}") from None


def real_array(value: object, name: str) -> npt.NDArray[Any]:
    """Return anything array-like as an array of real numbers, of any shape and real dtype.

    >>> real_array([1j], "x")
    Traceback (most recent call last):
        ...
    TypeError: x must hold real numbers, but its dtype is complex128; use x.real
    """
    array = as_array(value, name)
    kind = array.dtype.kind
    if kind in "fiub":
        return array
    if hasattr(value, "toarray"):
        raise TypeError(
            f"{name} is a sparse matrix, but a dense array is wanted; use {name}.toarray()"
        )
    hints = {"c": f"; use {name}.real"} | dict.fromkeys(
        "OUS", f"; if all entries are numbers, use {name}.astype(np.float64)"
    )
    raise TypeError(
        f"{name} must hold real numbers, but its dtype is {array.dtype}{hints.get(kind, '')}"
    )


def float_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    """Return `dtype` as a native NumPy dtype if it is float64 or float32."""
    if dtype is _FLOAT64 or dtype is _FLOAT32:
        return dtype
    try:
        found = np.dtype(dtype).newbyteorder("=")
    except TypeError:
        raise TypeError(f"dtype must be float64 or float32, but it is {dtype!r}") from None
    if found not in (_FLOAT64, _FLOAT32):
        raise ValueError(f"dtype must be float64 or float32, but it is {found}")
    return found


def freeze(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of an array of one's own that NumPy refuses to make writable again.

    An array that owns its memory may be made writable by anybody, a view only while its base is.
    A view is copied first, as its base is not known to be free.
    """
    base = array if array.base is None else array.copy()
    base.flags.writeable = False
    return base.view()


def read_only(thing: Any) -> Any:
    """Return an array as a read-only view, and a batch with its arrays so; all else as it is.

    For what is handed to code that is not ours: writing to it fails instead of changing the data.
    Swapped bytes are put in order: what Numba compiled for others takes them as they lie.
    Sparse matrices are looked at: to read one whose parts do not fit ends the process.
    """
    if isinstance(thing, np.ndarray):
        native = thing.dtype.isnative
        view = thing.view() if native else thing.astype(thing.dtype.newbyteorder("="))
        view.flags.writeable = False
        return view
    if is_sparse(thing):
        check_structure(thing, "X")
    if isinstance(thing, tuple | list) and any(
        isinstance(part, np.ndarray) or is_sparse(part) for part in thing
    ):
        parts = map(read_only, thing)
        if hasattr(thing, "_make"):  # a named tuple
            return thing._make(parts)
        return list(parts) if isinstance(thing, list) else tuple(parts)
    return thing


def require(thing: object, name: str, attributes: Iterable[str]) -> None:
    """Refuse a problem, set or the like that lacks what it is needed for, or is only a class."""
    if isinstance(thing, type):
        raise TypeError(
            f"{name} must be an object, but it is the class {thing.__name__}; make one: "
            f"{thing.__name__}(...)"
        )
    missing = [attribute for attribute in attributes if not hasattr(thing, attribute)]
    if missing:
        raise TypeError(
            f"{name} must have {', '.join(attributes)}, but a {type(thing).__name__} has no "
            f"{', '.join(missing)}"
        )


def require_pair(problem: Any, set: Any, attributes: Iterable[str] = ()) -> None:
    """Refuse a problem and a set that do not belong together, or a set without some attributes."""
    require(problem, "problem", ("shape", "loss", "gradient"))
    require(set, "set", ("shape", "lmo", *attributes))
    if tuple(problem.shape) != tuple(set.shape):
        raise ValueError(
            f"problem and set must have the same shape, but problem.shape is "
            f"{tuple(problem.shape)} and set.shape is {tuple(set.shape)}"
        )


# --- numbers, names and seeds ---------------------------------------------------------------------


def boolean(value: object, name: str) -> bool:
    """Return True or False, Python's or NumPy's, as a plain bool."""
    value = _scalar(value)
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False, but it is {describe(value)}")
    return bool(value)


def choice(value: object, name: str, options: Iterable[str | None]) -> Any:
    """Return `value` if it is one of some names, or None where that is an option."""
    options = list(options)
    if (value is None or isinstance(value, str)) and value in options:
        return value
    names = [repr(option) for option in options]
    wanted = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    raise ValueError(f"{name} must be {wanted}, but it is {describe(value)}")


def positive_float(value: object, name: str) -> float:
    """Return a finite number above zero as a plain float."""
    return _real(value, name, "a positive number", lambda number: number > 0.0)


def non_negative_float(value: object, name: str) -> float:
    """Return a finite number of at least zero as a plain float."""
    return _real(value, name, "a number >= 0", lambda number: number >= 0.0)


def fraction(value: object, name: str) -> float:
    """Return a number in [0, 1] as a plain float."""
    return _real(value, name, "a number in [0, 1]", lambda number: 0.0 <= number <= 1.0)


def share(value: object, name: str) -> float:
    """Return a number in (0, 1) as a plain float."""
    return _real(value, name, "a number above 0 and below 1", lambda number: 0.0 < number < 1.0)


def in_range(size: float, name: str, dtype: np.dtype[Any], hint: str) -> float:
    """Return a positive number that a dtype holds with its digits, and sums of such numbers too."""
    least, most = _RANGES[dtype]
    if least <= size <= most:
        return size
    wanted = (
        f"at least {least:.3g}, below which {dtype} loses digits" if size < least else
        f"at most {most:.3g}, above which sums in {dtype} overflow"
    )  # fmt: skip
    wider = "use dtype float64, or " if dtype == _FLOAT32 else ""
    raise ValueError(f"{name} must be {wanted}, but it is {size:.3g}; {wider}{hint}")


def positive_int(value: object, name: str, *, minimum: int = 1, maximum: int | None = None) -> int:
    """Return an integer of at least `minimum` as a plain int; floats are refused, even whole ones.

    >>> positive_int(600.0, "batch_size")
    Traceback (most recent call last):
        ...
    TypeError: batch_size must be an integer >= 1, but it is 600.0 (float); write 600
    """
    value = _scalar(value)
    upper = f"an integer from {minimum} to {maximum}"
    wanted = f"an integer >= {minimum}" if maximum is None else upper
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Integral):
        hint = ""
        if isinstance(value, float | np.floating) and float(value).is_integer():
            hint = f"; write {int(value)}"
        raise TypeError(f"{name} must be {wanted}, but it is {describe(value)}{hint}")
    number = operator.index(value)
    if number < minimum or (maximum is not None and number > maximum):
        raise ValueError(f"{name} must be {wanted}, but it is {number}")
    return number


def renamed(old: str, given_as_old: Any, new: str, given: Any, stacklevel: int = 3) -> Any:
    """Return an argument that has a new name, whichever was used for it."""
    if given_as_old is None:
        return given
    if given is not None:
        raise TypeError(f"{old} is an earlier name of {new}: give one of them, not both")
    warnings.warn(f"{old} is called {new} now", DeprecationWarning, stacklevel=stacklevel)
    return given_as_old


def warn_from_outside(message: str, category: type[Warning]) -> None:
    """Warn as from the line outside this package that led here."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("fastfw."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


def check_seed(value: object) -> int | tuple[int, ...]:
    """Return a seed that gives the same random numbers whenever it is used.

    Integers >= 0, or sequences of them: ``(seed, trial)`` makes independent streams. None and
    generators are refused, for a second pass would draw other numbers than the first.
    """
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        if isinstance(value, np.ndarray) and value.ndim == 0:
            return positive_int(value, "seed", minimum=0)
        parts = tuple(positive_int(part, f"seed[{i}]", minimum=0) for i, part in enumerate(value))
        if not parts:
            raise ValueError("seed must not be an empty sequence; give an integer >= 0")
        return parts
    return positive_int(value, "seed", minimum=0)


@lru_cache(maxsize=64)
def seed_bits(seed: int | tuple[int, ...]) -> int:
    """64 bits from a seed that may be a sequence, the same everywhere."""
    return int(np.random.SeedSequence(seed).generate_state(1, np.uint64)[0])


def describe(value: object, *, bare: bool = False) -> str:
    """Show a value on one short line, with its type unless `bare`."""
    text = repr(value) if not isinstance(value, np.generic) else str(value)
    text = " ".join(text.split())
    if len(text) > 60:
        text = text[:57] + "..."
    return text if bare else f"{text} ({type(value).__name__})"


def all_finite(a: npt.NDArray[Any]) -> bool:
    """Whether there is neither NaN nor infinity in an array."""
    if a.size <= _BLOCK:  # the usual case, batch after batch
        return bool(np.isfinite(a).all())
    with np.errstate(invalid="ignore"):  # without a mask that grows with the data
        return bool(np.isfinite(a.max()) and np.isfinite(a.min()))


# --- helpers --------------------------------------------------------------------------------------


def _scalar(value: object) -> object:
    """Unwrap a zero-dimensional array."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _real(value: object, name: str, wanted: str, fits: Callable[[float], bool]) -> float:
    """Return a finite real number (booleans are none) that fits."""
    value = _scalar(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {wanted}, but it is {describe(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not (math.isfinite(number) and fits(number)):
        raise ValueError(f"{name} must be {wanted}, but it is {describe(value, bare=True)}")
    return number
