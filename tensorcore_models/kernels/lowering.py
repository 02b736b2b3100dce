"""Turns an accumulator with its formats into what the compiled generic kernels take.

Here it is decided which kernel family and which integer width hold every intermediate of an accumulator exactly. What none
holds is left to the plain-integer reference; :attr:`Lowered.reason` then says why:

- sums wider than 126 bits (fraction bits plus integer bits of all terms), or, with exact accumulation, than 80 limbs;
- block-scaled groups whose exact sums exceed 126 bits; pairwise groups of more than 64 products;
- pairwise, laned and pair-wise rounded-to-odd algorithms whose products are not exact in double (FP64 operands);
- result formats that are unsigned, have no NaN or more than 62 significand bits; formats with exponents beyond 2^24;
  integer operands over 16 bits;
- `via_format` conversions from formats of more than 16 bits;
- everything that needs 128-bit integers where the compiler has none.
"""

from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from .._kernels.generic import generic
from ..accumulators import (
    Accumulator,
    FusedDotAdd,
    FusedDotRoundDownAdd,
    GroupDotFusedSum,
    GroupPairwiseSum,
    IntegerDotAdd,
    InterleavedDotAdd,
    LanedFMA,
    PairRoundOddSum,
    ParametricDotAdd,
    SequentialFMA,
    as_parametric,
)
from ..formats import Format, IntegerFormat, get_format
from ..reference.passes import via_bits
from ..aspects.plans import (
    EXACT,
    FLUSH_SIGNED,
    FUSED,
    GROUPS,
    INTEGER,
    INTERLEAVED,
    KEEP,
    LARGEST_EXPONENT,
    ROUND_DOWN,
    ROUNDINGS,
    BeyondKernels,
    format_fields,
    growth_bits,
    integer_width,
    require,
    result_fields,
    rule_fields,
    vector_holds,
    width_fields,
)
from .lower_ieee import lower_laned, lower_pair_odd, lower_pairwise, lower_sequential

_FAMILY_NAMES = (
    "fused", "interleaved", "groups", "round_down", "exact", "soft_fma", "integer", "fma", "fma64", "fma_exact", "laned",
    "pairwise", "pair_odd",
)  # fmt: skip
_ALIGNMENTS = {"global": 0, "pairwise": 1, "odd_even": 2}
_NORMALISING = 3
#: Numbers of generic_plan.h.
_SKIPPED_ZEROS = {"keeps_scale": 0, "skip": 1, "skip_zero_products": 2}
_NEVER_CUT = 127


@dataclass(frozen=True, eq=False)
class Lowered:
    """An accumulator with its formats, made ready for the kernels.

    Parameters
    ----------
    accumulator : Accumulator
        The algorithm.
    a_format, b_format, c_format, d_format : Format or IntegerFormat
        Formats of the operands, the addend and the result.
    scale_format : Format or None
        Format of the block scales, None without.
    block_size : int or None
        Products that share a block scale.
    plan : generic.Plan or None
        What the generic kernel runs; None: the reference must.
    reason : str
        Why there is no plan; empty if there is one.
    kernel : str
        Name of the generic kernel's family and integer width.
    a_table, b_table : ndarray or None
        Encodings of the format in which the unit multiplies, for every encoding of the operand's (InterleavedDotAdd).
    operands_alike : bool
        A and B are taken apart by the same rules and no result shows which of them it comes from, so that they may change
        places; under the rule nan "x86" the NaN of A comes before that of B.
    arithmetic : tuple or None
        Everything that the generic kernel is told about the algorithm: where it is equal, so are all results.
    layouts, fast_kernels : dict
        What has been prepared so far: arrangements of passes by length, kernels of the fast paths by name.
    """

    accumulator: Accumulator
    a_format: Format | IntegerFormat
    b_format: Format | IntegerFormat
    c_format: Format | IntegerFormat
    d_format: Format | IntegerFormat
    scale_format: Format | None = None
    block_size: int | None = None
    plan: generic.Plan | None = None
    reason: str = ""
    kernel: str = "reference"
    step: int = 1
    a_table: np.ndarray | None = None
    b_table: np.ndarray | None = None
    operands_alike: bool = False
    arithmetic: tuple | None = field(default=None, repr=False)
    layouts: dict[int, generic.Layout] = field(default_factory=dict, repr=False)
    fast_kernels: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def floating(self) -> tuple[Format, Format, Format, Format] | None:
        """Formats of a, b, c and d; None if one of them is an integer format."""
        a, b, c, d = self.a_format, self.b_format, self.c_format, self.d_format
        if isinstance(a, Format) and isinstance(b, Format) and isinstance(c, Format) and isinstance(d, Format):
            return a, b, c, d
        return None

    @property
    def cycle(self) -> int:
        """Products after which a chain goes on as it began."""
        return self.accumulator.terms_per_step * getattr(self.accumulator, "groups_per_instruction", 1)

    @cached_property
    def continued(self) -> "Lowered":
        """The same for the rest of a chain, whose addend is a result."""
        return self if self.c_format == self.d_format else lower(replace(self, c_format=self.d_format))

    def layout(self, k: int) -> generic.Layout:
        """Arrangement of the last pass over a chain of `k` products."""
        length = k % self.step or self.step
        found = self.layouts.get(length)
        if found is None:
            found = self.layouts[length] = pass_layout(self.accumulator, length)
        return found


