"""Compiled kernels; the public functions that use them validate their arguments."""
