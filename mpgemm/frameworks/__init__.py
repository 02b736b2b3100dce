"""Emulates matrix products inside programs of other libraries: PyTorch, Triton, JAX."""
