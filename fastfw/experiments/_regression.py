"""Figures 1 and 2: softmax regression in the stochastic and in the adversarial setting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from fastfw.experiments._store import Arrays
from fastfw.experiments.comparison import (
    Comparator,
    check_scale,
    constants_of,
    defaults,
    make_stream,
    played_rows,
    problem_and_ball,
)
from fastfw.experiments.methods import SUB_BATCH, Method, find_methods, rounds_at_equal_work
from fastfw.experiments.presets import default_preset
from fastfw.experiments.reproduction import Curve, Part, Request, Work
from fastfw.regret import BestDecision, best_fixed_decision, regret
from fastfw.schedules import PowerSchedule
from fastfw.streams import Dataset
from fastfw.traces import log_spaced

__all__ = ["assemble", "count_steps", "steps"]

_SETTING = {"figure1": "stochastic", "figure2": "adversarial"}
_METHODS = {
    "figure1": ("orgfw", "osfw", "regularized-ofw", "ofw", "oaw"),
    "figure2": ("morgfw", "metafw", "regularized-ofw", "ofw", "oaw"),
}
#: N of the paper: rounds of ORGFW for suboptimality by time.
_DESCENT = {"mnist": 1600, "fashion-mnist": 1600, "cifar10": 4000}
_CHECKPOINTS = 30
_TOLERANCE = 1e-5  # of the comparator's gap, relative to its loss


class _Plan:
    """A request with its defaults filled in."""

    def __init__(self, request: Request):
        self.request = request
        self.setting = _SETTING[request.figure]
        self.methods = find_methods(_METHODS[request.figure])
        train = request.train
        default = defaults(request.name, self.setting, train.n_samples)
        self.rounds = request.rounds or default.rounds
        self.batch_size = request.batch_size or default.batch_size
        self.radius = request.radius or default.radius
        self.preset = default_preset(request.name, self.setting)
        self.descent = _DESCENT.get(request.name, self.rounds)
        if request.quick:
            self.descent = min(self.descent, 400)
        if request.rounds is not None:
            self.descent = self.rounds
        check_scale(train, self.radius)
        self.problem, self.ball = problem_and_ball(train, self.radius)

    def stream(self, seed: int, rounds: int) -> Any:
        return make_stream(
            self.setting, self.request.train, batch_size=self.batch_size, rounds=rounds, seed=seed
        )

    def played(self) -> Dataset:
        if self.setting == "stochastic":
            return self.request.train
        return played_rows(self.request.train, self.stream(0, self.rounds))

    def options(self, method: Method) -> dict[str, Any]:
        return {**constants_of(method, self.preset, None, None), "sub_batch_size": SUB_BATCH}

    def in_words(self, method: Method) -> dict[str, Any]:
        """Return a method's constants in types that JSON knows."""
        words: dict[str, Any] = {}
        for name, value in self.options(method).items():
            if isinstance(value, PowerSchedule):
                words[name] = [value.c, value.e]
            elif value is not None:
                words[name] = value
        if not method.meta:
            words.pop("sub_batch_size")
        return words


def count_steps(figure: str, trials: int) -> int:
    """Return how many steps a figure takes on one data set."""
    panels = 2 if figure == "figure1" else 1
    return 1 + trials * len(_METHODS[figure]) * panels


def steps(request: Request) -> Iterator[Work]:
    """Yield the comparator, then the trials; methods take turns within a trial."""
    plan = _Plan(request)
    common = {"data": request.digest, "radius": plan.radius}
    rows: dict[str, Any] = {"rows": "all"}
    played = plan.played()
    if played is not request.train:
        rows = {"rows": "sorted", "rounds": plan.rounds, "batch_size": plan.batch_size}
    yield Work(
        "comparator",
        {"what": "comparator", "tolerance": _TOLERANCE, **common, **rows},
        lambda: _comparator(plan, played),
    )
    warm: set[str] = set()
    for seed in request.seeds:
        for method in plan.methods:
            runs = [("regret", plan.rounds)]
            if request.figure == "figure1":
                runs.append(("descent", rounds_at_equal_work(method.name, plan.descent)))
            for what, rounds in runs:
                settings = {
                    "what": what,
                    "method": method.name,
                    "seed": seed,
                    "setting": plan.setting,
                    "rounds": rounds,
                    "batch_size": plan.batch_size,
                    "constants": plan.in_words(method),
                    **common,
                }
                if what == "descent":
                    settings["checkpoints"] = _CHECKPOINTS
                yield Work(
                    f"{method.label}, {what}, trial {seed - request.seeds.start + 1}",
                    settings,
                    _later(plan, method, seed, rounds, what, warm),
                )


def _later(
    plan: _Plan, method: Method, seed: int, rounds: int, what: str, warm: set[str]
) -> Callable[[], Arrays]:
    return lambda: _trial(plan, method, seed, rounds, what, warm)


