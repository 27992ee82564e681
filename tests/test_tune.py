"""Grid search: its ranking, its files, and that no finished trial is lost."""

import csv
import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
from fastfw.cli import main
from fastfw.experiments import format_grid, grid_search, tuning, write_grid_csv
from stopping import stop_while_writing

SIZES = {"rounds": 5, "batch_size": 4, "radius": 2.0, "trials": 2, "seed": 7}
STEPS, MOMENTA = [(1.0, 1.0), (0.5, 0.5), (0.01, 1.0)], [(1.0, 2 / 3), (1.0, 1.0)]

ARGUMENTS = ["--rounds", "5", "--batch-size", "4", "--radius", "2", "--trials", "2", "--seed", "7"]
ARGUMENTS += ["--step", "1,1", "1/2,1/2", "--momentum", "1,2/3", "1,1"]
ARGUMENTS += ["--step", "0.01,1"]  # a third one


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(30) % 3
    return rng.normal(size=(30, 5)) + 2.0 * np.eye(3, 5)[y], y


@pytest.fixture(scope="module")
def search(data):
    return grid_search(data, steps=STEPS, momenta=MOMENTA, **SIZES)


def scores(search):
    return {(p.step, p.momentum, p.eta, p.scale): p.scores.tolist() for p in search.points}


@pytest.mark.parametrize("criterion", ["regret", "last"])
def test_every_point_can_be_repeated_by_hand(data, criterion):
    X, y = data
    problem, ball = fw.SoftmaxRegression(5, 3), fw.RowL1Ball((3, 5), radius=2.0)
    found = grid_search(data, steps=STEPS, momenta=MOMENTA, criterion=criterion, **SIZES)
    assert len(found.points) == 6
    for point in found.points:
        for trial, seed in enumerate((7, 8)):
            stream = fw.iid_stream(X, y, batch_size=4, rounds=5, seed=seed)
            learner = fw.ORGFW(
                problem, ball, step=fw.power_schedule(*point.step),
                momentum=fw.power_schedule(*point.momentum), seed=(seed, 1),
            )  # fmt: skip
            ran = learner.run(stream)
            expected = ran.losses.mean()
            if criterion == "last":
                expected = problem.loss(ran.decision, (X, y))
            assert point.scores[trial] == pytest.approx(expected, rel=1e-14)
    means = [point.score for point in found.points]
    assert means == sorted(means)
    assert found.best.score == means[0]


@pytest.mark.parametrize(
    ("method", "options", "count"),
    [
        ("ofw", {"steps": STEPS}, 3),
        ("regularized-ofw", {"steps": STEPS[:2], "etas": [1.0, 10.0]}, 4),
        ("morgfw", {"steps": STEPS[:1], "momenta": MOMENTA[:1], "scales": [1.0, 5.0]}, 2),
    ],
)
@pytest.mark.parametrize("setting", ["stochastic", "adversarial"])
def test_each_method_has_its_own_constants(data, method, options, count, setting):
    found = grid_search(data, method=method, setting=setting, **options, **SIZES)
    assert len(found.points) == count
    assert all(np.isfinite(point.scores).all() for point in found.points)
    assert len(set(map(str, scores(found)))) == count


def test_the_default_grid(data):
    found = grid_search(data, method="osfw", rounds=2, batch_size=2, radius=1.0, trials=1)
    assert len(found.points) == len(tuning.STEPS) * len(tuning.MOMENTA) == 108


