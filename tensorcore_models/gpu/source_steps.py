"""Holds parts that the kernels of sums on a window share: an operand's steps in shared memory, exponents, floors,
corrections."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from .source import counted, fma_rz, fp64_of, larger_sums


@gluon.jit
def operand_at(values, words, tile, padded_k, size, ROWS: gl.constexpr, BITS: gl.constexpr):
    """Return the pointers to a tile of an operand: values, pairs of exponents, codes of lowest bits, signs."""
    PER: gl.constexpr = 32 // BITS
    size = size.to(gl.int64)
    code = words + size * 8 + tile * (padded_k // PER) * ROWS
    pair = words + tile * (padded_k // 2) * ROWS
    return values + tile * padded_k * ROWS, pair, code, code + size * (16 // PER)


# -- shared memory -----------------------------------------------------------------------------------------------------------
# STAGES steps of an operand are in shared memory or on their way there. Values, pairs, codes and signs each have a room (part
# of shared memory) of STAGES blocks of rows. A row holds the elements of a tile's lines at one place of k. A step is named by
# (rooms as rows, its slot).
@gluon.constexpr_function
def copy_layout(COLUMNS, VEC, WARPS):
    """Return the layout of vectors of VEC elements, in which a warp covers as much of a row as there is."""
    across = min(32, COLUMNS // VEC)
    return gl.BlockedLayout([1, VEC], [32 // across, across], [WARPS, 1], [1, 0])


@gluon.jit
def room(TYPE: gl.constexpr, STAGES: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    """Return shared memory for STAGES blocks of rows, as (blocks, rows)."""
    BLOCK: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[1, 0])
    ROW: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    blocks = gl.allocate_shared_memory(TYPE, [STAGES, ROWS, COLUMNS], BLOCK)
    return blocks, blocks.reinterpret(TYPE, [STAGES * ROWS, COLUMNS], ROW)


@gluon.jit
def copy_rows(
    source, blocks, step, slot, steps, ROWS: gl.constexpr, COLUMNS: gl.constexpr, VEC: gl.constexpr, WARPS: gl.constexpr
):
    """Start to copy the rows of a step; after the last step, copy nothing."""
    C: gl.constexpr = copy_layout(COLUMNS, VEC, WARPS)
    down = gl.arange(0, ROWS, gl.SliceLayout(1, C))
    across = gl.arange(0, COLUMNS, gl.SliceLayout(0, C))
    at = source + step.to(gl.int64) * (ROWS * COLUMNS) + down[:, None] * COLUMNS + across[None, :]
    inside = (down[:, None] >= 0) & (across[None, :] >= 0) & (step < steps)
    async_copy.async_load(blocks.index(slot), at, mask=inside)


@gluon.jit
def copy_step(
    at, rooms, step, slot, steps, COLUMNS: gl.constexpr, TERMS: gl.constexpr, BITS: gl.constexpr, WARPS: gl.constexpr
):
    """Start to copy an operand's values, pairs, codes and signs of a step."""
    WORDS: gl.constexpr = TERMS * BITS // 32
    VEC: gl.constexpr = 16 // (at[0].dtype.element_ty.primitive_bitwidth // 8)
    copy_rows(at[0], rooms[0][0], step, slot, steps, TERMS, COLUMNS, VEC, WARPS)
    copy_rows(at[1], rooms[1][0], step, slot, steps, TERMS // 2, COLUMNS, 4, WARPS)
    copy_rows(at[2], rooms[2][0], step, slot, steps, WORDS, COLUMNS, 4, WARPS)
    copy_rows(at[3], rooms[3][0], step, slot, steps, WORDS, COLUMNS, 4, WARPS)


@gluon.jit
def rooms_of(VALUE: gl.constexpr, STAGES: gl.constexpr, COLUMNS: gl.constexpr, TERMS: gl.constexpr, BITS: gl.constexpr):
    """Return the shared memory of an operand."""
    WORDS: gl.constexpr = TERMS * BITS // 32
    return (
        room(VALUE, STAGES, TERMS, COLUMNS),
        room(gl.int32, STAGES, TERMS // 2, COLUMNS),
        room(gl.int32, STAGES, WORDS, COLUMNS),
        room(gl.int32, STAGES, WORDS, COLUMNS),
    )


@gluon.jit
def step_at(rooms, slot):
    """Return a copied step: values, pairs, codes, signs, slot."""
    return rooms[0][1], rooms[1][1], rooms[2][1], rooms[3][1], slot


@gluon.jit
def lines_at(step, WHICH: gl.constexpr, COUNT: gl.constexpr, j: gl.constexpr, DIM: gl.constexpr, L: gl.constexpr):
    """Load the values of a tile's rows (DIM 1) or columns (DIM 0) at the j-th of COUNT places of a step."""
    return gl.expand_dims(step[WHICH].index(step[4] * COUNT + j).load(gl.SliceLayout(DIM, L)), DIM)


# -- sums --------------------------------------------------------------------------------------------------------------------
@gluon.jit
def largest(
    a_at, b_at, LEAST: gl.constexpr, ROWS: gl.constexpr, COLUMNS: gl.constexpr, L: gl.constexpr, TERMS: gl.constexpr,
    PAIRS: gl.constexpr,
):  # fmt: skip
    """Return the largest sum of exponents of even k and of odd k in the two halves, each at least LEAST."""
    found = gl.full([ROWS, COLUMNS], LEAST * 0x10001, gl.int32, L)
    for j in gl.static_range(TERMS // 2):
        x, y = lines_at(a_at, 1, TERMS // 2, j, 1, L), lines_at(b_at, 1, TERMS // 2, j, 0, L)
        found = larger_sums(x, y, found, PAIRS)
    return found


#: Value from which counts of inexact negative products go down by 128 each.
MOST_COUNTED = gl.constexpr(1 << 30)


@gluon.jit
def inexact_negatives(
    a_at, b_at, threshold, WORDS: gl.constexpr, UP: gl.constexpr, GROUPS: gl.constexpr, GROUP: gl.constexpr,
):  # fmt: skip
    """Return 128 for each negative product with bits below the unit, of all k or of one group, counted up from 0 or down from
    MOST_COUNTED.
    """
    EVERY: gl.constexpr = 0x01010101 if GROUPS == 1 else 0x00010001 << (8 * GROUP)
    BYTES: gl.constexpr = EVERY if UP else EVERY * 0xFF
    count = gl.full_like(threshold, 0 if UP else MOST_COUNTED)
    L: gl.constexpr = threshold.type.layout
    for j in gl.static_range(WORDS):
        x, y = lines_at(a_at, 2, WORDS, j, 1, L), lines_at(b_at, 2, WORDS, j, 0, L)
        minus = lines_at(a_at, 3, WORDS, j, 1, L) ^ lines_at(b_at, 3, WORDS, j, 0, L)
        count = counted((x + y + threshold) & minus, count, BYTES)
    return count


@gluon.jit
def floored(a_at, b_at, total, TERMS: gl.constexpr, FIRST: gl.constexpr, EVERY: gl.constexpr):
    """Return total + the products of every EVERY-th k from FIRST on, each rounded down to the unit of total."""
    L: gl.constexpr = total.type.layout
    for k in gl.static_range(FIRST, TERMS, EVERY):
        total = fma_rz(lines_at(a_at, 0, TERMS, k, 1, L), lines_at(b_at, 0, TERMS, k, 0, L), total)
    return total


@gluon.jit
def lifted(units, count):
    """Return a sum on its window plus count / 128 units, because truncation is one unit above floor for inexact negative
    products."""
    if units.dtype == gl.float32:
        return (units.to(gl.int32, bitcast=True) + (count >> 7)).to(gl.float32, bitcast=True)
    else:
        return (units.to(gl.int64, bitcast=True) + (count >> 7).to(gl.int64)).to(gl.float64, bitcast=True)


@gluon.jit
def window(high):
    """Return the window of 1.5 2^52 units with the given upper word.

    Its lower word is the largest number that counts can subtract.
    """
    return fp64_of(high, gl.full_like(high, MOST_COUNTED >> 7))


@gluon.jit
def above_window(total, high, count):
    """Return total, raised by the counts subtracted so far, minus its window: fewer instructions, but more registers."""
    return total - fp64_of(high, count >> 7)
