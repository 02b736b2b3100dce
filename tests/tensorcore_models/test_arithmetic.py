"""The arithmetic of families beside statements that share nothing with it: decode_exact, round_to_bits and exact fractions."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from random_encodings import STYLES, encodings

from tensorcore_models import arithmetic
from tensorcore_models.accumulators import FusedDotAdd, SequentialFMA
from tensorcore_models.arithmetic import numbers
from tensorcore_models.formats import FORMATS, get_float_format
from tensorcore_models.formats.exact_rounding import ROUNDINGS, round_to_bits

FIELDS = [fmt for fmt in FORMATS.values() if fmt.has_fields]
RULES = FusedDotAdd()


def drawn(fmt, count: int, seed: int) -> list[int]:
    rng = np.random.default_rng(seed)
    return [int(x) for i in range(count) for x in encodings(rng, fmt, (1,), STYLES[i % len(STYLES)])]


@pytest.mark.parametrize("fmt", FIELDS, ids=lambda fmt: fmt.name)
def test_numbers_are_taken_apart(fmt):
    codes = range(1 << fmt.bits) if fmt.bits <= 8 else drawn(fmt, 200, 1)
    for code in codes:
        x, known = arithmetic.decode(fmt, code, RULES), fmt.decode_exact(code)
        assert (x.kind, x.negative) == (known.kind, known.negative)
        if x.kind == "finite":
            assert x.significand * Fraction(2) ** x.exponent == known.significand * Fraction(2) ** known.exponent
            assert x.is_zero == (known.significand == 0)


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_magnitudes_are_rounded(rounding):
    rng = np.random.default_rng(2)
    for fmt in FIELDS:
        if not fmt.has_subnormals:
            continue
        for bits in rng.integers(0, 1 << 62, 30, np.uint64).tolist():
            size, draw = bits >> int(rng.integers(0, 62)), int(rng.integers(0, 1 << 32))
            exponent, kept = int(rng.integers(fmt.emin - fmt.fraction_bits - 70, fmt.emax + 2)), fmt.fraction_bits - 1
            for negative, fraction_bits in ((False, None), (fmt.signed, max(kept, 0))):
                wanted = round_to_bits(
                    negative, size, exponent, fmt, rounding, saturate=True, fraction_bits=fraction_bits, random=draw
                )
                code, overflow = numbers.rounded_magnitude(negative, size, exponent, fmt, rounding, fraction_bits, draw)
                sign = negative and (code != 0 or fmt.has_negative_zero)
                found = numbers.with_overflow(numbers.encoded(sign, code, fmt), overflow, negative, fmt, rounding, True)
                assert found == wanted, (fmt.name, negative, size, exponent, fraction_bits)


@pytest.mark.parametrize("rounding", [mode for mode in ROUNDINGS if mode != "sr"])
def test_sums_and_multiply_adds_are_rounded_once(rounding):
    rules = SequentialFMA()
    for name in ("fp16", "bf16", "fp32", "fp64", "e5m2"):
        fmt = get_float_format(name)
        codes = [x for x in drawn(fmt, 120, 3) if fmt.decode_exact(x).kind == "finite"]
        for triple in zip(codes[::3], codes[1::3], codes[2::3], strict=False):
            x, y, c = (arithmetic.decode(fmt, code, rules) for code in triple)
            a, b, d = (_value(fmt, code) for code in triple)
            for exact, found in (
                (a + b, arithmetic.add(triple[0], fmt, triple[1], fmt, fmt, rules, rounding)),
                (a * b + d, arithmetic.fma(x, y, c, fmt, rules, rounding)),
            ):
                if exact:
                    exponent = 1 - exact.denominator.bit_length()
                    assert found == round_to_bits(exact < 0, abs(exact.numerator), exponent, fmt, rounding)
                else:
                    assert fmt.decode_exact(found).significand == 0


def _value(fmt, code: int) -> Fraction:
    x = fmt.decode_exact(code)
    size = x.significand * Fraction(2) ** x.exponent
    return -size if x.negative else size


@pytest.mark.parametrize("rounding", [mode for mode in ROUNDINGS if mode != "sr"])
def test_what_is_tiny_before_its_exponent_is_bounded_becomes_zero(rounding):
    """Around the smallest normal number, in steps of a quarter of the last place that it is rounded to."""
    for name in ("fp16", "bf16", "fp32"):
        fmt = get_float_format(name)
        wide = dataclasses.replace(fmt, exponent_bits=fmt.exponent_bits + 1, bias=2 * fmt.bias + 1, dtype_name="")
        for quarters in range(-10, 11):
            for negative in (False, True):
                size = (4 << fmt.precision) + quarters
                point = fmt.precision + 2
                x = arithmetic.plain(negative, size, fmt.emin, point)
                rounded = wide.decode_exact(round_to_bits(negative, size, fmt.emin - point, wide, rounding))
                tiny = rounded.significand * Fraction(2) ** rounded.exponent < Fraction(2) ** fmt.emin
                kept = round_to_bits(negative, size, fmt.emin - point, fmt, rounding)
                found = arithmetic.ieee_sum([x], fmt, RULES, rounding, arithmetic.TINY)
                assert found == (fmt.sign_bit * negative if tiny else kept), (name, quarters, negative)
                assert arithmetic.ieee_sum([x], fmt, RULES, rounding) == kept


def test_what_is_no_integer_is_refused():
    with pytest.raises(TypeError, match=r"got operands of types float and int, expected int"):
        numbers.larger(1.5, 1)
    with pytest.raises(TypeError, match="str"):
        arithmetic.decode(get_float_format("fp16"), "1.0", RULES)
    fmt = get_float_format("fp16")
    assert arithmetic.decode(fmt, np.uint16(0x3C00), RULES) == arithmetic.decode(fmt, 0x3C00, RULES)
