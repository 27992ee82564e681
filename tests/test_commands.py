"""What every experiment keeps to, as a command and as a function, whatever comes between.

What is special to one is in test_compare.py, test_compare_network.py, test_tune.py and
test_reproduce.py; the command line's own doors are in test_cli.py.
"""

import os
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple

import numpy as np
import pytest

from experiment_cases import SIZES, SMALL, python, rows_of
from fastfw import _files
from fastfw.cli import main
from fastfw.experiments import compare, compare_network, figures, grid_search, reproduce, trials
from fastfw.experiments.trials import KEPT, TrialStore

posix = pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")


class Command(NamedTuple):
    """How an experiment is run, what it writes, and how many trials it keeps."""

    arguments: list
    files: list
    works: int
    function: object
    options: dict
    stays: bool = False


PAIRS = {"steps": [(1.0, 1.0), (0.5, 0.5)], "momenta": [(1.0, 1.0)]}
COMMANDS = {
    "compare": Command(
        ["compare", "--methods", "orgfw,rofw"],
        ["regret.csv", "summary.csv", "regret.png"],
        1 + 2 * 2,
        compare,
        {"methods": ["orgfw", "rofw"], **SIZES},
    ),
    "network": Command(
        ["compare-network", "--methods", "orgfw,svrf", "--hidden", "2"],
        ["trace.csv", "summary.csv", "network.png"],
        2 * 2,
        compare_network,
        {"methods": ["orgfw", "svrf"], "hidden": 2, **SIZES},
    ),
    "tune": Command(
        ["tune", "--step", "1,1", "1/2,1/2", "--momentum", "1,1"],
        ["tune.csv"],
        2 * 2,
        grid_search,
        {**PAIRS, **SIZES},
        stays=True,
    ),
    "figure1": Command(
        ["reproduce", "figure1"],
        ["figure1.csv", "figure1-summary.csv", "claims.md", "figure1.png"],
        1 + 2 * 5 * 2,
        reproduce,
        {"figure": "figure1", **SIZES},
        stays=True,
    ),
    "figure2": Command(
        ["reproduce", "figure2"],
        ["figure2.csv", "figure2-summary.csv", "claims.md", "figure2.png"],
        1 + 2 * 5,
        reproduce,
        {"figure": "figure2", **SIZES},
        stays=True,
    ),
    "figure3": Command(
        ["reproduce", "figure3"],
        ["figure3.csv", "figure3-summary.csv", "claims.md", "figure3.png"],
        2 * 7,
        reproduce,
        {"figure": "figure3", **SIZES},
        stays=True,
    ),
}
every = pytest.mark.parametrize("name", COMMANDS)
TIMES = {"seconds", "ms_per_round", "least_ms_per_round"}


@pytest.fixture
def no_pictures(monkeypatch):
    """Spare the time that drawing takes."""
    monkeypatch.setattr(figures, "write_png", lambda *_, **__: None)
    for function in ("regret_figure", "network_figure", "reproduction_figure"):
        monkeypatch.setattr(figures, function, lambda *_: None)


def numbers(folder):
    """Return the rows of all CSV files, without times and what hangs on them."""
    found = {}
    for path in sorted(folder.glob("*.csv")):
        rows = rows_of(path)
        assert rows
        for row in rows:
            for column in list(row):
                late = row.get("panel") == "cost" and column in ("value", "standard_error")
                if column in TIMES or "common_time" in column or "above_first" in column or late:
                    row.pop(column)
        found[path.name] = rows
    return found


def run(name, blobs, out, *more):
    """Run a command in this process; its exit code."""
    return main([*COMMANDS[name].arguments, "--data", blobs, "--out", str(out), *SMALL, *more])


@pytest.fixture(scope="module")
def undisturbed(blobs, tmp_path_factory):
    """Return the folder and the words of every command when nothing comes between, by name."""
    found = {}
    for name in COMMANDS:
        out = tmp_path_factory.mktemp(name) / "new" / "results"
        with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()) as err:
            assert run(name, blobs, out) == 0
        found[name] = out, printed.getvalue(), err.getvalue()
    return found


@pytest.fixture(scope="module")
def whole(undisturbed):
    """Return what every command writes when nothing comes between, by name."""
    return {name: numbers(out) for name, (out, _, _) in undisturbed.items()}


# --- what comes of it -------------------------------------------------------------------------


