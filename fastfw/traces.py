"""What a run reached at its checkpoints: loss, accuracy, Frank-Wolfe gap against time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import positive_int, read_only, require_pair
from fastfw._plots import draw_curve
from fastfw._show import data_frame, short
from fastfw.problems import Classification
from fastfw.sets._accept import dense_vertex
from fastfw.streams import Dataset

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Trace", "frank_wolfe_gap", "log_spaced", "trace"]

Floats = npt.NDArray[np.float64]


def log_spaced(last: int, count: int = 30) -> npt.NDArray[np.intp]:
    """Return up to `count` round numbers from 1 to `last`, evenly spaced on a logarithmic axis.

    They increase, as ``checkpoints`` of `run` and `fit` take them; `last` is T + 1 for the decision
    after T rounds.

    Examples
    --------
    >>> log_spaced(1001, 7).tolist()
    [1, 3, 10, 32, 100, 316, 1001]
    """
    last = positive_int(last, "last")
    count = positive_int(count, "count")
    return np.unique(np.rint(np.geomspace(1, last, count)).astype(np.intp))


def frank_wolfe_gap(problem: Any, set: Any, x: npt.ArrayLike, batch: Any) -> float:
    r"""Return the Frank-Wolfe gap of a point, at least 0 and 0 only where it is stationary.

    .. math:: \max_{v \in M} \langle \nabla f(x), x - v \rangle

    (equation (4) of the paper). For a convex f it bounds f(x) less its minimum.

    Parameters
    ----------
    problem, set : problem, feasible set
        Of f and M.
    x : array_like
        The point, of the set's shape.
    batch : batch, Dataset or pair
        The data of f.

    Returns
    -------
    float
        The gap, in the unit of the loss.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> problem, ball = fw.SoftmaxRegression(2, 2), fw.RowL1Ball((2, 2), radius=1.0)
    >>> round(fw.frank_wolfe_gap(problem, ball, np.zeros((2, 2)), (np.eye(2), [0, 1])), 6)
    0.5
    """
    require_pair(problem, set)
    gradient = np.asarray(problem.gradient(read_only(x), read_only(batch)), np.float64)
    v = dense_vertex(set, gradient)
    return float((gradient * (np.asarray(x, np.float64) - v)).sum())


@dataclass(frozen=True, repr=False)
class Trace:
    """A run at its checkpoints; see `trace`.

    Attributes
    ----------
    rounds, seconds, losses : ndarray, shape (k,)
        Numbers t of the checkpoints, time spent on updates before them, evaluation excluded, and
        f(x_t) on the training data.
    gaps, least_gaps : ndarray, shape (k,) or None
        The Frank-Wolfe gaps of f at x_t, and the smallest so far (Proposition 1); None unless
        asked for.
    accuracies, test_accuracies : ndarray, shape (k,) or None
        Shares of samples classified as labelled; None where the problem cannot tell, or without
        test data.
    """

    rounds: npt.NDArray[np.intp]
    seconds: Floats
    losses: Floats
    gaps: Floats | None
    least_gaps: Floats | None
    accuracies: Floats | None
    test_accuracies: Floats | None

    def __repr__(self) -> str:
        if not len(self.rounds):
            return "<Trace: no checkpoints>"
        return (
            f"<Trace: {len(self.rounds)} checkpoints up to round {self.rounds[-1]}, "
            f"loss {self.losses[-1]:.4f}>"
        )

    def _columns(self) -> dict[str, Floats]:
        """Return what there is to show, by name."""
        columns = {
            "seconds": self.seconds,
            "loss": self.losses,
            "gap": self.gaps,
            "accuracy": self.accuracies,
            "test accuracy": self.test_accuracies,
        }
        return {name: values for name, values in columns.items() if values is not None}

    def _repr_html_(self) -> str:
        columns = self._columns()
        head = "".join(f"<th>{name}</th>" for name in ("round", *columns))
        body = "".join(
            f"<tr><td>{t}</td>{''.join(f'<td>{short(v[i])}</td>' for v in columns.values())}</tr>"
            for i, t in enumerate(self.rounds)
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def to_pandas(self) -> Any:
        """Return a pandas data frame with a row for each checkpoint, indexed by round.

        Raises ImportError where pandas is missing.
        """
        return data_frame(self._columns(), self.rounds, "round")

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the loss against the time spent on updates.

        On `ax`, matplotlib axes, or new ones, which are returned; `label` is for the legend.
        """
        return draw_curve(ax, self.seconds, self.losses, label, "seconds", "loss")


def trace(
    result: Any,
    problem: Any,
    set: Any,
    X: Any,
    y: Any = None,
    *,
    X_test: Any = None,
    y_test: Any = None,
    gap: bool = False,
) -> Trace:
    """Evaluate the points that a run kept.

    Parameters
    ----------
    result : RunResult or FitResult
        From `run` or `fit` with ``checkpoints``.
    problem, set : object
        What was run on.
    X, y, X_test, y_test : array_like, or a Dataset X without y
        The data on which losses, gaps and accuracies are evaluated, and further data for
        accuracies.
    gap : bool
        Whether Frank-Wolfe gaps are wanted; each costs a gradient over the data.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> X, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> problem, ball = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), radius=2.0)
    >>> stream = fw.iid_stream(X, y, batch_size=2, rounds=100, seed=0)
    >>> result = fw.ORGFW(problem, ball).run(stream, checkpoints=fw.log_spaced(101, 5))
    >>> curve = fw.trace(result, problem, ball, X, y, gap=True)
    >>> curve.rounds.tolist(), bool(curve.losses[-1] < curve.losses[0])
    ([1, 3, 10, 32, 101], True)
    >>> bool(np.all(curve.least_gaps >= 0))
    True
    """
    batch = X if isinstance(X, Dataset) and y is None else (X, y)
    if isinstance(problem, Classification) and not isinstance(batch, Dataset):
        batch = Dataset(X, y)  # checked once
    points = list(result.decisions)
    losses = np.array([float(problem.loss(x, read_only(batch))) for x in points])
    gaps = least = accuracies = test = None
    if gap:
        gaps = np.array([frank_wolfe_gap(problem, set, x, batch) for x in points])
        least = np.minimum.accumulate(gaps)
    if hasattr(problem, "accuracy"):
        A, labels = (batch.X, batch.y) if isinstance(batch, Dataset) else batch
        accuracies = np.array([problem.accuracy(x, A, labels) for x in points])
        if X_test is not None and np.size(y_test):
            test = np.array([problem.accuracy(x, X_test, y_test) for x in points])
    return Trace(
        np.asarray(result.checkpoints),
        np.asarray(result.checkpoint_seconds),
        losses,
        gaps,
        least,
        accuracies,
        test,
    )
