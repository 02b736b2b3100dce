"""Probing: what does a matrix unit compute, seen from outside?

`identify` finds the specification of any black box and runs it as an engine, with the evidence; `characterise` runs
the probes of the literature on any engine and reports what it found; `probe_vectors` gives, for an instruction, inputs whose
results follow by hand from its published parameters and from no other ones.
"""

from ..explanations.tree import Tree
from . import suites
from .characterise import Characterisation, characterise
from .identify import Aimed, Box, Identification, Solver, as_box, identify
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
