"""What library calls on a GPU or an NPU return: PyTorch, CuPy, torch_npu, and the orders over k that explain them."""
