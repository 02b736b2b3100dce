"""These Triton kernels run one PTX instruction on inputs and return its results, or hashes of them over its whole domain."""

# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def mixed(z):
    """Return 64 mixed bits (the finaliser of SplitMix64; Steele, Lea, Flood, OOPSLA 2014)."""
    z += 0x9E3779B97F4A7C15
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB
    return z ^ (z >> 31)


@triton.jit
def hash_blocks(out, first, ASM: tl.constexpr, LANES: tl.constexpr, STEPS: tl.constexpr):
    """Return the sums over low halves of mixed(low half << 32 | result), modulo 2^64, for each high half from `first` on."""
    high = first + tl.program_id(0)
    total = tl.zeros([LANES], tl.uint64)
    for step in range(STEPS):
        low = step * LANES + tl.arange(0, LANES)
        result = tl.inline_asm_elementwise(ASM, "=r,r", [(high << 16) | low], dtype=tl.int32, is_pure=True, pack=1)
        total += mixed((low.to(tl.uint64) << 32) | result.to(tl.uint32, bitcast=True).to(tl.uint64))
    tl.store(out + tl.program_id(0), tl.sum(total, 0))


@triton.jit
def results_of(x, y, out, ASM: tl.constexpr, LANES: tl.constexpr):
    """Return the results of an instruction of one operand."""
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    found = tl.inline_asm_elementwise(ASM, "=r,r", [tl.load(x + at)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + at, found)


@triton.jit
def results_of_two(x, y, out, ASM: tl.constexpr, LANES: tl.constexpr):
    """Return the results of an instruction of two operands."""
    at = tl.program_id(0) * LANES + tl.arange(0, LANES)
    operands = [tl.load(x + at), tl.load(y + at)]
    found = tl.inline_asm_elementwise(ASM, "=r,r,r", operands, dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out + at, found)
