"""Holds the Gluon kernels of Programs: any family's recorded passes, given as constants, in integers on any GPU."""

# mypy: ignore-errors
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .source import ANY_VALUE, covered, elements, extent, placed, thread_layout

_TYPES = {"bool": gl.int1, "int32": gl.int32, "uint32": gl.uint32, "int64": gl.int64}


@gluon.constexpr_function
def count_of(LINE):
    """Return the number of steps of a line."""
    return len(LINE.steps)


@gluon.constexpr_function
def step_of(LINE, AT, WHAT):
    """Return the name, type or constant of a step."""
    found = getattr(LINE.steps[AT], WHAT)
    return _TYPES[found] if WHAT == "type" else found


@gluon.constexpr_function
def source_of(LINE, AT, PLACE):
    """Return a source of a step; the last one if it has fewer."""
    sources = LINE.steps[AT].sources
    return sources[min(PLACE, len(sources) - 1)]


@gluon.constexpr_function
def sources_of(LINE, AT):
    """Return the number of sources of a step."""
    return len(LINE.steps[AT].sources)


@gluon.constexpr_function
def wanted(LINE, WHAT):
    """Return the steps that are the results of a line, or its rare conditions."""
    return getattr(LINE, WHAT)


@gluon.constexpr_function
def item(X, PLACE):
    """Return an item of a constant."""
    return X[PLACE]


@gluon.jit
def natural(code, TYPE: gl.constexpr):
    """Return an encoding as a natural number."""
    return code.to(gl.uint32, bitcast=True).to(TYPE)


@gluon.jit
def places_above(word):
    """Return the number of leading zeros of a 32-bit word by AMD's instruction, which gives 2^32 - 1 for zero."""
    return gl.inline_asm_elementwise("v_ffbh_u32 $0, $1", "=v,v", [word], gl.uint32, True, 1)


@gluon.jit
def leading_zeros(x, CLAMPS: gl.constexpr):
    """Return the number of leading zeros of an integer, by instructions of NVIDIA with CLAMPS, else of AMD."""
    if CLAMPS:
        if x.dtype == gl.int64:
            return gl.inline_asm_elementwise("clz.b64 $0, $1;", "=r,l", [x], gl.int32, True, 1)
        else:
            return gl.inline_asm_elementwise("clz.b32 $0, $1;", "=r,r", [x], gl.int32, True, 1)
    elif x.dtype == gl.int64:
        below = gl.minimum(places_above(x.to(gl.int32)), 32) + 32
        return gl.minimum(places_above((x >> 32).to(gl.int32)), below).to(gl.int32)
    else:
        return gl.minimum(places_above(x.to(gl.int32)), 32).to(gl.int32)


@gluon.jit
def shifted_down(x, places, MOST: gl.constexpr, SIGNED: gl.constexpr, CLAMPS: gl.constexpr):
    """Return x / 2^places rounded down; from MOST places on, the result is the same (0: no larger shift occurs).

    With CLAMPS, instructions take any number of places, as NVIDIA's do.
    """
    if CLAMPS and MOST > 0:
        x, places = gl.broadcast(x, places.to(gl.int32))
        if x.dtype == gl.int64:
            TEXT: gl.constexpr = "shr.s64 $0, $1, $2;" if SIGNED else "shr.u64 $0, $1, $2;"
            return gl.inline_asm_elementwise(TEXT, "=l,l,r", [x, places], x.dtype, True, 1)
        else:
            WORD: gl.constexpr = "shr.s32 $0, $1, $2;" if SIGNED else "shr.u32 $0, $1, $2;"
            return gl.inline_asm_elementwise(WORD, "=r,r,r", [x, places], x.dtype, True, 1)
    else:
        return x >> (gl.minimum(places, MOST) if MOST > 0 else places).to(x.dtype)


@gluon.jit
def goes_down(kept, negative, ROUNDING: gl.constexpr):
    """Return 1 if a tie goes toward zero, else 0; None for roundings in which no tie does."""
    if ROUNDING == "rna":
        return None
    elif ROUNDING == "rne":
        return (kept & 1) ^ 1
    elif ROUNDING == "rno":
        return kept & 1
    elif ROUNDING == "rnu":
        return negative.to(kept.dtype)
    elif ROUNDING == "rnd":
        return (negative == 0).to(kept.dtype)
    else:
        gl.static_assert(ROUNDING == "rnz")
        return gl.full_like(kept, 1)


