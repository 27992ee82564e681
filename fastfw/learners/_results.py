"""What runs and fits return, and how it shows itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, freeze
from fastfw._plots import draw_losses
from fastfw._show import data_frame, html_table, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["FitResult", "Round", "RunResult", "RunSummary"]


class Round(NamedTuple):
    """What a round was: its number and the loss of the decision played in it."""

    t: int
    loss: float


class RunSummary(NamedTuple):
    """A run in a few numbers, which need no more memory the longer it lasts.

    Attributes
    ----------
    rounds : int
        Rounds played.
    mean : float
        Mean of their losses; NaN before any.
    last : ndarray of float64
        The latest losses, of at most 1,000 rounds.
    seconds : float
        Time spent on updates.
    """

    rounds: int
    mean: float
    last: npt.NDArray[np.float64]
    seconds: float

    def __repr__(self) -> str:
        return (
            f"<RunSummary of {self.rounds} rounds: mean loss {self.mean:.6g}, of the last "
            f"{len(self.last)} {self.last.mean() if len(self.last) else np.nan:.6g}, "
            f"{self.seconds:.3g} s>"
        )


def point_of(given: Any) -> FloatArray:
    """Return a point, read-only, of which a learner gave an array or what is not zero in it."""
    if given is None:
        raise AttributeError("a learner with average=False keeps no average; leave it out")
    return freeze(given if isinstance(given, np.ndarray) else given.whole())


@dataclass(frozen=True, repr=False)
class RunResult:
    """Outcome of `OnlineLearner.run` over T rounds.

    Attributes
    ----------
    losses : ndarray of float64, shape (T,)
        Loss of x_t on batch t, before the update; empty after ``run(keep_losses=False)``.
    seconds : ndarray of float64, shape (T,)
        Cumulative time of the updates, without evaluation and without making the batches. A
        compiled run measures several rounds at a time and spreads their time evenly. Empty where
        the losses are.
    decision : ndarray, shape of the set
        The decision after the last round, x_{T+1}; made when it is asked for.
    average : ndarray, shape of the set
        Mean of all decisions played by the learner so far; likewise.
    gradient_evaluations : int
        Gradients of single samples that the method, as the paper states it, asked for.
    lmo_calls : int
        Calls of the linear minimisation oracle.
    checkpoints : ndarray of int, shape (k,)
        Rounds whose decisions were kept.
    decisions : ndarray, shape (k, ...)
        Those decisions x_t.
    checkpoint_seconds : ndarray of float64, shape (k,)
        Update time spent before each of those rounds.
    summary : RunSummary
        Rounds, their mean loss and the latest losses, whether or not all are kept.
    """

    losses: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]
    gradient_evaluations: int
    lmo_calls: int
    checkpoints: npt.NDArray[np.intp]
    decisions: FloatArray
    checkpoint_seconds: npt.NDArray[np.float64]
    summary: RunSummary
    _points: tuple[Any, Any]

    @cached_property
    def decision(self) -> FloatArray:
        """The decision after the last round."""
        return point_of(self._points[0])

    @cached_property
    def average(self) -> FloatArray:
        """Mean of the decisions played."""
        return point_of(self._points[1])

    def __repr__(self) -> str:
        T, mean, _, seconds = self.summary
        return (
            f"<RunResult: {T} rounds, mean loss {mean:.4f}, {1e3 * seconds / max(T, 1):.3g} "
            f"ms per round, {self.gradient_evaluations} gradient evaluations>"
        )

    def _repr_html_(self) -> str:
        T, mean, last, seconds = self.summary
        what = []
        if T:
            what = [
                ("mean loss", short(mean)),
                ("last loss", short(last[-1])),
                ("time per round", f"{1e3 * seconds / T:.3g} ms"),
            ]
        return html_table(
            "RunResult",
            [
                ("rounds", T),
                *what,
                ("gradient evaluations", self.gradient_evaluations),
                ("oracle calls", self.lmo_calls),
                ("decision", f"{self.decision.shape}, {np.count_nonzero(self.decision)} nonzero"),
                ("checkpoints", len(self.checkpoints)),
            ],
        )

    def to_pandas(self) -> Any:
        """Return a pandas data frame of losses and cumulative seconds, a row for each round.

        Raises
        ------
        ImportError
            If pandas is not installed; the message says how to install it.
        """
        columns = {"loss": self.losses, "seconds": self.seconds}
        return data_frame(columns, np.arange(1, len(self.losses) + 1), "round")

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the loss of every round and the mean so far.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new axes by default.
        label : str, optional
            Name in the legend.

        Returns
        -------
        matplotlib axes
            What was drawn on.
        """
        return draw_losses(self.losses, ax, label, "round")


@dataclass(frozen=True, repr=False)
class FitResult:
    """Outcome of `fit` over k iterations: N, or those that were left of them when it was resumed.

    Attributes
    ----------
    losses : ndarray of float64, shape (k,)
        Mean loss of x_t on iteration t's batch: on all data where an epoch starts.
    seconds : ndarray of float64, shape (k,)
        Cumulative time of the iterations, drawing of batches included. Compiled code measures
        several iterations at a time and spreads their time by the samples in them.
    decision : ndarray, shape of the set
        x_{N+1}.
    average : ndarray, shape of the set
        Mean of x_1, ..., x_N.
    gradient_evaluations : int
        Gradients of single samples: n where an epoch starts, else 2 b.
    lmo_calls : int
        Calls of the linear minimisation oracle.
    checkpoints : ndarray of int, shape (c,)
        Iterations whose points were kept.
    decisions : ndarray, shape (c, ...)
        Those points x_t.
    checkpoint_seconds : ndarray of float64, shape (c,)
        Time spent before each of those iterations.
    checkpoint_evaluations : ndarray of int, shape (c,)
        Gradients of single samples asked for before each of those iterations.
    """

    losses: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]
    decision: FloatArray
    average: FloatArray
    gradient_evaluations: int
    lmo_calls: int
    checkpoints: npt.NDArray[np.intp]
    decisions: FloatArray
    checkpoint_seconds: npt.NDArray[np.float64]
    checkpoint_evaluations: npt.NDArray[np.int64]

    def __repr__(self) -> str:
        N = len(self.losses)
        return (
            f"<FitResult: {N} iterations, last loss {self.losses[-1]:.4f}, "
            f"{self.seconds[-1]:.3g} s, {self.gradient_evaluations} gradient evaluations>"
        )

    def _repr_html_(self) -> str:
        return html_table(
            "FitResult",
            [
                ("iterations", len(self.losses)),
                ("last loss", short(self.losses[-1])),
                ("time", f"{self.seconds[-1]:.3g} s"),
                ("gradient evaluations", self.gradient_evaluations),
                ("oracle calls", self.lmo_calls),
                ("decision", f"{self.decision.shape}, {np.count_nonzero(self.decision)} nonzero"),
                ("checkpoints", len(self.checkpoints)),
            ],
        )

    def to_pandas(self) -> Any:
        """Return a pandas data frame of losses and cumulative seconds, a row for each iteration.

        Raises
        ------
        ImportError
            If pandas is not installed; the message says how to install it.
        """
        columns = {"loss": self.losses, "seconds": self.seconds}
        return data_frame(columns, np.arange(1, len(self.losses) + 1), "iteration")

    def plot(self, ax: Axes | None = None, *, label: str | None = None) -> Axes:
        """Draw the loss of every iteration and the mean so far; see `RunResult.plot`."""
        return draw_losses(self.losses, ax, label, "iteration")
