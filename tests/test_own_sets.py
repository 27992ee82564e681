"""Sets of one's own whose vertices a compiled function writes."""

import pickle

import numba
import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
from cells import C, D, ball, corner, dataset
from learner_cases import RECURSIVE, play
from sizes import JIT, about_compiling

corners = fw.CompiledSet((C, D), corner, diameter=ball.diameter)
softmax = fw.SoftmaxRegression(D, C)


@pytest.mark.parametrize("layout", ["dense", "bytes", "csr"])
@pytest.mark.parametrize("method", RECURSIVE)
def test_a_ball_of_ones_own_is_the_ball(method, layout):
    data = dataset(layout, "float64")
    own, wanted = (method(softmax, M, step=0.9) for M in (corners, ball))
    assert own.engine == ("fused" if JIT else "steps")
    play(own, data), play(wanted, data)
    assert np.abs(own.play() - wanted.play()).max() <= 1e-12
    assert own.engine == ("fused" if JIT else "steps")


@numba.njit
def two_best(g, index, value):
    """Half in each of the two smallest entries; of one that it does not like it makes nonsense."""
    index[:] = np.argsort(g)[:2]
    value[:] = 0.5
    if g.max() > 40.0:
        index[1] = 7 * len(g)


def test_vertices():
    M = fw.CompiledSet((2, 4), two_best, entries=2, diameter=2.0)
    v = M.lmo(np.array([[3.0, -1.0, 2.0, 0.0], [0.0, 1.0, -5.0, 2.0]], np.float32))
    assert v.toarray().tolist() == [[0.0, 0.5, 0.0, 0.5], [0.5, 0.0, 0.5, 0.0]]
    assert v.dtype == np.float32
    again, g = pickle.loads(pickle.dumps(M)), np.ones((2, 4))
    assert again.lmo(g).toarray().tolist() == M.lmo(g).toarray().tolist()
    with pytest.raises(ValueError, match="two_best must write places from 0 to 3 to index"):
        M.lmo(50.0 * np.eye(2, 4))


@about_compiling
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_rounds_with_nonsense_change_nothing(layout):
    problem = fw.SoftmaxRegression(5, 3, reduction="sum")
    learner = fw.ORGFW(problem, fw.CompiledSet((3, 5), two_best, entries=2, diameter=2.0))
    X, y = np.abs(np.random.default_rng(0).standard_normal((6, 5))), np.arange(6) % 3
    learner.observe((layout(X), y))
    twin, before = learner.__copy__(), learner.play().tobytes()
    with pytest.raises(ValueError, match="two_best must write places"):
        learner.observe((layout(1e3 * X), y))
    assert (learner.t, learner.engine, learner.play().tobytes()) == (2, "fused", before)
    for each in (learner, twin):
        each.observe((layout(X[:4]), y[:4]))
    assert learner.play().tobytes() == twin.play().tobytes()


@numba.njit
def nothing_like_it(g, index, value):
    index[0] = "place"


@numba.njit
def outside(g, index, value):
    index[0] = -1
    value[0] = 1.0


@numba.njit
def not_a_number(g, index, value):
    value[0] = np.nan


@numba.njit
def two_places(g, index, value):
    for q in range(2):
        value[q] = 0.5


@numba.njit
def wrong_way(g, index, value):
    index[0], value[0] = g.argmax(), 1.0


@numba.njit
def returned(g, index, value):
    return np.ones(4)


@numba.njit
def twice(g, index, value):
    value[:] = 1.0


@pytest.mark.parametrize(
    ("vertex", "options", "error", "message"),
    [
        (outside, {}, ValueError, r"outside must write places from 0 to 3 .* wrote \[-1"),
        (not_a_number, {}, ValueError, "not_a_number must write finite numbers to value"),
        (twice, {"entries": 2}, ValueError, r"twice must write each place once to index"),
        (two_best, {"entries": 5}, ValueError, "entries"),
        (wrong_way, {}, ValueError, "wrong_way must minimise"),
        (returned, {}, ValueError, "returned must write places to index .* wrote zeros alone"),
        (two_places, {}, ValueError, "two_places looked or wrote beyond an array"),
        (two_best, {"diameter": -1.0}, ValueError, "diameter"),
        (corner, {"shape": (2, 2, 2)}, ValueError, "shape must be a number of entries or"),
        ("corner", {}, TypeError, "vertex must be a function"),
        *(
            [
                (nothing_like_it, {}, TypeError, "Numba cannot compile nothing_like_it"),
                (lambda g, index, value: None, {}, TypeError, "put @numba.njit above it"),
            ]
            if JIT
            else []
        ),
    ],
)
def test_what_is_refused(vertex, options, error, message):
    given = {"shape": 4, "diameter": 1.0, **options}
    with pytest.raises(error, match=message):
        fw.CompiledSet(given.pop("shape"), vertex, **given)


def test_methods_without_compiled_rounds_say_so():
    nuclear = fw.NuclearNormBall((C, D), 2.0)
    with pytest.warns(fw.EngineWarning, match="ORGFW has no compiled rounds for SoftmaxRegression"):
        learner = fw.ORGFW(softmax, nuclear)
    assert learner.engine == "steps"
    with pytest.warns(fw.EngineWarning) as caught:
        fw.MORGFW(fw.OneHiddenLayer(D, 2, C), fw.OneHiddenLayer(D, 2, C).l1_balls(), rounds=2)
    assert [warning.filename for warning in caught] == [__file__]
    fw.ORGFW(softmax, nuclear, engine="steps")
    meta = fw.MORGFW(softmax, ball, rounds=2, inner_steps=2)
    with pytest.warns(fw.EngineWarning, match="MORGFW has no compiled rounds for sparse rows"):
        meta.run(fw.iid_stream(dataset("csr", "float64"), batch_size=4, rounds=2))
