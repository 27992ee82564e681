"""Networks: what each start gives after equal work, and Proposition 1 measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import fastfw as fw
from bench.compare.turns import Work
from bench.tables import Columns, mean_and_error
from fastfw._plots import draw, new_figure, own_style, tidy
from fastfw.experiments.methods import NETWORK_PRESETS, find_methods
from fastfw.learners import TABLE

P = fw.power_schedule


# --- where to start -------------------------------------------------------------------------------

STARTS = {
    "zeros": ("zeros", "first"),
    "zeros, random ties": ("zeros", "random"),
    "vertex": ("vertex", "first"),
    "random": ("random", "first"),
}
#: Rounds or iterations of the methods that are compared.
LENGTHS = {"orgfw": 50_000, "osfw": 100_000, "spiderfw": 4560, "svrf": 4560}


def starts(work: Work) -> Iterator[Any]:
    """What each start of a network gives: means over trials at the last point, and standard errors.

    Fashion-MNIST, 60,000 images divided by 255, float32, 10 hidden units, all radii 10, the paper's
    constants for MNIST. Loss and accuracy are those of the training data, then accuracy on test
    data.
    """
    trials = 2 if work.quick else work.turns or 6
    name = "fashion-mnist-4k" if work.quick else "fashion-mnist"
    X, y, X_test, y_test = fw.datasets.load(name, dtype=np.float32)
    data = fw.Dataset(X, y)
    problem = fw.OneHiddenLayer(data.n_features, 10, data.n_classes)
    columns = Columns({
        "method": "<28", "start": "<20", "loss": ">15", "train": ">8.3f", "test": ">8.3f"
    })  # fmt: skip
    yield f"{name}, {trials} trials\n{columns.head}"
    for method in find_methods(LENGTHS, TABLE)[2 * work.quick :]:
        length = LENGTHS[method.name]
        for start, (init, ties) in STARTS.items():
            losses, accuracies = [], []
            for seed in range(trials):
                M = problem.l1_balls(10.0, 10.0, ties=ties, seed=seed)
                learner = method.build(
                    problem, M, NETWORK_PRESETS["mnist"][method.name], rounds=length, seed=seed,
                    init=init,
                )  # fmt: skip
                if method.offline:
                    x = learner.fit(data, iterations=length).decision
                else:
                    drawn = {"batch_size": 16, "rounds": length, "seed": 100 + seed}
                    x = learner.run(fw.iid_stream(data, None, **drawn)).decision
                losses.append(problem.loss(x, data))
                pairs = (X, y), (X_test, y_test)
                accuracies.append([problem.accuracy(x, *pair) for pair in pairs])
            title = f"{method.label}, {length:,} {'iterations' if method.offline else 'rounds'}"
            loss = mean_and_error(losses, ".3f", ".3f")
            yield columns.line(title, start, loss, *np.mean(accuracies, axis=0))


# --- Proposition 1 --------------------------------------------------------------------------------

#: name: step and momentum
SCHEDULES = {
    "Proposition 1's": (P(1, 2 / 3), P(1, 2 / 3)),
    "tuned": (P(2, 1), P(0.25, 0.5)),
}
#: T from which a line is fitted.
FIRST = 100


def curves(data: Any, step: Any, momentum: Any, rounds: int, trials: int) -> tuple[Any, Any]:
    """Return the rounds T, and the smallest gap met until then by trial."""
    problem = fw.OneHiddenLayer(data.n_features, 10, data.n_classes)
    M = problem.l1_balls()
    keep = fw.log_spaced(rounds, 100)
    least = []
    for seed in range(trials):
        stream = fw.iid_stream(data, None, batch_size=16, rounds=rounds, seed=seed)
        learner = fw.ORGFW(problem, M, step=step, momentum=momentum, seed=seed)
        result = learner.run(stream, checkpoints=keep)
        least.append(fw.trace(result, problem, M, data, gap=True).least_gaps)
    return keep, np.array(least)


def slopes(rounds: Any, least: Any, first: int = FIRST) -> Any:
    """Return the slope of log(least) against log(rounds) in each trial."""
    part = rounds >= first
    return np.polyfit(np.log(rounds[part]), np.log(least[:, part]).T, 1)[0]


@own_style()
def picture(found: dict[str, tuple[Any, Any]]) -> Any:
    """Draw means over the trials, their standard errors, and the bound's slope."""
    figure = new_figure(6.4, 4.2, dpi=110)
    axes = figure.add_subplot()
    for name, (rounds, least) in found.items():
        draw(axes, rounds, least, f"{name} schedules")
    rounds, least = found["Proposition 1's"]
    part = rounds >= FIRST
    line = least.mean(axis=0)[part][0] * (rounds[part] / rounds[part][0]) ** (-1 / 3)
    axes.plot(rounds[part], 1.6 * line, color="0.45", linestyle=":", label="slope −1/3")
    axes.set(xscale="log", yscale="log", xlabel="rounds T", ylabel="smallest Frank-Wolfe gap")
    tidy(axes)
    axes.legend(loc="lower left", frameon=False)
    return figure


def gap(work: Work) -> Iterator[Any]:
    """ORGFW's smallest Frank-Wolfe gap on a network after T rounds: means and standard errors.

    MNIST, 10 hidden units, all radii 10, batches of 16, random starts, float64. The gap is that of
    the whole training data's loss at 100 log-spaced rounds; the smallest of those is an upper bound
    on the smallest of all. A slope is that of a line fitted on log axes from round 100 on, trial by
    trial.
    """
    name, rounds, trials = "mnist", 150_000, work.turns or 6
    if work.quick:
        name, rounds, trials = "fashion-mnist-4k", 2000, 2
    X, y, *_ = fw.datasets.load(name)
    data = fw.Dataset(X, y)
    marks = [t for t in (100, 1000, 10_000, 150_000) if t <= rounds]
    yield f"{name}, {trials} trials"
    heads = {f"T = {t:,}": ">16" for t in marks}
    columns = Columns({"schedules": "<18", "slope": ">16.3f", **heads})
    yield columns.head
    found = {}
    for name, (step, momentum) in SCHEDULES.items():
        T, least = found[name] = curves(data, step, momentum, rounds, trials)
        at = [least[:, np.searchsorted(T, t, side="right") - 1] for t in marks]
        cells = [mean_and_error(own, ".3g", ".2g") for own in at]
        yield columns.line(name, mean_and_error(slopes(T, least), ".3f", ".3f"), *cells)
    # the terms of the bound that grow slowest, with delta = 0.05
    t = T.astype(float)
    bound = t ** (-1 / 3) * np.log(t + 1) * np.log(4 * t / 0.05) ** 0.5
    yield columns.line("the bound", slopes(T, bound[np.newaxis])[0])
    yield "network-gap.png", picture(found)
