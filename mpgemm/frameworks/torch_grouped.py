"""Computes torch's grouped products (`_grouped_mm`, `_scaled_grouped_mm`, `_scaled_grouped_mm_v2`), one product per group.

If an operand has two dimensions, `offs` holds the ends of its groups: rows of A (tokens of each expert), columns of B, or, if
both have two, values of k (the gradient of the experts' weights). Factors of rows and columns then follow group by group, and
so do block scales, which are padded to whole tiles for each group (PyTorch 2.13, GroupedBlas.cpp and its tests).
"""

from collections.abc import Iterator
from itertools import pairwise

import torch

from mpgemm.frameworks.torch_scaled import TorchOperands, refuse_contraction, scaled_product
from mpgemm.frameworks.torch_scales import TorchScale, scale_by_recipe, scale_by_type, tiled_size
from tensorcore_models import libraries


def _groups(op: str, a, b, offs: torch.Tensor | None) -> list[slice | None]:
    """Return the slice of each group, or None for each group of a batch. Raises ValueError for offs that do not fit."""
    dims = f"{op}: operands have {a.ndim} and {b.ndim} dimensions"
    if a.ndim == b.ndim == 3:
        if offs is not None or len(a) != len(b):
            raise ValueError(f"{dims}, got {len(a)} and {len(b)} groups, expected equal numbers of groups and no offs")
        return [None] * len(a)
    if offs is None:
        raise ValueError(f"{dims}, but offs is None: give the end of each group")
    if offs.dim() != 1 or offs.dtype != torch.int32:
        raise ValueError(f"{op}: offs is {offs.dtype} of shape {tuple(offs.shape)}, expected int32 of one dimension")
    ends = [0, *(int(x) for x in offs)]
    groups = len(b) if a.ndim == 2 and b.ndim == 3 else len(a) if a.ndim == 3 else len(offs)
    size = (b.shape[1] if a.ndim == 3 else a.shape[0]) if 3 in (a.ndim, b.ndim) else a.shape[1]
    if len(offs) != groups or any(x > y for x, y in pairwise(ends)) or ends[-1] > size:
        raise ValueError(
            f"{op}: offs is {ends[1:]}, expected {groups} ends of groups in ascending order, from 0 to at most {size}"
        )
    return [slice(start, stop) for start, stop in pairwise(ends)]


def _parts(a, b, groups: list[slice | None]) -> Iterator[tuple]:
    """Yield A and B of each group, as tensors or arrays."""
    for group, taken in enumerate(groups):
        if taken is None:
            yield a[group], b[group]
        elif a.ndim == b.ndim:
            yield a[:, taken], b[taken]
        else:
            yield (a[taken], b[group]) if a.ndim == 2 else (a[group], b[:, taken])


def _joined(found: list[torch.Tensor], a, b, groups: list[slice | None]) -> torch.Tensor:
    """Join the results of all groups; elements after the last end, which torch does not write, are 0."""
    if a.ndim == b.ndim:
        return torch.stack(found)
    out = torch.zeros((a.shape[-2], b.shape[-1]), dtype=found[0].dtype)
    for part, taken in zip(found, groups, strict=True):
        out[(taken,) if a.ndim == 2 else (slice(None), taken)] = part
    return out


def grouped_mm(run, a, b, offs=None, bias=None, out_dtype=None):
    """Compute `torch._grouped_mm`."""
    _refuse_bias("_grouped_mm", bias)
    groups = _groups("_grouped_mm", a, b, offs)
    found = [run.products("_grouped_mm", x[None], y[None], out_dtype)[0] for x, y in _parts(a, b, groups)]
    return _joined(found, a, b, groups)


def _refuse_bias(op: str, bias) -> None:
    if bias is not None:
        what = f"a bias in {op} is not known"
        raise libraries.Unknown(what, field="bias", known=("None",), advice="Add it to the result")


