"""The flow polytope: unit flows through a graph without cycles, whose vertices are paths."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
import numpy.typing as npt

from fastfw._checks import FloatArray, IndexArray
from fastfw.sets._convex import ConvexSet, normalise
from fastfw.sets._vertex import EntriesVertex

__all__ = ["FlowPolytope", "PathVertex"]


class PathVertex(EntriesVertex):
    """A vertex of `FlowPolytope`: one on the edges of a path, zero elsewhere.

    Attributes
    ----------
    indices : ndarray of int, shape (k,)
        Numbers of the path's edges, from the source to the sink.
    values : ndarray, shape (k,)
        Ones.
    """

    __slots__ = ("_longest",)

    def __init__(
        self, indices: IndexArray, size: int, longest: int, dtype: npt.DTypeLike = np.float64
    ) -> None:
        super().__init__(indices, np.ones(indices.size, dtype), (size,), dtype)
        self._longest = longest

    @property
    def code(self) -> IndexArray:
        """The edges, and -1 up to the length of the longest path."""
        padded = np.full(self._longest, -1, np.intp)
        padded[: self.indices.size] = self.indices
        return padded

    def __repr__(self) -> str:
        return f"PathVertex(edges={self.indices}, shape={self.shape})"


class FlowPolytope(ConvexSet):
    r"""Flows of one unit from a source to a sink through a directed graph without cycles.

    .. math:: \{x \in R^E : x \ge 0, \ \text{out}_x(s) = 1, \ \text{in}_x(u) = \text{out}_x(u)
        \text{ for all nodes } u \ne s, t\}

    A point gives each edge the share of the traffic that takes it; vertices are paths.

    Parameters
    ----------
    edges : sequence of pairs, or array_like of shape (E, 2)
        Edge j leads from edges[j][0] to edges[j][1]. Nodes are numbers, strings or anything that
        can be a key of a dictionary. There may be several edges between two nodes.
    source, sink : node
        Where flows begin and end.

    Raises
    ------
    TypeError, ValueError
        If `edges` is not such a sequence, the graph has a cycle, or no path leads from the source
        to the sink.

    Examples
    --------
    >>> import fastfw as fw
    >>> roads = [("home", "bridge"), ("home", "ring"), ("ring", "bridge"), ("bridge", "work")]
    >>> flows = fw.FlowPolytope(roads, "home", "work")
    >>> v = flows.lmo([5.0, 1.0, 2.0, 1.0])
    >>> v.toarray()
    array([0., 1., 1., 1.])
    >>> flows.route(v)
    ['home', 'ring', 'bridge', 'work']
    >>> flows.start()
    array([0.5, 0.5, 0.5, 1. ])
    """

    _shape: tuple[int]

    def __init__(self, edges: Any, source: Hashable, sink: Hashable) -> None:
        pairs = _pairs(edges)
        source, sink = _plain(source), _plain(sink)
        number: dict[Any, int] = {}
        for j, pair in enumerate(pairs):
            for node in pair:
                _require_key(node, f"edges[{j}]")
                number.setdefault(node, len(number))
        for name, node in (("source", source), ("sink", sink)):
            _require_key(node, name)
            if node not in number:
                raise ValueError(f"{name} must be a node of an edge, but it is {node!r}")
        if source == sink:
            raise ValueError(f"source and sink must be two nodes, but both are {source!r}")
        self._edges, self._source, self._sink = pairs, source, sink
        self._nodes: tuple[Any, ...] = tuple(number)
        self._shape = (len(pairs),)
        self._ends = number[source], number[sink]
        self._tail = np.array([number[a] for a, _ in pairs], np.intp)
        self._head = np.array([number[b] for _, b in pairs], np.intp)
        position = self._topological()
        useful = self._reached(self._tail, self._head, self._ends[0])[self._tail]
        useful &= self._reached(self._head, self._tail, self._ends[1])[self._head]
        if not useful.any():
            raise ValueError(f"no path leads from source {source!r} to sink {sink!r}")
        kept = np.flatnonzero(useful)
        self._order: IndexArray = kept[np.argsort(-position[self._tail[kept]], kind="stable")]
        self._longest = self._shortest(-np.ones(self._shape)).size
        self._diameter: float | None = None

    @property
    def edges(self) -> tuple[tuple[Any, Any], ...]:
        """The edges, in the order of the points' entries."""
        return self._edges

    @property
    def nodes(self) -> tuple[Any, ...]:
        """The nodes, in the order in which the edges name them."""
        return self._nodes

    @property
    def source(self) -> Any:
        """Where flows begin."""
        return self._source

    @property
    def sink(self) -> Any:
        """Where flows end."""
        return self._sink

    @property
    def diameter(self) -> float:
        """Largest Euclidean distance of two points: √(edges that only one of two paths has).

        Found once, as a flow of two units of least cost where an edge's first unit costs -1 and
        its second +1.
        """
        if self._diameter is None:
            self._diameter = math.sqrt(self._largest_difference())
        return self._diameter

    def start(self, dtype: npt.DTypeLike = np.float64) -> FloatArray:
        """Return the point where learners start: at each node the flow divides evenly.

        Evenly among the edges out of it that lead on to the sink.
        """
        ways = np.bincount(self._tail[self._order], minlength=len(self._nodes))
        amount = np.zeros(len(self._nodes))
        amount[self._ends[0]] = 1.0
        flow = np.zeros(self._shape)
        for e in self._order[::-1]:
            flow[e] = amount[self._tail[e]] / ways[self._tail[e]]
            amount[self._head[e]] += flow[e]
        return flow.astype(self._dtype(dtype))

    def lmo(self, direction: npt.ArrayLike) -> PathVertex:
        """Return the path of least total cost, for costs of any sign; see `ConvexSet.lmo`.

        Where several edges out of a node begin a best path to the sink, the first is taken. O(E)
        time, edges in topological order.
        """
        g = self._direction(direction)
        return self._vertex(self._shortest(normalise(g)[0]), g.dtype)

    def route(self, vertex: PathVertex) -> list[Any]:
        """Return the nodes that a path visits, from source to sink."""
        return [self._source, *(self._edges[e][1] for e in vertex.indices)]

    def _contains(self, point: npt.NDArray[np.float64], tol: float) -> bool:
        n = len(self._nodes)
        excess = np.bincount(self._tail, point, n) - np.bincount(self._head, point, n)
        excess[self._ends[0]] -= 1.0
        excess[self._ends[1]] += 1.0
        return bool(point.min() >= -tol and np.abs(excess).max() <= tol)

    def decode(self, code: npt.NDArray[Any], dtype: npt.DTypeLike) -> PathVertex:
        """Return the vertex of a code."""
        return self._vertex(code[code >= 0].astype(np.intp), dtype)

    def _vertex(self, path: IndexArray, dtype: npt.DTypeLike) -> PathVertex:
        return PathVertex(path, self._shape[0], self._longest, dtype)

    def _shortest(self, cost: npt.NDArray[np.float64]) -> IndexArray:
        from fastfw.kernels.shortest_path import shortest_path

        n = len(self._nodes)
        choice, path = np.empty(n, np.intp), np.empty(n, np.intp)
        length = shortest_path(
            cost, self._order, self._tail, self._head, *self._ends, np.empty(n), choice, path
        )
        return path[:length].copy()

    def _topological(self) -> IndexArray:
        """Position of every node in an order in which edges lead forward."""
        sorter = TopologicalSorter[int]()
        for tail, head in zip(self._tail.tolist(), self._head.tolist(), strict=True):
            sorter.add(head, tail)
        try:
            order = [*sorter.static_order()]
        except CycleError as error:
            cycle = {self._nodes[i] for i in error.args[1]}
            loop = next(pair for pair in self._edges if cycle.issuperset(pair))
            raise ValueError(
                f"edges must not form a cycle, but edge {loop[0]!r} -> {loop[1]!r} lies on one or "
                "between two; leave an edge out, or copy the nodes for each step in time"
            ) from None
        position = np.empty(len(order), np.intp)
        position[order] = np.arange(len(order))
        return position

    def _reached(self, tail: IndexArray, head: IndexArray, first: int) -> npt.NDArray[np.bool_]:
        """Nodes that can be reached from one along edges tail -> head."""
        found = np.zeros(len(self._nodes), np.bool_)
        found[first] = True
        count = 0
        while count < np.count_nonzero(found):
            count = int(np.count_nonzero(found))
            found[head[found[tail]]] = True
        return found

    def _largest_difference(self) -> int:
        """Most edges that only one of two paths has."""
        on = np.zeros(self._shape, np.bool_)
        on[self._shortest(-np.ones(self._shape))] = True
        kept = np.zeros(self._shape, np.bool_)
        kept[self._order] = True
        # Ways to add a second unit: over new edges, over edges of the first path, or against them.
        tail = np.concatenate([self._tail[kept], self._head[on]])
        head = np.concatenate([self._head[kept], self._tail[on]])
        cost = np.concatenate([np.where(on[kept], 1, -1), np.ones(np.count_nonzero(on), int)])
        far = 4 * len(self._edges)
        distance = np.full(len(self._nodes), far)
        distance[self._ends[0]] = 0
        while True:
            before = distance.copy()
            at = distance[tail]
            np.minimum.at(distance, head[at < far], (at + cost)[at < far])
            if np.array_equal(before, distance):
                break
        return int(np.count_nonzero(on) - distance[self._ends[1]])

    def _parameters(self) -> dict[str, Any]:
        return {"edges": self._edges, "source": self._source, "sink": self._sink}

    def to_json(self) -> dict[str, Any] | None:
        """Return the arguments as JSON holds them; None where nodes are not numbers or strings."""
        simple = all(type(node) in (int, str) for node in self._nodes)
        return self._parameters() if simple else None

    def __repr__(self) -> str:
        return (
            f"<FlowPolytope: {len(self._nodes)} nodes, {len(self._edges)} edges, from "
            f"{self._source!r} to {self._sink!r}>"
        )


def _pairs(edges: Any) -> tuple[tuple[Any, Any], ...]:
    """Return edges as pairs of nodes."""
    if isinstance(edges, np.ndarray):
        edges = edges.tolist()
    try:
        edges = list(edges)
        pairs: Sequence[Any] = [tuple(edge) for edge in edges]
    except TypeError:
        raise TypeError(
            f"edges must be a sequence of pairs of nodes, but it is {edges!r}"
        ) from None
    for j, pair in enumerate(pairs):
        if len(pair) != 2 or isinstance(edges[j], str):
            raise ValueError(f"edges[{j}] must be a pair (from, to), but it is {edges[j]!r}")
    if not pairs:
        raise ValueError("edges is empty; a path needs one edge at least")
    return tuple((_plain(a), _plain(b)) for a, b in pairs)


def _require_key(node: Any, name: str) -> None:
    try:
        hash(node)
    except TypeError:
        raise TypeError(
            f"{name}: nodes must be keys of a dictionary, such as numbers or strings, but "
            f"one is {node!r}"
        ) from None


def _plain(node: Any) -> Any:
    """Return NumPy's numbers as Python's."""
    return node.item() if isinstance(node, np.generic) else node
