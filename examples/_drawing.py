"""What the examples share: a command line and one picture of regret curves."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

import fastfw as fw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STYLES = [("#0072B2", "-"), ("#D55E00", (0, (5, 1.5)))]


def fixed_regret(problem: Any, x: Any, best: Any, stream: Any) -> Any:
    """Regret of playing x in every round."""
    losses = np.array([problem.loss(x, batch) for batch in stream])
    return fw.regret(SimpleNamespace(losses=losses), best, stream)


def draw(axes: Axes, curves: dict[str, Any], unit: str) -> None:
    """Draw regret curves above that of the best fixed decision, which is zero by definition."""
    for (label, curve), (colour, dashes) in zip(curves.items(), STYLES, strict=True):
        curve.plot(axes)
        axes.get_lines()[-1].set(color=colour, linestyle=dashes, label=label)
    axes.axhline(0.0, color="black", linewidth=1.2, linestyle=":", label="best fixed decision")
    axes.set_ylabel(f"regret ({unit})")
    axes.legend(frameon=False)
    axes.grid(alpha=0.3, linewidth=0.5)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def at_least_one(text: str) -> int:
    """Read a number of rounds."""
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on is wanted, not {text!r}")
    return int(text)


def main(run: Callable[..., dict[str, Any]], rounds: int, description: str) -> None:
    """Run an example from the command line and print the last regrets."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--rounds", type=at_least_one, default=rounds)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("."), help="folder of the picture")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    for label, curve in run(given.rounds, given.seed, given.out).items():
        print(f"{label}: regret {curve[-1]:.2f} after {len(curve)} rounds")
