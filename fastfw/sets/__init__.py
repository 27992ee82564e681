"""The table of sets: a row for each, from which all that lists sets takes them.

Public names, the reference and `save` follow from a row here, and from the lines for type checkers.
One module per family, imported when one of its names is first used; see `ConvexSet` for what sets
have. Arguments that cannot be used raise a TypeError or a ValueError that names them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fastfw.sets._convex import ConvexSet as ConvexSet
    from fastfw.sets._vertex import DenseVertex as DenseVertex
    from fastfw.sets._vertex import EntriesVertex as EntriesVertex
    from fastfw.sets._vertex import Vertex as Vertex
    from fastfw.sets.balls import *
    from fastfw.sets.birkhoff import *
    from fastfw.sets.flow import *
    from fastfw.sets.ksparse import *
    from fastfw.sets.l1_ball import *
    from fastfw.sets.nuclear import *
    from fastfw.sets.own import *
    from fastfw.sets.product import *
    from fastfw.sets.rows import *
    from fastfw.sets.simplex import *

SETS = {
    "RowL1Ball": "rows",
    "RowKSparsePolytope": "ksparse",
    "L1Ball": "l1_ball",
    "Simplex": "simplex",
    "LInfBall": "balls",
    "L2Ball": "balls",
    "GroupL1Ball": "balls",
    "KSparsePolytope": "ksparse",
    "NuclearNormBall": "nuclear",
    "FlowPolytope": "flow",
    "BirkhoffPolytope": "birkhoff",
    "ProductSet": "product",
    "CompiledSet": "own",
    "ConvexSet": "_convex",
}
"""The module of every set, in the order in which the reference lists them."""

VERTICES = {
    "Vertex": "_vertex",
    "RowVertex": "rows",
    "L1Vertex": "l1_ball",
    "SignVertex": "balls",
    "GroupVertex": "balls",
    "KSparseVertex": "ksparse",
    "RankOneVertex": "nuclear",
    "PathVertex": "flow",
    "PermutationVertex": "birkhoff",
    "ProductVertex": "product",
    "EntriesVertex": "_vertex",
    "DenseVertex": "_vertex",
}
"""That of every kind of vertex."""

if not TYPE_CHECKING:  # which go by the names above
    __all__ = [*SETS, *VERTICES]


def __getattr__(name: str) -> Any:
    """Load a class when it is first used."""
    module = SETS.get(name) or VERTICES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *SETS, *VERTICES})
