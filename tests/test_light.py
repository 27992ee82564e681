"""Importing the package costs next to nothing, and every public name is there."""

import ast
import json
import subprocess
import sys
from importlib import import_module
from types import ModuleType

import pytest

import fastfw


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "statement",
    [
        "import fastfw; dir(fastfw); fastfw.__version__",
        "from fastfw import ORGFW, OSFW, RowL1Ball, SoftmaxRegression, iid_stream, power_schedule",
        "import fastfw as fw; fw.ORGFW(fw.SoftmaxRegression(3, 2), fw.RowL1Ball((2, 3), 1.0))",
    ],
)
def test_heavy_packages_wait(statement):
    heavy = ["numba", "llvmlite", "matplotlib", "scipy", "sklearn", "tqdm"]
    found = run(f"import sys, json\n{statement}\nprint(json.dumps(list(sys.modules)))")
    assert not set(heavy) & set(found)
    if "dir" in statement:
        assert "numpy" not in found


def test_all_names_resolve_in_a_fresh_process():
    """Each by itself and all in a row: importing a module must not hide a name."""
    code = """
import json, types
import fastfw
kinds = {name: type(getattr(fastfw, name)).__name__ for name in fastfw.__all__}
again = {name: type(getattr(fastfw, name)).__name__ for name in reversed(fastfw.__all__)}
assert kinds == again, [n for n in kinds if kinds[n] != again[n]]
print(json.dumps(kinds))
"""
    kinds = run(code)
    modules = {name for name, kind in kinds.items() if kind == "module"}
    assert modules == {"datasets", "experiments", "kernels", "theory"}


@pytest.mark.parametrize(
    "before",
    [
        "fw.best_fixed_decision",
        "from fastfw.regret import suboptimality",
        "import fastfw.experiments",
    ],
)
def test_regret_is_a_function_whatever_was_imported_before(before):
    """``fastfw.regret`` is the name of a function and of the module it lives in."""
    assert run(f"import json, fastfw as fw\n{before}\nprint(json.dumps(callable(fw.regret)))")


def test_no_name_is_listed_twice():
    assert len(fastfw.__all__) == len(set(fastfw.__all__))
    assert set(fastfw.__all__) <= set(dir(fastfw))
    assert not isinstance(fastfw.ORGFW, ModuleType)


@pytest.mark.parametrize("name", ["fastfw", "fastfw.experiments", "fastfw.learners", "fastfw.sets"])
def test_type_checkers_see_the_same_names(name):
    """The block for type checkers lists what is imported on demand."""
    package = import_module(name)
    with open(package.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    checked = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
        if isinstance(inner, ast.ImportFrom)
        for alias in inner.names
        for name in ([alias.asname] if alias.asname else import_module(inner.module).__all__)
    }
    assert checked == set(package.__all__) - {"__version__"}


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'fastfw' has no attribute 'ORGWF'"):
        fastfw.ORGWF  # noqa: B018
