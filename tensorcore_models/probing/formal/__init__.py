"""Ask formal questions about specifications, which SMT solvers answer (extra `smt`).

The term language is :mod:`tensorcore_models.bitvectors`, in which each accumulator states its `pass_term`; `encoding` builds
dot products from it. `solvers` runs the installed ones of bitwuzla, z3 and cvc5. `queries`, `orders` and `methods` hold the
questions; `published` has those of valpey-smt-formalization.

>>> import tensorcore_models as tcm
>>> from tensorcore_models.probing import formal
>>> v100 = tcm.MatrixEngine(tcm.FusedDotAdd(terms=4, fraction_bits=23), "fp16", "fp16", "fp32", "fp32")
>>> t4 = tcm.MatrixEngine(tcm.FusedDotAdd(terms=4, fraction_bits=24), "fp16", "fp16", "fp32", "fp32")
>>> print(formal.distinguishing_input(v100, t4).witness)  # doctest: +SKIP
"""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
