"""Single kernels that more than one learner stands on, each with its difference from plain NumPy.

The others are timed where a learner calls them, in bench_learners.py and bench_problems.py.
"""

import numpy as np

import fastfw as fw
from fastfw._codes import codes
from fastfw._layout import padded, remainder_of
from fastfw.kernels import (
    ftpl,
    gradients,
    l1,
    meta,
    products,
    rng,
    sets,
    softmax,
    sparse_iterate,
    sub_batches,
)
from fastfw.kernels.rounds import blend  # asv would take a module `rounds` for a number
from fastfw.sets._compiled import blocks_of, kernel_rows

from . import work
from .work import reference

SOFTMAX = None
NO_TAIL = np.empty(0)


class Batches:
    """Features, and batches one after the other, as in a run: none is still in the caches."""

    params = (list(work.DTYPES),)
    param_names = ("dtype",)
    shape = "mnist"

    def prepare(self, features, shape=None):
        self.sizes = work.SHAPES[shape or self.shape]
        self.data = work.data(shape or self.shape, features)
        self.dtype = self.data.dtype.name
        problem = fw.SoftmaxRegression(self.sizes.d, self.sizes.n_classes)
        given = problem.rows(self.data, self.dtype, coded=True)
        self.A, self.y = given.X, given.pair  # labels, and weights if there are any
        self.rng = np.random.default_rng(1)
        n, size = len(self.data), self.sizes.batch_size
        order = self.rng.permutation(n)[: n // size * size].reshape(-1, size)
        self.batches = [work.row_numbers(rows) for rows in order]
        self.nothing = self.batches[0][:0]
        self.turn = 0

    def rows(self):
        """Row numbers of the next batch."""
        self.turn = (self.turn + 1) % len(self.batches)
        return self.batches[self.turn]

    def gathered(self, rows):
        """Features as NumPy takes them, in float64, and labels."""
        return np.asarray(self.data.X[rows], np.float64), self.data.y[rows]

    def parameters(self, scale=1.0):
        """Numbers of the shape of the parameters, as kernels take them."""
        d = self.sizes.d
        return padded(scale * self.rng.standard_normal((self.sizes.n_classes, d)), self.data.dtype)


class Products(Batches):
    params = (["mnist", "cifar10"], list(work.DTYPES))
    param_names = ("shape", "dtype")

    def setup(self, shape, dtype):
        self.prepare(dtype, shape)
        n_classes, width = self.sizes.n_classes, products.padded(self.sizes.batch_size)
        self.u = self.parameters(1.0 / self.sizes.d)
        self.g = np.zeros_like(self.u)
        self.Z = np.zeros((n_classes, width), dtype)
        self.R = self.rng.standard_normal((n_classes, width)).astype(dtype)
        self.R[:, self.sizes.batch_size :] = 0.0
        work.warm(self, shape, dtype)

    def time_forward(self, shape, dtype):
        products.forward(self.A, self.rows(), self.u, self.Z, self.nothing)

    def time_backward(self, shape, dtype):
        products.backward(self.A, self.rows(), self.R, self.g, self.nothing, True)

    def track_error(self, shape, dtype):
        rows, d = self.rows(), self.sizes.d
        B, _ = self.gathered(rows)
        products.forward(self.A, rows, self.u, self.Z, self.nothing)
        self.g[:] = 0.0
        products.backward(self.A, rows, self.R, self.g, self.nothing, True)
        return max(
            work.difference(self.Z[:, : len(rows)], self.u[:, :d] @ B.T, dtype),
            work.difference(self.g[:, :d], self.R[:, : len(rows)] @ B, dtype),
        )


class FewNonzeros(Batches):
    """Points with 20 nonzero entries in a row, as iterates have in their first rounds."""

    def setup(self, dtype):
        self.prepare(dtype)
        n_classes, d = self.sizes.n_classes, self.sizes.d
        self.u = np.zeros((n_classes, d), dtype)
        for row in self.u:
            row[self.rng.permutation(d)[:20]] = self.rng.standard_normal(min(20, d))
        self.places = np.empty((n_classes, d + 1), np.uintp)
        self.counts = np.empty(n_classes, np.intp)
        self.Z = np.empty((n_classes, products.padded(self.sizes.batch_size)), dtype)
        work.warm(self, dtype)

    def time_sparse_forward(self, dtype):
        sparse_iterate.support(self.u, self.sizes.d, self.places, self.counts)
        sparse_iterate.sparse_forward(self.A, self.rows(), self.u, self.places, self.counts, self.Z)

    def time_batch_loss(self, dtype):
        sub_batches.batch_loss(self.A, self.data.y, self.rows(), self.u)

    def track_error(self, dtype):
        self.time_sparse_forward(dtype)
        rows = self.batches[self.turn]
        B, y = self.gathered(rows)
        return max(
            work.difference(self.Z[:, : len(rows)], self.u @ B.T, dtype),
            work.difference(
                sub_batches.batch_loss(self.A, self.data.y, rows, self.u),
                reference.loss(self.u.astype(np.float64), B, y, "sum"),
                dtype,
            ),
        )


class Logistic(Batches):
    """Loss and gradient of a batch, at a dense point, of floats and of bytes."""

    params = (["float64", "float32", "uint8 float64", "uint8 float32"],)
    param_names = ("features",)

    def setup(self, features):
        self.prepare(features)
        self.u = self.parameters(0.1)
        self.g = np.zeros_like(self.u)
        self.index = self.rng.integers(self.sizes.d, size=(self.sizes.n_classes, 1))
        self.moved = np.full((self.sizes.n_classes, 1), 0.01)
        self.losses = np.empty(self.sizes.batch_size)
        self.room = gradients.room_for(self.A, SOFTMAX, self.u, NO_TAIL, self.sizes.batch_size)
        work.warm(self, features)

    def time_recursive_gradient(self, features):
        """∇f(x) - 0.9 ∇f(x'), x' one vertex back."""
        gradients.recursive_gradient(
            *(self.A, SOFTMAX, self.y, self.rows(), self.u, 1.0, NO_TAIL),
            *(gradients.ONE_VERTEX_BACK, self.u, NO_TAIL, self.index, self.moved, 1.01, 1.0, 0.9),
            *(self.g, NO_TAIL, self.nothing, self.room),
        )

    def time_sample_losses(self, features):
        A, y, rows = self.A, self.y, self.rows()
        gradients.sample_losses(A, SOFTMAX, y, rows, self.u, 1.0, NO_TAIL, self.losses)

    def track_error(self, features):
        self.time_recursive_gradient(features)
        B, y = self.gathered(self.batches[self.turn])
        x = self.u[:, : self.sizes.d].astype(np.float64)
        before = x.copy()
        before[np.arange(len(x)), self.index[:, 0]] -= self.moved[:, 0]
        gradient = reference.gradient(x, B, y, "sum")
        gradient -= 0.9 * reference.gradient(1.01 * before, B, y, "sum")
        found = self.g[:, : self.sizes.d]
        self.time_sample_losses(features)
        B, y = self.gathered(self.batches[self.turn])
        return max(
            work.difference(found, gradient, self.dtype),
            work.difference(self.losses.sum(), reference.loss(x, B, y, "sum"), self.dtype),
        )


class Softmax:
    """Probabilities and residuals of 64 samples, a block."""

    params = (list(work.DTYPES),)
    param_names = ("dtype",)

    def setup(self, dtype):
        rng = np.random.default_rng(1)
        self.Z = rng.standard_normal((10, 64)).astype(dtype)
        self.P, self.R = np.empty_like(self.Z), np.empty_like(self.Z)
        self.m, self.total = np.empty(64, dtype), np.empty(64, dtype)
        self.y, self.rows = rng.integers(10, size=64), work.row_numbers(np.arange(64))
        self.y.flags.writeable = False
        work.warm(self, dtype)

    def time_softmax(self, dtype):
        softmax.softmax(self.Z, self.P, self.m, self.total)

    def time_softmax_and_residual(self, dtype):
        softmax.softmax(self.Z, self.P, self.m, self.total)
        softmax.residual(self.P, self.total, self.y, self.rows, 64, 1.0, self.R, False)

    def track_error(self, dtype):
        self.time_softmax_and_residual(dtype)
        wanted = reference.softmax(self.Z.T.astype(np.float64))
        wanted[self.rows, self.y] -= 1.0
        return work.difference(self.R, wanted.T, dtype)


class Vertices(Batches):
    """The row-l1 ball: oracle, estimate with oracle, step."""

    def setup(self, dtype):
        self.prepare(dtype)
        n_classes = self.sizes.n_classes
        self.d, self.g = self.parameters(), self.parameters()
        self.u = self.parameters(1.0 / self.sizes.d)
        self.low, self.previous = remainder_of(self.u), np.zeros_like(self.u)
        self.total = np.zeros(self.u.shape)
        self.index, self.value = np.zeros(n_classes, np.intp), np.zeros(n_classes)
        self.set = kernel_rows(
            blocks_of(fw.RowL1Ball((n_classes, 1), self.sizes.radius)), n_classes
        )
        self.found = np.zeros((n_classes, 1), np.intp), np.zeros((n_classes, 1))
        self.every = np.array([n_classes, *range(n_classes)]), np.ones(n_classes, np.bool_)
        work.warm(self, dtype)

    def time_lmo(self, dtype):
        l1.lmo(self.d, self.sizes.radius, self.index, self.value)

    def step(self):
        """One step from x = u / 2; returns the new scale, and the weight."""
        state = self.u, self.low, self.total, self.previous, 0.5, 0.0
        places = np.arange(len(self.u)) * self.u.shape[1] + self.index
        return l1.step(*state, places, self.value, 0.01, *self.every)

    def time_estimate(self, dtype):
        real = self.g.dtype.type
        for d, g in zip(self.d, self.g, strict=True):
            blend(d, g, real(0.9), real(0.1))
        sets.vertices(self.set, self.g, *self.found)

    def time_50_steps(self, dtype):
        for _ in range(50):
            self.step()

    def track_error(self, dtype):
        radius, d = self.sizes.radius, self.sizes.d
        l1.lmo(self.d, radius, self.index, self.value)
        wanted = reference.lmo_parts(self.d[:, :d], radius)
        errors = [
            work.difference(found, parts, dtype)
            for found, parts in zip((self.index, self.value), wanted, strict=True)
        ]
        mixed = (0.9 * self.d + 0.1 * self.g.astype(np.float64))[:, :d]
        self.time_estimate(dtype)
        errors.append(work.difference(self.g[:, :d], mixed, dtype))
        moved = 0.99 * 0.5 * self.u[:, :d].astype(np.float64)
        moved[np.arange(len(moved)), self.index] += 0.01 * self.value
        scale, _ = self.step()
        return max(*errors, work.difference(scale * self.u[:, :d], moved, dtype))


class Leaders:
    """Answers of follow the perturbed leader, for twenty base learners.

    At first all sums are zero and every entry could win; grown sums decide most rows, and most
    draws are left out.
    """

    params = (["uniform", "gaussian", "exponential", "gumbel"], list(work.DTYPES))
    param_names = ("noise", "dtype")
    learners = 20

    def setup(self, noise, dtype):
        _, d, n_classes, _, self.radius, *_ = work.SHAPES["mnist"]
        self.kind = self.params[0].index(noise)
        rng = np.random.default_rng(1)
        shape = (self.learners, n_classes, d)
        self.none = np.zeros(shape, dtype)
        self.grown = rng.standard_normal(shape).astype(dtype)
        self.grown *= rng.random(shape, dtype=np.float32) < 0.2
        self.index = np.zeros(shape[:2], np.intp)
        self.value = np.zeros(shape[:2])
        self.t = 0
        work.warm(self, noise, dtype)

    def answers(self, sums):
        """Answers of the next round."""
        self.t += 1
        meta.answers(
            *(sums, sums.shape[2], 10.0, self.kind, np.uint64(1), self.t),
            *(self.radius, True, self.index, self.value),
        )

    def time_answers_at_first(self, noise, dtype):
        self.answers(self.none)

    def time_answers_of_grown_sums(self, noise, dtype):
        self.answers(self.grown)

    def track_wrong_answers(self, noise, dtype):
        """Rows whose answer is another than that of all draws."""
        wrong, draws = 0, np.empty(self.none[0].size)
        for sums in (self.none, self.grown):
            self.answers(sums)
            for k, own in enumerate(sums.astype(np.float64)):
                ftpl.draw(self.kind, np.uint64(1), self.t, k + 1, draws)
                wanted, _ = reference.lmo_parts(10.0 * own + draws.reshape(own.shape), self.radius)
                wrong += int(np.count_nonzero(wanted != self.index[k]))
        return wrong

    track_wrong_answers.unit = "rows"


class Draws:
    """Numbers that are functions of where they are used: noise, sub-batches, mini-batches."""

    count = 10_000

    def setup(self):
        self.noise = np.empty(self.count)
        self.rows = np.empty(self.count, np.intp)
        self.whole = np.zeros(100, np.bool_)
        self.starts = np.arange(101) * (self.count // 100)
        work.warm(self)

    def time_uniform(self):
        ftpl.draw(ftpl.UNIFORM, np.uint64(1), 1, 1, self.noise)

    def time_gaussian(self):
        ftpl.draw(ftpl.GAUSSIAN, np.uint64(1), 1, 1, self.noise)

    def time_rows(self):
        rng.draw_rows(np.uint64(1), 1, 0, 1000, self.rows)

    def time_mini_batches(self):
        rng.draw_batches(np.uint64(1), 1, 1000, self.whole, self.starts, self.rows)

    def track_distance(self):
        """From the distributions of uniform and gaussian noise and of rows (Kolmogorov-Smirnov)."""
        from scipy import stats

        self.time_gaussian()
        gaussian = stats.kstest(self.noise, "norm").statistic
        self.time_uniform()
        uniform = stats.kstest(self.noise + 0.5, "uniform").statistic
        self.time_rows()
        rows = stats.kstest((self.rows + 0.5) / 1000, "uniform").statistic
        return float(max(gaussian, uniform, rows))

    track_distance.unit = "largest distance"


class Decoded:
    """Bytes decoded into floats at once."""

    params = (list(work.DTYPES),)
    param_names = ("dtype",)

    def setup(self, dtype):
        self.pixels, _ = work.pixels("mnist")
        self.codes = codes(self.pixels, 1 / 255, -0.5)
        work.warm(self, dtype)

    def time_decoded(self, dtype):
        self.codes.decoded(np.dtype(dtype))

    def track_error(self, dtype):
        found = self.codes.decoded(np.dtype(dtype))
        return work.difference(found, self.pixels / 255.0 - 0.5, dtype)
