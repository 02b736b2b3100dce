"""This module generates CUDA C++ kernels of tcgen05.mma (Blackwell), on one CTA or a pair, with and without block scales.

Kernels have the interface of :mod:`tensorcore_models.hardware.cuda.source` and the staging of
:mod:`tensorcore_models.hardware.cuda.group_source`. The accumulator is in tensor memory from column 0 on, the block scales
after it. With m = 256 a cluster of two blocks computes a tile (``cta_group::2``). Each block stages half of the rows of A and
half of the columns of B; it holds half of the rows of D, their scales, and the scales of all columns. The even block issues
the instruction.

Like the accumulator, scales are written with ``tcgen05.st``, and each of the four warps writes its own copy. ``tcgen05.cp``
with ``.warpx4`` would write the same words, but needs shared memory and a further descriptor.

Source: PTX ISA 9.1, 9.7.16 "TensorCore 5th Generation Family Instructions": instruction descriptor (9.7.16.4.2), issue
granularity and CTA pairs (9.7.16.5), packing (9.7.16.10.4), data paths (9.7.16.10.5), block scaling (9.7.16.10.7).
"""

from typing import NamedTuple

from ...engines.instruction import Instruction
from ...formats import get_format
from .group_source import shared_arrays, stage_both
from .layouts import SCALE_LANES, WARPGROUP, scale_columns, tensor_memory_accumulator
from .source import CudaKernel, assemble, block_scale_kind, container, scale_word, tile_lines

#: Codes of formats in the instruction descriptor (PTX ISA 9.1, 9.7.16.4.2).
_OPERAND_CODES = {
    "fp16": 0, "bf16": 1, "tf32": 2, "e4m3fn": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5, "u8": 0, "s8": 1,
}  # fmt: skip
_RESULT_CODES = {"fp16": 0, "fp32": 1, "s32": 2}
#: Code of e2m1 in the mxf4 and mxf4nvf4 kinds.
_PACKED_FP4_CODE = 1
_SCALE_CODES = {"ue4m3": 0, "ue8m0": 1}

#: Number of columns of tensor memory at whose multiples scales start; the manual requires no alignment.
_SCALE_ALIGNMENT = 8


def tcgen05_kind(row: Instruction) -> str:
    """Return the .kind of a tcgen05.mma instruction with its block scales; raises ValueError if PTX has no such kind."""
    if row.scale_format is not None:
        return f"{block_scale_kind(row)}.block_scale.block{row.block_size}"
    if row.a_format in ("s8", "u8"):
        return "i8"
    if row.a_format == "tf32":
        return "tf32"
    return "f16" if get_format(row.a_format).bits == 16 else "f8f6f4"


def instruction_descriptor(row: Instruction) -> int:
    """Return the instruction descriptor of a dense tcgen05.mma, with K-major operands and scale factor IDs 0."""
    if row.scale_format is None:
        return (
            int(row.name.endswith(".satfinite")) << 3
            | _RESULT_CODES[row.d_format] << 4
            | _OPERAND_CODES[row.a_format] << 7
            | _OPERAND_CODES[row.b_format] << 10
            | row.n >> 3 << 17
            | row.m >> 4 << 24
        )
    mixed = block_scale_kind(row) == "mxf8f6f4"
    a, b = (_OPERAND_CODES[f] if mixed else _PACKED_FP4_CODE for f in (row.a_format, row.b_format))
    return a << 7 | b << 10 | row.n >> 3 << 17 | _SCALE_CODES[row.scale_format] << 23 | row.m >> 7 << 27


class _Plan(NamedTuple):
    """`_Plan` holds the rows, columns and tensor memory columns of one CTA."""

    ctas: int
    rows: int
    cols: int
    scales_a: int
    scales_b: int
    columns: int


