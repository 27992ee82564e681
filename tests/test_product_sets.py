"""L1 balls of vectors and products of sets."""

import math

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from learner_cases import Corners

BALL = fw.L1Ball(4, radius=2.0)
PRODUCT = fw.ProductSet(
    {"W": fw.RowL1Ball((2, 3), radius=3.0), "b": fw.L1Ball(2, radius=1.0), "c": fw.L1Ball(1, 5.0)}
)


# --- vectors --------------------------------------------------------------------------------------


def test_ball_is_a_row_ball_of_one_row():
    rng = np.random.default_rng(0)
    rows = fw.RowL1Ball((1, 4), radius=2.0)
    for x in rng.standard_normal((50, 4)) * 3:
        assert np.array_equal(BALL.lmo(x).toarray(), rows.lmo(x[None]).toarray()[0])
        assert np.array_equal(BALL.project(x), rows.project(x[None])[0])
        assert np.abs(BALL.project(x) - ref.project_l1(x, 2.0)).max() <= 1e-14
        assert BALL.contains(x) == (np.abs(x).sum() <= 2.0)
    assert BALL.shape == (4,)
    assert (BALL.radius, BALL.diameter) == (2.0, 4.0)
    assert np.array_equal(BALL.start(np.float32), np.zeros(4, np.float32))


# --- products -------------------------------------------------------------------------------------


def test_oracle_acts_block_by_block():
    rng = np.random.default_rng(1)
    for g in rng.standard_normal((30, 9)):
        v = PRODUCT.lmo(g)
        parts = [
            ref.lmo(g[:6].reshape(2, 3), 3.0).ravel(),
            ref.lmo(g[None, 6:8], 1.0)[0],
            ref.lmo(g[None, 8:], 5.0)[0],
        ]
        assert np.array_equal(v.toarray(), np.concatenate(parts))
        assert isinstance(v.parts["W"], fw.RowVertex)
        assert isinstance(v.parts["b"], fw.L1Vertex)
        assert PRODUCT.contains(v.toarray())


def test_projection_and_membership_are_those_of_the_blocks():
    rng = np.random.default_rng(2)
    for x in rng.standard_normal((30, 9)) * 4:
        parts = [ref.project(x[:6].reshape(2, 3), 3.0).ravel()]
        parts += [ref.project_l1(x[6:8], 1.0), ref.project_l1(x[8:], 5.0)]
        p = PRODUCT.project(x)
        assert np.abs(p - np.concatenate(parts)).max() <= 1e-14
        assert PRODUCT.contains(p)
    assert not PRODUCT.contains([0, 0, 0, 0, 0, 0, 2, 0, 0])
    assert not PRODUCT.contains(np.zeros(8))


def test_blocks_are_views_and_join_is_their_inverse():
    x = np.arange(9.0)
    blocks = PRODUCT.blocks(x)
    assert {name: b.shape for name, b in blocks.items()} == {"W": (2, 3), "b": (2,), "c": (1,)}
    assert all(np.shares_memory(b, x) for b in blocks.values())
    assert np.array_equal(PRODUCT.join(blocks), x)
    assert np.array_equal(PRODUCT.start(), np.zeros(9))
    assert PRODUCT.diameter == pytest.approx(math.sqrt(72 + 4 + 100), rel=1e-15)


def test_sequences_and_equality():
    sets = [fw.L1Ball(2, 1.0), fw.L1Ball(3, 1.0)]
    product = fw.ProductSet(sets)
    assert list(product.sets) == ["0", "1"]
    assert product == fw.ProductSet({"0": sets[0], "1": sets[1]})
    assert hash(product) == hash(fw.ProductSet(tuple(sets)))
    assert product != fw.ProductSet(sets[::-1])
    assert product != sets
    assert fw.L1Ball(2, 1.0) != fw.L1Ball(2, 2.0)


