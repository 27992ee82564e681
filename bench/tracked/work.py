"""What the benchmarks share: sizes, data, problems, methods, and how far a result is off.

Results are compared with plain NumPy (tests/reference.py, tests/reference_network.py) or with the
engine that calls oracles one by one.
"""

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import fastfw as fw
from fastfw.experiments.methods import NETWORK_PRESETS, PRESETS, find_methods
from fastfw.learners import TABLE

sys.path.extend(str(Path(__file__).resolve().parents[2] / folder) for folder in ("tests", ""))
import reference
import reference_network
from bench import data as synthetic
from bench.data import DTYPES, Shape

__all__ = ["DTYPES", "reference", "reference_network"]

SHAPES = {
    "mnist": Shape(12_000, 784, 10, 600, 8.0),
    "cifar10": Shape(5_000, 3072, 10, 500, 32.0),
    "small-batch": Shape(12_000, 784, 10, 16, 8.0),
    "wide": Shape(5_000, 100_000, 10, 256, 32.0, share=0.01, csr=True),
    # parameters are large and samples few, so that memory is the learner's
    "large": Shape(200, 3072, 100, 100, 8.0),
}
#: Hidden units of networks, and the radius of their balls.
HIDDEN, HIDDEN_RADIUS = 10, 10.0
#: Nodes in a row of the grid whose paths are a feasible set.
SIDE = 30
#: What differences are never reported to be smaller than: as good as equal.
ROUNDING = {"float64": 1e-11, "float32": 1e-4}
#: Rounds in which figures of correctness are found.
COMPARED = 3


# --- data -------------------------------------------------------------------------------------


def pixels(shape):
    """Bytes of which few are not 0, and labels that a linear model can learn."""
    return synthetic.pixels(SHAPES[shape])


def data(shape, features):
    """The same features as "float64", "csr float64", "uint8 float64", ..."""
    return synthetic.dataset(SHAPES[shape], features)


def stream(shape, features, rounds, seed=0):
    """Batches of rows drawn with replacement."""
    own = data(shape, features)
    return fw.iid_stream(own, batch_size=SHAPES[shape].batch_size, rounds=rounds, seed=seed)


def sorted_stream(shape, features, rounds, seed=0):
    """Batches sorted by label; another seed has the last ones."""
    own, size = data(shape, features), SHAPES[shape].batch_size
    every = len(own) // size
    rows = np.argsort(own.y, kind="stable")[: every * size].reshape(every, size)
    return fw.IndexedStream(own, rows[-rounds:] if seed else rows[:rounds])


def row_numbers(array):
    """Row numbers as kernels get them, read-only: they are compiled for such arrays."""
    rows = np.ascontiguousarray(array, np.intp)
    rows.flags.writeable = False
    return rows


# --- problems and methods ---------------------------------------------------------------------


def problem_and_ball(shape):
    """Softmax regression and the row l1 ball of that shape."""
    problem = fw.SoftmaxRegression(SHAPES[shape].d, SHAPES[shape].n_classes)
    return problem, fw.RowL1Ball(problem.shape, SHAPES[shape].radius)


def network_and_balls(shape):
    """The network with one hidden layer and its l1 balls."""
    problem = fw.OneHiddenLayer(SHAPES[shape].d, HIDDEN, SHAPES[shape].n_classes)
    return problem, problem.l1_balls(HIDDEN_RADIUS, HIDDEN_RADIUS)


def grid():
    """Paths through a grid of nodes, to the right and down."""
    return synthetic.grid(SIDE)


class Method(NamedTuple):
    """A learner's class and arguments, its stream, and the rounds of a turn."""

    kind: type
    options: dict
    rounds: int = 50
    stream: object = stream
    #: Rounds played before those measured.
    before: int = 20


def _method(
    name, turn=50, stream=stream, before=20, presets=PRESETS["mnist-stochastic"], **options
):
    """A method of the table with constants of the paper's experiments."""
    (row,), constants = find_methods([name]), presets[name]
    options["step"] = fw.power_schedule(*constants.step)
    if row.momentum:
        options["momentum"] = fw.power_schedule(*constants.momentum)
    if row.meta:
        options["base"] = fw.FTPL(scale=constants.scale)
    elif row.scale:
        options["scale"] = constants.scale
    return Method(getattr(fw, row.learner), options, turn, stream, before)


