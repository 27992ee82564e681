"""The worked examples: they run, learn, and draw what they should."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from examples import matrix_completion, portfolio, routing

CASES = {
    "portfolio": (portfolio, 300),
    "routing": (routing, 60),
    "matrix_completion": (matrix_completion, 60),
}


@pytest.mark.parametrize("name", CASES)
def test_the_method_stays_below_a_fixed_uniform_decision(name, tmp_path, monkeypatch):
    module, rounds = CASES[name]
    drawn = []
    monkeypatch.setattr(Figure, "savefig", watched(Figure.savefig, drawn))
    curves = module.run(rounds=rounds, seed=1, out=tmp_path)
    method, uniform = curves.values()
    assert method.shape == uniform.shape == (rounds,)
    assert method[-1] < 0.7 * uniform[-1]
    # the certificate leaves the order no doubt
    assert method.upper[-1] < uniform[-1]
    # the picture shows both, and the best fixed decision at zero
    (figure,) = drawn
    lines = {line.get_label(): line for line in figure.get_axes()[0].get_lines()}
    assert set(lines) == {*curves, "best fixed decision"}
    assert set(lines.pop("best fixed decision").get_ydata()) == {0.0}
    for label, curve in curves.items():
        assert np.array_equal(lines[label].get_ydata(), curve.lower)
    assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def watched(save, drawn):
    def savefig(figure, *args, **kwargs):
        drawn.append(figure)
        return save(figure, *args, **kwargs)

    return savefig


def test_gradients_of_the_examples():
    rng = np.random.default_rng(0)
    x = rng.dirichlet(np.ones(5))
    M = rng.standard_normal((4, 3))
    places = np.array([[0, 1], [3, 2], [0, 1]])
    for loss, point, batch in [
        (portfolio.log_loss, x, (rng.uniform(0.5, 2.0, (3, 5)),)),
        (routing.travel_time, x, (rng.uniform(size=(3, 5)),)),
        (matrix_completion.squared_error, M, (places, rng.standard_normal(3))),
    ]:
        gradient = loss(point, *batch)[1]
        for index in np.ndindex(point.shape):
            h = np.zeros_like(point)
            h[index] = 1e-6
            slope = (loss(point + h, *batch)[0] - loss(point - h, *batch)[0]) / 2e-6
            assert gradient[index] == pytest.approx(slope, abs=1e-8)


def test_command_line(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "examples.routing", "--rounds", "20", "--out", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parent.parent,
    )
    assert done.returncode == 0, done.stderr
    assert "MORGFW: regret" in done.stdout
    assert (tmp_path / "routing.png").exists()


def test_command_line_started_as_a_file_refuses_no_rounds(tmp_path):
    script = Path(__file__).parent.parent / "examples" / "portfolio.py"
    done = subprocess.run(
        [sys.executable, script, "--rounds", "0"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert "a whole number from 1 on is wanted, not '0'" in done.stderr
