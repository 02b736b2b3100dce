"""This module derives the values to type into a kernel: AscendC's TCubeTiling, CATLASS's tile shapes, and notes.

Fields and rules: :mod:`ascend.tiling`. Sources of the calls: AscendC API reference, MultiCoreMatmulTiling, of which
EnableMultiCoreSplitK (07_0682) comes before GetTiling; CATLASS (examples/00_basic_matmul and docs
1_Practice/11_matmul_optimization.md) for GemmShape<M, N, K> and the swizzle.
"""

from ascend.dialects import DIALECTS
from ascend.kernels.base import Kernel
from ascend.reports.catlass import catlass_text
from ascend.tiling.fields import by_columns, core_mode, cube_fields, described, layout_of, tiling_fields
from ascend.tiling.rules import LARGEST_ND

#: Layout of A and B in memory, in words.
LAYOUT_WORDS = {
    "nz": "A and B in NZ fractals", "nd": "A (m x k) and B (k x n) in ND rows", "nt": "A (m x k) and B (n x k) in ND rows",
}  # fmt: skip


def notes(schedule: Kernel) -> list[str]:
    """Return notes on properties of a schedule that have no field in AscendC, and on switches that it needs."""
    s = schedule
    if not s.on_cube:
        return [
            "a vector kernel has no Matmul: stream the larger operand through UB with DataCopy, multiply and add there"
        ]
    fields = tiling_fields(s)
    found = [_mode_note(s)] if DIALECTS["ascendc"].has(s.placed_on) else []
    if len(s.k_slices) > 1:
        in_order = "; but this schedule adds the slices in order, which needs an additional pass"
        found.append(
            f"K is split {len(s.k_slices)} ways: call EnableMultiCoreSplitK(true) before GetTiling, clear C and add to it"
            f"{in_order if s.merge == 'reduce' else ''}"
        )
    if s.deals_one_by_one:
        found.append(
            f"tiles are dealt one by one in the order {s.swizzle}: TCubeTiling has no field for the order and deals "
            "rectangles; use CATLASS, which has the order"
        )
    if s.groups > 1:
        found.append(
            f"L0C is emptied every {s.chain} products (k groups): AscendC and CATLASS accumulate all of singleCoreK in L0C; "
            f"call the Matmul once for each group of K"
        )
    if s.terms > 1:
        found.append(
            f"the {s.terms} terms are {s.terms} Matmuls on the FP16 words; splitting words and combining terms have no field"
        )
    if s.words > 1:
        found.append("a fused kernel keeps both words in L1 and L0: the fields describe one word")
    layout = layout_of(s)
    if layout != "nz" and max(s.k, 0 if layout == "nt" else s.n) > LARGEST_ND and s.placed_on.name != "950":
        found.append(f"K or N above {LARGEST_ND} in ND format: set intrinsicsCheck in MatmulConfig")
    if layout == "nz" and (fields["M"], fields["Ka"], fields["N"]) != (s.m, s.k, s.n):
        found.append(
            f"NZ operands are padded to M, K, N = {fields['M']}, {fields['Ka']}, {fields['N']} with zeros, as the fields "
            "say, so C has the padded rows and columns, too"
        )
    if s.scale_bytes:
        found.append(
            f"{s.operand}: use MxMatmul, with a scale of one byte for {s.format.scale_block} products of a row of A or "
            "column of B; L1 holds the scales beside their blocks, and the buffers below include them"
        )
    if s.operand == "hf32":
        found.append(
            "HF32: take float operands and call SetHF32(true) on the Matmul object; SetHF32TransMode chooses the rounding, "
            "call it after SetHF32Mode (AscendC API reference, 07_0259)"
        )
    return found


def _mode_note(s: Kernel) -> str:
    """Return a note on the cores that SetDim and usedCoreNum count, and on the macro that selects them."""
    mode, cubes = core_mode(s), cube_fields(s)["usedCoreNum"]
    if mode.name == "cube only":
        return (
            f"the fields count cubes: #define ASCENDC_CUBE_ONLY before lib/matmul_intf.h and launch {cubes} blocks; without "
            "it (MIX mode) they count vector cores, and half of the cubes stay idle"
        )
    if mode.name == "widening":
        through = "L1" if s.placed_on.widened_to_l1 else "memory"
        return (
            f"the fields count cubes and describe their product: {s.operand} weights have {s.format.weight_bits} bits in "
            f"memory, and vector units widen them to {s.format.bits} bits and pass them through {through}, which no plain "
            "Matmul does"
        )
    if mode.name == "coupled":
        return f"the fields count cores, which have a cube and a vector unit each: {cubes} blocks are launched"
    return (
        f"the fields count vector cores, {mode.counted} for each cube (MIX mode, no ASCENDC_CUBE_ONLY): {cubes} blocks are "
        f"launched as KERNEL_TYPE_MIX_AIC_1_{mode.counted}"
    )


