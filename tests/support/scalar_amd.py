"""AMDGCN instructions in plain Python, one number at a time: the slow twin of the tables.

Integers are bits as Python integers; floating-point numbers are taken apart into fractions and rounded here, once.
"""

from fractions import Fraction

#: Bits of significand (with the hidden one), of exponent, and of the whole, by type.
FLOATS = {"f16": (11, 5, 16), "f32": (24, 8, 32), "f64": (53, 11, 64)}


def signed(x, bits=32):
    return x - (1 << bits) if x >> (bits - 1) else x


def value(bits, kind):
    """The number of an encoding: a fraction, or "nan", "inf", "-inf"; a negative zero is "-0"."""
    precision, exponent_bits, width = FLOATS[kind]
    fraction_bits, bias = precision - 1, (1 << (exponent_bits - 1)) - 1
    sign, field = bits >> (width - 1), bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = bits & (1 << fraction_bits) - 1
    if field == (1 << exponent_bits) - 1:
        return "nan" if fraction else "-inf" if sign else "inf"
    if field:
        fraction += 1 << fraction_bits
    found = Fraction(fraction) * Fraction(2) ** (max(field, 1) - bias - fraction_bits)
    return "-0" if sign and not found else -found if sign else found


def rounded(exact, kind, negative_zero=False):
    """The encoding nearest to a fraction, ties to even."""
    precision, exponent_bits, width = FLOATS[kind]
    fraction_bits, bias = precision - 1, (1 << (exponent_bits - 1)) - 1
    sign = 1 << (width - 1) if exact < 0 or not exact and negative_zero else 0
    exact = abs(exact)
    if not exact:
        return sign
    exponent = max(exact.numerator.bit_length() - exact.denominator.bit_length(), 1 - bias)
    if exact < Fraction(2) ** exponent and exponent > 1 - bias:
        exponent -= 1
    scaled = exact / Fraction(2) ** (exponent - fraction_bits)
    whole, rest = divmod(scaled.numerator, scaled.denominator)
    twice = 2 * rest - scaled.denominator
    whole += twice > 0 or (twice == 0 and whole & 1)
    field = exponent + bias if whole >> fraction_bits else 0
    bits = (field << fraction_bits) + whole - ((1 << fraction_bits) if field else 0)
    infinity = ((1 << exponent_bits) - 1) << fraction_bits
    return sign | min(bits, infinity)


def _number(x):
    return Fraction(0) if x == "-0" else x


def multiply_add(x, y, z, kind):
    """x y + z of encodings of finite numbers."""
    a, b, c = (value(v, kind) for v in (x, y, z))
    minus = [v == "-0" or (not isinstance(v, str) and v < 0) for v in (a, b, c)]
    product = _number(a) * _number(b)
    exact = product + _number(c)
    return rounded(exact, kind, negative_zero=not exact and (minus[0] != minus[1]) and minus[2] and not product)


def add(x, y, kind):
    a, b = value(x, kind), value(y, kind)
    exact = _number(a) + _number(b)
    return rounded(exact, kind, negative_zero=a == b == "-0")


def multiply(x, y, kind):
    a, b = value(x, kind), value(y, kind)
    minus = [v == "-0" or v < 0 if not isinstance(v, str) else v == "-0" for v in (a, b)]
    return rounded(_number(a) * _number(b), kind, negative_zero=minus[0] != minus[1])


def cut(x, kind, low, high):
    """A number cut to an integer within bounds."""
    whole = int(_number(value(x, kind)))
    return max(low, min(high, whole))


_M = 0xFFFFFFFF


def field(x, start, length, is_signed):
    start, length = start & 31, min(length & 31, 32 - (start & 31))
    found = x >> start & (1 << length) - 1
    return (found - (1 << length)) & _M if is_signed and length and found >> (length - 1) else found


def permuted(x, y, selector):
    both, out = x << 32 | y, 0
    for place in range(4):
        code = selector >> 8 * place & 255
        if code < 8:
            byte = both >> 8 * code & 255
        elif code < 12:
            byte = 255 if both >> (16 * (code - 8) + 15) & 1 else 0
        else:
            byte = 0 if code == 12 else 255
        out |= byte << 8 * place
    return out


def _low24(x):
    return x & 0xFFFFFF


