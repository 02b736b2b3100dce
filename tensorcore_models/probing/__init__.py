"""Probe a matrix unit from outside: find the arithmetic that it computes.

`identify` finds the specification of any black box, with the evidence for it, and an engine that runs it. `characterise` runs
the probes of the literature on any engine and reports the properties that they show. `probe_vectors` gives, for an instruction,
inputs whose results follow by hand from its published parameters and from no others.
"""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
