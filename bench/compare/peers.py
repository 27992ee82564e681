"""Other ways to play a round of ORGFW, and libraries that do the same or nearly the same job.

Every side of a round has ``play_round(rows)``, which gathers the rows of these numbers itself,
plays Algorithm 1 on them and returns the loss and the decision that was played. All peers but NumPy
as the paper writes it know the best way to use large products: both gradients from one forward
product with the two points stacked, one backward product, no automatic differentiation.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

import fastfw as fw
import reference
from bench.compare import numpy_side
from bench.compare.data import Shape, labels_of
from bench.compare.pairs import ORGFW_MOMENTUM, ORGFW_STEP, Case
from fastfw.streams import Dataset

#: As MNIST and CIFAR-10, with rows enough to be larger than the caches, in each peer's own memory.
MNIST = Shape("mnist", "MNIST", n=20_000, d=784, n_classes=10, batch_size=600, radius=8.0)
CIFAR10 = Shape("cifar10", "CIFAR-10", n=6_000, d=3072, n_classes=10, batch_size=500, radius=32.0)


@lru_cache(maxsize=3)
def images(shape: Shape, dtype: str) -> Dataset:
    """Images whose pixels are bytes over 255; for uint8 the bytes themselves."""
    rng = np.random.default_rng(0)
    size = (shape.n, shape.d)
    pixels = rng.integers(256, size=size, dtype=np.uint8)
    pixels *= rng.random(size, dtype=np.float32) < shape.share
    y = labels_of(pixels, shape, rng)
    if dtype == "uint8":
        return Dataset(pixels, y, scale=1 / 255)
    X = pixels.astype(dtype)
    X /= 255
    return Dataset(X, y)


@dataclass(frozen=True)
class ImageCase(Case):
    """ORGFW on images; of bytes, in the arithmetic that is named."""

    arithmetic: str = ""
    threads: int = 1

    @property
    def data(self) -> Dataset:
        return images(self.shape, self.dtype)

    def learner(self) -> Any:
        s = self.shape
        return fw.ORGFW(
            fw.SoftmaxRegression(s.d, s.n_classes), fw.RowL1Ball((s.n_classes, s.d), s.radius),
            step=fw.power_schedule(*ORGFW_STEP), momentum=fw.power_schedule(*ORGFW_MOMENTUM),
            dtype=self.arithmetic or self.dtype, threads=self.threads,
        )  # fmt: skip


# --- rounds of ORGFW ------------------------------------------------------------------------------


def _powers() -> tuple[Any, Any]:
    return reference.power_schedule(*ORGFW_STEP), reference.power_schedule(*ORGFW_MOMENTUM)


class WrittenNumpy(numpy_side.ORGFW):
    """NumPy as the paper writes it: four products."""

    def __init__(self, case: Case) -> None:
        super().__init__(case.data, case.shape.radius, *_powers())


class StackedNumpy:
    """NumPy at its best: two products, both points stacked, every array made once."""

    def __init__(self, case: Case) -> None:
        s, data = case.shape, case.data
        self.X, self.y, self.radius, self.C = data.X, data.y, s.radius, s.n_classes
        self.step, self.momentum = _powers()
        C, B, dtype = s.n_classes, s.batch_size, data.X.dtype
        self.both = np.zeros((2 * C, s.d), dtype)  # x_t above x_{t-1}
        self.d, self.size = np.zeros((C, s.d), dtype), np.empty((C, s.d), dtype)
        self.g = np.empty((C, s.d), dtype)
        self.A = np.empty((B, s.d), dtype)
        self.Z = np.empty((2 * C, B), dtype)
        self.classes, self.samples = np.arange(C), np.arange(B)
        self.t = 1

    def play_round(self, rows: Any) -> tuple[float, Any]:
        C, A, B = self.C, self.A, len(rows)
        keep = 0.0 if self.t == 1 else 1.0 - self.momentum(self.t)
        eta = self.step(self.t)
        np.take(self.X, rows, axis=0, out=A)
        y = self.y[rows]
        Z = np.matmul(self.both, A.T, out=self.Z).reshape(2, C, B)
        own = Z[0, y, self.samples]
        top = Z.max(axis=1, keepdims=True)
        Z -= top
        np.exp(Z, out=Z)
        total = Z.sum(axis=1, keepdims=True)
        loss = float((top[0, 0] + np.log(total[0, 0]) - own).sum()) / B
        Z /= total
        R, back = Z
        back *= keep
        R -= back
        R[y, self.samples] -= 1.0 - keep
        R *= 1.0 / B
        self.d *= keep
        self.d += np.matmul(R, A, out=self.g)
        index = np.abs(self.d, out=self.size).argmax(axis=1)
        value = np.where(self.d[self.classes, index] >= 0, -self.radius, self.radius)
        x, x_previous = self.both[:C], self.both[C:]
        x_previous[:] = x
        x *= 1.0 - eta
        x[self.classes, index] += eta * value
        self.t += 1
        return loss, x_previous


class Torch:
    """PyTorch on one or more threads of the processor, eager or compiled."""

    def __init__(self, case: Case, compiled: bool = False) -> None:
        import torch

        torch.set_num_threads(getattr(case, "threads", 1))
        s = case.shape
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that the memory is read-only
            self.X, self.y = torch.from_numpy(case.data.X), torch.from_numpy(case.data.y)
        self.torch, self.t = torch, 1
        self.step, self.momentum = _powers()
        self.both = torch.zeros((2 * s.n_classes, s.d), dtype=self.X.dtype)
        self.d = torch.zeros((s.n_classes, s.d), dtype=self.X.dtype)
        C, radius = s.n_classes, s.radius
        samples = torch.arange(s.batch_size)
        functional = torch.nn.functional

        def advance(X: Any, y: Any, rows: Any, both: Any, d: Any, keep: Any, eta: Any) -> Any:
            A, y = X[rows], y[rows]
            Z = functional.linear(A, both)
            logs = functional.log_softmax(Z[:, :C], dim=1)
            loss = functional.nll_loss(logs, y)
            R = logs.exp() - keep * functional.softmax(Z[:, C:], dim=1)
            R = R - (1.0 - keep) * functional.one_hot(y, C)
            d = keep * d + (R / len(samples)).T @ A
            index = d.abs().argmax(dim=1, keepdim=True)
            value = torch.where(d.gather(1, index) >= 0, -radius, radius).to(d.dtype)
            x = both[:C]
            moved = ((1.0 - eta) * x).scatter_add(1, index, eta * value)
            return loss, torch.cat((moved, x)), d

        self.advance = torch.compile(advance, dynamic=False) if compiled else advance

    def play_round(self, rows: Any) -> tuple[float, Any]:
        torch, dtype = self.torch, self.X.dtype
        keep = 0.0 if self.t == 1 else 1.0 - self.momentum(self.t)
        with torch.no_grad():
            loss, self.both, self.d = self.advance(
                self.X, self.y, torch.from_numpy(np.array(rows)), self.both, self.d,
                torch.tensor(keep, dtype=dtype), torch.tensor(self.step(self.t), dtype=dtype),
            )  # fmt: skip
        self.t += 1
        return float(loss), self.both[len(self.d) :].numpy()


def compiled_torch(case: Case) -> Torch:
    """PyTorch with its compiler."""
    return Torch(case, compiled=True)


class Jax:
    """JAX, the whole round compiled, its state given away so that memory is used again."""

    def __init__(self, case: Case) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp

        s, dtype = case.shape, np.dtype(case.dtype).type
        self.jax, self.dtype, self.t = jax, dtype, 1
        self.step, self.momentum = _powers()
        self.X, self.y = jnp.asarray(case.data.X), jnp.asarray(case.data.y)
        self.both = jnp.zeros((2 * s.n_classes, s.d), dtype)
        self.d = jnp.zeros((s.n_classes, s.d), dtype)
        C, B, radius = s.n_classes, s.batch_size, dtype(s.radius)

        def advance(X: Any, y: Any, rows: Any, both: Any, d: Any, keep: Any, eta: Any) -> Any:
            A, y = X[rows], y[rows]
            Z = A @ both.T
            logs = jax.nn.log_softmax(Z[:, :C], axis=1)
            loss = -jnp.take_along_axis(logs, y[:, None], axis=1).mean()
            R = jnp.exp(logs) - keep * jax.nn.softmax(Z[:, C:], axis=1)
            R = R - (1 - keep) * jax.nn.one_hot(y, C, dtype=dtype)
            d = keep * d + (R / dtype(B)).T @ A
            index = jnp.abs(d).argmax(axis=1)
            classes = jnp.arange(C)
            value = jnp.where(d[classes, index] >= 0, -radius, radius)
            x = both[:C]
            moved = ((1 - eta) * x).at[classes, index].add(eta * value)
            return loss, jnp.concatenate((moved, x)), d

        self.advance = jax.jit(advance, donate_argnums=(3, 4))

    def play_round(self, rows: Any) -> tuple[float, Any]:
        keep = 0.0 if self.t == 1 else 1.0 - self.momentum(self.t)
        loss, self.both, self.d = self.advance(
            self.X, self.y, np.asarray(rows), self.both, self.d,
            self.dtype(keep), self.dtype(self.step(self.t)),
        )  # fmt: skip
        loss = float(loss)
        self.both.block_until_ready()
        self.t += 1
        return loss, np.asarray(self.both[len(self.d) :])


#: name: (what has to be installed, the side)
ROUNDS: dict[str, tuple[str, Callable[[Case], Any]]] = {
    "NumPy as written": ("numpy", WrittenNumpy),
    "NumPy, stacked products": ("numpy", StackedNumpy),
    "PyTorch, eager": ("torch", Torch),
    "PyTorch, torch.compile": ("torch", compiled_torch),
    "JAX, jit": ("jax", Jax),
}


def missing(package: str) -> str | None:
    """Say that a package is not installed, or None."""
    return None if importlib.util.find_spec(package) else f"skipped: {package} is not installed"


def check(case: ImageCase, make: Callable[[Case], Any], rounds: int = 12) -> None:
    """Raise AssertionError unless fastfw and the peer play the same decisions."""
    stream = next(case.streams(rounds, 1))
    result = case.learner().run(stream, checkpoints=range(1, rounds + 1))
    side = make(case)
    tolerance = {"float64": 1e-11, "float32": 2e-5}[case.arithmetic or case.dtype]
    for t, batch in enumerate(stream):
        loss, played = side.play_round(batch.rows)
        np.testing.assert_allclose(played, result.decisions[t], rtol=0, atol=tolerance)
        np.testing.assert_allclose(loss, result.losses[t], rtol=tolerance)


# --- Frank-Wolfe with whole gradients -------------------------------------------------------------

#: Iterations of a turn, steps 2/(k + 2) from zero.
ITERATIONS = 20
WHOLE = Shape("whole", "4,000 samples", n=4_000, d=784, n_classes=10, batch_size=4_000, radius=8.0)


def whole_by_fastfw(dtype: str) -> Callable[[], Any]:
    """Frank-Wolfe: OSFW without memory, whose every batch is the whole data."""
    s, data = WHOLE, images(WHOLE, dtype)
    problem = fw.SoftmaxRegression(s.d, s.n_classes)
    ball = fw.RowL1Ball((s.n_classes, s.d), s.radius)
    rows = np.broadcast_to(np.arange(s.n), (ITERATIONS, s.n))
    stream = fw.IndexedStream(data, rows)
    step = fw.power_schedule(2.0, 1.0)
    return lambda: fw.OSFW(problem, ball, step=step, momentum=1.0).run(stream).decision


def whole_by_copt(dtype: str) -> Callable[[], Any]:
    """copt's minimize_frank_wolfe; the oracle is that of its L1Ball, for every row at once."""
    import copt

    s, data = WHOLE, images(WHOLE, dtype)
    shape, classes = (s.n_classes, s.d), np.arange(s.n_classes)

    def value_and_gradient(w: Any) -> Any:
        value, gradient = reference.loss_and_gradient(w.reshape(shape), data.X, data.y)
        return value, gradient.ravel()

    def lmo(u: Any, x: Any, active: Any) -> Any:
        U = u.reshape(shape)
        index = np.abs(U).argmax(axis=1)
        towards = -x.reshape(shape)
        towards[classes, index] += s.radius * np.sign(U[classes, index])
        return towards.ravel(), None, None, 1.0

    def solve() -> Any:
        found = copt.minimize_frank_wolfe(
            value_and_gradient, np.zeros(s.n_classes * s.d), lmo, jac=True, step="sublinear",
            lipschitz=1.0, max_iter=ITERATIONS, tol=0.0,
        )  # fmt: skip
        return found.x.reshape(shape)

    return solve


