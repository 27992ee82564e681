"""Problems, sets, base learners, the comparator, data sets, the classifier: what learners stand on.

Figures of correctness are differences from plain NumPy or SciPy, or what the exact answer must
meet.
"""

import tempfile
from pathlib import Path

import numpy as np

import fastfw as fw
from fastfw._formats import downloads
from fastfw.streams import Dataset

from . import work
from .work import reference, reference_network


class Gradients:
    """Loss and gradient of the whole data at a dense point."""

    params = (
        ["float64", "float32", "uint8 float64", "csr float64", "csr float32", "network float64"],
    )
    param_names = ("features",)
    shape = "cifar10"

    def setup(self, features):
        self.network = features.startswith("network")
        self.dtype = features.split()[-1]
        self.data = work.data(self.shape, self.dtype if self.network else features)
        made = work.network_and_balls if self.network else work.problem_and_ball
        self.problem, _ = made(self.shape)
        self.x = 0.1 * np.random.default_rng(0).standard_normal(self.problem.shape)
        work.warm(self, features)

    def time_loss_and_gradient(self, features):
        self.problem.loss_and_gradient(self.x, self.data)

    def time_loss(self, features):
        self.problem.loss(self.x, self.data)

    def track_error(self, features):
        pixels, y = work.pixels(self.shape)
        X = pixels / 255.0
        if self.network:
            shape = reference_network.Shape(X.shape[1], work.HIDDEN, self.problem.n_classes)
            wanted = reference_network.loss_and_gradient(self.x, X, y, shape=shape)
        else:
            wanted = reference.loss_and_gradient(self.x, X, y)
        found = self.problem.loss_and_gradient(self.x, self.data)
        return max(
            work.difference(self.problem.loss(self.x, self.data), wanted[0], self.dtype),
            *(work.difference(*pair, self.dtype) for pair in zip(found, wanted, strict=True)),
        )


SETS = {
    "RowL1Ball": lambda: work.problem_and_ball("mnist")[1],
    "ProductSet": lambda: work.network_and_balls("mnist")[1],
    "L1Ball": lambda: fw.L1Ball(8_000, 8.0),
    "Simplex": lambda: fw.Simplex(8_000),
    "KSparsePolytope": lambda: fw.KSparsePolytope(8_000, 20),
    "NuclearNormBall": lambda: fw.NuclearNormBall((60, 40), 8.0),
    "BirkhoffPolytope": lambda: fw.BirkhoffPolytope(60),
    "FlowPolytope": work.grid,
}


class Oracles:
    """One call of a set's oracle, checks of the direction included."""

    params = (list(SETS),)
    param_names = ("set",)

    def setup(self, name):
        self.set = SETS[name]()
        rng = np.random.default_rng(0)
        self.direction = rng.standard_normal(self.set.shape)
        self.set.lmo(self.direction)
        self.others = [
            np.asarray(self.set.lmo(rng.standard_normal(self.set.shape))) for _ in range(50)
        ]

    def time_lmo(self, name):
        self.set.lmo(self.direction)

    def track_better_vertices(self, name):
        """How many of fifty others and of fifty near the answer are better."""
        rng = np.random.default_rng(1)
        size = self.direction.std()
        near = (
            self.set.lmo(self.direction + 0.1 * size * rng.standard_normal(self.set.shape))
            for _ in range(50)
        )
        best = np.sum(np.asarray(self.set.lmo(self.direction)) * self.direction)
        values = [np.sum(np.asarray(v) * self.direction) for v in (*self.others, *near)]
        return int(np.count_nonzero(np.array(values) < best - 1e-9 * abs(best)))

    track_better_vertices.unit = "vertices"


class BaseLearners:
    """Fifty rounds of a base learner on a row-l1 ball, its answers beside the reference's."""

    params = (["FTPL", "OGD", "RFTL"],)
    param_names = ("method",)
    rounds = 50

    def setup(self, name):
        self.ball = work.problem_and_ball("mnist")[1]
        rng = np.random.default_rng(0)
        self.gradients = rng.standard_normal((self.rounds, *self.ball.shape))
        self.base = fw.FTPL() if name == "FTPL" else getattr(fw, name)(step=0.01)
        self.time_50_rounds(name)

    def time_50_rounds(self, name):
        learner = self.base.on(self.ball, rounds=self.rounds)
        for g in self.gradients:
            learner.play()
            learner.observe(g)

    def reference(self, name):
        shape, radius = self.ball.shape, self.ball.radius
        if name == "OGD":
            return reference.OGD(np.zeros(shape), radius, self.base.step)
        if name == "RFTL":
            return reference.RFTL(shape, radius, self.base.step)

        def noise(t):
            return self.base.perturbation(shape, t=t, k=1, seed=0)

        return reference.FTPL(shape, radius, self.base.scale, self.rounds, noise)

    def track_error(self, name):
        learner = self.base.on(self.ball, rounds=self.rounds)
        other = self.reference(name)
        errors = []
        for g in self.gradients[: work.COMPARED]:
            errors.append(work.difference(np.asarray(learner.play()), other.play()))
            learner.observe(g)
            other.observe(g)
        return max(errors)


