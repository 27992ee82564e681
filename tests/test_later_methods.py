"""Line search, StronglyConvexOFW and OSPF against a reference and against their bounds."""

import math
from functools import partial

import numpy as np
import pytest
import scipy.sparse

import fastfw as fw
import reference as ref
from fastfw import theory
from fastfw.experiments import grid_search
from fastfw.learners import regularized_ofw, strongly_convex_ofw
from history_cases import SHAPES, T, all_rounds, assert_follows, case
from learner_cases import Box, Linear, Quadratic
from set_cases import POLYTOPES, SETS
from sizes import sized

pytestmark = [
    pytest.mark.mathematics,
    pytest.mark.filterwarnings("ignore::fastfw.EngineWarning"),
]
SEEDS = 20


# --- the reference, in plain NumPy ----------------------------------------------------------------


def plain_step(x, v, g, curvature):
    """The step in [0, 1] that is best for ⟨g, ·⟩ + curvature/2 ‖· - x‖²."""
    away = x - v
    size = curvature * np.sum(away**2)
    return 0.0 if size == 0.0 else min(1.0, max(0.0, np.sum(g * away) / size))


def plain_search(start, losses, oracle, c, rounds, curved):
    """OFW with line search (Wan and Zhang 2021, Algorithm 1) on the set of an oracle.

    eta is c / (T + 2)^(2/3) where the set is strongly convex (``curved``), else c / T^(3/4).
    """
    x, total = start, np.zeros_like(start)
    for t, loss_and_gradient in enumerate(losses, start=1):
        T = t if rounds is None else rounds
        eta = c / ((T + 2) ** (2 / 3) if curved else T**0.75)
        value, g_t = loss_and_gradient(x)  # play x_t, receive f_t, its gradient
        total = total + g_t
        g = eta * total + 2.0 * (x - start)  # the gradient of F_t at x_t
        v = oracle(g)  # v_t <- argmin <grad F_t(x_t), v>
        x = x + plain_step(x, v, g, 2.0) * (v - x)  # x_{t+1} <- x_t + sigma_t (v_t - x_t)
        yield value, x, g


def plain_strong(start, losses, oracle, beta):
    """SC-OFW (Wan and Zhang 2021, Algorithm 2): every past decision is kept, to be plain."""
    x, xs, gradients = start, [], []
    for t, loss_and_gradient in enumerate(losses, start=1):
        value, g_t = loss_and_gradient(x)  # play x_t, receive f_t, its gradient
        xs.append(x), gradients.append(g_t)
        # the gradient of F_t at x_t
        g = sum(g_s + beta * (x - x_s) for g_s, x_s in zip(gradients, xs, strict=True))
        v = oracle(g)  # v_t <- argmin <grad F_t(x_t), v>
        x = x + plain_step(x, v, g, beta * t) * (v - x)  # x_{t+1} <- x_t + sigma_t (v_t - x_t)
        yield value, x, g


def plain_ospf(start, losses, oracle, noise, c, rounds, block):
    """OSPF (Hazan and Minasyan 2020): blocks of k rounds, each played at a mean of k leaders.

    ``noise(t)`` is the perturbation of round t. One vertex is asked for in each round, so that
    those of a block know the gradients of the blocks before it. With ``rounds=None`` there are
    epochs of 1, 2, 4, ... rounds, which forget all gradients; the decision stays.
    """
    x, n = start, len(losses)
    for first, length in ref.epochs(n) if rounds is None else [(1, rounds)]:
        k = math.ceil(round(length ** (1 / 3), 9)) if block is None else block
        last = n if rounds is not None else min(n, 2 * first - 1)
        total = np.zeros_like(start)
        for begin in range(first, last + 1, k):
            gradients, vertices = [], []
            for t in range(begin, min(begin + k, last + 1)):
                value, g = losses[t - 1](x)
                gradients.append(g)
                vertices.append(oracle(c / math.sqrt(k * length) * total + noise(t)))
                full = len(vertices) == k or (rounds is None and t == 2 * first - 1)
                after = sum(vertices) / len(vertices) if full else x
                yield value, after, g
            x, total = after, total + sum(gradients)


def nuclear(s, d):
    left, _, right = np.linalg.svd(d)
    return -s.radius * np.outer(left[:, 0], right[0])


def group(s, d):
    norms = [np.linalg.norm(d[s.groups == i]) for i in range(s.groups.max() + 1)]
    chosen = np.where(s.groups == np.argmax(norms), d, 0.0)
    return -s.radius * chosen / np.max(norms)


