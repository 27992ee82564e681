"""Train a network with several methods at equal work: the paper's second experiment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw.experiments.methods import (
    NETWORK_METHODS,
    NETWORK_PRESETS,
    find_methods,
    known,
    network_family,
    rounds_at_equal_work,
)
from fastfw.experiments.results import NetworkComparison, NetworkRun
from fastfw.experiments.setups import check_sizes, constants_of, network, take_data, trace_of
from fastfw.experiments.trials import Arrays, Plan, Progress, experiment, parallel_for
from fastfw.schedules import PowerSchedule

__all__ = ["compare_network"]


@experiment
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
    label: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Plan[NetworkComparison]:
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
        Names of `fastfw.experiments.methods.NETWORK_METHODS`; all by default.
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
    root, label, folder, n_jobs, progress : optional
        As for `compare`.

    Returns
    -------
    NetworkComparison
        Curves and times.

    Raises
    ------
    TypeError, ValueError
        If an argument cannot be used.
    """
    names = [method.name for method in NETWORK_METHODS] if methods is None else methods
    chosen = find_methods(names, NETWORK_METHODS)
    seeds = check_sizes(
        trials, seed, radius, rounds=rounds, batch_size=batch_size, checkpoints=checkpoints
    )
    if constants is not None:
        known(constants, tuple(NETWORK_PRESETS), "constants")
    parallel = parallel_for(n_jobs)
    name, train, test = take_data(data, root, dtype, label=label)
    setup = network(
        name, train, test, hidden=hidden, rounds=rounds, batch_size=batch_size, radius=radius,
        dtype=dtype, init=init, kept=folder is not None,
    )  # fmt: skip
    preset = NETWORK_PRESETS[network_family(name) if constants is None else constants]
    own = constants_of(chosen, preset, step=step, momentum=momentum)
    setup.learners(own, len(seeds))
    rounds_of = {
        method: rounds_at_equal_work(
            method, rounds, batch_size=batch_size, n=len(train), constants=given
        )
        for method, given in own.items()
    }
    tasks = setup.trials("network", own, seeds, rounds_of, checkpoints=checkpoints, gap=bool(gap))

    def assemble(outcomes: list[Arrays]) -> NetworkComparison:
        runs = []
        for m, method in enumerate(chosen):
            of_method = outcomes[m :: len(chosen)]
            costs = rounds_of[method], int(of_method[-1]["work"])
            seconds = np.array([float(arrays["total"]) for arrays in of_method])
            traces = tuple(map(trace_of, of_method))
            runs.append(NetworkRun(method.name, method.label, *costs, seconds, traces))
        sizes = setup.sizes
        return NetworkComparison(
            name, hidden, sizes.batch_size, len(seeds), seeds.start, sizes.radius, tuple(runs)
        )

    return Plan(tasks, assemble, folder, parallel, progress, setup)
