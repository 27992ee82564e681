"""Sparse features: checked once, where they come in, like dense ones in `fastfw._checks`.

The one canonical form is a ``scipy.sparse.csr_array`` whose indices increase within each row
(sorted, no column twice), native float64 or float32 entries, indices int32 unless they need more,
and read-only arrays. It shares memory with what was given where no conversion is needed.
"""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Callable, Iterable
from functools import cache, lru_cache
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

#: ``scipy.sparse.csr_array`` in canonical form; SciPy is imported where one comes in.
CSR: TypeAlias = Any

_INT32_MAX = np.iinfo(np.int32).max
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


def is_sparse(X: object) -> bool:
    """Whether X is a sparse array or matrix of SciPy, in any format."""
    if type(X) is np.ndarray:
        return False
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(X))


def row_squares(A: Any) -> npt.NDArray[np.float64]:
    """‖a‖² of every row, in float64."""
    if is_sparse(A):
        return np.asarray(A.astype(np.float64).power(2).sum(axis=1)).reshape(-1)
    squares: npt.NDArray[np.float64] = np.einsum("ij,ij->i", A, A, dtype=np.float64)
    return squares


def row_norms(A: Any) -> npt.NDArray[np.float64]:
    """Return ‖a‖ of every row in float64, where it is not nothing beside the largest."""
    with np.errstate(over="ignore"):
        squares = row_squares(A)
        if 1e-290 < squares.max() < np.inf:
            return np.sqrt(squares)
        wide = A.astype(np.float64)  # in a power of 2 near the largest entry nothing is rounded
        entries = wide.data if is_sparse(A) else wide
        exponent = math.frexp(float(np.abs(entries).max(initial=0.0)))[1] - 1
        np.ldexp(entries, -exponent, out=entries)
        return np.ldexp(np.sqrt(row_squares(wide)), exponent)


def csr_features(
    X: Any,
    *,
    name: str = "X",
    n_features: int | None = None,
    dtype: np.dtype[Any] | None = None,
) -> CSR:
    """Return sparse features of any format in canonical form, as `fastfw._checks.features` does.

    >>> from scipy import sparse
    >>> csr_features(sparse.coo_array(([1, 2, 3], ([0, 1, 1], [2, 0, 0])))).toarray()
    array([[0., 0., 1.],
           [5., 0., 0.]])
    """
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, but its dtype is {X.dtype}")
    check_matrix(X, name, n_features)
    if dtype is None:
        single = X.dtype.newbyteorder("=") == np.float32
        dtype = np.dtype(np.float32 if single else np.float64)
    kind, X = X.dtype.kind, sound_csr(X, name)
    indptr, indices, data = csr_parts(X)
    nnz = int(indptr[-1])
    found = assembled(data[:nnz], indices[:nnz], indptr, X.shape, dtype)
    finite = np.isfinite(found.data)
    if kind == "f" and not finite.all():
        q = int(np.argmin(finite))
        i, j = int(np.searchsorted(indptr, q, side="right")) - 1, int(indices[q])
        raise not_finite(name, i, j, data[q], dtype)
    return found


def canonical_array(given: npt.NDArray[Any], target: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return a canonical, read-only array: the same memory if possible, else one copy."""
    flags = given.flags
    if given.dtype == target and flags.c_contiguous and flags.aligned:
        result = given.view()
    else:
        # Overflow and NaN are found by the check that follows, with their position.
        with np.errstate(over="ignore", invalid="ignore"):
            result = np.array(given, dtype=target, order="C")
    result.setflags(False)  # type: ignore[call-arg]  # write=False, in a third of the time
    return result


def check_matrix(X: Any, name: str, n_features: int | None = None) -> None:
    """Refuse what is no matrix, is empty, or has another number of columns than is wanted."""
    shape = X.shape
    if len(shape) != 2:
        single = len(shape) == 1 and not is_sparse(X)
        hint = f"; a single sample is {name}[np.newaxis, :]" if single else ""
        raise ValueError(
            f"{name} must be a matrix of shape (n_samples, n_features), but it has shape "
            f"{shape}{hint}"
        )
    if 0 in shape:
        raise ValueError(
            f"{name} is empty: its shape is {shape}, and at least one row and one column are needed"
        )
    if n_features is not None and shape[1] != n_features:
        raise ValueError(f"{name} has {shape[1]} columns, but {n_features} features are wanted")


def not_finite(name: str, i: int, j: int, value: Any, dtype: np.dtype[Any]) -> ValueError:
    """Word the error for an entry that is not finite, or not in a dtype."""
    at = f"{name}[{i}, {j}] is {value}"
    if np.isfinite(value):
        return ValueError(f"{at}, which {dtype.name} cannot hold; rescale {name}")
    return ValueError(f"{at}; {name} must be finite: drop or impute such rows")


def csr_parts(X: CSR) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return a canonical matrix as kernels take it: row pointers, columns, values."""
    return X.indptr, X.indices, X.data


def kernel_features(X: Any) -> Any:
    """Return features as kernels tell them apart; what is not sparse stays as it is."""
    if not is_sparse(X):
        return X
    return _kernel_form()(*csr_parts(X))


@cache
def _kernel_form() -> Any:
    from fastfw.kernels import csr

    return csr.CSR


def take_rows(X: CSR, rows: npt.NDArray[np.intp] | slice) -> CSR:
    """Return the given rows of a canonical matrix, canonical too."""
    part = X[rows]
    return assembled(part.data, part.indices, part.indptr, part.shape)


def stacked(parts: list[CSR]) -> CSR:
    """Return canonical matrices of one width one below the other, canonical too."""
    before = np.cumsum([0, *(part.indices.size for part in parts)])
    ends = [first + part.indptr[1:] for first, part in zip(before, parts, strict=False)]
    indptr = np.concatenate([[0], *ends])
    indices = np.concatenate([part.indices for part in parts])
    data = np.concatenate([part.data for part in parts])
    return assembled(data, indices, indptr, (indptr.size - 1, parts[0].shape[1]))


def assembled(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], dtype: Any = None
) -> CSR:
    """Put together a canonical matrix of arrays that make one, in their dtype or another.

    Not through the constructor, which takes longer and may choose another width of the indices.
    """
    width = _INT64 if max(shape[1], indices.size) > _INT32_MAX else _INT32
    like = _empty(shape)
    X = object.__new__(type(like))
    vars(X).update(vars(like))
    X.data = canonical_array(data, data.dtype if dtype is None else dtype)
    X.indices, X.indptr = canonical_array(indices, width), canonical_array(indptr, width)
    return X


