"""The paper's figures: their numbers, their files, and that no finished trial is lost."""

import csv
import os
import signal
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import fastfw as fw
from fastfw.cli import main
from fastfw.experiments import compare, compare_network, reproduce, reproduction_report
from fastfw.experiments._store import TrialStore, fingerprint
from fastfw.experiments.claims import at_time, find, paired
from fastfw.experiments.comparison import Comparator
from fastfw.experiments.figures import reproduction_figure
from fastfw.experiments.reproduction import KEPT, Curve, Part, Reproduction
from fastfw.experiments.reproduction_report import format_claims, write_claims, write_summary
from fastfw.streams import Dataset
from stopping import stop_while_writing

SIZES = {"rounds": 4, "batch_size": 3, "radius": 2.0, "trials": 2, "seed": 3}
ARGUMENTS = ["--rounds", "4", "--batch-size", "3", "--radius", "2", "--trials", "2", "--seed", "3"]


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """Return the path of a small data set with a test part."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    X = rng.normal(size=(24, 5)) + 2.0 * np.eye(3, 5)[y]
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    np.savez(path, X=X[:15], y=y[:15], X_test=X[15:], y_test=y[15:])
    return str(path)


@pytest.fixture(scope="module")
def whole(blobs, tmp_path_factory):
    """Return the three figures, run without a break, by name, and their folder."""
    out = tmp_path_factory.mktemp("whole")
    names = ("figure1", "figure2", "figure3")
    return {name: reproduce(name, blobs, out=out, **SIZES) for name in names}, out


@pytest.fixture
def no_pictures(monkeypatch):
    """Spare the time that drawing takes."""
    monkeypatch.setattr(reproduction_report, "write_picture", lambda *_: None)


def numbers(folder, figure="figure1"):
    """Return the rows of the file of numbers without the times."""
    with (folder / f"{figure}.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert rows
    for row in rows:
        float(row.pop("seconds"))
        if row["panel"] == "cost":
            float(row.pop("value"))
            row.pop("standard_error", None)
    return rows


# --- numbers ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("figure", "setting"), [("figure1", "stochastic"), ("figure2", "adversarial")]
)
def test_regret_is_that_of_compare(whole, blobs, figure, setting):
    (part,) = whole[0][figure].parts
    curves = part.panels["regret"]
    names = [curve.method for curve in curves]
    expected = compare(blobs, setting=setting, methods=names, **SIZES)
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
            for row in numbers(out, figure)
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
        with (out / f"{figure}-summary.csv").open(newline="") as handle:
            summary = list(csv.DictReader(handle))
        for row in summary:
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


# --- nothing is lost --------------------------------------------------------------------------


def stop_after(steps):
    """Return a progress function that is interrupted, as by Ctrl-C."""

    def progress(done, total, what):
        if done == steps and not what.startswith("data"):
            raise KeyboardInterrupt

    return progress


def count_done(figure, blobs, out, **sizes):
    """Run to the end; how many steps were taken from an earlier run, and how many are new."""
    seen = []
    reproduce(figure, blobs, out=out, progress=lambda *call: seen.append(call), **sizes)
    steps = [what for _, _, what in seen[1:-1]]
    kept = steps.count(KEPT)
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert seen[-1][0] == seen[-1][1] == len(steps)
    return kept, len(steps) - kept


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("figure", ["figure1", "figure3"])
def test_an_interrupted_run_goes_on(whole, blobs, tmp_path, figure):
    with pytest.raises(KeyboardInterrupt):
        reproduce(figure, blobs, out=tmp_path, progress=stop_after(5), **SIZES)
    assert len(list((tmp_path / "trials").iterdir())) == 5
    assert sorted(os.listdir(tmp_path)) == ["trials"]
    total = 21 if figure == "figure1" else 14
    assert count_done(figure, blobs, tmp_path, **SIZES) == (5, total - 5)
    assert numbers(tmp_path, figure) == numbers(whole[1], figure)
    assert count_done(figure, blobs, tmp_path, **SIZES) == (total, 0)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no such signal")
@pytest.mark.parametrize(("figure", "total"), [("figure1", 21), ("figure2", 11), ("figure3", 14)])
def test_a_killed_run_goes_on(whole, blobs, tmp_path, figure, total):
    arguments = ["reproduce", figure, "--data", blobs, "--out", str(tmp_path), *ARGUMENTS]
    assert stop_while_writing(8, signal.SIGKILL, arguments).returncode == -signal.SIGKILL
    trials = tmp_path / "trials"
    kept = {path.name: path.read_bytes() for path in trials.glob("*.npz")}
    assert len(kept) == 7
    assert len(os.listdir(trials)) == 8  # one is half written
    assert os.listdir(tmp_path) == ["trials"]
    # Time that went by in the killed run, easily told from the rest.
    spent = rewrite_wall(trials / next(iter(sorted(kept))), 6000.0)
    seen = []
    result = reproduce(figure, blobs, out=tmp_path, progress=lambda *c: seen.append(c), **SIZES)
    assert [what for _, _, what in seen[1:-1]].count(KEPT) == 7
    assert len(list(trials.glob("*.npz"))) == len(os.listdir(trials)) == total
    for name, content in kept.items():
        assert name == spent or (trials / name).read_bytes() == content
    for name in (figure, f"{figure}-summary"):
        assert numbers(tmp_path, name) == numbers(whole[1], name)
    walls = [float(np.load(path)["wall"]) for path in trials.iterdir()]
    assert result.parts[0].seconds == pytest.approx(sum(walls), rel=1e-12)
    text = (tmp_path / "claims.md").read_text()
    assert "Wall time, summed over all runs that trials were kept from: 100." in text


def rewrite_wall(path, seconds):
    """Let a kept trial have taken so long; its file's name."""
    with np.load(path) as file:
        arrays = dict(file)
    np.savez(path, **{**arrays, "wall": np.array(seconds)})
    return path.name