def _signed24(x):
    return signed(x & 0xFFFFFF, 24)


def middle(*numbers):
    return sorted(numbers)[1]


#: Vector instructions on 32-bit integers: name -> function of bits.
INTEGERS = {
    "v_add_u32": lambda x, y: x + y, "v_sub_u32": lambda x, y: x - y, "v_subrev_u32": lambda x, y: y - x,
    "v_and_b32": lambda x, y: x & y, "v_or_b32": lambda x, y: x | y, "v_xor_b32": lambda x, y: x ^ y,
    "v_xnor_b32": lambda x, y: ~(x ^ y), "v_not_b32": lambda x: ~x, "v_mov_b32": lambda x: x,
    "v_lshlrev_b32": lambda x, y: y << (x & 31), "v_lshrrev_b32": lambda x, y: y >> (x & 31),
    "v_ashrrev_i32": lambda x, y: signed(y) >> (x & 31),
    "v_min_i32": lambda x, y: min(signed(x), signed(y)), "v_max_u32": max, "v_min_u32": min,
    "v_max_i32": lambda x, y: max(signed(x), signed(y)),
    "v_med3_i32": lambda x, y, z: middle(signed(x), signed(y), signed(z)), "v_med3_u32": middle,
    "v_min3_u32": lambda *v: min(v), "v_max3_i32": lambda *v: max(map(signed, v)),
    "v_mul_lo_u32": lambda x, y: x * y, "v_mul_hi_u32": lambda x, y: x * y >> 32,
    "v_mul_hi_i32": lambda x, y: signed(x) * signed(y) >> 32,
    "v_mul_u32_u24": lambda x, y: _low24(x) * _low24(y), "v_mul_i32_i24": lambda x, y: _signed24(x) * _signed24(y),
    "v_mad_u32_u24": lambda x, y, z: _low24(x) * _low24(y) + z,
    "v_mad_i32_i24": lambda x, y, z: _signed24(x) * _signed24(y) + signed(z),
    "v_add3_u32": lambda x, y, z: x + y + z, "v_xad_u32": lambda x, y, z: (x ^ y) + z,
    "v_lshl_add_u32": lambda x, y, z: (x << (y & 31)) + z, "v_add_lshl_u32": lambda x, y, z: (x + y & _M) << (z & 31),
    "v_lshl_or_b32": lambda x, y, z: (x << (y & 31)) | z, "v_and_or_b32": lambda x, y, z: x & y | z,
    "v_or3_b32": lambda x, y, z: x | y | z, "v_bfi_b32": lambda x, y, z: x & y | ~x & z,
    "v_bfe_u32": lambda x, y, z: field(x, y, z, False), "v_bfe_i32": lambda x, y, z: field(x, y, z, True),
    "v_alignbit_b32": lambda x, y, z: (x << 32 | y) >> (z & 31),
    "v_alignbyte_b32": lambda x, y, z: (x << 32 | y) >> 8 * (z & 3), "v_perm_b32": permuted,
    "v_bcnt_u32_b32": lambda x, y: bin(x).count("1") + y, "v_bfrev_b32": lambda x: int(f"{x:032b}"[::-1], 2),
    "v_ffbh_u32": lambda x: 32 - x.bit_length() if x else -1, "v_ffbl_b32": lambda x: (x & -x).bit_length() - 1 if x else -1,
    "v_sad_u32": lambda x, y, z: abs(x - y) + z, "v_bfm_b32": lambda x, y: (1 << (x & 31)) - 1 << (y & 31),
    "v_add_u16": lambda x, y: x + y & 0xFFFF, "v_mul_lo_u16": lambda x, y: (x & 0xFFFF) * (y & 0xFFFF) & 0xFFFF,
    "v_lshrrev_b16": lambda x, y: (y & 0xFFFF) >> (x & 15), "v_pack_b32_f16": lambda x, y: x & 0xFFFF | (y & 0xFFFF) << 16,
    "v_cvt_f32_u32": lambda x: rounded(Fraction(x), "f32"), "v_cvt_f32_i32": lambda x: rounded(Fraction(signed(x)), "f32"),
    "v_cvt_f32_ubyte2": lambda x: rounded(Fraction(x >> 16 & 255), "f32"),
}  # fmt: skip

