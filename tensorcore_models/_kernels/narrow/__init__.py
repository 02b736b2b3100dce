"""Fused dot-add in 32-bit lanes."""
