"""The sum of one step of CDNA3's units on windows of FP64."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import add_rz, replicated
from .source_steps import floored, inexact_negatives, lifted, on_unit, window


@gluon.jit
def down_sum(
    a_at, b_at, even, odd, value, BM: gl.constexpr, BN: gl.constexpr,
    TERMS: gl.constexpr, BITS: gl.constexpr, FRACTION: gl.constexpr, THRESHOLD: gl.constexpr, DOWN: gl.constexpr,
):  # fmt: skip
    """(sum of a step as CDNA3 forms it, largest exponent): products cut, the dot product and c rounded down.

    even, odd: Largest exponents of the products of even and odd k, as fields of FP32. value: c. The largest exponent is
    given where FP64 has it. DOWN: (fraction bits of the dot product, of c, of the sum; what c's exponent may be below the
    largest, None: any; groups).
    """
    WORDS: gl.constexpr = TERMS * BITS // 32
    BIAS: gl.constexpr = (1023 - 127) << 20
    both = (gl.maximum(even, odd) << 20) + BIAS
    if DOWN[4] == 1:
        limit = replicated(gl.maximum(gl.maximum(even, odd) + THRESHOLD, 0), BITS)
        count, _ = inexact_negatives(a_at, b_at, limit, BM, BN, WORDS)
        base = window(both, FRACTION)
        dot = lifted(floored(a_at, b_at, base, BM, BN, TERMS, 0, 1), count) - base
    else:
        limits = gl.maximum(even + THRESHOLD, 0) | (gl.maximum(odd + THRESHOLD, 0) << BITS)
        limits = limits | (limits << 16) if BITS == 8 else limits
        count, of_odd = inexact_negatives(a_at, b_at, limits, BM, BN, WORDS)
        first, second = window((even << 20) + BIAS, FRACTION), window((odd << 20) + BIAS, FRACTION)
        dot = lifted(floored(a_at, b_at, first, BM, BN, TERMS, 0, 2), count - of_odd) - first
        other = lifted(floored(a_at, b_at, second, BM, BN, TERMS, 1, 2), of_odd) - second
        base = window(both, FRACTION)
        dot = on_unit(dot, base) + on_unit(other, base)
    # zeros and subnormal numbers are aligned as the smallest normal one
    of_c = gl.maximum((value.to(gl.int64, bitcast=True) >> 32).to(gl.int32) & 0x7FF00000, (1023 - 126) << 20)
    top = gl.maximum(both, of_c)
    kept = on_unit(value, window(top, DOWN[1]))
    if DOWN[3] is not None:
        kept = gl.where(top - of_c > (DOWN[3] << 20), 0.0, kept)
    base = window(top, DOWN[0])
    total = (add_rz(base, dot) + kept) - base
    if DOWN[2] is not None:
        LOST: gl.constexpr = (1 << (52 - DOWN[2])) - 1
        bits = total.to(gl.int64, bitcast=True)
        total = ((bits + ((bits >> 63) & LOST)) & ~LOST).to(gl.float64, bitcast=True)
    return total, top
