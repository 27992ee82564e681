"""How batches arrive: drawn i.i.d., in epochs, or sorted by class as an adversary would.

A stream made here remembers row numbers, not rows.  Kernels read the rows they need straight from
the data, a batch gathers its own only when asked, and one validated `Dataset` serves any number of
streams.  Streams can be iterated again and again and give the same batches every time.

Learners accept any other iterable too, as long as it yields pairs ``(X, y)`` or objects with
attributes ``.X`` and ``.y``; where labels are no class numbers, inside a `LabelledStream`.

An argument that cannot be used raises a TypeError or a ValueError that names it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import (
    FloatArray,
    IndexArray,
    as_array,
    batch_parts,
    boolean,
    check_seed,
    class_numbers,
    describe,
    features,
    float_dtype,
    freeze,
    in_range,
    is_pair,
    labels,
    positive_int,
    sort_classes,
)
from fastfw._chunks import Chunks, ahead, chunks_of
from fastfw._codes import Codes, codes
from fastfw._csr import is_sparse, take_rows

__all__ = [
    "Batch",
    "Dataset",
    "IndexedStream",
    "LabelledStream",
    "drifting_stream",
    "epoch_stream",
    "iid_stream",
    "sorted_stream",
]

# Row numbers drawn in one go: half a megabyte.  It must not depend on how the rows are consumed.
_CHUNK = 1 << 16

# Chunks whose rows are shuffled together.
_BUFFERED = 8


class Dataset:
    """Labelled data in memory, validated once.

    Parameters
    ----------
    X : array_like or sparse matrix, shape (n, d)
        Features: booleans, integers or floats in any layout.  float64 and float32 are kept,
        everything else becomes float64.  Of scipy.sparse any format is welcome.
    y : array_like, shape (n,)
        Class numbers 0, 1, ... of any integer dtype.
    scale, offset : float or array_like, shape (n,), optional
        For features that are an array of uint8, such as images: sample i is
        ``scale[i] * X[i] + offset[i]``, by default X itself.  The bytes are kept as they are and
        decoded where they are needed: an eighth of the memory of float64.

    Attributes
    ----------
    X : ndarray, shape (n, d), float64 or float32
        C-contiguous and read-only.  It shares memory with what was given wherever no conversion is
        needed, so do not change that afterwards: the checks are not run again.  Sparse features
        are a ``csr_array`` with sorted indices and no column twice in a row.  Of bytes, the
        decoded features, made on first use and kept: methods of one recursion, losses and batches
        do without.
    y : ndarray, shape (n,), intp
        Likewise.
    shape : tuple of int
        (n, d).
    n_classes : int
        One more than the largest label.
    dtype : dtype
        The features', float64 or float32; of bytes, what they are decoded to.
    codes : Codes or None
        The bytes with their scale and offset, where features are given so.

    Raises
    ------
    TypeError, ValueError
        If the data cannot be used; the message names the argument and the first bad position.

    Examples
    --------
    >>> data = Dataset([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 2])
    >>> len(data), data.n_features, data.n_classes
    (3, 2, 3)
    >>> Dataset(np.array([[0, 51], [255, 0]], np.uint8), [0, 1], scale=1 / 255).X
    array([[0. , 0.2],
           [1. , 0. ]])
    """

    __slots__ = ("_X", "_other", "_weights", "codes", "dtype", "n_classes", "shape", "y")

    def __init__(
        self,
        X: object,
        y: object,
        *,
        scale: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> None:
        if getattr(X, "dtype", None) == np.uint8 and not is_sparse(X):
            found = codes(X, scale, offset)
            n = len(found.values)
            self._hold(None, found, np.dtype(np.float64), labels(y, n_samples=n))
        else:
            if scale is not None or offset is not None:
                raise TypeError(
                    "scale and offset are for features that are an array of uint8; "
                    "scale others beforehand"
                )
            A = features(X, sparse=True)
            self._hold(A, None, A.dtype, labels(y, n_samples=A.shape[0]))

    def _hold(
        self,
        X: Any,
        codes: Codes | None,
        dtype: np.dtype[Any],
        y: IndexArray,
        weights: Any = None,
        n_classes: int | None = None,
    ) -> Dataset:
        """Keep what is checked, and return it."""
        self._X: FloatArray | None = X
        self.codes: Codes | None = codes
        self.shape: tuple[int, int] = X.shape if codes is None else codes.values.shape
        self.dtype, self.y = dtype, y
        self.n_classes = int(y.max()) + 1 if n_classes is None else n_classes
        self._other: Dataset | None = None
        #: What the loss of each row is multiplied by, of softmax regression alone.
        self._weights: npt.NDArray[np.float64] | None = weights
        return self

    @classmethod
    def _weighted(cls, X: object, y: object, weights: npt.NDArray[np.float64] | None) -> Dataset:
        """Return data whose rows have weights, float64 and positive; a copy is kept."""
        data = cls(X, y)
        data._weights = None if weights is None else freeze(weights.copy())
        return data

    @classmethod
    def _ready(
        cls,
        X: Any,
        y: IndexArray,
        weights: npt.NDArray[np.float64] | None,
        n_classes: int | None = None,
    ) -> Dataset:
        """Skip the checks for rows in canonical form and labels that are known to fit."""
        weights = None if weights is None else freeze(weights)
        return object.__new__(cls)._hold(X, None, X.dtype, freeze(y), weights, n_classes)

    def _reweighted(self, weights: npt.NDArray[np.float64] | None) -> Dataset:
        """Return the same rows with other weights."""
        return Dataset._weighted(self.X, self.y, weights)

    @property
    def X(self) -> FloatArray:
        """The features; decoded on first use where they are bytes."""
        if self._X is None:
            assert self.codes is not None
            self._X = self.codes.decoded(self.dtype)
        return self._X

    @property
    def is_sparse(self) -> bool:
        """Whether the features are a sparse matrix."""
        return self.codes is None and is_sparse(self._X)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.shape[1])

    def astype(self, dtype: npt.DTypeLike) -> Dataset:
        """Return the same data with features of another dtype, float64 or float32.

        This very object if its features have that dtype; otherwise a converted one, made on the
        first call and kept for the next ones.  Labels are shared.

        Raises
        ------
        ValueError
            If a value is too large for the wanted dtype.
        """
        if dtype is self.dtype:
            return self
        wanted = float_dtype(dtype)
        if self.dtype == wanted:
            return self
        if self._other is None:
            X = None
            if self.codes is None:
                X = features(self._X, dtype=wanted, sparse=True)
                largest = max(float(self.X.max()), -float(self.X.min()))
                if largest > 0.0:
                    in_range(largest, "the largest entry of X", wanted, "rescale X")
            else:
                self.codes.require(wanted)
            self._other = object.__new__(Dataset)._hold(
                X, self.codes, wanted, self.y, self._weights, self.n_classes
            )
        return self._other

    def __len__(self) -> int:
        return int(self.shape[0])

    def __repr__(self) -> str:
        kind = f"{self.dtype}" if self.codes is None else f"uint8 decoded to {self.dtype}"
        return (
            f"<Dataset: {self.n_samples} rows x {self.n_features} features, "
            f"{self.n_classes} classes, {kind}>"
        )

    def __reduce__(self) -> tuple[Callable[..., Dataset], tuple[Any, ...]]:
        """Pickle the arrays alone; they are made read-only and checked again when loaded."""
        if self.codes is not None:
            return _from_codes, (*self.codes, self.y, self.dtype)
        return Dataset._weighted, (self._X, self.y, self._weights)


def _from_codes(
    values: Any, affine: npt.NDArray[np.float64], y: Any, dtype: np.dtype[Any]
) -> Dataset:
    """Put a pickled data set of bytes together."""
    return Dataset(values, y, scale=affine[:, 0], offset=affine[:, 1]).astype(dtype)


class Batch:
    """Some rows of a `Dataset`, gathered only when asked for.

    It unpacks like a pair: ``X, y = batch``.

    Parameters
    ----------
    data : Dataset
        Where the rows come from; shared.
    rows : array_like of int, shape (B,)
        Row numbers in 0, ..., n - 1; repetitions are allowed. A read-only copy is kept.

    Attributes
    ----------
    X, y : ndarray, shapes (B, d) and (B,)
        The rows and their labels, read-only; gathered on first use.

    Raises
    ------
    TypeError, ValueError
        If `rows` are not integers, not in range, or empty.

    Examples
    --------
    >>> data = Dataset([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 2])
    >>> batch = Batch(data, [2, 0])
    >>> batch.X
    array([[1., 1.],
           [0., 1.]])
    >>> batch.y
    array([2, 0])
    """

    __slots__ = ("_X", "_y", "data", "rows")

    data: Dataset
    rows: IndexArray

    def __init__(self, data: Dataset, rows: object) -> None:
        self.data = data
        self.rows = _row_numbers(rows, data.n_samples, ndim=1)
        self._X: FloatArray | None = None
        self._y: IndexArray | None = None

    @classmethod
    def _trusted(cls, data: Dataset, rows: IndexArray) -> Batch:
        """Skip the checks: streams have made or checked the rows themselves."""
        batch = object.__new__(cls)
        batch.data, batch.rows = data, rows
        batch._X = batch._y = None
        return batch

    @property
    def X(self) -> FloatArray:
        """The batch's features."""
        if self._X is None:
            data = self.data
            if data.codes is not None:
                self._X = data.codes.decoded(data.dtype, self.rows)
            elif data.is_sparse:
                self._X = take_rows(data.X, self.rows)
            else:
                self._X = freeze(data.X.take(self.rows, axis=0))
        return self._X

    @property
    def y(self) -> IndexArray:
        """The batch's labels."""
        if self._y is None:
            self._y = freeze(self.data.y.take(self.rows, axis=0))
        return self._y

    def __len__(self) -> int:
        return int(self.rows.shape[0])

    def __iter__(self) -> Iterator[Any]:
        yield self.X
        yield self.y

    def __repr__(self) -> str:
        return f"<Batch: {len(self)} rows of {self.data!r}>"

    def __reduce__(self) -> tuple[Callable[..., Batch], tuple[Dataset, IndexArray]]:
        """Pickle the data and the row numbers alone."""
        return Batch, (self.data, self.rows)


