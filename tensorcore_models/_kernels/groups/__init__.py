"""This package computes exact group sums with block scales."""
