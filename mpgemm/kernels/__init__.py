"""Provides Triton kernels that recover FP32 on matrix units of lower precision, with predicted bits (extra "kernels").

:func:`matmul` multiplies torch tensors on their device, and :func:`plan` prepares a product once for many calls. :func:`recipe`
returns the row of :func:`mpgemm.recovered_gemm` that predicts every bit. See docs/kernels_on_gpus.md.
"""

from typing import TYPE_CHECKING, Any

from mpgemm.frameworks.extras import require

if TYPE_CHECKING:
    from mpgemm.kernels.calls import MatmulPlan, plan
    from mpgemm.kernels.configurations import Configuration
    from mpgemm.kernels.multiply import matmul, split
    from mpgemm.kernels.products import SplitTensor
    from mpgemm.kernels.recipes import recipe

__all__ = ["Configuration", "MatmulPlan", "SplitTensor", "matmul", "plan", "recipe", "split"]
_PLACES = {
    "Configuration": "configurations", "MatmulPlan": "calls", "SplitTensor": "products", "plan": "calls", "recipe": "recipes",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    """Return a public name, imported on first use, because compiling and the gate need no torch."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    require("torch", "kernels")
    from importlib import import_module

    globals()[name] = found = getattr(import_module(f"mpgemm.kernels.{_PLACES.get(name, 'multiply')}"), name)
    return found
