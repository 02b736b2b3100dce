"""Plans sums whose products are truncated one by one, and lays out their operands on the device."""

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..families.base import SumAlgorithm
from ..families.fused.steps import part_masks
from ..formats import Format
from ..formats.rounding import decode
from ..kernels.lowering import Lowered
from .launches import TritonLaunch, view_of
from .layouts import tiled
from .plans import ModePlan

#: Exponent of zeros, below that of every product.
_LOWEST = -2048
#: Number of products of a step whose signs a word holds.
_MOST_SIGNS = 16


def aligned_plan(low: Lowered, mode: Any) -> ModePlan | None:
    """Return the plan of sums that truncate each product, or each product of parts of operands; None for other units."""
    (algorithm, spec), formats = low.form, low.floating
    if algorithm not in (SumAlgorithm.LATE, SumAlgorithm.PARAMETRIC) or formats is None or low.scale_format is not None:
        return None
    a, b, c, d = formats
    aligned = (spec.alignment, spec.sticky, spec.normalise_each_add, spec.integer_bits, spec.product_overflow_exponent)
    plain = aligned == ("global", False, False, None, None) and spec.output_fraction_bits is None
    zeros = (spec.zero_operand, spec.zero_c, spec.subnormal_c) == ("skip", "skip", "raw")
    bits = spec.fraction_bits
    if not (plain and zeros) or (c.name, d.name) != ("fp32", "fp32") or spec.flush_inputs or bits is None:
        return None
    addend = _addend(spec)
    room = bits + 2 + spec.terms.bit_length() <= 52  # all products below 2^53 units, each below 2^51 on its window
    if addend is None or not room or (addend == "exact" and spec.terms > _MOST_SIGNS) or not all(map(_read, (a, b))):
        return None
    ieee = spec.zero_sign == "ieee"
    constants = {
        "TERMS": spec.terms, "PARTS": max(1, len(spec.significand_parts)), "FRACTION": bits,
        "FLOOR": -900 if spec.exponent_floor is None else spec.exponent_floor, "NORMALISED": spec.normalised_products,
        "ODD": spec.alignment_rounding == "ro", "ADDEND": addend, "ZERO": (ieee, spec.terms + spec.padding),
    }  # fmt: skip
    return ModePlan(mode, low, constants, spec.terms, None, None, ("fp32", "fp32"), spec.terms)


def _addend(spec: Any) -> str | None:
    """Return how c is added, if the kernel has the unit's roundings and signs for it; None otherwise."""
    rounding = spec.alignment_rounding, spec.output_rounding, spec.late_rounding
    rules = spec.negative_underflow, spec.zero_sign, spec.flush_c, spec.flush_outputs
    if spec.c_position == "early" and rounding[:2] == ("rz", "rz") and rules == ("positive", "positive", False, False):
        return "early"
    if spec.c_position == "late" and rounding == ("ro",) * 3 and rules[1:] == ("positive", False, False):
        return "late"
    exact = rounding[:2] == ("rz", "rne") and rules in (
        ("negative", "majority", True, True),
        ("negative", "ieee", True, True),
    )
    return "exact" if spec.c_position == "exact" and exact else None


def _read(fmt: Format) -> bool:
    return fmt.has_fields and fmt.precision <= 24 and fmt.exponent_bits <= 8


def run_aligned(unit: Any, a, b, c, every: int | None, scales):
    """Return the encodings of D and the flags of tiles, as :meth:`tensorcore_models.gpu.products.DeviceUnit.chain` does."""
    import torch

    plan, (batch, m, k), n = unit.plan, a.shape, b.shape[1]
    padded = -(-k // plan.terms) * plan.terms
    (x, x_special), (y, y_special) = (_operand(unit, side, codes, padded) for side, codes in enumerate((a, b)))
    down, across = x_special.shape[1], y_special.shape[1]
    out = torch.empty((batch, m, n), dtype=torch.int32, device=a.device)
    flags = torch.empty(batch * down * across, dtype=torch.int32, device=a.device)
    strides = (0, 0, 0) if c is None else c.stride()
    chain = padded if every is None else every
    arguments = {
        **{f"a{name}": view_of(part) for name, part in x.items()}, **{f"b{name}": view_of(part) for name, part in y.items()},
        "c": None if c is None else view_of(c, "fp32"), "out": view_of(out, "fp32"), "flags": view_of(flags), "m": m, "n": n,
        "steps": padded // plan.terms, "chain": chain // plan.terms, "row_tiles": down, "column_tiles": across,
        "c_batch": strides[0], "c_row": strides[1], "c_column": strides[2],
    }  # fmt: skip
    constants = {**plan.constants, "PROMOTES": every is not None, "EACH": unit.each, "WARPS": unit.warps}
    unit.launch(TritonLaunch("aligned_sums", arguments, constants, batch * down * across, math.prod(unit.warps)))
    return out, flags | (x_special[:, :, None] | y_special[:, None, :]).flatten().to(torch.int32)


def _operand(unit: Any, side: int, codes, padded: int):
    """Return parts of values, exponents and facts under the ends of their names, and whether tiles have infinities or NaN."""
    import torch

    low, constants, tile = unit.plan.low, unit.plan.constants, unit.tile[side]
    fmt, widths = (low.a_format, low.b_format)[side], low.accumulator.significand_parts
    values = _values(fmt, codes)
    values = torch.nn.functional.pad(values, (0, padded - codes.shape[2], 0, -codes.shape[1] % tile))
    strange = ~values.isfinite()
    values = torch.where(strange, 0.0, values)
    exponents = (torch.frexp(values)[1].to(torch.int32) - 1).clamp(min=fmt.emin)
    parts = [values]
    if widths:
        unit_of_last = torch.ldexp(torch.ones_like(values), exponents - (fmt.precision - 1))
        significands = (values.abs() / unit_of_last).to(torch.int64)
        signed = unit_of_last.copysign(values)
        parts = [(significands & mask).to(torch.float64) * signed for mask in part_masks(fmt.precision, widths)]
    exponents = torch.where(values == 0, _LOWEST, exponents)
    facts = torch.zeros(*values.shape[:2], padded // constants["TERMS"], dtype=torch.int32, device=codes.device)
    if constants["ADDEND"] == "exact":
        steps = values.reshape(*facts.shape, -1)
        places = torch.arange(steps.shape[3], dtype=torch.int32, device=codes.device)
        each = steps.signbit().to(torch.int32) | ((steps != 0).to(torch.int32) << 16)
        facts = (each << places).sum(3, dtype=torch.int32)
    planes = torch.stack(parts, 3).flatten(2)
    special = strange.reshape(codes.shape[0], -1, tile * padded).any(2)
    return {key: tiled(x, tile) for key, x in (("", planes), ("_exponents", exponents), ("_facts", facts))}, special


def _values(fmt: Format, codes):
    """Return the values of encodings in FP64."""
    import torch

    if fmt.container.itemsize <= 2:
        table = torch.from_numpy(_table(fmt)).to(codes.device)
        return table[codes.to(torch.int64) & ((1 << fmt.bits) - 1)]
    return (codes & -(1 << fmt.padding_bits)).view(torch.float32).to(torch.float64)


@lru_cache(maxsize=64)
def _table(fmt: Format) -> np.ndarray:
    """Return the values of all encodings of a format of up to 16 bits."""
    return decode(np.arange(1 << fmt.bits, dtype=fmt.container), fmt, np.dtype(np.float64))
