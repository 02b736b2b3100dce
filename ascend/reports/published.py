"""This module compares published times of matrix products on Ascend chips with the model's predictions for the same tiles.

Every row is a device measurement that somebody else published, with its source. A row is marked if a parameter was fitted to
it; no number was taken from a row that is marked as predicted. The forms of the model were chosen with all rows in sight.

For sources whose rows differ in size only, the fitted rows were chosen before the fit:

- pto-isa's FP16 sizes: the first, the third and the last (the only one beyond the capacity of L2);
- torch's FP16 sizes and MXFP8's sizes: the first and the third.

Of other sources these rows are fitted:

- CATLASS's and asc-devkit's rows that show one cost alone: memory read by few cores, ND rows and their start, small products
  (launch), unaligned rows of C, scales of rows and columns, loads that are waited for, scalar work;
- cann-bench's rows of the 950, all of them.
"""

import math
from typing import Any, NamedTuple

from ascend.blocking import Blocking
from ascend.chips.files import get_chip
from ascend.grid import Swizzle
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import Timeline, simulate
from ascend.planner.plan import plan
from ascend.schedule import build_schedule
from ascend.schedule_options import Dequantize, Layout, Resident, Template

CATLASS = "CATLASS (github.com/hicann/catlass, 0dfcf9df)"
SOURCES = {
    "pto-isa": "hw-native-sys/pto-isa, 3186c381: kernels/manual/a2a3/gemm_performance; 24 cores of an A3, FP16 to FP32",
    "mxfp8": "hw-native-sys/pto-isa, 3186c381: kernels/manual/a5/matmul_mxfp8_performance; MXFP8 to BF16",
    "gemm_ar": "hw-native-sys/pto-isa, 3186c381: kernels/manual/a2a3/gemm_ar and a5/gemm_ar, the compute-only times",
    "torch": "zzc0721/torch-performance-test-data, issue 109: torch.matmul on 910B2 in a loop; the best plan taken",
    "tilelang": "tile-ai/tilelang-ascend, issue 79: torch.matmul on 24 cores, in a loop; the best plan taken",
    "guide": f"{CATLASS}: docs 1_Practice/11_matmul_optimization.md; the chip is not named, by its cores a 910B3 or 910B1",
    "tuner": f"{CATLASS}: tools/tuner/README_en.md, rated clock 1800 MHz",
    "split-k": f"{CATLASS}: examples/34_single_core_splitk_matmul, the basic matmul, row-major, 910B2, CANN 8.2.RC1",
    "aswt": f"{CATLASS}: docs 2_Design/01_kernel_design/05_aswt.md, the baseline and ASWT, 950",
    "fixpipe": f"{CATLASS}: examples/46_ascend950_matmul_fixpipe_opti, matmul_fixpipe: L0C to memory, FP16 to FP32, 950",
    "quant": f"{CATLASS}: examples/44_quant_matmul_full_loadA_tla, 12_quant_matmul: INT8, scales of rows and columns, 910B1",
    "quant A": f"{CATLASS}: the same page, A loaded once",
    "quant k": f"{CATLASS}: examples/52_quant_multi_core_splitk_matmul_tla, 12_quant_matmul, B column-major, 910B3",
    "asc": "cannmirror/asc-devkit, 0156b0f4: matmul_high_performance/README_en.md, AscendC's Matmul, FP16, task durations",
    "asc basic": "cannmirror/asc-devkit, 0156b0f4: matmul_basic_api_high_performance/README_en.md, the basic API, FP16",
    "asc gelu": "cannmirror/asc-devkit, 0da921b91: matmul_gelu_high_performance/README_en.md, the product alone, FP32 out",
    "bench": "hicann/cann-bench, d59d44c: torch_npu's profiler, L2 cleared; products also quantised, best plan",
    "nd2nz": "cannmirror/asc-devkit, 0da921b91: guide, AIV ND2NZ (before): AscendC's Matmul where rows of B start anywhere",
    "do_bench": "triton-lang/triton-ascend, issue 293: torch.matmul in a loop; the chip is not named, by its speed a 910B1",
    "pto-dsl": "huawei-csl/pto-dsl, c26eab7: matmul_optim_guide.md, 910B2; read off its figures, to about 1 %",
}


