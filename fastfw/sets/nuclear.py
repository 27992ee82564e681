"""The nuclear-norm ball: matrices of low rank, and its vertices of rank one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, check_seed, describe
from fastfw.sets._convex import RadiusSet, normalise, pair_of
from fastfw.sets._projections import project_simplex
from fastfw.sets._vertex import Vertex

__all__ = ["NuclearNormBall", "RankOneVertex"]

# Up to this many rows or columns a dense decomposition is faster than an iterative one.
_DENSE = 64
# Part of the seeded vector in a warm start, as a length: an earlier answer alone may lie in a
# subspace that the direction maps into itself and the new answer is orthogonal to. More costs
# products.
_FRESH = 0.01
# Entries of a block of rows when a vertex is added to a matrix.
_BLOCK = 1 << 15


class RankOneVertex(Vertex):
    """A vertex of `NuclearNormBall`: r left rightᵀ with unit vectors left and right.

    Attributes
    ----------
    left : ndarray of float64, shape (m,)
        Of norm one.
    right : ndarray of float64, shape (n,)
        Of norm one.
    radius : float
        r.
    """

    __slots__ = ("left", "radius", "right")

    def __init__(
        self,
        left: npt.NDArray[np.float64],
        right: npt.NDArray[np.float64],
        radius: float,
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        super().__init__((left.size, right.size), dtype)
        self.left = left
        self.right = right
        self.radius = radius

    @property
    def code(self) -> npt.NDArray[np.float64]:
        """The left and the right vector; shape (m + n,)."""
        return np.concatenate([self.left, self.right])

    def toarray(self) -> FloatArray:
        """Return the vertex as a new dense array of shape (m, n)."""
        return np.outer(self.radius * self.left, self.right).astype(self.dtype, copy=False)

    def dot(self, direction: npt.ArrayLike) -> float:
        """Return ⟨direction, v⟩ = r leftᵀ D right, summed in float64. O(m n), O(m) memory."""
        return self.radius * float(self.left @ (np.asarray(direction) @ self.right))

    def add_to(self, x: FloatArray, scale: float) -> None:
        """Add scale times the vertex to `x`, in place, by blocks of rows. O(m n)."""
        left = (scale * self.radius * self.left).astype(x.dtype)
        right = self.right.astype(x.dtype)
        rows = max(1, _BLOCK // right.size)
        for first in range(0, left.size, rows):
            part = slice(first, first + rows)
            x[part] += np.multiply.outer(left[part], right)

    def __repr__(self) -> str:
        return f"<RankOneVertex: shape {self.shape}, radius {self.radius}>"


class NuclearNormBall(RadiusSet):
    r"""Matrices whose singular values sum to at most r: the convex stand-in for low rank.

    .. math:: \{X \in R^{m \times n} : \sum_i \sigma_i(X) \le r\}

    Parameters
    ----------
    shape : tuple of int
        (m, n).
    radius : float
        r > 0.
    seed : int or sequence of int
        Of the vector that the iterative decomposition begins with.

    Notes
    -----
    A vertex is r u vᵀ for unit vectors u, v. The oracle needs the leading pair of singular vectors
    only: by the Lanczos method (scipy's ``svds``), a few products of the direction with a vector,
    where a projection needs all of them.

    Examples
    --------
    >>> import numpy as np, fastfw as fw
    >>> ball = fw.NuclearNormBall((2, 3), radius=2.0)
    >>> ball.lmo([[0.0, 3.0, 0.0], [1.0, 0.0, 0.0]]).toarray() + 0.0
    array([[ 0., -2.,  0.],
           [ 0.,  0.,  0.]])
    >>> ball.project(np.diag([3.0, 1.0]) @ np.eye(2, 3)).round(12) + 0.0
    array([[2., 0., 0.],
           [0., 0., 0.]])
    """

    _shape: tuple[int, int]

    def __init__(
        self, shape: tuple[int, int], radius: float, seed: int | tuple[int, ...] = 0
    ) -> None:
        super().__init__(pair_of(shape, "(m, n)"), radius)
        self._seed = check_seed(seed)
        self._first = np.random.default_rng(self._seed).standard_normal(min(self._shape))

    @property
    def warm_starts(self) -> bool:
        """Whether the oracle can make use of an earlier answer: where it iterates."""
        return min(self._shape) > _DENSE

    @property
    def seed(self) -> int | tuple[int, ...]:
        """Seed of the vector that the iterative decomposition begins with."""
        return self._seed

    def random_point(self, rng: np.random.Generator) -> FloatArray:
        """Return a random point inside: a Gaussian matrix with nuclear norm r/2."""
        x = rng.standard_normal(self._shape)
        norm = float(np.linalg.svd(x, compute_uv=False).sum())
        return x * (0.5 * self._radius / norm)

    def lmo(self, direction: npt.ArrayLike, start: RankOneVertex | None = None) -> RankOneVertex:
        """-r u vᵀ for the leading singular vectors u, v; for zero, -r in the first entry.

        O(m n) time per product with a vector, 20 products and more. Where m or n is 64 at most,
        a dense decomposition is made, in O(m n min(m, n)).

        Parameters
        ----------
        direction : array_like, shape (m, n)
            See `ConvexSet.lmo`.
        start : RankOneVertex, optional
            A warm start: a vertex found for a direction like this one. Without it the decomposition
            begins with a vector drawn from the seed, so that the vertex is a function of the
            direction alone. A hundredth of that vector is in a warm start too, so that whatever the
            start, ⟨direction, v⟩ is the least over the set to a relative 1e-12. `ORGFW`, `OSFW`,
            `OFW`, `OAW` and `RegularizedOFW` give the vertex of the round before, and save it.
        """
        g = self._direction(direction)
        begin: Any = start
        if start is not None and (type(begin) is not RankOneVertex or begin.shape != self._shape):
            raise TypeError(
                "start must be a vertex of this set, such as lmo returns, but it is "
                f"{describe(start)}"
            )
        small, _ = normalise(g)
        if small.any():
            left, right = self._leading(small, start)
        else:
            left, right = np.zeros(self._shape[0]), np.zeros(self._shape[1])
            left[0] = right[0] = 1.0
        return RankOneVertex(-left, right, self._radius, g.dtype)

    def _leading(
        self, g: npt.NDArray[np.float64], start: RankOneVertex | None
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Leading pair of singular vectors."""
        if min(self._shape) > _DENSE:
            from scipy.sparse.linalg import ArpackError, svds

            first = self._first
            if start is not None:
                near = start.left if self._shape[0] < self._shape[1] else start.right
                unit = np.linalg.norm(near) or 1.0  # one, but that it may come from a file
                first = near / unit + _FRESH / np.linalg.norm(first) * first
            try:
                u, _, vt = svds(g, k=1, v0=first)
                return u[:, 0], vt[0]
            except ArpackError:
                pass  # it did not converge: leading singular values very close to each other
        u, _, vt = np.linalg.svd(g, full_matrices=False)
        return u[:, 0], vt[0]

    def project(self, x: npt.ArrayLike) -> FloatArray:
        """Return the nearest point of the set, a new array: the singular values soft-thresholded.

        O(m n min(m, n)) time, for a full decomposition: far more than the oracle's on large shapes.
        """
        point = self._projectable(x)
        small, unit = normalise(point)
        u, s, vt = np.linalg.svd(small, full_matrices=False)
        radius = self._radius / unit
        if s.sum() <= radius:
            return point.copy()
        return np.asarray((u * project_simplex(s, radius)) @ vt * unit, point.dtype)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        small, unit = normalise(point)
        norm = float(np.linalg.svd(small, compute_uv=False).sum())
        return norm <= self._radius * (1.0 + tol) / unit

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> RankOneVertex:
        """Return the vertex of a code."""
        m = self._shape[0]
        return RankOneVertex(code[:m], code[m:], self._radius, dtype)

    def _parameters(self) -> dict[str, Any]:
        seed = {"seed": self._seed} if self._seed != 0 else {}
        return {**super()._parameters(), **seed}
