"""What experiments come to: plain records, which tables, pictures and claims are made from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfw.experiments.methods import Method
from fastfw.experiments.theorems import Bound
from fastfw.learners._method import Pair
from fastfw.traces import Trace

__all__ = [
    "Comparator",
    "CompareResult",
    "GridSearch",
    "MethodResult",
    "NetworkComparison",
    "Reproduction",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]


def standard_error(values: npt.ArrayLike) -> float:
    """Return the standard error of the mean (n - 1 in the variance); NaN for one value.

    >>> round(standard_error([1.0, 3.0]), 12)
    1.0
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < 2:
        return math.nan
    if sample.min() == sample.max():
        return 0.0  # not the rounding error of their mean
    return float(sample.std(ddof=1) / math.sqrt(sample.size))


# --- regret against the best fixed decision ----------------------------------------------------


@dataclass(frozen=True)
class Comparator:
    """The best fixed decision and how far it can be from optimal.

    Parameters
    ----------
    value : float
        Its loss, the mean over its rows in nats.
    gap : float
        Its Frank-Wolfe gap: no decision of the set has a loss below ``value - gap``.
    n_rows : int
        How many rows it is the best decision for.
    seconds : float
        How long it took to find.
    inside : bool
        Whether it lies inside the set, off its border: then no larger radius has a lower loss.
    """

    value: float
    gap: float
    n_rows: int
    seconds: float
    inside: bool = False

    @property
    def relative_gap(self) -> float:
        """The gap divided by the value."""
        return self.gap / self.value if self.value > 0 else math.inf if self.gap > 0 else 0.0


@dataclass(frozen=True)
class MethodResult:
    """What one method did in every trial.

    Parameters
    ----------
    method : Method
        Its row of the table of methods.
    step, momentum : str
        The schedules as ``c,e`` for ``min(c / (t + 1)**e, 1)``; ``theory`` for the method's own,
        ``custom`` for any other callable. ``momentum`` is empty where a method has none.
    scale : str
        RegularizedOFW's c, ``theory`` for its own, or that of FTPL; empty for other methods.
    inner_steps, sub_batch_size : str
        Of the meta methods, ``all`` for whole batches; empty for other methods.
    losses : (trials, T) float64 array
        The loss of the played decision in each round, before the update, in nats.
    regret : (trials, T) float64 array
        Cumulative regret against the comparator, in nats.
    seconds : (trials, T) float64 array
        Cumulative time of the updates, evaluation and compilation excluded.
    suboptimality : (trials,) float64 array
        ``(f(x_{T+1}) - f*) / (f(x_1) - f*)`` with f the mean loss over the comparator's rows.
    nonzeros : (trials,) int64 array
        Entries of the last decision that are not zero.
    gradient_evaluations, lmo_calls : (trials,) int64 arrays
        What the run cost, counted in single samples and in oracle calls.
    bound : Bound or None
        A theorem's bound on its regret, where one was asked for and applies.
    no_bound : str
        Why there is none, where one was asked for.
    test_accuracy : (trials,) float64 array or None
        Of the last decision on test data, where there are any.
    """

    method: Method
    step: str
    momentum: str
    scale: str
    inner_steps: str
    sub_batch_size: str
    losses: Floats
    regret: Floats
    seconds: Floats
    suboptimality: Floats
    nonzeros: Integers
    gradient_evaluations: Integers
    lmo_calls: Integers
    bound: Bound | None = None
    no_bound: str = ""
    test_accuracy: Floats | None = None

    @property
    def final_regret(self) -> Floats:
        """Regret after the last round, one entry a trial."""
        return np.asarray(self.regret[:, -1])

    @property
    def ms_per_round(self) -> float:
        """Median over the trials of the mean time of an update, in milliseconds."""
        rounds: int = self.seconds.shape[1]
        return float(np.median(self.seconds[:, -1])) * 1e3 / rounds

    @property
    def least_ms_per_round(self) -> float:
        """The same for the quickest trial: what other work on the machine disturbs least."""
        rounds: int = self.seconds.shape[1]
        return float(self.seconds[:, -1].min()) * 1e3 / rounds


