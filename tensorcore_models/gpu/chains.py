"""Plans chains of fused multiply-adds and exact integer sums, and lays out their operands on the device."""

import math
from typing import Any

from ..families.base import OPERAND_NAN, SumAlgorithm
from ..formats import IntegerFormat
from ..kernels.lowering import Lowered
from .launches import TritonLaunch, view_of
from .layouts import tiled
from .plans import ModePlan

#: PTX's names of roundings.
_ROUNDINGS = {"rne": "rn", "rz": "rz", "rd": "rm", "ru": "rp"}
#: torch types that hold operand formats; numbers with padding in their lowest bits are FP32 numbers without it.
_TYPES = {
    "fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64", "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2", "tf32": "float32", "hf32": "float32", "hf32_950": "float32",
}  # fmt: skip
#: Most products of a step of a chain, because whole steps of k are unrolled.
_UNROLLED = 8


#: Kernel constants that most units leave unchanged.
_PLAIN = {
    "CLAMPS": False, "TREE": None, "BOUNDS": False, "RESULT": None, "LANES": None, "FLUSHES": False, "FINITE": False,
}  # fmt: skip


def multiply_add_constants(low: Lowered, roundings: tuple[str, ...], several: bool = False) -> dict[str, Any] | None:
    """Return kernel constants for a chain of multiply-adds in FP32 or FP64 with one of the roundings; None for other units.

    This includes chains that start at 0 and whose sum is added to c (x86's lanes); with `several`, only units with two or more
    such chains.
    """
    (algorithm, spec), formats = low.form, low.floating
    lanes = spec.lanes if algorithm is SumAlgorithm.LANES else None
    if (algorithm is not SumAlgorithm.FMA_CHAIN and lanes is None) or formats is None or low.scale_format is not None:
        return None
    if several != (lanes is not None and lanes > 1):
        return None
    a, b, c, d = formats
    held = c == d and d.name in ("fp32", "fp64") and {a.name, b.name} <= set(_TYPES)
    exact = all(f.fraction_bits <= d.fraction_bits and f.exponent_bits <= d.exponent_bits for f in (a, b))
    if not held or not exact or (spec.rounding if lanes is None else "rne") not in roundings:
        return None
    flushes = lanes is not None or spec.flush_outputs
    if flushes and d.name != "fp32" or (lanes is None and spec.flush_inputs != spec.flush_outputs):
        return None
    # NaN that keep payloads, and saturating results, are left to the CPU
    finite = spec.nan in OPERAND_NAN or (lanes is None and spec.saturate)
    return _PLAIN | {
        "ROUNDING": _ROUNDINGS["rne" if lanes is not None else spec.rounding], "NAN": _nan(spec, d), "LANES": lanes,
        "FLUSHES": flushes, "FINITE": finite,
    }  # fmt: skip


def pairwise_constants(low: Lowered) -> dict[str, Any] | None:
    """Return kernel constants for trees of FP32 additions over groups of rounded products; None for other units."""
    (algorithm, spec), formats = low.form, low.floating
    if algorithm is not SumAlgorithm.PAIRWISE or formats is None or low.scale_format is not None:
        return None
    a, b, c, d = formats
    if (c.name, d.name) != ("fp32", "fp32") or not {a.name, b.name} <= set(_TYPES) - {"fp64"}:
        return None
    tree = spec.group, spec.flush_input != "none", spec.flush_results
    return _PLAIN | {"ROUNDING": "rn", "NAN": _nan(spec, d), "TREE": tree}