#: Oracles of sets without a list of vertices.
ORACLES = {
    "L2Ball": lambda s, d: -s.radius * d / np.linalg.norm(d),
    "RowL1Ball": lambda s, d: ref.lmo(d, s.radius),
    "NuclearNormBall": nuclear,
    "GroupL1Ball": group,
}


def oracle_of(name, own):
    """The oracle of a set in plain NumPy: by its vertices, or by a formula."""
    if name in ORACLES:
        return partial(ORACLES[name], own)
    vertices = np.array(list(POLYTOPES[name].vertices(own)))
    return lambda d: vertices[np.argmin(vertices.reshape(len(vertices), -1) @ d.ravel())]


def both(method, problem, own, losses, oracle, rounds, block=None):
    """A learner, and what the reference plays from its start."""
    if method == "strong":
        learner = fw.StronglyConvexOFW(problem, own, strong_convexity=0.3)
        plain, arguments = plain_strong, (0.3,)
    elif method == "search":
        learner = fw.RegularizedOFW(problem, own, step="line-search", rounds=rounds, scale=1.5)
        curved = getattr(own, "strong_convexity", 0.0) > 0.0
        plain, arguments = plain_search, (1.5, rounds, curved)
    else:
        learner = fw.OSPF(problem, own, rounds=rounds, scale=1.5, seed=7, block_size=block)
        noise = partial(fw.FTPL().perturbation, own.shape, seed=7)
        plain, arguments = plain_ospf, (lambda t: noise(t=t), 1.5, rounds, block)
    start = learner.play()
    return learner, ref.collected(start, plain(start, losses, oracle, *arguments))


methods = pytest.mark.parametrize("method", ["search", "strong", "ospf"])
known = pytest.mark.parametrize("known", [False, True], ids=["no T", "T"])


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shape", SHAPES)
@known
@methods
def test_rounds_follow_the_reference(method, known, shape, reduction):
    problem, own, stream, batches = case(shape, reduction)
    rounds = T if known else None
    losses = [partial(ref.loss_and_gradient, A=A, y=y, reduction=reduction) for A, y in batches]
    block = 4 if shape == SHAPES[0] else None
    learner, run = both(method, problem, own, losses, oracle_of("RowL1Ball", own), rounds, block)
    result = all_rounds(learner, stream)
    assert_follows(result, run, 1e-11, reduction, shape[2])
    assert result.lmo_calls == T
    assert result.gradient_evaluations == shape[2] * T


@pytest.mark.parametrize("name", [name for name in SETS if "large" not in name])
@known
@methods
def test_rounds_follow_the_reference_on_every_set(method, known, name):
    own, rounds = SETS[name](), sized(30, 20)
    rng = np.random.default_rng(1)
    points = rng.standard_normal(own.shape) + rng.standard_normal((rounds, *own.shape))
    losses = [lambda x, a=a: (0.5 * np.sum((x - a) ** 2), x - a) for a in points]
    T = rounds if known else None
    learner, run = both(method, Bent(own.shape), own, losses, oracle_of(name, own), T)
    result = all_rounds(learner, list(points))
    assert_follows(result, run, 1e-11, "sum", np.max(run.losses))


@pytest.mark.parametrize("unit", [2.0**560, 2.0**-560])
@pytest.mark.parametrize("kind", ["steps", "strong", "dense", "csr", "network"])
def test_line_search_has_no_unit(kind, unit):
    """The same bits where squares of lengths leave the range of floats as where they do not."""
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((24, 4)), rng.integers(0, 2, 24)
    batches, played = [(X[i : i + 2], y[i : i + 2]) for i in range(0, 24, 2)], []
    if kind == "csr":
        batches = [(scipy.sparse.csr_array(A), labels) for A, labels in batches]
    unit = min(unit, 1.0 / unit) if kind == "network" else unit  # whose logits are squares
    # each of the logits says all or nothing, in either
    for size in (unit, np.sqrt(unit)):
        problem = fw.SoftmaxRegression(4, 2)
        set = fw.RowL1Ball((2, 4), size)
        if kind == "network":
            problem = fw.OneHiddenLayer(4, 3, 2, "relu")
            set = problem.l1_balls(size, size)
        if kind == "strong":
            learner = fw.StronglyConvexOFW(problem, set, strong_convexity=1.0 / size)
        else:
            learner = fw.RegularizedOFW(
                problem, set, step="line-search", rounds=12, scale=4.0 * size,
                engine="steps" if kind == "steps" else "fused",
            )  # fmt: skip
        played.append(all_rounds(learner, batches).decisions / size)
    assert np.ptp(played[0]) > 0.1
    assert (played[0] == played[1]).all()


