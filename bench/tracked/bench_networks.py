"""The paper's network, d = 784, m = C = 10, batches of 16: runs, memory, results."""

import numpy as np

import fastfw as fw

from . import work

SHAPE = "small-batch"


def _schedules(step, momentum=None):
    schedules = {"step": fw.power_schedule(*step)}
    if momentum is not None:
        schedules["momentum"] = fw.power_schedule(*momentum)
    return schedules


#: name: (class, its arguments, rounds a turn). The constants are the paper's for MNIST.
ONLINE = {
    "ORGFW": (fw.ORGFW, _schedules((2.0, 1.0), (0.25, 1 / 2)), 500),
    "OSFW": (fw.OSFW, _schedules((1.0, 1.0), (0.1, 1 / 2)), 500),
    "RegularizedOFW": (
        fw.RegularizedOFW,
        {"rounds": 1000, "eta": 1e3, **_schedules((0.1, 2 / 3))},
        500,
    ),
    "OFW": (fw.OFW, _schedules((1.0, 1.0)), 10),
    "OAW": (fw.OAW, _schedules((1.0, 1.0)), 10),
}
OFFLINE = {"SVRF": (fw.SVRF, 2.5e-3), "SpiderFW": (fw.SpiderFW, 2e-3)}
#: Rounds played before those measured: those of OFW and OAW grow with the past.
BEFORE = 200


def problem_and_balls():
    """Return the network and its l1 balls."""
    _, d, n_classes, _, _ = work.SHAPES[SHAPE]
    problem = fw.OneHiddenLayer(d, 10, n_classes)
    return problem, problem.l1_balls(10.0, 10.0)


def learner(method, engine="fused"):
    """Return an online learner in round 1."""
    kind, options, _ = ONLINE[method]
    return kind(*problem_and_balls(), engine=engine, seed=0, **options)


class Online:
    params = (list(ONLINE), list(work.DTYPES))
    param_names = ("method", "dtype")
    timeout = 300
    number = 1
    repeat = (3, 10, 5.0)
    warmup_time = 0.0

    def setup(self, method, dtype):
        self.learner = learner(method)
        self.learner.run(work.stream(SHAPE, dtype, BEFORE))
        self.stream = work.stream(SHAPE, dtype, ONLINE[method][2], seed=1)
        self.batches = list(self.stream)[:10]


class Run(Online):
    """500 rounds, 10 of OFW and OAW."""

    def time_run(self, method, dtype):
        self.learner.run(self.stream)

    def time_observe_10_batches(self, method, dtype):
        for batch in self.batches:
            self.learner.observe(batch)

    def peakmem_run(self, method, dtype):
        self.learner.run(self.stream)


class Results:
    """Figures that no speed-up may move."""

    params = Online.params
    param_names = Online.param_names
    timeout = 300

    def setup(self, method, dtype):
        self.stream = work.stream(SHAPE, dtype, 30)

    def track_mean_loss(self, method, dtype):
        return float(np.mean(learner(method).run(self.stream).losses))

    track_mean_loss.unit = "nats"

    def track_difference_from_oracle_calls(self, method, dtype):
        fused, steps = (learner(method, engine).run(self.stream) for engine in ("fused", "steps"))
        return float(np.abs(fused.decision - steps.decision).max())

    track_difference_from_oracle_calls.unit = "largest entry"


class Offline:
    """Two epochs of 100 iterations over 12,000 samples."""

    params = (list(OFFLINE), list(work.DTYPES))
    param_names = ("method", "dtype")
    timeout = 300

    def setup(self, method, dtype):
        kind, step = OFFLINE[method]
        self.data = work.data(SHAPE, dtype)
        self.method = kind(*problem_and_balls(), step, 100, 50, 0)
        self.method.fit(self.data, iterations=3)

    def time_fit_200_iterations(self, method, dtype):
        self.method.fit(self.data, iterations=200)

    def peakmem_fit(self, method, dtype):
        self.method.fit(self.data, iterations=200)

    def track_loss(self, method, dtype):
        decision = self.method.fit(self.data, iterations=200).decision
        return float(self.method.problem.loss(decision, self.data))

    track_loss.unit = "nats"
