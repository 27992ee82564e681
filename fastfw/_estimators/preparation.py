"""What scikit-learn estimators do before they fit: parameters, weights, columns in one unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from joblib import effective_n_jobs
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from fastfw._checks import (
    FloatArray,
    as_list,
    boolean,
    choice,
    describe,
    features,
    float_dtype,
    non_negative_float,
    positive_float,
    positive_int,
    refuse_masks,
    share,
)
from fastfw._chunks import DaskChunks, is_dask
from fastfw._csr import assembled, csr_parts, is_sparse
from fastfw._estimators.fitting import Look, Plan, latest, latest_products
from fastfw._estimators.regression import LOSSES, Units
from fastfw.experiments import methods
from fastfw.learners._base import OnlineLearner
from fastfw.schedules import as_schedule
from fastfw.sets._convex import radius_of

#: Methods by name: those that make one step a batch, of a length that can be chosen.
METHODS = {row.name.replace("-", "_"): row for row in methods.METHODS if row.step and not row.meta}
#: Parameters that a learner is made of, and that it cannot change later.
MADE_OF = (
    "method", "radius", "vertex_size", "step", "momentum", "fit_intercept", "intercept_scaling",
    "scaling", "dtype", "loss", "quantile", "epsilon",
)  # fmt: skip
# The least and the largest positive number of a dtype.
_HELD = {
    np.dtype(real): (float(np.finfo(real).smallest_subnormal), float(np.finfo(real).max))
    for real in (np.float64, np.float32)
}
# Sums of weights between these can be divided by and multiplied.
_LEAST, _MOST = 1e-200, 1e200


class Online(NamedTuple):
    """What `partial_fit` goes on from."""

    learner: OnlineLearner
    scale: FloatArray | None
    """Unit of each column; 0 where it had no entry yet. None: columns are not scaled."""
    looks: list[Look]
    """Where sums of decisions are known that a mean of the latest ones can begin from."""
    unit: float
    """Mean weight of the rows of the first call, or of `fit`."""
    known: Any
    """The classes, or the units of targets, see `fastfw._estimators.regression.Units`."""
    parameters: dict[str, Any]
    """All parameters when they were checked last, and what they say of fitting."""
    plan: Plan


class Weights:
    """A model's weights: those of a fit, or of a learner as it is, made when they are asked for."""

    def __init__(
        self, online: Online, beta: float | None, since: Look | None, x: FloatArray | None = None
    ) -> None:
        self._online, self._beta, self._since, self._x = online, beta, since, x
        self._parts: tuple[Any, FloatArray] | None = None
        self._shown = False

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is made again when it is asked for, unless it may have been changed."""
        return {**vars(self), "_parts": self._parts if self._shown else None}

    def freeze(self) -> None:
        """Make the weights now, before the learner goes on."""
        self._made()

    @property
    def parts(self) -> tuple[Any, FloatArray]:
        """Weights of columns as they are given, and intercepts: what users see and may change."""
        self._shown = True
        return self._made()

    @parts.setter
    def parts(self, parts: tuple[Any, FloatArray]) -> None:
        self._parts, self._shown = parts, True

    def _made(self) -> tuple[Any, FloatArray]:
        if self._parts is None:
            learner, scale = self._online[:2]
            x = self._x
            if x is None:
                x = learner.play()
                if self._since is not None:
                    x = latest(learner, self._since, newest=True)
            W = _one_of_two(x.T).T
            d = W.shape[1] - (self._beta is not None)
            coef = W[:, :d] / divisors(scale) if scale is not None else W[:, :d].copy()
            bias = np.zeros(len(W)) if self._beta is None else W[:, d] * self._beta
            known = self._online.known
            if isinstance(known, Units):
                coef, bias = coef * W.dtype.type(known.one), bias * known.one + known.zero
            self._parts = coef, bias.astype(W.dtype)
        return self._parts

    def scores(self, X: Any) -> FloatArray:
        """Return X Wᵀ + b, for sparse features without writing out weights that nobody has seen."""
        if not self._shown and self._x is None and is_sparse(X):
            learner, scale = self._online[:2]
            by = None if scale is None else divisors(scale[X.indices])
            Z = latest_products(learner, self._since, scale_columns(X, by, self._beta))
            if Z is not None:
                return _one_of_two(Z)
        coef, bias = self._made()
        return np.asarray(X @ coef.T + bias)


def _one_of_two(columns: FloatArray) -> FloatArray:
    """Return a column a class; of two the difference, of the second and the first."""
    return columns[:, 1:] - columns[:, :1] if columns.shape[1] == 2 else columns


def check_parameters(given: Mapping[str, Any]) -> Plan:
    """Check all parameters of the estimator and return those that say how to fit."""
    method = choice(given["method"], "method", METHODS)
    if _auto(given, "radius", positive_float) is not None:
        radius_of(given["radius"])
    _auto(given, "vertex_size", positive_int)
    for name in ("step", "momentum"):
        if given[name] is not None:
            as_schedule(given[name], name)
    if given["momentum"] is not None and not METHODS[method].momentum:
        raise ValueError(f"the method {method!r} has no momentum; leave momentum at None")
    boolean(given["fit_intercept"], "fit_intercept")
    positive_float(given["intercept_scaling"], "intercept_scaling")
    choice(given["scaling"], "scaling", ("auto", "max-abs", "norm", None))
    if given["dtype"] is not None:
        float_dtype(given["dtype"])
    if "class_weight" in given:
        _check_class_weight(given["class_weight"])
        threads(given["n_jobs"])
    else:
        choice(given["loss"], "loss", LOSSES)
        positive_float(given["epsilon"], "epsilon")
        share(given["quantile"], "quantile")
    _random_state(given["random_state"])
    boolean(given["warm_start"], "warm_start")
    _auto(given, "early_stopping", boolean)
    return Plan(
        _auto(given, "batch_size", positive_int) or 0,
        positive_int(given["max_iter"], "max_iter"),
        non_negative_float(given["tol"], "tol"),
        boolean(given["average"], "average"),
        share(given["validation_fraction"], "validation_fraction"),
        positive_int(given["n_iter_no_change"], "n_iter_no_change"),
        bool(_verbosity(given["verbose"])),
    )


def _verbosity(given: Any) -> int:
    return given if isinstance(given, bool) else positive_int(given, "verbose", minimum=0)


def threads(n_jobs: Any) -> int | None:
    """Return how many threads share the rows of a batch; None: as the environment says."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool | np.bool_) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise TypeError(
            f"n_jobs must be an integer other than 0, or None, but it is {describe(n_jobs)}"
        )
    return int(effective_n_jobs(int(n_jobs)))


