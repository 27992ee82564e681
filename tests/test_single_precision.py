"""Learners in float32: points and averages stay in the set, whatever the number of rounds.

Steps that single precision rounds to one side, as it does with those of late rounds, let errors
grow in each of them. A hundred rounds show it: where every round is rounded, the tests below find
errors of 1e-6 to 1e-5.
"""

import numba
import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
from learner_cases import read, write
from set_cases import SETS
from sizes import JIT, sized

#: Not every method has compiled rounds for every layout.
pytestmark = pytest.mark.filterwarnings("ignore::fastfw.EngineWarning")

#: About 0.6 units in the last place of 5; less than half of one below 1.
STEPS = [5.7e-8, 2.6e-8]
ROUNDS = 100
#: The largest relative error of rounding.
UNIT = 2.0**-24


def linear(x, X):
    return (x * X[0].reshape(x.shape)).sum(), X[0].reshape(x.shape).copy()


#: Sets and the function whose gradient says where to go.
WORLDS = {name: (make, linear) for name, make in SETS.items()}
WORLDS["a compiled function"] = lambda: fw.Simplex(5, 5.0), numba.njit(linear)


def require_convex_combination(learner, step, x_1, v):
    """The decision is (1 - η)^t x_1 + (1 - (1 - η)^t) v to rounding, the average the mean of them.

    Rounded are x_1, v and what is returned.
    """
    share = (1.0 - step) ** np.arange(ROUNDS + 1)
    for found, rest in ((learner.play(), share[-1]), (learner.average, share[:-1].mean())):
        assert found.dtype == np.float32
        assert np.abs(found - (rest * x_1 + (1.0 - rest) * v)).max() <= 3 * UNIT * np.abs(v).max()


@pytest.mark.parametrize("name", WORLDS)
def test_steps_to_one_vertex(name):
    make, function = WORLDS[name]
    S, step = make(), STEPS[0]
    c = np.random.default_rng(1).standard_normal(S.shape).astype("f4")
    v, other = np.asarray(S.lmo(c), float), np.asarray(S.lmo(-c), float)
    x_1 = 0.3 * v + 0.7 * other
    problem = fw.problem_from_function(function, S.shape)
    learner = fw.ORGFW(problem, S, step=step, start=x_1, dtype="f4")
    learner.run([c.reshape(1, -1)] * ROUNDS)
    assert learner.engine == ("fused" if JIT and function is not linear else "steps")
    require_convex_combination(learner, step, x_1, v)


def model(layout):
    """A problem of five features and three classes, and a set."""
    if layout == "network":
        problem = fw.OneHiddenLayer(5, 2, 3)
        return problem, problem.l1_balls(5.0, 5.0)
    return fw.SoftmaxRegression(5, 3), fw.RowL1Ball((3, 5), 5.0)


ONLINE = [fw.ORGFW, fw.OSFW, fw.RegularizedOFW, fw.OFW, fw.OAW]
META = [fw.MORGFW, fw.MetaFrankWolfe]


@pytest.mark.parametrize(
    ("layout", "step"),
    [("dense", STEPS[1]), ("sparse", STEPS[0]), ("network", STEPS[1]), ("steps", STEPS[0])],
)  # fmt: skip
@pytest.mark.parametrize("kind", [*ONLINE, *META, fw.SVRF, fw.SpiderFW])
def test_single_precision_follows_double(kind, layout, step):
    """Points and averages of both dtypes agree to rounding: oracles answer alike in both."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 5)), np.array([0, 1, 2, 0, 1, 2])
    X += 4.0 * np.eye(3, 5)[y]
    problem, S = model(layout)
    start = np.asarray(S.lmo(rng.standard_normal(S.shape)), float)
    given = {"start": start, "step": step, "engine": "steps" if layout == "steps" else "fused"}
    if kind in META:
        given.update(rounds=2, inner_steps=ROUNDS)
    found = []
    for dtype in (np.float32, np.float64):
        learner = kind(problem, S, dtype=dtype, **given)
        A = X.astype(dtype)
        data = fw.Dataset(sparse.csr_array(A) if layout == "sparse" else A, y)
        if kind in (fw.SVRF, fw.SpiderFW):
            learner.fit(data, iterations=ROUNDS)
        else:
            past = sized(ROUNDS, 12) if kind in (fw.OFW, fw.OAW) else ROUNDS
            rounds = 2 if kind in META else past
            learner.run(fw.iid_stream(data, batch_size=2, rounds=rounds, seed=0))
        found.append((learner.play(), learner.average))
    for single, double in zip(*found, strict=True):
        assert single.dtype == np.float32
        assert np.abs(single - double).max() <= 3 * UNIT * 5.0


#: States that were kept in the decisions' dtype in files of 0.1.0, which had no "low" either.
ONCE_SINGLE = ("sum", "total", "x", "tails", "tail", "tail_previous", "tail_estimate", "tail_sum")
ONCE_SINGLE += ("tail_snapshot", "tail_gradients")


@pytest.mark.parametrize("layout", ["dense", "network", "steps"])
@pytest.mark.parametrize("kind", [*ONLINE, fw.MORGFW, fw.SVRF, fw.SpiderFW])
def test_files_of_0_1_0(kind, layout, tmp_path):
    rng = np.random.default_rng(0)
    data = fw.Dataset(rng.standard_normal((6, 5)).astype("f4"), [0, 1, 2, 0, 1, 2])
    problem, S = model(layout)
    learner = kind(problem, S, dtype="f4", engine="steps" if layout == "steps" else "fused")

    def go_on(learner, seed):
        if kind in (fw.SVRF, fw.SpiderFW):
            learner.fit(data, iterations=learner.t + 4, resume=seed > 0)
        else:
            learner.run(fw.iid_stream(data, batch_size=2, rounds=9, seed=seed))
        return learner

    go_on(learner, 0).save(tmp_path / "new")
    header, arrays = read(tmp_path / "new")
    sums = (np.abs(arrays[f"state.{name}"]).max() for name in ("sum", "total")
            if f"state.{name}" in arrays)  # fmt: skip
    rounded = UNIT * max(sums) / 9  # in a sum that is rounded once, divided by the rounds
    for name, array in list(arrays.items()):
        if name == "state.low":
            del arrays[name]
        elif name.removeprefix("state.") in ONCE_SINGLE:
            arrays[name] = array.astype("f4")
    write(tmp_path / "old.npz", {**header, "fastfw learner": 1}, arrays)
    old = kind.load(tmp_path / "old.npz")
    for _ in range(2):
        assert old.play().dtype == old.average.dtype == np.float32
        assert np.abs(old.play() - learner.play()).max() <= 3 * UNIT * 5.0
        assert np.abs(old.average - learner.average).max() <= 9 * UNIT * 5.0 + rounded
        go_on(old, 1), go_on(learner, 1)
