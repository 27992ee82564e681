"""Figure 3: the network with one hidden layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fastfw.experiments import network
from fastfw.experiments._store import Arrays
from fastfw.experiments.network import (
    NETWORK_METHODS,
    compare_network,
    relative_suboptimality,
)
from fastfw.experiments.reproduction import Curve, Part, Request, Work

__all__ = ["assemble", "count_steps", "steps"]

#: N of the paper: rounds of ORGFW.
_ROUNDS = {"mnist": 150_000, "fashion-mnist": 150_000, "cifar10": 45_000}
_SHORT, _QUICK = 4_000, 2_000
_HIDDEN = 10
_BATCH_SIZE = 16
_RADIUS = 10.0
_CHECKPOINTS = 30
_PANELS = {
    "suboptimality": "losses",
    "accuracy": "accuracies",
    "test_accuracy": "test_accuracies",
}


def _sizes(request: Request) -> dict[str, Any]:
    """Return what is run, defaults filled in."""
    rounds = request.rounds or _ROUNDS.get(request.name, _SHORT)
    if request.quick and request.rounds is None:
        rounds = min(rounds, _QUICK)
    return {
        "rounds": rounds,
        "batch_size": request.batch_size or _BATCH_SIZE,
        "radius": request.radius or _RADIUS,
        "hidden": _HIDDEN,
        "checkpoints": _CHECKPOINTS,
    }


def _family(request: Request) -> str:
    return "cifar10" if request.name == "cifar10" else "mnist"


def count_steps(figure: str, trials: int) -> int:
    """Return how many steps the figure takes on one data set."""
    return trials * len(NETWORK_METHODS)


def steps(request: Request) -> Iterator[Work]:
    """Yield the trials; methods take turns within a trial."""
    sizes = _sizes(request)
    for seed in request.seeds:
        for method, label in NETWORK_METHODS.items():
            settings = {
                "what": "network",
                "method": method,
                "seed": seed,
                "data": request.digest,
                "constants": network.CONSTANTS[_family(request)][method],
                **sizes,
            }
            yield Work(
                f"{label}, trial {seed - request.seeds.start + 1}",
                settings,
                _later(request, method, seed, sizes),
            )


def _later(request: Request, method: str, seed: int, sizes: dict[str, Any]) -> Callable[[], Arrays]:
    return lambda: _trial(request, method, seed, sizes)


def _trial(request: Request, method: str, seed: int, sizes: dict[str, Any]) -> Arrays:
    """Train once; a short run that compiles comes first and is not timed."""
    result = compare_network(
        request.split,
        constants=_family(request),
        methods=[method],
        trials=1,
        seed=seed,
        gap=False,
        **sizes,
    )
    (run,) = result.runs
    (curve,) = run.traces
    arrays = {
        "rounds": np.asarray(curve.rounds, dtype=np.int64),
        "seconds": curve.seconds,
        "losses": curve.losses,
        "work": np.array(run.evaluations),
    }
    for name in ("accuracies", "test_accuracies"):
        values = getattr(curve, name)
        if values is not None:
            arrays[name] = values
    return arrays


def assemble(request: Request, done: list[Arrays]) -> Part:
    """Make the figure's curves of what is kept."""
    methods = list(NETWORK_METHODS)
    least = min(float(arrays["losses"].min()) for arrays in done)
    panels: dict[str, list[Curve]] = {name: [] for name in _PANELS}
    for m, method in enumerate(methods):
        own = done[m :: len(methods)]
        seconds = np.array([arrays["seconds"] for arrays in own])
        for panel, what in _PANELS.items():
            if what not in own[0]:
                continue
            values = np.array([arrays[what] for arrays in own])
            if panel == "suboptimality":
                values = relative_suboptimality(values, values[:, :1], least)
            panels[panel].append(
                Curve(
                    method,
                    NETWORK_METHODS[method],
                    own[0]["rounds"],
                    seconds,
                    values,
                    values,
                    work=int(own[0]["work"]),
                    oracle_calls=int(own[0]["rounds"][-1]) - 1,
                )
            )
    sizes = _sizes(request)
    family = network.CONSTANTS[_family(request)]
    return Part(
        data=request.name,
        title=request.title,
        n_samples=request.train.n_samples,
        n_features=request.train.n_features,
        n_classes=request.train.n_classes,
        settings={
            "hidden units": _HIDDEN,
            "N": sizes["rounds"],
            "batch size": sizes["batch_size"],
            "radius": sizes["radius"],
        },
        constants={method: _as_text(method, family[method]) for method in methods},
        comparator=None,
        panels={name: tuple(curves) for name, curves in panels.items() if curves},
        seconds=sum(float(arrays["wall"]) for arrays in done),
    )


def _as_text(method: str, constants: tuple[Any, ...]) -> str:
    """Return a method's constants for a table."""
    if method in ("svrf", "spiderfw"):
        step, epoch, batch = constants
        return f"step {step:g}, epochs of {epoch}, batches of {batch}"
    texts = [f"step {constants[0][0]:g}/(t+1)^{constants[0][1]:.3g}"]
    if method in ("orgfw", "osfw"):
        texts.append(f"momentum {constants[1][0]:g}/(t+1)^{constants[1][1]:.3g}")
    if method == "regularized-ofw":
        texts.append(f"c = {constants[1]:g} of eta")
    return ", ".join(texts)
