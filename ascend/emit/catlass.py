"""A plan as an instantiation of CATLASS's basic kernel: ArchTag, DispatchPolicy, tile shapes in L1 and L0, swizzle, host.

Source of the names: CATLASS (github.com/hicann/catlass, 0dfcf9df), examples/00_basic_matmul. Not compiled here.
"""

from typing import Any

from ascend.dialects import check_dialect
from ascend.emit.pto import SUMS, host_body
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import simulate
from ascend.tiling.fields import is_said_by

#: C++ types of operands, and layouts of A and B.
ELEMENTS = {"fp16": "half", "bf16": "bfloat16_t", "fp32": "float", "int8": "int8_t"}
LAYOUTS = {"nd": ("RowMajor", "RowMajor"), "nt": ("RowMajor", "ColumnMajor"), "nz": ("zN", "zN")}


def check_catlass(s: Kernel) -> None:
    """Refuse what CATLASS's basic kernel cannot say: which part of a schedule, and what to take instead (ValueError)."""
    check_dialect("catlass", s.placed_on)
    if s.placed_on.name == "950":
        raise ValueError(
            "CATLASS on Ascend 950 is another interface (examples/43), which is not written out here"
            + (": --emit pto" if s.operand in ELEMENTS else "")
        )
    if not s.on_cube or s.terms > 1 or s.operand not in ELEMENTS:
        raise ValueError(
            f"CATLASS's basic kernel multiplies {', '.join(ELEMENTS)} once, got {s.terms} term(s) of {s.operand}"
            f"{'' if s.on_cube else ' on the vector units'}: --terms 1, or --emit pto"
        )
    if s.dequantize:
        raise ValueError(
            "CATLASS's basic kernel writes the int32 sums: leave out --dequantize, or --emit ascendc scales them"
        )
    if len(s.k_slices) > 1 or not is_said_by(s, "catlass") or s.balanced:
        raise ValueError(
            "CATLASS's basic kernel deals whole tiles one by one and does not split k: plan with --for catlass --split 1, "
            f"this plan is {s.placement()} in {len(s.k_slices)} slice(s) of k"
        )


def catlass_files(s: Kernel) -> dict[str, str | dict]:
    """The files of the instantiation, name to text, or to data for JSON; ValueError for what it cannot say."""
    check_catlass(s)
    b, (layout_a, layout_b) = s.blocking, LAYOUTS[s.layout]
    lines = [
        f"constexpr uint32_t kM = {s.m}, kN = {s.n}, kK = {s.k}, kCores = {s.cores};",
        f"using Element = {ELEMENTS[s.operand]};", f"using Sum = {SUMS.get(s.operand, 'float')};",
        f"using LayoutA = layout::{layout_a};", f"using LayoutB = layout::{layout_b};",
        "using ArchTag = Arch::AtlasA2;",
        f"using DispatchPolicy = Gemm::MmadAtlasA2Pingpong<{str(s.unit_flag).lower()}>;",
        f"using L1TileShape = GemmShape<{b.bm}, {b.bn}, {s.load_k}>;",
        f"using L0TileShape = GemmShape<{b.bm}, {b.bn}, {b.bk}>;",
        f"using BlockScheduler = typename Gemm::Block::GemmIdentityBlockSwizzle<{s.swizzle.offset}, {s.swizzle.direction}>;",
    ]  # fmt: skip
    record: dict[str, Any] = {
        "dialect": "catlass", "chip": s.placed_on.name, "m": s.m, "k": s.k, "n": s.n, "operand": s.operand,
        "layout_a": layout_a, "layout_b": layout_b, "cores": s.used_cores, "placement": s.placement(),
        "predicted_us": 1e6 * simulate(s).seconds,
    }  # fmt: skip
    return {"gemm.cpp": host_body("catlass.cpp").replace("//@plan", "\n".join(lines)), "record.json": record}
