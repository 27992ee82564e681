"""Grid search: its ranking, its tables, what it refuses."""

import numpy as np
import pytest
from scipy import sparse

import fastfw as fw
from experiment_cases import blobs, rows_of
from fastfw.cli import main
from fastfw.experiments import format_grid, grid_search, setups, trials, tuning, write_grid_csv

SIZES = {"rounds": 5, "batch_size": 4, "radius": 2.0, "trials": 2, "seed": 7}
STEPS, MOMENTA = [(1.0, 1.0), (0.5, 0.5), (0.01, 1.0)], [(1.0, 2 / 3), (1.0, 1.0)]


@pytest.fixture(scope="module")
def data():
    return blobs()


@pytest.fixture(scope="module")
def search(data):
    return grid_search(data, steps=STEPS, momenta=MOMENTA, **SIZES)


def scores(search):
    return {(p.step, p.momentum, p.scale): p.scores.tolist() for p in search.points}


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
        ("regularized-ofw", {"steps": STEPS[:2], "scales": [1.0, 10.0]}, 4),
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


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"steps": 1}, TypeError, r"steps must be pairs \(c, e\)"),
        ({"momenta": "1,1"}, TypeError, r"momenta must be pairs \(c, e\)"),
        ({"method": None}, TypeError, "method must be a name"),
        ({"method": "rofw", "scales": 3}, TypeError, "scales must be numbers"),
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


def overflowing(monkeypatch, which):
    """Let the trials of some constants overflow."""
    learner = setups.Setup.learner

    def failing(setup, method, constants, rounds, seed):
        if which(constants) and seed:  # but not what is made beforehand, to see that it can be
            raise FloatingPointError("round 3")
        return learner(setup, method, constants, rounds, seed)

    monkeypatch.setattr(setups.Setup, "learner", failing)


def test_what_overflows_ranks_last(data, monkeypatch):
    overflowing(monkeypatch, lambda constants: constants.step == STEPS[0])
    found = grid_search(data, steps=STEPS, momenta=MOMENTA, **SIZES)
    assert [p.step for p in found.points[-2:]] == [STEPS[0]] * 2
    assert np.isfinite(found.best.score)


def test_a_finer_grid_needs_no_trial_twice(data, tmp_path):
    options = {"momenta": MOMENTA, "folder": tmp_path, **SIZES}
    grid_search(data, steps=STEPS[:2], **options)
    assert len(list(tmp_path.iterdir())) == 8
    grid_search(data, steps=STEPS, **options)
    assert len(list(tmp_path.iterdir())) == 12


def test_sparse_and_dense_data_are_both_compiled_before_the_clock_runs(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(trials, "_WARM", set())
    for given in (X, sparse.csr_array(X), X):
        grid_search((given, y), steps=STEPS[:1], momenta=MOMENTA[:1], **SIZES)
    assert [kind[0] for kind in trials._WARM] == ["ORGFW"] * 2
    assert {"dense", "sparse"} == {kind[3] for kind in trials._WARM}


def test_an_earlier_name_of_scales(data):
    options = {"method": "rofw", "steps": STEPS[:1], **SIZES}
    with pytest.warns(DeprecationWarning, match="etas is called scales now") as caught:
        found = grid_search(data, etas=[2.0], **options)
    assert caught[0].filename == __file__
    assert scores(found) == scores(grid_search(data, scales=[2.0], **options))
    with pytest.raises(TypeError, match="etas is an earlier name of scales: give one"):
        grid_search(data, etas=[2.0], scales=[2.0], **options)


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
        ({"scales": [1.0]}, "scales: ORGFW has no such constant"),
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
    rows = rows_of(path)
    assert [int(row["rank"]) for row in rows] == [1, 2, 3, 4, 5, 6]
    for row, point in zip(rows, search.points, strict=True):
        assert (float(row["step_c"]), float(row["step_e"])) == point.step
        assert (float(row["momentum_c"]), float(row["momentum_e"])) == point.momentum
        assert float(row["score"]) == point.score
        difference = point.scores - search.best.scores
        assert float(row["above_best"]) == difference.mean()
        assert row["eta"] == row["ftpl_scale"] == ""


@pytest.mark.parametrize(
    ("method", "column", "option"),
    [("rofw", "eta", "--scale"), ("rofw", "eta", "--eta"), ("metafw", "ftpl_scale", "--scale")],
)
def test_constants_of_methods_have_their_columns(data, tmp_path, capsys, method, column, option):
    path = tmp_path / "blobs.npz"
    np.savez(path, X=data[0], y=data[1])
    arguments = ["tune", "--method", method, option, "2", "--step", "1,1", "--trials", "1"]
    arguments += ["--momentum", "1,1"] if method == "metafw" else []
    assert main([*arguments, "--rounds", "2", "--data", str(path), "--out", str(tmp_path)]) == 0
    head, line = capsys.readouterr().out.splitlines()[3:5]
    assert "  scale  " in head
    assert "  2  " in line
    (row,) = rows_of(tmp_path / "tune.csv")
    other = {"eta": "ftpl_scale", "ftpl_scale": "eta"}[column]
    assert (row[column], row[other]) == ("2.0", "")


def test_the_table_of_one_trial_shows_no_nan(data, monkeypatch):
    options = {"steps": STEPS[:1], "momenta": MOMENTA, **SIZES, "trials": 1}
    lines = format_grid(grid_search(data, **options)).splitlines()
    assert "2 points, 1 trial of 5 rounds" in lines[0]
    assert [line.split()[3::2][:2] for line in lines[4:]] == [["-", "-"]] * 2
    overflowing(monkeypatch, lambda constants: True)
    table = format_grid(grid_search(data, **options))
    assert table.splitlines()[-1].split()[2:] == ["overflow", "-", "-", "-", "-"]
