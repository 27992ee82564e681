"""Learners: runs in compiled code, single observations from Python, memory; and that results hold.

What is compared with the engine of single steps, round by round: its losses and its decision.
"""

import gc
import tracemalloc
from functools import partial

import numpy as np
from scipy import sparse

import fastfw as fw

from . import work

FEATURES = ["float64", "float32", "uint8 float64"]


class Rounds:
    """Rounds that go on, and grow in OFW and OAW: every repetition begins with a new learner."""

    number = 1
    repeat = (3, 10, 5.0)
    warmup_time = 0.0


class Learner(Rounds):
    """A learner some rounds into its run, on rows that it has not seen."""

    params = (list(work.METHODS), FEATURES)
    param_names = ("method", "features")
    shape = "mnist"
    threads = 1

    def make(self, method, **options):
        """Return a learner in round 1."""
        return work.learner(method, self.shape, self.dtype, threads=self.threads, **options)

    def setup(self, method, features):
        own = work.METHODS[method]
        self.dtype = features.split()[-1]
        self.stream = own.stream(self.shape, features, own.rounds, seed=1)
        self.batches = list(self.stream)
        self.learner = self.make(method)
        self.learner.run(own.stream(self.shape, features, own.before))
        self.learner.observe(self.batches[0])

    def error(self, method, features):
        """Difference from single steps, in the first rounds from zeros and from a dense point.

        Points with few nonzero entries are multiplied another way.
        """
        stream = work.METHODS[method].stream(self.shape, features, work.COMPARED)

        def play(start, engine):
            return self.make(method, engine=engine, start=start).run(stream)

        zeros = np.zeros(self.learner.set.shape)
        dense = np.random.default_rng(2).standard_normal(zeros.shape)
        dense *= 0.5 * self.learner.set.radius / np.abs(dense).sum(axis=1, keepdims=True)
        return max(work.from_steps(partial(play, start), self.dtype) for start in (zeros, dense))


class Run(Learner):
    """As many rounds as the method has in a turn."""

    def time_run(self, method, features):
        self.learner.run(self.stream)

    def track_error(self, method, features):
        return self.error(method, features)


class Threads(Run):
    """The same in two threads."""

    params = (list(work.THREADED), list(work.DTYPES))
    threads = 2


class OtherShapes(Learner):
    """Wide images, and batches so small that it counts what a round costs beside its work."""

    params = (["ORGFW"], ["cifar10", "small-batch"], list(work.DTYPES))
    param_names = ("method", "shape", "dtype")

    def setup(self, method, shape, dtype):
        self.shape = shape
        super().setup(method, dtype)

    def time_run(self, method, shape, dtype):
        self.learner.run(self.stream)

    def track_error(self, method, shape, dtype):
        return self.error(method, dtype)


class Observe(Learner):
    """Batches one by one from Python."""

    params = (list(work.METHODS), ["float64"])

    def time_observe_5_batches(self, method, features):
        for batch in self.batches[:5]:
            self.learner.observe(batch)

    def track_difference_from_run(self, method, features):
        """0: the same bits."""
        own = work.METHODS[method]
        stream = own.stream(self.shape, features, work.COMPARED)
        one, other = self.make(method), self.make(method)
        for batch in stream:
            one.observe(batch)
        return float(np.abs(one.play() - other.run(stream).decision).max())


class Sparse(Run):
    """CSR rows of 100,000 features, one in a hundred of which is not zero."""

    params = (["ORGFW", "OSFW"], [f"csr {dtype}" for dtype in work.DTYPES])
    shape = "wide"


class Single(Rounds):
    """One row a round, of all features or of 100: what a round costs must not grow with d."""

    params = (["dense 50", "dense 784", "csr 14", "csr 18", "csr 20"],)
    param_names = ("features, the power of two for sparse ones",)

    def setup(self, features):
        kind, size = features.split()
        rng, n = np.random.default_rng(0), 500
        self.y = rng.integers(2, size=n)
        if kind == "dense":
            self.X = rng.random((n, int(size)))
        else:
            rows, places = np.repeat(np.arange(n), 100), rng.integers(2 ** int(size), size=100 * n)
            parts = rng.random(100 * n), (rows, places)
            self.X = sparse.csr_array(sparse.coo_array(parts, shape=(n, 2 ** int(size))))
        self.learner, self.stream = self.play(self.X)

    def play(self, X, **options):
        """Return a learner after its first run, and the stream."""
        d = X.shape[1]
        ball = fw.RowL1Ball((2, d), radius=10.0)
        learner = fw.ORGFW(fw.SoftmaxRegression(d, 2), ball, **options)
        stream = fw.iid_stream(X, self.y, batch_size=1, rounds=200, seed=1)
        self.losses = learner.run(stream).losses
        return learner, stream

    def time_run_200_rounds(self, features):
        self.learner.run(self.stream)

    def track_error(self, features):
        """Difference from single steps, on those features alone that some row has."""
        self.play(self.X)
        own = self.losses
        used = self.X[:, np.unique(self.X.indices)] if sparse.issparse(self.X) else self.X
        self.play(used, engine="steps")
        return work.difference(own, self.losses, "float64")


class Network(Rounds):
    """The paper's network, d = 784, m = C = 10, batches of 16."""

    params = (list(work.NETWORK_METHODS), list(work.DTYPES))
    param_names = ("method", "dtype")
    shape = "small-batch"

    def make(self, method, dtype, engine="fused"):
        own = work.NETWORK_METHODS[method]
        return own.kind(
            *work.network_and_balls(self.shape), engine=engine, dtype=dtype, **own.options
        )

    def setup(self, method, dtype):
        own = work.NETWORK_METHODS[method]
        self.learner = self.make(method, dtype)
        self.learner.run(own.stream(self.shape, dtype, own.before))
        self.stream = own.stream(self.shape, dtype, own.rounds, seed=1)
        self.learner.observe(next(iter(self.stream)))

    def time_run(self, method, dtype):
        self.learner.run(self.stream)

    def track_error(self, method, dtype):
        stream = work.stream(self.shape, dtype, work.COMPARED)
        return work.from_steps(lambda engine: self.make(method, dtype, engine).run(stream), dtype)


