"""The past that OFW and OAW keep: rows and logits for compiled code, batches for oracle calls."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from itertools import count, groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, batch_parts
from fastfw._csr import csr_features, csr_parts, is_sparse, kernel_features, stacked, take_rows
from fastfw.problems import all_rows
from fastfw.streams import Batch, Dataset, batch_size

__all__ = ["Past", "Samples"]

# Rows compared at a time when a data set is recognised.
_AT_ONCE = 4096


class Samples:
    """Samples of the past from one source, each with its weight and its logits.

    A source is a data matrix in memory, of which row numbers are kept, in increasing order and
    each only once; or a buffer of its own (`kept`) for batches that will not come back. Rows of a
    data matrix that was read from a file stand in `X` themselves until the matrix is seen again.
    `arrays` has the data, rows, weights and logits as kernels take them.
    """

    def __init__(
        self,
        X: Any,
        y: IndexArray,
        n_outputs: int,
        dtype: npt.DTypeLike,
        *,
        kept: bool,
        n: int | None = None,
    ) -> None:
        self.X, self.y = X, y
        self.n = X.shape[0] if n is None else n
        self.kept = kept
        self.loaded = False
        self.count = 0
        capacity = self.n if kept else 0
        self.numbers = np.empty(capacity, np.intp)
        self.weights = np.empty(capacity)
        self.logits = np.empty((capacity, n_outputs), dtype)
        self._show()

    @classmethod
    def restored(
        cls,
        kept: bool,
        n: int,
        numbers: IndexArray,
        features: Any,
        labels: IndexArray,
        weights: npt.NDArray[np.float64],
        logits: FloatArray,
    ) -> Samples:
        """Return a source from what a file holds of it, refusing numbers out of order."""
        count = len(numbers)
        inside = ((numbers >= 0) & (numbers < n)).all() and (np.diff(numbers) > 0).all()
        if not inside or not 1 <= count <= n or (kept and numbers[-1] != count - 1):
            raise ValueError("its rows are out of order")
        X, y = features, labels
        if kept:
            y = np.empty(n, np.intp)
            y[:count] = labels
        if kept and not is_sparse(features):
            X = np.empty((n, features.shape[1]), features.dtype)
            X[:count] = features
        source = cls(X, y, logits.shape[1], logits.dtype, kept=kept, n=n)
        source.loaded = not kept
        source._reserve(count)
        source.count = count
        source.numbers[:count], source.weights[:count] = numbers, weights
        source.logits[:count] = logits
        source._show()
        return source

    def _show(self) -> None:
        """Put what there is now into `arrays`: matrix, labels and rows are read-only."""
        n, X, y = self.count, kernel_features(self.X), self.y
        rows = all_rows(n) if self.loaded else self.numbers[:n]
        if self.kept:
            y = y[:n]
        if not is_sparse(self.X):
            X = X[:n] if self.kept else X
            X.flags.writeable = False
        y.flags.writeable = rows.flags.writeable = False
        self.arrays = X, y, rows, self.weights[:n], self.logits[:n]

    def holds(self, X: Any, y: IndexArray) -> bool:
        """Whether this is the source for rows of X, by memory or, after loading, by content."""
        if self.kept or self.n != X.shape[0]:
            return False
        if not self.loaded:
            same = X is self.X or _addresses(X) == _addresses(self.X)
            return same and (y is self.y or np.array_equal(y, self.y))
        numbers = self.numbers[: self.count]
        if not np.array_equal(y[numbers], self.y):
            return False
        if is_sparse(X):
            pairs = zip(csr_parts(take_rows(X, numbers)), csr_parts(self.X), strict=True)
            return all(np.array_equal(one, other) for one, other in pairs)
        parts = (slice(i, i + _AT_ONCE) for i in range(0, self.count, _AT_ONCE))
        return all(np.array_equal(X[numbers[part]], self.X[part]) for part in parts)

    def attach(self, X: Any, y: IndexArray) -> None:
        """Read rows from this very matrix, which `holds` them, from now on."""
        if X is not self.X or y is not self.y:
            self.X, self.y, self.loaded = X, y, False
            self._show()

    def add_rows(
        self, rows: IndexArray, given: npt.NDArray[np.float64], logits: FloatArray
    ) -> None:
        """Add rows of the data matrix; one that is there already gains weight."""
        from fastfw.kernels import history

        order = rows.argsort(kind="stable")
        ordered = rows[order]
        start, end = ordered.searchsorted(ordered), ordered.searchsorted(ordered, "right")
        first = start == all_rows(rows.size)
        order, numbers = order[first], ordered[first]
        weights = (end - start)[first] * given[order]
        self._reserve(self.count + len(numbers))
        at = self.numbers[: self.count].searchsorted(numbers)
        known = (at < self.count) & (self.numbers.take(at, mode="clip") == numbers)
        self.weights[at[known]] += weights[known]
        new = ~known
        added = numbers[new], weights[new], logits[order[new]]
        history.insert(self.count, self.numbers, self.weights, self.logits, *added)
        self.count += len(added[0])
        self._show()

    def _reserve(self, wanted: int) -> None:
        """Make room by doubling, up to the size of the data."""
        if wanted <= len(self.numbers):
            return
        capacity = min(max(wanted, 2 * len(self.numbers)), self.n)
        for name in ("numbers", "weights", "logits"):
            old = getattr(self, name)
            grown = np.empty((capacity, *old.shape[1:]), old.dtype)
            grown[: self.count] = old[: self.count]
            setattr(self, name, grown)

    def fits(self, n: int) -> bool:
        """Whether a batch of n samples can be appended to the buffer."""
        return self.kept and self.count + n <= self.n

    def append(
        self, X: Any, y: IndexArray, given: npt.NDArray[np.float64], logits: FloatArray
    ) -> None:
        """Copy a batch to the end of the buffer, which it fits."""
        part = slice(self.count, self.count + X.shape[0])
        if is_sparse(X):  # it costs less than the gradient does
            self.X = stacked([self.X, X] if self.count else [X])
        else:  # views handed to kernels are read-only, the buffer itself is not
            self.X[part] = X
        self.y[part] = y
        self.numbers[part] = np.arange(part.start, part.stop)
        self.weights[part], self.logits[part] = given, logits
        self.count = part.stop
        self._show()

    def copy(self) -> Samples:
        """Return an independent copy; data matrices and full buffers are shared."""
        other = copy.copy(self)
        names = ["numbers", "weights", "logits"]
        if self.kept and self.count < self.n:
            names += ["y"] if is_sparse(self.X) else ["X", "y"]
        for name in names:
            setattr(other, name, getattr(self, name).copy())
        other._show()
        return other


def _addresses(X: Any) -> list[int]:
    """Where the parts of a data matrix begin in memory."""
    return [part.ctypes.data for part in (csr_parts(X) if is_sparse(X) else (X,))]


class Past:
    """The batches so far, for engines made of oracle calls. It is never changed.

    Batches of rows of a `Dataset` are kept as they are, others are copied.
    """

    def __init__(self, batches: tuple[Any, ...] = (), samples: tuple[int, ...] = ()) -> None:
        self.batches = batches
        #: Number of samples after each round.
        self.samples = samples

    def then(self, batch: Any) -> Past:
        """Return the past with one more batch."""
        if not isinstance(batch, Batch | Dataset):
            batch = copy.deepcopy(batch)
        before = self.samples[-1] if self.samples else 0
        return Past((*self.batches, batch), (*self.samples, before + batch_size(batch)))

    def __getstate__(self) -> dict[str, Any]:
        """Keep the rows of data sets alone."""
        batches = (
            _whole(_parts(b)) if isinstance(b, Batch | Dataset) else b for b in self.batches
        )  # fmt: skip
        return {"batches": tuple(batches), "samples": self.samples}

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all batches as arrays, for a file: those alike in one array, row after row."""
        found = {"past.samples": np.array(self.samples, np.intp)}
        try:
            alike = groupby((_parts(batch) for batch in self.batches), key=_form)
            for g, (_, group) in enumerate(alike):
                columns = list(zip(*group, strict=True))
                lengths = [part.shape[0] for part in columns[0]]
                found[f"past.{g}.ends"] = np.cumsum(lengths)
                for k, column in enumerate(columns):
                    if [part.shape[0] for part in column] != lengths:
                        raise ValueError("parts of a batch differ in length")
                    found.update(_joined(f"past.{g}.{k}", column))
        except (TypeError, ValueError) as error:
            raise TypeError(f"the batches so far cannot be saved as arrays: {error}") from error
        return found

    @classmethod
    def restored(cls, stored: dict[str, Any]) -> Past:
        """Return the past that `arrays` described, from the arrays of a file."""
        if "past" in stored:  # written by 0.1.0
            whole = stored.pop("past").read()
            ends = np.flatnonzero(np.diff(whole["round"], append=-1)) + 1
            parts = [np.ascontiguousarray(whole[name]) for name in ("X", "y")]
            samples, batches = ends, list(_split(parts, ends))
        else:
            samples, batches = stored.pop("past.samples").read(), []
            for g in count():
                if f"past.{g}.ends" not in stored:
                    break
                ends = stored.pop(f"past.{g}.ends").read()
                parts = [_part(stored, f"past.{g}.0")]
                while any(name.startswith(f"past.{g}.{len(parts)}") for name in stored):
                    parts.append(_part(stored, f"past.{g}.{len(parts)}"))
                batches += _split(parts, ends)
        if stored:
            raise ValueError(f"its past has an unknown array {min(stored)!r}")
        if samples.ndim != 1 or samples.dtype.kind != "i" or len(samples) != len(batches):
            raise ValueError("its past is out of range")
        return cls(tuple(batches), tuple(samples.tolist()))


