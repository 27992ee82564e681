"""What the scikit-learn estimators share: fitting, learning on, weights made when asked for."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from importlib import import_module
from operator import is_
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from fastfw._checks import FloatArray, all_finite, float_dtype, freeze, refuse_masks
from fastfw._chunks import is_dask
from fastfw._csr import csr_features, is_sparse
from fastfw._estimators import preparation
from fastfw._estimators.fitting import (
    START,
    Plan,
    Sample,
    are_many,
    choose_radius,
    fit,
    look,
    rows_of_a_round,
)
from fastfw._estimators.preparation import Online, Weights
from fastfw.schedules import power_schedule
from fastfw.sets import RowKSparsePolytope, RowL1Ball
from fastfw.streams import Dataset, batches

__all__ = ["DTYPES", "Labelled", "ProjectionFree"]

Self = TypeVar("Self", bound="ProjectionFree")
DTYPES = [np.float64, np.float32]

#: The radius of `partial_fit` where none is given; of many features, that for each class, at least
#: and at most.
_RADIUS, _RADIUS_OF_CLASS, _LEAST, _MOST = 30.0, 100.0, 1000.0, 3000.0
#: Rows of a round of `partial_fit` on few features: every row is seen once, and each round is one
#: step however many rows it has.
_ROWS_ONLINE = 4
#: Vertices for many features have an entry of this size, or of less where one is larger.
_ENTRY = 6.0


class Labelled(NamedTuple):
    """Rows of weight above zero, and what is to be learned of them."""

    X: Any
    y: npt.NDArray[Any]
    """Numbers of classes, or targets."""
    weights: npt.NDArray[np.float64] | None
    known: Any
    """What `partial_fit` has to know of the first call: the classes, or the targets' units."""


def _in_columns(method: Callable[[Any, Any], Any], model: Any, X: Any) -> Any:
    """Return predictions for a chunk as a matrix."""
    found = method(model, X)
    return found.reshape(len(found), -1)