#: Sources that time a product repeatedly on the same operands.
LOOPED = ("torch", "tilelang", "do_bench")
#: Sources that time around the call, by events, and the time that this adds to the task's duration (us): fitted to pto-isa's
#: 1536^3 and torch's 1024^3, together with the task durations of CATLASS's small products.
TIMED_AROUND = ("pto-isa", "mxfp8", "gemm_ar", "torch", "tilelang", "pto-dsl")
AROUND_US = 6.0


class Deal(NamedTuple):
    """`Deal` says how a published kernel deals tiles: its block, and a swizzle or a grid of cores with one rectangle each.

    In a rectangle a swizzle of <1, 1> walks m first, as iterateOrder 0 of AscendC's Matmul does; None walks n first.
    """

    block: tuple[int, int, int]
    swizzle: tuple[int, int] | tuple[int, int, bool] | tuple[int, int, bool, bool] | None = (
        None  # None: <3, 0>, or row by row
    )
    grid: tuple[int, int, int] | None = None
    keeps: Resident = "none"  # operand that stays in L1
    panel: int | None = None  # products of the resident operand that stay; None: as many as fit
    unit_flag: bool = False
    depth: int | None = None  # blocks of k of each operand in L1
    template: Template = ""
    cores: int | None = None
    rounds: int = 1  # number of parts along m in which the product is computed, one after the other


class Measurement(NamedTuple):
    """`Measurement` is a published time with the product, the chip, and the known facts of the kernel."""

    source: str
    name: str
    chip: str
    m: int
    k: int
    n: int
    microseconds: float
    deal: Deal | None = None  # None: unknown, the best plan is taken
    operand: str = "fp16"
    layout: Layout = "nd"
    busy: tuple[float, ...] = ()  # busy ratios of CUBE, MTE1, MTE2, FIXP, and SCALAR if published
    fitted: bool = False  # whether a chip's parameter was taken from it
    remark: str = ""  # reason for a prediction that is far off
    dequantize: Dequantize = ""  # unit that scales sums of int8 operands


#: Pipes of the published busy ratios.
BUSY_PIPES = ("CUBE", "MTE1", "MTE2", "FIXP", "SCALAR")


def _pto(size: int, milliseconds: float, busy: tuple[float, ...], fitted: bool) -> Measurement:
    deal = Deal((128, 64, 256), grid=(4, 1, 6))
    return Measurement("pto-isa", "gemm_performance", "A3", size, size, size, 1e3 * milliseconds, deal, "fp16", "nt", busy,
                       fitted)  # fmt: skip


def _mx(size: int, milliseconds: float, busy: tuple[float, ...], fitted: bool) -> Measurement:
    deal = Deal((128, 128, 256), grid=(4, 1, 8))
    return Measurement("mxfp8", "MXFP8", "950", size, size, size, 1e3 * milliseconds, deal, "mxfp8", "nt", busy, fitted)


def _torch(size: int, tflops: float, operand: str = "fp16", fitted: bool = False, remark: str = "") -> Measurement:
    return Measurement("torch", f"torch {operand}", "910B2", size, size, size, 2e-6 * size**3 / tflops, None, operand, "nd",
                       (), fitted, remark)  # fmt: skip


def _dsl(name: str, m: int, nk: int, tflops: float, swizzle: tuple) -> Measurement:
    deal = Deal((128, 64, 256), swizzle)
    return Measurement("pto-dsl", name, "910B2", m, nk, nk, 2e-6 * m * nk**2 / tflops, deal, "fp16", "nt")


def _split_k(m: int, k: int, n: int, microseconds: float) -> Measurement:
    deal = Deal((256, 64, 128), grid=(8, 1, 3), keeps="a", panel=512, unit_flag=True)
    return Measurement("split-k", "split-k in a core", "910B2", m, k, n, microseconds, deal, layout="nz")


#: CATLASS's ASWT: bands of 4 rows of tiles, walked back and forth, with the last tiles cut.
_ASWT = (4, 0, True, True)


def _aswt(m: int, k: int, n: int, microseconds: float) -> Measurement:
    return Measurement("aswt", "ASWT", "950", m, k, n, microseconds, Deal((256, 64, 256), _ASWT))


def _fixpipe(m: int, k: int, n: int, microseconds: float, fitted: bool = False, remark: str = "") -> Measurement:
    deal = Deal((256, 64, 256), _ASWT, depth=4)
    return Measurement("fixpipe", "L0C to memory", "950", m, k, n, microseconds, deal, layout="nt", fitted=fitted,
                       remark=remark)  # fmt: skip


