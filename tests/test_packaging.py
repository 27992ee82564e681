"""The distribution: version, typing marker, and the lists that are easy to forget.

What only a built wheel can show is checked by smoke_wheel.py.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import sys
from importlib.resources import files
from pathlib import Path

import pytest

import fastfw
from conftest import MATHEMATICS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def pyproject():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_version_is_the_installed_one():
    # Differs where the version changed after an editable install: install again.
    assert importlib.metadata.version("fastfw") == fastfw.__version__


def test_changelog_begins_with_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", changelog, flags=re.MULTILINE)
    newest, *_ = (version for version in versions if version != "Unreleased")
    assert newest == fastfw.__version__
    for section in changelog.split("\n## ")[1:]:
        assert "### Numerical changes" in section


def test_typing_marker_is_shipped():
    assert files("fastfw").joinpath("py.typed").is_file()


def test_every_package_folder_is_listed(pyproject):
    inside = {
        ".".join(init.parent.relative_to(ROOT).parts) for init in ROOT.glob("fastfw/**/__init__.py")
    }
    others = {"fastfw.data", "fastfw.kernels"}  # data only, and mapped from another folder
    assert set(pyproject["tool"]["setuptools"]["packages"]) == inside | others


def test_classifiers_name_the_supported_pythons(pyproject):
    project = pyproject["project"]
    minors = [
        int(match[1])
        for match in map(re.compile(r".* :: 3\.(\d+)$").match, project["classifiers"])
        if match
    ]
    first, last = min(minors), max(minors)
    assert minors == list(range(first, last + 1))
    assert project["requires-python"] == f">=3.{first},<3.{last + 1}"


def test_lower_bounds_are_those_tested(pyproject):
    def bounds(requirements, pattern):
        found = (re.match(pattern, line) for line in requirements)
        return {match[1]: match[2] for match in found if match}

    stated = bounds(pyproject["project"]["dependencies"], r"([\w-]+)>=([\d.]+)")
    pinned = bounds(
        (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines(),
        r"([\w-]+)==(\d+\.\d+)",
    )
    assert stated.items() <= pinned.items()
    extras = pyproject["project"]["optional-dependencies"]
    for line in (*extras["test"], *extras["sklearn"], *extras["plots"], *extras["docs"]):
        name, _, bound = line.partition(">=")
        if bound:
            assert pinned[name] == ".".join([*bound.split("."), "0"][:2]), line


def test_what_runs_without_the_compiler_is_there():
    for file, _, test in (entry.partition("::") for entry in MATHEMATICS):
        source = (ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8")
        assert f"\ndef {test or 'test_'}" in source, (file, test)
