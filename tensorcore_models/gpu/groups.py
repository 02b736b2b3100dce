"""Plans exact sums of groups with block scales, and packs their operands on the device as bytes."""

import math
from typing import Any

import numpy as np

from ..families.base import SumAlgorithm
from ..formats import Format
from ..formats.rounding import decode
from ..kernels.lowering import Lowered
from .launches import TritonLaunch, view_of
from .layouts import tiled
from .plans import ModePlan

#: Bits of a group's facts that say which of its operands are nonzero.
_MOST_GROUP = 16


def _integers(fmt: Format) -> np.ndarray | None:
    """Return the values of all encodings in multiples of the smallest number; None if a signed byte does not hold them."""
    if fmt.bits > 8 or fmt.specials != "finite":
        return None
    values = decode(np.arange(1 << fmt.bits, dtype=fmt.container), fmt, np.dtype(np.float64))
    units = values * 2.0**-fmt.quantum_exponent
    return units.astype(np.int8) if np.abs(units).max() < 128 else None


def group_plan(low: Lowered, mode: Any, integers: bool = False) -> ModePlan | None:
    """Return the plan of exact sums of groups, scaled and fused, in FP64 or in integers; None for other units."""
    (algorithm, spec), formats = low.form, low.floating
    if algorithm is not SumAlgorithm.GROUP_SUM or formats is None or low.scale_format is None:
        return None
    a, b, c, d = formats
    rules = (
        spec.zero_operand,
        spec.zero_c,
        spec.subnormal_c,
        spec.negative_underflow,
        spec.scaled_zero,
        spec.output_rounding,
    )
    tables = _integers(a), _integers(b)
    if any(table is None for table in tables) or (c.name, d.name) != ("fp32", "fp32"):
        return None
    if (
        rules != ("skip", "skip", "raw", "positive", "skip_zero_products", "rz")
        or spec.group % 4
        or spec.group > _MOST_GROUP
    ):
        return None
    # A scaled sum is below 2^growth times 2 to its scales' exponents; the sum of all groups and c must stay on a window of
    # 2^52 units.
    largest = math.prod(int(np.abs(table.astype(int)).max()) for table in tables if table is not None)
    growth = (largest * spec.group).bit_length() + a.quantum_exponent + b.quantum_exponent + 2
    if spec.fraction_bits + growth + (spec.terms // spec.group + 1).bit_length() > 50:
        return None
    floor = -900 if spec.exponent_floor is None else spec.exponent_floor
    units = spec.fraction_bits + a.quantum_exponent + b.quantum_exponent - 2 * low.scale_format.fraction_bits
    constants = {
        "TERMS": spec.terms, "GROUP": spec.group, "FRACTION": spec.fraction_bits, "FLOOR": floor,
        "SHIFT": units if integers else None,
    }  # fmt: skip
    return ModePlan(mode, low, constants, spec.terms, None, None, ("fp32", "fp32"), spec.terms)


def run_groups(unit: Any, a, b, c, every: int | None, scales):
    """Return the encodings of D and the flags of tiles, as :meth:`tensorcore_models.gpu.products.DeviceUnit.chain` does."""
    import torch

    plan, (batch, m, k), n = unit.plan, a.shape, b.shape[1]
    padded = -(-k // plan.terms) * plan.terms
    sides = [_operand(unit, i, codes, of, padded) for i, (codes, of) in enumerate(zip((a, b), scales, strict=True))]
    (x, x_facts, x_scales, x_special), (y, y_facts, y_scales, y_special) = sides
    down, across = x.shape[1], y.shape[1]
    out = torch.empty((batch, m, n), dtype=torch.int32, device=a.device)
    flags = torch.empty(batch * down * across, dtype=torch.int32, device=a.device)
    strides = (0, 0, 0) if c is None else c.stride()
    chain = padded if every is None else every
    arguments = {
        "a": view_of(x), "a_facts": view_of(x_facts), "a_scales": view_of(x_scales), "b": view_of(y),
        "b_facts": view_of(y_facts), "b_scales": view_of(y_scales), "c": None if c is None else view_of(c, "fp32"),
        "out": view_of(out, "fp32"), "flags": view_of(flags), "m": m, "n": n, "steps": padded // plan.terms,
        "chain": chain // plan.terms, "row_tiles": down, "column_tiles": across, "c_batch": strides[0], "c_row": strides[1],
        "c_column": strides[2],
    }  # fmt: skip
    constants = {**plan.constants, "PROMOTES": every is not None, "EACH": unit.each, "WARPS": unit.warps}
    unit.launch(TritonLaunch("group_sums", arguments, constants, batch * down * across, math.prod(unit.warps)))
    return out, flags | (x_special[:, :, None] | y_special[:, None, :]).flatten().to(torch.int32)


def _operand(unit: Any, side: int, codes, scales, padded: int):
    """Return bytes in words, facts of groups, scales in FP64, [batch][tile][..][row], and whether tiles have a scale that is
    NaN."""
    import torch

    plan, low = unit.plan, unit.plan.low
    fmt, of_scale, tile, group = (
        (low.a_format, low.b_format)[side],
        low.scale_format,
        unit.tile[side],
        plan.constants["GROUP"],
    )
    rows, device = codes.shape[1], codes.device
    table = torch.from_numpy(_integers(fmt)).to(device)
    values = table[codes.to(torch.int64) & ((1 << fmt.bits) - 1)]
    values = torch.nn.functional.pad(values, (0, padded - codes.shape[2], 0, -rows % tile)).contiguous()
    all_scales = np.arange(1 << of_scale.bits, dtype=of_scale.container)
    numbers = torch.from_numpy(decode(all_scales, of_scale, np.dtype(np.float64))).to(device)
    each = numbers[scales.to(torch.int64) & ((1 << of_scale.bits) - 1)].repeat_interleave(
        low.block_size // group, dim=2
    )
    each = torch.nn.functional.pad(each[:, :, : padded // group], (0, 0, 0, -rows % tile))
    each = torch.nn.functional.pad(each, (0, padded // group - each.shape[2]))
    special = each.isnan()
    each = each.nan_to_num(0.0)
    # The exponent of an encoding; subnormal numbers have that of the smallest normal number.
    exponents = torch.frexp(each)[1].to(torch.int32) - 1
    exponents = exponents.clamp(min=of_scale.emin)
    bits = (values != 0).reshape(*values.shape[:2], -1, group).to(torch.int32)
    bits = (bits << torch.arange(group, dtype=torch.int32, device=device)).sum(3, dtype=torch.int32)
    facts = (exponents << 16) | torch.where(each == 0, 0, bits)
    if plan.constants["SHIFT"] is not None:
        each = torch.ldexp(each, of_scale.fraction_bits - exponents).to(torch.int32)
    elif side == 0:
        each = each * 2.0 ** (low.a_format.quantum_exponent + low.b_format.quantum_exponent)
    special = special.reshape(codes.shape[0], -1, tile * special.shape[2]).any(2)
    return *(tiled(x, tile) for x in (values.view(torch.int32), facts, each)), special
