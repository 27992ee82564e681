"""The row-l1 ball: oracle against all vertices, projection, vertices as arrays."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import fastfw as fw
import reference as ref
from set_cases import l1_vertices
from sizes import quick

directions = hnp.arrays(
    st.sampled_from([np.float64, np.float32]),
    st.tuples(st.integers(1, 3), st.integers(1, 4)),
    elements=st.one_of(
        st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0]), st.floats(-8, 8, width=32)
    ),
)


# --- the oracle -----------------------------------------------------------------------------------


@quick
@given(directions)
@example(np.zeros((2, 3)))
@example(np.full((1, 4), -0.0, np.float32))
@example(np.array([[1.0, -1.0], [-2.0, 2.0]]))
def test_oracle_finds_the_best_of_all_vertices(g):
    ball = fw.RowL1Ball(g.shape, radius=2.0)
    before = g.copy()
    v = ball.lmo(g)
    assert np.array_equal(g, before)
    dense = np.asarray(v)
    assert dense.dtype == g.dtype
    wide = g.astype(np.float64)
    least = min(float((wide * other).sum()) for other in l1_vertices(ball))
    assert float((wide * dense).sum()) == least
    # a vertex, the first that ties
    assert np.array_equal(np.abs(dense).sum(axis=1), np.full(len(g), 2.0))
    assert np.array_equal(v.indices, np.argmax(np.abs(g), axis=1))
    assert np.array_equal(dense, ref.lmo(g, 2.0))


def test_ties_go_to_the_first_and_zero_counts_as_positive():
    ball = fw.RowL1Ball((4, 3), radius=1.0)
    v = ball.lmo([[-1.0, 1.0, 1.0], [0.0, -0.0, 0.0], [-0.0, -0.0, -0.0], [0.5, -2.0, 2.0]])
    assert v.indices.tolist() == [0, 0, 0, 1]
    assert v.values.tolist() == [1.0, -1.0, -1.0, 1.0]


# --- projection -----------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [1e-310, 5e-324, 2.2e-308])
def test_subnormal_radii_are_refused(radius):
    with pytest.raises(ValueError, match=r"radius must be at least 2\.23e-308, .* but it is "):
        fw.RowL1Ball((2, 3), radius)
    assert fw.RowL1Ball((2, 3), 2.3e-308).radius == 2.3e-308


def exact_projection(row, radius):
    """The projection in rational numbers: shrink to the threshold of the longest prefix."""
    row, radius = [Fraction(float(z)) for z in row], Fraction(radius)
    u = sorted((abs(z) for z in row), reverse=True)
    if sum(u) <= radius:
        return [float(z) for z in row]
    prefix, theta = Fraction(0), None
    for k, largest in enumerate(u, start=1):
        prefix += largest
        if largest > (prefix - radius) / k:
            theta = (prefix - radius) / k
    shrunk = [max(abs(z) - theta, Fraction(0)) for z in row]
    return [math.copysign(float(s), z) for s, z in zip(shrunk, row, strict=True)]


finite = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5]),
    st.floats(-4, 4, width=32),
    st.floats(-(2.0**60), 2.0**60, width=32),
)


@quick
@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32]),
        st.tuples(st.integers(1, 4), st.integers(1, 9)),
        elements=finite,
    ),
    st.sampled_from([0.25, 1.0, 3.0]),
)
@example(np.array([[1e17, 0.0, -1e17], [1e17, 1.0, 0.0]]), 1.0)
@example(np.array([[1e8, 0.0, 3.0]], np.float32), 1.0)
@example(np.array([[1.0, -1.0, 1.0, 1.0]]), 1.0)
def test_projection(x, radius):
    ball = fw.RowL1Ball(x.shape, radius=radius)
    before = x.copy()
    p = ball.project(x)
    assert np.array_equal(x, before)
    assert p.dtype == x.dtype
    assert not np.shares_memory(p, x)
    wanted = np.array([exact_projection(row, radius) for row in x])
    # All numbers that are left are at most r away from the largest, and so is what they sum to.
    assert np.abs(p - wanted).max() <= 4 * x.shape[1] * np.finfo(x.dtype).eps * radius
    assert ball.contains(p, tol=4 * x.shape[1] * np.finfo(x.dtype).eps)
    inside = np.array([sum(Fraction(float(abs(z))) for z in row) <= radius for row in x])
    near = np.abs(np.abs(x).sum(axis=1, dtype=np.float64) - radius) <= 1e-5
    assert np.array_equal(p[inside & ~near], x[inside & ~near])


# --- membership, constants, construction ----------------------------------------------------------


def test_contains():
    ball = fw.RowL1Ball((2, 3), radius=2.0)
    assert ball.contains([[1, -1, 0], [0, 0, 2]])
    assert ball.contains([[1, -1, 0.5], [0, 0, 2]], tol=0.25)
    assert not ball.contains([[1, -1, 0.5], [0, 0, 2]], tol=0.2)
    # -128 has no absolute value of its own type
    assert not ball.contains(np.full((2, 3), -128, np.int8))


@pytest.mark.parametrize(
    ("shape", "radius", "error", "message"),
    [
        ((2, 3), 0, ValueError, "radius must be a positive number"),
        ((2, 3), -1.0, ValueError, "radius must be a positive number"),
        ((2, 3), math.nan, ValueError, "radius must be a positive number"),
        ((2, 3), math.inf, ValueError, "radius must be a positive number"),
        ((2, 3), "1", TypeError, "radius must be a positive number"),
        ((2, 3), None, TypeError, "radius"),
        ((2, 3), True, TypeError, "radius"),
        ((2, 0), 1.0, ValueError, r"shape\[1\] must be an integer >= 1"),
        ((-1, 3), 1.0, ValueError, r"shape\[0\]"),
        ((2.0, 3), 1.0, TypeError, r"shape\[0\]"),
        ((2, 3, 4), 1.0, ValueError, "shape must be a pair"),
        (5, 1.0, ValueError, "shape must be a pair"),
    ],
)
def test_bad_constructor_arguments(shape, radius, error, message):
    with pytest.raises(error, match=message):
        fw.RowL1Ball(shape, radius)


def test_equality_and_repr():
    a = fw.RowL1Ball((2, 3), 1)
    assert a == fw.RowL1Ball([2, 3], 1.0)
    assert hash(a) == hash(fw.RowL1Ball((2, 3), 1.0))
    assert a != fw.RowL1Ball((2, 3), 2.0)
    assert a != fw.RowL1Ball((3, 2), 1.0)
    assert a != "ball"
    assert repr(a) == "RowL1Ball(shape=(2, 3), radius=1.0)"
