"""The Triton kernels whose PTX stands beside this file; make.py compiles them."""

import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr, MASK: tl.constexpr,
         OUTSIDE: tl.constexpr, IMPRECISE: tl.constexpr):  # fmt: skip
    """C = A B, one tile a block; OUTSIDE: the product of every tile of k is added in the source, not by the dot."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + inner
        if MASK:
            x = tl.load(a + rows[:, None] * k + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
            y = tl.load(
                b + at[:, None] * n + columns[None, :], mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0
            )
        else:
            x = tl.load(a + rows[:, None] * k + at[None, :])
            y = tl.load(b + at[:, None] * n + columns[None, :])
        if OUTSIDE == "folded":
            total += tl.dot(x, y, input_precision=PRECISION)
        elif OUTSIDE == "kept":
            total = tl.fma(tl.dot(x, y, input_precision=PRECISION), 1.0, total)
        else:
            total = tl.dot(x, y, total, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE)
    if MASK:
        tl.store(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))
    else:
        tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def split_k(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr):
    """C += A B, each part of k by blocks of its own, which add with atomic operations; half precision is the result's."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    part = tl.program_id(2)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(part * BK, k, BK * PARTS):
        at = start + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * k + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        y = tl.load(b + at[:, None] * n + columns[None, :], mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0)
        total = tl.dot(x, y, total)
    tl.atomic_add(c + rows[:, None] * n + columns[None, :], total, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def described(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B^T in half precision through tensor maps that the caller gives."""
    row, column = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        x = a.load([row, start])
        y = b.load([column, start])
        total = tl.dot(x, y.T, total)
    c.store([row, column], total.to(tl.float16))


@triton.jit
def normalised(x, out, n, eps, BLOCK: tl.constexpr):
    """Each row less its mean, divided by the root of its variance: reductions over warps, div.rn and sqrt.rn."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    value = tl.load(x + row * n + at, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.div_rn(tl.sum(value, 0), n.to(tl.float32))
    centred = tl.where(at < n, value - mean, 0.0)
    deviation = tl.sqrt_rn(tl.div_rn(tl.sum(centred * centred, 0), n.to(tl.float32)) + eps)
    result = tl.div_rn(centred, deviation)
    tl.store(out + row * n + at, result.to(tl.bfloat16), mask=at < n)


@triton.jit
def attention(q, k, v, out, size, scale, COLUMNS: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr):
    """Softmax(Q K^T scale) V of one head, keys in blocks; the maximum so far is kept, base 2."""
    start = tl.program_id(1) * size * COLUMNS
    rows = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    columns = tl.arange(0, COLUMNS)
    left = tl.load(q + start + rows[:, None] * COLUMNS + columns[None, :])
    largest = tl.full([QUERIES], float("-inf"), tl.float32)
    weight = tl.zeros([QUERIES], tl.float32)
    total = tl.zeros([QUERIES, COLUMNS], tl.float32)
    for first in range(0, size, KEYS):
        keys = first + tl.arange(0, KEYS)
        right = tl.load(k + start + keys[:, None] * COLUMNS + columns[None, :])
        scores = tl.dot(left, tl.trans(right)) * scale
        highest = tl.maximum(largest, tl.max(scores, 1))
        shares = tl.math.exp2(scores - highest[:, None])
        shrunk = tl.math.exp2(largest - highest)
        weight = weight * shrunk + tl.sum(shares, 1)
        values = tl.load(v + start + keys[:, None] * COLUMNS + columns[None, :])
        total = tl.dot(shares.to(values.dtype), values, total * shrunk[:, None])
        largest = highest
    total = total / weight[:, None]
    tl.store(out + start + rows[:, None] * COLUMNS + columns[None, :], total.to(out.dtype.element_ty))


@triton.jit
def scaled(a, b, sa, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, PACKED: tl.constexpr, KIND: tl.constexpr,
           BLOCK: tl.constexpr):  # fmt: skip
    """One tile of a product with block scales; scales of B lie by its columns."""
    i, j, k, s = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // PACKED), tl.arange(0, K // BLOCK)
    x = tl.load(a + i[:, None] * (K // PACKED) + k[None, :])
    y = tl.load(b + k[:, None] + j[None, :] * (K // PACKED))
    left = tl.load(sa + i[:, None] * (K // BLOCK) + s[None, :])
    right = tl.load(sb + j[:, None] * (K // BLOCK) + s[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot_scaled(x, left, KIND, y, right, KIND))


@triton.jit
def finished(a, b, c, sa, sb, bias, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr):
    """One tile of A B added to C, rows and columns scaled, a bias added, negative results made zero."""
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    total = tl.load(c + i[:, None] * N + j[None, :])
    for first in range(0, K, STEP):
        x = tl.load(a + i[:, None] * K + (first + k)[None, :])
        y = tl.load(b + (first + k)[:, None] * N + j[None, :])
        total = tl.dot(x, y, total)
    total = total * tl.load(sa + i)[:, None] * tl.load(sb + j)[None, :] + tl.load(bias + j)[None, :]
    tl.store(out + i[:, None] * N + j[None, :], tl.maximum(total, 0.0).to(tl.float16))
