"""Defines the Triton kernels of Ozaki's scheme II on int8: residues of scaled integers, their products, the join of remainders.

Residues are planes in one array: all matrices for one modulus, then all for the next, with k along rows and padded by zeros. A
line is a row of A or a column of B. All integer arithmetic is exact. The join adds y_i (M / p_i) in limbs of 40 bits, subtracts
q M, and rounds once to FP64.
"""

# mypy: ignore-errors
import triton
import triton.language as tl

from mpgemm.kernels.source import tile_of

LIMB = tl.constexpr(40)
#: Exponent that marks a line with elements that are not finite.
LOST = tl.constexpr(1 << 20)


@triton.jit
def _double_power(exponent):
    """Return 2^exponent for exponents from -1022 to 1023."""
    return ((exponent.to(tl.int64) + 1023) << 52).to(tl.float64, bitcast=True)


@triton.jit
def _times_power(x, exponent):
    """Return x 2^exponent, rounded once; of three factors only the last can round, unless the result is 0 or infinite."""
    first = tl.minimum(tl.maximum(exponent, -1022), 1023)
    rest = exponent - first
    second = tl.minimum(tl.maximum(rest, -1022), 1023)
    third = tl.minimum(tl.maximum(rest - second, -1022), 1023)
    return x * _double_power(third) * _double_power(second) * _double_power(first)


