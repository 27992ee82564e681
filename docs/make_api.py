"""Write docs/api.md from the docstrings of the package.

    python docs/make_api.py

A test compares the file with what this would write.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import fastfw

#: Headings and the names below them; a name in none of them is an error.
SECTIONS = {
    "Learners": (
        "ORGFW OSFW OFW OAW RegularizedOFW MORGFW MetaFrankWolfe OnlineLearner Round RunResult"
    ),
    "Offline methods": "SVRF SpiderFW OfflineLearner FitResult",
    "Base learners": "FTPL OGD RFTL BaseLearner LinearLearner",
    "Problems": "SoftmaxRegression OneHiddenLayer problem_from_function FunctionProblem",
    "Sets": (
        "RowL1Ball RowKSparsePolytope L1Ball Simplex LInfBall L2Ball GroupL1Ball KSparsePolytope "
        "NuclearNormBall FlowPolytope BirkhoffPolytope ProductSet ConvexSet"
    ),
    "Vertices": (
        "Vertex RowVertex L1Vertex SignVertex GroupVertex KSparseVertex RankOneVertex PathVertex "
        "PermutationVertex ProductVertex EntriesVertex DenseVertex"
    ),
    "Schedules": "power_schedule",
    "Streams": "iid_stream sorted_stream epoch_stream IndexedStream Dataset Batch",
    "Regret": "best_fixed_decision BestDecision regret RegretCurve suboptimality",
    "Traces": "trace Trace frank_wolfe_gap log_spaced",
}
#: Modules whose functions are public under the module's name.
MODULES = ("sklearn", "theory", "datasets")

PAGE = Path(__file__).with_name("api.md")

_HEAD = """# API reference

