"""This module generates CUDA C++ kernels of warp-level mma.sync and WMMA from rows of the catalogue.

Every kernel has the same interface (:data:`PROLOGUE`). It computes d = a b + c for a grid of tiles on raw encodings in
row-major arrays, one element in its container type. A tile is the m by n of one instruction, and is chained over `steps`
instructions of depth k, where the d of one instruction is the c of the next. Tile t is in tile row ``t / tiles_n`` and tile
column ``t % tiles_n``; strides are in elements:

- batches of small matrices: tiles_n = 1, a_tile = m k, b_tile_m = k n, c_tile_m = m n;
- one large product: tiles_n = N / n, a_tile = m lda, b_tile_m = 0, b_tile_n = n, c_tile_m = m ldc, c_tile_n = n.

Kernels pack elements into registers and unpack them by the offsets of :mod:`tensorcore_models.hardware.cuda.layouts`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ...catalogue.nvidia import ARCHITECTURES, PTX_ROUNDINGS, ptx_name
from ...engines.instruction import Instruction
from ...formats import get_format
from .layouts import (
    FP4_BYTE_SHIFT,
    REGISTER_SCALES_A,
    REGISTER_SCALES_B,
    WARP,
    Fragment,
    MmaLayout,
    Mode,
    mma_layout,
)
from .targets import target_of

#: Fields of the geometry that every kernel takes, with 64 bits each.
GEOMETRY = (
    "tiles", "tiles_n", "steps", "lda", "ldb", "ldc", "lds_a", "lds_b", "a_tile", "b_tile_m", "b_tile_n", "c_tile_m",
    "c_tile_n", "sa_tile", "sb_tile_m", "sb_tile_n",
)  # fmt: skip

KERNEL_NAME = "matrix_multiply_accumulate"

PROLOGUE = f"""\
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
struct Geometry {{ u64 {", ".join(GEOMETRY)}; }};
"""

WARPS_PER_BLOCK = 4


@dataclass(frozen=True)
class CudaKernel:
    """`CudaKernel` is a generated kernel: its CUDA C++ source without includes, its target and its launch parameters.

    A block (or cluster of blocks) computes `tiles_per_block` tiles at a time; the number of blocks is a multiple of `cluster`.
    """

    source: str
    target: str
    threads: int
    tiles_per_block: int
    cluster: int = 1


def container(fmt: str) -> str:
    """Return the C type of a format's encodings."""
    return f"u{8 * get_format(fmt).container.itemsize}"


def register_type(fragment: Fragment) -> str:
    """Return the C type of a fragment's registers."""
    return f"u{fragment.register_bits}"


def constraint(bits: int) -> str:
    """Return the inline assembly constraint of a register."""
    return "l" if bits == 64 else "r"


def operands(first: int, count: int) -> str:
    """Return a PTX vector of `count` operands from %first on."""
    return "{" + ", ".join(f"%{i}" for i in range(first, first + count)) + "}"


def signature(row: Instruction, cluster: int = 1) -> str:
    """Return the C++ signature that all kernels share; `cluster` blocks form a thread block cluster."""
    a, b, c, d = (container(f) for f in (row.a_format, row.b_format, row.c_format, row.d_format))
    attribute = f"__cluster_dims__({cluster}, 1, 1) " if cluster > 1 else ""
    return (
        f'extern "C" __global__ void {attribute}{KERNEL_NAME}(const {a}* __restrict__ a, const {b}* __restrict__ b, '
        f"const {c}* __restrict__ c, {d}* __restrict__ d, const u8* __restrict__ sa, const u8* __restrict__ sb, Geometry g)"
    )


def assemble(
    row: Instruction, body: list[str], target: str | None, threads: int, tiles: int, cluster: int = 1
) -> CudaKernel:
    """Return the kernel with this body, with `threads` per block and `tiles` at a time per block or cluster."""
    text = "\n".join([PROLOGUE, signature(row, cluster), "{", *(f"  {line}" for line in body), "}", ""])
    return CudaKernel(text, target or target_of(row.arch), threads, tiles, cluster)


def tile_lines(row: Instruction) -> list[str]:
    """Return C lines that declare the pointers of tile `t`."""
    return [
        "const u64 tm = t / g.tiles_n, tn = t % g.tiles_n;",
        f"const {container(row.a_format)}* pa = a + tm * g.a_tile;",
        f"const {container(row.b_format)}* pb = b + tm * g.b_tile_m + tn * g.b_tile_n;",
        f"const {container(row.c_format)}* pc = c + tm * g.c_tile_m + tn * g.c_tile_n;",
        f"{container(row.d_format)}* pd = d + tm * g.c_tile_m + tn * g.c_tile_n;",
    ]


