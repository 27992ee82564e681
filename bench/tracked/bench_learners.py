"""Learners: runs in compiled code, single observations from Python, memory, results."""

import numpy as np

import fastfw as fw

from . import work

ROUNDS = 50


class Learner:
    """A learner some rounds into its run, on rows that it has not seen."""

    params = (["ORGFW", "OSFW"], list(work.SHAPES), list(work.DTYPES))
    param_names = ("method", "shape", "dtype")
    timeout = 300
    rounds = ROUNDS

    def setup(self, method, shape, dtype):
        self.learner = work.learner(method, shape)
        self.stream = work.stream(shape, dtype, self.rounds, seed=1)
        self.batches = list(self.stream)
        self.learner.run(work.stream(shape, dtype, 20))
        self.learner.observe(self.batches[0])


class Run(Learner):
    def time_run_50_rounds(self, method, shape, dtype):
        self.learner.run(self.stream)


class Memory(Learner):
    params = (["ORGFW"], ["mnist"], list(work.DTYPES))

    def peakmem_run(self, method, shape, dtype):
        self.learner.run(self.stream)


class Observe(Learner):
    def time_observe_50_batches(self, method, shape, dtype):
        for batch in self.batches:
            self.learner.observe(batch)


class Sparse:
    """Rounds of ORGFW and OSFW on CSR features, 100,000 of which one in a hundred is not zero."""

    params = (["ORGFW", "OSFW"], list(work.DTYPES))
    param_names = ("method", "dtype")
    timeout = 300

    def setup(self, method, dtype):
        _, d, n_classes, batch_size, radius, _ = work.SPARSE
        kind, options = work.METHODS[method]
        problem = fw.SoftmaxRegression(d, n_classes)
        self.learner = kind(problem, fw.RowL1Ball(problem.shape, radius), **options)
        data = work.sparse_data(dtype)
        self.stream = fw.iid_stream(data, batch_size=batch_size, rounds=20, seed=1)
        self.learner.run(self.stream)

    def time_run_20_rounds(self, method, dtype):
        self.learner.run(self.stream)


class Others(Learner):
    """The methods whose rounds are longer, from round 22 on.

    Those of OFW and OAW grow, so that every repetition begins with a new learner.
    """

    params = (
        [method for method in work.METHODS if method not in Learner.params[0]],
        ["mnist"],
        ["float64"],
    )
    rounds = 5
    number = 1
    repeat = (3, 10, 5.0)
    warmup_time = 0.0

    def time_run_5_rounds(self, method, shape, dtype):
        self.learner.run(self.stream)

    def time_observe_5_batches(self, method, shape, dtype):
        for batch in self.batches:
            self.learner.observe(batch)

    def peakmem_run(self, method, shape, dtype):
        self.learner.run(self.stream)


class Results(Learner):
    """Figures that no speed-up may move."""

    params = (list(work.METHODS), ["mnist"], ["float64"])
    rounds = 10

    def track_mean_loss(self, method, shape, dtype):
        return float(np.mean(self.learner.run(self.stream).losses))

    track_mean_loss.unit = "nats"

    def track_nonzeros(self, method, shape, dtype):
        return int(np.count_nonzero(self.learner.run(self.stream).decision))

    track_nonzeros.unit = "entries"


class Specialisations:
    """Kernels compiled for one dtype, run and observe together: more means compiling twice."""

    params = (list(work.METHODS),)
    param_names = ("method",)
    timeout = 300

    def track_compiled_signatures(self, method):
        from fastfw.kernels import _jit

        learner = work.learner(method, "small-batch")
        batches = work.stream("small-batch", "float64", 3)
        learner.run(batches)
        for batch in batches:
            learner.observe(batch)
        return sum(len(kernel.signatures) for kernel in _jit.dispatchers.values())

    track_compiled_signatures.unit = "signatures"
