"""What the scikit-learn estimator does before it fits: parameters, weights, columns in one unit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils import check_random_state, compute_sample_weight
from sklearn.utils.validation import _check_sample_weight

from fastfw._checks import (
    FloatArray,
    as_array,
    boolean,
    choice,
    float_dtype,
    non_negative_float,
    positive_float,
    positive_int,
    refuse_masks,
    shown,
)
from fastfw._csr import is_sparse
from fastfw._fitting import Look, Plan
from fastfw.experiments import methods
from fastfw.learners._base import OnlineLearner
from fastfw.schedules import as_schedule
from fastfw.sets._convex import radius_of

#: Methods by name: those that make one step a batch.
METHODS = {row.name.replace("-", "_"): row for row in methods.METHODS if not row.meta}
#: Parameters that a learner is made of, and that it cannot change later.
MADE_OF = (
    "method", "radius", "step", "momentum", "fit_intercept", "intercept_scaling", "scaling", "dtype"
)  # fmt: skip
# Sums of weights between these can be divided by and multiplied.
_LEAST, _MOST = 1e-200, 1e200


class Online(NamedTuple):
    """What `partial_fit` goes on from."""

    learner: OnlineLearner
    scale: FloatArray
    """Unit of each column; 0 where it had no entry yet."""
    looks: list[Look]
    """Where sums of decisions are known that a mean of the latest ones can begin from."""
    unit: float
    """Mean weight of the rows of the first call, or of `fit`."""
    made_of: dict[str, Any]
    """The parameters that the learner was made of."""


def check_parameters(given: Mapping[str, Any]) -> Plan:
    """Check all parameters of the estimator and return those that say how to fit."""
    method = choice(given["method"], "method", METHODS)
    if given["radius"] != "auto" or not isinstance(given["radius"], str):
        positive_float(given["radius"], "radius", wanted="a positive number or 'auto'")
        radius_of(given["radius"])
    for name in ("step", "momentum"):
        if given[name] is not None:
            as_schedule(given[name], name)
    if given["momentum"] is not None and not METHODS[method].momentum:
        raise ValueError(f"the method {method!r} has no momentum; leave momentum at None")
    boolean(given["fit_intercept"], "fit_intercept")
    positive_float(given["intercept_scaling"], "intercept_scaling")
    choice(given["scaling"], "scaling", ("max-abs", None))
    if given["dtype"] is not None:
        float_dtype(given["dtype"])
    _check_class_weight(given["class_weight"])
    _random_state(given["random_state"])
    return Plan(
        positive_int(given["batch_size"], "batch_size"),
        positive_int(given["max_iter"], "max_iter"),
        non_negative_float(given["tol"], "tol"),
        boolean(given["average"], "average"),
    )


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator seeded by scikit-learn's kind of random state."""
    return np.random.default_rng(_random_state(random_state).randint(2**31 - 1))


def _random_state(given: Any) -> Any:
    try:
        return check_random_state(given)
    except ValueError:
        raise ValueError(
            "random_state must be an integer from 0 to 2**32 - 1, a numpy.random.RandomState or "
            f"None, but it is {shown(given)}"
        ) from None


def sort_classes(classes: Any) -> npt.NDArray[Any]:
    """Return the labels that `partial_fit` is told of, sorted."""
    given = as_array(classes, "classes")
    if given.ndim != 1 or (given.dtype.kind == "f" and not np.isfinite(given).all()):
        raise ValueError(
            f"classes must be a list of labels, without NaN, but it is {shown(classes, bare=True)}"
        )
    try:
        return np.unique(given)
    except TypeError:
        raise TypeError(
            f"classes must be labels of one kind, but they are {shown(classes, bare=True)}"
        ) from None


# --- weights --------------------------------------------------------------------------------------


def _check_class_weight(given: Any) -> None:
    if isinstance(given, Mapping):
        for label, weight in given.items():
            non_negative_float(weight, f"class_weight[{label!r}]")
    elif given is not None and not (isinstance(given, str) and given == "balanced"):
        raise ValueError(
            "class_weight must be a dictionary of labels and weights, 'balanced' or None, but it "
            f"is {shown(given)}"
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
        weights = np.array(_check_sample_weight(sample_weight, X, dtype=np.float64))
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


def as_list(labels: npt.NDArray[Any]) -> list[Any]:
    """Return labels as objects of Python; dates, which it has not in all units, as NumPy's."""
    return list(labels) if labels.dtype.kind in "mM" else labels.tolist()


def _as_listed(label: Any, classes: npt.NDArray[Any]) -> Any:
    """Return a date or duration as `as_list` has it, whatever its type and unit."""
    kind = classes.dtype.kind
    if kind in "mM":
        with suppress(TypeError, ValueError):
            found = classes[classes == np.array(label, f"{kind}8")]
            return found[0] if found.size else label
    return label


# --- columns --------------------------------------------------------------------------------------


def column_scale(X: Any, scaling: str | None) -> FloatArray:
    """Return the largest magnitude of each column, 0 where it has no entry; ones for None."""
    if scaling is None:
        return np.ones(X.shape[1], X.dtype)
    if is_sparse(X):
        high, low = (np.asarray(a.toarray()).ravel() for a in (X.max(axis=0), X.min(axis=0)))
    else:
        high, low = X.max(axis=0), X.min(axis=0)
    scale = np.maximum(high, -low)
    scale[scale < np.finfo(X.dtype).tiny] = 0.0  # its reciprocal overflows
    return np.asarray(scale, X.dtype)


def grow_scale(scale: FloatArray, largest: FloatArray) -> FloatArray:
    """Return the scale after more rows: their largest magnitudes, but at most twice what it was.

    A column without an entry so far takes what comes.
    """
    with np.errstate(over="ignore"):
        return np.where(scale == 0.0, largest, np.clip(largest, scale, 2.0 * scale))


def divisors(scale: FloatArray) -> FloatArray:
    """Return what columns are divided by: their scale, 1 for those without an entry."""
    return np.where(scale == 0.0, scale.dtype.type(1.0), scale)


def scale_columns(X: Any, scale: FloatArray, intercept: float | None, *, clip: bool = False) -> Any:
    """Return X divided by the scale of its columns (no zeros), with a column for the intercept.

    With `clip` what then lies beyond [-1, 1] is put on its border.
    """
    n, d = X.shape
    with np.errstate(over="ignore"):
        beta = X.dtype.type(0.0 if intercept is None else intercept)
    if intercept is not None and (beta == 0.0 or not np.isfinite(beta)):
        raise ValueError(f"intercept_scaling is {intercept}, which {X.dtype} cannot hold")
    if is_sparse(X):
        data = X.data / scale[X.indices]
        if clip:
            np.clip(data, -1.0, 1.0, out=data)
        A: Any = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
        if intercept is not None:
            A = sparse.hstack([A, sparse.csr_array(np.full((n, 1), beta))], format="csr")
        return A
    if intercept is None and (scale == 1.0).all():
        return np.clip(X, -1.0, 1.0) if clip else X
    A = np.empty((n, d + (intercept is not None)), X.dtype)
    np.divide(X, scale, out=A[:, :d])
    if clip:
        np.clip(A[:, :d], -1.0, 1.0, out=A[:, :d])
    A[:, d:] = beta
    return A
