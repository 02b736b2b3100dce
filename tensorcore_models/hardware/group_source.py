"""CUDA C++ kernels of the instructions that take operands from shared memory: wgmma (Hopper) and tcgen05.mma (Blackwell).

Same interface as :mod:`tensorcore_models.hardware.source`. A block of 128 threads takes one tile at a time: it copies
A and B into
shared memory as K-major core matrices without swizzle, and issues one instruction for each k step. wgmma accumulates in
registers, tcgen05 in tensor memory.

Sources: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" and "TensorCore 5th Generation Family
Instructions" (matrix descriptors, instruction descriptor, data path layouts).
"""

from ..formats import get_format
from ..instruction import Instruction
from .layouts import (
    CORE_BYTES,
    CORE_ROWS,
    LEADING_BYTES,
    STEP_BYTES,
    STRIDE_BYTES,
    WARPGROUP,
    shared_descriptor,
    tensor_memory_accumulator,
    warpgroup_accumulator,
)
from .source import (
    PROLOGUE,
    Kernel,
    container,
    load_fragment,
    operands,
    register_type,
    signature,
    store_fragment,
    thread_coordinate,
)
from .targets import ptx_name, target_of


def _byte_layout(fmt: str) -> tuple[int, int]:
    """Bits of an element in shared memory and elements in the 16 bytes of a core matrix row.

    fp4 and fp6 operands of the f8f6f4 kind are packed 16 to a row, of which they fill the first 8 or 12 bytes.
    """
    bits = get_format(fmt).bits
    return bits, 16 if bits < 8 else 8 * CORE_BYTES // bits


def _stage(letter: str, rows: int, k: int, fmt: str, element: str) -> list[str]:
    """C lines that copy one operand into shared memory: `element` is the C expression of element (r, e) along k."""
    bits, per_row = _byte_layout(fmt)
    if bits >= 8:
        kind = container(fmt)
        size = bits // 8
        return [
            f"for (u32 i = threadIdx.x; i < {rows * k}u; i += {WARPGROUP}u) {{",
            f"  const u32 r = i / {k}u, e = i % {k}u, byte = e * {size}u;",
            f"  *({kind}*)(shared_{letter} + r / {CORE_ROWS}u * {STRIDE_BYTES}u + byte / {CORE_BYTES}u * {LEADING_BYTES}u"
            f" + r % {CORE_ROWS}u * {CORE_BYTES}u + byte % {CORE_BYTES}u) = {element};",
            "}",
        ]
    return [
        f"for (u32 i = threadIdx.x; i < {rows * (k // per_row)}u; i += {WARPGROUP}u) {{",
        f"  const u32 r = i / {k // per_row}u, first = i % {k // per_row}u * {per_row}u;",
        f"  u8* core = shared_{letter} + r / {CORE_ROWS}u * {STRIDE_BYTES}u + first / {per_row}u * {LEADING_BYTES}u"
        f" + r % {CORE_ROWS}u * {CORE_BYTES}u;",
        f"  for (u32 j = 0; j < {CORE_BYTES}u; ++j) core[j] = 0;",
        f"  for (u32 j = 0; j < {per_row}u; ++j) {{",
        f"    const u32 e = first + j, bit = j * {bits}u, value = ({element}) & {(1 << bits) - 1}u;",
        "    core[bit / 8u] |= (u8)(value << bit % 8u);",
        "    if (bit % 8u > 0 && value >> (8u - bit % 8u)) core[bit / 8u + 1u] |= (u8)(value >> (8u - bit % 8u));",
        "  }",
        "}",
    ]


def _tile_lines(row: Instruction) -> list[str]:
    return [
        "const u64 tm = t / g.tiles_n, tn = t % g.tiles_n;",
        f"const {container(row.a_format)}* pa = a + tm * g.a_tile;",
        f"const {container(row.b_format)}* pb = b + tm * g.b_tile_m + tn * g.b_tile_n;",
        f"const {container(row.c_format)}* pc = c + tm * g.c_tile_m + tn * g.c_tile_n;",
        f"{container(row.d_format)}* pd = d + tm * g.c_tile_m + tn * g.c_tile_n;",
    ]


