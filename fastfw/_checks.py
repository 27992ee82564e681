"""Coercion and validation, done once at the door.

Everything behind these functions (drivers, kernels) works on one canonical form: C-contiguous,
aligned, native byte order, read-only; float64 or float32 features and intp labels.  One form means
that every kernel is compiled once per dtype.  Arrays that already have the form are passed on as a
read-only view of the same memory; everything else is copied exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfw._csr import check_structure, csr_features, is_sparse
from fastfw._scalars import (
    boolean,
    choice,
    fraction,
    non_negative_float,
    positive_float,
    positive_int,
    seed,
    shown,
)

__all__ = [
    "FloatArray",
    "IndexArray",
    "as_array",
    "batch_parts",
    "boolean",
    "choice",
    "features",
    "fewer_classes_than_rows",
    "float_dtype",
    "fraction",
    "labels",
    "locked",
    "non_negative_float",
    "positive_float",
    "positive_int",
    "real_array",
    "require",
    "sealed",
    "seed",
    "shown",
]

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
IndexArray: TypeAlias = npt.NDArray[np.intp]

_FLOAT64 = np.dtype(np.float64)
_FLOAT32 = np.dtype(np.float32)
_INTP = np.dtype(np.intp)

# Elements looked at together by the finiteness check: its scratch mask stays in the L2 cache and
# never grows with the data.
_BLOCK = 1 << 16


def features(
    X: object,
    *,
    name: str = "X",
    n_features: int | None = None,
    dtype: npt.DTypeLike | None = None,
    finite: bool = True,
    sparse: bool = False,
) -> FloatArray:
    """Return features in canonical form, or say precisely why they cannot be used.

    Parameters
    ----------
    X : array_like, shape (n, d)
        Booleans, integers or floats in any memory layout and byte order.  Never mutated.
    name : str
        The argument's name, for error messages.
    n_features : int, optional
        The wanted number of columns.
    dtype : {float64, float32}, optional
        The wanted dtype.  By default float64 and float32 are kept and everything else becomes
        float64.
    finite : bool
        Whether to look for NaN and inf: a pass over `X` that a caller may put off until something
        computed from it is not finite.
    sparse : bool
        Whether scipy.sparse matrices are welcome, of any format.

    Returns
    -------
    ndarray, shape (n, d), float64 or float32
        C-contiguous, aligned, native byte order, read-only.  It shares memory with `X`
        wherever no conversion is needed.  Sparse features come as a canonical CSR array, see
        `fastfw._csr`.

    Raises
    ------
    TypeError
        If `X` does not hold real numbers.
    ValueError
        If `X` is not two-dimensional, is empty, has the wrong width, or holds NaN or inf; the first
        offending position is named.

    Notes
    -----
    O(n d) time; beyond the result itself, O(1) memory.

    Examples
    --------
    >>> import numpy as np
    >>> features(np.array([[1, 2], [3, 4]], dtype=np.uint8))
    array([[1., 2.],
           [3., 4.]])
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
    kind = given.dtype.kind
    if given.ndim != 2:
        hint = f"; a single sample is {name}[np.newaxis, :]" if given.ndim == 1 else ""
        raise ValueError(
            f"{name} must be a matrix of shape (n_samples, n_features), "
            f"but it has shape {given.shape}{hint}"
        )
    rows, columns = given.shape
    if rows == 0 or columns == 0:
        raise ValueError(
            f"{name} is empty: its shape is {given.shape}, "
            "and at least one row and one column are needed"
        )
    if n_features is not None and columns != n_features:
        raise ValueError(f"{name} has {columns} columns, but {n_features} features are wanted")
    if target is None:
        native = given.dtype.newbyteorder("=")
        target = native if native in (_FLOAT64, _FLOAT32) else _FLOAT64

    canonical = _canonical(given, target)
    if kind == "f" and finite:
        first = _first_non_finite(canonical)
        if first >= 0:
            i, j = divmod(first, columns)
            value = given[i, j]
            if np.isfinite(value):
                raise ValueError(
                    f"{name}[{i}, {j}] is {value}, which {target.name} cannot hold; rescale {name}"
                )
            raise ValueError(
                f"{name}[{i}, {j}] is {value}; {name} must be finite: drop or impute such rows"
            )
    return canonical


