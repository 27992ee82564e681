"""Single kernels, on the rows of one batch in data larger than the caches."""

import numpy as np

from fastfw.kernels import l1, logistic, products, softmax, storm

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

    def time_backward(self, shape, dtype):
        products.backward(self.A, self.rows(), self.R, self.g, self.nothing)

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
