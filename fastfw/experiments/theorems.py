"""The theorems' bounds on regret, where a run keeps to their assumptions.

The constants are those of the run: D of the set, L of the problem on the rows that can be played,
the noise's from `fastfw.theory.softmax_noise_bounds`. They are worst cases over every decision,
every label and every pair of batches, so that the bounds lie far above what is measured; what they
show is how regret grows.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw import theory
from fastfw.base_learners import FTPL
from fastfw.learners.morgfw import MORGFW
from fastfw.learners.orgfw import ORGFW
from fastfw.schedules import power_schedule
from fastfw.streams import Dataset

FAILURE_PROBABILITY = 0.05
"""With this probability a bound may fail."""

_THEORY = power_schedule(1.0, 1.0)


@dataclass(frozen=True)
class Bound:
    """A bound on the regret of one run, in nats."""

    #: Where it is printed in the paper.
    theorem: str
    #: The rounds that it holds for, and the bound on the regret after each.
    rounds: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    #: With which it may fail, in each round.
    failure_probability: float


def find_bound(
    learner: Any, label: str, *, setting: str, rounds: int, data: Dataset, initial_gap: float
) -> Bound | str:
    """Return the bound on the regret of a learner as it is run, or one line on why there is none.

    Theorem 1 for `ORGFW` and random batches, in every round; Theorem 2 for `MORGFW` with base
    learners `FTPL` of uniform, fresh noise, after the last round, with
    `fastfw.theory.ftpl_regret_bound` for the base learners (each of the two gets half of the
    failure probability) and Q at most the first decision's largest loss, log C: the
    start is zero, and no loss is below 0. `data` are all rows that can be played, `initial_gap` is
    the first decision's loss on these above the least possible, at most.
    """
    found: Bound | str = "the paper bounds ORGFW and MORGFW"
    if isinstance(learner, ORGFW):
        found = _theorem_1(learner, setting, rounds, data, initial_gap)
    elif isinstance(learner, MORGFW):
        found = _theorem_2(learner, rounds, data)
    return f"no bound drawn for {label}: {found}" if isinstance(found, str) else found


def _has_theory_s_schedules(learner: Any) -> bool:
    """Whether step and momentum are 1/(t + 1)."""
    return all(learner._schedules[name] == _THEORY for name in ("step", "momentum"))


def _constants(learner: Any, data: Dataset) -> dict[str, float]:
    """Return L, D, sigma and M."""
    n_classes, radius = learner.set.shape[0], learner.set.radius
    noise = theory.softmax_noise_bounds(data.X, n_classes, radius)
    return {
        "smoothness": float(learner.problem.smoothness(data.X)),
        "diameter": float(learner.set.diameter),
        "gradient_noise": noise.gradient_noise,
        "value_noise": noise.value_noise,
    }


def _theorem_1(
    learner: Any, setting: str, rounds: int, data: Dataset, initial_gap: float
) -> Bound | str:
    if setting != "stochastic":
        return "Theorem 1 is for the stochastic setting"
    if not _has_theory_s_schedules(learner):
        return "Theorem 1 wants step and momentum 1/(t + 1), as with --preset theory"
    t = np.arange(1, rounds + 1)
    values = theory.orgfw_regret_bound(
        t,
        **_constants(learner, data),
        initial_gap=initial_gap,
        failure_probability=FAILURE_PROBABILITY,
    )
    return Bound("Theorem 1", t, np.asarray(values), FAILURE_PROBABILITY)


def _theorem_2(learner: Any, rounds: int, data: Dataset) -> Bound | str:
    base, K = learner.base, learner.inner_steps
    if not _has_theory_s_schedules(learner) or rounds != K:
        return (
            "Theorem 2 wants step and momentum 1/(k + 1) and as many inner steps as rounds, "
            "as with --preset theory"
        )
    if not (type(base) is FTPL and base.noise == "uniform" and base.fresh):
        return "none is known here for its base learners"
    constants = _constants(learner, data)
    del constants["value_noise"]
    whole = learner.sub_batch_size is None
    if whole:
        constants["gradient_noise"] = 0.0
    n_classes, radius = learner.set.shape[0], learner.set.radius
    fed = theory.softmax_direction_bounds(data.X, n_classes, radius, recursive=not whole)
    base_regret = theory.ftpl_regret_bound(
        rounds,
        scale=base.scale,
        l1_diameter=2.0 * radius * n_classes,
        direction_l1=fed.direction_l1,
        loss_range=fed.loss_range,
        learners=K,
        failure_probability=FAILURE_PROBABILITY / 2.0,
    )
    value = theory.morgfw_regret_bound(
        rounds,
        **constants,
        base_regret=base_regret,
        initial_gap=float(np.log(n_classes)),
        failure_probability=FAILURE_PROBABILITY / 2.0,
    )
    return Bound("Theorem 2", np.array([rounds]), np.array([value]), FAILURE_PROBABILITY)
