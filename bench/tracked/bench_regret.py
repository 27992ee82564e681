"""The comparator and its certificate."""

import numpy as np

import fastfw as fw
from fastfw.streams import Dataset


class BestFixedDecision:
    """Data of the size of the 8 x 8 digits, which a linear model cannot separate."""

    timeout = 300

    def setup(self):
        n, d, n_classes = 1800, 64, 10
        rng = np.random.default_rng(0)
        X = rng.random((n, d))
        scores = X @ rng.standard_normal((d, n_classes)) + rng.gumbel(size=(n, n_classes))
        self.data = Dataset(X, scores.argmax(axis=1))
        self.problem = fw.SoftmaxRegression(d, n_classes)
        self.ball = fw.RowL1Ball((n_classes, d), 8.0)
        self.solve(tol=0.1)

    def solve(self, tol):
        return fw.best_fixed_decision(self.problem, self.ball, self.data.X, self.data.y, tol=tol)

    def time_tol_1e_6(self):
        self.solve(tol=1e-6)

    def track_iterations(self):
        return self.solve(tol=1e-6).iterations

    track_iterations.unit = "iterations"
