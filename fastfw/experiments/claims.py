"""What the paper claims, and what a reproduction says to it.

A claim is taken apart into comparisons with the paper's own method, ORGFW or MORGFW. Methods of one
trial see the same batches, so differences are paired; one counts when it is more than two standard
errors from zero. Times are compared by their ratio in each trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from fastfw.experiments.results import Curve, Floats, Part, Reproduction, standard_error

CONFIRMED, REFUTED, OPEN = "confirmed", "refuted", "open"

#: How many times as long "far" more time is; in regret it is a difference as large as what it is
#: measured from, which may be negative.
_FAR = 2.0


class Finding(NamedTuple):
    """One part of a claim (C1 to C6) on one data set; open where the trials cannot tell."""

    claim: str
    statement: str
    data: str
    verdict: str
    numbers: str


def paired(ours: Floats, theirs: Floats) -> tuple[float, float]:
    """Return the mean of theirs - ours over the trials and its standard error.

    >>> paired(np.array([1.0, 2.0]), np.array([2.0, 3.5]))
    (1.25, 0.25)
    """
    difference = theirs - ours
    return float(difference.mean()), standard_error(difference)


def judge(mean: float, error: float) -> str:
    """Judge a difference that the paper says is above zero; one trial leaves it open."""
    margin = np.inf if np.isnan(error) else 2.0 * error
    return CONFIRMED if mean > margin else REFUTED if mean < -margin else OPEN


def signed(mean: float, error: float) -> str:
    """Write a difference and its standard error."""
    return f"{mean:+.3g}" if np.isnan(error) else f"{mean:+.3g} ± {error:.2g}"


def _by_name(part: Part, panel: str) -> dict[str, Curve]:
    return {curve.method: curve for curve in part.panels[panel]}


def _below(
    part: Part, claim: str, ours: str, names: tuple[str, ...], *, far: bool = False
) -> Iterator[Finding]:
    """Compare regret, which the paper says is (far) below the others'."""
    curves = _by_name(part, "regret")
    own = curves[ours]
    for name in names:
        other = curves[name]
        mean, error = paired(own.final, other.final)
        verdict = judge(mean, error)
        numbers = f"{other.label} − {own.label} = {signed(mean, error)} nats"
        if far and verdict == CONFIRMED and mean < abs(float(own.final.mean())):
            verdict = REFUTED
            numbers += f": below, but by less than {own.label}'s own {own.final.mean():.3g}"
        word = "far below" if far else "below"
        statement = f"regret of {own.label} {word} {other.label}'s"
        yield Finding(claim, statement, part.title, verdict, numbers)


def _stochastic(part: Part) -> Iterator[Finding]:
    yield from _below(part, "C1", "orgfw", ("osfw", "regularized-ofw"))
    curves = _by_name(part, "regret")
    own = curves["orgfw"]
    for name in ("ofw", "oaw"):
        other = curves[name]
        mean, error = paired(other.final, own.final)
        share = mean / float(other.final.mean())
        verdict = judge(mean, error)
        numbers = f"ORGFW − {other.label} = {signed(mean, error)} nats, {share:+.0%}"
        if verdict == CONFIRMED and share > 1.0:
            verdict, numbers = REFUTED, numbers + ": more than slightly"
        statement = f"regret of ORGFW slightly above {other.label}'s"
        yield Finding("C1", statement, part.title, verdict, numbers)
    for name in ("ofw", "oaw"):
        yield _cost(part, "C2", "orgfw", name, "far less than", lambda ratio: ratio >= _FAR)
    yield from _by_time(part, "C3", "suboptimality")


