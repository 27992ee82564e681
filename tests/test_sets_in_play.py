"""Learners over every set: structured vertices do what dense ones do, and are never made dense."""

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
from fastfw.learners.compiled import PAST
from fastfw.sets._compiled import blocks_of
from learner_cases import (
    LEARNERS,
    RECURSIVE,
    Pairs,
    Quadratic,
    play,
    read,
    saved_goes_on,
    write,
)
from set_cases import SETS

SMALL = [name for name in SETS if "large" not in name]
#: Those that compiled rounds play.
ROWS = [name for name in SMALL if blocks_of(SETS[name]())]
ROUNDS = 12

each = pytest.mark.parametrize("method", LEARNERS)
#: One that has a momentum, one that keeps vertices, one of base learners.
kinds = pytest.mark.parametrize("method", ["ORGFW", "OAW", "MORGFW"])
over = pytest.mark.parametrize("name", SMALL)


class Dense:
    """The same set with the least that a set must have, and dense vertices."""

    def __init__(self, own):
        for name in {"shape", "diameter", "start", "strong_convexity"} & {*dir(own)}:
            setattr(self, name, getattr(own, name))
        self._own = own

    def lmo(self, direction):
        return self._own.lmo(direction).toarray()


def batches(shape, rounds=ROUNDS, seed=0):
    """Points around one that lies mostly outside the set."""
    rng = np.random.default_rng(seed)
    return list(rng.standard_normal(shape) + rng.standard_normal((rounds, 3, *shape)))


@over
@each
def test_structured_vertices_do_what_dense_ones_do(method, name):
    own = SETS[name]()
    problem = Quadratic(own.shape)
    stream = batches(own.shape)
    result = LEARNERS[method](problem, own).run(stream)
    wanted = LEARNERS[method](problem, Dense(own)).run(stream)
    size = own.diameter + np.abs(own.start()).max()
    # Differences grow where they reach the estimate; no vertex changes here.
    assert np.abs(result.decision - wanted.decision).max() <= 1e-12 * size
    assert np.abs(result.losses - wanted.losses).max() <= 1e-11 * np.abs(wanted.losses).max()
    assert own.contains(result.decision, tol=1e-12)
    assert own.contains(result.average, tol=1e-12)


@over
@each
def test_vertices_are_never_made_dense(method, name, monkeypatch):
    own = SETS[name]()
    learner = LEARNERS[method](Quadratic(own.shape), own)
    kinds = {type(own.lmo(np.ones(own.shape)))} - {fw.DenseVertex}
    kinds |= {type(part) for part in getattr(own.lmo(np.ones(own.shape)), "parts", {}).values()}

    def never(self):
        raise AssertionError("a vertex was made dense")

    for kind in kinds:
        monkeypatch.setattr(kind, "toarray", never)
    for batch in batches(own.shape, 6):
        learner.observe(batch)
    assert learner.t == 7


def test_what_a_class_says_of_its_rows_is_not_its_subclasses():
    """Which may have another oracle."""

    class Half(fw.Simplex):
        def lmo(self, direction):
            return super().lmo(direction).toarray() / 2

    assert blocks_of(fw.Simplex(3))
    assert blocks_of(Half(3)) is None
    assert blocks_of(fw.ProductSet([fw.Simplex(3), Half(3)])) is None


@over
def test_sets_are_saved(name, tmp_path):
    own = SETS[name]()
    problem, (first, second) = Quadratic(own.shape), batches(own.shape, 2)
    learner = fw.OSFW(problem, own)
    learner.observe(first)
    assert saved_goes_on(learner, second, tmp_path, problem=problem).set == own


