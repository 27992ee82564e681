"""What holds for every learner, whatever its problem, set, layout, precision and engine."""

import copy
import gc
import weakref

import numpy as np
import pytest

import fastfw as fw
from cells import CELLS, Cell
from sizes import quiet

cells = pytest.mark.parametrize("cell", CELLS, ids=str)
#: Enough where neither precision nor the way batches come matters.
few = pytest.mark.parametrize(
    "cell", [cell for cell in CELLS if cell[2:4] in (("dense", "float64"), ("csr", "float64"))],
    ids=str,
)  # fmt: skip


@pytest.fixture
def no_collector():
    """Reference counting has to do."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def fail(cell: Cell, learner):
    """Let a round fail: its features are not finite."""
    batch = cell.batches()[0]
    X, y = batch.X * np.nan, batch.y
    with pytest.raises((FloatingPointError, ValueError)), quiet():
        learner.fit(X, y, iterations=3) if cell.offline else learner.run([batch, (X, y)])


@few
def test_learners_are_freed_by_reference_counting(cell, no_collector):
    def alive(use):
        learner = cell.learner()
        use(learner)
        found = weakref.ref(learner)
        del learner
        return found() is not None

    assert not alive(lambda learner: None)
    assert not alive(lambda learner: cell.play(learner, 0, 2))
    assert not alive(lambda learner: fail(cell, learner))
    assert not alive(lambda learner: copy.deepcopy(learner).play())
    if not cell.offline:
        assert not alive(lambda learner: learner.observe(cell.batches()[0]))
        stream = fw.iid_stream(cell.batches()[0].data, batch_size=3, rounds=4)
        assert not alive(lambda learner: learner.run(stream, checkpoints=[2]))