def test_a_stopped_search_goes_on(data, search, tmp_path):
    def progress(done, total, what):
        if done == 5:
            raise KeyboardInterrupt

    options = {"steps": STEPS, "momenta": MOMENTA, "folder": tmp_path, **SIZES}
    with pytest.raises(KeyboardInterrupt):
        grid_search(data, progress=progress, **options)
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(kept) == 5
    seen = []
    again = grid_search(data, progress=lambda *call: seen.append(call), **options)
    assert seen[0] == (4, 12, "kept")
    assert [done for done, _, _ in seen[1:]] == [5, *range(6, 13)]
    for name, written in kept.items():
        assert (tmp_path / name).stat().st_mtime_ns == written
    assert scores(again) == scores(search)
    # A finer grid needs no trial twice.
    grid_search(data, **{**options, "steps": [*STEPS, (2.0, 1.0)]})
    assert len(list(tmp_path.iterdir())) == 16
    grid_search(data, **{**options, "rounds": 4})  # other settings need all of them
    assert len(list(tmp_path.iterdir())) == 28


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGINT"])
def test_a_command_that_is_stopped_goes_on(data, search, tmp_path, capsys, name):
    path, out = tmp_path / "blobs.npz", tmp_path / "out"
    np.savez(path, X=data[0], y=data[1])
    arguments = ["tune", "--data", str(path), "--out", str(out), *ARGUMENTS]
    number = getattr(signal, name)
    done = stop_while_writing(6, number, arguments)
    kept = {file.name: file.read_bytes() for file in (out / "trials").glob("*.npz")}
    assert len(kept) == 5
    if name == "SIGKILL":
        assert done.returncode == -number
        assert len(os.listdir(out / "trials")) == 6  # one is half written
    else:
        assert done.returncode == 128 + number
        lines = done.stderr.splitlines()
        assert lines[0].startswith(f"fastfw: 5 finished trials are kept in {out / 'trials'}; the")
        assert lines[1:] == ["fastfw: interrupted"]
        assert len(os.listdir(out / "trials")) == 5
    assert main(arguments) == 0
    capsys.readouterr()
    assert len(os.listdir(out / "trials")) == 12
    for file, content in kept.items():
        assert (out / "trials" / file).read_bytes() == content
    write_grid_csv(search, tmp_path / "whole.csv")
    tables = []
    for table in (out / "tune.csv", tmp_path / "whole.csv"):
        with table.open(newline="") as handle:
            tables.append(list(csv.DictReader(handle)))
        for row in tables[-1]:
            float(row.pop("seconds"))
    assert tables[0] == tables[1]


@pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
def test_joblib_gives_the_same(data, search, tmp_path, backend):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config(backend):
        found = grid_search(data, steps=STEPS, momenta=MOMENTA, n_jobs=2, folder=tmp_path, **SIZES)
    assert scores(found) == scores(search)
    assert len(list(tmp_path.iterdir())) == 12


def test_trials_at_the_same_time_are_done_once_each(data, search, tmp_path, monkeypatch):
    joblib = pytest.importorskip("joblib")
    trial, begun, busy = tuning._trial, [], threading.Event()

    def counted(*arguments):
        begun.append((arguments[7], str(arguments[8])))
        if len(begun) > 8:
            busy.set()
            time.sleep(0.3)
        return trial(*arguments)

    def progress(done, total, what):
        if done == 5:  # stopped while trials wait to be kept, and others are still running
            busy.wait(60)
            raise KeyboardInterrupt

    monkeypatch.setattr(tuning, "_trial", counted)
    options = {"steps": STEPS, "momenta": MOMENTA, "n_jobs": 2, "folder": tmp_path, **SIZES}
    with joblib.parallel_config("threading"):
        with pytest.raises(KeyboardInterrupt):
            grid_search(data, progress=progress, **options)
        late = time.monotonic() + 60  # those that were running go on to their end
        while len(list(tmp_path.glob("tune*.npz"))) < len(begun) and time.monotonic() < late:
            time.sleep(0.01)
        kept = len(begun)
        assert len(list(tmp_path.iterdir())) == len(set(begun)) == kept > 5
        begun.clear()
        found = grid_search(data, **options)
    assert len(set(begun)) == len(begun) == 12 - kept
    assert scores(found) == scores(search)


def test_backends_that_hand_over_no_results_one_by_one(data, search, tmp_path, monkeypatch):
    joblib = pytest.importorskip("joblib")

    class Plain(joblib.Parallel):
        def __init__(self, **options):
            if options.pop("return_as", None):
                raise ValueError("this backend does not support it")
            super().__init__(**options, backend="threading")

    monkeypatch.setattr(joblib, "Parallel", Plain)
    found = grid_search(data, steps=STEPS, momenta=MOMENTA, n_jobs=2, folder=tmp_path, **SIZES)
    assert scores(found) == scores(search)
    assert len(list(tmp_path.iterdir())) == 12


def test_sparse_and_dense_data_are_both_compiled_before_the_clock_runs(data):
    X, y = data
    options = {"steps": STEPS[:1], "momenta": MOMENTA[:1], **SIZES}
    tuning._WARM.clear()
    for given in (X, sparse.csr_array(X)):
        grid_search((given, y), **options)
    assert {("orgfw", False), ("orgfw", True)} == tuning._WARM