@pytest.mark.usefixtures("no_pictures")
def test_other_settings_take_no_stale_trials(whole, blobs, tmp_path):
    for change, kept in (({}, 0), ({"radius": 3.0}, 0), ({"batch_size": 5}, 1), ({"seed": 4}, 11)):
        # Batches do not change the comparator; trial 1 of seed 4 is trial 2 of seed 3.
        assert count_done("figure1", blobs, tmp_path, **{**SIZES, **change})[0] == kept
    more = {**SIZES, "trials": 3}
    assert count_done("figure1", blobs, tmp_path, **more) == (31, 0)
    other = tmp_path / "other.npz"
    with np.load(blobs) as arrays:
        np.savez(other, X=arrays["X"] * 2.0, y=arrays["y"])
    assert count_done("figure1", str(other), tmp_path, **SIZES)[0] == 0


@pytest.mark.usefixtures("no_pictures")
def test_damaged_trials_are_done_again(whole, blobs, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        reproduce("figure1", blobs, out=tmp_path, progress=stop_after(3), **SIZES)
    first, second, _ = sorted((tmp_path / "trials").iterdir())
    first.write_bytes(first.read_bytes()[:100])
    second.write_bytes(b"")
    (tmp_path / "trials" / ".x.tmp").write_bytes(b"torn")
    assert count_done("figure1", blobs, tmp_path, **SIZES) == (1, 20)
    assert numbers(tmp_path) == numbers(whole[1])


def test_a_trial_file_of_another_setting_is_not_taken(tmp_path):
    store = TrialStore(tmp_path)
    store.put({"what": "a", "seed": 1}, {"x": np.arange(3)})
    assert store.get({"what": "a", "seed": 1})["x"].tolist() == [0, 1, 2]
    assert store.get({"what": "a", "seed": 2}) is None
    store.path({"what": "a", "seed": 1}).rename(store.path({"what": "a", "seed": 2}))
    assert store.get({"what": "a", "seed": 2}) is None


def test_trials_belong_to_a_version(tmp_path, monkeypatch):
    store = TrialStore(tmp_path)
    store.put({"seed": 1}, {"x": np.arange(3)})
    monkeypatch.setattr(fw, "__version__", "9.9.9")
    assert store.get({"seed": 1}) is None


def test_trial_files_hold_no_pickles(tmp_path):
    store = TrialStore(tmp_path)
    path = store.path({"seed": 1})
    np.savez(path, x=np.array([SimpleNamespace()]), allow_pickle=True)
    assert store.get({"seed": 1}) is None


def test_fingerprints_tell_data_apart():
    X, y = np.eye(3), np.arange(3)
    known = {fingerprint(Dataset(X, y))}
    for other in (Dataset(X[:, ::-1], y), Dataset(X, y[::-1]), Dataset(X[:, :2], y),
                  Dataset(X.astype(np.float32), y)):  # fmt: skip
        known.add(fingerprint(other))
    assert len(known) == 5


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


def stochastic(regrets, costs, values):
    names = ("orgfw", "osfw", "regularized-ofw", "ofw", "oaw")
    return part(
        regret=tuple(curve(n, v) for n, v in zip(names, regrets, strict=True)),
        cost=tuple(curve(n, v) for n, v in zip(names, costs, strict=True)),
        suboptimality=tuple(curve(n, v) for n, v in zip(names, values, strict=True)),
    )


def test_claims_of_figure_1():
    as_the_paper = stochastic(
        [[10, 10.1], [12, 12], [13, 13], [9, 9], [9, 9]],
        [[1, 1], [1, 1], [1, 1], [9, 9], [8, 8]],
        [[0.01, 0.01], [0.02, 0.02], [0.02, 0.02], [0.1, 0.1], [0.1, 0.1]],
    )
    found = verdicts("figure1", as_the_paper)
    assert [claim for claim, _ in found] == ["C1"] * 4 + ["C2"] * 2 + ["C3"] * 4
    assert {verdict for _, verdict in found} == {"confirmed"}
    otherwise = stochastic(
        [[10, 11], [9, 10], [10, 11.5], [4, 4], [12, 13]],
        [[1, 1], [1, 1], [1, 1], [1.1, 1.2], [3, 1]],
        [[0.02, 0.02], [0.01, 0.01], [0.01, 0.04], [0.1, 0.1], [0.02, 0.02]],
    )
    assert [verdict for _, verdict in verdicts("figure1", otherwise)] == [
        "refuted", "open", "refuted", "refuted",  # below, in between, not slightly, not above
        "refuted", "open",
        "refuted", "open", "confirmed", "open",
    ]  # fmt: skip


def test_claims_of_figure_2():
    def adversarial(regrets, costs):
        names = ("morgfw", "metafw", "regularized-ofw", "ofw", "oaw")
        return part(
            regret=tuple(curve(n, v) for n, v in zip(names, regrets, strict=True)),
            cost=tuple(curve(n, v) for n, v in zip(names, costs, strict=True)),
        )

    found = verdicts(
        "figure2",
        adversarial([[-5, -4], [-6, -5], [50, 50], [90, 90], [90, 90]], [[2], [9], [1], [8], [7]]),
    )
    assert [claim for claim, _ in found] == ["C4"] * 4 + ["C5"] * 4
    assert {verdict for _, verdict in found} == {"confirmed"}
    found = verdicts(
        "figure2",
        adversarial([[5, 5], [1, 1], [9, 9], [4, 4], [5, 6]], [[2], [1], [3], [2], [1]]),
    )
    assert [verdict for _, verdict in found] == [
        "refuted", "refuted", "open", "refuted",  # above, less than twice, in between, above
        "refuted", "refuted", "refuted", "refuted",
    ]  # fmt: skip


def test_claims_of_figure_3():
    names = ("orgfw", "svrf")
    own = part(
        suboptimality=tuple(
            curve(n, v) for n, v in zip(names, ([0.1, 0.1], [0.2, 0.2]), strict=True)
        ),
        accuracy=tuple(curve(n, v) for n, v in zip(names, ([0.8, 0.8], [0.9, 0.9]), strict=True)),
    )
    assert verdicts("figure3", own) == [("C6", "confirmed"), ("C6", "refuted")]


def single(one):
    """Return a curve's first trial."""
    first = slice(0, 1)
    return replace(
        one, seconds=one.seconds[first], values=one.values[first], upper=one.upper[first]
    )


def test_one_trial_leaves_differences_open(tmp_path):
    regrets = [[-5], [-4], [50], [90], [90]]
    names = ("morgfw", "metafw", "regularized-ofw", "ofw", "oaw")
    own = part(
        regret=tuple(single(curve(n, v)) for n, v in zip(names, regrets, strict=True)),
        cost=tuple(single(curve(n, [v])) for n, v in zip(names, [2, 9, 1, 8, 7], strict=True)),
    )
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
    first = stochastic(*[[[1]] * 5] * 3)
    first = replace(first, panels={k: tuple(map(single, v)) for k, v in first.panels.items()})
    found = find(Reproduction("figure1", False, 1, 0, (first,)))
    assert {f.verdict for f in found if f.claim != "C2"} == {"open"}
    write_summary(result, tmp_path / "summary.csv")
    with (tmp_path / "summary.csv").open(newline="") as handle:
        for row in csv.DictReader(handle):
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
    write_claims(Reproduction("figure1", True, 2, 0, (stochastic(*[[[1, 1]] * 5] * 3),)), path)
    write_claims(third, path)
    headings = [line for line in path.read_text().splitlines() if line.startswith("## ")]
    assert headings == ["## Figure 1", "## Figure 3"]
    assert path.read_text().count(format_claims(third)) == 1


# --- the command ------------------------------------------------------------------------------


def test_the_command_prints_claims_and_names_its_files(whole, blobs, tmp_path, capsys):
    out = tmp_path / "new" / "results"
    titles = ["--titles", "My $blobs_^\x1b[31m"]  # neither mathematics nor colour
    assert (
        main(["reproduce", "figure2", "--data", blobs, "--out", str(out), *titles, *ARGUMENTS]) == 0
    )
    printed, err = capsys.readouterr()
    assert err == ""
    assert printed.startswith("## Figure 2")
    assert r"**My $blobs_^\x1b[31m** (15 x 5, 3 classes)" in printed
    assert "\x1b" not in printed + (out / "claims.md").read_text()
    for name in ("figure2.png", "figure2.csv", "figure2-summary.csv", "claims.md"):
        assert str(out / name) in printed.splitlines()[-1]
        assert (out / name).is_file()
    assert numbers(out, "figure2") == numbers(whole[1], "figure2")


def test_an_interrupted_command_says_what_is_kept(blobs, tmp_path, capsys, monkeypatch):
    from fastfw.experiments import _regression

    calls = []

    def interrupted(*arguments):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(arguments)
        return trial(*arguments)

    trial = _regression._trial
    monkeypatch.setattr(_regression, "_trial", interrupted)
    arguments = ["reproduce", "figure1", "--data", blobs, "--out", str(tmp_path), *ARGUMENTS]
    assert main(arguments) == 130
    printed, err = capsys.readouterr()
    assert printed == ""
    assert f"3 finished trials are kept in {tmp_path / 'trials'}; the same command goes on" in err
    assert len(list((tmp_path / "trials").iterdir())) == 3


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_a_command_that_is_terminated_says_how_to_go_on(blobs, tmp_path):
    arguments = ["reproduce", "figure3", "--data", blobs, "--out", str(tmp_path), *ARGUMENTS]
    done = stop_while_writing(5, signal.SIGTERM, arguments)
    assert done.returncode == 128 + signal.SIGTERM
    assert done.stdout == ""
    assert done.stderr == (
        f"fastfw: 4 finished trials are kept in {tmp_path / 'trials'}; the same command goes on "
        "from there\n"
    )
    assert [path.suffix for path in (tmp_path / "trials").iterdir()] == [".npz"] * 4
    assert count_done("figure3", blobs, tmp_path, **SIZES) == (4, 10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["figure4"], "unknown 'figure4'; did you mean 'figure"),
        ([], "figure1|figure2|figure3"),
        (["figure1", "--trials", "0"], "a whole number of at least 1"),
        (["figure1", "--data", "nmist"], "did you mean 'mnist'"),
        (["figure1", "--data", "a.npz", "b.npz", "--titles", "A"], "1 given for 2 data sets"),
        (["figure1", "--data", "mnist", "--root", "/nowhere/at/all"], "is not a folder"),
        (["figure1", "--data", "mnist", "cifar10", "mnist"], "data: name each data set once"),
        (["figure1", "--data", "mnist,cifar10"], "data sets are given with spaces between them"),
        (["--data", "mnist", "figure1"], "figure1|figure2|figure3; name it before any option"),
        (["figure1", "--radius", "-1,5"], "--radius: '-1,5' given, a finite number above 0"),
        (["figure1", "--titles", "-A"], "begins with '-' is given as --titles=VALUE"),
        (["figure1", "figure2"], "unrecognized arguments: figure2; a value has to follow"),
    ],
)
def test_unusable_input_is_one_line(tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    assert main(["reproduce", *arguments, "--out", str(out)]) == 2
    printed, err = capsys.readouterr()
    assert printed == ""
    assert err.count("\n") == 1
    assert message in err
    assert not out.exists()


def test_arguments_are_checked(blobs, tmp_path):
    for options, message in (
        ({"figure": "figure9"}, "figure: unknown"),
        ({"data": []}, "data: name at least one"),
        ({"trials": 0}, "trials"),
        ({"rounds": 0}, "rounds"),
        ({"radius": -1.0}, "radius"),
    ):
        given = {"figure": "figure1", "data": blobs, "out": tmp_path, **options}
        with pytest.raises(ValueError, match=message):
            reproduce(given.pop("figure"), given.pop("data"), **given)
    assert not list(tmp_path.iterdir())


def test_quick_runs_take_the_embedded_data():
    from fastfw.experiments.reproduction import _FULL_DATA, _QUICK_DATA

    assert _QUICK_DATA == ("fashion-mnist-4k",)
    assert _FULL_DATA == ("mnist", "cifar10")