@lru_cache(maxsize=8)
def _empty(shape: tuple[int, int]) -> CSR:
    """Return a canonical matrix without its parts."""
    from scipy import sparse

    X = sparse.csr_array(shape)
    X.has_canonical_format = True
    X.indptr = X.indices
    return X


def sound_csr(X: Any, name: str) -> CSR:
    """Return a sparse matrix of any format as CSR that code without checks may read.

    Its indices increase within each row; entries and their dtype are those given. X itself where
    it is so already. Its parts are looked at before anything reads them, and after a conversion.
    """
    if X.format == "csr":
        _check_compressed(X, name)
        csr = X
    else:
        csr = _converted(X, name)
    if _increasing(csr.indices, csr.indptr):
        return csr
    from scipy import sparse

    csr = sparse.csr_array((csr.data, csr.indices, csr.indptr), shape=X.shape, copy=True)
    csr.has_canonical_format = False  # nothing is known of it
    csr.sum_duplicates()
    return csr


def _converted(X: Any, name: str) -> CSR:
    """Return a matrix of another format as CSR whose parts fit."""
    from scipy import sparse

    if X.format in _COORDINATES:
        values, *places = _coordinates(X, name)
        csr = sparse.coo_array((values, places), shape=X.shape).tocsr()
    else:
        _check_compressed(X, name)
        csr = X.tocsr()
    _check_compressed(csr, name)
    return csr


def check_structure(X: Any, name: str) -> None:
    """Refuse a sparse matrix whose parts do not make one: readers would leave their memory."""
    if X.format in _COORDINATES:
        _coordinates(X, name)
    elif X.format in ("csr", "csc", "bsr"):
        _check_compressed(X, name)


def _check_compressed(X: Any, name: str) -> None:
    """Refuse parts that do not make a matrix in the format CSR, CSC or BSR."""
    data, indices = _part(X, "data", name), _part(X, "indices", name)
    indptr = _part(X, "indptr", name)
    rows, columns = X.shape
    if X.format == "bsr":
        block = data.shape[1:]
        if len(block) != 2 or 0 in block or rows % block[0] or columns % block[1]:
            raise ValueError(
                f"{name}.data must hold blocks that divide its shape {X.shape}, but it has shape "
                f"{data.shape}"
            )
        rows, columns = rows // block[0], columns // block[1]
    elif data.ndim != 1:
        raise ValueError(f"{name}.data must have one axis, but its shape is {data.shape}")
    if X.format == "csc":
        rows, columns = columns, rows
    if len(indptr) != rows + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(
            f"{name}.indptr must have {rows + 1} entries that begin with 0 and do not decrease"
        )
    nnz = int(indptr[-1])
    if nnz > min(len(indices), len(data)):
        raise ValueError(
            f"{name}.indptr ends with {nnz}, but there are {len(indices)} indices and "
            f"{len(data)} values"
        )
    indices = indices[:nnz]
    if nnz and (indices.min() < 0 or indices.max() >= columns):
        q = int(np.argmax((indices < 0) | (indices >= columns)))
        what = {"csr": "columns", "csc": "rows", "bsr": "columns of blocks"}[X.format]
        raise ValueError(
            f"{name}.indices[{q}] is {indices[q]}; with {columns} {what}, "
            f"indices must lie in 0, ..., {columns - 1}"
        )


