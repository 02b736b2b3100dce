"""Defines the Triton kernels for the product of words, one for all methods, and for the repair of results that are not finite.

Constants describe a method: the numbers of `WORDS` of A and B, their `FORMAT`, `ROUNDING` and `SCALE`, the `PRODUCTS` in order,
the chain of each product (`CHAINS`), which chains restart from zero at every tile of k and are added outside (`RESTARTS`), and
how chains are joined (`LEVELS`, `SHIFTS`). :mod:`mpgemm.kernels.forms` makes them from a method's row.

A compiler folds ``total + tl.dot(x, y)`` into the matrix instruction's accumulator, which undoes a promotion. It does not
fold ``tl.fma(tl.dot(x, y), 1.0, total)``, as the gate (:mod:`mpgemm.kernels.gate`) verifies. Compile with
``enable_fp_fusion=False``, because no product and addition may be contracted.
"""

# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def _rounded(x, FORMAT: tl.constexpr, ROUNDING: tl.constexpr):
    """Return one word of FP32 numbers; tf32 stays in FP32's container, and NaNs are kept from the carry of the rounding."""
    if FORMAT == "tf32":
        bits = x.to(tl.uint32, bitcast=True)
        near = ((bits + 0x1000) & 0xFFFFE000).to(tl.float32, bitcast=True)
        return tl.where(x == x, near, x)
    elif FORMAT == "bf16":
        return x.to(tl.bfloat16)
    elif ROUNDING == "rz":
        return x.to(tl.float16, fp_downcast_rounding="rtz")
    else:
        return x.to(tl.float16)


@triton.jit
def words_of(x, COUNT: tl.constexpr, SCALE: tl.constexpr, FORMAT: tl.constexpr, ROUNDING: tl.constexpr):
    """Return the words of FP32 numbers, the highest first: word j is the rest times 2^(j s), rounded."""
    rest = x
    words = ()
    for j in tl.static_range(COUNT):
        word = _rounded(rest * (2.0 ** (j * SCALE)) if j * SCALE else rest, FORMAT, ROUNDING)
        words = words + (word,)
        if j + 1 < COUNT:
            value = word.to(tl.float32)
            rest = rest - (value * (2.0 ** (-j * SCALE)) if j * SCALE else value)
    return words


@triton.jit
def times_power(x, exponent):
    """Return x 2^exponent, rounded once; of three factors only the last can round, unless the result is 0 or infinite."""
    first = tl.minimum(tl.maximum(exponent, -126), 127)
    rest = exponent - first
    second = tl.minimum(tl.maximum(rest, -126), 127)
    third = tl.minimum(tl.maximum(rest - second, -126), 127)
    return x * _power(third) * _power(second) * _power(first)


