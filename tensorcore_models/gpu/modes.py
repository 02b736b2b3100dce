"""Modes: which lowered units a GPU kernel runs, as rows, and the numbers that the kernel is compiled with.

A mode is exact in its domain and flags the tiles in which something leaves it; :mod:`.products` does those again.
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ..families.base import SumAlgorithm
from ..formats import Format, get_float_format
from ..kernels.common import step_order
from ..kernels.lowering import Lowered
from .chains import chain_plan, integer_constants, multiply_add_constants

#: Codes of lowest bits have their top bit for the sum with a threshold; the highest code of an operand is below half of that.
_BYTES, _HALVES = 8, 16
#: By so much exponents of nonzero operands lie above 0, that of zeros: a sum with one of these is below every addend's.
_LIFT, _SCALED_LIFT = 288, 1024
#: By so much codes of scaled operands lie lower, and their threshold twice as much higher: it stays positive.
_SCALES = 256
_KINDS = {"fp32": "s32", "tf32": "s32"}


@dataclass(frozen=True)
class OperandForm:
    """How an operand is packed: what :func:`tensorcore_models.gpu.source.pack` is told about it.

    Attributes
    ----------
    format : tuple
        Exponent bits, fraction bits, bias, padding bits, place of the sign (-1: none), kind of specials.
    shape : (int, int, int)
        Bits of a code, what lifts exponents of nonzero numbers above those of zeros, code of the lowest lowest bit.
    normalise : bool
        Whether subnormal numbers have the exponents of their leading bits.
    scale : (int, int, int, int) or None
        Products that share a block scale, exponent bits, fraction bits and bias of scales.
    """

    format: tuple
    shape: tuple[int, int, int]
    normalise: bool
    scale: tuple[int, int, int, int] | None = None

    def constants(self) -> dict[str, Any]:
        """As the kernel names them."""
        return {"FORMAT": self.format, "SHAPE": self.shape, "NORMALISE": self.normalise, "SCALE": self.scale}


@dataclass(frozen=True)
class ModePlan:
    """A unit as a mode runs it.

    Attributes
    ----------
    mode : UnitMode
    low : Lowered
    constants : mapping
        Of the mode's kernel.
    terms : int
        Products of one step of the kernel.
    a, b : OperandForm or None
        None where operands are taken as values.
    types : (str, str)
        Formats of c and d.
    step : int
        Products of the unit's own step.
    groups : tuple or None
        The products of each fused operation of a step, where these are not its only one.
    """

    mode: "UnitMode"
    low: Lowered
    constants: Mapping[str, Any]
    terms: int
    a: OperandForm | None
    b: OperandForm | None
    types: tuple[str, str]
    step: int
    groups: tuple[tuple[int, ...], ...] | None = None

    def order(self, k: int):
        """Which k stands at each place of the packed operands, -1 for none; None where all are in turn."""
        if self.groups is None and self.step == self.terms:
            return None
        return step_order(k, self.step, self.terms, self.groups)


@dataclass(frozen=True)
class UnitMode:
    """A way to run units on a GPU.

    Attributes
    ----------
    name : str
    function : str
        The kernel in :mod:`tensorcore_models.gpu.source`.
    backends : tuple of str
        "cuda", "hip".
    plan : callable
        (lowered, mode) -> ModePlan, None where the mode does not hold the unit.
    holds, flags : str
        Its domain in words: what it computes, and what it leaves to another mode.
    counted : mapping
        (unit, target): SASS instructions for a product, which a test counts.
    """

    name: str
    function: str
    backends: tuple[str, ...]
    plan: Callable[[Lowered, "UnitMode"], ModePlan | None]
    holds: str
    flags: str
    counted: Mapping[tuple[str, str], float] = field(default_factory=dict)


def _operand(fmt: Format, bits: int, normalise: bool, low: Lowered) -> OperandForm:
    sign = fmt.bits - 1 - fmt.padding_bits if fmt.signed else -1
    place = sign + fmt.padding_bits if fmt.signed else -1
    scale = None
    if low.scale_format is not None:
        of_scale = low.scale_format
        scale = (low.block_size or 1, of_scale.exponent_bits, of_scale.fraction_bits, of_scale.bias)
    highest = (1 << (bits - 2)) - 1 - (0 if scale is None else _SCALES)
    row = (fmt.exponent_bits, fmt.fraction_bits, fmt.bias, fmt.padding_bits, place, fmt.specials)
    return OperandForm(row, (bits, _LIFT if scale is None else _SCALED_LIFT, highest), normalise, scale)


def _lowest_range(fmt: Format) -> int:
    """Places that lowest bits of nonzero numbers can have, less one."""
    return fmt.emax - (fmt.emin - fmt.fraction_bits)


def _operands_fit(a: Format, b: Format) -> bool:
    return all(
        fmt.has_fields and fmt.specials in ("ieee", "fn", "fnuz", "finite") and fmt.fraction_bits <= 10 and fmt.signed
        for fmt in (a, b)
    )


def _window_plan(low: Lowered, mode: UnitMode) -> ModePlan | None:
    """As :func:`_fused_plan` in FP32, where its sums have few bits."""
    plan = _fused_plan(low, mode)
    if plan is None or plan.constants["WIDE"]:
        return None
    # Products are below 4 2^F units and c below 2 2^F; floors lie up to one unit below each.
    largest = (plan.terms * 4 + 2 << plan.constants["FRACTION"]) + plan.terms
    return dataclasses.replace(plan, constants={**plan.constants, "WINDOW": True}) if largest < 1 << 22 else None


def _fused_plan(low: Lowered, mode: UnitMode) -> ModePlan | None:
    """Constants of `fused_floating` for a fused sum, or for chained ones over interleaved k."""
    read = low.as_read
    if read is None:
        return None
    (algorithm, spec), (a, b, c, d), via = read
    scaled = low.scale_format is not None
    if scaled and (algorithm is not SumAlgorithm.FUSED or via is not None or spec.scaled_zero != "skip"):
        return None
    groups, dot = None, spec
    if algorithm is SumAlgorithm.INTERLEAVED:
        if spec.final_rounding != "rne":
            return None
        via, dot = get_float_format(spec.via_format), spec.dot
        places = range(spec.terms_per_step)
        groups = tuple(tuple(k for k in places if k // spec.run % spec.groups == g) for g in spec.group_order)
        if max(map(len, groups)) > dot.terms:
            return None
    elif algorithm is not SumAlgorithm.FUSED:
        return None
    if not (_operands_fit(a, b) and _truncates(dot) and _result_fits(dot, c, d)):
        return None
    wide = scaled or max(a.exponent_bits, b.exponent_bits) == 8
    if wide and (c.name, d.name) != ("fp32", "fp32"):
        return None
    terms = max(4, dot.terms)
    if terms % 4:
        return None
    bits = _HALVES if wide else _BYTES
    forms = [_operand(fmt, bits, via is not None, low) for fmt in (a, b)]
    lowest = sum(fmt.emin - fmt.fraction_bits for fmt in (a, b))
    threshold = 1 - 127 - dot.fraction_bits - lowest + (2 * _SCALES if scaled else 0)
    # Codes of zeros are 0; a zero's product must not reach the top bit, and every other one must under a large enough c.
    every = sum(_lowest_range(fmt) for fmt in (a, b)) + 2
    limited = 0 if wide or every <= 64 else 64 - threshold
    floor = -(1 << 11) if dot.exponent_floor is None else dot.exponent_floor + 127
    kept = 23 if dot.output_fraction_bits is None else min(23, dot.output_fraction_bits)
    constants = {
        "TERMS": terms, "BITS": bits, "FRACTION": dot.fraction_bits,
        "ALIGN": 127 - sum(form.shape[1] + fmt.bias for form, fmt in zip(forms, (a, b), strict=True)),
        "THRESHOLD": threshold, "FLOOR": floor if wide else max(floor, 0), "WIDE": wide,
        "LIMITED": limited, "TYPES": (c.name, d.name),
        "KEEP": kept,
        "WINDOW": False, "DOWN": None,
    }  # fmt: skip
    return ModePlan(mode, low, constants, terms, forms[0], forms[1], (c.name, d.name), spec.terms_per_step, groups)


def _down_plan(low: Lowered, mode: UnitMode) -> ModePlan | None:
    """Constants of `fused_floating` for CDNA3's sums."""
    read = low.as_read
    if (
        read is None
        or low.scale_format is not None
        or read.form.algorithm is not SumAlgorithm.ROUND_DOWN
        or read.via is not None
    ):
        return None
    (_, spec), (a, b, c, d), _ = read
    rules = (
        spec.add_rounding,
        spec.output_rounding,
        spec.zero_operand,
        spec.zero_c,
        spec.subnormal_c,
        spec.negative_underflow,
    )
    if rules != ("rd", "rne", "skip", "minus126", "raw", "negative") or spec.exponent_floor is not None:
        return None
    fits = _operands_fit(a, b) and (c.name, d.name) == ("fp32", "fp32") and spec.terms % 4 == 0
    widths = spec.fraction_bits, spec.dot_fraction_bits, spec.c_fraction_bits
    # The dot product and c are added exactly: from a carry above the terms down to the lowest unit.
    if not fits or max(widths) + (4 * spec.terms).bit_length() > 50 or not 24 <= (spec.sum_fraction_bits or 52) <= 52:
        return None
    if spec.c_cutoff is not None and spec.c_cutoff < spec.c_fraction_bits:
        return None
    if spec.product_overflow_exponent is not None and spec.product_overflow_exponent < 128:
        return None
    wide = max(a.exponent_bits, b.exponent_bits) == 8
    bits = _HALVES if wide else _BYTES
    forms = [_operand(fmt, bits, False, low) for fmt in (a, b)]
    lowest = sum(fmt.emin - fmt.fraction_bits for fmt in (a, b))
    constants = {
        "TERMS": spec.terms, "BITS": bits, "FRACTION": spec.fraction_bits,
        "ALIGN": 127 - sum(form.shape[1] + fmt.bias for form, fmt in zip(forms, (a, b), strict=True)),
        "THRESHOLD": 1 - 127 - spec.fraction_bits - lowest, "FLOOR": 0, "WIDE": wide, "LIMITED": 0, "TYPES": ("fp32", "fp32"),
        "KEEP": 23, "WINDOW": False,
        "DOWN": (spec.dot_fraction_bits, spec.c_fraction_bits, spec.sum_fraction_bits, spec.c_cutoff, spec.parity_groups),
    }  # fmt: skip
    return ModePlan(mode, low, constants, spec.terms, forms[0], forms[1], ("fp32", "fp32"), spec.terms)