# -- fragments ---------------------------------------------------------------------------------------------------------------
def thread_coordinate(modes: tuple[Mode, ...], axis: str, thread: str) -> str:
    """Return the C expression of a thread's coordinate along an axis."""
    terms, divisor = [], 1
    for mode in modes:
        if mode.axis == axis and mode.stride:
            digit = f"{thread} / {divisor}u % {mode.extent}u"
            terms.append(digit if mode.stride == 1 else f"{digit} * {mode.stride}u")
        divisor *= mode.extent
    return " + ".join(terms) or "0u"


def _element(fmt: str, bits: int, text: str) -> str:
    """Return the C expression of an element in the form in which its register holds it."""
    width = get_format(fmt).bits
    if width == 4 and bits == 8:
        return f"(({text}) & 15u) << {FP4_BYTE_SHIFT}"
    if width in (4, 6):
        return f"({text}) & {(1 << width) - 1}u"
    return text


def load_fragment(name: str, pointer: str, stride: str, fragment: Fragment, fmt: str) -> list[str]:
    """Return C lines that pack one thread's elements from a row-major array into its registers."""
    kind, lines = register_type(fragment), []
    for register in range(fragment.registers):
        parts = []
        for i in range(fragment.per_register):
            place = fragment.offset(register * fragment.per_register + i)
            value = _element(fmt, fragment.bits, f"{pointer}[{place.row}u * {stride} + {place.col}u]")
            parts.append(f"({kind})({value})" + (f" << {i * fragment.bits}" if i else ""))
        lines.append(f"{name}[{register}] = {' | '.join(parts)};")
    return lines


def store_fragment(name: str, pointer: str, stride: str, fragment: Fragment, fmt: str) -> list[str]:
    """Return C lines that unpack one thread's registers into a row-major array."""
    kind, lines = container(fmt), []
    for register in range(fragment.registers):
        for i in range(fragment.per_register):
            place = fragment.offset(register * fragment.per_register + i)
            shifted = f"{name}[{register}]" + (f" >> {i * fragment.bits}" if i else "")
            lines.append(f"{pointer}[{place.row}u * {stride} + {place.col}u] = ({kind})({shifted});")
    return lines


def _pointers(letter: str, fragment: Fragment, tile: str, base: str, stride: str) -> list[str]:
    """Return C lines that declare a thread's tile (at most the last tile), and its pointer to slot 0 of one operand."""
    threads = fragment.threads
    row, col = (thread_coordinate(threads, axis, "lane") for axis in ("row", "col"))
    block = thread_coordinate(threads, "block", "lane")
    return [
        f"const u64 t{letter} = {tile} + ({block}) < g.tiles ? {tile} + ({block}) : g.tiles - 1;",
        f"{base.replace('@', f't{letter}')} + ({row}) * {stride} + ({col});",
    ]


# -- block scales ------------------------------------------------------------------------------------------------------------
def block_scale_kind(row: Instruction) -> str:
    """Return the .kind of a block-scaled instruction (PTX ISA 9.1, 9.7.14.3 and 9.7.16.10.7.1); raises ValueError."""
    if row.k == 32 and (row.block_size, row.scale_format) == (32, "ue8m0"):
        return "mxf8f6f4"
    kinds = {"ue8m0": {32: "mxf4", 16: "mxf4nvf4"}, "ue4m3": {16: "mxf4nvf4"}}
    kind = kinds.get(row.scale_format or "", {}).get(row.block_size or 0)
    if row.k != 64 or kind is None:
        raise ValueError(
            f"{row}: PTX ISA 9.1 has no block-scaled instruction of k = {row.k} with {row.scale_format} scales for "
            f"{row.block_size} products, expected ue8m0 for 32 (k = 32 or 64), or ue8m0 or ue4m3 for 16 (k = 64)"
        )
    return kind


def scale_word(element: str, count: int) -> str:
    """Return the C expression of `count` scales as one 32-bit word, low byte first; `element` is that of scale {}."""
    return " | ".join(f"(u32){element.format(i)}" + (f" << {8 * i}" if i else "") for i in range(count))


