"""Online portfolio selection: the simplex, log loss, ORGFW.

Every period an investor divides the wealth among assets, then sees by what factor each changes.
The loss is minus the logarithm of the wealth's factor, -log ⟨x, r_t⟩: over all periods it adds up
to minus the logarithm of the final wealth. The best fixed decision is the best portfolio that is
restored to the same shares every period; a fixed uniform decision holds equal shares.

The market is made up: lognormal factors with a common shock, three assets with a drift of about 1%
a period and the others with none.

    python -m examples.portfolio
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numba
import numpy as np
from matplotlib.figure import Figure

import fastfw as fw

try:
    from examples._drawing import draw, fixed_regret, main
except ImportError:  # started as a file
    from _drawing import draw, fixed_regret, main

ASSETS = 10


@numba.njit
def log_loss(x, relatives):
    """Mean of -log ⟨x, r⟩ over the rows r of a batch, and its gradient."""
    loss, gradient = 0.0, np.zeros_like(x)
    for r in relatives:
        growth = (r * x).sum()
        loss -= np.log(growth) / len(relatives)
        gradient -= r / (growth * len(relatives))
    return loss, gradient


def market(rounds: int, seed: int) -> np.ndarray:
    """Factors by which the assets change, shape (rounds, assets)."""
    rng = np.random.default_rng(seed)
    drift, volatility = np.zeros(ASSETS), 0.05
    drift[:3] = 0.012, 0.010, 0.010
    shocks = 0.02 * rng.standard_normal((rounds, 1))
    own = volatility * rng.standard_normal((rounds, ASSETS))
    return np.exp(drift - 0.5 * volatility**2 + shocks + own)


def run(rounds: int = 1000, seed: int = 0, out: Path | None = None) -> dict[str, Any]:
    """Play the market and return the regret curves; draw them where a folder is given."""
    relatives = market(rounds, seed)
    stream = [row[np.newaxis] for row in relatives]

    problem = fw.problem_from_function(log_loss, shape=ASSETS)
    simplex = fw.Simplex(ASSETS)
    result = fw.ORGFW(problem, simplex).run(stream)  # Theorem 1's steps: 1/(t + 1)

    best = fw.best_fixed_decision(problem, simplex, relatives)
    curves = {
        "ORGFW": fw.regret(result, best, stream),
        "equal shares": fixed_regret(problem, simplex.start(), best, stream),
    }
    if out is not None:
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.add_subplot()
        draw(axes, curves, "log of wealth")
        axes.set_title("Portfolios of ten assets, synthetic market", fontsize=11)
        axes.set_xlabel("period")
        figure.savefig(out / "portfolio.png", dpi=110)
    return curves


if __name__ == "__main__":
    main(run, 1000, "Online portfolio selection with ORGFW.")
