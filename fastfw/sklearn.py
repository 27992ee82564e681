"""A scikit-learn classifier: softmax regression in an l1 ball, fitted without projections.

Needs scikit-learn: ``pip install "fastfw[sklearn]"``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import (
    FloatArray,
    float_dtype,
    fraction,
    non_negative_float,
    positive_float,
    positive_int,
)
from fastfw._csr import is_sparse
from fastfw._fitting import Plan, Sample, choose_radius, fit, frequencies
from fastfw.problems import SoftmaxRegression
from fastfw.schedules import power_schedule
from fastfw.sets import RowL1Ball
from fastfw.streams import Dataset, IndexedStream

try:
    from scipy import sparse
    from scipy.special import expit, softmax
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.utils import check_random_state, compute_sample_weight
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import _check_sample_weight, check_is_fitted
except ImportError as error:
    raise ImportError(
        'fastfw.sklearn needs scikit-learn; install it with pip install "fastfw[sklearn]"'
    ) from error

__all__ = ["ProjectionFreeClassifier"]

#: Methods by name: class and whether it takes a momentum.
_METHODS = {
    "orgfw": ("ORGFW", True),
    "osfw": ("OSFW", True),
    "ofw": ("OFW", False),
    "oaw": ("OAW", False),
    "regularized_ofw": ("RegularizedOFW", False),
}
#: The radius of `partial_fit` where none is given.
_RADIUS = 30.0


class ProjectionFreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Multinomial logistic regression with a bound on every class's l1 norm.

    .. math::

        \min_{W, b} \frac1n \sum_i \log \sum_c e^{z_{ic}} - z_{i y_i},
        \quad z_{ic} = W_c x_i + b_c,
        \quad \sum_j s_j |W_{cj}| + |b_c| / \beta \le r \text{ for every class } c

    by a Frank-Wolfe method, which moves by one weight per class and round: most weights stay zero.
    s_j is the largest magnitude in column j (1 for ``scaling=None``): the bound, and so the model,
    does not depend on the units of the features, and zeros of sparse data stay zeros.

    Parameters
    ----------
    method : {"orgfw", "osfw", "ofw", "oaw", "regularized_ofw"}
        The learner: `fastfw.ORGFW` and so on.
    radius : float or "auto"
        r. "auto" tries 1, 3, 10, 30, 100, 300, 1000 in this order, each with half the epochs, until
        the held-out loss rises (three folds up to 2,000 rows, else one tenth of the rows), and
        fits all data with the best one. Fewer than 100 rows are not split: r = 10.
    batch_size : int
        Rows per round. Where all rows fit into one batch, every round sees all of them.
    step : float, callable or None
        Step size in round t = 1, 2, ...; None is the method's own, 1/(t + 1) for ORGFW.
    momentum : float, callable or None
        Momentum in round t, for ORGFW and OSFW; None is (t + 1)^{-2/3}.
    average : bool
        The model is the mean of the latest decisions (about the last half of all), or the last
        one. The mean is closer to optimal and has hardly more nonzeros.
    fit_intercept : bool
        Whether there is an intercept b_c. It enters as one more feature, a column of ones times
        ``intercept_scaling``, so that it takes its part of the radius.
    intercept_scaling : float
        β: the larger, the less of the radius an intercept takes.
    scaling : {"max-abs", None}
        Whether columns are divided by their largest magnitude; `coef_` is in the units of X in any
        case. It takes a copy of the data.
    max_iter : int
        Epochs at most: shuffled passes over the data. An epoch has 64 rounds at least, so that
        small data is passed over more than once.
    tol : float
        Fitting ends where the Frank-Wolfe gap, which bounds how much the mean loss exceeds the
        least possible one, is at most this many nats. It is looked at after epochs 1, 2, 4, ...
    class_weight : dict, "balanced" or None
        Weights of classes, as elsewhere in scikit-learn; they multiply sample weights.
    dtype : {float64, float32} or None
        What is computed in. None: float32 for float32 features, else float64.
    random_state : int, RandomState or None
        For the order of the rows, and which are held out.

    Attributes
    ----------
    classes_ : ndarray, shape (C,)
        Labels, sorted.
    coef_ : ndarray, shape (C, d), or (1, d) for two classes
        Weights W; for two classes the difference of the second and the first class's.
    intercept_ : ndarray, shape (C,) or (1,)
        Intercepts b.
    radius_ : float
        The radius in use.
    radius_path_ : list of (float, float)
        Radii that were tried and their held-out losses; empty unless ``radius="auto"`` and fit.
    gap_ : float
        Frank-Wolfe gap of the model on the training data, in nats: no weights within the bound have
        a mean loss lower than the model's by more than this. NaN after `partial_fit`.
    n_iter_ : int
        Epochs of the last `fit` (without those for the radius), or calls of `partial_fit`.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, where X has string column names.

    Notes
    -----
    Sample weights are frequencies: a row of weight two is drawn twice as often as one of weight
    one. Where all rows fit into one batch and weights are integers that is exact.

    The path costs as much as its radii, which are few: large ones are not tried where smaller
    ones generalise better.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastfw.sklearn import ProjectionFreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProjectionFreeClassifier(radius=30.0, max_iter=2).fit(X, y)
    >>> model.coef_.shape
    (3, 4)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

    coef_: Any

    def __init__(
        self,
        method: str = "orgfw",
        radius: float | str = "auto",
        *,
        batch_size: int = 256,
        step: float | Callable[[int], float] | None = None,
        momentum: float | Callable[[int], float] | None = None,
        average: bool = True,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        scaling: str | None = "max-abs",
        max_iter: int = 30,
        tol: float = 1e-3,
        class_weight: Mapping[Any, float] | str | None = None,
        dtype: npt.DTypeLike | None = None,
        random_state: Any = 0,
    ) -> None:
        self.method = method
        self.radius = radius
        self.batch_size = batch_size
        self.step = step
        self.momentum = momentum
        self.average = average
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.scaling = scaling
        self.max_iter = max_iter
        self.tol = tol
        self.class_weight = class_weight
        self.dtype = dtype
        self.random_state = random_state

    # ------------------------------------------------------------------ fitting

    def fit(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None
    ) -> ProjectionFreeClassifier:
        """Fit the model to labelled data.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n, d)
            Features.
        y : array_like, shape (n,)
            Labels of any type, of two classes or more.
        sample_weight : array_like, shape (n,), optional
            Weights, at least 0; see the class's notes.

        Returns
        -------
        ProjectionFreeClassifier
            The estimator itself.

        Raises
        ------
        TypeError, ValueError
            If a parameter or the data cannot be used; the message names it.
        """
        plan = self._plan()
        X, y = self._validated(X, y, reset=True)
        classes, labels = np.unique(y, return_inverse=True)
        weights = self._weights(X, y, sample_weight)
        if weights is not None:
            used = np.flatnonzero(weights)
            if used.size < len(labels):
                X, labels, weights = X[used], labels[used], weights[used]
            if (weights == weights[0]).all():
                weights = None
        if np.ptp(labels) == 0:
            raise ValueError(
                f"y has one class only, {classes.tolist()[labels[0]]!r}, where weights are not 0; "
                "at least two classes are needed"
            )
        scale = self._column_scale(X)
        data = Dataset(self._scaled(X, scale), labels)
        sample = Sample(data, np.arange(len(labels), dtype=np.intp), weights)
        rng = self._generator()

        def learner(radius: float) -> Any:
            return self._learner(len(classes), data.n_features, radius, data.dtype)

        tried: list[tuple[float, float]] = []
        radius = self.radius
        if radius == "auto":
            radius, tried = choose_radius(learner, sample, plan, rng)
        trained = learner(float(radius))
        found = fit(trained, sample, plan, rng)
        self.classes_ = classes
        self.radius_, self.radius_path_ = float(radius), tried
        self.gap_, self.n_iter_ = found.gap, found.epochs
        self._state = (trained, scale, rng, [(1, np.zeros(trained.set.shape))])
        self._show(found.x, scale)
        return self

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> ProjectionFreeClassifier:
        """Learn from one more batch: rounds of online learning, in the order of the rows.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n, d)
            Features. More than ``1.5 * batch_size`` rows are several rounds.
        y : array_like, shape (n,)
            Labels, all of them among the classes.
        classes : array_like, shape (C,), optional
            All labels there will be; needed in the first call, and only there.
        sample_weight : array_like, shape (n,), optional
            Weights, at least 0; see the class's notes.

        Returns
        -------
        ProjectionFreeClassifier
            The estimator itself.

        Raises
        ------
        TypeError, ValueError
            If a parameter or the data cannot be used; the message names it. The model is then as
            before.

        Notes
        -----
        ``radius="auto"`` means 30 here, or what an earlier `fit` chose. Columns are scaled by the
        largest magnitude seen so far.
        """
        self._plan()
        first = not hasattr(self, "_state")
        known = None if first else self.classes_
        if classes is not None:
            given = np.unique(np.asarray(classes))
            if known is not None and not np.array_equal(known, given):
                raise ValueError(f"classes are {given}, but in the first call they were {known}")
            known = given
        if known is None:
            raise ValueError("classes must be given in the first call of partial_fit")
        if len(known) < 2:
            raise ValueError(f"classes must be at least two, but they are {known}")
        X, y = self._validated(X, y, reset=first)
        labels = np.minimum(np.searchsorted(known, y), len(known) - 1)
        strange = known[labels] != y
        if strange.any():
            raise ValueError(
                f"y has the label {y[strange].tolist()[0]!r}, which is not among the classes"
            )
        weights = self._weights(X, y, sample_weight, known)
        if first:
            radius = _RADIUS if self.radius == "auto" else float(self.radius)
            width = X.shape[1] + bool(self.fit_intercept)
            learner = self._learner(len(known), width, radius, X.dtype)
            scale, rng = np.zeros(X.shape[1], X.dtype), self._generator()
            looks = [(1, np.zeros(learner.set.shape))]
        else:
            learner, scale, rng, looks = self._state
            learner, rng, radius = copy.copy(learner), copy.deepcopy(rng), self.radius_
        scale = np.maximum(scale, self._column_scale(X, empty=0.0))
        data = Dataset(self._scaled(X, np.where(scale == 0.0, scale.dtype.type(1), scale)), labels)
        rows = np.arange(len(data), dtype=np.intp)
        if weights is not None:
            rows = np.repeat(rows, frequencies(weights, len(rows), len(rows), rng))
        for part in np.array_split(rows, max(1, round(rows.size / self.batch_size))):
            learner.run(IndexedStream(data, part[np.newaxis]))
        x = learner.play()
        if self.average:
            total = learner.average * np.float64(learner.t - 1)
            since, before = looks[0]
            # the newest decision counts too, so that the first batch already does
            x = ((total - before + x) / (learner.t - since + 1)).astype(x.dtype)
            if learner.t - 1 >= 2 * (looks[-1][0] - 1):
                looks = [looks[-1], (learner.t, total)]
        self.classes_, self.radius_ = known, radius
        self.gap_ = np.nan
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        if first:
            self.radius_path_ = []
        self._state = (learner, scale, rng, looks)
        self._show(x, np.where(scale == 0.0, scale.dtype.type(1), scale))
        return self

    # ------------------------------------------------------------------ using the model

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores X Wᵀ + b, shape (n, C); for two classes (n,), those of the second."""
        check_is_fitted(self)
        X = _validate(self, X, reset=False, accept_sparse="csr", dtype=_DTYPES)
        scores: FloatArray = np.asarray(X @ self.coef_.T + self.intercept_)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of largest score for every row of X."""
        scores = self.decision_function(X)
        chosen = scores > 0 if scores.ndim == 1 else np.argmax(scores, axis=1)
        labels: npt.NDArray[Any] = self.classes_[np.asarray(chosen, np.intp)]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the model's probabilities of the classes, in the order of `classes_`; (n, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            p = expit(scores)
            return np.column_stack([1.0 - p, p]).astype(p.dtype, copy=False)
        probabilities: FloatArray = softmax(scores, axis=1)
        return probabilities

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def sparsify(self) -> ProjectionFreeClassifier:
        """Make `coef_` a sparse matrix; `densify` undoes it."""
        check_is_fitted(self)
        self.coef_ = sparse.csr_matrix(self.coef_)
        return self

    def densify(self) -> ProjectionFreeClassifier:
        """Make `coef_` a dense array again."""
        check_is_fitted(self)
        if is_sparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    # ------------------------------------------------------------------ plumbing

    def __sklearn_tags__(self) -> Any:
        """Say that sparse features are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _plan(self) -> Plan:
        """Check the parameters."""
        if self.method not in _METHODS:
            raise ValueError(f"method must be one of {list(_METHODS)}, but it is {self.method!r}")
        if self.momentum is not None and not _METHODS[self.method][1]:
            raise ValueError(f"the method {self.method!r} has no momentum; leave momentum at None")
        if self.scaling not in ("max-abs", None):
            raise ValueError(f"scaling must be 'max-abs' or None, but it is {self.scaling!r}")
        if isinstance(self.radius, str):
            if self.radius != "auto":
                raise ValueError(f"radius must be a number or 'auto', but it is {self.radius!r}")
        else:
            positive_float(self.radius, "radius")
        for name in ("step", "momentum"):
            value = getattr(self, name)
            if value is not None and not callable(value):
                fraction(value, name)
        positive_float(self.intercept_scaling, "intercept_scaling")
        if self.dtype is not None:
            float_dtype(self.dtype)
        return Plan(
            positive_int(self.batch_size, "batch_size"),
            positive_int(self.max_iter, "max_iter"),
            non_negative_float(self.tol, "tol"),
            bool(self.average),
        )

    def _generator(self) -> np.random.Generator:
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31 - 1))

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, npt.NDArray[Any]]:
        dtype = _DTYPES if self.dtype is None else float_dtype(self.dtype)
        X, y = _validate(self, X, y, reset=reset, accept_sparse="csr", dtype=dtype)
        check_classification_targets(y)
        return X, y

    def _weights(
        self, X: Any, y: npt.NDArray[Any], sample_weight: Any, classes: Any = None
    ) -> npt.NDArray[np.float64] | None:
        """Return the weights of rows, or None where all are the same."""
        if sample_weight is None and self.class_weight is None:
            return None
        weights = np.array(_check_sample_weight(sample_weight, X, dtype=np.float64))
        if self.class_weight is not None:
            weights *= compute_sample_weight(self.class_weight, y)
        if (weights < 0.0).any():
            raise ValueError(f"sample_weight must be at least 0, but it holds {weights.min()}")
        if not weights.any():
            raise ValueError("sample_weight must not be 0 for all rows")
        return weights

    def _column_scale(self, X: Any, empty: float = 1.0) -> FloatArray:
        """Return the largest magnitude of each column, `empty` where there is none."""
        if self.scaling is None:
            return np.ones(X.shape[1], X.dtype)
        if is_sparse(X):
            high, low = (np.asarray(a.toarray()).ravel() for a in (X.max(axis=0), X.min(axis=0)))
        else:
            high, low = X.max(axis=0), X.min(axis=0)
        scale = np.maximum(high, -low)
        # below it a reciprocal overflows
        scale = np.where(scale < np.finfo(X.dtype).tiny, X.dtype.type(empty), scale)
        return np.asarray(scale, X.dtype)

    def _scaled(self, X: Any, scale: FloatArray) -> Any:
        """Return X divided by the scale of its columns, with the intercept's column."""
        n, d = X.shape
        beta = X.dtype.type(self.intercept_scaling)
        if is_sparse(X):
            data = X.data / scale[X.indices]
            A: Any = sparse.csr_array((data, X.indices, X.indptr), shape=X.shape)
            if self.fit_intercept:
                A = sparse.hstack([A, sparse.csr_array(np.full((n, 1), beta))], format="csr")
            return A
        if not self.fit_intercept and self.scaling is None:
            return X
        A = np.empty((n, d + bool(self.fit_intercept)), X.dtype)
        np.divide(X, scale, out=A[:, :d])
        A[:, d:] = beta
        return A

    def _learner(self, n_classes: int, width: int, radius: float, dtype: Any) -> Any:
        name, has_momentum = _METHODS[self.method]
        options: dict[str, Any] = {} if self.step is None else {"step": self.step}
        if has_momentum:
            default = power_schedule(1.0, 2.0 / 3.0)
            options["momentum"] = default if self.momentum is None else self.momentum
        problem = SoftmaxRegression(width, n_classes)
        kind = getattr(import_module("fastfw"), name)
        return kind(problem, RowL1Ball((n_classes, width), radius), dtype=dtype, **options)

    def _show(self, x: FloatArray, scale: FloatArray) -> None:
        """Set the model's attributes from weights of scaled columns."""
        W = x[1:] - x[:1] if len(x) == 2 else x
        self.coef_ = W[:, : len(scale)] / scale
        if self.fit_intercept:
            self.intercept_ = W[:, -1] * W.dtype.type(self.intercept_scaling)
        else:
            self.intercept_ = np.zeros(len(W), W.dtype)


_DTYPES = [np.float64, np.float32]


def _validate(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Check data as scikit-learn does, and remember or compare its width and feature names."""
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before scikit-learn 1.6
        return estimator._validate_data(X, y, **options)
    return validate_data(estimator, X, y, **options)