@every
def test_a_text_and_files(name, undisturbed):
    out, printed, err = undisturbed[name]
    assert "\n".join(line for line in err.splitlines() if "note: " not in line) == ""
    files = COMMANDS[name].files
    assert printed.splitlines()[-1] == f"files: {', '.join(str(out / file) for file in files)}"
    assert "ORGFW" in printed
    assert "nan" not in printed
    kept = ["trials"] if COMMANDS[name].stays else []
    assert sorted(os.listdir(out)) == sorted(files + kept)
    assert len(list(out.glob("trials/*.npz"))) == COMMANDS[name].works * len(kept)
    for picture in out.glob("*.png"):
        assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("name", ["compare", "network"])
def test_trials_at_the_same_time_give_the_same(name, blobs, tmp_path, whole):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config("threading"):
        assert run(name, blobs, tmp_path, "--jobs", "2") == 0
    assert numbers(tmp_path) == whole[name]


def test_processes_give_the_same(blobs, tmp_path, whole):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config("loky"):
        assert run("tune", blobs, tmp_path, "--jobs", "2") == 0
    assert numbers(tmp_path) == whole["tune"]


def test_a_cluster_gives_the_same(blobs, tmp_path, whole, capsys):
    pytest.importorskip("joblib")
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0"
    ) as cluster:
        assert run("tune", blobs, tmp_path, "--scheduler", cluster.scheduler_address) == 0
    assert numbers(tmp_path) == whole["tune"]
    capsys.readouterr()
    assert run("tune", blobs, tmp_path, "--scheduler", "nonsense://1:2") == 2
    assert "argument --scheduler: no Dask scheduler answers at" in capsys.readouterr().err


def test_backends_that_hand_over_no_results_one_by_one(blobs, tmp_path, whole, monkeypatch):
    joblib = pytest.importorskip("joblib")

    class Plain(joblib.Parallel):
        def __init__(self, **options):
            if options.pop("return_as", None):
                raise ValueError("this backend does not support it")
            super().__init__(**options, backend="threading")

    monkeypatch.setattr(joblib, "Parallel", Plain)
    assert run("tune", blobs, tmp_path, "--jobs", "2") == 0
    assert numbers(tmp_path) == whole["tune"]


# --- nothing is lost --------------------------------------------------------------------------

#: A command gets a signal just before its file of that number is moved into place.
STOPPED_WHILE_WRITING = """\
import os, signal, sys
from fastfw import _files
from fastfw.cli import main
# a job that a script started in the background ignores this signal from the outset
signal.signal(signal.SIGINT, signal.default_int_handler)
count, number, *arguments = sys.argv[1:]
replace, written = os.replace, []
def stopped(*names):
    written.append(names)
    if len(written) == int(count):
        os.kill(os.getpid(), int(number))
    replace(*names)
os.replace = stopped
sys.exit(main(arguments))
"""


@pytest.mark.slow
@posix
@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("compare", "SIGKILL"),
        ("figure3", "SIGINT"),
    ],
)
def test_a_command_that_is_stopped_goes_on(name, number, blobs, tmp_path, capsys, whole):
    number = getattr(signal, number)
    command = [*COMMANDS[name].arguments, "--data", blobs, "--out", str(tmp_path), *SMALL]
    done = python(STOPPED_WHILE_WRITING, "4", str(int(number)), *command)
    folder = tmp_path / "trials"
    kept = {path.name: path.read_bytes() for path in folder.glob("*.npz")}
    assert len(kept) == 3
    assert os.listdir(tmp_path) == ["trials"]
    assert done.stdout == ""
    if number == signal.SIGKILL:
        assert done.returncode == -number
        assert len(os.listdir(folder)) == 4  # one is half written
    else:
        assert done.returncode == 128 + number
        lines = [line for line in done.stderr.splitlines() if "note: " not in line]
        assert lines[0] == (
            f"fastfw: 3 finished trials are kept in {folder}; the same command goes on from there"
        )
        assert lines[1:] == ["fastfw: interrupted"] * (number == signal.SIGINT)
        assert len(os.listdir(folder)) == 3
    spared = next(iter(sorted(kept)))
    with np.load(folder / spared) as file:  # time that went by then, easily told from the rest
        np.savez(folder / spared, **{**file, "wall": np.array(6000.0)})
    assert main(command) == 0
    assert numbers(tmp_path) == whole[name]
    if COMMANDS[name].stays:
        assert len(os.listdir(folder)) == COMMANDS[name].works
        for file in set(kept) - {spared}:
            assert (folder / file).read_bytes() == kept[file]
    else:
        assert not folder.exists()
    if name.startswith("figure"):
        assert "trials were kept from: 100." in (tmp_path / "claims.md").read_text()


