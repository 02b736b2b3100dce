"""Defines how identify looks for fused sums: as ParametricDotAdd with all fields free."""

import itertools
import math
from collections.abc import Iterator
from typing import Any, Literal

from ...aspects.search import (
    ALIGNMENT,
    ROUNDINGS,
    Field,
    Interface,
    Search,
    divisors,
    kept,
    keyed,
    one_of,
    overflows,
    scaled,
    widths,
)

C_POSITIONS: tuple[Literal["early", "late", "exact"], ...] = ("early", "late", "exact")


def cuts(interface: Interface, spec: Any) -> bool:
    """Return whether addends are truncated at all."""
    return spec.fraction_bits is not None


def _integer_widths(interface: Interface, spec: Any) -> list[int | None]:
    """Return widths that the largest sum of one operation overflows.

    Significands of products are below 4, and significands of c are below 2.
    """
    x, y, z = (2 - 2.0**-f.fraction_bits for f in interface.formats[:3])
    return [None, *range(2, math.ceil(math.log2(spec.terms * x * y + z)))]


def _parts(interface: Interface, spec: Any) -> list[tuple[int, ...]]:
    """Return tuples of widths: no parts, two parts of any widths, or equal parts that make up the operands' precision."""
    precision = interface.formats[0].precision
    if interface.formats[1].precision != precision:
        return [()]
    pairs = [(precision - low, low) for low in range(1, precision)]
    alike = [
        (width,) * (precision // width) for width in (4, 6, 8) if precision == width * (precision // width) > 2 * width
    ]
    return [(), *pairs, *alike]


CUTS = [("rz", False), ("rz", True), *((r, False) for r in ROUNDINGS if r != "rz")]
SUMS = (("global", False), ("global", True), ("pairwise", False), ("odd_even", False))

FIELDS = (
    Field(("terms",), divisors),
    Field(("fraction_bits",), lambda i, s: [None, *widths(i, s)]),
    Field(("output_rounding",), one_of(*ROUNDINGS), lambda i, s: s.key is None),
    Field(("output_rounding", "seed"), keyed, lambda i, s: i.key is not None),
    Field(("alignment_rounding", "sticky"), lambda i, s: CUTS, cuts),
    Field(("c_position",), one_of(*C_POSITIONS)),
    Field(("alignment", "normalise_each_add"), lambda i, s: SUMS, cuts),
    Field(("output_fraction_bits",), kept),
    Field(("normalised_products",), one_of(False, True), cuts),
    Field(("significand_parts",), _parts, cuts),
    Field(("integer_bits",), _integer_widths, cuts),
    Field(("late_rounding",), one_of(*ROUNDINGS), lambda i, s: s.c_position == "late"),
    Field(("flush_inputs", "flushed"), one_of((False, "aligned"), (True, "as_zero"), (True, "aligned"))),
    Field(("flush_outputs",), one_of(False, True)),
    Field(("flush_c",), one_of(False, True), lambda i, s: not s.flush_inputs),
    # One product, rounded before c is added, is a pairwise sum of groups of one, whose zeros have IEEE 754's signs.
    Field(("zero_sign",), one_of("positive", "ieee", "majority"), lambda i, s: s.c_position != "late" or s.terms > 1),
    Field(("product_overflow_exponent",), overflows),
    *ALIGNMENT,
    Field(("scaled_zero",), one_of("skip", "keeps_scale"), scaled),
)


def _fused_starts(cls: Any, interface: Interface) -> Iterator[Any]:
    digits = interface.formats[3].fraction_bits
    # Narrow results come from wide sums, too: from another width a search could not tell a floor from the width.
    widths = sorted({digits, digits + 2, max(1, digits - 10), 23, 25, 2 * digits})
    shapes = itertools.product(divisors(interface), C_POSITIONS, widths, ("rz", "rne"))
    for terms, c_position, bits, rounding in shapes:
        yield cls(terms, bits, c_position=c_position, output_rounding=rounding)
    for terms, c_position, (alignment, each) in itertools.product(divisors(interface), C_POSITIONS, SUMS[1:]):
        yield cls(terms, digits + 1, c_position=c_position, alignment=alignment, normalise_each_add=each)
    for terms in divisors(interface):  # every rounding to odd, c last, and guard bits for the carries (RISC-V)
        bits = interface.formats[3].fraction_bits + (terms - 1).bit_length()
        odd = {"alignment_rounding": "ro", "output_rounding": "ro", "late_rounding": "ro"}
        yield cls(terms, bits, c_position="late", **odd)


def _exact_starts(cls: Any, interface: Interface) -> Iterator[Any]:
    for terms, c_position, rounding in itertools.product(divisors(interface), C_POSITIONS[:2], ("rz", "rne")):
        yield cls(terms, None, c_position=c_position, output_rounding=rounding)


def searches(cls: Any) -> tuple[Search, ...]:
    """Return two searches with the same fields, which differ in where they start."""
    shape = ("terms", "c_position", "alignment", "normalise_each_add")
    return (
        Search(
            "fused sums", FIELDS, lambda i: _fused_starts(cls, i), shape, 50, lambda s: s.fraction_bits is not None
        ),
        Search(
            "exact sums, rounded once", FIELDS, lambda i: _exact_starts(cls, i), shape, 60,
            lambda s: s.fraction_bits is None,
        ),
    )  # fmt: skip
