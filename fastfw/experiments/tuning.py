"""Grid search over the constants of step and momentum: many trials, kept as they finish."""

from __future__ import annotations

import csv
import math
import os
import signal
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw import _checks
from fastfw._files import atomic_write
from fastfw.experiments._store import TrialStore, fingerprint
from fastfw.experiments._text import counted, fixed_or_dash, number_or_nothing
from fastfw.experiments.comparison import (
    check_scale,
    defaults,
    make_stream,
    problem_and_ball,
    standard_error,
    take_data,
)
from fastfw.experiments.methods import SETTINGS, SUB_BATCH, Method, closest, find_methods
from fastfw.schedules import power_schedule
from fastfw.streams import Dataset

__all__ = [
    "CRITERIA",
    "MOMENTA",
    "STEPS",
    "GridPoint",
    "GridSearch",
    "format_grid",
    "grid_search",
    "write_grid_csv",
]

CRITERIA = ("regret", "last")
"""Loss of the decisions played, which ranks as regret does; or of the last decision."""

Pair = tuple[float, float]

_EXPONENTS = (1 / 2, 2 / 3, 1.0)
STEPS: tuple[Pair, ...] = tuple((c, e) for c in (0.1, 0.5, 1.0, 2.0) for e in _EXPONENTS)
"""Steps (c, e) that are tried unless others are given, for ``min(c / (t + 1)**e, 1)``."""
MOMENTA: tuple[Pair, ...] = tuple((c, e) for c in (0.5, 1.0, 2.0) for e in _EXPONENTS)
"""Momentum likewise."""

_WARM: set[tuple[str, bool]] = set()
"""Methods that have been run in this process."""

COLUMNS = (
    "rank",
    "method",
    "step_c",
    "step_e",
    "momentum_c",
    "momentum_e",
    "eta",
    "ftpl_scale",
    "trials",
    "score",
    "standard_error",
    "above_best",
    "above_best_standard_error",
    "seconds",
)


@dataclass(frozen=True)
class GridPoint:
    """One choice of constants and how it did.

    Parameters
    ----------
    step : (c, e)
        The step ``min(c / (t + 1)**e, 1)``.
    momentum : (c, e) or None
        Likewise; None for methods without.
    eta, scale : float or None
        RegularizedOFW's c and FTPL's c, where they were searched.
    scores : (trials,) float64 array
        The criterion in each trial; lower is better, NaN where a loss was not finite.
    seconds : float
        Update time, mean over the trials.
    """

    step: Pair
    momentum: Pair | None
    eta: float | None
    scale: float | None
    scores: npt.NDArray[np.float64]
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


