"""The scikit-learn classifier beside other linear classifiers, on images and on text."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise, repeat
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import train_test_split

import fastfw as fw
from bench.compare.turns import Work, made, seconds
from bench.tables import Columns
from fastfw.sklearn import ProjectionFreeClassifier

#: More rows than this are many.
MANY = 20_000
#: CPU seconds of a fit after which no longer ones are tried.
LONGEST = 60.0
#: Passes or iterations that are tried.
BUDGETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
#: Rows of a call of partial_fit.
BATCH = 16

#: Rows and classes for training, and for testing.
Data = tuple[Any, Any, Any, Any]


def sgd(penalty: str, alpha: float, **options: Any) -> SGDClassifier:
    """Logistic loss, one against the rest."""
    return SGDClassifier("log_loss", penalty=penalty, alpha=alpha, random_state=0, **options)


def vowpal_lines(X: Any, labels: Any = None) -> list[str]:
    """Sparse rows, with their classes from 0 on, as Vowpal Wabbit reads them."""
    entries = [*map("{}:{:.6g}".format, X.indices, X.data)]
    heads = repeat("") if labels is None else (f"{label + 1} " for label in labels)
    ends = pairwise(X.indptr)
    return [f"{h}| {' '.join(entries[a:b])}" for (a, b), h in zip(ends, heads, strict=False)]


def timed(model: Any, X: Any, y: Any) -> tuple[float, Any]:
    """CPU seconds of a fit, and the model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # short fits do not converge, on purpose
        return seconds(lambda: model.fit(X, y), process_time), model


class Tuned(NamedTuple):
    """The best setting, seconds of the search and of a fit to all rows, and the model."""

    setting: Any
    search: float
    fit: float
    model: Any


