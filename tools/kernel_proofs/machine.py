"""This module expresses the operations of the kernels' C code as terms over bits of float32, double and int32 numbers.

They are IEEE 754 addition and multiplication by a power of two under a rounding mode, and conversions between integers
and float32 as defined by C and the CPU. Infinities and NaNs never reach the lanes, so these terms leave them out.
"""

from tensorcore_models.accumulators import FusedDotAdd
from tensorcore_models.arithmetic import numbers as n
from tensorcore_models.arithmetic.numbers import Number
from tensorcore_models.arithmetic.sums import ieee_sum
from tensorcore_models.bitvectors import integers as z
from tensorcore_models.bitvectors import terms as t
from tensorcore_models.bitvectors.integers import Int
from tensorcore_models.bitvectors.terms import Term
from tensorcore_models.formats import FORMATS, Format

FP16, FP32, FP64 = FORMATS["fp16"], FORMATS["fp32"], FORMATS["fp64"]
#: Rules for NaNs and zeros that :mod:`.numbers` needs, and on which no machine operation here depends.
_RULES = FusedDotAdd()


def value_of(fmt: Format, bits: Term) -> Number:
    """Return a finite machine number."""
    return n.decode(fmt, bits, _RULES)._replace(nan=t.FALSE, inf=t.FALSE)


def as_machine(number: Number, fmt: Format, rounding: str = "rz") -> Term:
    """Return the bits of a number, rounded; it must not overflow. A zero keeps its sign."""
    exponent = z.minus(number.align, z.number(number.point))
    code, _ = n.rounded_magnitude(number.negative, number.significand, exponent, fmt, rounding)
    return n.encoded(number.negative, z.as_bits(code, fmt.exponent_bits + fmt.fraction_bits), fmt)


def add(x: Term, y: Term, fmt: Format, rounding: str = "rz") -> Term:
    """Return x + y."""
    return add_exact(x, value_of(fmt, y), fmt, rounding)


def add_exact(x: Term, y: Number, fmt: Format, rounding: str = "rz") -> Term:
    """Return x plus an exact number, rounded once: a sum or a fused multiply-add."""
    return ieee_sum([value_of(fmt, x), y], fmt, _RULES, rounding)


def subtract(x: Term, y: Term, fmt: Format) -> Term:
    """Return x - y."""
    return add(x, t.bits_xor(y, t.constant(fmt.sign_bit, fmt.bits)), fmt)


def times_power(x: Term, exponent: Int, fmt: Format) -> Term:
    """Return x * 2**exponent."""
    number = value_of(fmt, x)
    return as_machine(number._replace(align=z.plus(number.align, exponent)), fmt)


def power_bits(exponent: Int, fmt: Format) -> Term:
    """Return the bits of 2**exponent, a normal number."""
    field = z.as_bits(z.plus(exponent, z.number(fmt.bias)), fmt.bits - fmt.fraction_bits)
    return t.joined(field, t.constant(0, fmt.fraction_bits))


def to_int32(x: Term) -> Int:
    """Return (int32_t) of a float32 below 2^31 in magnitude, rounded toward zero."""
    number = value_of(FP32, x)
    shift = z.minus(z.number(31 + number.point), number.align)  # from a significand with 31 more places
    amount = z.ranged(z.larger(shift, z.number(0)).term, 0, shift.high)
    whole = z.shifted_right(z.scaled(number.significand, 31), z.minus(amount, z.number(0)))
    magnitude = z.ranged(whole.term, 0, (1 << 31) - 1)
    return z.with_sign(number.negative, magnitude)


def from_int32(x: Int, rounding: str = "rz") -> Term:
    """Return (float) of an integer."""
    number = n.plain(z.less(x, z.number(0)), z.magnitude(x), z.number(0), 0)
    return as_machine(number, FP32, rounding)


def same_value(x: Number, y: Number) -> Term:
    """Return whether two finite numbers are equal; zeros of both signs are."""
    point = max(x.point, y.point)
    x, y = n.normalised(n.with_point(x, point)), n.normalised(n.with_point(y, point))
    width = max(x.point, y.point)
    left, right = (z.scaled(number.significand, width - number.point) for number in (x, y))
    zero = t.both(z.is_zero(left), z.is_zero(right))
    return t.either(zero, t.both(t.equal(x.negative, y.negative), z.same(left, right), z.same(x.align, y.align)))
