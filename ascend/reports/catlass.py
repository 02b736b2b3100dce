"""This module lists CATLASS's dispatch policies as rows, and writes a plan as instantiations: policy, tiles, order, kernel.

Sources: CATLASS (github.com/hicann/catlass, 0dfcf9df): include/catlass/gemm/dispatch_policy.hpp (policies and their template
parameters), examples 00, 01, 02, 09, 21, 25 and 31 (Atlas A2 and A3), 43, 53, 60, 67, 68 and 73 (Ascend 950), gemm/kernel/
(what a kernel is called with).
"""

from collections.abc import Callable
from typing import NamedTuple

from ascend.kernels.base import Kernel
from ascend.tiling.fields import is_said_by

#: C++ types of operands, and C++ layouts of A and B.
ELEMENTS = {
    "fp16": "half", "bf16": "bfloat16_t", "fp32": "float", "hf32": "float", "int8": "int8_t", "mxfp8": "float8_e4m3_t",
    "mxfp4": "float4_e2m1x2_t",
}  # fmt: skip
SUMS = {"int8": "int32_t"}
LAYOUTS = {"nd": ("RowMajor", "RowMajor"), "nt": ("RowMajor", "ColumnMajor"), "nz": ("zN", "zN")}


class Policy(NamedTuple):
    """`Policy` is a dispatch policy with its template parameters as (type, name), the `optional` ones last."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    optional: int


_UNIT, _SHUFFLE, _HF32 = ("bool", "ENABLE_UNIT_FLAG"), ("bool", "ENABLE_SHUFFLE_K"), ("bool", "USE_HF32_MODE")
_RESIDENT, _ARCH = ("bool", "ENABLE_L1_RESIDENT"), ("class", "ArchTag")


def _stages(*names: str) -> tuple[tuple[str, str], ...]:
    return tuple(("uint32_t", f"{name}_STAGES") for name in names)


POLICIES = {
    row.name: row
    for row in (
        Policy("MmadAtlasA2Pingpong", (_UNIT,), 1),
        Policy("MmadAtlasA2Preload", (_UNIT, _SHUFFLE), 2),
        Policy("MmadAtlasA2PreloadAsync", (*_stages("PRELOAD", "L1", "L0A", "L0B", "L0C"), _UNIT, _SHUFFLE), 0),
        Policy("MmadAtlasA2FullLoadA", (_UNIT,), 1),
        Policy("MmadAtlasA2Small", (("uint32_t", "STAGES"), _UNIT, _SHUFFLE), 2),
        Policy("MmadPingpong",
               (_ARCH, _UNIT, _HF32, *_stages("L0C"), _RESIDENT, *_stages("L1A", "L1B", "L0A", "L0B")), 8),
        Policy("MmadPreloadAsyncWithCallback",
               (_ARCH, *_stages("PRELOAD", "L1A", "L1B", "L0A", "L0B", "L0C"), _UNIT, _SHUFFLE, _HF32, _RESIDENT), 2),
        Policy("MmadAscend950FullLoadA",
               (_ARCH, _UNIT, _HF32, *_stages("L0C"), _RESIDENT, *_stages("L1A", "L1B", "L0A", "L0B")), 8),
        Policy("MmadMx",
               (_ARCH, _UNIT, ("uint32_t", "L1_SCALE_FACTOR_K"), *_stages("L0C"), _RESIDENT,
                *_stages("L1A", "L1B", "L0A", "L0B")), 8),
    )
}  # fmt: skip


class Assembly(NamedTuple):
    """`Assembly` is a kernel of CATLASS with a policy, the plans that it fits, and its published example."""

    name: str
    policy: str
    kernel: str
    header: str  #: header of the kernel, below catlass/gemm/kernel/
    scheduler: str
    example: str
    fits: Callable[[Kernel], bool]
    products: str = "one"  #: "one" product, a "batch" of one size, or "groups" of rows
    remark: str = ""  #: difference between the kernel and the plan


def _one_by_one(s: Kernel) -> bool:
    return len(s.k_slices) == 1 and is_said_by(s, "catlass") and not s.balanced


def _in_one_load(s: Kernel) -> bool:
    """Return whether each core has at most one tile, and loads all of k at once."""
    return _one_by_one(s) and s.waves == 1 and s.k <= s.load_k


def _keeps_a(s: Kernel) -> bool:
    """Return whether A's rows of a tile fit L1 with all of k, beside two loads of B."""
    kept = s.blocking.bm * s.k + 2 * s.load_k * s.blocking.bn
    return (
        s.resident == "a" and len(s.k_slices) == 1 and s.groups == 1 and kept * s.operand_bytes <= s.placed_on.l1_bytes
    )


def _split(s: Kernel) -> bool:
    return len(s.k_slices) > 1 and s.merge == "reduce" and s.resident == "none" and s.groups == 1