def _quant(
    source: str, m: int, k: int, n: int, microseconds: float, fitted: bool = False, remark: str = ""
) -> Measurement:
    deal = Deal((128, 128, 256), (3, 0 if m > n else 1), keeps="a" if source == "quant A" else "none")
    chip = "910B3" if source == "quant k" else "910B1"
    layout: Layout = "nt" if source == "quant k" else "nd"
    return Measurement(source, "INT8 to BF16", chip, m, k, n, microseconds, deal, "int8", layout, fitted=fitted,
                       remark=remark, dequantize="vector")  # fmt: skip


def _bench(chip: str, operand: str, m: int, k: int, n: int, microseconds: float, **known: Any) -> Measurement:
    return Measurement("bench", "library", chip, m, k, n, microseconds, operand=operand, **known)


def _loop(size: int, microseconds: float, fitted: bool = False) -> Measurement:
    return Measurement("do_bench", "library", "910B1", size, size, size, microseconds, fitted=fitted)


#: Block and grid of asc-devkit's cases from the third on, and templates of AscendC's Matmul.
_ASC: dict[str, dict[str, Any]] = {
    "910B1": {"block": (128, 64, 256), "grid": (4, 1, 6)}, "950": {"block": (256, 64, 256), "grid": (4, 1, 8)},
}  # fmt: skip
#: The order of its tiles: tiling and kernel of the page do not set it. GetIteratorOrder of the tiling library (0da921b91,
#: impl/adv_api/tiling/matmul) takes M first where neither operand has all of its k in L1; in mmad.asc of the basic API the loop
#: over m is the inner one.
_M_FIRST = (1, 1, False)
#: Norm has the unit flag by default and MDL has not: GetNormalConfig and GetMDLConfig (0da921b91, adv_api/matmul/tiling.h).
_NORM: dict[str, Any] = {"template": "norm", "unit_flag": True}
_MDL: dict[str, Any] = {"template": "mdl"}


#: Pages of asc-devkit besides matmul_high_performance, by the beginning of their rows' names.
_ASC_PAGES = {"basic API": "asc basic", "before GELU": "asc gelu"}


def _asc(
    chip: str, name: str, microseconds: float, busy: tuple[float, ...], fitted: bool = False, **deal: Any
) -> Measurement:
    source = next((own for start, own in _ASC_PAGES.items() if name.startswith(start)), "asc")
    size = (8192, 8192, 8192, microseconds)
    dealt = Deal(**(_ASC[chip] | {"swizzle": _M_FIRST} | deal))
    return Measurement(source, name, chip, *size, dealt, layout="nt", busy=busy, fitted=fitted)


