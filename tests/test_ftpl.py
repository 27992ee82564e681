"""Noise, perturbed argmin and sweeps of base and meta learners."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import fastfw as fw
import reference as ref
from fastfw.kernels import ftpl, meta, rng, sub_batches

KINDS = {"uniform": 0, "gaussian": 1, "exponential": 2, "gumbel": 3}
LAWS = {
    "uniform": stats.uniform(-0.5, 1.0),
    "gaussian": stats.norm(),
    "exponential": stats.expon(),
    "gumbel": stats.gumbel_r(),
}
NOISES = pytest.mark.parametrize("noise", list(KINDS))
SIZE = 20_000


def draw(noise, size, *, seed=7, t=3, k=2):
    return fw.FTPL(noise=noise).perturbation((size,), t=t, k=k, seed=seed)


# --- noise ----------------------------------------------------------------------------------------


def test_hash_is_splitmix64():
    """The outputs of SplitMix64 from state 1234567, as its authors' program prints them."""
    wanted = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [int(rng.hashed(np.uint64(1234567), i)) for i in range(4)] == wanted

    out = np.empty(4)
    ftpl.fill(0, np.uint64(1234567), 0, out)
    np.testing.assert_array_equal(out, [(w >> 12) * 2.0**-52 - 0.5 for w in wanted])


@NOISES
def test_distribution(noise):
    """Kolmogorov-Smirnov at the 1 % level, and moments within four standard errors."""
    x, law = draw(noise, SIZE), LAWS[noise]
    assert stats.kstest(x, law.cdf).pvalue > 0.01
    standard = (x - law.mean()) / law.std()
    fourth = float(law.stats(moments="k")) + 3.0
    assert abs(standard.mean()) < 4.0 / math.sqrt(SIZE)
    assert abs((standard**2).mean() - 1.0) < 4.0 * math.sqrt((fourth - 1.0) / SIZE)


def test_bounds_hold_at_the_ends_of_the_range():
    """The extreme draws are those of bits that are all zeros or all ones."""
    low, high = float(rng.unit(np.uint64(0))), float(rng.unit(np.uint64(2**64 - 1)))
    assert (low, high) == (0.0, 1.0 - 2.0**-52)
    uniform, gaussian, exponential, gumbel = ftpl.BOUNDS
    assert uniform == 0.5
    assert math.sqrt(-2.0 * math.log(1.0 - high)) < gaussian
    assert -math.log(1.0 - high) < exponential
    assert -math.log(-math.log(high + 2.0**-53)) < gumbel
    assert math.log(-math.log(low + 2.0**-53)) < gumbel


@NOISES
def test_draws_of_one_round_are_independent_of_others(noise):
    """Neighbouring entries, inner steps, rounds and seeds are not correlated."""
    x = draw(noise, SIZE)
    others = [
        np.roll(x, 1),
        draw(noise, SIZE, k=3),
        draw(noise, SIZE, t=4),
        draw(noise, SIZE, t=2, k=3),
        draw(noise, SIZE, seed=8),
        draw(noise, SIZE, seed=(7, 1)),
    ]
    for y in others:
        assert abs(np.corrcoef(x, y)[0, 1]) < 4.0 / math.sqrt(SIZE)


@NOISES
def test_noise_is_a_pure_function(noise):
    whole = draw(noise, 300)
    np.testing.assert_array_equal(draw(noise, 40), whole[:40])
    own = rng.key(np.uint64(5), rng.NOISE, 3, 2)
    ordered, part = np.empty(300), np.empty(10)
    ftpl.fill(KINDS[noise], own, 0, ordered)
    for first in (290, 0, 123):
        ftpl.fill(KINDS[noise], own, first, part)
        np.testing.assert_array_equal(part, ordered[first : first + 10])
        single = [ftpl.noise(KINDS[noise], own, first + i) for i in range(10)]
        np.testing.assert_allclose(single, part, rtol=1e-15)


def test_sub_batches_are_uniform():
    picked = np.empty(SIZE, np.intp)
    rng.draw_rows(np.uint64(3), 1, 1, 10, picked)
    assert picked.min() == 0
    assert picked.max() == 9
    assert stats.chisquare(np.bincount(picked)).pvalue > 0.01


