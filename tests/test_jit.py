"""The decorator of the kernels: one door, an honest cache, one specialisation per dtype."""

import ast
import hashlib
import importlib
import importlib.util
import json
import os
import pkgutil
import re
import shutil
import stat
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest

from fastfw import kernels
from fastfw.kernels import _cache, _jit
from sizes import about_compiling

FOLDER = Path(kernels.__file__).parent
SOURCES = sorted(FOLDER.rglob("*.py"))
MODULES = [
    importlib.import_module(found.name)
    for found in pkgutil.walk_packages(kernels.__path__, "fastfw.kernels.")
]
posix = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="owners and modes are those of POSIX")


# --- what kernels are made of ---------------------------------------------------------------------


def test_kernels_refuse_another_name():
    # "kernels" belongs to another distribution
    spec = importlib.util.spec_from_file_location("kernels", FOLDER / "__init__.py")
    with pytest.raises(ImportError, match=r"fastfw's kernels, imported here as 'kernels'"):
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


def imported(path):
    """Absolute names of all that a kernel file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"{path.name} reaches out of fastfw.kernels"
            yield "fastfw.kernels" if node.level else node.module


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_kernels_import_nothing_of_the_package_around_them(path):
    allowed = {"numba", "numpy", "llvmlite", "platformdirs"} | sys.stdlib_module_names
    for name in imported(path):
        assert name == "fastfw.kernels" or name.split(".")[0] in allowed


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_only_one_file_calls_the_compiler(path):
    if path.name == "_jit.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {"njit", "jit", "vectorize", "guvectorize"} & (names | attributes)


@about_compiling
def test_every_compiled_function_came_through_the_decorator():
    from numba.core.registry import CPUDispatcher

    registered = {id(dispatcher) for dispatcher in _jit.dispatchers.values()}
    found = 0
    for module in MODULES:
        for name, value in vars(module).items():
            if isinstance(value, CPUDispatcher):
                found += 1
                # kernels that are not kept are not registered; they have its options all the same
                passing = type(value._cache) is _cache.NoCache and value.targetoptions["nogil"]
                assert id(value) in registered or passing, f"{module.__name__}.{name}"
    assert found >= 15


@about_compiling
def test_options_of_every_kernel():
    for name, dispatcher in _jit.dispatchers.items():
        options = dispatcher.targetoptions
        assert options["nogil"] is True, name
        assert options["error_model"] == "numpy", name
        flags = options["fastmath"] or set()
        # no flag that lets the compiler assume that there are no NaN and no infinity
        assert set(flags) <= {"reassoc", "contract", "arcp", "nsz"}, name
        assert len(dispatcher.nopython_signatures) == len(dispatcher.signatures), name


# --- the stamp ------------------------------------------------------------------------------------


def write(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return folder


def test_digest_is_of_names_and_contents_alone(tmp_path):
    base = write(tmp_path / "base", a="x = 1\n", b="y = 2\n")
    digest = _cache.source_digest(base)
    assert len(digest) == hashlib.sha256().digest_size * 2
    same = write(tmp_path / "same", b="y = 2\n", a="x = 1\n")
    os.utime(same / "a.py", (1, 1))
    (same / "notes.txt").write_text("not a kernel")
    assert _cache.source_digest(same) == digest
    others = [
        {"a": "x = 1\n", "b": "y = 3\n"},
        {"a": "x = 1\n", "c": "y = 2\n"},
        {"a": "x = 1\ny = 2\n", "b": ""},
        {"a": "x = 1\n"},
        {"a": "x = 1\n", "b": "y = 2\n", "c": ""},
        {"a": "y = 2\n", "b": "x = 1\n"},
    ]
    digests = {
        _cache.source_digest(write(tmp_path / f"{i}", **files)) for i, files in enumerate(others)
    }
    assert len(digests | {digest}) == len(others) + 1


# --- the folder -----------------------------------------------------------------------------------


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The function, as in a process of its own, whose folders are all in tmp_path."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    _cache.place.cache_clear()
    yield _cache.place.__wrapped__
    _cache.place.cache_clear()


def test_the_folder_is_the_named_one_or_the_users(place, tmp_path, monkeypatch):
    assert place() == (tmp_path / "named" / "fastfw" / _cache.STAMP, "")
    assert re.fullmatch(r"numba[\d.]+-py3\.\d+-[0-9a-f]{16}", _cache.STAMP)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    folder, wrong = place()
    assert wrong == ""
    assert folder.name == _cache.STAMP
    if sys.platform == "linux":
        assert folder.parent == tmp_path / "user" / "fastfw" / "kernels"
    if hasattr(os, "geteuid"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


@posix
@pytest.mark.parametrize("home", [None, "", "relative"])
def test_without_a_home_the_folder_is_among_temporary_files(place, tmp_path, monkeypatch, home):
    def nobody(uid):
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr("pwd.getpwuid", nobody)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.chdir(tmp_path)
    if home is None:
        monkeypatch.delenv("HOME", raising=False)
    else:
        monkeypatch.setenv("HOME", home)
    folder, wrong = place()
    assert folder.parent.parent == tmp_path / "temporary"
    assert wrong == "this user has no home folder"
    assert os.listdir(tmp_path) == ["temporary"]


def block(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a file where a folder ought to be: not even root can write there")


def link(path):
    elsewhere = path.parent.parent / "elsewhere"
    elsewhere.mkdir(parents=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(elsewhere)


def share(path):
    path.mkdir(parents=True)
    path.chmod(0o775)


@posix
@pytest.mark.parametrize("spoil", [block, link, share])
@pytest.mark.parametrize("below", [".", _cache.STAMP])
def test_a_folder_that_others_may_write_is_not_used(place, tmp_path, spoil, below):
    spoil(tmp_path / "named" / "fastfw" / below)
    folder, wrong = place()
    assert tmp_path / "user" in folder.parents
    assert str(tmp_path / "named") in wrong


def test_no_cache_where_there_is_no_folder(place, tmp_path, monkeypatch):
    for name in ("named", "user"):
        block(tmp_path / name)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "user"))
    monkeypatch.setattr("platformdirs.user_cache_path", lambda *_, **__: tmp_path / "user")
    folder, wrong = place()
    assert folder is None
    assert wrong.count(";") == 2


@posix
def test_only_ones_own_files_are_private():
    own, root = os.geteuid(), 0
    for uid, mode, wanted in [
        (own, 0o600, True),
        (root, 0o644, True),
        (own, 0o620, False),
        (own, 0o602, False),
        (own + 1, 0o600, False),
    ]:
        assert _cache._is_private(SimpleNamespace(st_uid=uid, st_mode=mode)) is wanted


def test_folders_that_were_used_last_are_kept(place, tmp_path):
    parent = tmp_path / "named" / "fastfw"
    old = [parent / f"numba0.6{i}.0-py3.11-{i:016x}" for i in range(6)]
    for i, folder in enumerate(old):
        folder.mkdir(parents=True)
        (folder / "a.kernel").write_text("")
        os.utime(folder, (i, i))
    (parent / "something else").mkdir()
    os.utime(old[0])  # used again
    folder, _ = place()
    assert set(parent.iterdir()) == {folder, old[0], old[4], old[5], parent / "something else"}
    assert place()[0] == folder
    assert len(list(parent.iterdir())) == 5


# --- the files ------------------------------------------------------------------------------------


def twice(x):
    return 2 * x + 1


@pytest.fixture
def compile_twice(place, monkeypatch):
    """Compile or load a kernel as a new process does; whether it was found, and what it gives."""
    monkeypatch.setattr(_jit, "dispatchers", {})

    def call():
        compiled = _jit.kernel()(twice)
        return compiled(20.25), sum(compiled.stats.cache_hits.values())

    return call


@pytest.fixture
def file(compile_twice, tmp_path):
    """The file that keeps it."""
    assert compile_twice() == (41.5, 0)
    assert compile_twice() == (41.5, 1)
    (found,) = tmp_path.rglob("*.kernel")
    return found


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def empty(path):
    os.truncate(path, 0)


def flip(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


def swap(path):
    """A whole file, of another variant."""
    other = path.with_name("other.kernel")
    _cache.write(other, b"")
    os.replace(other, path)


def forge(path):
    """What is well sealed but comes from another world."""
    _cache.write(path, b"no pickle")


def occupy(path):
    path.unlink()
    path.mkdir()


def pipe(path):
    """Whoever opens it waits for somebody to write."""
    path.unlink()
    os.mkfifo(path)


def lend(path):
    path.chmod(0o666)


@about_compiling
@pytest.mark.parametrize(
    "damage",
    [
        truncate,
        empty,
        *(lambda path, i=i: flip(path, i) for i in (0, 31, 32, 5000, -1)),
        swap,
        forge,
        occupy,
        pytest.param(pipe, marks=posix),
        pytest.param(lend, marks=posix),
    ],
)
def test_a_damaged_file_is_compiled_anew_and_replaced(file, compile_twice, damage):
    damage(file)
    assert compile_twice() == (41.5, 0)
    assert compile_twice() == (41.5, damage is not occupy)
    assert len(list(file.parent.iterdir())) == 1  # nothing half-written stays


@about_compiling
def test_a_full_disk_only_means_that_nothing_is_kept(compile_twice, tmp_path):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        assert [compile_twice(), compile_twice()] == [(41.5, 0)] * 2
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@about_compiling
def test_a_folder_that_goes_away_only_means_that_nothing_is_kept(file, compile_twice):
    shutil.rmtree(file.parent)
    assert [compile_twice(), compile_twice()] == [(41.5, 0)] * 2


# --- the cache, in processes of their own ---------------------------------------------------------

SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from fastfw.kernels import _jit, ftpl
assert ftpl.__file__.startswith(sys.argv[1]), ftpl.__file__
value = ftpl.noise(0, np.uint64(5), 3)
stats = ftpl.noise.stats
hits, misses = (sum(c.values()) for c in (stats.cache_hits, stats.cache_misses))
print(json.dumps([value, hits, misses]))
"""

# In another file than `ftpl.noise`, which calls it.
EDIT = """

@kernel()
def hashed(key, i):
    return np.uint64(0)
"""


@pytest.fixture
def copy(tmp_path):
    """The kernels alone, in a package of the same name."""
    package = tmp_path / "copy" / "fastfw"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    shutil.copytree(FOLDER, package / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    return package


def run(package, cache, **environment):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA_", "PYTHONPATH"))}
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "NUMBA_CACHE_DIR": str(cache), **environment}
    command = [sys.executable, "-W", "error", "-c", SCRIPT, str(package.parent)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@about_compiling
def test_cache_is_used_until_any_kernel_changes(copy, tmp_path):
    cache = tmp_path / "cache"
    value, *counts = run(copy, cache)
    assert counts == [0, 1]
    # re-installed: the same sources at another time
    for path in (copy / "kernels").glob("*.py"):
        os.utime(path, (1, 1))
    assert run(copy, cache) == [value, 1, 0]
    # the caller's file is untouched, and so is its cache entry
    with (copy / "kernels" / "rng.py").open("a") as file:
        file.write(textwrap.dedent(EDIT))
    assert run(copy, cache) == [-0.5, 0, 1]
    assert value != -0.5
