from ..explanations.tree import Tree
from . import suites
from .identify import Aimed, Box, Identification, Solver, as_box, identify
from .suites.own import Characterisation, characterise
from .tree_inputs import summation_tree
from .vectors import ProbeSet, ProbeVector, probe_set, probe_vectors

__all__ = [
    "Aimed",
    "Box",
    "Characterisation",
    "Identification",
    "ProbeSet",
    "ProbeVector",
    "Solver",
    "Tree",
    "as_box",
    "characterise",
    "identify",
    "probe_set",
    "probe_vectors",
    "suites",
    "summation_tree",
]