# --- perturbed argmin -----------------------------------------------------------------------------


def answers(S, d, rate, kind, skip, seed=9, t=4):
    K, n_classes = S.shape[:2]
    index, value = np.zeros((K, n_classes), np.intp), np.zeros((K, n_classes))
    meta.answers(S, d, rate, kind, np.uint64(seed), t, 2.0, skip, index, value)
    return index, value


@NOISES
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("d", [1, 5, 64, 100, 131])
def test_skipping_draws_changes_no_vertex(noise, dtype, d):
    rng = np.random.default_rng(1)
    S = rng.normal(size=(3, 2, d)).astype(dtype)
    S[1] = 0.0
    for rate in (0.1, 1.0, 30.0):
        every = answers(S, d, rate, KINDS[noise], False)
        skipped = answers(S, d, rate, KINDS[noise], True)
        for a, b in zip(every, skipped, strict=True):
            np.testing.assert_array_equal(a, b)
        for k in range(3):
            bits = np.empty(2 * d)
            ftpl.draw(KINDS[noise], np.uint64(9), 4, k + 1, bits)
            perturbed = rate * S[k].astype(np.float64) + bits.reshape(2, d)
            index, value = ref.lmo_parts(perturbed, 2.0)
            np.testing.assert_array_equal(every[0][k], index)
            np.testing.assert_array_equal(every[1][k], value)


def test_draws_are_skipped():
    """Where one entry towers over the rest, the blocks without it are not drawn."""
    d = 5 * ftpl.BLOCK
    row, tops, noisy = np.zeros(d), np.empty(5), np.full(ftpl.BLOCK, -7.0)
    row[3 * ftpl.BLOCK + 2] = -40.0
    ftpl.block_tops(row, tops)
    np.testing.assert_array_equal(tops, [0.0, 0.0, 0.0, 40.0, 0.0])
    own = np.uint64(1)
    found = ftpl.first_largest_perturbed(row, tops, 1.0, 0, own, 0, True, noisy)
    assert found == (3 * ftpl.BLOCK + 2, False)
    last_drawn = np.empty(ftpl.BLOCK)
    ftpl.fill(0, own, 3 * ftpl.BLOCK, last_drawn)
    last_drawn[2] -= 40.0
    np.testing.assert_array_equal(noisy, last_drawn)


def test_lowest_index_wins_ties():
    """The leading block is searched first, an equal entry before it still wins."""
    d = 3 * ftpl.BLOCK
    row, tops, noisy = np.zeros(d), np.empty(3), np.empty(ftpl.BLOCK)
    own = np.uint64(4)
    drawn = np.empty(d)
    ftpl.fill(0, own, 0, drawn)
    # entries that end at exactly 8 and -8, with their leader in the last block
    low, high = 10, 2 * ftpl.BLOCK + 5
    row[low], row[high] = 8.0 - drawn[low], -8.0 - drawn[high]
    assert row[low] + drawn[low] == -(row[high] + drawn[high]) == 8.0
    for first, second, positive in ((row[low], row[high], True), (row[high], row[low], False)):
        row[low], row[high] = first, second
        if not positive:
            row[low], row[high] = -8.0 - drawn[low], 8.0 - drawn[high]
        ftpl.block_tops(row, tops)
        found = ftpl.first_largest_perturbed(row, tops, 1.0, 0, own, 0, True, noisy)
        assert found == (low, positive)