_LAUNCH = "the call multiplies little, and the model does not include the other work of the call"
_PREFILL = "not explained; a product of the same weights with 512 rows in place of 128 takes longer than predicted"
_EIGHT = "not explained; products with half and a quarter as many tiles of the same size are predicted within 4 %"
_WIDENED = (
    "it is not known into which blocks the library divides B when vector units convert it; "
    "the model assumes that a load of a part of a row costs only the time of its bytes"
)
_TALL = "not explained; all other products with at most as many rows are predicted within 15 %"
MEASUREMENTS = (
    _pto(1536, 0.0388, (0.545, 0.422, 0.722, 0.077), True),
    _pto(3072, 0.2067, (0.790, 0.620, 0.909, 0.058), False),
    _pto(6144, 1.5060, (0.867, 0.681, 0.952, 0.031), True),
    _pto(7680, 3.1680, (0.806, 0.630, 0.984, 0.024), True),
    _mx(2048, 0.0383, (0.582, 0.351, 0.846, 0.073), True),
    _mx(4096, 0.1879, (0.877, 0.542, 0.963, 0.053), False),
    _mx(6144, 0.6020, (0.916, 0.573, 0.982, 0.035), True),
    _mx(8192, 1.4749, (0.901, 0.562, 0.996, 0.026), False),
    Measurement("gemm_ar", "gemm_ar", "910B2", 5504, 6144, 1536, 368.1, Deal((128, 64, 256), (1, 0))),
    Measurement("gemm_ar", "gemm_ar", "950", 5504, 6144, 1536, 323.2, Deal((128, 64, 256), (1, 0))),
    _torch(1024, 98.08, fitted=True), _torch(2048, 251.01), _torch(4096, 314.52, fitted=True), _torch(8192, 305.46),
    _torch(10240, 274.76), _torch(1024, 99.86, "bf16"), _torch(2048, 248.30, "bf16"), _torch(4096, 315.36, "bf16"),
    _torch(8192, 301.23, "bf16"), _torch(10240, 300.94, "bf16"), _torch(1024, 46.30, "fp32", remark=_LAUNCH),
    _torch(2048, 76.92, "fp32"), _torch(4096, 84.53, "fp32"), _torch(8192, 80.43, "fp32"), _torch(10240, 79.69, "fp32"),
    Measurement("tilelang", "torch fp16", "910B2", 8192, 8192, 8192, 3630.0),
    _dsl("without swizzle", 2176, 16384, 131.0, (1, 0, False)),
    _dsl("with swizzle", 2176, 16384, 233.0, (5, 0)),
    _dsl("with swizzle", 2176, 8192, 272.0, (5, 0)),
    Measurement("guide", "tile shapes 1, default", "910B3", 1024, 6144, 576, 72.5, Deal((128, 64, 256)), layout="nt"),
    Measurement("guide", "tile shapes 1, tuned", "910B3", 1024, 6144, 576, 48.6, Deal((256, 64, 128)), layout="nt"),
    Measurement("guide", "tile shapes 2, default", "910B3", 20, 16384, 6144, 181.4, Deal((128, 64, 256), (3, 1)), layout="nz",
                fitted=True),
    Measurement("guide", "tile shapes 2, tuned", "910B3", 20, 16384, 6144, 139.6, Deal((32, 32, 320), (3, 1)), layout="nz"),
    Measurement("guide", "the same, B row-major", "910B3", 20, 16384, 6144, 238.8, Deal((128, 64, 256), (3, 1)), fitted=True),
    Measurement("guide", "the same, B row-major", "910B3", 20, 16384, 6144, 252.4, Deal((32, 32, 320), (3, 1)), fitted=True),
    Measurement("guide", "tile shapes 3, default", "910B1", 1, 5120, 768, 36.3, Deal((128, 64, 128), (3, 1)), "fp32", "nt",
                fitted=True),
    Measurement("guide", "tile shapes 3, tuned", "910B1", 1, 5120, 768, 15.5, Deal((16, 256, 32), (3, 1)), "fp32", "nt",
                fitted=True),
    Measurement("guide", "swizzle <3, 1>", "910B3", 160, 2048, 6144, 40.6, Deal((128, 64, 256), (3, 1)), layout="nz"),
    Measurement("guide", "swizzle <4, 1>", "910B3", 160, 2048, 6144, 35.3, Deal((128, 64, 256), (4, 1)), layout="nz"),
    Measurement("tuner", "mstuner, 32x128x128", "910B3", 256, 1024, 512, 19.38, Deal((32, 32, 128))),
    Measurement("tuner", "mstuner, best of 1701", "910B3", 256, 1024, 512, 12.74, Deal((64, 64, 128), (3, 1)), fitted=True),
    Measurement("split-k", "basic matmul", "910B2", 2048, 4000, 4096, 445.0, Deal((128, 64, 256)), fitted=True),
    Measurement("split-k", "basic matmul", "910B2", 4096, 8000, 4096, 1231.0, Deal((128, 64, 256)), fitted=True),
    Measurement("split-k", "basic matmul", "910B2", 4096, 40000, 4096, 7775.0, Deal((128, 64, 256))),
    _split_k(2048, 4000, 4096, 261.0),
    _split_k(4096, 8000, 4096, 917.0),
    _split_k(4096, 40000, 4096, 4669.0),
    Measurement("aswt", "baseline", "950", 1024, 1024, 1024, 14.95, Deal((256, 64, 256)), fitted=True),
    Measurement("aswt", "baseline", "950", 2048, 256, 2048, 11.95, Deal((256, 64, 256))),
    Measurement("aswt", "baseline", "950", 2208, 512, 2048, 22.07, Deal((256, 64, 256))),
    Measurement("aswt", "baseline", "950", 2208, 1024, 2048, 38.15, Deal((256, 64, 256))),
    Measurement("aswt", "baseline", "950", 1024, 512, 2368, 16.02, Deal((256, 64, 256))),
    Measurement("aswt", "baseline", "950", 1024, 1024, 2368, 26.18, Deal((256, 64, 256)), fitted=True),
    Measurement("aswt", "baseline", "950", 1024, 2048, 2368, 45.88, Deal((256, 64, 256))),
    _aswt(1024, 1024, 1024, 15.08), _aswt(2048, 256, 2048, 12.09), _aswt(2208, 512, 2048, 18.65),
    _aswt(2208, 1024, 2048, 30.51), _aswt(1024, 512, 2368, 12.00), _aswt(1024, 1024, 2368, 19.82),
    _aswt(1024, 2048, 2368, 34.25),
    _fixpipe(567, 399, 488, 6.53), _fixpipe(1226, 399, 1557, 15.06),
    _fixpipe(2058, 256, 2038, 20.69), _fixpipe(2048, 256, 2048, 11.97), _fixpipe(2058, 256, 2048, 13.81),
    _fixpipe(2048, 256, 2038, 19.09, fitted=True),
    _quant("quant", 512, 1024, 4096, 33.26), _quant("quant", 128, 1024, 16384, 38.68),
    _quant("quant", 1024, 1024, 4096, 42.66, remark=_EIGHT),
    _quant("quant", 512, 1024, 8192, 52.36), _quant("quant", 128, 2048, 16384, 53.77),
    _quant("quant A", 512, 1024, 4096, 31.73), _quant("quant A", 128, 1024, 16384, 37.05),
    _quant("quant A", 1024, 1024, 4096, 41.96), _quant("quant A", 512, 1024, 8192, 44.05),
    _quant("quant A", 128, 2048, 16384, 52.75),
    _quant("quant k", 128, 1024, 256, 18.64, fitted=True), _quant("quant k", 128, 2048, 256, 23.23),
    _quant("quant k", 128, 4096, 256, 32.97), _quant("quant k", 128, 8192, 256, 47.73),
    _quant("quant k", 128, 16384, 256, 78.52), _quant("quant k", 256, 16384, 512, 75.39),
    _quant("quant k", 256, 16384, 1024, 77.35),
    _asc("910B1", "0: one core", 759363.98, (.187, .213, .767, .045, .670), **_NORM, block=(64, 64, 64), grid=None, cores=1),
    _asc("910B1", "1: larger base", 249467.08, (.327, .208, .784, .045, .255), True, **_NORM, grid=None, cores=1),
    _asc("910B1", "2: cores 2 x 12", 12541.22, (.276, .180, .812, .070, .238), **_NORM, grid=(2, 1, 12)),
    _asc("910B1", "3: cores 4 x 6", 12283.84, (.312, .199, .793, .045, .244), **_NORM),
    _asc("910B1", "4: MDL", 5039.86, (.694, .520, .903, .010, .462), **_MDL, depth=4),
    _asc("910B1", "5: more of L1", 4156.76, (.854, .701, .963, .012, .373), True, **_MDL),
    _asc("910B1", "6: halves of M", 4088.36, (.860, .708, .958, .013, .463), **_MDL, rounds=2),
    _asc("910B1", "7: constant tiling", 4053.44, (.863, .712, .959, .012), rounds=2),
    _asc("910B1", "8: unit flag", 4012.44, (.864, .712, .965, .077), rounds=2, unit_flag=True),
    _asc("910B1", "basic API, 1", 4121.16, (.840, .692, .968, .044), unit_flag=True),
    _asc("910B1", "basic API, 2", 4081.64, (.847, .702, .959, .044), rounds=2, unit_flag=True),
    _asc("950", "0: one core", 1096626.431, (.181, .106, .876, .026, .532), **_NORM, block=(64, 64, 64), grid=None, cores=1),
    _asc("950", "1: larger base", 130560.475, (.679, .172, .818, .032, .279), True, **_NORM, grid=None, cores=1),
    _asc("950", "2: cores 2 x 16", 4294.619, (.649, .165, .825, .033, .268), **_NORM, grid=(2, 1, 16)),
    _asc("950", "3: cores 4 x 8", 4332.557, (.640, .162, .827, .033, .264), **_NORM),
    _asc("950", "4: MDL", 2668.224, (.964, .300, .949, .013, .516), **_MDL, depth=4),
    _asc("950", "5: more of L1", 2591.366, (.983, .322, .744, .014, .237), True, **_MDL),
    _asc("950", "6: halves of M", 2589.888, (.984, .319, .726, .013, .296), **_MDL, rounds=2),
    _asc("950", "7: constant tiling", 2589.09, (.984, .320, .732, .013), rounds=2),
    _asc("950", "8: unit flag", 2558.155, (.997, .327, .743, .084), rounds=2, unit_flag=True),
    _asc("950", "basic API, 1", 2572.047, (.997, .322, .729, .086), unit_flag=True),
    _asc("950", "basic API, 2", 2574.492, (.996, .318, .736, .087), rounds=2, unit_flag=True),
    _asc("910B1", "before GELU", 4227.605, (.820, .669, .980, .052), unit_flag=True),
    _asc("950", "before GELU", 2601.311, (.997, .314, .721, .097), unit_flag=True),
    Measurement("nd2nz", "before", "910B1", 1024, 1024, 4095, 149.82, Deal((128, 64, 256), grid=(8, 1, 3), template="mdl"),
                fitted=True),
    _loop(256, 4.27, True), _loop(512, 6.59, True), _loop(1024, 16.52), _loop(2048, 57.88),
    _bench("910B2", "fp16", 2048, 2048, 2048, 80.77),
    _bench("910B2", "fp16", 4096, 4096, 4096, 525.95, fitted=True),
    _bench("910B2", "bf16", 1024, 1024, 1024, 15.27),
    _bench("910B2", "bf16", 2048, 4096, 2048, 156.5),
    _bench("910B2", "fp16", 1, 4096, 4096, 29.93, fitted=True),
    _bench("910B2", "fp16", 1, 8192, 4096, 56.59, fitted=True),
    _bench("910B2", "fp16", 128, 4096, 4096, 34.55, remark=_PREFILL),
    _bench("910B2", "fp16", 512, 4096, 4096, 95.29),
    _bench("910B2", "fp16", 512, 1040, 1024, 18.85, fitted=True),
    _bench("910B2", "int8", 1024, 3584, 4608, 83.98, dequantize="fixpipe"),
    _bench("910B2", "int8", 1024, 4096, 14336, 281.65, dequantize="fixpipe"),
    _bench("910B2", "int8", 1024, 4096, 11008, 242.66, dequantize="vector"),
    _bench("910B2", "int8", 1024, 3584, 3584, 87.82, dequantize="vector"),
    _bench("910B2", "int8", 1024, 4096, 14336, 329.53, dequantize="vector"),
    _bench("910B2", "int8", 1024, 2048, 2048, 31.88, dequantize="fixpipe"),
    _bench("910B2", "int8", 1024, 4096, 4096, 95.06, dequantize="fixpipe"),
    _bench("910B2", "int8", 32, 256, 512, 7.82, dequantize="fixpipe", remark=_LAUNCH),
    _bench("910B2", "int8", 4096, 4096, 4096, 310.07, dequantize="vector"),
    _bench("950", "int8", 1024, 3584, 4608, 58.08, dequantize="fixpipe", fitted=True),
    _bench("950", "int8", 999, 4096, 4096, 56.23, dequantize="fixpipe", fitted=True),
    _bench("950", "int8", 1024, 3584, 3584, 43.31, dequantize="fixpipe", fitted=True),
    _bench("950", "int8", 1024, 2048, 2048, 19.82, dequantize="fixpipe", fitted=True),
    _bench("950", "int8", 1024, 4096, 4096, 54.7, dequantize="fixpipe", fitted=True),
    _bench("950", "int8", 1, 4096, 4096, 15.57, dequantize="fixpipe", fitted=True),
    _bench("950", "int8", 512, 513, 1024, 5.985, dequantize="fixpipe", fitted=True),
    _bench("950", "int8", 1024, 4096, 1025, 29.155, dequantize="fixpipe", fitted=True),
    _bench("950", "int8", 4096, 4096, 4096, 191.33, dequantize="fixpipe", fitted=True),
    _bench("910B2", "w8a16", 4, 2048, 4096, 22.821),
    _bench("910B2", "w8a16", 8, 4096, 2048, 29.321),
    _bench("910B2", "w8a16", 2, 5120, 1536, 37.581, remark=_WIDENED),
    _bench("910B2", "w8a16", 1, 4096, 4096, 33.181),
    _bench("910B2", "w8a16", 4, 4096, 6144, 45.661),
    _bench("910B2", "w8a16", 8, 3584, 4608, 38.44),
    _bench("910B2", "w8a16", 16, 4096, 11008, 59.682, remark=_WIDENED),
    _bench("910B2", "w8a16", 64, 4096, 14336, 106.282),
    _bench("910B2", "w8a16", 128, 5120, 5120, 75.662),
    _bench("910B2", "w8a16", 1, 8192, 8192, 73.041, remark=_WIDENED),
    _bench("910B2", "w8a16", 32, 28672, 8192, 281.605),
    _bench("950", "w8a16", 1, 2048, 2048, 7.61, fitted=True),
    _bench("950", "w8a16", 4, 7168, 2048, 17.36),
    _bench("950", "w8a16", 2, 4096, 12288, 41.735),
    _bench("950", "w8a16", 4, 4096, 6144, 22.555, fitted=True),
    _bench("950", "w8a16", 16, 4096, 11008, 38.46, fitted=True),
    _bench("950", "w8a16", 32, 11008, 4096, 38.915),
    _bench("950", "w8a16", 96, 5120, 13824, 62.15),
    _bench("950", "w8a16", 128, 5120, 5120, 34.18, remark=_TALL),
    _bench("950", "w8a16", 64, 14336, 4096, 57.32),
    _bench("950", "w8a16", 8, 8192, 10240, 67.14),
)  # fmt: skip
#: Relative error from which on a row needs a remark.
FAR_OFF = 0.2


