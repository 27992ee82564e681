"""Learners: both engines against the reference, rounds however they are played, bad batches."""

import re
import sys
from types import SimpleNamespace

import numpy as np
import pytest

import fastfw as fw
import reference as ref
from learner_cases import (
    ENGINES,
    METHODS,
    RADIUS,
    ROUNDS,
    Box,
    C,
    D,
    Quadratic,
    engines,
    make,
    make_data,
    make_stream,
    problem_and_ball,
    refuses_to_be_written,
    same,
    snapshot,
)
from sizes import quiet, sized

EPS = np.finfo(np.float64).eps

methods = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


# --- against the reference ------------------------------------------------------------------------


@methods
@engines
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_rounds_follow_the_reference(method, engine, reduction):
    X, y = make_data()
    T = sized(400, 40)
    stream = fw.iid_stream(X, y, batch_size=5, rounds=T, seed=2)
    learner = make(method, engine, reduction=reduction)
    assert learner.engine == engine
    run = method.reference(
        np.zeros((C, D)),
        [(b.X, b.y) for b in stream],
        RADIUS,
        reduction=reduction,
        **method.options,
    )
    result = learner.run(stream, checkpoints=range(1, T + 2))
    assert np.abs(result.decisions - run.iterates).max() <= 1e-12
    assert np.abs(result.losses - run.losses).max() <= 1e-12 * (5 if reduction == "sum" else 1)
    assert np.abs(result.average - run.iterates[:-1].mean(axis=0)).max() <= 1e-12
    # a step rounds each entry of a row a few times; they may add up
    norms = np.abs(result.decisions).sum(axis=2)
    assert np.all(norms <= RADIUS * (1.0 + 4 * EPS * np.arange(1, T + 2))[:, None])
    assert np.abs(result.average).sum(axis=1).max() <= RADIUS * (1.0 + 4 * EPS * T)
    assert same(result.decision, learner.play())
    assert learner.t == T + 1
    assert result.gradient_evaluations == method.evaluations * 5 * T
    assert result.lmo_calls == T


@methods
@pytest.mark.parametrize(
    ("C", "d", "B"), [(2, 1, 1), (5, 16, 4), (11, 33, 67), (26, 7, 70), (3, 2051, 3), (3, 1024, 3)]
)
def test_engines_agree_in_other_shapes(method, C, d, B):
    X, y = make_data(C, n=90, d=d, n_classes=C)
    y[:C] = np.arange(C)
    stream = fw.iid_stream(X, y, batch_size=B, rounds=sized(40, 6), seed=d)
    fused, steps = (make(method, engine, d=d, n_classes=C) for engine in ENGINES)
    one, other = fused.run(stream), steps.run(stream)
    assert np.abs(one.decision - other.decision).max() <= 1e-12
    assert np.abs(one.losses - other.losses).max() <= 1e-12
    assert np.abs(one.average - other.average).max() <= 1e-12


@engines
@pytest.mark.parametrize(("wanted", "given"), [("f4", "f8"), ("f8", "f4")])
def test_dtype_as_asked_for(engine, wanted, given):
    """Whatever comes in, decisions have the dtype that was asked for."""
    method = METHODS["ORGFW"]
    learner = make(method, engine, dtype=wanted)
    result = learner.run(make_stream(given, rounds=8), checkpoints=range(1, 10))
    assert learner.dtype == wanted
    for a in (result.decision, result.average, result.decisions, learner.play()):
        assert a.dtype == wanted
    other = make(method, "fused", dtype=wanted).run(make_stream(given, rounds=8))
    eps = np.finfo(wanted).eps
    assert np.abs(result.decision - other.decision).max() <= 64 * eps * RADIUS


@engines
def test_dtype_is_that_of_the_first_batch(engine):
    X, y = make_data()
    learner = make(METHODS["ORGFW"], engine)
    assert learner.play().dtype == learner.dtype == np.float64
    learner.observe((X[:5].astype(np.float32), y[:5]))
    learner.observe((X[5:9], y[5:9]))
    assert learner.play().dtype == learner.average.dtype == learner.dtype == np.float32
    learner = make(METHODS["ORGFW"], engine)
    learner.observe((X[:5].astype(">f4"), y[:5]))
    assert learner.dtype == np.float32
    for other in (X[:5].astype(np.float16), X[:5].astype(int), X[:5].tolist()):
        learner = make(METHODS["ORGFW"], engine)
        learner.observe((other, y[:5]))
        assert learner.dtype == np.float64