def exact_constants(low: Lowered, errors: bool = False) -> dict[str, Any] | None:
    """Return kernel constants for exact sums that are rounded once, to nearest; None for other units.

    Multiply-adds in FP16 and bf16 are such sums of one product. With `errors`, the errors of additions are summed, for targets
    without instructions that round up or down.
    """
    (algorithm, spec), formats = low.form, low.floating
    if formats is None or low.scale_format is not None:
        return None
    a, b, c, d = formats
    wide = {"fp32", "fp64", "tf32", "hf32", "hf32_950"}
    if c != d or d.name not in ("fp32", "fp16", "bf16") or not {a.name, b.name} <= set(_TYPES) - wide:
        return None
    way = "errors" if errors else "bounds"
    if algorithm is SumAlgorithm.FMA_CHAIN:
        flushes = spec.flush_inputs or spec.flush_outputs or spec.saturate
        if flushes or d.name == "fp32" or spec.rounding != "rne" or spec.pair_order != "ascending":
            return None
        return _PLAIN | {
            "ROUNDING": "rn",
            "NAN": _nan(spec, d),
            "BOUNDS": True,
            "RESULT": (d.name, True, False, way),
        }
    if algorithm is SumAlgorithm.SCALED:
        spec = None if spec.saturate else spec.exact
    elif algorithm is not SumAlgorithm.EXACT:
        return None
    if spec is None or not _rounded_once(spec):
        return None
    late = spec.c_position == "late"
    if spec.c_position == "exact" or spec.zero_sign not in ("positive", "ieee"):
        return None
    if late and (d.name != "fp32" or spec.late_rounding != "rne" or spec.zero_sign != "ieee"):
        return None
    return _PLAIN | {
        "ROUNDING": "rn", "NAN": _nan(spec, d), "BOUNDS": True, "RESULT": (d.name, spec.zero_sign == "ieee", late, way),
    }  # fmt: skip


def odd_constants(low: Lowered) -> dict[str, Any] | None:
    """Return kernel constants for pairs of products whose every operation is rounded to odd; None for other units."""
    formats = low.floating
    if low.form.algorithm is not SumAlgorithm.PAIR_ODD or formats is None or low.scale_format is not None:
        return None
    if tuple(f.name for f in formats) != ("bf16", "bf16", "fp32", "fp32") or low.form.spec.nan != "quiet":
        return None
    return _PLAIN | {
        "ROUNDING": "rn", "NAN": formats[3].nan_encoding(), "BOUNDS": True, "RESULT": ("fp32", True, False, "odd"),
    }  # fmt: skip


def _rounded_once(spec: Any) -> bool:
    """Return whether an exact sum is rounded to nearest with subnormal numbers, and follows IEEE 754 in all its rules."""
    rules = (spec.output_rounding, spec.negative_underflow, spec.nan, spec.subnormal_c)
    cut = (
        spec.fraction_bits, spec.integer_bits, spec.output_fraction_bits, spec.exponent_floor, spec.product_overflow_exponent,
    )  # fmt: skip
    others = spec.flush_inputs or spec.flush_outputs or spec.flush_c or spec.normalised_products or spec.padding
    return rules == ("rne", "negative", "quiet", "raw") and not others and all(x is None for x in cut)


def _nan(spec: Any, d: Any) -> int:
    return d.magnitude_mask if spec.nan == "all_ones" else d.nan_encoding()


def integer_constants(low: Lowered) -> dict[str, Any] | None:
    """Return kernel constants for an exact integer sum to 32 bits; None for other units."""
    algorithm, spec = low.form
    formats = low.a_format, low.b_format, low.c_format, low.d_format
    if algorithm is not SumAlgorithm.INTEGER or not all(isinstance(f, IntegerFormat) for f in formats):
        return None
    a, b, c, d = formats
    if max(a.bits, b.bits) > 8 or (c.name, d.name) != ("s32", "s32") or spec.terms > 1 << 14:
        return None
    return _PLAIN | {"ROUNDING": None, "NAN": 0, "CLAMPS": spec.saturate}


