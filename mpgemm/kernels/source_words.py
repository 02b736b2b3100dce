"""Defines the Triton kernels that write the words of both operands to memory, and multiply words that TMA reads.

Words of an operand are planes in one array: word j of all batches, then word j + 1. A line is a row of A or a column of B. A
row of a plane holds one line (`INNER` is "k") or one k of all lines (`INNER` is "lines"); k is padded by zeros to whole tiles.
Chains, restarts and joining are those of :mod:`mpgemm.kernels.source`, so both kernels give the same bits.
"""

# mypy: ignore-errors
import triton
import triton.language as tl

from mpgemm.kernels.source import (
    begun,
    chained_products,
    joined,
    part_of,
    plane_offset,
    store_tile,
    tile_of,
    times_power,
    words_of,
)


@triton.jit
def _line_exponents(x, first, lines, k, x_line, x_k, TOP, SIGNIFICAND, BL: tl.constexpr, BK: tl.constexpr):
    """Return for each line the exponent that brings its largest finite element just below the words' target.

    TOP, SIGNIFICAND: Target SIGNIFICAND 2^(TOP - 24), rounded down to 24 bits.
    """
    line, inner = first + tl.arange(0, BL), tl.arange(0, BK)
    places = x + line[:, None].to(tl.int64) * x_line + inner[None, :].to(tl.int64) * x_k
    most = tl.zeros((BL, BK), tl.float32)
    for start in range(0, k, BK):
        inside = (line[:, None] < lines) & (inner[None, :] < k - start)
        size = tl.abs(tl.load(places, mask=inside, other=0.0).to(tl.float32))
        most = tl.maximum(most, tl.where(size < float("inf"), size, 0.0))
        places += tl.full((), BK, tl.int64) * x_k
    largest = tl.max(most, 1)
    small = largest < 2.0**-100
    bits = tl.where(small, largest * 2.0**100, largest).to(tl.int32, bitcast=True)
    exponent = (bits >> 23) - 126 - tl.where(small, 100, 0)
    over = ((bits & 0x7FFFFF) | 0x800000) > SIGNIFICAND
    return tl.where(largest > 0, TOP - exponent - over.to(tl.int32), 0)


