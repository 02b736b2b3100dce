"""Refuses arguments of emulated products and convolutions that torch itself refuses.

These are types that differ, shapes that do not fit, and bad parameters of convolutions.
"""

import torch

from mpgemm.frameworks.torch_convolution import Geometry


def check_product(op: str, a: torch.Tensor, b: torch.Tensor, dims: int, c: torch.Tensor | None = None) -> None:
    """Refuse operands and addend that fit no product of matrices (`dims` 2) or batches (3), with ValueError, TypeError."""
    shapes = f"{tuple(a.shape)} and {tuple(b.shape)}"
    if a.dim() != dims or b.dim() != dims:
        raise ValueError(f"{op}: operands have shapes {shapes}, expected {dims} dimensions each")
    if a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
        batch = "the same batch and " if dims == 3 else ""
        raise ValueError(
            f"{op}: operands have shapes {shapes}, expected {batch}as many columns of the first as rows of the second"
        )
    others = [b, *([] if c is None else [c])]
    if any(x.dtype != a.dtype for x in others):
        types = ", ".join(str(x.dtype) for x in (a, *others))
        raise TypeError(f"{op}: operands (and the addend) are {types}, expected one type: convert with .to()")


def check_out(op: str, out: torch.Tensor, result: torch.Tensor, in_place: bool) -> None:
    """Refuse a tensor `out` of another type, or in place of another shape, than the result, with ValueError, TypeError."""
    if out.dtype != result.dtype:
        raise TypeError(f"{op}: out is {out.dtype}, expected the result's type {result.dtype}")
    if in_place and out.shape != result.shape:
        raise ValueError(
            f"{op}: the tensor that is written has shape {tuple(out.shape)}, expected the result's shape {tuple(result.shape)}"
        )


def check_convolution(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, g: Geometry, transposed: bool
) -> None:
    """Refuse operands and parameters that fit no convolution, with ValueError, TypeError."""
    if any(each.dtype != x.dtype for each in (weight, bias) if each is not None):
        raise TypeError(
            f"convolution: the input is {x.dtype}, the weight {weight.dtype}, the bias "
            f"{None if bias is None else bias.dtype}, expected one type: convert with .to()"
        )
    for values, name, least in ((g.stride, "stride", 1), (g.dilation, "dilation", 1), (g.padding, "padding", 0)):
        if min(values, default=least) < least:
            raise ValueError(f"convolution: {name} is {list(values)}, expected numbers of at least {least}")
    inputs, outputs = (weight.shape[0], weight.shape[1] * g.groups) if transposed else (
        weight.shape[1] * g.groups, weight.shape[0])  # fmt: skip
    if g.groups < 1 or weight.shape[0] % g.groups or x.shape[1] != inputs:
        raise ValueError(
            f"convolution: got {x.shape[1]} channels of the input and a weight of {tuple(weight.shape)} in {g.groups} groups, "
            f"expected {inputs} channels, and a first dimension of the weight that the number of groups divides"
        )
    if bias is not None and bias.shape != (outputs,):
        raise ValueError(f"convolution: the bias has shape {tuple(bias.shape)}, expected ({outputs},)")
    if transposed:
        _check_output_padding(g)
        return
    for size, kernel, padding, dilation in zip(x.shape[2:], weight.shape[2:], g.padding, g.dilation, strict=True):
        if size + 2 * padding < dilation * (kernel - 1) + 1:
            raise ValueError(
                f"convolution: got a kernel of size {dilation * (kernel - 1) + 1} on a padded input of size "
                f"{size + 2 * padding}, expected a kernel that is not larger than the padded input"
            )


def _check_output_padding(g: Geometry) -> None:
    for extra, stride, dilation in zip(g.output_padding, g.stride, g.dilation, strict=True):
        if not 0 <= extra < max(stride, dilation):
            raise ValueError(
                f"convolution: output_padding is {extra}, expected less than the stride {stride} or the dilation {dilation}"
            )
