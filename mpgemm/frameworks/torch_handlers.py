"""Expresses torch's matrix operations, convolutions, scaled and grouped products as products of an emulation (`run`)."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from mpgemm.frameworks import torch_convolution as convolution
from mpgemm.frameworks import torch_grouped as grouped
from mpgemm.frameworks import torch_scaled as scaled
from mpgemm.frameworks.torch_checks import check_convolution, check_product

aten = torch.ops.aten


def _mm(run: Any, a, b, out_dtype=None):
    check_product("mm", a, b, 2)
    return run.products("mm", a[None], b[None], out_dtype)[0]


def _bmm(run: Any, a, b, out_dtype=None):
    check_product("bmm", a, b, 3)
    return run.products("bmm", a, b, out_dtype)


def _addmm(run: Any, c, a, b, out_dtype=None, *, beta=1, alpha=1):
    check_product("addmm", a, b, 2, None if out_dtype else c)
    c = c.expand(a.shape[0], b.shape[1])
    return run.products("addmm", a[None], b[None], out_dtype, c[None], alpha=alpha, beta=beta)[0]


def _baddbmm(run: Any, c, a, b, out_dtype=None, *, beta=1, alpha=1):
    check_product("baddbmm", a, b, 3, None if out_dtype else c)
    c = c.expand(a.shape[0], a.shape[1], b.shape[2])
    return run.products("baddbmm", a, b, out_dtype, c, alpha=alpha, beta=beta)


def _geometry(x: torch.Tensor, how: Sequence) -> tuple[convolution.Geometry, bool]:
    """Return the geometry of a convolution, and whether it is transposed, from torch's arguments after the bias."""
    stride, padding, dilation, transposed, output_padding, groups = how
    return convolution.Geometry.of(x.dim() - 2, stride, padding, dilation, output_padding, groups), transposed


def _convolution(run: Any, x, weight, bias, *how):
    geometry, transposed = _geometry(x, how)
    check_convolution(x, weight, bias, geometry, transposed)
    multiply = partial(run.products, "convolution", kind="convolution")
    if transposed:
        sizes = convolution.transposed_sizes(x, weight, geometry)
        out = convolution.input_gradient(x, weight, sizes, geometry, multiply)
    else:
        out = convolution.forward(x, weight, geometry, multiply)
    return out.contiguous() if bias is None else out + bias.reshape(-1, *(1,) * (x.dim() - 2))


def _convolution_backward(run: Any, y, x, weight, _bias_sizes, *how):
    *settings, output_mask = how
    geometry, transposed = _geometry(x, settings)
    kernel = weight.shape[2:]
    op = "convolution_backward, "
    into_x, into_w = (partial(run.products, op + name, kind="convolution") for name in ("input", "weight"))
    grad_x = grad_w = grad_b = None
    if output_mask[0]:
        if transposed:  # with output padding more positions fit
            inside: tuple[Any, ...] = (..., *(slice(size) for size in x.shape[2:]))
            grad_x = convolution.forward(y, weight, geometry, into_x)[inside]
        else:
            grad_x = convolution.input_gradient(y, weight, x.shape[2:], geometry, into_x)
    if output_mask[1]:
        pair = (y, x) if transposed else (x, y)
        grad_w = convolution.weight_gradient(*pair, kernel, geometry, into_w)
    if output_mask[2]:
        grad_b = y.sum((0, *range(2, y.dim())))
    return grad_x, grad_w, grad_b


#: Products with scales, of groups and of integers.
SCALED: dict[str, Callable] = {
    "_scaled_mm": scaled.scaled_mm,
    "_scaled_mm_v2": scaled.scaled_mm_v2,
    "_grouped_mm": grouped.grouped_mm,
    "_scaled_grouped_mm": grouped.scaled_grouped_mm,
    "_scaled_grouped_mm_v2": grouped.scaled_grouped_mm_v2,
    "_int_mm": scaled.int_mm,
}
#: Functions (emulation, arguments) -> tensors that express operations of torch by products.
HANDLERS: dict[Any, Callable] = {
    aten.mm: _mm,
    aten.bmm: _bmm,
    aten.addmm: _addmm,
    aten.addmm_: _addmm,
    aten.baddbmm: _baddbmm,
    aten.baddbmm_: _baddbmm,
    **{getattr(aten, name): handler for name, handler in SCALED.items() if hasattr(aten, name)},
    aten.convolution: _convolution,
    aten.convolution_backward: _convolution_backward,
}
