"""How Sphinx builds the site; see CONTRIBUTING.md.

    python -m sphinx -W --keep-going docs build/site

Everything a page needs is in the folder that is built: no script, font or picture comes from
elsewhere.
"""

from __future__ import annotations

import os
import re
from importlib import import_module
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

import fastfw
import fastfw.learners
import fastfw.sets._vertex
import fastfw.theory

# Examples are small: threads of a BLAS would wait for each other most of the time.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def listed(module: str, names: list[str]) -> str:
    """Return a list of names that are reached through a module, as api.rst has them."""
    lines = [f".. currentmodule:: {module}", "", ".. autosummary::"]
    lines += [
        "   :toctree: generated/api",
        "   :nosignatures:",
        "",
        *(f"   {name}" for name in names),
    ]
    return "\n".join(lines)


# api.rst need not be told of new methods, sets and bounds.
fastfw.learners.__doc__ = listed("fastfw", fastfw.learners.__all__)
fastfw.sets.__doc__ = listed("fastfw", [*fastfw.sets.SETS])
fastfw.sets._vertex.__doc__ = listed("fastfw", [*fastfw.sets.VERTICES])
fastfw.theory.__doc__ += "\n" + listed("fastfw.theory", fastfw.theory.__all__)

# The module `fastfw.regret` stands in for the function of its name; here the function is meant.
fastfw.regret = import_module("fastfw.regret").regret

project = "fastfw"
author = "the fastfw developers"
copyright = author
version = release = fastfw.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
root_doc = "index"
exclude_patterns = ["generated/backreferences/*", "templates"]
templates_path = ["templates"]
nitpicky = True
nitpick_ignore = [("py:obj", "rows")]
default_role = "autolink"

# Pages in Markdown have headings that others link to, under the names that GitHub gives them.
myst_heading_anchors = 4

# Docstrings. Types stand in them, so signatures go without.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = True
# Names that differ by case alone need files that do not.
autosummary_filename_map = {"fastfw.trace": "fastfw.trace-function"}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "generated/examples",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("fastfw",),
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "min_reported_time": 3600,
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = project
html_theme_options = {
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_depth": 3,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": []}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sourcelink = False
html_math_renderer = "mathml"


def formula(self: HTML5Translator, node: Any) -> None:
    """Write a formula as MathML, which browsers draw by themselves."""
    block = isinstance(node, nodes.math_block)
    tex = node.astext()
    if block and ("&" in tex or r"\\" in tex) and r"\begin" not in tex:
        tex = rf"\begin{{aligned}}{tex}\end{{aligned}}"
    written = tex2mathml(tex, as_block=block)
    self.body.append(f'<div class="formula">{written}</div>' if block else written)
    raise nodes.SkipNode


def is_public(name: str) -> bool:
    """Whether the reference has an entry for fastfw's function or class of this name."""
    module, _, last = name.rpartition(".")
    if module not in ("", "datasets", "sklearn", "theory"):
        return False
    home = import_module(f"fastfw.{module}") if module else fastfw
    return last in home.__all__ and callable(getattr(home, last))


def link_names(app: Sphinx, doctree: nodes.document) -> None:
    """Let public names that pages show as code lead to their entries in the reference."""
    for literal in list(doctree.findall(nodes.literal)):
        name = re.sub(r"^(fast)?fw\.|\(.*", "", literal.astext())
        inside = isinstance(literal.parent, addnodes.pending_xref | nodes.reference | nodes.title)
        if is_public(name) and not inside:
            xref = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=f"fastfw.{name}", refexplicit=True
            )
            literal.replace_self(xref)
            xref += literal


def setup(app: Sphinx) -> None:
    """Add what Sphinx has not."""
    app.connect("doctree-read", link_names)
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
