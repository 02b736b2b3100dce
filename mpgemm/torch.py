"""Runs PyTorch programs on emulated matrix units (extra "torch").

* ``with emulate("h100") as run: model(x)`` computes on the CPU every product of a model with the bits of a GPU's instructions;
  ``run.report()`` says which instructions ran.
* :func:`matmul` is one such product as an operation of torch.
* :func:`record` writes the operands that the layers of a model multiplied, for `mpgemm trace compare`.
* :func:`record_kernels` writes which kernels ran on a GPU; :func:`profiled_products` makes recipes for `emulate` from them.
* ``with recovered(model, method="bf16x9")`` runs FP32 products by kernels of a recovery method.

See docs/torch.md and docs/kernels_on_gpus.md.
"""

# ruff: noqa: F401  (what is imported here is the public interface)
from mpgemm.frameworks.extras import require

require("torch", "torch")

from mpgemm.frameworks.call_log import CallRow, OperationRow, Report, Site  # noqa: E402
from mpgemm.frameworks.model_products import profiled_products  # noqa: E402
from mpgemm.frameworks.multiplier import Product  # noqa: E402
from mpgemm.frameworks.torch_kernels import record_kernels  # noqa: E402
from mpgemm.frameworks.torch_mode import Emulation, emulate  # noqa: E402
from mpgemm.frameworks.torch_ops import matmul  # noqa: E402
from mpgemm.frameworks.torch_recorder import record  # noqa: E402
from mpgemm.kernels.torch_mode import RecoveredProducts, recovered  # noqa: E402
