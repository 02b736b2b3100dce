"""Chains of fused multiply-adds and exact integer sums on a GPU: plans, and operands laid out on the device."""

import math
from typing import Any

from ..families.base import SumAlgorithm
from ..formats import IntegerFormat
from ..kernels.lowering import Lowered
from .launches import TritonLaunch, view_of
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
    return {"ROUNDING": _ROUNDINGS[spec.rounding], "NAN": nan, "CLAMPS": False, "TREE": None}


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
            "TREE": (spec.group, spec.flush_input != "none", spec.flush_results)}  # fmt: skip


def integer_constants(low: Lowered) -> dict[str, Any] | None:
    """Constants of the kernel for an exact integer sum to 32 bits; None for other units."""
    algorithm, spec = low.form
    formats = low.a_format, low.b_format, low.c_format, low.d_format
    if algorithm is not SumAlgorithm.INTEGER or not all(isinstance(f, IntegerFormat) for f in formats):
        return None
    a, b, c, d = formats
    if max(a.bits, b.bits) > 8 or (c.name, d.name) != ("s32", "s32") or spec.terms > 1 << 14:
        return None
    return {"ROUNDING": None, "NAN": 0, "CLAMPS": spec.saturate, "TREE": None}


def run_chain(unit: Any, a, b, c, every: int | None):
    """(encodings of D, flags of tiles, all 0) as :meth:`tensorcore_models.gpu.products.DeviceUnit.chain` gives them."""
    import torch

    plan, low = unit.plan, unit.plan.low
    (batch, m, k), n = a.shape, b.shape[1]
    integers = plan.constants["ROUNDING"] is None
    tree = plan.constants["TREE"] is not None
    terms = plan.terms if integers or tree else math.gcd(_UNROLLED, k, every or 0)
    padded = -(-k // terms) * terms
    kind = torch.int32 if integers else getattr(torch, _TYPES[low.d_format.name])
    sides = []
    for codes, fmt, tile in ((a, low.a_format, unit.tile[0]), (b, low.b_format, unit.tile[1])):
        values = (
            _integers(codes, fmt) if integers else codes.contiguous().view(getattr(torch, _TYPES[fmt.name])).to(kind)
        )
        if tree:
            values = _flushed(values, fmt, low.form.spec.flush_input)
        # a product of -0 and +0 changes no sum of numbers in floating point
        nothing = -0.0 if tree and not sides else 0
        values = torch.nn.functional.pad(values, (0, padded - k, 0, -values.shape[1] % tile), value=nothing)
        sides.append(values.reshape(batch, -1, tile, padded).transpose(2, 3).contiguous())
    down, across = sides[0].shape[1], sides[1].shape[1]
    out = torch.empty((batch, m, n), dtype=kind, device=a.device)
    strides = (0, 0, 0) if c is None else c.stride()
    arguments = {
        "a": view_of(sides[0]), "b": view_of(sides[1]), "c": None if c is None else view_of(c.view(kind)), "out": view_of(out),
        "m": m, "n": n, "steps": padded // terms, "chain": (every or padded) // terms, "row_tiles": down,
        "column_tiles": across,
        "c_batch": strides[0], "c_row": strides[1], "c_column": strides[2],
    }  # fmt: skip
    constants = {
        **plan.constants, "TERMS": terms, "PROMOTES": every is not None and every < padded, "EACH": unit.each,
        "THREADS": (unit.target.warp // 8, 8), "WARPS": unit.warps,
    }  # fmt: skip
    unit.launch(TritonLaunch("chains", arguments, constants, batch * down * across, math.prod(unit.warps)))
    signed = torch.int64 if kind == torch.float64 else torch.int32
    return out.view(signed), torch.zeros(batch * down * across, dtype=torch.int32, device=a.device)


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