def grid_search(
    data: Any = "fashion-mnist-4k",
    *,
    method: str = "orgfw",
    setting: str = "stochastic",
    steps: Iterable[Pair] | None = None,
    momenta: Iterable[Pair] | None = None,
    etas: Iterable[float] | None = None,
    scales: Iterable[float] | None = None,
    rounds: int | None = None,
    batch_size: int | None = None,
    radius: float | None = None,
    trials: int = 3,
    seed: int = 0,
    criterion: str = "regret",
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    root: str | os.PathLike[str] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> GridSearch:
    """Try all combinations of constants on softmax regression over rows of bounded l1 norm.

    Parameters
    ----------
    data : str, path, Dataset or pair (X, y)
        As for `compare`.
    method : str
        One of `fastfw.experiments.METHODS`.
    setting : {"stochastic", "adversarial"}
        How batches arrive.
    steps, momenta : iterable of (c, e), optional
        Schedules ``min(c / (t + 1)**e, 1)`` to try; `STEPS` and `MOMENTA` by default. Momenta are
        for methods that have one.
    etas, scales : iterable of float, optional
        RegularizedOFW's c and the c of FTPL in meta methods; each method's own by default.
    rounds, batch_size, radius : optional
        T, B and r. By default values that suit the data set.
    trials : int
        How often each point is run; trial i has the seed ``seed + i`` at all points.
    seed : int
        Of the first trial.
    criterion : {"regret", "last"}
        The mean loss of the decisions played, which ranks points as their regret does since the
        best fixed decision is the same for all; or the loss of the last decision on all rows.
    folder : path-like, optional
        Where finished trials are kept. A search with the same folder goes on where another was
        stopped, and a finer grid needs no trial twice. By default nothing is kept.
    n_jobs : int, optional
        Trials at the same time, by joblib: as its ``Parallel`` understands it, so that -1 takes
        all cores and a backend chosen by ``joblib.parallel_config`` (dask, ray) is respected. By
        default one after the other in this process, without joblib.
    root : path-like, optional
        Folder of the data sets.
    progress : callable, optional
        Called as ``progress(done, total, what)``.

    Returns
    -------
    GridSearch
        All points, best first; ties keep the order of the grid.

    Raises
    ------
    TypeError, ValueError, OSError
        If an argument or the data cannot be used.
    ImportError
        If `n_jobs` is given and joblib is not installed.

    Notes
    -----
    Results do not depend on `n_jobs`. A trial whose losses overflow scores NaN and ranks last.

    Examples
    --------
    >>> X = [[1.0, 0.0], [0.0, 1.0], [0.9, 0.1], [0.2, 0.8]]
    >>> found = grid_search(
    ...     (X, [0, 1, 0, 1]), steps=[(1, 1), (0.1, 1)], momenta=[(1, 1)],
    ...     rounds=5, batch_size=2, radius=1.0,
    ... )
    >>> found.best.step, len(found.points)
    ((1.0, 1.0), 2)
    """
    if setting not in SETTINGS:
        raise ValueError(f"setting: unknown setting {setting!r}; {closest(str(setting), SETTINGS)}")
    if criterion not in CRITERIA:
        raise ValueError(f"criterion: unknown {criterion!r}; {closest(str(criterion), CRITERIA)}")
    if not isinstance(method, str):
        raise TypeError(f"method must be a name, but it is {_checks.shown(method)}")
    if progress is not None and not callable(progress):
        raise TypeError(
            "progress must be a function of (done, total, what), but it is "
            f"{_checks.shown(progress)}"
        )
    if folder is not None and os.path.exists(folder) and not os.path.isdir(folder):
        raise NotADirectoryError(f"folder must name a folder, but {os.fspath(folder)} is a file")
    (chosen,) = find_methods([method])
    grid = _grid(chosen, steps, momenta, etas, scales)
    count = _checks.positive_int(trials, "trials")
    first = _checks.positive_int(seed, "seed", minimum=0)
    parallel = None if n_jobs is None else _parallel(n_jobs)
    name, given = take_data(data, root)
    train = given.astype(np.float64)
    _checks.fewer_classes_than_rows(train.y)
    default = defaults(name, setting, train.n_samples)
    T = default.rounds if rounds is None else _checks.positive_int(rounds, "rounds")
    B = default.batch_size if batch_size is None else _checks.positive_int(batch_size, "batch_size")
    r = default.radius if radius is None else _checks.positive_float(radius, "radius")
    check_scale(train, r)
    # Errors of the arguments belong here, not into a worker.
    problem, ball = problem_and_ball(train, r)
    chosen.build(problem, ball, rounds=T, seed=0, **_options(grid[0]))
    make_stream(setting, train, batch_size=B, rounds=T, seed=first)

    common = {
        "what": "tune",
        "method": chosen.name,
        "data": fingerprint(train),
        "setting": setting,
        "rounds": T,
        "batch_size": B,
        "radius": r,
        "criterion": criterion,
    }
    cells = [(point, first + trial) for trial in range(count) for point in range(len(grid))]
    with tempfile.TemporaryDirectory() as scratch:
        store = TrialStore(scratch if folder is None else os.path.abspath(folder))
        store.tidy()
        keys = [{**common, "seed": s, "constants": grid[point]} for point, s in cells]
        outcomes = [_usable(store.get(key)) for key in keys]
        pending = [i for i, outcome in enumerate(outcomes) if outcome is None]
        done = len(cells) - len(pending)
        if progress is not None and done:
            progress(done - 1, len(cells), "kept")
        here = None if folder is None or parallel is None else store.folder
        if here is not None:
            here.mkdir(parents=True, exist_ok=True)
        tasks = [
            (i, (train.X, train.y, chosen.name, setting, T, B, r, cells[i][1],
                 grid[cells[i][0]], criterion), here, keys[i])
            for i in pending
        ]  # fmt: skip
        if progress is not None:
            progress(done, len(cells), f"{chosen.label} grid")
        with closing(_run(tasks, parallel)) as ended:
            for i, arrays in ended:
                if here is None or store.get(keys[i]) is None:
                    store.put(keys[i], arrays)
                outcomes[i] = arrays
                done += 1
                if progress is not None:
                    progress(done, len(cells), f"{chosen.label} grid")
    points = []
    for index, constants in enumerate(grid):
        own = [a for (p, _), a in zip(cells, outcomes, strict=True) if p == index and a is not None]
        points.append(
            GridPoint(
                step=constants["step"],
                momentum=constants.get("momentum"),
                eta=constants.get("eta"),
                scale=constants.get("scale"),
                scores=np.array([float(a["score"]) for a in own]),
                seconds=float(np.mean([float(a["seconds"]) for a in own])),
            )
        )
    order = np.argsort([p.score for p in points], kind="stable")  # NaN last
    ranked = tuple(points[i] for i in order)
    return GridSearch(name, chosen.name, setting, criterion, T, B, count, first, r, ranked)


def _grid(
    method: Method,
    steps: Iterable[Pair] | None,
    momenta: Iterable[Pair] | None,
    etas: Iterable[float] | None,
    scales: Iterable[float] | None,
) -> list[dict[str, Any]]:
    """Return the points as dictionaries of constants; only those that the method has."""
    axes: dict[str, list[Any]] = {"step": _pairs(STEPS if steps is None else steps, "steps")}
    if method.momentum:
        axes["momentum"] = _pairs(MOMENTA if momenta is None else momenta, "momenta")
    elif momenta is not None:
        raise ValueError(f"momenta: {method.label} has no momentum; leave them out")
    for name, given, has in (("eta", etas, method.eta), ("scale", scales, method.meta)):
        if given is None:
            continue
        if not has:
            raise ValueError(f"{name}s: {method.label} has no such constant; leave them out")
        values = _listed(given, f"{name}s", "numbers, such as [0.5, 1.0]")
        axes[name] = [_checks.positive_float(value, f"{name}s") for value in values]
    for name, values in axes.items():
        if not values:
            raise ValueError(f"{name}: give at least one value to try")
        for index, value in enumerate(values):
            if value in values[:index]:
                raise ValueError(f"{name}: {value} is given twice; give each value once")
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]


