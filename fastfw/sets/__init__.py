"""Feasible sets: linear minimisation oracles, structured vertices, diameters, projections.

One module per family. Learners take any object with ``shape``, ``lmo(direction)`` and ``diameter``.
Arguments that cannot be used raise a TypeError or a ValueError that names them.
"""

from fastfw.sets._convex import ConvexSet
from fastfw.sets._vertex import DenseVertex, EntriesVertex, Vertex
from fastfw.sets.balls import GroupL1Ball, GroupVertex, L2Ball, LInfBall, SignVertex
from fastfw.sets.birkhoff import BirkhoffPolytope, PermutationVertex
from fastfw.sets.flow import FlowPolytope, PathVertex
from fastfw.sets.ksparse import KSparsePolytope, KSparseVertex, RowKSparsePolytope
from fastfw.sets.l1 import L1Ball, L1Vertex
from fastfw.sets.nuclear import NuclearNormBall, RankOneVertex
from fastfw.sets.own import CompiledSet
from fastfw.sets.product import ProductSet, ProductVertex
from fastfw.sets.rows import RowL1Ball, RowVertex
from fastfw.sets.simplex import Simplex

__all__ = [
    "BirkhoffPolytope",
    "CompiledSet",
    "ConvexSet",
    "DenseVertex",
    "EntriesVertex",
    "FlowPolytope",
    "GroupL1Ball",
    "GroupVertex",
    "KSparsePolytope",
    "KSparseVertex",
    "L1Ball",
    "L1Vertex",
    "L2Ball",
    "LInfBall",
    "NuclearNormBall",
    "PathVertex",
    "PermutationVertex",
    "ProductSet",
    "ProductVertex",
    "RankOneVertex",
    "RowKSparsePolytope",
    "RowL1Ball",
    "RowVertex",
    "SignVertex",
    "Simplex",
    "Vertex",
]