def lower(engine) -> Lowered:
    """Make an engine's accumulator and formats ready for the kernels.

    Parameters
    ----------
    engine : MatrixEngine or Instruction
        Anything with `accumulator`, `a_format`, `b_format`, `c_format`, `d_format`, `scale_format` and `block_size`.

    """
    spec = engine.accumulator
    formats = tuple(get_format(f) for f in (engine.a_format, engine.b_format, engine.c_format, engine.d_format))
    scale = get_format(engine.scale_format) if engine.scale_format else None
    identity: dict[str, Any] = dict(zip(("a_format", "b_format", "c_format", "d_format"), formats, strict=True))
    identity.update(accumulator=spec, scale_format=scale, block_size=engine.block_size if scale else None)
    lowering = _LOWERINGS.get(type(spec))
    if lowering is None:
        return Lowered(**identity, reason=f"{type(spec).__name__} has no lowering")
    try:
        tables: dict[str, Any] = {}
        if isinstance(spec, InterleavedDotAdd):
            tables = {"a_table": _via_table(spec, formats[0]), "b_table": _via_table(spec, formats[1])}
        fields = lowering(spec, formats, scale, engine.block_size)
    except BeyondKernels as error:
        return Lowered(**identity, reason=str(error))
    step = fields["step"]
    arrangement = _arrangement(spec, step)
    whole = generic.Layout(*arrangement)
    return Lowered(
        **identity,
        **tables,
        plan=generic.Plan(fields, whole),
        kernel=f"{_FAMILY_NAMES[fields['family']]}-{128 if fields['wide'] else 64}",
        step=step,
        operands_alike=formats[0] == formats[1] and fields.get("a") == fields.get("b") and spec.nan != "x86",
        arithmetic=(fields, arrangement, getattr(spec, "via_format", None)),
        layouts={step: whole},
    )


# -- arrangement of a pass ---------------------------------------------------------------------------------------------------
def _tree(begin: int, count: int, places: int) -> list[int]:
    """Additions of a binary tree over `places` neighbours, the first `count` present, as pairs of positions, flattened."""
    middle = places // 2
    if count <= middle:
        return _tree(begin, count, middle) if count > 1 else []
    if count < 2:
        return []
    return [
        *_tree(begin, middle, middle),
        *_tree(begin + middle, count - middle, places - middle),
        begin,
        begin + middle,
    ]


def _sums_after(count: int) -> list[int]:
    """How many pairs of parts of a binary tree (the left part the larger one) are complete after each of `count` neighbours."""
    if count < 2:
        return [0] * count
    middle = (count + 1) // 2
    sums = _sums_after(middle) + _sums_after(count - middle)
    sums[-1] += 1
    return sums


def _segments(groups: list[list[int]]) -> tuple[list[int], list[int]]:
    order = [k for group in groups for k in group]
    bounds = [0]
    for group in groups:
        bounds.append(bounds[-1] + len(group))
    return order, bounds


