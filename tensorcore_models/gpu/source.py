"""Gluon kernels of fused sums: operands packed on the device, and products summed in FP64 without a matrix instruction.

Gluon, not Triton's tiles: each thread keeps 4 x 4 outputs and takes its own rows and columns from memory, which layouts say.
What a kernel computes stands in its constants, which :mod:`.modes` makes of a lowered accumulator.
"""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def tile_layout(EACH, WARPS):
    """Outputs of a tile: EACH[0] x EACH[1] of each thread, 4 x 8 threads of a warp, WARPS[0] x WARPS[1] of these."""
    return gl.BlockedLayout([EACH[0], EACH[1]], [4, 8], [WARPS[0], WARPS[1]], [1, 0])


@gluon.constexpr_function
def tile_rows(EACH, WARPS):
    """Rows of a tile."""
    return 4 * EACH[0] * WARPS[0]


@gluon.constexpr_function
def tile_columns(EACH, WARPS):
    """Columns of a tile."""
    return 8 * EACH[1] * WARPS[1]


# -- instructions that Gluon has no name for -----------------------------------------------------------------------------------
@gluon.jit
def fma_rz(x, y, z):
    """x y + z toward zero, in FP64 or FP32."""
    if z.dtype == gl.float32:
        return gl.inline_asm_elementwise("fma.rz.f32 $0, $1, $2, $3;", "=f,f,f,f", [x, y, z], gl.float32, True, 1)
    else:
        return gl.inline_asm_elementwise("fma.rz.f64 $0, $1, $2, $3;", "=d,d,d,d", [x, y, z], gl.float64, True, 1)


@gluon.jit
def add_rz(x, y):
    """x + y toward zero, in FP64 or FP32."""
    if y.dtype == gl.float32:
        return gl.inline_asm_elementwise("add.rz.f32 $0, $1, $2;", "=f,f,f", [x, y], gl.float32, True, 1)
    else:
        return gl.inline_asm_elementwise("add.rz.f64 $0, $1, $2;", "=d,d,d", [x, y], gl.float64, True, 1)


@gluon.jit
def to_fp32_rz(x):
    """FP64 to FP32 toward zero."""
    return gl.inline_asm_elementwise("cvt.rz.f32.f64 $0, $1;", "=f,d", [x], gl.float32, True, 1)


@gluon.jit
def larger_sums(x, y, z, PAIRS: gl.constexpr):
    """The larger of x + y and z in both 16-bit halves."""
    if PAIRS == "u16x2":
        total = gl.inline_asm_elementwise("add.u16x2 $0, $1, $2;", "=r,r,r", [x, y], gl.int32, True, 1)
        return gl.inline_asm_elementwise("max.u16x2 $0, $1, $2;", "=r,r,r", [total, z], gl.int32, True, 1)
    else:  # positive numbers of 15 bits are ordered alike as FP16
        return gl.inline_asm_elementwise("max.f16x2 $0, $1, $2;", "=r,r,r", [x + y, z], gl.int32, True, 1)


@gluon.jit
def counted(word, count, BYTES: gl.constexpr):
    """count + 128 for each byte of the word that has its top bit alone set and 1 in BYTES."""
    return gl.inline_asm_elementwise(
        "dp4a.u32.u32 $0, $1, $2, $3;", "=r,r,r,r", [word, gl.full_like(word, BYTES), count], gl.int32, True, 1
    )


@gluon.jit
def replicated(x, BITS: gl.constexpr):
    """The lowest BITS bits in every field of a word."""
    order: gl.constexpr = 0x0000 if BITS == 8 else 0x1010
    return gl.inline_asm_elementwise(
        "prmt.b32 $0, $1, 0, $2;", "=r,r,r", [x, gl.full_like(x, order)], gl.int32, True, 1
    )


@gluon.jit
def fp64_of_high(high):
    """The FP64 number whose upper word this is, and whose lower word is 0."""
    return (high.to(gl.int64) << 32).to(gl.float64, bitcast=True)


