"""Kernels against plain NumPy; every tolerance is a bound on rounding, not a guess.

In the bounds ``eps`` is the distance from 1 to the next number. A sum of n products, in whatever
order, is off by at most (n + 2) eps times the sum of their magnitudes.
"""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference as ref
from fastfw._layout import remainder_of, scaled
from fastfw.kernels import gradients, l1, products, rounds, sets, softmax
from set_cases import KINDS
from sizes import quick, quiet, sized

DTYPES = [np.float64, np.float32]
SOFTMAX, NO_TAIL = None, np.empty(0)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 5e-324, 1e-40, -3e300, np.inf, -np.inf, np.nan]


@st.composite
def cases(draw, max_features=40):
    """Sizes, dtype and a generator: B samples, C classes, d features."""
    B = draw(st.integers(1, 70))
    C = draw(st.one_of(st.integers(2, 13), st.just(26)))
    d = draw(st.integers(1, max_features))
    return B, C, d, draw(st.sampled_from(DTYPES)), np.random.default_rng(draw(st.integers(0, 999)))


def long_case(d, C=7, B=5, dtype=np.float64):
    """More features than one span holds."""
    return B, C, d, dtype, np.random.default_rng(d)


def read_only(a):
    a.flags.writeable = False
    return a


def alike(y):
    """Labels of rows that all have the weight 1, as problems give them to kernels."""
    return y, read_only(np.empty(0))


def make_rows(rng, n, B):
    """Row numbers, repetitions and all, and the rows after them."""
    return (
        read_only(rng.integers(0, n, B).astype(np.intp)),
        read_only(rng.integers(0, n, rng.integers(0, 9)).astype(np.intp)),
    )


def make_data(case):
    B, C, d, dtype, rng = case
    A = read_only(rng.standard_normal((B + 3, d)).astype(dtype))
    y = read_only(rng.integers(0, C, B + 3).astype(np.intp))
    U = rng.standard_normal((C, d)).astype(dtype)
    rows, ahead = make_rows(rng, B + 3, B)
    return A, y, U, rows, ahead


def lengthen(U, extra, fill):
    """The same rows in a longer matrix, as the learners have them for some numbers of features."""
    longer = np.full((len(U), U.shape[1] + extra), fill, U.dtype)
    longer[:, : U.shape[1]] = U
    return longer


def double(*arrays):
    return [a.astype(np.float64) for a in arrays]


# --- products -------------------------------------------------------------------------------------


@quick
@given(cases(), st.sampled_from([0, 1, 64]))
@example(long_case(1025), 0)
@example(long_case(1024 * 2 + 3, dtype=np.float32), 64)
@example(long_case(1024 * 2 + 3, C=2, B=1), 1)
def test_forward_product(case, extra):
    A, _, U, rows, ahead = make_data(case)
    n = rows.size
    width = products.padded(n)
    Z = np.full((len(U), width + 4), np.nan, U.dtype)
    products.forward(A, rows, lengthen(U, extra, np.nan), Z, ahead)
    A64, U64 = double(A[rows], U)
    bound = (A.shape[1] + 2) * np.finfo(U.dtype).eps * (np.abs(U64) @ np.abs(A64).T)
    assert np.all(np.abs(Z[:, :n] - U64 @ A64.T) <= bound)
    # padding repeats the last sample, up to a whole group; beyond it there is nothing
    assert np.array_equal(Z[:, n:width], np.repeat(Z[:, n - 1 : n], width - n, axis=1))
    assert not Z[:, width:].any()


@quick
@given(cases(), st.sampled_from([0, 1, 64]))
@example(long_case(1025), 0)
@example(long_case(1024 * 2 + 3, dtype=np.float32), 64)
@example(long_case(1024 * 2 + 3, C=2, B=1), 1)
def test_backward_product(case, extra):
    alone = extra != 1  # what is fetched ahead changes nothing
    A, _, G, rows, ahead = make_data(case)
    n, rng = rows.size, case[-1]
    R = np.zeros((len(G), products.padded(n)), G.dtype)
    R[:, :n] = rng.standard_normal((len(G), n))
    before = G.copy()
    longer = lengthen(G, extra, 7.0)
    products.backward(A, rows, R, longer, ahead, alone)
    G = longer[:, : A.shape[1]]
    assert (longer[:, A.shape[1] :] == 7.0).all()
    A64, R64, before = double(A[rows], R[:, :n], before)
    size = np.abs(before) + np.abs(R64) @ np.abs(A64)
    bound = (products.padded(n) + 3) * np.finfo(G.dtype).eps * size
    assert np.all(np.abs(G - (before + R64 @ A64)) <= bound)


