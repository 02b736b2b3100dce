"""Recorded tensors of two runs of a model: which module's bits differ first, why, and what becomes of it."""
