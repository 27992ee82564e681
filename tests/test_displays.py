"""Displays of the scikit-learn estimators: what is drawn, and that no text is cut."""

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from scipy import sparse

pytest.importorskip("sklearn", minversion="1.5")
pipeline = pytest.importorskip("sklearn.pipeline")
preprocessing = pytest.importorskip("sklearn.preprocessing")
ours = pytest.importorskip("fastfw.sklearn")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    return X, np.array(["no", "maybe", "yes"])[np.argmax(X[:, :3], axis=1)]


@pytest.fixture(scope="module")
def model(data):
    return ours.ProjectionFreeClassifier(radius=20.0, max_iter=2, tol=0.0, batch_size=8).fit(*data)


def axes():
    figure = Figure(figsize=(4, 3), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.add_subplot()


def is_whole(ax):
    """Whether everything drawn lies within the picture."""
    ax.figure.draw_without_rendering()
    drawn, picture = ax.get_tightbbox(), ax.figure.bbox
    return (drawn.min >= picture.min).all() and (drawn.max <= picture.max).all()


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
def test_a_learning_curve(data, model, kind):
    X, y = data
    if kind == "frame":
        X = pytest.importorskip("pandas").DataFrame(X).add_prefix("column ")
    if kind == "sparse":
        X = sparse.coo_matrix(X)
    ax = axes()
    display = ours.ProjectionFreeDisplay.from_estimator(model, X, y, points=4, name="ours", ax=ax)
    assert display.rows.tolist() == [8, 16, 40, 96]
    assert display.test_scores[-1] > 0.7
    assert display.lines_ == list(ax.lines)
    assert np.array_equal(display.lines_[0].get_ydata(), display.test_scores)
    assert [line.get_label() for line in ax.lines] == ["ours, held out", "ours, learned"]
    assert (ax.get_ylabel(), display.figure_) == ("accuracy", ax.figure)
    assert is_whole(ax)


def test_a_learning_curve_leaves_the_estimator_and_takes_its_radius(data):
    model = ours.ProjectionFreeClassifier(batch_size=48, max_iter=1, tol=0.0, random_state=0)
    model.radius_ = 7.0
    before = dict(vars(model))
    display = ours.ProjectionFreeDisplay.from_estimator(
        model, *data, scoring="neg_log_loss", ax=axes()
    )
    assert vars(model) == before
    small = ours.ProjectionFreeClassifier(radius=7.0, batch_size=48)
    again = ours.ProjectionFreeDisplay.from_estimator(
        small, *data, scoring="neg_log_loss", ax=axes()
    )
    assert np.array_equal(display.test_scores, again.test_scores)
    assert display.ax_.get_ylabel() == "neg_log_loss"


def test_weights_as_words(data, model):
    names = [f"{'a very long name of a feature ' * 3}${j}_" for j in range(6)]
    display = ours.WeightsDisplay.from_estimator(model, "yes", names=names, top=2)
    row = (model.coef_ * model.feature_scale_)[list(model.classes_).index("yes")]
    bars = [bar.get_width() for bar in display.ax_.patches]
    assert bars == sorted(row[np.argsort(-abs(row))[:2]], reverse=True)
    assert display.ax_.get_title() == "yes"
    assert is_whole(display.ax_)
    pyplot.close(display.figure_)


def test_weights_as_an_image(model):
    display = ours.WeightsDisplay.from_estimator(model, "no", shape=(2, 3), scaled=False, ax=axes())
    (image,) = display.ax_.images
    assert np.array_equal(image.get_array().ravel(), model.coef_[list(model.classes_).index("no")])
    assert image.norm.vmin == -image.norm.vmax


def test_weights_of_two_classes_and_of_a_pipeline(data):
    X, y = data
    pandas = pytest.importorskip("pandas")
    X, y = pandas.DataFrame(X, columns=list("abcdef")), (y == "yes").astype(int)
    model = pipeline.make_pipeline(
        preprocessing.MaxAbsScaler(), ours.ProjectionFreeClassifier(radius=5.0, max_iter=1, tol=0.0)
    )
    model.fit(X, y)
    one = ours.WeightsDisplay.from_estimator(model, ax=axes())
    assert one.title == "1"
    assert list(one.names) == list("abcdef")
    zero = ours.WeightsDisplay.from_estimator(model[-1].sparsify(), 0, ax=axes())
    assert np.array_equal(zero.weights, -one.weights)


def test_weights_are_ranked_whatever_the_units_of_the_columns():
    rng = np.random.default_rng(0)
    units = np.array([1e4, 1.0, 1e-3])
    X = rng.standard_normal((200, 3)) * units
    y = X @ [1e-4, 0.5, 0.0] > 0
    model = ours.ProjectionFreeClassifier(radius=10.0, max_iter=1, tol=0.0, batch_size=8)
    scaled = ours.WeightsDisplay.from_estimator(
        model.fit(X, y), names=["income", "age", "noise"], ax=axes()
    )
    assert np.array_equal(model.feature_scale_, abs(X).max(axis=0))
    assert np.argsort(-abs(scaled.weights)).tolist() == [0, 1, 2]
    assert abs(scaled.weights).sum() <= 2 * 10.0
    assert scaled.ax_.get_xlabel() == scaled.unit == "weight × scale of the column"
    assert is_whole(scaled.ax_)
    raw = ours.WeightsDisplay.from_estimator(model, scaled=False, ax=axes())
    assert np.array_equal(raw.weights, model.coef_[0])
    assert raw.ax_.get_xlabel() == "weight for one unit of the column"
    lasso = pytest.importorskip("sklearn.linear_model").LogisticRegression().fit(X / units, y)
    assert ours.WeightsDisplay.from_estimator(lasso, ax=axes()).unit == raw.unit


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"label": "perhaps"}, r"label must be one of the classes .*'maybe'.*'perhaps'"),
        ({}, "label must be one of the classes"),
        ({"label": "no", "names": ["a"]}, "names must be 6"),
        ({"label": "no", "shape": (2, 2)}, "shape must have 6 places"),
        ({"label": "no", "top": 0}, "top must be"),
        ({"label": "no", "scaled": "yes"}, "scaled must be True or False"),
        ({"label": "no", "ax": "a.png"}, "ax must be matplotlib axes"),
    ],
)
def test_what_cannot_be_drawn_is_refused(model, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ours.WeightsDisplay.from_estimator(model, **given)
