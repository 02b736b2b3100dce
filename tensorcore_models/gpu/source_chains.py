"""Holds Gluon kernels of chains: fused multiply-adds one after the other, and exact sums of integers."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import ANY_VALUE, covered, elements, extent, mark, placed, thread_layout


@gluon.jit
def multiply_add(x, y, z, ROUNDING: gl.constexpr):
    """Return x y + z, rounded once: rn, or on NVIDIA's targets rz, rm or rp."""
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
    """Return x; with FLUSHES, an x below 2^-126 becomes a zero of its sign."""
    return gl.where(gl.abs(x) < 2.0**-126, x * 0.0, x) if FLUSHES else x


@gluon.jit
def kept_of_sum(x, close):
    """Return x flushed below 2^-126 to a zero of its sign, and `close`, set if |x| is 2^-126, to which it may have been rounded
    up.
    """
    return kept(x, True), close | (gl.abs(x) == 2.0**-126).to(gl.int32)


@gluon.jit
def lane(
    pa, pb, close, BM: gl.constexpr, BN: gl.constexpr, TERMS: gl.constexpr, FIRST: gl.constexpr, LANES: gl.constexpr
):
    """Return the chain of multiply-adds from 0 over every LANES-th product from FIRST on, small sums flushed, and `close`."""
    total = gl.zeros_like(close).to(gl.float32)
    for i in gl.static_range(FIRST, TERMS, LANES):
        x, y = gl.expand_dims(gl.load(pa + i * BM), 1), gl.expand_dims(gl.load(pb + i * BN), 0)
        total, close = kept_of_sum(gl.fma(x, y, total), close)
    return total, close


@gluon.jit
def as_fp32(x):
    """Return numbers of FP32, FP16 or (as 16-bit encodings) bf16 in FP32."""
    if x.dtype == gl.int16:
        return (x.to(gl.int32) << 16).to(gl.float32, bitcast=True)
    else:
        return x.to(gl.float32)


@gluon.jit
def rounded_once(x, TYPE: gl.constexpr):
    """Return an FP64 number rounded to nearest in FP32, FP16 or bf16, as FP32."""
    if TYPE == "bf16":  # through FP32 rounded to odd: its last bit shows any loss
        bits = fp32_to_odd(x)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000).to(gl.float32, bitcast=True)
    elif TYPE == "fp16":
        return x.to(gl.float16).to(gl.float32)
    else:
        return x.to(gl.float32)


@gluon.jit
def with_error(x, y):
    """Return x + y rounded to nearest, and the rounding error."""
    total = x + y
    of_y = total - x
    return total, (x - (total - of_y)) + (y - of_y)


@gluon.jit
def to_odd(x, y):
    """Return x + y rounded to odd: the last bit is set if the sum is inexact."""
    total, lost = with_error(x, y)
    bits = total.to(gl.int64, bitcast=True)
    back = ((lost < 0.0) != (total < 0.0)) & ((bits & 1) == 0)
    return gl.where(lost == 0.0, bits, (bits - back.to(gl.int64)) | 1).to(gl.float64, bitcast=True)


@gluon.jit
def fp32_to_odd(x):
    """Return the encoding of an FP64 number rounded to odd in FP32."""
    near = x.to(gl.float32)
    back = near.to(gl.float64)
    bits = near.to(gl.int32, bitcast=True) - (gl.abs(back) > gl.abs(x)).to(gl.int32)
    return bits | (back != x).to(gl.int32)


@gluon.jit
def odd_sum(x, y, flagged):
    """Return x + y in FP32 rounded to odd as FP64, small numbers flushed, and `flagged`, set near the end of the range."""
    whole = to_odd(x, y)
    found = fp32_to_odd(gl.where(gl.abs(whole) < 2.0**-126, whole * 0.0, whole)).to(gl.float32, bitcast=True)
    return found.to(gl.float64), flagged | ((gl.abs(whole) < 2.0**127) == 0).to(gl.int32)


