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
def counted(word, count):
    """count + 128 for each byte of the word whose top bit alone is set."""
    return gl.inline_asm_elementwise(
        "dp4a.u32.u32 $0, $1, $2, $3;", "=r,r,r,r", [word, gl.full_like(word, 0x01010101), count], gl.int32, True, 1
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


# -- operands ------------------------------------------------------------------------------------------------------------------
#: Sizes and strides: a kernel is compiled once for all.
_ANY = ("rows", "k", "code_batch", "code_row", "code_k", "m", "n", "steps", "chain", "row_tiles", "column_tiles", "padded_k",
    "size", "a_size", "b_size", "c_batch", "c_row", "c_column",
)  # fmt: skip


@gluon.jit(do_not_specialize=_ANY)
def pack(
    codes, values, words, special, order, rows, k, code_batch, code_row, code_k, row_tiles, padded_k, size,
    SHAPE: gl.constexpr, FORMAT: gl.constexpr, NORMALISE: gl.constexpr, TILE: gl.constexpr,
):  # fmt: skip
    """Four neighbouring k of a tile of rows: values in FP64, pairs of exponents, codes of lowest bits, signs.

    order: which k stands at each place, -1: none; None: all in turn. FORMAT: (exponent bits, fraction bits, bias, padding bits,
    sign bit, kind of specials). SHAPE: (bits of a code, offset of exponents, code of the lowest lowest bit). NORMALISE:
    subnormal numbers have the exponents of their leading bits. Where it is stored: [batch][tile of rows][k][row of the tile].
    size: Elements, padding included, by 16.
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
        nonzero = significand != 0
        value = significand.to(gl.float64) * fp64_of_high((field - FORMAT[2] - FRACTION + 1023) << 20)
        gl.store(values + place + at_k * TILE, gl.where(sign == 1, -value, value).to(values.dtype.element_ty))
        trailing = ((significand & -significand).to(gl.float32).to(gl.int32, bitcast=True) >> 23) - 127
        low = gl.where(nonzero, SHAPE[2] - (field - 1 + trailing), 0)  # fields count from 1, trailing zeros lift them
        if NORMALISE:
            field -= FRACTION - ((significand.to(gl.float32).to(gl.int32, bitcast=True) >> 23) - 127)
        lowest |= low << (i % PER * BITS)
        signs |= sign << (i % PER * BITS + BITS - 1)
        exponents |= gl.where(nonzero, SHAPE[1] + field, 0) << (i % 2 * 16)
        pair_place = (batch * row_tiles + tile) * (padded_k // 2) * TILE + at
        if i % 2 == 1:
            gl.store(words + pair_place + (at_k // 2) * TILE, exponents)
            exponents = gl.zeros_like(exponents)
        if i % PER == PER - 1:
            word_place = (batch * row_tiles + tile) * (padded_k // PER) * TILE + at + (at_k // PER) * TILE
            gl.store(words + size * 8 + word_place, lowest)
            gl.store(words + size * (8 + 16 // PER) + word_place, signs)
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
    """How many negative products have bits below the unit, times 128."""
    count = gl.zeros_like(threshold)
    for j in gl.static_range(WORDS):
        x = gl.expand_dims(gl.load(a_code + j * ROWS), 1)
        y = gl.expand_dims(gl.load(b_code + j * COLUMNS), 0)
        minus = gl.expand_dims(gl.load(a_sign + j * ROWS), 1) ^ gl.expand_dims(gl.load(b_sign + j * COLUMNS), 0)
        count = counted((x + y + threshold) & minus, count)
    return count


@gluon.jit
def floored(pa, pb, total, ROWS: gl.constexpr, COLUMNS: gl.constexpr, TERMS: gl.constexpr):
    """total + the products, each rounded down to the unit of total."""
    for k in gl.static_range(TERMS):
        x, y = gl.load(pa + k * ROWS), gl.load(pb + k * COLUMNS)
        total = fma_rz(gl.expand_dims(x, 1), gl.expand_dims(y, 0), total)
    return total


@gluon.jit(do_not_specialize=_ANY)
def fused_floating(
    a_values, a_words, a_special, b_values, b_words, b_special, c, out, flags, tiles, m, n, steps, chain, row_tiles,
    column_tiles, padded_k, a_size, b_size, c_batch, c_row, c_column,
    TERMS: gl.constexpr, BITS: gl.constexpr, FRACTION: gl.constexpr, ALIGN: gl.constexpr, THRESHOLD: gl.constexpr,
    FLOOR: gl.constexpr, WIDE: gl.constexpr, LIMITED: gl.constexpr, TYPES: gl.constexpr, KEEP: gl.constexpr,
    WINDOW: gl.constexpr, PROMOTES: gl.constexpr, PAIRS: gl.constexpr, EACH: gl.constexpr, WARPS: gl.constexpr,
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
    if tiles is not None:
        program = gl.load(tiles + program)
    column_tile = program % column_tiles
    row_tile = program // column_tiles % row_tiles
    batch = (program // column_tiles // row_tiles).to(gl.int64)
    in_rows, in_columns = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    a_tile, b_tile = batch * row_tiles + row_tile, batch * column_tiles + column_tile
    a_value = a_values + a_tile * padded_k * BM + in_rows
    b_value = b_values + b_tile * padded_k * BN + in_columns
    a_pair = a_words + a_tile * (padded_k // 2) * BM + in_rows
    b_pair = b_words + b_tile * (padded_k // 2) * BN + in_columns
    a_code = a_words + a_size * 8 + a_tile * (padded_k // PER) * BM + in_rows
    b_code = b_words + b_size * 8 + b_tile * (padded_k // PER) * BN + in_columns
    a_sign, b_sign = a_code + a_size * (16 // PER), b_code + b_size * (16 // PER)
    rows, columns = row_tile * BM + in_rows, column_tile * BN + in_columns
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    if c is None:
        d = gl.zeros([BM, BN], gl.float32, L)
        flagged = gl.zeros([BM, BN], gl.int1, L)
    else:
        at = batch * c_batch + rows.to(gl.int64)[:, None] * c_row + columns.to(gl.int64)[None, :] * c_column
        d = gl.load(c + at, inside, 0.0).to(gl.float32)
        size = gl.abs(d)
        flagged = (size < float("inf")) == 0
        d = gl.where(flagged, 0.0, d)
        if not WIDE:  # sums are not that small, and a c that is has an exponent of its own in the formats beside FP32
            least: gl.constexpr = 2.0**-14 if TYPES == ("fp16", "fp32") else 2.0**-100
            flagged = flagged | ((size != 0) & (size < least))
    total = d
    highest = gl.zeros([BM, BN], gl.int32, L)
    left = steps
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            d = gl.zeros([BM, BN], gl.float32, L)
        for _ in range(here):
            # the largest exponent, as a field of FP32
            pairs = largest(a_pair, b_pair, BM, BN, L, TERMS, PAIRS)
            top = gl.maximum(pairs & 0xFFFF, (pairs >> 16) & 0xFFFF) + ALIGN
            field = (d.to(gl.int32, bitcast=True) >> 23) & 0xFF
            highest = gl.maximum(highest, field)
            if TYPES[1] == "fp16":
                d = gl.where(highest < 143, d, 0.0)
            if WIDE:
                field = gl.where(d == 0.0, -2048, gl.maximum(field, 1))
                top = gl.maximum(gl.maximum(top, field), FLOOR)
            else:
                if TYPES[1] == "fp16":  # subnormal numbers have the exponent of the smallest normal one
                    field = gl.where(d == 0.0, 0, gl.maximum(field, 127 - 14))
                top = gl.maximum(top, field)
                if FLOOR > 0:
                    top = gl.maximum(top, FLOOR)
            sign = d.to(gl.int32, bitcast=True) & -0x80000000
            # base: 1.5 2^52 units (FP32: 1.5 2^23); c toward zero: its magnitude onto as many units of its sign
            if WINDOW:
                unit = (top << 23) + (((23 - FRACTION) << 23) + 0x400000)
                base, signed = unit.to(gl.float32, bitcast=True), (unit | sign).to(gl.float32, bitcast=True)
                start = base + (add_rz(signed, d) - signed)
            else:
                unit = (top << 20) + (((1023 + 52 - 127 - FRACTION) << 20) + 0x80000)
                base, signed = fp64_of_high(unit), fp64_of_high(unit | sign)
                start = base + (add_rz(signed, d.to(gl.float64)) - signed)
            threshold = top + THRESHOLD
            if BITS == 8:
                threshold = gl.maximum(threshold, 0)
                if LIMITED == 0:
                    threshold = gl.minimum(threshold, 64)
            count = inexact_negatives(a_code, a_sign, b_code, b_sign, replicated(threshold, BITS), BM, BN, TERMS // PER)
            units = floored(a_value, b_value, start, BM, BN, TERMS)
            if WINDOW:
                units = (units.to(gl.int32, bitcast=True) + (count >> 7)).to(gl.float32, bitcast=True)
            else:
                units = (units.to(gl.int64, bitcast=True) + (count >> 7).to(gl.int64)).to(gl.float64, bitcast=True)
            exact = units - base
            d = rounded(exact, TYPES[1], KEEP, WIDE)
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
    MOST: gl.constexpr = 143 if TYPES[1] == "fp16" else 230 if WINDOW else 254
    flagged = flagged | (highest >= MOST)
    if TYPES[1] == "fp32":
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
