"""Pictures of the scikit-learn estimators, in the manner of scikit-learn's displays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from fastfw._checks import boolean, describe, positive_int
from fastfw._csr import is_sparse
from fastfw._estimators.fitting import are_many, rows_of_a_round
from fastfw._plots import draw_curve, draw_weights
from fastfw.traces import log_spaced

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ProjectionFreeDisplay", "WeightsDisplay"]


@dataclass(kw_only=True, repr=False, eq=False)
class ProjectionFreeDisplay:
    """Learning curve of an estimator: its score after so many rows, learned batch by batch.

    Made by `from_estimator`.

    Parameters
    ----------
    rows : ndarray of int, shape (k,)
        Numbers of rows learned.
    train_scores, test_scores : ndarray, shape (k,)
        Scores on those rows, and on the rows that were held out.
    score_name : str
        What the scores are.
    estimator_name : str, optional
        Name in the legend.

    Attributes
    ----------
    ax_ : matplotlib axes
        What was drawn on.
    figure_ : matplotlib figure
        The figure it is part of.
    lines_ : list of matplotlib lines
        The curves, held out and learned.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastfw.sklearn import ProjectionFreeClassifier, ProjectionFreeDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ProjectionFreeClassifier(radius=30.0, batch_size=8)
    >>> display = ProjectionFreeDisplay.from_estimator(model, X, y)
    >>> int(display.rows[-1]), bool(display.test_scores[-1] > 0.8)
    (120, True)
    """

    rows: npt.NDArray[np.intp]
    train_scores: npt.NDArray[np.float64]
    test_scores: npt.NDArray[np.float64]
    score_name: str = "score"
    estimator_name: str | None = None
    ax_: Axes = field(init=False)
    figure_: Any = field(init=False)
    lines_: list[Any] = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        test_size: float | int = 0.2,
        scoring: Any = None,
        points: int = 20,
        random_state: Any = 0,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> ProjectionFreeDisplay:
        """Let a copy of an estimator learn the data in one pass, batch by batch; draw its scores.

        Parameters
        ----------
        estimator : ProjectionFreeClassifier or another estimator with ``partial_fit``
            Stays as it is. Batches are of its ``batch_size``; where its radius is "auto" and it is
            fitted, the copy has the radius that was chosen.
        X, y : array_like
            As for its ``fit``.
        test_size : float or int
            Rows that are held out, as for scikit-learn's ``train_test_split``.
        scoring : str, callable or None
            As in scikit-learn; None is the estimator's own score.
        points : int
            How often scores are taken at most, more densely early on.
        random_state : int, RandomState or None
            For the order of the rows, and which are held out.
        name : str, optional
            Name in the legend, by default that of the estimator's class.
        ax : matplotlib axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        ProjectionFreeDisplay
            The scores, drawn.
        """
        learner = clone(estimator)
        if getattr(learner, "radius", None) == "auto" and hasattr(estimator, "radius_"):
            learner.set_params(radius=estimator.radius_)
        score = check_scoring(learner, scoring)
        X, X_test, y, y_test = train_test_split(
            X, y, test_size=test_size, random_state=random_state
        )
        y, y_test = np.asarray(y), np.asarray(y_test)
        n, size = len(y), learner.get_params().get("batch_size", "auto")
        if size == "auto":
            size = rows_of_a_round(are_many(X))
        options = {}
        if is_classifier(learner):
            options["classes"] = np.unique(np.concatenate([y, y_test]))
        looked = log_spaced(-(-n // size), positive_int(points, "points"))
        scores, begun = [], 0
        for batch in range(1, int(looked[-1]) + 1):
            done = min(batch * size, n)
            learner.partial_fit(X[begun:done], y[begun:done], **options)
            begun, options = done, {}
            if batch in looked:
                scores.append((done, score(learner, X[:done], y[:done]),
                               score(learner, X_test, y_test)))  # fmt: skip
        rows, train, test = (np.array(column) for column in zip(*scores, strict=True))
        score_name = scoring if isinstance(scoring, str) else "score"
        if scoring is None:
            score_name = "accuracy" if is_classifier(learner) else "R²"
        display = cls(
            rows=rows, train_scores=train, test_scores=test, score_name=score_name,
            estimator_name=type(estimator).__name__,
        )  # fmt: skip
        return display.plot(ax, name=name)

    def plot(self, ax: Axes | None = None, *, name: str | None = None) -> ProjectionFreeDisplay:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        name : str, optional
            Name in the legend, by default that of the estimator.

        Returns
        -------
        ProjectionFreeDisplay
            The display itself.
        """
        name = self.estimator_name if name is None else name
        self.lines_ = []
        for scores, which in ((self.test_scores, "held out"), (self.train_scores, "learned")):
            label = which if name is None else f"{name}, {which}"
            ax = draw_curve(ax, self.rows, scores, label, "rows learned", self.score_name)
            self.lines_.append(ax.lines[-1])
        assert ax is not None
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(kw_only=True, repr=False, eq=False)
class WeightsDisplay:
    """Weights of a class, as an image or as words: what speaks for it, and what against.

    Made by `from_estimator`. Weights in the units of X cannot be compared where columns have
    different ones: that of a column of thousandths is large before it matters. So each weight is
    drawn times the scale of its column, in which the radius counts it.

    Parameters
    ----------
    weights : ndarray, shape (d,)
        The weights, as they are drawn.
    names : sequence of str
        Names of the features.
    title : str
        What the weights speak for.
    unit : str
        What they are: the label of their axis.

    Attributes
    ----------
    ax_ : matplotlib axes
        What was drawn on.
    figure_ : matplotlib figure
        The figure it is part of.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from fastfw.sklearn import ProjectionFreeClassifier, WeightsDisplay
    >>> data = load_iris()
    >>> model = ProjectionFreeClassifier(radius=30.0).fit(data.data, data.target)
    >>> display = WeightsDisplay.from_estimator(model, 2, names=data.feature_names)
    >>> display.title
    '2'
    """

    weights: npt.NDArray[Any]
    names: Sequence[str]
    title: str = ""
    unit: str = "weight"
    ax_: Axes = field(init=False)
    figure_: Any = field(init=False)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        label: Any = None,
        *,
        names: Sequence[str] | None = None,
        shape: tuple[int, int] | None = None,
        top: int = 20,
        scaled: bool = True,
        ax: Axes | None = None,
    ) -> WeightsDisplay:
        """Draw the weights of one class of a fitted linear model.

        Parameters
        ----------
        estimator : ProjectionFreeClassifier, or another linear model with ``coef_``
            Or a pipeline that ends with one, whose names of features it has.
        label : object, optional
            The class, as in ``classes_``. Not needed where there is one row of weights: those of
            two classes speak for the second one.
        names : sequence of str, optional
            Names of the features, by default those that the estimator knows.
        shape : tuple of int, optional
            Rows and columns of the image that the features are: the weights become an image, blue
            where they speak for the class and red where against.
        top : int
            How many of the largest weights are drawn where no shape is given.
        scaled : bool
            Whether weights are multiplied by the scales of their columns, ``feature_scale_``, which
            models of other packages do not have: theirs are drawn as they are. False: `coef_`, for
            one unit of a column.
        ax : matplotlib axes, optional
            Where to draw; new axes by default.

        Returns
        -------
        WeightsDisplay
            The weights, drawn.
        """
        model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
        check_is_fitted(model)
        coef = model.coef_.toarray() if is_sparse(model.coef_) else np.asarray(model.coef_)
        coef = np.atleast_2d(coef)
        classes = getattr(model, "classes_", np.arange(len(coef)))
        rows = [] if label is None else np.flatnonzero(classes == label).tolist()
        if len(rows) != 1 and not (label is None and len(coef) == 1):
            raise ValueError(
                f"label must be one of the classes {list(classes)}, but it is {describe(label)}"
            )
        row = coef[rows[0] if rows and len(coef) > 1 else 0]
        if len(coef) == 1 and len(classes) == 2:
            label = classes[1] if label is None else label
            row = row if label == classes[1] else -row
        if names is None and model is not estimator:
            names = estimator[:-1].get_feature_names_out()
        if names is None:
            names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(len(row))])
        if len(names) != len(row):
            raise ValueError(f"names must be {len(row)}, one a feature, but they are {len(names)}")
        if shape is not None and np.prod(shape) != len(row):
            raise ValueError(f"shape must have {len(row)} places, but it is {describe(shape)}")
        unit = "weight for one unit of the column"
        if boolean(scaled, "scaled") and hasattr(model, "feature_scale_"):
            row, unit = row * model.feature_scale_, "weight × scale of the column"
        title = "" if label is None else str(label)
        display = cls(weights=row, names=names, title=title, unit=unit)
        return display.plot(ax, shape=shape, top=top)

    def plot(
        self, ax: Axes | None = None, *, shape: tuple[int, int] | None = None, top: int = 20
    ) -> WeightsDisplay:
        """Draw the weights; see `from_estimator`.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        shape : tuple of int, optional
            Of the image.
        top : int
            How many weights without a shape.

        Returns
        -------
        WeightsDisplay
            The display itself.
        """
        top = positive_int(top, "top")
        ax = draw_weights(ax, self.weights, shape, self.names, top, self.unit)
        ax.set_title(self.title, parse_math=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