# --- rounds, however they are played --------------------------------------------------------------


@pytest.mark.parametrize("method", ["ORGFW, rough", "OSFW, rough"])
@engines
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_run_is_a_loop_of_observe_where_nothing_of_a_point_is_left(method, engine, dtype):
    method, stream = METHODS[method], make_stream(dtype)
    whole = make(method, engine)
    result = whole.run(stream)
    loop = make(method, engine)
    played, losses = [], []
    for batch in stream:
        played.append(loop.play().copy())
        losses.append(loop.observe(batch).loss)
    assert losses == result.losses.tolist()
    assert same(loop.play(), result.decision)
    assert same(loop.average, result.average)
    # the same rounds with the decisions kept, which cuts the compiled run into pieces
    kept = make(method, engine).run(stream, checkpoints=range(1, ROUNDS + 2))
    # until the first batch, what is played does not know the dtype of the data
    assert same(kept.decisions[:-1], np.array([x.astype(dtype) for x in played]))
    assert same(kept.decisions[-1], result.decision)
    assert kept.losses.tolist() == losses
    assert same(kept.average, result.average)


@engines
def test_streams_of_every_kind_give_the_same_bits(engine):
    stream = make_stream()
    pairs = [(np.array(batch.X), np.array(batch.y)) for batch in stream]
    wanted = make(METHODS["ORGFW"], engine).run(stream)

    for other in (
        pairs,
        iter(pairs),
        (pair for pair in pairs),
        [list(pair) for pair in pairs],
        [SimpleNamespace(X=X, y=y) for X, y in pairs],
        [fw.Dataset(*pair) for pair in pairs],
        list(stream),
        zip([X for X, _ in pairs], [y for _, y in pairs], strict=True),
        [(np.asfortranarray(X), y.astype(np.uint8)) for X, y in pairs],
        [(X.astype(">f8"), y.tolist()) for X, y in pairs],
    ):
        result = make(METHODS["ORGFW"], engine).run(other)
        assert result.losses.tolist() == wanted.losses.tolist()
        assert same(result.decision, wanted.decision)
        assert same(result.average, wanted.average)
        assert result.gradient_evaluations == wanted.gradient_evaluations


def test_long_streams_are_played_in_several_blocks(monkeypatch):
    for name in ("_ROWS_AT_ONCE", "_MOST_ROWS_AT_ONCE"):
        monkeypatch.setattr(f"fastfw.learners._streaming.{name}", 100)
    X, y = make_data()
    T, B = 45, 7
    stream = fw.iid_stream(X, y, batch_size=B, rounds=T)
    done = []
    result = make(METHODS["ORGFW"]).run(stream, progress=done.append)
    assert sum(done) == T
    assert len(done) > 1
    assert np.all(np.diff(result.seconds) >= 0.0)
    loop = make(METHODS["ORGFW"])
    for batch in stream:
        loop.observe(batch)
    assert same(loop.play(), result.decision)
    assert same(loop.average, result.average)


@engines
@pytest.mark.parametrize("twice", [False, True])
def test_rounds_are_whole_whatever_handlers_raise(engine, twice, monkeypatch):
    """Between the round and the count of rounds, and again at the next call: both or neither."""
    batches = list(make_stream(rounds=6))
    learner, twin = make(METHODS["ORGFW"], engine), make(METHODS["ORGFW"], engine)
    for batch in batches[:3]:
        learner.observe(batch)
    kind = type(learner._engine)
    name = "rounds" if learner.engine == "fused" else "observe"
    play = getattr(kind, name)

    def strike(frame, event, argument):
        if event in ("call", "c_call") and frame.f_code.co_filename != __file__:
            raise TimeoutError

    def interrupted(own, *given):
        play(own, *given)
        if twice:
            sys.setprofile(strike)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kind, name, interrupted)
        try:
            learner.observe(batches[3])
        except (KeyboardInterrupt, TimeoutError):
            pass
        finally:
            sys.setprofile(None)
    assert learner.t == (5 if learner.engine == "fused" else 4)
    for batch in batches[learner.t - 1 :]:
        learner.observe(batch)
    for batch in batches:
        twin.observe(batch)
    assert same(learner.play(), twin.play())
    assert same(learner.average, twin.average)


