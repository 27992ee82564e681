"""The reference is checked against definitions: finite differences, enumeration, optimality."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference as ref

ONE = ref.power_schedule(1.0, 1.0)
HALF = ref.power_schedule(1.0, 0.5)
ROOT = ref.power_schedule(1.0, 2 / 3)


def make_data(seed=0, n=60, d=5, n_classes=3, rounds=12, batch_size=8, dtype=np.float64):
    """Labels that depend on the features, and a start on the zeros."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)).astype(dtype)
    y = np.argmax(X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes)), axis=1)
    rows = rng.integers(0, n, (rounds, batch_size))
    return ref.gather(X, y, rows), np.zeros((n_classes, d), dtype)


def enumerate_vertices(n_rows, n_columns, radius):
    """Every vertex of the row l1 ball, (2 d)^C of them."""
    choices = list(itertools.product(range(n_columns), (radius, -radius)))
    for chosen in itertools.product(choices, repeat=n_rows):
        v = np.zeros((n_rows, n_columns))
        for row, (column, value) in enumerate(chosen):
            v[row, column] = value
        yield v


def assert_feasible(iterates, radius):
    norms = np.abs(np.asarray(iterates)).sum(axis=-1)
    assert norms.max() <= radius * (1 + 1e-14)


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


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=3),
        elements=st.sampled_from([-2.0, -1.0, -0.0, 0.0, 1.0, 2.0]),
    )
)
@settings(max_examples=60, deadline=None)
def test_lmo_by_enumeration(g):
    v = ref.lmo(g, 1.5)
    vertices = list(enumerate_vertices(*g.shape, 1.5))
    assert any(np.array_equal(v, u) for u in vertices)
    assert (g * v).sum() == min((g * u).sum() for u in vertices)
    for row, indices in zip(g, ref.lmo_parts(g, 1.5)[0], strict=True):
        assert np.all(np.abs(row[:indices]) < abs(row[indices]))


def test_diameter_is_the_largest_distance_of_two_vertices():
    vertices = list(enumerate_vertices(2, 2, 1.5))
    largest = max(np.linalg.norm(u - v) for u in vertices for v in vertices)
    assert ref.diameter(2, 1.5) == pytest.approx(largest, rel=1e-15)


def test_gap_by_enumeration():
    rng = np.random.default_rng(3)
    x, g = 0.2 * rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    wanted = max((g * (x - v)).sum() for v in enumerate_vertices(2, 3, 1.0))
    assert ref.frank_wolfe_gap(x, g, 1.0) == pytest.approx(wanted, rel=1e-14)


@given(
    z=hnp.arrays(np.float64, st.integers(1, 8), elements=st.floats(-10, 10, width=32)),
    radius=st.sampled_from([0.25, 1.0, 8.0]),
)
@example(z=np.array([1.0, 2.0**-11]), radius=1.0)  # the small entry barely stays
@settings(max_examples=100, deadline=None)
def test_projection_against_bisection(z, radius):
    low, high = 0.0, float(np.abs(z).max())
    for _ in range(200):  # theta with sum max(|z| - theta, 0) = radius
        middle = (low + high) / 2
        if np.maximum(np.abs(z) - middle, 0).sum() > radius:
            low = middle
        else:
            high = middle
    wanted = np.sign(z) * np.maximum(np.abs(z) - high, 0)
    np.testing.assert_allclose(ref.project_l1(z, radius), wanted, rtol=0, atol=1e-13)


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


@pytest.mark.parametrize("rounds", [12, None])
def test_regularised_ofw_direction(rounds):
    batches, _ = make_data()
    start = ref.lmo(np.ones((3, 5)), 1.0)
    run = ref.regularised_ofw(start, batches, 2.0, HALF, 3.0, rounds)
    total = np.zeros_like(start)
    for t, (A, y) in enumerate(batches, start=1):
        x = run.iterates[t - 1]
        total += ref.gradient(x, A, y)
        eta = 3.0 / (rounds or t) ** 0.75
        wanted = total + 2 / eta * (x - start)
        np.testing.assert_allclose(run.directions[t - 1], wanted, rtol=0, atol=1e-13)


def test_runs_move_towards_their_vertices_and_report_the_loss_before():
    batches, x = make_data()
    for run in (
        ref.orgfw(x, batches, 2.0, HALF, ROOT),
        ref.osfw(x, batches, 2.0, HALF, ROOT),
        ref.ofw(x, batches, 2.0, HALF),
        ref.regularised_ofw(x, batches, 2.0, HALF, 3.0, 12),
    ):
        for t, (A, y) in enumerate(batches, start=1):
            x_t, v = run.iterates[t - 1], run.vertices[t - 1]
            assert run.losses[t - 1] == ref.loss(x_t, A, y)
            np.testing.assert_array_equal(v, ref.lmo(run.directions[t - 1], 2.0))
            moved = (1 - HALF(t)) * x_t + HALF(t) * v
            np.testing.assert_allclose(run.iterates[t], moved, rtol=0, atol=1e-15)
        assert_feasible(run.iterates, 2.0)
        assert len(run.iterates) == 13


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


