"""Run several methods on the same batches and measure their regret against one comparator."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw import _checks
from fastfw._csr import is_sparse
from fastfw.experiments.methods import (
    PRESETS,
    SETTINGS,
    Method,
    default_methods,
    default_preset,
    find_methods,
    known,
)
from fastfw.experiments.results import Comparator, CompareResult, MethodResult
from fastfw.experiments.setups import (
    Setup,
    best_of,
    check_sizes,
    constants_of,
    regression,
    take_data,
)
from fastfw.experiments.theorems import Bound, find_bound
from fastfw.experiments.trials import Arrays, Plan, Progress, experiment, parallel_for
from fastfw.learners._method import SUB_BATCH, Constants
from fastfw.regret import regret, suboptimality
from fastfw.schedules import Schedule
from fastfw.streams import Dataset

__all__ = ["compare"]


@experiment
def compare(
    data: Any = "fashion-mnist-4k",
    *,
    root: str | os.PathLike[str] | None = None,
    label: str | None = None,
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
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Plan[CompareResult]:
    """Run several methods on the same batches and measure their regret.

    Softmax regression over the set of matrices whose rows have an l1 norm of at most `radius`.
    Trial i draws its batches with seed ``seed + i`` and gives every learner the seed
    ``(seed + i, 1)``, so that all methods of one trial see the same batches, what learners draw
    is independent of them, and any run can be repeated by hand:
    ``iid_stream(X, y, batch_size=..., rounds=..., seed=seed + i)``.

    Parameters
    ----------
    data : str, path, Dataset or pair (X, y)
        The training data: anything that `fastfw.datasets.load` understands or returns, or the data
        itself, features (n, d) and integer labels (n,). On test data, if any, the last decisions'
        accuracy is measured.
    root : path-like, optional
        The folder of the data sets that are not embedded.
    label : str, optional
        Which column of a CSV file has the labels, as for `fastfw.datasets.load`.
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
        `fastfw.experiments.theorems`.
    tol : float, default 1e-6
        The comparator's certified gap, relative to its loss, is at most this.
    folder : path-like, optional
        Where finished trials are kept, and taken from when the same work is asked for again.
    n_jobs : int, optional
        Trials at the same time, by joblib, whose ``parallel_config`` may choose a backend (dask,
        ray); negative numbers count from the number of cores. They share the machine, so that their
        times are longer. By default one after the other in this process.
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
    ImportError
        If `n_jobs` is given and joblib is not installed.

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
    known(setting, SETTINGS, "setting")
    chosen = find_methods(default_methods(setting) if methods is None else methods)
    seeds = check_sizes(
        trials, seed, radius, rounds=rounds, batch_size=batch_size, inner_steps=inner_steps,
        sub_batch_size=sub_batch_size,
    )  # fmt: skip
    dtype = _checks.float_dtype(dtype)
    if preset is not None:
        known(preset, tuple(PRESETS), "preset")
    tol = _checks.positive_float(tol, "tol")
    parallel = parallel_for(n_jobs)

    name, dataset, test = take_data(data, root, label=label)
    setup = regression(
        name, dataset, setting, rounds=rounds, batch_size=batch_size, radius=radius, dtype=dtype,
        inner_steps=inner_steps, sub_batch_size=sub_batch_size, kept=folder is not None,
    )  # fmt: skip
    setup = replace(setup, test=test)
    preset = default_preset(name, setting) if preset is None else preset
    constants = constants_of(chosen, PRESETS[preset], step=step, momentum=momentum)
    learners = setup.learners(constants, len(seeds))
    tasks = setup.trials("regret", constants, seeds)

    def assemble(outcomes: list[Arrays]) -> CompareResult:
        found, *trials = outcomes
        best, rows = best_of(found, setup.problem), setup.judged
        initial = setup.problem.loss(np.asarray(setup.set.start()), rows)
        streams = [setup.stream(seed) for seed in seeds]
        results = []
        for m, (method, learner) in enumerate(zip(chosen, learners, strict=True)):
            own = trials[m :: len(chosen)]
            columns = {name: np.array([arrays[name] for arrays in own]) for name in own[0]}
            bound: Bound | str = ""
            if bounds:
                bound = find_bound(
                    learner, method.label, setting=setting, rounds=setup.sizes.rounds, data=rows,
                    initial_gap=max(initial - best.value + best.gap, 0.0),
                )  # fmt: skip
            result = MethodResult(
                method,
                **_in_words(setup, method, constants[method], learner),
                losses=columns["losses"],
                regret=np.array([
                    regret(SimpleNamespace(losses=losses), best, stream)
                    for losses, stream in zip(columns["losses"], streams, strict=True)
                ]),
                seconds=columns["seconds"],
                suboptimality=np.array([
                    suboptimality(last, best, initial) if initial > best.value else math.nan
                    for last in columns["last"]
                ]),
                nonzeros=columns["nonzeros"],
                gradient_evaluations=columns["work"],
                lmo_calls=columns["oracle"],
                bound=None if isinstance(bound, str) else bound,
                no_bound=bound if isinstance(bound, str) else "",
                test_accuracy=columns.get("accuracy"),
            )  # fmt: skip
            results.append(result)
        norms = np.abs(best.decision).sum(axis=1)
        return CompareResult(
            data=name,
            n_samples=dataset.n_samples,
            n_features=dataset.n_features,
            n_classes=dataset.n_classes,
            setting=setting,
            rounds=setup.sizes.rounds,
            batch_size=setup.sizes.batch_size,
            trials=len(seeds),
            seed=seeds.start,
            radius=setup.sizes.radius,
            dtype=str(setup.train.dtype),
            preset=preset,
            comparator=Comparator(
                best.value, best.gap, rows.n_samples, best.seconds,
                inside=bool(norms.max() < INSIDE * setup.sizes.radius),
            ),
            methods=tuple(results),
            hints=_hints(dataset, [float(run.losses.mean()) for run in results]),
        )  # fmt: skip

    return Plan([setup.comparator(tol), *tasks], assemble, folder, parallel, progress, setup)


