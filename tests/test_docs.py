"""Pages know all public names, and links between pages lead somewhere."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import fastfw as fw

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])


def test_the_reference_lists_every_public_name():
    text = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = {}
    for part in text.split(".. currentmodule:: ")[1:]:
        module, _, rest = part.partition("\n")
        listed.setdefault(module, []).extend(re.findall(r"^   (\w+)$", rest, re.MULTILINE))
    assert "fastfw" in listed
    modules = {"fastfw.learners", "fastfw.sets", "fastfw.sets._vertex", "fastfw.theory"}
    assert modules <= set(re.findall(r"automodule:: (\S+)", text))
    for table in ("learners", "sets"):  # which conf.py puts where the modules are
        listed["fastfw"] += importlib.import_module(f"fastfw.{table}").__all__
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


# --- tables of conventions ------------------------------------------------------------------------


def conventions():
    """Rows of the tables in docs/sklearn.md: a kind of thing, a name, whether each has it."""
    text = (ROOT / "docs" / "sklearn.md").read_text(encoding="utf-8")
    for table in text.split("\n\n"):
        head, *rows = (line.strip("|").split("|") for line in table.splitlines())
        if len(head) == 4 and head[1].strip() == "classifier":
            for names, *has, _ in rows[1:]:
                for name in re.findall(r"`(\w[\w.]*)`", names):
                    yield head[0].strip(), name, [cell.strip() for cell in has]


def _has_tag(model, name):
    from sklearn.utils import get_tags  # from 1.6 on

    found = get_tags(model)
    for part in name.split("."):
        found = getattr(found, part) if found is not None else False
    return found


def _draws(model, name):
    import sklearn.calibration
    import sklearn.inspection
    import sklearn.metrics
    import sklearn.model_selection

    import fastfw.sklearn as own

    homes = (sklearn.metrics, sklearn.calibration, sklearn.inspection, sklearn.model_selection, own)
    (display,) = {getattr(home, name) for home in homes if hasattr(home, name)}
    X, y = _rows(model)
    more = {
        "DecisionBoundaryDisplay": (X,), "PartialDependenceDisplay": (X, [0]), "WeightsDisplay": (),
    }  # fmt: skip
    options = {}
    if name == "ValidationCurveDisplay":
        options = {"param_name": "radius", "param_range": [1.0, 2.0]}
    try:
        display.from_estimator(model, *more.get(name, (X, y)), **options)
    except (TypeError, ValueError):
        return False
    return True


def _rows(model):
    X = np.random.default_rng(0).random((40, 2))
    y = X[:, 0] - X[:, 1]
    return X, y if hasattr(model, "loss") else np.where(y > 0, "up", "down")


HAS = {
    "parameter": lambda model, name: name in model.get_params(),
    "attribute": hasattr,
    "method": hasattr,
    "tag": _has_tag,
    "display": _draws,
}


@pytest.mark.parametrize("kind", HAS)
def test_the_tables_of_conventions_are_true(kind):
    sklearn = pytest.importorskip("sklearn")
    if kind == "tag" and sklearn.__version__ < "1.6":
        pytest.skip("tags had no names yet")
    if kind == "display":
        pyplot = pytest.importorskip("matplotlib.pyplot")
        pyplot.switch_backend("agg")
        pyplot.close("all")  # what examples of docs/ left open
    from fastfw.sklearn import ProjectionFreeClassifier, ProjectionFreeRegressor

    found = [(name, has) for its_kind, name, has in conventions() if its_kind == kind]
    assert len(found) > 8
    for column, make in enumerate((ProjectionFreeClassifier, ProjectionFreeRegressor)):
        model = make(radius=2.0, max_iter=1, tol=0.0)
        X, y = _rows(model)
        if kind == "attribute":
            X = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b"])
        with sklearn.config_context(enable_metadata_routing=kind == "method"):
            model.fit(X, y)
            for name, has in found:
                assert HAS[kind](model, name) == (has[column] == "yes"), (name, make)
    if kind == "display":
        pyplot.close("all")
    if kind == "parameter":  # none is missing
        listed = {name for name, _ in found}
        own = {"method", "radius", "vertex_size", "batch_size", "step", "momentum", "scaling"}
        for make in (ProjectionFreeClassifier, ProjectionFreeRegressor):
            assert set(make().get_params()) <= listed | own | {"dtype"}