# --- bounds: losses are known, and so are all constants -------------------------------------------

N, ROUNDS, LONG = 3, 60, 2000


class Bent(Quadratic):
    """f(x) = ‖x - a‖² / 2 for a single point a."""

    def loss(self, x, a):
        return super().loss(x, a[np.newaxis])

    def gradient(self, x, a):
        return super().gradient(x, a[np.newaxis])


def points(kind, seed, rounds=ROUNDS):
    """Unit vectors: one in all rounds, its two signs in turns or in ever longer blocks, or any."""
    rng = np.random.default_rng(seed)
    if kind == "any":
        found = rng.standard_normal((rounds, N))
    else:
        t = np.arange(rounds)
        signs = {"one": t**0, "turns": (-1) ** t, "blocks": (-1) ** np.log2(1 + t).astype(int)}
        found = signs[kind][:, np.newaxis] * rng.standard_normal(N)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


KINDS = ("one", "turns", "blocks", "any")


def best(problem, set, batches):
    """The least possible loss: of a sum of linear functions, or at the mean if that lies inside."""
    total = np.sum(batches, axis=0)
    if isinstance(problem, Linear):
        v = set.lmo(total)
        return float(total @ (v.toarray() if hasattr(v, "toarray") else v))
    return sum(problem.loss(total / len(batches), a) for a in batches)


def line_search(set, alpha, rounds, **options):
    bound = theory.line_search_regret_bound(
        rounds, diameter=set.diameter, gradient_bound=1.0, set_convexity=alpha
    )
    learner = fw.RegularizedOFW(Linear((N,)), set, step="line-search", rounds=rounds, **options)
    return learner, bound


def strongly_convex(set, alpha, rounds, **options):
    bound = theory.strongly_convex_regret_bound(
        rounds, diameter=set.diameter, gradient_bound=1.0 + set.diameter / 2, strong_convexity=1.0,
        set_convexity=alpha,
    )  # fmt: skip
    return fw.StronglyConvexOFW(Bent((N,)), set, strong_convexity=1.0, **options), bound


def ospf(set, alpha, rounds, **options):
    learner = fw.OSPF(Linear((N,)), set, rounds=rounds, **options)
    bound = theory.ospf_regret_bound(
        rounds, scale=0.5, block_size=learner.block_size, smoothness=0.0, diameter=set.diameter,
        l1_diameter=2 * N if not alpha else 2 * np.sqrt(N), direction_l1=np.sqrt(N),
        loss_range=set.diameter,
    )  # fmt: skip
    return learner, bound


def wrong_sign(monkeypatch):
    """Let gradients point the other way."""
    for problem in (Linear, Bent):
        down = problem.gradient
        monkeypatch.setattr(
            problem, "gradient", lambda self, x, batch, down=down: -down(self, x, batch)
        )


def no_pull(monkeypatch):
    """Let nothing hold methods back: no regulariser, no noise."""
    monkeypatch.setattr(fw.RegularizedOFW, "_strength", lambda self, t, c: 1e-9)
    monkeypatch.setattr(strongly_convex_ofw, "positive_float", lambda value, name: 1e-9)
    monkeypatch.setattr(fw.FTPL, "answer", lambda self, set, memory, turn: set.lmo(memory))


def no_step(monkeypatch):
    """Let methods stay where they are, or forget all gradients."""
    for module in (regularized_ofw, strongly_convex_ofw):
        monkeypatch.setattr(module, "line_search", lambda x, v, g, curvature: 0.0)
    play = fw.FTPL.answer
    monkeypatch.setattr(
        fw.FTPL, "answer", lambda self, set, memory, turn: play(self, set, 0.0 * memory, turn)
    )


POINT = np.full(N, N**-0.5)


def always(learner):
    """The same point in all rounds."""
    return POINT


def opponent(learner):
    """One of two points, whichever is worse for what is played."""
    side = 1.0 if isinstance(learner.problem, Linear) else -1.0
    return POINT if side * (learner.play() @ POINT) >= 0.0 else -POINT


SET = pytest.mark.parametrize("set", [fw.L2Ball(N, 1.0), Box((N,))], ids=["l2", "box"])
BOUND = pytest.mark.parametrize("method", [line_search, strongly_convex, ospf])


@SET
@BOUND
def test_regret_stays_below_the_bound(method, set):
    alpha = getattr(set, "strong_convexity", 0.0)
    for seed in range(SEEDS):
        batches = points(KINDS[seed % len(KINDS)], seed)
        learner, bound = method(set, alpha, len(batches))
        least = best(learner.problem, set, batches)
        assert learner.run(list(batches)).losses.sum() - least <= bound


