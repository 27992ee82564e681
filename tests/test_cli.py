"""The command line: what it prints, writes, refuses, and how it ends."""

import io
import math
import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import fastfw as fw
from experiment_cases import SMALL, python, rows_of
from fastfw import _output, _warmup, cli
from fastfw._info import cache_state
from fastfw.cli import main
from fastfw.experiments import METHODS, compare, figures, setups


@pytest.fixture(autouse=True)
def plain_pictures(monkeypatch):
    """Spare the time that drawing takes: what pictures show is the business of other tests."""
    for function in ("regret_figure", "network_figure"):
        monkeypatch.setattr(figures, function, lambda *_: figures.new_figure(1, 1, dpi=10))


def refused(capsys, arguments):
    """Run a command that must be refused; the one line it says."""
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("fastfw: error: ")
    assert "Traceback" not in err
    return err


# --- compare ----------------------------------------------------------------------------------


def compared(blobs, out, *options):
    """Compare by the command; the rows of its summary."""
    assert main(["compare", "--data", blobs, "--out", str(out), *SMALL, *options]) == 0
    return rows_of(out / "summary.csv")


def test_who_sees_no_bar_is_told_of_the_first_compilation(tmp_path, blobs, capsys, monkeypatch):
    import numba

    from fastfw.kernels import _cache

    monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)
    monkeypatch.setattr(_cache, "place", lambda: (tmp_path, ""))
    assert _output.tell_if_cold(None)
    assert capsys.readouterr().err == "fastfw: compiling kernels, once, about a minute\n"
    assert _output.tell_if_cold(print)
    (tmp_path / f"one{_cache.SUFFIX}").touch()
    assert not _output.tell_if_cold(None)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_on_an_empty_cache_what_is_compared_is_compiled_first(tmp_path, blobs, monkeypatch, dtype):
    asked = []
    monkeypatch.setattr(cli, "tell_if_cold", lambda progress: True)
    monkeypatch.setattr(_warmup, "warm_up", lambda *_, **what: asked.append(what))
    compared(blobs, tmp_path, "--methods", "osfw,oaw", "--dtype", dtype)
    assert asked == [{"dtypes": [dtype], "names": ["comparator", "OSFW", "OAW"]}]
    assert set(asked[0]["names"]) <= set(_warmup.steps()[dtype])


def test_compare_passes_every_option_on(tmp_path, blobs, capsys):
    options = ["--methods", "OSFW", "--seed", "5", "--dtype", "float32"]
    options += ["--step", "1/2,1", "--momentum", "1,2/3"]
    (row,) = compared(blobs, tmp_path, *options)
    expected = compare(
        blobs,
        methods=["osfw"],
        rounds=4,
        batch_size=3,
        radius=2.0,
        trials=2,
        seed=5,
        dtype=np.float32,
        step=fw.power_schedule(0.5, 1.0),
        momentum=fw.power_schedule(1.0, 2 / 3),
    )
    assert row["dtype"] == "float32"
    assert row["seed"] == "5"
    assert float(row["regret"]) == expected.methods[0].final_regret.mean()


def test_compare_runs_every_method_in_both_settings(tmp_path, blobs, capsys):
    names = ["orgfw", "morgfw", "osfw", "ofw", "rofw", "oaw", "Meta-Frank-Wolfe"]
    without = {
        "stochastic": ["MORGFW", "RegularizedOFW", "MetaFrankWolfe"],
        "adversarial": ["ORGFW", "OSFW", "OAW"],
    }
    for setting, labels in without.items():
        options = ["--setting", setting, "--methods", ",".join(names)]
        rows = compared(blobs, tmp_path, *options)
        err = capsys.readouterr().err.splitlines()
        assert len(err) == 3
        for line, label in zip(err, labels, strict=True):
            assert line.startswith(f"fastfw: note: {label} has no regret guarantee")
            assert setting in line
        assert [row["method"] for row in rows] == [
            "orgfw", "morgfw", "osfw", "ofw", "regularized-ofw", "oaw", "metafw",
        ]  # fmt: skip
        assert all(math.isfinite(float(row["regret"])) for row in rows)


