"""A Triton kernel beside those of ../ptx/kernels.py; make.py compiles both."""

import triton
import triton.language as tl


@triton.jit
def recovered(a, b, c, m, n, k, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B of FP32 numbers as two FP16 words each (the lower one times 2^12), each product in a chain of its own."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    high = tl.zeros((BM, BN), dtype=tl.float32)
    left = tl.zeros((BM, BN), dtype=tl.float32)
    right = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, k, BK):
        at = start + tl.arange(0, BK)
        x = tl.load(a + rows[:, None] * k + at[None, :])
        y = tl.load(b + at[:, None] * n + columns[None, :])
        x0 = x.to(tl.float16)
        y0 = y.to(tl.float16)
        x1 = ((x - x0.to(tl.float32)) * 4096.0).to(tl.float16)
        y1 = ((y - y0.to(tl.float32)) * 4096.0).to(tl.float16)
        left = tl.dot(x1, y0, left)
        right = tl.dot(x0, y1, right)
        high = tl.dot(x0, y0, high)
    tl.store(c + rows[:, None] * n + columns[None, :], high + (left + right) * 0.000244140625)