# --- softmax --------------------------------------------------------------------------------------


def errors_in_ulps(t, dtype):
    """Errors of exp(t) as computed, in units of the last place of the true value."""
    t = np.asarray(t, dtype)
    p = np.full_like(t, 7.0)
    with quiet():
        softmax.exp_shifted(t, np.zeros_like(t), p)
    true = np.exp(t.astype(np.longdouble))
    return np.abs(p - true) / np.spacing(true.astype(dtype)), p


@pytest.mark.skipif(
    np.finfo(np.longdouble).eps >= np.finfo(np.float64).eps, reason="no type to compare with"
)
@pytest.mark.parametrize(("dtype", "lowest"), [(np.float64, -708.0), (np.float32, -87.0)])
def test_exponential_is_right_to_the_last_place(dtype, lowest):
    rng = np.random.default_rng(0)
    n = sized(200_000, 2_000)
    log2 = np.log(2.0)
    borders = (np.arange(int(lowest / log2), 1)[:, None] * log2 / 2 + [-1e-6, 0.0, 1e-6]).ravel()
    t = np.concatenate(
        [
            np.linspace(lowest, 0.0, n),
            rng.uniform(-1.0, 0.0, n),
            -np.logspace(-40, 0, n // 10),
            borders[(borders >= lowest) & (borders <= 0.0)],
        ]
    )
    errors, p = errors_in_ulps(t, dtype)
    # half a unit for the last addition, up to one for everything before it (less with fused ones)
    assert errors.max() <= 1.5
    assert p.max() <= 1.0
    assert p.min() >= np.finfo(dtype).tiny


@pytest.mark.parametrize("dtype", DTYPES)
def test_exponential_of_special_numbers(dtype):
    lowest = -708.0 if dtype == np.float64 else -87.0
    below = np.nextafter(dtype(lowest), dtype(-np.inf))
    z = np.array([0.0, -0.0, -np.inf, np.nan, below, -1e30, -np.finfo(dtype).tiny], dtype)
    p = np.empty_like(z)
    with quiet():
        softmax.exp_shifted(z, np.zeros_like(z), p)
    assert np.array_equal(p, np.array([1, 1, 0, np.nan, 0, 0, 1], dtype), equal_nan=True)
    # inf - inf
    top = np.full_like(z, np.inf)
    with quiet():
        softmax.exp_shifted(top, top, p)
    assert np.isnan(p).all()


def run_softmax(Z):
    P, m, total = np.full_like(Z, 7.0), np.empty_like(Z[0]), np.empty_like(Z[0])
    with quiet():
        softmax.softmax(Z, P, m, total)
    return P, m, total


@quick
@given(cases(), st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e3, 1e30]))
def test_softmax(case, size):
    B, C, _, dtype, rng = case
    Z = (size * rng.standard_normal((C, B))).astype(dtype)
    Z[:, rng.random(B) < 0.2] = dtype(size)  # ties
    P, m, total = run_softmax(Z)
    eps = np.finfo(dtype).eps
    assert np.array_equal(m, Z.max(axis=0))
    true = np.exp(Z.astype(np.float64) - m)
    # the difference itself is rounded, by eps / 2 of its size
    assert np.all(np.abs(P - true) <= eps * true * (2.0 + m - Z) + np.finfo(dtype).tiny * 8)
    assert np.all(np.abs(total - P.sum(axis=0, dtype=np.float64)) <= C * eps * total)
    assert total.min() >= 1.0


@quick
@given(hnp.arrays(np.float64, (3, 5), elements=st.sampled_from(SPECIAL)), st.sampled_from(DTYPES))
def test_softmax_of_special_numbers(Z, dtype):
    """A column with NaN or plus infinity has a total that is NaN; others do not notice."""
    with np.errstate(over="ignore"):
        Z = Z.astype(dtype)
    _, _, total = run_softmax(Z)
    top = Z.max(axis=0)
    assert np.array_equal(np.isfinite(total), np.isfinite(top))


