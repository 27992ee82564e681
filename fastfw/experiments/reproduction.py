"""The paper's three figures, made of comparisons.

Figures 1 and 2 are `compare` in the stochastic and in the adversarial setting, with the loss of
the decisions at equal work beside it in figure 1; figure 3 is `compare_network`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fastfw._messages import printable
from fastfw.experiments.comparison import compare
from fastfw.experiments.methods import (
    FIGURES,
    NETWORK_PRESETS,
    PRESETS,
    constants_in_words,
    default_preset,
    default_sizes,
    find_methods,
    known,
    network_family,
    rounds_at_equal_work,
)
from fastfw.experiments.reports import report
from fastfw.experiments.results import CompareResult, Curve, NetworkComparison, Part, Reproduction
from fastfw.experiments.setups import check_sizes, constants_of, name_of
from fastfw.experiments.tables import counted
from fastfw.experiments.training import compare_network
from fastfw.experiments.trials import Arrays, Plan, Progress, Task, experiment, prepared
from fastfw.learners import TABLE
from fastfw.learners._method import SUB_BATCH

__all__ = ["reproduce"]

_QUICK_DATA = ("fashion-mnist-4k",)
_FULL_DATA = ("mnist", "cifar10")
_TITLES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "fashion-mnist": "Fashion-MNIST",
    "fashion-mnist-4k": "Fashion-MNIST, 4,000 images",
}
#: By figure the setting, the methods, and most rounds N at equal work when the time is short.
_KINDS = {
    "figure1": ("stochastic", ("orgfw", "osfw", "regularized-ofw", "ofw", "oaw"), 400),
    "figure2": ("adversarial", ("morgfw", "metafw", "regularized-ofw", "ofw", "oaw"), 400),
    "figure3": (
        "network", ("orgfw", "osfw", "regularized-ofw", "ofw", "oaw", "svrf", "spiderfw"), 2_000
    ),
}  # fmt: skip
_CHECKPOINTS = 30
_TOLERANCE = 1e-5  # of the comparator's gap, relative to its loss


@experiment
def reproduce(
    figure: str,
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    *,
    root: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] = "fastfw-reproduce",
    quick: bool = False,
    trials: int | None = None,
    seed: int = 0,
    titles: Sequence[str] | None = None,
    rounds: int | None = None,
    batch_size: int | None = None,
    radius: float | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> _Figure:
    """Run one of the paper's figures and write its picture, its numbers and its claims.

    Figure 1 is the stochastic setting: regret by round, time per round, and suboptimality by time
    at equal gradient evaluations (ORGFW N rounds, OSFW and RegularizedOFW 2 N, OFW and OAW
    ⌈2√N⌉). Figure 2 is the adversarial setting: regret by round and time per round. Figure 3 is
    the network with one hidden layer: suboptimality, training and test accuracy by time.

    Parameters
    ----------
    figure : {"figure1", "figure2", "figure3"}
        Which one.
    data : str, path, or sequence of these, optional
        Data sets as `fastfw.datasets.load` takes them. By default the paper's, ``mnist`` and
        ``cifar10``; with `quick` the embedded one.
    root, n_jobs : optional
        As for `compare`.
    out : path-like
        The folder for results. Finished trials are kept in ``trials`` below it, and taken from
        there when the same work is asked for again.
    quick : bool, default False
        Fewer rounds and trials: minutes in place of hours.
    trials : int, optional
        Runs of each method, 6 by default, 3 with `quick`. Trial i draws its batches with seed
        ``seed + i`` and gives the learner the seed ``(seed + i, 1)``.
    seed : int
        Of the first trial.
    titles : sequence of str, optional
        What pictures call the data sets.
    rounds, batch_size, radius : optional
        T, B and r in place of the paper's; with `rounds`, N is as large.
    progress : callable, optional
        Called as ``progress(done, total, what)`` before each step and once at the end; `what` is
        ``"kept"`` for steps that an earlier run has done.

    Returns
    -------
    Reproduction
        All curves, and the files written: ``<figure>.png``, ``<figure>.csv`` with every number,
        ``<figure>-summary.csv``, and ``claims.md`` with a section for each figure that was
        written into this folder.

    Raises
    ------
    TypeError, ValueError, OSError, ImportError, MemoryError
        If an argument or the data cannot be used, or files cannot be written.

    Notes
    -----
    All data sets are looked at before the work begins, then loaded one after the other. Curves do
    not depend on where a run was stopped; only times differ from run to run. What is kept is told
    apart by a digest of data, settings, seed and version.

    Examples
    --------
    >>> result = reproduce("figure1", quick=True, out="results")  # doctest: +SKIP
    >>> [curve.label for curve in result.parts[0].panels["regret"]]  # doctest: +SKIP
    ['ORGFW', 'OSFW', 'RegularizedOFW', 'OFW', 'OAW']
    """
    known(figure, FIGURES, "figure")
    if data is None:
        data = _QUICK_DATA if quick else _FULL_DATA
    names = [data] if isinstance(data, str | os.PathLike) else list(data)
    if not names:
        raise ValueError("data: name at least one data set")
    if len({os.fspath(name) for name in names}) < len(names):
        raise ValueError("data: name each data set once")
    if titles is not None and len(titles) != len(names):
        raise ValueError(
            f"titles: {len(titles)} given for {counted(len(names), 'data set')}; one each"
        )
    trials = (3 if quick else 6) if trials is None else trials
    seeds = check_sizes(trials, seed, radius, rounds=rounds, batch_size=batch_size)
    options = {
        "root": root, "rounds": rounds, "batch_size": batch_size, "radius": radius,
        "trials": trials, "seed": seed, "folder": Path(out) / "trials", "n_jobs": n_jobs,
    }  # fmt: skip

    def plan(index: int, progress: Progress | None) -> Plan[Part]:
        title = None if titles is None else titles[index]
        return _plan(figure, names[index], title, bool(quick), {**options, "progress": progress})

    for index in range(len(names)):
        plan(index, progress)  # whatever is wrong with the last shows before the work begins
    return _Figure(figure, bool(quick), seeds, len(names), plan, Path(out), progress)


@dataclass(frozen=True)
class _Figure:
    """A figure that is ready to be made, data set by data set."""

    name: str
    quick: bool
    seeds: range
    n_parts: int
    plan: Callable[[int, Progress | None], Plan[Part]]
    out: Path
    progress: Progress | None

    def carry_out(self) -> Reproduction:
        """Do what is not kept, and put everything together."""
        parts = []
        for index in range(self.n_parts):

            def tell(done: int, total: int, what: str, index: int = index) -> None:
                if self.progress is not None and (what != "done" or index + 1 == self.n_parts):
                    self.progress(done + index * total, total * self.n_parts, what)

            parts.append(self.plan(index, tell).run())
        trials, seed = len(self.seeds), self.seeds.start
        return Reproduction(self.name, self.quick, trials, seed, tuple(parts))

    def run(self) -> Reproduction:
        """Carry it out, and write all files."""
        result = self.carry_out()
        made = report(result)
        self.out.mkdir(parents=True, exist_ok=True)
        writers = {**made.tables, **made.pictures}  # last what a picture needs may be missing
        for name, write in writers.items():
            write(self.out / name)
        return replace(result, files=tuple(self.out / name for name in writers))


def _plan(
    figure: str, given: Any, title: str | None, quick: bool, options: dict[str, Any]
) -> Plan[Part]:
    """Return the work on one data set: that of a comparison, and more for figure 1."""
    name, (setting, methods, most) = name_of(given), _KINDS[figure]
    options = {option: value for option, value in options.items() if value is not None}
    default = default_sizes(name, setting, 1)
    N = options.get("rounds") or default.descent or default.rounds
    if quick and "rounds" not in options:
        N = min(N, most)
    plan: Plan[Any]
    if figure == "figure3":
        presets = NETWORK_PRESETS[network_family(name)]
        own = {**options, "rounds": N, "checkpoints": _CHECKPOINTS, "gap": False}
        plan = prepared(compare_network)(given, methods=methods, **own)
    else:
        presets = PRESETS[default_preset(name, setting)]
        own = {**options, "setting": setting, "tol": _TOLERANCE}
        plan = prepared(compare)(given, methods=methods, **own)
    setup = plan.setup
    constants = constants_of(find_methods(methods, TABLE), presets)
    descents: list[Task] = []
    if figure == "figure1":
        seeds = range(options["seed"], options["seed"] + options["trials"])
        rounds = {method: rounds_at_equal_work(method, N) for method in constants}
        descents = setup.trials(
            "descent", constants, seeds, rounds, f", N = {N}", checkpoints=_CHECKPOINTS, gap=False
        )

    def assemble(outcomes: list[Arrays]) -> Part:
        count = len(plan.tasks)
        result = plan.assemble(outcomes[:count])
        sizes = {"batch size": setup.sizes.batch_size, "radius": setup.sizes.radius}
        shown: dict[str, Any] = {"setting": setting, "rounds": setup.sizes.rounds, **sizes}
        if isinstance(result, NetworkComparison):
            shown = {"hidden units": result.hidden, "N": N, **sizes}
        panels: dict[str, tuple[Curve, ...]] = result.panels
        if descents:
            shown["N"] = N
            panels["suboptimality"] = _descents(result, outcomes[count:])
        return Part(
            data=name,
            title=printable(_TITLES.get(name, Path(name).name) if title is None else title),
            n_samples=setup.train.n_samples,
            n_features=setup.train.n_features,
            n_classes=setup.train.n_classes,
            settings=shown,
            constants={
                method.name: constants_in_words(method, of_method, SUB_BATCH)
                for method, of_method in constants.items()
            },
            comparator=getattr(result, "comparator", None),
            panels=panels,
            seconds=sum(float(arrays["wall"]) for arrays in outcomes),
        )

    return replace(plan, tasks=[*plan.tasks, *descents], assemble=assemble)


def _descents(result: CompareResult, trials: list[Arrays]) -> tuple[Curve, ...]:
    """Return suboptimality by time at equal work."""
    best, curves = result.comparator, []
    for m, run in enumerate(result.methods):
        own = trials[m :: len(result.methods)]
        part = np.array([arrays["losses"] for arrays in own]) - best.value
        values = part / part[:, :1]
        # The least loss may be lower by the gap, which raises what is below 1.
        upper = np.maximum(values, (part + best.gap) / (part[:, :1] + best.gap))
        seconds = np.array([arrays["seconds"] for arrays in own])
        costs = int(own[0]["work"]), int(own[0]["oracle"])
        names = run.method.name, run.method.label
        curves.append(Curve(*names, own[0]["rounds"], seconds, values, upper, *costs))
    return tuple(curves)
