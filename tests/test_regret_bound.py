"""ORGFW and MORGFW against the paper's bounds, where all constants are known exactly.

The bounds hold with probability 1 - delta for each round; delta is divided by the number of
rounds and seeds, so that all of them hold together with probability 0.95 (and with the seeds
given here they do). Broken methods are run as well: the bounds are tight enough to tell.
"""

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from fastfw import theory
from fastfw.base_learners import BaseLearner
from learner_cases import ENGINES, Box
from sizes import sized

SEEDS, T = 3, 400
ROUNDS = np.arange(1, T + 1)
DELTA = 0.05 / (SEEDS * T)


class NoisySlope:
    """F(x, ξ) = L ‖x‖² / 2 - ⟨ξ, x⟩; a batch is ξ = μ + s ε with independent signs ε."""

    def __init__(self, mu, smoothness, noise):
        self.shape, self.mu, self.L, self.s = mu.shape, mu, smoothness, noise

    def loss(self, x, xi):
        return 0.5 * self.L * (x @ x) - xi @ x

    def gradient(self, x, xi):
        return self.L * x - xi

    def draws(self, seed):
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], (T, *self.shape))
        return self.mu + self.s * signs

    def constants(self, box):
        """Everything the bounds ask for; each is attained, none is an estimate."""
        n = self.mu.size
        best = np.clip(self.mu / self.L, -1.0, 1.0)
        return best, {
            "smoothness": self.L,
            "diameter": box.diameter,
            "gradient_noise": self.s * np.sqrt(n),  # ‖s ε‖, always
            "value_noise": self.s * n,  # |⟨s ε, x⟩| at a corner
            "initial_gap": -self.loss(best, self.mu),  # f(0) = 0
        }


MU = np.array([0.5, -0.5, 0.25, -0.25])
NOISY = NoisySlope(MU, smoothness=0.01, noise=1.0)
QUIET = NoisySlope(MU, smoothness=0.001, noise=0.005)


class WrongWay(Box):
    """An oracle with the wrong sign."""

    def lmo(self, direction):
        return -super().lmo(direction)


def error_bound(constants):
    keys = ("smoothness", "diameter", "gradient_noise")
    return theory.gradient_error_bound(
        ROUNDS, **{k: constants[k] for k in keys}, failure_probability=DELTA
    )


def play(problem, box, seed, **options):
    """Errors of the gradient estimate, and regret, after every round."""
    best, _ = problem.constants(box)
    learner = fw.ORGFW(problem, box, **options)
    errors, excess = [], []
    for xi in problem.draws(seed):
        x = learner.play()
        excess.append(learner.observe(xi).loss - problem.loss(best, xi))
        estimate = learner._engine.arrays()["d"]
        errors.append(np.linalg.norm(estimate - (problem.L * x - problem.mu)))
    return np.array(errors), np.cumsum(excess)


@pytest.mark.parametrize("problem", [NOISY, QUIET], ids=["noisy", "quiet"])
def test_error_and_regret_stay_below_the_bounds(problem):
    box = Box(problem.shape)
    _, constants = problem.constants(box)
    regret_bound = theory.orgfw_regret_bound(ROUNDS, **constants, failure_probability=DELTA)
    bound = error_bound(constants)
    for seed in range(SEEDS):
        errors, regret = play(problem, box, seed)
        assert np.all(errors <= bound)
        assert np.all(regret <= regret_bound)


@pytest.mark.parametrize("momentum", [1.0, 0.0], ids=["no memory", "no news"])
def test_lemma_1_tells_a_broken_estimator(momentum):
    """Without recursion, or without forgetting, the error of a round never shrinks."""
    box = Box(NOISY.shape)
    _, constants = NOISY.constants(box)
    for seed in range(SEEDS):
        errors, _ = play(NOISY, box, seed, momentum=momentum)
        assert np.any(errors > error_bound(constants))