@dataclass(frozen=True)
class CompareResult:
    """The outcome of `compare`: what was run, the comparator, one entry a method.

    Parameters
    ----------
    data : str
        What the data was called.
    n_samples, n_features, n_classes : int
        Its size.
    setting : {"stochastic", "adversarial"}
        How the batches arrived.
    rounds, batch_size, trials, seed : int
        As run, defaults filled in.
    radius : float
        The l1 radius of every row of the decision.
    dtype : str
        ``"float64"`` or ``"float32"``, of features and decisions while learning.
    preset : str
        The name of the constants that the methods took; see `fastfw.experiments.PRESETS`.
    comparator : Comparator
        The best fixed decision that regret is measured against.
    methods : tuple of MethodResult
        In the order asked for.
    hints : tuple of str
        What may be wrong with the data.
    """

    data: str
    n_samples: int
    n_features: int
    n_classes: int
    setting: str
    rounds: int
    batch_size: int
    trials: int
    seed: int
    radius: float
    dtype: str
    preset: str
    comparator: Comparator
    methods: tuple[MethodResult, ...]
    hints: tuple[str, ...] = ()

    @property
    def panels(self) -> dict[str, tuple[Curve, ...]]:
        """Regret by round and the time of a round, as of a `Part`."""
        regret, cost = [], []
        T = np.arange(1, self.rounds + 1)
        for run in self.methods:
            names = run.method.name, run.method.label
            costs = int(run.gradient_evaluations[0]), int(run.lmo_calls[0])
            upper = run.regret + self.comparator.gap * T
            regret.append(Curve(*names, T, run.seconds, run.regret, upper, *costs))
            last = run.seconds[:, -1:]
            ms = last * 1e3 / self.rounds
            cost.append(Curve(*names, T[-1:], last, ms, ms, *costs))
        return {"regret": tuple(regret), "cost": tuple(cost)}


# --- networks at equal work --------------------------------------------------------------------


@dataclass(frozen=True)
class NetworkRun:
    """What one method did in every trial."""

    name: str
    label: str
    #: Rounds or iterations, and gradients of single samples in all of them.
    rounds: int
    evaluations: int
    #: Update time, and worth at log-spaced rounds, by trial.
    seconds: Floats
    traces: tuple[Trace, ...]

    def last(self, what: str) -> Floats:
        """Return an attribute of `Trace` at the last checkpoint, by trial; NaN where None."""
        values = [getattr(t, what) for t in self.traces]
        return np.array([math.nan if v is None else v[-1] for v in values])

    @property
    def times(self) -> Floats:
        """Update time spent before each checkpoint, the median over the trials."""
        return np.asarray(np.median([t.seconds for t in self.traces], axis=0))

    def at(self, time: float, what: str) -> Floats:
        """Return an attribute of `Trace` after so much time, by trial; NaN where None.

        Between checkpoints it is interpolated, linearly in `times`.
        """
        values = [getattr(t, what) for t in self.traces]
        return np.array([math.nan if v is None else np.interp(time, self.times, v) for v in values])


@dataclass(frozen=True)
class NetworkComparison:
    """The outcome of `compare_network`.

    Attributes
    ----------
    data : str
        Name of the data.
    hidden, batch_size, trials, seed : int
        As given.
    radius : float
        Of all l1 balls.
    runs : tuple of NetworkRun
        By method.
    """

    data: str
    hidden: int
    batch_size: int
    trials: int
    seed: int
    radius: float
    runs: tuple[NetworkRun, ...]

    @property
    def lowest_loss(self) -> float:
        """The lowest training loss at any checkpoint of any method."""
        return min(float(t.losses.min()) for run in self.runs for t in run.traces)

    @property
    def common_time(self) -> float:
        """The update time that all methods have reached: the shortest of the medians."""
        return min(float(run.times[-1]) for run in self.runs)

    @property
    def title(self) -> str:
        """What was compared, as pictures call it."""
        return Path(self.data).name

    @property
    def panels(self) -> dict[str, tuple[Curve, ...]]:
        """Suboptimality and accuracies by time, as of a `Part`; those that are known."""
        known = {
            "suboptimality": "losses", "accuracy": "accuracies", "test_accuracy": "test_accuracies"
        }  # fmt: skip
        return {
            panel: tuple(self._curve(run, what) for run in self.runs)
            for panel, what in known.items()
            if all(getattr(trace, what) is not None for run in self.runs for trace in run.traces)
        }

    def _curve(self, run: NetworkRun, what: str) -> Curve:
        """Return an attribute of `Trace` by time; of losses the relative suboptimality.

        That is (f - f*) / (f_1 - f*), the difference alone where no method came below the start.
        """
        values = np.array([getattr(trace, what) for trace in run.traces], dtype=np.float64)
        if what == "losses":
            values -= self.lowest_loss
            span = values[:, :1]
            values = values / np.where(span > 0.0, span, 1.0)
        seconds = np.array([trace.seconds for trace in run.traces])
        rounds = np.asarray(run.traces[0].rounds, dtype=np.int64)
        costs = run.evaluations, int(rounds[-1]) - 1
        return Curve(run.name, run.label, rounds, seconds, values, values, *costs)

    def suboptimality(self, run: NetworkRun) -> Floats:
        """Return (f(x_last) - f*) / (f(x_1) - f*) by trial, with f* the lowest loss found."""
        return self._curve(run, "losses").final