def _meta(name, before, **options):
    """A meta method, with batches sorted by label."""
    presets = PRESETS["mnist-adversarial"]
    return _method(name, 5, sorted_stream, before, presets, rounds=100, **options)


#: Online methods on softmax regression. RegularizedOFW and those of Algorithm 2 are for any
#: batches, and get them sorted by label; OFW is for both.
METHODS = {
    "ORGFW": _method("orgfw"),
    "OSFW": _method("osfw"),
    "OFW": _method("ofw", 5),
    "OFW, sorted": _method("ofw", 5, sorted_stream, 10),
    "OAW": _method("oaw", 5),
    "RegularizedOFW": _method("regularized-ofw", 20, sorted_stream, 10, rounds=400),
    "MORGFW, sub-batches": _meta("morgfw", 10, inner_steps=100, sub_batch_size=4),
    "MORGFW, whole batches": _meta("morgfw", 10, inner_steps=100),
    "MetaFrankWolfe, sub-batches": _meta("metafw", 3, inner_steps=1000, sub_batch_size=4),
    "MetaFrankWolfe, whole batches": _meta("metafw", 10, inner_steps=100),
}
_LISTED = {own.kind for own in METHODS.values()}
METHODS |= {  # with compiled rounds too, as theory has them
    row.label: Method(getattr(fw, row.learner), dict(row.options))
    for row in TABLE
    if not row.offline and getattr(fw, row.learner)._compiled is not None
    if getattr(fw, row.learner) not in _LISTED
}
#: Those of `METHODS` that are also timed with two threads: one for each way of sharing.
THREADED = ("ORGFW", "OFW", "OAW", "RegularizedOFW", "MORGFW, sub-batches")
#: Online methods on the network; its rounds are short, but for those that play the past again.
_NETWORK = {"before": 200, "presets": NETWORK_PRESETS["mnist"]}
NETWORK_METHODS = {
    "ORGFW": _method("orgfw", 500, **_NETWORK),
    "OSFW": _method("osfw", 500, **_NETWORK),
    "RegularizedOFW": _method("regularized-ofw", 500, **_NETWORK, rounds=1000),
    "OFW": _method("ofw", 10, **_NETWORK),
    "OAW": _method("oaw", 10, **_NETWORK),
}
#: Offline methods: class and step size.
OFFLINE = {"SVRF": (fw.SVRF, 2.5e-3), "SpiderFW": (fw.SpiderFW, 2e-3)}


def learner(method, shape, dtype, **options):
    """Return a learner of softmax regression in round 1."""
    own = METHODS[method]
    return own.kind(*problem_and_ball(shape), dtype=dtype, **{**own.options, **options})


# --- figures ----------------------------------------------------------------------------------


def difference(found, wanted, dtype="float64"):
    """The largest difference of two arrays, in units of the largest entry wanted.

    What is mere rounding is reported as `ROUNDING`, so that it does not look like a change.
    """
    found, wanted = np.asarray(found, np.float64), np.asarray(wanted, np.float64)
    if found.shape != wanted.shape or not np.isfinite(found).all():
        raise ValueError(f"wanted numbers of shape {wanted.shape}, found {found!r}")
    size = float(np.abs(wanted).max()) or 1.0
    return max(float(np.abs(found - wanted).max()) / size, ROUNDING[dtype])


def from_steps(play, dtype):
    """The larger of the differences in losses and decisions from the engine of single steps.

    ``play(engine)`` returns the result of a new learner's first rounds.
    """
    fused, steps = play("fused"), play("steps")
    return max(
        difference(fused.losses, steps.losses, dtype),
        difference(fused.decision, steps.decision, dtype),
    )


def warm(benchmark, *params):
    """Call everything timed once, so that it is compiled."""
    for name in dir(benchmark):
        if name.startswith("time_"):
            getattr(benchmark, name)(*params)
