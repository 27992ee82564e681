"""A scikit-learn classifier: softmax regression in an l1 ball, fitted without projections.

Needs scikit-learn: ``pip install "fastfw[sklearn]"``.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, float_dtype, refuse_masks
from fastfw._chunks import DaskChunks, is_dask
from fastfw._csr import csr_features, is_sparse
from fastfw._fitting import START, Plan, Sample, batches, choose_radius, fit, look, weighted
from fastfw.problems import SoftmaxRegression
from fastfw.schedules import power_schedule
from fastfw.sets import RowL1Ball
from fastfw.streams import Dataset

try:
    from scipy import sparse
    from scipy.special import expit, log_expit, log_softmax, softmax
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.metrics import accuracy_score
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d

    from fastfw import _estimator
    from fastfw._displays import ProjectionFreeDisplay, WeightsDisplay
except ImportError as error:
    raise ImportError(
        'fastfw.sklearn needs scikit-learn; install it with pip install "fastfw[sklearn]"'
    ) from error

__all__ = ["ProjectionFreeClassifier", "ProjectionFreeDisplay", "WeightsDisplay"]

#: The radius of `partial_fit` where none is given.
_RADIUS = 30.0


def _of_chunks(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Give a Dask array for one: by the model as it is now, chunk by chunk when asked for."""

    @wraps(method)
    def of_any(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
        check_is_fitted(self)
        _check_width(self, X)
        self._weights.freeze()
        like = method(self, np.zeros((1, X.shape[1]), X.dtype))
        shape = {"drop_axis": 1} if like.ndim == 1 else {"chunks": (X.chunks[0], like.shape[1:])}
        return X.rechunk({1: -1}).map_blocks(
            partial(method, copy.copy(self)), meta=like[:0], **shape
        )

    return of_any


class ProjectionFreeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    r"""Multinomial logistic regression with a bound on every class's l1 norm.

    .. math::

        \min_{W, b} & \frac1n \sum_i \log \sum_c e^{z_{ic}} - z_{i y_i},
        \quad z_{ic} = W_c x_i + b_c, \\
        & \sum_j s_j |W_{cj}| + |b_c| / \beta \le r \text{ for every class } c

    by a Frank-Wolfe method, which moves by one weight per class and round: most weights stay zero.
    s_j is the largest magnitude in column j (1 for ``scaling=None``): the bound, and so the model,
    does not depend on the units of the features, and zeros of sparse data stay zeros.

    Parameters
    ----------
    method : {"orgfw", "osfw", "ofw", "oaw", "regularized_ofw"}
        The learner: `fastfw.ORGFW` and so on.
    radius : float or "auto"
        r. "auto" tries 1, 2, 5, 10, 20, ..., 1000 in this order, each with a tenth of the epochs,
        until one does no better on held-out rows (three folds up to 2,000 rows, else one tenth of
        the rows), and fits all data with the radius before that one. Better means that the loss
        falls by a twentieth of what it is, or of what it has fallen below log C so far if that is
        less, and that no more rows are misclassified, by two standard errors. Fewer than 100 rows
        are not split: r = 10.
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
        and `max_iter`; where it is still larger then, `fit` warns. 0: all of `max_iter` epochs, and
        no warning.
    class_weight : dict, "balanced" or None
        Weights of classes, as elsewhere in scikit-learn; they multiply sample weights. "balanced"
        is for `fit` alone.
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
    Losses and gradients of rows are multiplied by their weights, exactly; a row of weight two is as
    good as two rows. Where not all rows fit into one batch, heavy rows come several times a pass,
    with their weight divided among their copies. Only proportions count. In `partial_fit` they are
    proportions to the mean weight in the first call, or in `fit`: a row of twice that weight counts
    as two, in whatever call. A call counts for four times its rows, or for ``batch_size`` rows, at
    most.

    Dask arrays give the model that the same rows in memory give, up to 128 MB; of more, rows are
    shuffled among as many chunks as that is. Labels and weights are held in memory. Predictions for
    a Dask array are one, made when it is asked for.

    The path costs as much as its radii, which are few: large ones are not tried where smaller
    ones generalise better.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastfw.sklearn import ProjectionFreeClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProjectionFreeClassifier(radius=30.0, max_iter=2, tol=0.0).fit(X, y)
    >>> model.coef_.shape
    (3, 4)
    >>> bool(model.score(X, y) > 0.8)
    True
    """

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
        max_iter: int = 300,
        tol: float = 0.05,
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
        X : array_like, sparse matrix or Dask array, shape (n, d)
            Features. A Dask array, dense or of scipy CSR chunks, is gone through chunk by chunk.
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
            If a parameter or the data cannot be used; the message names it. The estimator is then
            as before.

        Warns
        -----
        ConvergenceWarning
            If the gap is larger than ``tol`` after ``max_iter`` epochs, or ``radius="auto"`` ended
            at the smallest or the largest radius that it tries.
        """
        with self._unless_refused():
            self._fit(X, y, sample_weight)
        for doubt in self._doubts():
            warnings.warn(doubt, ConvergenceWarning, stacklevel=2)
        return self

    def _doubts(self) -> Iterator[str]:
        """Yield what users of a fit should know."""
        if self.gap_ > self.tol > 0.0:
            yield (
                f"the Frank-Wolfe gap is {self.gap_:.3g} nats after max_iter={self.max_iter} "
                f"epochs, more than tol={self.tol:g}: the mean loss may exceed the least possible "
                "one by as much. Raise max_iter or tol, or lower the radius (now "
                f"{self.radius_:g}); with tol=0 that many epochs are taken without a warning"
            )
        radii = [radius for radius, _ in self.radius_path_]
        if not radii:
            return
        if self.radius_ == radii[-1]:
            yield (
                f"radius='auto' ended with {self.radius_:g}, the largest it tries, which still did "
                "better on held-out rows than a smaller one; try larger ones yourself"
            )
        elif self.radius_ == radii[0]:
            yield (
                f"radius='auto' took {self.radius_:g}, the smallest it tries: {radii[1]:g} did not "
                "do better on held-out rows. The features may tell little of the classes, or "
                "their scale asks for smaller radii, which you can try yourself"
            )

    def _fit(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None) -> None:
        parameters, plan = self._checked(None)
        X, y = self._validated(X, y, reset=True)
        classes, labels = np.unique(y, return_inverse=True)
        weights = _estimator.row_weights(sample_weight, self.class_weight, X, labels, classes)
        unit = 1.0
        if weights is not None:
            X, labels, weights = _estimator.drop_weightless(X, labels, weights)
            unit = float(weights.mean())
            weights = None if (weights == weights[0]).all() else weights / unit
        if np.ptp(labels) == 0:
            raise ValueError(
                f"y has one class only, {_estimator.as_list(classes)[labels[0]]!r}, where weights "
                "are not 0; at least two classes are needed"
            )
        scale, by, _ = self._scale(X)
        X = _estimator.scale_columns(X, by, self._beta)
        data = _labelled(X, labels, weights)
        rng = _estimator.generator(self.random_state)

        def learner(radius: float) -> Any:
            return self._learner(len(classes), data.n_features, radius, data.dtype)

        tried: list[tuple[float, float]] = []
        radius = self.radius
        if radius == "auto":
            radius, tried = choose_radius(learner, data, plan, rng)
        trained = learner(float(radius))
        found = fit(trained, Sample(data, np.arange(len(data))), plan, rng)
        self.classes_ = classes
        self.radius_, self.radius_path_ = float(radius), tried
        self.gap_, self.n_iter_ = found.gap, found.epochs
        self._online = _estimator.Online(trained, scale, found.looks, unit, parameters, plan)
        self._weights = _estimator.Weights(self._online, self._beta, None, found.x)

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
        X : array_like, sparse matrix or Dask array, shape (n, d)
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
        largest magnitude seen so far; when a later call brings a larger one, the scale at most
        doubles, and what lies beyond counts as that much. So one wild value at most halves the
        weights that its column has learned, and a column that grows for good is followed within a
        few calls. The bound, and the guarantees of the learners, hold for scaled columns.

        A call with few rows counts for less than one with many: every row counts the same.

        With sparse rows a call costs their nonzeros times the classes, however many features there
        are: `coef_` is made when it is asked for, and predictions on sparse rows do without. A call
        that Ctrl-C ends may have played some of its rounds.
        """
        with self._unless_refused():
            self._partial_fit(X, y, classes, sample_weight)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        first = not hasattr(self, "_online")
        online = None if first else self._online
        parameters, plan = self._checked(online)
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight 'balanced' needs all labels at once, which partial_fit does not have;"
                " give a dictionary, such as that of sklearn.utils.compute_class_weight"
            )
        if online is not None and parameters is not online.parameters:
            for name in _estimator.MADE_OF:
                value, now = online.parameters[name], parameters[name]
                if now is not value and now != value:
                    raise ValueError(
                        f"{name} was {value!r} when the model was begun and is {now!r} now, which "
                        "partial_fit cannot change; begin anew with sklearn.base.clone"
                    )
        known = None if first else self.classes_
        if classes is not None:
            given = _estimator.sort_classes(classes)
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
            label = _estimator.as_list(y[strange])[0]
            raise ValueError(f"y has the label {label!r}, which is not among the classes")
        weights = _estimator.row_weights(sample_weight, self.class_weight, X, labels, known)
        if weights is not None:
            X, labels, weights = _estimator.drop_weightless(X, labels, weights)
        if first:
            radius = _RADIUS if self.radius == "auto" else float(self.radius)
            width = X.shape[1] + bool(self.fit_intercept)
            learner = self._learner(len(known), width, radius, X.dtype)
            unit = 1.0 if weights is None else float(weights.mean())
            looks, scale = [START], None
        else:
            (learner, scale, looks, unit), radius = self._online[:4], self.radius_
        scale, by, grow = self._scale(X, scale)
        n = X.shape[0]
        total = float(n)
        if weights is not None or unit != 1.0:
            weights = (np.ones(n) if weights is None else weights) / unit
            total = min(float(weights.sum()), max(4.0 * n, float(plan.batch_size)))
            weights *= total / weights.sum()
            weights = None if (weights == 1.0).all() else weights
        X = _estimator.scale_columns(X, by, self._beta, clip=self.scaling is not None)
        data = _labelled(X, labels, weights)
        rounds = min(n, max(1, round(total / plan.batch_size)))
        if rounds > 1 and self._may_fail_between(radius):
            learner = copy.copy(learner)
        if rounds == 1 and isinstance(data, Dataset):
            learner.observe(data)
        else:
            for batch in batches(data, np.array_split(np.arange(n), rounds)):
                learner.observe(batch)
        # the newest decision counts too, so that the first batch already does
        since = looks[0] if plan.average else None
        if plan.average and learner.t - 1 >= 2 * (looks[-1].t - 1):
            looks = [looks[-1], look(learner)]
        grow()
        self.classes_, self.radius_ = known, radius
        self.gap_ = np.nan
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        if first:
            self.radius_path_ = []
        self._online = _estimator.Online(learner, scale, looks, unit, parameters, plan)
        self._weights = _estimator.Weights(self._online, self._beta, since)

    def _may_fail_between(self, radius: float) -> bool:
        """Whether a round of a call may fail once others have been played.

        Scaled features are at most 1: scores are then at most the radius, if the intercept's column
        is.
        """
        largest = radius * max(1.0, float(self.intercept_scaling))
        own = callable(self.step) or callable(self.momentum)
        return own or self.scaling is None or largest > 1e15

    # ------------------------------------------------------------------ using the model

    @property
    def coef_(self) -> Any:
        """Weights of the features, made when they are asked for."""
        return self._parts("coef_")[0]

    @coef_.setter
    def coef_(self, coef: Any) -> None:
        self._weights.parts = coef, self.intercept_

    @property
    def intercept_(self) -> FloatArray:
        """Intercepts, made when they are asked for."""
        return self._parts("intercept_")[1]

    @intercept_.setter
    def intercept_(self, intercept: FloatArray) -> None:
        self._weights.parts = self.coef_, intercept

    def _parts(self, name: str) -> tuple[Any, FloatArray]:
        if "_weights" not in vars(self):
            raise AttributeError(f"{name} is there after fit or partial_fit")
        return self._weights.parts

    @_of_chunks
    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores X Wᵀ + b, shape (n, C); for two classes (n,), those of the second."""
        check_is_fitted(self)
        X = _validate(self, X, reset=False, dtype=_DTYPES)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._weights.scores(X)
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
            raise ValueError(f"X[{row}] is so large that its scores overflow; rescale the features")
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @_of_chunks
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of largest score for every row of X."""
        scores = self.decision_function(X)
        chosen = scores > 0 if scores.ndim == 1 else np.argmax(scores, axis=1)
        labels: npt.NDArray[Any] = self.classes_[np.asarray(chosen, np.intp)]
        return labels

    @_of_chunks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the model's probabilities of the classes, in the order of `classes_`; (n, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.asarray(expit(np.column_stack([-scores, scores])))
        return np.asarray(softmax(scores, axis=1))

    @_of_chunks
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of `predict_proba`, of probabilities too small for it as well."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.asarray(log_expit(np.column_stack([-scores, scores])))
        return np.asarray(log_softmax(scores, axis=1))

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return the share of rows whose label is predicted as in `y`, weighted if asked."""
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            refuse_masks(given, name)
        if is_dask(X):
            found, weights = np.asarray(self.predict(X)), sample_weight
            return float(accuracy_score(np.asarray(y), found, sample_weight=weights))
        return float(super().score(X, y, sample_weight))

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

    @contextmanager
    def _unless_refused(self) -> Iterator[None]:
        """Put everything back as it was if what is done raises."""
        before = dict(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _checked(self, online: _estimator.Online | None) -> tuple[dict[str, Any], Plan]:
        """Return the parameters and what they say of fitting; checked unless they are as before."""
        if online is not None and not isinstance(self.class_weight, Mapping):  # it may change
            kept = online.parameters
            if all(getattr(self, name) is value for name, value in kept.items()):
                return kept, online.plan
        parameters = self.get_params(deep=False)
        return parameters, _estimator.check_parameters(parameters)

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, npt.NDArray[Any]]:
        dtype = _DTYPES if self.dtype is None else [float_dtype(self.dtype)]
        if is_dask(X):
            X, y = _rows_of_dask(self, X, y, reset, dtype)
        else:
            X, y = _validate(self, X, y, reset=reset, dtype=dtype)
        if reset or y.dtype.kind not in "biuUS":  # later labels have to be among the classes
            check_classification_targets(y)
        return X, y

    @property
    def _beta(self) -> float | None:
        """What the intercept's column holds; None without one."""
        return float(self.intercept_scaling) if self.fit_intercept else None

    def _scale(self, X: Any, scale: FloatArray | None = None) -> tuple[Any, Any, Any]:
        """Return the columns' scale so far, what X is divided by, and a call that lets it grow.

        A scale that has just been made is as large as it becomes already.
        """
        if self.scaling is None:
            return None, None, lambda: None
        first = scale is None
        scale = np.zeros(X.shape[1], X.dtype) if scale is None else scale
        columns, grown, entries = _estimator.seen(X, scale)
        if first:
            scale[columns] = grown
        return (
            scale,
            _estimator.divisors(grown)[entries],
            partial(scale.__setitem__, columns, grown),
        )

    def _learner(self, n_classes: int, width: int, radius: float, dtype: Any) -> Any:
        method = _estimator.METHODS[self.method]
        options: dict[str, Any] = {} if self.step is None else {"step": self.step}
        if method.momentum:
            default = power_schedule(1.0, 2.0 / 3.0)
            options["momentum"] = default if self.momentum is None else self.momentum
        # the sum: batches of different sizes count as their rows do
        problem = SoftmaxRegression(width, n_classes, "sum")
        kind = getattr(import_module("fastfw"), method.learner)
        return kind(problem, RowL1Ball((n_classes, width), radius), dtype=dtype, **options)