def carry_out(name, data, folder, progress=None, **changes):
    """Call the function of an experiment."""
    command = COMMANDS[name]
    where = {"out": folder} if name.startswith("figure") else {"folder": folder / "trials"}
    options = {**command.options, **where, **changes}
    return command.function(data=data, progress=progress, **options)


def steps(name, data, folder, **changes):
    """Carry it out; how many steps were taken from an earlier run, and how many are new."""
    seen = []
    carry_out(name, data, folder, lambda *call: seen.append(call), **changes)
    assert [done for done, _, _ in seen] == sorted(done for done, _, _ in seen)
    assert seen[-1][0] == seen[-1][1]
    assert seen[-1][2] == "done"
    seen = [(done, what) for done, _, what in seen[:-1] if not what.endswith(", compiling")]
    assert [done for done, _ in seen] == list(range(len(seen)))
    kept = [what for _, what in seen].count(KEPT)
    return kept, len(seen) - kept


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("name", ["compare", "network", "tune", "figure1"])
def test_finished_trials_are_taken_where_they_fit(name, blobs, tmp_path):
    def stop(done, total, what):
        if done == 3:
            raise KeyboardInterrupt

    total = COMMANDS[name].works
    with pytest.raises(KeyboardInterrupt):
        carry_out(name, blobs, tmp_path, stop)
    folder = tmp_path / "trials"
    assert len(os.listdir(folder)) == 3
    assert steps(name, blobs, tmp_path) == (3, total - 3)
    assert steps(name, blobs, tmp_path) == (total, 0)
    assert steps(name, blobs, tmp_path, radius=3.0) == (0, total)
    each = {"compare": 1, "figure1": 1, "figure2": 1}.get(name, 0)  # the comparator
    assert steps(name, blobs, tmp_path, seed=4)[0] == each + (total - each) // 2
    other = tmp_path / "other.npz"
    with np.load(blobs) as arrays:
        np.savez(other, X=arrays["X"] * 2.0, y=arrays["y"])
    assert steps(name, str(other), tmp_path)[0] == 0


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("name", ["compare", "figure2"])
def test_damaged_trials_are_done_again(name, blobs, tmp_path, whole):
    carry_out(name, blobs, tmp_path)
    first, second, third, *_ = sorted((tmp_path / "trials").iterdir())
    first.write_bytes(first.read_bytes()[:100])
    second.write_bytes(b"")
    (tmp_path / "trials" / ".x.tmp").write_bytes(b"torn")
    with np.load(third) as file:
        settings = file["settings"]
    np.savez(third, settings=settings, losses=np.zeros(1), score=np.zeros(3))
    assert steps(name, blobs, tmp_path) == (COMMANDS[name].works - 3, 3)


def test_a_trial_file_of_another_setting_or_version_is_not_taken(tmp_path, monkeypatch):
    store = TrialStore(tmp_path)
    store.put({"what": "a", "seed": 1}, {"x": np.arange(3)})
    assert store.get({"what": "a", "seed": 1})["x"].tolist() == [0, 1, 2]
    assert store.get({"what": "a", "seed": 2}) is None
    store.path({"what": "a", "seed": 1}).rename(store.path({"what": "a", "seed": 2}))
    assert store.get({"what": "a", "seed": 2}) is None
    store.put({"seed": 1}, {"x": np.arange(3)})
    monkeypatch.setattr("fastfw.experiments.trials.__version__", "9.9.9")
    assert store.get({"seed": 1}) is None


def test_trial_files_hold_no_pickles(tmp_path):
    store = TrialStore(tmp_path)
    np.savez(store.path({"seed": 1}), x=np.array([object()]), allow_pickle=True)
    assert store.get({"seed": 1}) is None


# --- what cannot be ---------------------------------------------------------------------------


