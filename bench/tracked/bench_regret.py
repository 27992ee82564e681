"""The comparator and its certificate."""

import fastfw as fw

from . import work


class BestFixedDecision:
    params = (["mnist"], ["float64"])
    param_names = ("shape", "dtype")
    timeout = 600
    number = repeat = 1
    warmup_time = 0

    def setup(self, shape, dtype):
        self.problem, self.ball = work.problem_and_ball(shape)
        self.data = work.data(shape, dtype)
        self.solve(0.5)

    def solve(self, tol):
        return fw.best_fixed_decision(self.problem, self.ball, self.data.X, self.data.y, tol=tol)

    def time_tol_1e_3(self, shape, dtype):
        self.solve(1e-3)

    def track_iterations(self, shape, dtype):
        return self.solve(1e-3).iterations

    track_iterations.unit = "iterations"
