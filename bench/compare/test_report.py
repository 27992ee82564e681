"""The report: what it computes from times, which cases it takes, its pictures."""

from __future__ import annotations

import itertools

import pytest

from bench.compare import peers, peers_report, pictures, report, turns
from bench.compare.cases import CASES, Case, choose
from bench.compare.data import NETWORK, Shape


def test_ratios_are_medians_over_pairs():
    result = turns.summary(
        "x", "X", [[1.0, 2.0, 4.0], [2.0, 2.0, 2.0], [5.0, 16.0, 8.0]], floor=0.5
    )
    assert (result.run, result.observe, result.numpy) == (2.0, 2.0, 8.0)
    assert (result.ratio, result.ratio_observe) == (5.0, 4.0)
    assert (result.quickest, result.ratio_quickest) == (1.0, 5.0)
    wanted = ["x", "8.000", "2.000", "2.000", "5.0", "4.0", "5.0", "0.500", "2.00"]
    assert report.line(result).split() == wanted


def test_sides_take_turns_and_only_playing_is_timed():
    calls = []

    def side(name):
        def turn():
            calls.append(f"ready {name}")
            return lambda: calls.append(name)

        return turn

    times = turns.take_turns([side("a"), side("b")], 2)
    assert [len(t) for t in times] == [2, 2]
    assert [c for c in calls if len(c) == 1] == ["a", "b", "a", "b", "b", "a"]


def test_cases_are_chosen_by_whole_words():
    assert {case.method for case in choose(["orgfw"])} == {"orgfw"}
    assert [case.name for case in choose(["float32 ofw", "metafw"])] == [
        "metafw mnist float64",
        "ofw mnist float32",
    ]
    assert choose([]) == list(CASES)
    with pytest.raises(ValueError, match="no case 'sgd'; there are orgfw mnist float64"):
        choose(["orgfw", "sgd"])


def test_case_names_differ():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


def test_unknown_case_exits(capsys, monkeypatch):
    monkeypatch.setattr(report, "handicap", lambda: None)
    assert report.main(["--case", "sgd"]) == 2
    assert capsys.readouterr().err.startswith("error: no case 'sgd'")


def test_picture(tmp_path):
    results = [
        turns.summary(name, name, [[0.5], [0.6], [numpy]])
        for name, numpy in (("orgfw", 2.0), ("morgfw", 50.0))
    ]
    pictures.save(pictures.bars(results), str(tmp_path / "round.png"))
    assert 1_000 < (tmp_path / "round.png").stat().st_size < 60_000


@pytest.mark.parametrize(
    "times",
    [
        [(165.208, 10.604), (2.112, 0.571), (1.176, 0.319)],
        [(160.0, 160.0)],
        [(98765.0, 0.012), (0.999, 98765.0)],
        [(1e7, 3e-5), (2e-5, 1e-5)],
    ],
)
def test_labels_in_the_picture_do_not_overlap(times):
    results = [turns.summary("x", "X", [[run], [run], [numpy]]) for numpy, run in times]
    figure = pictures.bars(results)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert len(axes.texts) == 3 * len(times)
    boxes = [text.get_window_extent() for text in axes.texts]
    edge = axes.get_window_extent().x1
    for first, second in itertools.combinations(boxes, 2):
        assert not first.overlaps(second)
    assert max(box.x1 for box in boxes) <= edge


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.1234, "0.123 ms"), (1.234, "1.23 ms"), (12.34, "12.3 ms"), (123.4, "123 ms")],
)
def test_three_figures(value, text):
    assert pictures.milliseconds(value) == text


def test_peers_that_are_missing_are_skipped_with_a_word():
    assert peers.missing("numpy") is None
    assert peers.missing("no_such_package") == "skipped: no_such_package is not installed"
    table = peers_report.Table("title", "ms/round", floor=0.5)
    table.add("ours", lambda: lambda: None, 10)
    table.skipped.append(("theirs", "skipped: it is not installed"))
    lines = table.measure(3, clock=iter(range(100)).__next__)
    assert lines[2].split() == ["ours", "100.000", "1.00", "1.00", "200.00"]
    assert lines[3].split(maxsplit=1) == ["theirs", "skipped: it is not installed"]


def test_unknown_table_exits(capsys, monkeypatch):
    monkeypatch.setattr(report, "handicap", lambda: None)
    assert report.main(["--peers", "--case", "sgd"]) == 2
    assert "no table 'sgd'; there are orgfw mnist float64" in capsys.readouterr().err


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", peers.ROUNDS)
def test_peers_play_the_same_decisions(name, dtype):
    package, make = peers.ROUNDS[name]
    why = peers.missing(package)
    if why:
        pytest.skip(why)
    if "compile" in name:
        pytest.skip("its compiler takes a minute; checked before it is timed")
    shape = Shape("small", "small", n=400, d=30, n_classes=4, batch_size=50, radius=4.0)
    Case("orgfw", shape, dtype).check(make, rounds=12)


def test_peers_play_the_same_on_the_network():
    package, make = peers.NETWORK_ROUNDS["PyTorch, eager"]
    why = peers.missing(package)
    if why:
        pytest.skip(why)
    Case("network", NETWORK, "float64").check(make, rounds=12)


def test_a_table_of_peers_is_printed(capsys, monkeypatch):
    monkeypatch.setattr(report, "handicap", lambda: None)
    monkeypatch.setattr(peers_report, "machine_limits", lambda dtype: (1e10, 1e11))
    assert report.main(["--peers", "--case", "network float32", "--pairs", "2"]) == 0
    printed = capsys.readouterr().out
    for name in ("fastfw, run", "fastfw, observe", "NumPy as written", "us/round"):
        assert name in printed