@gluon.jit
def highest_place(x):
    """Place of the highest bit of integers below 2^24; 0 has -127."""
    return (x.to(gl.float32).to(gl.int32, bitcast=True) >> 23) - 127


@gluon.jit
def lowest_place(x):
    """Place of the lowest bit of integers below 2^24; 0 has -127."""
    return highest_place(x & -x)


# -- operands ------------------------------------------------------------------------------------------------------------------
#: Sizes and strides: a kernel is compiled once for all.
ANY_VALUE = (
    *(
        "rows",
        "k",
        "code_batch",
        "code_row",
        "code_k",
        "scale_batch",
        "scale_row",
        "scale_k",
        "size",
        "m",
        "n",
        "steps",
        "chain",
    ),
    *("row_tiles", "column_tiles", "padded_k", "a_size", "b_size", "c_batch", "c_row", "c_column"),
)


@gluon.jit(do_not_specialize=ANY_VALUE)
def pack(
    codes, values, words, special, order, scales, rows, k, code_batch, code_row, code_k, scale_batch, scale_row, scale_k,
    row_tiles, padded_k, size,
    SHAPE: gl.constexpr, FORMAT: gl.constexpr, NORMALISE: gl.constexpr, SCALE: gl.constexpr, TILE: gl.constexpr,
):  # fmt: skip
    """Four neighbouring k of a tile of rows: values in FP64, pairs of exponents, codes of lowest bits, signs.

    order: which k stands at each place, -1: none; None: all in turn. FORMAT: (exponent bits, fraction bits, bias, padding bits,
    sign bit, kind of specials). SHAPE: (bits of a code, offset of exponents, code of the lowest lowest bit). NORMALISE:
    subnormal numbers have the exponents of their leading bits. Where it is stored: [batch][tile of rows][k][row of the tile].
    size: Elements, padding included, by 16. SCALE: (products that share a scale, exponent bits, fraction bits and bias of
    scales) or None: an operand is its product with its scale, which is exact, and its exponent is the sum of both.
    """
    EXPONENT: gl.constexpr = FORMAT[0]
    FRACTION: gl.constexpr = FORMAT[1]
    BITS: gl.constexpr = SHAPE[0]
    PER: gl.constexpr = 32 // BITS
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [1], [0])
    quads = padded_k // 4
    program = gl.program_id(0)
    quad = program % quads
    tile = program // quads % row_tiles
    batch = (program // quads // row_tiles).to(gl.int64)
    at = gl.arange(0, TILE, layout)
    row = tile * TILE + at
    place = (batch * row_tiles + tile) * padded_k * TILE + at
    exponents = gl.zeros([TILE], gl.int32, layout)
    lowest = gl.zeros([TILE], gl.int32, layout)
    signs = gl.zeros([TILE], gl.int32, layout)
    strange = gl.zeros([TILE], gl.int32, layout)
    for i in gl.static_range(4):
        at_k = quad * 4 + i
        from_k = at_k
        if order is not None:
            from_k = gl.load(order + at_k)
        inside = (row < rows) & (from_k >= 0) & (from_k < k)
        bits = gl.load(
            codes + batch * code_batch + row.to(gl.int64) * code_row + from_k.to(gl.int64) * code_k, inside, 0
        )
        bits = bits.to(gl.int32)
        sign = (bits >> FORMAT[4]) & 1 if FORMAT[4] >= 0 else gl.zeros_like(bits)
        magnitude = (bits >> FORMAT[3]) & ((1 << (EXPONENT + FRACTION)) - 1)
        field = magnitude >> FRACTION
        fraction = magnitude & ((1 << FRACTION) - 1)
        if FORMAT[5] == "ieee":
            strange |= (field == (1 << EXPONENT) - 1).to(gl.int32)
        elif FORMAT[5] == "fn":
            strange |= (magnitude == (1 << (EXPONENT + FRACTION)) - 1).to(gl.int32)
        elif FORMAT[5] == "fnuz":
            strange |= ((magnitude == 0) & (sign == 1)).to(gl.int32)
        significand = fraction | gl.where(field > 0, 1 << FRACTION, 0)
        field = gl.maximum(field, 1)
        trailing = lowest_place(significand)
        if NORMALISE:
            field_of_value = field
            field -= FRACTION - highest_place(significand)
        else:
            field_of_value = field
        shift = field_of_value - FORMAT[2] - FRACTION
        if SCALE is not None:
            place_of_scale = (
                batch * scale_batch + row.to(gl.int64) * scale_row + (from_k // SCALE[0]).to(gl.int64) * scale_k
            )
            scale = gl.load(scales + place_of_scale, inside, 0).to(gl.int32) & ((1 << (SCALE[1] + SCALE[2])) - 1)
            if SCALE[2] == 0:  # a power of two, or NaN
                strange |= (inside & (scale == (1 << SCALE[1]) - 1)).to(gl.int32)
                field += scale - SCALE[3]
                shift += scale - SCALE[3]
                trailing += scale - SCALE[3]
            else:
                strange |= (inside & (scale == (1 << (SCALE[1] + SCALE[2])) - 1)).to(gl.int32)
                of_scale = (scale & ((1 << SCALE[2]) - 1)) | gl.where(scale >> SCALE[2] > 0, 1 << SCALE[2], 0)
                exponent = gl.maximum(scale >> SCALE[2], 1) - SCALE[3]
                significand = significand * of_scale
                field += exponent
                shift += exponent - SCALE[2]
                trailing += exponent - SCALE[2] + lowest_place(of_scale)
        nonzero = significand != 0
        value = significand.to(gl.float64) * fp64_of_high((shift + 1023) << 20)
        gl.store(values + place + at_k * TILE, gl.where(sign == 1, -value, value).to(values.dtype.element_ty))
        # fields count from 1, trailing zeros lift them
        low = gl.where(nonzero, SHAPE[2] - (field_of_value - 1 + trailing), 0)
        lowest |= low << (i % PER * BITS)
        signs |= sign << (i % PER * BITS + BITS - 1)
        exponents |= gl.where(nonzero, SHAPE[1] + field, 0) << (i % 2 * 16)
        pair_place = (batch * row_tiles + tile) * (padded_k // 2) * TILE + at
        if i % 2 == 1:
            gl.store(words + pair_place + (at_k // 2) * TILE, exponents)
            exponents = gl.zeros_like(exponents)
        if i % PER == PER - 1:
            word_place = (batch * row_tiles + tile) * (padded_k // PER) * TILE + at + (at_k // PER) * TILE
            gl.store(words + size.to(gl.int64) * 8 + word_place, lowest)
            gl.store(words + size.to(gl.int64) * (8 + 16 // PER) + word_place, signs)
            lowest = gl.zeros_like(lowest)
            signs = gl.zeros_like(signs)
    gl.atomic_or(special + (batch * row_tiles + tile) * TILE + at, strange, mask=strange != 0)


# -- one step ------------------------------------------------------------------------------------------------------------------
@gluon.jit
def largest(
    pa, pb, ROWS: gl.constexpr, COLUMNS: gl.constexpr, L: gl.constexpr, TERMS: gl.constexpr, PAIRS: gl.constexpr
):
    """The largest sum of exponents of even and of odd k, in the two halves."""
    found = gl.zeros([ROWS, COLUMNS], gl.int32, L)
    for j in gl.static_range(TERMS // 2):
        x, y = gl.load(pa + j * ROWS), gl.load(pb + j * COLUMNS)
        found = larger_sums(gl.expand_dims(x, 1), gl.expand_dims(y, 0), found, PAIRS)
    return found


@gluon.jit
def inexact_negatives(
    a_code, a_sign, b_code, b_sign, threshold, ROWS: gl.constexpr, COLUMNS: gl.constexpr, WORDS: gl.constexpr
):
    """How many negative products have bits below the unit, times 128, of all k, and of odd k alone."""
    count, odd = gl.zeros_like(threshold), gl.zeros_like(threshold)
    for j in gl.static_range(WORDS):
        x = gl.expand_dims(gl.load(a_code + j * ROWS), 1)
        y = gl.expand_dims(gl.load(b_code + j * COLUMNS), 0)
        minus = gl.expand_dims(gl.load(a_sign + j * ROWS), 1) ^ gl.expand_dims(gl.load(b_sign + j * COLUMNS), 0)
        found = (x + y + threshold) & minus
        count, odd = counted(found, count, 0x01010101), counted(found, odd, 0x01000100)
    return count, odd


@gluon.jit
def floored(
    pa,
    pb,
    total,
    ROWS: gl.constexpr,
    COLUMNS: gl.constexpr,
    TERMS: gl.constexpr,
    FIRST: gl.constexpr,
    EVERY: gl.constexpr,
):
    """total + the products of every EVERY-th k from FIRST on, each rounded down to the unit of total."""
    for k in gl.static_range(FIRST, TERMS, EVERY):
        x, y = gl.load(pa + k * ROWS), gl.load(pb + k * COLUMNS)
        total = fma_rz(gl.expand_dims(x, 1), gl.expand_dims(y, 0), total)
    return total


@gluon.jit
def lifted(units, count):
    """units + count / 128 units, a sum on its window: toward zero is one unit above down for negative products."""
    if units.dtype == gl.float32:
        return (units.to(gl.int32, bitcast=True) + (count >> 7)).to(gl.float32, bitcast=True)
    else:
        return (units.to(gl.int64, bitcast=True) + (count >> 7).to(gl.int64)).to(gl.float64, bitcast=True)


@gluon.jit
def window(top, FRACTION: gl.constexpr):
    """1.5 2^52 units of 2^-FRACTION below an exponent, which is given where FP64 has it, in its upper word."""
    return fp64_of_high(top + (((52 - FRACTION) << 20) + 0x80000))


@gluon.jit
def on_unit(x, base):
    """x rounded down to the unit of a window."""
    return add_rz(base, x) - base


@gluon.jit
def down_sum(
    a_value, b_value, a_code, a_sign, b_code, b_sign, even, odd, value, BM: gl.constexpr, BN: gl.constexpr,
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
        count, _ = inexact_negatives(a_code, a_sign, b_code, b_sign, limit, BM, BN, WORDS)
        base = window(both, FRACTION)
        dot = lifted(floored(a_value, b_value, base, BM, BN, TERMS, 0, 1), count) - base
    else:
        limits = gl.maximum(even + THRESHOLD, 0) | (gl.maximum(odd + THRESHOLD, 0) << BITS)
        limits = limits | (limits << 16) if BITS == 8 else limits
        count, of_odd = inexact_negatives(a_code, a_sign, b_code, b_sign, limits, BM, BN, WORDS)
        first, second = window((even << 20) + BIAS, FRACTION), window((odd << 20) + BIAS, FRACTION)
        dot = lifted(floored(a_value, b_value, first, BM, BN, TERMS, 0, 2), count - of_odd) - first
        other = lifted(floored(a_value, b_value, second, BM, BN, TERMS, 1, 2), of_odd) - second
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


@gluon.jit(do_not_specialize=ANY_VALUE)
def fused_floating(
    a_values, a_words, a_special, b_values, b_words, b_special, c, out, flags, m, n, steps, chain, row_tiles,
    column_tiles, padded_k, a_size, b_size, c_batch, c_row, c_column,
    TERMS: gl.constexpr, BITS: gl.constexpr, FRACTION: gl.constexpr, ALIGN: gl.constexpr, THRESHOLD: gl.constexpr,
    FLOOR: gl.constexpr, WIDE: gl.constexpr, LIMITED: gl.constexpr, TYPES: gl.constexpr, KEEP: gl.constexpr,
    WINDOW: gl.constexpr, DOWN: gl.constexpr, PROMOTES: gl.constexpr, PAIRS: gl.constexpr, EACH: gl.constexpr,
    WARPS: gl.constexpr,
):  # fmt: skip
    """D = A B + C of a fused sum that truncates: TERMS products and c on FRACTION bits below the largest exponent.

    A multiply-add toward zero onto 1.5 2^52 units multiplies, aligns and adds: the sum stays positive, so that toward zero is
    down. Truncation differs by one unit for each product that is negative and has bits below the unit; those are counted.
    ALIGN: from a sum of exponent codes to FP32's exponent field. THRESHOLD: from that field to what lifts the codes of inexact
    products to a field's top bit. FLOOR: the lowest exponent field. WIDE: whether products reach below FP32's exponents.
    LIMITED: the largest exponent field of c for which fields hold the codes of all products; 0: any is. TYPES: (of c, of d).
    KEEP: fraction bits of d. WINDOW: FP32 in the place of FP64, for sums of less than 2^22 units. PROMOTES: chains of `chain`
    steps start from 0 and are added outside, to nearest.
    """
    L: gl.constexpr = tile_layout(EACH, WARPS)
    BM: gl.constexpr = tile_rows(EACH, WARPS)
    BN: gl.constexpr = tile_columns(EACH, WARPS)
    PER: gl.constexpr = 32 // BITS
    program = gl.program_id(0)
    column_tile = program % column_tiles
    row_tile = program // column_tiles % row_tiles
    batch = (program // column_tiles // row_tiles).to(gl.int64)
    in_rows, in_columns = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    a_tile, b_tile = batch * row_tiles + row_tile, batch * column_tiles + column_tile
    a_value = a_values + a_tile * padded_k * BM + in_rows
    b_value = b_values + b_tile * padded_k * BN + in_columns
    a_pair = a_words + a_tile * (padded_k // 2) * BM + in_rows
    b_pair = b_words + b_tile * (padded_k // 2) * BN + in_columns
    a_size, b_size = a_size.to(gl.int64), b_size.to(gl.int64)
    a_code = a_words + a_size * 8 + a_tile * (padded_k // PER) * BM + in_rows
    b_code = b_words + b_size * 8 + b_tile * (padded_k // PER) * BN + in_columns
    a_sign, b_sign = a_code + a_size * (16 // PER), b_code + b_size * (16 // PER)
    rows, columns = row_tile * BM + in_rows, column_tile * BN + in_columns
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    addends = batch * c_batch + rows.to(gl.int64)[:, None] * c_row + columns.to(gl.int64)[None, :] * c_column
    d = gl.zeros([BM, BN], gl.float32, L)
    if c is not None:
        d = gl.load(c + addends, inside, 0.0).to(gl.float32)
        d = gl.where(gl.abs(d) < float("inf"), d, 0.0)
    total = d
    highest = gl.zeros([BM, BN], gl.int32, L)
    lowest = 1 if TYPES[0] == "fp32" else 127 - 14  # exponent of subnormal numbers of c, then of d
    left = steps
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            d = gl.zeros([BM, BN], gl.float32, L)
        for _ in range(here):
            # the largest exponents, as fields of FP32
            pairs = largest(a_pair, b_pair, BM, BN, L, TERMS, PAIRS)
            even, odd = (pairs & 0xFFFF) + ALIGN, (pairs >> 16) + ALIGN
            field = (d.to(gl.int32, bitcast=True) >> 23) & 0xFF
            if DOWN is not None:
                exact, top = down_sum(
                    a_value, b_value, a_code, a_sign, b_code, b_sign, even, odd, d.to(gl.float64), BM, BN, TERMS, BITS,
                    FRACTION, THRESHOLD, DOWN,
                )  # fmt: skip
                highest = gl.maximum(highest, top)
                d = exact.to(gl.float32)
            else:
                top = gl.maximum(even, odd)
                highest = gl.maximum(highest, field)
                if TYPES[1] == "fp16":
                    d = gl.where(highest < 143, d, 0.0)
                if WIDE:
                    field = gl.where(d == 0.0, -2048, gl.maximum(field, 1))
                elif TYPES[1] == "fp16":  # subnormal numbers have the exponent of the smallest normal one
                    field = gl.where(d == 0.0, 0, gl.maximum(field, lowest))
                    lowest = 127 - 14
                top = gl.maximum(top, field)
                if FLOOR != 0:
                    top = gl.maximum(top, FLOOR)
                sign = d.to(gl.int32, bitcast=True) & -0x80000000
                # c toward zero: its magnitude onto a window of its sign
                if WINDOW:
                    unit = (top << 23) + (((23 - FRACTION) << 23) + 0x400000)  # 1.5 2^23 units
                    base, signed = unit.to(gl.float32, bitcast=True), (unit | sign).to(gl.float32, bitcast=True)
                    start = base + (add_rz(signed, d) - signed)
                else:
                    unit = (top << 20) + (((1023 + 52 - 127 - FRACTION) << 20) + 0x80000)  # 1.5 2^52 units
                    base, signed = fp64_of_high(unit), fp64_of_high(unit | sign)
                    start = base + (add_rz(signed, d.to(gl.float64)) - signed)
                threshold = top + THRESHOLD
                if BITS == 8:
                    threshold = gl.maximum(threshold, 0)
                    if LIMITED == 0:
                        threshold = gl.minimum(threshold, 64)
                count, _ = inexact_negatives(
                    a_code, a_sign, b_code, b_sign, replicated(threshold, BITS), BM, BN, TERMS // PER
                )
                units = lifted(floored(a_value, b_value, start, BM, BN, TERMS, 0, 1), count)
                d = rounded(units - base, TYPES[1], KEEP, WIDE)
            a_value += TERMS * BM
            b_value += TERMS * BN
            a_pair += TERMS // 2 * BM
            b_pair += TERMS // 2 * BN
            a_code += TERMS // PER * BM
            b_code += TERMS // PER * BN
            a_sign += TERMS // PER * BM
            b_sign += TERMS // PER * BN
        if PROMOTES:
            total = total + d
            if TYPES[1] == "fp16":
                total = total.to(gl.float16).to(gl.float32)
        left -= here
    # what is not vouched for: NaN, infinities, an overflow that was cut to the largest number
    bits = d.to(gl.int32, bitcast=True) & 0x7FFFFFFF
    MOST: gl.constexpr = (
        143 if TYPES[1] == "fp16" else 230 if WINDOW else (1023 + 126) << 20 if DOWN is not None else 254
    )
    flagged = highest >= MOST
    if c is not None:  # read again: what is known of it takes no registers in the loop
        size = gl.abs(gl.load(c + addends, inside, 0.0).to(gl.float32))
        flagged = flagged | ((size < float("inf")) == 0)
        if not WIDE and DOWN is None:  # its exponent is then below those that windows know, or that of its own format
            least: gl.constexpr = 2.0**-14 if TYPES == ("fp16", "fp32") else 2.0**-100
            flagged = flagged | ((size != 0) & (size < least))
    if TYPES[1] == "fp32" and DOWN is None:
        flagged = flagged | (bits >= 0x7F000000)
    if LIMITED:
        flagged = flagged | (highest > LIMITED)
    if PROMOTES:
        flagged = flagged | ((total.to(gl.int32, bitcast=True) & 0x7F800000) == 0x7F800000)
        d = total
    strange = (
        gl.load(a_special + a_tile * BM + in_rows)[:, None] | gl.load(b_special + b_tile * BN + in_columns)[None, :]
    )
    flagged = (flagged | (strange != 0)) & inside
    gl.store(flags + program, gl.max(gl.max(flagged.to(gl.int32), 1), 0))
    place = batch * m * n + rows.to(gl.int64)[:, None] * n + columns[None, :]
    gl.store(out + place, d.to(out.dtype.element_ty), inside)


@gluon.jit
def rounded(exact, TYPE: gl.constexpr, KEEP: gl.constexpr, WIDE: gl.constexpr):
    """A sum in the type of the result, as FP32; what rounds to zero is positive."""
    if TYPE == "fp16":
        return exact.to(gl.float16).to(gl.float32) + 0.0
    else:
        d = exact if exact.dtype == gl.float32 else to_fp32_rz(exact)
        if KEEP < 23:
            d = (d.to(gl.int32, bitcast=True) & -(1 << (23 - KEEP))).to(gl.float32, bitcast=True)
        if WIDE:
            d = d + 0.0
        return d
