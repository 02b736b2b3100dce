"""Chains of fused multiply-adds and exact integer sums on a GPU: plans, and operands laid out on the device."""

import math
from typing import Any

from ..families.base import SumAlgorithm
from ..formats import IntegerFormat
from ..kernels.lowering import Lowered
from .launches import TritonLaunch, view_of
from .layouts import tiled
from .plans import ModePlan

#: PTX's names of roundings.
_ROUNDINGS = {"rne": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}
#: Operand formats whose values torch converts to the type of the sum, and torch's types.
_TYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
}  # fmt: skip
#: Products of a step of a chain, at most: whole steps of k are unrolled.
_UNROLLED = 8


def multiply_add_constants(low: Lowered, roundings: tuple[str, ...]) -> dict[str, Any] | None:
    """Constants of the kernel for a chain of multiply-adds in FP32 or FP64 with one of the roundings; None for other units."""
    (algorithm, spec), formats = low.form, low.floating
    if algorithm is not SumAlgorithm.FMA_CHAIN or formats is None or low.scale_format is not None:
        return None
    a, b, c, d = formats
    plain = not (spec.flush_inputs or spec.flush_outputs or spec.saturate) and spec.pair_order == "ascending"
    held = c == d and d.name in ("fp32", "fp64") and {a.name, b.name} <= set(_TYPES)
    exact = all(f.fraction_bits <= d.fraction_bits and f.exponent_bits <= d.exponent_bits for f in (a, b))
    if not (plain and held and exact) or spec.rounding not in roundings or spec.nan not in ("quiet", "all_ones"):
        return None
    nan = d.magnitude_mask if spec.nan == "all_ones" else d.nan_encoding()
    return {"ROUNDING": _ROUNDINGS[spec.rounding], "NAN": nan, "CLAMPS": False, "TREE": None, "BOUNDS": False}


def pairwise_constants(low: Lowered) -> dict[str, Any] | None:
    """Constants of the kernel for trees of FP32 additions over groups of rounded products; None for other units."""
    (algorithm, spec), formats = low.form, low.floating
    if algorithm is not SumAlgorithm.PAIRWISE or formats is None or low.scale_format is not None:
        return None
    a, b, c, d = formats
    held = (c.name, d.name) == ("fp32", "fp32") and {a.name, b.name} <= set(_TYPES) - {"fp64"}
    if not held or spec.nan not in ("quiet", "all_ones"):
        return None
    nan = d.magnitude_mask if spec.nan == "all_ones" else d.nan_encoding()
    return {"ROUNDING": "rn", "NAN": nan, "CLAMPS": False,
            "TREE": (spec.group, spec.flush_input != "none", spec.flush_results), "BOUNDS": False}  # fmt: skip


def exact_constants(low: Lowered) -> dict[str, Any] | None:
    """Constants of the kernel for exact sums that are rounded once, to nearest, to FP32; None for other units."""
    (algorithm, spec), formats = low.form, low.floating
    if algorithm is not SumAlgorithm.EXACT or formats is None or low.scale_format is not None:
        return None
    a, b, c, d = formats
    rules = (spec.output_rounding, spec.negative_underflow, spec.zero_sign, spec.nan, spec.subnormal_c)
    cut = (
        spec.fraction_bits, spec.integer_bits, spec.output_fraction_bits, spec.exponent_floor, spec.product_overflow_exponent,
    )  # fmt: skip
    plain = not (spec.flush_inputs or spec.flush_outputs or spec.flush_c or spec.normalised_products or spec.padding)
    held = (c.name, d.name) == ("fp32", "fp32") and {a.name, b.name} <= set(_TYPES) - {"fp32", "fp64"}
    if (
        not (plain and held)
        or rules != ("rne", "negative", "positive", "quiet", "raw")
        or any(x is not None for x in cut)
    ):
        return None
    return {"ROUNDING": "rn", "NAN": d.nan_encoding(), "CLAMPS": False, "TREE": None, "BOUNDS": True}


def integer_constants(low: Lowered) -> dict[str, Any] | None:
    """Constants of the kernel for an exact integer sum to 32 bits; None for other units."""
    algorithm, spec = low.form
    formats = low.a_format, low.b_format, low.c_format, low.d_format
    if algorithm is not SumAlgorithm.INTEGER or not all(isinstance(f, IntegerFormat) for f in formats):
        return None
    a, b, c, d = formats
    if max(a.bits, b.bits) > 8 or (c.name, d.name) != ("s32", "s32") or spec.terms > 1 << 14:
        return None
    return {"ROUNDING": None, "NAN": 0, "CLAMPS": spec.saturate, "TREE": None, "BOUNDS": False}


