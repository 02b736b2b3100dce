"""This module writes a plan as an AscendC kernel with the high-level Matmul, and the host's tiling with the plan's fields.

Without vector work only the cubes are started (ASCENDC_CUBE_ONLY, KERNEL_TYPE_AIC_ONLY). With vector work (dequantize)
vector cores drive the cubes, are counted, and scale the sums (:func:`ascend.tiling.fields.core_mode`).

Source of the names: AscendC API reference, Matmul and MultiCoreMatmulTiling (CANN 8.0); SetDim (07_0693); Kernel task types
(07_0218). Not compiled by CANN here: tests run the text on a small C++ model of the calls.
"""

from textwrap import indent

from ascend.blocking import ACCUMULATOR_BYTES
from ascend.dialects import check_dialect
from ascend.emit.pto import SUMS, WORDS, body
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import simulate
from ascend.reports.tiling import tiling_calls
from ascend.tiling.fields import check_multiplied, core_mode, cube_fields, is_said_by, layout_of, tiling_fields
from ascend.tiling.rules import LARGEST_ND

#: Bytes of sums that a vector core scales at a time, and the largest number of rows in them.
STRIP_BYTES, STRIP_ROWS = 16384, 16
CUBE_ONLY = "#define ASCENDC_CUBE_ONLY"


def check_ascendc(s: Kernel) -> None:
    """Raise ValueError if AscendC's Matmul cannot express the schedule; the message names the option and an alternative."""
    check_dialect("ascendc", s.placed_on)
    check_multiplied("AscendC's Matmul", s, WORDS)
    if layout_of(s) == "nz":
        raise ValueError(
            "the emitted Matmul reads ND rows, got NZ fractals: plan with --layout nd, or with nt if B has N rows of K elements"
        )
    if not is_said_by(s, "ascendc"):
        raise ValueError(
            "TCubeTiling gives each core a rectangle of whole tiles, but this plan's placement is "
            f"{s.placement()!r}: plan with --for ascendc"
        )
    if len(s.k_slices) > 1 and s.merge != "atomic":
        raise ValueError(
            "AscendC's Matmul adds slices of k in memory, got merge 'reduce': use --merge atomic or --split 1"
        )
    if s.dequantize == "fixpipe":
        raise ValueError(
            "got --dequantize fixpipe, but the emitted kernel scales rows and columns on vector cores: use --dequantize "
            "vector, or leave --dequantize out"
        )
    if s.dequantize and core_mode(s).name == "coupled":
        raise ValueError(
            f"got --dequantize {s.dequantize}, but the emitted kernel scales sums on separate vector cores, which "
            f"{s.placed_on.name} does not have: leave out --dequantize"
        )


def ascendc_files(s: Kernel) -> dict[str, str | dict]:
    """Return the files as name -> text, or data for JSON. Raises ValueError if the Matmul cannot express the schedule."""
    check_ascendc(s)
    fields, sliced, mode, cubes = tiling_fields(s), len(s.k_slices) > 1, core_mode(s), cube_fields(s)["usedCoreNum"]
    launched = f"the kernel is launched on {cubes} blocks ({mode.name})"
    tiling = body("ascendc_tiling.cpp").replace("//@launched", launched + ("; set C to 0 before." if sliced else "."))
    tiling = tiling.replace("//@calls", "\n".join(f"    tilingApi.{call};" for call in tiling_calls(s)))
    tiling = tiling.replace(
        "//@fields", "\n".join(f"    tiling.set_{name}({value});" for name, value in fields.items())
    )
    record = {
        "dialect": "ascendc", "chip": s.placed_on.name, "m": s.m, "k": s.k, "n": s.n, "operand": s.operand,
        "layout": s.layout, "layout_a": "ND, M x K", "layout_b": "ND, N x K" if s.layout == "nt" else "ND, K x N",
        "tiling": fields, "clear_c": sliced, "mode": mode.name, "cubes": cubes, "counted_for_each_cube": mode.counted,
        "c": "half, scaled by FP32 scales of rows and columns" if s.dequantize else SUMS.get(s.operand, "float"),
        "workspace_bytes": bool(s.dequantize) * ACCUMULATOR_BYTES * s.m * s.n,
        "placement": s.placement(), "predicted_us": 1e6 * simulate(s).seconds,
    }  # fmt: skip
    return {"gemm.cpp": _kernel_text(s), "tiling.cpp": tiling, "record.json": record}


def _kernel_text(s: Kernel) -> str:
    """Return the kernel's text: for the cubes alone, or with vector cores that drive them and scale the sums."""
    mode, width = core_mode(s), tiling_fields(s)["baseN"]
    plan = [
        f"using kElement = {WORDS[s.operand]};", f"using kSum = {SUMS.get(s.operand, 'float')};",
        f"constexpr bool kBTransposed = {str(s.layout == 'nt').lower()}, kUnitFlag = {str(s.unit_flag).lower()};",
        f"constexpr bool kIntrinsicsCheck = {str(max(s.k, s.n) > LARGEST_ND).lower()}; // of ND rows beyond {LARGEST_ND}",
        f"constexpr uint64_t kAlongM = {mode.along_m}, kAlongN = {mode.along_n};",
    ]  # fmt: skip
    if s.dequantize:
        rows = max(min(STRIP_BYTES // (ACCUMULATOR_BYTES * width), STRIP_ROWS), 1)
        plan.append(f"constexpr uint32_t kBaseN = {width}, kStripRows = {rows};")
        parts = body("ascendc_scales.cpp"), " GM_ADDR rowScales, GM_ADDR columnScales,", body("ascendc_scaled.cpp")
    else:
        sliced = int(len(s.k_slices) > 1)
        plan.append(f"constexpr uint8_t kAtomic = {sliced}; // 1: slices of k are added to C, which is 0 before")
        parts = "", "", body("ascendc_sums.cpp")
    defines, task = {
        "cube only": (f"{CUBE_ONLY} // vector cores are neither started nor counted\n", "KERNEL_TYPE_AIC_ONLY"),
        "mix": ("", f"KERNEL_TYPE_MIX_AIC_1_{mode.counted}"),
        "coupled": ("", ""),
    }[mode.name]
    text = body("ascendc_kernel.cpp")
    for mark, part in (
        ("//@mode\n", defines), ("//@plan", "\n".join(plan)), ("//@class\n", parts[0]), (" //@arguments", parts[1]),
        ("    //@task\n", f"    KERNEL_TASK_TYPE_DEFAULT({task});\n" if task else ""),
        ("//@iterate\n", indent(parts[2], "    ")),
    ):  # fmt: skip
        text = text.replace(mark, part)
    return text
