"""Points and constants in the dtype that they are computed in: what lies inside, what fits."""

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
from fastfw import sets
from fastfw.sklearn import ProjectionFreeClassifier
from set_cases import BY_SIZE, SETS
from sizes import quiet, sized

DTYPES = ("f4", "f8")
N = sized(400, 100)


@pytest.mark.parametrize("cases", [SETS, BY_SIZE], ids=["SETS", "BY_SIZE"])
def test_all_sets_have_a_case(cases):
    named = {name.partition(",")[0] for name in cases}
    assert named == {*sets.SETS} - {"CompiledSet", "ConvexSet"}


def directions(shape, dtype, rng):
    g = rng.standard_normal(shape)
    few = rng.integers(-1, 2, shape)
    return [np.asarray(d, dtype) for d in (g, few, np.ones(shape), 1e-30 * g, 1e30 * g, 0.0 * g)]


def linear(shape):
    return fw.problem_from_function(lambda x, c: (float(np.vdot(x, c)), c), shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("n", "radius"), [(2, 3.0), (37, 1e-3), (N, 0.1)])
@pytest.mark.parametrize("name", BY_SIZE)
def test_what_is_computed_in_a_dtype_lies_inside(name, n, radius, dtype):
    own, rng = BY_SIZE[name](n, radius), np.random.default_rng(n)
    around = directions(own.shape, dtype, rng)
    vertices = [own.lmo(g).toarray() for g in around]
    assert {v.dtype for v in vertices} == {np.dtype(dtype)}
    weights = rng.dirichlet(np.ones(len(vertices))).astype(dtype)
    mixture = sum(w * v for w, v in zip(weights, vertices, strict=True))
    learner = fw.ORGFW(linear(own.shape), own, dtype=dtype)
    for i in range(60):
        learner.observe(around[i % 2] + np.asarray(0.1 * i, dtype))
    points = [own.start(dtype), *vertices, mixture, learner.play(), learner.average]
    if hasattr(own, "project"):
        points += [own.project(x) for x in (*around, own.diameter * around[0])]
    for x in points:
        assert x.dtype == dtype
        assert own.contains(x)
        # as it is, and rounded to that dtype before
        for start in (x, x.astype(np.float64)):
            assert fw.ORGFW(linear(own.shape), own, dtype=dtype, start=start).play().dtype == dtype
    out = np.asarray(1.0 + (1e-3 if dtype == "f4" else 1e-6), dtype)
    for v in vertices:
        if not v.any():  # the origin, which has no multiples
            continue
        assert not own.contains(v * out)
        assert own.contains(v * out, tol=1e-2)
        with pytest.raises(ValueError, match="start must lie in"):
            fw.ORGFW(linear(own.shape), own, dtype=dtype, start=v * out)


def test_float32_points_are_starts_of_every_learner(tmp_path):
    own = fw.Simplex(1000)
    x = own.start("f4")
    assert own.contains(x)
    assert not own.contains(x.astype(np.float64))
    for dtype in (None, "f4", "f8"):
        learner = fw.ORGFW(linear(1000), own, dtype=dtype, start=x)
        learner.observe(np.ones(1000))
        learner.save(tmp_path / "learner")
        loaded = fw.ORGFW.load(tmp_path / "learner", problem=learner.problem)
        assert loaded.play().tobytes() == learner.play().tobytes()
        fw.SVRF(linear(1000), own, dtype=dtype, start=x)
    assert (fw.OGD().on(own, rounds=3, dtype="f4", start=x).play() == x).all()


def test_projections_in_float32_are_those_in_float64_rounded():
    rng = np.random.default_rng(0)
    for name in ("Simplex", "RowL1Ball", "L1Ball", "KSparsePolytope", "GroupL1Ball"):
        own = BY_SIZE[name](2000, 5.0)
        x = rng.standard_normal(own.shape).astype("f4")
        wide = own.project(x.astype(np.float64))
        assert np.abs(own.project(x) - wide).max() <= 2e-7 * np.abs(wide).max()


# --- what a dtype can hold ------------------------------------------------------------------------

CODES = np.arange(10, dtype=np.uint8).reshape(5, 2)
Y = np.array([0, 1, 2, 0, 1])
BATCH = np.eye(5), Y
SOFTMAX = fw.SoftmaxRegression(5, 3)
NETWORK = fw.OneHiddenLayer(5, 2, 3)
BALL = fw.RowL1Ball((3, 5), 1.0)


