"""Reference of the fused algorithms: FDA, GDFS, FDRDA, GFDRDA and the parametric accumulator, in exact integers."""

from ..accumulators import AlignedSum, FusedDotRoundDownAdd, GroupDotFusedSum, ParametricDotAdd
from ..formats import Format
from ..formats.exact_rounding import round_to_bits, shift_right_rounded
from . import ieee
from .operands import Addend, Operand, flushed, multiply, normalised, special_bits, special_result, zero_bits


def finish(
    total: int,
    exponent: int,
    fmt: Format,
    spec: AlignedSum,
    rounding: str,
    fraction_bits: int | None = None,
    flush: bool = False,
) -> int:
    """Normalise and round ``total * 2**exponent`` to `fmt`; the exact sum 0 is +0, overflow is infinity."""
    negative = total < 0
    bits = round_to_bits(
        negative, abs(total), exponent, fmt, rounding, overflow_to_inf=True, fraction_bits=fraction_bits
    )
    if fmt.decode_exact(bits).kind == "nan":  # overflow where there is no infinity; fnuz encodes it as -0
        return bits
    magnitude = bits & fmt.magnitude_mask
    if magnitude == 0 or (flush and magnitude < 1 << (fmt.fraction_bits + fmt.padding_bits)):
        return zero_bits(negative and spec.negative_underflow == "negative", fmt)
    return bits


def aligned(addend: Addend, unit: int, rounding: str) -> int:
    """Signed multiple of 2**unit nearest to the addend under `rounding`."""
    magnitude = shift_right_rounded(addend.magnitude, unit - addend.exponent, rounding, addend.negative)
    return -magnitude if addend.negative else magnitude


def as_addends(numbers: list[Operand]) -> list[Addend]:
    """The numbers that take part in an alignment."""
    return [
        Addend(x.negative, x.significand, x.exponent, x.align)
        for x in numbers
        if x.kind == "finite" and x.align is not None
    ]


def largest_exponent(addends: list[Addend], floor: int | None = None) -> int:
    """Alignment exponent of a fused sum."""
    largest = max(x.align for x in addends)
    return largest if floor is None else max(largest, floor)


# -- the parametric accumulator, of which FDA is a point ---------------------------------------------------------------------
def _wrapped(total: int, unit: int, largest: int, integer_bits: int | None) -> int:
    """`total` (in units of 2**unit) in two's complement with `integer_bits` bits above the point at 2**largest."""
    if integer_bits is None:
        return total
    half = 1 << (integer_bits + largest - unit)
    return (total + half) % (2 * half) - half


def _sum_aligned(spec: ParametricDotAdd, addends: list[Addend]) -> Addend:
    """One alignment of all addends, summed exactly; the result keeps the alignment exponent (it is not normalised)."""
    largest = largest_exponent(addends, spec.exponent_floor)
    if spec.fraction_bits is None:
        unit, rounding = min(x.exponent for x in addends), "rz"
    elif spec.sticky:
        unit, rounding = largest - spec.fraction_bits - 1, "ro"  # one more bit that collects all that is cut off
    else:
        unit, rounding = largest - spec.fraction_bits, spec.alignment_rounding
    total = _wrapped(sum(aligned(x, unit, rounding) for x in addends), unit, largest, spec.integer_bits)
    return Addend(total < 0, abs(total), unit, largest)


def _sum_normalising(spec: ParametricDotAdd, addends: list[Addend], fraction_bits: int) -> Addend:
    """Addends one by one, each intermediate sum normalised to F fraction bits."""
    total = addends[0]
    for addend in addends[1:]:
        total = _sum_aligned(spec, [total, addend])
        if total.magnitude:
            leading = total.magnitude.bit_length() - 1 + total.exponent
            unit = max(leading - fraction_bits, total.exponent)
            total = Addend(total.negative, abs(aligned(total, unit, spec.alignment_rounding)), unit, leading)
    return total


def _sum_pairwise(spec: ParametricDotAdd, addends: list[Addend]) -> Addend:
    """Binary tree of two-operand alignments over neighbours."""
    if len(addends) == 1:
        return addends[0]
    middle = (len(addends) + 1) // 2
    return _sum_aligned(spec, [_sum_pairwise(spec, addends[:middle]), _sum_pairwise(spec, addends[middle:])])


def _fused_sum(spec: ParametricDotAdd, products: list[Operand], c: list[Operand]) -> Addend | None:
    """Unrounded sum of products and c by the alignment that `spec` names; None if nothing takes part."""
    start = as_addends(c)
    if spec.alignment == "odd_even":
        groups = [as_addends(products[0::2]), as_addends(products[1::2])]
        parts = [_sum_aligned(spec, group) for group in groups if group] + start
        return _sum_aligned(spec, parts) if parts else None
    addends = as_addends(products)
    if spec.alignment == "pairwise":
        parts = ([_sum_pairwise(spec, addends)] if addends else []) + start
        return _sum_aligned(spec, parts) if parts else None
    if not start and not addends:
        return None
    if spec.normalise_each_add and spec.fraction_bits is not None:
        return _sum_normalising(spec, start + addends, spec.fraction_bits)
    return _sum_aligned(spec, start + addends)


