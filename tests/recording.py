"""Trajectories of every method on small data, recorded at one commit and compared at another.

    python tests/recording.py record FILE.npz [PATTERN]
    python tests/recording.py compare OLD.npz NEW.npz

A recording holds losses, decision and average of each cell of method x problem x set x layout x
dtype x engine x threads, the same after a save and a load in the middle, and which engine played.
Not a test by itself: trajectories are compared between commits, on one machine.
"""

from __future__ import annotations

import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
from scipy import sparse

import fastfw as fw

ROUNDS, SEED = 12, 3
#: Features, classes, rows of a batch: remainders of the tiles, and rows that are padded (512).
SIZES = {"small": (13, 3, 5), "padded": (512, 4, 9)}
#: Of the steps: some shrink the scale until it is folded, some are too long for lazy scaling.
STEPS = {"default": None, "long": 0.95, "half": 0.5}


def squares(x: Any, X: Any, y: Any) -> Any:
    """Mean squared error of X xᵀ, one output per row of x, against one label."""
    away = X.astype(x.dtype) @ x.reshape(-1, X.shape[1]).T - y.reshape(-1, 1).astype(x.dtype)
    gradient = away.T @ X.astype(x.dtype) / X.dtype.type(X.shape[0])
    return 0.5 * (away**2).sum() / X.shape[0], gradient.reshape(x.shape)


compiled = numba.njit(squares)


def data(d: int, n_classes: int, layout: str, dtype: str) -> fw.Dataset:
    rng = np.random.default_rng(d)
    X = rng.random((60, d)) * (rng.random((60, d)) < 0.4)
    y = np.argmax(X @ rng.normal(size=(d, n_classes)), axis=1)
    if layout == "bytes":
        return fw.Dataset((255 * X).astype(np.uint8), y, scale=1 / 255).astype(dtype)
    features = X.astype(dtype)
    return fw.Dataset(sparse.csr_array(features) if layout == "csr" else features, y)


def worlds(d: int, C: int) -> dict[str, tuple[Any, Any]]:
    """Problem and set by name."""
    network = fw.OneHiddenLayer(d, 4, C)
    softmax = fw.SoftmaxRegression(d, C)
    rows, l1 = fw.RowL1Ball((C, d), 3.0), fw.L1Ball(d, 2.0)
    found: dict[str, tuple[Any, Any]] = {
        "softmax/row-l1": (softmax, rows),
        "sum/row-l1": (fw.SoftmaxRegression(d, C, reduction="sum"), rows),
        "softmax/row-l1 random": (softmax, fw.RowL1Ball((C, d), 3.0, "random", 1)),
        "network/product": (network, network.l1_balls(4.0, 3.0)),
        "network/product random": (network, network.l1_balls(4.0, 3.0, "random", 1)),
    }
    for kind, function in (("compiled", compiled), ("plain", squares)):
        for name, shape, set in (
            ("row-l1", (C, d), rows), ("l1", d, l1), ("simplex", d, fw.Simplex(d, 2.0))
        ):  # fmt: skip
            found[f"{kind}/{name}"] = fw.problem_from_function(function, shape), set
    return found


def methods() -> dict[str, Callable[..., Any]]:
    T = ROUNDS
    meta = {"rounds": T, "inner_steps": 4}
    return {
        "ORGFW": fw.ORGFW,
        "OSFW": fw.OSFW,
        "RegularizedOFW": lambda *a, **k: fw.RegularizedOFW(*a, rounds=T, scale=9.0, **k),
        "RegularizedOFW theory": lambda *a, **k: fw.RegularizedOFW(*a, **k),
        "OFW": fw.OFW,
        "OAW": fw.OAW,
        "MORGFW": lambda *a, **k: fw.MORGFW(*a, **meta, **k),
        "MORGFW sub": lambda *a, **k: fw.MORGFW(*a, **meta, sub_batch_size=4, **k),
        "MetaFrankWolfe": lambda *a, **k: fw.MetaFrankWolfe(*a, **meta, sub_batch_size=4, **k),
        "SVRF": lambda *a, **k: fw.SVRF(*a, epoch_length=5, batch_size=6, **k),
        "SpiderFW": lambda *a, **k: fw.SpiderFW(*a, epoch_length=5, batch_size=6, **k),
    }