@triton.jit
def _split_operand(
    x, words, exponents, program, lines, k, padded, pitch, plane, x_batch, x_line, x_k, top, significand, COUNT: tl.constexpr,
    INNER: tl.constexpr, FORMAT: tl.constexpr, ROUNDING: tl.constexpr, SCALE: tl.constexpr, SCALED: tl.constexpr,
    BL: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Split one program's lines of an operand: all of k if lines are scaled, else one tile of k."""
    across = tl.cdiv(lines, BL)
    steps = 1 if SCALED else tl.cdiv(padded, BK)
    batch = (program // (across * steps)).to(tl.int64)
    first = program // steps % across * BL
    begin = program % steps * BK
    line = first + tl.arange(0, BL)
    x += batch * x_batch
    shift = 0
    if SCALED:
        e = _line_exponents(x, first, lines, k, x_line, x_k, top, significand, BL, BK)
        tl.store(exponents + batch * lines + line, e, mask=line < lines)
        shift = e[:, None]
    wide_line = line[:, None].to(tl.int64)
    for start in range(begin, padded if SCALED else begin + BK, BK):
        inner = start + tl.arange(0, BK)
        wide_inner = inner[None, :].to(tl.int64)
        held = (line[:, None] < lines) & (inner[None, :] < padded)
        places = x + wide_line * x_line + wide_inner * x_k
        values = tl.load(places, mask=held & (inner[None, :] < k), other=0.0).to(tl.float32)
        if SCALED:
            values = times_power(values, shift)
        if INNER == "k":
            at = (batch * lines + wide_line) * pitch + wide_inner
        else:
            at = (batch * padded + wide_inner) * pitch + wide_line
        made = words_of(values, COUNT, SCALE, FORMAT, ROUNDING)
        for j in tl.static_range(COUNT):
            tl.store(words + plane_offset(j, plane) + at, made[j], mask=held)


@triton.jit
def split_operands(
    a, b, a_words, b_words, row_exponents, column_exponents, a_programs, m, n, k, padded, a_pitch, b_pitch, a_plane, b_plane,
    a_batch, a_row, a_k, b_batch, b_k, b_column, top, significand,
    WORDS: tl.constexpr, INNER: tl.constexpr, FORMAT: tl.constexpr, ROUNDING: tl.constexpr, SCALE: tl.constexpr,
    SCALED: tl.constexpr, A_LINES: tl.constexpr, A_DEPTH: tl.constexpr, B_LINES: tl.constexpr, B_DEPTH: tl.constexpr,
):  # fmt: skip
    """Write the words of A, of B, or of both, with the exponents of rows and columns if these are scaled.

    An operand that is None is left out; the first a_programs programs split A. INNER: "k" or "lines" for A and for B.
    """
    program = tl.program_id(0)
    if program < a_programs:
        if a is not None:
            _split_operand(
                a, a_words, row_exponents, program, m, k, padded, a_pitch, a_plane, a_batch, a_row, a_k, top, significand,
                WORDS[0], INNER[0], FORMAT, ROUNDING, SCALE, SCALED, A_LINES, A_DEPTH,
            )  # fmt: skip
    else:
        if b is not None:
            _split_operand(
                b, b_words, column_exponents, program - a_programs, n, k, padded, b_pitch, b_plane, b_batch, b_column, b_k, top,
                significand, WORDS[1], INNER[1], FORMAT, ROUNDING, SCALE, SCALED, B_LINES, B_DEPTH,
            )  # fmt: skip


@triton.jit
def _boxes(words, first, line, start, plane, COUNT: tl.constexpr, INNER: tl.constexpr, FLIP: tl.constexpr):
    """Return a tile of each word, which TMA reads at a line and a place of k; with FLIP the box is the transposed tile."""
    tiles = ()
    for j in tl.static_range(COUNT):
        at = first + j * plane
        tile = words.load([at + line, start]) if INNER == "k" else words.load([at + start, line])
        tiles = tiles + (tile.T if FLIP else tile,)
    return tiles


@triton.jit
def word_product(
    a, b, c, out, bias, flags, row_exponents, column_exponents, m, n, k, part_k, a_first, a_plane, b_first, b_plane, c_batch,
    c_row, c_column, out_batch, out_row, out_column, alpha, beta,
    FORMAT: tl.constexpr, ROUNDING: tl.constexpr, WORDS: tl.constexpr, SCALE: tl.constexpr, PRODUCTS: tl.constexpr,
    CHAINS: tl.constexpr, RESTARTS: tl.constexpr, LEVELS: tl.constexpr, SHIFTS: tl.constexpr, START: tl.constexpr,
    INNER: tl.constexpr, SCALED: tl.constexpr, ADD: tl.constexpr, SEED: tl.constexpr, FACTORS: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, MARK: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Store alpha A B + beta C with the epilogue in out, from planes of words that TMA descriptors a and b describe.

    A program computes one tile, or with PARTS the sum of one part of k; k is a multiple of BK, because planes are padded.

    a_first, b_first: Rows of a plane between batches, 0 if all batches share an operand. a_plane, b_plane: Rows between words.
    """
    place, first_row, first_column = tile_of(m, n, BM, BN, GROUP)
    batch, begin, end = part_of(place, k, part_k, PARTS)
    rows, columns = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN)
    PRECISION: tl.constexpr = "tf32" if FORMAT == "tf32" else "ieee"
    sums = begun(c, m, n, batch, first_row, first_column, c_batch, c_row, c_column, len(RESTARTS), START, SEED, BM, BN)
    of_a, of_b = batch.to(tl.int32) * a_first, batch.to(tl.int32) * b_first
    for start in range(begin, end, BK):
        x = _boxes(a, of_a, first_row, start, a_plane, WORDS[0], INNER[0], INNER[0] != "k")
        y = _boxes(b, of_b, first_column, start, b_plane, WORDS[1], INNER[1], INNER[1] == "k")
        sums = chained_products(sums, x, y, PRODUCTS, CHAINS, RESTARTS, PRECISION)
    value = joined(sums, LEVELS, SHIFTS)
    if SCALED and PARTS == 1:
        of_rows = tl.load(row_exponents + batch * tl.minimum(a_first, 1) * m + rows, mask=rows < m, other=0)
        of_columns = tl.load(column_exponents + batch * tl.minimum(b_first, 1) * n + columns, mask=columns < n, other=0)
        value = times_power(value, -(of_rows[:, None] + of_columns[None, :]))
    store_tile(
        value, c, out, bias, flags, m, n, place, first_row, first_column, c_batch, c_row, c_column, out_batch, out_row,
        out_column, alpha, beta, ADD, FACTORS, BIAS, ACTIVATION, MARK, BM, BN,
    )  # fmt: skip
