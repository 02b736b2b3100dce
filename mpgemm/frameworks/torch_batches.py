"""Computes products of a batch of matrices in the torch mode, for arrays and for tensors that stay on a GPU."""

import copy
from typing import Any

import numpy as np
import torch
from torch.utils._pytree import tree_map_only

from mpgemm.frameworks.multiplier import Multiplier, Product
from mpgemm.frameworks.torch_tensors import to_tensor
from tensorcore_models import libraries
from tensorcore_models.formats.operands import operand_bits, values_of_bits
from tensorcore_models.formats.sums import add_rounded, scale_rounded


def multiplied(each: Multiplier, a: torch.Tensor, b: torch.Tensor, product: Product) -> torch.Tensor:
    """Return A B for a batch, in the format of the unit's sums; the multiplier has no recipe for the product."""
    engine: Any = each.engine_for(product.a_format, product.b_format, product.accumulator)
    return engine.gemm(
        a, b, input_rounding=each.input_rounding, input_saturate=each.input_saturate, k_order=each.k_order,
        promote_every=each.promote_every,
    )  # fmt: skip


def from_host(run: Any, handler: Any, args, options) -> torch.Tensor:
    """Return a product of GPU tensors with scales, of groups or of integers; the host scales, the GPU runs long chains.

    run: The emulation.
    handler: Function that computes the product from tensors on the CPU.
    args: Arguments of the operation, with a tensor on the GPU first.
    """
    near = copy.copy(run)
    near.multipliers = [each.beside(args[0]) for each in run.multipliers]
    args_there, options = tree_map_only(torch.Tensor, torch.Tensor.cpu, (args, options))
    return handler(near, *args_there, **options).to(args[0].device)


def ended(d: torch.Tensor, c: torch.Tensor | None, alpha: float, beta: float) -> torch.Tensor | None:
    """Return RN(RN(alpha d) + RN(beta c)) with all numbers in FP32, or None if d is not FP32, so that the host finishes it."""
    if d.dtype != torch.float32:
        return None
    d = d * float(np.float32(alpha))
    return d if c is None else d + c.to(torch.float32) * float(np.float32(beta))


def run_batch(each: Multiplier, *, arrays, product: Product, added, alpha, beta, out_dtype):
    """Return the results, and the products before c is added, both in the output's type."""
    pairs = list(zip(*arrays, strict=True))
    sums = [each.multiply(x, y, product) for x, y in pairs]
    plain = [to_tensor(d).to(out_dtype) for d in sums]
    if alpha != 1 or added is not None:
        if each.recipe_for(product) is not None:
            raise libraries.Unknown(
                f"{product.op}: a library's way to add a bias or scale is not known", field="bias", known=("none",),
                advice="Multiply first and add afterwards",
            )  # fmt: skip
        engine = each.engine_for(product.a_format, product.b_format, product.accumulator)
        cs = [None] * len(sums) if added is None else added
        ended = [to_tensor(_end(d, engine, alpha, beta, c)).to(out_dtype) for d, c in zip(sums, cs, strict=True)]
    else:
        ended = plain
    shape = (len(pairs), product.m, product.n)
    out = ended[0][None] if len(ended) == 1 else torch.stack(ended) if ended else torch.zeros(shape, dtype=out_dtype)
    return out, plain


def _end(d: np.ndarray, engine, alpha: float, beta: float, c: np.ndarray | None) -> np.ndarray:
    """Return RN(RN(alpha d) + RN(beta c)) in the format of the sums, alpha and beta in FP32 as torch and cuBLAS take them."""
    fmt = engine.formats[3]
    if fmt.name != "fp64":
        alpha, beta = float(np.float32(alpha)), float(np.float32(beta))
    bits = scale_rounded(operand_bits(d, fmt, None, "d"), float(alpha), fmt, fmt)
    if c is not None:
        bits = add_rounded(bits, scale_rounded(operand_bits(c, fmt, "rne", "c"), float(beta), fmt, fmt), fmt)
    return values_of_bits(bits, fmt)
