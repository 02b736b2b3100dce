"""Turns accumulators made of IEEE operations into what the generic kernels take."""

from .._kernels.generic import generic
from ..accumulators import GroupPairwiseSum, LanedFMA, PairRoundOddSum, SequentialFMA
from ..formats import FORMATS, Format
from ..aspects.plans import (
    FLUSH_NONE,
    FLUSH_POSITIVE,
    FLUSH_SIGNED,
    FLUSH_SUBNORMAL,
    FLUSH_TINY,
    FMA,
    FMA64,
    FMA_EXACT,
    KEEP,
    LANED,
    PAIR_ODD,
    PAIRWISE,
    SOFT_FMA,
    format_fields,
    integer_width,
    require,
    result_fields,
    rule_fields,
)

#: Chained FMAs in one pass of the kernel; the bits do not depend on it.
_FMA_PASS = 64


def _ieee_fields(
    spec, formats, rounding: str, *, flush_inputs: int, to_inf=False, saturate=False, flush=FLUSH_NONE
) -> dict:
    """Fields of the algorithms made of IEEE operations."""
    a, b, c, d = formats
    rule = rule_fields(d, spec, rounding, to_inf=to_inf, saturate=saturate, flush=flush)
    return {
        "wide": 0,
        "step": spec.terms_per_step,
        "a": format_fields(a, spec, flush=flush_inputs),
        "b": format_fields(b, spec, flush=flush_inputs),
        "c": format_fields(c, spec),
        "chained": format_fields(d, spec),
        "raw_c": format_fields(c, spec),
        "raw_d": format_fields(d, spec),
        "result": result_fields(d),
        "rule": rule,
        "late": rule,
    }


def _double_holds(fmt: Format) -> bool:
    """Whether every number of the format is a double."""
    return fmt.precision <= 53 and fmt.emin - fmt.fraction_bits >= -1074 and fmt.emax <= 1022


def _lanes_hold(formats) -> bool:
    """Whether products are exact in double and a double rounded to odd decides every rounding (generic_lanes.h)."""
    a, b, c, d = formats
    return (
        a.precision + b.precision <= 53
        and a.emin - a.fraction_bits + b.emin - b.fraction_bits >= -1074
        and a.emax + b.emax + 2 <= 1022
        and all(_double_holds(f) for f in formats)
        and d.specials == "ieee"
        and d.precision <= 50
    )


def _require_lanes(formats) -> None:
    require(
        _lanes_hold(formats), "products or results that are not exact in double, or a result format without infinity"
    )


def lower_sequential(spec: SequentialFMA, formats, scale, block_size) -> dict:
    """Chains of fused multiply-adds: in doubles where products are exact there, else in integers or by their exact errors."""
    a, b, c, d = formats
    flush = FLUSH_SIGNED if spec.flush_inputs else KEEP
    results = FLUSH_TINY if spec.flush_outputs else FLUSH_NONE
    fields = _ieee_fields(spec, formats, spec.rounding, flush_inputs=flush, saturate=spec.saturate, flush=results)
    fields["step"] = _FMA_PASS
    one_flush = not spec.flush_inputs or c.emin >= d.emin  # the first addend is flushed by c's range, later ones by d's
    if spec.flush_inputs:
        fields.update(c_flush=2.0 ** max(c.emin, -1074), chained_flush=2.0 ** max(d.emin, -1074))
    doubles = all(f.precision <= 53 and f.emin - f.fraction_bits >= -1074 and f.emax <= 1023 for f in (a, b, c))
    fp64 = FORMATS["fp64"]
    is_fp64 = (d.exponent_bits, d.fraction_bits, d.bias, d.specials) == (11, 52, fp64.bias, "ieee")
    if is_fp64 and doubles and one_flush and spec.rounding == "rne" and not spec.flush_outputs:
        return fields | {"family": FMA64}
    if _lanes_hold(formats) and one_flush:
        return fields | {"family": FMA}
    if generic.HAS_WIDE and doubles and one_flush and (is_fp64 or (d.precision <= 50 and _double_holds(d))):
        return fields | {"family": FMA_EXACT}
    require(not fields["late"]["nan_operand"], "NaN payloads of numbers that double does not hold")
    signed = (a.precision + 1, b.precision + 1)  # packed with their sign
    fields.pop("c_flush", None), fields.pop("chained_flush", None)
    fields.update(
        family=SOFT_FMA,
        wide=integer_width(signed, a.precision + b.precision + 2, max(c.precision, d.precision + 2)),
        product_fraction=a.fraction_bits + b.fraction_bits,
        c=format_fields(c, spec, flush=flush),
        chained=format_fields(d, spec, flush=flush),
    )
    return fields


def lower_laned(spec: LanedFMA, formats, scale, block_size) -> dict:
    """Interleaved chains of fused multiply-adds, in lanes of doubles."""
    _require_lanes(formats)
    flush = FLUSH_SIGNED if spec.flush_inputs else KEEP
    fields = _ieee_fields(spec, formats, "rne", flush_inputs=flush, flush=FLUSH_TINY)
    return fields | {"family": LANED, "c_flush": 2.0 ** formats[2].emin}


def lower_pairwise(spec: GroupPairwiseSum, formats, scale, block_size) -> dict:
    """Trees of IEEE additions over groups of products, in lanes of doubles."""
    _require_lanes(formats)
    require(spec.group <= generic.MAX_GROUP, f"groups of more than {generic.MAX_GROUP} products")
    flush = KEEP if spec.flush_input == "none" else FLUSH_POSITIVE
    below = FORMATS["fp32"].emin
    fields = _ieee_fields(
        spec, formats, "rne", flush_inputs=flush, flush=FLUSH_SUBNORMAL if spec.flush_results else FLUSH_NONE
    )
    if spec.flush_input == "fp32":
        fields["a"]["flush_below"] = fields["b"]["flush_below"] = below
    if flush:
        fields.update(c_flush=2.0**below, c_flush_passes=spec.groups_per_instruction)
    return fields | {"family": PAIRWISE}


def lower_pair_odd(spec: PairRoundOddSum, formats, scale, block_size) -> dict:
    """Pairs of products summed with rounding to odd, in lanes of doubles."""
    _require_lanes(formats)
    fields = _ieee_fields(spec, formats, "ro", flush_inputs=FLUSH_SIGNED, to_inf=True, flush=FLUSH_SUBNORMAL)
    return fields | {"family": PAIR_ODD, "c_flush": 2.0 ** formats[2].emin}
