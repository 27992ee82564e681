"""Proposition 1 measured: ORGFW's smallest Frank-Wolfe gap on a network against the rounds played.

Run it from the root of a checkout, with the data sets' folder in FASTFW_DATA::

    python -m bench.network_gap                           # MNIST, some minutes
    python -m bench.network_gap --rounds 2000 --trials 2 --data fashion-mnist-4k

It writes the picture and prints the slopes of docs/network.md. The gap is that of the whole
training data's loss, evaluated at log-spaced rounds: the smallest of those is at least the smallest
of all. A slope is that of the least-squares line through its logarithm against that of T, from
round `--first` on, in each trial; printed are the mean over the trials and its standard error.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import fastfw as fw

P = fw.power_schedule
#: name: step and momentum
SCHEDULES = {
    "Proposition 1's": (P(1, 2 / 3), P(1, 2 / 3)),
    "tuned": (P(2, 1), P(0.25, 0.5)),
}
COLOURS = {"Proposition 1's": "#0072B2", "tuned": "#D55E00"}


def curves(data: Any, step: Any, momentum: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return the rounds T, and the smallest gap met until then by trial."""
    problem = fw.OneHiddenLayer(data.n_features, options.hidden, data.n_classes)
    M = problem.l1_balls()
    keep = fw.log_spaced(options.rounds, options.points)
    least = []
    for seed in range(options.trials):
        stream = fw.iid_stream(data, None, batch_size=16, rounds=options.rounds, seed=seed)
        learner = fw.ORGFW(problem, M, step=step, momentum=momentum, seed=seed)
        result = learner.run(stream, checkpoints=keep)
        least.append(fw.trace(result, problem, M, data, gap=True).least_gaps)
    return keep, np.array(least)


def slopes(rounds: Any, least: Any, first: int) -> Any:
    """Return the slope of log(least) against log(rounds) in each trial."""
    part = rounds >= first
    return np.polyfit(np.log(rounds[part]), np.log(least[:, part]).T, 1)[0]


def standard_error(values: Any) -> Any:
    """Return the standard error of the mean over the first axis; NaN of one value."""
    return np.std(values, axis=0, ddof=1) / len(values) ** 0.5 if len(values) > 1 else np.nan


def draw(found: dict[str, tuple[Any, Any]], options: argparse.Namespace) -> None:
    """Write the picture: means over the trials, their standard errors, and the bound's slope."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), dpi=110, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for name, (rounds, least) in found.items():
        mean, error = least.mean(axis=0), standard_error(least)
        dashes = "-" if name == "tuned" else (0, (5, 1.5))
        axes.plot(rounds, mean, color=COLOURS[name], linestyle=dashes, label=f"{name} schedules")
        axes.fill_between(
            rounds, mean - error, mean + error, color=COLOURS[name], alpha=0.25, linewidth=0
        )
    rounds, least = found["Proposition 1's"]
    part = rounds >= options.first
    line = least.mean(axis=0)[part][0] * (rounds[part] / rounds[part][0]) ** (-1 / 3)
    axes.plot(rounds[part], 1.6 * line, color="0.45", linestyle=":", label="slope −1/3")
    axes.set(xscale="log", yscale="log", xlabel="rounds T", ylabel="smallest Frank-Wolfe gap")
    axes.grid(True, color="0.9", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower left", frameon=False)
    figure.savefig(options.out)


def main() -> None:
    """Print the table and write the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.network_gap",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", default="mnist")
    parser.add_argument("--hidden", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=150_000)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--points", type=int, default=100, help="rounds evaluated (default 100)")
    parser.add_argument("--first", type=int, default=100, help="T from which a line is fitted")
    parser.add_argument("--out", default="docs/network-gap.png")
    options = parser.parse_args()
    X, y, *_ = fw.datasets.load(options.data)
    data = fw.Dataset(X, y)
    marks = [t for t in (100, 1000, 10_000, 150_000) if t <= options.rounds]
    print("| schedules | slope | " + " | ".join(f"T = {t:,}" for t in marks) + " |")
    print("|---|---|" + "---|" * len(marks))
    found = {}
    for name, (step, momentum) in SCHEDULES.items():
        rounds, least = found[name] = curves(data, step, momentum, options)
        slope = slopes(rounds, least, options.first)
        cells = []
        for t in marks:
            at = least[:, np.searchsorted(rounds, t, side="right") - 1]
            cells.append(f"{at.mean():.3g} ± {standard_error(at):.2g}")
        print(
            f"| {name} | {slope.mean():.3f} ± {standard_error(slope):.3f} | "
            + " | ".join(cells)
            + " |",
            flush=True,
        )
    # the terms of the bound that grow slowest, with delta = 0.05
    T = rounds.astype(float)
    bound = T ** (-1 / 3) * np.log(T + 1) * np.log(4 * T / 0.05) ** 0.5
    slope = slopes(rounds, bound[np.newaxis], options.first)[0]
    print(f"| Proposition 1's bound, a multiple of | {slope:.3f} |" + " |" * len(marks))
    draw(found, options)


if __name__ == "__main__":
    main()