Made from the docstrings by `python docs/make_api.py`; edit those, not this page. Names are to be
read as `fw.NAME` after `import fastfw as fw`. Examples are run where they stand, in the
docstrings.
"""


def page() -> str:
    """Return the whole page."""
    listed = {name for names in SECTIONS.values() for name in names.split()}
    public = {name for name in fastfw.__all__ if callable(getattr(fastfw, name))}
    if listed != public:
        raise SystemExit(f"SECTIONS of {Path(__file__).name} does not fit: {listed ^ public}")
    parts = [_HEAD]
    contents = [f"- [{title}](#{_anchor(title)})" for title in SECTIONS]
    contents += [f"- [fw.{module}](#{_anchor(f'fw.{module}')})" for module in MODULES]
    parts.append("\n".join(contents) + "\n")
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [_entry(name, getattr(fastfw, name)) for name in names.split()]
    for module in MODULES:
        home = import_module(f"fastfw.{module}")
        parts.append(f"## fw.{module}\n\n{_markdown(inspect.getdoc(home) or '')}")
        parts += [_entry(f"{module}.{name}", getattr(home, name)) for name in home.__all__]
    return "\n".join(parts)


def _anchor(title: str) -> str:
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


def _entry(name: str, thing: Any) -> str:
    """Return the part about a class, a function or a constant."""
    if not callable(thing):
        return f"### {name}\n\n`{thing!r}`\n"
    if isinstance(thing, ModuleType):  # a function under its module's name
        thing = getattr(thing, name)
    if not inspect.isclass(thing):
        return f"### {name}\n\n```text\n{_signature(name, thing)}\n```\n\n{_markdown(_doc(thing))}"
    bases = [base.__name__ for base in thing.__bases__ if base.__name__ in fastfw.__all__]
    kind = f"\nKind of `{'`, `'.join(bases)}`, which see.\n" if bases else ""
    parts = [f"### {name}\n", f"```text\n{_signature(name, thing)}\n```\n"]
    parts.append(_markdown(_doc(thing)) + kind)
    # what is shared by a base that is not public stands with each of its kinds
    hidden = [base for base in thing.__bases__ if base.__name__ not in fastfw.__all__]
    members: dict[str, Any] = {}
    for owner in (*hidden, thing):
        if owner.__module__.startswith("fastfw"):
            members.update(vars(owner))
    fields = getattr(thing, "_fields", ())
    for key, value in members.items():
        if key.startswith("_"):
            continue
        if key in fields or not _is_own(thing, value):
            continue
        shown = key if isinstance(value, property) else _signature(key, _function(value), 0)
        body = _markdown(_doc(_function(value)))
        parts.append(f"#### `{name}.{shown}`\n\n{body}")
    return "\n".join(parts)


def _is_own(owner: Any, member: Any) -> bool:
    """Whether a member of a class has documentation of its own."""
    function = _function(member)
    return bool(getattr(function, "__doc__", None)) and (
        isinstance(member, property) or inspect.isfunction(function)
    )


def _function(member: Any) -> Any:
    return member.__func__ if isinstance(member, classmethod | staticmethod) else member


def _doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def _signature(name: str, thing: Any, width: int = 88) -> str:
    """Return name(parameters) without annotations, broken where longer than a width above 0."""
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return name
    if inspect.isclass(thing) and thing.__init__ is object.__init__ and "abc" in str(type(thing)):
        return name
    plain = [
        str(p.replace(annotation=inspect.Parameter.empty))
        for p in signature.parameters.values()
        if p.name not in ("self", "cls")
    ]
    kinds = [p.kind for p in signature.parameters.values() if p.name not in ("self", "cls")]
    only = inspect.Parameter.KEYWORD_ONLY
    if only in kinds and inspect.Parameter.VAR_POSITIONAL not in kinds:
        plain.insert(kinds.index(only), "*")
    line = f"{name}({', '.join(plain)})"
    if not width or len(line) <= width:
        return line
    return f"{name}(\n    " + ",\n    ".join(plain) + ",\n)"


_TITLES = (
    "Parameters|Attributes|Returns|Yields|Raises|Warns|Notes|References|Examples|See Also|Warnings"
)


def _markdown(doc: str) -> str:
    """Turn a numpydoc docstring into Markdown."""
    doc = re.sub(r":math:`([^`]*)`", r"$\1$", doc)
    parts = re.split(rf"^({_TITLES})\n-+\n", doc, flags=re.MULTILINE)
    out = [_text(parts[0])]
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        if title in ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns"):
            out.append(f"**{title}**\n\n{_items(body)}")
        else:
            out.append(f"**{title}**\n\n{_text(body)}")
    return "\n".join(part for part in out if part.strip())


def _items(body: str) -> str:
    """Return the entries of a section as a list."""
    entries = re.split(r"^(?=\S)", body, flags=re.MULTILINE)
    lines = []
    for entry in entries:
        if not entry.strip():
            continue
        head, _, rest = entry.partition("\n")
        name, colon, kind = head.partition(" : ")
        what = f"**{name}** : {_inline(kind)}" if colon else f"**{name}**"
        text = textwrap.dedent(rest).strip()
        joined = textwrap.indent(_text(text).strip(), "  ").strip()
        lines.append(f"- {what}. {joined}" if joined else f"- {what}")
    return "\n".join(lines) + "\n"


def _text(body: str) -> str:
    """Return paragraphs, formulas and examples."""
    out: list[str] = []
    lines = body.strip("\n").splitlines()
    i = 0
    while i < len(lines):
        line = lines[i]
        if line.startswith(".. math::"):
            formula = [line.removeprefix(".. math::").strip()]
            i += 1
            while i < len(lines) and (not lines[i].strip() or lines[i].startswith("    ")):
                formula.append(lines[i].strip())
                i += 1
            inside = "\n".join(part for part in formula if part)
            if "&" in inside and "cases" not in inside:
                inside = f"\\begin{{aligned}}\n{inside}\n\\end{{aligned}}"
            out.append(f"```math\n{inside}\n```\n")
        elif line.startswith("==="):
            table = []
            while i < len(lines) and lines[i].strip():
                table.append(lines[i])
                i += 1
            out.append("```text\n" + "\n".join(table).replace("``", "`") + "\n```")
        elif line.startswith(">>>"):
            code = []
            while i < len(lines) and lines[i].strip():
                code.append(lines[i])
                i += 1
            out.append("```python\n" + "\n".join(code) + "\n```")
        elif line.endswith("::") and not line.startswith(".."):
            out.append(_inline(line[:-1]))
            code = []
            i += 1
            while i < len(lines) and (not lines[i].strip() or lines[i].startswith("    ")):
                code.append(lines[i][4:])
                i += 1
            out.append("\n```sh\n" + "\n".join(code).strip("\n") + "\n```")
        else:
            out.append(_inline(line))
            i += 1
    return "\n".join(out).rstrip() + "\n"


def _inline(text: str) -> str:
    """Turn inline markup into Markdown's."""
    text = re.sub(r":(?:func|mod|class):`([^`]*)`", r"`\1`", text)
    return text.replace("``", "`")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE.name}: {len(page().splitlines())} lines")
