"""This module reduces a large angle x to a multiple of pi/2 and a rest, over operations `z` on integers (Payne, Hanek 1983).

CUDA's sinf, cosf and tanf reduce angles from :data:`LARGE` on this way. x is multiplied by the first 192 bits of 2/pi. Two bits
before the point and 62 bits after it are kept of the exact product, the other bits are truncated. The fraction is the rest as a
fixed-point number, whose product with pi/2 is rounded to FP64 and then to FP32. ``_kernels/functions/angles.h`` is the kernel.

Source: the PTX that nvrtc of CUDA 13.0 makes of these functions; torch's results on an H100 for all bf16 numbers agree.
"""

from typing import Any, NamedTuple

#: floor(2^192 2 / pi).
TWO_OVER_PI = 0xA2F9836E4E441529FC2757D1F534DDC0DB6295993C439041
#: CUDA's constant for pi / 2, times 2^-64, as the bits of an FP64 number; it is one unit above the nearest FP64 number.
HALF_PI = 0x3BF921FB54442D19
#: The bits of 105615.0; below this angle CUDA reduces with three multiply-adds, and this module is not used.
LARGE = 0x47CE4780


class ReducedAngle(NamedTuple):
    """`ReducedAngle` is x = turns pi / 2 + rest: `turns` modulo 2^32, and `rest` as an FP32 code between -pi/4 and pi/4."""

    turns: Any
    rest: Any


def reduced(z, code) -> ReducedAngle:
    """Return the reduction of an angle; both parts are 0 for angles below :data:`LARGE`, infinity and NaN.

    Parameters
    ----------
    z : module
        :mod:`~tensorcore_models.functions.on_integers` or :mod:`~tensorcore_models.functions.on_terms`.
    code : int or Term
        Bits of the angle in FP32.
    """
    magnitude, field = z.bits(code, 30, 0), z.bits(code, 30, 23)
    negative = z.same(z.bits(code, 31, 31), z.number(1))
    used = z.both(z.negation(z.less(magnitude, z.number(LARGE))), z.less(magnitude, z.number(0x7F800000)))
    product = z.times(z.plus(z.bits(code, 22, 0), z.number(1 << 23)), z.number(TWO_OVER_PI))
    window = z.low(z.shifted(product, z.minus(z.number(280), field)), 64)  # x 2 / pi 2^62
    turns, rest = z.cut(window, 62), z.scaled(z.low(window, 62), 2)
    beyond = z.same(z.low(z.cut(window, 61), 1), z.number(1))  # the rest is at least half a turn: round up
    turns = z.plus(turns, z.select(beyond, z.number(1), z.number(0)))
    turns = z.select(negative, z.minus(z.number(0), turns), turns)
    rest = z.select(beyond, z.minus(z.number((1 << 64) - 1), rest), rest)
    angle = z.product_in_double(rest, HALF_PI)
    sign = z.choose(z.exclusive(negative, beyond), z.code(1 << 31, 32), z.code(0, 32))
    nothing = z.code(0, 32)
    return ReducedAngle(z.choose(used, z.as_code(turns, 32), nothing), z.choose(used, z.word_or(angle, sign), nothing))
