"""The paper's three figures: what is run, kept and put together.

A figure is a list of trials: one method, one seed, one data set. Each is kept on disk as soon as it
is done (`fastfw.experiments._store`), so that a run which is stopped, in whatever way, goes on from
there when it is asked for again; curves, claims and files are made from what is kept. Figures 1
and 2 are softmax regression (`fastfw.experiments._regression`), figure 3 is the network with one
hidden layer (`fastfw.experiments._training`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from fastfw import _checks
from fastfw._messages import printable
from fastfw.datasets import Split, load
from fastfw.experiments._store import Arrays, TrialStore, fingerprint
from fastfw.experiments._text import counted
from fastfw.experiments.comparison import Comparator
from fastfw.experiments.methods import closest
from fastfw.streams import Dataset

__all__ = ["FIGURES", "KEPT", "Curve", "Part", "Reproduction", "Work", "reproduce"]

FIGURES = ("figure1", "figure2", "figure3")
"""What `reproduce` knows."""

KEPT = "kept"
"""What progress is told in place of a trial's name when the trial was kept by an earlier run."""

Floats: TypeAlias = npt.NDArray[np.float64]
Progress: TypeAlias = Callable[[int, int, str], None]

_QUICK_DATA = ("fashion-mnist-4k",)
_FULL_DATA = ("mnist", "cifar10")
_TITLES = {
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "fashion-mnist": "Fashion-MNIST",
    "fashion-mnist-4k": "Fashion-MNIST, 4,000 images",
}


@dataclass(frozen=True)
class Curve:
    """One method in one panel of a figure.

    Parameters
    ----------
    method, label : str
        On the command line and in result files; in tables and pictures.
    rounds : (k,) int64 array
        The rounds t that the values belong to.
    seconds : (trials, k) float64 array
        Time spent on updates until then.
    values : (trials, k) float64 array
        What the panel shows.
    upper : (trials, k) float64 array
        The same against the least loss that the comparator's certificate leaves open; equal to
        `values` where there is no comparator.
    work : int
        Gradients of single samples, in the whole run.
    oracle_calls : int
        Calls of the linear minimisation oracle, likewise.
    """

    method: str
    label: str
    rounds: npt.NDArray[np.int64]
    seconds: Floats
    values: Floats
    upper: Floats
    work: int
    oracle_calls: int

    @property
    def final(self) -> Floats:
        """The last value of each trial."""
        last: Floats = self.values[:, -1]
        return last


@dataclass(frozen=True)
class Part:
    """A figure on one data set: a column of figures 1 and 2, a row of figure 3.

    Parameters
    ----------
    data, title : str
        The data set as it was asked for, and as pictures call it.
    n_samples, n_features, n_classes : int
        Its size.
    settings : dict
        Rounds, batch size, radius and whatever else tables should say.
    constants : dict
        By method, its constants in words.
    comparator : Comparator or None
        The best fixed decision; None for networks, whose least loss nobody knows.
    panels : dict
        Curves by method in order, by the panel's name: ``regret``, ``cost``, ``suboptimality``,
        ``accuracy``, ``test_accuracy``.
    seconds : float
        Wall time of all that is kept for it, evaluation included, summed over the runs that did
        it. What a stopped run had not finished is not in it.
    """

    data: str
    title: str
    n_samples: int
    n_features: int
    n_classes: int
    settings: dict[str, Any]
    constants: dict[str, str]
    comparator: Comparator | None
    panels: dict[str, tuple[Curve, ...]]
    seconds: float = 0.0


@dataclass(frozen=True)
class Reproduction:
    """The outcome of `reproduce`.

    Parameters
    ----------
    figure : str
        One of `FIGURES`.
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
    files: tuple[Path, ...] = field(default=())


class Work(NamedTuple):
    """One piece of work whose result is kept: its name, what determines it, how it is done."""

    label: str
    settings: Mapping[str, Any]
    do: Callable[[], Arrays]


class Request(NamedTuple):
    """What is asked for on one data set."""

    figure: str
    name: str
    title: str
    split: Split
    train: Dataset
    digest: str
    quick: bool
    seeds: range
    rounds: int | None
    batch_size: int | None
    radius: float | None


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
    progress: Progress | None = None,
) -> Reproduction:
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
    root : path-like, optional
        The folder of the data sets that are not embedded.
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
        `KEPT` for steps that an earlier run has done.

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
    Curves do not depend on where a run was stopped; only times differ from run to run. What is
    kept is told apart by a digest of data, settings, seed and version.

    Examples
    --------
    >>> result = reproduce("figure1", quick=True, out="results")  # doctest: +SKIP
    >>> [curve.label for curve in result.parts[0].panels["regret"]]  # doctest: +SKIP
    ['ORGFW', 'OSFW', 'RegularizedOFW', 'OFW', 'OAW']
    """
    from fastfw.experiments.reproduction_report import write_all

    result = run_figure(
        figure, data, root=root, out=out, quick=quick, trials=trials, seed=seed, titles=titles,
        rounds=rounds, batch_size=batch_size, radius=radius, progress=progress,
    )  # fmt: skip
    return write_all(result, Path(out))


def run_figure(
    figure: str,
    data: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None,
    *,
    root: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    quick: bool,
    trials: int | None,
    seed: int,
    titles: Sequence[str] | None,
    rounds: int | None,
    batch_size: int | None,
    radius: float | None,
    progress: Progress | None,
) -> Reproduction:
    """Do the work of `reproduce`, all but writing its files."""
    if figure not in FIGURES:
        raise ValueError(f"figure: unknown {figure!r}; {closest(str(figure), FIGURES)}")
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
    count = _checks.positive_int((3 if quick else 6) if trials is None else trials, "trials")
    first = _checks.positive_int(seed, "seed", minimum=0)
    for value, argument in ((rounds, "rounds"), (batch_size, "batch_size")):
        if value is not None:
            _checks.positive_int(value, argument)
    if radius is not None:
        radius = _checks.positive_float(radius, "radius")
    if figure == "figure3":
        from fastfw.experiments import _training as house
    else:
        from fastfw.experiments import _regression as house  # type: ignore[no-redef]

    store = TrialStore(Path(out) / "trials")
    per_part = house.count_steps(figure, count)
    total = per_part * len(names)
    parts = []
    for index, given in enumerate(names):
        name = os.fspath(given).encode("utf-8", "replace").decode()
        if progress is not None:
            progress(index * per_part, total, f"data: {Path(name).name}")
        split = load(given, root=root)
        train = Dataset(split.X, split.y)
        _checks.fewer_classes_than_rows(train.y)
        request = Request(
            figure=figure,
            name=name,
            title=printable(
                _TITLES.get(name, Path(name).name) if titles is None else titles[index]
            ),
            split=split,
            train=train,
            digest=fingerprint(train),
            quick=bool(quick),
            seeds=range(first, first + count),
            rounds=rounds,
            batch_size=batch_size,
            radius=radius,
        )
        store.tidy()
        done: list[Arrays] = []
        for step, work in enumerate(house.steps(request)):
            arrays = store.get(work.settings)
            if progress is not None:
                what = work.label if arrays is None else KEPT
                progress(index * per_part + step, total, what)
            if arrays is None:
                begun = time.perf_counter()
                arrays = work.do()
                arrays["wall"] = np.array(time.perf_counter() - begun)
                store.put(work.settings, arrays)
            done.append(arrays)
        parts.append(house.assemble(request, done))
        del split, train, request
    if progress is not None:
        progress(total, total, "files")
    return Reproduction(figure, bool(quick), count, first, tuple(parts))
