"""Exact products, by compiled kernels in `product` and by mpmath in `mp` and `mp_reference`; the `errors` of computed ones."""