def _comparator(plan: _Plan, played: Dataset) -> Arrays:
    best = best_fixed_decision(plan.problem, plan.ball, played.X, played.y, tol=_TOLERANCE)
    return {
        "decision": best.decision,
        "value": np.array(best.value),
        "gap": np.array(best.gap),
        "seconds": np.array(best.seconds),
        "iterations": np.array(best.iterations),
        "n_samples": np.array(best.n_samples),
    }


def _trial(
    plan: _Plan, method: Method, seed: int, rounds: int, what: str, warm: set[str]
) -> Arrays:
    """Run one method once; evaluate it where suboptimality is wanted."""
    options = plan.options(method)
    if method.name not in warm:  # compile, and touch the memory, before the clock runs
        few = min(rounds, 2)
        learner = method.build(plan.problem, plan.ball, rounds=few, seed=0, **options)
        learner.run(plan.stream(0, few))
        warm.add(method.name)
    learner = method.build(plan.problem, plan.ball, rounds=rounds, seed=(seed, 1), **options)
    keep = log_spaced(rounds + 1, _CHECKPOINTS) if what == "descent" else ()
    ran = learner.run(plan.stream(seed, rounds), checkpoints=keep)
    kept = {"work": np.array(ran.gradient_evaluations), "oracle": np.array(ran.lmo_calls)}
    if what == "regret":
        nonzeros = np.array(np.count_nonzero(ran.decision))
        return {"losses": ran.losses, "seconds": ran.seconds, "nonzeros": nonzeros, **kept}
    train = plan.request.train
    return {
        "rounds": np.asarray(ran.checkpoints, dtype=np.int64),
        "seconds": ran.checkpoint_seconds,
        "losses": np.array([float(plan.problem.loss(x, train)) for x in ran.decisions]),
        **kept,
    }


def assemble(request: Request, done: list[Arrays]) -> Part:
    """Make the figure's curves of what is kept."""
    plan = _Plan(request)
    found, *trials = done
    best = BestDecision(
        decision=found["decision"],
        value=float(found["value"]),
        gap=float(found["gap"]),
        seconds=float(found["seconds"]),
        iterations=int(found["iterations"]),
        problem=plan.problem,
        n_samples=int(found["n_samples"]),
    )
    panels: dict[str, list[Curve]] = {"regret": [], "cost": []}
    kinds = ["regret"]
    if request.figure == "figure1":
        panels["suboptimality"] = []
        kinds.append("descent")
    streams = [plan.stream(seed, plan.rounds) for seed in request.seeds]
    for m, method in enumerate(plan.methods):
        for k, what in enumerate(kinds):
            own = trials[m * len(kinds) + k :: len(plan.methods) * len(kinds)]
            seconds = np.array([arrays["seconds"] for arrays in own])
            losses = np.array([arrays["losses"] for arrays in own])
            curve = partial(
                Curve,
                method.name,
                method.label,
                work=int(own[0]["work"]),
                oracle_calls=int(own[0]["oracle"]),
            )
            if what == "descent":
                part = losses - best.value
                values = part / part[:, :1]
                # The least loss may be lower by the gap, which raises what is below 1.
                upper = np.maximum(values, (part + best.gap) / (part[:, :1] + best.gap))
                panels["suboptimality"].append(curve(own[0]["rounds"], seconds, values, upper))
                continue
            curves = [
                regret(SimpleNamespace(losses=trial), best, stream)
                for trial, stream in zip(losses, streams, strict=True)
            ]
            T = np.arange(1, plan.rounds + 1)
            values = np.array([np.asarray(c) for c in curves])
            upper = np.array([c.upper for c in curves])
            panels["regret"].append(curve(T, seconds, values, upper))
            ms = seconds[:, -1:] * 1e3 / plan.rounds
            panels["cost"].append(curve(T[-1:], seconds[:, -1:], ms, ms))
    settings = {"setting": plan.setting, "rounds": plan.rounds, "batch size": plan.batch_size}
    settings["radius"] = plan.radius
    if request.figure == "figure1":
        settings["N"] = plan.descent
    return Part(
        data=request.name,
        title=request.title,
        n_samples=request.train.n_samples,
        n_features=request.train.n_features,
        n_classes=request.train.n_classes,
        settings=settings,
        constants={method.name: _as_text(plan, method) for method in plan.methods},
        comparator=Comparator(best.value, best.gap, best.n_samples, best.seconds),
        panels={name: tuple(curves) for name, curves in panels.items()},
        seconds=sum(float(arrays["wall"]) for arrays in done),
    )


def _as_text(plan: _Plan, method: Method) -> str:
    """Return a method's constants for a table."""
    words = plan.in_words(method)
    texts = []
    for name in ("step", "momentum"):
        if name in words:
            c, e = words[name]
            texts.append(f"{name} {c:g}/(t+1)^{e:.3g}")
        elif name == "step" or method.momentum:
            texts.append(f"{name} theory")
    if method.eta:
        texts.append(f"c = {words['eta']:g} of eta" if "eta" in words else "eta theory")
    if method.meta:
        texts.append(f"c = {words['scale']:g} of FTPL" if "scale" in words else "FTPL c = 1")
        texts.append(f"sub-batches of {words['sub_batch_size']}")
    return ", ".join(texts)
