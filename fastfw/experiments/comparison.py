"""Run several methods on the same batches and measure their regret against one comparator."""

import math
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfw import _checks
from fastfw.datasets import load
from fastfw.experiments.bounds import Bound, find_bound
from fastfw.experiments.methods import (
    SETTINGS,
    SUB_BATCH,
    Method,
    closest,
    default_methods,
    find_methods,
)
from fastfw.experiments.presets import PRESETS, Constants, default_preset
from fastfw.problems import SoftmaxRegression
from fastfw.regret import best_fixed_decision, regret, suboptimality
from fastfw.schedules import PowerSchedule, Schedule, power_schedule
from fastfw.sets import RowL1Ball
from fastfw.streams import Dataset, IndexedStream, iid_stream, sorted_stream

__all__ = [
    "Comparator",
    "CompareResult",
    "MethodResult",
    "Race",
    "check_scale",
    "compare",
    "constants_of",
    "defaults",
    "make_stream",
    "played_rows",
    "prepare",
    "problem_and_ball",
    "run",
    "standard_error",
    "take_data",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


Progress: TypeAlias = Callable[[int, int, str], None]
"""Called as ``progress(done, total, what)``: how many steps are done, and what comes next."""


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
    """

    value: float
    gap: float
    n_rows: int
    seconds: float

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
    eta, scale : str
        RegularizedOFW's c, ``theory`` for its own, and that of FTPL; empty for other methods.
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
    """

    method: Method
    step: str
    momentum: str
    eta: str
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

    @property
    def final_regret(self) -> Floats:
        """Regret after the last round, one entry a trial."""
        last: Floats = self.regret[:, -1]
        return last

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


@dataclass(frozen=True)
class _Defaults:
    """Rounds, batch size and radius where none are given."""

    rounds: int
    batch_size: int
    radius: float


# The paper's values where it has any (MNIST and CIFAR-10); elsewhere what lets the regret curves
# bend within the run. By data set and setting.
_DEFAULTS = {
    ("fashion-mnist-4k", "stochastic"): _Defaults(400, 100, 8.0),
    ("fashion-mnist-4k", "adversarial"): _Defaults(100, 40, 8.0),
    ("mnist", "stochastic"): _Defaults(400, 600, 8.0),
    ("mnist", "adversarial"): _Defaults(100, 600, 8.0),
    ("fashion-mnist", "stochastic"): _Defaults(400, 600, 8.0),
    ("fashion-mnist", "adversarial"): _Defaults(100, 600, 8.0),
    ("cifar10", "stochastic"): _Defaults(100, 500, 32.0),
    ("cifar10", "adversarial"): _Defaults(100, 500, 32.0),
}


def defaults(name: str, setting: str, n_samples: int) -> _Defaults:
    """Return the defaults for a data set; unknown data gets values that fit its size."""
    known = _DEFAULTS.get((name.casefold(), setting))
    if known is not None:
        return known
    if setting == "adversarial":
        rounds = min(100, n_samples)
        return _Defaults(rounds, n_samples // rounds, 8.0)
    return _Defaults(400, min(100, n_samples), 8.0)


def standard_error(values: npt.ArrayLike) -> float:
    """Return the standard error of the mean (n - 1 in the variance); NaN for one value.

    Examples
    --------
    >>> round(standard_error([1.0, 3.0]), 12)
    1.0
    """
    sample = np.asarray(values, dtype=np.float64)
    if sample.size < 2:
        return math.nan
    if sample.min() == sample.max():
        return 0.0  # not the rounding error of their mean
    return float(sample.std(ddof=1) / math.sqrt(sample.size))


def take_data(data: Any, root: str | os.PathLike[str] | None) -> tuple[str, Dataset]:
    """Return a name for the data and the data itself, float64 or float32 features."""
    if isinstance(data, str | os.PathLike):
        loaded = load(data, root=root)
        # A path may hold bytes that are no text; the name is for tables and files.
        name = os.fspath(data).encode("utf-8", "replace").decode()
        return name, Dataset(loaded.X, loaded.y)
    if isinstance(data, Dataset):
        return "data", data
    if not isinstance(data, tuple | list) or len(data) != 2:
        raise TypeError(
            "data must be the name of a data set, a path, a Dataset or a pair (X, y), but it is "
            f"{_checks.shown(data)}"
        )
    X, y = data
    return "data", Dataset(X, y)


def check_scale(data: Dataset, radius: float) -> None:
    """Refuse logits so large that they, or what is computed from them, overflow."""
    largest = float(np.abs(data.X).max())
    limit = 1e100 if data.X.dtype == np.float64 else 1e15
    if max(radius, 1.0) * largest > limit:
        raise ValueError(
            f"radius: {radius:g} with features up to {largest:g} allows logits that overflow in "
            f"{data.X.dtype}; at most {limit:g} is wanted of their product: rescale X or take a "
            "smaller radius"
        )


def make_stream(
    setting: str, data: Dataset, *, batch_size: int, rounds: int, seed: int
) -> IndexedStream:
    """Return the stream of one trial."""
    if setting == "stochastic":
        return iid_stream(data, None, batch_size=batch_size, rounds=rounds, seed=seed)
    return sorted_stream(data, None, batch_size=batch_size, rounds=rounds)


@dataclass(frozen=True)
class Race:
    """A comparison that is ready to run: everything checked, loaded and made room for.

    `prepare` makes it and raises for every fault of the input; `run` does the work.
    """

    name: str
    setting: str
    rounds: int
    batch_size: int
    radius: float
    seeds: range
    methods: tuple[Method, ...]
    exact: Dataset
    fast: Dataset
    streams: list[IndexedStream]
    preset: str
    options: tuple[dict[str, Any], ...]
    results: tuple[MethodResult, ...]
    bounds: bool
    tol: float

    @property
    def steps(self) -> int:
        """How many steps `run` takes: the comparator, then one for each trial and method."""
        return 1 + len(self.seeds) * len(self.methods)


def prepare(
    data: Any = "fashion-mnist-4k",
    *,
    root: str | os.PathLike[str] | None = None,
    setting: str = "stochastic",
    methods: Iterable[str] | None = None,
    rounds: int | None = None,
    batch_size: int | None = None,
    radius: float | None = None,
    trials: int = 6,
    seed: int = 0,
    dtype: npt.DTypeLike = np.float64,
    preset: str | None = None,
    step: Schedule | None = None,
    momentum: Schedule | None = None,
    inner_steps: int | None = None,
    sub_batch_size: int | None = SUB_BATCH,
    bounds: bool = False,
    tol: float = 1e-6,
) -> Race:
    """Check all arguments of `compare` and load the data.

    Returns
    -------
    Race
        What `run` takes.

    Raises
    ------
    TypeError, ValueError, OSError, ImportError, MemoryError
        As `compare` says.
    """
    if setting not in SETTINGS:
        raise ValueError(f"setting: unknown setting {setting!r}; {closest(str(setting), SETTINGS)}")
    chosen = find_methods(default_methods(setting) if methods is None else methods)
    trials = _checks.positive_int(trials, "trials")
    first_seed = _checks.positive_int(seed, "seed", minimum=0)
    learning = _checks.float_dtype(dtype)
    if preset is not None and preset not in PRESETS:
        raise ValueError(f"preset: unknown {preset!r}; {closest(str(preset), list(PRESETS))}")
    tol = _checks.positive_float(tol, "tol")
    # The streams and the set check these too, but only once the data is loaded.
    for value, argument in (
        (rounds, "rounds"),
        (batch_size, "batch_size"),
        (inner_steps, "inner_steps"),
        (sub_batch_size, "sub_batch_size"),
    ):
        if value is not None:
            _checks.positive_int(value, argument)
    if radius is not None:
        _checks.positive_float(radius, "radius")

    name, dataset = take_data(data, root)
    _checks.fewer_classes_than_rows(dataset.y)
    if dataset.n_classes < 2:
        raise ValueError("y: every label is 0; at least two classes (0, 1, ...) are wanted")
    default = defaults(name, setting, dataset.n_samples)
    preset = default_preset(name, setting) if preset is None else preset
    options = tuple(
        {
            **constants_of(method, preset, step, momentum),
            "inner_steps": inner_steps,
            "sub_batch_size": sub_batch_size,
        }
        for method in chosen
    )
    T = default.rounds if rounds is None else int(rounds)
    B = default.batch_size if batch_size is None else int(batch_size)
    r = default.radius if radius is None else float(radius)
    fast = dataset.astype(learning)
    check_scale(fast, r)
    problem, ball = problem_and_ball(dataset, r)
    too_large = MemoryError(
        f"rounds, batch_size: the curves of {len(chosen)} methods, {trials} trials and {T} "
        f"rounds, or a batch of {B} rows, or the base learners of a meta method, do not fit "
        "into memory; ask for less"
    )
    try:
        learners = [
            method.build(problem, ball, rounds=T, seed=0, **taken)
            for method, taken in zip(chosen, options, strict=True)
        ]
    except (MemoryError, OverflowError):
        raise too_large from None
    try:
        results = tuple(
            _empty_result(method, learner, taken, trials, T)
            for method, learner, taken in zip(chosen, learners, options, strict=True)
        )
        np.empty((2, B), dtype=np.intp)
        for result in results:
            np.empty((int(result.inner_steps or 1), *ball.shape), dtype=learning)
    except (MemoryError, OverflowError, ValueError):  # NumPy's, of shapes beyond all bounds
        raise too_large from None
    seeds = range(first_seed, first_seed + trials)
    return Race(
        name=name,
        setting=setting,
        rounds=T,
        batch_size=B,
        radius=r,
        seeds=seeds,
        methods=chosen,
        exact=dataset.astype(np.float64),
        fast=fast,
        streams=[make_stream(setting, fast, batch_size=B, rounds=T, seed=s) for s in seeds],
        preset=preset,
        options=options,
        results=results,
        bounds=bool(bounds),
        tol=tol,
    )


def run(race: Race, *, progress: Progress | None = None) -> CompareResult:
    """Do the work that `prepare` has set up.

    Parameters
    ----------
    race : Race
        From `prepare`.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each step and once at the end.

    Returns
    -------
    CompareResult
        As from `compare`.

    Raises
    ------
    FloatingPointError
        If a loss overflows, or if features are so small that their squares vanish.
    """

    def tell(done: int, what: str) -> None:
        if progress is not None:
            progress(done, race.steps, what)

    tell(0, "comparator")
    problem, ball = problem_and_ball(race.exact, race.radius)
    played = race.exact
    if race.setting == "adversarial":
        played = played_rows(race.exact, race.streams[0])
    best = best_fixed_decision(problem, ball, played.X, played.y, tol=race.tol)
    initial = problem.loss(np.asarray(ball.start()), played)

    done = 0
    for trial, (stream, seed) in enumerate(zip(race.streams, race.seeds, strict=True)):
        entries = zip(race.methods, race.options, race.results, strict=True)
        for method, options, outcome in entries:
            done += 1
            if trial == 0:
                tell(done, f"{method.label}, compiling")
                # Compile, and touch the memory, before the clock runs.
                few = min(race.rounds, 2)
                warm = make_stream(
                    race.setting, race.fast, batch_size=race.batch_size, rounds=few, seed=0
                )
                method.build(problem, ball, rounds=few, seed=0, **options).run(warm)
            tell(done, f"{method.label}, trial {trial + 1}")
            # Its own draws have nothing to do with those of the batches.
            learner = method.build(problem, ball, rounds=race.rounds, seed=(seed, 1), **options)
            ran = learner.run(stream)
            decision = np.asarray(ran.decision, dtype=np.float64)
            outcome.losses[trial] = ran.losses
            outcome.regret[trial] = regret(ran, best, stream)
            outcome.seconds[trial] = ran.seconds
            if initial > best.value:
                final = problem.loss(decision, played)
                outcome.suboptimality[trial] = suboptimality(final, best, initial)
            outcome.nonzeros[trial] = np.count_nonzero(decision)
            outcome.gradient_evaluations[trial] = ran.gradient_evaluations
            outcome.lmo_calls[trial] = ran.lmo_calls
    results = race.results
    if race.bounds:
        results = tuple(
            _with_bound(race, outcome, options, played, initial - best.value + best.gap)
            for outcome, options in zip(race.results, race.options, strict=True)
        )
    tell(race.steps, "done")
    return CompareResult(
        data=race.name,
        n_samples=race.exact.n_samples,
        n_features=race.exact.n_features,
        n_classes=race.exact.n_classes,
        setting=race.setting,
        rounds=race.rounds,
        batch_size=race.batch_size,
        trials=len(race.seeds),
        seed=race.seeds.start,
        radius=race.radius,
        dtype=race.fast.X.dtype.name,
        preset=race.preset,
        comparator=Comparator(
            value=float(best.value),
            gap=float(best.gap),
            n_rows=played.n_samples,
            seconds=float(best.seconds),
        ),
        methods=results,
    )


def compare(
    data: Any = "fashion-mnist-4k",
    *,
    root: str | os.PathLike[str] | None = None,
    setting: str = "stochastic",
    methods: Iterable[str] | None = None,
    rounds: int | None = None,
    batch_size: int | None = None,
    radius: float | None = None,
    trials: int = 6,
    seed: int = 0,
    dtype: npt.DTypeLike = np.float64,
    preset: str | None = None,
    step: Schedule | None = None,
    momentum: Schedule | None = None,
    inner_steps: int | None = None,
    sub_batch_size: int | None = SUB_BATCH,
    bounds: bool = False,
    tol: float = 1e-6,
    progress: Progress | None = None,
) -> CompareResult:
    """Run several methods on the same batches and measure their regret.

    Softmax regression over the set of matrices whose rows have an l1 norm of at most `radius`.
    Trial i draws its batches with seed ``seed + i`` and gives every learner the seed
    ``(seed + i, 1)``, so that all methods of one trial see the same batches, what learners draw
    is independent of them, and any run can be repeated by hand:
    ``iid_stream(X, y, batch_size=..., rounds=..., seed=seed + i)``.

    Parameters
    ----------
    data : str, path, Dataset or pair (X, y)
        The training data: anything that `fastfw.datasets.load` understands, or the data itself,
        features (n, d) and integer labels (n,).
    root : path-like, optional
        The folder of the data sets that are not embedded.
    setting : {"stochastic", "adversarial"}, default "stochastic"
        Batches drawn at random with replacement, or consecutive blocks of the rows sorted by
        label. In the adversarial setting all trials see the same batches, and differ only
        through the draws that a method makes itself.
    methods : iterable of str, optional
        Names of methods; see `fastfw.experiments.METHODS`. By default the setting's own.
    rounds, batch_size : int, optional
        T and B. By default values that suit the data set.
    radius : float, optional
        The l1 radius of every row. By default a value that suits the data set.
    trials : int, default 6
        How many runs each method makes.
    seed : int, default 0
        The first trial's seed.
    dtype : {float64, float32}
        Of features and decisions while learning. The comparator and every loss that is compared
        with it are computed in float64.
    preset : str, optional
        The name of constants from the paper's experiments, or ``"theory"``; a key of
        `fastfw.experiments.PRESETS`. By default the paper's constants for the data set and
        setting where it has any (Fashion-MNIST takes MNIST's), else theory. Methods that the
        preset does not list keep theory's.
    step, momentum : callable of t, optional
        Schedules for all methods that take them, in place of the preset's.
    inner_steps : int, optional
        K of MORGFW and MetaFrankWolfe. By default theory's: T and T^(3/2) rounded up.
    sub_batch_size : int or None, default 4
        Rows that these two draw from the batch for each inner step; None for the whole batch.
    bounds : bool, default False
        Whether to compute the theorems' bounds on regret where they apply; see
        `fastfw.experiments.bounds`.
    tol : float, default 1e-6
        The comparator's certified gap, relative to its loss, is at most this.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each step and once at the end.

    Returns
    -------
    CompareResult
        Losses, regret, times and final decisions' figures of every method and trial.

    Raises
    ------
    TypeError, ValueError
        If an argument or the data is unusable; the message says which one, what was given and
        what is wanted.
    FileNotFoundError, OSError
        If data cannot be read.
    MemoryError
        If the data or the curves do not fit into memory.

    Notes
    -----
    In the stochastic setting the comparator is the best fixed decision for all training rows, in
    the adversarial setting for the rows that the stream plays; final suboptimality is measured on
    the same rows. Methods take turns within a trial, so that a machine that slows down during the
    run slows all of them. A run of two rounds comes before the first trial of each method, so
    that compilation is not timed. Time O(trials x methods x T x B x d x C) for methods of
    constant cost per round, memory O(trials x methods x T) beside the data.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.2, 0.8]])
    >>> result = compare((X, [0, 1, 0, 1]), rounds=5, batch_size=2, radius=1.0, trials=2)
    >>> [run.regret.shape for run in result.methods]
    [(2, 5), (2, 5)]
    """
    race = prepare(
        data,
        root=root,
        setting=setting,
        methods=methods,
        rounds=rounds,
        batch_size=batch_size,
        radius=radius,
        trials=trials,
        seed=seed,
        dtype=dtype,
        preset=preset,
        step=step,
        momentum=momentum,
        inner_steps=inner_steps,
        sub_batch_size=sub_batch_size,
        bounds=bounds,
        tol=tol,
    )
    return run(race, progress=progress)


def played_rows(data: Dataset, stream: IndexedStream) -> Dataset:
    """Return the rows that the stream plays, or all of `data` where it plays them all."""
    if stream.rounds * stream.batch_size == data.n_samples:
        return data
    rows = np.concatenate([block.ravel() for block in stream.row_blocks(stream.rounds)])
    return Dataset(data.X[rows], data.y[rows])


def problem_and_ball(data: Dataset, radius: float) -> tuple[SoftmaxRegression, RowL1Ball]:
    """Return softmax regression for the data and its feasible set."""
    problem = SoftmaxRegression(data.n_features, data.n_classes)
    return problem, RowL1Ball(shape=problem.shape, radius=radius)


def _with_bound(
    race: Race, outcome: MethodResult, options: dict[str, Any], played: Dataset, gap: float
) -> MethodResult:
    """Return a method's result with its bound, or with why it has none."""
    problem, ball = problem_and_ball(race.exact, race.radius)
    learner = outcome.method.build(problem, ball, rounds=race.rounds, seed=0, **options)
    found = find_bound(
        learner,
        outcome.method.label,
        setting=race.setting,
        rounds=race.rounds,
        data=played,
        initial_gap=max(gap, 0.0),
    )
    if isinstance(found, str):
        return replace(outcome, no_bound=found)
    return replace(outcome, bound=found)


def constants_of(
    method: Method, preset: str, step: Schedule | None, momentum: Schedule | None
) -> dict[str, Any]:
    """Return a method's constants: those given, else the preset's, else None for its own."""
    constants = PRESETS[preset].get(method.name, Constants())
    if step is None and constants.step is not None:
        step = power_schedule(*constants.step)
    if momentum is None and constants.momentum is not None:
        momentum = power_schedule(*constants.momentum)
    return {
        "step": step,
        "momentum": momentum if method.momentum else None,
        "eta": constants.eta,
        "scale": constants.scale,
    }


def _as_text(schedule: Schedule | None) -> str:
    """Return a schedule as `MethodResult` names it."""
    if schedule is None:
        return "theory"
    return f"{schedule.c},{schedule.e}" if isinstance(schedule, PowerSchedule) else "custom"


def _empty_result(
    method: Method, learner: Any, options: dict[str, Any], trials: int, rounds: int
) -> MethodResult:
    """Return a result with room for every trial; `learner` is one as it will be run."""
    eta, size = options["eta"], options["sub_batch_size"]
    return MethodResult(
        method=method,
        step=_as_text(options["step"]),
        momentum=_as_text(options["momentum"]) if method.momentum else "",
        eta=("theory" if eta is None else str(eta)) if method.eta else "",
        scale=str(learner.base.scale) if method.meta else "",
        inner_steps=str(learner.inner_steps) if method.meta else "",
        sub_batch_size=("all" if size is None else str(size)) if method.meta else "",
        losses=np.empty((trials, rounds)),
        regret=np.empty((trials, rounds)),
        seconds=np.empty((trials, rounds)),
        suboptimality=np.full(trials, math.nan),
        nonzeros=np.empty(trials, dtype=np.int64),
        gradient_evaluations=np.empty(trials, dtype=np.int64),
        lmo_calls=np.empty(trials, dtype=np.int64),
    )
