"""Holds the Gluon kernel that packs operands on the device as the FP64 kernels take them."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import ANY_VALUE, fp64_of_high, highest_place, lowest_place, taken_apart


@gluon.jit
def scaled(scale, significand, SCALE: gl.constexpr):
    """Return significand, exponent offset, and lowest place of products of operands with block scales, and whether the scale is
    NaN.

    SCALE holds the number of products that share a scale, exponent bits, fraction bits, bias; without fraction bits, a scale is
    a power of two.
    """
    FRACTION: gl.constexpr = SCALE[2]
    bits = scale.to(gl.int32) & ((1 << (SCALE[1] + FRACTION)) - 1)
    strange = bits == (1 << (SCALE[1] + FRACTION)) - 1
    if FRACTION == 0:
        return significand, bits - SCALE[3], gl.zeros_like(bits), strange
    else:
        field = bits >> FRACTION
        of_scale = (bits & ((1 << FRACTION) - 1)) | gl.where(field > 0, 1 << FRACTION, 0)
        return significand * of_scale, gl.maximum(field, 1) - SCALE[3], lowest_place(of_scale) - FRACTION, strange


@gluon.jit
def packed_element(
    codes, scales, inside, place, place_of_scale, SHAPE: gl.constexpr, FORMAT: gl.constexpr, NORMALISE: gl.constexpr,
    SCALE: gl.constexpr,
):  # fmt: skip
    """Return value in FP64, code of exponent, code of lowest bit, sign of elements, and whether they are an infinity or NaN."""
    FRACTION: gl.constexpr = FORMAT[1]
    sign, field, significand, strange = taken_apart(gl.load(codes + place, inside, 0).to(gl.int32), FORMAT)
    field = gl.maximum(field, 1)
    trailing = lowest_place(significand)
    field_of_value = field
    if NORMALISE:
        field -= FRACTION - highest_place(significand)
    shift = field_of_value - FORMAT[2] - FRACTION
    if SCALE is not None:
        significand, exponent, low, of_scale = scaled(gl.load(scales + place_of_scale, inside, 0), significand, SCALE)
        strange |= (inside & of_scale).to(gl.int32)
        field += exponent
        shift += exponent - SCALE[2]
        trailing += exponent + low
    value = significand.to(gl.float64) * fp64_of_high((shift + 1023) << 20)
    nonzero = significand != 0
    # fields count from 1, trailing zeros lift them
    low_code = gl.where(nonzero, SHAPE[2] - (field_of_value - 1 + trailing), 0)
    return gl.where(sign == 1, -value, value), gl.where(nonzero, SHAPE[1] + field, 0), low_code, sign, strange


@gluon.jit(do_not_specialize=ANY_VALUE)
def pack(
    codes, values, words, special, order, scales, rows, k, code_batch, code_row, code_k, scale_batch, scale_row, scale_k,
    row_tiles, padded_k, size,
    SHAPE: gl.constexpr, FORMAT: gl.constexpr, NORMALISE: gl.constexpr, SCALE: gl.constexpr, TILE: gl.constexpr,
):  # fmt: skip
    """Pack four neighbouring k of a tile of rows: values in FP64, pairs of exponents, codes of lowest bits, signs.

    They are stored as [batch][tile of rows][k][row of the tile].

    - order: which k stands at each place, -1 for no k; None: all in order.
    - size: number of elements with padding, divided by 16.
    - FORMAT: that of :func:`taken_apart`.
    - SHAPE: bits of a code, offset of exponents, code of the lowest possible lowest bit.
    - NORMALISE: subnormal numbers have the exponents of their leading bits.
    - SCALE: that of :func:`scaled`, or None. With it, an element is its product with its scale, which is exact, and its
      exponent is the sum of both exponents.
    """
    BITS: gl.constexpr = SHAPE[0]
    PER: gl.constexpr = 32 // BITS
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    quads = padded_k // 4
    program = gl.program_id(0)
    quad = program % quads
    batch, tile = (program // quads // row_tiles).to(gl.int64), program // quads % row_tiles
    at = gl.arange(0, TILE, layout)
    row = tile * TILE + at
    of_tile = batch * row_tiles + tile
    exponents, lowest, signs = (gl.zeros([TILE], gl.int32, layout),) * 3
    strange = gl.zeros([TILE], gl.int32, layout)
    for i in gl.static_range(4):
        at_k = quad * 4 + i
        from_k = at_k
        if order is not None:
            from_k = gl.load(order + at_k)
        inside = (row < rows) & (from_k >= 0) & (from_k < k)
        place = batch * code_batch + row.to(gl.int64) * code_row + from_k.to(gl.int64) * code_k
        of_scale = place
        if SCALE is not None:
            of_scale = batch * scale_batch + row.to(gl.int64) * scale_row + (from_k // SCALE[0]).to(gl.int64) * scale_k
        value, exponent, low, sign, odd = packed_element(
            codes, scales, inside, place, of_scale, SHAPE, FORMAT, NORMALISE, SCALE
        )
        strange |= odd
        gl.store(values + of_tile * padded_k * TILE + at + at_k * TILE, value.to(values.dtype.element_ty))
        lowest |= low << (i % PER * BITS)
        signs |= sign << (i % PER * BITS + BITS - 1)
        exponents |= exponent << (i % 2 * 16)
        if i % 2 == 1:
            gl.store(words + of_tile * (padded_k // 2) * TILE + at + (at_k // 2) * TILE, exponents)
            exponents = gl.zeros_like(exponents)
        if i % PER == PER - 1:
            word_place = of_tile * (padded_k // PER) * TILE + at + (at_k // PER) * TILE
            gl.store(words + size.to(gl.int64) * 8 + word_place, lowest)
            gl.store(words + size.to(gl.int64) * (8 + 16 // PER) + word_place, signs)
            lowest, signs = gl.zeros_like(lowest), gl.zeros_like(signs)
    gl.atomic_or(special + of_tile * TILE + at, strange, mask=strange != 0)
