"""Families of accumulators, one folder each."""
