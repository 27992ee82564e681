"""What feasible sets share: checks of what is given, start and random points, equality."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import (
    FloatArray,
    float_dtype,
    in_range,
    positive_float,
    positive_int,
    real_array,
)
from fastfw.sets._accept import accept, dense_vertex, diameter_of
from fastfw.sets._vertex import DenseVertex, Vertex

_FLOAT64 = np.dtype(np.float64)
_SCALING = "multiply the radius by a factor and divide X by it"

# A point inside a set that has no ``random_point`` is the mean of so many vertices.
_VERTICES = 32


def random_vertex(set: Any, rng: np.random.Generator) -> FloatArray:
    """Return the vertex of a Gaussian direction, dense."""
    return dense_vertex(set, rng.standard_normal(tuple(set.shape)))


def point_inside(set: Any, rng: np.random.Generator) -> FloatArray:
    """Return the set's ``random_point``, or where it has none the mean of random vertices."""
    if hasattr(set, "random_point"):
        found = set.random_point(rng)
        return accept(found, tuple(set.shape), "set.random_point", np.float64)
    mean: FloatArray = np.mean([random_vertex(set, rng) for _ in range(_VERTICES)], axis=0)
    return mean


def shape_of(shape: int | Sequence[int]) -> tuple[int, ...]:
    """Return the shape of points: a tuple of positive integers, one for a plain integer."""
    if isinstance(shape, int | np.integer) and not isinstance(shape, bool):
        return (positive_int(shape, "shape"),)
    try:
        given = tuple(shape)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(
            f"shape must be an integer or a tuple of integers, but it is {shape!r}"
        ) from None
    if not given:
        raise ValueError("shape is empty: points need one axis at least")
    return tuple(positive_int(n, f"shape[{i}]") for i, n in enumerate(given))


def pair_of(shape: Any, names: str) -> tuple[int, int]:
    """Return the shape of matrices, a pair of positive integers."""
    try:
        m, n = shape
    except (TypeError, ValueError):
        raise ValueError(f"shape must be a pair {names}, but it is {shape!r}") from None
    return positive_int(m, "shape[0]"), positive_int(n, "shape[1]")


def radius_of(radius: float) -> float:
    """Return a radius that is positive and that float64 can compute with."""
    return in_range(positive_float(radius, "radius"), "radius", _FLOAT64, _SCALING)


def require_dtype(set: Any, dtype: np.dtype[Any]) -> None:
    """Refuse a set whose points a dtype cannot hold; sets of one's own are known by a diameter."""
    if isinstance(set, ConvexSet):
        set._require(dtype)
    elif dtype != _FLOAT64 and (diameter := diameter_of(set)) > 0.0:
        in_range(diameter, "set.diameter", dtype, "scale the data")


def tolerance(dtype: np.dtype[Any], size: int) -> float:
    """Return how far outside, relative to the set, points of so many entries count as inside.

    1e-9 + 8 eps (16 + log2 size), for the eps of the dtype: what rounding may do to a point of the
    set that was computed in that dtype.

    - Entries rounded once (a start, a vertex, a projection) change sums and norms by eps/2 at most,
      sums of k singular values by √k eps/2.
    - A step (1 - eta) x + eta v rounds three times and takes the part 1 - eta of earlier errors
      along. With steps 1/t these add up to at most (3/4) t eps in round t, and to some √t eps where
      they differ in sign; 128 eps are the worst of 170 rounds, and the usual of 10,000.
    - A sum in the dtype by which a point was normalised adds eps/2 for each halving: log2 size.
    """
    eps = float(np.finfo(dtype).eps)
    return 1e-9 + 8.0 * eps * (16.0 + math.log2(size))


