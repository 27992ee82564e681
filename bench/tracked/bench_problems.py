"""Losses with gradients by kind of features, oracles of sets, base learners, traces.

Every class has a figure beside its times that no speed-up may move: how far the result is from
plain NumPy or SciPy.
"""

import numpy as np
from scipy import sparse

import fastfw as fw
from fastfw.streams import Dataset

from . import work

KINDS = ("float64", "float32", "uint8", "csr float64", "csr float32", "network")


def dense():
    """The features of every kind as float64, and labels."""
    _, d, n_classes, _, _ = work.SHAPES["mnist"]
    pixels = work.pixels(2_000, d)
    return pixels / 255.0, np.arange(2_000) % n_classes


def dataset(kind):
    """The same values as floats, as bytes or as a CSR matrix."""
    X, y = dense()
    if kind == "uint8":
        return Dataset(work.pixels(*X.shape), y, scale=1 / 255)
    dtype = "float32" if "float32" in kind else "float64"
    if kind.startswith("csr"):
        return Dataset(sparse.csr_array(X.astype(dtype)), y)
    return Dataset(X.astype(dtype), y)


class Gradients:
    """Loss and gradient of 2,000 samples at a dense point."""

    params = (list(KINDS),)
    param_names = ("features",)
    timeout = 300

    def setup(self, kind):
        self.data = dataset(kind)
        d, n_classes = self.data.n_features, 10
        if kind == "network":
            self.problem = fw.OneHiddenLayer(d, 10, n_classes)
        else:
            self.problem = fw.SoftmaxRegression(d, n_classes)
        self.x = 0.1 * np.random.default_rng(0).standard_normal(self.problem.shape)
        self.problem.loss_and_gradient(self.x, self.data)
        self.problem.loss(self.x, self.data)

    def time_loss_and_gradient(self, kind):
        self.problem.loss_and_gradient(self.x, self.data)

    def time_loss(self, kind):
        self.problem.loss(self.x, self.data)

    def peakmem_loss_and_gradient(self, kind):
        self.problem.loss_and_gradient(self.x, self.data)

    def track_error_of_loss_and_gradient(self, kind):
        X, y = dense()
        _, gradient = self.problem.loss_and_gradient(self.x, self.data)
        if kind == "network":  # the loss's change along a direction, by central differences
            e = np.random.default_rng(1).standard_normal(self.x.shape)
            h = 1e-5
            up, down = (self.problem.loss(self.x + s * e, self.data) for s in (h, -h))
            return abs(float(np.sum(gradient * e)) - (up - down) / (2 * h))
        Z = X @ self.x.T
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        P[np.arange(len(y)), y] -= 1.0
        return float(np.abs(gradient - P.T @ X / len(y)).max())

    track_error_of_loss_and_gradient.unit = "largest entry"


class Rounds:
    """50 rounds by kind of features and number of threads, with the same pixels."""

    params = (
        ["ORGFW", "OSFW", "RegularizedOFW"],
        ["uint8 float64", "uint8 float32", "threads float64", "threads float32"],
    )
    param_names = ("method", "features")
    timeout = 300

    def setup(self, method, kind):
        if method == "RegularizedOFW" and "threads" in kind:
            raise NotImplementedError  # it has no threads
        d, n_classes, radius = 784, 10, 8.0
        pixels = work.pixels(12_000, d)
        y = np.arange(len(pixels)) % n_classes
        dtype = kind.split()[1]
        self.plain = Dataset((pixels / 255.0).astype(dtype), y)
        data = Dataset(pixels, y, scale=1 / 255) if "uint8" in kind else self.plain
        self.stream = fw.iid_stream(data, None, batch_size=600, rounds=50, seed=1)
        problem = fw.SoftmaxRegression(d, n_classes)
        own, options = work.METHODS[method]
        options = {**options, "dtype": dtype}

        def make(**others):
            return own(problem, fw.RowL1Ball(problem.shape, radius), **options, **others)

        self.single = make
        self.learner = make(threads=2) if "threads" in kind else make()
        self.learner.run(self.stream)

    def time_run_50_rounds(self, method, kind):
        self.learner.run(self.stream)

    def peakmem_run(self, method, kind):
        self.learner.run(self.stream)

    def track_difference_of_losses(self, method, kind):
        """From one thread on floats, in the first ten rounds of a new learner."""
        rounds = [fw.iid_stream(data, None, batch_size=600, rounds=10, seed=2)
                  for data in (self.stream.data, self.plain)]  # fmt: skip
        options = {"threads": 2} if "threads" in kind else {}
        ours = self.single(**options).run(rounds[0]).losses
        return float(np.abs(ours - self.single().run(rounds[1]).losses).max())

    track_difference_of_losses.unit = "nats"


