"""Computes the steps of an FP32 division on AMD's units, and exponents (CDNA3 ISA, pseudo-code of v_div_* and v_frexp_*)."""

from collections.abc import Callable

import numpy as np

from .. import floats
from ..errors import Refused
from .floating import format_of
from .meaning import Meaning

_NAN, _INFINITY, _SIGN = np.uint32(0x7FC00000), np.uint32(0x7F800000), np.uint32(1 << 31)


def _exponent(bits: np.ndarray) -> np.ndarray:
    return (bits >> np.uint32(23) & np.uint32(255)).astype(np.int64)


def _value(bits: np.ndarray) -> np.ndarray:
    return floats.values(bits, "fp32").astype(np.float64)


def _scaled(bits: np.ndarray, by: int) -> np.ndarray:
    """Return a number times a power of two, rounded to nearest."""
    return np.ldexp(_value(bits), by).astype(np.float32).view(np.uint32)


def scaled_operand(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return x (which is y or z) scaled by v_div_scale so that the steps of z / y lose nothing, and whether v_div_fmas scales
    back."""
    x, y, z = (np.ascontiguousarray(v) for v in np.broadcast_arrays(x, y, z))
    bottom, top = (np.abs(_value(v)) for v in (y, z))
    small_inverse = (bottom > 2.0**126) & np.isfinite(bottom)
    small_quotient = (top < bottom * 2.0**-126) & np.isfinite(bottom)
    up, down = _scaled(x, 64), _scaled(x, -64)
    cases = [  # the first condition that holds decides
        ((bottom == 0) | (top == 0), np.full(x.shape, _NAN), False),
        (_exponent(z) - _exponent(y) >= 96, np.where(x == y, up, x), True),
        (_exponent(y) == 0, up, False),
        (small_inverse & small_quotient, np.where(x == y, up, x), True),
        (small_inverse, down, False),
        (small_quotient, np.where(x == z, up, x), True),
        (_exponent(z) <= 23, up, False),
    ]
    out, undone, open_ = x.copy(), np.zeros(x.shape, bool), np.ones(x.shape, bool)
    for held, value, back in cases:
        here = open_ & held
        out, undone = np.where(here, value, out), undone | (here if back else False)
        open_ &= ~held
    return out, undone


def fixed_quotient(quotient: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Return the result of v_div_fixup: the quotient z / y with its sign, and the special results for zeros and infinities."""
    sign = (y ^ z) & _SIGN
    zero_y, zero_z = (y & ~_SIGN) == 0, (z & ~_SIGN) == 0
    infinite_y, infinite_z = (y & ~_SIGN) == _INFINITY, (z & ~_SIGN) == _INFINITY
    nan = floats.is_nan(y, "fp32") | floats.is_nan(z, "fp32") | (zero_y & zero_z) | (infinite_y & infinite_z)
    special = nan | zero_y | infinite_z | infinite_y | zero_z
    if (~special & (_exponent(z) - _exponent(y) < -150)).any():
        raise Refused("v_div_fixup_f32 of a quotient below about 2^-150 is not modelled")
    found = np.where(special, np.uint32(0), quotient & ~_SIGN)
    return np.where(nan, _NAN, np.where(zero_y | infinite_z, _INFINITY, found) | sign)


def _scaled_by_power(m: Meaning) -> Callable:
    """Return the result of v_ldexp: a number times a power of two, rounded once."""
    fmt = format_of(m.result)

    def run(x, by):
        if any(m.flush) or m.rounding != "rne":
            raise Refused("v_ldexp is modelled only for rounding to nearest with subnormal numbers")
        value = floats.values(x, fmt).astype(np.float64)
        with np.errstate(over="ignore", under="ignore"):
            return floats.rounded(np.ldexp(value, np.clip(by, -4000, 4000)), fmt, "rne")

    return run


def _fraction(x):
    """Return the result of v_frexp_mant: the significand in [0.5, 1)."""
    value = _value(x)
    return np.where(np.isfinite(value), np.frexp(value)[0], value).astype(np.float32).view(np.uint32)


def _power(x):
    """Return the result of v_frexp_exp: the exponent of that significand, 0 for zeros, infinities and NaN."""
    value = _value(x)
    return np.where(np.isfinite(value), np.frexp(np.where(np.isfinite(value), value, 0.0))[1], 0).astype(np.int32)


def scaled_back(x: np.ndarray, y: np.ndarray, z: np.ndarray, back: np.ndarray) -> np.ndarray:
    """Return the result of v_div_fmas: x y + z, times a power of two if v_div_scale asks for it, rounded once."""
    exact = floats.sum_to_odd(_value(x) * _value(y), _value(z))
    power = np.where(back, np.where(_exponent(z) > 127, 64, -64), 0)
    return floats.rounded(np.ldexp(exact, power), "fp32", "rne")


#: Factories of functions, by operation.
MADE: dict[str, Callable[[Meaning], Callable]] = {
    "fixed_quotient": lambda m: fixed_quotient, "scaled_by_power": _scaled_by_power, "fraction": lambda m: _fraction,
    "power": lambda m: _power,
}  # fmt: skip