def _auto(given: Mapping[str, Any], name: str, check: Callable[[Any, str], Any]) -> Any:
    """Return a parameter that is checked so, None where it is "auto"."""
    value = given[name]
    if isinstance(value, str) and value == "auto":
        return None
    try:
        return check(value, name)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}; or give 'auto'") from None


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator seeded by scikit-learn's kind of random state."""
    return np.random.default_rng(_random_state(random_state).randint(2**31 - 1))


def _random_state(given: Any) -> Any:
    try:
        return check_random_state(given)
    except ValueError:
        raise ValueError(
            "random_state must be an integer from 0 to 2**32 - 1, a numpy.random.RandomState or "
            f"None, but it is {describe(given)}"
        ) from None


# --- weights --------------------------------------------------------------------------------------


def _check_class_weight(given: Any) -> None:
    if isinstance(given, Mapping):
        for label, weight in given.items():
            non_negative_float(weight, f"class_weight[{label!r}]")
    elif given is not None and not (isinstance(given, str) and given == "balanced"):
        raise ValueError(
            "class_weight must be a dictionary of labels and weights, 'balanced' or None, but it "
            f"is {describe(given)}"
        )


def row_weights(
    sample_weight: Any, class_weight: Any, X: Any, labels: npt.NDArray[Any], classes: Any
) -> npt.NDArray[np.float64] | None:
    """Return the weights of rows, checked, or None where none are given."""
    if sample_weight is None and class_weight is None:
        return None
    weights = np.ones(X.shape[0])
    if sample_weight is not None:
        refuse_masks(sample_weight, "sample_weight")
        if np.asarray(sample_weight).dtype.kind == "c":
            raise TypeError("sample_weight must hold real numbers, but it holds complex ones")
        weights = np.array(_check_sample_weight(sample_weight, labels, dtype=np.float64))
        if (weights < 0.0).any():
            i = int(np.argmax(weights < 0.0))
            raise ValueError(f"sample_weight[{i}] is {weights[i]}; weights must be at least 0")
    with np.errstate(over="ignore", under="ignore"):
        if isinstance(class_weight, str):
            weights *= compute_sample_weight("balanced", labels)
        elif class_weight is not None:
            weights *= _by_class(class_weight, classes)[labels]
        total = float(weights.sum())
    if not weights.any():
        raise ValueError("sample_weight, times class_weight, must not be 0 for all rows")
    if not _LEAST <= total <= _MOST:
        raise ValueError(
            f"sample_weight sums to {total:.3g}, where numbers lose their digits; multiply all "
            "weights by one factor: only their proportions count"
        )
    return weights


def drop_weightless(
    X: Any, labels: npt.NDArray[Any], weights: npt.NDArray[np.float64]
) -> tuple[Any, ...]:
    """Return the rows of weight above zero, their labels and weights."""
    rows = np.flatnonzero(weights)
    return (X, labels, weights) if rows.size == weights.size else (
        X[rows], labels[rows], weights[rows]
    )  # fmt: skip