def _flow():
    """Paths through a grid of 30 x 30 nodes, to the right and down."""
    side = 30
    edges = [(side * i + j, side * i + j + 1) for i in range(side) for j in range(side - 1)]
    edges += [(side * i + j, side * (i + 1) + j) for i in range(side - 1) for j in range(side)]
    return fw.FlowPolytope(edges, 0, side * side - 1)


SETS = {
    "RowL1Ball": lambda: fw.RowL1Ball((10, 784), 8.0),
    "L1Ball": lambda: fw.L1Ball(7840, 8.0),
    "FlowPolytope": _flow,
    "ProductSet": lambda: fw.OneHiddenLayer(784, 10, 10).l1_balls(10.0, 10.0),
}


class Oracles:
    """One call of a set's oracle, checks of the direction included."""

    params = (list(SETS),)
    param_names = ("set",)
    timeout = 300

    def setup(self, name):
        self.set = SETS[name]()
        rng = np.random.default_rng(0)
        self.direction = rng.standard_normal(self.set.shape)
        self.others = [
            np.asarray(self.set.lmo(rng.standard_normal(self.set.shape))) for _ in range(50)
        ]

    def time_lmo(self, name):
        self.set.lmo(self.direction)

    def track_shortfall_of_lmo(self, name):
        """By how much another vertex is better; at most 0 when the oracle is right."""
        best = np.sum(np.asarray(self.set.lmo(self.direction)) * self.direction)
        return float(best - min(np.sum(v * self.direction) for v in self.others))

    track_shortfall_of_lmo.unit = "inner product"


class BaseLearners:
    """Fifty rounds of a base learner on a row-l1 ball."""

    params = (["FTPL", "OGD", "RFTL"],)
    param_names = ("method",)
    timeout = 300

    def setup(self, name):
        self.ball = fw.RowL1Ball((10, 784), 8.0)
        rng = np.random.default_rng(0)
        self.gradients = rng.standard_normal((50, 10, 784))
        self.kind = getattr(fw, name)
        self.time_50_rounds(name)

    def play(self):
        learner = self.kind().on(self.ball, rounds=50)
        total = 0.0
        for g in self.gradients:
            total += float(np.sum(g * np.asarray(learner.play())))
            learner.observe(g)
        return total

    def time_50_rounds(self, name):
        self.play()

    def track_total_loss(self, name):
        return self.play()

    track_total_loss.unit = "inner product"


class Decoded:
    """Bytes decoded into floats at once."""

    params = (list(work.DTYPES),)
    param_names = ("dtype",)
    timeout = 300

    def setup(self, dtype):
        from fastfw._codes import codes

        self.pixels = work.pixels(2_000, 784)
        self.codes = codes(self.pixels, 1 / 255, -0.5)
        self.codes.decoded(np.dtype(dtype))

    def time_decoded(self, dtype):
        self.codes.decoded(np.dtype(dtype))

    def track_error_of_decoded(self, dtype):
        wanted = self.pixels / 255.0 - 0.5
        return float(np.abs(self.codes.decoded(np.dtype(dtype)) - wanted).max())

    track_error_of_decoded.unit = "largest entry"


class Traces:
    """The loss and the Frank-Wolfe gap of twenty decisions that were kept."""

    timeout = 300

    def setup(self):
        _, d, n_classes, _, radius = work.SHAPES["mnist"]
        self.problem = fw.SoftmaxRegression(d, n_classes)
        self.ball = fw.RowL1Ball((n_classes, d), radius)
        X, y = dense()
        self.batch = (X, y)
        self.x = np.asarray(
            self.ball.lmo(np.random.default_rng(0).standard_normal(self.ball.shape))
        )
        self.time_frank_wolfe_gap()

    def time_frank_wolfe_gap(self):
        fw.frank_wolfe_gap(self.problem, self.ball, self.x, self.batch)

    def track_error_of_frank_wolfe_gap(self):
        g = self.problem.gradient(self.x, self.batch)
        wanted = np.sum(g * self.x) + self.ball.radius * np.abs(g).max(axis=1).sum()
        return abs(fw.frank_wolfe_gap(self.problem, self.ball, self.x, self.batch) - float(wanted))

    track_error_of_frank_wolfe_gap.unit = "inner product"