@engines
def test_empty_streams(engine):
    learner = make(METHODS["ORGFW"], engine)
    result = learner.run([])
    assert result.losses.shape == result.seconds.shape == (0,)
    assert not result.decision.any()
    assert result.gradient_evaluations == result.lmo_calls == 0
    assert learner.t == 1
    assert repr(result).startswith("<RunResult: 0 rounds")
    assert learner.run([], checkpoints=[1]).decisions.shape == (1, C, D)


# --- checkpoints ----------------------------------------------------------------------------------


@engines
def test_checkpoints(engine):
    stream = make_stream()
    every = make(METHODS["ORGFW"], engine).run(stream, checkpoints=range(1, ROUNDS + 2))
    assert every.checkpoints.tolist() == list(range(1, ROUNDS + 2))
    assert every.decisions.shape == (ROUNDS + 1, C, D)
    assert not every.decisions[0].any()
    assert same(every.decisions[-1], every.decision)
    seconds = every.checkpoint_seconds
    assert seconds[0] == 0.0
    assert np.all(np.diff(seconds) >= 0.0)
    assert np.allclose(seconds[1:], every.seconds, rtol=1e-12, atol=0.0)
    for chosen in ([1], [ROUNDS + 1], [2, 3, 17], [], np.array([4, 9])):
        some = make(METHODS["ORGFW"], engine).run(stream, checkpoints=chosen)
        assert some.checkpoints.tolist() == list(chosen)
        assert len(some.checkpoint_seconds) == len(chosen)
        assert same(some.decisions, every.decisions[np.array(chosen, int) - 1])


@engines
@pytest.mark.parametrize(
    ("checkpoints", "error", "message"),
    [
        ([3, 2], ValueError, "checkpoints must be increasing round numbers from 2 on"),
        ([3, 3], ValueError, "checkpoints must be increasing"),
        ([1], ValueError, "checkpoints must be increasing round numbers from 2 on"),
        ([0], ValueError, "checkpoints must be an integer >= 1"),
        ([2.0], TypeError, "checkpoints must be an integer"),
        ([True], TypeError, "checkpoints must be an integer"),
        ([7], ValueError, "checkpoints has 7, but the stream ended before round 6"),
        ([3, 9], ValueError, "checkpoints has 9, but the stream ended before round 6"),
    ],
)
def test_bad_checkpoints(engine, checkpoints, error, message, tmp_path):
    batches = list(make_stream(rounds=5))
    learner = make(METHODS["ORGFW"], engine)
    learner.observe(batches[0])
    before = snapshot(learner, tmp_path / "learner.npz")
    with pytest.raises(error, match=message):
        learner.run(batches[1:], checkpoints=checkpoints)
    assert snapshot(learner, tmp_path / "learner.npz") == before


# --- what is played stays as it is ----------------------------------------------------------------


@engines
def test_start(engine):
    X, y = make_data()
    rng = np.random.default_rng(0)
    start = rng.standard_normal((C, D))
    start *= RADIUS / np.abs(start).sum(axis=1, keepdims=True)
    given = start.copy()
    learner = make(METHODS["ORGFW"], engine, start=given)
    given[:] = 99.0  # the learner has its own
    assert same(learner.play(), start)
    batches = [(X[i : i + 5], y[i : i + 5]) for i in range(0, 30, 5)]
    run = ref.orgfw(start, batches, RADIUS, **METHODS["ORGFW"].options)
    result = learner.run(batches)
    assert np.abs(result.decision - run.iterates[-1]).max() <= 1e-13
    for form in (start.tolist(), np.asfortranarray(start), start.astype(">f8")):
        assert same(make(METHODS["ORGFW"], engine, start=form).play(), start)