class Interval:
    """A set of one's own: numbers from 0 to its diameter."""

    shape = (1,)

    def __init__(self, diameter):
        self.diameter = diameter

    def lmo(self, direction):
        return np.where(direction > 0.0, 0.0, self.diameter)


#: Learners and data of a dtype with a constant r somewhere.
WITH = {
    "radius": lambda r, dtype: fw.ORGFW(SOFTMAX, fw.RowL1Ball((3, 5), r), dtype=dtype),
    "steps": lambda r, dtype: fw.OFW(SOFTMAX, fw.RowL1Ball((3, 5), r), dtype=dtype, engine="steps"),
    "offline": lambda r, dtype: fw.SVRF(SOFTMAX, fw.RowL1Ball((3, 5), r), dtype=dtype),
    "block": lambda r, dtype: fw.OSFW(NETWORK, NETWORK.l1_balls(1.0, r), dtype=dtype),
    "own set": lambda r, dtype: fw.ORGFW(linear(1), Interval(r), dtype=dtype),
    "base learner": lambda r, dtype: fw.FTPL().on(fw.L2Ball(5, r), rounds=3, dtype=dtype),
    "start": lambda r, dtype: fw.Simplex(5, r).start(dtype),
    "lmo": lambda r, dtype: fw.L2Ball(5, r).lmo(np.ones(5, dtype)),
    "project": lambda r, dtype: fw.L1Ball(5, r).project(np.ones(5, dtype)),
    "pull": lambda r, dtype: fw.RegularizedOFW(SOFTMAX, BALL, scale=r, dtype=dtype),
    "scale": lambda r, dtype: fw.Dataset(CODES, Y, scale=[1, 1, -r, 1, 1]).astype(dtype).X,
    "X": lambda r, dtype: fw.Dataset(r * BATCH[0], Y).astype(dtype).X,
    "sparse X": lambda r, dtype: fw.Dataset(sparse.csr_array(-r * BATCH[0]), Y).astype(dtype).X,
    "classifier": lambda r, dtype: ProjectionFreeClassifier(radius=r, dtype=dtype).fit(*BATCH),
}


@pytest.mark.parametrize("size", [1e39, 1e-46])
@pytest.mark.parametrize("name", WITH)
def test_constants_that_float32_cannot_hold_are_refused(name, size):
    WITH[name](1.0, "f4")
    with quiet():
        WITH[name](size, "f8")
    with pytest.raises(ValueError, match=r"float32.*use dtype float64|which float32 cannot hold"):
        WITH[name](size, "f4")


def test_small_steps_and_large_offsets():
    for keyword in ("step", "momentum"):
        fw.ORGFW(SOFTMAX, BALL, **{keyword: 1e-46}, dtype="f8")
        fw.ORGFW(SOFTMAX, BALL, **{keyword: 0.0}, dtype="f4")
        with pytest.raises(ValueError, match=f"{keyword} must be at least 1.18e-38"):
            fw.ORGFW(SOFTMAX, BALL, **{keyword: 1e-46}, dtype="f4")
    with pytest.raises(ValueError, match="offset of X must be at most"):
        fw.Dataset(CODES, Y, offset=1e39).astype("f4")
    fw.Dataset(CODES, Y, offset=1e-46).astype("f4")  # beside a scale of 1


@pytest.mark.parametrize("radius", [1e39, 1e-46])
def test_where_the_data_settle_the_dtype_a_refused_batch_changes_nothing(radius):
    ball = fw.RowL1Ball((3, 5), radius)
    narrow = BATCH[0].astype("f4"), Y
    learner = fw.ORGFW(SOFTMAX, ball)
    for _ in range(2):
        with pytest.raises(ValueError, match="radius must be at"):
            learner.observe(narrow)
        with pytest.raises(ValueError, match="radius must be at"):
            learner.run([narrow])
    assert learner.t == 1
    assert learner.observe(BATCH) == fw.ORGFW(SOFTMAX, ball).observe(BATCH)
    offline = fw.SVRF(SOFTMAX, ball)
    with pytest.raises(ValueError, match="radius must be at"):
        offline.fit(*narrow, iterations=2)
    assert offline.t == 1
    model = ProjectionFreeClassifier(radius=radius)
    with pytest.raises(ValueError, match="radius must be at"):
        model.partial_fit(*narrow, classes=[0, 1, 2])
    assert not hasattr(model, "coef_")
