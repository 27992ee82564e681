"""What holds for every learner, whatever its problem, set, layout, precision and engine."""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest

import fastfw as fw
from cells import CELLS, METHODS, REFUSED, ROUNDS, WORLDS, C, Cell, D, dataset
from fastfw.sklearn import ProjectionFreeClassifier
from sizes import quiet

cells = pytest.mark.parametrize("cell", CELLS, ids=str)
#: Enough where neither precision nor the way batches come matters.
few = pytest.mark.parametrize(
    "cell", [cell for cell in CELLS if cell[2:4] in (("dense", "float64"), ("csr", "float64"))],
    ids=str,
)  # fmt: skip


def fail(cell: Cell, learner):
    """Let a round fail: its features are not finite."""
    batch = cell.batches()[0]
    X, y = batch.X * np.nan, batch.y
    with pytest.raises((FloatingPointError, ValueError)), quiet():
        learner.fit(X, y, iterations=3) if cell.offline else learner.run([batch, (X, y)])


@few
def test_learners_are_freed_by_reference_counting(cell):
    stream = fw.iid_stream(cell.batches()[0].data, batch_size=3, rounds=4)
    uses = [lambda learner: cell.play(learner, 0, 2), lambda learner: fail(cell, learner)]
    if not cell.offline:
        uses.append(lambda learner: learner.observe(cell.batches()[0]))
        uses.append(lambda learner: learner.run(stream, checkpoints=[2]))
    for use in uses:
        use(cell.learner())  # compiles what is needed, which leaves frames behind
        learners = [cell.learner(), cell.learner()]
        gc.disable()
        try:
            for learner in learners:
                use(learner)
            learners.append(copy.deepcopy(learner))
            found = [weakref.ref(learner) for learner in learners]
            del learner, learners
            assert [ref() for ref in found] == [None] * 3
        finally:
            gc.enable()


def saved(cell: Cell, learner, path):
    learner.save(path)
    problem, set, _, whole = WORLDS[cell.world]
    given = {} if whole else {"problem": problem, "set": set}
    return cell.kind.load(path, **given)


def same(one, other):
    """The same bits."""
    return one.dtype == other.dtype and one.tobytes() == other.tobytes()


@cells
def test_learners_that_travel_end_in_the_same_bits(cell, tmp_path):
    """Saved, pickled, copied: between any two rounds, without a difference at the end."""
    ways = (
        lambda learner: saved(cell, learner, tmp_path / "learner"),
        lambda learner: pickle.loads(pickle.dumps(learner)),
        copy.deepcopy,
        copy.copy,
    )
    home, away = cell.learner(), cell.learner()
    for t in range(ROUNDS):
        before = away
        away = ways[t % len(ways)](before)
        if t % 3 == 0:
            cell.play(before, t, t + 1)  # which one left behind does not matter to the other
        assert away.engine == before.engine or t == 0
        one, other = cell.play(home, t, t + 1), cell.play(away, t, t + 1)
        assert same(one.losses, other.losses)
        assert same(one.decision, other.decision)
        assert same(one.average, other.average)
        assert one.gradient_evaluations == other.gradient_evaluations
    assert repr(home) == repr(away)


@pytest.mark.parametrize("cell", REFUSED, ids=str)
def test_layouts_that_are_refused(cell):
    with pytest.raises(TypeError, match=r"sparse|arrays of numbers|Numba cannot compile"):
        cell.play(cell.learner(), 0, 1)


@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_partial_fits_leave_no_learner_behind(layout):
    """Learners of many features are large; they are gone before the next call."""
    model = ProjectionFreeClassifier(radius=2.0)
    data = dataset(layout, "float64")
    model.partial_fit(data.X, data.y, classes=range(C))
    gc.disable()
    try:
        for _ in range(3):
            before = weakref.ref(model._online.learner)
            model.partial_fit(data.X, data.y)
            assert before() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("method", METHODS)
def test_pickles_hold_no_data(method):
    """Of methods that keep the past, no more than the rows seen."""
    rng = np.random.default_rng(0)
    data = fw.Dataset(rng.normal(size=(20_000, D)), rng.integers(C, size=20_000))
    data.X, data.astype("f4").X  # what is made on demand is not in it, either
    for engine in ("fused", "steps"):
        learner = Cell(method, "softmax", "dense", "float64", engine).learner()
        if isinstance(learner, fw.OfflineLearner):
            learner.fit(data, iterations=3)
        else:
            learner.run(fw.iid_stream(data, batch_size=4, rounds=3))
        assert len(pickle.dumps(learner)) < 10_000
