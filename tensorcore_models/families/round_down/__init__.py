"""FDRDA and GFDRDA of CDNA3: products are summed without c, then dot product and c are aligned and rounded down."""

from .specification import FusedDotRoundDownAdd, GroupFusedDotRoundDownAdd

__all__ = ["FusedDotRoundDownAdd", "GroupFusedDotRoundDownAdd"]