_SHUFFLED = "the predicted time leaves out ENABLE_SHUFFLE_K, by which each core begins at another place of k"
_OWN_DEAL = "it deals the tiles in its own order; the predicted time is that of the plan's order"
_OWN_SLICES = (
    "it chooses the number of slices itself (GetSplitkFactor); the predicted time is that of the plan's number"
)
_IDENTITY, _SPLIT_K = "GemmIdentityBlockSwizzle", "SplitkGemmIdentityBlockSwizzle"

#: Instantiations by generation; the first one that fits a plan is written to files.
ASSEMBLIES: dict[str, tuple[Assembly, ...]] = {
    "AtlasA2": (
        Assembly("basic", "MmadAtlasA2Pingpong", "BasicMatmul", "basic_matmul.hpp", _IDENTITY, "00_basic_matmul", _one_by_one),
        Assembly("small", "MmadAtlasA2Small", "SmallMatmul", "small_matmul.hpp", _IDENTITY, "31_small_matmul", _in_one_load),
        Assembly("preload", "MmadAtlasA2Preload", "BasicMatmulPreload", "basic_matmul_preload.hpp", _IDENTITY,
                 "21_basic_matmul_preload_zN", _one_by_one, remark=_SHUFFLED),
        Assembly("full load of A", "MmadAtlasA2FullLoadA", "MatmulFullLoadA", "matmul_full_loadA.hpp",
                 "GemmIdentityBlockSwizzleL1FullLoad", "25_matmul_full_loadA", _keeps_a, remark=_OWN_DEAL),
        Assembly("split-k", "MmadAtlasA2Pingpong", "SplitkMatmul", "splitk_matmul.hpp", _SPLIT_K, "09_splitk_matmul", _split,
                 remark=_OWN_SLICES),
        Assembly("batch", "MmadAtlasA2Pingpong", "BatchedMatmul", "batched_matmul.hpp", _IDENTITY, "01_batched_matmul",
                 _one_by_one, "batch", _OWN_DEAL),
        Assembly("groups", "MmadAtlasA2PreloadAsync", "GroupedMatmulSliceM", "grouped_matmul_slice_m.hpp", _IDENTITY,
                 "02_grouped_matmul_slice_m", _one_by_one, "groups", _OWN_DEAL),
    ),
    "Ascend950": (
        Assembly("basic", "MmadPingpong", "BasicMatmulTla", "basic_matmul_tla.hpp", _IDENTITY, "43_ascend950_basic_matmul",
                 _one_by_one),
        Assembly("preload", "MmadPreloadAsyncWithCallback", "BasicMatmulTla", "basic_matmul_tla.hpp", _IDENTITY,
                 "43_ascend950_basic_matmul", _one_by_one),
        Assembly("full load of A", "MmadAscend950FullLoadA", "MatmulFullLoadATla", "matmul_full_loadA_tla.hpp",
                 "GemmIdentityBlockSwizzleL1FullLoad", "73_ascend950_matmul_full_loadA", _keeps_a, remark=_OWN_DEAL),
        Assembly("split-k", "MmadPingpong", "MultiCoreSplitkMatmulTla", "multi_core_splitk_matmul_tla.hpp", _SPLIT_K,
                 "68_ascend950_multi_core_splitk_matmul", _split, remark=_OWN_SLICES),
        Assembly("batch", "MmadPingpong", "BatchedMatmulTla", "batched_matmul_tla.hpp", _IDENTITY,
                 "67_ascend950_batched_matmul", _one_by_one, "batch", _OWN_DEAL),
        Assembly("groups", "MmadPingpong", "GroupedMatmulSliceMTla", "grouped_matmul_slice_m_tla.hpp", _IDENTITY,
                 "60_ascend950_grouped_matmul_slice_m", _one_by_one, "groups", _OWN_DEAL),
    ),
}  # fmt: skip
#: Instantiations on Ascend 950 for operands with block scales; their host code, which needs scales, is not written.
MX: tuple[Assembly, ...] = (
    Assembly("MX", "MmadMx", "MxMatmulTla", "mx_matmul_tla.hpp", _IDENTITY, "53_ascend950_fp8_mx_matmul", _one_by_one),
)  # fmt: skip


def arch_of(s: Kernel) -> str:
    """Return CATLASS's name of the chip's generation."""
    return "Ascend950" if s.placed_on.name == "950" else "AtlasA2"


def assemblies_of(s: Kernel, products: str = "one") -> list[Assembly]:
    """Return the kernels of CATLASS that fit a plan, for one product or several."""
    if not s.on_cube or s.terms > 1 or s.operand not in ELEMENTS or s.dequantize:
        return []
    rows = MX if s.format.scale_block else ASSEMBLIES[arch_of(s)]
    return [row for row in rows if row.products == products and row.fits(s)]


