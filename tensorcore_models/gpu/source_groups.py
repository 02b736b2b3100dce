"""Holds the Gluon kernel of exact sums of groups, scaled, then fused: FP4 with block scales on Blackwell."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import (
    ANY_VALUE,
    add_rz,
    covered,
    elements,
    fma_rz,
    fp64_of_high,
    mark,
    placed,
    tile_columns,
    tile_layout,
    tile_rows,
    to_fp32_rz,
)

#: Exponent below every other exponent.
LOWEST = gl.constexpr(-4096)


@gluon.jit
def aligned_addend(d, top, FRACTION: gl.constexpr):
    """Return an FP32 number in units of 2^-FRACTION below an exponent field, rounded toward zero."""
    bits = d.to(gl.int32, bitcast=True)
    field = (bits >> 23) & 0xFF
    significand = ((bits & 0x7FFFFF) | gl.where(field > 0, 1 << 23, 0)).to(gl.int64)
    shift = gl.maximum(field, 1) - 23 - top + FRACTION
    kept = (significand << gl.maximum(shift, 0).to(gl.int64)) >> gl.minimum(gl.maximum(-shift, 0), 63).to(gl.int64)
    return gl.where(bits < 0, -kept, kept)


@gluon.jit
def power(field):
    """Return 2 to the power of an FP32 exponent field, which may be any exponent of FP64, in FP64."""
    return ((field + (1023 - 127)).to(gl.int64) << 52).to(gl.float64, bitcast=True)


@gluon.jit
def dot_of_bytes(pa, pb, count, BM: gl.constexpr, BN: gl.constexpr, WORDS: gl.constexpr):
    """Return count + the products of four signed bytes of each of WORDS words."""
    for i in gl.static_range(WORDS):
        x, y = gl.load(pa + i * BM)[:, None], gl.load(pb + i * BN)[None, :]
        x, y = gl.broadcast(x, y)
        count = gl.inline_asm_elementwise("dp4a.s32.s32 $0, $1, $2, $3;", "=r,r,r,r", [x, y, count], gl.int32, True, 1)
    return count


@gluon.jit
def signed_window(high, of):
    """Return the window with the given upper word and the sign of an integer."""
    return fp64_of_high(high | (of & -0x80000000))


@gluon.jit
def units_of_groups(
    pa, pb, fa, fb, sa, sb, top, total, BM: gl.constexpr, BN: gl.constexpr, L: gl.constexpr, GROUPS: gl.constexpr,
    WORDS: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Return total + the scaled sums of all groups in 64-bit integers, truncated. SHIFT: from exponents of scales to units."""
    for g in gl.static_range(GROUPS):
        dot = dot_of_bytes(pa + g * WORDS * BM, pb + g * WORDS * BN, gl.zeros([BM, BN], gl.int32, L), BM, BN, WORDS)
        value = dot * (gl.load(sa + g * BM)[:, None] * gl.load(sb + g * BN)[None, :])
        shift = (gl.load(fa + g * BM)[:, None] >> 16) + (gl.load(fb + g * BN)[None, :] >> 16) + SHIFT - top
        size = gl.abs(value).to(gl.int64) << gl.minimum(gl.maximum(shift, 0), 63).to(gl.int64)
        kept = size >> gl.minimum(gl.maximum(-shift, 0), 63).to(gl.int64)
        total += gl.where(value < 0, -kept, kept)
    return total