@gluon.jit
def shifted(x, places, negative, ROUNDING: gl.constexpr, MOST: gl.constexpr, SOME: gl.constexpr, CLAMPS: gl.constexpr):
    """Return x / 2^places rounded, for natural numbers; MOST and CLAMPS are those of :func:`shifted_down`; with SOME, places
    are never 0.

    Rounding to nearest adds half of the last place, minus 1 if a tie goes toward zero.
    """
    if MOST > 0 and ROUNDING != "rz":
        places = gl.minimum(places, MOST)
    kept = shifted_down(x, places, MOST if ROUNDING == "rz" else 0, False, CLAMPS)
    places = places.to(x.dtype)
    if ROUNDING == "rz":
        return kept
    elif ROUNDING == "ro":
        return kept | ((kept << places) != x).to(x.dtype)
    elif ROUNDING == "ra" or ROUNDING == "ru" or ROUNDING == "rd":
        lost = (kept << places) != x
        if ROUNDING == "ru":
            lost = lost & (negative == 0)
        if ROUNDING == "rd":
            lost = lost & negative
        return kept + lost.to(x.dtype)
    else:
        one = gl.full_like(x, 1)
        half = one << (places - 1) if SOME else (one << places) >> 1
        down = goes_down(kept, negative, ROUNDING)
        if down is not None:
            half -= down if SOME else gl.minimum(half, down)
        return (x + half) >> places


@gluon.jit
def operation(x, y, z, NAME: gl.constexpr, TYPE: gl.constexpr, CONSTANT: gl.constexpr, CLAMPS: gl.constexpr):
    """Return the value that a step computes from its sources."""
    if NAME == "true":
        return x != 0
    elif NAME == "no":
        return x == 0 if gl.int1 == TYPE else ~x
    elif NAME == "both":
        return x & y
    elif NAME == "either":
        return x | y
    elif NAME == "differ":
        return x ^ y
    elif NAME == "choose":
        return gl.where(x, y.to(TYPE), z.to(TYPE))
    elif NAME == "shr":
        return shifted(x.to(TYPE), y, z, item(CONSTANT, 0), item(CONSTANT, 1), item(CONSTANT, 2), CLAMPS)
    elif NAME == "places":
        return leading_zeros(x.to(TYPE), CLAMPS) - ((63 if gl.int64 == TYPE else 31) - CONSTANT)
    elif NAME == "signed":
        return gl.where(x, -y.to(TYPE), y.to(TYPE))
    elif NAME == "floor":
        return shifted_down(x.to(TYPE), y, 63 if gl.int64 == TYPE else 31, True, CLAMPS)
    elif NAME == "magnitude":
        return gl.abs(x.to(TYPE))
    else:
        x, y = x.to(TYPE), y.to(TYPE)
        if NAME == "add":
            return x + y
        elif NAME == "subtract":
            return x - y
        elif NAME == "multiply":
            return x * y
        elif NAME == "shl":
            return x << y
        elif NAME == "mask":
            return x & y
        elif NAME == "larger":
            return gl.maximum(x, y)
        elif NAME == "less":
            return x < y
        elif NAME == "same":
            return x == y
        else:
            gl.static_assert(NAME == "sign")
            return (x ^ y) - y


@gluon.jit
def given(
    code, scale, pa, qa, pb, qb, NAME: gl.constexpr, TYPE: gl.constexpr, CONSTANT: gl.constexpr, BM: gl.constexpr,
    BN: gl.constexpr,
):  # fmt: skip
    """Return the value of a step without sources, with the arguments of :func:`line_values`."""
    if NAME == "code":
        return natural(code, TYPE)
    elif NAME == "scale":
        return natural(scale, TYPE)
    elif NAME == "constant":
        return gl.full_like(code, CONSTANT, dtype=TYPE)
    elif NAME == "a_words":
        return gl.load(pa + CONSTANT * BM)[:, None]
    elif NAME == "a_longs":
        return gl.load(qa + CONSTANT * BM)[:, None]
    elif NAME == "b_words":
        return gl.load(pb + CONSTANT * BN)[None, :]
    else:
        gl.static_assert(NAME == "b_longs")
        return gl.load(qb + CONSTANT * BN)[None, :]


@gluon.jit
def line_values(
    code, scale, pa, qa, pb, qb, LINE: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, CLAMPS: gl.constexpr
):  # fmt: skip
    """Return the values of all steps of a line.

    `code` is the encoding of the addend or of an operand, `scale` that of its block scale; `pa`, `pb` are 32-bit words of
    operands, `qa`, `qb` 64-bit numbers.
    """
    values = ()
    for i in gl.static_range(count_of(LINE)):
        if sources_of(LINE, i) == 0:
            found = given(
                code, scale, pa, qa, pb, qb, step_of(LINE, i, "name"), step_of(LINE, i, "type"),
                step_of(LINE, i, "constant"), BM, BN,
            )  # fmt: skip
        else:
            found = operation(
                values[source_of(LINE, i, 0)], values[source_of(LINE, i, 1)], values[source_of(LINE, i, 2)],
                step_of(LINE, i, "name"), step_of(LINE, i, "type"), step_of(LINE, i, "constant"), CLAMPS,
            )  # fmt: skip
        values = values + (found,)
    return values


