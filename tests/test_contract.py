"""What holds for every learner, whatever its problem, set, layout, precision and engine."""

import copy
import functools
import gc
import pickle
import weakref
from inspect import signature

import numpy as np
import pytest

import fastfw as fw
from cells import CELLS, METHODS, REFUSED, ROUNDS, WORLDS, C, Cell, D, N, ball, dataset
from fastfw.kernels._jit import dispatchers
from fastfw.sklearn import ProjectionFreeClassifier
from learner_cases import refuses_to_be_written, same, snapshot
from sizes import about_compiling, quiet

pytestmark = pytest.mark.filterwarnings("ignore::fastfw.EngineWarning")
cells = pytest.mark.parametrize("cell", CELLS, ids=str)
#: Enough where neither precision nor the way batches come matters.
USUAL = (("dense", "float64"), ("csr", "float64"))
few = pytest.mark.parametrize("cell", [cell for cell in CELLS if cell[2:4] in USUAL], ids=str)


def fail(cell: Cell, learner):
    """Let a round fail: its features are not finite."""
    batch = cell.batches()[0]
    X, y = batch.X * np.nan, batch.y
    with pytest.raises((FloatingPointError, ValueError)), quiet():
        learner.fit(X, y, iterations=3) if cell.offline else learner.run([batch, (X, y)])


def test_every_argument_of_its_own_is_played_with_another_value_than_its_default():
    """Else nothing below sees whether it does what it says, or is saved."""
    usual = {*signature(fw.ORGFW).parameters, *signature(fw.SVRF).parameters, "eta"}
    for kind in dict.fromkeys(kind for kind, _ in METHODS.values()):
        given = [options for own, options in METHODS.values() if own is kind]
        for name, argument in signature(kind).parameters.items():
            if name not in usual:
                values = [options.get(name, argument.default) for options in given]
                assert any(value != argument.default for value in values), (
                    f"give {name} of {kind.__name__} a value in OPTIONS of tests/cells.py that is "
                    f"not its default, and does something within {ROUNDS} rounds"
                )


@pytest.mark.parametrize(
    "cell", [cell for cell in CELLS if cell[1] in ("softmax", "plain") and cell[2:4] in USUAL],
    ids=str,
)  # fmt: skip
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