def test_momentum_is_not_asked_for_in_the_first_round():
    """Algorithm 1 begins with the plain gradient: a momentum may be defined from round 2 on."""
    stream = make_stream(rounds=6)
    results = [
        make(METHODS["ORGFW"], engine, momentum=lambda t: 1.0 / (t - 1)).run(stream)
        for engine in ENGINES
    ]
    assert np.abs(results[0].decision - results[1].decision).max() <= 1e-13


def test_theory_is_the_default():
    stream = make_stream()
    problem, ball = problem_and_ball()
    one = fw.power_schedule(1.0, 1.0)
    for learner, momentum in ((fw.ORGFW, one), (fw.OSFW, fw.power_schedule(1.0, 2 / 3))):
        plain = learner(problem, ball).run(stream)
        assert same(
            plain.decision, learner(problem, ball, step=one, momentum=momentum).run(stream).decision
        )


# --- bad batches ----------------------------------------------------------------------------------

GOOD_X, GOOD_Y = make_data()


def with_bad(value, at=(2, 3)):
    X = GOOD_X[:5].copy()
    X[at] = value
    return X


BAD_BATCHES = {
    "empty": ((GOOD_X[:0], GOOD_Y[:0]), ValueError, "X is empty"),
    "too narrow": ((GOOD_X[:5, :4], GOOD_Y[:5]), ValueError, "X has 4 columns, but 6"),
    "label too large": ((GOOD_X[:5], [0, 1, 3, 0, 0]), ValueError, r"y\[2\] is 3; with 3 classes"),
    "labels float": ((GOOD_X[:5], np.ones(5)), TypeError, "y must hold integer class numbers"),
    "nan": ((with_bad(np.nan), GOOD_Y[:5]), ValueError, r"X\[2, 3\] is nan"),
    "masked": ((np.ma.array(GOOD_X[:5]), GOOD_Y[:5]), TypeError, "X is a masked array"),
    "a triple": ((GOOD_X, GOOD_Y, GOOD_Y), TypeError, "batch must be a pair"),
    "a matrix": (GOOD_X, TypeError, "batch must be a pair"),
    "other data": (fw.Dataset(GOOD_X[:, :4], GOOD_Y), ValueError, "X has 4 columns"),
    "other labels": (fw.Dataset(GOOD_X, GOOD_Y + 1), ValueError, "y holds label 3"),
    "other rows": (fw.Batch(fw.Dataset(GOOD_X, GOOD_Y + 1), [0, 1]), ValueError, "y holds label 3"),
}
bad_batches = pytest.mark.parametrize(
    ("bad", "error", "message"), BAD_BATCHES.values(), ids=BAD_BATCHES
)


@bad_batches
def test_a_bad_batch_leaves_the_learner_as_it_was(bad, error, message, tmp_path):
    batches, after = list(make_stream(rounds=8)), 4
    learner = make(METHODS["ORGFW, rough"])
    for batch in batches[:after]:
        learner.observe(batch)
    before = snapshot(learner, tmp_path / "learner.npz")
    with pytest.raises(error, match=message) as caught, quiet():
        learner.observe(bad)
    assert "\n" not in str(caught.value)
    assert snapshot(learner, tmp_path / "learner.npz") == before
    # in the middle of a run, with good rounds before it
    with pytest.raises(error, match=f"round {after + 3}: .*{message}"), quiet():
        learner.run([*batches[after : after + 2], bad, *batches])
    assert snapshot(learner, tmp_path / "learner.npz") == before


@engines
def test_features_that_single_precision_cannot_hold(engine, tmp_path):
    learner = make(METHODS["ORGFW"], engine, dtype=np.float32)
    X = GOOD_X[:5].copy()
    learner.observe((X, GOOD_Y[:5]))
    before = snapshot(learner, tmp_path / "learner.npz")
    X[1, 2] = 1e300
    with pytest.raises((ValueError, FloatingPointError)), quiet():
        learner.observe((X, GOOD_Y[:5]))
    assert snapshot(learner, tmp_path / "learner.npz") == before
    if engine == "fused":
        message = r"X\[1, 2\] is 1e\+300, which float32 cannot hold"
        with pytest.raises(ValueError, match=message), quiet():
            learner.observe((X, GOOD_Y[:5]))