@pytest.mark.parametrize(
    ("box", "options"),
    [(WrongWay(MU.shape), {}), (Box(MU.shape), {"step": 0.0})],
    ids=["wrong way", "no steps"],
)
def test_theorem_1_tells_a_broken_method(box, options):
    _, constants = QUIET.constants(box)
    regret_bound = theory.orgfw_regret_bound(ROUNDS, **constants, failure_probability=DELTA)
    for seed in range(SEEDS):
        _, regret = play(QUIET, box, seed, **options)
        assert np.any(regret > regret_bound)


def test_corollary_1_for_the_average():
    box = Box(NOISY.shape)
    best, constants = NOISY.constants(box)
    del constants["value_noise"]
    bound = theory.convex_convergence_bound(T, **constants, failure_probability=0.05 / SEEDS)
    for seed in range(SEEDS):
        average = fw.ORGFW(NOISY, box).run(NOISY.draws(seed)).average
        assert 0.0 <= NOISY.loss(average, MU) - NOISY.loss(best, MU) <= bound


# --- softmax regression, compiled -----------------------------------------------------------------

RADIUS = 1.0


def make_softmax():
    """Data, constants, and a decision whose excess loss is certified to be below 1e-5."""
    rng = np.random.default_rng(42)
    X = rng.random((40, 4))
    y = np.argmax(X[:, :3] + 0.3 * rng.gumbel(size=(40, 3)), axis=1)
    problem = fw.SoftmaxRegression(4, 3)
    ball = fw.RowL1Ball(problem.shape, radius=RADIUS)
    x, gap, L = np.zeros((3, 4)), np.inf, problem.smoothness(X)
    while gap > 1e-5:
        g = ref.gradient(x, X, y)
        gap = ref.frank_wolfe_gap(x, g, RADIUS)
        x = ball.project(x - g / L)
    noise = theory.softmax_noise_bounds(X, 3, RADIUS)
    constants = {
        "smoothness": L,
        "diameter": ball.diameter,
        "gradient_noise": noise.gradient_noise,
        "value_noise": noise.value_noise,
        "initial_gap": np.log(3.0) - ref.loss(x, X, y),
    }
    return X, y, problem, ball, x, constants


@pytest.mark.parametrize("engine", ENGINES)
def test_softmax_regression_stays_below_the_bounds(engine):
    X, y, problem, ball, best, constants = make_softmax()
    regret_bound = theory.orgfw_regret_bound(ROUNDS, **constants, failure_probability=DELTA)
    bound = error_bound(constants)
    name = {"fused": "estimate", "steps": "d"}[engine]
    rounds = sized(T, 60)
    for seed in range(SEEDS):
        learner = fw.ORGFW(problem, ball, engine=engine)
        errors, excess = [], []
        for batch in fw.iid_stream(X, y, batch_size=2, rounds=rounds, seed=seed):
            x = learner.play()
            excess.append(learner.observe(batch).loss - ref.loss(best, batch.X, batch.y))
            estimate = learner._engine.arrays()[name][:, :4]
            errors.append(np.linalg.norm(estimate - ref.gradient(x, X, y)))
        assert np.all(errors <= bound[:rounds])
        assert np.all(np.cumsum(excess) <= regret_bound[:rounds])


def test_least_gap_stays_below_proposition_1():
    X, y, problem, ball, _, constants = make_softmax()
    del constants["value_noise"]
    bound = theory.nonconvex_gap_bound(40, **constants, form="proved")
    schedule = fw.power_schedule(1.0, 2 / 3)
    for seed in range(5):
        learner = fw.ORGFW(problem, ball, step=schedule, momentum=schedule)
        stream = fw.iid_stream(X, y, batch_size=2, rounds=40, seed=seed)
        played = learner.run(stream, checkpoints=range(1, 41)).decisions
        assert min(fw.frank_wolfe_gap(problem, ball, x, (X, y)) for x in played) <= bound