@pytest.mark.parametrize(
    ("broken", "says"), [(wrong_sign, always), (no_pull, opponent), (no_step, always)]
)
@SET
@BOUND
def test_broken_methods_exceed_the_bound(method, set, broken, says, monkeypatch):
    alpha = getattr(set, "strong_convexity", 0.0)
    # as far away as can be from what is best for the same point in all rounds
    start = np.asarray(set.lmo(POINT if method is strongly_convex else -POINT))
    broken(monkeypatch)
    rounds = LONG // 2 if alpha else LONG
    learner, bound = method(set, alpha, rounds, start=start)
    batches, losses = [], []
    for _ in range(rounds):
        batches.append(says(learner))
        losses.append(learner.observe(batches[-1]).loss)
    assert sum(losses) - best(learner.problem, set, batches) > bound


@pytest.mark.parametrize(
    ("bound", "curved", "flat"),
    [
        (lambda T, a: theory.line_search_regret_bound(
            T, diameter=2.0, gradient_bound=3.0, set_convexity=a), 2 / 3, 3 / 4),
        (lambda T, a: theory.strongly_convex_regret_bound(
            T, diameter=2.0, gradient_bound=3.0, strong_convexity=0.5, set_convexity=a,
        ), 1 / 2, 2 / 3),
        (lambda T, a: [theory.ospf_regret_bound(
            t, scale=1.0, block_size=round(t ** (1 / 3)), smoothness=1.0, diameter=1.0,
            l1_diameter=1.0, direction_l1=1.0, loss_range=1.0) for t in T], 2 / 3, 2 / 3),
    ],
    ids=["line search", "strongly convex", "ospf"],
)  # fmt: skip
def test_orders_of_the_bounds(bound, curved, flat):
    for alpha, order in ((1.0, curved), (0.0, flat)):
        few, many = bound(np.array([1000, 27_000]), alpha)
        assert np.log(many / few) / np.log(27.0) == pytest.approx(order, abs=0.03)


@pytest.mark.parametrize(("length", "slope"), [(1e200, 1e-90), (1e-200, 1e-90), (1e-120, 1e150)])
def test_bounds_have_units(length, slope):
    """D, G, beta and alpha in other units: no overflow on the way."""
    search = {"diameter": 2.0, "gradient_bound": 1.0, "set_convexity": 1.0}
    strong = {**search, "strong_convexity": 0.5}
    units = {"diameter": length, "gradient_bound": slope, "set_convexity": 1.0 / length}
    units["strong_convexity"] = slope / length
    for bound, given in (
        (theory.line_search_regret_bound, search), (theory.strongly_convex_regret_bound, strong),
    ):  # fmt: skip
        wanted = bound([1, 100], **given) * (length * slope)
        found = bound([1, 100], **{name: value * units[name] for name, value in given.items()})
        assert found == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0])
@pytest.mark.parametrize("G", [0.5, 2.0, 20.0])
def test_bounds_of_many_rounds_need_no_loop(G, alpha, monkeypatch):
    """From some round on distances are bounded all at once: from above, and not by much."""
    for bound, given in (
        (theory.line_search_regret_bound, {}),
        (theory.strongly_convex_regret_bound, {"strong_convexity": 0.5}),
    ):
        found, T = {}, np.array([100, 500, 10_000])
        for rounds in (1 << 16, 500):
            monkeypatch.setattr(theory, "_BY_ROUND", rounds)
            given = {**given, "diameter": 2.0, "gradient_bound": G, "set_convexity": alpha}
            found[rounds] = bound(T, **given)
        exact, short = found.values()
        assert short[:2] == pytest.approx(exact[:2], rel=1e-12)
        assert exact[2] <= short[2] <= 1.1 * exact[2]
        assert short[2] < bound(10**12, **given) < bound(10**18, **given) < 10**18


def test_theory_is_the_default_of_ospf():
    """c = 1/(2 G) with G of the first round; blocks of ⌈T^{1/3}⌉."""
    problem, ball, stream, batches = case(SHAPES[1])
    learner = fw.OSPF(problem, ball)
    assert (learner.scale, learner.block_size) == (None, 1)
    learner.run(stream)
    G = np.sqrt(2.0) * np.linalg.norm(batches[0][0], axis=1).max()
    assert learner.scale == pytest.approx(0.5 / G, rel=1e-14)
    sizes = [fw.OSPF(problem, ball, rounds=T).block_size for T in (1, 8, 9, 1000, 1001)]
    assert sizes == [1, 2, 3, 10, 11]


