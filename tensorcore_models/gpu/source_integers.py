"""Gluon kernels of fused sums in integers: no rounding mode and no instruction of one vendor, so AMD runs them, too."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import ANY_VALUE, covered, elements, highest_place, mark, narrowed, placed, strange_tile, taken_apart


@gluon.constexpr_function
def integer_layout(EACH, THREADS, WARPS):
    """Return outputs of a tile: EACH of each thread, THREADS of a warp, WARPS of these, down and across."""
    return gl.BlockedLayout([EACH[0], EACH[1]], [THREADS[0], THREADS[1]], [WARPS[0], WARPS[1]], [1, 0])


@gluon.constexpr_function
def extent(EACH, THREADS, WARPS, SIDE):
    """Return rows (side 0) or columns (side 1) of a tile."""
    return EACH[SIDE] * THREADS[SIDE] * WARPS[SIDE]


@gluon.jit(do_not_specialize=ANY_VALUE)
def pack_integers(
    codes, words, special, order, scales, rows, k, code_batch, code_row, code_k, scale_batch, scale_row, scale_k, row_tiles,
    padded_k, size,
    FORMAT: gl.constexpr, LIFT: gl.constexpr, SHIFT: gl.constexpr, NORMALISE: gl.constexpr, SCALE: gl.constexpr,
    TILE: gl.constexpr, LANES: gl.constexpr,
):  # fmt: skip
    """One k of a tile of rows: significands with their signs, times 2^SHIFT, and behind `size` of them exponents; zeros have 0.

    FORMAT, NORMALISE, SCALE, order and the layout in memory are those of :func:`tensorcore_models.gpu.source_pack.pack`; LIFT
    is what lifts exponents. Scales are powers of two.
    """
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
    sign, field, significand, strange = taken_apart(bits.to(gl.int32), FORMAT)
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
    """Return an FP32 number in units of 2^-FRACTION below an exponent field, toward zero."""
    bits = d.to(gl.int32, bitcast=True)
    field = (bits >> 23) & 0xFF
    significand = ((bits & 0x7FFFFF) | gl.where(field > 0, 1 << 23, 0)).to(gl.int64)
    shift = gl.maximum(field, 1) - 23 - top + FRACTION
    kept = (significand << gl.maximum(shift, 0).to(gl.int64)) >> gl.minimum(gl.maximum(-shift, 0), 63).to(gl.int64)
    return gl.where(bits < 0, -kept, kept)


@gluon.jit
def moved(x, down):
    """Return x / 2^down rounded down, for numbers of either sign and either direction."""
    return (x << gl.minimum(gl.maximum(-down, 0), 63).to(gl.int64)) >> gl.minimum(gl.maximum(down, 0), 63).to(gl.int64)


@gluon.jit
def largest_exponent(
    ea, eb, BM: gl.constexpr, BN: gl.constexpr, L: gl.constexpr, TERMS: gl.constexpr, FIRST: gl.constexpr, EVERY: gl.constexpr
):  # fmt: skip
    """Return the largest sum of exponents of every EVERY-th product from FIRST on."""
    top = gl.zeros([BM, BN], gl.int32, L)
    for k in gl.static_range(FIRST, TERMS, EVERY):
        top = gl.maximum(top, gl.load(ea + k * BM)[:, None] + gl.load(eb + k * BN)[None, :])
    return top


@gluon.jit
def truncated(
    pa, pb, ea, eb, start, lowest, BM: gl.constexpr, BN: gl.constexpr, L: gl.constexpr, TERMS: gl.constexpr,
    FIRST: gl.constexpr, EVERY: gl.constexpr, CHUNK: gl.constexpr,
):  # fmt: skip
    """Return start + every EVERY-th product from FIRST on, shifted right, toward zero, by what `lowest` is above its
    exponent."""
    for first in gl.static_range(FIRST, TERMS, CHUNK * EVERY):
        part = gl.zeros([BM, BN], gl.int32, L)
        for k in gl.static_range(first, first + CHUNK * EVERY, EVERY):
            if k < TERMS:
                product = gl.load(pa + k * BM)[:, None] * gl.load(pb + k * BN)[None, :]
                exponent = gl.load(ea + k * BM)[:, None] + gl.load(eb + k * BN)[None, :]
                kept = gl.abs(product) >> gl.minimum(lowest - exponent, 31)
                part += gl.where(product < 0, -kept, kept)
        start += part.to(gl.int64)
    return start


@gluon.jit
def rounded_down(
    pa, pb, ea, eb, d, BM: gl.constexpr, BN: gl.constexpr, L: gl.constexpr, TERMS: gl.constexpr, FRACTION: gl.constexpr,
    ALIGN: gl.constexpr, EXTRA: gl.constexpr, CHUNK: gl.constexpr, DOWN: gl.constexpr,
):  # fmt: skip
    """Return (sum of a step as CDNA3 forms it in units of the dot product, largest exponent), as :func:`.source.down_sum`."""
    nothing = gl.zeros([BM, BN], gl.int64, L)
    if DOWN[4] == 1:
        own = largest_exponent(ea, eb, BM, BN, L, TERMS, 0, 1)
        dot = truncated(pa, pb, ea, eb, nothing, own + EXTRA, BM, BN, L, TERMS, 0, 1, CHUNK)
    else:
        even, odd = largest_exponent(ea, eb, BM, BN, L, TERMS, 0, 2), largest_exponent(ea, eb, BM, BN, L, TERMS, 1, 2)
        own = gl.maximum(even, odd)
        dot = moved(truncated(pa, pb, ea, eb, nothing, even + EXTRA, BM, BN, L, TERMS, 0, 2, CHUNK), own - even)
        dot += moved(truncated(pa, pb, ea, eb, nothing, odd + EXTRA, BM, BN, L, TERMS, 1, 2, CHUNK), own - odd)
    own += ALIGN
    bits = d.to(gl.int32, bitcast=True)
    field = (bits >> 23) & 0xFF
    significand = ((bits & 0x7FFFFF) | gl.where(field > 0, 1 << 23, 0)).to(gl.int64)
    # zeros and subnormal numbers are aligned as the smallest normal one
    of_c = gl.maximum(field, 1)
    top = gl.maximum(own, of_c)
    kept = moved(gl.where(bits < 0, -significand, significand), top - of_c + (23 - DOWN[1]))
    if DOWN[3] is not None:
        kept = gl.where(top - of_c > DOWN[3], 0, kept)
    return moved(dot, top - own + (FRACTION - DOWN[0])) + (kept << (DOWN[0] - DOWN[1])), top


@gluon.jit
def as_fp64(units, exponent):
    """Return units times 2 to the power that a field of FP32 stands for, exact for units of less than 2^52."""
    return (units >> 20).to(gl.int32).to(gl.float64) * power(exponent + 20) + (units & 0xFFFFF).to(gl.int32).to(
        gl.float64
    ) * power(exponent)


@gluon.jit
def power(field):
    """2 to the power that a field of FP32 stands for, which may be any that FP64 has, in FP64."""
    return ((field + (1023 - 127)).to(gl.int64) << 52).to(gl.float64, bitcast=True)


@gluon.jit(do_not_specialize=ANY_VALUE)
def fused_integers(
    a_words, a_special, b_words, b_special, c, out, flags, m, n, steps, chain, row_tiles, column_tiles, padded_k, a_size,
    b_size, c_batch, c_row, c_column,
    TERMS: gl.constexpr, FRACTION: gl.constexpr, ALIGN: gl.constexpr, EXTRA: gl.constexpr, CHUNK: gl.constexpr,
    FLOOR: gl.constexpr, KEEP: gl.constexpr, NARROWED: gl.constexpr, TYPES: gl.constexpr, DOWN: gl.constexpr,
    PROMOTES: gl.constexpr, EACH: gl.constexpr, THREADS: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """D = A B + C of a fused sum that truncates, in integers.

    Arguments are those of :func:`tensorcore_models.gpu.source_fused.fused_floating`.
    Products of significands are shifted right by their exponent's distance to the largest, magnitudes apart from signs, which
    is toward zero, and added in 32 bits CHUNK at a time, then in 64. EXTRA: Places that all products are shifted besides. The
    sum becomes FP64, exactly; its bits below FP32's are cleared, or it is rounded to FP16. Results below FP32's normal numbers
    are flagged. TYPES: (of c, of d) in the sum. NARROWED: steps after which d is rounded to FP16; 0: never. DOWN: as
    :func:`tensorcore_models.gpu.source_down.down_sum` has it, for CDNA3's sums.
    """
    L: gl.constexpr = integer_layout(EACH, THREADS, WARPS)
    BM: gl.constexpr = extent(EACH, THREADS, WARPS, 0)
    BN: gl.constexpr = extent(EACH, THREADS, WARPS, 1)
    program, batch, row_tile, column_tile = placed(row_tiles, column_tiles)
    in_rows, in_columns = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    a_tile, b_tile = batch * row_tiles + row_tile, batch * column_tiles + column_tile
    pa, pb = a_words + a_tile * padded_k * BM + in_rows, b_words + b_tile * padded_k * BN + in_columns
    ea, eb = pa + a_size.to(gl.int64), pb + b_size.to(gl.int64)
    rows, columns, inside = covered(row_tile, column_tile, m, n, L, BM, BN)
    d = gl.zeros([BM, BN], gl.float32, L)
    if c is not None:
        d = gl.load(c + elements(batch, rows, columns, c_batch, c_row, c_column), inside, 0.0).to(gl.float32)
    flagged = (gl.abs(d) < float("inf")) == 0
    d = gl.where(flagged, 0.0, d)
    total = d
    lowest = 127 - 14 if TYPES[0] == "fp16" else 1  # exponent of subnormal numbers of c, then of d
    MOST: gl.constexpr = 143 if TYPES[1] == "fp16" else 254
    left, after = steps, 0
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            d = gl.zeros([BM, BN], gl.float32, L)
        for _ in range(here):
            field = (d.to(gl.int32, bitcast=True) >> 23) & 0xFF
            if DOWN is not None:
                units, top = rounded_down(
                    pa, pb, ea, eb, d, BM, BN, L, TERMS, FRACTION, ALIGN, EXTRA, CHUNK, DOWN
                )  # fmt: skip
                flagged = flagged | (top >= 127 + 126)
                total_of_step = as_fp64(units, top - DOWN[0])
            else:
                flagged = flagged | (field >= MOST)
                top = largest_exponent(ea, eb, BM, BN, L, TERMS, 0, 1) + ALIGN
                top = gl.maximum(gl.maximum(top, gl.where(d == 0.0, -2048, gl.maximum(field, lowest))), FLOOR)
                lowest = 127 - 14 if TYPES[1] == "fp16" else 1
                units = aligned_addend(d, top, FRACTION)
                units = truncated(pa, pb, ea, eb, units, top - (ALIGN - EXTRA), BM, BN, L, TERMS, 0, 1, CHUNK)
                total_of_step = as_fp64(units, top - FRACTION)
            if TYPES[1] == "fp16":
                d = total_of_step.to(gl.float16).to(gl.float32) + 0.0
            else:
                exact = total_of_step.to(gl.int64, bitcast=True)
                if DOWN is None:
                    exact = exact & -(1 << (52 - KEEP))
                elif DOWN[2] is not None:  # of negative numbers magnitudes go up
                    LOST: gl.constexpr = (1 << (52 - DOWN[2])) - 1
                    exact = (exact + ((exact >> 63) & LOST)) & ~LOST
                d = exact.to(gl.float64, bitcast=True).to(gl.float32)
                flagged = flagged | ((units != 0) & (gl.abs(d) < 2.0**-126)) | (gl.abs(d) >= 2.0**127)
            if NARROWED:
                after += 1
                d = narrowed(d, after, NARROWED)
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
    mark(flags, program, (flagged | strange_tile(a_special, b_special, a_tile, b_tile, L, BM, BN)) & inside)
    gl.store(out + elements(batch, rows, columns, m * n, n, 1), d.to(out.dtype.element_ty), inside)
