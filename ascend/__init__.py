"""Ascend matrix units: chips, block planning, the tile schedule and its two interpreters, SGEMM-cube."""

from tensorcore_models.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