class Offline:
    """Iterations over 12,000 samples, one in a hundred with all of them, others with 50."""

    params = (list(work.OFFLINE), ["softmax", "network"], list(work.DTYPES))
    param_names = ("method", "problem", "dtype")
    shape = "small-batch"
    iterations = 200

    def make(self, method, problem, dtype, engine="fused"):
        kind, step = work.OFFLINE[method]
        made = work.network_and_balls if problem == "network" else work.problem_and_ball
        return kind(*made(self.shape), step, 100, 50, engine=engine, dtype=dtype)

    def setup(self, method, problem, dtype):
        self.data = work.data(self.shape, dtype)
        self.learner = self.make(method, problem, dtype)
        self.learner.fit(self.data, iterations=3)

    def time_fit(self, method, problem, dtype):
        self.learner.fit(self.data, iterations=self.iterations)

    def track_error(self, method, problem, dtype):
        def play(engine):
            made = self.make(method, problem, dtype, engine)
            return made.fit(self.data, iterations=work.COMPARED)

        return work.from_steps(play, dtype)


class OwnFunction:
    """ORGFW on least squares that the user compiled, in an l1 ball and in a simplex."""

    params = (["L1Ball", "Simplex"],)
    param_names = ("set",)
    d = 200

    def setup(self, name):
        import numba

        @numba.njit
        def squares(x, X, y):
            residual = X @ x - y
            return 0.5 * residual @ residual / len(y), X.T @ residual / len(y)

        self.function = squares
        rng = np.random.default_rng(0)
        X = rng.standard_normal((4_000, self.d))
        y = X @ (rng.random(self.d) < 0.05)
        self.pairs = [(X[rows], y[rows]) for rows in rng.integers(4_000, size=(100, 32))]
        self.learner = self.make(name)
        self.learner.run(self.pairs[:2])

    def make(self, name, engine="fused"):
        problem = fw.problem_from_function(self.function, self.d)
        return fw.ORGFW(problem, getattr(fw, name)(self.d, 3.0), engine=engine)

    def time_run_100_rounds(self, name):
        self.learner.run(self.pairs)

    def track_error(self, name):
        pairs = self.pairs[: work.COMPARED]
        return work.from_steps(lambda engine: self.make(name, engine).run(pairs), "float64")


class Memory:
    """What a round or a run may take, where that is a promise.

    "MORGFW": K = 100 sums of directions, one (K, C, d) array and change, which a round works on in
    place. "OFW": 400 rounds whose rows never come twice are kept as row numbers, weights and
    logits, not as features. "ORGFW": bytes stay bytes.
    """

    params = (["MORGFW", "OFW", "ORGFW"],)
    param_names = ("method",)
    rounds = 400

    def setup_cache(self):
        """Compile in a process of its own, whose memory does not count."""
        for method in self.params[0]:
            self.setup(method)
            self.play(method)

    def setup(self, method):
        if method == "MORGFW":
            self.data = work.data("large", "float64")
            self.play(method)  # what Numba loads is no part of the share
            gc.collect()  # learner and engine refer to each other
        elif method == "OFW":
            self.data = work.data("mnist", "float64")
            rows = np.random.default_rng(0).permutation(len(self.data))
            size = len(rows) // self.rounds
            batches = rows[: self.rounds * size].reshape(self.rounds, size)
            self.stream = fw.IndexedStream(self.data, batches)
            work.learner("OFW", "mnist", "float64").run(work.stream("mnist", "float64", 2))
        else:
            self.stream = work.stream("mnist", "uint8 float64", 20)
            work.learner("ORGFW", "mnist", "float64").run(self.stream)

    def play(self, method):
        """Return the bytes in whose units memory is counted."""
        if method == "MORGFW":
            own = work.learner("MORGFW, whole batches", "large", "float64")
            size = work.SHAPES["large"].batch_size
            for first in (0, size):
                own.observe((self.data.X[first : first + size], self.data.y[first : first + size]))
            return 8 * own.inner_steps * np.prod(own.set.shape)
        if method == "OFW":
            work.learner("OFW", "mnist", "float64").run(self.stream)
            return 8 * self.stream.data.n_features * sum(len(batch) for batch in self.stream)
        work.learner("ORGFW", "mnist", "float64").run(self.stream)
        return 8 * np.prod(self.stream.data.shape)

    def peakmem_play(self, method):
        self.play(method)

    def track_share(self, method):
        """Peak of Python's and NumPy's memory, in units of the (K, C, d) array or the features."""
        tracemalloc.start()
        try:
            unit = self.play(method)
            return float(tracemalloc.get_traced_memory()[1] / unit)
        finally:
            tracemalloc.stop()

    track_share.unit = "shares"


class Specialisations:
    """Kernels compiled for one dtype, run and observe together: more means compiling twice."""

    params = (list(work.METHODS),)
    param_names = ("method",)

    def track_compiled_signatures(self, method):
        from fastfw.kernels import _jit

        learner = work.learner(method, "small-batch", "float64")
        batches = work.METHODS[method].stream("small-batch", "float64", 3)
        learner.run(batches)
        for batch in batches:
            learner.observe(batch)
        return sum(len(kernel.signatures) for kernel in _jit.dispatchers.values())

    track_compiled_signatures.unit = "signatures"
