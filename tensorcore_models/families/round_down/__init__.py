"""Holds FDRDA and GFDRDA of CDNA3, which sum products without c, then align the dot product with c and round both down."""

from .specification import FusedDotRoundDownAdd, GroupFusedDotRoundDownAdd

__all__ = ["FusedDotRoundDownAdd", "GroupFusedDotRoundDownAdd"]