def _overflowed(product: Operand, limit: int | None) -> Operand:
    """`product`, or an infinity of its sign if it is at or beyond 2**limit."""
    if limit is not None and product.kind == "finite" and product.significand and product.leading >= limit:
        return Operand("inf", product.negative, 0, 0, None)
    return product


def scaled_product(a: Operand, b: Operand, scales: tuple[Operand, ...], scaled_zero: str) -> Operand:
    """Product of two operands and their block scales, exponents added up."""
    product = multiply(a, b)
    skip = bool(scales) and product.is_zero and scaled_zero == "skip"
    for scale in scales:
        product = multiply(product, scale)
    return product._replace(align=None) if skip else product


def parametric_step(
    spec: ParametricDotAdd,
    a: list[Operand],
    b: list[Operand],
    scales: list[tuple[Operand, ...]],
    c: Operand,
    c_bits: int,
    formats: tuple[Format, Format, Format, Format],
) -> int:
    """One fused operation of FusedDotAdd or ParametricDotAdd.

    Parameters
    ----------
    a, b : list of Operand
        Up to `spec.terms` operands each.
    scales : list of tuple of Operand
        The block scales of each product, empty tuples without block scales.
    c, c_bits
        The addend, taken apart and encoded.
    formats : tuple of Format
        Formats of a, b, c and d.
    """
    a_format, b_format, c_format, d_format = formats
    if spec.flush_inputs:
        a = [flushed(x, a_format.emin) for x in a]
        b = [flushed(x, b_format.emin) for x in b]
    if spec.flush_inputs or spec.flush_c:
        c = flushed(c, c_format.emin)
    products = [scaled_product(x, y, s, spec.scaled_zero) for x, y, s in zip(a, b, scales, strict=True)]
    products = [_overflowed(p, spec.product_overflow_exponent) for p in products]
    if spec.normalised_products:
        products = [normalised(p) for p in products]
    late = spec.c_position == "late"
    special = special_result(products if late else [*products, c])
    if not special and spec.c_position == "exact":
        return _with_exact_c(spec, _pieces(spec, a, b, products, formats), products, c, d_format)
    early = [] if late else [c]
    if special:
        dot = special_bits(special, d_format, spec)
    else:
        total = _fused_sum(spec, _pieces(spec, a, b, products, formats), early)
        if total is None:
            dot = 0
        else:
            signed = -total.magnitude if total.negative else total.magnitude
            dot = finish(
                signed,
                total.exponent,
                d_format,
                spec,
                spec.output_rounding,
                spec.output_fraction_bits,
                spec.flush_outputs,
            )
    if not late:
        return dot
    return ieee.add(
        dot,
        d_format,
        c_bits,
        c_format,
        d_format,
        spec,
        spec.late_rounding,
        flush=spec.flush_outputs,
        to_inf=spec.late_rounding == "ro",
    )


def _pieces(
    spec: ParametricDotAdd, a: list[Operand], b: list[Operand], products: list[Operand], formats: tuple[Format, ...]
) -> list[Operand]:
    """The products, or the products of the parts of their operands' significands, which keep the products' exponents."""
    if not spec.significand_parts:
        return products
    pieces = []
    for x, y, product in zip(a, b, products, strict=True):
        for left in _parts(x.significand, formats[0].precision, spec.significand_parts):
            for right in _parts(y.significand, formats[1].precision, spec.significand_parts):
                pieces.append(product._replace(significand=left * right))
    return pieces


def _parts(significand: int, precision: int, widths: tuple[int, ...]) -> list[int]:
    """Bits of a significand in parts from the leading one down, each at its place."""
    parts, left = [], precision
    for width in widths:
        mask = (1 << left) - 1
        left -= width
        parts.append(significand & mask & ~((1 << max(left, 0)) - 1))
    return parts


