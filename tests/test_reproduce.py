"""The paper's figures: their numbers and files, and what they say to the claims."""

import os
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import fastfw as fw
from experiment_cases import SIZES, SMALL, rows_of
from fastfw.cli import main
from fastfw.experiments import compare, compare_network, figures, reproduce
from fastfw.experiments.claims import at_time, find, paired
from fastfw.experiments.figures import reproduction_figure
from fastfw.experiments.results import Comparator, Curve, Part, Reproduction
from fastfw.experiments.setups import fingerprint
from fastfw.experiments.tables import format_claims, write_claims, write_last
from fastfw.experiments.trials import prepared
from fastfw.streams import Dataset


@contextmanager
def plain_pictures():
    """Spare the time that drawing takes; test_commands.py has the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        draw = partial(figures.new_figure, 1, 1, dpi=10)
        patch.setattr(figures, "reproduction_figure", lambda _: draw())
        yield


@pytest.fixture(scope="module")
def whole(blobs, tmp_path_factory):
    """Return the three figures, run without a break, by name, and their folder."""
    out = tmp_path_factory.mktemp("whole")
    names = ("figure1", "figure2", "figure3")
    with plain_pictures():
        return {name: reproduce(name, blobs, out=out, **SIZES) for name in names}, out


# --- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "setting"), [("figure1", "stochastic"), ("figure2", "adversarial")]
)
def test_regret_is_that_of_compare(whole, blobs, figure, setting):
    (part,) = whole[0][figure].parts
    curves = part.panels["regret"]
    names = [curve.method for curve in curves]
    expected = compare(blobs, setting=setting, methods=names, tol=1e-5, **SIZES)
    for curve, run in zip(curves, expected.methods, strict=True):
        assert curve.label == run.method.label
        np.testing.assert_array_equal(curve.values, run.regret)
        np.testing.assert_array_equal(curve.rounds, np.arange(1, 5))
        assert curve.work == run.gradient_evaluations[0]
        assert curve.oracle_calls == run.lmo_calls[0]
        margin = part.comparator.gap * curve.rounds
        np.testing.assert_allclose(curve.upper - curve.values, [margin] * 2, atol=1e-12)
    assert part.comparator.value == expected.comparator.value
    for cost, curve in zip(part.panels["cost"], curves, strict=True):
        np.testing.assert_array_equal(cost.values, curve.seconds[:, -1:] * 1e3 / 4)


def test_suboptimality_is_measured_at_equal_work(whole, blobs):
    (part,) = whole[0]["figure1"].parts
    X, y, _, _ = fw.datasets.load(blobs)
    problem, ball = fw.SoftmaxRegression(5, 3), fw.RowL1Ball((3, 5), radius=2.0)
    best = part.comparator
    rounds = {"orgfw": 4, "osfw": 8, "regularized-ofw": 8, "ofw": 4, "oaw": 4}
    first = problem.loss(np.zeros((3, 5)), Dataset(X, y))
    for curve in part.panels["suboptimality"]:
        assert curve.rounds[0] == 1
        assert curve.rounds[-1] == rounds[curve.method] + 1
        np.testing.assert_allclose(curve.values[:, 0], 1.0)
        assert (curve.seconds[:, 0] == 0).all()
        assert (curve.upper >= curve.values * (1 - 1e-12)).all()
    (own,) = [curve for curve in part.panels["suboptimality"] if curve.method == "osfw"]
    for trial, seed in enumerate((3, 4)):
        stream = fw.iid_stream(X, y, batch_size=3, rounds=8, seed=seed)
        W = fw.OSFW(problem, ball, seed=(seed, 1)).run(stream).decision
        expected = (problem.loss(W, Dataset(X, y)) - best.value) / (first - best.value)
        assert own.values[trial, -1] == pytest.approx(expected, rel=1e-12)


def test_the_network_is_that_of_compare_network(whole, blobs):
    (part,) = whole[0]["figure3"].parts
    sizes = {"rounds": 4, "batch_size": 3, "radius": 2.0}
    expected = compare_network(blobs, trials=2, seed=3, checkpoints=30, **sizes)
    least = expected.lowest_loss
    for index, run in enumerate(expected.runs):
        for trial, curve in enumerate(run.traces):
            for panel, values in (
                ("accuracy", curve.accuracies),
                ("test_accuracy", curve.test_accuracies),
                ("suboptimality", (curve.losses - least) / (curve.losses[0] - least)),
            ):
                own = part.panels[panel][index]
                assert own.method == run.name
                np.testing.assert_array_equal(own.values[trial], values)


def test_the_files_hold_every_number(whole):
    results, out = whole
    for figure, result in results.items():
        (part,) = result.parts
        rows = {
            (row["panel"], row["method"], int(row["trial"]), int(row["round"])): row
            for row in rows_of(out / f"{figure}.csv")
        }
        count = 0
        for panel, curves in part.panels.items():
            for curve in curves:
                for trial, values in enumerate(curve.values, start=1):
                    count += len(values)
                    for t, value in zip(curve.rounds, values, strict=True):
                        row = rows[panel, curve.method, trial, int(t)]
                        if panel != "cost":
                            assert float(row["value"]) == value
        assert count == len(rows)
        for row in rows_of(out / f"{figure}-summary.csv"):
            (curve,) = [c for c in part.panels[row["panel"]] if c.method == row["method"]]
            assert float(row["value"]) == curve.final.mean()
        assert {path.name for path in result.files} <= set(os.listdir(out))
        assert (out / f"{figure}.png").read_bytes().startswith(b"\x89PNG")


def test_pictures_have_the_paper_s_arrangement(whole):
    for figure, shape in (("figure1", (3, 2)), ("figure2", (2, 2)), ("figure3", (2, 3))):
        result = whole[0][figure]
        two = Reproduction(figure, True, 2, 3, result.parts * 2)
        drawn = reproduction_figure(two)
        assert drawn.axes[0].get_subplotspec().get_gridspec().get_geometry() == shape


def test_fingerprints_tell_data_apart():
    X, y = np.eye(3), np.arange(3)
    codes = np.eye(3, dtype=np.uint8)
    known = {
        fingerprint(*data)
        for data in (
            [Dataset(X, y)], [Dataset(X[:, ::-1], y)], [Dataset(X, y[::-1])],
            [Dataset(X[:, :2], y)], [Dataset(X.astype(np.float32), y)], [Dataset(codes, y)],
            [Dataset(codes, y, scale=0.5)], [Dataset(X, y), Dataset(X, y)],
        )
    }  # fmt: skip
    assert len(known) == 8


# --- claims -----------------------------------------------------------------------------------


def curve(method, values, seconds=1.0, rounds=(1, 10)):
    """Return a curve of two trials that ends in `values`."""
    ends = np.array(values, dtype=float)
    table = np.column_stack([np.ones_like(ends), ends])
    times = np.column_stack([np.full_like(ends, 1e-3), np.full_like(ends, seconds)])
    return Curve(method, method.upper(), np.array(rounds), times, table, table, 10, 10)


def part(**panels):
    methods = {c.method for curves in panels.values() for c in curves}
    return Part("d", "D|1", 10, 2, 2, {"rounds": 10}, dict.fromkeys(methods, "step 1"),
                Comparator(0.5, 1e-8, 10, 0.1), panels, 3.0)  # fmt: skip


def verdicts(figure, own):
    found = find(Reproduction(figure, False, 2, 0, (own,)))
    return [(finding.claim, finding.verdict) for finding in found]


STOCHASTIC = ("orgfw", "osfw", "regularized-ofw", "ofw", "oaw")
ADVERSARIAL = ("morgfw", "metafw", "regularized-ofw", "ofw", "oaw")


def panels(names, **values):
    """Return a part whose panels have a curve of every method."""
    return part(
        **{
            panel: tuple(curve(n, v) for n, v in zip(names, ends, strict=True))
            for panel, ends in values.items()
        }
    )


def test_claims_of_figure_1():
    as_the_paper = panels(
        STOCHASTIC,
        regret=[[10, 10.1], [12, 12], [13, 13], [9, 9], [9, 9]],
        cost=[[1, 1], [1, 1], [1, 1], [9, 9], [8, 8]],
        suboptimality=[[0.01, 0.01], [0.02, 0.02], [0.02, 0.02], [0.1, 0.1], [0.1, 0.1]],
    )
    found = verdicts("figure1", as_the_paper)
    assert [claim for claim, _ in found] == ["C1"] * 4 + ["C2"] * 2 + ["C3"] * 4
    assert {verdict for _, verdict in found} == {"confirmed"}
    otherwise = panels(
        STOCHASTIC,
        regret=[[10, 11], [9, 10], [10, 11.5], [4, 4], [12, 13]],
        cost=[[1, 1], [1, 1], [1, 1], [1.1, 1.2], [3, 1]],
        suboptimality=[[0.02, 0.02], [0.01, 0.01], [0.01, 0.04], [0.1, 0.1], [0.02, 0.02]],
    )
    assert [verdict for _, verdict in verdicts("figure1", otherwise)] == [
        "refuted", "open", "refuted", "refuted",  # below, in between, not slightly, not above
        "refuted", "open",
        "refuted", "open", "confirmed", "open",
    ]  # fmt: skip


def test_claims_of_figure_2():
    as_the_paper = panels(
        ADVERSARIAL,
        regret=[[-5, -4], [-6, -5], [50, 50], [90, 90], [90, 90]],
        cost=[[2], [9], [1], [8], [7]],
    )
    found = verdicts("figure2", as_the_paper)
    assert [claim for claim, _ in found] == ["C4"] * 4 + ["C5"] * 4
    assert {verdict for _, verdict in found} == {"confirmed"}
    otherwise = panels(
        ADVERSARIAL,
        regret=[[5, 5], [1, 1], [9, 9], [4, 4], [5, 6]],
        cost=[[2], [1], [3], [2], [1]],
    )
    assert [verdict for _, verdict in verdicts("figure2", otherwise)] == [
        "refuted", "refuted", "open", "refuted",  # above, less than twice, in between, above
        "refuted", "refuted", "refuted", "refuted",
    ]  # fmt: skip


def test_claims_of_figure_3():
    own = panels(
        ("orgfw", "svrf"),
        suboptimality=[[0.1, 0.1], [0.2, 0.2]],
        accuracy=[[0.8, 0.8], [0.9, 0.9]],
    )
    assert verdicts("figure3", own) == [("C6", "confirmed"), ("C6", "refuted")]


def single(own):
    """Return the first trial of a part."""

    def first(one):
        kept = {name: getattr(one, name)[:1] for name in ("seconds", "values", "upper")}
        return replace(one, **kept)

    return replace(own, panels={k: tuple(map(first, v)) for k, v in own.panels.items()})


def test_one_trial_leaves_differences_open(tmp_path):
    regrets, costs = [[-5], [-4], [50], [90], [90]], [[2], [9], [1], [8], [7]]
    own = single(panels(ADVERSARIAL, regret=regrets, cost=costs))
    result = Reproduction("figure2", False, 1, 0, (own,))
    found = find(result)
    assert [f.verdict for f in found if f.claim == "C4"] == ["open"] * 4
    assert [f.verdict for f in found if f.claim == "C5"] == ["confirmed"] * 4  # by their ratio
    assert "(one trial, comparable: the next method is 55 above MORGFW)" in found[0].numbers
    curves = {c.method: c for c in own.panels["regret"]}
    curves["ofw"] = replace(curves["ofw"], values=curves["ofw"].values - 100)
    below = replace(own, panels={**own.panels, "regret": tuple(curves.values())})
    (first, *_) = find(Reproduction("figure2", False, 1, 0, (below,)))
    assert "the next method is 5 below MORGFW" in first.numbers
    text = format_claims(result)
    assert "1 trial from seed 0. One trial gives no standard error" in text
    for nothing in ("nan", "±", "1 trials", "standard errors", "single trials"):
        assert nothing not in text
    same = [[1]] * 5
    first = single(panels(STOCHASTIC, regret=same, cost=same, suboptimality=same))
    found = find(Reproduction("figure1", False, 1, 0, (first,)))
    assert {f.verdict for f in found if f.claim != "C2"} == {"open"}
    write_last(result, tmp_path / "summary.csv")
    for row in rows_of(tmp_path / "summary.csv"):
        assert row["standard_error"] == ""
        assert (row["value_upper"] == "") == (row["panel"] == "cost")
    assert "Figure 2 (1 trial)" in reproduction_figure(result).get_suptitle()


def test_values_are_compared_at_the_same_time():
    slow = curve("a", [0.25], seconds=1.0)
    assert at_time(slow, 0, 1.0) == 0.25
    assert at_time(slow, 0, 1e-3) == 1.0
    assert at_time(slow, 0, 10**-1.5) == pytest.approx(0.625)  # half way in log time
    assert paired(np.array([1.0]), np.array([3.0]))[0] == 2.0


def test_claims_of_several_figures_share_a_file(tmp_path):
    own = part(
        suboptimality=(curve("orgfw", [0.1, 0.1]), curve("svrf", [0.2, 0.2])),
    )
    third = Reproduction("figure3", True, 2, 0, (own,))
    path = tmp_path / "claims.md"
    write_claims(third, path)
    text = path.read_text()
    assert text.startswith("# ")
    assert "| D/1 |" in text  # a bar in a title does not break the table
    same = [[1, 1]] * 5
    first = panels(STOCHASTIC, regret=same, cost=same, suboptimality=same)
    write_claims(Reproduction("figure1", True, 2, 0, (first,)), path)
    write_claims(third, path)
    headings = [line for line in path.read_text().splitlines() if line.startswith("## ")]
    assert headings == ["## Figure 1", "## Figure 3"]
    assert path.read_text().count(format_claims(third)) == 1


# --- the command ------------------------------------------------------------------------------


def test_the_command_prints_claims_and_names_its_files(whole, blobs, tmp_path, capsys):
    out = tmp_path / "new" / "results"
    titles = ["--titles", "My $blobs_^\x1b[31m"]  # neither mathematics nor colour
    command = ["reproduce", "figure2", "--data", blobs, "--out", str(out), *titles, *SMALL]
    with plain_pictures():
        assert main(command) == 0
    printed, err = capsys.readouterr()
    assert err == ""
    assert printed.startswith("## Figure 2")
    assert r"**My $blobs_^\x1b[31m** (21 x 5, 3 classes)" in printed
    assert "\x1b" not in printed + (out / "claims.md").read_text()


def test_arguments_are_checked(blobs, tmp_path):
    for options, message in (
        ({"figure": "figure9"}, "figure: unknown"),
        ({"data": []}, "data: name at least one"),
        ({"data": [blobs, blobs]}, "data: name each data set once"),
    ):
        given = {"figure": "figure1", "data": blobs, "out": tmp_path, **options}
        with pytest.raises(ValueError, match=message):
            reproduce(given.pop("figure"), given.pop("data"), **given)
    assert not list(tmp_path.iterdir())


def test_all_data_sets_are_looked_at_before_the_work_begins(blobs, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"missing\.npz"):
        reproduce("figure2", [blobs, "missing.npz"], out=tmp_path, **SIZES)
    assert not list(tmp_path.iterdir())


def test_several_data_sets(blobs, tmp_path):
    other = tmp_path / "other.npz"
    with np.load(blobs) as arrays:
        np.savez(other, X=2.0 * arrays["X"][:12], y=arrays["y"][:12])
    seen, options = [], {**SIZES, "trials": 1, "titles": ["One", "Two"], "out": tmp_path}
    with plain_pictures():
        result = reproduce("figure1", [blobs, other], progress=lambda *c: seen.append(c), **options)
    assert [part.title for part in result.parts] == ["One", "Two"]
    assert [part.n_samples for part in result.parts] == [21, 12]
    assert {total for _, total, _ in seen} == {22}
    assert [what for done, _, what in seen if done == 22] == ["done"]
    assert [done for done, _, what in seen if what == "comparator"] == [0, 11]


@pytest.mark.parametrize(
    ("figure", "quick", "rounds"),
    [("figure1", True, 400), ("figure3", True, 2000), ("figure3", False, 4000)],
)
def test_quick_runs_are_shorter(blobs, tmp_path, figure, quick, rounds):
    plan = prepared(reproduce)(figure, blobs, quick=quick, out=tmp_path)
    work = {work.settings["method"]: work for work in plan.plan(0, None).tasks[-9:]}["orgfw"]
    assert work.settings["rounds"] == rounds
    assert len(plan.seeds) == (3 if quick else 6)
