"""This module maps kernel names of an H100's libraries to their unit and order of k, as rows of data.

The rows reproduce the SHA-256 of every recorded matrix of one H100 80GB HBM3 (torch 2.11.0+cu130, cuBLAS 13.0). They also rest
on published orders:

- matrix-vector kernels, nvjet's slices and CUTLASS's partial sums: cublas_match for cuBLASLt 13.1 (:mod:`.cublaslt_tables`);
- the joining of interleaved slices: mmaemu for customOption 1 (:func:`.scaled_mm.pairwise`);
- CUTLASS's residue and grain: its headers.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from .cublaslt_tables import Gemv


@dataclass(frozen=True)
class MeasuredLibraries:
    """`MeasuredLibraries` is a GPU and the versions of its libraries on which the rules were measured to hold.

    `named` is a part of the GPU's own name; `versions` are the major.minor versions of cuBLAS, which are also those of torch's
    CUDA toolkit.
    """

    target: str
    named: str
    versions: tuple[str, ...]
    evidence: str


#: Measured libraries by device.
MEASURED = {
    "h100": MeasuredLibraries(
        "sm_90", "H100", ("13.0",), "recorded on an H100 80GB HBM3 with torch 2.11.0+cu130 and cuBLAS 13.0"
    )
}


@dataclass(frozen=True)
class KernelFamily:
    """`KernelFamily` describes kernels whose names fit one pattern, and the order in which they sum.

    Parameters
    ----------
    name : str
        Name of the family in this package.
    pattern : str
        Regular expression of the names. Its groups are `tile` (values of k in a tile), `step` (k of an MMA as the name spells
        it), `layout` (letters of the operands as column-major cuBLAS takes them), `types`, `features` and `split`.
    algorithms : tuple of int
        Values of algoId in cuBLASLt's log.
    units : mapping
        Instruction by format of A, with placeholders {step}, {a} and {b}; "fma" is the fused multiply-add of the CUDA cores.
    cut : {"tiles", "bytes", "turns", "lanes", None}
        Slices of split-k: contiguous whole tiles, contiguous multiples of 128 or 16 bytes, interleaved tiles, lanes of a
        matrix-vector kernel; None if k is not split.
    residue : {"first", "last"}
        Position in a slice of the part of k that fills no tile.
    join : {"forward", "option"}
        Joining of slices: added in their order, or pairwise if memory is cleared before or customOption says so
        (:data:`PAIRWISE`).
    rounding : str, optional
        Rounding of FP32 operands to the unit's format.
    """

    name: str
    pattern: str
    algorithms: tuple[int, ...]
    units: Mapping[str, str]
    cut: str | None = None
    residue: str = "first"
    join: str = "forward"
    rounding: str | None = None

    def match(self, kernel: str) -> re.Match | None:
        """Return the match of a kernel's name, None if the kernel is of another family."""
        return re.search(self.pattern, kernel)


_WGMMA8 = "wgmma.m64n8k32.f32.{a}.{b}"
_XMMA = r"_gemm_{types}_(?P<layout>[nt]{{2}})_n_tilesize\d+x\d+x(?P<tile>\d+)_"
_VECTOR = r"(?P<types>float|double|__half|__nv_bfloat16)"

