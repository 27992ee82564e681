"""A round of ORGFW on the paper's network by fastfw, NumPy as the paper writes it, and PyTorch.

The shape is that of the paper's second experiment: d = 784, m = 10, C = 10, batches of 16. All
sides get the rows of the same batches by number and start at the same point.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import chain, repeat
from typing import Any

import numpy as np

import fastfw as fw
import reference
import reference_network
from fastfw.streams import Dataset, IndexedStream

STEP = reference.power_schedule(2.0, 1.0)
MOMENTUM = reference.power_schedule(0.25, 0.5)
RADIUS = 10.0
SHAPE = reference_network.Shape(784, 10, 10)
BATCH_SIZE = 16
ROWS = 20_000

#: Whether PyTorch is installed; it is compared with only then.
HAS_TORCH = importlib.util.find_spec("torch") is not None


class NetworkCase:
    """Data of one dtype, made on first use."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.problem = fw.OneHiddenLayer(*SHAPE)
        self.set = self.problem.l1_balls(RADIUS, RADIUS)

    @cached_property
    def data(self) -> Dataset:
        """Pixels in [0, 1], four fifths of them dark as in MNIST, and labels that they decide."""
        rng = np.random.default_rng(0)
        X = rng.random((ROWS, SHAPE.d), dtype=np.float32)
        X *= rng.random(X.shape, dtype=np.float32) < 0.2
        y = (X @ rng.standard_normal((SHAPE.d, SHAPE.n_classes), dtype=np.float32)).argmax(axis=1)
        return Dataset(X.astype(self.dtype), y)

    @cached_property
    def start(self) -> Any:
        """A vertex, so that no oracle meets ties."""
        g = np.random.default_rng(1).standard_normal(self.problem.shape)
        return np.asarray(self.set.lmo(g))

    def stream(self, rounds: int, seed: int = 0) -> IndexedStream:
        """Batches of rows drawn with replacement."""
        return fw.iid_stream(self.data, None, batch_size=BATCH_SIZE, rounds=rounds, seed=seed)

    def learner(self) -> fw.ORGFW:
        """ORGFW at round 1."""
        return fw.ORGFW(
            self.problem,
            self.set,
            step=fw.power_schedule(2.0, 1.0),
            momentum=fw.power_schedule(0.25, 0.5),
            start=self.start,
            dtype=self.dtype,
        )


class NumpyNetwork:
    """The reference's round, called again and again."""

    def __init__(self, case: NetworkCase) -> None:
        self.X, self.y = case.data.X, case.data.y
        self.x = self.x_prev = case.start.astype(case.dtype)
        self.d: Any = None
        self.t = 1
        self._round = reference_network.methods(SHAPE).orgfw_round

    def observe(self, rows: Any) -> float:
        """One round on the rows of that number, gathered as ``X[rows]``."""
        value, x, self.d = self._round(
            self.x, self.x_prev, self.d, self.X[rows], self.y[rows],
            MOMENTUM(self.t), STEP(self.t), (RADIUS,) * 4, self.t == 1,
        )  # fmt: skip
        self.x_prev, self.x = self.x, x
        self.t += 1
        return float(value)


class TorchNetwork:
    """The same round in PyTorch, eager, with its own gradients."""

    def __init__(self, case: NetworkCase) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        self.X, self.y = torch.tensor(case.data.X), torch.tensor(case.data.y)
        blocks = case.problem.blocks(case.start.astype(case.dtype))
        self.x = [torch.tensor(block) for block in blocks.values()]
        self.x_prev = self.x
        self.d: Any = None
        self.t = 1

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
        values = torch.where(picked >= 0, -RADIUS, RADIUS).to(g.dtype)
        return torch.zeros_like(rows).scatter_(1, index, values).reshape(g.shape)

    def observe(self, rows: Any) -> float:
        """One round on the rows of that number."""
        index = self.torch.from_numpy(np.array(rows))
        A, y = self.X[index], self.y[index]
        value, g = self.gradient(self.x, A, y)
        if self.t == 1:
            self.d = list(g)
        else:
            _, back = self.gradient(self.x_prev, A, y)
            keep = 1.0 - MOMENTUM(self.t)
            self.d = [a + keep * (d - b) for a, d, b in zip(g, self.d, back, strict=True)]
        eta = STEP(self.t)
        moved = [x + eta * (self.vertex(d) - x) for x, d in zip(self.x, self.d, strict=True)]
        self.x_prev, self.x = self.x, moved
        self.t += 1
        return value


Turn = Callable[[], Any]


def fastfw_rounds(case: NetworkCase, rounds: int) -> Callable[[], Turn]:
    """Turns of that many rounds in compiled code."""
    learner, streams = case.learner(), _fresh(case, rounds)

    def turn() -> Turn:
        stream = next(streams)
        return lambda: learner.run(stream)

    return turn


def fastfw_observations(case: NetworkCase, rounds: int) -> Callable[[], Turn]:
    """Turns of that many batches observed one by one from Python."""
    learner, streams = case.learner(), _fresh(case, rounds)

    def turn() -> Turn:
        batches = list(next(streams))

        def play() -> None:
            for batch in batches:
                learner.observe(batch)

        return play

    return turn


def _by_rows(make: Any) -> Callable[[NetworkCase, int], Callable[[], Turn]]:
    def turns(case: NetworkCase, rounds: int) -> Callable[[], Turn]:
        side, streams = make(case), _fresh(case, rounds)

        def turn() -> Turn:
            batches = [batch.rows for batch in next(streams)]

            def play() -> None:
                for rows in batches:
                    side.observe(rows)

            return play

        return turn

    return turns


numpy_rounds = _by_rows(NumpyNetwork)
torch_rounds = _by_rows(TorchNetwork)


def _fresh(case: NetworkCase, rounds: int) -> Iterator[IndexedStream]:
    """Streams of that many rounds, endlessly: eight seeds, so that no cache learns the rows."""
    return chain.from_iterable(repeat([case.stream(rounds, seed) for seed in range(8)]))
