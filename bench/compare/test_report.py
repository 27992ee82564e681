"""The report: what it computes from times, which cases it takes, its pictures."""

from __future__ import annotations

import itertools
from functools import partial
from importlib import import_module

import numpy as np
import pytest

from bench import report
from bench.compare import peers, pictures, profile, round_times, shapes, turns
from bench.compare.cases import CASES, MNIST, NETWORK, Case
from bench.data import Shape


def test_ratios_are_medians_over_pairs():
    run, observe, numpy = np.array([[1.0, 2.0, 4.0], [2.0, 2.0, 2.0], [5.0, 16.0, 8.0]])
    times = {"run": run, "observe": observe, "NumPy": numpy}
    wanted = ["x", "8.000", "2.000", "2.000", "5.0", "4.0", "5.0", "2.00"]
    assert round_times.line("x", times, 0.5).split() == wanted
    assert round_times.line("orgfw mnist float64", times).split()[-1] == "5"


def test_sides_take_turns_and_only_playing_is_timed():
    calls = []

    def side(name):
        def turn():
            calls.append(f"ready {name}")
            return lambda: calls.append(name)

        return turn

    times = turns.take_turns({"a": side("a"), "b": side("b")}, 2)
    assert {name: len(own) for name, own in times.items()} == {"a": 2, "b": 2}
    assert [c for c in calls if len(c) == 1] == ["a", "b", "a", "b", "b", "a"]


def chosen(*words):
    return list(turns.Work(words).choose({case.name: case for case in CASES}))


def test_cases_are_chosen_by_whole_words():
    assert {name.split()[0] for name in chosen("orgfw")} == {"orgfw"}
    assert chosen("float32 ofw", "metafw") == ["metafw mnist float64", "ofw mnist float32"]
    assert chosen() == [case.name for case in CASES]
    with pytest.raises(ValueError, match="no 'sgd' here; there are orgfw mnist float64"):
        chosen("orgfw", "sgd")


def test_case_names_differ():
    names = [case.name for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["speed"], "no section 'speed'; there are rounds, peers"),
        (["rounds", "--only", "sgd"], "rounds: no 'sgd' here; there are orgfw mnist float64"),
        (["peers", "--only", "sgd"], "peers: no 'sgd' here; there are orgfw mnist float64"),
        (["--turns", "0"], "--turns must be at least 1"),
    ],
)
def test_what_is_not_there_is_refused(capsys, monkeypatch, arguments, message):
    monkeypatch.setattr(report, "handicap", lambda: None)
    with pytest.raises(SystemExit, match="2"):
        report.main(arguments)
    assert message in capsys.readouterr().err


def test_a_handicap_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    with pytest.raises(SystemExit, match="2"):
        report.main([])
    assert "env -u OPENBLAS_CORETYPE" in capsys.readouterr().err


def test_a_page_holds_what_was_printed(tmp_path, capsys, monkeypatch):
    def work(given):
        """What is measured."""
        yield f"{given.turns} turns"
        yield "speed.png", pictures.bars([("X", np.array([2.0]), np.array([0.6]))])

    monkeypatch.setattr(report, "handicap", lambda: None)
    monkeypatch.setitem(report.SECTIONS, "speed", report.Section("Speed", work, "Bars"))
    assert report.main(["speed", "--quick"]) == 0
    assert list(tmp_path.iterdir()) == []  # no pages where work is left out
    capsys.readouterr()
    assert report.main(["speed", "--turns", "3", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    page = (tmp_path / "speed.md").read_text(encoding="utf-8")
    assert page.startswith(
        "# Speed\n\nWhat is measured.\n\n```text\n$ python -m bench.report speed --turns 3"
    )
    assert page.endswith("```\n\n![Bars](speed.png)\n")
    assert "3 turns" in printed
    for line in printed.splitlines():
        assert line in page
    assert 1_000 < (tmp_path / "speed.png").stat().st_size < 60_000


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
    figure = pictures.bars([("X", *np.array([[numpy], [run]])) for numpy, run in times])
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
    sides = {
        "ours": round_times.Entry(lambda: lambda: lambda: None, 10),
        "theirs": round_times.Entry(partial(import_module, "no_such_package"), 10),
    }
    table = round_times.Table("title", sides, floor=0.5)
    lines = "\n".join(table.measure(3, clock=iter(range(100)).__next__)).splitlines()
    assert lines[2].split() == ["ours", "100.000", "1.00", "1.00", "200.00"]
    assert lines[3].split(maxsplit=1) == ["theirs", "skipped: No module named 'no_such_package'"]


def check(make, case):
    try:
        case.check(make, rounds=12)
    except ImportError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", peers.ROUNDS)
def test_peers_play_the_same_decisions(name, dtype):
    if "compile" in name:
        pytest.skip("its compiler takes a minute; checked before it is timed")
    check(peers.ROUNDS[name], Case("orgfw", Shape(400, 30, 4, 50, 4.0), dtype))


def test_peers_play_the_same_on_the_network():
    check(peers.NETWORK_ROUNDS["PyTorch, eager"], Case("network", NETWORK, "float64"))


def test_tables_are_printed(capsys, monkeypatch):
    monkeypatch.setattr(report, "handicap", lambda: None)
    for module in (round_times, shapes):
        monkeypatch.setattr(module, "machine_limits", lambda dtype: (1e10, 1e11))
    monkeypatch.setattr(shapes, "SIZES", ((2, 10), (3, 20)))
    assert report.main(["peers", "rounds", "--only", "network float32", "--turns", "2"]) == 0
    printed = capsys.readouterr().out
    for name in ("fastfw, run", "fastfw, observe", "NumPy as written", "us/round", "ms per round"):
        assert name in printed
    assert report.main(["shapes", "--quick"]) == 0
    printed = capsys.readouterr().out
    assert "stacked/run" in printed
    for line in printed.splitlines():
        assert len(line) <= 110


@pytest.mark.parametrize(
    ("method", "make"),
    [
        ("orgfw", profile.momentum),
        ("morgfw sub-batch", profile.sub_batch),
    ],
)
def test_parts_of_a_round_are_timed(method, make):
    case = Case(method, MNIST, "float32")
    lines = profile.table("title", *make(case), case, 1).splitlines()
    assert len(lines) == 8 - 1 * (method != "orgfw")
    assert all(float(line[40:48]) > 0.0 for line in lines[1:-2])
