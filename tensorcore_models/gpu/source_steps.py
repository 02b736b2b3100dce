"""What the kernels of sums on a window of FP64 share: an operand's places in memory, exponents, floors and what they lack."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import counted, fma_rz, fp64_of, larger_sums


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
    a_at, b_at, LEAST: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr, L: gl.constexpr, TERMS: gl.constexpr,
    PAIRS: gl.constexpr,
):  # fmt: skip
    """The largest sum of exponents of even and of odd k, in the two halves, LEAST at least."""
    found = gl.full([ROWS, COLUMNS], LEAST * 0x10001, gl.int32, L)
    for j in gl.static_range(TERMS // 2):
        x, y = gl.load(a_at[1] + j * ROWS), gl.load(b_at[1] + j * COLUMNS)
        found = larger_sums(gl.expand_dims(x, 1), gl.expand_dims(y, 0), found, PAIRS)
    return found


#: Counts of inexact negative products go down from here by 128 each.
MOST_COUNTED = gl.constexpr(1 << 30)


@gluon.jit
def inexact_negatives(
    a_at, b_at, threshold, ROWS: gl.constexpr, COLUMNS: gl.constexpr, WORDS: gl.constexpr, UP: gl.constexpr,
    GROUPS: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """128 for each negative product that has bits below the unit, of all k or of one of two groups of these: counted up from 0,
    or down from MOST_COUNTED.
    """
    EVERY: gl.constexpr = 0x01010101 if GROUPS == 1 else 0x00010001 << (8 * GROUP)
    BYTES: gl.constexpr = EVERY if UP else EVERY * 0xFF
    count = gl.full_like(threshold, 0 if UP else MOST_COUNTED)
    for j in gl.static_range(WORDS):
        x = gl.expand_dims(gl.load(a_at[2] + j * ROWS), 1)
        y = gl.expand_dims(gl.load(b_at[2] + j * COLUMNS), 0)
        minus = gl.expand_dims(gl.load(a_at[3] + j * ROWS), 1) ^ gl.expand_dims(gl.load(b_at[3] + j * COLUMNS), 0)
        count = counted((x + y + threshold) & minus, count, BYTES)
    return count


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
    """units + count / 128 units, a sum on its window: toward zero is one unit above down for inexact negative products."""
    if units.dtype == gl.float32:
        return (units.to(gl.int32, bitcast=True) + (count >> 7)).to(gl.float32, bitcast=True)
    else:
        return (units.to(gl.int64, bitcast=True) + (count >> 7).to(gl.int64)).to(gl.float64, bitcast=True)


@gluon.jit
def window(high):
    """1.5 2^52 units, or about as many, of which the upper word is given; below, as many as counts take away at most."""
    return fp64_of(high, gl.full_like(high, MOST_COUNTED >> 7))


@gluon.jit
def above_window(total, high, count):
    """total, lifted by what was counted down, less its window: fewer instructions, and more registers."""
    return total - fp64_of(high, count >> 7)
