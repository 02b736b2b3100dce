"""Probes zeros, subnormals, infinities and NaN (P1, P16)."""

from dataclasses import dataclass
from fractions import Fraction

from ...aspects.values import ONE, Unreachable, decode_value, encode_value, factors, power
from ..dots import Dots


@dataclass(frozen=True)
class Specials:
    """`Specials` holds an engine's behaviour at the ends of its formats; None for behaviour that they cannot show."""

    subnormal_a: bool | None  # whether subnormal operands count (False: flushed to zero)
    subnormal_b: bool | None
    subnormal_c: bool | None
    subnormal_results: bool | None  # whether results below the smallest normal number are kept
    nan_bits: int | None  # encoding of 0 times infinity, or inf - inf in c and a product; None without infinities
    overflow: str | None  # "inf", "max" or "other": result of a sum beyond the largest finite number
    negative_zero_c: bool  # whether c = -0 with zero products gives -0
    negative_underflow: bool | None  # whether a negative sum that rounds to zero gives -0
    zero_operand_aligns: bool | None  # whether 0 times the largest number makes small addends vanish


def _value(dots: Dots, a: int, b: int, c: int = 0) -> Fraction | None:
    return decode_value(dots.run_bits({0: a}, {0: b}, c), dots.formats[3])


def _subnormal(dots: Dots, which: int) -> bool | None:
    """Return whether a subnormal power of two as operand 0 (a) or 1 (b) counts, times a number that makes it visible in the
    result.
    """
    formats = dots.formats
    value = power(formats[which].emin - 1)
    other = formats[1 - which]
    for exponent in range(other.emax - 1, other.emin - 1, -1):
        product = value * power(exponent)
        try:
            encode_value(product, formats[3])
            bits = [encode_value(value, formats[which]), encode_value(power(exponent), other)]
        except Unreachable:
            continue
        pair = bits if which == 0 else bits[::-1]
        return _value(dots, pair[0], pair[1]) == product
    return None


def _overflow(dots: Dots) -> str | None:
    """Return the result of the largest finite c plus products of its own size: "inf", "max" or "other"."""
    a, b, c, d = dots.formats
    if c != d or not d.has_inf:
        return None
    for exponent in range(d.emax, d.emax - 8, -1):
        for share in range(a.emax, a.emin, -1):
            try:
                pair = encode_value(power(share), a), encode_value(power(exponent - share), b)
            except Unreachable:
                continue
            bits = dots.run_bits(
                dict.fromkeys(range(dots.length), pair[0]), dict.fromkeys(range(dots.length), pair[1]), d.max_bits
            )
            return "inf" if bits == d.inf_bits else "max" if bits == d.max_bits else "other"
    return None


def _nan_bits(dots: Dots) -> int | None:
    a, b, c, d = dots.formats
    if a.has_inf:
        bits = dots.run_bits({0: a.exponent_mask}, {0: 0})
    elif a.has_nan and a.nan_bits is not None:
        bits = dots.run_bits({0: a.nan_bits}, {0: encode_value(ONE, b)})
    else:
        bits = dots.run_bits({}, {}, c.nan_encoding())
    return bits if d.decode_exact(bits).kind == "nan" else None


def _negative_underflow(dots: Dots) -> bool | None:
    """Return whether a negative product of half the smallest result, which the alignment keeps next to c = 0, rounds to -0."""
    a, b, _, d = dots.formats
    try:
        x, y = factors(-power(d.quantum_exponent - 1), a, b)
    except Unreachable:
        return None
    last = dots.length - 1  # a later step would turn it into +0
    bits = dots.run_bits({last: x}, {last: y})
    return bits == d.sign_bit if bits & d.magnitude_mask == 0 else None


def _zero_operand(dots: Dots) -> bool | None:
    """Return whether 0 times the largest power of two makes c vanish, the smallest number that c and d have."""
    a, b, c, d = dots.formats
    if c.quantum_exponent > -140 or b.emax < 15:
        return None
    smallest = max(c.quantum_exponent, d.quantum_exponent)
    bits = encode_value(power(smallest), c)
    if _value(dots, 0, 0, bits) != power(smallest):
        return None
    return _value(dots, 0, encode_value(power(b.emax), b), bits) != power(smallest)


def probe_specials(dots: Dots) -> Specials:
    """Run the probes of special values."""
    _, _, c, d = dots.formats
    half = power(c.emin - 1)
    try:
        encode_value(half, d)  # the result must have this number, too
        subnormal_c = _value(dots, 0, 0, encode_value(half, c)) == half
    except Unreachable:
        subnormal_c = None
    return Specials(
        subnormal_a=_subnormal(dots, 0),
        subnormal_b=_subnormal(dots, 1),
        subnormal_c=subnormal_c,
        subnormal_results=_subnormal_result(dots),
        nan_bits=_nan_bits(dots),
        overflow=_overflow(dots),
        negative_zero_c=dots.run_bits({}, {}, c.sign_bit) == d.sign_bit,
        negative_underflow=_negative_underflow(dots),
        zero_operand_aligns=_zero_operand(dots),
    )


def _subnormal_result(dots: Dots) -> bool | None:
    """Return whether a product of two normal numbers below the smallest normal result is kept."""
    a, b, _, d = dots.formats
    value = power(d.emin - 1)
    for share in range(max(a.emin, d.emin), a.emax):
        try:
            pair = encode_value(power(share), a), encode_value(value / power(share), b)
        except Unreachable:
            continue
        if d.emin - 1 - share >= b.emin:
            return _value(dots, *pair) == value
    return None
