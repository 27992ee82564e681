"""Train a network with several methods at equal work: the paper's second experiment."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw import _checks
from fastfw.datasets import Split, load
from fastfw.experiments.methods import closest, rounds_at_equal_work
from fastfw.learners.oaw import OAW
from fastfw.learners.ofw import OFW
from fastfw.learners.orgfw import ORGFW
from fastfw.learners.osfw import OSFW
from fastfw.learners.regularized_ofw import RegularizedOFW
from fastfw.learners.spider_fw import SpiderFW
from fastfw.learners.svrf import SVRF
from fastfw.network import OneHiddenLayer
from fastfw.schedules import PowerSchedule, power_schedule
from fastfw.streams import Dataset, iid_stream
from fastfw.traces import Trace, log_spaced, trace

__all__ = ["NETWORK_METHODS", "NetworkComparison", "NetworkRun", "compare_network"]

#: Names on the command line and labels, in order. Those of online methods are as elsewhere.
NETWORK_METHODS = {
    "orgfw": "ORGFW",
    "osfw": "OSFW",
    "regularized-ofw": "ROFW",
    "ofw": "OFW",
    "oaw": "OAW",
    "svrf": "SVRF",
    "spiderfw": "SPIDER-FW",
}
_OFFLINE = {"svrf": SVRF, "spiderfw": SpiderFW}

_C = tuple[float, float]
#: The paper's constants: step and momentum (c, e), or step, epoch length and batch size.
CONSTANTS: dict[str, dict[str, Any]] = {
    "mnist": {
        "orgfw": ((2.0, 1.0), (0.25, 1 / 2)),
        "osfw": ((1.0, 1.0), (0.1, 1 / 2)),
        "regularized-ofw": ((0.1, 2 / 3), 1e3),
        "ofw": ((1.0, 1.0),),
        "oaw": ((1.0, 1.0),),
        "svrf": (2.5e-3, 240, 50),
        "spiderfw": (2e-3, 240, 50),
    },
    "cifar10": {
        "orgfw": ((0.1, 2 / 3), (2.0, 2 / 3)),
        "osfw": ((0.1, 2 / 3), (1.0, 2 / 3)),
        "regularized-ofw": ((0.1, 1 / 2), 1e3),
        "ofw": ((1.0, 1.0),),
        "oaw": ((1.0, 1.0),),
        "svrf": (1e-3, 200, 50),
        "spiderfw": (5e-4, 200, 16),
    },
}


@dataclass(frozen=True)
class NetworkRun:
    """What one method did in every trial.

    Attributes
    ----------
    name, label : str
        On the command line, and as the paper writes it.
    rounds : int
        Rounds or iterations.
    evaluations : int
        Gradients of single samples, in all of them.
    seconds : ndarray, shape (trials,)
        Update time of each trial.
    traces : tuple of Trace
        Loss, accuracy and gap at log-spaced rounds, by trial.
    """

    name: str
    label: str
    rounds: int
    evaluations: int
    seconds: npt.NDArray[np.float64]
    traces: tuple[Trace, ...]

    def last(self, what: str) -> npt.NDArray[np.float64]:
        """Return an attribute of `Trace` at the last checkpoint, by trial; NaN where None."""
        values = [getattr(t, what) for t in self.traces]
        return np.array([math.nan if v is None else v[-1] for v in values])

    @property
    def times(self) -> npt.NDArray[np.float64]:
        """Update time spent before each checkpoint, the median over the trials."""
        return np.asarray(np.median([t.seconds for t in self.traces], axis=0))

    def at(self, time: float, what: str) -> npt.NDArray[np.float64]:
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

    def suboptimality(self, run: NetworkRun) -> npt.NDArray[np.float64]:
        """Return (f(x_last) - f*) / (f(x_1) - f*) by trial, with f* the lowest loss found."""
        first = np.array([t.losses[0] for t in run.traces])
        return relative_suboptimality(run.last("losses"), first, self.lowest_loss)


def relative_suboptimality(
    losses: npt.ArrayLike, first: npt.ArrayLike, least: float
) -> npt.NDArray[np.float64]:
    """Return (f - f*) / (f_1 - f*); the difference alone where no method came below the start.

    Examples
    --------
    >>> relative_suboptimality([4.0, 1.0], 4.0, 0.0), relative_suboptimality([3.0], 2.0, 2.0)
    (array([1.  , 0.25]), array([1.]))
    """
    span = np.asarray(first, dtype=np.float64) - least
    return (np.asarray(losses, dtype=np.float64) - least) / np.where(span > 0.0, span, 1.0)


def compare_network(
    data: Any = "fashion-mnist-4k",
    *,
    hidden: int = 10,
    methods: Sequence[str] | None = None,
    rounds: int = 4000,
    batch_size: int = 16,
    radius: float = 10.0,
    trials: int = 6,
    seed: int = 0,
    dtype: npt.DTypeLike = np.float64,
    init: str | None = None,
    step: PowerSchedule | None = None,
    momentum: PowerSchedule | None = None,
    checkpoints: int = 20,
    gap: bool = True,
    constants: str | None = None,
    root: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> NetworkComparison:
    """Train a network with one hidden layer by several methods at equal gradient evaluations.

    ORGFW plays N rounds, OSFW and RegularizedOFW 2 N, OFW and OAW ⌈2√N⌉, and the offline methods
    as many iterations as cost no more gradients than ORGFW. In a trial all methods start at the
    same point; constants are the paper's (those for MNIST on other data than CIFAR-10).

    Parameters
    ----------
    data : str, path-like, Dataset, pair (X, y), or Split
        Training data; named data come with test data where they have any, as a
        `fastfw.datasets.Split` does.
    hidden : int
        Hidden units, m.
    methods : sequence of str, optional
        Keys of `NETWORK_METHODS`; all by default.
    rounds : int
        N, rounds of ORGFW.
    batch_size : int
        B, samples in the online methods' batches.
    radius : float
        Of all l1 balls.
    trials : int
        Runs of each method; trial i has the seed ``seed + i``.
    seed : int
        Of the first trial.
    dtype : {float64, float32}
        Of features and parameters.
    init : {"zeros", "vertex", "random"}, optional
        See `OneHiddenLayer`; "zeros" is the paper's.
    step, momentum : PowerSchedule, optional
        For the online methods, in place of the paper's.
    checkpoints : int
        About how many log-spaced rounds are evaluated.
    gap : bool
        Whether Frank-Wolfe gaps are.
    constants : {"mnist", "cifar10"}, optional
        Which of the paper's constants; by default those that suit the data's name.
    root : path-like, optional
        Folder of the data sets.
    progress : callable, optional
        Called as ``progress(done, total, what)``.

    Returns
    -------
    NetworkComparison
        Curves and times.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used.
    """
    names = list(NETWORK_METHODS) if methods is None else [str(name) for name in methods]
    for name in names:
        if name not in NETWORK_METHODS:
            raise ValueError(f"methods: unknown {name!r}; {closest(name, list(NETWORK_METHODS))}")
    if not names or len(set(names)) < len(names):
        raise ValueError(f"methods: name at least one, and each once, not {names}")
    N = _checks.positive_int(rounds, "rounds")
    B = _checks.positive_int(batch_size, "batch_size")
    trials = _checks.positive_int(trials, "trials")
    name, train, test = _take(data, root, dtype)
    problem = OneHiddenLayer(train.n_features, hidden, max(train.n_classes, 2))
    M = problem.l1_balls(radius, radius)
    if constants is None:
        constants = "cifar10" if name == "cifar10" else "mnist"
    if constants not in CONSTANTS:
        raise ValueError(f"constants: unknown {constants!r}; {closest(constants, list(CONSTANTS))}")
    own = CONSTANTS[constants]
    rounds_of = {method: _rounds(method, N, B, len(train), own[method]) for method in names}

    def play(method: str, T: int, options: dict[str, Any]) -> Any:
        keep = log_spaced(T + 1, checkpoints)
        if method in _OFFLINE:
            offline = _OFFLINE[method](problem, M, *own[method], **options)
            return offline.fit(train, iterations=T, checkpoints=keep)
        learner = _online(
            method, problem, M, rounds_of[method], own[method], step, momentum, options
        )
        stream = iid_stream(train, None, batch_size=B, rounds=T, seed=options["seed"])
        return learner.run(stream, checkpoints=keep)

    traces: dict[str, list[Trace]] = {method: [] for method in names}
    seconds: dict[str, list[float]] = {method: [] for method in names}
    evaluations: dict[str, int] = {}
    for method in names:  # short and not timed: these compile
        play(method, min(rounds_of[method], 3), {"seed": seed, "init": init})
    for trial in range(trials):
        # Methods take turns, so that whatever else the machine does meets them alike.
        for index, method in enumerate(names):
            if progress is not None:
                done = trial * len(names) + index
                progress(done, len(names) * trials, NETWORK_METHODS[method])
            result = play(method, rounds_of[method], {"seed": seed + trial, "init": init})
            evaluations[method] = result.gradient_evaluations
            seconds[method].append(float(result.seconds[-1]))
            traces[method].append(
                trace(result, problem, M, train, X_test=test[0], y_test=test[1], gap=gap)
            )
    runs = [
        NetworkRun(
            method,
            NETWORK_METHODS[method],
            rounds_of[method],
            evaluations[method],
            np.array(seconds[method]),
            tuple(traces[method]),
        )
        for method in names
    ]
    return NetworkComparison(name, hidden, B, trials, seed, float(radius), tuple(runs))


def _rounds(method: str, N: int, B: int, n: int, constants: tuple[Any, ...]) -> int:
    """Return the rounds that cost as much as N rounds of ORGFW, or the iterations."""
    if method in _OFFLINE:
        q, b = constants[1:]
        return _affordable(2 * B * N, n, q, b)
    return rounds_at_equal_work(method, N)


def _online(
    method: str,
    problem: Any,
    M: Any,
    T: int,
    constants: tuple[Any, ...],
    step: PowerSchedule | None,
    momentum: PowerSchedule | None,
    options: dict[str, Any],
) -> Any:
    """Make an online learner with the paper's constants, or those given."""
    eta = power_schedule(*constants[0]) if step is None else step
    if method in ("orgfw", "osfw"):
        rho = power_schedule(*constants[1]) if momentum is None else momentum
        kind: Any = ORGFW if method == "orgfw" else OSFW
        return kind(problem, M, step=eta, momentum=rho, **options)
    if method == "regularized-ofw":
        return RegularizedOFW(problem, M, rounds=T, step=eta, eta=constants[1], **options)
    return (OFW if method == "ofw" else OAW)(problem, M, step=eta, **options)


def _affordable(budget: int, n: int, q: int, b: int) -> int:
    """Return the most iterations that cost no more than the budget; at least one."""
    epoch = n + (q - 1) * 2 * b
    whole, rest = divmod(budget, epoch)
    return max(1, whole * q + (1 + (rest - n) // (2 * b) if rest >= n else 0))


def _take(data: Any, root: Any, dtype: npt.DTypeLike) -> tuple[str, Dataset, tuple[Any, Any]]:
    """Return a name, the training data, and test data or None."""
    if isinstance(data, str | os.PathLike):
        X, y, X_test, y_test = load(data, root=root, dtype=np.dtype(dtype))
        name = os.fspath(data).encode("utf-8", "replace").decode()
        return name, Dataset(X, y), (X_test, y_test)
    if isinstance(data, Split):
        train = Dataset(data.X, data.y).astype(dtype)
        return "data", train, (data.X_test, data.y_test)
    own = data if isinstance(data, Dataset) else Dataset(*data)
    return "data", own.astype(dtype), (None, None)
