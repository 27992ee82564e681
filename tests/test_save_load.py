"""Saved learners: the same bits in another process, and files that are not to be trusted."""

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import fastfw as fw
from experiment_cases import python
from learner_cases import (
    METHODS,
    Box,
    C,
    D,
    Quadratic,
    Trap,
    make,
    make_data,
    make_stream,
    one_line,
    read,
    saved_goes_on,
    write,
)
from sizes import sized

BREAK = 13


def saved(path, method=METHODS["ORGFW"], engine="fused", rounds=BREAK, **changes):
    """A learner in the middle of a run, and its file."""
    learner = make(method, engine, **changes)
    learner.run(list(make_stream())[:rounds])
    learner.save(path)
    return learner


# --- going on -------------------------------------------------------------------------------------


def test_going_on_in_another_process(tmp_path):
    X, y = make_data()
    np.savez(tmp_path / "data.npz", X=X, y=y)
    stream = fw.iid_stream(X, y, batch_size=5, rounds=30, seed=1)
    wanted = make(METHODS["ORGFW"]).run(stream)
    learner = make(METHODS["ORGFW"])
    learner.run(list(stream)[:BREAK])
    learner.save(tmp_path / "learner.npz")
    code = f"""
import numpy as np, fastfw as fw
data = np.load("data.npz")
stream = fw.iid_stream(data["X"], data["y"], batch_size=5, rounds=30, seed=1)
learner = fw.ORGFW.load("learner.npz")
assert learner.engine == "fused" and learner.t == {BREAK + 1}
result = learner.run(list(stream)[{BREAK}:])
np.savez("result.npz", decision=result.decision, average=result.average, losses=result.losses)
"""
    done = python(code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "result.npz") as found:
        assert found["decision"].tobytes() == wanted.decision.tobytes()
        assert found["average"].tobytes() == wanted.average.tobytes()
        assert found["losses"].tolist() == wanted.losses[BREAK:].tolist()


@pytest.mark.parametrize(
    "changes",
    [
        {"step": 0.25, "momentum": 1},
        {"step": fw.power_schedule(1 / 3, 0.7)},
        {"seed": (3, 4)},
        {"dtype": np.float32},
        {"reduction": "sum"},
        {"start": np.full((C, D), 0.1)},
        {"d": 1024, "start": None},  # rows that the engine makes longer
    ],
    ids=str,
)
def test_arguments_come_back(changes, tmp_path):
    learner = make(METHODS["ORGFW"], **changes)
    X, y = make_data(d=changes.get("d", D))
    learner.observe((X[:5], y[:5]))
    learner.save(tmp_path / "learner.npz")
    twin = fw.ORGFW.load(tmp_path / "learner.npz")
    assert twin.problem == learner.problem
    assert twin.set == learner.set
    assert twin._seed == learner._seed
    assert twin._schedules == learner._schedules
    for other in (learner, twin):
        other.observe((X[5:10], y[5:10]))
    assert twin.play().tobytes() == learner.play().tobytes()


def test_paths_of_every_kind(tmp_path):
    for path in (str(tmp_path / "a"), tmp_path / "b.npz", tmp_path / "no suffix.learner"):
        learner = saved(path)
        assert Path(path).exists()
        assert repr(fw.ORGFW.load(path)) == repr(learner)
    assert {p.name for p in tmp_path.iterdir()} == {"a", "b.npz", "no suffix.learner"}


# --- objects of one's own -------------------------------------------------------------------------


def test_callables_have_to_be_given_again(tmp_path):
    path = tmp_path / "learner.npz"
    half = {"step": lambda t: 0.5, "momentum": lambda t: 1.0 / t}
    learner = saved(path, **half)
    with pytest.raises(ValueError, match=r"its step is a callable, .* give step=\.\.\. again"):
        fw.ORGFW.load(path)
    with pytest.raises(ValueError, match=r"its momentum is a callable, .* give momentum=\.\.\."):
        fw.ORGFW.load(path, step=half["step"])
    twin = fw.ORGFW.load(path, **half)
    batches = list(make_stream())[BREAK:]
    assert twin.run(batches).decision.tobytes() == learner.run(batches).decision.tobytes()


def test_custom_problems_and_sets_have_to_be_given_again(tmp_path):
    path = tmp_path / "learner.npz"
    problem, box = Quadratic((2, 3)), Box((2, 3))
    batches = np.random.default_rng(0).standard_normal((20, 4, 2, 3))
    learner = fw.ORGFW(problem, box)
    learner.run(batches[:9])
    learner.save(path)
    with pytest.raises(ValueError, match=r"its problem is not saved; give problem=\.\.\. again"):
        fw.ORGFW.load(path)
    with pytest.raises(ValueError, match=r"its set is not saved; give set=\.\.\. again"):
        fw.ORGFW.load(path, problem=problem)
    saved_goes_on(learner, batches[9], tmp_path, problem=problem, set=box)
    with pytest.raises(ValueError, match="not a saved ORGFW"):
        fw.ORGFW.load(path, problem=Quadratic((3, 2)), set=Box((3, 2)))