def test_a_trial_without_a_score_is_done_again(data, search, tmp_path):
    options = {"steps": STEPS, "momenta": MOMENTA, "folder": tmp_path, **SIZES}
    grid_search(data, **options)
    damaged = iter(sorted(tmp_path.iterdir()))
    for extra in ({}, {"score": np.zeros(3), "seconds": np.array(1.0)}):
        path = next(damaged)
        with np.load(path) as file:
            settings = {name: file[name] for name in file.files if name not in ("score", "seconds")}
        np.savez(path, **settings, **extra)
    assert scores(grid_search(data, **options)) == scores(search)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"steps": 1}, TypeError, r"steps must be pairs \(c, e\)"),
        ({"momenta": "1,1"}, TypeError, r"momenta must be pairs \(c, e\)"),
        ({"method": None}, TypeError, "method must be a name"),
        ({"method": "rofw", "etas": 3}, TypeError, "etas must be numbers"),
        ({"progress": 3}, TypeError, "progress must be a function"),
        ({"folder": __file__}, NotADirectoryError, "folder must name a folder, but .* is a file"),
    ],
)
def test_arguments_that_cannot_be_used(data, given, error, message):
    with pytest.raises(error, match=message):
        grid_search(data, **given, **SIZES)


def test_data_and_rows_that_cannot_be_used(search):
    with pytest.raises(TypeError, match=r"data must be the name of a data set, .*None"):
        grid_search(None)
    with pytest.raises(ValueError, match="rows"):
        format_grid(search, 0)


def test_without_joblib_the_error_says_what_to_install(data, monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(ImportError, match=r"pip install joblib, or leave n_jobs \(--jobs\) out"):
        grid_search(data, n_jobs=2, **SIZES)
    assert grid_search(data, steps=STEPS[:1], momenta=MOMENTA[:1], **SIZES).points


def test_what_overflows_ranks_last(data, monkeypatch):
    trial = tuning._trial

    def failing(*arguments):
        if arguments[8]["step"] == STEPS[0]:
            return {"score": np.array(np.nan), "seconds": np.array(np.nan)}
        return trial(*arguments)

    monkeypatch.setattr(tuning, "_trial", failing)
    found = grid_search(data, steps=STEPS, momenta=MOMENTA, **SIZES)
    assert [p.step for p in found.points[-2:]] == [STEPS[0]] * 2
    assert np.isfinite(found.best.score)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "adam"}, "unknown method 'adam'"),
        ({"setting": "x"}, "setting: unknown"),
        ({"criterion": "x"}, "criterion: unknown"),
        ({"steps": []}, "step: give at least one value"),
        ({"steps": [*STEPS, (1, 1)]}, r"step: \(1.0, 1.0\) is given twice"),
        ({"steps": [1.0]}, r"steps: pairs \(c, e\) are wanted, not 1.0"),
        ({"steps": [(-1.0, 1.0)]}, "steps: pairs"),
        ({"method": "ofw", "momenta": MOMENTA}, "momenta: OFW has no momentum"),
        ({"etas": [1.0]}, "etas: ORGFW has no such constant"),
        ({"scales": [1.0]}, "scales: ORGFW has no such constant"),
        ({"trials": 0}, "trials"),
        ({"n_jobs": 0}, "n_jobs must be a whole number other than 0"),
        ({"rounds": 0}, "rounds"),
        ({"setting": "adversarial", "rounds": 100}, "rounds"),
    ],
)
def test_arguments_are_checked(data, options, message):
    with pytest.raises(ValueError, match=message):
        grid_search(data, **{**SIZES, **options})


