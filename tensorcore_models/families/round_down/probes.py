"""Makes probe vectors of dot products that are rounded down together with c."""

from fractions import Fraction
from typing import Any

from ...aspects.outcomes import OUTCOMES, QUARTERS
from ...aspects.probes import (
    ONE,
    Builder,
    alignment_rounding,
    kept_bits,
    output_rounding,
    products_as_they_are,
    terms_by_cancellation,
    terms_by_rounding,
)
from ...aspects.values import power


def probe(spec: Any, build: Builder) -> None:
    """Add the vectors of CDNA3's FDRDA and GFDRDA (xie-mma-sim, sections IV-F and IV-H)."""
    step = spec.parity_groups
    places = tuple(step * i for i in range(4))
    kept_bits(build, places[:2], spec.fraction_bits, places[2])
    alignment_rounding(build, places[:2], "rz", spec.fraction_bits, places[2])
    kept_bits(build, places[:2], spec.c_fraction_bits, None)
    c_rounding(build, places[:2], spec)
    output_rounding(build, places, spec.output_rounding)
    products_as_they_are(build, places[:3], spec.fraction_bits, use_c=False)
    tie = power(-build.fraction_bits - 1)
    for distance, above in ((spec.dot_fraction_bits, True), (spec.dot_fraction_bits + 1, False)):
        build.add(
            f"a tie with c = 1 and 2^-{distance} in the dot product: {'above the tie' if above else 'lost'}",
            {places[0]: tie, places[1]: power(-distance)}, ONE, ONE + (2 * tie if above else 0), smallest=2 * tie,
        )  # fmt: skip
    build.add(
        "the dot product is rounded down below a tie",
        {places[0]: tie, places[1]: -power(-spec.dot_fraction_bits - 1)}, ONE, ONE, smallest=2 * tie,
    )  # fmt: skip
    # c = 1 and a negative dot product: the sum is below 1, so that it shows one bit more than at 1.
    quarter = tie / 2
    for distance, above in ((spec.dot_fraction_bits, True), (spec.dot_fraction_bits + 1, False)):
        build.add(
            f"a tie below c = 1 and 2^-{distance} in the dot product: {'above the tie' if above else 'lost'}",
            {places[0]: -3 * quarter, places[1]: power(-distance)}, ONE, ONE - (2 if above else 4) * quarter, smallest=quarter,
        )  # fmt: skip
    sum_bits(build, places, spec)
    terms_by_cancellation(build, spec.terms, spec.fraction_bits, (step, spec.terms - step, spec.terms))
    if spec.terms > step:
        terms_by_rounding(build, spec.terms, spec.output_rounding)
    if step == 2:  # the odd group is rounded down where it meets the even group
        q = power(-spec.fraction_bits)
        for t in QUARTERS:
            expected = OUTCOMES[spec.add_rounding][t] * q
            build.add(f"1 - 1 at even k, {t} q at odd k", {0: ONE, 2: -ONE, 1: t * q}, 0, expected, smallest=q / 2)
        name = "halves of a unit at even and odd k meet before c"
        build.add(name, {0: tie, 1: tie}, ONE, ONE + 2 * tie, 2 * tie)


def sum_bits(build: Builder, places: tuple[int, ...], spec: Any) -> None:
    """Add sums just above the tie beyond 2, which show that bits below `sum_fraction_bits` are lost before it is rounded."""
    kept, last = spec.sum_fraction_bits, power(-build.fraction_bits)
    for distance in (spec.dot_fraction_bits, spec.dot_fraction_bits - 1):
        above = kept is None or distance <= kept - 1
        build.add(
            f"2, a tie and 2^-{distance}: {'above the tie' if above else 'lost'}",
            {places[0]: 2 * last, places[1]: power(-distance)}, 2 - last, 2 + (2 * last if above else 0), smallest=last,
        )  # fmt: skip


def c_rounding(build: Builder, pair: tuple[int, ...], spec: Any) -> None:
    """Add 1 - 1 + c with c a fraction of its quantum, which is rounded down, or toward zero if it is below `c_cutoff`."""
    q = power(-spec.c_fraction_bits)
    for t in (*QUARTERS, Fraction(1, 2), -Fraction(1, 2)):
        c = t * q
        exponent = -spec.c_fraction_bits - (1 if abs(t) >= Fraction(1, 2) else 2)
        far = spec.c_cutoff is not None and exponent < -spec.c_cutoff
        expected = OUTCOMES["rz" if far else spec.add_rounding][t] * q
        build.add(f"1 - 1 + c = {t} q at c's alignment", {pair[0]: ONE, pair[1]: -ONE}, c, expected, smallest=q / 2)