def test_custom_sets_that_answer_in_another_dtype(tmp_path):
    """A learner that could be saved can be loaded."""
    learner = fw.ORGFW(*(fw.SoftmaxRegression(D, C), Box((C, D))), dtype=np.float32)
    learner.run(list(make_stream())[:BREAK])
    assert learner.play().dtype == np.float32
    learner.save(tmp_path / "learner.npz")
    twin = fw.ORGFW.load(tmp_path / "learner.npz", set=Box((C, D)))
    assert twin.play().tobytes() == learner.play().tobytes()


def test_a_fused_file_does_not_fit_other_objects(tmp_path):
    saved(tmp_path / "learner.npz")
    with pytest.raises(ValueError, match="needs the engine 'fused' for this problem and set"):
        fw.ORGFW.load(tmp_path / "learner.npz", set=Box((C, D)))


# --- files that are not whole ---------------------------------------------------------------------


def test_arguments_of_load_are_blamed_for_what_they_do(tmp_path):
    path = tmp_path / "file"
    saved(path)
    with pytest.raises(
        ValueError, match=r"ORGFW.load takes .*, but not engine, which the file says"
    ):
        fw.ORGFW.load(path, engine="steps")
    with pytest.raises(ValueError, match=r"but not average, which the file says"):
        fw.ORGFW.load(path, average=False)
    with pytest.raises(ValueError, match=r"load takes problem, set, step, .*, but not lr$"):
        fw.ORGFW.load(path, lr=0.1)
    for given in ({"problem": 3}, {"set": fw.RowL1Ball((2, 2), 1.0)}, {"step": "long"}):
        with pytest.raises(
            ValueError, match=f"ORGFW: .*; or it is not for the {next(iter(given))}"
        ):
            fw.ORGFW.load(path, **given)


def test_interrupted_saves_leave_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "learner.npz"
    learner = saved(path)
    before = path.read_bytes()
    learner.observe(next(iter(make_stream())))

    def broken(error):
        def savez(file, **arrays):
            file.write(b"half of it")
            raise error

        return savez

    for error in (OSError("no space left"), KeyboardInterrupt()):
        monkeypatch.setattr(np, "savez", broken(error))
        with pytest.raises(type(error)):
            learner.save(path)
        assert path.read_bytes() == before
        assert [p.name for p in tmp_path.iterdir()] == ["learner.npz"]
    monkeypatch.undo()
    learner.save(path)
    assert fw.ORGFW.load(path).t == BREAK + 2


def test_folders_that_are_not_there(tmp_path):
    learner = saved(tmp_path / "learner.npz")
    with pytest.raises(FileNotFoundError):
        learner.save(tmp_path / "nowhere" / "learner.npz")
    with pytest.raises(FileNotFoundError):
        fw.ORGFW.load(tmp_path / "nothing.npz")
    with pytest.raises(OSError, match=r".+"):
        fw.ORGFW.load(tmp_path)


def test_truncated_files(tmp_path):
    path = tmp_path / "learner.npz"
    saved(path)
    whole = path.read_bytes()
    for length in [*range(0, 64), *range(64, len(whole), sized(37, 211)), len(whole) - 1]:
        path.write_bytes(whole[:length])
        one_line(path)


def test_damaged_files_are_refused_or_mean_the_same(tmp_path):
    """One byte changed anywhere: never another error, never another learner."""
    path, again = tmp_path / "learner.npz", tmp_path / "again.npz"
    saved(path)
    whole = path.read_bytes()
    refused = 0
    for i in range(0, len(whole), sized(7, 61)):
        for flip in (0x01, 0xFF):
            damaged = bytearray(whole)
            damaged[i] ^= flip
            path.write_bytes(damaged)
            try:
                learner = fw.ORGFW.load(path)
            except ValueError as error:
                assert str(error).startswith(f"{path} is not a saved ORGFW: ")  # noqa: PT017
                refused += 1
            else:  # a byte that nobody reads, such as a time
                learner.save(again)
                assert again.read_bytes() == whole
    assert refused > len(whole) // sized(14, 122)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"a learner",
        b"PK\x03\x04",
        b"\x93NUMPY\x01\x00",
        b"PK\x05\x06" + bytes(18),
        pickle.dumps({"header": "fastfw learner"}),
        os.urandom(2000),
    ],
    ids=["empty", "text", "zip start", "npy start", "empty zip", "pickle", "noise"],
)
def test_files_that_are_something_else(content, tmp_path):
    path = tmp_path / "learner.npz"
    path.write_bytes(content)
    one_line(path)


# --- files that are meant to do harm --------------------------------------------------------------


