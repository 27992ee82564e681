"""The benchmarks of bench/tracked run, at small sizes, and what they find is correct."""

import importlib
import inspect
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import fastfw as fw
from bench.tracked import bench_kernels, work
from fastfw.experiments.methods import METHODS

FILES = ("bench_kernels", "bench_learners", "bench_problems", "bench_start")
KINDS = ("time_", "timeraw_", "peakmem_", "track_")
#: What figures of these names are where results are right: as good as equal, or nothing is wrong.
#: 10,000 numbers are farther from their distribution than that once in a million times.
RIGHT = {
    "track_error": lambda figure: figure in work.ROUNDING.values(),
    "track_distance": lambda figure: 0.0 < figure < 0.027,
    "track_difference_from_run": lambda figure: figure == 0,
    "track_wrong_answers": lambda figure: figure == 0,
    "track_better_vertices": lambda figure: figure == 0,
    "track_gap": lambda figure: figure in (0, 1),
    "track_heavy_packages": lambda figure: figure == 0,
}
SMALL = {
    "mnist": work.Shape(120, 20, 3, 8, 2.0),
    "cifar10": work.Shape(60, 24, 3, 6, 2.0),
    "small-batch": work.Shape(60, 20, 3, 4, 2.0),
    "wide": work.Shape(60, 50, 3, 6, 2.0, share=0.1, csr=True),
    "large": work.Shape(20, 30, 4, 5, 2.0),
}
#: Attributes of classes that say how much there is to do.
LESS = {"learners": 2, "iterations": 4, "rounds": 3, "d": 12, "n": 40}


def names(own, *prefixes):
    return [name for name in dir(own) if name.startswith(prefixes)]


def classes():
    for file in FILES:
        module = importlib.import_module(f"bench.tracked.{file}")
        for name, own in vars(module).items():
            if inspect.isclass(own) and names(own, *KINDS):
                yield pytest.param(own, id=f"{file}.{name}")


def fewer(method):
    """The same method with fewer rounds and inner steps."""
    options = {**method.options}
    if "inner_steps" in options:
        options["inner_steps"] = 5
    return method._replace(options=options, rounds=3, before=2)


@pytest.fixture
def small(monkeypatch):
    """Benchmarks of small sizes."""
    monkeypatch.setattr(work, "SHAPES", SMALL)
    monkeypatch.setattr(work, "HIDDEN", 2)
    monkeypatch.setattr(work, "SIDE", 5)
    for table in ("METHODS", "NETWORK_METHODS"):
        own = {name: fewer(method) for name, method in getattr(work, table).items()}
        monkeypatch.setattr(work, table, own)


@pytest.mark.parametrize("own", list(classes()))
def test_benchmarks_run_and_results_are_right(own, small, monkeypatch):
    if own.__name__ == "FirstCall":
        pytest.skip("compiles in new processes")
    for name, less in LESS.items():
        if name in vars(own):
            monkeypatch.setattr(own, name, less)
    for params in itertools.product(*getattr(own, "params", ())):
        if own.__module__ == bench_kernels.__name__ and any("float32" in str(p) for p in params):
            continue  # the same calls: both precisions are compiled where figures are wanted
        benchmark = own()
        try:
            if hasattr(own, "setup"):
                benchmark.setup(*params)
        except NotImplementedError as error:  # how asv is told to leave it out
            pytest.skip(str(error))
        for name in names(own, "time_", "peakmem_", "track_"):
            figure = getattr(benchmark, name)(*params)
            if name in RIGHT:
                assert RIGHT[name](figure), (params, name, figure)
        if hasattr(own, "teardown"):
            benchmark.teardown(*params)


@pytest.mark.parametrize("own", list(classes()))
def test_times_have_a_figure_of_correctness_beside_them(own):
    if names(own, "time_", "timeraw_"):
        assert set(names(own, "track_")) & set(RIGHT)


def test_every_kernel_is_timed():
    """As docs/benchmarks.md says; its table names benchmarks that exist."""
    root = Path(__file__).resolve().parents[1]
    table = (root / "docs" / "benchmarks.md").read_text(encoding="utf-8").split("| kernels |")[1]
    lines = [line.split("|")[1:3] for line in table.split("\n\n")[0].splitlines()[2:]]
    modules = {name for names, _ in lines for name in re.findall(r"`(\w+)`", names)}
    public = {path.stem for path in (root / "kernels").glob("[a-z]*.py")}
    assert modules == public
    known = {param.id for param in classes()}
    assert {name for _, names in lines for name in re.findall(r"`([\w.]+)`", names)} <= known


def test_every_learner_with_compiled_rounds_is_timed():
    timed = {own.kind for own in (*work.METHODS.values(), *work.NETWORK_METHODS.values())}
    online = {getattr(fw, own.learner) for own in METHODS}
    assert timed == {kind for kind in online if kind._compiled is not None}
    assert {kind for kind, _ in work.OFFLINE.values()} == {fw.SVRF, fw.SpiderFW}


def test_figures_show_a_wrong_result(small, monkeypatch):
    right = work.reference.gradient
    monkeypatch.setattr(work.reference, "gradient", lambda *args: 1.001 * right(*args))
    benchmark = bench_kernels.Logistic()
    benchmark.setup("float64")
    assert 5e-4 < benchmark.track_error("float64") < 5e-3


def test_difference():
    assert work.difference([1.0, -2.0], [1.0, -2.0]) == work.ROUNDING["float64"]
    assert work.difference([1.0, -2.0], [1.5, -2.0]) == 0.25
    assert work.difference(1.0, 1.0 + 1e-6, "float32") == work.ROUNDING["float32"]
    for bad in ([1.0, np.nan], [1.0], [1.0, np.inf]):
        with pytest.raises(ValueError, match="wanted numbers of shape"):
            work.difference(bad, [1.0, 2.0])
