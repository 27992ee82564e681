"""The decorator of the kernels: one door, an honest cache, one specialisation per dtype."""

import ast
import hashlib
import importlib
import importlib.util
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fastfw as fw
from fastfw import kernels
from fastfw.kernels import _jit
from sizes import about_compiling

FOLDER = Path(kernels.__file__).parent
SOURCES = sorted(FOLDER.glob("*.py"))
MODULES = [
    importlib.import_module(f"fastfw.kernels.{found.name}")
    for found in pkgutil.iter_modules(kernels.__path__)
]


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
    allowed = {"numba", "numpy", "llvmlite"} | sys.stdlib_module_names
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
                assert id(value) in registered, f"{module.__name__}.{name}"
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
    digest = _jit.source_digest(base)
    assert len(digest) == hashlib.sha256().digest_size * 2
    same = write(tmp_path / "same", b="y = 2\n", a="x = 1\n")
    os.utime(same / "a.py", (1, 1))
    (same / "notes.txt").write_text("not a kernel")
    assert _jit.source_digest(same) == digest
    others = [
        {"a": "x = 1\n", "b": "y = 3\n"},
        {"a": "x = 1\n", "c": "y = 2\n"},
        {"a": "x = 1\ny = 2\n", "b": ""},
        {"a": "x = 1\n"},
        {"a": "x = 1\n", "b": "y = 2\n", "c": ""},
        {"a": "y = 2\n", "b": "x = 1\n"},
    ]
    digests = {
        _jit.source_digest(write(tmp_path / f"{i}", **files)) for i, files in enumerate(others)
    }
    assert len(digests | {digest}) == len(others) + 1


def test_digest_is_of_the_kernels_by_default():
    assert _jit.source_digest() == _jit.source_digest(FOLDER) == _jit._DIGEST


@about_compiling
def test_every_kernel_carries_the_stamp():
    for name, dispatcher in _jit.dispatchers.items():
        file = getattr(dispatcher._cache, "_cache_file", None)
        if file is not None:  # there is no cache where no folder can be written
            assert file._source_stamp == _jit.source_digest(), name


def test_no_cache_where_the_stamp_has_no_place():
    """A numba that keeps its stamp elsewhere must not be trusted with its own."""
    from numba.core.caching import NullCache

    file = SimpleNamespace(somewhere_else="a stamp of one file")

    class Dispatcher:
        _cache = None

        def enable_caching(self):
            self._cache = SimpleNamespace(_cache_file=file)

    dispatcher = Dispatcher()
    _jit._cache(dispatcher)
    assert isinstance(dispatcher._cache, NullCache)


# --- the cache, in processes of their own ---------------------------------------------------------

SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import numpy as np
from fastfw.kernels import _jit, storm
assert storm.__file__.startswith(sys.argv[1]), storm.__file__
g = np.array([[1.0, -3.0, 2.0], [0.5, 0.25, -7.0]])
index, value = np.full(2, -1), np.full(2, np.nan)
storm.estimate(np.zeros((2, 3)), g, 1.0, 1.0, 2.0, index, value)
stats = storm.estimate.stats
print(json.dumps({
    "index": index.tolist(),
    "value": value.tolist(),
    "hits": sum(stats.cache_hits.values()),
    "misses": sum(stats.cache_misses.values()),
}))
"""

# In another file than `storm.estimate`, which calls it.
EDIT = """

@kernel()
def first_largest(row):
    return 0, True
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
    wanted = {"index": [1, 2], "value": [2.0, 2.0]}
    assert run(copy, cache) == {**wanted, "hits": 0, "misses": 1}
    assert run(copy, cache) == {**wanted, "hits": 1, "misses": 0}
    # re-installed: the same sources at another time
    for path in (copy / "kernels").glob("*.py"):
        os.utime(path, (1, 1))
    assert run(copy, cache) == {**wanted, "hits": 1, "misses": 0}
    # the caller's file is untouched, and so is its cache entry
    with (copy / "kernels" / "l1.py").open("a") as file:
        file.write(textwrap.dedent(EDIT))
    edited = {"index": [0, 0], "value": [-2.0, -2.0]}
    assert run(copy, cache) == {**edited, "hits": 0, "misses": 1}
    assert run(copy, cache) == {**edited, "hits": 1, "misses": 0}


@about_compiling
def test_works_where_no_cache_folder_can_be_written(copy, tmp_path):
    # A file where a folder ought to be: not even root can write there.
    blocked = tmp_path / "file"
    blocked.write_text("")
    (copy / "kernels" / "__pycache__").write_text("")
    places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"), str(blocked / "home"))
    result = run(copy, blocked / "cache", **places)
    assert result["index"] == [1, 2]
    assert result["hits"] == 0


# --- no compilation after the first call ----------------------------------------------------------


def layouts(X):
    """The same numbers in every form."""
    wide = np.zeros((2 * X.shape[0], 3 * X.shape[1]), X.dtype)
    wide[::2, ::3] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    yield from (X, np.asfortranarray(X), wide[::2, ::3], frozen, X.astype(X.dtype.newbyteorder()))
    if X.dtype == np.float64:
        yield from (X.astype(np.float16), X.astype(np.int8), X.tolist(), X.astype(object) == 1.0)


def play_everything(X, y):
    problem = fw.SoftmaxRegression(X.shape[1], 3)
    ball = fw.RowL1Ball(problem.shape, radius=2.0)
    for features in layouts(X):
        for labels in (y, y.astype(np.uint8), y.astype(">i4"), y.tolist()):
            for method in (fw.ORGFW, fw.OSFW):
                learner = method(problem, ball, step=lambda t: 1.0 if t % 3 == 0 else 0.25)
                for _ in range(4):
                    learner.observe((features, labels))
        data = fw.Dataset(features, y)
        learner.run(fw.iid_stream(data, batch_size=3, rounds=5))
        learner.run([data, fw.Batch(data, [2, 0])])
        x = learner.play()
        for point in (x, np.asfortranarray(x), x.tolist(), 1.0 * x):
            problem.loss(point, data)
            problem.loss_and_gradient(point, (features, y))
            ball.lmo(point)


@about_compiling
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_each_kernel_is_compiled_once_per_dtype(dtype):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 2, (12, 5)).astype(dtype), rng.integers(0, 3, 12)
    problem = fw.SoftmaxRegression(5, 3)
    ball = fw.RowL1Ball(problem.shape, radius=2.0)
    for learner in (fw.ORGFW(problem, ball), fw.ORGFW(problem, ball, engine="steps")):
        learner.run(fw.iid_stream(X, y, batch_size=3, rounds=3))
    problem.loss(np.zeros((3, 5)), (X, y))

    def signatures():
        return {name: len(kernel.signatures) for name, kernel in _jit.dispatchers.items()}

    before = signatures()
    play_everything(X, y)
    assert signatures() == before
