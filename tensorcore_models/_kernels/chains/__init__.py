"""Chains of fused multiply-adds."""