@pytest.mark.parametrize("method", ["search", "ospf"])
@pytest.mark.parametrize(
    ("dtype", "power"), [("f8", 550), ("f8", 980), ("f8", -550), ("f4", -73), ("f4", 70)]
)
@pytest.mark.parametrize("layout", [np.array, scipy.sparse.csr_array, None])
def test_the_constant_of_theory_has_no_unit(layout, dtype, power, method):
    """The first gradients' bound is right where squares leave the range; what fails leaves none."""
    A, y = np.random.default_rng(0).standard_normal((4, 3)).astype(dtype), [0, 1, 1, 0]

    def learner():
        if layout is None:  # of a function's gradient: steps of the same dtype
            problem = fw.problem_from_function(lambda x, a: (float(a @ x), a), 3)
            set = fw.L1Ball(3, 2.0)
        else:
            problem, set = fw.SoftmaxRegression(3, 2), fw.RowL1Ball((2, 3), 2.0)
        if method == "ospf":
            return fw.OSPF(problem, set, dtype=dtype)
        return fw.RegularizedOFW(problem, set, step="line-search", engine="steps", dtype=dtype)

    def batch(power):
        X = np.ldexp(A, power)
        return X[0] if layout is None else (layout(X), y)

    plain, other = learner(), learner()
    plain.observe(batch(0))
    if dtype == "f8":
        with pytest.raises(ValueError, match=r"scale must be given, or the loss or X rescaled"):
            other.observe(batch(1021))
        assert other.t == 1
        assert not other.scale
        assert not other.play().any()
    other.observe(batch(power))
    assert other.scale == np.ldexp(plain.scale, -power)


def test_what_is_refused():
    problem, ball, *_ = case(SHAPES[1])
    with pytest.raises(TypeError, match="or \"line-search\", not 'line'"):
        fw.RegularizedOFW(problem, ball, step="line")
    with pytest.raises(ValueError, match="engine must be 'fused' or 'steps'"):
        fw.RegularizedOFW(problem, ball, step="line-search", engine="dask")
    own = Box(ball.shape)
    own.strong_convexity = None
    with pytest.raises(TypeError, match=r"set\.strong_convexity"):
        fw.RegularizedOFW(problem, own, step="line-search")
    with pytest.raises(ValueError, match=r"strong_convexity must be at most .* rescale the loss"):
        fw.StronglyConvexOFW(problem, ball, strong_convexity=1e38, dtype="f4")
    learner = fw.OSPF(Bent((N,)), fw.L2Ball(N, 1.0), scale=1e308)
    with pytest.raises(FloatingPointError, match="round 1: scale times the sum of gradients"):
        learner.observe(np.full(N, 1e3))
    assert learner.t == 1
    with pytest.raises(ValueError, match="strong_convexity"):
        fw.StronglyConvexOFW(problem, ball, strong_convexity=0.0)
    with pytest.raises(ValueError, match="block_size"):
        fw.OSPF(problem, ball, block_size=0)
    with pytest.raises(ValueError, match="OSPF finds its own steps"):
        grid_search(method="ospf")


def test_a_file_whose_next_decision_lies_outside_is_refused(tmp_path):
    problem, ball, stream, _ = case(SHAPES[1])
    learner = fw.OSPF(problem, ball)
    learner.run(stream)
    learner._engine.state["mean"] = np.full(ball.shape, 1e200)
    learner.save(tmp_path / "file")
    with pytest.raises(ValueError, match="the mean of its vertices lies outside the set"):
        fw.OSPF.load(tmp_path / "file")


def test_only_line_search_asks_a_set_for_its_convexity():
    class Curved(fw.L2Ball):
        def strong_convexity(self):  # a method, of another meaning
            return None

    problem = fw.SoftmaxRegression(2, 2)
    fw.RegularizedOFW(problem, Curved((2, 2), 1.0), engine="steps")
    with pytest.raises(TypeError, match=r"set\.strong_convexity"):
        fw.RegularizedOFW(problem, Curved((2, 2), 1.0), step="line-search", engine="steps")


def test_intervals_want_batches_of_one_size():
    X, y = np.eye(4), np.array([0, 1, 0, 1])
    problem, M = fw.SoftmaxRegression(4, 2), fw.RowL1Ball((2, 4), 1.0)
    stream = fw.epoch_stream(X, y, batch_size=3, epochs=2, seed=0)
    result = fw.ORGFW(problem, M).run(stream)
    with pytest.raises(ValueError, match="stream must have batches of one size"):
        fw.interval_regret(result, problem, M, stream)
    with pytest.raises(TypeError, match="result must be what"):
        fw.interval_regret(result.losses, problem, M, stream)
