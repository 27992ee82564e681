"""The benchmarks of bench/tracked run, at small sizes, and what they find is correct."""

import importlib
import inspect

import pytest

from bench.tracked import work

FILES = ("bench_kernels", "bench_learners", "bench_problems", "bench_start")
#: What figures of these names are where results are right: as good as equal, or nothing is wrong.
RIGHT = {
    "track_error": work.ROUNDING.values(),
    "track_difference_from_run": (0,),
    "track_wrong_answers": (0,),
    "track_better_vertices": (0,),
    "track_gap": (0, 1),
    "track_heavy_packages": (0,),
}
#: Distances of distributions, which are never zero, and new processes, which take their time.
OTHERS = ("Draws", "FirstCall")
SMALL = {
    "mnist": work.Shape(120, 20, 3, 8, 2.0),
    "cifar10": work.Shape(60, 24, 3, 6, 2.0),
    "small-batch": work.Shape(60, 20, 3, 4, 2.0),
    "wide": work.Shape(60, 50, 3, 6, 2.0, share=0.1),
    "large": work.Shape(20, 30, 4, 5, 2.0),
}


def classes():
    for file in FILES:
        module = importlib.import_module(f"bench.tracked.{file}")
        for name, own in vars(module).items():
            if inspect.isclass(own) and own.__module__ == module.__name__:
                yield pytest.param(own, id=f"{file}.{name}")


def names(own, *prefixes):
    return [name for name in dir(own) if name.startswith(prefixes)]


@pytest.mark.parametrize("own", classes())
def test_times_have_a_figure_of_correctness_beside_them(own):
    if names(own, "time_", "timeraw_") and own.__name__ not in OTHERS:
        assert set(names(own, "track_")) & set(RIGHT)


def test_every_learner_is_timed():
    import fastfw as fw
    from fastfw.experiments.methods import METHODS

    timed = {own.kind for own in (*work.METHODS.values(), *work.NETWORK_METHODS.values())}
    assert timed == {getattr(fw, own.learner) for own in METHODS}
    assert {kind for kind, _ in work.OFFLINE.values()} == {fw.SVRF, fw.SpiderFW}
