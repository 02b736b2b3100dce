"""Computes the sum of one step of CDNA3's units on windows of FP64."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import add_rm, add_rz, as_exponent, fp64_of_high, larger_of_pairs, larger_sums, permuted
from .source_steps import above_window, floored, inexact_negatives, window


@gluon.jit
def dot_of_group(
    a_at, b_at, high, limit, TERMS: gl.constexpr, BITS: gl.constexpr, GROUPS: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """Return the sum of one group's products, each truncated to the unit of a window; `high` is the window's upper word."""
    count = inexact_negatives(a_at, b_at, limit, TERMS * BITS // 32, False, GROUPS, GROUP)
    total = floored(a_at, b_at, window(high), TERMS, GROUP, GROUPS)
    return above_window(total, high, count)


@gluon.jit
def rounded_down(x, BITS: gl.constexpr):
    """Return x rounded down to BITS (at most 31) fraction bits below its leading bit, the places of a window of x's size.

    The window's lower word is 0, so that adding x, which is 2^21 times smaller or more, never leaves its binade.
    """
    high = (x.to(gl.int64, bitcast=True) >> 32).to(gl.int32) + ((52 - BITS) << 20)
    base = fp64_of_high(high)
    return add_rm(base, x) - base


@gluon.jit
def down_sum(
    a_at, b_at, pairs, value, TERMS: gl.constexpr, BITS: gl.constexpr, FRACTION: gl.constexpr, THRESHOLD: gl.constexpr,
    WIDE: gl.constexpr, DOWN: gl.constexpr, PAIRS: gl.constexpr,
):  # fmt: skip
    """Return the sum of a step as CDNA3 forms it, and the window of c.

    Products are truncated; then the dot product and c are rounded down.

    - pairs: largest codes of exponents of even and odd k, each of which is the exponent field of its window.
    - THRESHOLD: (offset added to these codes, least sum). The sum's lower byte lifts the codes of inexact products to the top
      bit; with fields of 16 bits, the codes themselves do so.
    - value: c, whose window is given by its upper word.
    - DOWN: fraction bits of the dot product, of c, and of the sum; how far c's exponent may be below the largest (None: any
      distance); number of groups.
    """
    GROUPS: gl.constexpr = DOWN[4]
    half = gl.full_like(pairs, -0x80000000)
    of_both = larger_of_pairs(pairs, permuted(pairs, 0x1032), PAIRS)
    limits = of_both if GROUPS == 1 else pairs
    if BITS == 8:
        added, least = gl.full_like(limits, THRESHOLD[0] * 0x10001), gl.full_like(limits, THRESHOLD[1] * 0x10001)
        limits = permuted(larger_sums(limits, added, least, PAIRS), 0x2020)
    high = as_exponent(of_both, half)
    if GROUPS == 1:
        dot = dot_of_group(a_at, b_at, high, limits, TERMS, BITS, 1, 0)
    else:  # bits of the even code stay below the leading ones of the odd window and change nothing
        even = dot_of_group(a_at, b_at, as_exponent(pairs, half), limits, TERMS, BITS, 2, 0)
        odd = dot_of_group(a_at, b_at, (pairs << 4) + 0x80000, limits, TERMS, BITS, 2, 1)
        base = window(high)
        dot = gl.fma(base, -2.0, add_rz(base, even)) + add_rz(base, odd)
    of_c = (value.to(gl.int64, bitcast=True) >> 32).to(gl.int32) & 0x7FF00000
    # zeros and subnormal numbers are aligned as the smallest normal one, where exponents of narrow products start
    if WIDE or DOWN[3] is not None:
        of_c = gl.maximum(of_c, (1023 - 126) << 20)
    of_c += ((52 - DOWN[1]) << 20) + 0x80000
    top = gl.maximum(of_c, high + ((FRACTION - DOWN[1]) << 20))
    if DOWN[3] is not None:
        value = gl.where(top - of_c > (DOWN[3] << 20), 0.0, value)
    # c in its own units, minus 1.5 2^52 units of the dot product
    base = window(top)
    RATIO: gl.constexpr = 2.0 ** (DOWN[1] - DOWN[0])
    total = gl.fma(base, -1.0 - RATIO, add_rz(base, value)) + add_rz(base * RATIO, dot)
    return total if DOWN[2] is None else rounded_down(total, DOWN[2]), top
