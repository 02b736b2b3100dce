"""Emulated matrix products inside other libraries: PyTorch, Triton, JAX, and checks for tests of kernels."""
