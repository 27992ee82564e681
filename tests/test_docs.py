"""Pages made from other sources are current, and links between pages lead somewhere."""

import importlib.util
import re
from pathlib import Path

import pytest

import fastfw as fw

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def test_api_reference_is_current():
    spec = importlib.util.spec_from_file_location("make_api", ROOT / "docs" / "make_api.py")
    make_api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_api)
    wanted = make_api.page()
    assert make_api.PAGE.read_text(encoding="utf-8") == wanted, "run: python docs/make_api.py"
    assert ":math:" not in wanted
    assert "``" not in wanted.replace("```", "")


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
