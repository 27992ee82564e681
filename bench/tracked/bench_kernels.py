"""Single kernels, each with its difference from plain NumPy.

Rounds in compiled code (`rounds`, `parts`, `sub_batches`) are those of bench_learners.py, `paths`
is in bench_problems.py.
"""

import numpy as np

from fastfw._codes import codes
from fastfw._csr import csr_parts
from fastfw._layout import padded, remainder_of
from fastfw.kernels import (
    bounds,
    counter,
    csr,
    ftpl,
    gradients,
    history,
    l1,
    meta,
    models,
    points,
    products,
    sets,
    softmax,
    sparse,
    whole_batch,
)
from fastfw.kernels.rounds import blend  # asv would take a module `rounds` for a number

from . import work
from .work import reference, reference_network

SOFTMAX, NETWORK = None, models.SIGMOID
NO_TAIL = np.empty(0)


class Batches:
    """Features, and batches one after the other, as in a run: none is still in the caches."""

    timeout = 600
    params = (list(work.DTYPES),)
    param_names = ("dtype",)
    shape = "mnist"

    def prepare(self, features, shape=None):
        self.sizes = work.SHAPES[shape or self.shape]
        self.data = work.data(shape or self.shape, features)
        self.dtype = self.data.dtype.name
        self.y = self.data.y
        codes = self.data.codes
        self.A = self.data.X if codes is None else codes.coded(self.data.dtype)
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
        return np.asarray(self.data.X[rows], np.float64), self.y[rows]

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
        sparse.support(self.u, self.sizes.d, self.places, self.counts)
        sparse.sparse_forward(self.A, self.rows(), self.u, self.places, self.counts, self.Z)

    def time_batch_loss(self, dtype):
        points.batch_loss(self.A, self.y, self.rows(), self.u)

    def track_error(self, dtype):
        self.time_sparse_forward(dtype)
        rows = self.batches[self.turn]
        B, y = self.gathered(rows)
        return max(
            work.difference(self.Z[:, : len(rows)], self.u @ B.T, dtype),
            work.difference(
                points.batch_loss(self.A, self.y, rows, self.u),
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

    timeout = 600
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
        self.set = work.kernel_rows(n_classes, self.sizes.radius)
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


class Csr(Batches):
    """Sparse rows: loss and gradient at a dense point, and the oracle over 100,000 features."""

    shape = "wide"

    def setup(self, dtype):
        self.prepare(f"csr {dtype}")
        self.A = csr.CSR(*csr_parts(self.data.X))
        self.x = np.ascontiguousarray(self.parameters()[:, : self.sizes.d].T)
        self.g = np.zeros_like(self.x)
        n_classes = self.sizes.n_classes
        self.index, self.value = np.zeros((n_classes, 1), np.intp), np.zeros((n_classes, 1))
        self.radii = np.full(n_classes, self.sizes.radius)
        self.edges = bounds.levels(self.sizes.d)
        self.tree = np.zeros((self.edges[-1], n_classes), dtype)
        bounds.forget(self.tree)
        work.warm(self, dtype)

    def loss_and_gradient(self, rows):
        return csr.loss_and_gradient(
            self.A, SOFTMAX, self.y, rows, self.x, NO_TAIL, self.g, NO_TAIL
        )

    def time_bounds(self, dtype):
        A, index = self.A, self.index[:, 0]
        bounds.raise_bounds(A.indices, A.indptr, self.rows(), self.x, self.edges, self.tree)
        bounds.first_largest(self.x, self.edges, self.tree, index)

    def time_loss_and_gradient(self, dtype):
        self.loss_and_gradient(self.rows())

    def time_lmo(self, dtype):
        x = self.x
        csr.l1_vertex(x, 1.0, 0.0, x, 1.0, x, self.radii, self.index, self.value)

    def track_error(self, dtype):
        rows = self.rows()
        x, B = self.x.T.astype(np.float64), self.data.X[rows].astype(np.float64)
        self.g[:] = 0.0
        loss = self.loss_and_gradient(rows)
        wanted = reference.loss_and_gradient(x, B, self.y[rows], "sum")
        largest = reference.lmo_parts(x, 1.0)[0]
        self.time_bounds(dtype)
        by_bounds = work.difference(self.index[:, 0], largest, dtype)
        self.time_lmo(dtype)
        return max(
            by_bounds,
            work.difference(loss, wanted[0], dtype),
            work.difference(self.g.T, wanted[1], dtype),
            work.difference(self.index[:, 0], largest, dtype),
        )


class History(Batches):
    """What OFW and OAW do with six batches of the past."""

    def setup(self, dtype):
        self.prepare(dtype)
        n_classes, d, size = self.sizes.n_classes, self.sizes.d, self.sizes.batch_size
        self.count = 6 * size
        self.past = work.row_numbers(np.sort(self.rng.permutation(len(self.data))[: self.count]))
        self.weights = np.full(self.count, 1.0 / size)
        self.u = self.parameters(0.1)
        self.kept = np.zeros((self.count, n_classes), dtype)
        self.new = np.zeros((size, n_classes), dtype)
        self.scratch, self.G = np.zeros_like(self.u), np.zeros((n_classes, d))
        self.tail, self.used = np.empty(0), np.arange(n_classes)
        self.index = self.rng.integers(d, size=n_classes)
        self.shift = np.full(n_classes, 0.01)
        self.vertices = self.rng.integers(-d, d, size=(50, n_classes))
        self.slopes = np.empty(50)
        work.warm(self, dtype)

    def add(self, again):
        """Gradient of the past, from logits that are computed anew or moved."""
        history.add_gradient(
            *(self.A, None, self.y, self.past, self.weights, False, self.kept, 0.99, self.index),
            *(self.shift, again, self.u, 1.0, self.tail, self.scratch, self.G, self.tail),
            self.used,
        )

    def time_past_gradient(self, dtype):
        self.add(False)

    def time_past_gradient_with_forward_product(self, dtype):
        self.add(True)

    def time_newest_gradient(self, dtype):
        history.clear(self.G, self.used)
        history.add_gradient(
            *(self.A, None, self.y, self.rows(), self.weights, True, self.new, 1.0, self.index),
            *(self.shift, True, self.u, 1.0, self.tail, self.scratch, self.G, self.tail),
            self.used,
        )

    def time_slopes_of_50_vertices(self, dtype):
        history.slopes(self.G, self.vertices, self.sizes.radius, self.slopes)

    def track_error(self, dtype):
        x = self.u[:, : self.sizes.d].astype(np.float64)
        A, y = self.gathered(self.past)
        self.G[:] = 0.0
        self.add(True)
        wanted = self.count / self.sizes.batch_size * reference.gradient(x, A, y)
        errors = [work.difference(self.G, wanted, dtype)]
        self.G[:] = 0.0
        self.add(False)  # as after a step towards the vertex: the newest decision
        x *= 0.99
        x[np.arange(len(x)), self.index] += self.shift
        wanted = self.count / self.sizes.batch_size * reference.gradient(x, A, y)
        errors.append(work.difference(self.G, wanted, dtype))
        self.time_slopes_of_50_vertices(dtype)
        vertices = np.zeros((len(self.slopes), *self.G.shape))
        for vertex, own in zip(vertices, self.vertices, strict=True):
            for c, code in enumerate(own):
                vertex[c, code if code >= 0 else -1 - code] = 1.0 if code >= 0 else -1.0
        slopes = self.sizes.radius * np.tensordot(vertices, self.G, 2)
        return max(*errors, work.difference(self.slopes, slopes, dtype))


class Network(Batches):
    """The network with one hidden layer: gradient of a batch, gradient of six of the past."""

    def setup(self, dtype):
        self.prepare(dtype)
        d, n_classes, m = self.sizes.d, self.sizes.n_classes, work.HIDDEN
        self.u = padded(0.1 * self.rng.standard_normal((m, d)), dtype)
        self.tail = self.rng.standard_normal(m + n_classes * m + n_classes)
        self.G, self.gradient = np.zeros_like(self.u), np.zeros_like(self.tail)
        self.past = work.row_numbers(np.sort(np.concatenate(self.batches[:6])))
        self.weights = np.full(len(self.past), 1.0 / self.sizes.batch_size)
        self.kept = np.zeros((len(self.past), m), dtype)
        self.index, self.shift = self.rng.integers(d, size=m), np.full(m, 0.01)
        self.scratch, self.sums = np.zeros_like(self.u), np.zeros((m, d))
        self.sums_of_tail, self.used = np.zeros(len(self.tail)), np.arange(m)
        work.warm(self, dtype)

    def time_loss_and_gradient(self, dtype):
        gradients.loss_and_gradient(
            self.A, NETWORK, self.y, self.rows(), self.u, self.tail, self.G, self.gradient
        )

    def add(self, again):
        """Gradients of the past, from outputs that are computed anew or moved."""
        history.add_gradient(
            *(self.A, NETWORK, self.y, self.past, self.weights, False, self.kept, 0.99),
            *(self.index, self.shift, again, self.u, 1.0, self.tail, self.scratch, self.sums),
            *(self.sums_of_tail, self.used),
        )

    def time_past_gradient(self, dtype):
        self.add(False)

    def wanted(self, W1, rows):
        """Sum of gradients by the chain rule."""
        m, n_classes = work.HIDDEN, self.sizes.n_classes
        shape = reference_network.Shape(self.sizes.d, m, n_classes)
        x = np.concatenate([W1.ravel(), self.tail])
        A, y = self.gathered(rows)
        return reference_network.loss_and_gradient(x, A, y, "sum", shape=shape)[1]

    def track_error(self, dtype):
        d = self.sizes.d
        self.time_loss_and_gradient(dtype)
        W1 = self.u[:, :d].astype(np.float64)
        found = np.concatenate([self.G[:, :d].ravel(), self.gradient])
        errors = [work.difference(found, self.wanted(W1, self.batches[self.turn]), dtype)]
        self.add(True)
        self.sums[:], self.sums_of_tail[:] = 0.0, 0.0
        self.add(False)
        W1 *= 0.99
        W1[np.arange(len(W1)), self.index] += self.shift
        found = self.sizes.batch_size * np.concatenate([self.sums.ravel(), self.sums_of_tail])
        return max(*errors, work.difference(found, self.wanted(W1, self.past), dtype))


class WholeBatch(Batches):
    """Algorithm 2 with whole batches: pieces of a round of 20 inner steps."""

    steps = 20

    def setup(self, dtype):
        self.prepare(dtype)
        n_classes, d, n = self.sizes.n_classes, self.sizes.d, self.sizes.batch_size
        self.At = np.empty((d, n), dtype)
        self.time_gather_transposed(dtype)
        self.labels = np.ascontiguousarray(self.y[self.batches[self.turn]])
        self.eta = 1.0 / np.arange(2.0, self.steps + 2.0)
        self.index = self.rng.integers(d, size=(self.steps, n_classes))
        self.value = np.full((self.steps, n_classes), self.sizes.radius)
        self.Z = np.zeros((n_classes, n), dtype)
        self.R = np.zeros((self.steps, n_classes - 1, n), dtype)
        self.G = np.zeros((self.steps, n_classes - 1, d), dtype)
        self.S = np.zeros((self.steps, n_classes, d), dtype)
        work.warm(self, dtype)

    def time_gather_transposed(self, dtype):
        whole_batch.gather_transposed(self.A, self.rows(), self.At)

    def time_residuals(self, dtype):
        whole_batch.whole_batch_residuals(
            *(self.At, self.labels, 1.0, True, self.eta, self.eta, self.index, self.value),
            *(self.Z, 0, self.R),
        )

    def time_add_and_answer(self, dtype):
        whole_batch.add_and_answer(
            *(self.G, self.S, 0, 10.0, ftpl.UNIFORM, np.uint64(1), 1, self.sizes.radius, True),
            *(self.index.copy(), self.value.copy()),
        )

    def track_error(self, dtype):
        self.time_gather_transposed(dtype)
        A, _ = self.gathered(self.batches[self.turn])
        self.labels = y = np.ascontiguousarray(self.y[self.batches[self.turn]])
        self.Z[:] = 0.0
        self.time_residuals(dtype)
        x = np.zeros((self.sizes.n_classes, self.sizes.d))
        errors = [work.difference(self.At, A.T, dtype)]
        for k in range(self.steps):
            wanted = reference.gradient(x, A, y, "sum")[:-1]
            errors.append(work.difference(self.R[k].astype(np.float64) @ A, wanted, dtype))
            x *= 1.0 - self.eta[k]
            x[np.arange(len(x)), self.index[k]] += self.eta[k] * self.value[k]
        return max(errors)


class Leaders:
    """Answers of follow the perturbed leader, for twenty base learners.

    At first all sums are zero and every entry could win; grown sums decide most rows, and most
    draws are left out.
    """

    params = (["uniform", "gaussian", "exponential", "gumbel"], list(work.DTYPES))
    param_names = ("noise", "dtype")
    timeout = 600
    learners = 20

    def setup(self, noise, dtype):
        _, d, n_classes, _, self.radius, _ = work.SHAPES["mnist"]
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

    timeout = 600
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
        counter.draw_rows(np.uint64(1), 1, 0, 1000, self.rows)

    def time_mini_batches(self):
        counter.draw_batches(np.uint64(1), 1, 1000, self.whole, self.starts, self.rows)

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

    timeout = 600
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
