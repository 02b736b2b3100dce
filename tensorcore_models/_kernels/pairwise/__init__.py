"""Pairwise sums of float32 operations."""