def _parts(batch: Any) -> tuple[Any, ...]:
    """Return the arrays of a batch: one, or features and labels, or weights too."""
    if isinstance(batch, np.ndarray) or is_sparse(batch):
        parts: tuple[Any, ...] = (batch,)
    else:
        parts = batch_parts(batch)
        data, rows = (batch.data, batch.rows) if isinstance(batch, Batch) else (batch, slice(None))
        if isinstance(data, Dataset) and data._weights is not None:
            parts = (*parts, data._weights[rows])
    return tuple(part if is_sparse(part) else np.asarray(part) for part in parts)


def _form(parts: tuple[Any, ...]) -> Any:
    """Return what arrays that can be joined have in common."""
    return [(type(part), part.dtype.str, part.shape[1:]) for part in parts]


def _joined(name: str, column: tuple[Any, ...]) -> dict[str, npt.NDArray[Any]]:
    """Return arrays one after the other, by name; a CSR matrix is four of them."""
    if not is_sparse(column[0]):
        return {name: np.concatenate(column)}
    from scipy import sparse

    if column[0].format != "csr":
        raise TypeError("they are sparse matrices in another format than CSR; use X.tocsr()")
    whole = sparse.vstack(column, format="csr")
    form = np.array([whole.shape[1], isinstance(whole, sparse.sparray)], np.intp)
    parts = {"data": whole.data, "indices": whole.indices, "indptr": whole.indptr, "form": form}
    return {f"{name}.{part}": array for part, array in parts.items()}


