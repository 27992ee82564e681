"""The paper's bounds: printed formulas, limits, bad input, and bounds against measured runs."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

import reference as ref
from fastfw import theory

COMMON = {"smoothness": 2.0, "diameter": 3.0, "gradient_noise": 0.5, "failure_probability": 0.1}
CALLS = {
    "lemma 1": (theory.gradient_error_bound, COMMON),
    "theorem 1": (
        theory.orgfw_regret_bound,
        {**COMMON, "value_noise": 0.25, "initial_gap": 1.5},
    ),
    "corollary 1": (theory.convex_convergence_bound, {**COMMON, "initial_gap": 1.5}),
    "proposition 1": (theory.nonconvex_gap_bound, {**COMMON, "initial_gap": 1.5}),
    "proposition 1, proved": (
        theory.nonconvex_gap_bound,
        {**COMMON, "initial_gap": 1.5, "form": "proved"},
    ),
    "theorem 2": (
        theory.morgfw_regret_bound,
        {**COMMON, "base_regret": 7.0, "initial_gap": 1.5},
    ),
}
EVERY = pytest.mark.parametrize("name", CALLS)


def evaluate(name, rounds, **changed):
    function, arguments = CALLS[name]
    return function(rounds, **{**arguments, **changed})


# --- the printed formulas, written down a second time in decimal arithmetic -----------------------


def printed(name, rounds):
    """The formulas at the values of CALLS, from the paper's LaTeX, to 40 digits."""
    with localcontext() as context:
        context.prec = 40
        T, L, D, s, delta = Decimal(rounds), Decimal(2), Decimal(3), Decimal("0.5"), Decimal("0.1")
        M, gap, base = Decimal("0.25"), Decimal("1.5"), Decimal(7)
        third = 1 / Decimal(3)
        if name == "lemma 1":
            first = 2 * (2 * L * D + 3 * s / (3 - 1))
            value = first / (T + 1).sqrt() * (2 * (4 / delta).ln()).sqrt()
        elif name == "theorem 1":
            value = (T.ln() + 1) * gap + L * D * D * (T.ln() + 1) ** 2 / 2
            value += (16 * L * D * D + 16 * s * D + 4 * M) * (2 * T * (8 * T / delta).ln()).sqrt()
        elif name == "corollary 1":
            value = (T.ln() + 1) / T * gap + L * D * D * (T.ln() + 1) ** 2 / (2 * T)
            value += 16 * (L * D * D + s * D) * (2 * (4 * T / delta).ln()).sqrt() / T.sqrt()
        elif name == "proposition 1":
            inner = (2 * L * D * D + 3 * s * s) * (2 * (4 * T / delta).ln()).sqrt()
            value = 2 * gap / T**third + 4 * (T + 1).ln() / T**third * (L * D * D + inner)
        elif name == "proposition 1, proved":
            # 2 C / T^(1/3), C = gap + log(T + 1) (4 (2 L D^2 + 3 s D) sqrt(..) + L D^2 / 2)
            inner = 4 * (2 * L * D * D + 3 * s * D) * (2 * (4 * T / delta).ln()).sqrt()
            value = 2 * (gap + (T + 1).ln() * (inner + L * D * D / 2)) / T**third
        else:
            value = 16 * (L * D * D + s * D) * (2 * T * (4 * T * T / delta).ln()).sqrt()
            value += 2 * L * D * D * (T + 1).ln() + gap + base
        return float(value)


@EVERY
@pytest.mark.parametrize("rounds", [1, 2, 7, 400, 10**12])
def test_printed_formula(name, rounds):
    assert evaluate(name, rounds) == pytest.approx(printed(name, rounds), rel=1e-13)


def test_lemma_1_exponent():
    # alpha = 1/2: 3^alpha / (3^alpha - 1) = (3 + sqrt 3) / 2, and (15 + 1)^(-1/4) = 1/2.
    value = theory.gradient_error_bound(15, **COMMON, exponent=0.5)
    wanted = (12 + 0.5 * (3 + np.sqrt(3)) / 2) * np.sqrt(2 * np.log(40))
    assert value == pytest.approx(wanted, rel=1e-14)
    tiny = theory.gradient_error_bound(1, **COMMON, exponent=1e-9)  # 3^a - 1 ~ a log 3
    wanted = 2 * 0.5 / (1e-9 * np.log(3)) * np.sqrt(2 * np.log(40))
    assert tiny == pytest.approx(wanted, rel=1e-6)


