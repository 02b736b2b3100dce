"""Makes probe vectors of fused sums and of exact sums."""

from fractions import Fraction
from typing import Any

from ...aspects.probes import (
    ONE,
    Builder,
    alignment_rounding,
    kept_bits,
    output_rounding,
    products_as_they_are,
    single_rounding,
    terms_by_cancellation,
    terms_by_rounding,
)
from ...aspects.values import power


def fused(spec: Any, build: Builder) -> None:
    """Add the vectors of FDA and of chains of FDAs."""
    bits = spec.fraction_bits
    kept_bits(build, (0, 1), bits, None)
    if build.product_span >= bits + 1:
        kept_bits(build, (0, 1), bits, 2)
    alignment_rounding(build, (0, 1), spec.alignment_rounding, bits, None)
    output_rounding(build, (0, 1, 2, 3), spec.output_rounding)
    products_as_they_are(build, (0, 1, 2), bits, use_c=True)
    one_alignment(build, bits, spec.output_rounding)
    terms = spec.terms
    if build.product_span >= bits + build.row.k.bit_length() + 3:
        terms_by_cancellation(build, terms, bits, (1, terms - 1, terms))
    if bits > build.fraction_bits:
        terms_by_rounding(build, terms, spec.output_rounding)
    if spec.exponent_floor is not None:
        alignment_floor(build, spec.exponent_floor, bits, spec.output_rounding)


def alignment_floor(build: Builder, floor: int, fraction_bits: int, rounding: str) -> None:
    """Add products below the floor with c = 0: a unit of 2^(floor - F) is kept and decides the result, half a unit is lost."""
    unit, last = power(floor - fraction_bits), power(build.row.formats[3].quantum_exponent)
    if rounding not in ("rz", "rne") or unit >= last / 2 or build.row.k < 3:
        return
    first, below, above = (last - unit, Fraction(0), last) if rounding == "rz" else (last / 2, Fraction(0), last)
    name = f"alignment floor {floor}: "
    build.add(name + "one unit is kept", {0: first, 1: unit}, 0, above, smallest=last, scales=(0,))
    build.add(
        name + "halves of it are lost", {0: first, 1: unit / 2, 2: unit / 2}, 0, below, smallest=last, scales=(0,)
    )


def exact(spec: Any, build: Builder) -> None:
    """Add the vectors of an exact sum of a few products and c that is rounded once, as on CDNA1."""
    single_rounding(build, 0, spec.output_rounding)
    half, terms, k = power(-build.fraction_bits - 1), spec.terms, build.row.k
    tiny = half * half
    build.add("1 - 1 and c tiny: nothing is cut off", {0: ONE, 1: -ONE}, tiny, tiny)
    build.add("a tie and c tiny: above the tie", {0: ONE, 1: half}, tiny, ONE + 2 * half, smallest=2 * half)
    above = ONE + 2 * half
    build.add("a tie and a product that is tiny: above the tie", {0: half, 1: half / 64}, ONE, above, smallest=2 * half)
    for distance in {1, terms // 2, terms - 1} - {0}:
        build.add(
            f"half a unit at 0 and {distance} meet c together", {0: half, distance: half}, ONE, above, smallest=2 * half
        )
    if terms < k:
        build.add(
            f"half a unit at 0 and {terms}: each is lost to c", {0: half, terms: half}, ONE, ONE, smallest=2 * half
        )


def one_alignment(build: Builder, fraction_bits: int, rounding: str) -> None:
    """Add neighbours that are both truncated below the largest addend, but would be added to each other first in a tree."""
    small = power(-fraction_bits - 1)
    if build.product_span >= fraction_bits + 2:
        build.add(
            "1 - 1 and half a quantum at 2 and 3: both lost", {0: ONE, 1: -ONE, 2: small, 3: small}, 0, 0, 2 * small
        )
    elif rounding == "rz":
        build.add("half a quantum of c at 0 and 1: both lost", {0: ONE, 1: ONE}, -1 / small, -1 / small)
