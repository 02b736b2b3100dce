"""This package runs chains of fused multiply-adds."""
