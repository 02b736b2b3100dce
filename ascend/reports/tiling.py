"""What to type into a kernel: AscendC's TCubeTiling, CATLASS's tile shapes, and what neither has a field for.

Source of the fields and rules: AscendC API reference, TCubeTiling structure (CANN commercial 8.0, page
atlasascendc_api_07_0673, and its 8.0.RC3 edition for the L0 capacities; EnableMultiCoreSplitK, 07_0682); CATLASS
(examples/00_basic_matmul and docs 1_Practice/11_matmul_optimization.md) for GemmShape<M, N, K> and the swizzle.
"""

from ascend.blocking import ACCUMULATOR_BYTES, ALIGNMENT, OPERAND_BYTES, fractals
from ascend.chips.chip import Chip
from ascend.grid import Grid
from ascend.kernels.base import Kernel
from ascend.schedule import variant
from tensorcore_models.machine.fp_state import default_fp_state

#: AscendC's iterateOrder: 0 steps along M first, 1 along N first.
ITERATE_M_FIRST, ITERATE_N_FIRST = 0, 1
#: Largest inner size of an ND matrix without the check that intrinsicsCheck switches on.
LARGEST_ND = 65535


def aligned(size: int) -> int:
    """The size in whole fractals."""
    return fractals(size) * ALIGNMENT


