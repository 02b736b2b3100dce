"""Gluon kernels of fused sums in integers: no rounding mode and no instruction of one vendor, so AMD runs them, too."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import ANY_VALUE, highest_place


@gluon.constexpr_function
def integer_layout(EACH, THREADS, WARPS):
    """Outputs of a tile: EACH of each thread, THREADS of a warp, WARPS of these, down and across."""
    return gl.BlockedLayout([EACH[0], EACH[1]], [THREADS[0], THREADS[1]], [WARPS[0], WARPS[1]], [1, 0])


@gluon.constexpr_function
def extent(EACH, THREADS, WARPS, SIDE):
    """Rows (side 0) or columns (side 1) of a tile."""
    return EACH[SIDE] * THREADS[SIDE] * WARPS[SIDE]


@gluon.jit(do_not_specialize=ANY_VALUE)
def pack_integers(
    codes, words, special, order, scales, rows, k, code_batch, code_row, code_k, scale_batch, scale_row, scale_k, row_tiles,
    padded_k, size,
    FORMAT: gl.constexpr, LIFT: gl.constexpr, SHIFT: gl.constexpr, NORMALISE: gl.constexpr, SCALE: gl.constexpr,
    TILE: gl.constexpr, LANES: gl.constexpr,
):  # fmt: skip
    """One k of a tile of rows: significands with their signs, times 2^SHIFT, and behind `size` of them exponents; zeros have 0.

    FORMAT, NORMALISE, SCALE, order and the layout in memory are those of :func:`tensorcore_models.gpu.source.pack`; LIFT is
    what lifts exponents. Scales are powers of two.
    """
    EXPONENT: gl.constexpr = FORMAT[0]
    FRACTION: gl.constexpr = FORMAT[1]
    layout: gl.constexpr = gl.BlockedLayout([1], [LANES], [1], [0])
    program = gl.program_id(0)
    at_k = program % padded_k
    tile = program // padded_k % row_tiles
    batch = (program // padded_k // row_tiles).to(gl.int64)
    at = gl.arange(0, TILE, layout)
    row = tile * TILE + at
    from_k = at_k
    if order is not None:
        from_k = gl.load(order + at_k)
    inside = (row < rows) & (from_k >= 0) & (from_k < k)
    bits = gl.load(codes + batch * code_batch + row.to(gl.int64) * code_row + from_k.to(gl.int64) * code_k, inside, 0)
    bits = bits.to(gl.int32)
    sign = (bits >> FORMAT[4]) & 1
    magnitude = (bits >> FORMAT[3]) & ((1 << (EXPONENT + FRACTION)) - 1)
    field = magnitude >> FRACTION
    strange = gl.zeros([TILE], gl.int32, layout)
    if FORMAT[5] == "ieee":
        strange = (field == (1 << EXPONENT) - 1).to(gl.int32)
    elif FORMAT[5] == "fn":
        strange = (magnitude == (1 << (EXPONENT + FRACTION)) - 1).to(gl.int32)
    elif FORMAT[5] == "fnuz":
        strange = ((magnitude == 0) & (sign == 1)).to(gl.int32)
    significand = (magnitude & ((1 << FRACTION) - 1)) | gl.where(field > 0, 1 << FRACTION, 0)
    field = gl.maximum(field, 1)
    nonzero = significand != 0
    if NORMALISE:
        lost = gl.where(nonzero, FRACTION - highest_place(significand), 0)
        field -= lost
        significand = significand << lost
    if SCALE is not None:
        at_scale = batch * scale_batch + row.to(gl.int64) * scale_row + (from_k // SCALE[0]).to(gl.int64) * scale_k
        scale = gl.load(scales + at_scale, inside, 0).to(gl.int32) & ((1 << SCALE[1]) - 1)
        strange |= (inside & (scale == (1 << SCALE[1]) - 1)).to(gl.int32)
        field += scale - SCALE[3]
    significand = gl.where(sign == 1, -significand, significand) << SHIFT
    place = ((batch * row_tiles + tile) * padded_k + at_k) * TILE + at
    gl.store(words + place, significand)
    gl.store(words + size.to(gl.int64) + place, gl.where(nonzero, LIFT + field, 0))
    gl.atomic_or(special + (batch * row_tiles + tile) * TILE + at, strange, mask=strange != 0)


@gluon.jit
def aligned_addend(d, top, FRACTION: gl.constexpr):
    """An FP32 number in units of 2^-FRACTION below an exponent field, toward zero."""
    bits = d.to(gl.int32, bitcast=True)
    field = (bits >> 23) & 0xFF
    significand = ((bits & 0x7FFFFF) | gl.where(field > 0, 1 << 23, 0)).to(gl.int64)
    shift = gl.maximum(field, 1) - 23 - top + FRACTION
    kept = (significand << gl.maximum(shift, 0).to(gl.int64)) >> gl.minimum(gl.maximum(-shift, 0), 63).to(gl.int64)
    return gl.where(bits < 0, -kept, kept)


@gluon.jit
def power(field):
    """2 to the power that a field of FP32 stands for, which may be any that FP64 has, in FP64."""
    return ((field + (1023 - 127)).to(gl.int64) << 52).to(gl.float64, bitcast=True)


@gluon.jit(do_not_specialize=ANY_VALUE)
def fused_integers(
    a_words, a_special, b_words, b_special, c, out, flags, m, n, steps, chain, row_tiles, column_tiles, padded_k, a_size,
    b_size, c_batch, c_row, c_column,
    TERMS: gl.constexpr, FRACTION: gl.constexpr, ALIGN: gl.constexpr, EXTRA: gl.constexpr, CHUNK: gl.constexpr,
    FLOOR: gl.constexpr, KEEP: gl.constexpr, TYPES: gl.constexpr, PROMOTES: gl.constexpr, EACH: gl.constexpr,
    THREADS: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """D = A B + C of a fused sum that truncates, as :func:`tensorcore_models.gpu.source.fused_floating`, in integers.

    Products of significands are shifted right by their exponent's distance to the largest, magnitudes apart from signs, which
    is toward zero, and added in 32 bits CHUNK at a time, then in 64. EXTRA: Places that all products are shifted besides. The
    sum becomes FP64, exactly; its bits below FP32's are cleared, or it is rounded to FP16. Results below FP32's normal numbers
    are flagged. TYPES: (of c, of d).
    """
    L: gl.constexpr = integer_layout(EACH, THREADS, WARPS)
    BM: gl.constexpr = extent(EACH, THREADS, WARPS, 0)
    BN: gl.constexpr = extent(EACH, THREADS, WARPS, 1)
    program = gl.program_id(0)
    column_tile = program % column_tiles
    row_tile = program // column_tiles % row_tiles
    batch = (program // column_tiles // row_tiles).to(gl.int64)
    in_rows, in_columns = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    a_tile, b_tile = batch * row_tiles + row_tile, batch * column_tiles + column_tile
    pa, pb = a_words + a_tile * padded_k * BM + in_rows, b_words + b_tile * padded_k * BN + in_columns
    ea, eb = pa + a_size.to(gl.int64), pb + b_size.to(gl.int64)
    rows, columns = row_tile * BM + in_rows, column_tile * BN + in_columns
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    addends = batch * c_batch + rows.to(gl.int64)[:, None] * c_row + columns.to(gl.int64)[None, :] * c_column
    d = gl.zeros([BM, BN], gl.float32, L)
    if c is not None:
        d = gl.load(c + addends, inside, 0.0).to(gl.float32)
    flagged = (gl.abs(d) < float("inf")) == 0
    d = gl.where(flagged, 0.0, d)
    total = d
    lowest = 127 - 14 if TYPES[0] == "fp16" else 1  # exponent of subnormal numbers of c, then of d
    MOST: gl.constexpr = 143 if TYPES[1] == "fp16" else 254
    left = steps
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            d = gl.zeros([BM, BN], gl.float32, L)
        for _ in range(here):
            top = gl.zeros([BM, BN], gl.int32, L)
            for k in gl.static_range(TERMS):
                top = gl.maximum(top, gl.load(ea + k * BM)[:, None] + gl.load(eb + k * BN)[None, :])
            field = (d.to(gl.int32, bitcast=True) >> 23) & 0xFF
            flagged = flagged | (field >= MOST)
            top = gl.maximum(gl.maximum(top + ALIGN, gl.where(d == 0.0, -2048, gl.maximum(field, lowest))), FLOOR)
            lowest = 127 - 14 if TYPES[1] == "fp16" else 1
            units = aligned_addend(d, top, FRACTION)
            for first in gl.static_range(0, TERMS, CHUNK):
                part = gl.zeros([BM, BN], gl.int32, L)
                for k in gl.static_range(CHUNK):
                    at_a, at_b = (first + k) * BM, (first + k) * BN
                    product = gl.load(pa + at_a)[:, None] * gl.load(pb + at_b)[None, :]
                    exponent = gl.load(ea + at_a)[:, None] + gl.load(eb + at_b)[None, :]
                    kept = gl.abs(product) >> gl.minimum(top - (exponent + (ALIGN - EXTRA)), 31)
                    part += gl.where(product < 0, -kept, kept)
                units += part.to(gl.int64)
            high, low = (units >> 20).to(gl.int32).to(gl.float64), (units & 0xFFFFF).to(gl.int32).to(gl.float64)
            total_of_step = high * power(top + (20 - FRACTION)) + low * power(top - FRACTION)
            if TYPES[1] == "fp16":
                d = total_of_step.to(gl.float16).to(gl.float32) + 0.0
            else:
                exact = total_of_step.to(gl.int64, bitcast=True) & -(1 << (52 - KEEP))
                d = exact.to(gl.float64, bitcast=True).to(gl.float32)
                flagged = flagged | ((units != 0) & (gl.abs(d) < 2.0**-126)) | (gl.abs(d) >= 2.0**127)
            pa += TERMS * BM
            pb += TERMS * BN
            ea += TERMS * BM
            eb += TERMS * BN
        if PROMOTES:
            total = total + d
            if TYPES[1] == "fp16":
                total = total.to(gl.float16).to(gl.float32)
        left -= here
    if TYPES[1] == "fp16":
        flagged = flagged | (gl.abs(d) >= 65536.0)
    if PROMOTES:
        d = total
        flagged = flagged | ((gl.abs(d) < float("inf")) == 0)
    strange = (
        gl.load(a_special + a_tile * BM + in_rows)[:, None] | gl.load(b_special + b_tile * BN + in_columns)[None, :]
    )
    flagged = (flagged | (strange != 0)) & inside
    gl.store(flags + program, gl.max(gl.max(flagged.to(gl.int32), 1), 0))
    place = batch * m * n + rows.to(gl.int64)[:, None] * n + columns[None, :]
    gl.store(out + place, d.to(out.dtype.element_ty), inside)
