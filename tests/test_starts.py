"""Where learners start: `start`, `init`, and the problem's default."""

import numpy as np
import pytest

import fastfw as fw
from learner_cases import Corners, Linear
from network_cases import SHAPE, inside, make_data, make_problem, make_stream
from sizes import sized

ONLINE = [fw.ORGFW, fw.OSFW, fw.OFW, fw.RegularizedOFW, fw.OAW]
ALL = [*ONLINE, fw.SVRF, fw.SpiderFW]
learners = pytest.mark.parametrize("kind", ALL)


@learners
def test_named_starts(kind):
    problem, M = make_problem()
    zeros, vertex, random = (kind(problem, M, init=i).play() for i in ("zeros", "vertex", "random"))
    assert not zeros.any()
    for name, x in M.blocks(vertex).items():
        rows = np.atleast_2d(x)
        assert (np.count_nonzero(rows, axis=1) == 1).all(), name
        assert np.array_equal(np.abs(rows).sum(axis=1), np.full(len(rows), M.sets[name].radius))
    assert np.count_nonzero(random) == SHAPE.size
    assert M.contains(random)


@learners
def test_starts_depend_on_the_seed_alone(kind):
    problem, M = make_problem()
    for init in ("vertex", "random"):
        points = [kind(problem, M, init=init, seed=s).play() for s in (0, 0, 1, (0, 1))]
        assert np.array_equal(points[0], points[1])
        assert len({p.tobytes() for p in points}) == 3


@learners
def test_networks_have_a_default(kind):
    problem, M = make_problem()
    by_name = kind(problem, M, init=problem.default_init).play()
    assert np.array_equal(kind(problem, M).play(), by_name)
    assert by_name.any()
    softmax = fw.SoftmaxRegression(3, 2)
    assert not kind(softmax, fw.RowL1Ball((2, 3), 1.0)).play().any()


@learners
def test_sets_of_ones_own(kind):
    assert np.array_equal(kind(Linear((3,)), Corners()).play(), [1, 0, 0])
    vertex = kind(Linear((3,)), Corners(), init="vertex", seed=4).play()
    assert sorted(vertex.tolist()) == [0, 0, 1]
    random = kind(Linear((3,)), Corners(), init="random").play()
    assert random.min() > 0
    assert abs(random.sum() - 1) <= 1e-15
    with pytest.raises(ValueError, match="'zeros', but they do not lie"):
        kind(Linear((3,)), Corners(), init="zeros")


@learners
def test_bad_starts(kind):
    problem, M = make_problem()
    with pytest.raises(ValueError, match="init must be one of"):
        kind(problem, M, init="ones")
    with pytest.raises(ValueError, match="give one of them"):
        kind(problem, M, init="zeros", start=inside())
    with pytest.raises(ValueError, match="start must have shape"):
        kind(problem, M, start=np.zeros(3))


@pytest.mark.parametrize(
    "kind", [fw.ORGFW, fw.RegularizedOFW, fw.OFW, fw.OAW, fw.SVRF, fw.SpiderFW]
)
@pytest.mark.parametrize("d", [SHAPE.d, 1024])
def test_random_ties_in_compiled_code(kind, d, tmp_path):
    """From zeros, where all hidden units are alike; 1024 features make rows longer than d."""
    shape = SHAPE._replace(d=d)
    problem, _ = make_problem(shape)
    M = problem.l1_balls(3.0, 2.0, ties="random", seed=5)
    points = []
    for engine in ("fused", "steps"):
        learner = kind(problem, M, init="zeros", engine=engine)
        assert learner.engine == engine
        if hasattr(learner, "fit"):
            learner.fit(*make_data(shape), iterations=sized(40, 12))
        else:
            learner.run(make_stream(shape, rounds=sized(40, 12)))
            learner.save(tmp_path / "a.npz")
            assert kind.load(tmp_path / "a.npz").set == M
        points.append(learner.play())
    assert np.abs(points[0] - points[1]).max() <= 1e-12


def test_random_ties_make_hidden_units_differ():
    problem, _ = make_problem()
    for ties, units in (("first", 1), ("random", 3)):
        M = problem.l1_balls(3.0, 2.0, ties=ties, seed=3)
        x = fw.ORGFW(problem, M, init="zeros").run(make_stream(rounds=1)).decision
        assert np.count_nonzero(problem.blocks(x)["W2"].any(axis=0)) == units
