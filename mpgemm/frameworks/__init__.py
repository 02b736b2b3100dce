"""Emulated matrix products inside other libraries: PyTorch, Triton, JAX."""