@gluon.jit
def group_step(
    pa, pb, fa, fb, sa, sb, d, BM: gl.constexpr, BN: gl.constexpr, L: gl.constexpr, GROUPS: gl.constexpr,
    WORDS: gl.constexpr, FRACTION: gl.constexpr, FLOOR: gl.constexpr, SHIFT: gl.constexpr,
):  # fmt: skip
    """Return one sum of GROUPS groups and d: each group's exponent is that of its scales, unless all its products are zero."""
    field = (d.to(gl.int32, bitcast=True) >> 23) & 0xFF
    top = gl.where(d == 0.0, LOWEST, gl.maximum(field, 1) - 127)
    for g in gl.static_range(GROUPS):
        x, y = gl.load(fa + g * BM)[:, None], gl.load(fb + g * BN)[None, :]
        top = gl.maximum(top, gl.where((x & y & 0xFFFF) != 0, (x >> 16) + (y >> 16), LOWEST))
    top = gl.maximum(top, FLOOR)
    if SHIFT is not None:
        units = aligned_addend(d, top + 127, FRACTION)
        units = units_of_groups(pa, pb, fa, fb, sa, sb, top, units, BM, BN, L, GROUPS, WORDS, SHIFT)
        total = units.to(gl.float64) * power(top + (127 - FRACTION))
    else:
        high = (top << 20) + (((1023 + 52 - FRACTION) << 20) + 0x80000)
        base = signed_window(high, d.to(gl.int32, bitcast=True))
        total = add_rz(base, d.to(gl.float64)) - base
        for g in gl.static_range(GROUPS):
            dot = dot_of_bytes(pa + g * WORDS * BM, pb + g * WORDS * BN, gl.zeros([BM, BN], gl.int32, L), BM, BN, WORDS)
            base = signed_window(high, dot)
            scale = gl.load(sa + g * BM)[:, None] * gl.load(sb + g * BN)[None, :]
            total += fma_rz(dot.to(gl.float64), scale, base) - base
    return to_fp32_rz(total) + 0.0


@gluon.jit(do_not_specialize=ANY_VALUE)
def group_sums(
    a, a_facts, a_scales, b, b_facts, b_scales, c, out, flags, m, n, steps, chain, row_tiles, column_tiles, c_batch, c_row,
    c_column,
    TERMS: gl.constexpr, GROUP: gl.constexpr, FRACTION: gl.constexpr, FLOOR: gl.constexpr, SHIFT: gl.constexpr,
    PROMOTES: gl.constexpr, EACH: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """Compute D = A B + C from exact sums of GROUP products of small integers; TERMS / GROUP scaled sums are fused with c.

    - A and B: four k in the bytes of a word, [batch][tile][word][row or column].
    - Facts, for each group: its scale's exponent and, in the lower half, which operands are nonzero (none if the scale is
      zero).
    - Scales: in FP64; A's include the unit of the integers.
    - SHIFT: that of :func:`units_of_groups`, for which scales are integers; None: sums are scaled and truncated in FP64.
    - FLOOR: lowest exponent.
    - PROMOTES: chains of `chain` steps start at 0 and are added outside.
    """
    L: gl.constexpr = tile_layout(EACH, WARPS)
    BM: gl.constexpr = tile_rows(EACH, WARPS)
    BN: gl.constexpr = tile_columns(EACH, WARPS)
    GROUPS: gl.constexpr = TERMS // GROUP
    program, batch, row_tile, column_tile = placed(row_tiles, column_tiles)
    rows, columns, inside = covered(row_tile, column_tile, m, n, L, BM, BN)
    of_a = (batch * row_tiles + row_tile) * steps * BM
    of_b = (batch * column_tiles + column_tile) * steps * BN
    at_a, at_b = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    pa, pb = a + of_a * (TERMS // 4) + at_a, b + of_b * (TERMS // 4) + at_b
    fa, fb = a_facts + of_a * GROUPS + at_a, b_facts + of_b * GROUPS + at_b
    sa, sb = a_scales + of_a * GROUPS + at_a, b_scales + of_b * GROUPS + at_b
    d = gl.zeros([BM, BN], gl.float32, L)
    if c is not None:
        d = gl.load(c + elements(batch, rows, columns, c_batch, c_row, c_column), inside, 0.0)
    flagged = (gl.abs(d) < float("inf")) == 0
    d = gl.where(flagged, 0.0, d)
    total = d
    left = steps
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            d = gl.zeros([BM, BN], gl.float32, L)
        for _ in range(here):
            d = group_step(pa, pb, fa, fb, sa, sb, d, BM, BN, L, GROUPS, GROUP // 4, FRACTION, FLOOR, SHIFT)
            flagged = flagged | (gl.abs(d) >= 2.0**127)
            pa, pb = pa + TERMS // 4 * BM, pb + TERMS // 4 * BN
            fa, fb = fa + GROUPS * BM, fb + GROUPS * BN
            sa, sb = sa + GROUPS * BM, sb + GROUPS * BN
        if PROMOTES:
            total = total + d
        left -= here
    if PROMOTES:
        d = total
        flagged = flagged | ((gl.abs(d) < float("inf")) == 0)
    mark(flags, program, flagged & inside)
    gl.store(out + elements(batch, rows, columns, m * n, n, 1), d, inside)
