"""What the tests of learners share: methods with their references, data, custom objects."""

import json
import os
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from fastfw import experiments
from fastfw.learners import TABLE
from fastfw.learners._linear import RecursiveLearner
from fastfw.learners._method import Constants
from sizes import sized

RADIUS = 2.0


class Method(NamedTuple):
    """A learner, its reference and the arguments under which they do the same."""

    learner: type
    reference: Callable[..., ref.Run]
    options: dict[str, Any]
    evaluations: int  # per sample and round


POWER = {
    "step": fw.power_schedule(1.0, 1.0),
    "momentum": fw.power_schedule(1.0, 2 / 3),
}
# One method with steps so long that the previous point cannot be recovered, and a momentum of one.
ROUGH = {
    "step": lambda t: (1.0, 0.3, 1.0 - 1e-9, 0.0, 0.9, 0.95)[t % 6],
    "momentum": lambda t: (0.5, 1.0, 0.0, 0.25)[t % 4],
}

METHODS = {
    "ORGFW": Method(fw.ORGFW, ref.orgfw, POWER, 2),
    "ORGFW, rough": Method(fw.ORGFW, ref.orgfw, ROUGH, 2),
    "OSFW": Method(fw.OSFW, ref.osfw, POWER, 1),
    "OSFW, rough": Method(fw.OSFW, ref.osfw, ROUGH, 1),
}
ENGINES = ["fused", "steps"]
engines = pytest.mark.parametrize("engine", ENGINES)
_CLASSES = dict.fromkeys(getattr(fw, row.learner) for row in TABLE)
#: Methods that are one recursion: what is compiled for one of them is compiled for all.
RECURSIVE = [kind for kind in _CLASSES if issubclass(kind, RecursiveLearner)]
_BUILT: dict[str, Any] = {"rounds": 12, "seed": 0, "inner_steps": 4, "sub_batch_size": None}
#: All online methods of the package, as `compare` builds them for a problem and a set.
LEARNERS = {
    row.label: partial(row.build, constants=Constants(scale=1.0), **_BUILT)
    for row in experiments.METHODS
}


def play(learner, data):
    """Play eight rounds on a data set, whatever the learner."""
    if isinstance(learner, fw.OfflineLearner):
        learner.fit(data, iterations=8)
    else:
        learner.run(fw.iid_stream(data, batch_size=4, rounds=8, seed=1))


N, D, C = 40, 6, 3
ROUNDS = sized(60, 20)


def make_data(seed=0, n=N, d=D, n_classes=C, dtype=np.float64):
    """Labels that depend on the features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)).astype(dtype)
    y = np.argmax(X @ rng.standard_normal((d, n_classes)) + rng.gumbel(size=(n, n_classes)), axis=1)
    return X, y


def problem_and_ball(d=D, n_classes=C, reduction="mean"):
    problem = fw.SoftmaxRegression(d, n_classes, reduction=reduction)
    return problem, fw.RowL1Ball(problem.shape, radius=RADIUS)


def make(method, engine="fused", *, d=D, n_classes=C, reduction="mean", **changes):
    """A learner of a method, fresh."""
    problem, ball = problem_and_ball(d, n_classes, reduction)
    return method.learner(problem, ball, engine=engine, **{**method.options, **changes})


def make_stream(dtype=np.float64, rounds=None, seed=1):
    X, y = make_data(dtype=dtype)
    return fw.iid_stream(X, y, batch_size=5, rounds=rounds or ROUNDS, seed=seed)


class Quadratic:
    """The least that a problem must have: f(x) = ‖x - mean of the batch‖² / 2."""

    def __init__(self, shape):
        self.shape = shape

    def loss(self, x, batch):
        return 0.5 * ((x - np.mean(batch, axis=0)) ** 2).sum()

    def gradient(self, x, batch):
        return x - np.mean(batch, axis=0)


class Linear(Quadratic):
    """f(x) = ⟨g, x⟩."""

    def loss(self, x, g):
        return g @ x

    def gradient(self, x, g):
        return g


class Pairs(Quadratic):
    """A quadratic whose batches are pairs."""

    def loss(self, x, batch):
        return super().loss(x, batch[0])

    def gradient(self, x, batch):
        return super().gradient(x, batch[0])


class LeastSquares(Quadratic):
    """f(x) = ‖X x - y‖² / 2n, of pairs."""

    def loss(self, x, batch):
        X, y = batch
        residual = X @ x - y
        return 0.5 * residual @ residual / len(y)

    def gradient(self, x, batch):
        X, y = batch
        return X.T @ (X @ x - y) / len(y)


class Corners:
    """The simplex by its oracle alone: zero is not in it, and it has no points to offer."""

    shape = (3,)
    diameter = 2.0**0.5

    def lmo(self, direction):
        return np.eye(3)[np.argmin(direction)]


class Box:
    """The least that a set must have: entries in [-1, 1]."""

    def __init__(self, shape):
        self.shape = shape
        self.diameter = 2.0 * np.sqrt(np.prod(shape))

    def lmo(self, direction):
        return np.where(direction > 0, -1.0, 1.0)


def same(one, other):
    """The same bits, zeros of either sign included."""
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())


def refuses_to_be_written(array):
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.flags.writeable = True
    return not array.flags.writeable


def snapshot(learner, path):
    """Everything that a learner shows, and its file."""
    learner.save(path)
    return learner.t, learner.play().tobytes(), learner.average.tobytes(), path.read_bytes()


def saved_goes_on(learner, batch, folder, **given):
    """Save a learner and return it as loaded, which plays a batch with the same bits."""
    learner.save(folder / "learner")
    twin = type(learner).load(folder / "learner", **given)
    assert twin.observe(batch) == learner.observe(batch)
    assert twin.play().tobytes() == learner.play().tobytes()
    return twin


def read(path):
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("header").tobytes()), arrays


def write(path, header, arrays):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    np.savez(path, header=np.frombuffer(text, np.uint8), **arrays)


def one_line(path, cls=fw.ORGFW, **arguments):
    """The message with which a file is refused."""
    with pytest.raises(ValueError, match="is not a saved") as caught:
        cls.load(path, **arguments)
    assert type(caught.value) is ValueError
    message = str(caught.value)
    assert message.startswith(f"{path} is not a saved {cls.__name__}: ")
    assert "\n" not in message
    return message


class Trap:
    """Unpickling this would leave a file behind."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)