@gluon.jit
def pairs_to_odd(pa, pb, d, flagged, BM: gl.constexpr, BN: gl.constexpr, TERMS: gl.constexpr):
    """Return d plus the sum of each pair of products, every operation rounded to odd, and `flagged`."""
    total = kept(d, True).to(gl.float64)
    nothing = gl.full_like(total, -0.0)
    for i in gl.static_range(0, TERMS, 2):
        x, y = gl.expand_dims(gl.load(pa + i * BM), 1), gl.expand_dims(gl.load(pb + i * BN), 0)
        first, flagged = odd_sum(x * y, nothing, flagged)
        x, y = gl.expand_dims(gl.load(pa + (i + 1) * BM), 1), gl.expand_dims(gl.load(pb + (i + 1) * BN), 0)
        second, flagged = odd_sum(x * y, nothing, flagged)
        pair, flagged = odd_sum(first, second, flagged)
        total, flagged = odd_sum(total, pair, flagged)
    return total.to(gl.float32), flagged


@gluon.jit
def with_errors(pa, pb, d, flagged, BM: gl.constexpr, BN: gl.constexpr, TERMS: gl.constexpr, RESULT: gl.constexpr):
    """Return the result of :func:`between_bounds` without directed roundings.

    The sum of errors is exact, or the tile is flagged.
    """
    total = gl.full_like(d, -0.0).to(gl.float64) if RESULT[2] else d.to(gl.float64)
    lost = gl.zeros_like(total)
    for i in gl.static_range(TERMS):
        x, y = gl.expand_dims(gl.load(pa + i * BM), 1), gl.expand_dims(gl.load(pb + i * BN), 0)
        total, error = with_error(total, x * y)
        lost, error = with_error(lost, error)
        flagged = flagged | (error != 0.0).to(gl.int32)
    whole = gl.where(lost == 0.0, total, to_odd(total, lost))  # a zero keeps its sign
    most = rounded_once(whole, RESULT[0])
    if not RESULT[1]:
        most = gl.where(whole == 0.0, 0.0, most)
    return d + most if RESULT[2] else most, flagged


@gluon.jit
def between_bounds(pa, pb, d, flagged, BM: gl.constexpr, BN: gl.constexpr, TERMS: gl.constexpr, RESULT: gl.constexpr):
    """Return the sum of a step's products and d, rounded once, and `flagged`, set if chains rounded down and up give two
    results."""
    low = gl.full_like(d, -0.0).to(gl.float64) if RESULT[2] else d.to(gl.float64)
    high = low
    for i in gl.static_range(TERMS):
        x, y = gl.expand_dims(gl.load(pa + i * BM), 1), gl.expand_dims(gl.load(pb + i * BN), 0)
        low, high = multiply_add(x, y, low, "rm"), multiply_add(x, y, high, "rp")
    nothing = (low == 0.0) & (high == 0.0)  # then the sum is 0, whose sign above is IEEE 754's
    least, most = rounded_once(low, RESULT[0]), rounded_once(high, RESULT[0])
    if not RESULT[1]:
        most = gl.where(nothing, 0.0, most)
    same = least.to(gl.int32, bitcast=True) == most.to(gl.int32, bitcast=True)
    return d + most if RESULT[2] else most, flagged | ((same | nothing) == 0).to(gl.int32)


