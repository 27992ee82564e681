"""Pages know all public names, and links between pages lead somewhere."""

import importlib
import re
from pathlib import Path

import pytest

import fastfw as fw

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def test_the_reference_lists_every_public_name():
    text = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = {}
    for part in text.split(".. currentmodule:: ")[1:]:
        module, _, rest = part.partition("\n")
        listed[module] = re.findall(r"^   (\w+)$", rest, re.MULTILINE)
    assert "fastfw" in listed
    listed["fastfw"] += fw.learners.__all__  # which conf.py puts where the module is
    assert {"fastfw.learners", "fastfw.theory"} <= set(re.findall(r"automodule:: (\S+)", text))
    for module, names in listed.items():
        home = importlib.import_module(module)
        modules = ("datasets", "experiments", "kernels", "theory", "__version__")
        assert sorted(names) == sorted(set(home.__all__).difference(modules)), module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http", "#")):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve()
        assert found.exists(), target
        if anchor and found.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", found.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in anchors, target


@pytest.mark.parametrize("page", ["choosing.md", "own-problem.md", "glossary.md", "tutorial.md"])
def test_names_in_the_pages_exist(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for name in set(re.findall(r"\bfw\.(\w+)", text)):
        assert hasattr(fw, name), name
