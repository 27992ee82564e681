"""The scikit-learn classifier beside scikit-learn's own linear classifiers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np

import fastfw as fw
from bench.compare.turns import Work

DATA = ("digits", "fashion-mnist-4k", "fashion-mnist")
#: More rows than this are many.
MANY = 20_000
#: CPU seconds of a fit after which no longer ones are tried.
LONGEST = 60.0
#: Passes or iterations that are tried.
BUDGETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Model(NamedTuple):
    """A classifier: how it is made from a setting and a budget, and the settings to choose from."""

    name: str
    make: Callable[[Any, int | None, bool], Any]
    settings: tuple[float, ...]
    settings_for_many: tuple[float, ...]


def _ours(radius: Any, budget: int | None, many: bool = False) -> Any:
    from fastfw.sklearn import ProjectionFreeClassifier

    limit = {} if budget is None else {"max_iter": budget}
    return ProjectionFreeClassifier(radius="auto" if radius is None else radius, **limit)


def _logistic(C: Any, budget: int | None, many: bool) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=300 if budget is None else budget)


def _sgd(penalty: str) -> Callable[[Any, int | None, bool], Any]:
    def make(alpha: Any, budget: int | None, many: bool) -> Any:
        from sklearn.linear_model import SGDClassifier

        limit: dict[str, Any] = {"max_iter": budget, "tol": None}
        if budget is None:
            limit = {"early_stopping": many}
        return SGDClassifier("log_loss", penalty=penalty, alpha=alpha, random_state=0, **limit)

    return make


_COSTS = (0.001, 0.01, 0.1, 1.0, 10.0)
_ALPHAS = (1e-5, 1e-4, 1e-3, 1e-2)
MODELS = (
    Model("LogisticRegression", _logistic, _COSTS, _COSTS),
    Model("SGDClassifier, l2", _sgd("l2"), _ALPHAS, (1e-4,)),
    Model("SGDClassifier, l1", _sgd("l1"), _ALPHAS, (1e-4,)),
    Model("ProjectionFreeClassifier", _ours, (), ()),
)


def load(name: str) -> tuple[Any, Any, Any, Any]:
    """Training and test data in single precision; a quarter of digits is for the test."""
    X, y, X_test, y_test = fw.datasets.load(name)
    if not len(X_test):
        from sklearn.model_selection import train_test_split

        X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    return X.astype(np.float32), y, X_test.astype(np.float32), y_test


def timed(model: Any, X: Any, y: Any) -> tuple[float, Any]:
    """CPU seconds of a fit, and the model."""
    begun = process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short fits do not converge, on purpose
        model.fit(X, y)
    return process_time() - begun, model


def tuned(make: Callable[[Any], Any], settings: Sequence[Any], X: Any, y: Any) -> Any:
    """The setting that does best on a fifth of the rows, seconds of the search, a fit to all."""
    order = np.random.default_rng(0).permutation(len(y))
    held, rest = order[: len(y) // 5], order[len(y) // 5 :]
    spent, scores = 0.0, []
    for setting in settings if len(settings) > 1 else ():
        seconds, fitted = timed(make(setting), X[rest], y[rest])
        spent += seconds
        scores.append(fitted.score(X[held], y[held]))
    best = settings[int(np.argmax(scores or [0.0]))] if settings else None
    return best, spent, *timed(make(best), X, y)


class Row(NamedTuple):
    """A line of the table."""

    name: str
    setting: str
    accuracy: float
    nonzeros: int
    tuned: float
    fit: float
    reached: float


def measure(model: Model, data: tuple[Any, Any, Any, Any], target: float | None) -> Row:
    """Tune, fit, and look for the shortest fit that reaches the target (by default its own)."""
    X, y, X_test, y_test = data
    many = len(y) > MANY
    settings = model.settings_for_many if many else model.settings
    best, tuning, seconds, fitted = tuned(lambda own: model.make(own, None, many), settings, X, y)
    accuracy = fitted.score(X_test, y_test)
    chosen = fitted.radius_ if best is None else best
    target = accuracy - 0.01 if target is None else target
    reached = np.nan
    for budget in BUDGETS:
        spent, short = timed(model.make(chosen, budget, many), X, y)
        if short.score(X_test, y_test) >= target:
            reached = spent
        if reached == spent or spent > LONGEST:
            break
    nonzeros = int(np.count_nonzero(fitted.coef_))
    return Row(model.name, f"{chosen:g}", accuracy, nonzeros, tuning + seconds, seconds, reached)


HEADER = (
    f"{'model':<26} {'setting':>8} {'accuracy':>9} {'nonzeros':>9} {'tuned, s':>9} {'fit, s':>8} "
    f"{'to accuracy, s':>15}"
)


def line(row: Row) -> str:
    """Format one line of the table."""
    return (
        f"{row.name:<26} {row.setting:>8} {row.accuracy:9.4f} {row.nonzeros:9} {row.tuned:9.2f} "
        f"{row.fit:8.2f} {row.reached:15.3f}"
    )


def classifiers(work: Work) -> Iterator[Any]:
    """Tuned linear classifiers: how good, how sparse, how long it takes; CPU times of one thread.

    Every model is tuned on a fifth of the training data that is held out (ProjectionFreeClassifier
    tunes itself), and fitted anew to all of it; the setting is C, alpha or the radius. *Tuned* is
    the time of the search and that fit. *To accuracy* is the time of the shortest fit, in passes
    over the data or iterations that double from one on, that comes within one point of the test
    accuracy of the tuned LogisticRegression; nan where a fit of a minute does not. On more than
    20,000 rows SGDClassifier, whose search would take longest, is not tuned: it has its default
    alpha, and ends by ``early_stopping=True``.
    """
    X, y = np.eye(4, dtype=np.float32), np.array([0, 1, 2, 3])
    _ours(1.0, 1).fit(X, y)  # compiles
    for name in work.choose(dict.fromkeys(DATA[:1] if work.quick else DATA)):
        try:
            data = load(name)
        except (FileNotFoundError, ValueError) as error:
            yield f"{name}: skipped: {str(error).splitlines()[0]}"
            continue
        yield f"{name}: {data[0].shape[0]} x {data[0].shape[1]}\n{HEADER}"
        target = None
        for model in MODELS:
            row = measure(model, data, target)
            target = row.accuracy - 0.01 if target is None else target
            yield line(row)
        yield ""
