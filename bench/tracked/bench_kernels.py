"""Single kernels; products work on rows of data larger than the caches."""

import numpy as np

from fastfw.kernels import ftpl, history, l1, logistic, meta, products, softmax, storm

from . import work


class Kernels:
    """Arrays of one round of ORGFW; every kernel is called once, so that it is compiled."""

    params = (["mnist", "cifar10"], list(work.DTYPES))
    param_names = ("shape", "dtype")
    timeout = 300

    def setup(self, shape, dtype):
        data = work.data(shape, dtype)
        n, d, n_classes, batch_size, self.radius = work.SHAPES[shape]
        rng = np.random.default_rng(1)
        self.A, self.y = data.X, data.y
        # One batch after the other, as in a run: no batch is still in the caches.
        self.batches = rng.permutation(n)[: n // batch_size * batch_size].reshape(-1, batch_size)
        self.turn = 0
        self.nothing = self.batches[0][:0]
        self.u = (rng.standard_normal((n_classes, d)) / d).astype(dtype)
        self.d = rng.standard_normal((n_classes, d)).astype(dtype)
        self.g = np.zeros_like(self.u)
        width = products.padded(batch_size)
        self.Z = np.zeros((n_classes, width), dtype)
        self.P = np.zeros_like(self.Z)
        self.R = rng.standard_normal((n_classes, width)).astype(dtype)
        self.m, self.total = np.zeros(width, dtype), np.zeros(width, dtype)
        self.index, self.value = np.zeros(n_classes, np.intp), np.zeros(n_classes)
        self.moved = np.full(n_classes, 0.01)
        for name in dir(self):
            if name.startswith("time_"):
                getattr(self, name)(shape, dtype)

    def rows(self):
        """Row numbers of the next batch."""
        self.turn = (self.turn + 1) % len(self.batches)
        return self.batches[self.turn]

    def time_forward(self, shape, dtype):
        products.forward(self.A, self.rows(), self.u, self.Z, self.nothing)

    def track_error_of_products(self, shape, dtype):
        """The largest difference of both products from NumPy's."""
        rows = self.rows()
        products.forward(self.A, rows, self.u, self.Z, self.nothing)
        self.R[:, len(rows) :] = 0.0
        self.g[:] = 0.0
        products.backward(self.A, rows, self.R, self.g, self.nothing, True)
        B = np.asarray(self.A)[rows].astype(np.float64)
        Z, G = self.u @ B.T, self.R[:, : len(rows)] @ B
        errors = (
            np.abs(self.Z[:, : len(rows)] - Z).max(),
            np.abs(self.g - G).max() / np.abs(G).max(),
        )
        return float(max(errors))

    track_error_of_products.unit = "largest entry"

    def track_error_of_lmo(self, shape, dtype):
        """Rows whose largest entry is not found."""
        l1.lmo(self.d, self.radius, self.index, self.value)
        return int(np.count_nonzero(self.index != np.abs(self.d).argmax(axis=1)))

    track_error_of_lmo.unit = "rows"

    def time_backward(self, shape, dtype):
        products.backward(self.A, self.rows(), self.R, self.g, self.nothing, True)

    def time_softmax(self, shape, dtype):
        softmax.softmax(self.Z, self.P, self.m, self.total)

    def time_recursive_gradient(self, shape, dtype):
        logistic.recursive_gradient(
            *(self.A, self.y, self.rows(), self.u, 1.0, logistic.ONE_VERTEX_BACK, self.d),
            *(self.index, self.moved, 1.01, 1.0, 0.9, self.g, self.nothing),
        )

    def time_estimate_and_vertex(self, shape, dtype):
        storm.estimate(self.d, self.g, 0.9, 0.1, self.radius, self.index, self.value)

    def time_lmo(self, shape, dtype):
        l1.lmo(self.d, self.radius, self.index, self.value)


class Perturbed:
    """Noise and answers of follow the perturbed leader, for twenty base learners.

    At first all sums are zero and every entry could win; grown sums decide most rows, and most
    draws are left out.
    """

    params = (["uniform", "gaussian", "exponential", "gumbel"],)
    param_names = ("noise",)
    timeout = 300

    def setup(self, noise):
        _, d, n_classes, _, self.radius = work.SHAPES["mnist"]
        self.kind = self.params[0].index(noise)
        self.noise = np.empty(n_classes * d)
        rng = np.random.default_rng(1)
        shape = (20, n_classes, d)
        self.none = np.zeros(shape)
        self.grown = rng.standard_normal(shape)
        self.grown *= rng.random(shape) < 0.2
        self.index = np.zeros(shape[:2], np.intp)
        self.value = np.zeros(shape[:2])
        self.t = 0
        for name in dir(self):
            if name.startswith("time_"):
                getattr(self, name)(noise)

    def answers(self, sums):
        """Answers of the next round."""
        self.t += 1
        meta.answers(
            *(sums, sums.shape[2], 10.0, self.kind, np.uint64(1), self.t),
            *(self.radius, True, self.index, self.value),
        )

    def time_draw(self, noise):
        ftpl.draw(self.kind, np.uint64(1), 1, 1, self.noise)

    def track_mean_of_draw(self, noise):
        ftpl.draw(self.kind, np.uint64(1), 1, 1, self.noise)
        return float(self.noise.mean())

    track_mean_of_draw.unit = "mean"

    def time_answers_at_first(self, noise):
        self.answers(self.none)

    def time_answers_of_grown_sums(self, noise):
        self.answers(self.grown)


class History:
    """What OFW and OAW do with six batches of the past."""

    params = (["mnist", "cifar10"], list(work.DTYPES))
    param_names = ("shape", "dtype")
    timeout = 300

    def setup(self, shape, dtype):
        data = work.data(shape, dtype)
        n, d, n_classes, self.batch_size, self.radius = work.SHAPES[shape]
        rng = np.random.default_rng(1)
        self.A, self.y = data.X, data.y
        self.count = 6 * self.batch_size
        self.rows = np.sort(rng.permutation(n)[: self.count])
        self.batch = rng.integers(n, size=self.batch_size)
        self.weights = np.full(self.count, 1.0 / self.batch_size)
        self.u = (rng.standard_normal((n_classes, d)) / d).astype(dtype)
        self.kept = np.zeros((self.count, n_classes), dtype)
        self.new = np.zeros((self.batch_size, n_classes), dtype)
        self.scratch, self.G = np.zeros_like(self.u), np.zeros(self.u.shape)
        self.index = rng.integers(d, size=n_classes)
        self.shift = np.full(n_classes, 0.01)
        self.vertices = rng.integers(-d, d, size=(50, n_classes))
        self.slopes = np.empty(50)
        for name in dir(self):
            if name.startswith("time_"):
                getattr(self, name)(shape, dtype)

    def past(self, again):
        """Gradient of the past, from logits that are moved or computed anew."""
        history.add_past_gradient(
            *(self.A, self.y, self.rows, self.weights, self.kept, 0.99, self.index, self.shift),
            *(again, self.u, 1.0, self.scratch, self.G),
        )

    def time_past_gradient(self, shape, dtype):
        self.past(False)

    def track_error_of_past_gradient(self, shape, dtype):
        """From logits that are computed anew: the largest difference from NumPy's gradient."""
        self.G[:] = 0.0
        self.past(True)
        X = np.asarray(self.A)[self.rows].astype(np.float64)
        Z = X @ self.u.T
        P = np.exp(Z - Z.max(axis=1, keepdims=True))
        P /= P.sum(axis=1, keepdims=True)
        P[np.arange(self.count), self.y[self.rows]] -= 1.0
        return float(np.abs(self.G - (P * self.weights[:, None]).T @ X).max())

    track_error_of_past_gradient.unit = "largest entry"

    def time_past_gradient_with_forward_product(self, shape, dtype):
        self.past(True)

    def time_newest_gradient(self, shape, dtype):
        history.newest_gradient(
            *(self.A, self.y, self.batch, self.u, 1.0, 1.0 / self.batch_size, self.new),
            *(self.scratch, self.G),
        )

    def time_slopes_of_50_vertices(self, shape, dtype):
        history.slopes(self.G, self.vertices, self.radius, self.slopes)
