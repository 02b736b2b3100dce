"""Errors of a step that are derived from a pass hold for each pass on plain integers, and refuse what is not said."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from random_encodings import encodings

import tensorcore_models as tcm
from mpgemm.bounds import bounds
from mpgemm.bounds.operand_facts import facts_of, facts_of_formats
from tensorcore_models import reference
from tensorcore_models.accumulators import AlignedSum, FusedDotAdd, ParametricDotAdd, SequentialFMA
from tensorcore_models.aspects import derived_errors
from tensorcore_models.aspects.errors import OperandFacts
from tensorcore_models.orders.trees import tree_of

MARGIN = Fraction(bounds.MARGIN)
STYLES = ("bits", "clustered", "cancelling", "tiny")


def published() -> list:
    """One row for every accumulator without block scales whose bound is derived."""
    rows = {
        row.accumulator: row for row in reversed(tcm.list_instructions()) if row.published and row.scale_format is None
    }
    own = ("FidelityPhases", "IntegerPhases", "IntegerDotAdd", "ConvertedDotAdd", "ScaledDotAdd")
    return [row for spec, row in rows.items() if type(spec).__name__ not in own]


BASE = ParametricDotAdd(4, 12, zero_operand="format_minimum")
PARAMETRIC = [
    replace(BASE, **changes)
    for changes in (
        {"zero_operand": "minus126", "zero_c": "minus126"},
        {"alignment": "pairwise", "zero_operand": "skip"},
        {"alignment": "pairwise", "alignment_rounding": "rne", "zero_c": "format_minimum"},
        {"alignment": "odd_even", "alignment_rounding": "ra"},
        {"normalise_each_add": True},
        {"normalise_each_add": True, "alignment_rounding": "rna", "zero_operand": "skip"},
        {"c_position": "late", "late_rounding": "ru"},
        {"c_position": "exact", "output_rounding": "rne"},
        {"sticky": True},
        {"normalised_products": True, "subnormal_c": "normalised"},
        {"exponent_floor": -3},
        {"output_fraction_bits": 5, "output_rounding": "ro"},
        {"flush_inputs": True, "flushed": "as_zero", "zero_operand": "minus126"},
        {"flush_inputs": True, "flush_outputs": True, "zero_sign": "ieee"},
        {"flush_c": True, "zero_sign": "majority"},
        {"significand_parts": (6, 5), "alignment_rounding": "rd"},
        {"fraction_bits": None, "output_rounding": "rnz"},
        {"integer_bits": 12},
    )
]
#: A floor above the exponents of all products is a constant.
LOW = [
    tcm.MatrixEngine(
        replace(BASE, exponent_floor=5, alignment=how, c_position="late"),
        a_format="e2m3",
        c_format="fp16",
        d_format="fp16",
    )
    for how in ("global", "pairwise")
]
UNITS = [
    *published(),
    *LOW,
    *(tcm.MatrixEngine(spec, a_format="fp16", c_format="fp16", d_format="fp16") for spec in PARAMETRIC),
]


def codes(rng, fmt, count: int, style: str) -> list[int]:
    """Encodings of finite numbers; tiny ones are subnormal, or zero, or little larger."""
    found = encodings(rng, fmt, (count,), "bits" if style == "tiny" else style)
    if style == "tiny":
        found = found & found.dtype.type(fmt.sign_bit | (4 << fmt.padding_bits + fmt.fraction_bits) - 1)
    return [int(x) if fmt.decode_exact(int(x)).kind == "finite" else 0 for x in found]


def value(x) -> Fraction:
    """The value of a decoded number."""
    size = x.significand * Fraction(2) ** x.exponent
    return -size if x.negative else size


@pytest.mark.sweep(17)
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.label)
def test_the_error_of_a_step_holds(unit):
    """As tight as it can be asked for: one pass, with facts of its own operands, on plain integers."""
    rng, spec, judged = np.random.default_rng(5), unit.accumulator, 0
    a_format, b_format, _, d = unit.formats
    terms = min(spec.terms_per_step, 16)
    for style in STYLES * 3:
        chained = (*unit.formats[:2], d, d)
        a, b, (c,) = (codes(rng, f, n, style) for f, n in ((a_format, terms), (b_format, terms), (d, 1)))
        x, y, (z,) = (
            [value(f.decode_exact(v)) for v in values] for f, values in ((a_format, a), (b_format, b), (d, [c]))
        )
        computed = d.decode_exact(reference.dot_bits(spec, a, b, c, chained))
        exact = sum((p * q for p, q in zip(x, y, strict=True)), z)
        size = sum((abs(p * q) for p, q in zip(x, y, strict=True)), abs(z))
        if computed.kind != "finite" or 2 * size >= bounds.overflow_from(unit):
            continue
        facts = facts_of(unit, *(np.array([v], float).reshape(s) for v, s in ((x, (1, -1)), (y, (-1, 1)))))
        found = derived_errors.step_error(spec, unit, facts)
        bound = Fraction(found.relative) * size + Fraction(found.absolute)
        assert abs(value(computed) - exact) <= bound * MARGIN, (style, a, b, c)
        judged += 1
    assert judged >= 4


def test_closed_forms_are_what_is_derived():
    """Of a fused dot-add and of one multiply-add, for which no recording is made."""
    seen = set()
    for row in tcm.list_instructions():
        spec = row.accumulator
        if not isinstance(spec, FusedDotAdd | SequentialFMA) or (spec, row.formats[3]) in seen:
            continue
        seen.add((spec, row.formats[3]))
        for facts in (facts_of_formats(row, (3, 5)), OperandFacts((0, 0), (None, None))):
            closed, found = (step(row, facts) for step in (spec.step_error, partial(derived_errors.step_error, spec)))
            assert closed.relative == pytest.approx(found.relative, rel=1e-12), row.label
            assert closed.absolute == pytest.approx(found.absolute, rel=1e-12, abs=0), row.label
            assert replace(closed, relative=0, absolute=0) == replace(found, relative=0, absolute=0), row.label
    assert len(seen) > 20


def test_half_of_the_smallest_fp64_number_is_not_taken_for_nothing():
    unit = tcm.MatrixEngine(SequentialFMA(), a_format="fp64", c_format="fp64", d_format="fp64")
    for found in (
        bounds.step_error(unit),
        derived_errors.step_error(unit.accumulator, unit, facts_of_formats(unit, (0, 0))),
    ):
        assert found.absolute == 2.0**-1074


# -- by hand -------------------------------------------------------------------------------------------------------------
CUT = 2.0**-12  # a unit where 12 bits are kept
ULP = 2.0**-10  # of fp16, relative to a number
SMALL = 2.0**-14  # the smallest normal number of fp16
TINY = 2.0**-24  # the smallest subnormal number of fp16


@pytest.mark.parametrize(
    ("changes", "units", "beta"),
    [
        ({}, 5, 5 * CUT * SMALL * (1 + ULP) + TINY),
        ({"output_rounding": "rne", "alignment_rounding": "rne"}, 2.5, 2.5 * CUT * SMALL * (1 + ULP / 2) + TINY / 2),
        ({"flush_outputs": True}, 5, 5 * CUT * SMALL * (1 + ULP) + SMALL),
        ({"flush_c": True}, 5, (SMALL + 5 * CUT * SMALL) * (1 + ULP) + TINY),
        ({"exponent_floor": -3}, 5, 5 * CUT * 2.0**-3 * (1 + ULP) + TINY),
        ({"sticky": True}, 2.5, 2.5 * CUT * SMALL * (1 + ULP) + TINY),
        ({"alignment": "pairwise"}, 2 * 3 + 2, 2 * CUT * SMALL * (1 + ULP) + TINY),
        ({"alignment": "pairwise", "exponent_floor": 5}, 2 * 3 + 2, 8 * CUT * 2.0**5 * (1 + ULP) + TINY),
        ({"alignment": "odd_even"}, 2 + 3, 3 * CUT * SMALL * (1 + ULP) + TINY),
        ({"significand_parts": (6, 5)}, 4 * 4 + 1, 17 * CUT * SMALL * (1 + ULP) + TINY),
    ],
)
def test_alpha_and_beta_by_hand(changes, units, beta):
    """Of four normal products: so many units of a cut, then one rounding. Only a subnormal c lifts the alignment.

    Half of the products lose units of half of the sum, so that two for each half are two of the whole; a tree says nothing of
    where its units are lost.
    """
    spec = replace(BASE, **changes)
    unit = tcm.MatrixEngine(spec, a_format="fp16", c_format="fp16", d_format="fp16")
    found = derived_errors.step_error(spec, unit, OperandFacts((0, 0), (None, None)))
    last = ULP / 2 if spec.output_rounding == "rne" else ULP
    assert found.relative == pytest.approx((1 + units * CUT) * (1 + last) - 1, rel=1e-12)
    assert found.absolute == pytest.approx(beta, rel=1e-12, abs=0)


def test_what_flushed_numbers_lift_by_hand():
    """A product loses less than 2^4 times 2, and is aligned to 2^4 at most where it is zero; two addends keep 8 bits."""
    unit = tcm.MatrixEngine(Lifted("flushed"), a_format="bf16", k=1)
    found = derived_errors.step_error(unit.accumulator, unit, OperandFacts((0, 0), (None, None)))
    assert found.absolute == pytest.approx((2.0**5 + 2 * 2.0 ** (4 - 8)) * (1 + 2.0**-23), rel=1e-12)


# -- exponents beside the sizes of numbers -------------------------------------------------------------------------------
@dataclass(frozen=True)
class Lifted(AlignedSum):
    """Aligns its addends beside something that lifts the alignment above all of them."""

    how: str = ""
    terms: int = 1

    step_field: ClassVar = "terms"

    def pass_bits(self, p):
        z, fmt = p.arithmetic, p.formats[3]
        x, y = p.x[0], p.y[0]
        if self.how == "flushed":  # numbers up to 2^4 become zeros that keep their exponents
            x = z.flushed(x, 4)
        numbers = [z.multiply(x, y), p.addend]
        if self.how == "a zero":
            zero = z.decode(fmt, 0, self)
            numbers.append(zero._replace(align=9))
        largest = z.largest_exponent(numbers, *((9,) if self.how == "floor" else ()))
        if self.how == "sum":  # which cancels, and keeps its exponent
            numbers = [z.cut_sum(numbers, 12, "rz"), z.decode(fmt, 0, self, zero_rule="skip")]
            largest = z.largest_exponent(numbers)
        if self.how == "more":
            largest = largest + 7
        return z.finish(z.cut_total(numbers, largest, 8, "rz"), largest - 8, fmt, self, "rz")


@pytest.mark.sweep(3)
@pytest.mark.parametrize("how", ["", "flushed", "a zero", "floor", "sum", "more"])
def test_what_lifts_an_alignment_is_in_the_bound(how):
    """Products and c are near 1, so that the bound of the plain one does not hold for the others."""
    unit = tcm.MatrixEngine(Lifted(how), a_format="bf16", k=1)
    rng, worst = np.random.default_rng(3), Fraction(0)
    for _ in range(200):
        x, y, z = (Fraction(float(v)) for v in tcm.round_to(rng.uniform(0.5, 2, 3), "bf16"))
        if how == "sum":
            z = -x * y + z / 64
        codes_of = [
            int(tcm.encode(np.array([float(v)]), f)[0]) for v, f in zip((x, y, z), unit.formats[:3], strict=True)
        ]
        a, b, c = codes_of
        found = value(unit.formats[3].decode_exact(reference.dot_bits(unit.accumulator, [a], [b], c, unit.formats)))
        step = bounds.step_error(unit, facts_of(unit, np.array([[float(x)]]), np.array([[float(y)]])))
        bound = Fraction(step.relative) * (abs(x * y) + abs(z)) + Fraction(step.absolute)
        plain = bounds.step_error(replace(unit, accumulator=Lifted()), facts_of(unit, np.ones((1, 1)), np.ones((1, 1))))
        worst = max(worst, abs(found - x * y - z) / (Fraction(plain.relative) * (abs(x * y) + abs(z))))
        assert abs(found - x * y - z) <= bound * MARGIN
    assert (worst > 1) == (how not in ("", "sum"))


# -- refusals ------------------------------------------------------------------------------------------------------------
@dataclass(frozen=True)
class Careless(AlignedSum):
    """Does something to its numbers that no function of the arithmetic says."""

    how: str = ""
    terms: int = 2

    step_field: ClassVar = "terms"

    def pass_bits(self, p):
        z, fmt, c = p.arithmetic, p.formats[3], p.addend
        numbers = [*(z.multiply(x, y) for x, y in zip(p.x, p.y, strict=True)), c]
        if self.how == "twice":
            numbers.append(c)
        if self.how == "without c":
            numbers.remove(c)
        if self.how == "operand":
            numbers[0] = p.x[0]
        if self.how == "hidden":
            numbers[0] = numbers[0]._replace(significand=numbers[0].significand & -2 % (1 << 22))
        if self.how == "a tree":
            p.assume_part(numbers)
        if self.how == "sum left out":
            numbers = [z.left_out(z.cut_sum(numbers, 12, "rz"), numbers[1].is_zero), z.decode(fmt, 0, self)]
        if self.how == "left out":
            numbers[0] = z.left_out(numbers[0], numbers[1].is_zero)
        largest = z.largest_exponent(numbers[1:] if self.how == "too low" else numbers)
        total, unit = z.cut_total(numbers, largest, 12, "rz"), largest - 12
        if self.how == "total":
            total = total + 1
        if self.how == "unit":
            unit = unit + 1
        code = z.finish(total, unit, fmt, self, "rz")
        return z.select(z.same(p.c, 0), p.c, code, fmt.bits) if self.how == "code" else code


@pytest.mark.parametrize(
    "how",
    [
        "twice",
        "without c",
        "operand",
        "hidden",
        "left out",
        "sum left out",
        "a tree",
        "too low",
        "total",
        "unit",
        "code",
    ],
)
def test_no_bound_is_derived_of_what_is_not_said(how):
    unit = tcm.MatrixEngine(Careless(how), a_format="fp16")
    assert bounds.step_error(replace(unit, accumulator=Careless())).relative > 0
    with pytest.raises(ValueError, match=r"no bound is derived for Careless: \w"):
        bounds.step_error(unit)
    drawn = how in ("left out", "sum left out", "too low")  # the order of which is said
    assert (tree_of(unit.accumulator, 4) is not None) == drawn
    named = unit.accumulator.words("fp32").title.startswith("No words are derived")
    assert named == (how not in ("left out", "sum left out"))


def test_a_sum_that_may_wrap_has_no_bound_and_one_that_cannot_has():
    wide, narrow = (tcm.MatrixEngine(replace(BASE, integer_bits=bits), a_format="fp16") for bits in (5, 4))
    plain = tcm.MatrixEngine(BASE, a_format="fp16")
    assert bounds.step_error(wide).relative == bounds.step_error(plain).relative
    assert bounds.step_error(narrow).relative == np.inf
    assert "a sum may wrap around" in bounds.step_error(narrow).derivation[0]


def test_a_bound_of_stochastic_rounding_is_one_of_both_directions():
    """An error of less than a unit either way: twice that of rounding to nearest."""
    keyed, nearest = (
        tcm.MatrixEngine(
            FusedDotAdd(4, 20, output_rounding=rounding), a_format="fp16", d_format="fp16", c_format="fp16"
        )
        for rounding in ("sr", "rne")
    )
    cut = 5 * 2.0**-20
    for unit, last in ((keyed, 2.0**-10), (nearest, 2.0**-11)):
        assert bounds.step_error(unit).relative == pytest.approx((1 + cut) * (1 + last) - 1, rel=1e-12)
    assert not bounds.step_error(keyed).roundings[-1].directed