@triton.jit
def _balanced(n, P: tl.constexpr):
    """Return the residue of n in [-p/2, p/2)."""
    rest = n % P
    rest = tl.where(rest < 0, rest + P, rest)
    return tl.where(rest >= (P + 1) // 2, rest - P, rest)


@triton.jit
def _residue(top, middle, low, P: tl.constexpr):
    """Return the residue of top 2^40 + middle 2^20 + low in [-p/2, p/2); its sum of reduced factors stays below 2^31."""
    of_top: tl.constexpr = ((1 << 40) + P // 2) % P - P // 2
    of_middle: tl.constexpr = ((1 << 20) + P // 2) % P - P // 2
    return _balanced(top * of_top + middle * of_middle + low, P)


@triton.jit
def _line_exponents(x, first, lines, k, x_line, x_k, BL: tl.constexpr, BK: tl.constexpr):
    """Return for each line the least e with abs(x) < 2^e for all elements, 0 for zeros, LOST if an element is not finite."""
    line, inner = first + tl.arange(0, BL), tl.arange(0, BK)
    places = x + line[:, None].to(tl.int64) * x_line + inner[None, :].to(tl.int64) * x_k
    most = tl.zeros((BL, BK), tl.float64)
    lost = tl.zeros((BL, BK), tl.int32)
    for start in range(0, k, BK):
        inside = (line[:, None] < lines) & (inner[None, :] < k - start)
        size = tl.abs(tl.load(places, mask=inside, other=0.0).to(tl.float64))
        lost = lost | ((size < float("inf")) == 0).to(tl.int32)
        most = tl.maximum(most, size)
        places += tl.full((), BK, tl.int64) * x_k
    largest = tl.max(most, 1)
    small = largest < 2.0**-900
    bits = tl.where(small, largest * 2.0**200, largest).to(tl.int64, bitcast=True)
    exponent = (bits >> 52).to(tl.int32) - 1022 - tl.where(small, 200, 0)
    return tl.where(tl.max(lost, 1) > 0, LOST, tl.where(largest > 0, exponent, 0))


@triton.jit
def _operand_residues(
    x, planes, exponents, program, lines, k, pitch, plane, x_batch, x_line, x_k, bits, MODULI: tl.constexpr,
    BL: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Store balanced residues of RZ(x 2^(bits - e)) for one program's lines of an operand; 0 for lines that are not finite."""
    across = tl.cdiv(lines, BL)
    batch, first = (program // across).to(tl.int64), program % across * BL
    x += batch * x_batch
    exponent = _line_exponents(x, first, lines, k, x_line, x_k, BL, BK)
    line, inner = first + tl.arange(0, BL), tl.arange(0, BK)
    tl.store(exponents + batch * lines + line, exponent, mask=line < lines)
    kept = (exponent < LOST)[:, None]
    shift = tl.where(kept, bits - exponent[:, None], 0)
    wide_line = line[:, None].to(tl.int64)
    for start in range(0, pitch, BK):
        at = start + inner[None, :]
        held = (line[:, None] < lines) & (at < pitch)
        places = x + wide_line * x_line + at.to(tl.int64) * x_k
        values = tl.load(places, mask=held & (at < k), other=0.0).to(tl.float64)
        whole = _times_power(tl.where(kept, values, 0.0), shift).to(tl.int64)
        top, middle, low = (
            (whole >> 40).to(tl.int32),
            (whole >> 20 & 0xFFFFF).to(tl.int32),
            (whole & 0xFFFFF).to(tl.int32),
        )
        out = planes + (batch * lines + wide_line) * pitch + at
        for i in tl.static_range(len(MODULI)):
            tl.store(
                out + tl.full((), i, tl.int64) * plane, _residue(top, middle, low, MODULI[i]).to(tl.int8), mask=held
            )


@triton.jit
def residues(
    a, b, a_residues, b_residues, row_exponents, column_exponents, a_programs, m, n, k, pitch, a_plane, b_plane, a_batch, a_row,
    a_k, b_batch, b_k, b_column, bits, MODULI: tl.constexpr, BL: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Store residues of A and B as planes of int8, and exponents of rows and columns; the first a_programs programs take A."""
    program = tl.program_id(0)
    if program < a_programs:
        _operand_residues(
            a, a_residues, row_exponents, program, m, k, pitch, a_plane, a_batch, a_row, a_k, bits, MODULI, BL, BK
        )
    else:
        _operand_residues(
            b, b_residues, column_exponents, program - a_programs, n, k, pitch, b_plane, b_batch, b_column, b_k, bits, MODULI,
            BL, BK,
        )  # fmt: skip


@triton.jit
def _carried(limbs, COUNT: tl.constexpr):
    """Return the limbs after carries: all in [0, 2^40) but the last, which is signed."""
    carry = tl.zeros_like(limbs[0])
    found = ()
    for j in tl.static_range(COUNT):
        value = limbs[j] + carry
        carry = value >> LIMB
        found = found + ((value - (carry << LIMB)) if j + 1 < COUNT else value,)
    return found


@triton.jit
def _plus_product(limbs, q, PRODUCT: tl.constexpr, FACTOR: tl.constexpr, COUNT: tl.constexpr):
    """Return FACTOR limbs + q M in limbs."""
    found = ()
    for j in tl.static_range(COUNT):
        found = found + (limbs[j] * FACTOR + q * PRODUCT[j],)
    return _carried(found, COUNT)


@triton.jit
def _rounded(limbs, COUNT: tl.constexpr):
    """Return a number in limbs, of which the last is not negative, rounded once to FP64.

    The three highest limbs count; all lower ones become one sticky bit. If the upper two are below 2^53, they are one exact
    number, and one addition rounds. From 2^54 on the lowest limb becomes a sticky bit of the middle one. In between, 63 bits
    are converted.
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
def _residue_tile(
    planes, first, line, lines, start, pitch, DESCRIBED: tl.constexpr, BL: tl.constexpr, BK: tl.constexpr
):
    """Return a tile of residues by TMA or by loads; `first` is the row of the plane where the matrix begins."""
    if DESCRIBED:
        return planes.load([(first + line).to(tl.int32), start])
    else:
        of_lines, inner = line + tl.arange(0, BL), start + tl.arange(0, BK)
        places = planes + (first + of_lines[:, None]).to(tl.int64) * pitch + inner[None, :]
        return tl.load(places, mask=of_lines[:, None] < lines, other=0)


@triton.jit
def residue_products(
    a, b, out, m, n, pitch, batches, MODULI: tl.constexpr, FACTORS: tl.constexpr, CHUNK: tl.constexpr, LONG: tl.constexpr,
    DESCRIBED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Store the products' remainders modulo each p, times the factor of the join, as planes of int8; a program has one tile.

    LONG: Whether k exceeds CHUNK, the number of products whose sum an int32 holds.
    """
    place, first_row, first_column = tile_of(m, n, BM, BN, GROUP)
    modulus = (place // batches).to(tl.int32)
    p, factor = MODULI[0], FACTORS[0]
    for i in tl.static_range(1, len(MODULI)):
        p = tl.where(modulus == i, MODULI[i], p)
        factor = tl.where(modulus == i, FACTORS[i], factor)
    if LONG:
        rest = tl.zeros((BM, BN), tl.int32)
        for chunk in range(0, pitch, CHUNK):
            total = tl.zeros((BM, BN), tl.int32)
            for start in range(chunk, tl.minimum(chunk + CHUNK, pitch), BK):
                x = _residue_tile(a, place * m, first_row, m, start, pitch, DESCRIBED, BM, BK)
                y = _residue_tile(b, place * n, first_column, n, start, pitch, DESCRIBED, BN, BK)
                total = tl.dot(x, y.T, total)
            rest = _balanced(rest + _balanced(total, p), p)
    else:
        total = tl.zeros((BM, BN), tl.int32)
        for start in range(0, pitch, BK):
            x = _residue_tile(a, place * m, first_row, m, start, pitch, DESCRIBED, BM, BK)
            y = _residue_tile(b, place * n, first_column, n, start, pitch, DESCRIBED, BN, BK)
            total = tl.dot(x, y.T, total)
        rest = _balanced(total, p)
    rest = _balanced(rest * factor, p)
    rows, columns = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN)
    places = out + (place * m + rows[:, None].to(tl.int64)) * n + columns[None, :]
    tl.store(places, rest.to(tl.int8), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def join_residues(
    remainders, out, row_exponents, column_exponents, m, n, plane, out_batch, out_row, out_column, bits,
    MODULI: tl.constexpr, WEIGHTS: tl.constexpr, PRODUCT: tl.constexpr, LIMBS: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Store in out, in FP64, the numbers that have these remainders; NaN in rows and columns that are not finite."""
    batch, first_row, first_column = tile_of(m, n, BM, BN, GROUP)
    rows, columns = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN)
    wide_rows, wide_columns = rows.to(tl.int64), columns.to(tl.int64)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    places = remainders + (batch * m + wide_rows[:, None]) * n + wide_columns[None, :]
    limbs = ()
    for _ in tl.static_range(LIMBS):
        limbs = limbs + (tl.zeros((BM, BN), tl.int64),)
    share = tl.zeros((BM, BN), tl.float64)
    for i in tl.static_range(len(MODULI)):
        rest = tl.load(places + tl.full((), i, tl.int64) * plane, mask=inside, other=0)
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
    value = _times_power(value, of_rows + of_columns - 2 * bits)
    value = tl.where((of_rows < LOST) & (of_columns < LOST), value, float("nan"))
    places = batch * out_batch + wide_rows[:, None] * out_row + wide_columns[None, :] * out_column
    tl.store(out + places, value, mask=inside)
