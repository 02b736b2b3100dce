"""Holds FusedDotAdd, which aligns, sums and rounds once, and ParametricDotAdd, its generalisation with free parameters."""

from .specification import FusedDotAdd, ParametricDotAdd, as_parametric

__all__ = ["FusedDotAdd", "ParametricDotAdd", "as_parametric"]
