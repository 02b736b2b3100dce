"""Probing: what does a matrix unit compute, seen from outside?

`characterise` runs the probes on any engine and reports what it found; `probe_vectors` gives, for an instruction, inputs whose
results follow by hand from its published parameters and from no other ones.
"""

from .characterise import Characterisation, characterise
from .vectors import ProbeSet, ProbeVector, probe_set, probe_vectors

__all__ = ["Characterisation", "ProbeSet", "ProbeVector", "characterise", "probe_set", "probe_vectors"]
