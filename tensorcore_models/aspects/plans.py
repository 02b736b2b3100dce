"""Makes fields of the plans that the compiled generic kernels run: formats, results, rounding rules and integer widths.

A family's `plan_fields` chooses a kernel and an integer width that hold every intermediate of its algorithm exactly. If there
is none, it raises :class:`BeyondKernels` with the reason, and the algorithm runs as a Program
(:mod:`tensorcore_models.kernels.recorded`) or in plain integers. No kernel holds:

- sums wider than 126 bits (fraction bits plus integer bits of all terms), or wider than 80 limbs with exact accumulation
- block-scaled groups whose exact sums exceed 126 bits, and pairwise groups of more than 64 products
- pairwise sums, lanes, and pairs rounded to odd, if their products are not exact in double (FP64 operands)
- result formats that are unsigned, lack NaN, or have more than 62 significand bits; formats with exponents beyond 2^24; integer
  operands of more than 16 bits
- `via_format` conversions from formats of more than 16 bits
- algorithms that need 128-bit integers, if the compiler that built the kernels has none
"""

from .._kernels.generic import generic
from ..arithmetic.numbers import SpecialRules
from ..formats import Format

# These are constants of generic_plan.h and generic_number.h.
(
    FUSED, INTERLEAVED, GROUPS, ROUND_DOWN, EXACT, SOFT_FMA, INTEGER, PHASES, INTEGER_PHASES, FMA, FMA64, FMA_EXACT, LANED,
    PAIRWISE, PAIR_ODD, TWO_LANES,
) = range(16)  # fmt: skip
#: Names of the kernels in the order of these constants.
KERNEL_NAMES = (
    "fused", "interleaved", "groups", "round_down", "exact", "soft_fma", "integer", "phases", "integer_phases", "fma", "fma64",
    "fma_exact", "laned", "pairwise", "pair_odd", "two_lanes",
)  # fmt: skip
MAX_TERMS, MAX_GROUP, MAX_LIMBS = generic.MAX_TERMS, generic.MAX_GROUP, generic.MAX_LIMBS
#: Largest number of products of parts of two significands.
MAX_PARTS = generic.MAX_PARTS
HAS_WIDE, ALIGN_NONE = generic.HAS_WIDE, generic.ALIGN_NONE
_SPECIALS = {"ieee": 0, "fn": 1, "fnuz": 2, "finite": 3, "scale": 4}
ROUNDINGS = {
    "rne": 0,
    "rna": 1,
    "rz": 2,
    "ru": 3,
    "rd": 4,
    "ro": 5,
    "sr": 6,
    "ra": 7,
    "rnu": 8,
    "rnd": 9,
    "rnz": 10,
    "rno": 11,
}
KEEP, FLUSH_SIGNED, FLUSH_POSITIVE, FLUSH_LIKE_ZERO = range(4)
FLUSH_NONE, FLUSH_SUBNORMAL, FLUSH_TINY = range(3)
LARGEST_EXPONENT = 1 << 24
#: Largest number of bits of a product in the vector kernel (generic_vector.h), by mpg_plan.wide.
VECTOR_PRODUCTS = (60, 124)


class BeyondKernels(Exception):
    """BeyondKernels is raised if the generic kernels cannot hold an intermediate of an accumulator, which the reference can."""


def require(condition: bool, reason: str) -> None:
    """Raise BeyondKernels with a reason unless a condition holds."""
    if not condition:
        raise BeyondKernels(reason)


def _check_format(fmt: Format) -> None:
    require(fmt.has_fields, f"format {fmt.name} has no fields")
    exponents = (fmt.emin - fmt.fraction_bits, fmt.emax + 1)
    require(max(map(abs, exponents)) < LARGEST_EXPONENT, f"format {fmt.name} has exponents beyond {LARGEST_EXPONENT}")


def format_fields(
    fmt: Format, spec: SpecialRules, zero: str = "format_minimum", *, normalise=False, flush=KEEP
) -> dict:
    """Return the fields of mpg_format (generic_number.h), which decode a number; `zero` is the edge rule of zeros."""
    _check_format(fmt)
    zero_align = {"minus126": -126, "format_minimum": fmt.emin, "skip": generic.ALIGN_NONE}[zero]
    same = ("exponent_bits", "fraction_bits", "padding_bits", "sign_bit", "emin", "bias")
    return {
        **{name: getattr(fmt, name) for name in same},
        "specials": _SPECIALS[fmt.specials],
        "keep_padded_nan": spec.tf32_nan == "kept",
        "zero_align": zero_align,
        "normalise": normalise,
        "flush": flush,
        "flush_below": fmt.emin,
    }