def _stage_both(row: Instruction) -> list[str]:
    return [
        *_stage("a", row.m, row.k, row.a_format, "pa[(u64)r * g.lda + e]"),
        *_stage("b", row.n, row.k, row.b_format, "pb[(u64)e * g.ldb + r]"),
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
    ]


def _shared_arrays(row: Instruction, version: int) -> list[str]:
    encode = "(u64)((u32)__cvta_generic_to_shared({}) & 0x3ffffu) >> 4"
    return [
        f"__shared__ __align__(1024) u8 shared_a[{row.m * STEP_BYTES}];",
        f"__shared__ __align__(1024) u8 shared_b[{row.n * STEP_BYTES}];",
        f"const u64 descriptor_a = {shared_descriptor(version):#x}ull | {encode.format('shared_a')};",
        f"const u64 descriptor_b = {shared_descriptor(version):#x}ull | {encode.format('shared_b')};",
    ]


def _assemble(row: Instruction, body: list[str], target: str | None) -> Kernel:
    text = "\n".join([PROLOGUE, signature(row), "{", *(f"  {line}" for line in body), "}", ""])
    return Kernel(text, target or target_of(row.arch), WARPGROUP, 1)


def wgmma_kernel(row: Instruction, target: str | None = None) -> Kernel:
    """Kernel of a wgmma instruction: one warpgroup for each tile."""
    fragment = warpgroup_accumulator(row.n, get_format(row.d_format).bits)
    a, b, d = (ptx_name(f) for f in (row.a_format, row.b_format, row.d_format))
    saturate = ".satfinite" if row.name.endswith(".satfinite") else ""
    count = fragment.registers
    # Factors 1 for A and B; the 16-bit types take two transposition flags more.
    factors = ", 1, 1, 0, 0" if get_format(row.a_format).bits == 16 else ", 1, 1"
    immediates = "" if row.d_format == "s32" else factors
    # One statement from fence to wait: the compiler cannot touch the accumulators in between.
    multiply = (
        f'asm volatile("{{.reg .pred p; setp.ne.b32 p, %{count + 2}, 0; wgmma.fence.sync.aligned; '
        f"wgmma.mma_async.sync.aligned.m{row.m}n{row.n}k{row.k}{saturate}.{d}.{a}.{b} "
        f"{operands(0, count)}, %{count}, %{count + 1}, p{immediates}; "
        'wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;}" : '
        + ", ".join(f'"+r"(rd[{i}])' for i in range(count))
        + ' : "l"(descriptor_a), "l"(descriptor_b), "r"(1) : "memory");'
    )
    here, col = (thread_coordinate(fragment.threads, axis, "threadIdx.x") for axis in ("row", "col"))
    body = [
        *_shared_arrays(row, 0),
        f"{register_type(fragment)} rd[{count}];",
        "for (u64 t = blockIdx.x; t < g.tiles; t += gridDim.x) {",
        *(f"  {line}" for line in _tile_lines(row)),
        f"  pc += ({here}) * g.ldc + ({col}); pd += ({here}) * g.ldc + ({col});",
        *(f"  {line}" for line in load_fragment("rd", "pc", "g.ldc", fragment, row.c_format)),
        "  for (u64 s = 0; s < g.steps; ++s) {",
        "    __syncthreads();",
        *(f"    {line}" for line in _stage_both(row)),
        "    __syncthreads();",
        f"    {multiply}",
        f"    pa += {row.k}u; pb += {row.k}u * g.ldb;",
        "  }",
        *(f"  {line}" for line in store_fragment("rd", "pd", "g.ldc", fragment, row.d_format)),
        "}",
    ]
    return _assemble(row, body, target)


#: Codes of formats in the instruction descriptor (PTX ISA, "Instruction descriptor").
_OPERAND_CODES = {
    "fp16": 0, "bf16": 1, "tf32": 2, "e4m3fn": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1,
}  # fmt: skip
_RESULT_CODES = {"fp16": 0, "fp32": 1, "s32": 2}


def tcgen05_kind(row: Instruction) -> str:
    """The .kind of a tcgen05.mma instruction."""
    if row.a_format in ("s8", "u8"):
        return "i8"
    if row.a_format == "tf32":
        return "tf32"
    return "f16" if get_format(row.a_format).bits == 16 else "f8f6f4"