@triton.jit
def _power(exponent):
    """Return 2^exponent for exponents from -126 to 127."""
    return ((exponent + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def plane_offset(count: tl.constexpr, plane):
    """Return the number of elements of `count` planes in 64 bits, because Triton passes numbers below 2^31 in 32 bits."""
    return tl.full((), count, tl.int64) * plane


@triton.jit
def _tile_words(
    base, offsets, inside, plane, exponents, SPLIT: tl.constexpr, SCALED: tl.constexpr, COUNT: tl.constexpr,
    SCALE: tl.constexpr, FORMAT: tl.constexpr, ROUNDING: tl.constexpr,
):  # fmt: skip
    """Return the words of one tile of an operand, which are loaded if it was split before, else split here."""
    if SPLIT:
        words = ()
        for j in tl.static_range(COUNT):
            words = words + (tl.load(base + offsets + plane_offset(j, plane), mask=inside, other=0.0),)
        return words
    else:
        x = tl.load(base + offsets, mask=inside, other=0.0).to(tl.float32)
        if SCALED:
            x = times_power(x, exponents)
        return words_of(x, COUNT, SCALE, FORMAT, ROUNDING)


@triton.jit
def begun(
    c, m, n, batch, first_row, first_column, c_batch, c_row, c_column, COUNT: tl.constexpr, START: tl.constexpr,
    SEED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Return the chains before the first tile of k, which start from C or a number."""
    sums = ()
    for _ in tl.static_range(COUNT):
        if SEED:
            rows, columns = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN)
            places = batch * c_batch + rows[:, None].to(tl.int64) * c_row + columns[None, :].to(tl.int64) * c_column
            inside = (rows[:, None] < m) & (columns[None, :] < n)
            sums = sums + (tl.load(c + places, mask=inside, other=0.0),)
        else:
            sums = sums + (tl.full((BM, BN), START, tl.float32),)
    return sums


@triton.jit
def chained_products(
    sums, x, y, PRODUCTS: tl.constexpr, CHAINS: tl.constexpr, RESTARTS: tl.constexpr, PRECISION: tl.constexpr
):
    """Return the chains after the products of one more tile of k."""
    after = ()
    for c in tl.static_range(len(RESTARTS)):
        part = tl.zeros_like(sums[c]) if RESTARTS[c] else sums[c]
        for p in tl.static_range(len(PRODUCTS)):
            if CHAINS[p] == c:
                part = tl.dot(x[PRODUCTS[p][0]], y[PRODUCTS[p][1]], part, input_precision=PRECISION)
        if RESTARTS[c]:
            part = tl.fma(part, 1.0, sums[c])  # no pass of the compiler folds this addition into the product
        after = after + (part,)
    return after


@triton.jit
def joined(sums, LEVELS: tl.constexpr, SHIFTS: tl.constexpr):
    """Return the sum of all chains: each level's chains, plus the sum of the levels before times a power of two."""
    value = sums[LEVELS[0][0]]
    for level in tl.static_range(len(LEVELS)):
        part = sums[LEVELS[level][0]]
        for c in tl.static_range(1, len(LEVELS[level])):
            part = part + sums[LEVELS[level][c]]
        value = part if level == 0 else value * (2.0 ** -SHIFTS[level - 1]) + part
    if SHIFTS[len(LEVELS) - 1]:
        value = value * (2.0 ** -SHIFTS[len(LEVELS) - 1])
    return value


@triton.jit
def finished(value, c, places, inside, alpha, beta, ADD: tl.constexpr, FACTORS: tl.constexpr):
    """Return alpha value + beta c, with each product and the sum rounded."""
    if FACTORS:
        value = value * alpha
    if ADD:
        addend = tl.load(c + places, mask=inside, other=0.0)
        value = value + (addend * beta if FACTORS else addend)
    return value


@triton.jit
def tile_of(m, n, BM: tl.constexpr, BN: tl.constexpr, GROUP: tl.constexpr):
    """Return (batch, first row, first column) of this program; GROUP rows of tiles run together, so that caches keep B."""
    program = tl.program_id(0)
    down, across = tl.cdiv(m, BM), tl.cdiv(n, BN)
    batch = program // (down * across)
    tile = program % (down * across)
    group = tile // (GROUP * across)
    height = tl.minimum(down - group * GROUP, GROUP)
    row = group * GROUP + tile % (GROUP * across) % height
    column = tile % (GROUP * across) // height
    return batch.to(tl.int64), row * BM, column * BN


@triton.jit
def part_of(place, k, part_k, PARTS: tl.constexpr):
    """Return (batch, begin and end of k) of a program's sum; the parts of a matrix come one after the other."""
    if PARTS == 1:
        return place, 0, k
    else:
        begin = (place % PARTS).to(tl.int32) * part_k
        return place // PARTS, begin, tl.minimum(begin + part_k, k)


@triton.jit
def ended(value, bias, rows, columns, m, n, BIAS: tl.constexpr, ACTIVATION: tl.constexpr):
    """Return activation(value + bias) with the sum rounded; PTX computes the activation, a comparison computes relu."""
    if BIAS == "row":
        value = value + tl.load(bias + rows, mask=rows < m, other=0.0).to(tl.float32)[:, None]
    elif BIAS == "column":
        value = value + tl.load(bias + columns, mask=columns < n, other=0.0).to(tl.float32)[None, :]
    if ACTIVATION == "relu":
        value = tl.where(value <= 0.0, 0.0, value)
    elif ACTIVATION is not None:
        value = tl.inline_asm_elementwise(ACTIVATION, "=f,f", [value], dtype=tl.float32, is_pure=True, pack=1)
    return value


@triton.jit
def store_tile(
    value, c, out, bias, flags, m, n, batch, first_row, first_column, c_batch, c_row, c_column, out_batch, out_row, out_column,
    alpha, beta, ADD: tl.constexpr, FACTORS: tl.constexpr, BIAS: tl.constexpr, ACTIVATION: tl.constexpr, MARK: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """Finish a tile of the product and store it; `flags` marks tiles with elements that are not finite before the epilogue.

    MARK: Whether such elements are stored as NaN, so that the repair finds them after an epilogue. If a bias or an activation
    makes NaN of a finite number, the repair gives NaN again.
    """
    rows, columns = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN)
    wide_rows, wide_columns = rows.to(tl.int64), columns.to(tl.int64)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    c_places = batch * c_batch + wide_rows[:, None] * c_row + wide_columns[None, :] * c_column
    value = finished(value, c, c_places, inside, alpha, beta, ADD, FACTORS)
    end = ended(value, bias, rows, columns, m, n, BIAS, ACTIVATION)
    if flags is not None:
        lost = (tl.abs(value) < float("inf")) == 0
        place = (batch * tl.cdiv(m, BM) + first_row // BM) * tl.cdiv(n, BN) + first_column // BN
        tl.store(flags + place, tl.max(tl.max((inside & lost).to(tl.int32), 1), 0))
        if MARK:
            end = tl.where(lost, float("nan"), end)
    out_places = batch * out_batch + wide_rows[:, None] * out_row + wide_columns[None, :] * out_column
    tl.store(out + out_places, end, mask=inside)


@triton.jit
def gemm(
    a, b, c, out, bias, flags, row_exponents, column_exponents, m, n, k, part_k, a_batch, a_row, a_k, b_batch, b_k, b_column,
    c_batch, c_row, c_column, out_batch, out_row, out_column, a_plane, b_plane, alpha, beta,
    FORMAT: tl.constexpr, ROUNDING: tl.constexpr, WORDS: tl.constexpr, SCALE: tl.constexpr, PRODUCTS: tl.constexpr,
    CHAINS: tl.constexpr, RESTARTS: tl.constexpr, LEVELS: tl.constexpr, SHIFTS: tl.constexpr, START: tl.constexpr,
    SPLIT: tl.constexpr, SCALED: tl.constexpr, ADD: tl.constexpr, SEED: tl.constexpr, FACTORS: tl.constexpr,
    BIAS: tl.constexpr, ACTIVATION: tl.constexpr, MARK: tl.constexpr, PARTS: tl.constexpr, EVEN_K: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Store alpha A B + beta C with the epilogue in out, one tile per program; with PARTS, the sum of one part of k.

    SPLIT: Whether A, and whether B, are planes of words.
    """
    place, first_row, first_column = tile_of(m, n, BM, BN, GROUP)
    batch, begin, end = part_of(place, k, part_k, PARTS)
    rows, columns, inner = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN), tl.arange(0, BK)
    wide_rows, wide_columns, wide_inner = rows.to(tl.int64), columns.to(tl.int64), inner.to(tl.int64)
    PRECISION: tl.constexpr = "tf32" if FORMAT == "tf32" else "ieee"
    of_rows, of_columns = 0, 0
    if SCALED:
        of_rows = tl.load(row_exponents + batch * m + rows, mask=rows < m, other=0)[:, None]
        of_columns = tl.load(column_exponents + batch * n + columns, mask=columns < n, other=0)[None, :]
    sums = begun(c, m, n, batch, first_row, first_column, c_batch, c_row, c_column, len(RESTARTS), START, SEED, BM, BN)
    a_places = batch * a_batch + wide_rows[:, None] * a_row + wide_inner[None, :] * a_k
    b_places = batch * b_batch + wide_inner[:, None] * b_k + wide_columns[None, :] * b_column
    if PARTS > 1:
        a_places += begin.to(tl.int64) * a_k
        b_places += begin.to(tl.int64) * b_k
    for start in range(begin, end, BK):
        a_inside, b_inside = rows[:, None] < m, columns[None, :] < n
        if not EVEN_K:
            a_inside, b_inside = a_inside & (inner[None, :] < k - start), b_inside & (inner[:, None] < k - start)
        x = _tile_words(a, a_places, a_inside, a_plane, of_rows, SPLIT[0], SCALED, WORDS[0], SCALE, FORMAT, ROUNDING)
        y = _tile_words(b, b_places, b_inside, b_plane, of_columns, SPLIT[1], SCALED, WORDS[1], SCALE, FORMAT, ROUNDING)
        sums = chained_products(sums, x, y, PRODUCTS, CHAINS, RESTARTS, PRECISION)
        a_places += tl.full((), BK, tl.int64) * a_k
        b_places += tl.full((), BK, tl.int64) * b_k
    value = joined(sums, LEVELS, SHIFTS)
    if SCALED and PARTS == 1:
        value = times_power(value, -(of_rows + of_columns))
    store_tile(
        value, c, out, bias, flags, m, n, place, first_row, first_column, c_batch, c_row, c_column, out_batch, out_row,
        out_column, alpha, beta, ADD, FACTORS, BIAS, ACTIVATION, MARK, BM, BN,
    )  # fmt: skip


@triton.jit
def add_parts(
    sums, c, out, bias, flags, row_exponents, column_exponents, row_batch, column_batch, m, n, c_batch, c_row, c_column,
    out_batch, out_row, out_column, alpha, beta, ADD: tl.constexpr, FACTORS: tl.constexpr, BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr, MARK: tl.constexpr, SCALED: tl.constexpr, PARTS: tl.constexpr, BM: tl.constexpr,
    BN: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Add the sums of the PARTS of k in order, and store the end of the product in out, one tile per program."""
    batch, first_row, first_column = tile_of(m, n, BM, BN, GROUP)
    rows, columns = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    size = tl.full((), 1, tl.int64) * m * n
    places = sums + batch * PARTS * size + rows[:, None].to(tl.int64) * n + columns[None, :]
    value = tl.load(places, mask=inside, other=0.0)
    for _ in tl.static_range(1, PARTS):
        places += size
        value = value + tl.load(places, mask=inside, other=0.0)
    if SCALED:
        of_rows = tl.load(row_exponents + batch * row_batch + rows, mask=rows < m, other=0)
        of_columns = tl.load(column_exponents + batch * column_batch + columns, mask=columns < n, other=0)
        value = times_power(value, -(of_rows[:, None] + of_columns[None, :]))
    store_tile(
        value, c, out, bias, flags, m, n, batch, first_row, first_column, c_batch, c_row, c_column, out_batch, out_row,
        out_column, alpha, beta, ADD, FACTORS, BIAS, ACTIVATION, MARK, BM, BN,
    )  # fmt: skip


@triton.jit
def _repaired(
    batch, first_row, first_column, a, b, c, out, bias, m, n, k, a_batch, a_row, a_k, b_batch, b_k, b_column, c_batch, c_row,
    c_column, out_batch, out_row, out_column, alpha, beta, ADD: tl.constexpr, FACTORS: tl.constexpr, BIAS: tl.constexpr,
    ACTIVATION: tl.constexpr, MARK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Compute the results of one tile that are not finite again."""
    rows, columns, inner = first_row + tl.arange(0, BM), first_column + tl.arange(0, BN), tl.arange(0, BK)
    wide_rows, wide_columns, wide_inner = rows.to(tl.int64), columns.to(tl.int64), inner.to(tl.int64)
    inside = (rows[:, None] < m) & (columns[None, :] < n)
    out_places = batch * out_batch + wide_rows[:, None] * out_row + wide_columns[None, :] * out_column
    found = tl.load(out + out_places, mask=inside, other=0.0)
    lost = found != found if MARK else (tl.abs(found) < float("inf")) == 0
    if tl.max(tl.max(lost.to(tl.int32), 1), 0) > 0:
        value = tl.zeros((BM, BN), tl.float32)
        a_places = batch * a_batch + wide_rows[:, None] * a_row + wide_inner[None, :] * a_k
        b_places = batch * b_batch + wide_inner[:, None] * b_k + wide_columns[None, :] * b_column
        for start in range(0, k, BK):
            a_inside = (rows[:, None] < m) & (inner[None, :] < k - start)
            b_inside = (columns[None, :] < n) & (inner[:, None] < k - start)
            x = tl.load(a + a_places, mask=a_inside, other=0.0).to(tl.float32)
            y = tl.load(b + b_places, mask=b_inside, other=0.0).to(tl.float32)
            value = tl.dot(x, y, value, input_precision="ieee")
            a_places += tl.full((), BK, tl.int64) * a_k
            b_places += tl.full((), BK, tl.int64) * b_k
        c_places = batch * c_batch + wide_rows[:, None] * c_row + wide_columns[None, :] * c_column
        value = finished(value, c, c_places, inside, alpha, beta, ADD, FACTORS)
        value = ended(value, bias, rows, columns, m, n, BIAS, ACTIVATION)
        tl.store(out + out_places, value, mask=inside & lost)


@triton.jit
def repair(
    a, b, c, out, bias, flags, m, n, k, a_batch, a_row, a_k, b_batch, b_k, b_column, c_batch, c_row, c_column, out_batch,
    out_row, out_column, alpha, beta, ADD: tl.constexpr, FACTORS: tl.constexpr, BIAS: tl.constexpr, ACTIVATION: tl.constexpr,
    MARK: tl.constexpr, FLAGGED: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    """Compute results that are not finite again as chains of FP32 fused multiply-adds in k order; finite results stay.

    FLAGGED: Rows and columns of the tiles that `flags` marks; a program repairs one of them.
    """
    if flags is not None:
        batch, first_row, first_column = tile_of(m, n, FLAGGED[0], FLAGGED[1], GROUP)
        place = (batch * tl.cdiv(m, FLAGGED[0]) + first_row // FLAGGED[0]) * tl.cdiv(n, FLAGGED[1])
        if tl.load(flags + place + first_column // FLAGGED[1]) != 0:
            for part in range(0, (FLAGGED[0] // BM) * (FLAGGED[1] // BN)):
                _repaired(
                    batch, first_row + part // (FLAGGED[1] // BN) * BM, first_column + part % (FLAGGED[1] // BN) * BN, a, b, c,
                    out, bias, m, n, k, a_batch, a_row, a_k, b_batch, b_k, b_column, c_batch, c_row, c_column, out_batch,
                    out_row, out_column, alpha, beta, ADD, FACTORS, BIAS, ACTIVATION, MARK, BM, BN, BK,
                )  # fmt: skip
    else:
        batch, first_row, first_column = tile_of(m, n, BM, BN, GROUP)
        _repaired(
            batch, first_row, first_column, a, b, c, out, bias, m, n, k, a_batch, a_row, a_k, b_batch, b_k, b_column, c_batch,
            c_row, c_column, out_batch, out_row, out_column, alpha, beta, ADD, FACTORS, BIAS, ACTIVATION, MARK, BM, BN, BK,
        )  # fmt: skip
