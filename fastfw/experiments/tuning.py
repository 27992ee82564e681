"""Grid search over the constants of step and momentum."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from fastfw import _checks
from fastfw.experiments.methods import CRITERIA, SETTINGS, Method, find_methods, known
from fastfw.experiments.results import GridPoint, GridSearch
from fastfw.experiments.setups import check_sizes, regression, take_data
from fastfw.experiments.trials import Arrays, Plan, Progress, Task, experiment, parallel_for
from fastfw.learners._method import SUB_BATCH, Constants, Pair
from fastfw.schedules import power_schedule

__all__ = ["grid_search"]

_EXPONENTS = (1 / 2, 2 / 3, 1.0)
STEPS: tuple[Pair, ...] = tuple((c, e) for c in (0.1, 0.5, 1.0, 2.0) for e in _EXPONENTS)
"""Steps (c, e) that are tried unless others are given, for ``min(c / (t + 1)**e, 1)``."""
MOMENTA: tuple[Pair, ...] = tuple((c, e) for c in (0.5, 1.0, 2.0) for e in _EXPONENTS)
"""Momentum likewise."""


@experiment
def grid_search(
    data: Any = "fashion-mnist-4k",
    *,
    method: str = "orgfw",
    setting: str = "stochastic",
    steps: Iterable[Pair] | None = None,
    momenta: Iterable[Pair] | None = None,
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
    label: str | None = None,
    progress: Progress | None = None,
    etas: Iterable[float] | None = None,
) -> Plan[GridSearch]:
    """Try all combinations of constants on softmax regression over rows of bounded l1 norm.

    Parameters
    ----------
    data, root, label, rounds, batch_size, radius, n_jobs, progress : optional
        As for `compare`.
    method : str
        One of `fastfw.experiments.METHODS`.
    setting : {"stochastic", "adversarial"}
        How batches arrive.
    steps, momenta : iterable of (c, e), optional
        Schedules ``min(c / (t + 1)**e, 1)`` to try; `STEPS` and `MOMENTA` by default. Momenta are
        for methods that have one.
    scales : iterable of float, optional
        RegularizedOFW's c, or the c of FTPL in meta methods; each method's own by default.
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
    etas : iterable of float, optional
        Deprecated: another name of `scales`.

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
    scales = _checks.renamed("etas", etas, "scales", scales, stacklevel=4)
    known(setting, SETTINGS, "setting")
    known(criterion, CRITERIA, "criterion")
    if not isinstance(method, str):
        raise TypeError(f"method must be a name, but it is {_checks.describe(method)}")
    (chosen,) = find_methods([method])
    grid = _grid(chosen, steps, momenta, scales)
    seeds = check_sizes(trials, seed, radius, rounds=rounds, batch_size=batch_size)
    parallel = parallel_for(n_jobs)
    name, train, _ = take_data(data, root, label=label)
    setup = regression(
        name, train, setting, rounds=rounds, batch_size=batch_size, radius=radius, all_rows=True,
        sub_batch_size=SUB_BATCH, kept=folder is not None,
    )  # fmt: skip
    setup.learners({chosen: grid[0]}, len(seeds))
    tasks = [
        _scored(setup.trial(f"{chosen.label} grid", "tune", chosen, own, seed), criterion)
        for seed in seeds
        for own in grid
    ]

    def assemble(outcomes: list[Arrays]) -> GridSearch:
        points = []
        for index, own in enumerate(grid):
            of_point = outcomes[index :: len(grid)]
            scores = np.array([float(arrays["score"]) for arrays in of_point])
            seconds = float(np.mean([float(arrays["seconds"]) for arrays in of_point]))
            momentum: Any = own.momentum
            points.append(GridPoint(own.step, momentum, own.scale, scores, seconds))  # type: ignore[arg-type]
        order = np.argsort([point.score for point in points], kind="stable")  # NaN last
        sizes = setup.sizes
        return GridSearch(
            name, chosen.name, setting, criterion, sizes.rounds, sizes.batch_size, len(seeds),
            seeds.start, sizes.radius, tuple(points[i] for i in order),
        )  # fmt: skip

    return Plan(tasks, assemble, folder, parallel, progress)


#: Else doctest would leave out what is wrapped.
__test__ = {"grid_search": grid_search}


def _scored(task: Task, criterion: str) -> Task:
    """Return a trial that comes to one number."""
    settings = None if task.settings is None else {**task.settings, "criterion": criterion}
    return task._replace(
        do=partial(_score, task.do, criterion),
        settings=settings,
        shapes={"score": (), "seconds": ()},
    )


def _score(play: Callable[[], Arrays], criterion: str) -> Arrays:
    """Return a trial's score; a function of this module's, so that other processes find it."""
    try:
        arrays = play()
    except FloatingPointError:
        return {"score": np.array(np.nan), "seconds": np.array(np.nan)}
    score = arrays["losses"].mean() if criterion == "regret" else arrays["last"]
    return {"score": np.array(float(score)), "seconds": np.array(float(arrays["seconds"][-1]))}


def _grid(
    method: Method,
    steps: Iterable[Pair] | None,
    momenta: Iterable[Pair] | None,
    scales: Iterable[float] | None,
) -> list[Constants]:
    """Return the points, with only those constants that the method has."""
    if not method.step:
        raise ValueError(f"method: {method.label} finds its own steps; there is nothing to search")
    axes: dict[str, list[Any]] = {"step": _pairs(STEPS if steps is None else steps, "steps")}
    if method.momentum:
        axes["momentum"] = _pairs(MOMENTA if momenta is None else momenta, "momenta")
    elif momenta is not None:
        raise ValueError(f"momenta: {method.label} has no momentum; leave them out")
    if scales is not None:
        if not method.scale:
            raise ValueError(f"scales: {method.label} has no such constant; leave them out")
        values = _listed(scales, "scales", "numbers, such as [0.5, 1.0]")
        axes["scale"] = [_checks.positive_float(value, "scales") for value in values]
    for name, values in axes.items():
        if not values:
            raise ValueError(f"{name}: give at least one value to try")
        for index, value in enumerate(values):
            if value in values[:index]:
                raise ValueError(f"{name}: {value} is given twice; give each value once")
    return [Constants(**dict(zip(axes, values, strict=True))) for values in product(*axes.values())]


def _listed(values: Any, name: str, wanted: str) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise TypeError(f"{name} must be {wanted}, but they are {_checks.describe(values)}")
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