def tuned(make: Callable[[Any], Any], settings: Sequence[Any], X: Any, y: Any) -> Tuned:
    """Find the setting that does best on a fifth of the rows; the only one is not tried."""
    order = np.random.default_rng(0).permutation(len(y))
    held, rest = order[: len(y) // 5], order[len(y) // 5 :]
    fits = [timed(make(own), X[rest], y[rest]) for own in settings if len(settings) > 1]
    scores = [model.score(X[held], y[held]) for _, model in fits] or [0.0]
    best = settings[int(np.argmax(scores))]
    return Tuned(best, sum(spent for spent, _ in fits), *timed(make(best), X, y))


# --- images ---------------------------------------------------------------------------------------

COLUMNS = Columns({
    "model": "<26", "setting": ">9", "accuracy": ">10.4f", "nonzeros": ">10", "tuned, s": ">10.2f",
    "fit, s": ">9.2f", "to accuracy, s": ">16.3f",
})  # fmt: skip


def models(many: bool) -> dict[str, tuple[Callable[[Any, int | None], Any], Sequence[Any]]]:
    """Classifiers: how they are made from a setting and a budget, and the settings to choose from.

    Without a budget they end by themselves.
    """

    def logistic(C: float, budget: int | None) -> Any:
        return LogisticRegression(C=C, max_iter=budget or 300)

    def descent(alpha: float, budget: int | None, penalty: str) -> Any:
        limit = {"max_iter": budget, "tol": None} if budget else {"early_stopping": many}
        return sgd(penalty, alpha, **limit)

    def ours(radius: Any, budget: int | None) -> Any:
        return ProjectionFreeClassifier(radius=radius, **({"max_iter": budget} if budget else {}))

    alphas = (1e-4,) if many else (1e-5, 1e-4, 1e-3, 1e-2)
    return {
        "LogisticRegression": (logistic, (0.001, 0.01, 0.1, 1.0, 10.0)),
        "SGDClassifier, l2": (partial(descent, penalty="l2"), alphas),
        "SGDClassifier, l1": (partial(descent, penalty="l1"), alphas),
        "ProjectionFreeClassifier": (ours, ("auto",)),
    }


def images(name: str) -> Data:
    """Training and test data in single precision; a quarter of digits is for the test."""
    X, y, X_test, y_test = fw.datasets.load(name)
    if not len(X_test):
        X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    return X.astype(np.float32), y, X_test.astype(np.float32), y_test


def shortest(make: Callable[[int], Any], data: Data, target: float) -> float:
    """Seconds of the shortest fit that reaches an accuracy; nan where none does."""
    X, y, X_test, y_test = data
    for budget in BUDGETS:
        spent, model = timed(make(budget), X, y)
        if model.score(X_test, y_test) >= target:
            return spent
        if spent > LONGEST:
            break
    return np.nan


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
    ProjectionFreeClassifier(radius=1.0, max_iter=1).fit(np.eye(4, dtype=np.float32), np.arange(4))
    names = ("digits", "fashion-mnist-4k", "fashion-mnist")
    for name in work.choose(dict.fromkeys(names[:1] if work.quick else names)):
        try:
            data = images(name)
        except (FileNotFoundError, ValueError) as error:
            yield f"{name}: skipped: {str(error).splitlines()[0]}"
            continue
        X, y, X_test, y_test = data
        yield f"{name}: {X.shape[0]} x {X.shape[1]}\n{COLUMNS.head}"
        target = None
        for label, (make, settings) in models(len(y) > MANY).items():
            best = tuned(partial(make, budget=None), settings, X, y)
            accuracy = best.model.score(X_test, y_test)
            target = accuracy - 0.01 if target is None else target
            setting = best.model.radius_ if best.setting == "auto" else best.setting
            yield COLUMNS.line(
                label, f"{setting:g}", accuracy, np.count_nonzero(best.model.coef_),
                best.search + best.fit, best.fit, shortest(partial(make, setting), data, target),
            )  # fmt: skip
        yield ""


# --- text -----------------------------------------------------------------------------------------


def documents(name: str) -> Data:
    """Rows of hashed words and their classes, for training and for testing."""
    folder = Path(os.environ.get("FASTFW_DATA", "")) / "text"
    X, X_test = (
        sparse.csr_array(sparse.load_npz(folder / f"{name}_h18_{part}.npz"))
        for part in ("tr", "te")
    )
    labels = np.load(folder / f"{name}_h18_y.npz")
    return X, labels["ya"], X_test, labels["yb"]


class Learnt(NamedTuple):
    """Accuracy on test data, nonzero coefficients, seconds."""

    accuracy: float
    nonzeros: int
    seconds: float


def learnt(model: Any, spent: float, data: Data) -> Learnt:
    return Learnt(model.score(*data[2:]), int(np.count_nonzero(model.coef_)), spent)


def in_calls(model: Any, data: Data, size: int | None = None) -> Learnt:
    """One pass: calls of a few rows in a random order, or all rows in theirs."""
    X, y = data[:2]
    classes, calls = np.unique(y), [slice(None)]
    if size is not None:
        order = np.random.default_rng(0).permutation(len(y))
        calls = np.split(order, range(size, len(y), size))

    def learn() -> None:
        for rows in calls:
            model.partial_fit(X[rows], y[rows], classes=classes)

    return learnt(model, seconds(learn, process_time), data)


def in_search(make: Callable[[float], Any], settings: Sequence[float], data: Data) -> Learnt:
    """Choose by held-out rows, and fit all: the time is that of both."""
    best = tuned(make, settings, *data[:2])
    return learnt(best.model, best.search + best.fit, data)


def saga(C: float) -> LogisticRegression:
    """An l1 penalty; 10 iterations, of which each is a pass."""
    return LogisticRegression(C=C, solver="saga", l1_ratio=1.0, max_iter=10, random_state=0)


def vowpal_wabbit(data: Data, passes: int = 1) -> Learnt:
    """One against all, logistic loss: as it comes but for an l1 penalty."""
    import vowpalwabbit

    X, y, X_test, y_test = data
    classes = np.unique(y)
    order = np.random.default_rng(0).permutation(len(y))
    lines = vowpal_lines(X[order], np.searchsorted(classes, y)[order])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights"
        model = vowpalwabbit.Workspace(
            f"--oaa {len(classes)} --loss_function logistic -b 22 --l1 1e-7 --quiet "
            f"--readable_model {path}"
        )
        spent = seconds(
            lambda: [model.learn(line) for _ in range(passes) for line in lines], process_time
        )
        found = classes[np.array([model.predict(line) for line in vowpal_lines(X_test)]) - 1]
        model.finish()
        weights = [line.split(":") for line in path.read_text().splitlines()]
    nonzeros = sum(
        len(w) == 2 and w[0].isdigit() and float(w[1].split()[0]) != 0.0 for w in weights
    )
    return Learnt(float(np.mean(found == y_test)), nonzeros, spent)


SIDES: dict[str, Callable[[Data], Learnt]] = {
    "ProjectionFreeClassifier, one pass": lambda data: in_calls(
        ProjectionFreeClassifier(), data, BATCH
    ),
    "ProjectionFreeClassifier": lambda data: in_search(
        lambda radius: ProjectionFreeClassifier(radius=radius), ("auto",), data
    ),
    "SGDClassifier, l1, one pass": lambda data: in_calls(sgd("l1", 1e-5), data),
    "SGDClassifier, l1": lambda data: in_search(partial(sgd, "l1"), (1e-6, 1e-5, 1e-4), data),
    "LogisticRegression, saga, l1": lambda data: in_search(saga, (1.0, 10.0, 100.0), data),
    "Vowpal Wabbit, one pass": vowpal_wabbit,
    "Vowpal Wabbit, 10 passes": lambda data: vowpal_wabbit(data, 10),
}


def text(work: Work) -> Iterator[Any]:
    """Classifiers of text: how good, how sparse, how long it takes; CPU times of one thread.

    R8 has 5,485 documents of 8 classes, 20 newsgroups 11,293 of 20, as rows of norm one of 2^18
    hashed words. They are read from the folder ``text`` in that which FASTFW_DATA names. *One pass*
    is one call for every 16 rows. Times are those of learning, with the choice of settings:
    ProjectionFreeClassifier's own search, and of SGDClassifier and LogisticRegression the best of
    three penalties on a fifth of the rows, then a fit to all. Vowpal Wabbit reads lines of text,
    which are made beforehand.
    """
    columns = Columns({
        "model": "<36", "accuracy": ">9.4f", "nonzeros": ">10", "seconds": ">10.1f"
    })  # fmt: skip
    for name in work.choose(dict.fromkeys(("r8",) if work.quick else ("r8", "20news"))):
        try:
            data = documents(name)
        except (OSError, ValueError) as error:
            yield f"{name}: skipped: {str(error).splitlines()[0]}"
            continue
        yield f"{name}: {data[0].shape[0]} x {data[0].shape[1]}\n{columns.head}"
        for side, run in SIDES.items():
            if work.quick and "saga" in side:
                continue
            found, skipped = made({side: partial(run, data)})
            yield columns.line(side, *(found.get(side) or (f" {skipped[side]}",)))
        yield ""