def run_chain(unit: Any, a, b, c, every: int | None):
    """(encodings of D, flags of tiles) as :meth:`tensorcore_models.gpu.products.DeviceUnit.chain` gives them."""
    import torch

    plan, low = unit.plan, unit.plan.low
    (batch, m, k), n = a.shape, b.shape[1]
    integers, bounds = plan.constants["ROUNDING"] is None, plan.constants["BOUNDS"]
    whole = integers or bounds or plan.constants["TREE"] is not None
    terms = plan.terms if whole else math.gcd(_UNROLLED, k, every or 0)
    padded = -(-k // terms) * terms
    kind = torch.int32 if integers else getattr(torch, _TYPES[low.d_format.name])
    taken = torch.float64 if bounds else kind
    (x, x_special), (y, y_special) = (_operand(unit, i, codes, padded, taken) for i, codes in enumerate((a, b)))
    down, across = x.shape[1], y.shape[1]
    out = torch.empty((batch, m, n), dtype=kind, device=a.device)
    flags = torch.zeros(batch * down * across, dtype=torch.int32, device=a.device)
    strides = (0, 0, 0) if c is None else c.stride()
    arguments = {
        "a": view_of(x), "b": view_of(y), "c": None if c is None else view_of(c.view(kind)), "out": view_of(out),
        "flags": view_of(flags) if bounds else None, "m": m, "n": n, "steps": padded // terms,
        "chain": (every or padded) // terms, "row_tiles": down, "column_tiles": across,
        "c_batch": strides[0], "c_row": strides[1], "c_column": strides[2],
    }  # fmt: skip
    constants = {
        **plan.constants, "TERMS": terms, "PROMOTES": every is not None and every < padded, "EACH": unit.each,
        "THREADS": (unit.target.warp // 8, 8), "WARPS": unit.warps,
    }  # fmt: skip
    unit.launch(TritonLaunch("chains", arguments, constants, batch * down * across, math.prod(unit.warps)))
    signed = torch.int64 if kind == torch.float64 else torch.int32
    if bounds:
        flags |= (x_special[:, :, None] | y_special[:, None, :]).flatten().to(torch.int32)
    return out.view(signed), flags


def _operand(unit: Any, side: int, codes, padded: int, kind: Any):
    """(values of an operand as [batch][tile][k][row of the tile] in a type of torch, whether tiles have infinities or NaN).

    side: 0 for a, 1 for b. Only sums between bounds, which leave them to the CPU, ask for the tiles; others get None.
    """
    import torch

    low, tile, constants = unit.plan.low, unit.tile[side], unit.plan.constants
    fmt, (batch, rows, k), special = (low.a_format, low.b_format)[side], codes.shape, None
    if constants["ROUNDING"] is None:
        values = _integers(codes, fmt)
    else:
        values = codes.contiguous().view(getattr(torch, _TYPES[fmt.name])).to(kind)
    if constants["BOUNDS"]:
        strange = torch.nn.functional.pad(~values.isfinite().all(2), (0, -rows % tile))
        special = strange.reshape(batch, -1, tile).any(2)
        values = values.nan_to_num(0, 0, 0)
    nothing = 0.0
    if constants["TREE"] is not None:
        values = _flushed(values, fmt, low.form.spec.flush_input)
        nothing = -0.0 if side == 0 else 0.0  # a product of -0 and +0 changes no sum
    values = torch.nn.functional.pad(values, (0, padded - k, 0, -rows % tile), value=nothing)
    return tiled(values, tile), special


def _flushed(values, fmt: Any, below: str):
    """Operands as trees take them: those below the smallest normal number of their format or of FP32 are +0."""
    import torch

    if below == "none":
        return values
    least = 2.0 ** (fmt.emin if below == "format" else -126)
    return torch.where(values.abs() < least, torch.zeros_like(values), values)


def _integers(codes, fmt: IntegerFormat):
    """Values of encodings of up to 8 bits."""
    import torch

    values = codes.to(torch.int32) & ((1 << fmt.bits) - 1)
    half = 1 << (fmt.bits - 1)
    return (values ^ half) - half if fmt.signed else values


def chain_plan(low: Lowered, mode: Any, constants: dict[str, Any] | None, terms: int):
    """A plan of the chains' kernel; None without constants."""
    if constants is None:
        return None
    types = low.c_format.name, low.d_format.name
    return ModePlan(mode, low, constants, terms, None, None, types, low.step)