def result_fields(fmt: Format) -> dict:
    """Return the fields of mpg_result (generic_number.h), the format of results."""
    require(fmt.signed and fmt.has_nan, f"result format {fmt.name} is unsigned or has no NaN")
    require(fmt.precision <= 62, f"result format {fmt.name} has {fmt.precision} significand bits")
    _check_format(fmt)
    same = ("fraction_bits", "padding_bits", "quantum_exponent", "emax", "sign_bit")
    return {
        **{name: getattr(fmt, name) for name in same},
        "zero_sign": fmt.sign_bit if fmt.has_negative_zero else 0,
        "max_code": fmt.max_bits >> fmt.padding_bits,
        "inf_code": fmt.inf_bits if fmt.has_inf else fmt.nan_bits,
        "inf_sign": 0 if fmt.specials == "fnuz" else fmt.sign_bit,
    }


def rule_fields(
    fmt: Format,
    spec: SpecialRules,
    rounding: str,
    *,
    kept=None,
    to_inf=False,
    saturate=False,
    flush=FLUSH_NONE,
    positive=False,
) -> dict:
    """Return the fields of mpg_rule (generic_number.h), which round a sum to the format or to `kept` of its fraction bits."""
    all_ones = fmt.magnitude_mask | ((1 << fmt.padding_bits) - 1)
    ieee = fmt.specials == "ieee"
    return {
        "rounding": ROUNDINGS[rounding],
        "kept_bits": fmt.fraction_bits if kept is None else min(kept, fmt.fraction_bits),
        "to_inf": to_inf,
        "saturate": saturate,
        "flush": flush,
        "nan_operand": _NAN_OPERANDS.get(spec.nan, 0) if ieee and not saturate else 0,
        "positive_underflow": positive,
        "positive_zero": False,
        "nan_code": all_ones if ieee and spec.nan == "all_ones" else fmt.nan_bits,
        "seed": spec.key or 0,
        "draw": 0,
    }


#: Constants of generic_number.h for NaN rules under which a NaN result is one of the operands.
_NAN_OPERANDS = {"x86": 1, "dmma": 2}
#: Largest number of fraction bits of a result whose stochastic rounding compares numbers of 64 bits.
MAX_STOCHASTIC = 24


def require_draws(spec: SpecialRules, fmt: Format) -> None:
    """Raise BeyondKernels for stochastic rounding to results that are too wide for the kernels."""
    require(
        spec.key is None or fmt.fraction_bits <= MAX_STOCHASTIC,
        f"stochastic rounding to {fmt.fraction_bits} fraction bits",
    )


def growth_bits(count: int) -> int:
    """Return the number of bits by which a sum of `count` numbers can be longer than its addends."""
    return (count - 1).bit_length()


def integer_width(operands: tuple[int, int], intermediates: int, others: int) -> int:
    """Return 0 if 32-bit operands and 64-bit intermediates suffice, 1 for 64 and 128 bits; else raise BeyondKernels."""
    if max(operands) <= 31 and intermediates <= 62 and others <= 60:
        return 0
    require(generic.HAS_WIDE, "the compiler that built the kernels has no 128-bit integers")
    require(
        max(operands) <= 63 and intermediates <= 126,
        f"operands of {max(operands)} and intermediates of {intermediates} bits exceed 63 and 126",
    )
    return 1


def width_fields(operands: tuple[int, int], intermediates: int, c: Format, d: Format) -> dict:
    """Return the fields of the integers' width, and of whether the vector kernel holds the sum (generic_vector.h)."""
    wide = integer_width(operands, intermediates, max(c.precision, d.precision))
    if sum(operands) > VECTOR_PRODUCTS[wide] and generic.HAS_WIDE:
        wide = 1
    return {"wide": wide, "vector": vector_holds(operands, c, d, wide), "narrow": max(operands) <= 31}


def vector_holds(operands: tuple[int, int], c: Format, d: Format, wide: int) -> bool:
    """Return whether the vector kernel holds products and addends; it holds every sum that fits the width."""
    return sum(operands) <= VECTOR_PRODUCTS[wide] and max(c.precision, d.precision) <= 60


def binary_tree(count: int, places: int, begin: int = 0) -> list[int]:
    """Return a flat list of the pairs of positions that a binary tree adds.

    The tree has `places` neighbours, of which the first `count` are present.
    """
    middle = places // 2
    if count <= middle:
        return binary_tree(count, middle, begin) if count > 1 else []
    if count < 2:
        return []
    right = binary_tree(count - middle, places - middle, begin + middle)
    return [*binary_tree(middle, middle, begin), *right, begin, begin + middle]


def sums_after(count: int) -> list[int]:
    """Return for each of `count` neighbours how many additions of a binary tree are complete after it.

    The left part of the tree is the larger one.
    """
    if count < 2:
        return [0] * count
    middle = (count + 1) // 2
    sums = sums_after(middle) + sums_after(count - middle)
    sums[-1] += 1
    return sums
