"""Later methods beside earlier ones: regret and time where losses come in any order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

import fastfw as fw
from bench.compare.turns import Work
from bench.data import grid
from bench.tables import Columns, mean_and_error
from fastfw import theory
from fastfw.experiments.claims import CONFIRMED, OPEN, REFUTED, judge, paired, signed
from fastfw.experiments.figures import parts_figure
from fastfw.experiments.methods import PRESETS, Method, find_methods
from fastfw.experiments.results import Curve, Part
from fastfw.learners._method import Constants

EARLIER = find_methods(["morgfw", "metafw", "ofw"])
PLAIN, SEARCH, STRONG, PERTURBED = LATER = find_methods(
    ["regularized-ofw", "ofw-ls", "sc-ofw", "ospf"]
)
#: Inner steps of meta methods, but on images.
INNER_STEPS = 30


# --- worlds that are known --------------------------------------------------------------------


class Linear:
    """f(x) = ⟨g, x⟩: costs of the edges of a network, or any others."""

    def __init__(self, n: int) -> None:
        self.shape = (n,)

    def loss(self, x: Any, g: Any) -> float:
        return float(g @ x)

    def gradient(self, x: Any, g: Any) -> Any:
        return g


class Squares(Linear):
    """f(x) = ‖x - g‖² / 2, strongly convex and smooth."""

    def loss(self, x: Any, g: Any) -> float:
        return 0.5 * float((x - g) @ (x - g))

    def gradient(self, x: Any, g: Any) -> Any:
        return x - g


class World(NamedTuple):
    """A problem, a set, and what an adversary says in T rounds."""

    problem: Any
    set: Any
    points: Callable[[int, int], Any]

    @property
    def curved(self) -> bool:
        """Whether the losses are strongly convex."""
        return isinstance(self.problem, Squares)

    @property
    def set_convexity(self) -> float:
        return getattr(self.set, "strong_convexity", 0.0)

    def least(self, points: Any) -> Any:
        """Losses of the best fixed decision, which both families have in closed form."""
        total = points.sum(axis=0)
        x = self.set.project(total / len(points)) if self.curved else self.set.lmo(total).toarray()
        return np.array([self.problem.loss(x, point) for point in points])

    def play(self, method: Method, T: int, seed: int) -> tuple[Any, Any]:
        """The result of T rounds, and regret by round."""
        points = self.points(T, seed)
        learner = method.build(
            self.problem, self.set, rounds=T, seed=seed, inner_steps=INNER_STEPS,
            sub_batch_size=None, **({"strong_convexity": 1.0} if method is STRONG else {}),
        )  # fmt: skip
        result = learner.run(list(points))
        return result, np.cumsum(result.losses - self.least(points))

    def bound(self, method: Method, T: int) -> float:
        """What theory says of regret at most, with norms of gradients as they are here."""
        n, D = self.problem.shape[0], self.set.diameter
        points = self.points(T, 0)
        G = float(np.linalg.norm(points, axis=1).max()) + (D / 2.0 if self.curved else 0.0)
        sizes = {"diameter": D, "gradient_bound": G, "set_convexity": self.set_convexity}
        if method is SEARCH:
            return theory.line_search_regret_bound(T, **sizes)
        if method is STRONG:
            return theory.strongly_convex_regret_bound(T, strong_convexity=1.0, **sizes)
        learner = method.build(self.problem, self.set, rounds=T, seed=0)
        learner.observe(points[0])
        root = np.sqrt(n)
        return theory.ospf_regret_bound(
            T, scale=learner.scale, block_size=learner.block_size, smoothness=float(self.curved),
            diameter=D, l1_diameter=root * D, direction_l1=root * G, loss_range=D * G,
        )  # fmt: skip

    def claims_less(self, method: Method) -> bool:
        """Whether the method's order is better than that of RegularizedOFW here."""
        return self.order(method) < Fraction(3, 4) and (method is not STRONG or self.curved)

    def order(self, method: Method) -> Fraction:
        """The exponent that theory has for regret."""
        if method is STRONG and self.set_convexity:
            return Fraction(1, 2)
        curved = method is SEARCH and self.set_convexity
        return Fraction(2, 3) if method in (STRONG, PERTURBED) or curved else Fraction(3, 4)


