"""Formal questions about specifications, answered by SMT solvers (extra `smt`).

The term language is :mod:`tensorcore_models.bitvectors`, in which each accumulator states its `pass_term`; `encoding` makes
dot products of it. `solvers` runs what is installed of bitwuzla, z3 and cvc5. `queries`, `orders` and `methods` ask;
`published` has the questions of valpey-smt-formalization.

>>> import tensorcore_models as tcm
>>> from tensorcore_models.probing import formal
>>> v100 = tcm.MatrixEngine(tcm.FusedDotAdd(terms=4, fraction_bits=23), "fp16", "fp16", "fp32", "fp32")
>>> t4 = tcm.MatrixEngine(tcm.FusedDotAdd(terms=4, fraction_bits=24), "fp16", "fp16", "fp32", "fp32")
>>> print(formal.distinguishing_input(v100, t4).witness)  # doctest: +SKIP
"""

from .encoding import Unencodable
from .methods import Way, beating_input, inside, outside
from .orders import order_invariance
from .queries import Verdict, carry_bits_needed, distinguishing_input, monotonicity_witness
from .solvers import BACKENDS, Answer, NoSolver, available_backends
from .witnesses import Contradiction, Witness

__all__ = [
    "BACKENDS",
    "Answer",
    "Contradiction",
    "NoSolver",
    "Unencodable",
    "Verdict",
    "Way",
    "Witness",
    "available_backends",
    "beating_input",
    "carry_bits_needed",
    "distinguishing_input",
    "inside",
    "monotonicity_witness",
    "order_invariance",
    "outside",
]