# --- sweeps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 5, 6, 8, 9])
@pytest.mark.parametrize("size", [1, 3, 4, 7])
def test_sweep(n_classes, size):
    """Estimator, sum and block maxima in one pass, for every tile width and group of samples."""
    rng, dtype = np.random.default_rng(2), np.float64
    d, longer = 71, 75
    A = rng.normal(size=(9, d)).astype(dtype)
    block = rng.integers(0, 9, size)
    R = np.zeros((n_classes, 12), dtype)
    R[:, 4 : 4 + size] = rng.normal(size=(n_classes, size))
    D = rng.normal(size=(n_classes, longer)).astype(dtype)
    S = rng.normal(size=(3 * n_classes, longer)).astype(dtype)
    wanted_D, wanted_S = D.copy(), S.copy()
    wanted_D[:, :d] = 0.25 * D[:, :d] + R[:, 4 : 4 + size] @ A[block]
    wanted_S[n_classes : 2 * n_classes, :d] += wanted_D[:, :d]
    tops, group = np.empty((n_classes, 2), dtype), np.empty((n_classes, 8), dtype)
    keep = dtype(0.25)
    sub_batches._sweep(A, block, R, 4, keep, D, S, n_classes, tops, group, block[:0])
    tolerance = 20 * np.finfo(dtype).eps
    np.testing.assert_allclose(D, wanted_D, rtol=0, atol=tolerance)
    np.testing.assert_allclose(S, wanted_S, rtol=0, atol=tolerance)
    own = np.abs(S[n_classes : 2 * n_classes, :d])
    np.testing.assert_array_equal(tops[:, 0], own[:, :64].max(axis=1))
    np.testing.assert_array_equal(tops[:, 1], own[:, 64:].max(axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [1, 50, 97])
def test_sparse_gradients(dtype, n):
    from fastfw.learners._meta_engine import _product

    rng = np.random.default_rng(3)
    d, lanes = 13, 70
    for density in (0.0, 0.2, 1.0):
        A = (rng.normal(size=(n, d)) * (rng.random((n, d)) < density)).astype(dtype)
        R = rng.normal(size=(lanes, n)).astype(dtype)
        G = np.full((lanes, d), np.nan, dtype)
        product, _ = _product(np.ascontiguousarray(A.T))
        for rows in (lanes, 3):
            product(R[:rows], G[:rows])
            tolerance = 100 * n * np.finfo(dtype).eps
            np.testing.assert_allclose(G[:rows], R[:rows] @ A, rtol=0, atol=tolerance)


def test_decision_is_the_last_inner_point():
    rng = np.random.default_rng(4)
    start = rng.normal(size=(2, 5))
    index = rng.integers(0, 5, (7, 2))
    value = np.where(rng.random((7, 2)) < 0.5, -2.0, 2.0)
    for eta in (rng.random(7), np.zeros(7), np.array([0.5, 1.0, 0.2, 0.0, 0.9, 0.1, 0.3])):
        wanted = start
        for k in range(7):
            v = np.zeros((2, 5))
            v[np.arange(2), index[k]] = value[k]
            wanted = (1.0 - eta[k]) * wanted + eta[k] * v
        x = np.empty((2, 5))
        meta.decision(start, eta, index, value, x)
        np.testing.assert_allclose(x, wanted, rtol=0, atol=1e-15)


def test_loss_at_sparse_and_dense_points():
    rng = np.random.default_rng(5)
    A, y = rng.normal(size=(90, 40)), rng.integers(0, 3, 90)
    rows = rng.integers(0, 90, 75)
    for nonzero in (0, 2, 12, 120):
        x = np.zeros((3, 40))
        x.reshape(-1)[rng.permutation(120)[:nonzero]] = rng.normal(size=nonzero)
        wanted = ref.loss(x, A[rows], y[rows], "sum")
        assert sub_batches.batch_loss(A, y, rows, x) == pytest.approx(wanted, rel=1e-13)


@pytest.mark.parametrize("where", [{"t": 1.5}, {"t": 0}, {"t": -1}, {"k": 0}, {"t": "1"}])
def test_perturbations_of_rounds_that_do_not_exist_are_refused(where):
    with pytest.raises((TypeError, ValueError), match="must be an integer >= 1"):
        fw.FTPL().perturbation((3,), **{"t": 1, **where})


@pytest.mark.parametrize("where", [(0, 1, 5), (1, 0, 5), (1, 1, 0), (1, 1, -3), ("a", 1, 5)])
def test_sub_batches_that_do_not_exist_are_refused(where):
    learner = fw.MORGFW(
        fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), 1.0), rounds=3, sub_batch_size=2
    )
    with pytest.raises((TypeError, ValueError), match="must be an integer >= 1"):
        learner.sub_batch(*where)
