"""This package runs single instructions of NVIDIA GPUs: it generates kernels from the catalogue and compiles and runs them."""