def layout_words(schedule: Kernel) -> str:
    """Return how the caller's operands lie in memory, and which pass converts them."""
    s = schedule
    if not s.on_cube:
        return f"A and B in {s.operand.upper()} rows"
    if s.terms > 1:
        return "A and B in FP32; a pass splits them into words in NZ fractals"
    turned = "; a pass turns them into NZ fractals" if s.converts else ""
    return LAYOUT_WORDS[s.layout] + turned


def ascendc_snippet(schedule: Kernel) -> str:
    """Return the C++ host code that sets a TCubeTiling, in the order that the API requires."""
    s, fields = schedule, tiling_fields(schedule)
    if not fields or not s.format.data_type:
        return ""
    return "\n".join(
        [
            f"// C = A B with A {s.m} x {s.k}, B {s.k} x {s.n}; {layout_words(s)}",
            "using namespace matmul_tiling;",
            "MultiCoreMatmulTiling tilingApi(platform);",
            *(f"tilingApi.{call};" for call in tiling_calls(s)),
            "tilingApi.GetTiling(tiling);",
            "// values in place of GetTiling's:",
            *(f"tiling.set_{name}({value});" for name, value in fields.items()),
            "tiling.set_isBias(0);",
        ]
    )


def tiling_calls(schedule: Kernel) -> list[str]:
    """Return the calls of MultiCoreMatmulTiling before GetTiling, in the order that the API requires."""
    s, fields = schedule, tiling_fields(schedule)
    layout, kind = layout_of(s), s.format.data_type
    form = "NZ" if layout == "nz" else "ND"
    result = "INT32" if s.operand == "int8" else "FLOAT"
    calls = [
        f"SetDim({fields['usedCoreNum']})",
        f"SetAType(TPosition::GM, CubeFormat::{form}, DataType::DT_{kind}, false)",
        f"SetBType(TPosition::GM, CubeFormat::{form}, DataType::DT_{kind}, {'true' if layout == 'nt' else 'false'})",
        f"SetCType(TPosition::GM, CubeFormat::ND, DataType::DT_{result})",
        f"SetShape({fields['M']}, {fields['N']}, {fields['Ka']})",
        f"SetOrgShape({fields['M']}, {fields['N']}, {fields['Ka']})",
        "EnableBias(false)",
    ]
    if len(s.k_slices) > 1:
        calls.append("EnableMultiCoreSplitK(true)")
    return calls


def basic_snippet(schedule: Kernel) -> str:
    """Return the C++ constants for a kernel in AscendC's basic API, the only one of the first generation."""
    s, b = schedule, schedule.blocking
    sizes = {
        "baseM": b.bm, "baseK": b.bk, "baseN": b.bn, "kBlocksInL0C": s.n_fused, "l1BlocksA": s.l1_blocks("a"),
        "l1BlocksB": s.l1_blocks("b"), "words": s.words, "l0Buffers": s.l0_slots, "l0cBuffers": s.l0c_slots,
        "stripRows": s.strip_rows,
    }  # fmt: skip
    return "\n".join(
        [f"// {layout_words(s)}; DataCopy, LoadData, Mmad; the high-level Matmul does not exist on {s.placed_on.name}"]
        + [f"constexpr uint32_t {name} = {value};" for name, value in sizes.items()]
    )