@every
def test_arguments_that_cannot_be_used(name, blobs, tmp_path, monkeypatch):
    for changes, error, message in (
        ({"trials": 0}, ValueError, "trials"),
        ({"seed": -1}, ValueError, "seed"),
        ({"seed": True}, TypeError, "seed"),
        ({"rounds": 0}, ValueError, "rounds"),
        ({"rounds": 2.5}, TypeError, "rounds"),
        ({"rounds": 10**15}, (MemoryError, ValueError), "rounds"),
        ({"batch_size": 10**15}, MemoryError, "rounds, batch_size"),
        ({"radius": -1.0}, ValueError, "radius"),
        ({"radius": "8"}, TypeError, "radius"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be a whole number other than 0"),
        ({"progress": 3}, TypeError, "progress must be a function"),
        ({"data": str(tmp_path / "nmist.npz")}, FileNotFoundError, "nmist"),
    ):
        with pytest.raises(error, match=message):
            carry_out(name, **{"data": blobs, "folder": tmp_path, **changes})
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setitem(sys.modules, "joblib", None)
    with pytest.raises(ImportError, match=r"pip install joblib, or leave n_jobs \(--jobs\) out"):
        carry_out(name, blobs, tmp_path, n_jobs=2)
    (tmp_path / "trials").write_text("")
    with pytest.raises(NotADirectoryError, match=r"folder must name a folder, but .* is a file"):
        carry_out(name, blobs, tmp_path)


@every
@pytest.mark.parametrize("where", ["file", "file/below", "taken"])
def test_unwritable_out_is_refused_before_the_work(name, where, tmp_path, capsys, monkeypatch):
    def no_work(*arguments, **options):
        raise AssertionError("the work has begun")

    monkeypatch.setattr(trials, "run_all", no_work)
    (tmp_path / "file").write_text("")
    (tmp_path / "taken" / COMMANDS[name].files[0]).mkdir(parents=True)
    assert main([*COMMANDS[name].arguments, "--out", str(tmp_path / where)]) == 2
    printed, err = capsys.readouterr()
    assert printed == ""
    assert err.startswith("fastfw: error: argument --out: no files can be written in ")
    assert err.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["file", "taken"]


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("name", ["compare", "tune", "figure1"])
@pytest.mark.parametrize("written", [0, 100])
def test_a_failing_write_is_one_line(name, written, blobs, tmp_path, capsys, monkeypatch):
    """A full disk: while trials are kept, or when they are all there."""
    command, replace, done = COMMANDS[name], os.replace, []

    def full(source, target):
        done.append(target)
        if len(done) > min(written, command.works):
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(_files.os, "replace", full)
    assert run(name, blobs, tmp_path / "o") == 1
    printed, err = capsys.readouterr()
    assert ("ORGFW" in printed) == bool(written)  # the work is not lost
    assert "files:" not in printed
    lines = [line for line in err.splitlines() if "note: " not in line]
    assert len(lines) == 1
    assert lines[0].startswith("fastfw: error: ")
    assert "No space left on device" in lines[0]
    left = list(tmp_path.rglob("*.npz"))
    assert len(left) == (command.works if written else 0)
    assert list(tmp_path.iterdir()) == [tmp_path / "o"] * bool(written)


@pytest.mark.parametrize("given", ["0", "-1", "two"])
def test_a_bad_number_of_threads_is_named(given, tmp_path, blobs, capsys, monkeypatch):
    monkeypatch.setenv("FASTFW_NUM_THREADS", given)
    assert run("compare", blobs, tmp_path / "out") == 2
    printed, err = capsys.readouterr()
    assert printed == ""
    assert err == (
        f"fastfw: error: FASTFW_NUM_THREADS must be an integer of at least 1, but it is {given!r}\n"
    )
    assert list(tmp_path.iterdir()) == []


# --- pictures ---------------------------------------------------------------------------------

DRAW = """\
import os, sys
from fastfw.experiments import figures
with figures.own_style():
    figure = figures.new_figure(3, 2, dpi=50)
    figure.subplots().plot([1, 2])
figures.write_png(figure, sys.argv[1])
import matplotlib
assert "matplotlib.pyplot" not in sys.modules
print(os.environ.get("MPLBACKEND"), dict.get(matplotlib.rcParams, "backend"))
"""


def test_pictures_do_not_depend_on_the_backend(tmp_path):
    done = python(DRAW, str(tmp_path / "a.png"), MPLBACKEND="TkAgg")
    assert done.stderr == ""
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    variable, _, backend = done.stdout.strip().rpartition(" ")
    assert variable == "TkAgg" or "object" in done.stdout  # what the user set is still set
    assert backend.casefold() == "tkagg"


@pytest.mark.parametrize(
    "own",
    [
        {
            "text.usetex": True, "text.latex.preamble": r"\usepackage{nothing}",
            "savefig.format": "svg", "savefig.dpi": 10, "savefig.bbox": "tight",
        },
        {
            "font.family": ["no such font"], "figure.dpi": 7.0, "figure.figsize": [1.0, 1.0],
            "figure.constrained_layout.use": False, "figure.autolayout": True,
            "axes.grid": True, "lines.linewidth": 40.0, "axes.formatter.use_mathtext": True,
            "axes.unicode_minus": False, "image.cmap": "gray", "axes.facecolor": "black",
            "text.color": "white",
        },
    ],
)  # fmt: skip
def test_pictures_do_not_depend_on_the_user_s_style(tmp_path, own):
    import matplotlib

    def draw(name):
        with figures.own_style():
            figure = figures.new_figure(3, 2, dpi=50)
            axes = figure.subplots()
            axes.plot([-1, 2], label="a_b")
            axes.legend()
        figures.write_png(figure, tmp_path / name)
        return (tmp_path / name).read_bytes()

    wanted = draw("a.png")
    with matplotlib.rc_context(own):
        before = dict(matplotlib.rcParams)
        assert draw("b.png") == wanted
        assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", ["compare", "network", "figure2"])
def test_a_picture_that_fails_leaves_the_rest(name, tmp_path, blobs, capsys, monkeypatch):
    def fail(*arguments, **options):
        raise RuntimeError("latex was not able to process\nthe following string")

    monkeypatch.setattr(figures, "new_figure", fail)
    assert run(name, blobs, tmp_path) == 1
    printed, err = capsys.readouterr()
    written = [str(tmp_path / file) for file in COMMANDS[name].files if ".png" not in file]
    assert printed.splitlines()[-1] == f"files: {', '.join(written)}"
    lines = [line for line in err.splitlines() if "note: " not in line]
    assert len(lines) == 1
    assert "cannot be drawn: latex was not able to process the following string" in lines[0]
    assert sorted(os.listdir(tmp_path)) == sorted([*map(os.path.basename, written), "trials"])


# --- Ctrl-C and workers that are lost ----------------------------------------------------------

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
@pytest.mark.parametrize("module", ["argparse", "numba"])
def test_ctrl_c_is_one_line_at_any_time(tmp_path, blobs, module):
    arguments = ["compare", "--data", blobs, "--out", str(tmp_path / "out"), *SMALL]
    done = python(INTERRUPTED_IMPORT, module, *arguments)
    assert done.returncode == 130
    assert (done.stdout, done.stderr) == ("", "fastfw: interrupted\n")
    assert not (tmp_path / "out").exists()


INTERRUPTED_WORKERS = """\
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from fastfw.__main__ import main
from fastfw.experiments import trials
def interrupted(*task):
    os.killpg(os.getpgrp(), signal.SIGINT)
    time.sleep(60)
trials._numbered = interrupted
sys.exit(main())
"""


@posix
def test_ctrl_c_ends_workers_without_a_word(tmp_path, blobs):
    pytest.importorskip("joblib")
    arguments = [*COMMANDS["tune"].arguments, *SMALL, "--jobs", "2"]
    done = python(INTERRUPTED_WORKERS, *arguments, "--data", blobs, "--out", str(tmp_path / "o"))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "fastfw: interrupted\n")
    assert list(tmp_path.iterdir()) == []