def cells() -> Iterator[tuple[str, Callable[[], Any], Callable[[Any, int, int], Any]]]:
    """Name of each cell, how its learner is made, and how it plays rounds first, ..., last."""
    for size, (d, C, B) in SIZES.items():
        for world, (problem, set) in worlds(d, C).items():
            for layout in ("dense", "bytes", "csr"):
                for dtype in ("float64", "float32"):
                    source = data(d, C, layout, dtype)
                    for method, make in methods().items():
                        for step, eta in STEPS.items():
                            for engine, threads in (("fused", 1), ("fused", 2), ("steps", 1)):
                                special = eta is not None or world.startswith(("plain", "sum"))
                                if special and (size == "padded" or threads == 2):
                                    continue
                                options: dict[str, Any] = {"engine": engine, "seed": SEED}
                                options["dtype"] = dtype
                                if eta is not None:
                                    options["step"] = eta
                                if threads == 2:
                                    if method in ("SVRF", "SpiderFW") or "softmax" not in world:
                                        continue
                                    options["threads"] = 2
                                name = (method, world, layout, dtype, size, step, engine)

                                def build(make=make, p=problem, s=set, o=options):  # type: ignore[no-untyped-def]
                                    return make(p, s, **o)

                                def play(learner, a, b, source=source, B=B):  # type: ignore[no-untyped-def]
                                    if hasattr(learner, "fit"):
                                        return learner.fit(source, iterations=b, resume=a > 0)
                                    return learner.run(
                                        fw.iid_stream(
                                            source, batch_size=B, rounds=ROUNDS, seed=SEED
                                        )
                                        if (a, b) == (0, ROUNDS)
                                        else [
                                            *fw.iid_stream(
                                                source, batch_size=B, rounds=ROUNDS, seed=SEED
                                            )
                                        ][a:b]
                                    )

                                yield "|".join((*name, str(threads))), build, play


def record(path: str, only: str = "") -> None:
    """Play every cell whose name has a pattern in it, and write what happened."""
    kept: dict[str, Any] = {}
    for name, build, play in cells():
        if not re.search(only, name):
            continue
        try:
            learner = build()
            result = play(learner, 0, ROUNDS)
        except (TypeError, ValueError) as error:
            kept[f"{name}|refused"] = np.array(str(error))
            continue
        kept[f"{name}|engine"] = np.array(learner.engine)
        for part in ("losses", "decision", "average"):
            kept[f"{name}|{part}"] = getattr(result, part)
        try:
            half = build()
            play(half, 0, ROUNDS // 2)
            with tempfile.TemporaryDirectory() as folder:
                half.save(Path(folder) / "half")
                world = {"problem": learner.problem, "set": learner.set}
                again = type(half).load(Path(folder) / "half", **world)
            rest = play(again, ROUNDS // 2, ROUNDS)
            same = [rest.decision.tobytes() == result.decision.tobytes()]
            same.append(rest.average.tobytes() == result.average.tobytes())
            kept[f"{name}|resumed"] = np.array(all(same))
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            kept[f"{name}|resumed"] = np.array(f"{type(error).__name__}: {error}"[:200])
    np.savez_compressed(path, **kept)
    print(len({n.rpartition("|")[0] for n in kept}), "cells")


def compare(old: str, new: str) -> int:
    """Print where two recordings differ; return how many cells do."""
    with np.load(old) as a, np.load(new) as b:
        before, after = dict(a), dict(b)
    names = sorted({n.rpartition("|")[0] for n in before} & {n.rpartition("|")[0] for n in after})
    equal = near = engines = 0
    bad: list[str] = []
    for name in names:
        if f"{name}|refused" in before:
            if f"{name}|refused" not in after and f"{name}|losses" not in after:
                bad.append(f"{name}: gone")
            continue
        if f"{name}|losses" not in after:
            why = after.get(f"{name}|refused", "gone")
            bad.append(f"{name}: {why}")
            continue
        tolerance = 1e-12 if "float64" in name else 2e-4
        same, worst = True, 0.0
        for part in ("losses", "decision", "average"):
            x, y = before[f"{name}|{part}"], after[f"{name}|{part}"]
            same &= x.tobytes() == y.tobytes()
            worst = max(worst, float(np.max(np.abs(x - y) / np.maximum(1.0, np.abs(x)))))
        equal, near = equal + same, near + (not same and worst <= tolerance)
        if worst > tolerance:
            bad.append(f"{name}: {worst:.1e}")
        if str(before[f"{name}|engine"]) != str(after[f"{name}|engine"]):
            engines += 1
        a_, b_ = str(before[f"{name}|resumed"]), str(after[f"{name}|resumed"])
        if a_ == "True" and b_ != "True":
            bad.append(f"{name}: resumed {b_}")
    print(
        f"{len(names)} cells: {equal} equal in bits, {near} near, {len(bad)} apart; "
        f"another engine in {engines}"
    )
    print(*bad[:60], sep="\n")
    return len(bad)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    sys.exit({"record": record, "compare": compare}[sys.argv[1]](*sys.argv[2:]))