def test_compare_options_of_meta_methods(tmp_path, blobs, capsys):
    options = ["--setting", "adversarial", "--methods", "morgfw,metafw"]
    options += ["--preset", "mnist-adversarial", "--inner-steps", "3", "--sub-batch-size", "all"]
    rows = compared(blobs, tmp_path, *options)
    assert "preset mnist-adversarial" in capsys.readouterr().out
    for row, scale, momentum in zip(rows, ("100.0", "20.0"), ("2.0,0.5", "4.0,0.5"), strict=True):
        assert row["preset"] == "mnist-adversarial"
        assert (row["inner_steps"], row["sub_batch_size"]) == ("3", "all")
        assert (row["ftpl_scale"], row["momentum"]) == (scale, momentum)
        assert row["eta"] == ""
        assert int(float(row["gradient_evaluations"])) == 4 * 3 * 3


def test_compare_says_whose_steps_stay(tmp_path, blobs, capsys):
    rows = compared(blobs, tmp_path, "--methods", "ospf,regularized-ofw", "--step", "1,1")
    assert "note: --step is not for ospf, with steps of their own" in capsys.readouterr().err
    assert [row["step"] for row in rows] == ["", "1.0,1.0"]


def test_compare_draws_bounds(tmp_path, blobs, capsys):
    rows = compared(blobs, tmp_path, "--bounds", "--methods", "orgfw,osfw")
    printed, err = capsys.readouterr()
    assert err == "fastfw: note: no bound drawn for OSFW: the paper bounds ORGFW and MORGFW\n"
    assert "bound on ORGFW's regret after round 4: " in printed
    assert float(rows[0]["regret_bound"]) > float(rows[0]["regret"])
    assert rows[1]["regret_bound"] == ""


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self):
        return True