@engines
def test_a_stream_that_fails_restores_the_learner(engine, tmp_path):
    batches = list(make_stream(rounds=8))
    learner = make(METHODS["ORGFW"], engine)
    learner.observe(batches[0])
    before = snapshot(learner, tmp_path / "learner.npz")

    def broken(error):
        yield from batches[1:4]
        raise error

    for error in (OSError("the disk"), KeyboardInterrupt(), RuntimeError("no more")):
        with pytest.raises(type(error)):
            learner.run(broken(error))
        assert snapshot(learner, tmp_path / "learner.npz") == before

    def stop(k):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        learner.run(batches[1:], progress=stop)
    assert snapshot(learner, tmp_path / "learner.npz") == before
    with pytest.raises(TypeError):
        learner.run(3)
    assert snapshot(learner, tmp_path / "learner.npz") == before
    folder = tmp_path / "gone"
    folder.mkdir()
    with pytest.raises(FileNotFoundError):
        learner.run(
            batches[1:],
            checkpoint=folder / "last",
            callback=lambda t, *_: t == 3 and folder.rmdir(),
        )
    assert snapshot(learner, tmp_path / "learner.npz") == before


@engines
@pytest.mark.parametrize("name", ["step", "momentum"])
@pytest.mark.parametrize("value", [1.5, -0.5, np.nan, None, "half"])
def test_schedules_that_go_wrong_in_some_round(engine, name, value, tmp_path):
    batches = list(make_stream(rounds=8))
    learner = make(METHODS["ORGFW"], engine, **{name: lambda t: value if t == 5 else 0.5})
    for batch in batches[:4]:
        learner.observe(batch)
    before = snapshot(learner, tmp_path / "learner.npz")
    for call in (lambda: learner.observe(batches[4]), lambda: learner.run(batches[4:])):
        with pytest.raises((TypeError, ValueError), match=f"^{name} in round 5 must be a number"):
            call()
        assert snapshot(learner, tmp_path / "learner.npz") == before


# --- construction ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"problem": None}, TypeError, "problem must have shape, loss, gradient"),
        ({"set": object()}, TypeError, "set must have shape, lmo, diameter, but a object has no"),
        ({"set": fw.RowL1Ball((D, C), 1.0)}, ValueError, "problem and set must have the same"),
        ({"step": 1.5}, ValueError, r"step must be a number in \[0, 1\]"),
        ({"step": "fast"}, TypeError, "step must be a number .* or a callable"),
        ({"momentum": np.nan}, ValueError, "momentum must be"),
        ({"engine": "fast"}, ValueError, "engine must be 'fused', 'steps' or 'dask'"),
        ({"engine": None}, ValueError, "engine must be"),
        ({"dtype": np.int64}, ValueError, "dtype must be float64 or float32"),
        ({"seed": -1}, ValueError, "seed must be an integer >= 0"),
        ({"start": np.zeros((D, C))}, ValueError, r"start must have shape \(3, 6\)"),
        ({"start": np.ones((C, D))}, ValueError, "start must lie in RowL1Ball"),
        ({"start": np.full((C, D), np.nan)}, ValueError, "start must be finite"),
        ({"start": np.zeros((C, D), complex)}, TypeError, "start must hold real numbers"),
        ({"start": "zeros"}, TypeError, "start must hold real numbers"),
    ],
)
def test_bad_constructor_arguments(changes, error, message):
    problem, ball = problem_and_ball()
    arguments = {"problem": problem, "set": ball, **changes}
    with pytest.raises(error, match=message) as caught:
        fw.OSFW(arguments.pop("problem"), arguments.pop("set"), **arguments)
    assert "\n" not in str(caught.value)


@engines
def test_repr_says_what_and_where(engine):
    learner = make(METHODS["ORGFW"], engine)
    learner.run(make_stream(rounds=3))
    text = repr(learner)
    assert text.startswith(f"<{type(learner).__name__} in round 4: SoftmaxRegression(")
    assert "RowL1Ball(shape=(3, 6), radius=2.0)" in text
    assert text.endswith(f"engine {engine}, float64>")
    result = learner.run(make_stream(rounds=3))
    assert repr(result).startswith("<RunResult: 3 rounds, mean loss ")
    round_ = learner.observe((GOOD_X, GOOD_Y))
    assert isinstance(round_, fw.Round)
    assert re.match(r"Round\(t=7, loss=\d", repr(round_))
    for name in ("t", "average", "problem", "set", "engine", "dtype"):
        with pytest.raises(AttributeError):
            setattr(learner, name, None)