def _part(stored: dict[str, Any], name: str) -> Any:
    """Return what `_joined` gave in this name, checked where it is a matrix."""
    if name in stored:
        return stored.pop(name).read()
    from scipy import sparse

    data, indices, indptr, form = (
        stored.pop(f"{name}.{part}").read() for part in ("data", "indices", "indptr", "form")
    )
    if any(array.dtype.kind != "i" for array in (indices, indptr, form)):
        raise ValueError("its past is out of range")
    columns, new = form.tolist()
    kind = sparse.csr_array if new else sparse.csr_matrix
    matrix = kind((data, indices, indptr), shape=(len(indptr) - 1, columns))
    csr_features(matrix, name=name)
    return matrix


def _split(parts: list[Any], ends: npt.NDArray[Any]) -> Iterator[Any]:
    """Yield the batches that end at these rows."""
    edges = [0, *ends.tolist()]
    steps = np.diff(edges)
    if not len(ends) or (steps < 0).any() or any(part.shape[0] != edges[-1] for part in parts):
        raise ValueError("its past is out of range")
    if len(parts) > 2:
        weights = parts[2]
        sound = weights.shape == (edges[-1],) and weights.dtype == np.float64
        if len(parts) > 3 or not sound or not ((weights > 0.0) & np.isfinite(weights)).all():
            raise ValueError("its past is out of range")
    for first, end in pairwise(edges):
        yield _whole(tuple(part[first:end] for part in parts))


def _whole(parts: tuple[Any, ...]) -> Any:
    """Return the batch that has these parts."""
    if len(parts) == 1:
        return parts[0]
    return parts if len(parts) == 2 else Dataset._weighted(*parts)
