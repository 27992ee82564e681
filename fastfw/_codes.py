"""Features that are bytes: kept as they are, with a scale and an offset for each sample or for all.

Sample i is ``scale[i] * values[i] + offset[i]``.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, freeze, in_range
from fastfw._csr import check_matrix

#: Bytes as kernels take them: the values, and scale and offset in the parameters' dtype.
Coded: TypeAlias = tuple[npt.NDArray[np.uint8], FloatArray]


class Codes(NamedTuple):
    """Bytes and what they stand for."""

    #: Shape (n, d), C-contiguous and read-only.
    values: npt.NDArray[np.uint8]
    #: Scale and offset, of every sample or of all: shape (n, 2) or (1, 2).
    affine: npt.NDArray[np.float64]

    def require(self, dtype: np.dtype[Any]) -> None:
        """Refuse a dtype that cannot hold what the bytes stand for."""
        scale, offset = np.abs(self.affine).T
        for name, sizes in (("scale", scale[scale > 0.0]), ("offset", offset[offset > scale])):
            for size in {float(sizes.min()), float(sizes.max())} if sizes.size else ():
                in_range(size, f"{name} of X", dtype, "rescale the features")

    def coded(self, dtype: np.dtype[Any]) -> Coded:
        """Return what kernels take for parameters of this dtype."""
        return self.values, freeze(self.affine.astype(dtype))

    def decoded(self, dtype: np.dtype[Any], rows: IndexArray | None = None) -> FloatArray:
        """Return the features of some rows, of all by default, as a new read-only array."""
        from fastfw.kernels import _features

        if rows is None:
            rows = np.arange(len(self.values))
        out = np.empty((rows.size, self.values.shape[1]), dtype)
        _features.decode(*self.coded(dtype), freeze(rows), freeze(rows[:0]), out)
        return freeze(out)


def codes(X: Any, scale: npt.ArrayLike | None, offset: npt.ArrayLike | None) -> Codes:
    """Return bytes with their scale and offset, checked, in canonical form."""
    X = np.asarray(X)
    check_matrix(X, "X")
    columns = [
        _numbers(given, default, name, len(X))
        for given, default, name in ((scale, 1.0, "scale"), (offset, 0.0, "offset"))
    ]
    affine = np.stack(np.broadcast_arrays(*columns), axis=1)
    found = Codes(freeze(np.require(X, requirements=["C", "A"])), freeze(affine))
    found.require(np.dtype(np.float64))
    return found


def _numbers(
    given: npt.ArrayLike | None, default: float, name: str, n: int
) -> npt.NDArray[np.float64]:
    """Return one finite number, or one for each of n rows."""
    numbers = np.asarray(default if given is None else given)
    if numbers.dtype.kind not in "fiu":
        raise TypeError(f"{name} must be a number or one for each row, but it is {given!r}")
    numbers = np.atleast_1d(numbers.astype(np.float64))
    if numbers.shape not in ((1,), (n,)):
        raise ValueError(
            f"{name} must be a number or one for each of the {n} rows, "
            f"but its shape is {numbers.shape}"
        )
    if not np.isfinite(numbers).all():
        i = int(np.argmin(np.isfinite(numbers)))
        raise ValueError(f"{name} must be finite, but {name}[{i}] is {numbers[i]}")
    return numbers
