"""Sparse features: checked once at the door, like dense ones in `fastfw._checks`.

The one canonical form is a ``scipy.sparse.csr_array`` whose indices increase within each row
(sorted, no column twice), native float64 or float32 entries, indices int32 unless they need more,
and read-only arrays. It shares memory with what was given where no conversion is needed.
"""

from __future__ import annotations

import sys
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

__all__ = ["CSR", "csr_features", "csr_parts", "is_sparse", "taken"]

#: ``scipy.sparse.csr_array`` in canonical form; SciPy is imported where one comes in.
CSR: TypeAlias = Any

_INT32_MAX = np.iinfo(np.int32).max


def is_sparse(X: object) -> bool:
    """Whether X is a sparse array or matrix of SciPy, in any format."""
    scipy_sparse = sys.modules.get("scipy.sparse")
    return scipy_sparse is not None and bool(scipy_sparse.issparse(X))


def csr_features(
    X: Any,
    *,
    name: str = "X",
    n_features: int | None = None,
    dtype: np.dtype[Any] | None = None,
) -> CSR:
    """Return sparse features in canonical form, or say precisely why they cannot be used.

    Parameters
    ----------
    X : sparse array or matrix, shape (n, d)
        Booleans, integers or floats in any format of scipy.sparse. Never changed.
    name, n_features, dtype
        As in `fastfw._checks.features`.

    Returns
    -------
    csr_array, shape (n, d), float64 or float32
        Canonical, see above.

    Raises
    ------
    TypeError, ValueError
        As `fastfw._checks.features`, and where the index arrays do not make a CSR matrix.

    Notes
    -----
    O(n + nonzeros) time.

    Examples
    --------
    >>> from scipy import sparse
    >>> csr_features(sparse.coo_array(([1, 2, 3], ([0, 1, 1], [2, 0, 0])))).toarray()
    array([[0., 0., 1.],
           [5., 0., 0.]])
    """
    from scipy import sparse

    if X.ndim != 2:
        raise ValueError(
            f"{name} must be a matrix of shape (n_samples, n_features), but it has shape {X.shape}"
        )
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} must hold real numbers, but its dtype is {X.dtype}")
    rows, columns = X.shape
    if rows == 0 or columns == 0:
        raise ValueError(
            f"{name} is empty: its shape is {X.shape}, "
            "and at least one row and one column are needed"
        )
    if n_features is not None and columns != n_features:
        raise ValueError(f"{name} has {columns} columns, but {n_features} features are wanted")
    if dtype is None:
        single = X.dtype.newbyteorder("=") == np.float32
        dtype = np.dtype(np.float32 if single else np.float64)
    given = X
    if X.format == "csr":
        _check_structure(X, name)
    else:
        if hasattr(X, "check_format"):
            X.check_format(full_check=True)
        X = X.tocsr()
    data, indices, indptr = X.data, X.indices, X.indptr
    if not _increasing(indices, indptr):
        X = sparse.csr_array((data, indices, indptr), shape=(rows, columns), copy=True)
        X.has_canonical_format = False  # nothing is known of it
        X.sum_duplicates()
        data, indices, indptr = X.data, X.indices, X.indptr
    large = max(columns, int(indptr[-1])) > _INT32_MAX
    width = np.int64 if large else np.int32
    nnz = int(indptr[-1])
    with np.errstate(over="ignore", invalid="ignore"):  # found by the check that follows
        data = np.require(data[:nnz], dtype, ["C", "A"])
    finite = np.isfinite(data)
    if given.dtype.kind == "f" and not finite.all():
        q = int(np.argmin(finite))
        i, j = int(np.searchsorted(indptr, q, side="right")) - 1, int(indices[q])
        value = X.data[q]
        if np.isfinite(value):
            raise ValueError(
                f"{name}[{i}, {j}] is {value}, which {dtype.name} cannot hold; rescale {name}"
            )
        raise ValueError(
            f"{name}[{i}, {j}] is {value}; {name} must be finite: drop or impute such rows"
        )
    arrays = [data, *(np.require(a, width, ["C", "A"]) for a in (indices[:nnz], indptr))]
    return _assembled(arrays, (rows, columns))


def csr_parts(X: CSR) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Return a canonical matrix as kernels take it: row pointers, columns, values."""
    return X.indptr, X.indices, X.data


def taken(X: CSR, rows: npt.NDArray[np.intp]) -> CSR:
    """Return the given rows of a canonical matrix, canonical too."""
    part = X[rows]
    return _assembled([part.data, part.indices, part.indptr], part.shape)


def _assembled(arrays: list[npt.NDArray[Any]], shape: tuple[int, int]) -> CSR:
    """Put together a canonical matrix of read-only views."""
    from scipy import sparse

    X = sparse.csr_array(shape, dtype=arrays[0].dtype)
    views = []
    for array in arrays:
        view = array.view()
        view.flags.writeable = False
        views.append(view)
    # not through the constructor, which may choose another width of the indices
    X.data, X.indices, X.indptr = views
    X.has_canonical_format = True
    return X


def _check_structure(X: Any, name: str) -> None:
    """Refuse arrays that do not make a CSR matrix: kernels would read outside of them."""
    rows, columns = X.shape
    arrays = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
    for part, array in arrays.items():
        if array.ndim != 1 or (part != "data" and array.dtype.kind not in "iu"):
            raise ValueError(
                f"{name}.{part} must have one axis{'' if part == 'data' else ' of integers'}, "
                f"but its shape is {array.shape} and its dtype {array.dtype}"
            )
    indptr = X.indptr
    if len(indptr) != rows + 1 or indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        raise ValueError(
            f"{name}.indptr must have {rows + 1} entries that begin with 0 and do not decrease"
        )
    nnz = int(indptr[-1])
    if nnz > min(len(X.indices), len(X.data)):
        raise ValueError(
            f"{name}.indptr ends with {nnz}, but there are {len(X.indices)} indices and "
            f"{len(X.data)} values"
        )
    indices = X.indices[:nnz]
    if nnz and (indices.min() < 0 or indices.max() >= columns):
        q = int(np.argmax((indices < 0) | (indices >= columns)))
        raise ValueError(
            f"{name}.indices[{q}] is {indices[q]}; with {columns} columns, "
            f"indices must lie in 0, ..., {columns - 1}"
        )


def _increasing(indices: npt.NDArray[Any], indptr: npt.NDArray[Any]) -> bool:
    """Whether column numbers increase strictly within every row."""
    nnz = int(indptr[-1])
    if nnz < 2:
        return True
    falls = indices[1:nnz] <= indices[: nnz - 1]
    starts = indptr[1:-1]  # where a row begins, anything may follow
    starts = starts[(starts > 0) & (starts < nnz)]
    falls[starts - 1] = False
    return not falls.any()
