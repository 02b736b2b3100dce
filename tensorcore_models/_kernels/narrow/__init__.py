"""This package computes fused sums in 32-bit lanes."""
