"""This module generates CUDA C++ kernels of wgmma (Hopper), and the staging of operands in shared memory.

Kernels have the interface of :mod:`tensorcore_models.hardware.cuda.source`. A block of 128 threads computes one tile at a time:
it copies A and B into shared memory as K-major core matrices without swizzle, and issues one instruction for each k step. wgmma
accumulates in registers; :mod:`tensorcore_models.hardware.cuda.tcgen05_source` uses the same staging and accumulates in tensor
memory.

Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Multiply-Accumulate Instructions" (matrix descriptors, fragments).
"""

from ...catalogue.nvidia import ptx_name
from ...engines.instruction import Instruction
from ...formats import get_format
from .layouts import (
    CORE_BYTES,
    CORE_ROWS,
    LEADING_BYTES,
    STEP_BYTES,
    STRIDE_BYTES,
    WARPGROUP,
    shared_descriptor,
    warpgroup_accumulator,
)
from .source import (
    CudaKernel,
    assemble,
    block_scale_kind,
    container,
    load_fragment,
    operands,
    register_type,
    store_fragment,
    thread_coordinate,
    tile_lines,
)


def _elements_per_row(row: Instruction, fmt: str) -> int:
    """Return the number of elements in the 16 bytes of a core matrix row.

    fp4 elements of the mxf4 kinds fill the row (PTX ISA 9.1, 9.7.16.10.4.6). A row holds 16 fp4 or fp6 elements of the f8f6f4
    kinds, which fill its first 8 or 12 bytes (9.7.16.10.4.4).
    """
    bits = get_format(fmt).bits
    packed = row.scale_format is not None and block_scale_kind(row) != "mxf8f6f4"
    return 16 if bits < 8 and not packed else 8 * CORE_BYTES // bits


def _stage(letter: str, rows: int, row: Instruction, fmt: str, element: str) -> list[str]:
    """Return C lines that copy one operand into shared memory: `element` is the C expression of element (r, e) along k."""
    bits, k, per_row = get_format(fmt).bits, row.k, _elements_per_row(row, fmt)
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


def stage_both(row: Instruction, rows: int, cols: int) -> list[str]:
    """Return C lines that copy one k step of `rows` rows at `pa` and `cols` columns at `pb` into shared memory."""
    return [
        *_stage("a", rows, row, row.a_format, "pa[(u64)r * g.lda + e]"),
        *_stage("b", cols, row, row.b_format, "pb[(u64)e * g.ldb + r]"),
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory");',
    ]


def shared_arrays(rows: int, cols: int, version: int) -> list[str]:
    """Return C lines that declare the shared memory of one k step and its matrix descriptors."""
    encode = "(u64)((u32)__cvta_generic_to_shared({}) & 0x3ffffu) >> 4"
    return [
        f"__shared__ __align__(1024) u8 shared_a[{rows * STEP_BYTES}];",
        f"__shared__ __align__(1024) u8 shared_b[{cols * STEP_BYTES}];",
        f"const u64 descriptor_a = {shared_descriptor(version):#x}ull | {encode.format('shared_a')};",
        f"const u64 descriptor_b = {shared_descriptor(version):#x}ull | {encode.format('shared_b')};",
    ]


def wgmma_kernel(row: Instruction, target: str | None = None) -> CudaKernel:
    """Return the kernel of a wgmma instruction: one warpgroup for each tile."""
    fragment = warpgroup_accumulator(row.n, get_format(row.d_format).bits)
    a, b, d = (ptx_name(f) for f in (row.a_format, row.b_format, row.d_format))
    saturate = ".satfinite" if row.name.endswith(".satfinite") else ""
    count = fragment.registers
    # Factors 1 for A and B; 16-bit types have two further flags for transposition.
    factors = ", 1, 1, 0, 0" if get_format(row.a_format).bits == 16 else ", 1, 1"
    immediates = "" if row.d_format == "s32" else factors
    # One statement from fence to wait, so that the compiler cannot touch the accumulators in between.
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
        *shared_arrays(row.m, row.n, 0),
        f"{register_type(fragment)} rd[{count}];",
        "for (u64 t = blockIdx.x; t < g.tiles; t += gridDim.x) {",
        *(f"  {line}" for line in tile_lines(row)),
        f"  pc += ({here}) * g.ldc + ({col}); pd += ({here}) * g.ldc + ({col});",
        *(f"  {line}" for line in load_fragment("rd", "pc", "g.ldc", fragment, row.c_format)),
        "  for (u64 s = 0; s < g.steps; ++s) {",
        "    __syncthreads();",
        *(f"    {line}" for line in stage_both(row, row.m, row.n)),
        "    __syncthreads();",
        f"    {multiply}",
        f"    pa += {row.k}u; pb += {row.k}u * g.ldb;",
        "  }",
        *(f"  {line}" for line in store_fragment("rd", "pd", "g.ldc", fragment, row.d_format)),
        "}",
    ]
    return assemble(row, body, target, WARPGROUP, 1)