def policy_values(s: Kernel, policy: Policy) -> dict[str, str]:
    """Return the values of a policy's template parameters for a plan, by name.

    Without the unit flag L0C has as many stages as the plan; with the unit flag it has one, as the policies require.
    INT8 has no unit flag.
    """
    unit = s.unit_flag and s.operand != "int8"
    shuffles = arch_of(s) == "AtlasA2" and "Small" not in policy.name  # as in the examples
    values = {
        "ArchTag": "ArchTag", "ENABLE_UNIT_FLAG": unit, "ENABLE_SHUFFLE_K": shuffles,
        "USE_HF32_MODE": s.operand == "hf32", "ENABLE_L1_RESIDENT": False, "PRELOAD_STAGES": 1, "STAGES": s.stream_slots,
        "L1_STAGES": s.stream_slots, "L1A_STAGES": 1 if "FullLoadA" in policy.name else s.stream_slots,
        "L1B_STAGES": s.stream_slots, "L0A_STAGES": s.l0_slots, "L0B_STAGES": s.l0_slots,
        "L0C_STAGES": 1 if unit else min(s.l0c_slots, 2), "L1_SCALE_FACTOR_K": 1,
    }  # fmt: skip
    return {
        name: str(values[name]).lower() if kind == "bool" else str(values[name]) for kind, name in policy.parameters
    }


def instantiation(s: Kernel, row: Assembly) -> list[str]:
    """Return the C++ type aliases of an assembly, down to MatmulAdapter."""
    arch, policy, b = arch_of(s), POLICIES[row.policy], s.blocking
    given = ", ".join(policy_values(s, policy).values())
    named = ", ".join(name for _, name in policy.parameters)
    shapes = [(b.bm, b.bn, s.load_k), (b.bm, b.bn, b.bk)]
    tla = arch == "Ascend950"
    l1, l0 = (_shape(sizes, tla) for sizes in shapes)
    layout_a, layout_b = LAYOUTS[s.layout]
    element, total = ELEMENTS[s.operand], SUMS.get(s.operand, "float")
    lines = [
        f"using ArchTag = Arch::{arch};",
        f"// {row.policy}<{named}>",
        f"using DispatchPolicy = Gemm::{row.policy}<{given}>;",
        f"using L1TileShape = {l1};", f"using L0TileShape = {l0};",
        f"using Element = {element};", f"using Sum = {total};",
        f"using LayoutA = layout::{layout_a};", f"using LayoutB = layout::{layout_b};", "using LayoutC = layout::RowMajor;",
    ]  # fmt: skip
    if s.format.scale_block:
        lines.append("// TileCopy of the scales: Gemm::Tile::PackedMxTileCopyTla, as in the example")
    elif tla:
        lines.append(
            "using TileCopy = Gemm::Tile::PackedTileCopyTla<ArchTag, Element, LayoutA, Element, LayoutB, Sum, LayoutC>;"
        )
    if tla:
        block = "BlockMmadTla<DispatchPolicy, L1TileShape, L0TileShape, Element, Element, Sum, void, TileCopy>"
    else:
        block = (
            "BlockMmad<DispatchPolicy, L1TileShape, L0TileShape, Gemm::GemmType<Element, LayoutA>, "
            "Gemm::GemmType<Element, LayoutB>, Gemm::GemmType<Sum, LayoutC>>"
        )
    lines.append(f"using BlockMmad = Gemm::Block::{block};")
    order = "1, 0" if "FullLoad" in row.scheduler else f"{s.swizzle.offset}, {s.swizzle.direction}"
    lines.append(f"using BlockScheduler = typename Gemm::Block::{row.scheduler}<{order}>;")
    more = ""
    if row.kernel == "SplitkMatmul":
        lines.append(
            "using ReduceAdd = Gemm::Kernel::SplitkReduceAdd<ArchTag, float, Sum, 1, 192 * 1024 / sizeof(float)>;"
        )
        more = ", ReduceAdd"
    elif row.products == "groups":
        more = ", int64_t"
    lines.append(f"using MatmulKernel = Gemm::Kernel::{row.kernel}<BlockMmad, void, BlockScheduler{more}>;")
    return [*lines, "using MatmulAdapter = Gemm::Device::DeviceGemm<MatmulKernel>;"]


def _shape(sizes: tuple[int, int, int], tla: bool) -> str:
    """Return the type of a tile's shape, M, N, K."""
    return f"Shape<{', '.join(f'Int<{x}>' for x in sizes)}>" if tla else f"GemmShape<{', '.join(map(str, sizes))}>"


def catlass_text(s: Kernel, products: str = "one") -> str:
    """Return the instantiation of the first assembly that fits a plan and the policies of the others, or "" if none fits."""
    rows = assemblies_of(s, products)
    if not rows:
        return ""
    first, *others = rows
    lines = [f"// {first.name}: examples/{first.example}, catlass/gemm/kernel/{first.header}", *instantiation(s, first)]
    if first.remark:
        lines.append(f"// {first.remark}")
    for row in others:
        values = ", ".join(policy_values(s, POLICIES[row.policy]).values())
        lines += [
            f"// or {row.name}: Gemm::{row.policy}<{values}> in Gemm::Kernel::{row.kernel} (examples/{row.example})",
            *([f"//   {row.remark}"] if row.remark else []),
        ]
    return "\n".join(lines)