def _with_exact_c(
    spec: ParametricDotAdd, pieces: list[Operand], products: list[Operand], c: Operand, d_format: Format
) -> int:
    """The aligned products summed, c added exactly, one rounding; the sign of a zero as IEEE 754-2019, 6.3, or by vote."""
    total = _fused_sum(spec, pieces, [])
    unit = c.exponent if total is None else min(total.exponent, c.exponent)
    signed = (-c.significand if c.negative else c.significand) << (c.exponent - unit)
    if total is not None:
        signed += (-total.magnitude if total.negative else total.magnitude) << (total.exponent - unit)
    if signed:
        return finish(
            signed, unit, d_format, spec, spec.output_rounding, spec.output_fraction_bits, spec.flush_outputs
        )
    if c.significand or any(not p.is_zero for p in products):
        return zero_bits(spec.output_rounding == "rd", d_format)
    negative, count = sum(p.negative for p in products), max(len(products), spec.terms) + spec.padding
    if spec.zero_sign == "majority":
        return zero_bits(2 * negative > count, d_format)
    mixed = spec.output_rounding == "rd" and (negative > 0 or c.negative)
    return zero_bits(mixed or (c.negative and negative == count), d_format)


# -- GDFS --------------------------------------------------------------------------------------------------------------------
def group_dot_step(
    spec: GroupDotFusedSum,
    a: list[Operand],
    b: list[Operand],
    scales: list[tuple[Operand, ...]],
    c: Operand,
    d_format: Format,
) -> int:
    """One GDFS operation: exact group sums times their scales, aligned with c (xie-mma-sim, section IV-E)."""
    special = special_result([*a, *b, *(s for pair in scales for s in pair), c])
    if special:
        return special_bits(special, d_format, spec)
    terms = [c]
    for start in range(0, len(a), spec.group):
        products = [
            multiply(x, y) for x, y in zip(a[start : start + spec.group], b[start : start + spec.group], strict=True)
        ]
        unit = min(p.exponent for p in products)
        total = sum((-p.significand if p.negative else p.significand) << (p.exponent - unit) for p in products)
        empty = {
            "skip_zero_products": all(p.is_zero for p in products), "skip": total == 0, "keeps_scale": False,
        }[spec.scaled_zero]  # fmt: skip
        group = Operand("finite", total < 0, abs(total), unit, None if empty else 0)
        for scale in scales[start]:
            group = multiply(group, scale)
        terms.append(group)
    addends = as_addends(terms)
    if not addends:
        return 0
    unit = largest_exponent(addends, spec.exponent_floor) - spec.fraction_bits
    return finish(sum(aligned(x, unit, "rz") for x in addends), unit, d_format, spec, spec.output_rounding)


# -- FDRDA and GFDRDA --------------------------------------------------------------------------------------------------------
def round_down_step(
    spec: FusedDotRoundDownAdd, a: list[Operand], b: list[Operand], c: Operand, d_format: Format
) -> int:
    """One FDRDA or GFDRDA operation (xie-mma-sim, sections IV-F and IV-H)."""
    products = [multiply(x, y) for x, y in zip(a, b, strict=True)]
    limited = [_overflowed(p, spec.product_overflow_exponent) for p in products]
    special = None if spec.c_inf_with_overflow == "nan" else special_result([*products, c])
    special = special or special_result(limited if spec.c_inf_with_overflow == "c" else [*limited, c])
    if special:
        return special_bits(special, d_format, spec)
    dot = _round_down_dot(spec, limited)
    start = as_addends([c])
    parts = ([dot] if dot else []) + start
    if not parts:
        return 0
    largest = largest_exponent(parts, spec.exponent_floor)
    unit = largest - max(spec.dot_fraction_bits, spec.c_fraction_bits)
    total = 0
    if dot:
        dot_unit = largest - spec.dot_fraction_bits
        total += aligned(dot, dot_unit, spec.add_rounding) << (dot_unit - unit)
    if start:
        far = spec.c_cutoff is not None and start[0].align < largest - spec.c_cutoff
        c_unit = largest - spec.c_fraction_bits
        total += aligned(start[0], c_unit, "rz" if far else spec.add_rounding) << (c_unit - unit)
    if spec.sum_fraction_bits is not None and total:
        kept = unit + abs(total).bit_length() - 1 - spec.sum_fraction_bits
        if kept > unit:
            total, unit = total >> (kept - unit), kept
    return finish(total, unit, d_format, spec, spec.output_rounding)


def _round_down_dot(spec: FusedDotRoundDownAdd, products: list[Operand]) -> Addend | None:
    """Sum of the products alone: each parity group aligned with RZ, the groups with each other by add_rounding."""
    groups = [as_addends(products[i :: spec.parity_groups]) for i in range(spec.parity_groups)]
    sums = []
    for group in groups:
        if group:
            largest = largest_exponent(group)
            unit = largest - spec.fraction_bits
            total = sum(aligned(x, unit, "rz") for x in group)
            sums.append(Addend(total < 0, abs(total), unit, largest))
    if len(sums) < 2:
        return sums[0] if sums else None
    largest = largest_exponent(sums)
    unit = largest - spec.fraction_bits
    total = sum(aligned(x, unit, spec.add_rounding) for x in sums)
    return Addend(total < 0, abs(total), unit, largest)
