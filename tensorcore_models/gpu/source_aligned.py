"""Holds the Gluon kernel of sums whose products are truncated one by one: Gaudi's matrix engines and RISC-V's dot products."""

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
from .source_chains import multiply_add


@gluon.jit
def high_word(x):
    """Return the upper word of FP64 numbers."""
    return (x.to(gl.int64, bitcast=True) >> 32).to(gl.int32)


@gluon.jit
def odd_one(low, high):
    """Return, of a number rounded down and up, the one whose last bit is odd; if both are zeros, the second."""
    if low.dtype == gl.float32:
        return gl.where((low.to(gl.int32, bitcast=True) & 1) != 0, low, high)
    else:
        return gl.where((low.to(gl.int64, bitcast=True) & 1) != 0, low, high)


@gluon.jit
def added_odd(x, y):
    """Return x + y rounded to odd, in FP64 or FP32."""
    one = gl.full_like(x, 1.0)
    return odd_one(multiply_add(x, one, y, "rm"), multiply_add(x, one, y, "rp"))


@gluon.jit
def to_fp32_odd(x):
    """Return an FP64 number rounded to odd in FP32."""
    low = gl.inline_asm_elementwise("cvt.rm.f32.f64 $0, $1;", "=f,d", [x], gl.float32, True, 1)
    high = gl.inline_asm_elementwise("cvt.rp.f32.f64 $0, $1;", "=f,d", [x], gl.float32, True, 1)
    return odd_one(low, high)


@gluon.jit
def cut_product(x, y, high, ODD: gl.constexpr):
    """Return x y truncated to the unit of the window with the given upper word, toward zero or to odd."""
    if ODD:
        base = fp64_of_high(high)
        return odd_one(multiply_add(x, y, base, "rm"), multiply_add(x, y, base, "rp")) - base
    else:
        base = fp64_of_high(high | ((high_word(x) ^ high_word(y)) & -0x80000000))
        return fma_rz(x, y, base) - base


@gluon.jit
def largest_product(
    pa, pb, ea, eb, top, BM: gl.constexpr, BN: gl.constexpr, TERMS: gl.constexpr, PARTS: gl.constexpr,
    NORMALISED: gl.constexpr,
):  # fmt: skip
    """Return the largest of `top` and the exponents of the products: sums of exponents, or exponents of their leading bits."""
    for k in gl.static_range(TERMS):
        if NORMALISED:
            product = gl.load(pa + k * PARTS * BM)[:, None] * gl.load(pb + k * PARTS * BN)[None, :]
            top = gl.maximum(top, ((high_word(product) >> 20) & 0x7FF) - 1023)
        else:
            top = gl.maximum(top, gl.load(ea + k * BM)[:, None] + gl.load(eb + k * BN)[None, :])
    return top


@gluon.jit
def sum_of_products(
    pa, pb, high, total, BM: gl.constexpr, BN: gl.constexpr, TERMS: gl.constexpr, PARTS: gl.constexpr, ODD: gl.constexpr
):
    """Return total + all products of parts of operands, each truncated to the unit of a window."""
    for k in gl.static_range(TERMS):
        for i in gl.static_range(PARTS):
            for j in gl.static_range(PARTS):
                x = gl.load(pa + (k * PARTS + i) * BM)[:, None]
                y = gl.load(pb + (k * PARTS + j) * BN)[None, :]
                total += cut_product(x, y, high, ODD)
    return total


@gluon.jit
def with_exact_addend(total, c, facts, ZERO: gl.constexpr):
    """Return total + c, rounded once to nearest; results and c below 2^-126 are zeros of their sign.

    `facts` says which products are negative and, in its upper half, which are nonzero. ZERO is (rule, number of products); a
    sum of zeros is negative if all products and c are (rule true), or if most products are (rule false).
    """
    d = added_odd(total, c.to(gl.float64)).to(gl.float32)
    d = gl.where(gl.abs(d) < 2.0**-126, d * 0.0, d)
    negative = gl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [facts & 0xFFFF], gl.int32, True, 1)
    minus = (negative == ZERO[1]) & (c.to(gl.int32, bitcast=True) < 0) if ZERO[0] else 2 * negative > ZERO[1]
    nothing = (facts >> 16 == 0) & (c == 0.0)
    return gl.where(nothing, gl.where(minus, -0.0, 0.0), d)


