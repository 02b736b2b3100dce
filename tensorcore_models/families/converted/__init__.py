"""ConvertedDotAdd: operands are converted to another format first; the rest is another family's."""

from .specification import ConvertedDotAdd

__all__ = ["ConvertedDotAdd"]