def _by_class(given: Mapping[Any, float], classes: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the weight of each class, 1 where none is given."""
    names = as_list(classes)
    given = {_as_listed(label, classes): weight for label, weight in given.items()}
    strange = [label for label in given if label not in names]
    missing = [label for label in names if label not in given]
    if strange and missing:
        raise ValueError(
            f"class_weight has the label {strange[0]!r}, which is no class, and no weight for the "
            f"class {missing[0]!r}"
        )
    return np.array([float(given.get(label, 1.0)) for label in names])


# --- labels ---------------------------------------------------------------------------------------


def _as_listed(label: Any, classes: npt.NDArray[Any]) -> Any:
    """Return a date or duration as `as_list` has it, whatever its type and unit."""
    kind = classes.dtype.kind
    if kind in "mM":
        with suppress(TypeError, ValueError):
            found = classes[classes == np.array(label, f"{kind}8")]
            return found[0] if found.size else label
    return label


# --- columns --------------------------------------------------------------------------------------


def seen(X: Any, scale: FloatArray) -> tuple[Any, FloatArray, Any]:
    """Return columns that X has entries in, their scale from now on, and whose each entry is.

    The scale grows to the largest magnitude that was seen, but at most to twice what it was; a
    column without an entry so far, whose scale is 0, takes what comes.
    """
    columns: Any = slice(None)
    entries: Any = slice(None)
    if is_dask(X):
        parts = DaskChunks(X, np.zeros(X.shape[0], np.intp)).map(_largest)
        largest = np.maximum.reduce([*parts])
    elif not is_sparse(X):
        largest = np.maximum(X.max(axis=0), -X.min(axis=0))
    else:
        entries = X.indices
        if X.nnz < scale.size:
            columns, entries = np.unique(X.indices, return_inverse=True)
        largest = np.zeros(scale[columns].size, X.dtype)
        np.maximum.at(largest, entries, np.abs(X.data))
    largest[largest < np.finfo(X.dtype).tiny] = 0.0  # its reciprocal overflows
    before = scale[columns]
    with np.errstate(over="ignore"):
        most = np.where(before == 0.0, largest, 2.0 * before)
    return columns, np.minimum(np.maximum(largest, before), most), entries


def mean_norm(X: Any) -> Any:
    """Return the mean Euclidean norm of the rows that are not zero, 1 where all are."""
    if is_dask(X):
        parts = DaskChunks(X, np.zeros(X.shape[0], np.intp)).map(lambda X, y: _norms(X))
        norms = np.concatenate([*parts])
    else:
        norms = _norms(X)
    return X.dtype.type(norms.mean() if norms.size else 1.0)


def _norms(X: Any) -> npt.NDArray[np.float64]:
    squares = np.zeros(X.shape[0])
    if is_sparse(X):
        np.add.at(squares, np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.data**2)
    else:
        squares += np.einsum("ij,ij->i", X, X)
    norms: npt.NDArray[np.float64] = np.sqrt(squares[squares > 0.0])
    return norms


def _largest(X: Any, y: Any = None) -> FloatArray:
    """Return the largest magnitude of every column of a chunk."""
    return seen(X, np.zeros(X.shape[1], X.dtype))[1]


def divisors(scale: FloatArray) -> FloatArray:
    """Return what columns are divided by: their scale, 1 for those without an entry."""
    return np.where(scale == 0.0, scale.dtype.type(1.0), scale)


def _scale_chunk(chunk: Any, *, by: Any, intercept: Any, clip: bool, dtype: Any) -> Any:
    """As `scale_columns`, for the features of a chunk, with one number, or one a column."""
    X: Any = features(chunk, dtype=dtype, sparse=True)
    own = by[X.indices] if np.ndim(by) and is_sparse(X) else by
    return scale_columns(X, own, intercept, clip=clip)


def scale_columns(X: Any, by: Any, intercept: float | None, *, clip: bool = False) -> Any:
    """Return X divided by numbers that are not 0, with a column for the intercept.

    They are one for each column, or for each entry of a sparse matrix. With `clip` what then lies
    beyond [-1, 1] is put on its border.
    """
    n, d = X.shape
    if is_dask(X):
        scaled = partial(_scale_chunk, by=by, intercept=intercept, clip=clip, dtype=X.dtype)
        columns = (d + (intercept is not None),)
        return X.map_blocks(scaled, chunks=(X.chunks[0], columns), meta=X._meta)
    if intercept is not None and not _HELD[X.dtype][0] <= intercept <= _HELD[X.dtype][1]:
        raise ValueError(f"intercept_scaling is {intercept}, which {X.dtype} cannot hold")
    if is_sparse(X):
        indptr, indices, data = csr_parts(X)
        if by is not None:
            data = data / by
        if clip:
            data = np.clip(data, -1.0, 1.0)
        if intercept is None:
            return assembled(data, indices, indptr, X.shape)
        indptr = indptr + np.arange(n + 1, dtype=indptr.dtype)
        last = np.zeros(data.size + n, np.bool_)
        last[indptr[1:] - 1] = True  # a row ends with its intercept
        given = ~last
        longer, wider = np.empty(last.size, X.dtype), np.empty(last.size, indices.dtype)
        longer[given], longer[last] = data, intercept
        wider[given], wider[last] = indices, d
        return assembled(longer, wider, indptr, (n, d + 1))
    if intercept is None and by is None:
        return X
    A = np.empty((n, d + (intercept is not None)), X.dtype)
    if by is None:
        A[:, :d] = X
    else:
        np.divide(X, by, out=A[:, :d])
    if clip:
        np.clip(A[:, :d], -1.0, 1.0, out=A[:, :d])
    if intercept is not None:
        A[:, d] = intercept
    return A
