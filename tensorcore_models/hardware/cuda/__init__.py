"""Single instructions of NVIDIA GPUs: kernels generated from the catalogue, compiled, and run through the CUDA driver."""