# --- shapes, monotonicity, limits -----------------------------------------------------------------


@EVERY
def test_arrays_are_single_values_side_by_side(name):
    rounds = np.array([[1, 2, 3], [40, 500, 6000]], dtype=np.int32)
    values = evaluate(name, rounds)
    assert isinstance(values, np.ndarray)
    assert values.dtype == np.float64
    assert values.shape == (2, 3)
    for place, t in np.ndenumerate(rounds):
        single = evaluate(name, int(t))
        assert type(single) is float
        assert values[place] == pytest.approx(single, rel=1e-14)
    np.testing.assert_array_equal(evaluate(name, [1, 2]), evaluate(name, np.array([1, 2])))
    assert evaluate(name, np.int64(5)) == evaluate(name, 5)
    assert evaluate(name, np.array([], dtype=np.intp)).shape == (0,)


def test_theorem_2_takes_one_value_for_each_number_of_rounds():
    both = evaluate("theorem 2", [4, 9], base_regret=[2.0, 3.0], initial_gap=[0, 1])
    for i, (rounds, base, gap) in enumerate([(4, 2.0, 0.0), (9, 3.0, 1.0)]):
        single = evaluate("theorem 2", rounds, base_regret=base, initial_gap=gap)
        assert both[i] == pytest.approx(single, rel=1e-14)
    column = evaluate("theorem 2", 4, base_regret=np.zeros((3, 1)))
    assert column.shape == (3, 1)