class ConvexSet(ABC):
    """Base of the feasible sets; learners take any object with shape, lmo, diameter as well.

    Its own sets raise a TypeError or a ValueError that names an argument that cannot be used.
    A subclass gives ``_shape``, ``diameter``, `lmo`, ``_contains``, ``_parameters``, and `start`
    where that is not zeros; ``project(x)`` where a projection is cheap.
    """

    _shape: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the set's points."""
        return self._shape

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest Euclidean distance of two points."""

    @abstractmethod
    def lmo(self, direction: npt.ArrayLike) -> Vertex:
        """Linear minimisation oracle: a vertex v that minimises ⟨direction, v⟩.

        Parameters
        ----------
        direction : array_like, shape of the set
            Any finite direction; not changed.

        Returns
        -------
        Vertex
            Structured; ``np.asarray`` makes it dense. float32 where the direction is, else float64.
            The same for equal directions.

        Raises
        ------
        TypeError, ValueError
            If the direction is not finite real numbers of the set's shape.
        """

    def contains(self, x: npt.ArrayLike, tol: float | None = None) -> bool:
        """Tell whether x lies in the set, up to a tolerance relative to the set's size.

        Parameters
        ----------
        x : array_like
            What is no finite point of the set's shape lies outside.
        tol : float, optional
            Norms may be r (1 + tol), sums r (1 ± tol) and nonnegative entries -tol r, with r = 1
            for flows and doubly stochastic matrices. By default what rounding takes to compute a
            point in x's dtype: 1e-9 + 8 eps (16 + log2 n) for n entries, with eps = 1.2e-7 for
            float32 and 2.2e-16 for all others.

        Returns
        -------
        bool
        """
        try:
            point = point_of(x, self._shape, "x")
        except (TypeError, ValueError):
            return False
        if not np.isfinite(point).all():
            return False
        tol = tolerance(point.dtype, point.size) if tol is None else tol
        with np.errstate(over="ignore"):  # an infinite norm is outside, too
            return self._contains(point.astype(np.float64, copy=False), tol)

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        """Tell whether a finite point of the set's shape lies in the set, up to a tolerance."""
        raise NotImplementedError(f"{type(self).__name__} has no contains")

    def start(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Return the point where learners start: zeros, unless a set says otherwise."""
        return np.zeros(self._shape, self._dtype(dtype))

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> Vertex:
        """Return the vertex whose ``code`` this is, of a dtype."""
        return DenseVertex(code.astype(dtype).reshape(self._shape))

    @abstractmethod
    def _parameters(self) -> dict[str, Any]:
        """Arguments that make an equal set."""

    def to_json(self) -> dict[str, Any] | None:
        """Return the arguments as JSON holds them; None where it cannot."""
        return self._parameters()

    def _require(self, dtype: np.dtype[Any]) -> None:
        """Refuse a dtype that cannot hold the set's points."""
        radius = getattr(self, "radius", None)
        if isinstance(radius, float):
            in_range(radius, "radius", dtype, _SCALING)

    def _dtype(self, dtype: npt.DTypeLike) -> np.dtype[Any]:
        """Return the dtype of a point that is to be made, checked."""
        real = float_dtype(dtype)
        self._require(real)
        return real

    def _given(self, x: npt.ArrayLike, name: str) -> FloatArray:
        """Return a given point if its dtype can hold the answer, too."""
        point = point_of(x, self._shape, name)
        if point.itemsize < 8:
            self._require(point.dtype)
        return point

    def _direction(self, direction: npt.ArrayLike) -> FloatArray:
        """Return a finite direction of the set's shape."""
        return finite(self._given(direction, "direction"), "direction", OVERFLOW)

    def _projectable(self, x: npt.ArrayLike) -> FloatArray:
        """Return a finite point of the set's shape, to be projected."""
        return finite(self._given(x, "x"), "x", "only finite points have a projection")

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._parameters().items())
        return f"{type(self).__name__}({given})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._parameters() == other._parameters()

    def __hash__(self) -> int:
        return hash((type(self).__name__, *self._parameters().items()))


class RadiusSet(ConvexSet):
    """A set that a radius scales."""

    def __init__(self, shape: tuple[int, ...], radius: float) -> None:
        self._shape = shape
        self._radius = radius_of(radius)

    @property
    def radius(self) -> float:
        """Size of the set, r."""
        return self._radius

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points, 2 r."""
        return 2.0 * self._radius

    def _parameters(self) -> dict[str, Any]:
        return {"shape": self._shape, "radius": self._radius}


def point_of(x: npt.ArrayLike, shape: tuple[int, ...], name: str) -> FloatArray:
    """Return what is given to a set as a C-contiguous float array of its shape."""
    array = real_array(x, name)
    if array.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, but it has {array.shape}")
    single = array.dtype.newbyteorder("=") == np.float32
    with np.errstate(over="ignore"):  # what float64 cannot hold is found to be infinite
        return np.require(array, np.float32 if single else np.float64, ["C", "A", "W"])


def finite(g: FloatArray, name: str, why: str) -> FloatArray:
    """Refuse an array that holds NaN or infinity."""
    if not np.isfinite(g).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(g))[0])
        raise ValueError(f"{name}[{', '.join(map(str, where))}] is {g[where]}; {why}")
    return g


#: What to do about a direction that is not finite.
OVERFLOW = "a direction must be finite: look for the overflow or NaN where it was computed"


def normalise(x: FloatArray) -> tuple[npt.NDArray[np.float64], float]:
    """Return x / unit in float64 and the unit, a power of two near the largest entry.

    Its squares neither overflow nor all vanish, and nothing is rounded. The unit of zero is 1.
    """
    wide = x.astype(np.float64)
    top = float(np.abs(wide).max())
    exponent = math.frexp(top)[1] - 1 if top > 0.0 else 0
    return np.ldexp(wide, -exponent), math.ldexp(1.0, exponent)


def norm(x: FloatArray) -> float:
    """Euclidean norm, for entries of any size."""
    small, unit = normalise(x)
    return float(np.linalg.norm(small)) * unit
