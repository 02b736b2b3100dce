"""Finds the specification of a black box and the evidence for it; :mod:`.run` describes the steps."""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
