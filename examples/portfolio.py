"""
Portfolios
==========

Every period an investor divides the wealth among ten assets, then sees by what factor each
changes. The loss is minus the logarithm of the wealth's factor, -log ⟨x, r⟩: over all periods
it adds up to minus the logarithm of the final wealth. Decisions are shares, points of the
simplex; the method is ORGFW.
"""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numba
import numpy as np

import fastfw as fw

ROUNDS, ASSETS = 1000, 10

# %%
# The market is made up: lognormal factors with a common shock, three assets with a drift of about
# 1% a period and the others with none.

rng = np.random.default_rng(0)
drift, volatility = np.zeros(ASSETS), 0.05
drift[:3] = 0.012, 0.010, 0.010
shocks = 0.02 * rng.standard_normal((ROUNDS, 1))
own = volatility * rng.standard_normal((ROUNDS, ASSETS))
relatives = np.exp(drift - 0.5 * volatility**2 + shocks + own)
stream = [row[np.newaxis] for row in relatives]

# %%
# The loss is a function that Numba compiles, so that the whole run stays in compiled code.


@numba.njit
def log_loss(x, relatives):
    """Mean of -log ⟨x, r⟩ over the rows r of a batch, and its gradient."""
    loss, gradient = 0.0, np.zeros_like(x)
    for r in relatives:
        growth = (r * x).sum()
        loss -= np.log(growth) / len(relatives)
        gradient -= r / (growth * len(relatives))
    return loss, gradient


problem = fw.problem_from_function(log_loss, shape=ASSETS)
simplex = fw.Simplex(ASSETS)
result = fw.ORGFW(problem, simplex).run(stream)

# %%
# The comparator is the best portfolio that is restored to the same shares every period. Beside
# ORGFW stands one that holds equal shares.

best = fw.best_fixed_decision(problem, simplex, relatives)
equal = [problem.loss(simplex.start(), batch) for batch in stream]
curves = {
    "ORGFW": fw.regret(result, best, stream),
    "equal shares": fw.regret(SimpleNamespace(losses=np.array(equal)), best, stream),
}
for name, curve in curves.items():
    print(f"{name}: regret {curve[-1]:.2f} after {len(curve)} periods")

# %%

figure, axes = plt.subplots(layout="constrained")
for name, curve in curves.items():
    curve.plot(axes, label=name)
axes.axhline(0.0, color="black", linestyle=":", label="best fixed decision")
axes.set(xlabel="period", ylabel="regret (log of wealth)")
axes.legend()
plt.show()
