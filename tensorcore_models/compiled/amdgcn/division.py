"""The steps of an FP32 division, and exponents: v_div_scale, fmas and fixup, v_ldexp, v_frexp (CDNA3 ISA, pseudo-code)."""

from collections.abc import Callable

import numpy as np

from .. import floats
from ..errors import Refused
from .decode import AluRow, Operation, unknown
from .syntax import VCC, AMDInstruction, RegisterRange
from .vector import mask_target, write_mask
from .vector_operands import VectorSource, VectorTarget, active, settled, vector_operation

_NAN, _INFINITY, _SIGN = np.uint32(0x7FC00000), np.uint32(0x7F800000), np.uint32(1 << 31)


def _exponent(bits: np.ndarray) -> np.ndarray:
    return (bits >> np.uint32(23) & np.uint32(255)).astype(np.int64)


def _value(bits: np.ndarray) -> np.ndarray:
    return floats.values(bits, "fp32").astype(np.float64)


def _scaled(bits: np.ndarray, by: int) -> np.ndarray:
    """A number times a power of two, rounded to nearest."""
    return np.ldexp(_value(bits), by).astype(np.float32).view(np.uint32)


def scaled_operand(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """v_div_scale: (x, which is y or z, scaled so that the steps of z / y lose nothing; whether v_div_fmas scales back)."""
    x, y, z = (np.ascontiguousarray(v) for v in np.broadcast_arrays(x, y, z))
    bottom, top = (np.abs(_value(v)) for v in (y, z))
    small_inverse = (bottom > 2.0**126) & np.isfinite(bottom)
    small_quotient = (top < bottom * 2.0**-126) & np.isfinite(bottom)
    up, down = _scaled(x, 64), _scaled(x, -64)
    cases = [  # the first that holds
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


def fixed_quotient(mode, quotient: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """v_div_fixup: the quotient z / y with its sign, and what it is for zeros and infinities."""
    sign = (y ^ z) & _SIGN
    zero_y, zero_z = (y & ~_SIGN) == 0, (z & ~_SIGN) == 0
    infinite_y, infinite_z = (y & ~_SIGN) == _INFINITY, (z & ~_SIGN) == _INFINITY
    nan = floats.is_nan(y, "fp32") | floats.is_nan(z, "fp32") | (zero_y & zero_z) | (infinite_y & infinite_z)
    special = nan | zero_y | infinite_z | infinite_y | zero_z
    if (~special & (_exponent(z) - _exponent(y) < -150)).any():
        raise Refused("v_div_fixup_f32 of a quotient far below the smallest number is not known here")
    found = np.where(special, np.uint32(0), quotient & ~_SIGN)
    return np.where(nan, _NAN, np.where(zero_y | infinite_z, _INFINITY, found) | sign)


def build_scale(ins: AMDInstruction) -> Operation:
    """v_div_scale_f32."""
    if len(ins.operands) != 5 or ins.modifiers:
        raise unknown(ins, "has operands or modifiers that are not known here")
    target, out = VectorTarget(ins.operands[0], "f32", ins), mask_target(ins.operands[1], ins)
    sources = [VectorSource(x, "f32", ins) for x in ins.operands[2:]]
    row = AluRow("f32", ("f32",) * 3, np.asarray)

    def run(machine, waves, lanes):
        read = [source.read(machine, waves, lanes) for source in sources]
        found, undone = scaled_operand(*(np.asarray(value) for value, _ in read))
        ids = None
        if machine.trace is not None and any(own is not None for _, own in read):
            ids = machine.trace.elementwise(ins, row, [value for value, _ in read], [own for _, own in read])
        target.write(machine, found, waves, lanes, ids)
        write_mask(machine, out, undone, waves, lanes)

    return active(run)


def build_multiply_add(ins: AMDInstruction) -> Operation:
    """v_div_fmas_f32: a multiply-add, which undoes the scale of v_div_scale where VCC says so, rounded once."""
    if len(ins.operands) != 4 or ins.modifiers:
        raise unknown(ins, "has operands or modifiers that are not known here")
    target = VectorTarget(ins.operands[0], "f32", ins)
    sources = [VectorSource(x, "f32", ins) for x in ins.operands[1:]]
    flags = VectorSource(RegisterRange(False, VCC, 2), "mask", ins)
    row = AluRow("f32", ("f32",) * 3, np.asarray)

    def run(machine, waves, lanes):
        mode, read = machine.mode_of(waves), [source.read(machine, waves, lanes) for source in sources]
        if any(mode.flushes("fp32")) or mode.rounding("fp32") != "rne":
            raise Refused(f"{ins.opcode} in this mode of rounding or of subnormal numbers is not known here", ins.line)
        x, y, z = (np.asarray(value) for value, _ in read)
        exact = floats.sum_to_odd(_value(x) * _value(y), _value(z))
        back, _ = flags.read(machine, waves, lanes)
        power = np.where(back, np.where(_exponent(z) > 127, 64, -64), 0)
        found = settled(machine, ins, floats.rounded(np.ldexp(exact, power), "fp32", "rne"), "fp32")
        ids = None
        if machine.trace is not None and any(own is not None for _, own in read):
            ids = machine.trace.elementwise(ins, row, [value for value, _ in read], [own for _, own in read])
        target.write(machine, found, waves, lanes, ids)

    return active(run)


def _loaded(fmt: str) -> Callable:
    """v_ldexp: a number times a power of two, rounded once."""

    def run(mode, x, by):
        if any(mode.flushes(fmt)) or mode.rounding(fmt) != "rne":
            raise Refused("v_ldexp in this mode of rounding or of subnormal numbers is not known here")
        with np.errstate(over="ignore", under="ignore"):
            return floats.rounded(
                np.ldexp(floats.values(x, fmt).astype(np.float64), np.clip(by, -4000, 4000)), fmt, "rne"
            )

    return run


def _fraction(mode, x):
    """v_frexp_mant: the significand in [0.5, 1)."""
    value = _value(x)
    return np.where(np.isfinite(value), np.frexp(value)[0], value).astype(np.float32).view(np.uint32)


def _power(mode, x):
    """v_frexp_exp: the exponent to that significand, 0 for zeros, infinities and NaN."""
    value = _value(x)
    return np.where(np.isfinite(value), np.frexp(np.where(np.isfinite(value), value, 0.0))[1], 0).astype(np.int32)


ROWS: dict[str, AluRow] = {
    "v_div_fixup_f32": AluRow("f32", ("f32",) * 3, fixed_quotient, moded=True),
    "v_ldexp_f32": AluRow("f32", ("f32", "i32"), _loaded("fp32"), moded=True),
    "v_ldexp_f64": AluRow("f64", ("f64", "i32"), _loaded("fp64"), moded=True),
    "v_frexp_mant_f32": AluRow("f32", ("f32",), _fraction, moded=True),
    "v_frexp_exp_i32_f32": AluRow("i32", ("f32",), _power, moded=True),
}


def build(ins: AMDInstruction) -> Operation:
    """The operation of an elementwise instruction."""
    return vector_operation(ins, ROWS[ins.name])


BUILDERS: dict[str, Callable[[AMDInstruction], Operation]] = {
    **dict.fromkeys(ROWS, build), "v_div_scale_f32": build_scale, "v_div_fmas_f32": build_multiply_add,
}  # fmt: skip
