"""Lists, as rows, the modes in which a GPU kernel runs lowered units, and computes the numbers with which a kernel is compiled.

A mode is exact in its domain and flags the tiles that leave it; :mod:`.products` computes those tiles again.

Sums of floors give sums of truncated addends in the following way. The unit is 2^(e - F), where e is the largest exponent of a
step. The accumulator starts at 1.5 2^52 units and stays between 2^52 and 2^53 units, where FP64 holds exactly the multiples of
a unit. A multiply-add toward zero rounds such a positive sum down, so that each product is added as its floor. A product
truncated toward zero is one unit above its floor if it is negative and not a multiple of the unit, and equals the floor
otherwise. A product is a multiple of the unit if the places of the lowest set bits of its factors add up to e - F or more,
because the lowest set bit of the product is the product of theirs. Each operand has a code that falls as that place rises. For
a suitable threshold, the sum of two codes and the threshold has its field's top bit set if and only if the product is not a
multiple of the unit. These bits, masked by the exclusive or of the signs, are counted. This needs three conditions:

- Sums of fields never carry into the next field, and sums of two codes 0 (of zeros) never reach the top bit. For this, codes
  are below half of the top bit and thresholds at most half of it.
- The sum of every other product reaches the top bit if the unit is above the product's lowest bit. Fields of a byte have 128
  values, and codes of fp16 spread over 40 places for each factor, so that for units above 2^15, which only c can cause, the
  smallest codes do not reach it. Such tiles are flagged (`LIMITED`, c of about 2^40). Formats with fewer places (FP8) fit, and
  bf16 and tf32 have fields of 16 bits.
- c is added toward zero onto a window of its own sign, which needs no count.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..families.base import SumAlgorithm
from ..formats import Format, get_float_format
from ..kernels.lowering import Lowered
from .aligned import aligned_plan
from .chains import (
    chain_plan,
    exact_constants,
    integer_constants,
    multiply_add_constants,
    odd_constants,
    pairwise_constants,
)
from .groups import group_plan
from .phases import phase_plan
from .plans import ModePlan, OperandForm, UnitMode
from .programs import program_plan

#: NVIDIA's targets, which have instructions with roundings of their own: first those with 32 or more FP64 lanes in a
#: multiprocessor, then those with two.
FULL_FP64, FEW_FP64 = ("sm_80", "sm_90", "sm_100"), ("sm_86", "sm_89", "sm_120")
NVIDIA = (*FULL_FP64, *FEW_FP64)
#: Field widths of codes of lowest bits. The top bit is for the sum with a threshold; the highest code of an operand is below
#: half of it.
_BYTES, _HALVES = 8, 16
#: Amount by which exponents of nonzero operands lie above 0, the exponent of zeros: a sum with a zero's is below every
#: addend's.
_LIFT, _SCALED_LIFT = 288, 1024
#: Amount by which codes of scaled operands lie lower; their threshold lies twice as much higher, so that it stays positive.
_SCALES = 256


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
    """Return the number of places that the lowest set bit of nonzero numbers can have, minus one."""
    return fmt.emax - (fmt.emin - fmt.fraction_bits)


def _operands_fit(a: Format, b: Format) -> bool:
    return all(
        fmt.has_fields and fmt.specials in ("ieee", "fn", "fnuz", "finite") and fmt.fraction_bits <= 10 and fmt.signed
        for fmt in (a, b)
    )


def _window_plan(low: Lowered, mode: UnitMode) -> ModePlan | None:
    """Return the plan of :func:`_fused_plan` in FP32, if the sums have few bits; None otherwise."""
    plan = _fused_plan(low, mode)
    if plan is None or plan.constants["WIDE"]:
        return None
    # Products are below 4 2^F units and c below 2 2^F; floors lie up to one unit below each.
    largest = (plan.terms * 4 + 2 << plan.constants["FRACTION"]) + plan.terms
    return replace(plan, constants={**plan.constants, "WINDOW": True}) if largest < 1 << 22 else None


def _split_plan(low: Lowered, mode: UnitMode) -> ModePlan | None:
    """Return the plan of :func:`_fused_plan` on two windows of FP32; the second takes parts of products below 2^SPLIT units."""
    plan = _fused_plan(low, mode)
    if plan is None or plan.constants["WIDE"] or plan.constants["TYPES"] != ("fp32", "fp32"):
        return None
    split, fraction = 13, plan.constants["FRACTION"]
    upper, lower = (plan.terms * 4 + 2 << fraction) + plan.terms >> split, plan.terms + 2 << split
    if max(upper, lower) >= 1 << 22:
        return None
    return replace(plan, constants={**plan.constants, "WINDOW": True, "SPLIT": split})


def _fused_plan(low: Lowered, mode: UnitMode) -> ModePlan | None:
    """Return the plan of `fused_floating` for a fused sum, or for chained fused sums over interleaved k."""
    read = low.as_read
    if read is None:
        return None
    (algorithm, spec), (a, b, c, d), via = read
    scaled = low.scale_format is not None
    if scaled and (algorithm is not SumAlgorithm.FUSED or via is not None or spec.scaled_zero != "skip"):
        return None
    groups, dot, ends, narrowed = None, spec, (c.name, d.name), 0
    if algorithm is SumAlgorithm.WIDENED:
        algorithm, spec = spec.dot.form()
        c = d = get_float_format(low.form.spec.via_format)
        dot, narrowed = spec, 0 if ends[1] == d.name else low.form.spec.terms
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
    # Codes of zeros are 0; a zero's product must not reach the top bit, and every other product must under a large enough c.
    every = sum(_lowest_range(fmt) for fmt in (a, b)) + 2
    limited = 0 if wide or every <= 64 else 64 - threshold
    floor = -(1 << 11) if dot.exponent_floor is None else dot.exponent_floor + 127
    kept = 23 if dot.output_fraction_bits is None else min(23, dot.output_fraction_bits)
    if groups is not None and dot.fraction_bits < kept:
        return None  # an operation of a group that a short last pass leaves empty would truncate the sum
    constants = {
        "TERMS": terms, "BITS": bits, "FRACTION": dot.fraction_bits,
        "ALIGN": 127 - sum(form.shape[1] + fmt.bias for form, fmt in zip(forms, (a, b), strict=True)),
        "THRESHOLD": threshold, "FLOOR": floor if wide else max(floor, 0), "WIDE": wide,
        "LIMITED": limited, "TYPES": (c.name, d.name),
        "KEEP": kept, "NARROWED": narrowed // dot.terms,
        "WINDOW": False, "SPLIT": 0, "DOWN": None,
    }  # fmt: skip
    return ModePlan(mode, low, constants, terms, forms[0], forms[1], ends, spec.terms_per_step, groups)


def _down_fits(spec: Any, a: Format, b: Format, c: Format, d: Format) -> bool:
    """Return whether :func:`tensorcore_models.gpu.source_down.down_sum` has a sum's rules, and its windows hold the sum."""
    rules = (
        spec.add_rounding,
        spec.output_rounding,
        spec.zero_operand,
        spec.zero_c,
        spec.subnormal_c,
        spec.negative_underflow,
    )
    if rules != ("rd", "rne", "skip", "minus126", "raw", "negative") or spec.exponent_floor is not None:
        return False
    fits = _operands_fit(a, b) and (c.name, d.name) == ("fp32", "fp32") and spec.terms % 4 == 0
    widths = spec.fraction_bits, spec.dot_fraction_bits, spec.c_fraction_bits
    # The dot product and c are added exactly, from a carry above the terms down to the lowest unit.
    if not fits or max(widths) + (4 * spec.terms).bit_length() > 50 or not 24 <= (spec.sum_fraction_bits or 31) <= 31:
        return False
    if not 0 <= spec.dot_fraction_bits - spec.c_fraction_bits <= 20:
        return False
    if spec.c_cutoff is not None and spec.c_cutoff < spec.c_fraction_bits:
        return False
    return spec.product_overflow_exponent is None or spec.product_overflow_exponent >= 128


