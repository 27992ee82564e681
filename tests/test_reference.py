"""The reference is checked against definitions: finite differences, enumeration, sums, optimality.

That it is the package's twin, written once more from the paper, the tests of every method see: its
oracle and projection are compared with all vertices and exact numbers in test_sets.py.
"""

import itertools
import math

import numpy as np
import pytest

import fastfw as fw
import learner_cases
import reference as ref
from set_cases import l1_vertices

ONE = ref.power_schedule(1.0, 1.0)
HALF = ref.power_schedule(1.0, 0.5)
ROOT = ref.power_schedule(1.0, 2 / 3)


def make_data(seed=0, n=60, d=5, n_classes=3, rounds=12, batch_size=8):
    """Batches, and a start on the zeros."""
    X, y = learner_cases.make_data(seed, n, d, n_classes)
    rows = np.random.default_rng(seed).integers(0, n, (rounds, batch_size))
    return ref.gather(X, y, rows), np.zeros((n_classes, d))


# --- schedules, problem and set -------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_gradient_by_finite_differences(reduction):
    batches, x = make_data()
    A, y = batches[0]
    W = x + np.random.default_rng(1).normal(size=x.shape)
    g = ref.gradient(W, A, y, reduction)
    h = 1e-6
    for i, j in np.ndindex(W.shape):
        e = np.zeros_like(W)
        e[i, j] = h
        up, down = ref.loss(W + e, A, y, reduction), ref.loss(W - e, A, y, reduction)
        assert g[i, j] == pytest.approx((up - down) / (2 * h), rel=1e-7, abs=1e-8)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_loss_is_minus_log_of_the_own_class(reduction):
    batches, x = make_data()
    A, y = batches[0]
    W = x + np.random.default_rng(2).normal(size=x.shape)
    losses = []
    for a, label in zip(A, y, strict=True):
        weights = [math.exp(w @ a) for w in W]
        losses.append(-math.log(weights[label] / sum(weights)))
    wanted = sum(losses) / (len(y) if reduction == "mean" else 1)
    assert ref.loss(W, A, y, reduction) == pytest.approx(wanted, rel=1e-13)
    value, g = ref.loss_and_gradient(W, A, y, reduction)
    assert value == ref.loss(W, A, y, reduction)
    np.testing.assert_array_equal(g, ref.gradient(W, A, y, reduction))


def test_gap_by_enumeration():
    rng = np.random.default_rng(3)
    x, g = 0.2 * rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    wanted = max((g * (x - v)).sum() for v in l1_vertices(fw.RowL1Ball((2, 3), 1.0)))
    assert ref.frank_wolfe_gap(x, g, 1.0) == pytest.approx(wanted, rel=1e-14)


# --- the stochastic setting -----------------------------------------------------------------------


def test_orgfw_estimate_as_a_sum():
    # Unrolled, d_t = sum_tau prod_{k > tau} (1 - rho_k) (grad_tau - (1 - rho_tau) grad'_tau), with
    # grad' taken at the decision before, and rho_1 = 1.
    batches, x = make_data()
    run = ref.orgfw(x, batches, 2.0, ONE, ROOT)
    rho = [1.0] + [ROOT(t) for t in range(2, 13)]
    for t in range(1, 13):
        total = np.zeros_like(x)
        for tau in range(1, t + 1):
            A, y = batches[tau - 1]
            part = ref.gradient(run.iterates[tau - 1], A, y)
            if tau > 1:
                part = part - (1 - rho[tau - 1]) * ref.gradient(run.iterates[tau - 2], A, y)
            total += math.prod(1 - r for r in rho[tau:t]) * part
        np.testing.assert_allclose(run.directions[t - 1], total, rtol=0, atol=1e-14)


def test_osfw_estimate_as_a_sum():
    batches, x = make_data()
    run = ref.osfw(x, batches, 2.0, ONE, ROOT)
    rho = [ROOT(t) for t in range(1, 13)]
    total = np.zeros_like(x)
    for tau, (A, y) in enumerate(batches, start=1):
        weight = rho[tau - 1] * math.prod(1 - r for r in rho[tau:])
        total += weight * ref.gradient(run.iterates[tau - 1], A, y)
    np.testing.assert_allclose(run.directions[-1], total, rtol=0, atol=1e-15)


def test_ofw_uses_the_gradient_of_all_samples_so_far():
    batches, x = make_data()
    run = ref.ofw(x, batches, 2.0, HALF)
    for t in range(1, 13):
        A = np.concatenate([A for A, _ in batches[:t]])
        y = np.concatenate([y for _, y in batches[:t]])
        wanted = ref.gradient(run.iterates[t - 1], A, y)
        np.testing.assert_allclose(run.directions[t - 1], wanted, rtol=0, atol=1e-15)