def of_chunks(method: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Give a Dask array for one: by the model as it is now, chunk by chunk when asked for."""

    @wraps(method)
    def of_any(self: Any, X: Any) -> Any:
        if not is_dask(X):
            return method(self, X)
        check_is_fitted(self)
        check_width(self, X)
        self._weights.freeze()
        like = method(self, np.zeros((1, X.shape[1]), X.dtype))
        columns = like.reshape(1, -1)
        made = X.rechunk({1: -1}).map_blocks(
            partial(_in_columns, method, copy.copy(self)),
            meta=columns[:0], chunks=(X.chunks[0], columns.shape[1:]),
        )  # fmt: skip
        return made[:, 0] if like.ndim == 1 else made

    return of_any


@dataclass(eq=False, repr=False, kw_only=True)
class ProjectionFree(BaseEstimator):  # type: ignore[misc]
    """Base of the estimators: what they predict, and by which loss, is theirs."""

    vertex_size: int | str = "auto"
    batch_size: int | str = "auto"
    step: float | Callable[[int], float] | None = None
    momentum: float | Callable[[int], float] | None = None
    average: bool = True
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    scaling: str | None = "auto"
    max_iter: int = 300
    early_stopping: bool | str = "auto"
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    warm_start: bool = False
    verbose: int = 0
    dtype: npt.DTypeLike | None = None
    random_state: Any = 0

    #: Whether there is one row of weights, which users see as a vector.
    _one_row = False

    # ------------------------------------------------------------------ what an estimator defines

    @abstractmethod
    def _label(self, X: Any, y: Any, sample_weight: Any, known: Any, *, whole: bool) -> Labelled:
        """Check targets and weights; `whole` is for what wants all the data."""

    @abstractmethod
    def _problem(self, n_rows: int, width: int, X: Any) -> Any:
        """Return the losses' family, as sums over rows, for features such as X."""

    @abstractmethod
    def _dataset(self, X: Any, labelled: Labelled) -> Any:
        """Return scaled features with what is to be learned of them."""

    def _form(self, X: Any, learner: Any) -> Any:
        """Return features as a learner, or None yet, takes them best."""
        return X

    def _known(self, online: Online | None) -> Any:
        """Return what is known when `partial_fit` is called, of its further arguments too."""
        return None if online is None else online.known

    def _n_rows(self, known: Any) -> int:
        """Rows of weights."""
        return 1

    def _keep(self, known: Any) -> None:
        """Set attributes that tell what is known of the targets."""

    # ------------------------------------------------------------------ fitting

    def fit(self: Self, X: Any, y: Any, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Fit the model to labels, or to numbers.

        Parameters
        ----------
        X : array_like, sparse matrix or Dask array, shape (n, d)
            Features. A Dask array, dense or of scipy CSR chunks, is gone through chunk by chunk, by
            the classifier.
        y : array_like, shape (n,)
            Labels of any type, of two classes or more; or numbers to predict.
        sample_weight : array_like, shape (n,), optional
            Weights, at least 0; see the notes of `ProjectionFreeClassifier`.

        Returns
        -------
        ProjectionFreeClassifier or ProjectionFreeRegressor
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
            at the smallest or the largest radius that it tries, unless features are many.
        """
        self._or_as_before(self._fit, X, y, sample_weight)
        for doubt in self._doubts():
            warnings.warn(doubt, ConvergenceWarning, stacklevel=2)
        return self

    def _doubts(self) -> Iterator[str]:
        """Yield what users of a fit should know."""
        if self.gap_ > self.tol > 0.0 and self.n_iter_ == self.max_iter:
            yield (
                f"the Frank-Wolfe gap is {self.gap_:.3g}{self._unit} after "
                f"max_iter={self.max_iter} epochs, more than tol={self.tol:g}: the mean loss may "
                "exceed the least possible one by as much. Raise max_iter or tol, or lower the "
                f"radius (now {self.radius_:g}); with tol=0 that many epochs are taken without a "
                "warning"
            )
        radii = [radius for radius, _ in self.radius_path_]
        if not radii or self._online.plan.many:  # a coarse path, whose ends are no surprise
            return
        if self.radius_ == radii[-1]:
            yield (
                f"radius='auto' ended with {self.radius_:g}, the largest it tries, which still did "
                "better on held-out rows than a smaller one; try larger ones yourself"
            )
        elif self.radius_ == radii[0]:
            yield (
                f"radius='auto' took {self.radius_:g}, the smallest it tries: {radii[1]:g} did not "
                "do better on held-out rows. The features may tell little of the targets, or "
                "their scale asks for smaller radii, which you can try yourself"
            )

    #: Unit of the losses, in words.
    _unit = ""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        online = vars(self).get("_online") if self.warm_start else None
        parameters, plan = self._checked(None)
        self._refuse_changes(online, parameters)
        X, y = self._validated(X, y, reset=online is None)
        many = are_many(X) if online is None else online.plan.many
        plan = _resolved(plan, many, self.early_stopping)
        labelled = self._label(
            X, y, sample_weight, None if online is None else online.known, whole=True
        )
        X, weights, unit = labelled.X, labelled.weights, 1.0
        begun: Any = None if online is None else online.learner
        if weights is not None:
            unit = float(weights.mean())
            weights = None if (weights == weights[0]).all() else weights / unit
        X, scale, grow = self._scaled(X, None if online is None else online.scale, many, begun)
        data = self._dataset(X, labelled._replace(weights=weights))
        rng = preparation.generator(self.random_state)
        n_rows = self._n_rows(labelled.known)
        sample = Sample(data, freeze(np.arange(len(data))))
        tried: list[tuple[float, float]] = []
        if online is not None:
            radius, trained, looks = self.radius_, copy.copy(begun), online.looks
        else:
            learner = partial(self._learner, n_rows, X, many)
            radius, looks = self.radius, None
            if radius == "auto":
                radius, tried = choose_radius(learner, sample, plan, rng)
            trained = learner(float(radius))
        found = fit(trained, sample, plan, rng, looks)
        if grow is not None:
            grow()
        self._keep(labelled.known)
        self.radius_: float = float(radius)
        self.radius_path_ = tried
        self.gap_, self.n_iter_ = found.gap, found.epochs
        self.vertex_size_ = getattr(trained.set, "k", 1)
        if plan.held:
            self.validation_loss_ = np.array(found.losses)
        else:
            self.__dict__.pop("validation_loss_", None)
        self._online = Online(trained, scale, found.looks, unit, labelled.known, parameters, plan)
        self._weights = Weights(self._online, self._beta(many), None, found.x)

    def _learn(self, X: Any, y: Any, sample_weight: Any, *given: Any) -> None:
        """Play a call of `partial_fit`."""
        first = not hasattr(self, "_online")
        online = None if first else self._online
        parameters, plan = self._checked(online)
        if online is not None and parameters is not online.parameters:
            self._refuse_changes(online, parameters)
        known = self._known(online, *given)
        X, y = self._validated(X, y, reset=first)
        many = are_many(X) if online is None else online.plan.many
        if online is None or plan is not online.plan:
            plan = _resolved(plan, many, self.early_stopping)
        X, y, weights, known = self._label(X, y, sample_weight, known, whole=False)
        if online is None:
            free = self.radius == "auto"
            radius = _radius(self._n_rows(known), many) if free else float(self.radius)
            unit = 1.0 if weights is None else float(weights.mean())
            learner, scale, looks = None, None, [START]
        else:
            learner, scale, looks, unit = online[:4]
            radius = self.radius_
        n = X.shape[0]
        total = float(n)
        if weights is not None or unit != 1.0:
            weights = (np.ones(n) if weights is None else weights) / unit
            total = min(float(weights.sum()), max(4.0 * n, float(plan.batch_size)))
            weights *= total / weights.sum()
            weights = None if (weights == 1.0).all() else weights
        X, scale, grow = self._scaled(X, scale, many, learner)
        if learner is None:
            learner = self._learner(self._n_rows(known), X, many, radius)
        data = self._dataset(X, Labelled(X, y, weights, known))
        small = self.batch_size == "auto" and not many
        size = _ROWS_ONLINE if small else plan.batch_size
        rounds = min(n, max(1, round(total / size)))
        if rounds > 1 and self._may_fail_between(radius, X):
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
        if grow is not None:
            grow()
        self._keep(known)
        self.radius_, self.gap_ = radius, np.nan
        self.n_iter_ = 1 if first else self.n_iter_ + 1
        if first:
            self.radius_path_ = []
            self.vertex_size_ = getattr(learner.set, "k", 1)
        self._online = Online(learner, scale, looks, unit, known, parameters, plan)
        self._weights = Weights(self._online, self._beta(many), since)

    def _may_fail_between(self, radius: float, X: Any) -> bool:
        """Whether a round of a call may fail once others have been played.

        Scores are at most the radius times the largest feature.
        """
        if callable(self.step) or callable(self.momentum):
            return True
        if is_dask(X):
            return True
        entries = X.data if is_sparse(X) else X
        return radius * max(-float(entries.min(initial=0)), float(entries.max(initial=1))) > 1e15

    # ------------------------------------------------------------------ using the model

    @property
    def coef_(self) -> Any:
        """Weights of the features, made when they are asked for."""
        coef = self._parts("coef_")[0]
        return coef[0] if self._one_row else coef

    @coef_.setter
    def coef_(self, coef: Any) -> None:
        rows = np.atleast_2d(coef) if self._one_row else coef
        self._weights.parts = rows, self._parts("coef_")[1]

    @property
    def intercept_(self) -> Any:
        """Intercepts, made when they are asked for."""
        intercept = self._parts("intercept_")[1]
        return intercept[0] if self._one_row else intercept

    @intercept_.setter
    def intercept_(self, intercept: Any) -> None:
        self._weights.parts = self._parts("intercept_")[0], np.atleast_1d(intercept)

    @property
    def feature_scale_(self) -> FloatArray:
        """What each column is counted in by the radius: its unit while the model learns."""
        if "_online" not in vars(self):
            raise AttributeError("feature_scale_ is there after fit or partial_fit")
        scale = self._online.scale
        if scale is None:
            return np.ones(self.n_features_in_, self._online.learner.dtype)
        return preparation.divisors(scale)

    def _parts(self, name: str) -> tuple[Any, FloatArray]:
        if "_weights" not in vars(self):
            raise AttributeError(f"{name} is there after fit or partial_fit")
        return self._weights.parts

    def _scores(self, X: Any) -> FloatArray:
        """Return X Wᵀ + b, a column for each row of weights."""
        check_is_fitted(self)
        X = validate(self, X, reset=False, dtype=DTYPES)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._weights.scores(X)
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
            raise ValueError(f"X[{row}] is so large that its scores overflow; rescale the features")
        return scores

    # ------------------------------------------------------------------ plumbing

    def __sklearn_tags__(self) -> Any:
        """Say that sparse features are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _or_as_before(self, learn: Callable[..., None], *given: Any) -> None:
        """Learn, or put everything back as it was if that raises."""
        before = dict(self.__dict__)
        try:
            learn(*given)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _checked(self, online: Online | None) -> tuple[dict[str, Any], Plan]:
        """Return the parameters and what they say of fitting; checked unless they are as before."""
        # a mapping may change
        if online is not None and not isinstance(getattr(self, "class_weight", None), Mapping):
            kept = online.parameters
            if all(map(is_, map(vars(self).get, kept), kept.values())):
                return kept, online.plan
        parameters = self.get_params(deep=False)
        return parameters, preparation.check_parameters(parameters)

    def _refuse_changes(self, online: Online | None, parameters: dict[str, Any]) -> None:
        """Refuse other parameters than the learner was made of."""
        if online is None:
            return
        for name in [name for name in preparation.MADE_OF if name in parameters]:
            value, now = online.parameters[name], parameters[name]
            if now is not value and now != value:
                raise ValueError(
                    f"{name} was {value!r} when the model was begun and is {now!r} now, which "
                    "cannot be changed while it goes on; begin anew with sklearn.base.clone"
                )

    def _validated(self, X: Any, y: Any, *, reset: bool, **options: Any) -> tuple[Any, Any]:
        dtype = DTYPES if self.dtype is None else [float_dtype(self.dtype)]
        X, y = validate(self, X, y, reset=reset, dtype=dtype, **options)
        return X, y

    def _scaling(self, many: bool) -> str | None:
        named: str | None = self.scaling
        return named if named != "auto" else "norm" if many else "max-abs"

    def _beta(self, many: bool) -> float | None:
        """Return what the intercept's column holds; or None without one."""
        if not self.fit_intercept:
            return None
        # of rows of norm one, entries are small
        return float(self.intercept_scaling) * (0.1 if self._scaling(many) == "norm" else 1.0)

    def _scaled(self, X: Any, scale: Any, many: bool, learner: Any) -> tuple[Any, Any, Any]:
        """Return X as a learner takes it, the columns' scale so far, and a call that lets it grow.

        That is None where scales stay what they are from the first call on.
        """
        scaling, first, by, grow = self._scaling(many), scale is None, None, None
        if scaling == "norm":
            if first:
                scale = np.broadcast_to(preparation.mean_norm(X), X.shape[1])
            by = scale[0]
        elif scaling == "max-abs":
            scale = np.zeros(X.shape[1], X.dtype) if first else scale
            columns, grown, entries = preparation.seen(X, scale)
            if first:
                scale[columns] = grown
            by, grow = (
                preparation.divisors(grown)[entries],
                partial(scale.__setitem__, columns, grown),
            )
        X = preparation.scale_columns(X, by, self._beta(many), clip=grow is not None)
        return self._form(X, learner), scale, grow

    def _learner(self, n_rows: int, X: Any, many: bool, radius: float) -> Any:
        """Return a learner for scaled features such as X."""
        method = preparation.METHODS[self.method]
        options: dict[str, Any] = {} if self.step is None else {"step": self.step}
        if method.momentum:
            default = power_schedule(1.0, 2.0 / 3.0)
            options["momentum"] = default if self.momentum is None else self.momentum
        kind = getattr(import_module("fastfw"), method.learner)
        if kind._threaded:
            options["threads"] = preparation.threads(getattr(self, "n_jobs", None))
        width = X.shape[1]
        k = self.vertex_size
        if k == "auto":
            k = max(1, round(radius / _ENTRY)) if many else 1
        shape, k = (n_rows, width), min(int(k), width)
        set = RowL1Ball(shape, radius) if k == 1 else RowKSparsePolytope(shape, k, radius)
        return kind(self._problem(n_rows, width, X), set, dtype=X.dtype, **options)


def _radius(n_rows: int, many: bool) -> float:
    """Return the radius of `partial_fit` where none is given."""
    return min(max(_LEAST, _RADIUS_OF_CLASS * n_rows), _MOST) if many else _RADIUS


def _resolved(plan: Plan, many: bool, early_stopping: Any) -> Plan:
    """Return a plan for features that are many or not."""
    early = many if isinstance(early_stopping, str) else early_stopping
    return plan._replace(
        many=many,
        batch_size=plan.batch_size or rows_of_a_round(many),
        held=plan.held if early else 0.0,
    )


def check_width(estimator: Any, X: Any) -> None:
    """Compare the columns of a Dask array with the model's, in scikit-learn's words."""
    if X.ndim != 2:
        raise ValueError(f"X must be a matrix, but it is a Dask array of shape {X.shape}")
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def _is_known(estimator: Any, X: Any, y: Any, dtypes: list[Any]) -> bool:
    """Whether rows are as a model knows them, so that scikit-learn has nothing to add."""
    if hasattr(estimator, "feature_names_in_"):
        return False
    sparse = is_sparse(X)  # which is in canonical form
    if not sparse and (type(X) is not np.ndarray or X.ndim != 2 or not len(X)):
        return False
    if X.shape[1] != estimator.n_features_in_ or X.dtype not in dtypes:
        return False
    if not isinstance(y, str):
        if type(y) is not np.ndarray or y.shape != X.shape[:1] or y.dtype.kind not in "biuUSf":
            return False
        if y.dtype.kind == "f" and not all_finite(y):
            return False
    return sparse or all_finite(X)


def validate(estimator: Any, X: Any, y: Any = "no_validation", **options: Any) -> Any:
    """Check data as the learners do, then as scikit-learn, which compares names and widths.

    Rows that are as a model knows them are spared the latter, which takes longer than a round.
    """
    for name, given in (("X", X), ("y", y)):
        refuse_masks(given, name)
    if is_sparse(X):
        X = csr_features(X)
    if not options["reset"] and _is_known(estimator, X, y, options["dtype"]):
        return X if isinstance(y, str) else (X, y)
    options["accept_sparse"] = "csr"
    try:
        from sklearn.utils.validation import validate_data
    except ImportError:  # before scikit-learn 1.6
        return estimator._validate_data(X, y, **options)
    return validate_data(estimator, X, y, **options)