@EVERY
@pytest.mark.parametrize("power", [-1000, -560, 560, 1000])
def test_constants_at_the_edge_of_the_range(name, power):
    # Powers of two change no digit: where the result is a float it is that of other units.
    lengths, losses = 2.0 ** (-power // 2), 2.0**power
    exact = {"value_noise", "initial_gap", "base_regret"} & CALLS[name][1].keys()
    scaled = {key: CALLS[name][1][key] * losses for key in exact}
    scaled |= {"smoothness": 2.0 * losses, "gradient_noise": 0.5 * losses}
    if name == "proposition 1":  # it has sigma^2 where a loss belongs
        scaled["gradient_noise"] = 0.5 * 2.0 ** (power // 2)
    assert evaluate(name, 50, **scaled) == evaluate(name, 50) * losses
    shorter = {"smoothness": 2.0 / lengths / lengths, "diameter": 3.0 * lengths}
    shorter["gradient_noise"] = CALLS[name][1]["gradient_noise"]
    if name != "proposition 1":
        shorter["gradient_noise"] /= lengths
    if name == "lemma 1":
        assert evaluate(name, 50, **shorter) == evaluate(name, 50) / lengths
    else:
        assert evaluate(name, 50, **shorter) == evaluate(name, 50)


HUGE, TINY = 1.7e308, 5e-324


@EVERY
@pytest.mark.parametrize("argument", ["smoothness", "diameter", "gradient_noise"])
def test_a_bound_beyond_every_float_is_infinite(name, argument):
    few = {"smoothness": TINY, "diameter": TINY, "gradient_noise": TINY, argument: HUGE}
    assert 0.0 <= evaluate(name, 50, **few) <= np.inf
    for rounds in (1, np.array([1, 2**63], np.uint64)):
        assert np.all(np.isinf(evaluate(name, rounds, **dict.fromkeys(few, HUGE))))
    assert np.isfinite(evaluate(name, 2**64 - 1, failure_probability=TINY))


def test_other_bounds_at_the_edge_of_the_range():
    assert theory.gradient_error_bound(1, **COMMON, exponent=TINY) == np.inf
    tiny = {**COMMON, "gradient_noise": TINY}
    assert 1.0 < theory.gradient_error_bound(1, **tiny, exponent=TINY) < 100.0

    def regret(c, A, W, D_1):
        return theory.ftpl_regret_bound(
            100, scale=c, direction_l1=A, loss_range=W, l1_diameter=D_1, learners=10**400
        )

    assert regret(HUGE, 1.0, 1.0, 1.0) == regret(TINY, 1.0, 1.0, 1.0) == np.inf
    big = 2.0**1000
    assert regret(big, 1 / big, 1.0, big) == pytest.approx(regret(1.0, 1.0, 1.0, 1.0), rel=1e-14)


@pytest.mark.parametrize("power", [-1000, -600, 600, 1000])
def test_softmax_bounds_at_the_edge_of_the_range(power):
    X, unit = np.array([[3.0, 4.0], [0.0, 0.0], [1.0, -2.0]]), 2.0**power
    for bounds in (theory.softmax_noise_bounds, theory.softmax_direction_bounds):
        first, second = bounds(X, 3, 0.5)
        wanted = pytest.approx((first * unit, second), rel=1e-14)
        assert bounds(X * unit, 3, 0.5 / unit) == wanted
        assert bounds(np.full((2, 2), HUGE), 3, HUGE) == (np.inf, np.inf)
        assert np.all(np.isfinite(bounds(np.zeros((2, 2)), 3, HUGE)))


# --- bad input ------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("argument", ["smoothness", "diameter", "failure_probability"])
@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf")])
def test_not_positive(name, argument, value):
    with pytest.raises(ValueError, match=argument):
        evaluate(name, 10, **{argument: value})


@EVERY
@pytest.mark.parametrize("value", [-1e-300, float("nan"), float("inf")])
def test_negative(name, value):
    for argument in ("gradient_noise", "value_noise", "initial_gap", "base_regret"):
        if argument in CALLS[name][1]:
            with pytest.raises(ValueError, match=argument):
                evaluate(name, 10, **{argument: value})
            assert np.isfinite(evaluate(name, 10, **{argument: 0}))


@EVERY
def test_wrong_types(name):
    for argument in CALLS[name][1]:
        if argument == "form":
            continue
        for value in ("1", None, True, 1j):
            with pytest.raises(TypeError, match=argument):
                evaluate(name, 10, **{argument: value})


@EVERY
def test_bad_rounds(name):
    for value in (0, -3, [1, 0], np.array([5, -1])):
        with pytest.raises(ValueError, match="rounds must be at least 1"):
            evaluate(name, value)
    for value in (1.0, "1", None, True, [1.5], np.array([1.0])):
        with pytest.raises(TypeError, match="rounds must be an integer"):
            evaluate(name, value)


@EVERY
def test_certainty_is_refused(name):
    with pytest.raises(ValueError, match="failure_probability must be a number between 0 and 1"):
        evaluate(name, 10, failure_probability=1.0)


def test_bad_exponent_form_and_arrays():
    with pytest.raises(ValueError, match="exponent must be a number in"):
        evaluate("lemma 1", 10, exponent=1.5)
    with pytest.raises(ValueError, match="exponent"):
        evaluate("lemma 1", 10, exponent=0.0)
    with pytest.raises(ValueError, match="form must be 'printed' or 'proved'"):
        evaluate("proposition 1", 10, form="right")
    with pytest.raises(ValueError, match=r"base_regret\[1\] is -1.0"):
        evaluate("theorem 2", [1, 2], base_regret=[0.0, -1.0])
    with pytest.raises(ValueError, match=r"have shapes \(2,\), \(3,\) and \(\)"):
        evaluate("theorem 2", [1, 2], base_regret=[0.0, 1.0, 2.0])
    with pytest.raises(TypeError, match="initial_gap must hold numbers"):
        evaluate("theorem 2", [1, 2], initial_gap=["a", "b"])


# --- noise of softmax regression ------------------------------------------------------------------


def test_noise_bounds_of_one_sample_by_hand():
    # C = 2, a = (1, 0), r: z differ by 2 r at most; M = log(1 + e^2r) - log(1 + e^-2r) = 2 r.
    noise = theory.softmax_noise_bounds([[1.0, 0.0]], n_classes=2, radius=1.5)
    assert noise.value_noise == pytest.approx(3.0, rel=1e-14)
    q = np.exp(3.0) / (1 + np.exp(3.0))
    assert noise.gradient_noise == pytest.approx(2 * np.sqrt(2) * q, rel=1e-14)
    # A decision where the two labels' losses are that far apart.
    W, A = np.array([[1.5, 0.0], [-1.5, 0.0]]), np.array([[1.0, 0.0]])
    apart = ref.loss(W, A, np.array([1])) - ref.loss(W, A, np.array([0]))
    assert apart == pytest.approx(noise.value_noise, rel=1e-14)


def test_gradient_noise_bound_is_nearly_reached():
    X = np.array([[1.0, 0.01], [1.0, -0.01]])
    noise = theory.softmax_noise_bounds(X, n_classes=2, radius=1e4)
    W = np.array([[0.0, 1e4], [0.0, -1e4]])  # row 0 is surely class 0, row 1 surely class 1
    apart = ref.gradient(W, X[:1], np.array([1])) - ref.gradient(W, X[1:], np.array([0]))
    assert np.linalg.norm(apart) <= noise.gradient_noise
    assert np.linalg.norm(apart) == pytest.approx(noise.gradient_noise, rel=1e-4)


@pytest.mark.parametrize("radius", [0.05, 1.0, 20.0])
@pytest.mark.parametrize("seed", range(3))
def test_noise_bounds_hold_for_all_pairs_of_samples(radius, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 4)) * rng.exponential(size=(12, 1))
    noise = theory.softmax_noise_bounds(X, n_classes=3, radius=radius)
    for _ in range(10):
        W = ref.lmo(rng.normal(size=(3, 4)), radius) * rng.random((3, 1))
        singles = [(X[i : i + 1], np.array([c])) for i in range(12) for c in range(3)]
        losses = [ref.loss(W, A, y) for A, y in singles]
        assert max(losses) - min(losses) <= noise.value_noise
        flat = np.array([ref.gradient(W, A, y).ravel() for A, y in singles])
        apart = np.linalg.norm(flat[:, None] - flat[None], axis=2)
        assert apart.max() <= noise.gradient_noise


def test_noise_bounds_limits_and_dtypes():
    X = np.random.default_rng(0).random((20, 6))
    small = theory.softmax_noise_bounds(X, 10, 1e-9)
    assert small.value_noise <= 1e-8
    assert small.gradient_noise == pytest.approx(
        2 * np.sqrt(2) * 0.9 * np.linalg.norm(X, axis=1).max(), rel=1e-7
    )
    large = theory.softmax_noise_bounds(X, 10, 1e300)  # no overflow on the way
    assert large.gradient_noise == pytest.approx(
        2 * np.sqrt(2) * np.linalg.norm(X, axis=1).max(), rel=1e-14
    )
    assert large.value_noise == pytest.approx(2e300 * X.max(), rel=1e-14)
    zeros = theory.softmax_noise_bounds(np.zeros((3, 2)), 4, 8.0)
    assert zeros == (0.0, 0.0)
    whole = np.arange(12).reshape(3, 4)
    wanted = theory.softmax_noise_bounds(whole.astype(float), 4, 2.0)
    for dtype in (np.uint8, np.int64, np.float32, ">f8"):
        assert theory.softmax_noise_bounds(whole.astype(dtype), 4, 2.0) == wanted


def test_noise_bounds_bad_input():
    with pytest.raises(ValueError, match="radius"):
        theory.softmax_noise_bounds([[1.0]], 2, 0.0)
    with pytest.raises(ValueError, match="n_classes"):
        theory.softmax_noise_bounds([[1.0]], 1, 1.0)
    with pytest.raises(ValueError, match=r"X\[0, 1\] is nan"):
        theory.softmax_noise_bounds([[1.0, np.nan]], 2, 1.0)


# --- base learners --------------------------------------------------------------------------------

FTPL = {"scale": 2.0, "l1_diameter": 3.0, "direction_l1": 0.5, "loss_range": 1.5, "learners": 4}


def test_bound_of_ftpl_by_hand():
    value = theory.ftpl_regret_bound(16, **FTPL, failure_probability=0.1)
    assert value == pytest.approx((1.5 + 0.75) * 4 + 1.5 * np.sqrt(8 * np.log(40)), rel=1e-14)
    both = theory.ftpl_regret_bound([16, 25], **FTPL, failure_probability=0.1)
    assert both[0] == pytest.approx(value, rel=1e-14)
    assert both[1] / both[0] == pytest.approx(5 / 4, rel=1e-14)  # the square root of T


@pytest.mark.parametrize("argument", ["scale", "l1_diameter", "direction_l1", "loss_range"])
def test_bound_of_ftpl_refuses(argument):
    with pytest.raises(ValueError, match=argument):
        theory.ftpl_regret_bound(5, **{**FTPL, argument: -1.0})
    with pytest.raises(ValueError, match="learners"):
        theory.ftpl_regret_bound(5, **{**FTPL, "learners": 0})


def test_measured_regret_of_ftpl_stays_below_the_bound():
    T, r, c, seeds = 60, 2.0, 3.0, 20
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        directions = rng.uniform(-1.0, 1.0, (T, 3, 4)) + np.sign(rng.normal(size=(3, 4)))
        directions[1::2] *= -1.0  # what follows the leader without noise is always wrong
        noise = rng.random((T, 3, 4)) - 0.5
        base = ref.FTPL((3, 4), r, c, T, lambda t, noise=noise: noise[t - 1])
        paid = 0.0
        for d in directions:
            paid += np.vdot(d, base.play())
            base.observe(d)
        regret = paid + r * np.abs(directions.sum(axis=0)).max(axis=1).sum()
        bound = theory.ftpl_regret_bound(
            T,
            scale=c,
            l1_diameter=2 * r * 3,
            direction_l1=np.abs(directions).sum(axis=(1, 2)).max(),
            loss_range=2 * r * np.abs(directions).max(axis=2).sum(axis=1).max(),
            failure_probability=0.05 / seeds,
        )
        assert regret <= bound


@pytest.mark.parametrize("radius", [0.1, 3.0])
def test_direction_bounds_hold_for_what_morgfw_feeds(radius):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 4)) * rng.exponential(size=(12, 1))
    y = rng.integers(0, 3, 12)
    T = K = 8
    schedule = ref.power_schedule(1.0, 1.0)
    batches = ref.gather(X, y, rng.integers(0, 12, (T, 4)))
    draws = rng.integers(0, 4, (T, K, 1))
    noise = rng.random((T + 1, K, 3, 4)) - 0.5
    run = ref.morgfw(
        np.zeros((3, 4)), batches, K,
        lambda k: ref.FTPL((3, 4), radius, 1.0, T, lambda t: noise[t - 1, k - 1]),
        schedule, schedule, lambda t, k: draws[t - 1, k - 1],
    )  # fmt: skip
    d = np.abs(np.array(run.directions))
    bounds = theory.softmax_direction_bounds(X, 3, radius)
    exact = theory.softmax_direction_bounds(X, 3, radius, recursive=False)
    assert d.sum(axis=(2, 3)).max() <= bounds.direction_l1
    assert 2 * radius * d.max(axis=3).sum(axis=2).max() <= bounds.loss_range
    first = d[:, 0]  # estimates of the first inner step are plain gradients
    assert first.sum(axis=(1, 2)).max() <= exact.direction_l1 < bounds.direction_l1
    assert 2 * radius * first.max(axis=2).sum(axis=1).max() <= exact.loss_range


