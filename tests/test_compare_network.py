"""Comparisons on networks: equal work, files, the command line."""

import numpy as np
import pytest

import fastfw as fw
from experiment_cases import rows_of
from fastfw import cli
from fastfw.experiments import compare_network, format_network_table
from fastfw.experiments.figures import network_figure
from fastfw.experiments.methods import (
    NETWORK_METHODS,
    NETWORK_PRESETS,
    find_methods,
    rounds_at_equal_work,
)
from fastfw.experiments.results import NetworkComparison, NetworkRun
from fastfw.experiments.tables import write_network_summary, write_trace_csv
from fastfw.learners._method import Constants
from fastfw.traces import Trace
from network_cases import make_data

SMALL = {"hidden": 3, "rounds": 12, "batch_size": 4, "trials": 2, "checkpoints": 4}


@pytest.mark.parametrize(
    ("budget", "n", "q", "b", "wanted"),
    [(2, 10, 5, 2, 1), (10, 10, 5, 2, 1), (26, 10, 5, 2, 5), (34, 10, 5, 2, 5), (40, 10, 5, 2, 7)],
)
def test_iterations_that_a_budget_affords(budget, n, q, b, wanted):
    (svrf,) = find_methods(["svrf"], NETWORK_METHODS)
    own = Constants(epoch_length=q, batch_size=b)
    assert rounds_at_equal_work(svrf, budget // 2, 1, n, own) == wanted


def test_all_methods_do_equal_work():
    X, y = make_data(n=30)
    result = compare_network((X, y), **{**SMALL, "rounds": 200, "trials": 1})
    work = {run.name: run.evaluations for run in result.runs}
    assert list(work) == [method.name for method in NETWORK_METHODS]
    assert work["orgfw"] == work["osfw"] == work["regularized-ofw"] == 1600
    assert work["ofw"] == work["oaw"] == 4 * 29 * 30 // 2
    for name in ("svrf", "spiderfw"):
        assert 1600 - 2 * NETWORK_PRESETS["mnist"][name].batch_size < work[name] <= 1600
    starts = {run.traces[0].losses[0] for run in result.runs}
    assert len(starts) == 1  # all begin at the same point
    for run in result.runs:
        assert run.traces[0].rounds[-1] == run.rounds + 1
        assert result.suboptimality(run)[0] >= 0.0
        assert run.seconds.shape == (1,)


def traced(seconds, losses):
    losses = np.array(losses)
    return Trace(np.arange(1, 4), np.array(seconds), losses, None, None, losses / 10, None)


def test_methods_are_compared_at_the_time_that_all_have_reached():
    one = [traced([0.0, 1.0, 2.0], [9.0, 5.0, 1.0]), traced([0.0, 3.0, 4.0], [9.0, 7.0, 3.0])]
    other = [traced([0.0, 1.0, 9.0], [9.0, 4.0, 2.0]), traced([0.0, 1.0, 9.0], [9.0, 6.0, 2.0])]
    runs = [
        NetworkRun(name, name, 2, 10, np.ones(2), tuple(traces))
        for name, traces in (("slow", other), ("fast", one))
    ]
    result = NetworkComparison("data", 1, 1, 2, 0, 1.0, tuple(runs))
    slow, fast = result.runs
    assert fast.times.tolist() == [0.0, 2.0, 3.0]  # medians
    assert result.common_time == 3.0
    assert fast.at(3.0, "losses").tolist() == [1.0, 3.0]
    assert fast.at(2.5, "losses").tolist() == [3.0, 5.0]
    assert np.abs(slow.at(3.0, "losses") - [3.5, 5.0]).max() <= 1e-14
    assert np.isnan(slow.at(3.0, "test_accuracies")).all()
    row = format_network_table(result).splitlines()[-3]
    # 1 - 3.5 and 3 - 5: mean -2.25, standard error 0.25
    assert row.split() == ["fast", "2.0000", "-2.2500", "0.2500", "0.200", "-"]


def test_trials_are_plain_runs():
    X, y = make_data(n=30)
    result = compare_network((X, y), **SMALL, methods=["orgfw", "spiderfw"], seed=5, init="vertex")
    problem = fw.OneHiddenLayer(X.shape[1], 3, 3)
    M = problem.l1_balls(10.0, 10.0)
    for i in range(2):
        learner = fw.ORGFW(
            problem,
            M,
            step=fw.power_schedule(2, 1),
            momentum=fw.power_schedule(0.25, 0.5),
            init="vertex",
            seed=5 + i,
        )
        run = learner.run(fw.iid_stream(X, y, batch_size=4, rounds=12, seed=5 + i))
        assert result.runs[0].traces[i].losses[-1] == problem.loss(run.decision, (X, y))
        offline = fw.SpiderFW(problem, M, 2e-3, 240, 50, 5 + i, init="vertex")
        decision = offline.fit(X, y, iterations=result.runs[1].rounds).decision
        assert result.runs[1].traces[i].losses[-1] == problem.loss(decision, (X, y))


def test_files(tmp_path):
    result = compare_network(make_data(n=30), **SMALL, methods=["osfw", "svrf"], gap=False)
    write_trace_csv(result, tmp_path / "trace.csv")
    write_network_summary(result, tmp_path / "summary.csv")
    curves = rows_of(tmp_path / "trace.csv")
    assert len(curves) == sum(len(t.rounds) for run in result.runs for t in run.traces)
    assert float(curves[0]["loss"]) == result.runs[0].traces[0].losses[0]
    assert curves[0]["gap"] == curves[0]["test_accuracy"] == ""
    summary = rows_of(tmp_path / "summary.csv")
    assert [row["method"] for row in summary] == ["osfw", "svrf"]
    assert float(summary[1]["loss"]) == result.runs[1].last("losses").mean()
    assert float(summary[0]["loss_above_first_at_common_time"]) == 0.0
    assert float(summary[1]["common_time"]) == result.common_time
    assert "SVRF" in format_network_table(result)
    figure = network_figure(result)
    assert [len(axes.lines) for axes in figure.axes] == [2, 2]  # no test data


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"methods": ["sgd"]}, "methods: unknown method 'sgd'"),
        ({"methods": ["morgfw"]}, "methods: unknown method 'morgfw'"),
        ({"methods": []}, "name at least one"),
        ({"methods": ["osfw", "osfw"]}, "each method once"),
        ({"constants": "mnits"}, "did you mean 'mnist'"),
        ({"checkpoints": 0}, "checkpoints"),
        ({"hidden": 0}, "n_hidden"),
        ({"init": "ones"}, "init"),
    ],
)
def test_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        compare_network(make_data(), **options)


