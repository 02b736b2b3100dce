"""Identification of a black box: its specification as an engine, with the evidence; see :mod:`.run` for how."""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