@quick
@given(cases(), st.sampled_from([0.25, 1.0, 40.0, 1e6]))
@example((sized(4000, 400), 26, 1, np.float64, np.random.default_rng(0)), 0.0)  # 26**4000
def test_log_loss(case, size):
    B, C, _, dtype, rng = case
    Z = (size * rng.standard_normal((C, B + 3))).astype(dtype)
    y = rng.integers(0, C, 2 * B).astype(np.intp)
    rows = rng.permutation(2 * B)[:B].astype(np.intp)
    _, m, total = run_softmax(Z)
    found = softmax.log_loss(Z, y, rows, B, m, total)
    Z64 = Z[:, :B].astype(np.float64)
    own = Z64[y[rows], np.arange(B)]
    terms = np.log(total[:B].astype(np.float64)) + (m[:B] - own)
    assert abs(found - terms.sum()) <= 2 * B * np.finfo(np.float64).eps * (1 + np.abs(terms).sum())
    wanted = ref.log_sum_exp(Z64.T) - own
    bound = np.finfo(dtype).eps * (C + 3.0 + np.abs(Z64).max(axis=0))
    # of the sums, of each difference on either side, and of the product of totals
    eps = np.finfo(np.float64).eps
    rounding = (B + 2) * eps * np.abs(wanted).sum() + B * eps
    assert abs(found - wanted.sum()) <= bound.sum() + rounding


@quick
@given(cases(), st.floats(-2.0, 2.0), st.floats(-2.0, 2.0))
def test_residual(case, alpha, beta):
    B, C, _, dtype, rng = case
    width = products.padded(B)
    y = rng.integers(0, C, B + 2).astype(np.intp)
    rows = rng.integers(0, B + 2, B).astype(np.intp)
    R = np.full((C, width), np.nan, dtype)
    wanted = np.zeros((C, B))
    for weight, accumulate in ((alpha, False), (beta, True)):
        Z = rng.standard_normal((C, width)).astype(dtype)
        P, _, total = run_softmax(Z)
        p = P[:, :B] / total[:B].astype(np.float64)
        p[y[rows], np.arange(B)] -= 1.0
        wanted += float(dtype(weight)) * p
        softmax.residual(P, total, y, rows, B, weight, R, accumulate)
    assert not R[:, B:].any()
    bound = 8 * np.finfo(dtype).eps * (abs(alpha) + abs(beta)) + np.finfo(dtype).tiny
    assert np.abs(R[:, :B] - wanted).max() <= bound


# --- logistic -------------------------------------------------------------------------------------


def logit_error(A, W, dtype):
    """Bound on the error of every logit, (B, C): the product's, then one more rounding or two."""
    return (A.shape[1] + 6) * np.finfo(dtype).eps * (np.abs(A) @ np.abs(W).T)


def gradient_error(A, dz, dtype):
    """Bound on the error of a sum of gradients where logits are off by dz.

    A probability changes by at most twice the largest change of a logit, and is itself rounded.
    """
    eps = np.finfo(dtype).eps
    dr = 2.0 * dz.max(axis=1) + 16 * eps + eps * np.abs(dz).max()
    return (dr + (len(A) + 8) * eps) @ np.abs(A)


def loss_error(dz, A, W, dtype):
    C = len(W)
    sizes = np.abs(A @ W.T).max(axis=1)
    return (2.0 * dz.max(axis=1) + (C + 6 + 2 * sizes) * np.finfo(dtype).eps).sum()


