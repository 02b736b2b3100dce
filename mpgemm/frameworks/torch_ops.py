"""Defines matrix products on emulated units as operations of torch, with autograd and shapes for `torch.compile`."""

import torch

from mpgemm.frameworks.multiplier import Multiplier, Product
from mpgemm.frameworks.torch_tensors import format_of, to_array, to_tensor


@torch.library.custom_op("mpgemm::gemm", mutates_args=())
def gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    engine: str,
    k_order: str,
    promote_every: int | None,
    input_rounding: str | None,
    out_dtype: torch.dtype,
) -> torch.Tensor:
    """Compute A B for a batch of matrices, shapes (batch, m, k) and (batch, k, n)."""
    unit = Multiplier(engine, k_order=k_order, promote_every=promote_every, input_rounding=input_rounding)
    arrays = to_array(a, "a"), to_array(b, "b")
    a_format, b_format = format_of(a.dtype, "a"), format_of(b.dtype, "b")
    out_format = format_of(out_dtype, "out_dtype")
    product = Product("gemm", a.shape[1], a.shape[2], b.shape[2], a_format, b_format, out_format)
    out = torch.empty(a.shape[0], a.shape[1], b.shape[2], dtype=out_dtype)
    for index, pair in enumerate(zip(*arrays, strict=True)):
        out[index] = to_tensor(unit.multiply(*pair, product)).to(out_dtype)
    return out


@gemm.register_fake
def _shape(a, b, engine, k_order, promote_every, input_rounding, out_dtype):
    return a.new_empty(a.shape[0], a.shape[1], b.shape[2], dtype=out_dtype)


def _keep(ctx, inputs, output):
    a, b, *ctx.options = inputs
    ctx.save_for_backward(a, b)


def _backward(ctx, grad):
    """Return gradients on the same engine, in the types of the operands."""
    a, b = ctx.saved_tensors
    *options, _ = ctx.options
    grad = grad.to(a.dtype)
    grad_a = gemm(grad, b.transpose(1, 2), *options, a.dtype) if ctx.needs_input_grad[0] else None
    grad_b = gemm(a.transpose(1, 2), grad, *options, b.dtype) if ctx.needs_input_grad[1] else None
    return grad_a, grad_b, None, None, None, None, None


gemm.register_autograd(_backward, setup_context=_keep)


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    engine: str = "h100",
    *,
    k_order: str = "sequential",
    promote_every: int | None = None,
    input_rounding: str | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Compute A B on an emulated unit, as the operation ``torch.ops.mpgemm.gemm``.

    Parameters
    ----------
    a, b : Tensor, shapes (m, k) and (k, n), or (batch, m, k) and (batch, k, n)
        Operands.
    engine : str
        Device, architecture, instruction or "ieee", as for :func:`emulate`.
    k_order, promote_every, input_rounding : optional
        Arguments of :meth:`tensorcore_models.Instruction.gemm`.
    out_dtype : torch.dtype, optional
        Type of the result, by default a's type, and bfloat16 for 8-bit operands.

    Returns
    -------
    Tensor
        Sums of the engine, rounded once to the output's type.

    Raises
    ------
    ValueError
        If shapes do not fit, the engine does not exist, or values are not representable and `input_rounding` is None.
    TypeError
        If no matrix unit takes the types.
    """
    if a.dim() != b.dim() or a.dim() not in (2, 3) or a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise ValueError(
            f"a is {tuple(a.shape)} and b is {tuple(b.shape)}, expected (m, k) and (k, n), or both with the same batch"
        )
    if out_dtype is None:
        out_dtype = torch.bfloat16 if a.element_size() == 1 else a.dtype
    options = (engine, k_order, promote_every, input_rounding, out_dtype)
    if a.dim() == 2:
        return gemm(a[None], b[None], *options)[0]
    return gemm(a, b, *options)