def test_sets_of_ones_own():
    M = fw.ProductSet({"p": Corners(), "b": fw.L1Ball(2, 1.0)})
    assert np.array_equal(M.start(), [1, 0, 0, 0, 0])
    assert np.array_equal(M.lmo([3.0, 1.0, 2.0, 0.0, 1.0]).toarray(), [0, 1, 0, 0, -1])
    assert M.contains([9, 9, 9, 0, 0])
    assert not hasattr(M, "project")
    with pytest.raises(AttributeError, match="'p' has no projection"):
        M.project(np.zeros(5))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: fw.ProductSet({}), ValueError, "empty"),
        (lambda: fw.ProductSet("ab"), TypeError, "mapping"),
        (lambda: fw.ProductSet({1: BALL}), TypeError, "strings"),
        (lambda: fw.ProductSet({"a": 3}), TypeError, "block 'a' must have shape"),
        (lambda: PRODUCT.lmo(np.zeros(8)), ValueError, r"shape \(9,\)"),
        (lambda: PRODUCT.lmo([0] * 7 + [np.nan, 0]), ValueError, r"direction\[7\] is nan"),
        (lambda: PRODUCT.lmo([np.inf] + [0] * 8), ValueError, r"direction\[0\] is inf"),
        (lambda: PRODUCT.project([0] * 8 + [np.nan]), ValueError, r"x\[8\] is nan"),
        (lambda: PRODUCT.blocks(np.zeros(3)), ValueError, r"x must have shape \(9,\)"),
        (lambda: PRODUCT.join({"W": np.zeros((2, 3))}), ValueError, "blocks must be"),
        (
            lambda: PRODUCT.join({"W": np.zeros((3, 2)), "b": [0, 0], "c": [0]}),
            ValueError,
            r"block 'W' must have shape \(2, 3\)",
        ),
    ],
)
def test_bad_products(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


# --- ties and random points -----------------------------------------------------------------------


def test_random_ties():
    """One of the largest entries, always the same, different in other rows and for other seeds."""
    g = np.array([[1.0, -2.0, 2.0, 0.5, -2.0, 2.0]] * 40)
    chosen = []
    for seed in (0, 1, (0, 1)):
        ball = fw.RowL1Ball(g.shape, 1.0, ties="random", seed=seed)
        v = ball.lmo(g)
        assert np.array_equal(v.values, np.where(g[0, v.indices] > 0, -1.0, 1.0))
        assert set(v.indices.tolist()) == {1, 2, 4, 5}
        assert np.array_equal(ball.lmo(g).indices, v.indices)
        chosen.append(tuple(v.indices.tolist()))
    assert len(set(chosen)) == 3


def test_random_ties_leave_single_largest_entries_alone():
    rng = np.random.default_rng(0)
    first, other = (fw.RowL1Ball((7, 5), 2.0, ties=ties) for ties in ("first", "random"))
    for g in rng.standard_normal((20, 7, 5)):
        assert np.array_equal(first.lmo(g).toarray(), other.lmo(g).toarray())
    vector = fw.L1Ball(3, 2.0, ties="random", seed=1)
    assert {vector.lmo(np.zeros(3)).value} == {-2.0}
    assert (vector.ties, vector.seed) == ("random", 1)
    assert first.ties == "first"


def test_ties_are_part_of_a_set():
    ball = fw.RowL1Ball((2, 3), 1.0, ties="random", seed=3)
    assert ball != fw.RowL1Ball((2, 3), 1.0)
    assert ball != fw.RowL1Ball((2, 3), 1.0, ties="random")
    assert ball == fw.RowL1Ball((2, 3), 1.0, ties="random", seed=3)
    assert hash(ball) == hash(fw.RowL1Ball((2, 3), 1.0, ties="random", seed=3))
    assert fw.RowL1Ball((2, 3), 1.0, seed=3) == fw.RowL1Ball((2, 3), 1.0)
    assert repr(ball).endswith("ties='random', seed=3)")
    assert repr(fw.L1Ball(2, 1.0, "random", 5)).endswith("ties='random', seed=5)")
    with pytest.raises(ValueError, match="ties must be 'first' or 'random'"):
        fw.L1Ball(2, 1.0, ties="last")


def test_random_points_lie_inside():
    rng = np.random.default_rng(0)
    x = PRODUCT.blocks(PRODUCT.random_point(rng))
    assert np.abs(np.abs(x["W"]).sum(axis=1) - 1.5).max() <= 1e-15
    assert abs(np.abs(x["b"]).sum() - 0.5) <= 1e-15
    M = fw.ProductSet([Corners(), BALL])
    point = M.random_point(rng)
    assert point[:3].min() > 0
    assert abs(point[:3].sum() - 1) <= 1e-15
