"""The examples, cut short: they run and learn, and their gradients are right."""

import re
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pytest

from sizes import JIT

pytestmark = pytest.mark.slow  # their losses are compiled anew in every process

EXAMPLES = Path(__file__).parent.parent / "examples"
ROUNDS = {
    "first_race": 60,
    "matrix_completion": 60,
    "own_method": 60,
    "own_problem": 60,
    "portfolio": 300,
    "routing": 60,
    "streaming_service": 600,
    "text": 60,
}


@cache
def played(name):
    """Return what an example leaves when it has played fewer rounds, without a window."""
    path = EXAMPLES / f"{name}.py"
    source, found = re.subn(
        r"^ROUNDS(.*) = \d+",
        rf"ROUNDS\1 = {ROUNDS[name]}",
        path.read_text("utf-8"),
        flags=re.MULTILINE,
    )
    assert found == 1
    plt.switch_backend("agg")
    plt.close("all")  # what others left
    names = {"__name__": "__main__"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plt, "show", lambda: None)
        patch.setattr("sys.argv", [str(path)])
        exec(compile(source, path, "exec"), names)
    names["figures"] = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    return SimpleNamespace(**names)


def test_all_examples_are_here():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(ROUNDS)


@pytest.mark.parametrize("name", ["portfolio", "routing", "matrix_completion"])
def test_the_method_stays_below_a_fixed_uniform_decision(name):
    curves = played(name).curves
    method, uniform = curves.values()
    assert method.shape == uniform.shape == (ROUNDS[name],)
    assert method[-1] < 0.7 * uniform[-1]
    # the certificate leaves the order no doubt
    assert method.upper[-1] < uniform[-1]
    # a picture shows both, and the best fixed decision at zero
    lines = {line.get_label(): line for line in played(name).figures[0].get_axes()[0].get_lines()}
    assert set(lines) == {*curves, "best fixed decision"}
    assert set(lines["best fixed decision"].get_ydata()) == {0.0}
    for label, curve in curves.items():
        assert np.array_equal(lines[label].get_ydata(), curve.lower)


@pytest.mark.parametrize("name", ["first_race", "own_method"])
@pytest.mark.skipif(not JIT, reason="takes a minute without the compiler")
def test_methods_learn_on_images(name):
    assert played(name).figures
    for curve in played(name).curves.values():
        assert curve[-1] - curve[-10] < curve[9] - curve[0]


def test_the_own_set_keeps_its_weights():
    done = played("own_problem")
    x = done.result.decision
    assert x.min() >= 0.0
    assert x.max() <= 1.0
    assert np.abs(x - done.best.decision).mean() < 0.1


@pytest.mark.skipif(not JIT, reason="takes a minute without the compiler")
def test_constant_steps_follow_what_changes():
    errors = played("streaming_service").errors
    assert [len(wrong) for wrong in errors.values()] == [600, 600]
    settled, following = (np.mean(wrong[-100:]) for wrong in errors.values())
    assert following < settled - 0.05


@pytest.mark.skipif(not JIT, reason="takes a minute without the compiler")
def test_text_is_learned_in_one_pass_and_in_whole():
    done = played("text")
    assert 0.25 < done.online < 0.95
    assert done.fitted > 0.95
    assert np.count_nonzero(done.model.coef_) < 2000
    assert done.figures


def test_gradients():
    rng = np.random.default_rng(0)
    x = rng.dirichlet(np.ones(5))
    M = rng.standard_normal((4, 3))
    places = np.array([[0, 1], [3, 2], [0, 1]])
    for loss, point, batch in [
        (played("portfolio").log_loss, x, (rng.uniform(0.5, 2.0, (3, 5)),)),
        (played("routing").travel_time, x, (rng.uniform(size=(3, 5)),)),
        (played("matrix_completion").squared_error, M, (places, rng.standard_normal(3))),
        (played("own_problem").huber, x, (rng.uniform(size=(9, 5)), 3 * rng.standard_normal(9))),
    ]:
        gradient = loss(point, *batch)[1]
        for index in np.ndindex(point.shape):
            h = np.zeros_like(point)
            h[index] = 1e-6
            slope = (loss(point + h, *batch)[0] - loss(point - h, *batch)[0]) / 2e-6
            assert gradient[index] == pytest.approx(slope, abs=1e-8)
