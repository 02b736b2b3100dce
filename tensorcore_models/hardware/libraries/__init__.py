"""Engines of library calls on a GPU or an NPU: PyTorch, CuPy, torch_npu, and the orders over k that explain their results."""
