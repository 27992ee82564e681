"""Learners: whole runs in compiled code, single observations from Python, memory, results."""

import numpy as np

import fastfw as fw

from . import work

ROUNDS = 50


class Learner:
    """A learner some rounds into its run, on rows that it has not seen."""

    params = (["ORGFW", "OSFW"], list(work.SHAPES), list(work.DTYPES))
    param_names = ("method", "shape", "dtype")
    timeout = 300

    def setup(self, method, shape, dtype):
        problem, ball = work.problem_and_ball(shape)
        self.learner = getattr(fw, method)(
            problem, ball, step=fw.power_schedule(1.0, 1.0), momentum=fw.power_schedule(1.0, 2 / 3)
        )
        self.stream = work.stream(shape, dtype, ROUNDS, seed=1)
        self.batches = list(self.stream)
        self.learner.run(work.stream(shape, dtype, 20))
        self.learner.observe(self.batches[0])


class Run(Learner):
    def time_run_50_rounds(self, method, shape, dtype):
        self.learner.run(self.stream)

    def peakmem_run(self, method, shape, dtype):
        self.learner.run(self.stream)


class Observe(Learner):
    def time_observe_50_batches(self, method, shape, dtype):
        for batch in self.batches:
            self.learner.observe(batch)

    def time_play(self, method, shape, dtype):
        self.learner.play()


class Results(Learner):
    """Figures that no speed-up may move."""

    params = (["ORGFW", "OSFW"], ["mnist"], list(work.DTYPES))

    def track_mean_loss(self, method, shape, dtype):
        return float(np.mean(self.learner.run(self.stream).losses))

    track_mean_loss.unit = "nats"

    def track_nonzeros(self, method, shape, dtype):
        return int(np.count_nonzero(self.learner.run(self.stream).decision))

    track_nonzeros.unit = "entries"


class Specialisations:
    """Kernels compiled for one dtype, run and observe together: more means compiling twice."""

    params = (["ORGFW", "OSFW"],)
    param_names = ("method",)
    timeout = 300

    def track_compiled_signatures(self, method):
        from fastfw.kernels import _jit

        problem, ball = work.problem_and_ball("small-batch")
        learner = getattr(fw, method)(problem, ball)
        batches = work.stream("small-batch", "float64", 3)
        learner.run(batches)
        for batch in batches:
            learner.observe(batch)
        return sum(len(kernel.signatures) for kernel in _jit.dispatchers.values())

    track_compiled_signatures.unit = "signatures"
