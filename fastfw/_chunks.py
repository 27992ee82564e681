"""Labelled rows in chunks that are made, or read, when they are needed.

What `Dataset` is to data in memory, `Chunks` is to Dask arrays, files and iterables of chunks.
Labels are held in memory, features are not: streams take as many rows at a time as may be held, in
one pass over the chunks that have them; sums over all rows are taken chunk by chunk.
"""

from __future__ import annotations

import copy
import math
import os
import sys
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import IndexArray, batch_parts, features, labels, reworded
from fastfw._csr import check_matrix, csr_parts, is_sparse, stacked, take_rows

__all__ = ["Chunks", "DaskChunks", "Memory", "ahead", "check_chunk", "chunks_of", "is_dask"]

T = TypeVar("T")
Make: TypeAlias = Callable[..., Any]
What: TypeAlias = Sequence[tuple[int, tuple[Any, ...]]]

#: Bytes of features that are held at a time.
_HELD = 1 << 27

#: Rows that sums take at a time.
_BLOCK = 4096

#: Sums of so many chunks are added where they are made.
_ADDED = 8


class Form(NamedTuple):
    """What chunks have to be."""

    n_features: int
    dtype: np.dtype[Any]
    finite: bool = True


class Memory:
    """Memory that is used again when nothing refers any more to the array that it was lent to.

    The system clears pages that it hands out, which takes as long as it does to fill them.
    """

    def __init__(self) -> None:
        self._free: list[npt.NDArray[np.uint8]] = []

    def take(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Return an array of any contents."""
        size = math.prod(shape) * dtype.itemsize
        while self._free:
            memory = self._free.pop()
            if memory.size >= size:
                break
        else:
            memory = np.empty(size, np.uint8)
        return memory[:size].view(dtype).reshape(shape)

    def lend(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return what was taken, filled by now, read-only; memory comes back when it is gone."""
        memory: Any = array.base
        # views of it end at this one, and not at the memory, which is no base as arrays are
        whole = np.frombuffer(memoryview(memory).toreadonly(), array.dtype, array.size)
        weakref.finalize(whole, self._free.append, memory).atexit = False
        return whole.reshape(array.shape)


class Chunks(ABC):
    """Chunks of so many rows each, which are converted to one dtype, and all of their labels."""

    def __init__(self, y: object, sizes: Sequence[int], n_features: int, dtype: Any) -> None:
        self.ends = np.cumsum([0, *sizes]).astype(np.intp)
        self.shape = (int(self.ends[-1]), n_features)
        single = np.dtype(dtype).newbyteorder("=") == np.float32
        self.dtype: np.dtype[Any] = np.dtype(np.float32 if single else np.float64)
        self.y: IndexArray = labels(y, n_samples=self.n_samples)
        self.n_classes = int(self.y.max()) + 1
        #: What losses of rows are multiplied by, see `Dataset`.
        self._weights: npt.NDArray[np.float64] | None = None

    #: Whether another thread may collect rows while those before are used.
    reads_ahead = True
    _finite = True
    _memory: Memory | None = None

    @abstractmethod
    def _each(self, f: Make, what: What, *common: Any) -> Iterable[Any]:
        """Yield f(features of chunk k, form, *common, *own) for pairs (k, own), k increasing."""

    def _place(self, memory: Memory, shape: tuple[int, int]) -> Any:
        """Return an array into which rows are written where chunks are made, or None."""
        return None

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.shape[0]

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.shape[1]

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        return (
            f"<{self.n_samples} rows x {self.n_features} features in {self.ends.size - 1} chunks, "
            f"{self.n_classes} classes, {self.dtype}>"
        )

    def astype(self, dtype: npt.DTypeLike) -> Chunks:
        """Return the same with features of another dtype."""
        return self if self.dtype == dtype else self._with(dtype=np.dtype(dtype))

    def for_a_pass(self, finite: bool) -> Chunks:
        """Return the same for one pass: it uses memory again, and looks for NaN or does not."""
        return self._with(_finite=finite, _memory=Memory())

    def _with(self, **changes: Any) -> Chunks:
        other = copy.copy(self)
        vars(other).update(changes)
        return other

    def map(self, f: Make) -> Iterable[Any]:
        """Yield what f makes of the features and labels of every chunk, in order."""
        return self._each(_made_of, self._with_labels(), f)

    def total(self, f: Make) -> tuple[Any, ...]:
        """Return the sum of what f makes of the features and labels of blocks of all rows: a tuple.

        In a fixed order, and where chunks are made on other machines, there.
        """
        return _sum([*self._each(_sum_of, self._with_labels(), f)])

    def _with_labels(self) -> What:
        return [
            (k, (first, self.y[first:end]))
            for k, (first, end) in enumerate(pairwise(self.ends.tolist()))
        ]

    def split(self, rows: IndexArray) -> Iterator[tuple[int, slice, IndexArray]]:
        """Yield of increasing rows those of each chunk: its number, the places, rows in it."""
        cuts = np.searchsorted(rows, self.ends)
        for k in np.flatnonzero(np.diff(cuts)).tolist():
            span = slice(int(cuts[k]), int(cuts[k + 1]))
            yield k, span, rows[span] - self.ends[k]

    def gather(self, rows: IndexArray, held: Any = None) -> Any:
        """Return the features of increasing rows, read-only, after those that are held already."""
        before = 0 if held is None else held.shape[0]
        memory, shape = self._memory or Memory(), (before + rows.size, self.n_features)
        out = self._place(memory, shape)
        spans, wanted = [], []
        for k, span, own in self.split(rows):
            spans.append(slice(before + span.start, before + span.stop))
            wanted.append((k, (int(self.ends[k]), own, spans[-1])))
        parts = iter(self._each(_rows_of, wanted, out))
        part = next(parts)
        if is_sparse(part):
            return stacked([*([] if held is None else [held]), part, *parts])
        if out is None:
            out = memory.take(shape, self.dtype)
        out[:before] = 0.0 if held is None else held
        for span in spans:
            if part is not None:
                out[span] = part
            part = None  # before the next one is there
            part = next(parts, None)
        return memory.lend(out)

    @property
    def _form(self) -> Form:
        """What chunks have to be."""
        return Form(self.n_features, self.dtype, self._finite)

    @cached_property
    def at_once(self) -> int:
        """Rows that are held at a time."""
        first = next(iter(self._each(_size_of, [(0, ())])))
        return max(1, int(_HELD / max(first, 1.0)))


def check_chunk(chunk: Any, form: Form, first: int) -> Any:
    """Return features of a chunk in canonical form; errors name where it begins."""
    try:
        return features(chunk, sparse=True, **form._asdict())
    except (TypeError, ValueError) as error:
        words = f"in the chunk of X that begins with row {first}: {error}"
        raise reworded(error, words) from None


def _rows_of(chunk: Any, form: Form, out: Any, first: int, rows: IndexArray, span: slice) -> Any:
    """Return increasing rows of a chunk, checked, or write them there if they are dense."""
    whole = rows.size == chunk.shape[0]
    if is_sparse(chunk):
        found = check_chunk(chunk, form, first)
        return found if whole else take_rows(found, rows)
    try:
        part = features(chunk if whole else chunk[rows], **form._asdict())
    except (TypeError, ValueError):
        check_chunk(chunk, form, first)  # the error then says where
        raise
    if out is None:
        return part
    out[span] = part
    return None


def _made_of(chunk: Any, form: Form, f: Make, first: int, y: IndexArray) -> Any:
    """Return what f makes of a whole chunk."""
    return f(check_chunk(chunk, form, first), y)


def _sum_of(chunk: Any, form: Form, f: Make, first: int, y: IndexArray) -> tuple[Any, ...]:
    """Return the sum of what f makes of a chunk's blocks.

    What is not finite in a chunk is looked for where the sum is not.
    """
    X = check_chunk(chunk, form._replace(finite=False), first)
    spans = [slice(i, i + _BLOCK) for i in range(0, len(y), _BLOCK)]
    found = _sum([f(take_rows(X, s) if is_sparse(X) else X[s], y[s]) for s in spans])
    if not all(np.isfinite(part).all() for part in found):
        check_chunk(chunk, form, first)
    return found


def _size_of(chunk: Any, form: Form) -> float:
    """Return the bytes of a row."""
    if not is_sparse(chunk):
        return float(form[0] * form[1].itemsize)
    parts = csr_parts(check_chunk(chunk, form, 0))
    return sum(float(part.nbytes) for part in parts) / max(1, int(chunk.shape[0]))


def _sum(parts: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Add up tuples, in order."""
    return tuple(sum(more, start=first) for first, *more in zip(*parts, strict=True))


def ahead(parts: Iterator[T]) -> Iterator[T]:
    """Yield what an iterator gives, the next of which is made by another thread meanwhile."""
    following = partial(copy_context().run, partial(next, parts, None))
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(following)
        while (part := coming.result()) is not None:
            coming = pool.submit(following)
            yield part
            del part


# --- where chunks come from -----------------------------------------------------------------------


class DaskChunks(Chunks):
    """The chunks of a Dask array, made by whatever scheduler Dask is told to use."""

    def __init__(self, X: Any, y: Any) -> None:
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix, but it is a Dask array of shape {X.shape}")
        for name, given in (("X", X), ("y", y)):
            if np.isnan(getattr(given, "shape", ())).any():
                raise ValueError(
                    f"{name} is a Dask array whose chunks are of unknown sizes: call "
                    f"{name}.compute_chunk_sizes() first, or make it of a data frame by "
                    "to_dask_array(lengths=True)"
                )
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        if is_dask(y):
            y = y.compute()
        super().__init__(y, X.chunks[0], X.shape[1], X.dtype)
        if 0 in X.shape:
            raise ValueError(f"X is empty: its shape is {X.shape}")
        self.X, self._dense = X, not is_sparse(X._meta)

    def _place(self, memory: Memory, shape: tuple[int, int]) -> Any:
        import dask.local
        import dask.threaded

        used = dask.base.get_scheduler(collections=[self.X])
        shared = self._dense and used in (dask.threaded.get, dask.local.get_sync)
        return memory.take(shape, self.dtype) if shared else None

    @cached_property
    def blocks(self) -> list[Any]:
        """The chunks, delayed."""
        return [*self.X.to_delayed().ravel()]

    @cached_property
    def at_once(self) -> int:
        if self._dense:  # else what is in a row is seen when it is made
            return max(1, _HELD // (self.n_features * self.dtype.itemsize))
        return super().at_once

    def _each(self, f: Make, what: What, *common: Any) -> Iterable[Any]:
        made = [*_computed(self._calls(f, what, *common))][::-1]
        while made:  # each is forgotten as it is taken
            yield made.pop()

    def total(self, f: Make) -> tuple[Any, ...]:
        import dask

        made, add = self._calls(_sum_of, self._with_labels(), f), dask.delayed(_sum, pure=False)
        while len(made) > _ADDED:
            made = [add(made[i : i + _ADDED]) for i in range(0, len(made), _ADDED)]
        return _sum(_computed(made))

    def _calls(self, f: Make, what: What, *common: Any) -> list[Any]:
        """Return what `_each` gives, delayed."""
        import dask

        call, shared = dask.delayed(f, pure=False), [dask.delayed(c, pure=False) for c in common]
        return [call(self.blocks[k], self._form, *shared, *own) for k, own in what]


def _computed(calls: list[Any]) -> Any:
    """Compute by as many threads as there are cores: beside the main one Dask would take more."""
    import dask
    from dask.system import CPU_COUNT

    threads = dask.config.get("num_workers", None) or CPU_COUNT
    return dask.compute(*calls, num_workers=threads)


class _InTurn(Chunks):
    """Chunks by number where they can be had so, or else one after the other."""

    def __init__(self, source: Iterable[Any]) -> None:
        self._source, found = source, []
        form: tuple[int, Any] = 0, None
        for k, chunk in enumerate(source):
            self.reads_ahead &= isinstance(chunk, _Pair)  # others may be tied to their thread
            y = chunk.y if isinstance(chunk, _Pair) else batch_parts(chunk)[1]
            found.append(labels(y, name=f"y of chunk {k}"))
            if k == 0:  # of files, features are read when they are needed
                X = _features_of(chunk)
                check_matrix(X, "X of chunk 0")
                form = X.shape[1], X.dtype
        if not found:
            raise ValueError("X gives no chunks: at least one is needed")
        super().__init__(np.concatenate(found), [y.size for y in found], *form)

    def _each(self, f: Make, what: What, *common: Any) -> Iterable[Any]:
        chunks: Iterable[tuple[int, Any]] = enumerate(self._source)
        if isinstance(self._source, Sequence):
            own = self._source
            chunks = ((k, own[k]) for k, _ in what)
        wanted = dict(what)
        for k, chunk in chunks:
            if k in wanted:
                X, n = _features_of(chunk), int(self.ends[k + 1] - self.ends[k])
                if X.shape[0] != n:
                    raise ValueError(f"chunk {k} has {X.shape[0]} rows of X, but {n} labels")
                yield f(X, self._form, *common, *wanted.pop(k))
            if not wanted:
                return
        raise ValueError(
            "X gave more chunks when it was read first: it must give the same ones whenever it is "
            "iterated over"
        )


def _features_of(chunk: Any) -> Any:
    X = batch_parts(chunk)[0]
    return X if hasattr(X, "shape") else np.asarray(X)


class _Pair:
    """Features and labels in a file or two, each read where it is asked for."""

    def __init__(self, X: str, y: str | None) -> None:
        self._paths = X, y

    @property
    def X(self) -> Any:
        return _read(self._paths[0], "X")

    @property
    def y(self) -> Any:
        first, own = self._paths
        return _read(first, "y", alone=False) if own is None else _read(own, "y")


def _read(path: str, name: str, *, alone: bool = True) -> Any:
    """Return the array that is alone in its file, or what is called so in it."""
    found = np.load(path, mmap_mode="r" if path.endswith(".npy") else None, allow_pickle=False)
    if isinstance(found, np.ndarray):
        if alone:
            return found
    elif name in found:
        return found[name]
    elif name == "X" and "indptr" in found:
        from scipy import sparse

        return sparse.load_npz(path)
    raise ValueError(
        f"{path} holds no {name}: write np.savez(path, X=X, y=y), or give two lists of files, of "
        "features and of labels"
    )


def _files(X: Any, y: Any) -> list[_Pair]:
    """Return features and labels in one file each, or in two."""
    of_X = _paths(X)
    of_y = [None] * len(of_X) if y is None else _paths(y)
    if len(of_y) != len(of_X):
        raise ValueError(f"X has {len(of_X)} files, but y has {len(of_y)}")
    return [_Pair(*paths) for paths in zip(of_X, of_y, strict=True)]


def _paths(given: Any) -> list[str]:
    found = [given] if isinstance(given, str | os.PathLike) else given
    return [os.fspath(path) for path in found]


def is_dask(given: object) -> bool:
    """Whether this is a Dask array."""
    dask_array = sys.modules.get("dask.array")
    return dask_array is not None and isinstance(given, dask_array.Array)


def chunks_of(X: Any, y: Any = None) -> Chunks | None:
    """Return labelled chunks, or None for what is to be taken for data in memory."""
    if isinstance(X, Chunks):
        return X
    if is_dask(X):
        if y is None:
            raise TypeError("y is missing: give the labels of X")
        return DaskChunks(X, y)
    if type(X).__module__.startswith("dask."):
        raise TypeError(
            f"X must be a Dask array, but it is a {type(X).__name__}; a data frame's is "
            "X.to_dask_array(lengths=True)"
        )
    if isinstance(X, str | os.PathLike) or (
        isinstance(X, list | tuple) and X and isinstance(X[0], str | os.PathLike)
    ):
        return _InTurn(_files(X, y))
    if y is not None or hasattr(X, "__array__") or not isinstance(X, Iterable) or is_sparse(X):
        return None
    if isinstance(X, Iterator):
        raise TypeError(
            "X is an iterator, which gives its chunks once; give a list of pairs (X, y), or an "
            "object whose __iter__ begins anew"
        )
    if isinstance(X, Sequence) and not (X and _is_chunk(X[0])):
        return None
    return _InTurn(X)


def _is_chunk(part: Any) -> bool:
    """Whether this is labelled rows: features have two axes, labels one."""
    return hasattr(part, "X") or (
        isinstance(part, tuple | list)
        and len(part) == 2
        and np.ndim(part[1]) == 1
        and (is_sparse(part[0]) or np.ndim(part[0]) == 2)
    )