@gluon.jit(do_not_specialize=ANY_VALUE)
def pack_program(
    codes, words, longs, special, scales, rows, k, code_batch, code_row, code_k, scale_batch, scale_row, scale_k, row_tiles,
    padded_k,
    LINE: gl.constexpr, BITS: gl.constexpr, SCALE: gl.constexpr, PLACES: gl.constexpr, COUNTS: gl.constexpr,
    TILE: gl.constexpr, LANES: gl.constexpr, CLAMPS: gl.constexpr,
):  # fmt: skip
    """Store the values that a Program takes of an operand, for one k of a tile of rows: [batch][tile][k][value][row].

    - LINE: steps from an encoding of BITS bits and its block scale to these values.
    - SCALE: number of products that share a scale, and its bits.
    - PLACES: places of the values, in words (counted from 0) or in 64-bit numbers (-1, -2 and so on). A value beyond them says
      whether the Program leaves the operand to another Program.
    - COUNTS: number of words, and of 64-bit numbers, of an operand.
    """
    layout: gl.constexpr = gl.BlockedLayout([1], [LANES], [1], [0])
    program = gl.program_id(0)
    at_k = program % padded_k
    tile = program // padded_k % row_tiles
    batch = (program // padded_k // row_tiles).to(gl.int64)
    at = gl.arange(0, TILE, layout)
    row = tile * TILE + at
    inside = (row < rows) & (at_k < k)
    place = batch * code_batch + row.to(gl.int64) * code_row + at_k.to(gl.int64) * code_k
    code = gl.load(codes + place, inside, 0).to(gl.int32)
    if BITS < 32:
        code = code & ((1 << BITS) - 1)
    scale = code
    if SCALE is not None:
        at_scale = batch * scale_batch + row.to(gl.int64) * scale_row + (at_k // SCALE[0]).to(gl.int64) * scale_k
        scale = gl.load(scales + at_scale, inside, 0).to(gl.int32) & ((1 << SCALE[1]) - 1)
    values = line_values(code, scale, None, None, None, None, LINE, TILE, TILE, CLAMPS)
    first = (batch * row_tiles + tile) * padded_k + at_k
    for i in gl.static_range(len(wanted(LINE, "results"))):
        value = values[item(wanted(LINE, "results"), i)]
        if value.dtype == gl.int1:
            value = -value.to(gl.int32)
        if i >= len(PLACES):
            gl.atomic_or(special + (batch * row_tiles + tile) * TILE + at, value, mask=inside & (value != 0))
        elif PLACES[i] < 0:
            gl.store(longs + (first * COUNTS[1] - 1 - PLACES[i]) * TILE + at, value.to(gl.int64))
        else:
            gl.store(words + (first * COUNTS[0] + PLACES[i]) * TILE + at, value.to(gl.int32))


@gluon.jit
def one_pass(
    code, flagged, pa, qa, pb, qb, LINE: gl.constexpr, BM: gl.constexpr, BN: gl.constexpr, CLAMPS: gl.constexpr
):  # fmt: skip
    """Return encodings after a pass, and `flagged`, set if the pass needs another Program."""
    values = line_values(code, code, pa, qa, pb, qb, LINE, BM, BN, CLAMPS)
    for i in gl.static_range(len(wanted(LINE, "seldom"))):
        flagged = flagged | values[item(wanted(LINE, "seldom"), i)].to(gl.int32)
    return values[item(wanted(LINE, "results"), 0)].to(gl.int32) + gl.zeros_like(code), flagged


@gluon.jit
def advanced(pointer, by):
    """Return a pointer moved forward; None stays None."""
    if pointer is None:
        return None
    else:
        return pointer + by


@gluon.jit(do_not_specialize=(*ANY_VALUE, "passes"))
def program_passes(
    a_words, a_longs, a_special, b_words, b_longs, b_special, c, out, flags, m, n, k, passes, chain, row_tiles, column_tiles,
    c_batch, c_row, c_column,
    FIRST: gl.constexpr, WHOLE: gl.constexpr, LAST: gl.constexpr, TERMS: gl.constexpr, A_COUNTS: gl.constexpr,
    B_COUNTS: gl.constexpr, C_BITS: gl.constexpr, NAN: gl.constexpr, CLAMPS: gl.constexpr, AGAIN: gl.constexpr,
    PROMOTES: gl.constexpr, EACH: gl.constexpr, THREADS: gl.constexpr, WARPS: gl.constexpr,
):  # fmt: skip
    """Compute D = A B + C by Programs: `passes` of TERMS products by WHOLE, with FIRST before and LAST after them, or None.

    - Operands: those of :func:`pack_program`.
    - AGAIN: only flagged tiles are computed; otherwise a tile is flagged if a condition holds that the Programs leave out.
    - PROMOTES: chains of `chain` passes start at 0 and are added outside in FP32, where NaN has the encoding NAN.
    """
    L: gl.constexpr = thread_layout(EACH, THREADS, WARPS)
    BM: gl.constexpr = extent(EACH, THREADS, WARPS, 0)
    BN: gl.constexpr = extent(EACH, THREADS, WARPS, 1)
    program, batch, row_tile, column_tile = placed(row_tiles, column_tiles)
    in_rows, in_columns = gl.arange(0, BM, gl.SliceLayout(1, L)), gl.arange(0, BN, gl.SliceLayout(0, L))
    of_a, of_b = (batch * row_tiles + row_tile) * k * BM, (batch * column_tiles + column_tile) * k * BN
    pa, qa = advanced(a_words, of_a * A_COUNTS[0] + in_rows), advanced(a_longs, of_a * A_COUNTS[1] + in_rows)
    pb, qb = advanced(b_words, of_b * B_COUNTS[0] + in_columns), advanced(b_longs, of_b * B_COUNTS[1] + in_columns)
    rows, columns, inside = covered(row_tile, column_tile, m, n, L, BM, BN)
    code = gl.zeros([BM, BN], gl.int32, L)
    flagged = gl.zeros([BM, BN], gl.int32, L)
    if AGAIN:
        needed = gl.load(flags + program) != 0
        inside = inside & needed
        passes = gl.where(needed, passes, 0)
    if c is not None:
        code = gl.load(c + elements(batch, rows, columns, c_batch, c_row, c_column), inside, 0).to(gl.int32)
        if C_BITS < 32:
            code = code & ((1 << C_BITS) - 1)
    if FIRST is not None:
        code, flagged = one_pass(code, flagged, pa, qa, pb, qb, FIRST, BM, BN, CLAMPS)
        pa, qa = advanced(pa, TERMS * A_COUNTS[0] * BM), advanced(qa, TERMS * A_COUNTS[1] * BM)
        pb, qb = advanced(pb, TERMS * B_COUNTS[0] * BN), advanced(qb, TERMS * B_COUNTS[1] * BN)
    total = code.to(gl.float32, bitcast=True)
    left = passes
    while left > 0:
        here = gl.minimum(left, chain)
        if PROMOTES:
            code = gl.zeros([BM, BN], gl.int32, L)
        whole = here
        if LAST is not None:
            whole = gl.where(left == here, here - 1, here)
        for _ in range(whole):
            code, flagged = one_pass(code, flagged, pa, qa, pb, qb, WHOLE, BM, BN, CLAMPS)
            pa, qa = advanced(pa, TERMS * A_COUNTS[0] * BM), advanced(qa, TERMS * A_COUNTS[1] * BM)
            pb, qb = advanced(pb, TERMS * B_COUNTS[0] * BN), advanced(qb, TERMS * B_COUNTS[1] * BN)
        if LAST is not None:  # noqa: SIM102 - known when the kernel is compiled, the other one when it runs
            if left == here:
                code, flagged = one_pass(code, flagged, pa, qa, pb, qb, LAST, BM, BN, CLAMPS)
        if PROMOTES:
            total = total + code.to(gl.float32, bitcast=True)
            total = gl.where(total == total, total, gl.full_like(code, NAN).to(gl.float32, bitcast=True))
        left -= here
    if PROMOTES:
        code = total.to(gl.int32, bitcast=True)
    if not AGAIN:
        if a_special is not None:
            strange = gl.load(a_special + (batch * row_tiles + row_tile) * BM + in_rows)
            flagged = flagged | strange[:, None]
        if b_special is not None:
            strange = gl.load(b_special + (batch * column_tiles + column_tile) * BN + in_columns)
            flagged = flagged | strange[None, :]
        gl.store(flags + program, gl.max(gl.max(gl.where(inside, flagged, 0) != 0, 1).to(gl.int32), 0))
    gl.store(out + elements(batch, rows, columns, m * n, n, 1), code.to(out.dtype.element_ty), inside)