def _truncates(dot: Any) -> bool:
    """Whether addends are cut at one alignment in which zeros take no part, within the bits of FP64."""
    rules = (dot.zero_operand, dot.zero_c, dot.alignment_rounding, dot.negative_underflow)
    return rules == ("skip", "skip", "rz", "positive") and not dot.normalised_products and dot.fraction_bits <= 28


def _result_fits(dot: Any, c: Format, d: Format) -> bool:
    if d.name == "fp32":
        raw = dot.subnormal_c == "raw"
        return dot.output_rounding == "rz" and c.name in ("fp32", "fp16") and raw
    return (c.name, d.name, dot.output_rounding) == ("fp16", "fp16", "rne") and dot.output_fraction_bits is None


MODES = (
    UnitMode(
        "fused sums in FP32",
        "fused_floating",
        ("cuda",),
        _window_plan,
        "fused sums as below of less than 2^22 units: F = 13 of Ada's and Hopper's FP8",
        "as below, and c of 2^103 or more",
    ),
    UnitMode(
        "fused sums in FP64",
        "fused_floating",
        ("cuda",),
        _fused_plan,
        "fused sums that truncate at one alignment (N 4 to 32, F up to 28; fp4 to fp16, bf16, tf32) to FP32 or FP16, and "
        "chained ones over interleaved k",
        "infinities and NaN, results at the end of the range, c far above the products of fp16 (2^40) or below 2^-100",
    ),
    UnitMode(
        "sums rounded down in FP64",
        "fused_floating",
        ("cuda",),
        _down_plan,
        "CDNA3's: products cut at one alignment, or those of even and of odd k, then the dot product and c rounded down",
        "infinities and NaN, products or addends of 2^126 or more",
    ),
    UnitMode(
        "chains of multiply-adds",
        "chains",
        ("cuda",),
        lambda low, mode: chain_plan(low, mode, multiply_add_constants(low), 1),
        "multiply-adds in FP32 or FP64 in the order of k, in any of IEEE's roundings, infinities and NaN included",
        "nothing",
    ),
    UnitMode(
        "integer sums",
        "chains",
        ("cuda",),
        lambda low, mode: chain_plan(low, mode, integer_constants(low), low.step),
        "exact sums of integers of up to 8 bits, modulo 2^32 or clamped after each step",
        "nothing",
    ),
)


@lru_cache(maxsize=256)
def _planned(low: Lowered, backend: str) -> ModePlan | None:
    for mode in MODES:
        if backend in mode.backends and (plan := mode.plan(low, mode)) is not None:
            return plan
    return None


def plan_of(low: Lowered, backend: str = "cuda", label: str = "it") -> ModePlan:
    """The first mode that holds a unit.

    Parameters
    ----------
    low : Lowered
        As :func:`tensorcore_models.kernels.lowered` makes it.
    backend : {"cuda", "hip"}
    label : str
        What errors call the unit.

    Raises
    ------
    ValueError
        If there is none; the message says what runs the unit on the CPU.
    """
    found = _planned(low, backend)
    if found is None:
        from ..kernels import kernel_name

        raise ValueError(
            f"{label} has no mode on a {backend} GPU; on the CPU it runs by {kernel_name(low)}: pass arrays, "
            "or tensors moved there by .cpu()"
        )
    return found