def instruction_descriptor(row: Instruction) -> int:
    """Instruction descriptor of a dense tcgen05.mma, both operands K-major."""
    return (
        int(row.name.endswith(".satfinite")) << 3
        | _RESULT_CODES[row.d_format] << 4
        | _OPERAND_CODES[row.a_format] << 7
        | _OPERAND_CODES[row.b_format] << 10
        | row.n >> 3 << 17
        | row.m >> 4 << 24
    )


def tcgen05_kernel(row: Instruction, target: str | None = None) -> Kernel:
    """Kernel of a tcgen05.mma instruction on one CTA (m = 64 or 128).

    Raises
    ------
    ValueError
        For m = 256, which takes two CTAs, and for block scales, which stand in tensor memory: neither is generated. (The
        arithmetic of m = 256 is that of m = 128.)
    """
    if row.m == 256:
        raise ValueError(f"{row}: m = 256 takes two CTAs, which is not generated; m = 128 computes the same")
    if row.scale_format is not None:
        raise ValueError(f"{row}: block-scaled tcgen05.mma takes its scales from tensor memory, which is not generated")
    fragment = tensor_memory_accumulator(row.m, row.n)
    columns = max(32, 1 << (row.n - 1).bit_length())
    rows_held = "threadIdx.x % 32u < 16u" if row.m == 64 else "true"
    own_row = "threadIdx.x / 32u * 16u + threadIdx.x % 16u" if row.m == 64 else "threadIdx.x"
    if fragment.thread_count not in (64, 128):
        raise ValueError(f"{row}: {fragment.thread_count} threads hold rows, expected 64 or 128")
    body = [
        *_shared_arrays(row, 1),
        "__shared__ u32 tensor_memory;",
        "__shared__ __align__(8) u64 barrier;",
        "const u32 barrier_address = (u32)__cvta_generic_to_shared(&barrier);",
        "if (threadIdx.x < 32u) {",
        f'  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], {columns};" : : '
        '"r"((u32)__cvta_generic_to_shared(&tensor_memory)) : "memory");',
        '  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");',
        "}",
        'if (threadIdx.x == 0) asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(barrier_address) : "memory");',
        'asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");',
        "__syncthreads();",
        'asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
        "const u32 base = tensor_memory, own = base + (threadIdx.x / 32u * 32u << 16);",
        f"const u64 row = {own_row};",
        "u32 phase = 0;",
        "for (u64 t = blockIdx.x; t < g.tiles; t += gridDim.x) {",
        *(f"  {line}" for line in _tile_lines(row)),
        f"  for (u32 j = 0; j < {row.n}u; ++j) {{",
        f"    const u32 value = {rows_held} ? (u32)pc[row * g.ldc + j] : 0u;",
        '    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" : : "r"(own + j), "r"(value) : "memory");',
        "  }",
        '  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");',
        "  for (u64 s = 0; s < g.steps; ++s) {",
        *(f"    {line}" for line in _stage_both(row)),
        '    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");',
        "    __syncthreads();",
        '    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
        "    if (threadIdx.x == 0) {",
        f'      asm volatile("{{.reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.kind::{tcgen05_kind(row)} '
        '[%0], %1, %2, %3, p;}" : : "r"(base), "l"(descriptor_a), "l"(descriptor_b), '
        f'"r"({instruction_descriptor(row):#x}u), "r"(1) : "memory");',
        '      asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" : : '
        '"r"(barrier_address) : "memory");',
        "    }",
        "    u32 done = 0;",
        '    while (!done) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; '
        'selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(barrier_address), "r"(phase) : "memory");',
        "    phase ^= 1u;",
        '    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
        f"    pa += {row.k}u; pb += {row.k}u * g.ldb;",
        "    __syncthreads();",
        "  }",
        f"  for (u32 j = 0; j < {row.n}u; ++j) {{",
        "    u32 value;",
        '    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1]; tcgen05.wait::ld.sync.aligned;" '
        ': "=r"(value) : "r"(own + j) : "memory");',
        f"    if ({rows_held}) pd[row * g.ldc + j] = ({container(row.d_format)})value;",
        "  }",
        "}",
        'asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");',
        "__syncthreads();",
        'asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
        f'if (threadIdx.x < 32u) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, {columns};" : : "r"(base));',
    ]
    return _assemble(row, body, target)