def _down_plan(low: Lowered, mode: UnitMode) -> ModePlan | None:
    """Return the plan of `fused_floating` for CDNA3's sums."""
    read = low.as_read
    if read is None or low.scale_format is not None or read.via is not None:
        return None
    (algorithm, spec), (a, b, c, d), _ = read
    if algorithm is not SumAlgorithm.ROUND_DOWN or not _down_fits(spec, a, b, c, d):
        return None
    wide = max(a.exponent_bits, b.exponent_bits) == 8
    if wide and spec.parity_groups == 2:
        return None
    lowest = sum(fmt.emin - fmt.fraction_bits for fmt in (a, b))
    # Exponents of products are those of their windows; the code of a lowest bit is at most half of the top bit.
    offset = 1023 + 52 - spec.fraction_bits
    bits = _HALVES if wide else _BYTES
    left, right = (_operand(fmt, bits, False, low) for fmt in (a, b))
    lifts = offset - a.bias - b.bias
    codes = left.shape[2] + right.shape[2]
    threshold = (1 << (bits - 1)) - 128 - offset + 127 - spec.fraction_bits - lowest - codes
    more = threshold if wide else 0
    a_form = replace(left, shape=(bits, lifts // 2, left.shape[2] + more))
    b_form = replace(right, shape=(bits, lifts - lifts // 2, right.shape[2]))
    constants = {
        "TERMS": spec.terms, "BITS": bits, "FRACTION": spec.fraction_bits, "ALIGN": 127 - offset,
        "THRESHOLD": None if wide else (threshold % 256, threshold % 256 - threshold), "FLOOR": 0, "WIDE": wide,
        "LIMITED": 0, "TYPES": ("fp32", "fp32"), "KEEP": 23, "NARROWED": 0, "WINDOW": False, "SPLIT": 0,
        "DOWN": (spec.dot_fraction_bits, spec.c_fraction_bits, spec.sum_fraction_bits, spec.c_cutoff, spec.parity_groups),
    }  # fmt: skip
    return ModePlan(mode, low, constants, spec.terms, a_form, b_form, ("fp32", "fp32"), spec.terms)


def _truncates(dot: Any) -> bool:
    """Return whether addends are truncated at one alignment in which zeros take no part, within the bits of FP64."""
    rules = (dot.zero_operand, dot.zero_c, dot.alignment_rounding, dot.negative_underflow)
    return rules == ("skip", "skip", "rz", "positive") and not dot.normalised_products and dot.fraction_bits <= 28


def _result_fits(dot: Any, c: Format, d: Format) -> bool:
    if d.name == "fp32":
        raw = dot.subnormal_c == "raw"
        return dot.output_rounding == "rz" and c.name in ("fp32", "fp16") and raw
    held = d.name == "fp16" and c.name in ("fp16", "fp32") and dot.subnormal_c == "raw"
    return held and dot.output_rounding == "rne" and dot.output_fraction_bits is None


CUT_ONE_BY_ONE = UnitMode(
    "products cut one by one in FP64",
    "aligned_sums",
    FULL_FP64,
    aligned_plan,
    "Gaudi's matrix engines, which convert operands or truncate the products of their parts, and RISC-V's dot products, "
    "which round to odd; on NVIDIA's GPUs with few FP64 units only Gaudi's, slowly",
    "infinities and NaN, results of 2^127 or more",
    (2, 2),
)

MODES = (
    UnitMode(
        "fused sums in FP32",
        "fused_floating",
        NVIDIA,
        _window_plan,
        "fused sums that truncate at one alignment, of fewer than 2^22 units: FP8 of Ada and Hopper (F = 13)",
        "values that the mode in FP64 flags, and c of 2^103 or more",
    ),
    UnitMode(
        "fused sums on two windows of FP32",
        "fused_floating",
        FEW_FP64,
        _split_plan,
        "fused sums of fp16 and narrower operands to FP32, without block scales, on NVIDIA's GPUs with few FP64 units",
        "values that the mode in FP64 flags, and c of 2^103 or more",
    ),
    UnitMode(
        "fused sums in FP64",
        "fused_floating",
        FULL_FP64,
        _fused_plan,
        "fused sums that truncate at one alignment (N 4 to 32, F up to 28; fp4 to fp16, bf16, tf32) to FP32 or FP16, and "
        "chained fused sums over interleaved k",
        "infinities and NaN, results at the end of the range, c far above the products of fp16 (2^40) or below 2^-100",
    ),
    UnitMode(
        "sums rounded down in FP64",
        "fused_floating",
        FULL_FP64,
        _down_plan,
        "CDNA3's sums: products truncated at one alignment, or at one for even and one for odd k, then the dot product and c "
        "rounded down",
        "infinities and NaN, products or addends of 2^126 or more",
    ),
    UnitMode(
        "chains of multiply-adds",
        "chains",
        (*NVIDIA, "gfx942"),
        lambda low, mode: chain_plan(low, mode, multiply_add_constants(low, ("rne",)), low.accumulator.terms_per_step),
        "multiply-adds in FP32 or FP64 in the order of k, rounded to nearest, infinities and NaN included",
        "no values; on units that flush small results, results of 2^-126; on x86 and Ascend, infinities and NaN",
    ),
    UnitMode(
        "chains of multiply-adds, rounded otherwise",
        "chains",
        NVIDIA,
        lambda low, mode: chain_plan(low, mode, multiply_add_constants(low, ("rz", "rd", "ru")), 1),
        "multiply-adds in FP32 or FP64 in the order of k, rounded toward zero, up or down",
        "no values",
    ),
    UnitMode(
        "lanes of multiply-adds",
        "chains",
        (*NVIDIA, "gfx942"),
        lambda low, mode: chain_plan(
            low, mode, multiply_add_constants(low, ("rne",), True), low.accumulator.terms_per_step
        ),
        "x86's two chains over even and odd k, which are added to each other and then to c",
        "sums of 2^-126, infinities and NaN",
    ),
    UnitMode(
        "trees of products",
        "chains",
        (*NVIDIA, "gfx942"),
        lambda low, mode: chain_plan(low, mode, pairwise_constants(low), low.cycle),
        "CDNA2's fp16 and bf16: products rounded to FP32, groups of them added as a tree, infinities and NaN included",
        "no values",
    ),
    UnitMode(
        "exact sums between bounds",
        "chains",
        NVIDIA,
        lambda low, mode: chain_plan(low, mode, exact_constants(low), low.accumulator.terms_per_step),
        "exact sums of few products and c, rounded once: CDNA1's, Arm's; multiply-adds in FP16 and bf16",
        "infinities and NaN, sums whose bounds in FP64, rounded down and up, are not rounded to the same number",
    ),
    UnitMode(
        "exact sums with their errors",
        "chains",
        ("gfx942",),
        lambda low, mode: chain_plan(low, mode, exact_constants(low, True), low.accumulator.terms_per_step),
        "the same sums on targets without directed roundings: FP64 sums, and the sum of their rounding errors",
        "infinities and NaN, sums of errors that FP64 does not hold",
    ),
    UnitMode(
        "pairs rounded to odd",
        "chains",
        (*FULL_FP64, "gfx942"),
        lambda low, mode: chain_plan(low, mode, odd_constants(low), low.accumulator.terms_per_step),
        "Arm's BFMMLA: pairs of bf16 products, every operation rounded to odd in FP32",
        "infinities and NaN, results of 2^127 or more",
    ),
    UnitMode(
        "fidelity phases",
        "phases",
        (*NVIDIA, "gfx942"),
        phase_plan,
        "Tenstorrent's fidelity phases: parts of significands multiplied phase after phase, groups and sums rounded in "
        "integers; also s8",
        "no values",
    ),
    UnitMode(
        "exact sums of groups in integers",
        "group_sums",
        FEW_FP64,
        lambda low, mode: group_plan(low, mode, integers=True),
        "Blackwell's FP4 with block scales on NVIDIA's GPUs with few FP64 units",
        "values that the mode in FP64 flags",
        (2, 4),
    ),
    UnitMode(
        "exact sums of groups in FP64",
        "group_sums",
        FULL_FP64,
        group_plan,
        "Blackwell's FP4 with block scales: groups summed as bytes, scaled, and fused with c toward zero",
        "NaN and infinities, results of 2^127 or more",
        (2, 4),
    ),
    UnitMode(
        "integer sums",
        "chains",
        (*NVIDIA, "gfx942"),
        lambda low, mode: chain_plan(low, mode, integer_constants(low), low.step),
        "exact sums of integers of up to 8 bits, modulo 2^32 or clamped after each step",
        "no values",
    ),
    CUT_ONE_BY_ONE,
)

#: Mode for units that no mode above holds.
PROGRAMS = UnitMode(
    "Programs in integers",
    "program_passes",
    (*NVIDIA, "gfx942"),
    program_plan,
    "any family (also the user's own, and with block scales) whose `pass_bits` is recorded in numbers of at most 62 bits; "
    "fused sums on AMD's GPUs, and on NVIDIA's GPUs with few FP64 units the fused sums that no window of FP32 holds",
    "no values; tiles with infinities and NaN are computed again by longer Programs",
    (4, 2),
)


def _first(modes: Iterable[UnitMode], low: Lowered, target: str) -> ModePlan | None:
    """Return the plan of the first mode that holds a unit, or holds the unit after a conversion of its operands."""
    for mode in modes:
        if target in mode.targets and (plan := mode.plan(low, mode)) is not None:
            return plan
    inner = None if low.converted is None or low.finish is not None else _first(modes, low.converted, target)
    return None if inner is None else replace(inner, given=low)


@lru_cache(maxsize=256)
def _planned(low: Lowered, target: str) -> ModePlan | None:
    if (found := _first(MODES, low, target)) is None and target in PROGRAMS.targets:
        found = PROGRAMS.plan(low, PROGRAMS)
    return found or _first((replace(CUT_ONE_BY_ONE, targets=FEW_FP64),), low, target)


def plan_of(low: Lowered, target: str, label: str = "it") -> ModePlan:
    """Return the plan of a unit in the first mode that holds it.

    Parameters
    ----------
    low : Lowered
        Unit, as :func:`tensorcore_models.kernels.lowered` makes it.
    target : str
        Name of a row of :data:`tensorcore_models.gpu.targets.TARGETS`.
    label : str
        Name of the unit in messages.

    Raises
    ------
    ValueError
        If no mode holds the unit; the message names the CPU kernel that runs it.
    """
    found = _planned(low, target)
    if found is None:
        from ..kernels import kernel_name

        raise ValueError(
            f"{label} has no GPU kernel for {target}. The CPU kernel {kernel_name(low)} computes it: pass numpy arrays, or "
            "tensors on the CPU (.cpu())"
        )
    return found