def _plan(row: Instruction) -> _Plan:
    ctas = 2 if row.m == 256 else 1
    rows = row.m // ctas
    scales_a = -(-row.n // _SCALE_ALIGNMENT) * _SCALE_ALIGNMENT
    scales_b = scales_a + -(-scale_columns(rows) // _SCALE_ALIGNMENT) * _SCALE_ALIGNMENT
    used = row.n if row.scale_format is None else scales_b + scale_columns(row.n)
    return _Plan(ctas, rows, row.n // ctas, scales_a, scales_b, max(32, 1 << (used - 1).bit_length()))


def scale_lines(row: Instruction) -> list[str]:
    """Return C lines that gather a thread's scale words of one k step: `scales_a[c]` and `scales_b[c]` for column c.

    `psa` points to the scales of the CTA's first row of A, `psb` to those of the tile's first column of B. Lanes beyond the
    last column of B hold copies that are not read.
    """
    count, lines = row.scale_blocks, []
    for c in range(scale_columns(_plan(row).rows)):
        element = f"psa[(threadIdx.x % {SCALE_LANES}u + {SCALE_LANES * c}u) * g.lds_a + {{}}u]"
        lines.append(f"scales_a[{c}] = {scale_word(element, count)};")
    for c in range(scale_columns(row.n)):
        element = f"psb[{{}}u * g.lds_b + (threadIdx.x % {SCALE_LANES}u + {SCALE_LANES * c}u) % {row.n}u]"
        lines.append(f"scales_b[{c}] = {scale_word(element, count)};")
    return lines


def _write_scales(row: Instruction, plan: _Plan) -> list[str]:
    """Return C lines that write one k step's scales to tensor memory."""
    if row.scale_format is None:
        return []
    store = (
        'asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {{%1}};" : : "r"(own + {}u), "r"({}) : "memory");'
    )
    count = row.scale_blocks
    return [
        f"u32 scales_a[{scale_columns(plan.rows)}], scales_b[{scale_columns(row.n)}];",
        *scale_lines(row),
        *(store.format(plan.scales_a + c, f"scales_a[{c}]") for c in range(scale_columns(plan.rows))),
        *(store.format(plan.scales_b + c, f"scales_b[{c}]") for c in range(scale_columns(row.n))),
        'asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");',
        f"psa += {count}u; psb += {count}u * g.lds_b;",
    ]


def _barrier(plan: _Plan) -> str:
    """Return C text with which all threads that share a tile wait for each other."""
    if plan.ctas == 1:
        return "__syncthreads();"
    return 'asm volatile("barrier.cluster.arrive.release; barrier.cluster.wait.acquire;" ::: "memory");'


def _fenced_barrier(plan: _Plan) -> list[str]:
    return [
        'asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");',
        _barrier(plan),
        'asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
    ]


def _setup(plan: _Plan) -> list[str]:
    """Return C lines that allocate tensor memory and initialise the barrier that the instruction arrives on."""
    group = f"cta_group::{plan.ctas}"
    return [
        *([] if plan.ctas == 1 else ["const u32 rank = blockIdx.x % 2u;", _barrier(plan)]),
        "__shared__ u32 tensor_memory;",
        "__shared__ __align__(8) u64 barrier;",
        "const u32 barrier_address = (u32)__cvta_generic_to_shared(&barrier);",
        "if (threadIdx.x < 32u) {",
        f'  asm volatile("tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [%0], {plan.columns};" : : '
        '"r"((u32)__cvta_generic_to_shared(&tensor_memory)) : "memory");',
        f'  asm volatile("tcgen05.relinquish_alloc_permit.{group}.sync.aligned;");',
        "}",
        "if (threadIdx.x == 0) {",
        '  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" : : "r"(barrier_address) : "memory");',
        '  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");',
        "}",
        *_fenced_barrier(plan),
        "const u32 base = tensor_memory, own = base + (threadIdx.x / 32u * 32u << 16);",
        "u32 phase = 0;",
    ]


def _pointers(row: Instruction, plan: _Plan) -> list[str]:
    """Return C lines that declare the pointers of tile `t`, at the first row and column of this CTA."""
    lines = tile_lines(row)
    if row.scale_format is not None:
        lines += ["const u8* psa = sa + tm * g.sa_tile;", "const u8* psb = sb + tm * g.sb_tile_m + tn * g.sb_tile_n;"]
    if plan.ctas == 2:
        lines += [
            f"pa += rank * {plan.rows}u * g.lda; pb += rank * {plan.cols}u;",
            f"pc += rank * {plan.rows}u * g.ldc; pd += rank * {plan.rows}u * g.ldc;",
        ]
        if row.scale_format is not None:
            lines.append(f"psa += rank * {plan.rows}u * g.lds_a;")
    return lines


def _issue(row: Instruction, plan: _Plan) -> list[str]:
    """Return C lines in which one thread issues the instruction, and all threads wait for it at their CTA's barrier."""
    group, scales, scale_inputs = f"cta_group::{plan.ctas}", "", ""
    if row.scale_format is not None:
        scales = ", [%5], [%6]"
        scale_inputs = f', "r"(base + {plan.scales_a}u), "r"(base + {plan.scales_b}u)'
    leader, commit = "threadIdx.x == 0", '.b64 [%0];" : : "r"(barrier_address)'
    if plan.ctas == 2:
        leader += " && rank == 0"
        commit = '.multicast::cluster.b64 [%0], %1;" : : "r"(barrier_address), "h"((u16)3)'
    return [
        f"if ({leader}) {{",
        f'  asm volatile("{{.reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.{group}.kind::{tcgen05_kind(row)} '
        f'[%0], %1, %2, %3{scales}, p;}}" : : "r"(base), "l"(descriptor_a), "l"(descriptor_b), '
        f'"r"({instruction_descriptor(row):#x}u), "r"(1){scale_inputs} : "memory");',
        f'  asm volatile("tcgen05.commit.{group}.mbarrier::arrive::one.shared::cluster{commit} : "memory");',
        "}",
        "u32 done = 0;",
        'while (!done) asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; '
        'selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(barrier_address), "r"(phase) : "memory");',
        "phase ^= 1u;",
        'asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");',
    ]


def tcgen05_kernel(row: Instruction, target: str | None = None) -> CudaKernel:
    """Return the kernel of a tcgen05.mma instruction, on one CTA (m = 64 or 128) or on a pair (m = 256).

    Raises ValueError for another m; block scales need m = 128 or 256.
    """
    plan = _plan(row)
    if plan.rows != 128 and (row.scale_format is not None or plan.rows != 64):
        raise ValueError(f"{row}: m is {row.m}, expected 64 (without block scales), 128 or 256 for tcgen05.mma")
    fragment = tensor_memory_accumulator(plan.rows, row.n)
    if fragment.thread_count != plan.rows:
        raise ValueError(f"{row}: {fragment.thread_count} threads hold rows, expected {plan.rows}")
    rows_held = "threadIdx.x % 32u < 16u" if plan.rows == 64 else "true"
    own_row = "threadIdx.x / 32u * 16u + threadIdx.x % 16u" if plan.rows == 64 else "threadIdx.x"
    body = [
        *shared_arrays(plan.rows, plan.cols, 1),
        *_setup(plan),
        f"const u64 row = {own_row};",
        f"for (u64 t = blockIdx.x / {plan.ctas}u; t < g.tiles; t += gridDim.x / {plan.ctas}u) {{",
        *(f"  {line}" for line in _pointers(row, plan)),
        f"  for (u32 j = 0; j < {row.n}u; ++j) {{",
        f"    const u32 value = {rows_held} ? (u32)pc[row * g.ldc + j] : 0u;",
        '    asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" : : "r"(own + j), "r"(value) : "memory");',
        "  }",
        '  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");',
        "  for (u64 s = 0; s < g.steps; ++s) {",
        *(f"    {line}" for line in stage_both(row, plan.rows, plan.cols)),
        *(f"    {line}" for line in _write_scales(row, plan)),
        *(f"    {line}" for line in _fenced_barrier(plan)),
        *(f"    {line}" for line in _issue(row, plan)),
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
        *_fenced_barrier(plan),
        f'if (threadIdx.x < 32u) asm volatile("tcgen05.dealloc.cta_group::{plan.ctas}.sync.aligned.b32 %0, {plan.columns};" '
        ': : "r"(base));',
    ]
    return assemble(row, body, target, WARPGROUP, 1, plan.ctas)
