"""What compiled engines with a lazily scaled iterate have in common."""

from __future__ import annotations

import copy
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray

__all__ = ["LazyEngine"]

Arrays = dict[str, npt.NDArray[Any]]


class LazyEngine:
    """The iterate x = s u and the sum w u + sum of the decisions played, as in ``kernels.l1``.

    ``scalars`` begins with s and w.
    """

    #: Attributes that hold the state in arrays of fixed size.
    names: ClassVar[tuple[str, ...]] = ("u", "sum", "scalars")

    def __init__(self, start: FloatArray, n_scalars: int = 2) -> None:
        self.u = start
        self.sum = np.zeros_like(start)
        self.scalars = np.zeros(n_scalars)
        self.scalars[0] = 1.0

    def arrays(self) -> Arrays:
        """All of the state, by name."""
        return {name: getattr(self, name) for name in self.names}

    def restore(self, arrays: Arrays) -> None:
        """Take over a state that `arrays` gave, unless it would lead kernels astray."""
        for name in self.names:
            if arrays[name].dtype.kind == "f" and not np.isfinite(arrays[name]).all():
                raise ValueError(f"its state {name!r} is not finite")
        if not 0.0 < arrays["scalars"][0] <= 32.0:
            raise ValueError("its state is out of range")
        for name in self.names:
            getattr(self, name)[...] = arrays[name]

    def copy(self) -> Any:
        """Return an independent engine in the same state."""
        other = copy.copy(self)
        for name in self.names:
            setattr(other, name, getattr(self, name).copy())
        return other

    def decision(self) -> FloatArray:
        """Return x_t, a new array."""
        x: FloatArray = self.u * self.u.dtype.type(self.scalars[0])
        return x

    def total(self) -> FloatArray:
        """Return the sum of the decisions played, a new array."""
        whole: FloatArray = self.u * self.u.dtype.type(self.scalars[1]) + self.sum
        return whole
