"""The NumPy side: rounds of tests/reference.py, called again and again on rows by number.

Each method is an object with ``play_round(rows)``, which gathers the batch as ``X[rows]``, plays
the round and returns its loss and the decision that was played.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import reference
import reference_network
from fastfw.streams import Dataset


class Side:
    """What the methods share: the data, zeros to start from, the number of the round."""

    def __init__(self, data: Dataset, radius: float) -> None:
        self.X, self.y, self.radius = data.X, data.y, radius
        self.x = np.zeros((data.n_classes, data.n_features), data.dtype)
        self.t = 1

    def play_round(self, rows: Any) -> tuple[float, Any]:
        """One round on the rows of these numbers."""
        played = self.x
        loss = self.advance(self.X[rows], self.y[rows])
        self.t += 1
        return loss, played

    def advance(self, A: Any, y: Any) -> float:
        raise NotImplementedError


class ORGFW(Side):
    def __init__(self, data: Dataset, radius: float, step: Any, momentum: Any) -> None:
        super().__init__(data, radius)
        self.step, self.momentum = step, momentum
        self.x_prev, self.d = self.x, None

    def advance(self, A: Any, y: Any) -> float:
        loss, x, self.d = reference.orgfw_round(
            self.x, self.x_prev, self.d, A, y, self.momentum(self.t), self.step(self.t),
            self.radius, self.t == 1,
        )  # fmt: skip
        self.x_prev, self.x = self.x, x
        return loss


class RegularizedOFW(Side):
    def __init__(self, data: Dataset, radius: float, step: Any, eta: float) -> None:
        super().__init__(data, radius)
        self.step, self.eta = step, eta
        self.start, self.total = self.x, np.zeros_like(self.x)

    def advance(self, A: Any, y: Any) -> float:
        loss, self.x, _, self.total = reference.regularised_ofw_round(
            self.x, self.start, self.total, A, y, self.eta, self.step(self.t), self.radius
        )
        return loss


class OFW(Side):
    """Batches are gathered once, when they come, and kept."""

    def __init__(self, data: Dataset, radius: float, step: Any) -> None:
        super().__init__(data, radius)
        self.step, self.past = step, list[tuple[Any, Any]]()

    def advance(self, A: Any, y: Any) -> float:
        self.past.append((A, y))
        loss, self.x, _ = reference.ofw_round(self.x, self.past, self.step(self.t), self.radius)
        return loss


class OAW(OFW):
    def __init__(self, data: Dataset, radius: float, step: Any) -> None:
        super().__init__(data, radius, step)
        self.active = reference.ActiveSet(self.x)

    def advance(self, A: Any, y: Any) -> float:
        self.past.append((A, y))
        played = reference.oaw_round(self.x, self.active, self.past, self.step, self.radius)
        self.x = played.x_next
        return played.loss


class Meta(Side):
    """MORGFW, and MetaFrankWolfe with its directions.

    ``noise(t, k)`` and ``picked(t, k)`` are the draws; by default both come from NumPy's generator,
    noise uniform and in the dtype of the data.
    """

    def __init__(
        self,
        data: Dataset,
        radius: float,
        step: Any,
        momentum: Any,
        *,
        inner_steps: int,
        scale: float,
        horizon: int,
        directions: Any,
        batch_size: int,
        sub_batch_size: int | None,
        noise: Callable[[int, int], Any] | None = None,
        picked: Callable[[int, int], Any] | None = None,
    ) -> None:
        super().__init__(data, radius)
        self.step, self.momentum, self.directions = step, momentum, directions
        shape, dtype = self.x.shape, self.x.dtype
        rng = np.random.default_rng(0)
        if noise is None:

            def noise(t: int, k: int) -> Any:
                return rng.random(shape, dtype=dtype.type) - dtype.type(0.5)

        if picked is None:

            def picked(t: int, k: int) -> Any:
                return rng.integers(batch_size, size=sub_batch_size)

        self.picked = picked if sub_batch_size is not None else None
        self.bases = [
            reference.FTPL(shape, radius, scale, horizon, partial(_noise_of, noise, k), dtype)
            for k in range(1, inner_steps + 1)
        ]
        self.start = self.x

    def play_round(self, rows: Any) -> tuple[float, Any]:
        """One round; its inner points are found in it, not when the round before ends."""
        picked = None if self.picked is None else partial(self.picked, self.t)
        played = reference.meta_round(
            self.start, self.bases, self.X[rows], self.y[rows], self.step, self.momentum, picked,
            directions=self.directions,
        )  # fmt: skip
        self.t += 1
        return played.loss, played.inner[-1]


def _noise_of(noise: Callable[[int, int], Any], k: int, t: int) -> Any:
    return noise(t, k)


class Network:
    """ORGFW on the network: `shape` is its sizes, `radius` that of each of its four balls."""

    def __init__(
        self, data: Dataset, shape: Any, start: Any, radius: float, step: Any, momentum: Any
    ) -> None:
        self.X, self.y, self.radii = data.X, data.y, (radius,) * 4
        self.step, self.momentum, self.t = step, momentum, 1
        self.x = self.x_prev = start
        self.d: Any = None
        self.round = reference_network.methods(shape).orgfw_round

    def play_round(self, rows: Any) -> tuple[float, Any]:
        played = self.x
        loss, x, self.d = self.round(
            self.x, self.x_prev, self.d, self.X[rows], self.y[rows],
            self.momentum(self.t), self.step(self.t), self.radii, self.t == 1,
        )  # fmt: skip
        self.x_prev, self.x = played, x
        self.t += 1
        return float(loss), played
