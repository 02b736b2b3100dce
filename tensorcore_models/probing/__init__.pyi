from ..explanations.tree import Tree as Tree
from . import suites as suites
from .identify import (
    Aimed as Aimed,
    Box as Box,
    Identification as Identification,
    Solver as Solver,
    as_box as as_box,
    identify as identify,
)
from .suites.package_suite import Characterisation as Characterisation, characterise as characterise
from .tree_inputs import summation_tree as summation_tree
from .vectors import (
    ProbeSet as ProbeSet,
    ProbeVector as ProbeVector,
    probe_set as probe_set,
    probe_vectors as probe_vectors,
)