@gluon.jit
def tree_of_products(
    pa, pb, BM: gl.constexpr, BN: gl.constexpr, FIRST: gl.constexpr, COUNT: gl.constexpr, FLUSHES: gl.constexpr
):
    """Return the sum of COUNT products from FIRST on, each rounded, added as a binary tree."""
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
    TREE: gl.constexpr, BOUNDS: gl.constexpr, RESULT: gl.constexpr, LANES: gl.constexpr, FLUSHES: gl.constexpr,
    FINITE: gl.constexpr, EACH: gl.constexpr, THREADS: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """Compute D = A B + C product by product.

    - A and B: [batch][tile][k][row or column of the tile], in the type of the sum.
    - ROUNDING: rounding of each multiply-add; None: integers, added modulo 2^32, or clamped after each step with CLAMPS.
    - TERMS: number of products of a step.
    - NAN: encoding of NaN results.
    - PROMOTES: chains of `chain` steps start at 0 and are added outside.
    - TREE: rounded products are added as a tree, and each group's sum to c. It holds the number of products of a group, whether
      c below 2^-126 is +0 at each step, and whether such results are 0. None: multiply-adds.
    - BOUNDS: the exact sum of a step's products and c is rounded once. A and B are FP64. Chains rounded down and up enclose the
      sum; if they round to different numbers, the tile is flagged.
    - RESULT: for such sums, the format of c and of d, whether a zero sum has IEEE 754's sign, whether c is added to the rounded
      sum of products, and the method: "bounds"; "errors", which sums the additions' rounding errors instead; or "odd", pairs of
      products whose every operation is rounded to odd.
    - LANES: number of chains of a step that start at 0, are added to each other, and then to c; None: one chain from c.
    - FLUSHES: results below 2^-126 are zeros; a tile is flagged if one may have been rounded up to 2^-126.
    - FINITE: tiles with infinities and NaN are flagged.
    """
    L: gl.constexpr = thread_layout(EACH, THREADS, WARPS)
    BM: gl.constexpr = extent(EACH, THREADS, WARPS, 0)
    BN: gl.constexpr = extent(EACH, THREADS, WARPS, 1)
    TYPE: gl.constexpr = gl.float32 if BOUNDS else out.dtype.element_ty
    program, batch, row_tile, column_tile = placed(row_tiles, column_tiles)
    in_rows, in_columns = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    pa = a + (batch * row_tiles + row_tile) * steps * TERMS * BM + in_rows
    pb = b + (batch * column_tiles + column_tile) * steps * TERMS * BN + in_columns
    rows, columns, inside = covered(row_tile, column_tile, m, n, L, BM, BN)
    d = gl.zeros([BM, BN], TYPE, L)
    if c is not None:
        d = gl.load(c + elements(batch, rows, columns, c_batch, c_row, c_column), inside, 0)
        d = as_fp32(d) if BOUNDS else d.to(TYPE)
    flagged = gl.zeros([BM, BN], gl.int32, L)
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
                if RESULT[3] == "bounds":
                    d, flagged = between_bounds(pa, pb, d, flagged, BM, BN, TERMS, RESULT)
                elif RESULT[3] == "errors":
                    d, flagged = with_errors(pa, pb, d, flagged, BM, BN, TERMS, RESULT)
                else:
                    d, flagged = pairs_to_odd(pa, pb, d, flagged, BM, BN, TERMS)
            elif LANES is not None:
                total_of_lanes, flagged = lane(pa, pb, flagged, BM, BN, TERMS, 0, LANES)
                for j in gl.static_range(1, LANES):
                    other, flagged = lane(pa, pb, flagged, BM, BN, TERMS, j, LANES)
                    total_of_lanes = kept(total_of_lanes + other, True)
                d = kept(kept(d, True) + total_of_lanes, True)
            else:
                if FLUSHES:
                    d = kept(d, True)
                for i in gl.static_range(TERMS):
                    x, y = gl.expand_dims(gl.load(pa + i * BM), 1), gl.expand_dims(gl.load(pb + i * BN), 0)
                    d = d + x * y if ROUNDING is None else multiply_add(x, y, d, ROUNDING)
                    if FLUSHES:
                        d, flagged = kept_of_sum(d, flagged)
            if CLAMPS:
                wide = before.to(gl.int64) + d.to(gl.int64)
                d = gl.minimum(gl.maximum(wide, -0x80000000), 0x7FFFFFFF).to(TYPE)
            pa += TERMS * BM
            pb += TERMS * BN
        if PROMOTES:
            total = total + d
        left -= here
    if PROMOTES:
        d = total
    if FINITE:
        flagged = flagged | ((gl.abs(d) < float("inf")) == 0).to(gl.int32)
    if flags is not None:
        mark(flags, program, gl.where(inside, flagged, 0))
    if BOUNDS and RESULT[0] != "fp32":  # NaN were flagged
        d = (d.to(gl.int32, bitcast=True) >> 16).to(gl.int16) if RESULT[0] == "bf16" else d.to(gl.float16)
    elif ROUNDING is not None:
        if gl.float32 == TYPE:
            d = gl.where(d == d, d, gl.full_like(d.to(gl.int32, bitcast=True), NAN).to(gl.float32, bitcast=True))
        else:
            d = gl.where(d == d, d, gl.full_like(d.to(gl.int64, bitcast=True), NAN).to(gl.float64, bitcast=True))
    gl.store(out + elements(batch, rows, columns, m * n, n, 1), d, inside)
