"""This package computes fused sums in 64-bit lanes."""
