"""Units that convert their operands before they multiply."""

from .specification import ConvertedDotAdd

__all__ = ["ConvertedDotAdd"]
