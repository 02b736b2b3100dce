"""Holds Gluon kernels of fidelity phases: parts of significands multiplied, aligned and rounded in integers, on any GPU."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import ANY_VALUE, extent, highest_place, thread_layout

#: Number of products of a group; a step has two groups.
GROUP = gl.constexpr(8)


@gluon.jit
def half_up(x, down):
    """Return x / 2^down rounded to nearest, ties up, for |x| below 2^29; down is at most 30."""
    return (x + ((1 << down) >> 1)) >> down


@gluon.jit
def with_sign(magnitude, negative):
    """Return the magnitude, negated where `negative` is true."""
    return gl.where(negative, -magnitude, magnitude)


@gluon.jit
def group_sum(
    pa, pb, ea, eb, least, align, BM: gl.constexpr, BN: gl.constexpr, FIRST: gl.constexpr, LAYOUT: gl.constexpr
):
    """Return a group's sum in units of 2^-23 at its exponent, and the exponent; products are rounded half away from zero.

    `pa`, `pb` are parts, those of a doubled; `ea`, `eb` exponents. `least` is the exponent of a zero product, the smallest one.
    `align` is added to the exponents of products.
    """
    top = gl.full([BM, BN], 0, gl.int32, LAYOUT) + least
    for k in gl.static_range(FIRST, FIRST + GROUP):
        x, y = gl.expand_dims(gl.load(ea + k * BM), 1) + align, gl.expand_dims(gl.load(eb + k * BN), 0)
        top = gl.maximum(top, x + y)
    total = gl.zeros([BM, BN], gl.int32, LAYOUT)
    for k in gl.static_range(FIRST, FIRST + GROUP):
        x, y = gl.expand_dims(gl.load(ea + k * BM), 1) + align, gl.expand_dims(gl.load(eb + k * BN), 0)
        down = gl.minimum(top - (x + y), 15)
        twice = gl.expand_dims(gl.load(pa + k * BM), 1) * gl.expand_dims(gl.load(pb + k * BN), 0)
        # Adds half a unit after all lower bits were shifted out. For a negative tie, `twice >> 31` gives the larger magnitude.
        total += (((twice + (twice >> 31)) >> down) + 1) >> 1
    return gl.where(top > 0, total << 13, 0), top


@gluon.jit
def encoded(total, exponent, EXPONENT: gl.constexpr, FRACTION: gl.constexpr, ERRATUM: gl.constexpr):
    """Return the encoding of a sum in units of 2^-23 at an exponent field, rounded half away from zero; +0 below the normal
    numbers.
    """
    LARGEST: gl.constexpr = (1 << EXPONENT) - 1
    FIVE: gl.constexpr = EXPONENT == 5
    size = gl.abs(total)
    place = highest_place(size & ~(size >> 1))  # rounding to FP32 never carries here
    over = place - FRACTION
    kept = gl.where(over > 0, half_up(size, gl.maximum(over, 0)), size << gl.maximum(-over, 0))
    exponent += (kept >> (FRACTION + 1)) + place - 23
    fraction = kept & ((1 << FRACTION) - 1)
    if ERRATUM:
        exponent += gl.where(total == -1, 27, 0)
    infinite = exponent >= LARGEST + (1 if FIVE else 0)
    exponent = gl.where(infinite, LARGEST, exponent)
    fraction = gl.where(infinite, ((1 << FRACTION) - 1) if FIVE else 0, fraction)
    sign = gl.where(total < 0, 1, 0) << (EXPONENT + FRACTION)
    return gl.where((total == 0) | (exponent <= 0), 0, sign | (exponent << FRACTION) | fraction)


@gluon.jit
def added(
    first, first_top, second, second_top, code, EXPONENT: gl.constexpr, FRACTION: gl.constexpr, ERRATUM: gl.constexpr
):
    """Return the accumulator's encoding after both groups' sums."""
    UP: gl.constexpr = 23 - FRACTION
    field = (code >> FRACTION) & ((1 << EXPONENT) - 1)
    size = gl.where(field > 0, ((code & ((1 << FRACTION) - 1)) | (1 << FRACTION)) << UP, 0)
    top = gl.maximum(gl.maximum(first_top, second_top), field)
    first, second = (
        half_up(first, gl.minimum(top - first_top, 30)),
        half_up(second, gl.minimum(top - second_top, 30)),
    )
    size = half_up(size, gl.minimum(top - field, 30))
    if UP > 0:
        first, second, size = half_up(first, 13) << 13, half_up(second, 13) << 13, half_up(size, 13) << 13
    total = first + second + with_sign(size, ((code >> (EXPONENT + FRACTION)) & 1) == 1)
    return gl.where(top <= 0, 0, encoded(total, top, EXPONENT, FRACTION, ERRATUM))


@gluon.jit
def integer_step(pa, pb, total, BM: gl.constexpr, BN: gl.constexpr, LAYOUT: gl.constexpr):
    """Return total + the products of a step, clamped to 2^31 - 1 and its negative."""
    products = gl.zeros([BM, BN], gl.int32, LAYOUT)
    for k in gl.static_range(2 * GROUP):
        products += gl.expand_dims(gl.load(pa + k * BM), 1) * gl.expand_dims(gl.load(pb + k * BN), 0)
    wide = total.to(gl.int64) + products.to(gl.int64)
    return gl.minimum(gl.maximum(wide, -0x7FFFFFFF), 0x7FFFFFFF).to(gl.int32)


@gluon.jit(do_not_specialize=ANY_VALUE)
def phases(
    a, b, c, out, flags, m, n, steps, chain, row_tiles, column_tiles, a_size, b_size, c_batch, c_row, c_column,
    TERMS: gl.constexpr, PHASES: gl.constexpr, TILE: gl.constexpr, RESULT: gl.constexpr, ALIGN: gl.constexpr,
    LEAST: gl.constexpr, ERRATUM: gl.constexpr, PROMOTES: gl.constexpr, EACH: gl.constexpr, THREADS: gl.constexpr,
    WARPS: gl.constexpr,
):  # fmt: skip
    """Compute D = A B + C in fidelity phases, which alternate over TILE steps of TERMS products.

    - a, b: planes of `a_size` and `b_size` integers, each [batch][tile][k][row or column of the tile]: leading parts, following
      parts, exponents (0 of zeros, which have no parts). Parts of a are doubled if sums are rounded.
    - steps: number of steps, each of TERMS products.
    - PHASES: number of phases, and two bits for each.
    - RESULT: exponent bits and fraction bits of the accumulator; None: integers.
    - ALIGN: added to a sum of two exponents, it gives the accumulator's field in phase 0.
    - LEAST: field of a zero product in phase 0; no field is below 0.
    - ERRATUM: a sum of -1 unit becomes 2^27 times as large.
    - PROMOTES: chains of `chain` steps start at 0 and are added outside.
    """
    L: gl.constexpr = thread_layout(EACH, THREADS, WARPS)
    BM: gl.constexpr = extent(EACH, THREADS, WARPS, 0)
    BN: gl.constexpr = extent(EACH, THREADS, WARPS, 1)
    program = gl.program_id(0)
    column_tile = program % column_tiles
    row_tile = program // column_tiles % row_tiles
    batch = (program // column_tiles // row_tiles).to(gl.int64)
    in_rows, in_columns = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    a += (batch * row_tiles + row_tile) * steps * TERMS * BM + in_rows
    b += (batch * column_tiles + column_tile) * steps * TERMS * BN + in_columns
    a_size, b_size = a_size.to(gl.int64), b_size.to(gl.int64)
    rows, columns = row_tile * BM + in_rows, column_tile * BN + in_columns
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    code = gl.zeros([BM, BN], gl.int32, L)
    if c is not None:
        addends = batch * c_batch + rows.to(gl.int64)[:, None] * c_row + columns.to(gl.int64)[None, :] * c_column
        code = gl.load(c + addends, inside, 0).to(gl.int32)
    total = code.to(gl.float32, bitcast=True)
    left = chain
    for start in range(0, steps, TILE):
        if PROMOTES:
            code = gl.where(left == chain, 0, code)
        here = gl.minimum(steps - start, TILE)
        for turn in range(PHASES[0]):
            phase = (PHASES[1] >> (2 * turn)) & 3
            lowered = (phase >> 1) * 7 + (phase & 1) * 5
            pa, pb = a + (phase >> 1) * a_size, b + (phase & 1) * b_size
            for step in range(start, start + here):
                xa, xb = pa + step * (TERMS * BM), pb + step * (TERMS * BN)
                if RESULT is None:
                    code = integer_step(xa, xb, code, BM, BN, L)
                else:
                    ea, eb = a + 2 * a_size + step * (TERMS * BM), b + 2 * b_size + step * (TERMS * BN)
                    least, align = gl.maximum(LEAST - lowered, 0), ALIGN - lowered
                    first, first_top = group_sum(xa, xb, ea, eb, least, align, BM, BN, 0, L)
                    second, second_top = group_sum(xa, xb, ea, eb, least, align, BM, BN, GROUP, L)
                    code = added(first, first_top, second, second_top, code, RESULT[0], RESULT[1], ERRATUM)
        if PROMOTES:
            left -= here
            if left <= 0 or start + here >= steps:
                total += code.to(gl.float32, bitcast=True)
                left = chain
    if PROMOTES:
        flagged = ((gl.abs(total) < float("inf")) == 0) & inside
        gl.store(flags + program, gl.max(gl.max(flagged.to(gl.int32), 1), 0))
        code = total.to(gl.int32, bitcast=True)
    gl.store(
        out + batch * m * n + rows.to(gl.int64)[:, None] * n + columns[None, :], code.to(out.dtype.element_ty), inside
    )
