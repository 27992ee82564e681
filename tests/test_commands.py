"""What every command keeps to, whatever comes between: pictures, threads, Ctrl-C, lost workers."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from fastfw.cli import main
from fastfw.experiments import plots, tuning

SMALL = ["--rounds", "2", "--batch-size", "3", "--radius", "2", "--trials", "1"]
ONE = ["--step", "1,1", "--momentum", "1,1"]
COMMANDS = {
    "compare": ["compare", "--methods", "orgfw", *SMALL],
    "network": ["compare", "--problem", "network", "--methods", "orgfw", "--hidden", "2", *SMALL],
    "tune": ["tune", *ONE, *SMALL],
    "reproduce": ["reproduce", "figure2", *SMALL],
}
posix = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """Return the path of a small data set."""
    rng = np.random.default_rng(0)
    y = np.arange(18) % 3
    path = tmp_path_factory.mktemp("data") / "blobs.npz"
    np.savez(path, X=rng.normal(size=(18, 5)) + 2.0 * np.eye(3, 5)[y], y=y)
    return str(path)


def python(program, *arguments, **environment):
    """Run a program in a process group of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        start_new_session=True,
    )


# --- pictures ---------------------------------------------------------------------------------

DRAW = """\
import os, sys
from fastfw.experiments import plots
with plots.own_style():
    figure = plots.new_figure(3, 2, dpi=50)
    figure.subplots().plot([1, 2])
plots.write_png(figure, sys.argv[1])
import matplotlib
print(os.environ.get("MPLBACKEND"), dict.get(matplotlib.rcParams, "backend"))
"""


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("module://matplotlib_inline.backend_inline", None),
        ("module://nowhere.at.all", "module://nowhere.at.all"),
        ("no such backend", None),
        ("TkAgg", "tkagg"),
        ("", None),
    ],
)
def test_pictures_do_not_depend_on_the_backend(tmp_path, given, kept):
    done = python(DRAW, str(tmp_path / "a.png"), MPLBACKEND=given)
    assert done.stderr == ""
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    variable, _, backend = done.stdout.strip().rpartition(" ")
    assert variable == given or "object" in done.stdout  # what the user set is still set
    if kept is not None:
        assert backend.casefold() == kept


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"text.usetex": True},
        {"text.usetex": True, "text.latex.preamble": r"\usepackage{nothing}"},
        {"font.family": ["no such font"]},
        {"savefig.format": "svg", "savefig.dpi": 10},
        {"savefig.bbox": "tight"},
        {"figure.dpi": 7.0, "figure.figsize": [1.0, 1.0]},
        {"figure.constrained_layout.use": False, "figure.autolayout": True},
        {"axes.grid": True, "lines.linewidth": 40.0},
        {"axes.formatter.use_mathtext": True, "axes.unicode_minus": False},
        {"image.cmap": "gray", "axes.facecolor": "black", "text.color": "white"},
    ],
)
def test_pictures_do_not_depend_on_the_user_s_style(tmp_path, own):
    import matplotlib

    def draw(name):
        with plots.own_style():
            figure = plots.new_figure(3, 2, dpi=50)
            axes = figure.subplots()
            axes.plot([-1, 2], label="a_b")
            axes.legend()
        plots.write_png(figure, tmp_path / name)
        return (tmp_path / name).read_bytes()

    wanted = draw("a.png")
    with matplotlib.rc_context(own):
        before = dict(matplotlib.rcParams)
        assert draw("b.png") == wanted
        assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("command", ["compare", "network", "reproduce"])
def test_a_picture_that_fails_leaves_the_rest(tmp_path, blobs, capsys, monkeypatch, command):
    def fail(*arguments, **options):
        raise RuntimeError("latex was not able to process\nthe following string")

    monkeypatch.setattr(plots, "new_figure", fail)
    for module in ("figures", "network_report"):
        monkeypatch.setattr(f"fastfw.experiments.{module}.new_figure", fail)
    assert main([*COMMANDS[command], "--data", blobs, "--out", str(tmp_path)]) == 1
    printed, err = capsys.readouterr()
    assert "ORGFW" in printed
    assert printed.splitlines()[-1].startswith("files: ")
    assert ".png" not in printed
    assert ".csv" in printed
    assert "cannot be drawn: latex was not able to process the following string" in err
    assert err.count("\n") == 1
    assert not list(tmp_path.glob("*.png"))
    assert len(list(tmp_path.glob("*.csv"))) == 2


# --- threads ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("given", ["0", "-1", "two"])
def test_a_bad_number_of_threads_is_named(tmp_path, blobs, capsys, monkeypatch, command, given):
    monkeypatch.setenv("FASTFW_NUM_THREADS", given)
    out = tmp_path / "out"
    assert main([*COMMANDS[command], "--data", blobs, "--out", str(out)]) == 2
    printed, err = capsys.readouterr()
    assert printed == ""
    assert err == (
        f"fastfw: error: FASTFW_NUM_THREADS must be an integer of at least 1, but it is {given!r}\n"
    )


# --- Ctrl-C -----------------------------------------------------------------------------------

INTERRUPTED_IMPORT = """\
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
first, *arguments = sys.argv[1:]
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == first:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv[1:] = arguments
from fastfw.__main__ import main
sys.exit(main())
"""


@posix
@pytest.mark.parametrize(
    "module",
    [
        "fastfw.cli", "argparse", "fractions", "difflib", "fastfw.experiments.methods",
        "numpy", "fastfw.streams", "fastfw.datasets", "numba", "fastfw.regret",
    ],
)  # fmt: skip
def test_ctrl_c_is_one_line_at_any_time(tmp_path, blobs, module):
    arguments = [*COMMANDS["compare"], "--data", blobs, "--out", str(tmp_path / "out")]
    done = python(INTERRUPTED_IMPORT, module, *arguments)
    assert done.returncode == 130
    assert (done.stdout, done.stderr) == ("", "fastfw: interrupted\n")
    assert not (tmp_path / "out").exists()


INTERRUPTED_WORKERS = """\
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from fastfw.__main__ import main
from fastfw.experiments import tuning
def interrupted(*task):
    os.killpg(os.getpgrp(), signal.SIGINT)
    time.sleep(60)
tuning._numbered = interrupted
sys.exit(main())
"""


@posix
def test_ctrl_c_ends_workers_without_a_word(tmp_path, blobs):
    pytest.importorskip("joblib")
    arguments = [*COMMANDS["tune"], "--trials", "4", "--jobs", "2"]
    done = python(INTERRUPTED_WORKERS, *arguments, "--data", blobs, "--out", str(tmp_path))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fastfw: interrupted\n")


@posix
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_worker_that_is_killed_is_one_line(tmp_path, blobs, capsys, monkeypatch, number):
    pytest.importorskip("joblib")
    monkeypatch.setattr(tuning, "_numbered", lambda *task: os.kill(os.getpid(), number))
    arguments = [*COMMANDS["tune"], "--trials", "4", "--jobs", "2"]
    assert main([*arguments, "--data", blobs, "--out", str(tmp_path)]) == 1
    printed, err = capsys.readouterr()
    assert printed == ""
    assert err.startswith("fastfw: error: n_jobs: a process that ran trials was ended from outside")
    assert err.count("\n") == 1