class BestFixedDecision:
    """Data of the size of the 8 x 8 digits, which a linear model cannot separate.

    "least squares": a function of one's own, which has no Newton steps.
    """

    params = (["softmax", "least squares"],)
    param_names = ("problem",)
    n, d, n_classes = 1800, 64, 10

    def setup(self, name):
        rng = np.random.default_rng(0)
        X = rng.random((self.n, self.d))
        if name == "softmax":
            scores = X @ rng.standard_normal((self.d, self.n_classes))
            y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
            self.problem = fw.SoftmaxRegression(self.d, self.n_classes)
            self.set = fw.RowL1Ball(self.problem.shape, 8.0)
        else:
            y = X @ rng.standard_normal(self.d)
            self.problem = fw.problem_from_function(_squares, self.d)
            self.set = fw.L1Ball(self.d, 4.0)
        self.X, self.y = X, y
        self.solve(0.1)

    def solve(self, tol):
        return fw.best_fixed_decision(self.problem, self.set, self.X, self.y, tol=tol)

    def time_tol_1e_6(self, name):
        self.best = self.solve(1e-6)

    def track_gap(self, name):
        """The Frank-Wolfe gap of the answer, found by NumPy, over the tolerance; at most 1."""
        best = self.solve(1e-6)
        if name == "softmax":
            value, g = reference.loss_and_gradient(best.decision, self.X, self.y)
            gap = reference.frank_wolfe_gap(best.decision, g, self.set.radius)
        else:
            value, g = _squares(best.decision, self.X, self.y)
            gap = float(g @ best.decision) + self.set.radius * float(np.abs(g).max())
        return float(np.ceil(gap / (1.001e-6 * value)))

    track_gap.unit = "tolerances, rounded up"

    def track_iterations(self, name):
        return self.solve(1e-6).iterations

    track_iterations.unit = "iterations"


def _squares(x, X, y):
    residual = X @ x - y
    return 0.5 * float(residual @ residual) / len(y), X.T @ residual / len(y)


class Traces:
    """The Frank-Wolfe gap of a decision, and the regret of a run."""

    def setup(self):
        self.problem, self.ball = work.problem_and_ball("mnist")
        self.stream = work.stream("mnist", "float64", 20)
        self.batch = next(iter(self.stream))
        rng = np.random.default_rng(0)
        self.x = np.asarray(self.ball.lmo(rng.standard_normal(self.ball.shape)))
        self.result = work.learner("ORGFW", "mnist", "float64").run(self.stream)
        gap = fw.frank_wolfe_gap(self.problem, self.ball, self.x, self.batch)
        self.best = fw.BestDecision(self.x, 0.0, gap, 0.0, 1, self.problem, len(self.stream.data))
        work.warm(self)

    def time_frank_wolfe_gap(self):
        fw.frank_wolfe_gap(self.problem, self.ball, self.x, self.batch)

    def time_regret(self):
        fw.regret(self.result, self.best, self.stream)

    def track_error(self):
        g = reference.gradient(self.x, self.batch.X, self.batch.y)
        losses = [reference.loss(self.x, batch.X, batch.y) for batch in self.stream]
        return max(
            work.difference(self.best.gap, reference.frank_wolfe_gap(self.x, g, self.ball.radius)),
            work.difference(
                fw.regret(self.result, self.best, self.stream),
                np.cumsum(self.result.losses - losses),
            ),
        )


class DataSets:
    """Files of 5,000 images, ten of them for testing, read and decoded."""

    params = (["mnist", "cifar10"], [*work.DTYPES, "uint8"])
    param_names = ("files", "dtype")
    n = 5_000

    def setup(self, name, dtype):
        rng = np.random.default_rng(0)
        d = 784 if name == "mnist" else 3072
        # every image has a darkest and a brightest pixel
        self.pixels = rng.integers(256, size=(self.n, d), dtype=np.uint8)
        self.pixels[:, 0], self.pixels[:, 1] = 0, 255
        self.y = np.arange(self.n, dtype=np.uint8) % 10
        self.folder = tempfile.TemporaryDirectory()
        write = downloads._write_idx if name == "mnist" else downloads._write_cifar
        write(self.pixels, self.y, self.n - 10, Path(self.folder.name))

    def teardown(self, name, dtype):
        self.folder.cleanup()

    def load(self, name, dtype):
        return fw.datasets.load(name, root=self.folder.name, dtype=dtype)

    def time_load(self, name, dtype):
        self.load(name, dtype)

    def track_error(self, name, dtype):
        found = self.load(name, dtype)
        X, precision = found.X, dtype
        if dtype == "uint8":
            X, precision = Dataset(found.X, found.y, scale=1 / 255).X, "float64"
        pixels, y = self.pixels[:-10] / 255.0, self.y[:-10]
        return max(work.difference(X, pixels, precision), work.difference(found.y, y))


class Classifier:
    """The scikit-learn classifier on dense and sparse rows, where scikit-learn is installed."""

    params = (["float64", "csr float64"],)
    param_names = ("features",)

    def setup(self, features):
        try:
            from fastfw.sklearn import ProjectionFreeClassifier
        except ImportError:
            raise NotImplementedError("scikit-learn is not installed") from None
        self.data = work.data("mnist", features)
        self.kind = ProjectionFreeClassifier
        self.model = self.fitted()

    def fitted(self):
        model = self.kind(radius=8.0, max_iter=1, tol=0.0)
        return model.fit(self.data.X, self.data.y)

    def time_fit_one_epoch(self, features):
        self.fitted()

    def time_predict_proba(self, features):
        self.model.predict_proba(self.data.X)

    def track_error(self, features):
        """Of probabilities, and of the row norms that go beyond the radius."""
        Z = self.data.X @ self.model.coef_.T + self.model.intercept_
        found = self.model.predict_proba(self.data.X)
        scale = abs(self.data.X).max(axis=0)
        scale = np.asarray(scale.todense()).ravel() if hasattr(scale, "todense") else scale
        norms = np.abs(self.model.coef_) @ scale + np.abs(self.model.intercept_)
        return max(
            work.difference(found, reference.softmax(Z)),
            float(np.maximum(norms / 8.0 - 1.0, 0.0).max()),
        )
