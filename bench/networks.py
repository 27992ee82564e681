"""Networks: what each start gives after equal work, and Proposition 1 measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import fastfw as fw
from bench.compare.turns import Work
from fastfw._plots import STYLES, new_figure, own_style, tidy

P = fw.power_schedule


def standard_error(values: Any) -> Any:
    """Return the standard error of the mean over the first axis; NaN of one value."""
    return np.std(values, axis=0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan


# --- where to start -------------------------------------------------------------------------------

STARTS = {
    "zeros": ("zeros", "first"),
    "zeros, random ties": ("zeros", "random"),
    "vertex": ("vertex", "first"),
    "random": ("random", "first"),
}
Run = Callable[[Any, Any, str, int, Any], Any]


def _online(kind: Any, rounds: int, step: Any, momentum: Any) -> Run:
    def run(problem: Any, M: Any, init: str, seed: int, data: Any) -> Any:
        stream = fw.iid_stream(data, None, batch_size=16, rounds=rounds, seed=100 + seed)
        learner = kind(problem, M, step=step, momentum=momentum, init=init, seed=seed)
        return learner.run(stream).decision

    return run


def _offline(kind: Any, iterations: int, step: float) -> Run:
    def run(problem: Any, M: Any, init: str, seed: int, data: Any) -> Any:
        method = kind(problem, M, step, 240, 50, seed, init=init)
        return method.fit(data, iterations=iterations).decision

    return run


METHODS: dict[str, Run] = {
    "ORGFW, 50,000 rounds": _online(fw.ORGFW, 50_000, P(2, 1), P(0.25, 0.5)),
    "OSFW, 100,000 rounds": _online(fw.OSFW, 100_000, P(1, 1), P(0.1, 0.5)),
    "SpiderFW, 4,560 iterations": _offline(fw.SpiderFW, 4560, 2e-3),
    "SVRF, 4,560 iterations": _offline(fw.SVRF, 4560, 2.5e-3),
}


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
    yield f"{name}, {trials} trials\n{'method':<28}{'start':<20}{'loss':>15}{'train':>8}{'test':>8}"
    for name, run in list(METHODS.items())[2 * work.quick :]:
        for start, (init, ties) in STARTS.items():
            rows = []
            for seed in range(trials):
                M = problem.l1_balls(10.0, 10.0, ties=ties, seed=seed)
                x = run(problem, M, init, seed, data)
                test = problem.accuracy(x, X_test, y_test)
                rows.append((problem.loss(x, data), problem.accuracy(x, X, y), test))
            loss, train, test = np.mean(rows, axis=0)
            both = f"{loss:.3f} ± {standard_error(rows)[0]:.3f}"
            yield f"{name:<28}{start:<20}{both:>15}{train:8.3f}{test:8.3f}"


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
    for (name, (rounds, least)), (colour, dashes, _) in zip(found.items(), STYLES, strict=False):
        mean, error = least.mean(axis=0), standard_error(least)
        axes.plot(rounds, mean, color=colour, linestyle=dashes, label=f"{name} schedules")
        axes.fill_between(rounds, mean - error, mean + error, color=colour, alpha=0.25, linewidth=0)
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
    yield f"{'schedules':<18}{'slope':>16}" + "".join(f"{f'T = {t:,}':>16}" for t in marks)
    found = {}
    for name, (step, momentum) in SCHEDULES.items():
        T, least = found[name] = curves(data, step, momentum, rounds, trials)
        slope = slopes(T, least)
        cells = [f"{slope.mean():.3f} ± {standard_error(slope):.3f}"]
        for t in marks:
            at = least[:, np.searchsorted(T, t, side="right") - 1]
            cells.append(f"{at.mean():.3g} ± {standard_error(at):.2g}")
        yield f"{name:<18}" + "".join(f"{cell:>16}" for cell in cells)
    # the terms of the bound that grow slowest, with delta = 0.05
    t = T.astype(float)
    bound = t ** (-1 / 3) * np.log(t + 1) * np.log(4 * t / 0.05) ** 0.5
    yield f"{'the bound':<18}{slopes(T, bound[np.newaxis])[0]:>8.3f}"
    yield "network-gap.png", picture(found)