# -- mma.sync ----------------------------------------------------------------------------------------------------------------
def mma_text(row: Instruction) -> str:
    """Return the PTX instruction of a catalogue row without operands."""
    a, b, c, d = (ptx_name(f) for f in (row.a_format, row.b_format, row.c_format, row.d_format))
    shape = f"m{row.m}n{row.n}k{row.k}"
    saturate = ".satfinite" if row.name.endswith(".satfinite") else ""
    if row.scale_format is not None:
        scale = f".kind::{block_scale_kind(row)}.block_scale.scale_vec::{row.scale_blocks}X"
        return f"mma.sync.aligned{scale}.{shape}.row.col.{d}.{a}.{b}.{c}.{row.scale_format}"
    kind = ARCHITECTURES[row.arch].narrow_kind
    if kind and get_format(row.a_format).bits <= 8 and row.k == 32 and row.d_format != "s32":
        return f"mma.sync.aligned.kind::{kind}.{shape}.row.col.{d}.{a}.{b}.{c}"
    rounding = row.name[-3:] if row.name[-2:] in PTX_ROUNDINGS else ""
    return f"mma.sync.aligned.{shape}.row.col{saturate}{rounding}.{d}.{a}.{b}.{c}"


def _mma_statement(row: Instruction, layout: MmaLayout) -> str:
    """Return the inline assembly statement rd = ra rb + rc."""
    counts = [f.registers for f in (layout.d, layout.a, layout.b, layout.c)]
    starts = [sum(counts[:i]) for i in range(4)]
    vectors = ", ".join(operands(start, count) for start, count in zip(starts, counts, strict=True))
    inputs = [
        f'"{constraint(f.register_bits)}"({name}[{i}])'
        for f, name in ((layout.a, "ra"), (layout.b, "rb"), (layout.c, "rc"))
        for i in range(f.registers)
    ]
    outputs = [f'"={constraint(layout.d.register_bits)}"(rd[{i}])' for i in range(layout.d.registers)]
    if row.scale_format is not None:
        first = sum(counts)
        vectors += f", {{%{first}}}, {{%{first + 1}, %{first + 1}}}, {{%{first + 2}}}, {{%{first + 1}, %{first + 1}}}"
        inputs += ['"r"(scales_a)', '"h"((u16)0)', '"r"(scales_b)']
    return f'asm volatile("{mma_text(row)} {vectors};" : {", ".join(outputs)} : {", ".join(inputs)});'


def _scale_lines(row: Instruction) -> tuple[list[str], list[str]]:
    """Return the C lines before the loop, and those in the loop, that gather the block scales of one step."""
    if row.scale_format is None:
        return [], []
    per_step = row.scale_blocks
    row_a = thread_coordinate(REGISTER_SCALES_A, "row", "lane")
    col_b = thread_coordinate(REGISTER_SCALES_B, "col", "lane")
    declare = [
        f"const u8* psa = sa + ta / g.tiles_n * g.sa_tile + ({row_a}) * g.lds_a;",
        f"const u8* psb = sb + tb / g.tiles_n * g.sb_tile_m + tb % g.tiles_n * g.sb_tile_n + ({col_b});",
    ]
    loop = [
        f"const u32 scales_a = {scale_word('psa[{}u]', per_step)};",
        f"const u32 scales_b = {scale_word('psb[{}u * g.lds_b]', per_step)};",
        f"psa += {per_step}u; psb += {per_step}u * g.lds_b;",
    ]
    return declare, loop


def _tile_pointers(row: Instruction, layout: MmaLayout) -> list[str]:
    """Return declarations of a thread's pointers into its tile of each matrix."""
    at_b, at_c = (f"@ / g.tiles_n * g.{letter}_tile_m + @ % g.tiles_n * g.{letter}_tile_n" for letter in "bc")
    rows = (
        ("a", layout.a, f"const {container(row.a_format)}* pa = a + @ / g.tiles_n * g.a_tile", "g.lda"),
        ("b", layout.b, f"const {container(row.b_format)}* pb = b + {at_b}", "g.ldb"),
        ("c", layout.c, f"const {container(row.c_format)}* pc = c + {at_c}", "g.ldc"),
        ("c", layout.d, f"{container(row.d_format)}* pd = d + {at_c}", "g.ldc"),
    )
    found = [_pointers(letter, fragment, "first", text, stride) for letter, fragment, text, stride in rows]
    return [*(tile for tile, _ in found[:3]), *(pointer for _, pointer in found)]


