"""The classifier on text, beside linear classifiers for sparse rows."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from bench.compare.classifiers import timed, tuned
from bench.compare.turns import Work

#: Rows of a call of partial_fit.
BATCH = 16
#: What SGDClassifier and LogisticRegression choose from, on a fifth of the rows.
ALPHAS, COSTS = (1e-6, 1e-5, 1e-4), (1.0, 10.0, 100.0)

Data = tuple[Any, Any, Any, Any]
Found = tuple[float, int, float]


def load(name: str) -> Data:
    """Rows of hashed words and their classes, for training and for testing."""
    from scipy import sparse

    folder = Path(os.environ.get("FASTFW_DATA", "")) / "text"
    X, X_test = (sparse.csr_array(sparse.load_npz(folder / f"{name}_h18_{part}.npz"))
                 for part in ("tr", "te"))  # fmt: skip
    labels = np.load(folder / f"{name}_h18_y.npz")
    return X, labels["ya"], X_test, labels["yb"]


def _judged(model: Any, seconds: float, data: Data) -> Found:
    return model.score(data[2], data[3]), int(np.count_nonzero(model.coef_)), seconds


def one_pass(data: Data) -> Found:
    """Our classifier: calls of a few rows, in a random order."""
    from fastfw.sklearn import ProjectionFreeClassifier

    X, y = data[:2]
    order, classes = np.random.default_rng(0).permutation(len(y)), np.unique(y)
    model, begun = ProjectionFreeClassifier(), process_time()
    for first in range(0, len(y), BATCH):
        rows = order[first : first + BATCH]
        model.partial_fit(X[rows], y[rows], classes=classes)
    return _judged(model, process_time() - begun, data)


def fit(data: Data) -> Found:
    """Our classifier with all its defaults."""
    from fastfw.sklearn import ProjectionFreeClassifier

    seconds, model = timed(ProjectionFreeClassifier(), *data[:2])
    return _judged(model, seconds, data)


def _tuned(make: Callable[[float], Any], settings: tuple[float, ...], data: Data) -> Found:
    """Choose by held-out rows, and fit all: the time is that of both."""
    _, search, seconds, model = tuned(make, settings, *data[:2])
    return _judged(model, search + seconds, data)


def sgd(data: Data) -> Found:
    """SGDClassifier with an l1 penalty."""
    from sklearn.linear_model import SGDClassifier

    return _tuned(
        lambda alpha: SGDClassifier("log_loss", penalty="l1", alpha=alpha, random_state=0),
        ALPHAS, data,
    )  # fmt: skip


def sgd_one_pass(data: Data) -> Found:
    """SGDClassifier as it is quickest: all rows in one call, in their order."""
    from sklearn.linear_model import SGDClassifier

    model, begun = (
        SGDClassifier("log_loss", penalty="l1", alpha=1e-5, random_state=0),
        process_time(),
    )
    model.partial_fit(*data[:2], classes=np.unique(data[1]))
    return _judged(model, process_time() - begun, data)


def saga(data: Data) -> Found:
    """LogisticRegression by saga with an l1 penalty; 10 iterations, of which each is a pass."""
    from sklearn.linear_model import LogisticRegression

    return _tuned(
        lambda C: LogisticRegression(
            C=C, solver="saga", l1_ratio=1.0, max_iter=10, random_state=0
        ),
        COSTS, data,
    )  # fmt: skip


def vowpal_wabbit(data: Data, passes: int = 1) -> Found:
    """One against all, logistic loss: as it comes but for an l1 penalty."""
    import vowpalwabbit

    X, y, X_test, y_test = data
    classes = np.unique(y)
    order = np.random.default_rng(0).permutation(len(y))

    def lines(X: Any, rows: Any, labels: Any = None) -> list[str]:
        found = []
        for i in rows:
            own = slice(*X.indptr[i : i + 2])
            entries = map("{}:{:.6g}".format, X.indices[own], X.data[own])
            label = "" if labels is None else f"{labels[i] + 1} "
            found.append(f"{label}| {' '.join(entries)}")
        return found

    learned, asked = lines(X, order, np.searchsorted(classes, y)), lines(X_test, range(len(y_test)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "weights"
        model = vowpalwabbit.Workspace(
            f"--oaa {len(classes)} --loss_function logistic -b 22 --l1 1e-7 --quiet "
            f"--readable_model {path}"
        )
        begun = process_time()
        for _ in range(passes):
            for line in learned:
                model.learn(line)
        seconds = process_time() - begun
        found = classes[np.array([model.predict(line) for line in asked]) - 1]
        model.finish()
        weights = [line.split(":") for line in path.read_text().splitlines()]
    nonzeros = sum(
        len(w) == 2 and w[0].isdigit() and float(w[1].split()[0]) != 0.0 for w in weights
    )
    return float(np.mean(found == y_test)), nonzeros, seconds


SIDES: dict[str, Callable[[Data], Found]] = {
    "ProjectionFreeClassifier, one pass": one_pass,
    "ProjectionFreeClassifier": fit,
    "SGDClassifier, l1, one pass": sgd_one_pass,
    "SGDClassifier, l1": sgd,
    "LogisticRegression, saga, l1": saga,
    "Vowpal Wabbit, one pass": vowpal_wabbit,
    "Vowpal Wabbit, 10 passes": lambda data: vowpal_wabbit(data, 10),
}


def text(work: Work) -> Iterator[Any]:
    """Classifiers of text: how good, how sparse, how long it takes; CPU times of one thread.

    R8 has 5,485 documents of 8 classes, 20 newsgroups 11,293 of 20, as rows of norm one of 2^18
    hashed words. They are read from the folder
    ``text`` in that which FASTFW_DATA names. *One pass* is one call for every
    16 rows. Times are those of learning, with the choice of settings: ProjectionFreeClassifier's
    own search, and of SGDClassifier and LogisticRegression the best of three penalties on a fifth
    of the rows, then a fit to all. Vowpal Wabbit reads lines of text, which are made beforehand.
    """
    for name in work.choose(dict.fromkeys(("r8",) if work.quick else ("r8", "20news"))):
        try:
            data = load(name)
        except (OSError, ValueError) as error:
            yield f"{name}: skipped: {str(error).splitlines()[0]}"
            continue
        yield f"{name}: {data[0].shape[0]} x {data[0].shape[1]}"
        yield f"{'model':<36}{'accuracy':>9} {'nonzeros':>9} {'seconds':>9}"
        for side, run in SIDES.items():
            if work.quick and "saga" in side:
                continue
            try:
                accuracy, nonzeros, seconds = run(data)
            except ImportError as error:
                yield f"{side:<36} skipped: {error}"
                continue
            yield f"{side:<36}{accuracy:9.4f} {nonzeros:9} {seconds:9.1f}"
        yield ""
