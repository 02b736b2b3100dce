"""Computes exact products, by compiled kernels (`product`) and by mpmath (`mp`, `mp_reference`), and `errors` against them."""
