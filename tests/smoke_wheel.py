"""Use an installed fastfw from outside the source tree, the way its users do.

Run it from another folder, by the Python of an environment that has the wheel and nothing else::

    cd elsewhere && fresh/bin/python smoke_wheel.py

Plain asserts and no test framework: the environment has only what the wheel asks for.
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import distribution
from importlib.resources import files
from pathlib import Path


def is_installed_whole() -> None:
    """Every part comes from site-packages, with the marker, the data and its notice."""
    import fastfw
    import fastfw.experiments
    import fastfw.kernels
    import fastfw.learners
    import fastfw.sets

    site = Path(sysconfig.get_path("purelib")).resolve()
    for module in (fastfw, fastfw.kernels, fastfw.learners, fastfw.experiments, fastfw.sets):
        assert module.__file__ is not None
        assert site in Path(module.__file__).resolve().parents, (
            f"{module.__name__} was imported from {module.__file__}, not from {site}"
        )
    found = distribution("fastfw")
    assert found.version == fastfw.__version__
    names = {str(path) for path in found.files or ()}
    assert "fastfw/py.typed" in names
    assert "fastfw/kernels/_jit.py" in names
    assert "fastfw/sets/flow.py" in names
    assert any("LICENSE" in n and n.startswith("fastfw/data/") for n in names), "no data licence"
    assert not any(n.startswith(("tests/", "bench/", "kernels/")) for n in names)
    assert not any(n.endswith((".nbi", ".nbc")) for n in names), "compiled kernels were packed"
    assert files("fastfw").joinpath("py.typed").is_file()


def learns() -> None:
    """A few rounds on the embedded data lower the loss, in compiled code and from Python alike."""
    import numpy as np

    import fastfw as fw

    X, y, X_test, y_test = fw.datasets.load("fashion-mnist-4k")
    assert X.shape == (4000, 784)
    assert y.shape == (4000,)
    assert X_test.shape == (1000, 784)
    assert y_test.shape == (1000,)
    problem = fw.SoftmaxRegression(n_features=784, n_classes=10)
    ball = fw.RowL1Ball(shape=(10, 784), radius=8.0)
    stream = fw.iid_stream(X, y, batch_size=100, rounds=40, seed=0)

    learner = fw.ORGFW(problem, ball)
    result = learner.run(stream)
    assert result.losses.shape == (40,)
    assert result.losses[-5:].mean() < 0.7 * result.losses[0]

    again = fw.ORGFW(problem, ball)
    losses = [again.observe(batch).loss for batch in stream]
    assert losses == result.losses.tolist()
    np.testing.assert_array_equal(again.play(), result.decision)


def command(*arguments: str) -> str:
    """Run ``python -m fastfw``, which has to succeed, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "fastfw", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"fastfw {arguments}: {done.returncode}\n{done.stderr}"
    return done.stdout


def command_line_works() -> None:
    """The console script exists; a small race writes its three files; bad input exits with 2."""
    script = Path(sysconfig.get_path("scripts")) / "fastfw"
    assert subprocess.run([script, "--help"], capture_output=True, check=True).stdout
    assert "fastfw" in command("info")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "race"
        race = ("--rounds", "20", "--batch-size", "50", "--trials", "2", "--out", str(out))
        table = command("compare", *race)
        assert "orgfw" in table.lower(), table
        written = {path.name for path in out.iterdir()}
        assert written >= {"regret.csv", "summary.csv", "regret.png"}, written
    bad = subprocess.run(
        [script, "compare", "--data", "no-such-data"], capture_output=True, text=True, check=False
    )
    assert bad.returncode == 2, bad
    assert len(bad.stderr.strip().splitlines()) == 1, bad.stderr


def main() -> None:
    """Run every check, saying which."""
    for check in (is_installed_whole, learns, command_line_works):
        print(f"{check.__name__} ...", flush=True)
        check()
    print("the installed package works")


if __name__ == "__main__":
    main()
