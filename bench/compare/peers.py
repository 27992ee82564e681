"""Other ways to play a round of ORGFW, and libraries that do the same or nearly the same job.

Every side of a round has ``play_round(rows)``, which gathers the rows of these numbers itself,
plays Algorithm 1 on them and returns the loss and the decision that was played. All peers but NumPy
as the paper writes it know the best way to use large products: both gradients from one forward
product with the two points stacked, one backward product, no automatic differentiation.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

import fastfw as fw
import reference
from bench.compare import cases
from bench.compare.cases import Case, Player
from bench.compare.classifiers import sgd
from bench.data import dataset

#: As MNIST and CIFAR-10, with rows enough to be larger than the caches, in each peer's own memory.
MNIST, CIFAR10 = cases.MNIST._replace(n=20_000), cases.CIFAR10._replace(n=6_000)


def torch_data(data: fw.Dataset, threads: int = 1) -> tuple[Any, Any, Any]:
    """PyTorch on so many threads, and features and labels as its tensors."""
    import torch

    torch.set_num_threads(threads)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the memory is read-only
        return torch, torch.from_numpy(data.X), torch.from_numpy(data.y)


# --- rounds of ORGFW ------------------------------------------------------------------------------


class Rounds:
    """Rounds of ORGFW: ``advance(rows, 1 - rho, eta)`` plays one, returns loss and decision."""

    def __init__(self, case: Case) -> None:
        self.step, self.momentum = case.schedules
        self.t = 1

    def play_round(self, rows: Any) -> tuple[float, Any]:
        keep = 0.0 if self.t == 1 else 1.0 - self.momentum(self.t)
        loss, played = self.advance(rows, keep, self.step(self.t))
        self.t += 1
        return float(loss), played


class StackedNumpy(Rounds):
    """NumPy at its best: two products, both points stacked, every array made once."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        s = case.shape
        self.X, self.y, self.radius, self.C = case.data.X, case.data.y, s.radius, s.n_classes
        C, B, dtype = s.n_classes, s.batch_size, self.X.dtype
        self.both = np.zeros((2 * C, s.d), dtype)  # x_t above x_{t-1}
        self.d, self.size = np.zeros((C, s.d), dtype), np.empty((C, s.d), dtype)
        self.g = np.empty((C, s.d), dtype)
        self.A = np.empty((B, s.d), dtype)
        self.Z = np.empty((2 * C, B), dtype)
        self.classes, self.samples = np.arange(C), np.arange(B)

    def advance(self, rows: Any, keep: float, eta: float) -> tuple[Any, Any]:
        C, A, B = self.C, self.A, len(rows)
        np.take(self.X, rows, axis=0, out=A)
        y = self.y[rows]
        Z = np.matmul(self.both, A.T, out=self.Z).reshape(2, C, B)
        own = Z[0, y, self.samples]
        top = Z.max(axis=1, keepdims=True)
        Z -= top
        np.exp(Z, out=Z)
        total = Z.sum(axis=1, keepdims=True)
        loss = (top[0, 0] + np.log(total[0, 0]) - own).sum() / B
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
        return loss, x_previous


class Torch(Rounds):
    """PyTorch on one or more threads of the processor, eager or compiled."""

    def __init__(self, case: Case, compiled: bool = False) -> None:
        super().__init__(case)
        self.torch, self.X, self.y = torch, *_ = torch_data(case.data, case.threads)
        s, dtype = case.shape, self.X.dtype
        self.both = torch.zeros((2 * s.n_classes, s.d), dtype=dtype)
        self.d = torch.zeros((s.n_classes, s.d), dtype=dtype)
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

        self.compiled = torch.compile(advance, dynamic=False) if compiled else advance

    def advance(self, rows: Any, keep: float, eta: float) -> tuple[Any, Any]:
        torch, dtype = self.torch, self.X.dtype
        with torch.no_grad():
            loss, self.both, self.d = self.compiled(
                self.X, self.y, torch.from_numpy(np.array(rows)), self.both, self.d,
                torch.tensor(keep, dtype=dtype), torch.tensor(eta, dtype=dtype),
            )  # fmt: skip
        return loss, self.both[len(self.d) :].numpy()


class Jax(Rounds):
    """JAX, the whole round compiled, its state given away so that memory is used again."""

    def __init__(self, case: Case) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        import jax.numpy as jnp

        super().__init__(case)
        s, dtype = case.shape, np.dtype(case.dtype).type
        self.dtype = dtype
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

        self.compiled = jax.jit(advance, donate_argnums=(3, 4))

    def advance(self, rows: Any, keep: float, eta: float) -> tuple[Any, Any]:
        loss, self.both, self.d = self.compiled(
            self.X, self.y, np.asarray(rows), self.both, self.d, self.dtype(keep), self.dtype(eta)
        )
        return float(loss), np.asarray(self.both.block_until_ready()[len(self.d) :])


ROUNDS: Mapping[str, Callable[[Case], Any]] = {
    "NumPy as written": Player,
    "NumPy, stacked products": StackedNumpy,
    "PyTorch, eager": Torch,
    "PyTorch, torch.compile": partial(Torch, compiled=True),
    "JAX, jit": Jax,
}