@gluon.jit
def aligned_step(
    at_a, at_b, d, BM: gl.constexpr, BN: gl.constexpr, L: gl.constexpr, TERMS: gl.constexpr, PARTS: gl.constexpr,
    FRACTION: gl.constexpr, FLOOR: gl.constexpr, NORMALISED: gl.constexpr, ODD: gl.constexpr, ADDEND: gl.constexpr,
    ZERO: gl.constexpr,
):  # fmt: skip
    """Return one sum of products and d; places of an operand hold its values, exponents and facts."""
    if ADDEND == "exact":
        d = gl.where(gl.abs(d) < 2.0**-126, d * 0.0, d)
    top = gl.full([BM, BN], FLOOR, gl.int32, L)
    if ADDEND == "early":
        field = (d.to(gl.int32, bitcast=True) >> 23) & 0xFF
        top = gl.where(d == 0.0, top, gl.maximum(top, gl.maximum(field, 1) - 127))
    top = largest_product(at_a[0], at_b[0], at_a[1], at_b[1], top, BM, BN, TERMS, PARTS, NORMALISED)
    high = (top << 20) + (((1023 + 52 - FRACTION) << 20) + 0x80000)
    total = gl.zeros([BM, BN], gl.float64, L)
    if ADDEND == "early":
        base = fp64_of_high(high | (d.to(gl.int32, bitcast=True) & -0x80000000))
        total = add_rz(base, d.to(gl.float64)) - base
    total = sum_of_products(at_a[0], at_b[0], high, total, BM, BN, TERMS, PARTS, ODD)
    if ADDEND == "early":
        return to_fp32_rz(total) + 0.0
    elif ADDEND == "late":
        return added_odd(to_fp32_odd(total), d)
    else:
        x, y = gl.load(at_a[2])[:, None], gl.load(at_b[2])[None, :]
        return with_exact_addend(total, d, ((x ^ y) & 0xFFFF) | (x & y & -0x10000), ZERO)


@gluon.jit(do_not_specialize=ANY_VALUE)
def aligned_sums(
    a, a_exponents, a_facts, b, b_exponents, b_facts, c, out, flags, m, n, steps, chain, row_tiles, column_tiles, c_batch,
    c_row, c_column,
    TERMS: gl.constexpr, PARTS: gl.constexpr, FRACTION: gl.constexpr, FLOOR: gl.constexpr, NORMALISED: gl.constexpr,
    ODD: gl.constexpr, ADDEND: gl.constexpr, ZERO: gl.constexpr, PROMOTES: gl.constexpr, EACH: gl.constexpr,
    WARPS: gl.constexpr,
):  # fmt: skip
    """Compute D = A B + C as sums of TERMS products, each truncated FRACTION bits below the largest exponent, at least FLOOR.

    - A and B: values in FP64, PARTS of each that add up to it, [batch][tile][k][part][row or column].
    - Exponents: those of each k; zeros have an exponent below all others.
    - Facts: for each step, which operands are negative and, in the upper half, which are nonzero.
    - NORMALISED: exponents are those of products' leading bits.
    - ODD: products are rounded to odd, not toward zero.
    - ADDEND: c is "early" (truncated like the products, the sum rounded toward zero), "exact" (added to the truncated products
      and rounded with them, to nearest), or "late" (added to the rounded sum, both roundings to odd).
    - ZERO: that of :func:`with_exact_addend`.
    - PROMOTES: chains of `chain` steps start at 0 and are added outside.
    """
    L: gl.constexpr = tile_layout(EACH, WARPS)
    BM: gl.constexpr = tile_rows(EACH, WARPS)
    BN: gl.constexpr = tile_columns(EACH, WARPS)
    program, batch, row_tile, column_tile = placed(row_tiles, column_tiles)
    rows, columns, inside = covered(row_tile, column_tile, m, n, L, BM, BN)
    of_a = (batch * row_tiles + row_tile) * steps * BM
    of_b = (batch * column_tiles + column_tile) * steps * BN
    in_a, in_b = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    pa, pb = a + of_a * (TERMS * PARTS) + in_a, b + of_b * (TERMS * PARTS) + in_b
    ea, eb = a_exponents + of_a * TERMS + in_a, b_exponents + of_b * TERMS + in_b
    fa, fb = a_facts + of_a + in_a, b_facts + of_b + in_b
    d = gl.zeros([BM, BN], gl.float32, L)
    if c is not None:
        d = gl.load(c + elements(batch, rows, columns, c_batch, c_row, c_column), inside, 0.0)
    flagged = (gl.abs(d) < 2.0**127) == 0
    d = gl.where(flagged, 0.0, d)
    total = d
    left = steps
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            d = gl.zeros([BM, BN], gl.float32, L)
        for _ in range(here):
            d = aligned_step(
                (pa, ea, fa), (pb, eb, fb), d, BM, BN, L, TERMS, PARTS, FRACTION, FLOOR, NORMALISED, ODD, ADDEND, ZERO
            )
            over = (gl.abs(d) < 2.0**127) == 0
            flagged, d = flagged | over, gl.where(over, 0.0, d)
            pa, pb = pa + TERMS * PARTS * BM, pb + TERMS * PARTS * BN
            ea, eb, fa, fb = ea + TERMS * BM, eb + TERMS * BN, fa + BM, fb + BN
        if PROMOTES:
            total = total + d
        left -= here
    if PROMOTES:
        d = total
        flagged = flagged | ((gl.abs(d) < float("inf")) == 0)
    mark(flags, program, flagged & inside)
    gl.store(out + elements(batch, rows, columns, m * n, n, 1), d, inside)