def run_chain(unit: Any, a, b, c, every: int | None, scales):
    """Return the encodings of D and the flags of tiles, as :meth:`tensorcore_models.gpu.products.DeviceUnit.chain` does."""
    import torch

    plan, low, told = unit.plan, unit.plan.low, unit.plan.constants
    (batch, m, k), n = a.shape, b.shape[1]
    whole = told["ROUNDING"] is None or told["BOUNDS"] or told["TREE"] is not None or told["LANES"] is not None
    terms = plan.terms if whole else math.gcd(_UNROLLED, k, every or 0)
    padded = -(-k // terms) * terms
    kind = torch.int32 if told["ROUNDING"] is None else getattr(torch, _TYPES[low.d_format.name])
    taken = torch.float64 if told["BOUNDS"] else kind
    (x, x_special), (y, y_special) = (_operand(unit, i, codes, padded, taken) for i, codes in enumerate((a, b)))
    down, across = x.shape[1], y.shape[1]
    out = torch.empty((batch, m, n), dtype=getattr(torch, f"int{8 * low.d_format.container.itemsize}"), device=a.device)
    flags = torch.zeros(batch * down * across, dtype=torch.int32, device=a.device)
    strides = (0, 0, 0) if c is None else c.stride()
    as_type = None if told["ROUNDING"] is None or low.d_format.name == "bf16" else low.d_format.name
    flagging = told["BOUNDS"] or told["FLUSHES"] or told["FINITE"]
    arguments = {
        "a": view_of(x), "b": view_of(y), "c": None if c is None else view_of(c, as_type), "out": view_of(out, as_type),
        "flags": view_of(flags) if flagging else None, "m": m, "n": n, "steps": padded // terms,
        "chain": (every or padded) // terms, "row_tiles": down, "column_tiles": across,
        "c_batch": strides[0], "c_row": strides[1], "c_column": strides[2],
    }  # fmt: skip
    constants = {
        **told, "TERMS": terms, "PROMOTES": every is not None, "EACH": unit.each, "THREADS": (unit.target.warp // 8, 8),
        "WARPS": unit.warps,
    }  # fmt: skip
    unit.launch(TritonLaunch("chains", arguments, constants, batch * down * across, math.prod(unit.warps)))
    if told["BOUNDS"]:
        flags |= (x_special[:, :, None] | y_special[:, None, :]).flatten().to(torch.int32)
    return out, flags


def _operand(unit: Any, side: int, codes, padded: int, kind: Any):
    """Return the values of an operand, [batch][tile][k][row of the tile], in a torch type, and whether tiles have infinities or
    NaN.

    `side` is 0 for a, 1 for b. Only sums between bounds, which leave such tiles to the CPU, ask for the second result; others
    get None.
    """
    import torch

    low, tile, told = unit.plan.low, unit.tile[side], unit.plan.constants
    fmt, (batch, rows, k), special, spec = (low.a_format, low.b_format)[side], codes.shape, None, low.form.spec
    if told["ROUNDING"] is None:
        values = _integers(codes, fmt)
    else:
        codes = codes & -(1 << fmt.padding_bits) if fmt.padding_bits else codes
        values = codes.contiguous().view(getattr(torch, _TYPES[fmt.name])).to(kind)
    if low.form.algorithm is SumAlgorithm.SCALED and side == 0:
        values = values * 2.0**-spec.scale
    if told["BOUNDS"]:
        strange = torch.nn.functional.pad(~values.isfinite().all(2), (0, -rows % tile))
        special = strange.reshape(batch, -1, tile).any(2)
        values = values.nan_to_num(0, 0, 0)
    odd = low.form.algorithm is SumAlgorithm.PAIR_ODD
    if odd or (told["FLUSHES"] and spec.flush_inputs):
        values = torch.where(values.abs() < 2.0**fmt.emin, values * 0, values)
    if told["TREE"] is not None:
        values = _flushed(values, fmt, spec.flush_input)
    if getattr(spec, "pair_order", "ascending") == "odd_first":
        turned = torch.arange(k, device=codes.device)
        values = values[:, :, torch.where(turned | 1 < k, turned ^ 1, turned)]
    # A product of -0 and +0 changes no sum; in exact sums, zeros that fill a step are +0, as the unit's zeros are.
    nothing = -0.0 if side == 0 and (odd or not told["BOUNDS"]) and told["ROUNDING"] is not None else 0
    values = torch.nn.functional.pad(values, (0, padded - k, 0, -rows % tile), value=nothing)
    return tiled(values, tile), special


def _flushed(values, fmt: Any, below: str):
    """Return operands as trees take them: numbers below the smallest normal number of their format or of FP32 become +0."""
    import torch

    if below == "none":
        return values
    least = 2.0 ** (fmt.emin if below == "format" else -126)
    return torch.where(values.abs() < least, torch.zeros_like(values), values)


def _integers(codes, fmt: IntegerFormat):
    """Return the values of encodings of up to 8 bits, as integers."""
    import torch

    values = codes.to(torch.int32) & ((1 << fmt.bits) - 1)
    half = 1 << (fmt.bits - 1)
    return (values ^ half) - half if fmt.signed else values


def chain_plan(low: Lowered, mode: Any, constants: dict[str, Any] | None, terms: int):
    """Return a plan of the kernel of chains; None if `constants` is None."""
    if constants is None:
        return None
    types = low.c_format.name, low.d_format.name
    return ModePlan(mode, low, constants, terms, None, None, types, low.step)
