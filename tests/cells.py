"""The table of the contract: method x problem and set x layout x precision x engine.

`CELLS` are the combinations that learners take, `REFUSED` those that they refuse in words. Both
engines are there only where they differ, single precision not everywhere. Data are small and the
same for all.
"""

import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numba
import numpy as np
from scipy import sparse

import fastfw as fw
from fastfw.learners import TABLE
from sizes import JIT

N, D, C, ROUNDS, BATCH = 24, 5, 3, 5, 4


def squares(x, X, y):
    """Mean squared error of X xᵀ, one output per row of x, against one label."""
    away = X @ x.reshape(-1, D).T - y.reshape(-1, 1).astype(x.dtype)
    return 0.5 * (away**2).mean(), (X.T @ away).T.reshape(x.shape) / x.dtype.type(away.size)


@numba.njit
def compiled_squares(x, X, y):
    """The same, for one row."""
    away = X @ x - y.astype(x.dtype)
    return 0.5 * (away * away).mean(), X.T @ away / x.dtype.type(away.size)


@numba.njit
def corner(g, index, value):
    """Write the vertex of an l1 ball of radius 2."""
    index[0] = np.abs(g).argmax()
    value[0] = -2.0 if g[index[0]] >= 0.0 else 2.0


class World(NamedTuple):
    """A problem and a set; they are given again where files are loaded that do not hold them."""

    problem: Any
    set: Any
    takes_csr: bool
    saved: bool
    """Whether a file holds both."""


softmax, network = fw.SoftmaxRegression(D, C), fw.OneHiddenLayer(D, 3, C, "tanh")
matrix, vector = fw.problem_from_function(squares, (C, D)), fw.problem_from_function(squares, D)
fast = fw.problem_from_function(compiled_squares, D)
ball = fw.RowL1Ball((C, D), 2.0)
WORLDS = {
    "softmax": World(softmax, ball, True, True),
    "sum, ties": World(
        softmax.with_reduction("sum"), fw.RowL1Ball((C, D), 2.0, "random"), True, True
    ),
    "network": World(network, network.l1_balls(2.0, 1.0), True, True),
    "plain": World(vector, fw.L1Ball(D, 1.0), True, False),
    "nuclear": World(matrix, fw.NuclearNormBall((C, D), 2.0), True, False),
    "own set": World(softmax, fw.CompiledSet((C, D), corner, diameter=4.0 * C**0.5), True, False),
    "compiled": World(fast, fw.Simplex(D, 2.0), not JIT, False),
}
#: Worlds that need not be seen in all layouts and precisions.
ALIKE = ("sum, ties", "plain", "nuclear", "own set")
#: Methods that keep the past.
PAST = ("OFW", "OAW")
META = {"rounds": ROUNDS, "inner_steps": 3, "base": fw.FTPL(5.0)}
OFFLINE = {"step": 0.25, "epoch_length": 3, "batch_size": 2}
#: By the label of a row, where not by default.
OPTIONS: dict[str, dict[str, Any]] = {
    "OSFW": {"step": 0.25, "momentum": fw.power_schedule(1.0, 0.5)},
    "OFW-LS": {"rounds": 7, "scale": 1.5},
    "MORGFW": META,
    "MetaFrankWolfe": {**META, "sub_batch_size": 2},
    "SVRF": OFFLINE,
    "SPIDER-FW": OFFLINE,
}
METHODS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    row.label: (getattr(fw, row.learner), {**dict(row.options), **OPTIONS.get(row.label, {})})
    for row in TABLE
} | {
    "MORGFW, sub-batches": (fw.MORGFW, {"inner_steps": 2, "sub_batch_size": 3}),
    "OSPF, blocks": (fw.OSPF, {"rounds": 7, "block_size": 2, "scale": 0.5}),
}
LAYOUTS = ("dense", "pairs", "bytes", "csr", "csr pairs")


@cache
def dataset(layout: str, dtype: str) -> fw.Dataset:
    """Twelve digits of noise, many of them zero."""
    rng = np.random.default_rng(0)
    X = rng.random((N, D)).round(12) * (rng.random((N, D)) < 0.6)
    y = np.argmax(X @ rng.normal(size=(D, C)), axis=1)
    if layout == "bytes":
        return fw.Dataset((255 * X).astype(np.uint8), y, scale=1 / 255).astype(dtype)
    X = X.astype(dtype)
    return fw.Dataset(sparse.csr_array(X) if layout.startswith("csr") else X, y)


class Cell(NamedTuple):
    """One combination."""

    method: str
    world: str
    layout: str
    dtype: str
    engine: str

    def __str__(self) -> str:
        return "-".join(self)

    @property
    def kind(self) -> Any:
        """The learner's class."""
        return METHODS[self.method][0]

    @property
    def offline(self) -> bool:
        return issubclass(self.kind, fw.OfflineLearner)

    def learner(self) -> Any:
        """Make one before its first round."""
        problem, set, *_ = WORLDS[self.world]
        options = METHODS[self.method][1]
        with warnings.catch_warnings():  # "fused" is asked for where there is none, too
            warnings.simplefilter("ignore", fw.EngineWarning)
            return self.kind(problem, set, **options, engine=self.engine, seed=3)

    def batches(self) -> list[Any]:
        """All batches, in the layout."""
        data = dataset(self.layout, self.dtype)
        found = list(fw.iid_stream(data, batch_size=BATCH, rounds=ROUNDS, seed=1))
        return [tuple(batch) for batch in found] if "pairs" in self.layout else found

    def play(self, learner: Any, first: int, last: int, **options: Any) -> Any:
        """Play rounds first + 1, ..., last, or as many iterations of a fit."""
        if not self.offline:
            return learner.run(self.batches()[first:last], **options)
        data = dataset(self.layout, self.dtype)
        given = (data.X, data.y) if "pairs" in self.layout else (data,)
        return learner.fit(*given, iterations=last, resume=first > 0, **options)

    def round(self, learner: Any, t: int) -> float:
        """Play round t alone; its loss."""
        if self.offline:
            return float(self.play(learner, t - 1, t).losses[0])
        return float(learner.observe(self.batches()[t - 1]).loss)


def _all() -> list[Cell]:
    found = []
    for method, world in product(METHODS, WORLDS):
        compiled = Cell(method, world, "dense", "float64", "fused").learner().engine == "fused"
        for layout, dtype, engine in product(LAYOUTS, ("float64", "float32"), ("fused", "steps")):
            plain = engine == "steps" or not compiled
            if engine == "steps" and not compiled:
                continue
            if world in ALIKE and (layout not in ("dense", "csr") or dtype == "float32"):
                continue
            # what oracle calls are given has one form, but for the past that files hold
            once = layout == "dense" or (layout == "csr" and not WORLDS[world].takes_csr)
            seen = dtype == "float64" and world in ("softmax", "plain")
            if plain and not (once or seen):
                continue
            if plain and layout not in ("dense", "csr") and method not in PAST:
                continue
            if "pairs" in layout and (dtype == "float32" or world == "network"):
                continue
            found.append(Cell(method, world, layout, dtype, engine))
    return found


ALL = _all()
CELLS = [c for c in ALL if WORLDS[c.world].takes_csr or not c.layout.startswith("csr")]
REFUSED = [c for c in ALL if c not in CELLS]
