"""The past that OFW and OAW keep: rows and logits for compiled code, batches for oracle calls."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray, batch_parts
from fastfw.learners._streaming import batch_size
from fastfw.problems import all_rows
from fastfw.streams import Batch, Dataset

__all__ = ["Past", "Samples"]

# Rows compared at a time when a data set is recognised.
_AT_ONCE = 4096


class Samples:
    """Samples of the past from one source, each with its weight and its logits.

    A source is a data matrix in memory, of which row numbers are kept, in increasing order and
    each only once; or a buffer of its own (`kept`) for batches that will not come back. Rows of a
    data matrix that was read from a file stand in `X` themselves until the matrix is seen again.
    """

    def __init__(
        self,
        X: FloatArray,
        y: IndexArray,
        n_classes: int,
        dtype: npt.DTypeLike,
        *,
        kept: bool,
    ) -> None:
        self.X, self.y = X, y
        self.n = len(X)
        self.kept = kept
        self.loaded = False
        self.count = 0
        capacity = self.n if kept else 0
        self.numbers = np.empty(capacity, np.intp)
        self.weights = np.empty(capacity)
        self.logits = np.empty((capacity, n_classes), dtype)

    @classmethod
    def restored(
        cls,
        kept: bool,
        n: int,
        numbers: IndexArray,
        features: FloatArray,
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
            X, y = np.empty((n, features.shape[1]), features.dtype), np.empty(n, np.intp)
            X[:count], y[:count] = features, labels
        source = cls(X, y, logits.shape[1], logits.dtype, kept=kept)
        source.n, source.loaded = n, not kept
        source._reserve(count)
        source.count = count
        source.numbers[:count], source.weights[:count] = numbers, weights
        source.logits[:count] = logits
        return source

    @property
    def rows(self) -> IndexArray:
        """Where in X the samples are, read-only."""
        if self.loaded:
            return all_rows(self.count)
        rows = self.numbers[: self.count]
        rows.flags.writeable = False
        return rows

    def arrays(self) -> tuple[Any, ...]:
        """Return the data, rows, weights and logits as kernels take them."""
        X, y = self.X[: self.count], self.y[: self.count]
        if not self.kept:
            X, y = self.X, self.y
        X.flags.writeable = y.flags.writeable = False
        return X, y, self.rows, self.weights[: self.count], self.logits[: self.count]

    def holds(self, X: FloatArray, y: IndexArray) -> bool:
        """Whether this is the source for rows of X, by memory or, after loading, by content."""
        if self.kept or self.n != len(X):
            return False
        if not self.loaded:
            same = X is self.X or X.ctypes.data == self.X.ctypes.data
            return same and (y is self.y or np.array_equal(y, self.y))
        numbers = self.numbers[: self.count]
        if not np.array_equal(y[numbers], self.y):
            return False
        parts = (slice(i, i + _AT_ONCE) for i in range(0, self.count, _AT_ONCE))
        return all(np.array_equal(X[numbers[part]], self.X[part]) for part in parts)

    def attach(self, X: FloatArray, y: IndexArray) -> None:
        """Read rows from this very matrix, which `holds` them, from now on."""
        self.X, self.y, self.loaded = X, y, False

    def add_rows(self, rows: IndexArray, weight: float, logits: FloatArray) -> None:
        """Add rows of the data matrix; one that is there already gains weight."""
        from fastfw.kernels import history

        numbers, first, times = np.unique(rows, return_index=True, return_counts=True)
        weights = times * weight
        at = np.searchsorted(self.numbers[: self.count], numbers)
        known = np.zeros(len(numbers), np.bool_)
        inside = at < self.count
        known[inside] = self.numbers[at[inside]] == numbers[inside]
        self.weights[at[known]] += weights[known]
        new = ~known
        more = int(new.sum())
        self._reserve(self.count + more)
        history.insert(
            self.count, self.numbers, self.weights, self.logits,
            numbers[new], weights[new], logits[first[new]],
        )  # fmt: skip
        self.count += more

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

    def append(self, X: FloatArray, y: IndexArray, weight: float, logits: FloatArray) -> None:
        """Copy a batch to the end of the buffer, which it fits."""
        part = slice(self.count, self.count + len(X))
        # views handed to kernels are read-only, the buffer itself is not
        self.X[part], self.y[part] = X, y
        self.numbers[part] = np.arange(part.start, part.stop)
        self.weights[part], self.logits[part] = weight, logits
        self.count = part.stop

    def copy(self) -> Samples:
        """Return an independent copy; data matrices and full buffers are shared."""
        other = object.__new__(Samples)  # not copy.copy, which would gather as pickle does
        other.__dict__.update(self.__dict__)
        names = ["numbers", "weights", "logits"]
        if self.kept and self.count < self.n:
            names += ["X", "y"]
        for name in names:
            setattr(other, name, getattr(self, name).copy())
        return other

    def __deepcopy__(self, memo: object) -> Samples:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the samples alone, not the matrix they come from."""
        X, y, rows, weights, logits = self.arrays()
        numbers = self.numbers[: self.count]
        return Samples.restored, (
            self.kept, self.n, numbers, X[rows], y[rows], weights, logits
        )  # fmt: skip


class Past:
    """The batches so far, for engines made of oracle calls. It is never changed.

    Batches of rows of a `Dataset` are kept as they are, others are copied.
    """

    def __init__(self, batches: tuple[Any, ...] = (), samples: tuple[int, ...] = ()) -> None:
        self.batches = batches
        #: Number of samples after each round.
        self.samples = samples

    @classmethod
    def of(cls, state: dict[str, Any]) -> Past:
        """Return the past in a state, which may come from a file or have none yet."""
        past = state.get("past")
        if past is None:
            return cls()
        if isinstance(past, np.ndarray):
            ends = np.flatnonzero(np.diff(past["round"], append=-1)) + 1
            X, y = np.ascontiguousarray(past["X"]), np.ascontiguousarray(past["y"])
            pairs = zip(np.split(X, ends[:-1]), np.split(y, ends[:-1]), strict=True)
            return cls(tuple(pairs), tuple(ends.tolist()))
        assert isinstance(past, cls)
        return past

    def then(self, batch: Any) -> Past:
        """Return the past with one more batch."""
        if not isinstance(batch, Batch | Dataset):
            batch = copy.deepcopy(batch)
        before = self.samples[-1] if self.samples else 0
        return Past((*self.batches, batch), (*self.samples, before + batch_size(batch)))

    def __deepcopy__(self, memo: object) -> Past:
        return self

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        """All samples as one structured array, for a file."""
        try:
            pairs = [tuple(np.asarray(part) for part in batch_parts(b)) for b in self.batches]
            X, y = (np.concatenate([pair[i] for pair in pairs]) for i in (0, 1))
        except (TypeError, ValueError) as error:
            raise TypeError(f"the batches so far cannot be saved as arrays: {error}") from error
        form: Any = [
            ("round", np.intp), ("X", X.dtype, X.shape[1:]), ("y", y.dtype, y.shape[1:])
        ]  # fmt: skip
        whole = np.empty(len(X), form)
        whole["round"] = np.repeat(np.arange(len(pairs)), np.diff(self.samples, prepend=0))
        whole["X"], whole["y"] = X, y
        return whole