#: Rows this much shorter than the radius lie inside beyond doubt: twice the radius would lower the
#: loss by a hundred times the comparator's gap at most.
INSIDE = 0.99

#: Features of this size make losses that have little to do with what is learned.
LARGE = 10.0

#: Else doctest would leave out what is wrapped.
__test__ = {"compare": compare}


def _in_words(setup: Setup, method: Method, constants: Constants, learner: Any) -> dict[str, Any]:
    """Return constants as `MethodResult` names them; `learner` is one as it is run."""

    def schedule(given: Any) -> str:
        if given is None:
            return "theory"
        return f"{given[0]},{given[1]}" if isinstance(given, tuple) else "custom"

    own, rows = constants.scale, setup.options["sub_batch_size"]
    scale = str(learner.base.scale) if method.meta else "theory" if own is None else str(own)
    return {
        "step": schedule(constants.step) if method.step else "",
        "momentum": schedule(constants.momentum) if method.momentum else "",
        "scale": scale if method.scale else "",
        "inner_steps": str(learner.inner_steps) if method.meta else "",
        "sub_batch_size": ("all" if rows is None else str(rows)) if method.meta else "",
    }


def _hints(data: Dataset, losses: list[float]) -> tuple[str, ...]:
    """Say that columns want scaling, where they do and a method lost more than zero weights do."""
    if max(losses) <= math.log(data.n_classes):
        return ()
    by_column = abs(data.X).max(axis=0)
    sizes = by_column.toarray() if is_sparse(by_column) else by_column
    sizes = sizes[sizes > 0.0]
    if not sizes.size or sizes.max() < LARGE:
        return ()
    return (
        f"columns reach from {sizes.min():.3g} to {sizes.max():.3g}, and the largest decide; bring "
        "them to one scale, say X / np.abs(X).max(axis=0) or scikit-learn's StandardScaler",
    )
