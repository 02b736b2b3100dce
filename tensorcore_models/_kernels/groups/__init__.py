"""Exact group sums with block scales."""