def test_nothing_in_a_file_is_executed(tmp_path):
    path, sprung = tmp_path / "learner.npz", tmp_path / "sprung"
    saved(path)
    header, arrays = read(path)
    trap = np.array([Trap(sprung)], dtype=object)
    for name in [*arrays, "another"]:
        write(path, header, {**arrays, name: trap})
        one_line(path)
    np.savez(path, **arrays, header=trap)
    one_line(path)
    # a bare pickle inside the archive
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.npy", pickle.dumps(Trap(sprung)))
    one_line(path)
    path.write_bytes(pickle.dumps(Trap(sprung)))
    one_line(path)
    assert not sprung.exists()


def test_the_other_class_is_named(tmp_path):
    path = tmp_path / "learner.npz"
    saved(path)
    assert "it holds a learner of 'ORGFW'; use that class's load" in one_line(path, fw.OSFW)


def test_states_that_are_not_arrays_cannot_be_saved(tmp_path):
    class Tagged(fw.ORGFW):
        def _round(self, t, batch, state):
            loss, changes = super()._round(t, batch, state)
            return loss, {**changes, "tag": object()}

    learner = Tagged(Quadratic((2, 3)), Box((2, 3)))
    learner.observe(np.ones((4, 2, 3)))
    with pytest.raises(TypeError, match="the state 'tag' is not an array"):
        learner.save(tmp_path / "learner.npz")
    assert not list(tmp_path.iterdir())


# --- NumPy's numbers where Python's are meant -----------------------------------------------------

NODES = np.array([[0, 1], [1, 2], [0, 2]])
NUMPYS_SETS = [
    fw.FlowPolytope(NODES, NODES[0, 0], NODES[-1, 1]),
    fw.FlowPolytope(np.array([["a", "b"], ["b", "c"]]), np.str_("a"), np.array(["c"])[0]),
    fw.L1Ball(np.int64(3), np.float32(2.0), "random", np.uint8(3)),
    fw.RowL1Ball(np.array([2, 3]), np.int8(2), "random", (np.int64(1), np.uint64(2))),
    fw.LInfBall(np.uint16(3), np.float16(0.5)),
    fw.L2Ball((np.int8(2), np.int64(3)), np.float64(1.0)),
    fw.GroupL1Ball(np.array([0, 1, 1], np.int8), np.float32(1.0)),
    fw.KSparsePolytope(np.int64(4), np.int8(2), np.float32(1.0)),
    fw.RowKSparsePolytope(np.array([2, 3]), np.int8(2), np.float32(1.0)),
    fw.NuclearNormBall(np.array([2, 3]), np.int64(1)),
    fw.BirkhoffPolytope(np.int16(3)),
    fw.Simplex(np.int64(3), np.float32(1.0)),
    fw.ProductSet({np.str_("a"): fw.Simplex(np.int64(3)), "b": fw.L1Ball(np.int8(2), 1)}),
]


@pytest.mark.parametrize("own", NUMPYS_SETS, ids=lambda own: type(own).__name__)
def test_sets_of_numpys_numbers(own, tmp_path):
    problem = fw.problem_from_function(lambda x, c: (float((x * c).sum()), c), own.shape)
    costs = np.arange(float(np.prod(own.shape))).reshape(own.shape)
    learner = fw.OSFW(problem, own, seed=np.uint8(3))
    learner.observe(costs)
    assert saved_goes_on(learner, costs, tmp_path, problem=problem).set == own


N = np.int64
STEPS = {"rounds": N(9), "engine": "steps"}
NUMPYS_OPTIONS = [
    (fw.ORGFW, {"step": np.float32(0.5), "momentum": fw.power_schedule(np.int64(1), N(0))}),
    (fw.OSFW, {"threads": N(1), "seed": (N(1), np.uint32(2)), "step": np.array(0.5)}),
    (fw.RegularizedOFW, {"rounds": N(9), "scale": np.float32(2)}),
    (fw.MORGFW, {"rounds": N(9), "inner_steps": np.int8(2), "base": fw.FTPL(np.float32(2))}),
    (fw.MORGFW, {**STEPS, "sub_batch_size": N(3), "base": fw.OGD(np.float32(0.5))}),
    (fw.MetaFrankWolfe, {**STEPS, "base": fw.RFTL(fw.power_schedule(N(1), N(1)), N(1))}),
    (fw.SVRF, {"epoch_length": N(3), "batch_size": np.uint16(3), "step": np.float32(0.5)}),
]


@pytest.mark.parametrize(("learner_class", "options"), NUMPYS_OPTIONS, ids=str)
def test_options_of_numpys_numbers(learner_class, options, tmp_path):
    X, y = make_data()
    learner = learner_class(fw.SoftmaxRegression(N(D), N(C)), fw.RowL1Ball((C, D), 2.0), **options)
    if learner_class is fw.SVRF:
        learner.fit(X, y, iterations=N(5))
    else:
        learner.observe((X, y))
    learner.save(tmp_path / "learner")
    twin = learner_class.load(tmp_path / "learner")
    assert repr(twin) == repr(learner)
    assert twin.play().tobytes() == learner.play().tobytes()