def scaled_grouped_mm(
    run, a, b, scale_a, scale_b, offs=None, bias=None, scale_result=None, out_dtype=None, use_fast_accum=False
):
    """Compute `torch._scaled_grouped_mm`, with factors of rows and columns or mx block scales."""
    scales = scale_by_type(scale_a), scale_by_type(scale_b)
    return _scaled(run, "_scaled_grouped_mm", a, b, scales, offs, bias, scale_result, out_dtype, use_fast_accum)


def scaled_grouped_mm_v2(
    run, a, b, scale_a, recipe_a, swizzle_a, scale_b, recipe_b, swizzle_b, offs=None, bias=None, out_dtype=None,
    contraction_dim=(), use_fast_accum=False,
):  # fmt: skip
    """Compute `torch.nn.functional.scaled_grouped_mm`, whose recipes name the rules of scaling."""
    op = "_scaled_grouped_mm_v2"
    refuse_contraction(op, contraction_dim)
    scales = scale_by_recipe(scale_a, recipe_a, swizzle_a, "a"), scale_by_recipe(scale_b, recipe_b, swizzle_b, "b")
    return _scaled(run, op, a, b, scales, offs, bias, None, out_dtype, use_fast_accum)


def _scaled(run, op: str, a, b, scales, offs, bias, scale_result, out_dtype, fast: bool) -> torch.Tensor:
    _refuse_bias(op, bias)
    operands, out_dtype = TorchOperands.of(a, b), out_dtype or torch.bfloat16
    groups = _groups(op, operands.a, operands.b, offs)
    parts = [TorchOperands(x, y, operands.formats) for x, y in _parts(operands.a, operands.b, groups)]
    whole = None if a.dim() == b.dim() else (a.shape[0], b.shape[-1])
    placed = [
        _scales_of_groups(op, side, scale, tensor.dim(), parts, whole and whole[at])
        for at, (side, scale, tensor) in enumerate(zip("ab", scales, (a, b), strict=True))
    ]
    found = [
        scaled_product(run, op, part, part.scaling(*pair), out_dtype, scale_result=scale_result, fast=fast)
        for part, *pair in zip(parts, *placed, strict=True)
    ]
    return _joined(found, a, b, groups)


def _scales_of_groups(op, side: str, scale: TorchScale, dims: int, parts, rows: int | None) -> list[TorchScale]:
    """Return the scales of each group; `rows` is the operand's number of rows (columns) if these are grouped."""
    if not scale.blocks and scale.rule is not None and scale.rule.name != "per row and column":
        raise ValueError(
            f"{op}: the rule of scale_{side} is {scale.rule.name!r}, expected one scale for each "
            f"{'row of A' if side == 'a' else 'column of B'}, or block scales (mx or nvfp4)"
        )
    if scale.blocks and not scale.tiled:
        raise ValueError(
            f"{op}: scale_{side} is not swizzled, expected block scales in tiles of 128 x 4: swizzle the scales"
        )
    sizes = [(part.a.shape[0] if side == "a" else part.b.shape[1], part.a.shape[1]) for part in parts]
    if dims == 3:
        factors = list(scale.factors) if len(scale.factors) == len(parts) else []
    else:
        along = scale.rule.along if scale.blocks and scale.rule is not None else None
        counts = [size if along is None else tiled_size(size, -(-k // along)) for size, k in sizes]
        flat = scale.factors.reshape(-1)
        ends = [sum(counts[:index]) for index in range(len(counts) + 1)]
        expected = ends[-1] if scale.blocks or rows is None else rows
        factors = [flat[start:stop] for start, stop in pairwise(ends)] if flat.size == expected else []
    if len(factors) != len(parts):
        raise ValueError(
            f"{op}: scale_{side} has shape {scale.factors.shape}, expected scales for groups of (rows or columns, k) = {sizes}"
        )
    whole = [None] * len(parts) if scale.whole is None else list(scale.whole.reshape(-1))
    if len(whole) != len(parts):
        raise ValueError(
            f"{op}: scale_{side} has {len(whole)} factors for whole groups, expected {len(parts)}, one for each group"
        )
    shape = (-1, 1) if side == "a" else (1, -1)
    return [
        scale._replace(factors=x if scale.blocks else x.reshape(shape), whole=w)
        for x, w in zip(factors, whole, strict=True)
    ]