def mma_kernel(row: Instruction, target: str | None = None) -> CudaKernel:
    """Return the kernel of an mma.sync instruction, with one warp for each tile (for four tiles with m8n8k4)."""
    layout = mma_layout(
        (row.m, row.n, row.k), row.a_format, row.b_format, row.c_format, row.d_format, row.scale_format is not None
    )
    blocks = layout.d.shape[0]
    pointers = _tile_pointers(row, layout)
    declare_scales, gather_scales = _scale_lines(row)
    registers = [
        f"{register_type(f)} {name}[{f.registers}];"
        for f, name in ((layout.a, "ra"), (layout.b, "rb"), (layout.c, "rc"), (layout.d, "rd"))
    ]
    carry = [f"rc[{i}] = rd[{i}];" for i in range(layout.d.registers)] if row.c_format == row.d_format else []
    loop = [
        *load_fragment("ra", "pa", "g.lda", layout.a, row.a_format),
        *load_fragment("rb", "pb", "g.ldb", layout.b, row.b_format),
        *gather_scales,
        _mma_statement(row, layout),
        *carry,
        f"pa += {row.k}u; pb += {row.k}u * g.ldb;",
    ]
    block = thread_coordinate(layout.d.threads, "block", "lane")
    body = [
        f"const u32 lane = threadIdx.x % {WARP}u;",
        f"const u64 warps = (u64)gridDim.x * (blockDim.x / {WARP}u);",
        f"for (u64 first = ((u64)blockIdx.x * (blockDim.x / {WARP}u) + threadIdx.x / {WARP}u) * {blocks}u; first < g.tiles; "
        f"first += warps * {blocks}u) {{",
        *(f"  {line}" for line in (*pointers, *declare_scales, *registers)),
        *(f"  {line}" for line in load_fragment("rc", "pc", "g.ldc", layout.c, row.c_format)),
        "  for (u64 s = 0; s < g.steps; ++s) {",
        *(f"    {line}" for line in loop),
        "  }",
        f"  if (first + ({block}) < g.tiles) {{",
        *(f"    {line}" for line in store_fragment("rd", "pd", "g.ldc", layout.d, row.d_format)),
        "  }",
        "}",
    ]
    return assemble(row, body, target, WARP * WARPS_PER_BLOCK, WARPS_PER_BLOCK * blocks)


# -- WMMA --------------------------------------------------------------------------------------------------------------------
#: Number of 32-bit registers of WMMA fragments of a or b, and of c or d, by format (PTX ISA, "Matrix Fragments for WMMA"); for
#: bf16 by shape.
WMMA_OPERANDS, WMMA_RESULTS = {"fp16": 8, "tf32": 4}, {"fp32": 8, "fp16": 4}
WMMA_BF16_REGISTERS = {(16, 16): (4, 4), (32, 8): (8, 2), (8, 32): (2, 8)}


def _wmma_registers(row: Instruction) -> tuple[int, int, int, int]:
    if row.a_format == "bf16":
        a, b = WMMA_BF16_REGISTERS[row.m, row.n]
    else:
        a, b = WMMA_OPERANDS[row.a_format], WMMA_OPERANDS[row.b_format]
    return a, b, WMMA_RESULTS[row.c_format], WMMA_RESULTS[row.d_format]


def _wmma_load(row: Instruction, letter: str, count: int, width: int) -> str:
    """Return the wmma.load of the matrix `letter`, whose rows are `width` long, into `count` registers."""
    outputs = ", ".join(f'"=r"(r{letter}[{i}])' for i in range(count))
    name = ptx_name(getattr(row, f"{letter}_format"))
    return (
        f'asm volatile("wmma.load.{letter}.sync.aligned.row.{_shape_name(row)}.shared.{name} {operands(0, count)}, '
        f'[%{count}], %{count + 1};" : {outputs} : "r"(address_{letter}), "r"({width}u) : "memory");'
    )


def _wmma_stage(letter: str, size: int, width: int, pointer: str, stride: str) -> str:
    """Return the C loop with which a warp copies a tile from memory to shared memory."""
    return (
        f"for (u32 i = lane; i < {size}u; i += {WARP}u) "
        f"tile_{letter}[warp][i] = {pointer}[(u64)(i / {width}u) * {stride} + i % {width}u];"
    )


