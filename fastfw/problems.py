"""Losses with gradients.

Parameters W are (n_classes, n_features), as in scikit-learn's ``coef_``; the paper writes
the transpose. A batch is a pair ``(X, y)`` or anything with attributes ``.X`` and ``.y``. What
cannot be used, arguments and batches alike, raises a TypeError or a ValueError that names it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import (
    FloatArray,
    IndexArray,
    batch_parts,
    choice,
    features,
    freeze,
    labels,
    positive_int,
    real_array,
)
from fastfw._chunks import Chunks, chunks_of, is_dask
from fastfw._codes import Codes
from fastfw._csr import is_sparse, kernel_features, row_squares, take_rows
from fastfw._layout import padded, unpadded
from fastfw.streams import Batch, Dataset

__all__ = ["Classification", "SoftmaxRegression"]

C = TypeVar("C", bound="Classification")
_NO_WEIGHTS = np.empty(0)
_NO_WEIGHTS.flags.writeable = False


class Rows(NamedTuple):
    """Rows of a data matrix in the form that kernels take."""

    X: Any
    """A matrix of floats or a canonical sparse one; bytes as `fastfw._codes.Coded`."""
    y: Any
    """Labels, or a pair of labels and weights."""
    rows: IndexArray

    @property
    def labels(self) -> IndexArray:
        """Labels alone."""
        found: IndexArray = self.y[0] if isinstance(self.y, tuple) else self.y
        return found

    @property
    def pair(self) -> tuple[IndexArray, npt.NDArray[np.float64]]:
        """Labels and weights, none where all are 1: so kernels are compiled once for both."""
        return self.y if isinstance(self.y, tuple) else (self.y, _NO_WEIGHTS)

    @property
    def weights(self) -> npt.NDArray[np.float64]:
        """Weights of these rows alone."""
        return self.y[1][self.rows] if isinstance(self.y, tuple) else np.ones(self.rows.size)

    def gathered(self) -> Any:
        """Return the features of these rows alone: floats, or a canonical sparse matrix."""
        if isinstance(self.X, tuple):
            return Codes(*self.X).decoded(self.X[1].dtype, self.rows)
        return take_rows(self.X, self.rows) if is_sparse(self.X) else self.X[self.rows]


@lru_cache(maxsize=8)
def all_rows(n: int) -> IndexArray:
    """Row numbers 0, ..., n - 1, read-only."""
    return freeze(np.arange(n, dtype=np.intp))


@lru_cache(maxsize=8)
def one_round(n: int) -> IndexArray:
    """Where a round of n rows starts and ends."""
    return np.array([0, n], np.intp)


def _real(A: Any) -> Any:
    """Dtype that features have, or are decoded to."""
    return A[1].dtype if isinstance(A, tuple) else A.dtype


def _in_chunks(batch: Any) -> Chunks | None:
    """Return chunks where a batch is that, or a pair of Dask arrays."""
    if isinstance(batch, Chunks):
        return batch
    if not isinstance(batch, tuple | list) or len(batch) != 2 or not is_dask(batch[0]):
        return None
    return chunks_of(*batch)


def _losses_of(problem: Classification, x: Any, X: Any, y: Any) -> npt.NDArray[np.float64]:
    return problem.sample_losses(x, (X, y))


def _share_of(
    problem: Classification, x: Any, weight: float, X: Any, y: Any
) -> tuple[float, FloatArray]:
    """Loss and gradient of some rows, each with a weight; it is seen there if X is not finite."""
    loss, gradient = problem.of_rows(x, problem.rows((X, y), finite=False))
    share = weight / problem.weight(len(y))
    return share * loss, gradient * gradient.dtype.type(share)


class Classification:
    """What the losses of this module and of `fastfw.network` share: labelled batches, checked.

    A subclass is a frozen data class with ``shape``, ``first_layer``, ``kernel_model``, ``logits``.
    """

    #: Whether features may be bytes where kernels take them.
    takes_codes: ClassVar[bool] = False

    n_features: int
    n_classes: int
    reduction: str

    def __post_init__(self) -> None:
        """Check the arguments."""
        keep = partial(object.__setattr__, self)
        keep("n_features", positive_int(self.n_features, "n_features"))
        keep("n_classes", positive_int(self.n_classes, "n_classes", minimum=2))
        choice(self.reduction, "reduction", ("mean", "sum"))

    def with_reduction(self: C, reduction: str) -> C:
        """Return the same problem with another reduction."""
        return replace(self, reduction=reduction)  # type: ignore[type-var]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the parameters."""
        raise NotImplementedError

    @property
    def first_layer(self) -> tuple[int, int]:
        """Shape of the matrix of parameters that are linear in the features; they come first."""
        raise NotImplementedError

    def weight(self, n_samples: int) -> float:
        """Weight of one sample in a batch of so many: 1/n for the mean, 1 for the sum."""
        return 1.0 / n_samples if self.reduction == "mean" else 1.0

    def rows(
        self,
        batch: object,
        dtype: npt.DTypeLike | None = None,
        *,
        finite: bool = True,
        coded: bool = False,
    ) -> Rows:
        """Check a batch against this problem and return it as kernels take it.

        Parameters
        ----------
        batch : object
            A pair (X, y), a `Batch`, a `Dataset`, or anything with ``.X`` and ``.y``.
        dtype : {float64, float32}, optional
            Features are converted to it where they have another one.
        finite : bool
            Whether NaN and infinity are looked for. A caller that does without must look
            again (with True) where a loss turns out not to be finite.
        coded : bool
            Whether features that are bytes may stay so; else they are decoded.

        Raises
        ------
        TypeError, ValueError
            If the batch cannot be used; the message names the argument.
        """
        if isinstance(batch, Batch):
            return self._rows_of(batch.data, batch.rows, dtype, coded)
        if isinstance(batch, Dataset):
            return self._rows_of(batch, all_rows(len(batch)), dtype, coded)
        X, y = batch_parts(batch)
        X = features(X, n_features=self.n_features, dtype=dtype, finite=finite, sparse=True)
        n = X.shape[0]
        return Rows(X, labels(y, n_samples=n, n_classes=self.n_classes), all_rows(n))

    def _rows_of(
        self, data: Dataset, rows: IndexArray, dtype: npt.DTypeLike | None, coded: bool
    ) -> Rows:
        data = self.fitting(data, dtype)
        if coded and self.takes_codes and data.codes is not None:
            return Rows(data.codes.coded(data.dtype), data.y, rows)
        return Rows(data.X, data.y if data._weights is None else (data.y, data._weights), rows)

    def fitting(self, data: Any, dtype: npt.DTypeLike | None = None) -> Any:
        """Return a data set, or chunks, in a dtype, checked to fit this problem."""
        if data.n_features != self.n_features:
            raise ValueError(
                f"X has {data.n_features} columns, but {self.n_features} features are wanted"
            )
        if data.n_classes > self.n_classes:
            raise ValueError(
                f"y holds label {data.n_classes - 1}; with {self.n_classes} classes, labels must "
                f"be 0, ..., {self.n_classes - 1}"
            )
        return data if dtype is None else data.astype(dtype)

    def loss(self, x: npt.ArrayLike, batch: object) -> float:
        """Return f(x), in nats, on a batch that `rows` takes. O(B) memory beyond the batch."""
        losses = self.sample_losses(x, batch)
        return float(losses.sum()) * self.weight(losses.size)

    def sample_losses(self, x: npt.ArrayLike, batch: object) -> npt.NDArray[np.float64]:
        """Return the loss of every sample of a batch, shape (B,), in nats."""
        from fastfw.kernels import csr, gradients

        chunks = _in_chunks(batch)
        if chunks is not None:
            return np.concatenate([*chunks.map(partial(_losses_of, self, x))])
        given = self.rows(batch, coded=True)
        A, y, rows = given.X, given.pair, given.rows
        first, tail = self._split(x, _real(A))
        model, out = self.kernel_model(), np.empty(rows.size)
        if is_sparse(A):
            columns = np.ascontiguousarray(first.T)
            csr.sample_losses(kernel_features(A), model, y, rows, columns, tail, out)
        else:
            u = padded(first, first.dtype)
            gradients.sample_losses(A, model, y, rows, u, 1.0, tail, out)
        return out

    def loss_and_gradient(self, x: npt.ArrayLike, batch: object) -> tuple[float, FloatArray]:
        """Return loss, in nats, and gradient, a new array, from one pass over a batch's rows.

        The features' dtype is the gradient's. The pair (X, y) may be of Dask arrays, whose chunks
        are gone through where Dask makes them.
        """
        chunks = _in_chunks(batch)
        if chunks is not None:
            loss, whole = chunks.total(partial(_share_of, self, x, self.weight(len(chunks))))
            return float(loss), whole
        return self.of_rows(x, self.rows(batch, coded=True))

    def of_rows(self, x: npt.ArrayLike, given: Rows) -> tuple[float, FloatArray]:
        """Return the same for rows that `rows` gave."""
        from fastfw.kernels import csr, gradients

        A, y, rows = given.X, given.pair, given.rows
        first, tail = self._split(x, _real(A))
        model, rest = self.kernel_model(), np.empty_like(tail)
        if is_sparse(A):
            columns = np.ascontiguousarray(first.T)
            G = np.zeros_like(columns)
            parts = kernel_features(A)
            loss = csr.loss_and_gradient(parts, model, y, rows, columns, tail, G, rest)
            G = G.T
        else:
            u = padded(first, first.dtype)
            G = np.empty_like(u)
            loss = gradients.loss_and_gradient(A, model, y, rows, u, tail, G, rest)
            G = unpadded(G, self.n_features)
        weight = self.weight(rows.size)
        whole = np.concatenate([G.reshape(-1), rest]) if rest.size else np.ascontiguousarray(G)
        gradient: FloatArray = whole.astype(first.dtype, copy=False).reshape(self.shape)
        gradient *= gradient.dtype.type(weight)
        return float(loss) * weight, gradient

    def kernel_model(self) -> Any:
        """Return what kernels know of the problem, see ``kernels.models``."""
        raise NotImplementedError

    def kernel_rounds(self) -> Any:
        """Return compiled rounds for that model."""
        from fastfw.kernels import rounds

        return rounds.linear_rounds

    def _split(
        self, x: npt.ArrayLike, dtype: np.dtype[Any]
    ) -> tuple[FloatArray, npt.NDArray[np.float64]]:
        """Return the parameters that are linear in the features, in a dtype, and the others."""
        array = real_array(x, "x")
        if array.shape != self.shape:
            raise ValueError(f"x must have shape {self.shape}, but it has {array.shape}")
        m, d = self.first_layer
        flat = array.reshape(-1)
        first = flat[: m * d].reshape(m, d).astype(dtype, copy=False)
        return first, flat[m * d :].astype(np.float64)

    def logits(self, x: npt.ArrayLike, X: npt.ArrayLike) -> FloatArray:
        """Return the logits of every row of X, shape (n, C)."""
        raise NotImplementedError

    def gradient(self, x: npt.ArrayLike, batch: object) -> FloatArray:
        """Return the gradient at x on a batch, a new array of the problem's shape."""
        return self.loss_and_gradient(x, batch)[1]

    def predict(self, x: npt.ArrayLike, X: npt.ArrayLike) -> IndexArray:
        """Return the class of largest logit for every row of X; the lowest wins ties."""
        return np.asarray(np.argmax(self.logits(x, X), axis=1), dtype=np.intp)

    def accuracy(self, x: npt.ArrayLike, X: npt.ArrayLike, y: npt.ArrayLike) -> float:
        """Return the share of rows of X whose class is predicted as in `y`."""
        predicted = self.predict(x, X)
        return float(np.mean(predicted == labels(y, n_samples=len(predicted))))