#: Families of kernels that multiply; a name fits one row.
FAMILIES = (
    KernelFamily(
        "nvjet", r"\bnvjet_sm90_(?P<types>[a-z]{3,5})_\d+x\d+_(?P<tile>\d+)x\d+_\d+x\d+_[hv]_bz"
        r"(?P<features>(?:_(?!splitK)[A-Za-z]+\d*)*?)(?P<split>_splitK)?_(?P<layout>[NT]{2})[NT]\b",
        (66,),
        {"fp16": "wgmma.m64n8k16.f32.f16.f16", "bf16": "wgmma.m64n8k16.f32.bf16.bf16", "e4m3fn": _WGMMA8, "e5m2": _WGMMA8},
        cut="tiles", residue="last",
    ),
    KernelFamily(
        "cutlass tensorop", r"\bcutlass_(?:75|80)_(?:wmma_)?tensorop_(?:(?:f16|bf16)_)?s(?P<step>1688|16816|161616)gemm_"
        r"(?P<types>f16|bf16)_\d+x\d+(?:_(?P<tile>\d+)x\d+)?_(?P<layout>[nt]{2})_align\d+",
        (12, 21, 23, 24),
        {"fp16": "mma.m16n8k{step}.f32.f16.f16.f32", "bf16": "mma.m16n8k{step}.f32.bf16.bf16.f32"},
        cut="bytes",
    ),
    KernelFamily(
        "cutlass tensorop tf32", r"\bcutlass_80_tensorop_s(?P<step>1688)(?:tf32)?gemm_\d+x\d+_(?P<tile>\d+)x\d+_"
        r"(?P<layout>[nt]{2})_align\d+",
        (21, 23), {"tf32": "mma.m16n8k{step}.f32.tf32.tf32.f32"}, cut="bytes", rounding="rne",
    ),
    KernelFamily(
        "xmma tf32", r"\bsm90_xmma" + _XMMA.format(types="f32f32_tf32f32_f32")
        + r"warpgroupsize\d+x\d+x1_execute_segment_k_off_",
        (43,), {"tf32": "wgmma.m64n8k8.f32.tf32.tf32"}, residue="last", rounding="rne",
    ),
    KernelFamily(
        "xmma ffma", r"\bsm80_xmma" + _XMMA.format(types="f32f32_f32f32_f32")
        + r"stage\d+_warpsize\d+x\d+x1_ffma_\w*?execute_(?P<split>split_k_)?kernel",
        (55,), {"fp32": "fma"}, cut="turns", residue="last",
    ),
    KernelFamily(
        "cutlass simt", r"\bcutlass_80_simt_sgemm_\d+x\d+_(?P<tile>\d+)x\d+_(?P<layout>[nt]{2})_align\d+",
        (20,), {"fp32": "fma"}, cut="bytes",
    ),
    KernelFamily(
        "xmma dmma", r"\bsm90_xmma" + _XMMA.format(types="f64f64_f64f64_f64")
        + r"stage\d+_warpsize\d+x\d+x1_tensor\d+x8x(?P<step>\d+)_execute_kernel",
        (35,), {"fp64": "mma.m16n8k{step}.f64.f64.f64.f64"}, cut="turns", residue="last", join="option",
    ),
    KernelFamily(
        "cutlass d884", r"\bcutlass_80_tensorop_d(?P<step>884)gemm_\d+x\d+_(?P<tile>\d+)x\d+_(?P<layout>[nt]{2})_align\d+",
        (22,), {"fp64": "mma.m8n8k{step}.f64.f64.f64.f64"}, cut="bytes",
    ),
    KernelFamily(
        "gemvx", r"\bgemvx::kernel<int, int, " + _VECTOR + r", .*?(?P<template>(?:(?:true|false), ){4}\d+), "
        r"(?:true|false), cublasGemv",
        (13,), {"fp16": "fma", "bf16": "fma", "fp32": "fma", "fp64": "fma"}, cut="lanes",
    ),
    KernelFamily(
        "gemv2T", r"\bgemv2T_kernel_val<int, int, " + _VECTOR + r", .*?(?P<template>(?:\d+, ){4}(?:true|false), "
        r"(?:true|false)), cublasGemv",
        (13,), {"fp16": "fma", "bf16": "fma", "fp32": "fma", "fp64": "fma"}, cut="lanes",
    ),
    KernelFamily(
        "integer", r"tensorop_i\d+gemm_(?P<types>s8)_|\bsm\d+_xmma_gemm_i8i32_i8i32_i32_", (64, 21, 43),
        {"s8": "mma.m16n8k32.s32.s8.s8.s32"},
    ),
)  # fmt: skip

#: Names of other kernels that do not change a product's order: torch's conversions and copies, cleared memory.
BESIDE = re.compile(r"\bat::native::|^Memset|^Memcpy|\bat_cuda_detail::")
#: Name of the kernel that joins slices; its first type is the type of the partial sums.
REDUCTION = re.compile(r"\bsplitKreduce_kernel<\d+, \d+, \w+, (?P<partials>float|double|__half|__nv_bfloat16),")
#: Format of each type in a kernel's name.
TYPES = {"float": "fp32", "double": "fp64", "__half": "fp16", "__nv_bfloat16": "bf16", "f16": "fp16", "bf16": "bf16",
         "s8": "s8"}  # fmt: skip
#: Format of each letter in nvjet's names. B comes before A, because cuBLAS computes the transposed product for torch.
LETTERS = {"h": "fp16", "t": "bf16", "s": "fp32", "q": "e4m3fn", "r": "e5m2"}
#: k of an MMA by its spelling in names.
STEPS = {"1688": 8, "16816": 16, "161616": 16, "884": 4}
#: Values of k in a tile of CUTLASS and integer kernels whose names and stages do not give it.
NO_STAGES_TILE = 32
#: (format of the partials, format of the running sum) by reductionScheme, if no kernel joins the slices.
MERGES = {
    "NONE": (None, None),
    "INPLACE": (None, "output"),
    "COMPUTE_TYPE": (None, None),
    "OUTPUT_TYPE": ("output", None),
}
#: customOption values with which interleaved slices are joined pairwise, in buffers that are cleared before. Other values were
#: not recorded on this GPU.
PAIRWISE = (1,)

#: Effect on the sum of each feature in nvjet's names; None if it has no effect.
NVJET_FEATURES = {
    "coopA": None, "coopB": None, "algo2": "slow", "ovscale": "row", "Ablk128": "block", "Bvec128": "block",
    "Avec128": "block", "Bblk128": "block",
}  # fmt: skip
#: Number of products after which slow accumulation adds the accumulator to an FP32 sum outside the unit.
SLOW_INTERVAL = 128

#: Order of the lanes of matrix-vector kernels by template arguments. Widths count values of up to 4 bytes.
LANES = {
    "false, true, false, false, 9": Gemv(-64, 16, 0, True),
    "false, true, false, false, 7": Gemv(-64, 8, 0, True),
    "false, true, true, false, 9": Gemv(1, 16, 0, True),
    "128, 16, 4, 4, false, false": Gemv(1, 16, 32, False),
}
#: Orders of matrix-vector kernels by customOption, for options that the published table lacks.
MORE_OPTIONS = {88: Gemv(-64, 8, 0, True)}
