"""What the kernels of sums on a window of FP64 share: an operand's places in memory, exponents, floors and what they lack."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import add_rz, counted, fma_rz, fp64_of_high, larger_sums


@gluon.jit
def operand_at(values, words, tile, padded_k, size, lanes, ROWS: gl.constexpr, BITS: gl.constexpr):
    """Where a tile of an operand starts: (values, pairs of exponents, codes of lowest bits, signs)."""
    PER: gl.constexpr = 32 // BITS
    size = size.to(gl.int64)
    code = words + size * 8 + tile * (padded_k // PER) * ROWS + lanes
    pair = words + tile * (padded_k // 2) * ROWS + lanes
    return values + tile * padded_k * ROWS + lanes, pair, code, code + size * (16 // PER)


@gluon.jit
def advanced(at, ROWS: gl.constexpr, TERMS: gl.constexpr, BITS: gl.constexpr):
    """The places of the next step."""
    WORDS: gl.constexpr = TERMS * BITS // 32
    return at[0] + TERMS * ROWS, at[1] + TERMS // 2 * ROWS, at[2] + WORDS * ROWS, at[3] + WORDS * ROWS


@gluon.jit
def largest(
    a_at, b_at, ROWS: gl.constexpr, COLUMNS: gl.constexpr, L: gl.constexpr, TERMS: gl.constexpr, PAIRS: gl.constexpr
):
    """The largest sum of exponents of even and of odd k, in the two halves."""
    found = gl.zeros([ROWS, COLUMNS], gl.int32, L)
    for j in gl.static_range(TERMS // 2):
        x, y = gl.load(a_at[1] + j * ROWS), gl.load(b_at[1] + j * COLUMNS)
        found = larger_sums(gl.expand_dims(x, 1), gl.expand_dims(y, 0), found, PAIRS)
    return found


@gluon.jit
def inexact_negatives(a_at, b_at, threshold, ROWS: gl.constexpr, COLUMNS: gl.constexpr, WORDS: gl.constexpr):
    """How many negative products have bits below the unit, times 128, of all k, and of odd k alone."""
    count, odd = gl.zeros_like(threshold), gl.zeros_like(threshold)
    for j in gl.static_range(WORDS):
        x = gl.expand_dims(gl.load(a_at[2] + j * ROWS), 1)
        y = gl.expand_dims(gl.load(b_at[2] + j * COLUMNS), 0)
        minus = gl.expand_dims(gl.load(a_at[3] + j * ROWS), 1) ^ gl.expand_dims(gl.load(b_at[3] + j * COLUMNS), 0)
        found = (x + y + threshold) & minus
        count, odd = counted(found, count, 0x01010101), counted(found, odd, 0x01000100)
    return count, odd


@gluon.jit
def floored(
    a_at, b_at, total, ROWS: gl.constexpr, COLUMNS: gl.constexpr, TERMS: gl.constexpr, FIRST: gl.constexpr,
    EVERY: gl.constexpr,
):  # fmt: skip
    """total + the products of every EVERY-th k from FIRST on, each rounded down to the unit of total."""
    for k in gl.static_range(FIRST, TERMS, EVERY):
        x, y = gl.load(a_at[0] + k * ROWS), gl.load(b_at[0] + k * COLUMNS)
        total = fma_rz(gl.expand_dims(x, 1), gl.expand_dims(y, 0), total)
    return total


@gluon.jit
def lifted(units, count):
    """units + count / 128 units, a sum on its window: toward zero is one unit above down for negative products."""
    if units.dtype == gl.float32:
        return (units.to(gl.int32, bitcast=True) + (count >> 7)).to(gl.float32, bitcast=True)
    else:
        return (units.to(gl.int64, bitcast=True) + (count >> 7).to(gl.int64)).to(gl.float64, bitcast=True)


@gluon.jit
def window(top, FRACTION: gl.constexpr):
    """1.5 2^52 units of 2^-FRACTION below an exponent, which is given where FP64 has it, in its upper word."""
    return fp64_of_high(top + (((52 - FRACTION) << 20) + 0x80000))


@gluon.jit
def on_unit(x, base):
    """x rounded down to the unit of a window."""
    return add_rz(base, x) - base