def test_the_table_and_the_file(search, tmp_path):
    text = format_grid(search, rows=2)
    lines = text.splitlines()
    assert lines[0].startswith("ORGFW on data, stochastic setting: 6 points, 2 trials of 5 rounds")
    assert len(lines) == 3 + 1 + 2
    assert lines[4].split()[0] == "{:g},{:.3g}".format(*search.best.step)
    path = tmp_path / "tune.csv"
    write_grid_csv(search, path)
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [int(row["rank"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    for row, point in zip(rows, search.points, strict=True):
        assert (float(row["step_c"]), float(row["step_e"])) == point.step
        assert (float(row["momentum_c"]), float(row["momentum_e"])) == point.momentum
        assert float(row["score"]) == point.score
        difference = point.scores - search.best.scores
        assert float(row["above_best"]) == difference.mean()
        assert row["eta"] == row["ftpl_scale"] == ""


def test_the_table_of_one_trial_shows_no_nan(data, monkeypatch):
    options = {"steps": STEPS[:1], "momenta": MOMENTA, **SIZES, "trials": 1}
    lines = format_grid(grid_search(data, **options)).splitlines()
    assert "2 points, 1 trial of 5 rounds" in lines[0]
    assert [line.split()[3::2][:2] for line in lines[4:]] == [["-", "-"]] * 2
    nothing = {"score": np.array(np.nan), "seconds": np.array(np.nan)}
    monkeypatch.setattr(tuning, "_trial", lambda *_: nothing)
    table = format_grid(grid_search(data, **options))
    assert table.splitlines()[-1].split()[2:] == ["overflow", "-", "-", "-", "-"]


def test_the_command(data, search, tmp_path, capsys):
    path = tmp_path / "blobs.npz"
    np.savez(path, X=data[0], y=data[1])
    out = tmp_path / "out"
    assert main(["tune", "--data", str(path), "--out", str(out), *ARGUMENTS]) == 0
    printed, err = capsys.readouterr()
    assert err == ""
    assert "6 points, 2 trials of 5 rounds" in printed
    assert printed.splitlines()[-1] == f"files: {out / 'tune.csv'}"
    with (out / "tune.csv").open(newline="") as handle:
        best = next(csv.DictReader(handle))
    assert float(best["score"]) == search.best.score
    assert len(os.listdir(out / "trials")) == 12


def test_an_interrupted_command_says_what_is_kept(data, tmp_path, capsys, monkeypatch):
    path = tmp_path / "blobs.npz"
    np.savez(path, X=data[0], y=data[1])
    trial, calls = tuning._trial, []

    def interrupted(*arguments):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(arguments)
        return trial(*arguments)

    monkeypatch.setattr(tuning, "_trial", interrupted)
    out = tmp_path / "out"
    arguments = ["tune", "--data", str(path), "--out", str(out), "--rounds", "2"]
    assert main([*arguments, "--batch-size", "2"]) == 130
    assert f"2 finished trials are kept in {out / 'trials'}" in capsys.readouterr().err
    assert len(os.listdir(out / "trials")) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--method", "orgwf"], "did you mean 'orgfw'"),
        (["--method", "orgfw,osfw"], "one method"),
        (["--method", "svrf"], "one method"),
        (["--jobs", "0"], "a whole number other than 0"),
        (["--method", "ofw", "--momentum", "1,1"], "has no momentum"),
        (["--step", "x"], "C,E wanted"),
        (["--step", "-1,1"], "--step: '-1,1' given, C,E wanted with C above 0"),
        (["--step", "1,1", "-1/2,1"], "--step: '-1/2,1' given, C,E wanted with C above 0"),
        (["--step", "1,-1"], "--step: '1,-1' given"),
        (["--step", "1,1,2,1"], "such as 1,2/3; several are given with spaces between them"),
        (["--step", "-x"], "begins with '-' is given as --step=VALUE"),
        (["--step=-x"], "--step: '-x' given"),
        (["--step"], "--step: expected at least one argument"),
        (["--step", "1,1", "--step", "1,1"], "step: (1.0, 1.0) is given twice"),
        (["--momentum", "-.5,1"], "--momentum: '-.5,1' given"),
        (["--eta", "-1e3", "2"], "--eta: '-1e3' given, a finite number above 0 wanted ("),
        (["--eta", "1,2"], "a finite number above 0 wanted; several are given with spaces"),
        (["--scale", "-inf"], "begins with '-' is given as --scale=VALUE"),
        (["--data", "a", "b"], "unrecognized arguments: b; a value has to follow its option"),
        (["--jobs", "-1.5"], "--jobs: '-1.5' given"),
    ],
)
def test_unusable_input_is_one_line(tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    assert main(["tune", *arguments, "--out", str(out)]) == 2
    printed, err = capsys.readouterr()
    assert printed == ""
    assert err.count("\n") == 1
    assert message in err
    assert not out.exists()
