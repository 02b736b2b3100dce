"""Fused algorithms in 64-bit lanes."""
