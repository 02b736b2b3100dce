"""This package computes pairwise sums of float32 operations."""