def _listed(values: Any, name: str, wanted: str) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be {wanted}, but they are {_checks.shown(values)}")
    return list(values)


def _pairs(pairs: Iterable[Pair], name: str) -> list[Pair]:
    """Return checked pairs; the schedule they stand for says what is wrong with one."""
    checked = []
    for pair in _listed(pairs, name, "pairs (c, e), such as [(1.0, 1.0), (0.5, 1.0)]"):
        try:
            c, e = pair
            schedule = power_schedule(c, e)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name}: pairs (c, e) are wanted, not {pair!r} ({error})") from None
        checked.append((schedule.c, schedule.e))
    return checked


def _options(constants: dict[str, Any]) -> dict[str, Any]:
    """Return a point as arguments of `Method.build`."""
    options = dict(constants)
    for name in ("step", "momentum"):
        if name in options:
            options[name] = power_schedule(*options[name])
    return {**options, "sub_batch_size": SUB_BATCH}


def _trial(
    X: Any, y: Any, name: str, setting: str, rounds: int, batch_size: int, radius: float,
    seed: int, constants: dict[str, Any], criterion: str,
) -> dict[str, Any]:  # fmt: skip
    """Run one trial; a function of this module's, so that other processes find it."""
    data = Dataset(X, y)
    (method,) = find_methods([name])
    problem, ball = problem_and_ball(data, radius)
    learner = method.build(problem, ball, rounds=rounds, seed=(seed, 1), **_options(constants))
    stream = make_stream(setting, data, batch_size=batch_size, rounds=rounds, seed=seed)
    try:
        kind = (name, data.is_sparse)
        if kind not in _WARM:  # compile before the clock runs, once in a process
            few = make_stream(setting, data, batch_size=batch_size, rounds=min(rounds, 2), seed=0)
            method.build(problem, ball, rounds=2, seed=0, **_options(constants)).run(few)
            _WARM.add(kind)
        ran = learner.run(stream)
        score = float(np.mean(ran.losses)) if criterion == "regret" else float(
            problem.loss(np.asarray(ran.decision, dtype=np.float64), data)
        )  # fmt: skip
        seconds = float(ran.seconds[-1])
    except FloatingPointError:
        score, seconds = np.nan, np.nan
    return {"score": np.array(score), "seconds": np.array(seconds)}


def _parallel(n_jobs: Any) -> Any:
    """Return joblib's Parallel, handing results over as they come where its backend can."""
    try:
        from joblib import Parallel
    except ImportError as error:
        raise ImportError(
            f"n_jobs: trials at the same time need joblib, which cannot be imported ({error}): "
            "pip install joblib, or leave n_jobs (--jobs) out"
        ) from None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a whole number other than 0, but it is {n_jobs!r}")
    try:
        # A batch of one: a trial is handed over, and kept, when it ends.
        return Parallel(n_jobs=n_jobs, return_as="generator_unordered", batch_size=1)
    except ValueError:  # this backend cannot
        return Parallel(n_jobs=n_jobs)


