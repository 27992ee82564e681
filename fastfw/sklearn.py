"""Estimators of scikit-learn: linear models in an l1 ball, fitted without projections.

Needs scikit-learn: ``pip install "fastfw[sklearn]"``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import (
    FloatArray,
    as_list,
    class_numbers,
    features,
    float_dtype,
    refuse_masks,
    sort_classes,
)
from fastfw._chunks import DaskChunks, is_dask
from fastfw._csr import is_sparse
from fastfw._estimators.fitting import MANY, weighted
from fastfw.problems import SoftmaxRegression
from fastfw.streams import Dataset

try:
    from scipy import sparse
    from scipy.special import expit, log_expit, log_softmax, softmax
    from sklearn.base import ClassifierMixin, RegressorMixin
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, column_or_1d

    from fastfw._estimators import preparation, regression
    from fastfw._estimators.displays import ProjectionFreeDisplay, WeightsDisplay
    from fastfw._estimators.projection_free import (
        DTYPES,
        Labelled,
        ProjectionFree,
        check_width,
        of_chunks,
    )
except ImportError as error:
    raise ImportError(
        'fastfw.sklearn needs scikit-learn; install it with pip install "fastfw[sklearn]"'
    ) from error

__all__ = [
    "ProjectionFreeClassifier",
    "ProjectionFreeDisplay",
    "ProjectionFreeRegressor",
    "WeightsDisplay",
]


#: Sparse features of so many entries are made dense where that makes rounds compiled.
_SMALL = 1 << 24


@dataclass(eq=False, repr=False)
class ProjectionFreeClassifier(ClassifierMixin, ProjectionFree):  # type: ignore[misc]
    r"""Multinomial logistic regression with a bound on every class's l1 norm.

    .. math::

        \min_{W, b} & \frac1n \sum_i \log \sum_c e^{z_{ic}} - z_{i y_i},
        \quad z_{ic} = W_c x_i + b_c, \\
        & \sum_j s_j |W_{cj}| + |b_c| / \beta \le r \text{ for every class } c

    by a Frank-Wolfe method, which moves by one weight per class and round: most weights stay zero.
    s_j is the largest magnitude in column j: the bound, and so the model, does not depend on the
    units of the features, and zeros of sparse data stay zeros.

    Parameters
    ----------
    method : str
        The learner: "orgfw" for `fastfw.ORGFW`, "regularized_ofw" for `fastfw.RegularizedOFW` and
        so on, of those that take steps and call the oracle once a round; the error for any other
        name lists them.
    radius : float or "auto"
        r. "auto" tries 1, 2, 5, 10, 20, ..., 1000 in this order, each with a tenth of the epochs,
        until one does no better on held-out rows (three folds up to 2,000 rows, else one tenth of
        the rows), and fits all data with the radius before that one. Better means that the loss
        falls by a twentieth of what it is, or of what it has fallen below log C so far if that is
        less, and that no more rows are misclassified, by two standard errors. Fewer than 100 rows
        are not split: r = 10. Of many features, which here are sparse ones of more than 1,000
        columns, it tries 300, 1000 and 3000, each for two epochs, and better means that fewer
        rows are misclassified by a standard error, too.
    vertex_size : int or "auto"
        k: how many weights of a class a round moves towards, each at most r/k in size. The bound is
        then ``max(|s_j W_cj|) <= r / k`` as well. "auto" is 1, and r/6 for many features: one
        round brings in many words.
    batch_size : int or "auto"
        Rows per round. Where all rows fit into one batch, every round sees all of them. "auto" is
        256 in `fit` and 4 in `partial_fit`, which sees a row once; for many features 24 in both.
    step : float, callable or None
        Step size in round t = 1, 2, ...; None is the method's own, 1/(t + 1) for ORGFW.
    momentum : float, callable or None
        Momentum in round t, for methods that have one; None is (t + 1)^{-2/3}.
    average : bool
        The model is the mean of the latest decisions (about the last half of all), or the last
        one. The mean is closer to optimal and has hardly more nonzeros.
    fit_intercept : bool
        Whether there is an intercept b_c. It enters as one more feature, a column of ones times
        ``intercept_scaling``, so that it takes its part of the radius.
    intercept_scaling : float
        β: the larger, the less of the radius an intercept takes. With ``scaling="norm"`` the column
        holds a tenth of it.
    scaling : {"auto", "max-abs", "norm", None}
        Whether columns are divided by their largest magnitude; or all by one number, the mean norm
        of the rows that `fit` or the first call of `partial_fit` sees, which leaves rare words
        rare. "auto" is the former, and the latter for many features. `coef_` is in the units of X
        in any case. It takes a copy of the data.
    max_iter : int
        Epochs at most: shuffled passes over the data. An epoch has 64 rounds at least, so that
        small data is passed over more than once.
    tol : float
        Fitting ends where the Frank-Wolfe gap, which bounds how much the mean loss exceeds the
        least possible one, is at most this many nats. It is looked at after epochs 1, 2, 4, ...
        and ``max_iter``; where it is still larger then, `fit` warns. 0: all of ``max_iter`` epochs,
        and no warning.
    early_stopping : bool or "auto"
        Whether `fit` also ends where the loss on held-out rows has not fallen by ``tol`` for
        ``n_iter_no_change`` epochs. "auto": for many features. Of these the held-out rows are
        learned in the end as well: all rows are, in half as many epochs again, but one at least,
        as far as ``max_iter`` allows. Then the least weights, which together are a hundredth of
        ``sum(abs(W))``, are left out, about half of all. Of few features, held-out rows are not
        fitted to.
    validation_fraction : float
        The part of each class that is held out then.
    n_iter_no_change : int
        See ``early_stopping``.
    warm_start : bool
        Whether `fit` goes on where an earlier `fit` or `partial_fit` ended, with the same classes
        and the radius in use.
    verbose : int
        Whether `fit` prints a line for each look at the gap and each radius.
    n_jobs : int or None
        Threads that share the rows of a batch, in rounds of dense features; -1 for one a core. A
        number always gives the same bits. None: 1, or what the environment variable
        FASTFW_NUM_THREADS says.
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
    feature_scale_ : ndarray, shape (d,)
        Scales s: what columns were divided by, see `scaling`. ``coef_ * feature_scale_`` is what
        the radius counts, and tells which columns matter; `coef_` alone depends on their units.
    radius_ : float
        The radius in use.
    vertex_size_ : int
        The k in use.
    validation_loss_ : ndarray
        Loss on held-out rows after each epoch, with early stopping alone.
    radius_path_ : list of (float, float)
        Radii that were tried and their held-out losses; empty unless ``radius="auto"`` and fit.
    gap_ : float
        Frank-Wolfe gap of the model on the training data, in nats: no weights within the bound have
        a mean loss lower than the model's by more than this. NaN after `partial_fit`.
    n_iter_ : int
        Epochs of the last `fit` (without those for the radius), of 64 rounds at least, and one more
        for each call of `partial_fit` since, whatever its rows and rounds.
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
    as two, in whatever call. A call counts for four times its rows, or for ``batch_size`` rows
    (as in `fit`), at most.

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

    method: str = "orgfw"
    radius: float | str = "auto"
    _: KW_ONLY
    tol: float = 0.05
    n_jobs: int | None = None
    class_weight: Mapping[Any, float] | str | None = None

    _unit = " nats"

    # ------------------------------------------------------------------ fitting

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
            Features. More than ``1.5 * batch_size`` rows, by default 6, are several rounds.
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
        ``radius="auto"`` means 30 here, for many features 100 a class (1000 at least, 3000 at
        most), or what an earlier `fit` chose. Columns are scaled by the largest magnitude seen so
        far; when a later call brings a larger one, the scale at most doubles, and what lies beyond
        counts as that much. So one wild value at most halves the weights that its column has
        learned, and a column that grows for good is followed within a few calls. The bound, and the
        guarantees of the learners, hold for scaled columns.

        A call with few rows counts for less than one with many: every row counts the same.

        After `fit` a call refines the model. The learner goes on from its last round with steps as
        short as they have become, by default 1/(t + 1) after t rounds; what was learned is not
        forgotten but outweighed, the more slowly the longer the fit was.

        With sparse rows a call costs their nonzeros times the classes, however many features there
        are: `coef_` is made when it is asked for, and predictions on sparse rows do without. A call
        that Ctrl-C ends may have played some of its rounds.
        """
        self._or_as_before(self._learn, X, y, sample_weight, classes)
        return self

    def _known(self, online: Any, classes: Any = None) -> Any:
        if isinstance(self.class_weight, str):
            raise ValueError(
                "class_weight 'balanced' needs all labels at once, which partial_fit does not have;"
                " give a dictionary, such as that of sklearn.utils.compute_class_weight"
            )
        known = super()._known(online)
        if classes is not None:
            given = sort_classes(classes)
            if known is not None and not np.array_equal(known, given):
                raise ValueError(f"classes are {given}, but in the first call they were {known}")
            known = given
        if known is None:
            raise ValueError("classes must be given in the first call of partial_fit")
        if len(known) < 2:
            raise ValueError(f"classes must be at least two, but they are {known}")
        return known

    def _label(self, X: Any, y: Any, sample_weight: Any, known: Any, *, whole: bool) -> Labelled:
        if known is None:
            known, labels = np.unique(y, return_inverse=True)
        else:
            labels = class_numbers(y, known)
        weights = preparation.row_weights(sample_weight, self.class_weight, X, labels, known)
        if weights is not None:
            X, labels, weights = preparation.drop_weightless(X, labels, weights)
        if whole and np.ptp(labels) == 0:
            raise ValueError(
                f"y has one class only, {as_list(known)[labels[0]]!r}, where weights "
                "are not 0; at least two classes are needed"
            )
        return Labelled(X, labels, weights, known)

    def _problem(self, n_rows: int, width: int, X: Any) -> Any:
        # the sum: batches of different sizes count as their rows do
        return SoftmaxRegression(width, n_rows, "sum")

    def _dataset(self, X: Any, labelled: Labelled) -> Any:
        if is_dask(X):
            return weighted(DaskChunks(X, labelled.y), labelled.weights)
        A = X if is_sparse(X) else features(X)
        return Dataset._ready(A, labelled.y, labelled.weights, len(labelled.known))

    def _n_rows(self, known: Any) -> int:
        return len(known)

    def _keep(self, known: Any) -> None:
        self.classes_ = known

    def _validated(self, X: Any, y: Any, *, reset: bool, **options: Any) -> tuple[Any, Any]:
        if is_dask(X):
            X, y = _rows_of_dask(self, X, y, reset)
        else:
            X, y = super()._validated(X, y, reset=reset, **options)
        if reset or y.dtype.kind not in "biuUS":  # later labels have to be among the classes
            check_classification_targets(y)
        return X, y

    # ------------------------------------------------------------------ using the model

    @of_chunks
    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores X Wᵀ + b, shape (n, C); for two classes (n,), those of the second."""
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @of_chunks
    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label of largest score for every row of X."""
        scores = self.decision_function(X)
        chosen = scores > 0 if scores.ndim == 1 else np.argmax(scores, axis=1)
        labels: npt.NDArray[Any] = self.classes_[np.asarray(chosen, np.intp)]
        return labels

    @of_chunks
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the model's probabilities of the classes, in the order of `classes_`; (n, C)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.asarray(expit(np.column_stack([-scores, scores])))
        return np.asarray(softmax(scores, axis=1))

    @of_chunks
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

    def to_logistic_regression(self) -> Any:
        """Return scikit-learn's logistic regression with these weights.

        It predicts the same and needs no fastfw: for tools that know scikit-learn's own models,
        such as converters to ONNX.

        Returns
        -------
        LogisticRegression
            Fitted, its parameters the defaults of its class. Its weights are copies.
        """
        check_is_fitted(self)
        coef = self.coef_.toarray() if is_sparse(self.coef_) else self.coef_
        twin = LogisticRegression()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self, name):
                setattr(twin, name, getattr(self, name))
        twin.classes_, twin.coef_, twin.intercept_ = (
            np.array(part) for part in (self.classes_, coef, self.intercept_)
        )
        twin.n_iter_ = np.array([self.n_iter_], np.int32)
        return twin


@dataclass(eq=False, repr=False)
class ProjectionFreeRegressor(RegressorMixin, ProjectionFree):  # type: ignore[misc]
    r"""Linear regression with a bound on the l1 norm of the weights.

    .. math::

        \min_{w, b} & \frac1n \sum_i \ell(w \cdot x_i + b - y_i) \\
        & \sum_j s_j |w_j| + |b - m| / \beta \le r u

    by a Frank-Wolfe method, as `ProjectionFreeClassifier` has it. Numbers to predict are counted
    from m in units of u: mean and standard deviation of the targets, or median and 1.4826 median
    absolute deviations for the robust losses. So neither their unit nor their zero matters.

    Parameters
    ----------
    loss : {"squared_error", "huber", "quantile"}
        ℓ: half the square; the same up to ``epsilon`` and linear beyond; or that whose minimum is a
        quantile, rounded within 0.02 u of its corner.
    radius : float or "auto"
        r. "auto" tries 1, 2, 5, 10, 20, ..., 1000 as `ProjectionFreeClassifier` does, until the
        held-out loss falls by less than a twentieth.
    epsilon : float
        Where Huber's loss becomes linear, in units of u.
    quantile : float
        Which quantile, between 0 and 1.
    method, vertex_size, batch_size, step, momentum, average, fit_intercept, intercept_scaling
        As `ProjectionFreeClassifier`.
    scaling, max_iter, early_stopping, validation_fraction, n_iter_no_change, warm_start, verbose
        As `ProjectionFreeClassifier`.
    tol : float
        As `ProjectionFreeClassifier`, for losses of targets in units of u: for squares a gap of
        0.005 is a hundredth of R² at most.
    dtype, random_state
        As `ProjectionFreeClassifier`.

    Attributes
    ----------
    coef_ : ndarray, shape (d,)
        Weights w.
    intercept_ : float
        Intercept b.
    feature_scale_, radius_, vertex_size_, radius_path_, validation_loss_, n_iter_
        As those of `ProjectionFreeClassifier`.
    gap_ : float
        Frank-Wolfe gap of the model on the training data, for losses of targets in units of u.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Their names, where X has string column names.

    Notes
    -----
    On dense features, and on sparse ones that are small enough to be made dense, rounds are
    compiled, of a function: its adapter takes a second or two to compile in each process that fits.
    On other sparse features they are composed of oracle calls.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from fastfw.sklearn import ProjectionFreeRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ProjectionFreeRegressor(radius=5.0).fit(X, y)
    >>> model.coef_.shape
    (10,)
    >>> bool(model.score(X, y) > 0.4)
    True
    """

    loss: str = "squared_error"
    radius: float | str = "auto"
    _: KW_ONLY
    epsilon: float = 1.35
    quantile: float = 0.5
    method: str = "orgfw"
    tol: float = 0.005

    _one_row = True

    def partial_fit(
        self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None
    ) -> ProjectionFreeRegressor:
        """Learn from one more batch: rounds of online learning, in the order of the rows.

        Parameters
        ----------
        X : array_like or sparse matrix, shape (n, d)
            Features.
        y : array_like, shape (n,)
            What to predict.
        sample_weight : array_like, shape (n,), optional
            Weights, at least 0.

        Returns
        -------
        ProjectionFreeRegressor
            The estimator itself.

        Raises
        ------
        TypeError, ValueError
            If a parameter or the data cannot be used; the message names it. The model is then as
            before.

        Notes
        -----
        As `ProjectionFreeClassifier.partial_fit`. The first call settles the units of the targets:
        give it a batch, not a row.
        """
        self._or_as_before(self._learn, X, y, sample_weight)
        return self

    @of_chunks
    def predict(self, X: Any) -> FloatArray:
        """Return the prediction for every row of X."""
        return self._scores(X)[:, 0]

    def score(self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> float:
        """Return R², the share of the variance of `y` that is predicted, weighted if asked."""
        for name, given in (("y", y), ("sample_weight", sample_weight)):
            refuse_masks(given, name)
        return float(super().score(X, y, sample_weight))

    def _label(self, X: Any, y: Any, sample_weight: Any, known: Any, *, whole: bool) -> Labelled:
        weights = preparation.row_weights(sample_weight, None, X, y, None)
        if weights is not None:
            X, y, weights = preparation.drop_weightless(X, y, weights)
        y = y.astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            if known is None:
                known = regression.units_of(y, weights, self.loss != "squared_error")
            y = (y - known.zero) / known.one
        if not (math.isfinite(known.one) and np.isfinite(y).all()):
            raise ValueError("y is so large that its squares overflow; rescale y")
        return Labelled(X, y, weights, known)

    def _problem(self, n_rows: int, width: int, X: Any) -> Any:
        return regression.problem_for(width, is_sparse(X))

    def _dataset(self, X: Any, labelled: Labelled) -> Any:
        loss = regression.loss_of(self.loss, float(self.epsilon), float(self.quantile))
        return regression.Targets.of(X, labelled.y, labelled.weights, loss)

    def _form(self, X: Any, learner: Any) -> Any:
        if not is_sparse(X):
            return X
        small = X.shape[1] <= MANY and X.shape[0] * X.shape[1] <= _SMALL
        return X.toarray() if (small if learner is None else learner.problem.compiled) else X

    def _may_fail_between(self, radius: float, X: Any) -> bool:
        return True

    def _validated(self, X: Any, y: Any, *, reset: bool, **options: Any) -> tuple[Any, Any]:
        if is_dask(X):
            raise TypeError(
                "X is a Dask array, which ProjectionFreeRegressor predicts for but does not fit; "
                "use X.compute(), or partial_fit for a block of rows at a time"
            )
        return super()._validated(X, y, reset=reset, y_numeric=True)


def _rows_of_dask(estimator: Any, X: Any, y: Any, reset: bool) -> Any:
    """Check a Dask array, whose chunks are looked at when they are made, and its labels."""
    dtypes = DTYPES if estimator.dtype is None else [float_dtype(estimator.dtype)]
    y = column_or_1d(np.asarray(y), warn=True)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity")
    DaskChunks(X, np.zeros(len(y), np.intp))  # refuses what has no rows of known number
    if reset:
        estimator.n_features_in_ = X.shape[1]
        vars(estimator).pop("feature_names_in_", None)
    check_width(estimator, X)
    X = X.rechunk({1: -1})
    wanted = X.dtype if X.dtype in dtypes else dtypes[0]
    return X if X.dtype == wanted else X.astype(wanted), y