def core_rectangle(schedule: Kernel) -> tuple[int, int]:
    """Rows and columns of C that one core computes when AscendC deals rectangles.

    A grid's own cut; the row blocks of the paper's kernel; where tiles are dealt one by one, the rectangles of whole tiles
    that leave the busiest core the fewest.
    """
    s, b = schedule, schedule.blocking
    rows, columns = len(s.row_blocks), len(s.column_blocks)
    if not s.deals_one_by_one:
        return min(fractals(rows, s.grid.m) * b.bm, s.m), min(fractals(columns, s.grid.n) * b.bn, s.n)
    cores = max(s.cores // len(s.k_slices), 1)
    along_m = min(
        range(1, min(cores, rows) + 1),
        key=lambda at: (fractals(rows, at) * fractals(columns, min(cores // at, columns)), abs(at - cores / at)),
    )
    return min(fractals(rows, along_m) * b.bm, s.m), min(fractals(columns, min(cores // along_m, columns)) * b.bn, s.n)


@default_fp_state
def tiling_fields(schedule: Kernel) -> dict[str, int]:
    """AscendC tiling fields of a schedule; empty for a vector kernel, which has no Matmul.

    Returns
    -------
    dict of str to int
        usedCoreNum, M, N, Ka, Kb; singleCoreM/N/K (what one core computes); baseM/N/K (the block in L0); depthA1, depthB1
        (base blocks in L1); stepM, stepN, stepKa, stepKb (base blocks loaded together); dbL0A, dbL0B, dbL0C (2:
        ping-pong); iterateOrder. A fused kernel runs them for each word.
    """
    s, b = schedule, schedule.blocking
    if not s.on_cube:
        return {}
    core_m, core_n = core_rectangle(s)
    core_k = s.k_slices[0][1] - s.k_slices[0][0]
    used = fractals(s.m, core_m) * fractals(s.n, core_n) * fractals(s.k, core_k)
    steps = {name: s.panel_blocks if s.resident == name else max(s.depth // s.stream_slots, 1) for name in ("a", "b")}
    # A stream's depth in whole steps: an odd buffer has no field.
    depths = {name: s.panel_blocks if s.resident == name else steps[name] * s.stream_slots for name in ("a", "b")}
    return {
        "usedCoreNum": used,
        "M": s.m, "N": s.n, "Ka": s.k, "Kb": s.k,
        "singleCoreM": core_m, "singleCoreN": core_n, "singleCoreK": core_k,
        "baseM": min(b.bm, aligned(core_m)), "baseN": min(b.bn, aligned(core_n)), "baseK": min(b.bk, aligned(core_k)),
        "depthA1": depths["a"], "depthB1": depths["b"],
        "stepM": 1, "stepN": 1, "stepKa": steps["a"], "stepKb": steps["b"],
        "dbL0A": s.stream_slots, "dbL0B": s.stream_slots, "dbL0C": min(s.l0c_slots, 2),
        "iterateOrder": ITERATE_M_FIRST if s.resident == "b" else ITERATE_N_FIRST,
    }  # fmt: skip


def broken_rules(fields: dict[str, int], chip: Chip, operand: str = "fp16", split_k: bool = False) -> list[str]:
    """The published rules of TCubeTiling that a set of fields breaks; empty for fields that a kernel takes.

    `split_k`: EnableMultiCoreSplitK(true) is called, without which singleCoreK = K.
    """
    f, size = fields, OPERAND_BYTES[operand]
    found = [f"{name} = {value} is not above 0" for name, value in f.items() if value < 1 and name != "iterateOrder"]
    if found:
        return found
    k_parts = fractals(f["Ka"], f["singleCoreK"]) if split_k else 1
    parts = fractals(f["M"], f["singleCoreM"]) * fractals(f["N"], f["singleCoreN"]) * k_parts
    l1 = size * (f["depthA1"] * f["baseM"] * f["baseK"] + f["depthB1"] * f["baseN"] * f["baseK"])
    l0 = {
        "L0A": (f["dbL0A"] * f["baseM"] * f["baseK"] * size, chip.l0a_bytes),
        "L0B": (f["dbL0B"] * f["baseK"] * f["baseN"] * size, chip.l0b_bytes),
        "L0C": (f["dbL0C"] * f["baseM"] * f["baseN"] * ACCUMULATOR_BYTES, chip.l0c_bytes),
        "L1": (l1, chip.l1_bytes),
    }
    rules = [
        (f["usedCoreNum"] <= chip.cores, f"usedCoreNum = {f['usedCoreNum']} is above the {chip.cores} cores"),
        (f["usedCoreNum"] == parts, f"usedCoreNum = {f['usedCoreNum']} is not ceil(M / singleCoreM) x ... = {parts}"),
        (split_k or f["singleCoreK"] == f["Ka"], f"singleCoreK = {f['singleCoreK']} is not K, and K is not split"),
        (f["Ka"] == f["Kb"], f"Ka = {f['Ka']} and Kb = {f['Kb']} differ"),
        *((f[f"singleCore{x}"] <= f[x], f"singleCore{x} is above {x}") for x in "MN"),
        (f["singleCoreK"] <= f["Ka"], "singleCoreK is above K"),
        *(
            (f[f"base{x}"] <= aligned(f[f"singleCore{x}"]), f"base{x} = {f[f'base{x}']} is above singleCore{x}")
            for x in "MNK"
        ),
        *((f[f"base{x}"] % ALIGNMENT == 0, f"base{x} = {f[f'base{x}']} is not in whole fractals") for x in "MNK"),
        *(
            (
                f[f"depth{x}1"] % (f[f"step{y}"] * f[f"stepK{x.lower()}"]) == 0,
                f"depth{x}1 = {f[f'depth{x}1']} is no multiple of step{y} x stepK{x.lower()}",
            )
            for x, y in (("A", "M"), ("B", "N"))
        ),
        *((used <= there, f"{name}: {used} bytes needed, {there} there") for name, (used, there) in l0.items()),
        *((f[f"dbL0{x}"] in (1, 2), f"dbL0{x} is 1 or 2") for x in "ABC"),
        (f["iterateOrder"] in (0, 1), "iterateOrder is 0 or 1"),
    ]
    return [message for kept, message in rules if not kept]


def notes(schedule: Kernel) -> list[str]:
    """What of a schedule has no field in AscendC, and what else must be switched on."""
    s = schedule
    if not s.on_cube:
        return [
            "a vector kernel has no Matmul: stream the larger operand through UB with DataCopy, multiply and add there"
        ]
    found = []
    if len(s.k_slices) > 1:
        in_order = "this schedule adds the slices in order instead, which needs a pass of its own"
        found.append(
            f"K is split {len(s.k_slices)} ways: EnableMultiCoreSplitK(true), C cleared before and added atomically; "
            f"{in_order if s.merge == 'reduce' else ''}"
        )
    if s.deals_one_by_one:
        found.append(
            f"tiles are dealt one by one in the order {s.swizzle}: TCubeTiling has no field for it, the fields deal "
            "rectangles; CATLASS has the order"
        )
    if s.groups > 1:
        found.append(
            f"L0C is emptied every {s.chain} products (k groups): AscendC and CATLASS accumulate all of singleCoreK in L0C; "
            f"call the Matmul once for each group of K"
        )
    if s.terms > 1:
        found.append(
            f"the {s.terms} terms are {s.terms} Matmuls on the FP16 words; splitting and combining them has no field"
        )
    if s.words > 1:
        found.append("a fused kernel keeps both words in L1 and L0: the fields describe one word")
    if s.k > LARGEST_ND or s.n > LARGEST_ND:
        found.append(f"K or N above {LARGEST_ND} in ND format: set intrinsicsCheck in MatmulConfig")
    if s.operand == "hf32":
        found.append(
            "HF32: float operands, SetHF32(true) on the Matmul object; the rounding is SetHF32TransMode's, which is set after "
            "SetHF32Mode (AscendC API reference, 07_0259)"
        )
    return found


def ascendc_snippet(schedule: Kernel) -> str:
    """C++ that sets the fields of a TCubeTiling."""
    fields = tiling_fields(schedule)
    if not fields:
        return ""
    lines = [
        f"// C = A B with A {schedule.m} x {schedule.k}, B {schedule.k} x {schedule.n}",
        "// after GetTiling(), in place of what it chose",
    ]
    if len(schedule.k_slices) > 1:
        lines.append("tilingApi.EnableMultiCoreSplitK(true);")
    lines += [f"tiling.set_{name}({value});" for name, value in fields.items()]
    return "\n".join([*lines, "tiling.set_isBias(0);"])


def catlass_snippet(schedule: Kernel) -> str:
    """C++ of CATLASS's tile shapes and order; GemmShape is <M, N, K>."""
    s, b = schedule, schedule.blocking
    if not s.on_cube:
        return ""
    loaded = max(s.depth // s.stream_slots, 1) * b.bk
    lines = [
        f"using L1TileShape = GemmShape<{b.bm}, {b.bn}, {loaded}>;",
        f"using L0TileShape = GemmShape<{b.bm}, {b.bn}, {b.bk}>;",
    ]
    if s.deals_one_by_one:
        lines.append(
            f"using BlockScheduler = typename Gemm::Block::GemmIdentityBlockSwizzle<{s.swizzle.offset}, {s.swizzle.direction}>;"
        )
    else:
        lines.append(f"// {s.placement()}, cores {s.grid}: CATLASS's identity swizzle deals tiles one by one instead")
    if len(s.k_slices) > 1:
        lines.append(f"// split-k in {len(s.k_slices)}: the kernel of examples/09_splitk_matmul")
    return "\n".join(lines)


def pto_snippet(schedule: Kernel) -> str:
    """C++ constants of a kernel like pto-isa's gemm_performance: a rectangle for each core, stepK blocks in a load."""
    s, fields = schedule, tiling_fields(schedule)
    if not fields:
        return ""
    names = (
        "singleCoreM", "singleCoreK", "singleCoreN", "baseM", "baseK", "baseN", "stepM", "stepKa", "stepKb", "stepN",
    )  # fmt: skip
    lines = [f"// m = {s.m}, k = {s.k}, n = {s.n}; two buffers in L1, L0A and L0B; A m x k, B n x k rows (ND)"]
    lines.append(f"constexpr uint32_t blockDim = {fields['usedCoreNum']};")
    return "\n".join(lines + [f"constexpr uint32_t {name} = {fields[name]};" for name in names])


SNIPPETS = {"ascendc": ascendc_snippet, "catlass": catlass_snippet, "pto": pto_snippet}


def described(schedule: Kernel, target: str = "ascendc") -> Kernel | None:
    """The kernel that the fields of a target describe, where it is another one than the schedule; None where it is the same.

    AscendC's and pto-isa's fields deal one rectangle of whole tiles to each core, CATLASS's tiles one by one.
    """
    s = schedule
    if not s.on_cube or (s.deals_one_by_one if target == "catlass" else s.owns_rectangles and s.groups == 1):
        return None
    slices = len(s.k_slices)
    if target == "catlass":
        grid = Grid(k=slices)
    else:
        rows, columns = core_rectangle(s)
        grid = Grid(fractals(s.m, rows), slices, fractals(s.n, columns))
    merge = {"merge": "atomic"} if slices > 1 and s.terms == 1 and s.operand != "int8" else {}
    return variant(s, kernel="grid", grid=grid, resident="none", balanced=False, **merge)


def tile_shapes(schedule: Kernel) -> list[tuple[str, str, str, int, int]]:
    """(buffer, content, layout, bytes used, bytes there) of each buffer of a core."""
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