# --- MORGFW and Theorem 2 -------------------------------------------------------------------------

HORIZON = 30


class Slopes:
    """f(x) = L ‖x‖² / 2 - ⟨mean row, x⟩ for a batch of rows: linear but for a little curvature."""

    def __init__(self, n, smoothness):
        self.shape, self.L = (n,), smoothness

    def loss(self, x, batch):
        return 0.5 * self.L * (x @ x) - batch[0].mean(axis=0) @ x

    def gradient(self, x, batch):
        return self.L * x - batch[0].mean(axis=0)


class Watched(BaseLearner):
    """FTPL, with a note of every answer and direction, to know the base learners' regret."""

    def __init__(self, scale):
        self.method, self.answers, self.directions = fw.FTPL(scale=scale), {}, {}

    def first(self, set, start):
        return self.method.first(set, start)

    def answer(self, set, memory, turn):
        v = self.method.answer(set, memory, turn)
        self.answers[turn.k, turn.t] = v
        return v

    def remember(self, set, memory, direction, turn):
        self.directions[turn.k, turn.t] = direction.copy()
        return self.method.remember(set, memory, direction, turn)

    def regret(self, box, inner_steps, rounds):
        worst = 0.0
        for k in range(1, inner_steps + 1):
            suffered = sum(self.directions[k, t] @ self.answers[k, t] for t in range(1, rounds + 1))
            total = sum(self.directions[k, t] for t in range(1, rounds + 1))
            worst = max(worst, suffered - total @ box.lmo(total))
        return worst


def adversarial_batches(seed, n, noise):
    """Slopes that turn in the middle, each batch two rows on either side of its slope."""
    rng = np.random.default_rng(seed)
    for t in range(HORIZON):
        mu = rng.uniform(0.5, 1.0, n) * (1.0 if t < HORIZON // 3 else -1.0)
        signs = rng.choice([-1.0, 1.0], n)
        yield np.array([mu + noise * signs, mu - noise * signs]), np.zeros(2, np.intp)


def play_meta(seed, *, noise, smoothness, n=4, **options):
    """Regret of MORGFW, and Theorem 2's bound with the regret its base learners really had."""
    problem, box = Slopes(n, smoothness), Box((n,))
    batches = list(adversarial_batches(seed, n, noise))
    base = Watched(scale=4.0)
    learner = fw.MORGFW(
        problem, box, rounds=HORIZON, base=base, sub_batch_size=1, seed=seed, **options
    )
    losses = learner.run(batches).losses
    slope = np.mean([X.mean(axis=0) for X, _ in batches], axis=0)
    best = np.clip(slope / smoothness, -1.0, 1.0)
    at_best = np.array([problem.loss(best, batch) for batch in batches])
    at_start = np.array([problem.loss(np.zeros(n), batch) for batch in batches])
    bound = theory.morgfw_regret_bound(
        HORIZON,
        smoothness=smoothness,
        diameter=box.diameter,
        gradient_noise=noise * np.sqrt(n),  # attained by every sub-batch of one row
        base_regret=base.regret(box, HORIZON, HORIZON),
        initial_gap=max(0.0, float((at_start - at_best).max())),
        failure_probability=0.05 / SEEDS,
    )
    return float((losses - at_best).sum()), bound


@pytest.mark.parametrize(("noise", "smoothness"), [(0.5, 0.01), (0.001, 0.0005)])
def test_morgfw_stays_below_theorem_2(noise, smoothness):
    for seed in range(SEEDS):
        regret, bound = play_meta(seed, noise=noise, smoothness=smoothness)
        assert regret <= bound


def test_theorem_2_tells_a_broken_method():
    """A method that never moves from x_1 has more regret than the bound allows."""
    for seed in range(SEEDS):
        regret, bound = play_meta(seed, noise=0.001, smoothness=0.0005, step=0.0)
        assert regret > bound