@dataclass(frozen=True)
class SoftmaxRegression(Classification):
    r"""Multiclass logistic regression without intercept.

    .. math::

        f(W) = \frac1B \sum_i \log \sum_c e^{z_{ic}} - z_{i y_i}, \qquad Z = A W^T, \qquad
        \nabla f(W) = \frac1B (\text{softmax}(Z) - Y)^T A

    for a batch of B samples A with labels y, or Y in one-hot rows; ``reduction="sum"`` leaves the
    1/B out, as the paper does.

    Parameters
    ----------
    n_features : int
        d.
    n_classes : int
        C, at least 2.
    reduction : {"mean", "sum"}
        Mean or sum over the batch. Frank-Wolfe steps do not depend on it.

    Notes
    -----
    Features may be dense or, of any format of scipy.sparse, sparse: then losses and gradients cost
    O(nonzeros C), and gradients O(C d) for the result.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> problem = fw.SoftmaxRegression(n_features=3, n_classes=2)
    >>> batch = (np.eye(3), np.array([0, 1, 1]))
    >>> round(problem.loss(np.zeros((2, 3)), batch), 6)   # log 2
    0.693147
    >>> problem.gradient(np.zeros((2, 3)), batch).round(4)
    array([[-0.1667,  0.1667,  0.1667],
           [ 0.1667, -0.1667, -0.1667]])
    """

    #: Whether f is: gaps of decisions certify their losses.
    convex: ClassVar[bool] = True
    takes_codes: ClassVar[bool] = True

    n_features: int
    n_classes: int
    reduction: str = "mean"

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of W, (C, d)."""
        return self.n_classes, self.n_features

    @property
    def first_layer(self) -> tuple[int, int]:
        """Shape of W: all parameters are linear in the features."""
        return self.shape

    def kernel_model(self) -> Any:
        """None: there is nothing that kernels must know."""
        return None

    def logits(self, x: npt.ArrayLike, X: npt.ArrayLike) -> FloatArray:
        """Return the logits X xᵀ, shape (n, C)."""
        A = features(X, n_features=self.n_features, sparse=True)
        Z: FloatArray = A @ self._split(x, A.dtype)[0].T
        return Z

    def smoothness(self, X: npt.ArrayLike) -> float:
        """Return a Lipschitz constant of the gradient of f on any batch of rows of X.

        The Hessian of log-sum-exp is at most 1/2, so L = max ‖a‖² / 2 for the mean; for the sum it
        is Σ ‖a‖² / 2 over the rows given.
        """
        A: Any = features(X, n_features=self.n_features, sparse=True)
        squares = row_squares(A)
        return 0.5 * float(squares.max() if self.reduction == "mean" else squares.sum())
