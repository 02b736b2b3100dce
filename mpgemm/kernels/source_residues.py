"""The Triton kernels of Ozaki's scheme II on int8: residues of scaled integers, and products joined by remainders.

All integer arithmetic is exact. The join adds y_i (M / p_i) in limbs of 40 bits, takes q M off, and rounds once to FP64.
"""

# mypy: ignore-errors
import triton
import triton.language as tl

LIMB = tl.constexpr(40)


@triton.jit
def _double_power(exponent):
    """2^exponent for exponents from -1022 to 1023."""
    return ((exponent.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def _times_power(x, exponent):
    """x 2^exponent, rounded once: three factors, so that what is inexact before the last is lost for good."""
    first = tl.minimum(tl.maximum(exponent, -1022), 1023)
    rest = exponent - first
    second = tl.minimum(tl.maximum(rest, -1022), 1023)
    third = tl.minimum(tl.maximum(rest - second, -1022), 1023)
    return x * _double_power(third) * _double_power(second) * _double_power(first)


@triton.jit
def residues(
    x, out, exponents, rows, columns, x_batch, x_row, x_column, out_batch, plane, e_batch, e_row, e_column,
    MODULI: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Balanced residues of RZ(x 2^exponent) as planes of int8; elements that are not finite are 0."""
    blocks = tl.cdiv(columns, BLOCK)
    batch = (tl.program_id(0) // (rows * blocks)).to(tl.int64)
    row = (tl.program_id(0) // blocks % rows).to(tl.int64)
    at = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    inside, wide = at < columns, at.to(tl.int64)
    values = tl.load(x + batch * x_batch + row * x_row + wide * x_column, mask=inside, other=0.0).to(tl.float64)
    exponent = tl.load(exponents + batch * e_batch + row * e_row + wide * e_column, mask=inside, other=0)
    values = tl.where(tl.abs(values) < float("inf"), values, 0.0)
    whole = _times_power(values, exponent).to(tl.int64)
    for i in tl.static_range(len(MODULI)):
        tl.store(
            out + tl.full((), i, tl.int64) * plane + batch * out_batch + row * columns + at,
            _balanced(whole, MODULI[i]).to(tl.int8),
            mask=inside,
        )


@triton.jit
def _balanced(n, P: tl.constexpr):
    """The residue of n in [-p/2, p/2)."""
    rest = n % P
    rest = tl.where(rest < 0, rest + P, rest)
    return tl.where(rest >= (P + 1) // 2, rest - P, rest)


@triton.jit
def _carried(limbs, COUNT: tl.constexpr):
    """Limbs in [0, 2^40) below a signed one."""
    carry = tl.zeros_like(limbs[0])
    found = ()
    for j in tl.static_range(COUNT):
        value = limbs[j] + carry
        carry = value >> LIMB
        found = found + ((value - (carry << LIMB)) if j + 1 < COUNT else value,)
    return found


@triton.jit
def _plus_product(limbs, q, PRODUCT: tl.constexpr, FACTOR: tl.constexpr, COUNT: tl.constexpr):
    """FACTOR limbs + q M."""
    found = ()
    for j in tl.static_range(COUNT):
        found = found + (limbs[j] * FACTOR + q * PRODUCT[j],)
    return _carried(found, COUNT)


@triton.jit
def _rounded(limbs, COUNT: tl.constexpr):
    """The magnitude of limbs, the last one not negative, rounded once to FP64.

    Three limbs at a time: what lies below them is one sticky bit. Below 2^53 two upper limbs are one exact number, and one
    addition rounds; from 2^54 on the lowest limb is a sticky bit of the middle one; in between 63 bits are converted.
    """
    if COUNT <= 2:
        value = limbs[0].to(tl.float64)
        if COUNT == 2:
            value = limbs[1].to(tl.float64) * 1099511627776.0 + value
        return value
    else:
        top, middle, low, scale = limbs[2], limbs[1], limbs[0], tl.full((), 1.0, tl.float64)
        for j in tl.static_range(3, COUNT):
            higher = limbs[j] > 0
            sticky = middle | (low != 0).to(tl.int64)
            low, middle = tl.where(higher, sticky, low), tl.where(higher, top, middle)
            top = tl.where(higher, limbs[j], top)
            scale = tl.where(higher, scale * 1099511627776.0, scale)
        joined = (top << LIMB) + middle
        small = joined.to(tl.float64) * 1099511627776.0 + low.to(tl.float64)
        between = (joined << 9) | (low >> 31) | ((low & 0x7FFFFFFF) != 0).to(tl.int64)
        middling = between.to(tl.float64) * 2147483648.0
        odd = (middle | (low != 0).to(tl.int64)).to(tl.float64)
        large = (top.to(tl.float64) * 1099511627776.0 + odd) * 1099511627776.0
        value = tl.where(top < (1 << 13), small, tl.where(top < (1 << 14), middling, large))
        return value * scale


@triton.jit
def residue_products(
    a, b, out, row_exponents, column_exponents, m, n, k, a_batch, a_plane, b_batch, b_plane, out_batch, out_row, out_column,
    MODULI: tl.constexpr, FACTORS: tl.constexpr, WEIGHTS: tl.constexpr, PRODUCT: tl.constexpr, LIMBS: tl.constexpr,
    CHUNK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """out = A B from planes of residues, one tile a program: an exact product modulo each p, joined."""
    down, across = tl.cdiv(m, BM), tl.cdiv(n, BN)
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    tile = tl.program_id(0) % (down * across)
    height = tl.minimum(down - tile // (GROUP * across) * GROUP, GROUP)
    rows = (tile // (GROUP * across) * GROUP + tile % (GROUP * across) % height) * BM + tl.arange(0, BM)
    columns = tile % (GROUP * across) // height * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    wide_rows, wide_columns, wide_inner = rows.to(tl.int64), columns.to(tl.int64), inner.to(tl.int64)
    limbs = ()
    for _ in tl.static_range(LIMBS):
        limbs = limbs + (tl.zeros((BM, BN), tl.int64),)
    share = tl.zeros((BM, BN), tl.float64)
    for i in tl.static_range(len(MODULI)):
        rest = tl.zeros((BM, BN), tl.int32)
        for chunk in range(0, k, CHUNK):
            total = tl.zeros((BM, BN), tl.int32)
            for start in range(chunk, tl.minimum(chunk + CHUNK, k), BK):
                at = start + wide_inner
                left = a + tl.full((), i, tl.int64) * a_plane + batch * a_batch + wide_rows[:, None] * k + at[None, :]
                right = (
                    b + tl.full((), i, tl.int64) * b_plane + batch * b_batch + at[:, None] * n + wide_columns[None, :]
                )
                x = tl.load(left, mask=(rows[:, None] < m) & (inner[None, :] < k - start), other=0)
                y = tl.load(right, mask=(columns[None, :] < n) & (inner[:, None] < k - start), other=0)
                total = tl.dot(x, y, total)
            rest = _balanced(rest + _balanced(total, MODULI[i]), MODULI[i])
        rest = _balanced(rest * FACTORS[i], MODULI[i])
        share += rest.to(tl.float64) * (1.0 / MODULI[i])
        after = ()
        for j in tl.static_range(LIMBS):
            after = after + (limbs[j] + rest.to(tl.int64) * WEIGHTS[i][j],)
        limbs = after
    limbs = _plus_product(limbs, -tl.floor(share + 0.5).to(tl.int64), PRODUCT, 1, LIMBS)
    above = _plus_product(limbs, -1, PRODUCT, 2, LIMBS)[LIMBS - 1] >= 0
    below = _plus_product(limbs, 1, PRODUCT, 2, LIMBS)[LIMBS - 1] < 0
    limbs = _plus_product(limbs, below.to(tl.int64) - above.to(tl.int64), PRODUCT, 1, LIMBS)
    negative = limbs[LIMBS - 1] < 0
    sign = tl.where(negative, -1, 1).to(tl.int64)
    turned = ()
    for j in tl.static_range(LIMBS):
        turned = turned + (limbs[j] * sign,)
    value = _rounded(_carried(turned, LIMBS), LIMBS)
    value = tl.where(negative, -value, value)
    of_rows = tl.load(row_exponents + batch * m + rows, mask=rows < m, other=0)[:, None]
    of_columns = tl.load(column_exponents + batch * n + columns, mask=columns < n, other=0)[None, :]
    value = _times_power(value, of_rows + of_columns)
    places = batch * out_batch + wide_rows[:, None] * out_row + wide_columns[None, :] * out_column
    tl.store(out + places, value, mask=(rows[:, None] < m) & (columns[None, :] < n))
