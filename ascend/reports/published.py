"""Published times of matrix products on Ascend chips beside what the model predicts for the same tiles.

Every row is a device measurement that somebody else published, with its source. Rows that a parameter was fitted to are
marked. For the sources that came in order of size the split was settled before the fit: of pto-isa's FP16 sizes the first, the
third and the last (the only one beyond what L2 keeps); of torch's FP16 sizes and of MXFP8's the first and the third. Of
CATLASS's rows those are fitted that show one cost alone: memory read by few cores, ND rows, small products (launch). The forms
of the model were chosen with all rows in sight; no number was taken from a row that is marked as predicted.
"""

import math
from typing import Any, NamedTuple

from ascend.blocking import Blocking
from ascend.chips.files import get_chip
from ascend.grid import Swizzle
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import Timeline, simulate
from ascend.planner import plan
from ascend.schedule import build_schedule
from ascend.schedule_options import Layout, Resident

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
    "aswt": f"{CATLASS}: docs 2_Design/01_kernel_design/05_aswt.md, the baseline, 950",
    "pto-dsl": "huawei-csl/pto-dsl, c26eab7: matmul_optim_guide.md, 910B2; read off its figures, to about 1 %",
}


#: Sources that time a product again and again on the same operands.
LOOPED = ("torch", "tilelang")


class Deal(NamedTuple):
    """How a published kernel deals tiles: its block, and a swizzle or a grid of cores with one rectangle each."""

    block: tuple[int, int, int]
    swizzle: tuple[int, int] | tuple[int, int, bool] = (3, 0)
    grid: tuple[int, int, int] | None = None
    keeps: Resident = "none"  # the operand that stays in L1, 512 products of it; C leaves by the unit flag then


class Measurement(NamedTuple):
    """A published time with the product, the chip, and what is known of the kernel."""

    source: str
    name: str
    chip: str
    m: int
    k: int
    n: int
    microseconds: float
    deal: Deal | None = None  # None: not known, the best plan is taken
    operand: str = "fp16"
    layout: Layout = "nd"
    busy: tuple[float, ...] = ()  # CUBE, MTE1, MTE2, FIXP
    fitted: bool = False  # whether a chip's parameter was taken from it
    remark: str = ""  # why the prediction is far off, where it is


#: Pipes of the published busy ratios.
BUSY_PIPES = ("CUBE", "MTE1", "MTE2", "FIXP")


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
    deal = Deal((256, 64, 128), grid=(8, 1, 3), keeps="a")
    return Measurement("split-k", "split-k in a core", "910B2", m, k, n, microseconds, deal, layout="nz")


_LAUNCH = "a library call that computes little: what it does besides multiplying is not in the model"
_ODD_ROWS = "rows begin at multiples of 64 bytes only: K = 8000 and 40000, at multiples of 128, cost less"
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
    Measurement("split-k", "basic matmul", "910B2", 2048, 4000, 4096, 445.0, Deal((128, 64, 256)), remark=_ODD_ROWS),
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
)  # fmt: skip
#: Products of a resident panel in CATLASS's split-k within a core.
PANEL = 512
#: A prediction that is further off says why.
FAR_OFF = 0.2


class PredictedTime(NamedTuple):
    """A published time and the predicted one; `error` is predicted over published, minus 1."""

    measurement: Measurement
    schedule: Kernel
    predicted: float  # microseconds
    error: float
    busy: tuple[float, ...]  # predicted, of the pipes that were published


def measured_schedule(row: Measurement) -> Kernel:
    """The schedule that a published kernel means: whole tiles of C, both operands streamed; else the best plan."""
    chip = get_chip(row.chip)
    options: dict[str, Any] = {"terms": 1, "operand": row.operand, "layout": row.layout, "warm": row.source in LOOPED}
    if row.deal is None:
        size = (row.m, row.k, row.n, chip)
        return plan(*size, simulated=8, top=1, error_of=lambda schedule: 0.0, **options)[0].schedule
    kept = None if row.deal.keeps == "none" else PANEL // row.deal.block[1]
    return build_schedule(
        row.m, row.k, row.n, chip, Blocking(*row.deal.block), kernel="grid", swizzle=Swizzle(*row.deal.swizzle),
        grid=row.deal.grid, resident=row.deal.keeps, balanced=False, n_fused=kept,
        unit_flag=kept is not None, **options,
    )  # fmt: skip


def comparisons(rows: tuple[Measurement, ...] = MEASUREMENTS) -> list[PredictedTime]:
    """Published times beside the predictions."""
    found = []
    for row in rows:
        schedule = measured_schedule(row)
        timeline: Timeline = simulate(schedule)
        predicted = 1e6 * timeline.seconds
        busy = tuple(timeline.utilization[pipe] for pipe in BUSY_PIPES) if row.busy else ()
        found.append(PredictedTime(row, schedule, predicted, predicted / row.microseconds - 1, busy))
    return found


class Spread(NamedTuple):
    """Root mean squares over a set of rows: of log(predicted / published), and of the differences of the busy ratios."""

    rows: int
    time: float
    busy: float  # nan without any


def spread(found: list[PredictedTime]) -> Spread:
    """How far the predictions of some rows are off."""
    logs = [math.log1p(c.error) for c in found]
    gaps = [here - there for c in found for here, there in zip(c.busy, c.measurement.busy, strict=True)]

    def rms(values: list[float]) -> float:
        return math.sqrt(sum(x * x for x in values) / len(values)) if values else math.nan

    return Spread(len(found), rms(logs), rms(gaps))