class IndexedStream:
    """A stream of batches of rows of one `Dataset`.

    Iterate over it as often as you like: every pass yields the same batches.

    Parameters
    ----------
    data : Dataset
        Where the rows come from; shared.
    rows : array_like of int, shape (T, B)
        Row t holds the row numbers of batch t.

    Attributes
    ----------
    rounds : int
        Number of batches, T.
    batch_size : int
        Rows in each batch, B; the last of an epoch of `epoch_stream` may have fewer.

    Raises
    ------
    TypeError, ValueError
        If `rows` are not integers, not in range, or empty.

    Examples
    --------
    >>> data = Dataset([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 2])
    >>> [batch.y.tolist() for batch in IndexedStream(data, [[0, 1], [2, 2]])]
    [[0, 1], [2, 2]]
    """

    data: Any
    rounds: int
    batch_size: int

    def __init__(self, data: Dataset | Chunks, rows: object) -> None:
        if not isinstance(data, Dataset | Chunks):
            raise TypeError(f"data must be a Dataset, but it is a {type(data).__name__}")
        self._rows = _row_numbers(rows, data.n_samples, ndim=2)
        self.data = data
        self.rounds, self.batch_size = self._rows.shape
        self._kind = "indexed"

    #: Batches left out at the beginning.
    _skipped = 0
    #: Of rows that were collected from chunks, their numbers there.
    _origin: IndexArray | None = None

    def _chunks(self) -> Iterator[IndexArray]:
        """Yield read-only (k, B) arrays of row numbers, k of the stream's own choosing."""
        yield from _in_rounds(self._rows.reshape(-1), self.batch_size)

    def _rest(self) -> Iterator[IndexArray]:
        """Yield what `_chunks` does after the batches left out."""
        left = self._skipped
        for chunk in self._chunks():
            if left < len(chunk):
                yield chunk[left:]
            left = max(0, left - len(chunk))

    def from_round(self, t: int) -> IndexedStream:
        """Return the stream of batches t, t + 1, ...: what a learner in round t goes on with.

        ``learner.run(stream.from_round(learner.t))`` continues a run that was cut short.

        Parameters
        ----------
        t : int
            Number of the first batch, from 1 on; ``rounds + 1`` leaves none.

        Raises
        ------
        TypeError, ValueError
            If `t` is not a positive integer, or beyond the stream's end.

        Examples
        --------
        >>> stream = iid_stream([[0.0], [1.0], [2.0]], [0, 1, 1], batch_size=2, rounds=3, seed=1)
        >>> [batch.rows.tolist() for batch in stream]
        [[1, 1], [2, 2], [0, 0]]
        >>> [batch.rows.tolist() for batch in stream.from_round(3)]
        [[0, 0]]
        """
        skipped = positive_int(t, "t") - 1
        if skipped > self.rounds:
            raise ValueError(
                f"t must be at most {self.rounds + 1}, one more than the stream's rounds, "
                f"but it is {t}"
            )
        rest = copy.copy(self)
        rest._skipped, rest.rounds = self._skipped + skipped, self.rounds - skipped
        return rest

    def row_blocks(self, max_rounds: int) -> Iterator[IndexArray]:
        """Yield the row numbers of all batches in order, `max_rounds` rounds at a time.

        Blocks (k, B) of intp are C-contiguous and read-only; k is less than `max_rounds` in the
        last one, and before and at a batch of fewer rows. They take O(B (max_rounds + c)) memory
        for a constant c, however many rounds the stream has.

        Raises
        ------
        TypeError, ValueError
            If `max_rounds` is not a positive integer.
        """
        # A plain function around the generator, so that a bad argument fails at the call.
        return self._row_blocks(positive_int(max_rounds, "max_rounds"))

    def _row_blocks(self, wanted: int) -> Iterator[IndexArray]:
        pending: list[IndexArray] = []  # less than one block
        count = 0
        for rows in self._rest():
            if pending and rows.shape[1] != pending[0].shape[1]:
                yield _joined(pending)
                pending, count = [], 0
            pending.append(rows)
            count += len(rows)
            if count >= wanted:
                joined = _joined(pending)
                for stop in range(wanted, count + 1, wanted):
                    yield joined[stop - wanted : stop]
                count %= wanted
                pending = [joined[-count:]] if count else []
        if pending:
            yield _joined(pending)

    def __len__(self) -> int:
        return self.rounds

    def __iter__(self) -> Iterator[Batch]:
        for part in self._held_parts():
            for chunk in part._rest():
                for rows in chunk:
                    yield Batch._trusted(part.data, rows)
            del part

    def _held_parts(self, finite: bool = True) -> Iterator[IndexedStream]:
        """Yield the stream itself; of chunks, one stream after the other of rows that are held."""
        if isinstance(self.data, Dataset):
            yield self
            return
        own = copy.copy(self)
        own.data = self.data.for_a_pass(finite)
        parts = own._parts()
        yield from ahead(parts) if self.data.reads_ahead else parts

    def _parts(self) -> Iterator[IndexedStream]:
        for block in self._row_blocks(max(1, self.data.at_once // self.batch_size)):
            rows = block.reshape(-1)
            yield _in_batches(rows, *held(self.data, rows), block.shape[1])

    def __repr__(self) -> str:
        return (
            f"<{self._kind} stream: {self.rounds} batches of {self.batch_size} from {self.data!r}>"
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the attributes; NumPy forgets that row numbers were read-only."""
        self.__dict__.update(state)
        if "_rows" in state:
            self._rows = freeze(self._rows)


class _IidStream(IndexedStream):
    """Rows drawn with replacement, a fixed number at a time: only the seed is remembered."""

    def __init__(
        self, data: Dataset | Chunks, *, batch_size: int, rounds: int, seed: int | tuple[int, ...]
    ) -> None:
        self.data = data
        self.rounds = positive_int(rounds, "rounds")
        self.batch_size = positive_int(batch_size, "batch_size")
        self._seed = check_seed(seed)
        self._kind = f"i.i.d. (seed {seed})"

    def _spans(self) -> Iterator[IndexArray]:
        """Yield the numbers, from 0, of the rounds that are drawn in one go."""
        at_once = max(1, _CHUNK // self.batch_size)
        rounds = self._skipped + self.rounds
        for start in range(0, rounds, at_once):
            yield np.arange(start, min(start + at_once, rounds))

    def _chunks(self) -> Iterator[IndexArray]:
        rng = np.random.default_rng(self._seed)
        for t in self._spans():
            size = t.size, self.batch_size
            # int64 on every platform: the draws depend on the width asked for.
            chunk = rng.integers(self.data.n_samples, size=size, dtype=np.int64)
            yield freeze(chunk.astype(np.intp, copy=False))


class _DriftingStream(_IidStream):
    """Rows drawn from a mixture of classes that moves; only the seed is remembered."""

    def __init__(
        self, data: Dataset | Chunks, *, pieces: int, smooth: bool, **options: Any
    ) -> None:
        super().__init__(data, **options)
        self._pieces, self._smooth = positive_int(pieces, "pieces"), boolean(smooth, "smooth")
        if pieces > self.rounds:
            raise ValueError(f"pieces must be at most rounds, {self.rounds}, but it is {pieces}")
        self._kind = f"{'smoothly' if smooth else 'piecewise'} drifting (seed {self._seed})"

    def _shares(self, t: IndexArray, mixtures: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the mixture of each round, counted from 0."""
        rounds, pieces = self._skipped + self.rounds, self._pieces
        if not self._smooth:
            shares: npt.NDArray[Any] = mixtures[t * pieces // rounds]
            return shares
        place = t * (pieces - 1) / max(1, rounds - 1)
        left = np.minimum(place.astype(np.intp), max(0, pieces - 2))
        right = np.minimum(left + 1, pieces - 1)
        part = (place - left)[:, np.newaxis]
        return np.asarray((1.0 - part) * mixtures[left] + part * mixtures[right])

    def _chunks(self) -> Iterator[IndexArray]:
        rng = np.random.default_rng(self._seed)
        order = np.argsort(self.data.y, kind="stable")
        _, first, count = np.unique(self.data.y[order], return_index=True, return_counts=True)
        mixtures = rng.dirichlet(np.ones(first.size), self._pieces)
        for t in self._spans():
            ends = np.cumsum(self._shares(t, mixtures), axis=1)
            u = rng.random((2, t.size, self.batch_size))
            chosen = np.array(
                [np.searchsorted(e[:-1], row, "right") for e, row in zip(ends, u[0], strict=True)]
            )
            place = first[chosen] + (u[1] * count[chosen]).astype(np.intp)
            yield freeze(order[place])


class _EpochStream(IndexedStream):
    """All rows again and again, without replacement; only the seed is remembered."""

    def __init__(
        self,
        data: Dataset | Chunks,
        batch_size: int,
        epochs: int,
        shuffle: str | bool,
        chunk_size: int,
        seed: int | tuple[int, ...],
    ) -> None:
        if not (shuffle is False or (isinstance(shuffle, str) and shuffle in ("rows", "chunks"))):
            raise ValueError(f"shuffle must be 'rows', 'chunks' or False, but it is {shuffle!r}")
        self.data = data
        self.batch_size = positive_int(batch_size, "batch_size")
        self._per_epoch = -(-data.n_samples // batch_size)
        self._epochs, self._shuffle = positive_int(epochs, "epochs"), shuffle
        self.rounds = epochs * self._per_epoch
        self._chunk_size = positive_int(chunk_size, "chunk_size")
        self._seed = check_seed(seed)
        self._kind = f"epochs (seed {seed})" if shuffle else "epochs"

    def _rest(self) -> Iterator[IndexArray]:
        B = self.batch_size
        for epoch, left_out in self._epochs_left():
            yield from _in_rounds(freeze(np.concatenate(self._order(epoch)))[left_out * B :], B)

    def _epochs_left(self) -> Iterator[tuple[int, int]]:
        """Yield the epochs that are sent, and how many of their batches are left out."""
        first, left_out = divmod(self._skipped, self._per_epoch)
        for epoch in range(first, self._epochs):
            yield epoch, left_out if epoch == first else 0

    def _order(self, epoch: int) -> list[IndexArray]:
        """Order of the rows in an epoch, which depends on seed and epoch alone, in parts.

        A part has rows that are read together.
        """
        n = self.data.n_samples
        if not self._shuffle:
            return [np.arange(n, dtype=np.intp)]
        seed = self._seed if isinstance(self._seed, tuple) else (self._seed,)
        rng = np.random.default_rng((*seed, epoch))
        if self._shuffle == "rows":
            return [rng.permutation(n).astype(np.intp, copy=False)]
        size = min(self._chunk_size, n)
        starts = size * rng.permutation(-(-n // size)).astype(np.intp, copy=False)
        parts = []
        for first in range(0, starts.size, _BUFFERED):
            rows = np.add.outer(starts[first : first + _BUFFERED], np.arange(size)).ravel()
            parts.append(rng.permutation(rows[rows < n]))
        return parts

    def _parts(self) -> Iterator[IndexedStream]:
        B, at_once = self.batch_size, max(self.batch_size, self.data.at_once)
        for epoch, left_out in self._epochs_left():
            parts = self._order(epoch)
            order, ends = np.concatenate(parts), np.cumsum([part.size for part in parts])
            # As many whole parts as may be held, or as much of one; what makes no whole batch
            # is kept for the next.
            first = at = left_out * B
            kept = None
            while at < order.size:
                fitting = ends[(ends > at) & (ends <= at + at_once)]
                end = int(fitting[-1]) if fitting.size else min(at + at_once, order.size)
                whole = end if end == order.size else end - (end - first) % B
                part, places = held(self.data, order[first:end], kept)
                if whole > first:
                    rows = order[first:end]
                    yield _in_batches(rows, part, places[: whole - first], B)
                left = places[whole - first :]
                kept = (order[whole:end], Batch._trusted(part, left).X) if left.size else None
                del part
                first, at = whole, end


def held(
    data: Chunks, rows: IndexArray, kept: tuple[IndexArray, Any] | None = None
) -> tuple[Dataset, IndexArray]:
    """Return rows in memory, each of them once, and which of those were asked for, in order.

    The first ones may be there already: their numbers and features.
    """
    before, X = (rows[:0], None) if kept is None else kept
    new, places = np.unique(rows[before.size :], return_inverse=True)
    own = np.concatenate([before, new])
    places = np.concatenate([np.arange(before.size), before.size + places])
    weights = None if data._weights is None else data._weights[own]
    return Dataset._ready(data.gather(new, X), data.y[own], weights), freeze(places)


def _in_batches(
    origin: IndexArray, data: Dataset, rows: IndexArray, batch_size: int
) -> IndexedStream:
    """Return a stream of rows in their order, of which the last batch may have fewer."""
    stream = IndexedStream(data, rows[:, np.newaxis])
    stream.batch_size, stream.rounds = batch_size, -(-rows.size // batch_size)
    stream._origin = origin
    return stream


def batches(data: Dataset | Chunks, parts: Iterable[IndexArray | None]) -> Iterator[Any]:
    """Yield a batch of the rows in each part, and all data where it is None.

    Of chunks, rows of as many parts at a time as may be held are collected.
    """
    if isinstance(data, Dataset):
        for rows in parts:
            yield data if rows is None else Batch._trusted(data, freeze(rows))
        return
    left = [*parts]
    while left:
        ends = np.cumsum([0 if rows is None else rows.size for rows in left])
        count = max(1, int(np.searchsorted(ends, data.at_once, side="right")))
        now, left = left[:count], left[count:]
        wanted = [rows for rows in now if rows is not None]
        some: Any = None
        if wanted:
            some, places = held(data, np.concatenate(wanted))
        for rows, end in zip(now, ends.tolist(), strict=False):
            if rows is None:
                yield data
            else:
                yield Batch._trusted(some, places[end - rows.size : end])
        del some


class LabelledStream:
    """Batches whose labels are strings, floats or the like, as learners take them.

    Parameters
    ----------
    stream : iterable
        Batches: pairs (X, y), or objects with ``.X`` and ``.y``; gone through whenever this is.
    classes : array_like, shape (C,)
        All labels there will be; the order does not matter.

    Attributes
    ----------
    classes : ndarray, shape (C,)
        Sorted: class number c, which `SoftmaxRegression.predict` returns, is ``classes[c]``.

    Raises
    ------
    TypeError, ValueError
        If `stream` is not iterable or `classes` are not two labels or more, of one kind. While
        batches are read: if a label is not among them.

    Examples
    --------
    >>> batches = [(np.eye(2), ["no", "yes"]), (np.eye(2), ["yes", "yes"])]
    >>> stream = LabelledStream(batches, classes=["yes", "no"])
    >>> [y.tolist() for X, y in stream]
    [[0, 1], [1, 1]]
    >>> stream.classes[[1, 0]].tolist()
    ['yes', 'no']
    """

    def __init__(self, stream: Any, classes: npt.ArrayLike) -> None:
        if not hasattr(stream, "__iter__"):
            raise TypeError(f"stream must be batches, but it is a {type(stream).__name__}")
        self._stream = stream
        self.classes = sort_classes(classes)
        if len(self.classes) < 2:
            raise ValueError(
                f"classes must be two labels or more, but it is {describe(classes, bare=True)}"
            )

    def __iter__(self) -> Iterator[tuple[Any, IndexArray]]:
        for batch in self._stream:
            X, y = batch_parts(batch)
            yield X, class_numbers(as_array(y, "y"), self.classes)


def epoch_stream(
    X: object,
    y: object = None,
    *,
    batch_size: int,
    epochs: int = 1,
    shuffle: str | bool = "rows",
    chunk_size: int = 4096,
    seed: int | tuple[int, ...] = 0,
) -> IndexedStream:
    """Send every row once in each epoch, in batches: passes over the data.

    Parameters
    ----------
    X : array_like, shape (n, d), Dataset, Dask array, files or chunks
        Features; what is not in memory, see Notes. A `Dataset` is not validated again.
    y : array_like of int, shape (n,), optional
        Class numbers; left out if `X` brings its own.
    batch_size : int
        Rows in each batch, B.  Where it does not divide n, the last batch of an epoch has fewer.
    epochs : int
        Passes over the data: ``epochs * ceil(n / B)`` batches in all.
    shuffle : {"rows", "chunks", False}
        The order, in each epoch anew: of all rows; of chunks of consecutive rows, those of eight
        chunks mixed, for data that is slow to read in any order; or as they lie.
    chunk_size : int
        Rows of a chunk.
    seed : int or tuple of int
        Of the orders.  Same seed, same batches; with fewer epochs, the first ones of them.

    Returns
    -------
    IndexedStream
        Re-iterable; see `IndexedStream.from_round` for going on in the middle. O(n) memory beyond
        the data, for the order of one epoch.

    Notes
    -----
    Every stream, and `best_fixed_decision`, also takes data that are not in memory:

    - a Dask array of rows, dense or of scipy CSR chunks, with labels that are one or in memory;
    - files: a list of .npz that hold ``X`` and ``y``, or a list of .npy (or of .npz that
      ``scipy.sparse.save_npz`` wrote) with a list of .npy for `y`;
    - chunks of any sizes: a list of pairs (X, y), or an object that gives them anew whenever it is
      iterated over.

    Batches are those of the same rows in memory. Labels and row numbers are held in memory; of the
    features 128 MB at a time, or a batch, which are collected from the chunks that have them, and
    of Dask arrays and files as much again, which is collected by a thread meanwhile. Where
    rows come from everywhere, each such collection goes through all chunks: with
    ``shuffle="chunks"`` and the chunks' own size for `chunk_size`, an epoch makes each of them
    once, if eight of them are no larger.

    Examples
    --------
    >>> X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
    >>> [batch.rows.tolist() for batch in epoch_stream(X, y, batch_size=2, epochs=2, seed=1)]
    [[0, 1], [2], [2, 0], [1]]
    """
    return _EpochStream(dataset(X, y), batch_size, epochs, shuffle, chunk_size, seed)


def iid_stream(
    X: object, y: object = None, *, batch_size: int, rounds: int, seed: int | tuple[int, ...] = 0
) -> IndexedStream:
    """Draw every batch uniformly from the data, with replacement: the stochastic setting.

    Parameters
    ----------
    X, y : array_like, shapes (n, d) and (n,)
        Data of any form that `epoch_stream` takes.
    batch_size, rounds : int
        Rows in each batch, B, which may exceed n; number of batches, T.
    seed : int or tuple of int
        Seed of ``np.random.default_rng``.  Same seed, same batches; with fewer rounds, the first
        ones of them.

    Returns
    -------
    IndexedStream
        Re-iterable; O(1) memory beyond the data, however many rounds.

    Examples
    --------
    >>> stream = iid_stream([[0.0], [1.0], [2.0]], [0, 1, 1], batch_size=2, rounds=3, seed=1)
    >>> [len(batch) for batch in stream]
    [2, 2, 2]
    """
    return _IidStream(dataset(X, y), batch_size=batch_size, rounds=rounds, seed=seed)


def drifting_stream(
    X: object,
    y: object = None,
    *,
    batch_size: int,
    rounds: int,
    pieces: int = 4,
    smooth: bool = False,
    seed: int | tuple[int, ...] = 0,
) -> IndexedStream:
    """Draw rows from a mixture of the classes that moves, by pieces or smoothly.

    As many mixtures as there are pieces are drawn uniformly from all. Each holds for an equal
    share of the rounds; or, smoothly, is passed on the way from the first to the last in a straight
    line from one to the next. A row is of a class drawn from the round's mixture, and any of
    that class, with replacement.

    Parameters
    ----------
    X, y, batch_size, rounds, seed
        As in `iid_stream`; the seed is of mixtures and rows.
    pieces : int
        Number of mixtures, at most T.
    smooth : bool
        Whether the mixture moves in every round.

    Returns
    -------
    IndexedStream
        Re-iterable; O(n) memory beyond the data, however many rounds.

    See Also
    --------
    interval_regret : What is lost where no decision is good for all rounds.

    Examples
    --------
    >>> X, y = np.arange(6.0).reshape(6, 1), [0, 0, 0, 1, 1, 1]
    >>> stream = drifting_stream(X, y, batch_size=50, rounds=4, pieces=2, seed=0)
    >>> [round(float(batch.y.mean()), 2) for batch in stream]
    [0.64, 0.72, 0.1, 0.16]
    """
    options: dict[str, Any] = {"pieces": pieces, "smooth": smooth, "seed": seed}
    return _DriftingStream(dataset(X, y), batch_size=batch_size, rounds=rounds, **options)


def sorted_stream(X: object, y: object = None, *, batch_size: int, rounds: int) -> IndexedStream:
    """Send the data sorted by class, in consecutive blocks: the paper's adversarial setting.

    Batch t holds rows (t - 1) B, ..., t B - 1 of the data in a stable order by label, so that rows
    of one class keep their order.  What is left over is not sent.

    Parameters
    ----------
    X, y, batch_size, rounds
        As in `iid_stream`, with T B <= n.

    Returns
    -------
    IndexedStream
        Re-iterable; remembers T B row numbers.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used, or if the data does not suffice for that many rounds.

    Examples
    --------
    >>> stream = sorted_stream([[0.0], [1.0], [2.0], [3.0]], [1, 0, 1, 0], batch_size=2, rounds=2)
    >>> [batch.X.ravel().tolist() for batch in stream]
    [[1.0, 3.0], [0.0, 2.0]]
    """
    data = dataset(X, y)
    batch_size, rounds = positive_int(batch_size, "batch_size"), positive_int(rounds, "rounds")
    n = data.n_samples
    if batch_size > n:
        raise ValueError(
            f"batch_size must be at most the number of rows, {n}, but it is {batch_size}: "
            "a sorted stream sends each row once"
        )
    if rounds * batch_size > n:
        raise ValueError(
            f"rounds is {rounds}, but {n} rows make at most {n // batch_size} batches of "
            f"{batch_size}: a sorted stream sends each row once"
        )
    order = np.argsort(data.y, kind="stable")[: rounds * batch_size]
    stream = IndexedStream(data, order.reshape(rounds, batch_size))
    stream._kind = "sorted"
    return stream


def dataset(X: object, y: object) -> Dataset | Chunks:
    """Return X if it is a Dataset, else make one of X and y, or of chunks what stands for one."""
    if isinstance(X, Dataset | Chunks):
        if y is not None:
            raise TypeError("y must be left out when X is a Dataset, which has labels of its own")
        return X
    chunks = chunks_of(X, y)
    if chunks is not None:
        return chunks
    if y is None:
        raise TypeError("y is missing: give the labels of X, or a Dataset in place of X")
    return Dataset(X, y)


def _in_rounds(rows: IndexArray, batch_size: int) -> Iterator[IndexArray]:
    """Yield the rows of batches, (k, B), and of a last one that has fewer, (1, b)."""
    whole = rows.size // batch_size * batch_size
    if whole:
        yield rows[:whole].reshape(-1, batch_size)
    if whole < rows.size:
        yield rows[whole:].reshape(1, -1)


def batch_size(batch: Any) -> int:
    """Return the rows of a batch: of its labels, or of the array that it is; else it is one."""
    if isinstance(batch, Batch | Dataset):
        return len(batch)
    rows = batch_parts(batch)[1] if is_pair(batch) else batch
    if hasattr(rows, "shape"):
        return int(rows.shape[0]) if rows.shape else 1
    return len(rows) if isinstance(rows, Sequence) else 1


def _joined(parts: list[IndexArray]) -> IndexArray:
    """Concatenate read-only blocks into a read-only one, without a copy if there is only one."""
    if len(parts) == 1:
        return parts[0]
    return freeze(np.concatenate(parts))


def _row_numbers(rows: object, n_samples: int, *, ndim: int) -> IndexArray:
    """Check row numbers and return them as a read-only C-contiguous intp copy."""
    given = np.asarray(rows)
    shape = "(B,)" if ndim == 1 else "(T, B)"
    if given.ndim != ndim or given.size == 0:
        raise ValueError(
            f"rows must have shape {shape} and hold at least one row number, "
            f"but they have shape {given.shape}"
        )
    if given.dtype.kind not in "iu":
        raise TypeError(f"rows must be integers, but their dtype is {given.dtype}")
    low, high = int(given.min()), int(given.max())
    if low < 0 or high >= n_samples:
        raise ValueError(
            f"rows must lie in 0, ..., {n_samples - 1}, but they reach from {low} to {high}"
        )
    # A copy: were they changed later, kernels would read outside the data.
    return freeze(np.array(given, dtype=np.intp, order="C"))