#: Vector instructions on finite floating-point numbers: name -> (type of operands, of the result, function of bits).
NUMBERS = {
    **{f"v_add_{k}": (k, k, lambda x, y, k=k: add(x, y, k)) for k in FLOATS},
    **{f"v_mul_{k}": (k, k, lambda x, y, k=k: multiply(x, y, k)) for k in FLOATS},
    **{f"v_fma_{k}": (k, k, lambda x, y, z, k=k: multiply_add(x, y, z, k)) for k in FLOATS},
    "v_sub_f32": ("f32", "f32", lambda x, y: add(x, y ^ 1 << 31, "f32")),
    "v_subrev_f32": ("f32", "f32", lambda x, y: add(y, x ^ 1 << 31, "f32")),
    "v_cvt_f16_f32": ("f32", "f16", lambda x: rounded(_number(value(x, "f32")), "f16", value(x, "f32") == "-0" or x >> 31)),
    "v_cvt_f32_f16": ("f16", "f32", lambda x: rounded(_number(value(x, "f16")), "f32", x >> 15)),
    "v_cvt_f64_f32": ("f32", "f64", lambda x: rounded(_number(value(x, "f32")), "f64", x >> 31)),
    "v_cvt_f32_f64": ("f64", "f32", lambda x: rounded(_number(value(x, "f64")), "f32", x >> 63)),
    "v_cvt_i32_f32": ("f32", "u32", lambda x: cut(x, "f32", -(1 << 31), (1 << 31) - 1) & _M),
    "v_cvt_u32_f32": ("f32", "u32", lambda x: cut(x, "f32", 0, _M)),
}  # fmt: skip

#: Scalar instructions: name -> function of bits that gives (result, SCC or None where it stays).
SCALARS = {
    "s_add_u32": lambda x, y: (x + y & _M, x + y >> 32), "s_sub_u32": lambda x, y: (x - y & _M, y > x),
    "s_add_i32": lambda x, y: (x + y & _M, not -(1 << 31) <= signed(x) + signed(y) < 1 << 31),
    "s_sub_i32": lambda x, y: (x - y & _M, not -(1 << 31) <= signed(x) - signed(y) < 1 << 31),
    "s_mul_i32": lambda x, y: (x * y & _M, None), "s_mul_hi_u32": lambda x, y: (x * y >> 32, None),
    "s_and_b32": lambda x, y: (x & y, bool(x & y)), "s_or_b32": lambda x, y: (x | y, bool(x | y)),
    "s_andn2_b32": lambda x, y: (x & ~y, bool(x & ~y)), "s_xor_b32": lambda x, y: (x ^ y, x != y),
    "s_lshl_b32": lambda x, y: (x << (y & 31) & _M, bool(x << (y & 31) & _M)),
    "s_lshr_b32": lambda x, y: (x >> (y & 31), bool(x >> (y & 31))),
    "s_ashr_i32": lambda x, y: (signed(x) >> (y & 31) & _M, bool(signed(x) >> (y & 31) & _M)),
    "s_min_i32": lambda x, y: (x if signed(x) < signed(y) else y, signed(x) < signed(y)),
    "s_max_u32": lambda x, y: (max(x, y), x > y), "s_bfm_b32": lambda x, y: ((1 << (x & 31)) - 1 << (y & 31) & _M, None),
    "s_lshl2_add_u32": lambda x, y: ((x << 2) + y & _M, (x << 2) + y >> 32 != 0),
    "s_pack_lh_b32_b16": lambda x, y: (x & 0xFFFF | y & 0xFFFF0000, None),
    "s_pack_hh_b32_b16": lambda x, y: (x >> 16 | y & 0xFFFF0000, None),
    "s_bfe_u32": lambda x, y: (scalar_field(x, y), bool(scalar_field(x, y))),
    "s_bfe_i32": lambda x, y: (scalar_field(x, y, True), bool(scalar_field(x, y, True))),
    "s_absdiff_i32": lambda x, y: (abs(signed(x) - signed(y)) & _M, x != y),
}  # fmt: skip


def scalar_field(x, where, is_signed=False):
    start = where & 31
    length = min(where >> 16 & 127, 32 - start)
    found = x >> start & (1 << length) - 1
    return (found - (1 << length)) & _M if is_signed and length and found >> (length - 1) else found