# --- grids of constants ------------------------------------------------------------------------


@dataclass(frozen=True)
class GridPoint:
    """One choice of constants and how it did."""

    step: Pair
    #: None for methods without; the scale where it was not searched.
    momentum: Pair | None
    scale: float | None
    #: The criterion in each trial: lower is better, NaN where a loss was not finite.
    scores: Floats
    #: Update time, mean over the trials.
    seconds: float

    @property
    def score(self) -> float:
        """Mean over the trials."""
        return float(self.scores.mean())


@dataclass(frozen=True)
class GridSearch:
    """The outcome of `grid_search`.

    Parameters
    ----------
    data, method, setting, criterion : str
        What was searched.
    rounds, batch_size, trials, seed : int
        As run, defaults filled in.
    radius : float
        The l1 radius of every row.
    points : tuple of GridPoint
        Best first.
    """

    data: str
    method: str
    setting: str
    criterion: str
    rounds: int
    batch_size: int
    trials: int
    seed: int
    radius: float
    points: tuple[GridPoint, ...]

    @property
    def best(self) -> GridPoint:
        """The point of lowest mean score."""
        return self.points[0]


# --- the paper's figures -----------------------------------------------------------------------


@dataclass(frozen=True)
class Curve:
    """One method in one panel of a figure."""

    method: str
    label: str
    #: The k rounds t that the values belong to.
    rounds: Integers
    #: Time spent on updates until then, and what the panel shows, (trials, k).
    seconds: Floats
    values: Floats
    #: The same against the least loss that the comparator's certificate leaves open; equal to
    #: `values` where there is no comparator.
    upper: Floats
    #: Gradients of single samples, and calls of the oracle, in the whole run.
    work: int
    oracle_calls: int

    @property
    def final(self) -> Floats:
        """The last value of each trial."""
        return np.asarray(self.values[:, -1])


@dataclass(frozen=True)
class Part:
    """A figure on one data set: a column of figures 1 and 2, a row of figure 3."""

    #: As it was asked for, and as pictures call it.
    data: str
    title: str
    n_samples: int
    n_features: int
    n_classes: int
    #: Rounds, batch size, radius and whatever else tables should say.
    settings: dict[str, Any]
    #: By method, in words.
    constants: dict[str, str]
    #: None for networks, whose least loss is not known.
    comparator: Comparator | None
    #: Curves by method in order, by the panel's name: ``regret``, ``cost``, ``suboptimality``,
    #: ``accuracy``, ``test_accuracy``.
    panels: dict[str, tuple[Curve, ...]]
    #: Wall time of all that is kept for it, evaluation included, summed over the runs that did it.
    #: What a stopped run had not finished is not in it.
    seconds: float = 0.0


@dataclass(frozen=True)
class Reproduction:
    """The outcome of `reproduce`.

    Parameters
    ----------
    figure : str
        ``figure1``, ``figure2`` or ``figure3``.
    quick : bool
        Whether it was cut short.
    trials, seed : int
        How many, and the first one's seed.
    parts : tuple of Part
        One for each data set.
    files : tuple of Path
        What was written.
    """

    figure: str
    quick: bool
    trials: int
    seed: int
    parts: tuple[Part, ...]
    files: tuple[Path, ...] = ()
