"""Holds parts that the Gluon kernels of this folder share: layouts, instructions without a name in Gluon, tiles of a program.

The kernels use Gluon and not Triton's tiles, because each thread keeps 4 x 4 outputs and loads its own rows and columns, which
layouts describe. A kernel's constants, which :mod:`.modes` makes of a lowered accumulator, define what it computes.
"""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def tile_layout(EACH, WARPS):
    """Return the layout of a tile's outputs: EACH[0] x EACH[1] of each thread, 4 x 8 threads of a warp, WARPS[0] x WARPS[1]
    warps."""
    return gl.BlockedLayout([EACH[0], EACH[1]], [4, 8], [WARPS[0], WARPS[1]], [1, 0])


@gluon.constexpr_function
def tile_rows(EACH, WARPS):
    """Return the rows of a tile."""
    return 4 * EACH[0] * WARPS[0]


@gluon.constexpr_function
def tile_columns(EACH, WARPS):
    """Return the columns of a tile."""
    return 8 * EACH[1] * WARPS[1]


@gluon.constexpr_function
def thread_layout(EACH, THREADS, WARPS):
    """Return the layout of a tile's outputs, down and across: EACH of each thread, THREADS of a warp, WARPS of a block."""
    return gl.BlockedLayout([EACH[0], EACH[1]], [THREADS[0], THREADS[1]], [WARPS[0], WARPS[1]], [1, 0])


@gluon.constexpr_function
def extent(EACH, THREADS, WARPS, SIDE):
    """Return the rows (side 0) or columns (side 1) of a tile."""
    return EACH[SIDE] * THREADS[SIDE] * WARPS[SIDE]


# -- instructions that Gluon has no name for -----------------------------------------------------------------------------------
@gluon.jit
def fma_rz(x, y, z):
    """Return x y + z rounded toward zero, in FP64 or FP32."""
    if z.dtype == gl.float32:
        return gl.inline_asm_elementwise("fma.rz.f32 $0, $1, $2, $3;", "=f,f,f,f", [x, y, z], gl.float32, True, 1)
    else:
        return gl.inline_asm_elementwise("fma.rz.f64 $0, $1, $2, $3;", "=d,d,d,d", [x, y, z], gl.float64, True, 1)


@gluon.jit
def add_rz(x, y):
    """Return x + y rounded toward zero, in FP64 or FP32."""
    if y.dtype == gl.float32:
        return gl.inline_asm_elementwise("add.rz.f32 $0, $1, $2;", "=f,f,f", [x, y], gl.float32, True, 1)
    else:
        return gl.inline_asm_elementwise("add.rz.f64 $0, $1, $2;", "=d,d,d", [x, y], gl.float64, True, 1)


@gluon.jit
def add_rm(x, y):
    """Return x + y rounded toward minus infinity, in FP64."""
    return gl.inline_asm_elementwise("add.rm.f64 $0, $1, $2;", "=d,d,d", [x, y], gl.float64, True, 1)


@gluon.jit
def to_fp32_rz(x):
    """Return an FP64 number rounded toward zero to FP32."""
    return gl.inline_asm_elementwise("cvt.rz.f32.f64 $0, $1;", "=f,d", [x], gl.float32, True, 1)


@gluon.jit
def larger_of_pairs(x, y, PAIRS: gl.constexpr):
    """Return the larger number in each 16-bit half; with PAIRS "f16x2" by an FP16 maximum, which orders positive 15-bit numbers
    alike.
    """
    TEXT: gl.constexpr = "max." + PAIRS + " $0, $1, $2;"
    return gl.inline_asm_elementwise(TEXT, "=r,r,r", [x, y], gl.int32, True, 1)


@gluon.jit
def larger_sums(x, y, z, PAIRS: gl.constexpr):
    """Return the larger of x + y and z in each 16-bit half."""
    if PAIRS == "u16x2":
        total = gl.inline_asm_elementwise("add.u16x2 $0, $1, $2;", "=r,r,r", [x, y], gl.int32, True, 1)
    else:
        total = x + y
    return larger_of_pairs(total, z, PAIRS)


@gluon.jit
def counted(word, count, BYTES: gl.constexpr):
    """Return count + 128 for each byte of the word that is 0x80 and has 1 in BYTES, and - 128 for each that has 255 in
    BYTES."""
    return gl.inline_asm_elementwise(
        "dp4a.u32.s32 $0, $1, $2, $3;", "=r,r,r,r", [word, gl.full_like(word, BYTES), count], gl.int32, True, 1
    )


@gluon.jit
def permuted(x, ORDER: gl.constexpr):
    """Return the bytes of x in the order that the digits of ORDER give, the highest byte first."""
    return gl.inline_asm_elementwise(
        "prmt.b32 $0, $1, 0, $2;", "=r,r,r", [x, gl.full_like(x, ORDER)], gl.int32, True, 1
    )


@gluon.jit
def as_exponent(code, low):
    """Return the upper word of two words shifted by 20 places: an FP64 number's, whose exponent field is the code."""
    return gl.inline_asm_elementwise("shf.l.wrap.b32 $0, $1, $2, 20;", "=r,r,r", [low, code], gl.int32, True, 1)