def _wmma_multiply(row: Instruction, counts: Mapping[str, int]) -> str:
    """Return the wmma.mma on the registers of all four fragments."""
    operand_names = () if row.a_format == "fp16" else (row.a_format, row.b_format)
    types = ".".join(map(ptx_name, (row.d_format, *operand_names, row.c_format)))
    starts = {"d": 0, "a": counts["d"], "b": counts["d"] + counts["a"], "c": counts["d"] + counts["a"] + counts["b"]}
    vectors = ", ".join(operands(starts[x], counts[x]) for x in "dabc")
    outputs = ", ".join(f'"=r"(rd[{i}])' for i in range(counts["d"]))
    inputs = ", ".join(f'"r"(r{x}[{i}])' for x in "abc" for i in range(counts[x]))
    return (
        f'asm volatile("wmma.mma.sync.aligned.row.row.{_shape_name(row)}.{types} {vectors};" : {outputs} : {inputs});'
    )


def _wmma_store(row: Instruction, count: int) -> str:
    """Return the wmma.store of D."""
    inputs = ", ".join(f'"r"(rd[{i}])' for i in range(count))
    return (
        f'asm volatile("wmma.store.d.sync.aligned.row.{_shape_name(row)}.shared.{ptx_name(row.d_format)} [%{count}], '
        f'{operands(0, count)}, %{count + 1};" : : {inputs}, "r"(address_d), "r"({row.n}u) : "memory");'
    )


def _shape_name(row: Instruction) -> str:
    return f"m{row.m}n{row.n}k{row.k}"


def wmma_kernel(row: Instruction, target: str | None = None) -> CudaKernel:
    """Return the kernel of a WMMA instruction; tiles pass through shared memory, which wmma.load and wmma.store access."""
    counts = dict(zip("abcd", _wmma_registers(row), strict=True))
    types = {letter: container(getattr(row, f"{letter}_format")) for letter in "abcd"}
    widths = {"a": row.k, "b": row.n, "c": row.n, "d": row.n}
    sizes = {"a": row.m * row.k, "b": row.k * row.n, "c": row.m * row.n, "d": row.m * row.n}
    load = {x: _wmma_load(row, x, counts[x], widths[x]) for x in "abc"}
    strides = (("a", "pa", "g.lda"), ("b", "pb", "g.ldb"), ("c", "pc", "g.ldc"))
    stage = {x: _wmma_stage(x, sizes[x], widths[x], pointer, stride) for x, pointer, stride in strides}
    carry = " ".join(f"rc[{i}] = rd[{i}];" for i in range(counts["d"])) if row.c_format == row.d_format else ""
    body = [
        *(f"__shared__ __align__(128) {types[x]} tile_{x}[{WARPS_PER_BLOCK}][{sizes[x]}];" for x in "abcd"),
        f"const u32 lane = threadIdx.x % {WARP}u, warp = threadIdx.x / {WARP}u;",
        *(f"const u32 address_{x} = (u32)__cvta_generic_to_shared(&tile_{x}[warp][0]);" for x in "abcd"),
        *(f"u32 r{x}[{counts[x]}];" for x in "abcd"),
        f"for (u64 t = (u64)blockIdx.x * {WARPS_PER_BLOCK}u + warp; t < g.tiles; t += (u64)gridDim.x * {WARPS_PER_BLOCK}u) {{",
        *(f"  {line}" for line in tile_lines(row)),
        "  __syncwarp();",
        f"  {stage['c']}",
        "  __syncwarp();",
        f"  {load['c']}",
        "  for (u64 s = 0; s < g.steps; ++s) {",
        "    __syncwarp();",
        f"    {stage['a']}",
        f"    {stage['b']}",
        "    __syncwarp();",
        f"    {load['a']}",
        f"    {load['b']}",
        f"    {_wmma_multiply(row, counts)}",
        f"    {carry}",
        f"    pa += {row.k}u; pb += {row.k}u * g.ldb;",
        "  }",
        f"  {_wmma_store(row, counts['d'])}",
        "  __syncwarp();",
        f"  for (u32 i = lane; i < {sizes['d']}u; i += {WARP}u)",
        f"    pd[(u64)(i / {row.n}u) * g.ldc + i % {row.n}u] = tile_d[warp][i];",
        "}",
    ]
    return assemble(row, body, target, WARP * WARPS_PER_BLOCK, WARPS_PER_BLOCK)