# --- base learners --------------------------------------------------------------------------------


def test_ftpl_follows_the_perturbed_sum():
    rng = np.random.default_rng(5)
    noise, ds = rng.random((4, 2, 3)) - 0.5, rng.normal(size=(3, 2, 3))
    asked = []

    def draw(t):
        asked.append(t)
        return noise[t - 7]

    learner = ref.FTPL((2, 3), 2.0, 4.0, 16, draw, first_round=7)
    for t in range(4):
        wanted = ref.lmo(4.0 / 4.0 * ds[:t].sum(axis=0) + noise[t], 2.0)
        np.testing.assert_array_equal(learner.play(), wanted)
        if t < 3:
            learner.observe(ds[t])
    assert asked == [7, 8, 9, 10]


def test_rftl_minimises_its_objective():
    ds = np.random.default_rng(7).normal(size=(20, 2, 3))
    learner = ref.RFTL((2, 3), 1.0, HALF)
    for t, d in enumerate(ds, start=1):
        learner.observe(d)
        x = learner.play()
        slope = HALF(t) * ds[:t].sum(axis=0) + x
        assert abs(ref.frank_wolfe_gap(x, slope, 1.0)) <= 1e-14
        assert_feasible(x, 1.0)


def test_ogd_takes_projected_steps():
    ds = np.random.default_rng(8).normal(size=(6, 2, 3))
    learner = ref.OGD(np.zeros((2, 3)), 1.0, HALF)
    for t, d in enumerate(ds, start=1):
        before = learner.play()
        learner.observe(d)
        wanted = ref.project(before - HALF(t) * d, 1.0)
        np.testing.assert_array_equal(learner.play(), wanted)


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


@pytest.mark.parametrize("rows", [None, draw_rows], ids=["whole", "sub"])
@pytest.mark.parametrize("method", [ref.morgfw, ref.meta_frank_wolfe])
@pytest.mark.parametrize(
    "base",
    [ftpl, lambda _: ref.OGD(np.zeros((3, 5)), 2.0, HALF), lambda _: ref.RFTL((3, 5), 2.0, HALF)],
    ids=["ftpl", "ogd", "rftl"],
)
def test_meta_runs_hang_together(method, rows, base):
    batches, x = make_data(rounds=5)
    run = method(x, batches, 4, base, ONE, HALF, rows)
    assert run.iterates.shape == (6, 3, 5)
    again = [base(k) for k in range(1, 5)]
    for t, (A, y) in enumerate(batches):
        np.testing.assert_array_equal(run.inner[t][0], x)
        for k in range(1, 5):
            v = again[k - 1].play()
            np.testing.assert_array_equal(run.vertices[t][k - 1], v)
            wanted = run.inner[t][k - 1] + ONE(k) * (v - run.inner[t][k - 1])
            np.testing.assert_allclose(run.inner[t][k], wanted, rtol=0, atol=1e-15)
            again[k - 1].observe(run.directions[t][k - 1])
        np.testing.assert_array_equal(run.iterates[t], run.inner[t][-1])
        assert run.losses[t] == ref.loss(run.iterates[t], A, y)
        assert_feasible(run.inner[t], 2.0)
    assert_feasible(run.iterates, 2.0)


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


@pytest.mark.parametrize("rounds", [3, 5])
def test_doubling_starts_afresh_in_every_epoch(rounds):
    batches, x = make_data(rounds=rounds)
    run = ref.doubling(x, batches, lambda n: n, ftpl, ONE, ROOT, draw_rows)
    assert len(run.iterates) == rounds + 1
    assert len(run.losses) == rounds
    for first, n in [(1, 1), (2, 2), (4, 4)]:
        part = ref.meta_run(
            x,
            batches[first - 1 : first - 1 + n],
            n,
            partial(ftpl, length=n, first_round=first),
            ONE,
            ROOT,
            draw_rows,
            first_round=first,
        )
        end = first - 1 + len(part.losses)
        np.testing.assert_array_equal(run.losses[first - 1 : end], part.losses)
        np.testing.assert_array_equal(run.iterates[first - 1 : end], part.iterates[:-1])
    np.testing.assert_array_equal(run.iterates[-1], part.iterates[-1])
