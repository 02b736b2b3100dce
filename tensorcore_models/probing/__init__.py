"""Probing: what does a matrix unit compute, seen from outside?

`identify` finds the specification of any black box and runs it as an engine, with the evidence; `characterise` runs
the probes of the literature on any engine and reports what it found; `probe_vectors` gives, for an instruction, inputs whose
results follow by hand from its published parameters and from no other ones.
"""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