def test_compare_shows_a_bar_on_a_terminal(tmp_path, blobs, capsys, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    compared(blobs, tmp_path)
    drawn = terminal.getvalue()
    assert "ORGFW, trial 1" in drawn
    assert "5/5" in drawn
    assert "trial 1" not in capsys.readouterr().out


def test_compare_shows_warnings_in_one_line(tmp_path, blobs, capsys, monkeypatch):
    real = setups.best_fixed_decision

    def warning(*arguments, **options):
        warnings.warn("not quite\nthere", RuntimeWarning, stacklevel=2)
        return real(*arguments, **options)

    monkeypatch.setattr(setups, "best_fixed_decision", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        compared(blobs, tmp_path)
    assert capsys.readouterr().err == "fastfw: warning: not quite there\n"


# --- refusals ---------------------------------------------------------------------------------


UNUSABLE = [
    ("compare --rounds 0", "--rounds: '0' given, a whole number of at least 1 wanted"),
    ("compare --rounds", "--rounds: expected one argument"),
    ("compare --batch-size -3", "--batch-size"),
    ("compare --trials none", "--trials"),
    ("compare --seed -1", "--seed: '-1' given, a whole number of at least 0 wanted"),
    ("compare --radius nan", "--radius: 'nan' given, a finite number above 0 wanted"),
    ("compare --radius 1e-310", "radius must be at least 2.23e-308"),
    ("compare --out ''", "--out: '' given, a folder wanted"),
    ("compare --root ''", "--root: '' given, a folder wanted"),
    ("compare --setting stochastik", "did you mean 'stochastic'"),
    ("compare --methods ogrfw", "unknown method 'ogrfw'; did you mean 'orgfw'"),
    ("compare --methods orgfw,", "empty name"),
    ("compare --methods orgfw,or-gfw", "'orgfw' is given twice"),
    ("compare --methods all,orgfw", "'all,orgfw' given; all stands alone"),
    ("compare --methods ospf,ofw-ls --step 1,1", "--step: it is not for ospf, ofw-ls"),
    ("compare --methods ofw --momentum 1,1", "--momentum: it is not for ofw; leave it out"),
    ("compare --methods orgfw --inner-steps 3", "--inner-steps: it is not for orgfw"),
    ("compare --methods orgfw --sub-batch-size 3", "--sub-batch-size: it is not for orgfw"),
    ("tune --method orgfw --scale 1", "--scale: it is not for orgfw"),
    ("tune --method rofw --eta 1 --scale 2", "--eta: it is the former name of --scale"),
    ("compare --dtype float16", "known: float64, float32"),
    ("compare --preset mnist", "did you mean 'mnist-"),
    ("compare --inner-steps 0", "--inner-steps: '0' given, a whole number of at least 1 wanted"),
    ("compare --sub-batch-size some", "a whole number of at least 1 wanted, or 'all'"),
    ("compare --step 1", "--step: '1' given, C,E wanted"),
    ("compare --step 0,1", "--step"),
    ("compare --momentum 1,1/0", "--momentum"),
    ("compare --data fashion-mnits", "did you mean 'fashion-mnist'"),
    ("compare --data missing.npz", "missing.npz"),
    ("compare --data mnist --root nowhere", "nowhere"),
    ("compare --step -1,1", "--step: '-1,1' given, C,E wanted"),
    ("compare --radius -1e3", "--radius: '-1e3' given, a finite number above 0 wanted"),
    ("compare --radius -inf", "--radius: expected one argument; one that begins with '-' is"),
    ("compare --methods orgfw osfw", "a list like A,B,C has no spaces in it"),
    ("compare --colour red", "unrecognized arguments: --colour red"),
    ("compare --round 3", "unrecognized arguments: --round 3"),
    ("comapre", "unknown command 'comapre'; did you mean 'compare'"),
    ("--colour", "--colour"),
    ("info --colour", "--colour"),
    ("warmup now", "now"),
    ("tune --method orgwf", "did you mean 'orgfw'"),
    ("tune --method orgfw,osfw", "one method"),
    ("tune --method svrf", "unknown method 'svrf'; known: orgfw"),
    ("tune --jobs 0", "a whole number other than 0"),
    ("tune --method ofw --momentum 1,1", "--momentum: it is not for ofw"),
    ("tune --step x", "C,E wanted"),
    ("tune --step 1,1 -1/2,1", "--step: '-1/2,1' given, C,E wanted with C above 0"),
    ("tune --step 1,-1", "--step: '1,-1' given"),
    ("tune --step 1,1,2,1", "such as 1,2/3; several are given with spaces between them"),
    ("tune --step -x", "begins with '-' is given as --step=VALUE"),
    ("tune --step", "--step: expected at least one argument"),
    ("tune --step 1,1 --step 1,1", "step: (1.0, 1.0) is given twice"),
    ("tune --eta -1e3 2", "--eta: '-1e3' given, a finite number above 0 wanted ("),
    ("tune --eta 1,2", "a finite number above 0 wanted; several are given with spaces"),
    ("tune --scale -inf", "begins with '-' is given as --scale=VALUE"),
    ("tune --data a b", "unrecognized arguments: b; a value has to follow its option"),
    ("reproduce figure4", "unknown 'figure4'; did you mean 'figure"),
    ("reproduce", "figure1|figure2|figure3"),
    ("reproduce figure1 --trials 0", "a whole number of at least 1"),
    ("reproduce figure1 --data nmist", "did you mean 'mnist'"),
    ("reproduce figure1 --data a.npz b.npz --titles A", "1 given for 2 data sets"),
    ("reproduce figure1 --data mnist --root /nowhere/at/all", "is not a folder"),
    ("reproduce figure1 --data mnist cifar10 mnist", "data: name each data set once"),
    ("reproduce figure1 --data mnist,cifar10", "data sets are given with spaces between them"),
    ("reproduce --data mnist figure1", "figure1|figure2|figure3; name it before any option"),
    ("reproduce figure1 --radius -1,5", "--radius: '-1,5' given, a finite number above 0"),
    ("reproduce figure1 --titles -A", "begins with '-' is given as --titles=VALUE"),
    ("reproduce figure1 figure2", "unrecognized arguments: figure2; a value has to follow"),
    ("compare --problem network --setting adversarial", "--setting adversarial is not for"),
    ("compare --problem network --bounds", "--bounds is not for"),
    ("compare --problem network --preset theory", "--preset is not for"),
    ("compare --problem network --inner-steps 3", "--inner-steps is not for"),
    ("compare --problem network --sub-batch-size 3", "--sub-batch-size is not for"),
    ("compare --problem network --methods morgfw", "unknown method 'morgfw'"),
    ("compare --problem network --hidden 0", "--hidden"),
    ("compare --problem networks", "did you mean 'network'"),
    ("compare --hidden 3", "--hidden: it is for --problem network"),
    ("compare --init zeros", "--init: it is for --problem network"),
    ("compare --methods svrf", "svrf, spiderfw are for --problem network"),
    ("compare-network --setting adversarial", "unrecognized arguments: --setting"),
    ("compare-network --methods morgfw", "unknown method 'morgfw'"),
    ("compare-network --init ones", "--init: unknown 'ones'; known: zeros, vertex, random"),
]


@pytest.mark.parametrize(("line", "message"), UNUSABLE)
def test_unusable_lines_are_refused_in_one(tmp_path, capsys, monkeypatch, line, message):
    monkeypatch.chdir(tmp_path)
    assert message in refused(capsys, shlex.split(line))
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="such names are POSIX's")
def test_names_cannot_control_the_terminal(tmp_path, blobs, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = refused(capsys, ["compare", "--data", "a\x1b[31m\x07.npz"])
    assert r"a\x1b[31m\x07.npz: there is no such file" in error
    assert r"unrecognized arguments: \x1b[31m" in refused(capsys, ["compare", "\x1b[31m"])
    Path("\x1b[31mred.npz").write_bytes(Path(blobs).read_bytes())
    for problem in ("softmax", "network"):
        arguments = ["compare", "--problem", problem, "--data", "\x1b[31mred.npz"]
        assert main([*arguments, *SMALL, "--methods", "orgfw", "--out", "\x1b[2J"]) == 0
        printed = capsys.readouterr().out
        assert r"\x1b[31mred.npz" in printed
        assert r"\x1b[2J/summary.csv" in printed
        assert "\x1b" not in printed


@pytest.mark.skipif(
    os.name == "nt" or not hasattr(os, "geteuid") or os.geteuid() == 0,
    reason="permissions do not stop this user",
)
def test_out_without_permission_is_refused(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert "--out" in refused(capsys, ["compare", "--out", str(tmp_path)])
    tmp_path.chmod(0o700)


# --- streams that are broken or closed ------------------------------------------------------------


def run_shell(command, cwd):
    """Run a line of shell in which "$FASTFW" is the command."""
    return subprocess.run(
        ["/bin/sh", "-c", command.replace("fastfw", f'"{sys.executable}" -m fastfw')],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


posix = pytest.mark.skipif(os.name == "nt", reason="the redirections are those of POSIX")


def shell(test):
    """Mark what runs commands in processes of their own."""
    return pytest.mark.slow(posix(test))


#: The shortest command that writes files.
ONE_TRIAL = "--step 1,1 --momentum 1,1 --rounds 2 --batch-size 3 --radius 2 --trials 1"
full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")


@shell
@pytest.mark.parametrize(
    ("redirected", "code"),
    [
        ("<&- >&- 2>&-", 0),
        pytest.param(">/dev/full", 1, marks=full),
    ],
)
def test_files_are_written_whatever_happens_to_the_streams(tmp_path, blobs, redirected, code):
    done = run_shell(f"fastfw tune --data {blobs} {ONE_TRIAL} {redirected}", tmp_path)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    if code == 0:
        assert done.stderr == ""
    else:
        assert done.stderr.startswith("fastfw: error: standard output: ")
        assert done.stderr.count("\n") == 1
    assert "files: " not in done.stdout
    assert sorted(os.listdir(tmp_path / "fastfw-tune")) == ["trials", "tune.csv"]


@shell
def test_errors_never_go_to_stdout(tmp_path):
    for command in ("fastfw --bogus 2>&-", "fastfw compare --radius nan 2>&-"):
        done = run_shell(command, tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", "")
    done = run_shell("fastfw --bogus >&-", tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1


@shell
def test_short_commands_with_broken_streams(tmp_path):
    done = run_shell("fastfw info >&-", tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if os.path.exists("/dev/full"):
        done = run_shell("fastfw --help >/dev/full", tmp_path)
        assert done.returncode == 1
        assert done.stderr.startswith("fastfw: error: standard output: ")
        assert done.stderr.count("\n") == 1


# --- the rest ---------------------------------------------------------------------------------


def test_help_needs_nothing_heavy():
    program = (
        "import sys\n"
        "from fastfw.cli import main\n"
        "try:\n"
        "    main(['compare', '--help'])\n"
        "except SystemExit as end:\n"
        "    assert end.code in (0, None)\n"
        "heavy = {'matplotlib', 'numba', 'scipy', 'numpy', 'tqdm'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr
    for word in ("--methods", "orgfw,osfw", "default: fashion-mnist-4k", "examples:"):
        assert word in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        [],
        *([name] for name in ("compare", "compare-network", "reproduce", "tune", "info", "warmup")),
    ],
)
def test_every_command_has_help_with_an_example(capsys, command):
    with pytest.raises(SystemExit) as end:
        main([*command, "--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    assert f"fastfw {' '.join(command)}".strip() in text
    assert "example" in text


def test_no_command_prints_the_help(capsys):
    assert main([]) == 0
    assert "commands:" in capsys.readouterr().out


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fastfw {fw.__version__}\n"


def test_a_reader_that_leaves_early_is_no_error():
    program = (
        "import os, sys\n"
        "from fastfw.cli import main\n"
        "reader, writer = os.pipe()\n"
        "os.dup2(writer, 1)\n"
        "os.close(reader)\n"
        "code = main(['--version'])\n"
        "sys.exit(code)\n"
    )
    done = python(program)
    assert done.returncode == 1
    assert done.stderr == ""


def test_info_says_what_a_bug_report_needs(capsys, monkeypatch, tmp_path):
    (tmp_path / "mnist").mkdir()
    monkeypatch.setenv("FASTFW_DATA", str(tmp_path))
    assert main(["info"]) == 0
    printed, err = capsys.readouterr()
    assert err == ""
    names = {line.partition("  ")[0] for line in printed.splitlines()}
    wanted = {"fastfw", "python", "numpy", "numba", "llvmlite", "scipy", "processor", "cores"}
    assert wanted | {"numba threads", "BLAS of numpy"} <= names
    assert fw.__version__ in printed
    assert "kernel cache" in printed
    assert f"{tmp_path} (mnist)" in printed


def test_info_without_a_data_folder(capsys, monkeypatch, tmp_path):
    monkeypatch.delenv("FASTFW_DATA", raising=False)
    assert main(["info"]) == 0
    assert "not set" in capsys.readouterr().out
    monkeypatch.setenv("FASTFW_DATA", str(tmp_path / "missing"))
    assert main(["info"]) == 0
    assert "cannot be read" in capsys.readouterr().out


def misses():
    """What this process had to compile, by kernel; others may be at work on the same cache."""
    from fastfw.kernels._jit import dispatchers

    return {name: sum(own.stats.cache_misses.values()) for name, own in dispatchers.items()}


def test_warmup_leaves_nothing_for_runs_to_compile(tmp_path, blobs, capsys):
    assert main(["warmup"]) == 0
    printed, err = capsys.readouterr()
    assert err == ""
    assert ("kernel variants" in printed) or ("nothing cached" in printed)
    state = cache_state()
    if state.folder is None or not state.writable:
        pytest.skip("nothing is cached here")
    # the one that is left belongs to functions of the user's
    assert {name for name, n in state.variants.items() if n == 0} <= {"fastfw.kernels.rounds._fits"}
    before = misses()
    arguments = ["compare", "--data", blobs, "--out", str(tmp_path), *SMALL]
    for dtype in ("float64", "float32"):
        for rows, setting in (("2", "stochastic"), ("all", "adversarial")):
            options = ["--setting", setting, "--dtype", dtype, "--sub-batch-size", rows]
            methods = ",".join(method.name for method in METHODS)
            assert main([*arguments, *options, "--methods", methods]) == 0
    for dtype in ("float64", "float32"):
        network = ["compare-network", *arguments[1:], "--hidden", "3", "--dtype", dtype]
        assert main(network) == 0
    assert {name for name, count in misses().items() if count > before.get(name, 0)} == set()


def test_a_csv_file_is_compared_on_and_wild_scales_are_named(tmp_path, capsys):
    table = tmp_path / "table.csv"
    lines = [f"{'uv'[i % 2]},{1000 * (i % 3)},{i % 2}" for i in range(12)]
    table.write_text("\n".join(["kind,wild,tame", *lines]))
    size = ["--rounds", "5", "--batch-size", "4", "--trials", "1", "--out", str(tmp_path / "out")]
    assert main(["compare", "--data", str(table), "--label", "kind", *size]) == 0
    told = capsys.readouterr().err
    assert "note: columns reach from 1 to 2e+03, and the largest decide; bring them to one" in told
    table.write_text("\n".join(["kind,wild,tame", *lines]).replace("000", ""))
    assert main(["compare", "--data", str(table), "--label", "kind", *size]) == 0
    assert "columns" not in capsys.readouterr().err
    assert main(["compare", "--data", str(table), "--label", "sort", *size]) == 2
    assert "has no column 'sort'; there are kind, wild, tame" in capsys.readouterr().err