@quick
@given(cases(), st.sampled_from([1.0, 0.07, 1e-3]))
@example(long_case(1025, dtype=np.float32), 0.5)
@example(long_case(1024 * 2 + 3), 1.0)
def test_losses_and_gradient(case, s):
    A, y, U, rows, _ = make_data(case)
    dtype = U.dtype
    G, losses = np.full_like(U, np.nan), np.full(rows.size, np.nan)
    loss = gradients.loss_and_gradient(A, SOFTMAX, alike(y), rows, U, NO_TAIL, G, NO_TAIL)
    A64, U64 = double(A[rows], U)
    dz = logit_error(A64, U64, dtype)
    wanted, gradient = ref.loss_and_gradient(U64, A64, y[rows], "sum")
    assert abs(loss - wanted) <= loss_error(dz, A64, U64, dtype)
    assert np.all(np.abs(G - gradient) <= gradient_error(A64, dz, dtype))
    gradients.sample_losses(A, SOFTMAX, alike(y), rows, U, s, NO_TAIL, losses)
    W = s * U64
    one_by_one = ref.log_sum_exp(A64 @ W.T) - (A64 @ W.T)[np.arange(rows.size), y[rows]]
    assert np.abs(losses - one_by_one).sum() <= loss_error(s * dz, A64, W, dtype)


@quick
@given(cases(), st.floats(0.0, 0.9), st.sampled_from([1.0, 0.1]), st.sampled_from([1, 2]))
@example(long_case(1024 * 2 + 3), 0.5, 0.3, 1)
@example(long_case(1025, dtype=np.float32), 0.9, 0.3, 2)
def test_recursive_gradient(case, eta, s, mode):
    """x' and a vertex are given, x is made of them; both gradients come from one call."""
    A, y, before, rows, ahead = make_data(case)
    (C, d), rng, dtype = before.shape, case[-1], before.dtype
    eps = np.finfo(dtype).eps
    index = rng.integers(0, d, C).astype(np.intp)
    value = rng.choice([-2.0, 2.0], C)
    A64, x_back = double(A[rows], before)
    x = (1.0 - eta) * x_back
    x[np.arange(C), index] += eta * value
    u = (x / s).astype(dtype)
    alpha, beta = rng.uniform(0.0, 1.0, 2)
    G = np.full_like(u, np.nan)
    previous = before if mode == gradients.DENSE_PREVIOUS else np.full_like(u, np.nan)
    shrink = 1.0 / (1.0 - eta)
    loss = gradients.recursive_gradient(
        A, SOFTMAX, y, rows, u, s, NO_TAIL, mode, previous, NO_TAIL, index[:, np.newaxis],
        eta * value[:, np.newaxis], shrink, alpha, beta, G, NO_TAIL, ahead,
        gradients.room_for(A, SOFTMAX, u, NO_TAIL, len(rows)),
    )  # fmt: skip
    dz = logit_error(A64, x, dtype)
    wanted, now = ref.loss_and_gradient(x, A64, y[rows], "sum")
    assert abs(loss - wanted) <= loss_error(dz, A64, x, dtype)
    back = ref.gradient(x_back, A64, y[rows], "sum")
    dz_back = logit_error(A64, x_back, dtype)
    if mode == gradients.ONE_VERTEX_BACK:
        moved = np.abs(eta * value * A64[:, index])
        dz_back = (dz + 4 * eps * (np.abs(A64 @ x.T) + moved)) * shrink
    bound = alpha * gradient_error(A64, dz, dtype) + beta * gradient_error(A64, dz_back, dtype)
    assert np.all(np.abs(G - (alpha * now - beta * back)) <= bound)


@quick
@given(cases(), st.sampled_from([1e2, 1e6, 1e30, 1e200]))
def test_huge_logits_are_no_trouble(case, size):
    """All weight on the largest logit: losses are differences of logits, gradients are exact."""
    B, C, _, _, rng = case
    A = np.zeros((B, C))
    order = np.array([rng.permutation(C) for _ in range(B)])
    A[:] = size * order
    y = read_only(rng.integers(0, C, B).astype(np.intp))
    rows = read_only(np.arange(B, dtype=np.intp))
    G = np.empty((C, C))
    with quiet():
        loss = gradients.loss_and_gradient(
            read_only(A), SOFTMAX, alike(y), rows, np.eye(C), NO_TAIL, G, NO_TAIL
        )
    own = order[np.arange(B), y]
    eps = np.finfo(np.float64).eps
    wanted = size * float((C - 1 - own).sum())
    # an error per sample, of the size of its logits, and the sum's
    assert abs(loss - wanted) <= B * eps * (C * size + wanted)
    R = (order == C - 1).astype(np.float64)
    R[np.arange(B), y] -= 1.0
    assert np.abs(G - R.T @ A).max() <= (B + 4) * eps * np.abs(A).sum(axis=0).max()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode", [0, 1, 2])