def _cost(
    part: Part, claim: str, ours: str, name: str, word: str, holds: Callable[[float], bool]
) -> Finding:
    """Compare times a round by their ratio in each trial; all trials have to agree."""
    curves = _by_name(part, "cost")
    own, other = curves[ours], curves[name]
    ratios = other.final / own.final
    truths = [holds(float(ratio)) for ratio in ratios]
    verdict = CONFIRMED if all(truths) else OPEN if any(truths) else REFUTED
    numbers = f"{other.label} takes {np.median(ratios):.3g} times as long"
    if len(ratios) > 1:
        numbers += f" ({ratios.min():.3g} to {ratios.max():.3g} in single trials)"
    statement = f"a round of {own.label} costs {word} one of {other.label}"
    return Finding(claim, statement, part.title, verdict, numbers)


def _adversarial(part: Part) -> Iterator[Finding]:
    curves = _by_name(part, "regret")
    own, other = curves["morgfw"], curves["metafw"]
    mean, error = paired(own.final, other.final)
    # Comparable: no further apart than a tenth of what lies between them and the next method.
    others = [curves[name] for name in ("ofw", "oaw", "regularized-ofw")]
    span = min(float(curve.final.mean()) for curve in others) - float(own.final.mean())
    near = abs(mean) <= 0.1 * abs(span)
    side = judge(mean, error)
    words = {CONFIRMED: "below", REFUTED: "above", OPEN: "equal within two standard errors"}
    verdict, word = CONFIRMED if side != REFUTED or near else REFUTED, words[side]
    if np.isnan(error):
        verdict, word = OPEN, "one trial"
    numbers = (
        f"MetaFrankWolfe − MORGFW = {signed(mean, error)} nats ({word}"
        f"{', comparable' if near else ''}: the next method is {abs(span):.3g} "
        f"{'above' if span >= 0 else 'below'} MORGFW)"
    )
    statement = "regret of MORGFW comparable to Meta-Frank-Wolfe's or below it"
    yield Finding("C4", statement, part.title, verdict, numbers)
    yield from _below(part, "C4", "morgfw", ("ofw", "oaw", "regularized-ofw"), far=True)
    yield _cost(part, "C5", "morgfw", "regularized-ofw", "more than", lambda ratio: ratio < 1)
    for name in ("metafw", "ofw", "oaw"):
        yield _cost(part, "C5", "morgfw", name, "less than", lambda ratio: ratio > 1)


def at_time(curve: Curve, trial: int, seconds: float) -> float:
    """Return a curve's value at a time, linear in the logarithm of time between checkpoints."""
    times = curve.seconds[trial]
    past = times > 0
    grid = np.log(times[past])
    return float(np.interp(np.log(seconds), grid, curve.values[trial][past]))


def _by_time(part: Part, claim: str, panel: str) -> Iterator[Finding]:
    """Compare values at the same time: when the quicker of two methods has finished."""
    curves = _by_name(part, panel)
    own = curves.pop("orgfw")
    lower = panel == "suboptimality"
    what = panel.replace("_", " ")
    for other in curves.values():
        pairs = []
        for trial in range(len(own.values)):
            end = min(float(own.seconds[trial, -1]), float(other.seconds[trial, -1]))
            pairs.append((at_time(own, trial, end), at_time(other, trial, end)))
        mine, theirs = np.array(pairs).T
        mean, error = paired(mine, theirs) if lower else paired(theirs, mine)
        numbers = (
            f"when the first of the two has finished: ORGFW {mine.mean():.3g}, "
            f"{other.label} {theirs.mean():.3g}, ahead by {signed(mean, error)}"
        )
        statement = f"{what} of ORGFW better than {other.label}'s after equal time"
        yield Finding(claim, statement, part.title, judge(mean, error), numbers)


def _network(part: Part) -> Iterator[Finding]:
    for panel in part.panels:
        yield from _by_time(part, "C6", panel)


def find(result: Reproduction) -> list[Finding]:
    """Answer the claims that a figure is about: C1 to C3, C4 and C5, or C6; by claim, then data."""
    judge = {"figure1": _stochastic, "figure2": _adversarial, "figure3": _network}[result.figure]
    found = [finding for part in result.parts for finding in judge(part)]
    return sorted(found, key=lambda finding: finding.claim)  # stable: data sets stay in order