@pytest.mark.parametrize("offline", [fw.SVRF, fw.SpiderFW])
@over
def test_offline_methods(offline, name):
    own = SETS[name]()
    problem = Pairs(own.shape)
    X = np.concatenate(batches(own.shape, 20))
    learner = offline(problem, own, epoch_length=5, batch_size=4, step=0.1)
    result = learner.fit(X, np.zeros(len(X), int), iterations=30)
    dense = offline(problem, Dense(own), epoch_length=5, batch_size=4, step=0.1)
    wanted = dense.fit(X, np.zeros(len(X), int), iterations=30)
    assert np.abs(result.decision - wanted.decision).max() <= 1e-12 * (own.diameter + 1)
    assert own.contains(result.decision, tol=1e-12)


LAYOUTS = {
    "dense": lambda X, y: fw.Dataset(X / 255, y),
    "bytes": lambda X, y: fw.Dataset(X, y, scale=1 / 255),
    "csr": lambda X, y: fw.Dataset(sparse.csr_array(X / 255), y),
}


LINEAR = (*RECURSIVE, fw.SVRF, fw.SpiderFW)
PLAYED = [
    (name, method)
    for name in ROWS
    for method in (*LINEAR, fw.OFW, fw.OAW)
    if method in LINEAR or blocks_of(SETS[name]())[0].kind in PAST.kinds
]


def agree(method, problem, M, layout, tol, path):
    """Compiled rounds lead where oracle calls do, and are saved."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 256, (24, problem.first_layer[1]), np.uint8)
    X[rng.random(X.shape) < 0.4] = 0
    data = LAYOUTS[layout](X, np.arange(24) % problem.n_classes)
    fused, steps = (method(problem, M, step=0.9, engine=engine) for engine in ("fused", "steps"))
    play(fused, data), play(steps, data)
    assert fused.engine == "fused"
    assert np.abs(fused.play() - steps.play()).max() <= tol
    fused.save(path)
    twin = method.load(path)
    assert twin.engine == "fused"
    assert twin.play().tobytes() == fused.play().tobytes()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("name", "method"), PLAYED)
def test_compiled_rounds_follow_the_oracle(name, method, layout, tmp_path):
    """In a network's first layer, beside what is in the next: sets of one row can be there, too.

    There may be several, too, where each row is searched on its own.
    """
    own = SETS[name]()
    (block,) = blocks_of(own)
    first = [own, fw.RowL1Ball((2, block.length), 1.5)] if method in LINEAR else [own]
    units = block.n + 2 * (len(first) - 1)
    problem = fw.OneHiddenLayer(block.length, units, 3, "tanh")  # of 2 classes vertices tie
    rest = fw.L1Ball(problem.shape[0] - units * block.length, radius=2.0)
    tol, path = 1e-12 * own.diameter, tmp_path / "learner"
    agree(method, problem, fw.ProductSet([*first, rest]), layout, tol, path)
    if own.shape == (block.n, block.length):
        assert block.n > 2, "with two classes vertices tie: give its case three rows"
        agree(method, fw.SoftmaxRegression(block.length, block.n), own, layout, tol, path)


def test_nodes_that_json_does_not_know(tmp_path):
    """A graph of grid points is not saved; it is given again."""
    grid = [((0, 0), (0, 1)), ((0, 1), (1, 1)), ((0, 0), (1, 0)), ((1, 0), (1, 1))]
    own = fw.FlowPolytope(grid, (0, 0), (1, 1))
    problem = Quadratic(own.shape)
    learner = fw.ORGFW(problem, own)
    learner.observe(np.ones((1, 4)))
    learner.save(tmp_path / "learner")
    with pytest.raises(ValueError, match="its set is not saved; give set="):
        fw.ORGFW.load(tmp_path / "learner", problem=problem)
    again = fw.ORGFW.load(tmp_path / "learner", problem=problem, set=own)
    assert np.array_equal(again.play(), learner.play())


def test_a_vertex_of_ones_own():
    """The least that a set with structured vertices of one's own needs."""

    class Corner(fw.Vertex):
        """A corner of the box [0, 1]^n."""

        __slots__ = ("ones",)

        def __init__(self, ones, n):
            super().__init__((n,))
            self.ones = ones

        def toarray(self):
            return np.bincount(self.ones, minlength=self.shape[0]).astype(float)

        def dot(self, direction):
            return float(np.asarray(direction)[self.ones].sum())

        def add_to(self, x, scale):
            x[self.ones] += scale

    class Box:
        shape, diameter = (4,), 2.0

        def lmo(self, direction):
            return Corner(np.flatnonzero(direction < 0), 4)

    problem = Quadratic((4,))
    for method in LEARNERS:
        result = LEARNERS[method](problem, Box()).run(batches((4,)))
        wanted = LEARNERS[method](problem, Dense(Box())).run(batches((4,)))
        assert np.abs(result.decision - wanted.decision).max() <= 1e-13