class PredictedTime(NamedTuple):
    """`PredictedTime` holds a published time and the predicted one; `error` is predicted over published, minus 1."""

    measurement: Measurement
    schedule: Kernel
    predicted: float  # microseconds
    error: float
    busy: tuple[float, ...]  # predicted busy ratios of the published pipes


def measured_schedule(row: Measurement) -> Kernel:
    """Return the schedule of a published kernel: whole tiles of C with both operands streamed, or the best plan if unknown."""
    chip = get_chip(row.chip)
    options: dict[str, Any] = {
        "terms": 1, "operand": row.operand, "layout": row.layout, "warm": row.source in LOOPED, "dequantize": row.dequantize,
    }  # fmt: skip
    if row.deal is None:
        size = (row.m, row.k, row.n, chip)
        return plan(*size, simulated=8, top=1, error_of=lambda schedule: 0.0, **options)[0].schedule
    deal = row.deal
    swizzle = deal.swizzle or (None if deal.grid else (3, 0))
    return build_schedule(
        row.m // deal.rounds, row.k, row.n, chip, Blocking(*deal.block), kernel="grid",
        swizzle=swizzle and Swizzle(*swizzle), grid=deal.grid, resident=deal.keeps, balanced=False,
        n_fused=deal.panel and deal.panel // deal.block[1], unit_flag=deal.unit_flag, depth=deal.depth, template=deal.template,
        cores=deal.cores, **options,
    )  # fmt: skip