def test_direction_bounds_bad_input():
    with pytest.raises(ValueError, match="radius"):
        theory.softmax_direction_bounds([[1.0]], 2, 0.0)
    with pytest.raises(ValueError, match="n_classes"):
        theory.softmax_direction_bounds([[1.0]], 1, 1.0)


# --- a bound as printed ---------------------------------------------------------------------------


def test_printed_proposition_1_fails_for_a_loss_in_small_units():
    # One variable in [-1, 1], expected loss s x; every estimate of its slope is s - 2 s, but with
    # probability p it is s + 2 s (1 - p) / p, so that the mean is s.  With probability (1 - p)^T
    # no such estimate comes: every d_t is -s, every step goes to +1, the wrong way, and the gap
    # s (x + 1) never falls below s.
    s, p, T = 1e-9, 1e-3, 100
    delta = 0.5
    assert (1 - p) ** T > delta
    x, d = 0.0, 0.0
    gaps = []
    for t in range(1, T + 1):
        gaps.append(s * (x + 1.0))
        rate = 1.0 if t == 1 else (t + 1) ** (-2 / 3)
        d = (s - 2 * s) + (1 - rate) * (d - (s - 2 * s))
        x += (t + 1) ** (-2 / 3) * (-np.sign(d) - x)
    constants = {
        "smoothness": 1e-30,  # the slope is constant: any L is valid
        "diameter": 2.0,
        "gradient_noise": 2 * s * (1 - p) / p,
        "initial_gap": s,
        "failure_probability": delta,
    }
    assert min(gaps) == s
    assert min(gaps) > theory.nonconvex_gap_bound(T, **constants)
    assert min(gaps) <= theory.nonconvex_gap_bound(T, **constants, form="proved")
