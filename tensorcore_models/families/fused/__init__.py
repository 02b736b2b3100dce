"""FDA: products and c aligned to one exponent, summed and rounded once; and its generalisation with all parameters free."""

from .specification import FusedDotAdd, ParametricDotAdd, as_parametric

__all__ = ["FusedDotAdd", "ParametricDotAdd", "as_parametric"]