# --- oracles that begin from the vertex before ----------------------------------------------------

ITERATES = {
    "alone": lambda: fw.NuclearNormBall((66, 70), radius=4.0),
    "in a product": lambda: fw.ProductSet(
        {"low rank": fw.NuclearNormBall((65, 66), radius=4.0), "bias": fw.L2Ball(3, 1.0)}
    ),
}


@pytest.mark.parametrize("name", ITERATES)
@pytest.mark.parametrize("method", ["ORGFW", "OSFW", "OFW", "OAW", "RegularizedOFW"])
def test_oracles_begin_from_the_vertex_before(method, name, tmp_path, monkeypatch):
    own = ITERATES[name]()
    problem = Pairs(own.shape)
    stream = [(b, np.zeros(len(b), int)) for b in batches(own.shape, 8)]
    starts = []
    oracle = fw.NuclearNormBall.lmo

    def noted(self, direction, start=None):
        starts.append(start)
        found = oracle(self, direction, start)
        if np.any(direction):  # decoding a product's vertex asks for zero's
            noted.last = found
        return found

    with monkeypatch.context() as patch:
        patch.setattr(fw.NuclearNormBall, "lmo", noted)
        learner = LEARNERS[method](problem, own)
        starts.clear()
        learner.observe(stream[0])
        assert starts[0] is None
        first = noted.last
        learner.observe(stream[1])
        begun = [start for start in starts if start is not None]
        assert len(begun) == 1
        assert np.array_equal(begun[0].right, first.right)

    # one by one, saved in between, or in a run: the same bits; and what cold oracles find
    learner = LEARNERS[method](problem, own)
    for batch in stream[:4]:
        learner.observe(batch)
    learner.save(tmp_path / "learner")
    learner = type(learner).load(tmp_path / "learner", problem=problem)
    for batch in stream[4:]:
        learner.observe(batch)
    result = LEARNERS[method](problem, own).run(stream)
    assert learner.play().tobytes() == result.decision.tobytes()
    monkeypatch.setattr(type(own), "warm_starts", False)
    cold = LEARNERS[method](problem, own).run(stream)
    assert np.abs(result.decision - cold.decision).max() <= 1e-11 * own.diameter


def test_starts_that_are_no_vertices_are_refused(tmp_path):
    own = ITERATES["alone"]()
    g = np.ones(own.shape)
    other = fw.NuclearNormBall((70, 66), radius=4.0).lmo(g.T)
    for start in (other, g, "first"):
        with pytest.raises(TypeError, match="start must be a vertex of this set"):
            own.lmo(g, start)
    # and in files
    learner = fw.ORGFW(Quadratic(own.shape), own)
    learner.observe(batches(own.shape, 1)[0])
    learner.save(tmp_path / "learner")
    header, arrays = read(tmp_path / "learner")
    for spoilt in (arrays["state.warm"][:-1], arrays["state.warm"] * np.nan, g):
        write(tmp_path / "spoilt.npz", header, {**arrays, "state.warm": spoilt})
        with pytest.raises(ValueError, match="warm"):
            fw.ORGFW.load(tmp_path / "spoilt.npz", problem=Quadratic(own.shape))


