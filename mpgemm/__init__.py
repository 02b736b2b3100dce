"""FP32-accuracy GEMM recovered from low-precision matrix engines, with exact errors.

The stub beside this file says where each public name is; a module is imported when one of its names is asked for.
"""

from tensorcore_models.lazy import attach

#: Public modules; those named after a framework and `kernels` need an extra.
ON_REQUEST = ("inputs", "jax", "kernels", "testing", "torch", "traces", "triton")

__getattr__, __dir__, __all__ = attach(__name__, __file__, ON_REQUEST)