@quick
@given(data=st.data())
def test_a_bad_number_in_the_features_always_shows(dtype, mode, data):
    """Learners look for NaN and infinity only where a loss or an estimate is not finite."""
    B, C, d, _, rng = data.draw(cases())
    A = rng.standard_normal((B + 3, d)).astype(dtype)
    y = read_only(rng.integers(0, C, B + 3).astype(np.intp))
    rows, ahead = make_rows(rng, B + 3, B)
    u = rng.standard_normal((C, d)).astype(dtype)
    u[rng.random((C, d)) < data.draw(st.sampled_from([0.0, 0.5, 1.0]))] = 0.0
    u *= dtype(data.draw(st.sampled_from([1.0, -1.0, 1e-30])))
    for _ in range(data.draw(st.integers(1, 3))):
        i, j = rows[rng.integers(B)], rng.integers(d)
        A[i, j] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    index, step = np.zeros((C, 1), np.intp), np.full((C, 1), 0.1)
    alpha = data.draw(st.sampled_from([1.0, 0.0]))  # a weight of zero hides nothing either
    read_only(A)
    G, losses = np.empty_like(u), np.empty(B)
    with quiet():
        loss = gradients.recursive_gradient(
            A, SOFTMAX, y, rows, u, 0.5, NO_TAIL, mode, u, NO_TAIL, index, step, 1.5, alpha, 0.5, G,
            NO_TAIL, ahead, gradients.room_for(A, SOFTMAX, u, NO_TAIL, 1),
        )  # fmt: skip
        gradients.sample_losses(A, SOFTMAX, alike(y), rows, u, 0.5, NO_TAIL, losses)
    # The loss need not show it where u is sparse; every row of the gradient does, column by column.
    bad = ~np.isfinite(A[rows]).all(axis=0)
    assert not np.isfinite(G[:, bad]).any()
    assert np.count_nonzero(u) <= u.size / 16 or not np.isfinite(loss)
    assert np.array_equal(np.isfinite(losses), np.isfinite(A[rows]).all(axis=1))


# --- the row-l1 ball ------------------------------------------------------------------------------

ordinary = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 5e-324, -5e-324, 1e308]),
    st.floats(-10, 10),
)


def cast(array, dtype):
    with np.errstate(over="ignore", under="ignore"):
        return array.astype(dtype)


@quick
@given(
    hnp.arrays(np.float64, st.integers(1, 70), elements=st.one_of(ordinary, st.floats())),
    st.sampled_from(DTYPES),
)
@example(np.array([0.0, -0.0]), np.float64)
@example(np.array([np.inf, np.nan, -np.inf]), np.float32)
@example(np.array([1.0, -np.nan]), np.float64)
def test_first_largest(row, dtype):
    row = cast(row, dtype)
    first, finite = l1.first_largest(row)
    assert bool(finite) == np.isfinite(row).all()
    if finite:
        assert first == np.argmax(np.abs(row))
    else:
        assert not np.isfinite(row[first])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_oracles_report_a_direction_that_is_not_finite(bad, dtype):
    for c in range(3):
        for j in range(19):
            G = np.ones((3, 19), dtype)
            G[c, j] = bad
            index, value = np.empty(3, np.intp), np.empty(3)
            assert not l1.lmo(G, 1.0, index, value)
            for kind in KINDS:
                place, entry = np.empty((3, 2), np.intp), np.empty((3, 2))
                assert not sets.vertices(rows_of(kind, 3), G, place, entry)


def test_every_kind_of_row_is_known_here():
    kinds = {kind for kind in vars(sets).values() if isinstance(kind, np.intp)}
    assert kinds == {*KINDS, sets.OWN}


def rows_of(kind, n):
    """n rows of one kind with entries of size 2."""
    count, drawn = np.full(n, KINDS[kind][0]), np.arange(n, dtype=np.uint64)
    return sets.Rows(
        np.full(n, kind), np.full(n, 2.0), count, drawn,
        np.zeros(n, np.intp), np.zeros(n, np.intp),
    )  # fmt: skip