def predicted_us(row: Measurement, timeline: Timeline) -> float:
    """Return the time (us) that a source would print: of all rounds, with the call's overhead if it times around the call."""
    rounds = row.deal.rounds if row.deal else 1
    launches = (rounds - 1) * 1e6 * timeline.schedule.launch_seconds
    return rounds * 1e6 * timeline.seconds - launches + AROUND_US * (row.source in TIMED_AROUND)


def comparisons(rows: tuple[Measurement, ...] = MEASUREMENTS) -> list[PredictedTime]:
    """Return the published times with their predictions."""
    found = []
    for row in rows:
        schedule = measured_schedule(row)
        timeline: Timeline = simulate(schedule)
        predicted = predicted_us(row, timeline)
        busy = tuple(timeline.counters[pipe] for pipe in BUSY_PIPES[: len(row.busy)])
        found.append(PredictedTime(row, schedule, predicted, predicted / row.microseconds - 1, busy))
    return found


class Spread(NamedTuple):
    """`Spread` holds root mean squares over rows: of log(predicted / published), and of the differences of busy ratios."""

    rows: int
    time: float
    busy: float  # over all pipes; nan without busy ratios
    scalar: float  # over the scalar unit alone; nan without busy ratios


def spread(found: list[PredictedTime]) -> Spread:
    """Return the spread of the predictions of some rows."""
    logs = [math.log1p(c.error) for c in found]
    gaps = [
        (pipe, c.busy[at] - c.measurement.busy[at])
        for at, pipe in enumerate(BUSY_PIPES)
        for c in found
        if len(c.busy) > at
    ]

    def rms(values: list[float]) -> float:
        return math.sqrt(sum(x * x for x in values) / len(values)) if values else math.nan

    scalar = [gap for pipe, gap in gaps if pipe == "SCALAR"]
    return Spread(len(found), rms(logs), rms([gap for _, gap in gaps]), rms(scalar))