@pytest.mark.parametrize("command", ["compare-network", "compare --problem network"])
def test_command_line(tmp_path, capsys, command):
    X, y = make_data(n=30)
    np.savez(tmp_path / "data.npz", X=X, y=y)
    out = tmp_path / "out"
    arguments = f"{command} --hidden 3 --data {tmp_path / 'data.npz'} --rounds 9 --batch-size 4"
    arguments += f" --trials 2 --methods spider-fw,orgfw,rofw --init vertex --step 1,1 --out {out}"
    assert cli.main(arguments.split()) == 0
    table = capsys.readouterr().out
    assert "SPIDER-FW" in table
    assert "RegularizedOFW" in table
    assert sorted(p.name for p in out.iterdir()) == ["network.png", "summary.csv", "trace.csv"]
    rows = rows_of(out / "summary.csv")
    assert [row["method"] for row in rows] == ["orgfw", "regularized-ofw", "spiderfw"]
    expected = compare_network(
        (X, y), hidden=3, rounds=9, batch_size=4, trials=2, init="vertex",
        methods=["orgfw", "rofw", "spiderfw"], step=fw.power_schedule(1, 1),
    )  # fmt: skip
    assert [float(row["loss"]) for row in rows] == [r.last("losses").mean() for r in expected.runs]


def test_one_trial_without_test_data_shows_no_nan(tmp_path):
    options = {**SMALL, "methods": ["orgfw", "svrf"], "trials": 1, "gap": False}
    result = compare_network(make_data(n=30), **options)
    table = format_network_table(result)
    assert "nan" not in table
    assert "radius 10, 1 trial\n" in table
    assert table.splitlines()[4].split()[-1] == "-"  # no gap was asked for
    write_network_summary(result, tmp_path / "summary.csv")
    for row in rows_of(tmp_path / "summary.csv"):
        empty = {name for name, value in row.items() if value == ""}
        assert empty == {
            "loss_standard_error", "loss_above_first_standard_error", "test_accuracy",
            "test_accuracy_at_common_time", "least_gap",
        }  # fmt: skip
        assert "nan" not in row.values()