def test_oaw_takes_every_kind_of_step_by_its_rule():
    seen = set()
    for seed in range(6):
        batches, x = make_data(seed=seed, n_classes=2, d=3, rounds=40, batch_size=4)
        step = ref.power_schedule(0.5, 2 / 3)
        run = ref.oaw(x, batches, 2.0, step)
        seen |= set(run.kinds)
        n = 0
        active = []  # vertices in the decision, told apart by their bytes
        for t, kind in enumerate(run.kinds):
            x_t, g, to = run.iterates[t], run.directions[t], run.vertices[t]
            v = ref.lmo(g, 2.0)
            gain_towards = (g * (x_t - v)).sum()
            away = max(((g * a).sum() for a in active), default=-math.inf)
            if kind == "frank-wolfe":
                n += 1
                assert gain_towards >= away - (g * x_t).sum()
                np.testing.assert_array_equal(to, v)
                wanted = x_t + step(n) * (v - x_t)
                if not any(np.array_equal(v, a) for a in active):
                    active.append(v)
            else:
                assert gain_towards < away - (g * x_t).sum()
                assert (g * to).sum() == away
                place = next(i for i, a in enumerate(active) if np.array_equal(a, to))
                weight = run.weights[t][place]
                largest = weight / (1 - weight)
                assert (kind == "drop") == (largest <= step(n))
                wanted = x_t + min(step(n), largest) * (x_t - to)
                if kind == "drop":
                    active.pop(place)
            np.testing.assert_allclose(run.iterates[t + 1], wanted, rtol=0, atol=1e-15)
            assert len(run.weights[t + 1]) == len(active)
    assert seen == {"frank-wolfe", "away", "drop"}


def test_rftl_minimises_its_objective():
    ds = np.random.default_rng(7).normal(size=(20, 2, 3))
    learner = ref.RFTL((2, 3), 1.0, HALF)
    for t, d in enumerate(ds, start=1):
        learner.observe(d)
        x = learner.play()
        slope = HALF(t) * ds[:t].sum(axis=0) + x
        assert abs(ref.frank_wolfe_gap(x, slope, 1.0)) <= 1e-14
        assert np.abs(x).sum(axis=1).max() <= 1.0 + 1e-14


# --- the adversarial setting ----------------------------------------------------------------------


def ftpl(k, shape=(3, 5), length=12, first_round=1):
    """FTPL whose noise depends on the round and on k, as in the package."""
    return ref.FTPL(
        shape,
        2.0,
        5.0,
        length,
        lambda t: np.random.default_rng([9, t, k]).random(shape) - 0.5,
        first_round=first_round,
    )


def draw_rows(t, k, size=3):
    return np.random.default_rng([10, t, k]).integers(0, 8, size)


def test_morgfw_recursion_as_a_sum():
    batches, x = make_data(rounds=3)
    run = ref.morgfw(x, batches, 5, ftpl, ONE, ROOT, draw_rows)
    rho = [1.0] + [ROOT(k) for k in range(2, 6)]
    for t, (A, y) in enumerate(batches, start=1):
        for k in range(1, 6):
            total = np.zeros_like(x)
            for j in range(1, k + 1):
                picked = draw_rows(t, j)
                part = ref.gradient(run.inner[t - 1][j - 1], A[picked], y[picked])
                if j > 1:
                    before = ref.gradient(run.inner[t - 1][j - 2], A[picked], y[picked])
                    part = part - (1 - rho[j - 1]) * before
                total += math.prod(1 - r for r in rho[j:k]) * part
            np.testing.assert_allclose(run.directions[t - 1][k - 1], total, rtol=0, atol=1e-14)


def test_meta_frank_wolfe_average_as_a_sum():
    batches, x = make_data(rounds=3)
    run = ref.meta_frank_wolfe(x, batches, 5, ftpl, ONE, ROOT, draw_rows)
    rho = [ROOT(k) for k in range(1, 6)]
    for t, (A, y) in enumerate(batches, start=1):
        total = np.zeros_like(x)
        for j in range(1, 6):
            picked = draw_rows(t, j)
            weight = rho[j - 1] * math.prod(1 - r for r in rho[j:])
            total += weight * ref.gradient(run.inner[t - 1][j - 1], A[picked], y[picked])
        np.testing.assert_allclose(run.directions[t - 1][-1], total, rtol=0, atol=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_sub_batch_gradients_are_unbiased(reduction):
    batches, x = make_data()
    A, y = batches[0]
    estimates = [
        ref.sub_batch_gradient(x, A, y, np.array(pair), reduction)
        for pair in itertools.product(range(8), repeat=2)
    ]
    exact = ref.gradient(x, A, y, reduction)
    np.testing.assert_allclose(np.mean(estimates, axis=0), exact, rtol=0, atol=1e-14)
