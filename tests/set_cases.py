"""Sets of every family, and all vertices of those that have finitely many."""

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fastfw as fw
from fastfw.kernels import sets

EDGES = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (0, 3), (2, 4), (3, 4), (1, 4), (4, 5), (3, 5)]
# a dead end, an edge from nowhere, and two edges between the same nodes
EDGES += [(2, 6), (7, 3), (4, 5)]


def paths(edges, source, sink):
    """Every path as a list of edge numbers, by trying all edges at every node."""
    if source == sink:
        yield []
        return
    for e, (tail, head) in enumerate(edges):
        if tail == source:
            for rest in paths(edges, head, sink):
                yield [e, *rest]


def simplex_vertices(s):
    yield from s.radius * np.eye(s.shape[0])


def l1_vertices(s):
    n_rows, n = (1, *s.shape)[-2:]
    for rows in itertools.product([*np.eye(n), *-np.eye(n)], repeat=n_rows):
        yield s.radius * np.reshape(rows, s.shape)


def box_vertices(s):
    for signs in itertools.product([1.0, -1.0], repeat=math.prod(s.shape)):
        yield s.radius * np.array(signs).reshape(s.shape)


def _signed(n, k):
    """All vectors of n entries of which k are 1 or -1."""
    for places in itertools.combinations(range(n), k):
        for signs in itertools.product([1.0, -1.0], repeat=k):
            v = np.zeros(n)
            v[list(places)] = signs
            yield v


def ksparse_vertices(s):
    for v in _signed(math.prod(s.shape), s.k):
        yield s.radius * v.reshape(s.shape)


def row_ksparse_vertices(s):
    n_rows, n = s.shape
    for rows in itertools.product(_signed(n, s.k), repeat=n_rows):
        yield s.radius / s.k * np.array(rows)


def birkhoff_vertices(s):
    for columns in itertools.permutations(range(s.shape[0])):
        yield np.eye(s.shape[0])[list(columns)]


def flow_vertices(s):
    for path in paths(s.edges, s.source, s.sink):
        v = np.zeros(s.shape)
        v[path] = 1.0
        yield v


def product_vertices(s):
    blocks = [list(POLYTOPES[name].vertices(own)) for name, own in s.sets.items()]
    for chosen in itertools.product(*blocks):
        yield np.concatenate([v.ravel() for v in chosen])


class Polytope(NamedTuple):
    """A set, and all of its vertices."""

    make: Callable[[], Any]
    vertices: Callable[[Any], Any]


POLYTOPES = {
    "Simplex": Polytope(lambda: fw.Simplex(5, radius=3.0), simplex_vertices),
    "L1Ball": Polytope(lambda: fw.L1Ball(5, radius=2.0), l1_vertices),
    "RowL1Ball": Polytope(lambda: fw.RowL1Ball((3, 3), radius=2.0), l1_vertices),
    "LInfBall": Polytope(lambda: fw.LInfBall((2, 3), radius=0.5), box_vertices),
    "KSparsePolytope": Polytope(
        lambda: fw.KSparsePolytope((2, 3), k=2, radius=1.5), ksparse_vertices
    ),
    "RowKSparsePolytope": Polytope(
        lambda: fw.RowKSparsePolytope((3, 3), k=2, radius=3.0), row_ksparse_vertices
    ),
    "BirkhoffPolytope": Polytope(lambda: fw.BirkhoffPolytope(4), birkhoff_vertices),
    "FlowPolytope": Polytope(lambda: fw.FlowPolytope(EDGES, 0, 5), flow_vertices),
    "ProductSet": Polytope(
        lambda: fw.ProductSet(
            {"Simplex": fw.Simplex(3), "FlowPolytope": fw.FlowPolytope(EDGES, 0, 5)}
        ),
        product_vertices,
    ),
}

#: All sets of the package, small.
SETS = {
    **{name: polytope.make for name, polytope in POLYTOPES.items()},
    "L2Ball": lambda: fw.L2Ball((2, 3), radius=1.5),
    "GroupL1Ball": lambda: fw.GroupL1Ball([[0, 1, 0], [2, 1, 0]], radius=1.5),
    "NuclearNormBall": lambda: fw.NuclearNormBall((3, 4), radius=2.0),
    "NuclearNormBall, large": lambda: fw.NuclearNormBall((70, 80), radius=2.0),
}
PROJECTING = [name for name in SETS if hasattr(SETS[name](), "project") and name != "ProductSet"]


def layers(n):
    """Return a flow polytope of some n edges: full layers of four nodes."""
    depth = max(1, n // 16)
    edges = [("s", (0, i)) for i in range(4)] + [((depth, i), "t") for i in range(4)]
    edges += [((d, i), (d + 1, j)) for d in range(depth) for i in range(4) for j in range(4)]
    return fw.FlowPolytope(edges, "s", "t")


#: The sets of the table by their number of entries, about, and a radius.
BY_SIZE = {
    "Simplex": lambda n, r: fw.Simplex(n, r),
    "L1Ball": lambda n, r: fw.L1Ball(n, r),
    "LInfBall": lambda n, r: fw.LInfBall(n, r),
    "L2Ball": lambda n, r: fw.L2Ball(n, r),
    "GroupL1Ball": lambda n, r: fw.GroupL1Ball(np.arange(n) // 3, r),
    "KSparsePolytope": lambda n, r: fw.KSparsePolytope(n, min(n, 7), r),
    "RowKSparsePolytope": lambda n, r: fw.RowKSparsePolytope((2, n), min(n, 7), r),
    "RowL1Ball": lambda n, r: fw.RowL1Ball((2, n), r),
    "BirkhoffPolytope": lambda n, r: fw.BirkhoffPolytope(max(2, math.isqrt(n))),
    "NuclearNormBall": lambda n, r: fw.NuclearNormBall((math.isqrt(n), math.isqrt(n) + 1), r),
    "FlowPolytope": lambda n, r: layers(n),
    "ProductSet": lambda n, r: fw.ProductSet([fw.Simplex(n, r), layers(n), fw.L2Ball(n, r)]),
}


def against(g, places):
    """Entries of size 2 at places of a row, each against the sign of g there."""
    return [(j, -2.0 if g[j] >= 0.0 else 2.0) for j in places]


#: Kinds of rows: of a size of 2, how many entries a vertex has room for, and its entries in plain
#: NumPy, (place, value); None where ties are drawn.
KINDS = {
    sets.L1: (1, lambda g: against(g, [np.argmax(np.abs(g))])),
    sets.L1_RANDOM: (1, None),
    sets.SIMPLEX: (1, lambda g: [(np.argmin(g), 2.0)]),
    sets.SPARSE_ENTRIES: (
        2, lambda g: against(g, sorted(np.argsort(-np.abs(g), kind="stable")[:2])),
    ),
}  # fmt: skip