# --- problems and sets of one's own ---------------------------------------------------------------


def custom(learner, **options):
    return learner(Quadratic((2, 3)), Box((2, 3)), **options)


@pytest.mark.parametrize("learner", [fw.ORGFW, fw.OSFW, fw.OFW, fw.OAW])
def test_custom_objects_may_reuse_their_output(learner):
    """What is written into the same array every time is a common way to save memory."""

    class Problem(Quadratic):
        out = np.empty((2, 3))

        def gradient(self, x, batch):
            self.out[...] = super().gradient(x, batch)
            return self.out

    class Set(Box):
        out = np.empty((2, 3))

        def lmo(self, direction):
            self.out[...] = super().lmo(direction)
            return self.out

    batches = np.random.default_rng(0).standard_normal((20, 4, 2, 3))
    wanted = custom(learner).run(batches)
    found = learner(Problem((2, 3)), Set((2, 3))).run(batches)
    assert same(found.decision, wanted.decision)


def test_custom_objects_cannot_change_the_learner():
    """What they are given is read-only, so a mistake is an error and not a wrong result."""

    class Meddling(Quadratic):
        def gradient(self, x, batch):
            x -= np.mean(batch, axis=0)
            return x

    class MeddlingBox(Box):
        def lmo(self, direction):
            direction *= -1.0
            return np.where(direction < 0, -1.0, 1.0)

    def meddling(x, batch):
        x[...] = 1.0
        return 0.0, x

    batch = np.ones((4, 2, 3))
    for learner in (
        fw.ORGFW(fw.problem_from_function(meddling, (2, 3)), Box((2, 3))),
        fw.ORGFW(Meddling((2, 3)), Box((2, 3))),
        fw.ORGFW(Quadratic((2, 3)), MeddlingBox((2, 3))),
    ):
        with pytest.raises(ValueError, match="read-only"):
            learner.observe(batch)
        assert learner.t == 1
        assert not learner.play().any()


def test_gradients_of_the_wrong_shape():
    class Row(Quadratic):
        def gradient(self, x, batch):
            return np.ones(3)

    with pytest.raises(ValueError, match=r"gradient .*shape \(2, 3\)"):
        fw.ORGFW(Row((2, 3)), Box((2, 3))).observe(np.ones((4, 2, 3)))


def test_errors_of_custom_problems_name_the_round():
    """Exceptions with arguments of their own must survive being told which round it was."""

    class Refused(ValueError):
        def __init__(self, code, reason):
            super().__init__(f"{code}: {reason}")

    class Refusing(Quadratic):
        def loss(self, x, batch):
            if batch is None:
                raise Refused(7, "no batch")
            return super().loss(x, batch)

    learner = fw.ORGFW(Refusing((2, 3)), Box((2, 3)))
    with pytest.raises(ValueError, match="round 2: 7: no batch"):
        learner.run([np.ones((4, 2, 3)), None])
    assert learner.t == 1


def test_rows_and_base_learners_cannot_be_made_writable():
    batch = next(iter(make_stream(rounds=1)))
    base = fw.OGD(step=0.1).on(fw.RowL1Ball((2, 3), 1.0), rounds=3)
    for _ in range(2):
        for array in (batch.X, batch.y, batch.rows, base.play()):
            assert refuses_to_be_written(array)
        base.observe(np.ones((2, 3)))


@engines
def test_arguments_of_runs_are_named(engine):
    learner = make(METHODS["ORGFW"], engine)
    for checkpoints in (5, None, np.array(5)):
        with pytest.raises(TypeError, match="checkpoints must be a sequence of round numbers"):
            learner.run(make_stream(rounds=3), checkpoints=checkpoints)
    assert learner.t == 1


@engines
def test_a_round_is_named_once(engine):
    learner = make(METHODS["ORGFW"], engine)
    with pytest.raises(ValueError, match=r"^round 2: y must have"):
        learner.run([([[0.0] * D], [0]), ([[0.0] * D], [[0], [1]])])