@quick
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(2, 40)), elements=ordinary),
    st.sampled_from(DTYPES),
)
@example(np.zeros((3, 7)), np.float64)
@example(np.full((2, 5), -0.0), np.float32)
def test_vertices_of_rows(G, dtype):
    G = cast(G, dtype)
    if not np.isfinite(G).all():
        return
    for kind, (_, plain) in KINDS.items():
        index, value = np.full((len(G), 2), -1, np.intp), np.full((len(G), 2), np.nan)
        assert sets.vertices(rows_of(kind, len(G)), G, index, value)
        for g, places, entries in zip(G, index, value, strict=True):
            if plain is None:
                assert abs(g[places[0]]) == np.abs(g).max()
                continue
            wanted = plain(g)
            wanted += [(0, 0.0)] * (2 - len(wanted))
            assert [*zip(places, entries, strict=True)] == wanted


@quick
@given(
    cases(max_features=12),
    st.lists(
        st.one_of(st.sampled_from([0.0, 0.5, 0.9, 0.95, 1.0]), st.floats(0.0, 1.0)), max_size=30
    ),
)
@example((1, 3, 4, np.float64, np.random.default_rng(1)), [0.9, 0.9, 0.9, 1.0, 0.0, 1.0, 0.5])
def test_lazy_steps_are_steps(case, etas):
    """Scale, folding and running sum against x ← x + η (v - x) written out."""
    _, C, d, dtype, rng = case
    x = rng.uniform(-1.0, 1.0, (C, d)) / d
    u = x.astype(dtype)
    x = u.astype(np.float64)
    low, previous = remainder_of(u), np.full_like(u, np.nan)
    every = np.array([C, *range(C)]), np.ones(C, np.bool_)
    s, weight, wanted, total = 1.0, 0.0, np.zeros_like(x), np.zeros_like(x)
    eps, smallest = np.finfo(dtype).eps, l1.SMALLEST_SCALE
    if dtype == np.float32:  # what rounding takes from u is kept in single precision itself
        eps, smallest = 2.0**-47, l1.SMALLEST_NARROW
    for t, eta in enumerate(etas, start=1):
        before = scaled(u, low, s, np.float64)
        index = rng.integers(0, d, C).astype(np.intp)
        value = rng.choice([-1.0, 1.0], C)
        wanted += x
        places = np.arange(C) * d + index
        s, weight = l1.step(
            u, low, total, previous, s, weight + s, places, value, eta, *every
        )  # fmt: skip
        v = np.zeros((C, d))
        v[np.arange(C), index] = value
        x = x + eta * (v - x)
        assert smallest <= s <= 1.0
        # every step rounds a few times, numbers of size at most 1; earlier errors shrink with x
        assert np.abs(scaled(u, low, s, np.float64) - x).max() <= 4 * eps * t
        # the sum is made of numbers up to weight * |u| <= t / smallest
        found = scaled(u, low, weight, np.float64) + total
        assert np.abs(found - wanted).max() <= 4 * eps * t * t / smallest
        if eta > l1.LARGEST_LAZY_STEP:
            assert np.abs(previous - before).max() <= np.finfo(dtype).eps


# --- the recursive estimator ----------------------------------------------------------------------


@quick
@given(cases(), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(0.0, 9.0))
def test_estimate(case, gamma, scale, strength):
    _, _, d, dtype, rng = case
    old, g, u, start = (rng.standard_normal(d).astype(dtype) for _ in range(4))
    old_copy, g64 = old.copy(), g.astype(np.float64)
    real = np.dtype(dtype).type
    rounds.blend(old, g, real(gamma), real(scale))
    assert np.array_equal(old, old_copy)
    a, b = float(real(gamma)) * old_copy.astype(np.float64), float(real(scale)) * g64
    eps, tiny = np.finfo(dtype).eps, np.finfo(dtype).tiny
    assert np.all(np.abs(g - (a + b)) <= 2 * eps * (np.abs(a) + np.abs(b)) + tiny)
    direction = np.empty_like(g)
    rounds.pulled(g, real(strength), u, real(scale), start, direction)
    pull = np.abs(strength * scale * u) + np.abs(strength * start)
    g64, u64, start64 = double(g, u, start)
    wanted = g64 + float(real(strength)) * (float(real(scale)) * u64 - start64)
    assert np.all(np.abs(direction - wanted) <= 4 * eps * (np.abs(g) + pull) + tiny)
