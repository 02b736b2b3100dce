"""A plan on AscendC's high-level Matmul: the kernel, and the host's tiling with the plan's fields.

Source of the names: AscendC API reference, Matmul and MultiCoreMatmulTiling (CANN 8.0). Not compiled here.
"""

from ascend.dialects import check_dialect
from ascend.emit.pto import SUMS, WORDS, body
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import simulate
from ascend.reports.tiling import tiling_calls
from ascend.tiling.fields import is_said_by, layout_of, tiling_fields


def check_ascendc(s: Kernel) -> None:
    """Refuse what AscendC's Matmul cannot say: which part of a schedule, and what to take instead (ValueError)."""
    check_dialect("ascendc", s.placed_on)
    if not s.on_cube or s.terms > 1 or s.operand not in WORDS:
        raise ValueError(
            f"AscendC's Matmul multiplies {', '.join(WORDS)} once, got {s.terms} term(s) of {s.operand}"
            f"{'' if s.on_cube else ' on the vector units'}: --terms 1, or --emit pto"
        )
    if layout_of(s) == "nz":
        raise ValueError("the emitted Matmul reads ND rows: plan with --layout nd, or nt for B as N x K rows")
    if not is_said_by(s, "ascendc"):
        raise ValueError(
            f"TCubeTiling deals a rectangle of whole tiles to each core: plan with --for ascendc, this is {s.placement()}"
        )
    if len(s.k_slices) > 1 and s.merge != "atomic":
        raise ValueError("AscendC's Matmul adds slices of k in memory: --merge atomic, or --split 1")


def ascendc_files(s: Kernel) -> dict[str, str | dict]:
    """The files, name to text, or to data for JSON; ValueError for what the Matmul cannot say."""
    check_ascendc(s)
    fields, sliced = tiling_fields(s), len(s.k_slices) > 1
    plan = [
        f"using kElement = {WORDS[s.operand]};", f"using kSum = {SUMS.get(s.operand, 'float')};",
        f"constexpr bool kBTransposed = {str(s.layout == 'nt').lower()};",
        f"constexpr uint8_t kAtomic = {int(sliced)}; // 1: slices of k are added to C, which is 0 before",
    ]  # fmt: skip
    tiling = body("ascendc_tiling.cpp").replace("//@clear", ", C being 0 before it." if sliced else ".")
    tiling = tiling.replace("//@calls", "\n".join(f"    tilingApi.{call};" for call in tiling_calls(s)))
    tiling = tiling.replace(
        "//@fields", "\n".join(f"    tiling.set_{name}({value});" for name, value in fields.items())
    )
    kernel = (
        body("ascendc_kernel.cpp").replace("//@plan", "\n".join(plan)).replace("CubeFormat::kFormat", "CubeFormat::ND")
    )
    record = {
        "dialect": "ascendc", "chip": s.placed_on.name, "m": s.m, "k": s.k, "n": s.n, "operand": s.operand,
        "layout_a": "ND, M x K", "layout_b": "ND, N x K" if s.layout == "nt" else "ND, K x N", "tiling": fields,
        "clear_c": sliced, "placement": s.placement(), "predicted_us": 1e6 * simulate(s).seconds,
    }  # fmt: skip
    return {"gemm.cpp": kernel, "tiling.cpp": tiling, "record.json": record}
