"""Shortest paths in a graph without cycles, by one pass over its edges; costs of any sign."""

from __future__ import annotations

import numpy as np

from ._jit import kernel

__all__ = ["shortest_path"]


@kernel()
def shortest_path(cost, order, tail, head, source, sink, distance, choice, path):
    """Path of least total cost from source to sink; returns its number of edges.

    `order` has the edges that lie on some path, edges out of later nodes first, lower numbers first
    among those out of one node, so that the first of several best edges is taken. Distances
    to the sink go to `distance`, the edge taken at each node to `choice`, the path's edges from
    the source on to `path`.
    """
    distance[:] = np.inf
    distance[sink] = 0.0
    for i in range(order.shape[0]):
        e = order[i]
        through = cost[e] + distance[head[e]]
        if through < distance[tail[e]]:
            distance[tail[e]] = through
            choice[tail[e]] = e
    length = 0
    node = source
    while node != sink:
        path[length] = choice[node]
        node = head[choice[node]]
        length += 1
    return length
