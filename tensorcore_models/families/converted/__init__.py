"""Holds ConvertedDotAdd, which converts operands to another format and then computes another family's sum."""

from .specification import ConvertedDotAdd

__all__ = ["ConvertedDotAdd"]