@pytest.mark.parametrize("engine", ["fused", "steps"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("method", [fw.ORGFW, fw.OSFW, fw.RegularizedOFW], ids=lambda m: m.__name__)
def test_without_an_average_all_else_is_the_same(method, layout, engine, tmp_path):
    stream = fw.iid_stream(dataset(layout, "float64"), batch_size=3, rounds=20, seed=0)
    problem = WORLDS["softmax"].problem
    step = {} if method is fw.RegularizedOFW else {"step": fw.power_schedule(1.0, 0.1)}
    whole = method(problem, ball, engine=engine, **step)
    lean = method(problem, ball, engine=engine, average=False, **step)
    one, other = whole.run(stream), lean.run(stream)
    assert (one.losses == other.losses).all()
    assert (one.decision == other.decision).all()
    lean.save(tmp_path / "lean.npz")
    loaded = method.load(tmp_path / "lean.npz")
    copies = [loaded, copy.deepcopy(lean), pickle.loads(pickle.dumps(lean))]
    whole.run(stream)
    for learner in [lean, *copies]:
        learner.run(stream)
        assert (learner.play() == whole.play()).all()
    for owner in (other, lean, *copies):
        with pytest.raises(AttributeError, match="average=False keeps no average"):
            owner.average  # noqa: B018
    with pytest.raises(TypeError, match="average must be True or False"):
        method(problem, ball, average="no")


def saved(cell: Cell, learner, path):
    learner.save(path)
    problem, set, _, whole = WORLDS[cell.world]
    given = {} if whole else {"problem": problem, "set": set}
    loaded, before = cell.kind.load(path, **given), path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == before
    assert refuses_to_be_written(loaded.play())
    return loaded


@cells
def test_rounds_are_the_same_however_they_are_played(cell):
    """A run is a loop of rounds; all that is played lies in the set, and stays as it is."""
    whole, loop = cell.learner(), cell.learner()
    result = cell.play(whole, 0, ROUNDS, checkpoints=range(1, ROUNDS + 2))
    played, losses = [loop.play()], []
    for t in range(1, ROUNDS + 1):
        losses.append(cell.round(loop, t))
        assert loop.t == t + 1
        played.append(loop.play())
    assert losses == result.losses.tolist()
    assert same(loop.average, result.average)
    assert result.decision.dtype == result.average.dtype == cell.dtype
    contains = getattr(WORLDS[cell.world].set, "contains", ball.contains)
    for x, kept in zip(played, result.decisions, strict=True):
        assert same(x.astype(cell.dtype), kept)  # the first does not know the data's precision
        assert contains(kept)
    eps = np.finfo(cell.dtype).eps
    assert contains(result.average)
    assert np.abs(result.average - result.decisions[:-1].mean(axis=0)).max() <= 16 * ROUNDS * eps
    for array in (*played, result.decision, result.average, loop.average):
        assert refuses_to_be_written(array)
    assert repr(whole) == repr(loop)


@functools.cache
def outcome(cell):
    return cell.play(cell.learner(), 0, ROUNDS)


@cells
def test_engines_layouts_and_precisions_agree(cell):
    """To rounding: no vertex hangs on it here."""
    layout = "bytes" if cell.layout == "bytes" else "dense"  # whose numbers are others
    plain = cell._replace(layout=layout, dtype="float64", engine="steps")
    if (cell, cell.layout) == (plain, layout):
        plain = cell._replace(engine="fused")
    one, other = outcome(cell), outcome(plain)
    tolerance = 1e-12 if cell.dtype == "float64" else 2e-5
    assert np.abs(one.decision - other.decision).max() <= tolerance
    assert np.abs(one.average - other.average).max() <= tolerance
    assert np.abs(one.losses - other.losses).max() <= 10 * tolerance
    assert one.gradient_evaluations == other.gradient_evaluations
    assert one.lmo_calls == other.lmo_calls


@few
@pytest.mark.parametrize("after", [0, 3])
def test_rounds_that_fail_leave_no_trace(cell, after, tmp_path):
    """Alone, and in a run after good ones; the rounds to come are as if there had been none."""
    learner, twin = cell.learner(), cell.learner()
    if after:
        cell.play(learner, 0, after), cell.play(twin, 0, after)
    before = snapshot(learner, tmp_path / "learner")
    batch = cell.batches()[0]
    X, y = batch.X, batch.y
    bad = [(X * np.nan, y)]
    if cell.world not in ("plain", "nuclear", "compiled"):  # functions take what they like
        bad += [(X[:0], y[:0]), (X[:, 1:], y), (X, y + C), (X, y[1:]), (X, y * 0.5), (X,), None]
    errors = (FloatingPointError, TypeError, ValueError)
    for given in bad:
        if cell.offline:
            pair = given if isinstance(given, tuple) else (given,)
            with pytest.raises(errors), quiet():
                learner.fit(*pair, iterations=after + 2, resume=after > 0)
        else:
            with pytest.raises(errors), quiet():
                learner.observe(given)
            with pytest.raises(errors), quiet():
                learner.run([batch, batch, given])
        assert snapshot(learner, tmp_path / "learner") == before
    one, other = (cell.play(each, after, ROUNDS) for each in (learner, twin))
    assert same(one.losses, other.losses)
    assert same(one.decision, other.decision)
    assert same(one.average, other.average)


@pytest.mark.parametrize(
    "cell", [cell for cell in CELLS if cell[1:3] == ("softmax", "dense")], ids=str
)
def test_rounds_that_overflow_leave_no_trace(cell, tmp_path):
    """Of finite features: the round is named."""
    learner, twin = cell.learner(), cell.learner()
    cell.play(learner, 0, 3), cell.play(twin, 0, 3)
    before = snapshot(learner, tmp_path / "learner")
    # rows along which two classes differ, with the label of the lesser one
    x = learner.play()
    along = np.where(x[0] < x[1], -1.0, 1.0).astype(cell.dtype)
    X = np.tile(0.9 * np.finfo(cell.dtype).max * along, (N, 1)).astype(cell.dtype)
    y = np.ones(N, int)
    if cell.offline:
        with pytest.raises(FloatingPointError, match="iteration 4: "), quiet():
            learner.fit(X, y, iterations=4, resume=True)
    else:
        wide = fw.Batch(fw.Dataset(np.vstack([0.0 * X, X]), [*y, *y]), np.arange(N, 2 * N))
        for bad in ((X, y), wide):
            with pytest.raises(FloatingPointError, match="round 4: "), quiet():
                learner.observe(bad)
            assert snapshot(learner, tmp_path / "learner") == before
        with pytest.raises(FloatingPointError, match=r"round [456]: "), quiet():
            learner.run([*cell.batches()[3:5], (X, y)])
    assert snapshot(learner, tmp_path / "learner") == before
    one, other = (cell.play(each, 3, ROUNDS) for each in (learner, twin))
    assert same(one.losses, other.losses)
    assert same(one.decision, other.decision)


@about_compiling
@pytest.mark.parametrize(
    "cell",
    [c for c in CELLS if c.engine == "fused" and c.world in ("softmax", "network")
     and c.layout in ("dense", "csr")],
    ids=str,
)  # fmt: skip
def test_other_forms_of_the_same_data_need_no_other_kernels(cell):
    def variants():
        return {name: len(kernel.signatures) for name, kernel in dispatchers.items()}

    def use(X, y):
        if cell.offline:
            learner.fit(X, y, iterations=3, checkpoints=[2])
        else:
            learner.observe((X, y))
            learner.run([(X, y)])

    data, learner = dataset(cell.layout, cell.dtype), cell.learner()
    cell.play(learner, 0, 3), use(data.X, data.y)
    before = variants()
    if cell.layout == "csr":
        wide = data.X.copy()
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
        forms = [wide, data.X.tocoo()]
    else:
        forms = [np.asfortranarray(data.X), data.X.astype(data.X.dtype.newbyteorder())]
    for X, y in zip(forms, (data.y.astype("u1"), data.y.tolist()), strict=True):
        use(X, y)
    assert variants() == before


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
    """Learners of many features are large: there is never more than one."""
    model = ProjectionFreeClassifier(radius=2.0)
    data = dataset(layout, "float64")
    model.partial_fit(data.X, data.y, classes=range(C))
    gc.disable()
    try:
        for _ in range(3):
            before = weakref.ref(model._online.learner)
            model.partial_fit(data.X, data.y)
            assert before() in (None, model._online.learner)
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