def _coordinates(X: Any, name: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return values, row and column numbers of a matrix in another format, or refuse it."""
    values, row, column = _COORDINATES[X.format](X, name)
    if not values.shape == row.shape == column.shape or values.ndim != 1:
        raise ValueError(
            f"{name} must have a row and a column for each value, but the shapes of values, rows "
            f"and columns are {values.shape}, {row.shape} and {column.shape}"
        )
    outside = (row < 0) | (row >= X.shape[0]) | (column < 0) | (column >= X.shape[1])
    if outside.any():
        q = int(np.argmax(outside))
        raise ValueError(
            f"{name} has an entry in row {row[q]}, column {column[q]}, which is not in its shape "
            f"{X.shape}"
        )
    return values, row, column


def _of_coo(X: Any, name: str) -> tuple[Any, ...]:
    return _part(X, "data", name), _part(X, "row", name), _part(X, "col", name)


def _of_lil(X: Any, name: str) -> tuple[Any, ...]:
    sizes = []
    for part in ("rows", "data"):
        lists = getattr(X, part)
        if np.shape(lists) != X.shape[:1] or not all(isinstance(row, list) for row in lists):
            raise ValueError(f"{name}.{part} must be an array of {X.shape[0]} lists")
        sizes.append(np.array([len(row) for row in lists]))
    if (sizes[0] != sizes[1]).any():
        i = int(np.argmax(sizes[0] != sizes[1]))
        raise ValueError(
            f"{name}.rows[{i}] has {sizes[0][i]} columns, but {name}.data[{i}] has {sizes[1][i]} "
            "values"
        )
    column = _integers(chain.from_iterable(X.rows), f"{name}.rows")
    values = _numbers(chain.from_iterable(X.data), f"{name}.data", X.dtype)
    return values, np.repeat(np.arange(X.shape[0]), sizes[0]), column


def _of_dok(X: Any, name: str) -> tuple[Any, ...]:
    keys = _integers(chain.from_iterable(X.keys()), f"the keys of {name}")
    if keys.size != 2 * len(X.keys()):
        raise ValueError(f"the keys of {name} must be pairs of integers")
    values = _numbers(X.values(), f"the values of {name}", X.dtype)
    return values, keys[::2], keys[1::2]


def _of_dia(X: Any, name: str) -> tuple[Any, ...]:
    data, offsets = _part(X, "data", name), _part(X, "offsets", name)
    if data.ndim != 2 or len(data) != len(offsets):
        raise ValueError(
            f"{name}.data must have a row for each of the {len(offsets)} offsets, but its shape is "
            f"{data.shape}"
        )
    columns = np.arange(min(data.shape[1], X.shape[1]))
    rows = columns - offsets.astype(np.intp)[:, np.newaxis]
    data = data[:, : columns.size]
    diagonal, column = np.nonzero((rows >= 0) & (rows < X.shape[0]) & (data != 0))
    return data[diagonal, column], rows[diagonal, column], column


#: How the formats whose entries have coordinates of their own are read, without code of SciPy.
_COORDINATES: dict[str, Callable[[Any, str], tuple[Any, ...]]] = {
    "coo": _of_coo,
    "lil": _of_lil,
    "dok": _of_dok,
    "dia": _of_dia,
}


def _part(X: Any, part: str, name: str) -> npt.NDArray[Any]:
    """Return an array that a sparse matrix is made of; all but "data" have one axis of integers."""
    found = getattr(X, part)
    if isinstance(found, np.ma.MaskedArray):
        raise TypeError(
            f"{name}.{part} is a masked array; fill it in first, with {name}.{part}.filled(...)"
        )
    if not isinstance(found, np.ndarray):
        raise TypeError(f"{name}.{part} must be an array, but it is a {type(found).__name__}")
    if part != "data" and (found.ndim != 1 or found.dtype.kind not in "iu"):
        raise ValueError(
            f"{name}.{part} must have one axis of integers, "
            f"but its shape is {found.shape} and its dtype {found.dtype}"
        )
    return found


def _numbers(values: Iterable[Any], name: str, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    try:
        return np.fromiter(values, dtype)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{name} must be numbers that {dtype} can hold: {error}") from None


def _integers(values: Iterable[Any], name: str) -> npt.NDArray[np.int64]:
    try:
        return np.asarray(array("q", values))  # refuses what NumPy would round
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{name} must be integers: {error}") from None


def _increasing(indices: npt.NDArray[Any], indptr: npt.NDArray[Any]) -> bool:
    """Whether column numbers increase strictly within every row."""
    nnz = int(indptr[-1])
    if nnz < 2:
        return True
    falls = indices[1:nnz] <= indices[: nnz - 1]
    if len(indptr) > 2:
        starts = indptr[1:-1]  # where a row begins, anything may follow
        starts = starts[(starts > 0) & (starts < nnz)]
        falls[starts - 1] = False
    return not falls.any()