def around(n: int, turns: bool) -> Callable[[int, int], Any]:
    """Unit vectors about a direction, which turns round once after three eighths, or does not."""

    def points(T: int, seed: int) -> Any:
        rng = np.random.default_rng((seed, T))
        found = 0.5 * rng.standard_normal((T, n)) / np.sqrt(n)
        found[:, 0] += np.where(turns & (np.arange(T) < 3 * T // 8), -1.0, 1.0)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    return points


def costs(n: int) -> Callable[[int, int], Any]:
    """Costs in [0, 1] of the edges, half of which are dear first and cheap later."""

    def points(T: int, seed: int) -> Any:
        rng = np.random.default_rng((seed, T))
        dear = rng.random(n) < 0.5
        level = np.where((np.arange(T) < 3 * T // 8)[:, np.newaxis] == dear, 0.75, 0.25)
        return level + 0.25 * rng.uniform(-1.0, 1.0, (T, n))

    return points


GRID = grid(4)
WORLDS = {
    "l2 ball": World(Linear(10), fw.L2Ball(10, 1.0), around(10, True)),
    "l2 ball, squares": World(Squares(10), fw.L2Ball(10, 0.5), around(10, False)),
    "box, squares": World(Squares(10), fw.LInfBall(10, 0.25), around(10, False)),
    "routing": World(Linear(*GRID.shape), GRID, costs(*GRID.shape)),
}


# --- exponents --------------------------------------------------------------------------------


class Slope(NamedTuple):
    """How regret grew: seeds by T, exponent and standard error, those of large T, ms a round."""

    regrets: Any
    exponent: float
    error: float
    late: tuple[float, float]
    ms: float


def fit(times: Any, regrets: Any) -> tuple[float, float]:
    """Slope of log regret over log T by least squares, and its standard error."""
    x, y = np.log(np.broadcast_to(times, regrets.shape)[regrets > 0]), np.log(regrets[regrets > 0])
    slope, cut = np.polyfit(x, y, 1)
    rest = y - slope * x - cut
    return float(slope), float(np.sqrt(rest @ rest / (len(x) - 2) / ((x - x.mean()) ** 2).sum()))


def exponents(world: World, method: Method, times: list[int], seeds: int) -> Slope:
    """Play all T with all seeds."""
    regrets, ms = np.empty((seeds, len(times))), 0.0
    for i, T in enumerate(times):
        for seed in range(seeds):
            result, regret = world.play(method, T, seed)
            regrets[seed, i], ms = regret[-1], 1e3 * result.seconds[-1] / T
    return Slope(regrets, *fit(times, regrets), fit(times[-4:], regrets[:, -4:]), ms)


# --- images -----------------------------------------------------------------------------------


def on_images(data: fw.Dataset, rounds: int, drifts: bool, seed: int) -> Iterator[Any]:
    """Yield method, result, regret by round, and the worst interval: its regret and its rounds."""
    problem = fw.SoftmaxRegression(data.n_features, data.n_classes)
    ball = fw.RowL1Ball(problem.shape, 8.0)
    sizes: dict[str, Any] = {"batch_size": len(data) // rounds, "rounds": rounds}
    stream = fw.drifting_stream(data, **sizes, seed=seed) if drifts else fw.sorted_stream(
        data, **sizes
    )  # fmt: skip
    nothing = SimpleNamespace(losses=np.zeros(rounds))  # what comparators lose, with a minus
    spans = fw.interval_regret(nothing, problem, ball, stream, shortest=rounds // 4, tol=1e-4)
    blocks = np.concatenate([*stream.row_blocks(rounds)]).ravel()
    best = fw.best_fixed_decision(problem, ball, data.X[blocks], data.y[blocks], tol=1e-4)
    fixed = np.asarray(fw.regret(nothing, best, stream))
    for method in (*EARLIER, *LATER):
        own = PRESETS["mnist-adversarial"] if method in EARLIER else {}
        options = {"constants": own.get(method.name, Constants()), "rounds": rounds}
        method.build(problem, ball, **options, seed=0).run(
            fw.sorted_stream(data, batch_size=sizes["batch_size"], rounds=2)
        )
        result = method.build(problem, ball, **options, seed=seed).run(stream)
        sums = np.concatenate([[0.0], np.cumsum(result.losses)])
        each = [
            (sums[int(last)] - sums[int(first) - 1] + least, int(first), int(last))
            for first, last, least, _ in spans.intervals
        ]
        yield method, result, sums[1:] + fixed, max(each)


def in_world(world: World, rounds: int, seed: int) -> Iterator[Any]:
    """The same in a world that is known; no intervals."""
    for method in (*EARLIER, *LATER):
        yield method, *world.play(method, rounds, seed), None


def part_of(title: str, trials: list[list[Any]]) -> Part:
    """What the trials gave, as pictures and claims take it."""
    panels: dict[str, Any] = {"regret": [], "cost": []}
    for same in zip(*trials, strict=True):
        method, first, *_ = same[0]
        rounds = np.arange(1, len(first.losses) + 1)
        seconds = np.array([result.seconds for _, result, *_ in same])
        regrets = np.array([regret for _, _, regret, _ in same])
        names = method.name, method.label
        work = first.gradient_evaluations, first.lmo_calls
        panels["regret"].append(Curve(*names, rounds, seconds, regrets, regrets, *work))
        ms, last = 1e3 * seconds[:, -1:] / len(rounds), seconds[:, -1:]
        panels["cost"].append(Curve(*names, rounds[-1:], last, ms, ms, *work))
    return Part(
        title, title, 0, 0, 0, {}, {}, None, {name: tuple(found) for name, found in panels.items()}
    )


# --- the page ---------------------------------------------------------------------------------


def less(method: Method, where: str, ours: Any, theirs: Any) -> tuple[str, str, str]:
    """Say whether a method's regret is below that of RegularizedOFW."""
    mean, error = paired(ours, theirs)
    numbers = f"{ours.mean():.4g}, {signed(mean, error)} below {theirs.mean():.4g}"
    return f"{method.label} below RegularizedOFW, {where}", judge(mean, error), numbers


def claims(
    slopes: dict[tuple[str, str], Slope], parts: list[Part], times: list[int]
) -> Iterator[tuple[str, str, str]]:
    """Answer what the papers say: statement, verdict, numbers."""
    for (name, label), slope in slopes.items():
        (method,) = (own for own in LATER if own.label == label)
        if method is PLAIN or (method is STRONG and not WORLDS[name].curved):
            continue
        order = WORLDS[name].order(method)
        share = max(
            float(regret.mean()) / WORLDS[name].bound(method, T)
            for regret, T in zip(slope.regrets.T, times, strict=True)
        )
        small = slope.late[0] <= order + 2.0 * slope.late[1]
        said = CONFIRMED if small else OPEN if share < 1.0 else REFUTED
        numbers = (
            f"{slope.late[0]:.3f} ± {slope.late[1]:.3f}; regret at most {share:.2g} of the bound"
        )
        yield f"{label}: O(T^{order}), {name}", said, numbers
    for name, world in WORLDS.items():
        for method in (SEARCH, STRONG, PERTURBED):
            if (name, method.label) in slopes and world.claims_less(method):
                ours, theirs = (slopes[name, own.label].regrets[:, -1] for own in (method, PLAIN))
                yield less(method, f"{name}, T = {times[-1]:,}", ours, theirs)
    for part in parts:
        curves = {curve.method: curve for curve in part.panels["regret"]}
        if part.title not in WORLDS:  # softmax regression is smooth, a row-l1 ball has corners
            ours, theirs = curves[PERTURBED.name].final, curves[PLAIN.name].final
            yield less(PERTURBED, part.title, ours, theirs)
        calls = {curves[own.name].oracle_calls == curves["ospf"].rounds[-1] for own in LATER}
        one = CONFIRMED if calls == {True} else REFUTED
        yield f"one call of the oracle a round, {part.title}", one, "counted"


def later(work: Work) -> Iterator[Any]:
    """Regret and time of methods that came later, where their papers claim most and on images.

    *Exponents*: slope of log regret over log T at T = 10^2, 10^2.5, ..., 10^4.5 with three seeds,
    its standard error by least squares, and the same of the four largest T. Losses on the l2 ball
    are linear, with unit vectors that turn round after three eighths of the rounds; *squares* are
    ‖x - a‖²/2 with a about one direction; *routing* is a 4 x 4 grid whose costs change by half. All
    methods have theory's constants, SC-OFW the losses' beta = 1.

    *All methods*: 1,000 rounds of the same, meta methods with 30 inner steps; and 100 rounds of 600
    images of MNIST, sorted by label or drifting by four pieces (`drifting_stream`), row-l1 ball of
    radius 8, comparators to 1e-4. There MORGFW, MetaFrankWolfe and OFW have their paper's
    constants, SC-OFW has beta = 0.1 for losses that are not strongly convex. The worst interval, of
    the first seed, is one of the dyadic ones of at least 25 rounds (`interval_regret`).

    *Claims*: an order is confirmed where the exponent of large T is at most two standard errors
    above it, open where it is not but regret stays below the bound of `fastfw.theory`, and else
    refuted. A better order than RegularizedOFW's, T^(3/4), should show in less regret: confirmed or
    refuted where the difference, paired by seed, is two standard errors from zero.
    """
    seeds = 2 if work.quick else work.turns or 3
    times = [round(10 ** (e / 2)) for e in range(4, 7 if work.quick else 10)]
    columns = Columns({
        "exponents": "<18", "method": "<16", "measured": ">16", "large T": ">17", "theory": ">8",
        "regret": ">10.4g", "ms/round": ">10.3f",
    })  # fmt: skip
    yield columns.head
    slopes: dict[tuple[str, str], Slope] = {}
    for name, world in WORLDS.items():
        for method in LATER:
            if method is STRONG and name == "routing":
                continue  # nothing is claimed, as on the l2 ball
            slope = slopes[name, method.label] = exponents(world, method, times, seeds)
            theirs = str(world.order(method)) if method is not STRONG or world.curved else "none"
            yield columns.line(
                name, method.label, f"{slope.exponent:.3f} ± {slope.error:.3f}",
                f"{slope.late[0]:.3f} ± {slope.late[1]:.3f}", theirs, slope.regrets[:, -1].mean(),
                slope.ms,
            )  # fmt: skip
    X, y, *_ = fw.datasets.load("fashion-mnist-4k" if work.quick else "mnist")
    data, rounds = fw.Dataset(X, y), 200 if work.quick else 1000
    todo: dict[str, Callable[[int], Iterator[Any]]] = {
        "sorted images": lambda seed: on_images(data, 100, False, seed),
        "drifting images": lambda seed: on_images(data, 100, True, seed),
        "l2 ball": lambda seed: in_world(WORLDS["l2 ball"], rounds, seed),
        "routing": lambda seed: in_world(WORLDS["routing"], rounds, seed),
    }
    parts = []
    columns = Columns({
        "all methods": "<18", "": "<16", "regret": ">16", "worst interval": ">26",
        "ms/round": ">10.3f",
    })  # fmt: skip
    yield f"\n{columns.head}"
    for title, trial in todo.items():
        trials = [list(trial(seed)) for seed in range(seeds)]
        part = part_of(title, trials)
        parts.append(part)
        for curve, cost, (*_, worst) in zip(*part.panels.values(), trials[0], strict=True):
            where = worst and f"{worst[0]:.1f} in {worst[1]} to {worst[2]}"
            regret = mean_and_error(curve.final, ".1f", "4.1f")
            yield columns.line(title, curve.label, regret, where, np.median(cost.final))
    columns = Columns({"\nclaims": "<59", "": "<11", " ": "<1"})
    yield columns.head
    yield from (columns.line(*claim) for claim in claims(slopes, parts, times))
    figure = parts_figure(parts, f"{seeds} trials: means, standard errors", across=True)
    for axes in figure.axes[::2]:
        axes.set_ylabel("regret")  # not all of it in nats
    yield "later.png", figure
