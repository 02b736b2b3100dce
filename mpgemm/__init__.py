"""FP32-accuracy GEMM recovered from low-precision matrix engines, with exact errors.

The stub `__init__.pyi` says in which module each public name is; a module is imported when one of its names is first used.
"""

from tensorcore_models.lazy import attach

#: Public modules; `kernels` and the modules named after a framework need an extra.
ON_REQUEST = ("inputs", "jax", "kernels", "testing", "torch", "traces", "triton")

__getattr__, __dir__, __all__ = attach(__name__, __file__, ON_REQUEST)
