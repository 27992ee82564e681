"""A network with one hidden layer, the paper's nonconvex problem."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, choice, features, positive_int, real_array
from fastfw._layout import named_blocks
from fastfw.problems import Classification
from fastfw.sets import L1Ball, ProductSet, RowL1Ball

__all__ = ["ACTIVATIONS", "OneHiddenLayer"]

#: Names of the activations, in the order of their numbers in ``kernels.models``.
ACTIVATIONS = ("sigmoid", "tanh", "relu")


@dataclass(frozen=True)
class OneHiddenLayer(Classification):
    r"""Classification by a network with one hidden layer.

    .. math::

        f(x) = \frac1B \sum_i \log \sum_c e^{z_{ic}} - z_{i y_i}, \qquad
        Z = H W_2^T + b_2, \quad H = \sigma(A W_1^T + b_1)

    for a batch of B samples A with labels y. The parameters x are one flat array: W1 (m, d) row by
    row, b1 (m,), W2 (C, m) row by row, b2 (C,). `blocks` gives them by name. The paper writes
    the matrices transposed.

    Parameters
    ----------
    n_features : int
        d.
    n_hidden : int
        m, the number of hidden units.
    n_classes : int
        C, at least 2.
    activation : {"sigmoid", "tanh", "relu"}
        σ. The paper has the sigmoid; with "relu" the loss is not smooth.
    reduction : {"mean", "sum"}
        Mean or sum over the batch. Frank-Wolfe steps do not depend on it.

    Notes
    -----
    Features may be dense or, of any format of scipy.sparse, sparse. Learners start at
    ``init="random"`` on this problem. At zeros, the paper's start, the hidden units are all alike
    and so are W2's gradients in each row: oracles that take the first of equal entries let all
    classes use the same unit. What each start gives after equal work is measured in
    docs/performance/network-starts.md.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> problem = fw.OneHiddenLayer(n_features=3, n_hidden=2, n_classes=2)
    >>> problem.shape
    (14,)
    >>> batch = (np.eye(3), np.array([0, 1, 1]))
    >>> round(problem.loss(np.zeros(14), batch), 6)   # log 2
    0.693147
    >>> problem.blocks(problem.gradient(np.zeros(14), batch))["b2"].round(4)
    array([ 0.1667, -0.1667])
    >>> learner = fw.ORGFW(problem, problem.l1_balls(weight_radius=10.0, bias_radius=10.0))
    >>> learner.observe(batch).t
    1
    """

    #: Whether f is: gaps of decisions certify nothing.
    convex: ClassVar[bool] = False
    #: How learners choose x_1 where neither `start` nor `init` is given.
    default_init: ClassVar[str] = "random"

    n_features: int
    n_hidden: int
    n_classes: int
    activation: str = "sigmoid"
    reduction: str = "mean"

    def __post_init__(self) -> None:
        """Check the arguments."""
        super().__post_init__()
        object.__setattr__(self, "n_hidden", positive_int(self.n_hidden, "n_hidden"))
        choice(self.activation, "activation", ACTIVATIONS)

    @property
    def shape(self) -> tuple[int]:
        """Shape of the parameters, (m d + m + C m + C,)."""
        d, m, C = self.n_features, self.n_hidden, self.n_classes
        return (m * d + m + C * m + C,)

    @property
    def block_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the blocks W1, b1, W2, b2 by name, in their order; a new dictionary."""
        d, m, C = self.n_features, self.n_hidden, self.n_classes
        return {"W1": (m, d), "b1": (m,), "W2": (C, m), "b2": (C,)}

    def blocks(self, x: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
        """Return W1, b1, W2, b2 by name: views of `x` in the blocks' shapes.

        Raises
        ------
        ValueError
            If `x` has another shape than the problem.
        """
        return named_blocks(x, self.block_shapes)

    def l1_balls(
        self,
        weight_radius: float = 10.0,
        bias_radius: float = 10.0,
        ties: str = "first",
        seed: int = 0,
    ) -> ProductSet:
        """Return the paper's feasible set for these parameters: a `ProductSet` of W1, b1, W2, b2.

        Every row of W1 and of W2 has l1 norm at most `weight_radius`, b1 and b2 each have at most
        `bias_radius`; by default 10 as in the paper's experiments. See `RowL1Ball` for `ties`, and
        for `seed`, of which each block's is made.
        """
        d, m, C = self.n_features, self.n_hidden, self.n_classes
        return ProductSet(
            {
                "W1": RowL1Ball((m, d), weight_radius, ties, (seed, 0)),
                "b1": L1Ball(m, bias_radius, ties, (seed, 1)),
                "W2": RowL1Ball((C, m), weight_radius, ties, (seed, 2)),
                "b2": L1Ball(C, bias_radius, ties, (seed, 3)),
            }
        )

    @property
    def first_layer(self) -> tuple[int, int]:
        """Shape of W1."""
        return self.n_hidden, self.n_features

    def kernel_model(self) -> Any:
        """Return the number of the activation."""
        return ACTIVATIONS.index(self.activation)

    def logits(self, x: npt.ArrayLike, X: npt.ArrayLike) -> FloatArray:
        """Return the logits Z of every row of X, shape (n, C)."""
        A = features(X, n_features=self.n_features, sparse=True)
        parts = self.blocks(real_array(x, "x").astype(A.dtype, copy=False))
        T = A @ parts["W1"].T + parts["b1"]
        if self.activation == "relu":
            H = np.maximum(T, 0)
        elif self.activation == "tanh":
            H = np.tanh(T)
        else:
            H = 0.5 * np.tanh(0.5 * T) + 0.5
        Z: FloatArray = H @ parts["W2"].T + parts["b2"]
        return Z