NO_POINTS = {
    "NaN": (np.array([0.0, np.nan, 0.0]), ValueError, r"one with nan at \[1\]"),
    "infinity": ([0.0, 0.0, -np.inf], ValueError, r"one with -inf at \[2\]"),
    "short": (np.zeros(2), ValueError, r"one of shape \(2,\)"),
    "column": (np.zeros((3, 1)), ValueError, r"one of shape \(3, 1\)"),
    "number": (1.0, ValueError, r"one of shape \(\)"),
    "None": (None, TypeError, "None; does it lack a return"),
    "None inside": ([0.0, None, 1.0], TypeError, "one of dtype object"),
    "complex": (np.ones(3) * 1j, TypeError, "one of dtype complex128"),
    "text": ("abc", TypeError, "a str"),
    "ragged": ([[1.0], [1.0, 2.0], 3.0], TypeError, "a ragged list"),
    "masked": (np.ma.masked_array(np.zeros(3), [True, False, False]), TypeError, "MaskedArray"),
    "NaN in a vertex": (fw.DenseVertex(np.array([0.0, np.nan, 0.0])), ValueError, "one with nan"),
}
no_points = pytest.mark.parametrize("wrong", NO_POINTS)


class Cube:
    """The unit cube, whose oracle gives something else from a call on, if at all."""

    shape, diameter = (3,), 3**0.5

    def __init__(self, wrong=None, after=0):
        self.calls, self.wrong, self.after = 0, wrong, after

    def lmo(self, direction):
        self.calls += 1
        if self.wrong is not None and self.calls > self.after:
            return NO_POINTS[self.wrong][0]
        return (np.asarray(direction) < 0).astype(float)


class OtherCube(Cube):
    """A cube with one more method, which gives something else."""

    def __init__(self, method, wrong):
        super().__init__()
        setattr(self, method, lambda *arguments: NO_POINTS[wrong][0])


def refused(wrong, oracle):
    """What is expected where an oracle gave a wrong thing."""
    _, kind, gave = NO_POINTS[wrong]
    wanted = rf"set\.{oracle} must give an array of shape \(3,\) of finite real numbers"
    return pytest.raises(
        kind, match=rf"{wanted}, but it gave {gave}|{wanted}, but it gave a {gave}"
    )


@no_points
@kinds
def test_what_an_oracle_gives_is_checked_and_the_learner_stays_as_it_was(method, wrong):
    own = Cube()
    learner = LEARNERS[method](Pairs(own.shape), own)
    batch = (batches(own.shape, 1)[0], np.zeros(3, int))
    learner.observe(batch)
    before = learner.play().copy()
    for act in (learner.observe, lambda batch: learner.run([batch])):
        own.wrong, own.after = wrong, own.calls
        with refused(wrong, "lmo"):
            act(batch)
        assert learner.t == 2
        assert np.array_equal(learner.play(), before)
    own.wrong = None
    learner.observe(batch)


@no_points
def test_what_an_oracle_gives_is_checked_before_the_first_round_and_elsewhere(wrong):
    problem = Pairs((3,))
    batch = (batches((3,), 1)[0], np.zeros(3, int))
    for init in (None, "vertex", "random", "zeros"):
        with refused(wrong, "lmo"):
            fw.ORGFW(problem, Cube(wrong), init=init)
    for own in (Cube(wrong), Cube(wrong, after=1), Cube(wrong, after=3)):
        with refused(wrong, "lmo"):
            fw.best_fixed_decision(problem, own, *batch, tol=1e-12)
    with refused(wrong, "lmo"):
        fw.frank_wolfe_gap(problem, Cube(wrong), np.zeros(3), batch)
    product = fw.ProductSet({"a": Cube(wrong)})
    with refused(wrong, "lmo") as error:
        fw.ORGFW(problem, product, start=np.zeros(3)).observe(batch)
    # structured vertices are looked at as one
    assert str(error.value).startswith("block 'a': " if "vertex" not in wrong else "set.lmo")