def whole_by_chop(dtype: str) -> Callable[[], Any]:
    """chop's minimize_frank_wolfe; its batch of problems are the rows."""
    import torch
    from chop.constraints import L1Ball
    from chop.optim import minimize_frank_wolfe

    torch.set_num_threads(1)
    s, data = WHOLE, images(WHOLE, dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y = torch.from_numpy(data.X), torch.from_numpy(data.y)
    ball = L1Ball(s.radius)

    def closure(W: Any) -> Any:
        loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(X, W), y)
        (gradient,) = torch.autograd.grad(loss, W)
        return loss.detach(), gradient

    start = torch.zeros((s.n_classes, s.d), dtype=X.dtype)

    def solve() -> Any:
        found = minimize_frank_wolfe(closure, start, ball.lmo, max_iter=ITERATIONS)
        return found.x.detach().numpy()

    return solve


#: name: (what has to be installed, dtypes it works in, the side)
WHOLE_SIDES: dict[str, tuple[str, tuple[str, ...], Callable[[str], Callable[[], Any]]]] = {
    "copt, minimize_frank_wolfe": ("copt", ("float64",), whole_by_copt),
    "chop, minimize_frank_wolfe": ("chop", ("float64", "float32"), whole_by_chop),
}


# --- learning from a stream by other means --------------------------------------------------------