def pass_layout(spec: Accumulator, length: int) -> generic.Layout:
    """How the kernel arranges `length` products of one pass."""
    return generic.Layout(*_arrangement(spec, length))


def _arrangement(spec: Accumulator, length: int) -> tuple[list[int], list[int], list[int]]:
    """The order of `length` products of one pass, the segments, and the tree of additions."""
    ks = list(range(length))
    groups = [ks]
    tree: list[int] = []
    if isinstance(spec, ParametricDotAdd) and spec.alignment == "odd_even":
        groups = [ks[0::2], ks[1::2]]
    elif isinstance(spec, FusedDotRoundDownAdd):
        groups = [ks[i :: spec.parity_groups] for i in range(spec.parity_groups)]
    elif isinstance(spec, GroupDotFusedSum):
        groups = [ks[i : i + spec.group] for i in range(0, length, spec.group)]
    elif isinstance(spec, InterleavedDotAdd):
        members = [[k for k in ks if k // spec.run % spec.groups == group] for group in spec.group_order]
        groups = [g[i : i + spec.dot.terms] for g in members for i in range(0, len(g), spec.dot.terms)]
    elif isinstance(spec, LanedFMA):
        groups = [ks[lane :: spec.lanes] for lane in range(spec.lanes)]
    elif isinstance(spec, SequentialFMA) and spec.pair_order == "odd_first":
        groups = [[k for pair in range(0, length, 2) for k in (pair + 1, pair) if k < length]]
    elif isinstance(spec, GroupPairwiseSum | PairRoundOddSum):
        tree = _tree(0, length, spec.terms_per_step)
    elif isinstance(spec, ParametricDotAdd) and spec.alignment == "pairwise":
        tree = _sums_after(length)
    return *_segments(groups), tree


# -- the families ------------------------------------------------------------------------------------------------------------
def _aligned_fields(spec, formats, scale: Format | None, block_size: int | None) -> dict:
    """Fields that all aligned sums share."""
    a, b, c, d = formats
    flush = FLUSH_SIGNED if getattr(spec, "flush_inputs", False) else KEEP
    normalise = spec.subnormal_c == "normalised"
    fields = {
        "step": spec.terms_per_step,
        "a": format_fields(a, spec, spec.zero_operand, flush=flush),
        "b": format_fields(b, spec, spec.zero_operand, flush=flush),
        "c": format_fields(c, spec, spec.zero_c, normalise=normalise, flush=flush),
        "chained": format_fields(d, spec, spec.zero_c, normalise=normalise, flush=flush),
        "raw_c": format_fields(c, spec),
        "raw_d": format_fields(d, spec),
        "result": result_fields(d),
        "rule": rule_fields(
            d,
            spec,
            spec.output_rounding,
            kept=getattr(spec, "output_fraction_bits", None),
            to_inf=True,
            flush=getattr(spec, "flush_outputs", False),
            positive=spec.negative_underflow == "positive",
        ),
        "late": rule_fields(d, spec, "rne"),
    }
    if spec.exponent_floor is not None:
        require(abs(spec.exponent_floor) < LARGEST_EXPONENT, f"exponent_floor is beyond {LARGEST_EXPONENT}")
        fields["floor"] = spec.exponent_floor
    if scale is not None:
        fields["scale"] = format_fields(scale, spec, spec.zero_operand)
        fields["block"] = block_size
    fields["skip_scaled_zero"] = _SKIPPED_ZEROS[getattr(spec, "scaled_zero", "keeps_scale")]
    require(spec.terms_per_step <= generic.MAX_TERMS, f"more than {generic.MAX_TERMS} products in a pass")
    return fields


def _limit(fields: dict, exponent: int | None) -> None:
    if exponent is not None:
        require(abs(exponent) < LARGEST_EXPONENT, f"product_overflow_exponent is beyond {LARGEST_EXPONENT}")
        fields["limit"] = exponent


def _lower_fused(spec, formats, scale: Format | None, block_size: int | None) -> dict:
    spec = as_parametric(spec)
    a, b, c, d = formats
    fields = _aligned_fields(spec, formats, scale, block_size)
    scale_bits, scale_fraction = (scale.precision, scale.fraction_bits) if scale else (0, 0)
    operands = (a.precision + scale_bits, b.precision + scale_bits)
    integer = 4 if scale else 2  # a significand is below 2 in units of its own exponent
    fields.update(
        product_fraction=a.fraction_bits + b.fraction_bits + 2 * scale_fraction,
        product_integer=integer,
        rounding=ROUNDINGS[spec.alignment_rounding],
        sticky=spec.sticky,
        normalised=spec.normalised_products,
        alignment=_NORMALISING if spec.normalise_each_add else _ALIGNMENTS[spec.alignment],
        late_c=spec.c_position == "late",
        late=rule_fields(d, spec, spec.late_rounding, flush=spec.flush_outputs),
    )
    _limit(fields, spec.product_overflow_exponent)
    if spec.fraction_bits is None:
        for name in {"a", "b", "c", "chained", "scale"} & set(fields):
            fields[name]["zero_align"] = generic.ALIGN_NONE  # nothing is cut off: zeros add nothing, wherever they are
        return fields | _exact_fields(spec, formats, scale, operands)
    if spec.integer_bits is not None:
        fields["integer_bits"] = spec.integer_bits
    total = spec.fraction_bits + integer + growth_bits(spec.terms + 1) + 2
    width = width_fields(operands, max(sum(operands), total), c, d)
    return fields | width | {"family": FUSED, "fraction_bits": spec.fraction_bits}


def _exact_fields(spec, formats, scale: Format | None, operands: tuple[int, int]) -> dict:
    """The long accumulator: from the last bit of the smallest addend to the sum of the largest."""
    a, b, c, d = formats
    require(generic.HAS_WIDE, "the compiler that built the kernels has no 128-bit integers")
    require(max(operands) <= 63, f"operands of {max(operands)} bits exceed 63")
    scale_low, scale_high = (2 * (scale.emin - scale.fraction_bits), 2 * scale.emax + 2) if scale else (0, 0)
    product_low = a.emin - a.fraction_bits + b.emin - b.fraction_bits + scale_low
    base = min(product_low, c.emin - c.fraction_bits, d.emin - d.fraction_bits)
    top = max(a.emax + b.emax + 2 + scale_high, c.emax + 1, d.emax + 1) + growth_bits(spec.terms + 1)
    limbs = (top - base + 1) // 64 + 1
    require(limbs <= generic.MAX_LIMBS, f"an exact accumulator of {64 * limbs} bits")
    return {
        "family": EXACT,
        "wide": 1,
        "base": base,
        "limbs": limbs,
        # The vector kernel tries an aligned sum of all the bits it holds; where that loses any, the sum is long.
        "vector": vector_holds(operands, c, d, 1),
        "narrow": max(operands) <= 31,
        "fraction_bits": 126 - (4 if scale else 2) - growth_bits(spec.terms + 1),
        "normalised": False,
    }


def _lower_interleaved(spec: InterleavedDotAdd, formats, scale, block_size) -> dict:
    via = get_format(spec.via_format)
    d = formats[3]
    fields = _lower_fused(spec.dot, (via, via, d, d), None, None)
    require(spec.terms_per_step <= generic.MAX_TERMS, f"more than {generic.MAX_TERMS} products in a pass")
    if not fields["wide"]:
        require(formats[2].precision <= 60, f"an addend of {formats[2].precision} bits")
    fields.update(
        family=INTERLEAVED,
        step=spec.terms_per_step,
        raw_c=format_fields(formats[2], spec),
        raw_d=format_fields(d, spec),
        late=rule_fields(d, spec, spec.final_rounding),
    )
    return fields


def _via_table(spec: InterleavedDotAdd, fmt: Format | IntegerFormat) -> np.ndarray | None:
    via = get_format(spec.via_format)
    if fmt == via:
        return None
    if not isinstance(fmt, Format):
        raise BeyondKernels(f"conversion of {fmt.name} to {via.name}")
    require(
        fmt.container.itemsize <= 2, f"conversion of {fmt.name} to {via.name} takes a table of 2^{fmt.bits} entries"
    )
    return _conversion_table(fmt, via, spec.tf32_nan)


@cache
def _conversion_table(fmt: Format, via: Format, tf32_nan: Literal["truncated", "kept"]) -> np.ndarray:
    """Encodings of `via` for all encodings of `fmt`; kept, because specifications that differ elsewhere share it."""
    spec = InterleavedDotAdd(via_format=via.name, tf32_nan=tf32_nan)
    table = np.array([via_bits(fmt, bits, spec) for bits in range(1 << 8 * fmt.container.itemsize)], via.container)
    table.setflags(write=False)
    return table


def _lower_groups(spec: GroupDotFusedSum, formats, scale: Format | None, block_size: int | None) -> dict:
    a, b, c, d = formats
    fields = _aligned_fields(spec, formats, scale, block_size)
    operands = tuple(f.precision + f.emax - f.emin for f in (a, b))  # as fixed-point numbers
    scale_bits = 2 * scale.precision if scale else 0
    require(scale is None or scale.precision <= 31, "block scales of more than 31 bits")
    integer = max(a.emax + b.emax + 2 + growth_bits(spec.group) + (2 if scale else 0), 1)
    total = spec.fraction_bits + integer + growth_bits(spec.terms // spec.group + 1) + 2
    products = sum(operands) + growth_bits(spec.group) + scale_bits
    wide = integer_width(operands, max(products, total), max(c.precision, d.precision))
    return fields | {
        "family": GROUPS,
        "wide": wide,
        "fraction_bits": spec.fraction_bits,
        "rounding": ROUNDINGS["rz"],
        "base": a.emin - a.fraction_bits + b.emin - b.fraction_bits,
    }


def _lower_round_down(spec: FusedDotRoundDownAdd, formats, scale, block_size) -> dict:
    a, b, c, d = formats
    fields = _aligned_fields(spec, formats, None, None)
    operands = (a.precision, b.precision)
    widest = max(spec.fraction_bits, spec.dot_fraction_bits, spec.c_fraction_bits)
    total = widest + 2 + growth_bits(spec.terms + 1) + 3
    fields.update(
        family=ROUND_DOWN,
        **width_fields(operands, max(sum(operands), total), c, d),
        fraction_bits=spec.fraction_bits,
        product_fraction=a.fraction_bits + b.fraction_bits,
        product_integer=2,
        dot_fraction_bits=spec.dot_fraction_bits,
        c_fraction_bits=spec.c_fraction_bits,
        add_rounding=ROUNDINGS[spec.add_rounding],
        c_wins=spec.c_inf_with_overflow == "c",
        sum_fraction_bits=_NEVER_CUT if spec.sum_fraction_bits is None else spec.sum_fraction_bits,
    )
    if spec.c_cutoff is not None:
        require(abs(spec.c_cutoff) < LARGEST_EXPONENT, f"c_zero_below is beyond {LARGEST_EXPONENT}")
        fields["cutoff"] = spec.c_cutoff
    _limit(fields, spec.product_overflow_exponent)
    return fields


def _lower_integer(spec: IntegerDotAdd, formats, scale, block_size) -> dict:
    a, b, c, d = formats
    require(max(a.bits, b.bits) <= 16 and max(c.bits, d.bits) <= 32, "operands over 16 bits or results over 32")
    fields = {"family": INTEGER, "wide": 0, "step": spec.terms_per_step, "clamp": spec.saturate}
    for name, fmt in zip("abcd", formats, strict=True):
        fields |= {f"{name}_bits": fmt.bits, f"{name}_signed": fmt.signed}
    return fields


_LOWERINGS = {
    FusedDotAdd: _lower_fused,
    ParametricDotAdd: _lower_fused,
    InterleavedDotAdd: _lower_interleaved,
    GroupDotFusedSum: _lower_groups,
    FusedDotRoundDownAdd: _lower_round_down,
    **dict.fromkeys(FusedDotRoundDownAdd.__subclasses__(), _lower_round_down),
    SequentialFMA: lower_sequential,
    LanedFMA: lower_laned,
    GroupPairwiseSum: lower_pairwise,
    PairRoundOddSum: lower_pair_odd,
    IntegerDotAdd: _lower_integer,
}