def labels(
    y: object,
    *,
    n_samples: int | None = None,
    n_classes: int | None = None,
    name: str = "y",
) -> IndexArray:
    """Return class labels in canonical form, or say precisely why they cannot be used.

    Parameters
    ----------
    y : array_like, shape (n,)
        Class numbers 0, 1, ... of any integer dtype, or booleans.  Never mutated.
    n_samples : int, optional
        The wanted length.
    n_classes : int, optional
        Labels must be smaller than this.
    name : str
        The argument's name, for error messages.

    Returns
    -------
    ndarray, shape (n,), intp
        C-contiguous, aligned, native byte order, read-only.  It shares memory with `y` wherever no
        conversion is needed.

    Raises
    ------
    TypeError
        If `y` holds anything but integers.
    ValueError
        If `y` is not one-dimensional, is empty, has the wrong length, or holds a label that is
        negative or too large; the first such label is named.

    Notes
    -----
    O(n) time.

    Examples
    --------
    >>> labels([2, 0, 1], n_classes=3)
    array([2, 0, 1])
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
    canonical = _canonical(given, _INTP)
    # Seen as unsigned, a negative label is larger than any class number, and so is an uint64 label
    # that intp cannot hold: one pass finds all three faults.
    limit = n_classes if n_classes is not None else np.iinfo(np.intp).max
    if canonical.view(np.uintp).max() >= limit:
        i = int(np.argmax(canonical.view(np.uintp) >= limit))
        if n_classes is None:
            raise ValueError(f"{name}[{i}] is {given[i]}; labels must be 0, 1, ...")
        raise ValueError(
            f"{name}[{i}] is {given[i]}; with {n_classes} classes, "
            f"labels must be 0, ..., {n_classes - 1}"
        )
    return canonical


def as_array(value: object, name: str) -> npt.NDArray[Any]:
    """Return anything array-like as a plain ndarray; masks must not vanish silently."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it in first, with {name}.filled(...)")
    try:
        return np.asarray(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as a NumPy array: {error}") from None


def real_array(value: object, name: str) -> npt.NDArray[Any]:
    """Return anything array-like as an array of real numbers, of any shape and dtype that is one.

    Raises
    ------
    TypeError
        If it holds complex numbers, strings or objects, or is a sparse matrix or a masked array.
    ValueError
        If it cannot be read as an array.

    Examples
    --------
    >>> real_array([1, 2], "x")
    array([1, 2])
    >>> real_array([1j], "x")
    Traceback (most recent call last):
        ...
    TypeError: x must hold real numbers, but its dtype is complex128; use x.real
    """
    array = as_array(value, name)
    if array.dtype.kind not in "fiub":
        raise TypeError(_not_numbers(array, name, value))
    return array


def sealed(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a view of an array of one's own that NumPy refuses to make writable again.

    An array that owns its memory may be made writable by anybody, a view only while its base is.
    A view is copied first, as its base is not known to be free.
    """
    base = array if array.base is None else array.copy()
    base.flags.writeable = False
    return base.view()


def locked(thing: Any) -> Any:
    """Return an array as a read-only view, and a batch with its arrays so; all else as it is.

    For what is handed to code that is not ours: writing to it fails instead of changing the data.
    Sparse matrices are looked at: to read one whose parts do not fit ends the process.
    """
    if isinstance(thing, np.ndarray):
        view = thing.view()
        view.flags.writeable = False
        return view
    if is_sparse(thing):
        check_structure(thing, "X")
    if isinstance(thing, tuple | list) and any(map(_lockable, thing)):
        parts = map(locked, thing)
        if hasattr(thing, "_make"):  # a named tuple
            return thing._make(parts)
        return list(parts) if isinstance(thing, list) else tuple(parts)
    return thing


def _lockable(part: object) -> bool:
    return isinstance(part, np.ndarray) or is_sparse(part)


def require(thing: object, name: str, attributes: Iterable[str]) -> None:
    """Refuse a problem, set or the like that lacks what it is needed for.

    Raises
    ------
    TypeError
        Naming what is missing, or the class where an object of it is wanted.
    """
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


def fewer_classes_than_rows(y: IndexArray, name: str = "y") -> None:
    """Refuse canonical labels of which the largest is not below their number.

    Parameters have a row for each class number, used or not: one stray label makes them enormous.

    Raises
    ------
    ValueError
        Naming the largest label and where it is.
    """
    i = int(np.argmax(y))
    if y[i] >= len(y):
        raise ValueError(
            f"{name}[{i}] is {y[i]}, but {name} has {len(y)} labels, {len(np.unique(y))} of them "
            "distinct; class numbers must be 0, 1, ... without gaps: "
            f"classes, {name} = np.unique({name}, return_inverse=True)"
        )


def batch_parts(batch: object) -> tuple[Any, Any]:
    """Split a batch into its features and labels, without looking at either.

    Parameters
    ----------
    batch : object
        A pair ``(X, y)`` or anything with attributes ``.X`` and ``.y``.

    Returns
    -------
    tuple
        ``(X, y)``, unchecked.

    Raises
    ------
    TypeError
        If `batch` is neither.

    Examples
    --------
    >>> batch_parts(([[1.0]], [0]))
    ([[1.0]], [0])
    """
    if isinstance(batch, tuple | list) and len(batch) == 2:
        return batch[0], batch[1]
    try:
        return batch.X, batch.y  # type: ignore[attr-defined]
    except AttributeError:
        length = f" of length {len(batch)}" if isinstance(batch, tuple | list) else ""
        raise TypeError(
            f"batch must be a pair (X, y) or have attributes .X and .y, "
            f"but it is a {type(batch).__name__}{length}"
        ) from None


def float_dtype(dtype: npt.DTypeLike, name: str = "dtype") -> np.dtype[Any]:
    """Return `dtype` as a native NumPy dtype if it is float64 or float32.

    Raises
    ------
    ValueError
        If it is any other dtype.
    TypeError
        If it is not a dtype at all.

    Examples
    --------
    >>> float_dtype("float32")
    dtype('float32')
    """
    try:
        found = np.dtype(dtype).newbyteorder("=")
    except TypeError:
        raise TypeError(f"{name} must be float64 or float32, but it is {dtype!r}") from None
    if found not in (_FLOAT64, _FLOAT32):
        raise ValueError(f"{name} must be float64 or float32, but it is {found}")
    return found


def _canonical(given: npt.NDArray[Any], target: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a canonical, read-only array: the same memory if possible, else one copy."""
    flags = given.flags
    if given.dtype == target and flags.c_contiguous and flags.aligned:
        if not flags.writeable:
            return given
        result = given.view()
    else:
        # Overflow and NaN are found by the check that follows, with their position.
        with np.errstate(over="ignore", invalid="ignore"):
            result = np.array(given, dtype=target, order="C")
    result.flags.writeable = False
    return result


def _first_non_finite(a: FloatArray) -> int:
    """Return the flat position of the first NaN or inf of a C-contiguous array, or -1."""
    if a.size <= _BLOCK and np.isfinite(a).all():
        return -1  # the usual case, batch after batch
    flat = a.reshape(-1)
    mask = np.empty(min(flat.size, _BLOCK), dtype=np.bool_)
    for start in range(0, flat.size, _BLOCK):
        block = flat[start : start + _BLOCK]
        finite = np.isfinite(block, out=mask[: block.size])
        if not finite.all():
            return start + int(finite.argmin())
    return -1


def _not_numbers(given: npt.NDArray[Any], name: str, original: object) -> str:
    """Word the error for features that are not real numbers."""
    if hasattr(original, "toarray"):
        return f"{name} is a sparse matrix, but a dense array is wanted; use {name}.toarray()"
    if given.dtype.kind == "c":
        return f"{name} must hold real numbers, but its dtype is {given.dtype}; use {name}.real"
    if given.dtype.kind in "OUS":
        return (
            f"{name} must hold real numbers, but its dtype is {given.dtype}; "
            f"if all entries are numbers, use {name}.astype(np.float64)"
        )
    return f"{name} must hold real numbers, but its dtype is {given.dtype}"