@no_points
def test_starts_projections_and_random_points_of_ones_own_are_checked(wrong):
    problem = Pairs((3,))
    batch = (batches((3,), 1)[0], np.zeros(3, int))
    with refused(wrong, "start"):
        fw.ORGFW(problem, OtherCube("start", wrong))
    with refused(wrong, "start"):
        fw.best_fixed_decision(problem, OtherCube("start", wrong), *batch)
    with refused(wrong, "random_point"):
        fw.ORGFW(problem, OtherCube("random_point", wrong), init="random")
    own = OtherCube("project", wrong)
    with refused(wrong, "project"):
        fw.best_fixed_decision(problem, own, *batch)
    learner = fw.MORGFW(problem, own, rounds=5, inner_steps=2, base=fw.OGD(0.1))
    with refused(wrong, "project"):
        learner.observe(batch)
    assert learner.t == 1
    with refused(wrong, "project"):
        fw.MORGFW(problem, own, rounds=5, inner_steps=2, base=fw.RFTL(0.1)).play()


@pytest.mark.parametrize(
    ("diameter", "kind"),
    [(-1.0, ValueError), (np.nan, ValueError), (np.inf, ValueError), ("a", TypeError)],
)
def test_diameters_that_are_none_are_refused_where_they_are_used(diameter, kind):
    own = OtherCube("project", "NaN")
    own.diameter = diameter
    problem = Pairs((3,))
    batch = (batches((3,), 1)[0], np.zeros(3, int))
    said = r"set\.diameter must be a finite number >= 0, but it is"
    for base in (fw.OGD(), fw.RFTL()):
        with pytest.raises(kind, match=said):
            fw.MORGFW(problem, own, rounds=5, base=base)
    learner = fw.RegularizedOFW(problem, own, rounds=5)
    with pytest.raises(kind, match=said):
        learner.observe(batch)
    assert learner.t == 1
    with pytest.raises(kind, match=f"block 'b': {said}"):
        _ = fw.ProductSet({"a": fw.Simplex(2), "b": own}).diameter
    fw.ORGFW(problem, own).observe(batch)  # needs none


def test_an_oracle_is_not_blamed_for_what_it_was_asked():
    class Overflows(Pairs):
        def gradient(self, x, batch):
            return np.full(3, np.nan)

    class Follows(Cube):
        def lmo(self, direction):
            return np.asarray(direction) * 1.0

    problem = Overflows((3,))
    with pytest.raises(FloatingPointError, match="the loss at the start"):
        fw.best_fixed_decision(problem, Follows(), np.ones((2, 3)), np.zeros(2, int))
    with pytest.raises(FloatingPointError, match="the loss at the start"):
        fw.best_fixed_decision(problem, fw.Simplex(3), np.ones((2, 3)), np.zeros(2, int))


@pytest.mark.parametrize("kind", [fw.ORGFW, fw.OSFW, fw.OFW, fw.OAW, fw.RegularizedOFW])
def test_warm_starts_of_dense_vertices_without_a_default(kind):
    class Corners:
        shape = (4,)
        diameter = 4.0
        warm_starts = True
        seen = None

        def lmo(self, direction, start):
            self.seen = start
            return np.where(direction < 0.0, 1.0, -1.0)

    corners = Corners()
    problem = fw.problem_from_function(lambda x, batch: (0.5 * x @ x - x.sum(), x - 1.0), 4)
    learner = kind(problem, corners)
    learner.run([np.ones((2, 4))] * 3)
    assert np.isin(np.asarray(corners.seen), (-1.0, 1.0)).all()
    best = fw.best_fixed_decision(problem, corners, np.ones((2, 4)))
    assert best.value == pytest.approx(-2.0)