_DTYPES = [np.float64, np.float32]


def _labelled(X: Any, labels: npt.NDArray[Any], weights: Any) -> Any:
    """Return features, their columns scaled, with labels: data in memory, or in chunks."""
    if is_dask(X):
        return weighted(DaskChunks(X, labels), weights)
    make = Dataset._ready if is_sparse(X) else Dataset._weighted
    return make(X, labels, weights)


def _check_width(estimator: Any, X: Any) -> None:
    """Compare the columns of a Dask array with the model's, in scikit-learn's words."""
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix, but it is a Dask array of shape {X.shape}")
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _rows_of_dask(estimator: Any, X: Any, y: Any, reset: bool, dtypes: list[Any]) -> Any:
    """Check a Dask array, whose chunks are looked at when they are made, and its labels."""
    y = column_or_1d(np.asarray(y), warn=True)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity")
    DaskChunks(X, np.zeros(len(y), np.intp))  # refuses what has no rows of known number
    if reset:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    _check_width(estimator, X)
    X = X.rechunk({1: -1})
    wanted = X.dtype if X.dtype in dtypes else dtypes[0]
    return X if X.dtype == wanted else X.astype(wanted), y


def _validate(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Check data as the learners do, then as scikit-learn, which compares names and widths.

    Sparse rows for a model that knows their width are ready after the former, which for one row
    takes a fraction of the time.
    """
    for name, given in (("X", X), ("y", y)):
        refuse_masks(given, name)
    if is_sparse(X):
        X = csr_features(X)
        known = not options["reset"] and not hasattr(estimator, "feature_names_in_")
        if known and X.shape[1] == estimator.n_features_in_ and X.dtype in options["dtype"]:
            if isinstance(y, str):
                return X
            if isinstance(y, np.ndarray) and y.shape == X.shape[:1] and y.dtype.kind in "biuUS":
                return X, y
    options["accept_sparse"] = "csr"
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before scikit-learn 1.6
        return estimator._validate_data(X, y, **options)
    return validate_data(estimator, X, y, **options)
