"""Gluon kernels of chains: fused multiply-adds one after the other, and exact sums of integers."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import ANY_VALUE, covered, elements, mark, placed
from .source_integers import extent, integer_layout


@gluon.jit
def multiply_add(x, y, z, ROUNDING: gl.constexpr):
    """x y + z, rounded once: rn, or on NVIDIA's targets rz, rm or rp."""
    if ROUNDING == "rn":
        return gl.fma(x, y, z)
    else:
        KIND: gl.constexpr = "f32" if z.dtype == gl.float32 else "f64"
        LETTER: gl.constexpr = "f" if z.dtype == gl.float32 else "d"
        TEXT: gl.constexpr = "fma." + ROUNDING + "." + KIND + " $0, $1, $2, $3;"
        OPERANDS: gl.constexpr = "=" + LETTER + "," + LETTER + "," + LETTER + "," + LETTER
        return gl.inline_asm_elementwise(TEXT, OPERANDS, [x, y, z], z.dtype, True, 1)


@gluon.jit
def kept(x, FLUSHES: gl.constexpr):
    """x, which with FLUSHES is a zero of its sign below 2^-126."""
    return gl.where(gl.abs(x) < 2.0**-126, x * 0.0, x) if FLUSHES else x


@gluon.jit
def tree_of_products(
    pa, pb, BM: gl.constexpr, BN: gl.constexpr, FIRST: gl.constexpr, COUNT: gl.constexpr, FLUSHES: gl.constexpr
):
    """COUNT products from FIRST on, each rounded, added as a binary tree."""
    if COUNT == 1:
        x, y = gl.expand_dims(gl.load(pa + FIRST * BM), 1), gl.expand_dims(gl.load(pb + FIRST * BN), 0)
        return kept(x * y, FLUSHES)
    else:
        HALF: gl.constexpr = COUNT // 2
        left = tree_of_products(pa, pb, BM, BN, FIRST, HALF, FLUSHES)
        return kept(left + tree_of_products(pa, pb, BM, BN, FIRST + HALF, HALF, FLUSHES), FLUSHES)


@gluon.jit(do_not_specialize=ANY_VALUE)
def chains(
    a, b, c, out, flags, m, n, steps, chain, row_tiles, column_tiles, c_batch, c_row, c_column,
    TERMS: gl.constexpr, ROUNDING: gl.constexpr, NAN: gl.constexpr, PROMOTES: gl.constexpr, CLAMPS: gl.constexpr,
    TREE: gl.constexpr, BOUNDS: gl.constexpr, EACH: gl.constexpr, THREADS: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """D = A B + C product by product. A and B: [batch][tile][k][row or column of the tile], in the type of the sum.

    ROUNDING: of each multiply-add; None: integers, added modulo 2^32, or clamped after each step with CLAMPS. TERMS: Products
    of a step. NAN: Encoding of NaN results. PROMOTES: chains of `chain` steps start from 0 and are added outside.
    TREE: (products of a group, whether c below 2^-126 is +0 at each step, whether results below are 0) of sums whose rounded
    products are added as a tree, and each group's sum to c; None: multiply-adds.
    BOUNDS: of exact sums of a step's products and c, rounded once to FP32: A and B are FP64, chains rounded down and up enclose
    the sum, and where they round to different numbers the tile is flagged.
    """
    L: gl.constexpr = integer_layout(EACH, THREADS, WARPS)
    BM: gl.constexpr = extent(EACH, THREADS, WARPS, 0)
    BN: gl.constexpr = extent(EACH, THREADS, WARPS, 1)
    TYPE: gl.constexpr = out.dtype.element_ty
    program, batch, row_tile, column_tile = placed(row_tiles, column_tiles)
    in_rows, in_columns = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    pa = a + (batch * row_tiles + row_tile) * steps * TERMS * BM + in_rows
    pb = b + (batch * column_tiles + column_tile) * steps * TERMS * BN + in_columns
    rows, columns, inside = covered(row_tile, column_tile, m, n, L, BM, BN)
    d = gl.zeros([BM, BN], TYPE, L)
    if c is not None:
        d = gl.load(c + elements(batch, rows, columns, c_batch, c_row, c_column), inside, 0).to(TYPE)
    if BOUNDS:
        finite = gl.abs(d) < float("inf")
        flagged, d = (finite == 0).to(gl.int32), gl.where(finite, d, 0.0)
    total = d
    left = steps
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            d = gl.zeros([BM, BN], TYPE, L)
        for _ in range(here):
            before = d
            if CLAMPS:
                d = gl.zeros([BM, BN], TYPE, L)
            if TREE is not None:
                if TREE[1]:
                    d = gl.where(gl.abs(d) < 2.0**-126, 0.0, d)
                for first in gl.static_range(0, TERMS, TREE[0]):
                    d = kept(d + tree_of_products(pa, pb, BM, BN, first, TREE[0], TREE[2]), TREE[2])
            elif BOUNDS:
                low = d.to(gl.float64)
                high = low
                for i in gl.static_range(TERMS):
                    x, y = gl.expand_dims(gl.load(pa + i * BM), 1), gl.expand_dims(gl.load(pb + i * BN), 0)
                    low, high = multiply_add(x, y, low, "rm"), multiply_add(x, y, high, "rp")
                nothing = (low == 0.0) & (high == 0.0)  # then the sum is 0, whose sign is plus
                least, d = low.to(gl.float32), gl.where(nothing, 0.0, high.to(gl.float32))
                same = least.to(gl.int32, bitcast=True) == d.to(gl.int32, bitcast=True)
                flagged = flagged | ((same | nothing) == 0).to(gl.int32)
            else:
                for i in gl.static_range(TERMS):
                    x, y = gl.expand_dims(gl.load(pa + i * BM), 1), gl.expand_dims(gl.load(pb + i * BN), 0)
                    d = d + x * y if ROUNDING is None else multiply_add(x, y, d, ROUNDING)
            if CLAMPS:
                wide = before.to(gl.int64) + d.to(gl.int64)
                d = gl.minimum(gl.maximum(wide, -0x80000000), 0x7FFFFFFF).to(TYPE)
            pa += TERMS * BM
            pb += TERMS * BN
        if PROMOTES:
            total = total + d
        left -= here
    if BOUNDS:
        mark(flags, program, gl.where(inside, flagged, 0))
    if PROMOTES:
        d = total
    if ROUNDING is not None:
        if gl.float32 == TYPE:
            d = gl.where(d == d, d, gl.full_like(d.to(gl.int32, bitcast=True), NAN).to(gl.float32, bitcast=True))
        else:
            d = gl.where(d == d, d, gl.full_like(d.to(gl.int64, bitcast=True), NAN).to(gl.float64, bitcast=True))
    gl.store(out + elements(batch, rows, columns, m * n, n, 1), d, inside)