@posix
def test_a_worker_that_is_killed_is_one_line(tmp_path, blobs, capsys, monkeypatch):
    pytest.importorskip("joblib")
    monkeypatch.setattr(trials, "_numbered", lambda *task: os.kill(os.getpid(), signal.SIGKILL))
    assert run("tune", blobs, tmp_path, "--jobs", "2") == 1
    printed, err = capsys.readouterr()
    assert printed == ""
    assert err.startswith("fastfw: error: n_jobs: a process that ran trials was ended from outside")
    assert err.count("\n") == 1


def test_trials_are_done_once_each(blobs, tmp_path, monkeypatch):
    """What is running when a search is stopped goes on to its end, and is kept."""
    import threading
    import time

    joblib = pytest.importorskip("joblib")
    finish, begun, busy = trials._finish, [], threading.Event()

    def counted(work, store):
        begun.append(work.label)
        if len(begun) > 3:
            busy.set()
            time.sleep(0.3)
        return finish(work, store)

    def progress(done, total, what):
        if done == 2:  # stopped while trials wait to be kept, and others are still running
            busy.wait(60)
            raise KeyboardInterrupt

    monkeypatch.setattr(trials, "_finish", counted)
    with joblib.parallel_config("threading"):
        with pytest.raises(KeyboardInterrupt):
            carry_out("figure2", blobs, tmp_path, progress, n_jobs=2)
        late = time.monotonic() + 60
        while len(list(tmp_path.glob("trials/*.npz"))) < len(begun) and time.monotonic() < late:
            time.sleep(0.01)
        kept = len(begun)
        assert len(os.listdir(tmp_path / "trials")) == kept
        begun.clear()
        carry_out("figure2", blobs, tmp_path, n_jobs=2)
    assert len(begun) == COMMANDS["figure2"].works - kept