class Sgd:
    """scikit-learn's SGDClassifier, told a batch at a time."""

    #: What is not the same.
    note = "one against the rest, a step per sample, an l1 penalty in place of the ball"

    def __init__(self, case: Case) -> None:
        from sklearn.linear_model import SGDClassifier

        self.X, self.y = case.data.X, case.data.y
        self.classes = np.arange(case.shape.n_classes)
        self.model = SGDClassifier(loss="log_loss", penalty="l1", alpha=1e-4, random_state=0)
        self.share = 1.0

    def play_round(self, rows: Any) -> None:
        self.model.partial_fit(self.X[rows], self.y[rows], self.classes)


class River:
    """river's SoftmaxRegression, told a sample at a time: dictionaries, made beforehand."""

    note = "a step per sample on a dictionary of the nonzero features, an l2 penalty"
    #: Samples of a batch that it is given.
    samples = 10

    def __init__(self, case: Case) -> None:
        from river.linear_model import SoftmaxRegression

        self.data, self.model = case.data, SoftmaxRegression()
        self.share = self.samples / case.shape.batch_size
        self.ready: list[tuple[dict[int, float], int]] = []

    def prepare(self, rows: Any) -> None:
        self.ready = []
        for i in rows[: self.samples]:
            x = self.data.X[i]
            self.ready.append(
                ({int(j): float(x[j]) for j in np.flatnonzero(x)}, int(self.data.y[i]))
            )

    def play_round(self, rows: Any) -> None:
        for x, y in self.ready:
            self.model.learn_one(x, y)


STREAMED: dict[str, tuple[str, Callable[[Case], Any]]] = {
    "scikit-learn, SGDClassifier": ("sklearn", Sgd),
    "river, SoftmaxRegression": ("river", River),
}