def catlass_snippet(schedule: Kernel) -> str:
    """Return the C++ of the CATLASS kernel that a plan is, or else the tile shapes (GemmShape is <M, N, K>) and the order."""
    s, b = schedule, schedule.blocking
    if not s.on_cube:
        return ""
    if text := catlass_text(s):
        return f"// {layout_words(s)}\n{text}"
    loaded = max(s.depth // s.stream_slots, 1) * b.bk
    lines = [
        f"// {layout_words(s)}",
        f"using L1TileShape = GemmShape<{b.bm}, {b.bn}, {loaded}>;",
        f"using L0TileShape = GemmShape<{b.bm}, {b.bn}, {b.bk}>;",
    ]
    if s.deals_one_by_one:
        lines.append(
            f"using BlockScheduler = typename Gemm::Block::GemmIdentityBlockSwizzle<{s.swizzle.offset}, {s.swizzle.direction}>;"
        )
    else:
        lines.append(f"// {s.placement()}, cores {s.grid}: CATLASS's identity swizzle deals tiles one by one instead")
    return "\n".join(lines)


def pto_snippet(schedule: Kernel) -> str:
    """Return the C++ constants of a kernel like pto-isa's gemm_performance: a rectangle a core, stepK blocks a load.

    If tiles are dealt one by one, which that kernel cannot do, only the block's constants are returned.
    """
    s, fields = schedule, cube_fields(schedule)
    if not fields:
        return ""
    own = ("singleCoreM", "singleCoreK", "singleCoreN") if not s.deals_one_by_one else ()
    names = (*own, "baseM", "baseK", "baseN", "stepM", "stepKa", "stepKb", "stepN")
    cores = s.used_cores if s.deals_one_by_one else fields["usedCoreNum"]
    lines = [f"// m = {s.m}, k = {s.k}, n = {s.n}; two buffers in L1, L0A and L0B; {layout_words(s)}"]
    if s.deals_one_by_one:
        lines.append(f"// tiles one by one, {s.placement()}")
    elif by_columns(s):
        lines.append(
            "// each core walks its tiles column by column, m first; pto-isa's kernel walks row by row, so swap its two loops"
        )
    lines.append(f"constexpr uint32_t blockDim = {cores};")
    return "\n".join(lines + [f"constexpr uint32_t {name} = {fields[name]};" for name in names])


def triton_snippet(schedule: Kernel) -> str:
    """Return the constants of a Triton kernel with one tile a program, or "" if the schedule needs another order."""
    s, b = schedule, schedule.blocking
    if not s.on_cube or s.terms == 1 or s.mode not in DIALECTS["triton"].modes or described(s, "triton") is not None:
        return ""
    programs = len(s.row_blocks) * len(s.column_blocks)
    return (
        f"BM, BN, BK = {b.bm}, {b.bn}, {b.bk}\nGROUP = {s.swizzle.offset}  # rows of tiles in a band, not walked back\n"
        f"grid = ({programs},)"
    )


#: Function that prints the snippet of each dialect.
SNIPPETS = {"ascendc": ascendc_snippet, "catlass": catlass_snippet, "pto": pto_snippet, "triton": triton_snippet}


def snippets(schedule: Kernel) -> dict[str, str]:
    """Return the text for each dialect that supports the chip and the operand; if none does, for the basic API."""
    found = {name: SNIPPETS[name](schedule) for name, row in DIALECTS.items() if row.has(schedule.placed_on)}
    return {name: text for name, text in found.items() if text} or {"AscendC, basic API": basic_snippet(schedule)}


def tile_shapes(schedule: Kernel) -> list[tuple[str, str, str, int, int]]:
    """Return (buffer, content, layout, used bytes, available bytes) of each buffer of a core."""
    s, b = schedule, schedule.blocking
    use = schedule.buffer_use()
    panels = {name: " (panel)" if s.resident == name else "" for name in ("a", "b")}
    contents = {
        "L1": (
            f"A {s.l1_blocks('a')} x ({b.bm} x {b.bk}){panels['a']}, B {s.l1_blocks('b')} x ({b.bk} x {b.bn}){panels['b']}, "
            f"{s.words} word(s) each",
            "NZ",
        ),
        "L0A": (f"{s.l0_slots} x ({b.bm} x {b.bk})", "ZZ"),
        "L0B": (f"{s.l0_slots} x ({b.bk} x {b.bn})", "ZN"),
        "L0C": (f"{s.l0c_slots} x {s.accumulators} x ({b.bm} x {b.bn}) FP32", "NZ"),
        "UB": (
            f"2 tiles of {s.sums.lanes.upper()}, the other operand's part, 2 of C"
            if not s.on_cube
            else f"{s.ub_slots} x {s.ub_copies} x ({s.strip_rows} x {b.bn}) FP32",
            "ND",
        ),
    }
    return [(buffer, *contents[buffer], *use[buffer]) for buffer in use]
