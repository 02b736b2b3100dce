"""Holds the Gluon kernel of fused sums in FP64, or in FP32 if they have few bits, without a matrix instruction."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from .source import (
    ANY_VALUE,
    add_rz,
    covered,
    elements,
    fma_rz,
    fp64_of_high,
    mark,
    narrowed,
    placed,
    replicated,
    strange_tile,
    tile_columns,
    tile_layout,
    tile_rows,
    to_fp32_rz,
)  # fmt: skip
from .source_down import down_sum
from .source_steps import (
    copy_step,
    floored,
    inexact_negatives,
    largest,
    lifted,
    lines_at,
    operand_at,
    rooms_of,
    step_at,
)  # fmt: skip


@gluon.jit
def rounded(exact, TYPE: gl.constexpr, KEEP: gl.constexpr, WIDE: gl.constexpr):
    """Return a sum in the type of the result, as FP32; a result that rounds to zero is positive."""
    if TYPE == "fp16":
        return exact.to(gl.float16).to(gl.float32) + 0.0
    else:
        d = exact if exact.dtype == gl.float32 else to_fp32_rz(exact)
        if KEEP < 23:
            d = (d.to(gl.int32, bitcast=True) & -(1 << (23 - KEEP))).to(gl.float32, bitcast=True)
        if WIDE:
            d = d + 0.0
        return d


@gluon.jit
def truncated_sum(
    a_at, b_at, d, top, limit, TERMS: gl.constexpr, BITS: gl.constexpr, FRACTION: gl.constexpr, WINDOW: gl.constexpr,
):  # fmt: skip
    """Return the sum of products and d, each truncated FRACTION bits below an exponent field.

    A window of d's sign truncates d.
    """
    sign = d.to(gl.int32, bitcast=True) & -0x80000000
    count = inexact_negatives(a_at, b_at, limit, TERMS * BITS // 32, True, 1, 0)
    if WINDOW:
        unit = (top << 23) + (((23 - FRACTION) << 23) + 0x400000)  # 1.5 2^23 units
        base, signed = unit.to(gl.float32, bitcast=True), (unit | sign).to(gl.float32, bitcast=True)
    else:
        unit = (top << 20) + (((1023 + 52 - 127 - FRACTION) << 20) + 0x80000)  # 1.5 2^52 units
        base, signed = fp64_of_high(unit), fp64_of_high(unit | sign)
    start = base + (add_rz(signed, d.to(base.dtype)) - signed)
    return lifted(floored(a_at, b_at, start, TERMS, 0, 1), count) - base


@gluon.jit
def split_sum(
    a_at, b_at, d, top, limit, TERMS: gl.constexpr, BITS: gl.constexpr, FRACTION: gl.constexpr, SPLIT: gl.constexpr,
):  # fmt: skip
    """Return the result of :func:`truncated_sum` on two windows of FP32: the second gets each product's part below 2^SPLIT
    units.

    That part is not negative and below 2^SPLIT units. Rounded toward zero it keeps 24 bits, whose last one lies far below a
    unit.
    """
    sign = d.to(gl.int32, bitcast=True) & -0x80000000
    count = inexact_negatives(a_at, b_at, limit, TERMS * BITS // 32, True, 1, 0)
    unit = (top << 23) + (((23 - FRACTION) << 23) + 0x400000)
    high, low = (unit + (SPLIT << 23)).to(gl.float32, bitcast=True), unit.to(gl.float32, bitcast=True)
    signed = ((unit + (SPLIT << 23)) | sign).to(gl.float32, bitcast=True)
    of_c = add_rz(signed, d) - signed
    signed = (unit | sign).to(gl.float32, bitcast=True)
    upper, lower = high + of_c, low + (add_rz(signed, d - of_c) - signed)
    L: gl.constexpr = d.type.layout
    for k in gl.static_range(TERMS):
        x, y = lines_at(a_at, 0, TERMS, k, 1, L), lines_at(b_at, 0, TERMS, k, 0, L)
        following = fma_rz(x, y, upper)
        lower = add_rz(lower, fma_rz(x, y, upper - following))
        upper = following
    return add_rz(upper - high, lifted(lower, count) - low)


@gluon.jit
def fused_step(
    a_at, b_at, d, field, lowest, pairs, highest, TERMS: gl.constexpr, BITS: gl.constexpr, FRACTION: gl.constexpr,
    ALIGN: gl.constexpr, THRESHOLD: gl.constexpr, FLOOR: gl.constexpr, WIDE: gl.constexpr, LIMITED: gl.constexpr,
    TYPE: gl.constexpr, KEEP: gl.constexpr, WINDOW: gl.constexpr, SPLIT: gl.constexpr,
):  # fmt: skip
    """Return one sum of products and d (exponent field `field`), truncated below the largest exponent, then rounded.

    `lowest` is the exponent field of d's subnormal numbers, `pairs` the largest codes of exponents of even and odd k, `highest`
    the largest field of d so far.
    """
    top = gl.maximum((pairs & 0xFFFF) + ALIGN, (pairs >> 16) + ALIGN)
    if TYPE == "fp16":
        d = gl.where(highest < 143, d, 0.0)
    if WIDE:
        field = gl.where(d == 0.0, -2048, gl.maximum(field, 1))
    elif TYPE == "fp16":  # subnormal numbers have the exponent of the smallest normal number
        field = gl.where(d == 0.0, 0, gl.maximum(field, lowest))
    top = gl.maximum(top, field)
    if FLOOR != 0:
        top = gl.maximum(top, FLOOR)
    threshold = top + THRESHOLD
    if BITS == 8:
        threshold = gl.maximum(threshold, 0)
        if LIMITED == 0:
            threshold = gl.minimum(threshold, 64)
    limit = replicated(threshold, BITS)
    if SPLIT:
        exact = split_sum(a_at, b_at, d, top, limit, TERMS, BITS, FRACTION, SPLIT)
    else:
        exact = truncated_sum(a_at, b_at, d, top, limit, TERMS, BITS, FRACTION, WINDOW)
    return rounded(exact, TYPE, KEEP, WIDE)


@gluon.jit
def beyond_domain(
    d, highest, c, addends, inside, WIDE: gl.constexpr, LIMITED: gl.constexpr, TYPES: gl.constexpr, WINDOW: gl.constexpr,
    DOWN: gl.constexpr,
):  # fmt: skip
    """Return a mask of the elements outside of the domain: NaN and infinities of c, overflow that was cut to the largest
    number.

    Sums rounded down need c and products below 2^126. The `highest` of narrow products is unknown, but they are small enough.
    """
    MOST: gl.constexpr = (
        143 if TYPES[1] == "fp16" else 230 if WINDOW else 254 if DOWN is None else (1023 + 126 + 52 - DOWN[1]) << 20
    )
    LARGEST: gl.constexpr = 2.0**126 if DOWN is not None else float("inf")
    flagged = highest >= MOST
    if c is not None:  # c is read again, because keeping it would take registers in the loop
        size = gl.abs(gl.load(c + addends, inside, 0.0).to(gl.float32))
        flagged = flagged | ((size < LARGEST) == 0)
        if not WIDE and DOWN is None:  # its exponent is then below those of windows, or that of its own format
            least: gl.constexpr = 2.0**-14 if TYPES == ("fp16", "fp32") else 2.0**-100
            flagged = flagged | ((size != 0) & (size < least))
    if TYPES[1] == "fp32" and DOWN is None:
        flagged = flagged | ((d.to(gl.int32, bitcast=True) & 0x7FFFFFFF) >= 0x7F000000)
    if LIMITED:
        flagged = flagged | (highest > LIMITED)
    return flagged


@gluon.jit(do_not_specialize=ANY_VALUE)
def fused_floating(
    a_values, a_words, a_special, b_values, b_words, b_special, c, out, flags, m, n, steps, chain, row_tiles,
    column_tiles, padded_k, a_size, b_size, c_batch, c_row, c_column,
    TERMS: gl.constexpr, BITS: gl.constexpr, FRACTION: gl.constexpr, ALIGN: gl.constexpr, THRESHOLD: gl.constexpr,
    FLOOR: gl.constexpr, WIDE: gl.constexpr, LIMITED: gl.constexpr, TYPES: gl.constexpr, KEEP: gl.constexpr,
    NARROWED: gl.constexpr, WINDOW: gl.constexpr, SPLIT: gl.constexpr, DOWN: gl.constexpr, PROMOTES: gl.constexpr,
    PAIRS: gl.constexpr, EACH: gl.constexpr, WARPS: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """Compute D = A B + C of a fused sum that truncates: TERMS products and c on FRACTION bits below the largest exponent.

    A multiply-add toward zero onto 1.5 2^52 units multiplies, aligns and adds. The sum stays positive, so that rounding toward
    zero rounds down. Truncation differs by one unit for each negative product with bits below the unit; such products are
    counted.

    - ALIGN: added to a sum of exponent codes, it gives FP32's exponent field.
    - THRESHOLD: added to that field, it gives the number that lifts the codes of inexact products to a field's top bit.
    - FLOOR: lowest exponent field.
    - WIDE: whether products reach below FP32's exponents.
    - LIMITED: largest exponent field of c with which fields hold the codes of all products; 0: every c.
    - TYPES: types of c and of d in the sum.
    - KEEP: fraction bits of d.
    - NARROWED: number of steps after which d is rounded to FP16; 0: never.
    - WINDOW: FP32 instead of FP64, for sums of less than 2^22 units; with SPLIT, two windows of FP32, 2^SPLIT units apart.
    - DOWN: that of :func:`tensorcore_models.gpu.source_down.down_sum`, for sums rounded down.
    - PROMOTES: chains of `chain` steps start at 0 and are added outside, to nearest.
    - STAGES: number of steps whose operands are in shared memory or on their way there, at least 2.
    """
    L: gl.constexpr = tile_layout(EACH, WARPS)
    BM: gl.constexpr = tile_rows(EACH, WARPS)
    BN: gl.constexpr = tile_columns(EACH, WARPS)
    LEAST: gl.constexpr = 0 if WIDE or DOWN is None else 1 - ALIGN
    program, batch, row_tile, column_tile = placed(row_tiles, column_tiles)
    a_tile, b_tile = batch * row_tiles + row_tile, batch * column_tiles + column_tile
    a_at = operand_at(a_values, a_words, a_tile, padded_k, a_size, BM, BITS)
    b_at = operand_at(b_values, b_words, b_tile, padded_k, b_size, BN, BITS)
    VALUE: gl.constexpr = gl.float32 if WINDOW else gl.float64
    ALL: gl.constexpr = WARPS[0] * WARPS[1]
    a_rooms, b_rooms = rooms_of(VALUE, STAGES, BM, TERMS, BITS), rooms_of(VALUE, STAGES, BN, TERMS, BITS)
    coming = steps * 0
    for ahead in gl.static_range(STAGES - 1):
        copy_step(a_at, a_rooms, coming, ahead, steps, BM, TERMS, BITS, ALL)
        copy_step(b_at, b_rooms, coming, ahead, steps, BN, TERMS, BITS, ALL)
        async_copy.commit_group()
        coming += 1
    rows, columns, inside = covered(row_tile, column_tile, m, n, L, BM, BN)
    addends = elements(batch, rows, columns, c_batch, c_row, c_column)
    d = gl.zeros([BM, BN], gl.float32, L)
    if c is not None:
        d = gl.load(c + addends, inside, 0.0).to(gl.float32)
        d = gl.where(gl.abs(d) < float("inf"), d, 0.0)
    total = d
    highest = gl.zeros([BM, BN], gl.int32, L)
    lowest = 1 if TYPES[0] == "fp32" else 127 - 14  # exponent field of subnormal numbers of c, then of d
    left, after = steps, 0
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            d = gl.zeros([BM, BN], gl.float32, L)
        for _ in range(here):
            async_copy.wait_group(STAGES - 2)
            gl.barrier()  # this step has arrived for all warps, and all warps are done with the step whose place is filled now
            copy_step(a_at, a_rooms, coming, coming % STAGES, steps, BM, TERMS, BITS, ALL)
            copy_step(b_at, b_rooms, coming, coming % STAGES, steps, BN, TERMS, BITS, ALL)
            async_copy.commit_group()
            slot = (coming + 1) % STAGES
            x_at, y_at = step_at(a_rooms, slot), step_at(b_rooms, slot)
            pairs = largest(x_at, y_at, LEAST, BM, BN, L, TERMS, PAIRS)
            if DOWN is not None:
                exact, top = down_sum(
                    x_at, y_at, pairs, d.to(gl.float64), TERMS, BITS, FRACTION, THRESHOLD, WIDE, DOWN, PAIRS,
                )  # fmt: skip
                if WIDE:
                    highest = gl.maximum(highest, top)
                d = exact.to(gl.float32)
            else:
                field = (d.to(gl.int32, bitcast=True) >> 23) & 0xFF
                highest = gl.maximum(highest, field)
                if NARROWED:  # an infinity, which a sum in FP64 would turn into NaN
                    d = gl.where(highest < 254, d, 0.0)
                d = fused_step(
                    x_at, y_at, d, field, lowest, pairs, highest, TERMS, BITS, FRACTION, ALIGN, THRESHOLD, FLOOR,
                    WIDE, LIMITED, TYPES[1], KEEP, WINDOW, SPLIT,
                )  # fmt: skip
                lowest = 127 - 14
            if NARROWED:
                after += 1
                d = narrowed(d, after, NARROWED)
            coming += 1
        if PROMOTES:
            total = total + d
            if TYPES[1] == "fp16":
                total = total.to(gl.float16).to(gl.float32)
        left -= here
    async_copy.wait_group(0)  # shared memory is used again after the loop, so that no copy may be on its way
    gl.barrier()
    flagged = beyond_domain(d, highest, c, addends, inside, WIDE, LIMITED, TYPES, WINDOW, DOWN)
    if PROMOTES:
        flagged = flagged | ((total.to(gl.int32, bitcast=True) & 0x7F800000) == 0x7F800000)
        d = total
    mark(flags, program, (flagged | strange_tile(a_special, b_special, a_tile, b_tile, L, BM, BN)) & inside)
    gl.store(out + elements(batch, rows, columns, m * n, n, 1), d.to(out.dtype.element_ty), inside)