@gluon.jit
def replicated(x, BITS: gl.constexpr):
    """Return the lowest BITS bits of x in every field of a word."""
    return permuted(x, 0x0000 if BITS == 8 else 0x1010)


@gluon.jit
def fp64_of(high, low):
    """Return the FP64 number that consists of two words."""
    return ((high.to(gl.int64) << 32) | low.to(gl.uint32, bitcast=True).to(gl.int64)).to(gl.float64, bitcast=True)


@gluon.jit
def fp64_of_high(high):
    """Return the FP64 number with the given upper word and the lower word 0."""
    return (high.to(gl.int64) << 32).to(gl.float64, bitcast=True)


@gluon.jit
def highest_place(x):
    """Return the place of the highest bit of integers below 2^24; -127 for 0."""
    return (x.to(gl.float32).to(gl.int32, bitcast=True) >> 23) - 127


@gluon.jit
def lowest_place(x):
    """Return the place of the lowest bit of integers below 2^24; -127 for 0."""
    return highest_place(x & -x)


@gluon.jit
def narrowed(d, steps, EVERY: gl.constexpr):
    """Return d in FP32, rounded to FP16 after every EVERY-th step."""
    if EVERY == 1:
        return d.to(gl.float16).to(gl.float32)
    else:
        return gl.where(steps % EVERY == 0, d.to(gl.float16).to(gl.float32), d)


# -- tiles ---------------------------------------------------------------------------------------------------------------------
#: Sizes and strides, which never become constants: a kernel is compiled once for all values.
ANY_VALUE = (
    *(
        "rows",
        "k",
        "code_batch",
        "code_row",
        "code_k",
        "scale_batch",
        "scale_row",
        "scale_k",
        "size",
        "m",
        "n",
        "steps",
        "chain",
    ),
    *("row_tiles", "column_tiles", "padded_k", "a_size", "b_size", "c_batch", "c_row", "c_column"),
)


@gluon.jit
def placed(row_tiles, column_tiles):
    """Return the program's number, batch (64 bits), tile of rows and tile of columns."""
    program = gl.program_id(0)
    column_tile = program % column_tiles
    row_tile = program // column_tiles % row_tiles
    return program, (program // column_tiles // row_tiles).to(gl.int64), row_tile, column_tile


@gluon.jit
def covered(row_tile, column_tile, m, n, L: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr):
    """Return rows and columns of a tile, and whether D has them."""
    rows = row_tile * BM + gl.arange(0, BM, gl.SliceLayout(1, L))
    columns = column_tile * BN + gl.arange(0, BN, gl.SliceLayout(0, L))
    return rows, columns, (rows[:, None] < m) & (columns[None, :] < n)


@gluon.jit
def elements(batch, rows, columns, of_batch, of_row, of_column):
    """Return the 64-bit offsets of a tile's elements, for strides of a batch, a row and a column."""
    return batch * of_batch + rows.to(gl.int64)[:, None] * of_row + columns.to(gl.int64)[None, :] * of_column


@gluon.jit
def mark(flags, program, flagged):
    """Store whether any element of a tile is flagged."""
    gl.store(flags + program, gl.max(gl.max(flagged.to(gl.int32), 1), 0))


@gluon.jit
def strange_tile(a_special, b_special, a_tile, b_tile, L: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr):
    """Return a mask of the elements of a tile that have an infinity or NaN in their row or column."""
    of_rows = gl.load(a_special + a_tile * BM + gl.arange(0, BM, gl.SliceLayout(1, L)))
    of_columns = gl.load(b_special + b_tile * BN + gl.arange(0, BN, gl.SliceLayout(0, L)))
    return (of_rows[:, None] | of_columns[None, :]) != 0


# -- operands ------------------------------------------------------------------------------------------------------------------
@gluon.jit
def taken_apart(bits, FORMAT: gl.constexpr):
    """Return sign, exponent field (0 of subnormal numbers), significand of encodings, and whether they are infinities or NaN.

    FORMAT holds exponent bits, fraction bits, bias, padding bits, place of the sign (-1: no sign), kind of special values.
    """
    EXPONENT: gl.constexpr = FORMAT[0]
    FRACTION: gl.constexpr = FORMAT[1]
    sign = (bits >> FORMAT[4]) & 1 if FORMAT[4] >= 0 else gl.zeros_like(bits)
    magnitude = (bits >> FORMAT[3]) & ((1 << (EXPONENT + FRACTION)) - 1)
    field = magnitude >> FRACTION
    if FORMAT[5] == "ieee":
        strange = field == (1 << EXPONENT) - 1
    elif FORMAT[5] == "fn":
        strange = magnitude == (1 << (EXPONENT + FRACTION)) - 1
    elif FORMAT[5] == "fnuz":
        strange = (magnitude == 0) & (sign == 1)
    else:
        strange = magnitude < 0
    significand = (magnitude & ((1 << FRACTION) - 1)) | gl.where(field > 0, 1 << FRACTION, 0)
    return sign, field, significand, strange.to(gl.int32)