def _usable(arrays: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return what a trial has left, or None where that is not a score and a time."""
    numbers = [(arrays or {}).get(name, np.empty(0)) for name in ("score", "seconds")]
    return arrays if all(n.shape == () and n.dtype.kind == "f" for n in numbers) else None


def _numbered(
    i: int, arguments: tuple[Any, ...], folder: Path | None, key: dict[str, Any]
) -> tuple[int, dict[str, Any]]:
    """Run a trial, and keep it where a folder is in reach: who asked for it may be gone by then."""
    arrays = _trial(*arguments)
    if folder is not None and folder.is_dir():
        TrialStore(folder).put(key, arrays)
    return i, arrays


def _run(
    tasks: Sequence[tuple[Any, ...]], parallel: Any
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Yield the outcomes as they come; close it to stop the trials that are still running."""
    if parallel is None:
        for task in tasks:
            yield _numbered(*task)
        return
    from concurrent.futures import BrokenExecutor

    from joblib import delayed

    if parallel.return_generator:
        with _without_ctrl_c():
            outcomes = parallel(delayed(_numbered)(*task) for task in tasks)
        try:
            # `yield from` would hand a close on to joblib before `finally` is reached.
            for outcome in outcomes:  # noqa: UP028
                yield outcome
        except BrokenExecutor as error:
            raise ChildProcessError(
                "n_jobs: a process that ran trials was ended from outside, perhaps for want of "
                f"memory; with fewer at the same time it may not be ({type(error).__name__})"
            ) from error
        finally:
            with warnings.catch_warnings():  # a stopped search leaves trials undone: no news
                warnings.filterwarnings("ignore", category=UserWarning, module=r"joblib\b")
                outcomes.close()
        return
    # By portions, so that progress is seen.
    size = max(1, 2 * parallel._effective_n_jobs())
    for start in range(0, len(tasks), size):
        yield from parallel(delayed(_numbered)(*task) for task in tasks[start : start + size])


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Start processes that leave Ctrl-C to this one, which ends them: they inherit what is blocked.

    It reaches all processes of a terminal; each would print a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # whose start would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _above(search: GridSearch, point: GridPoint) -> tuple[float, float]:
    """Return how far a point is above the best, paired by trial."""
    difference = point.scores - search.best.scores
    return float(difference.mean()), standard_error(difference)


def format_grid(search: GridSearch, rows: int = 10) -> str:
    """Return the best points as a table.

    Parameters
    ----------
    search : GridSearch
        From `grid_search`.
    rows : int
        How many points are shown.

    Returns
    -------
    str
        What was searched, and a line for each point; ``above best`` is paired by trial. A dash
        stands for standard errors of one trial, and for whatever overflow leaves undefined.

    Raises
    ------
    TypeError, ValueError
        If `rows` is no whole number from 1 on.
    """
    rows = _checks.positive_int(rows, "rows")
    extra = [name for name in ("eta", "scale") if getattr(search.best, name) is not None]
    what = {"regret": "mean loss of the decisions played", "last": "loss of the last decision"}
    head = ["step c,e", "momentum c,e", *extra, "loss", "+-", "above best", "+-", "seconds"]
    table = [head]
    for point in search.points[:rows]:
        above, error = _above(search, point)
        momentum = "" if point.momentum is None else _pair_text(point.momentum)
        table.append(
            [
                _pair_text(point.step),
                momentum,
                *(f"{getattr(point, name):g}" for name in extra),
                "overflow" if math.isnan(point.score) else f"{point.score:.5f}",
                fixed_or_dash(standard_error(point.scores), 5),
                fixed_or_dash(above, 5),
                fixed_or_dash(error, 5),
                fixed_or_dash(point.seconds, 3),
            ]
        )
    widths = [max(len(row[i]) for row in table) for i in range(len(head))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in table
    ]
    (method,) = find_methods([search.method])
    title = (
        f"{method.label} on {search.data}, {search.setting} setting: "
        f"{counted(len(search.points), 'point')}, {counted(search.trials, 'trial')} of "
        f"{counted(search.rounds, 'round')},\nbatches of {search.batch_size}, "
        f"radius {search.radius:g}; ranked by {what[search.criterion]}"
    )
    return "\n".join([title, "", *lines])


def _pair_text(pair: Pair) -> str:
    return f"{pair[0]:g},{pair[1]:.3g}"


def write_grid_csv(search: GridSearch, path: str | os.PathLike[str]) -> None:
    """Write all points, best first; constants that a method does not have are left empty."""
    with atomic_write(Path(path)) as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(COLUMNS)
        for rank, point in enumerate(search.points, start=1):
            above, error = _above(search, point)
            numbers = (point.score, standard_error(point.scores), above, error, point.seconds)
            writer.writerow(
                (
                    rank,
                    search.method,
                    *point.step,
                    *(("", "") if point.momentum is None else point.momentum),
                    "" if point.eta is None else point.eta,
                    "" if point.scale is None else point.scale,
                    search.trials,
                    *map(number_or_nothing, numbers),
                )
            )