class TorchNetwork(Rounds):
    """ORGFW on the network in PyTorch, eager, with its own gradients."""

    def __init__(self, case: Case) -> None:
        super().__init__(case)
        self.torch, self.X, self.y = torch, *_ = torch_data(case.data)
        self.radius = case.shape.radius
        problem, _, start = case.problem_set_start()
        blocks = problem.blocks(start.astype(case.dtype))
        self.x = [torch.tensor(block) for block in blocks.values()]
        self.x_prev = self.d = self.x

    def gradient(self, x: Any, A: Any, y: Any) -> tuple[float, Any]:
        """Loss and gradient by automatic differentiation."""
        leaves = [block.detach().requires_grad_() for block in x]
        W1, b1, W2, b2 = leaves
        functional = self.torch.nn.functional
        hidden = self.torch.sigmoid(functional.linear(A, W1, b1))
        loss = functional.cross_entropy(functional.linear(hidden, W2, b2), y)
        return float(loss.detach()), self.torch.autograd.grad(loss, leaves)

    def vertex(self, g: Any) -> Any:
        """One entry in each row, or in the vector."""
        torch = self.torch
        rows = g if g.ndim == 2 else g[None]
        index = rows.abs().argmax(dim=1, keepdim=True)
        picked = rows.gather(1, index)
        values = torch.where(picked >= 0, -self.radius, self.radius).to(g.dtype)
        return torch.zeros_like(rows).scatter_(1, index, values).reshape(g.shape)

    def advance(self, rows: Any, keep: float, eta: float) -> tuple[Any, Any]:
        torch, played = self.torch, self.x
        index = torch.from_numpy(np.array(rows))
        A, y = self.X[index], self.y[index]
        loss, g = self.gradient(played, A, y)
        _, back = self.gradient(self.x_prev, A, y)
        self.d = [a + keep * (d - b) for a, d, b in zip(g, self.d, back, strict=True)]
        self.x = [x + eta * (self.vertex(d) - x) for x, d in zip(played, self.d, strict=True)]
        self.x_prev = played
        return loss, torch.cat([block.reshape(-1) for block in played]).numpy()


#: The same on the network.
NETWORK_ROUNDS: Mapping[str, Callable[[Case], Any]] = {
    "NumPy as written": Player,
    "PyTorch, eager": TorchNetwork,
}


# --- Frank-Wolfe with whole gradients -------------------------------------------------------------

#: Iterations of a turn, steps 2/(k + 2) from zero.
ITERATIONS = 20
WHOLE = cases.MNIST._replace(n=4_000, batch_size=4_000, label="4,000 samples")


def whole_by_fastfw(dtype: str) -> Callable[[], Any]:
    """Frank-Wolfe: OSFW without memory, whose every batch is the whole data."""
    s, whole = WHOLE, dataset(WHOLE, dtype)
    problem = fw.SoftmaxRegression(s.d, s.n_classes)
    ball = fw.RowL1Ball((s.n_classes, s.d), s.radius)
    rows = np.broadcast_to(np.arange(s.n), (ITERATIONS, s.n))
    stream = fw.IndexedStream(whole, rows)
    step = fw.power_schedule(2.0, 1.0)
    return lambda: fw.OSFW(problem, ball, step=step, momentum=1.0).run(stream).decision


def whole_by_copt(dtype: str) -> Callable[[], Any]:
    """copt's minimize_frank_wolfe; the oracle is that of its L1Ball, for every row at once."""
    import copt

    if dtype != "float64":
        raise RuntimeError("copt works in float64")
    s, whole = WHOLE, dataset(WHOLE, dtype)
    shape, classes = (s.n_classes, s.d), np.arange(s.n_classes)

    def value_and_gradient(w: Any) -> Any:
        value, gradient = reference.loss_and_gradient(w.reshape(shape), whole.X, whole.y)
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
    from chop.constraints import L1Ball
    from chop.optim import minimize_frank_wolfe

    torch, X, y = torch_data(dataset(WHOLE, dtype))
    s, ball = WHOLE, L1Ball(WHOLE.radius)

    def closure(W: Any) -> Any:
        loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(X, W), y)
        (gradient,) = torch.autograd.grad(loss, W)
        return loss.detach(), gradient

    start = torch.zeros((s.n_classes, s.d), dtype=X.dtype)

    def solve() -> Any:
        found = minimize_frank_wolfe(closure, start, ball.lmo, max_iter=ITERATIONS)
        return found.x.detach().numpy()

    return solve


WHOLE_SIDES: Mapping[str, Callable[[str], Callable[[], Any]]] = {
    "copt, minimize_frank_wolfe": whole_by_copt,
    "chop, minimize_frank_wolfe": whole_by_chop,
}


# --- learning from a stream by other means --------------------------------------------------------


class Sgd:
    """scikit-learn's SGDClassifier, told a batch at a time."""

    #: What is not the same.
    note = "one against the rest, a step per sample, an l1 penalty in place of the ball"
    #: Samples of a batch that it is given; None for all.
    samples = None

    def __init__(self, case: Case) -> None:
        self.X, self.y = case.data.X, case.data.y
        self.classes = np.arange(case.shape.n_classes)
        self.model = sgd("l1", 1e-4)

    def play_round(self, rows: Any) -> None:
        self.model.partial_fit(self.X[rows], self.y[rows], self.classes)


class River:
    """river's SoftmaxRegression, told a sample at a time: dictionaries, made beforehand."""

    note = "a step per sample on a dictionary of the nonzero features, an l2 penalty"
    samples = 10

    def __init__(self, case: Case) -> None:
        from river.linear_model import SoftmaxRegression

        self.data, self.model = case.data, SoftmaxRegression()
        self.ready: list[tuple[dict[int, float], int]] = []

    def prepare(self, rows: Any) -> None:
        features = [self.data.X[i] for i in rows[: self.samples]]
        own = [{int(j): float(x[j]) for j in np.flatnonzero(x)} for x in features]
        self.ready = list(zip(own, map(int, self.data.y[rows]), strict=False))

    def play_round(self, rows: Any) -> None:
        for x, y in self.ready:
            self.model.learn_one(x, y)


STREAMED = {"scikit-learn, SGDClassifier": Sgd, "river, SoftmaxRegression": River}
