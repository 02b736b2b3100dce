"""Published times of matrix products on Ascend chips beside what the model predicts for the same tiles.

Source: CATLASS (github.com/hicann/catlass, 2026-08): docs/zh/1_Practice/11_matmul_optimization.md (tile shapes and
swizzles; "for reference only, platforms differ"), tools/tuner/README_en.md (mstuner, rated clock 1800 MHz),
examples/34_single_core_splitk_matmul (910B2, CANN 8.2.RC1, msprof). The first two do not name the chip: 20 AI cores at 1800
MHz is taken for a 910B3, 24 for a 910B1; the 910B2 is taken as a 910B1 at 1800 MHz.
"""

from typing import NamedTuple

from ascend.blocking import Blocking
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.grid import Swizzle
from ascend.pipes.simulate import simulate
from ascend.schedule import build_schedule
from ascend.tile_schedule import TileSchedule


class Measurement(NamedTuple):
    """A published time: the product, the chip taken for it, the tile (bm, bk, bn), the swizzle, microseconds."""

    name: str
    chip: str
    m: int
    k: int
    n: int
    tile: tuple[int, int, int]
    swizzle: tuple[int, int]
    operand: str
    microseconds: float
    fitted: bool = False  # whether a chip's parameter was taken from it


#: Tiles as in the source: rows, the k of L0, columns.
MEASUREMENTS = (
    Measurement("tile shapes 1, default", "910B3", 1024, 6144, 576, (128, 64, 256), (3, 0), "fp16", 72.5),
    Measurement("tile shapes 1, tuned", "910B3", 1024, 6144, 576, (256, 64, 128), (3, 0), "fp16", 48.6),
    Measurement("tile shapes 2, default", "910B3", 20, 16384, 6144, (128, 64, 256), (3, 1), "fp16", 181.4, True),
    Measurement("tile shapes 2, tuned", "910B3", 20, 16384, 6144, (32, 32, 320), (3, 1), "fp16", 139.6),
    Measurement("tile shapes 3, default", "910B1", 1, 5120, 768, (128, 64, 128), (3, 1), "fp32", 36.3),
    Measurement("tile shapes 3, tuned", "910B1", 1, 5120, 768, (16, 256, 32), (3, 1), "fp32", 15.5),
    Measurement("swizzle <3, 1>", "910B3", 160, 2048, 6144, (128, 64, 256), (3, 1), "fp16", 40.6),
    Measurement("swizzle <4, 1>", "910B3", 160, 2048, 6144, (128, 64, 256), (4, 1), "fp16", 35.3),
    Measurement("mstuner, 32x128x128", "910B3", 256, 1024, 512, (32, 32, 128), (3, 0), "fp16", 19.38),
    Measurement("mstuner, best of 1701", "910B3", 256, 1024, 512, (64, 64, 128), (3, 1), "fp16", 12.74),
    Measurement("basic matmul, 910B2", "910B2", 2048, 4000, 4096, (128, 64, 256), (3, 0), "fp16", 445.0),
    Measurement("basic matmul, 910B2", "910B2", 4096, 8000, 4096, (128, 64, 256), (3, 0), "fp16", 1231.0),
    Measurement("basic matmul, 910B2", "910B2", 4096, 40000, 4096, (128, 64, 256), (3, 0), "fp16", 7775.0),
)


class Comparison(NamedTuple):
    """A published time and the predicted one; `error` is predicted over published, minus 1."""

    measurement: Measurement
    predicted: float  # microseconds
    error: float


def measured_chip(name: str) -> Chip:
    """The chip taken for a measurement."""
    return get_chip("910B1").replace(frequency_mhz=1800) if name == "910B2" else get_chip(name)


def measured_schedule(row: Measurement) -> TileSchedule:
    """The schedule that the published tile and swizzle mean: whole tiles of C, both operands streamed."""
    return build_schedule(
        row.m, row.k, row.n, measured_chip(row.chip), Blocking(*row.tile), terms=1, kernel="grid",
        swizzle=Swizzle(*row.swizzle), operand=row.operand, balanced=False,
    )  # fmt: skip


def comparisons() -> list[Comparison]:
    """Every published time beside the prediction."""
    rows = []
    for row in MEASUREMENTS:
        predicted = 1e6 * simulate(measured_schedule(row)).seconds
        rows.append(Comparison(row, predicted, predicted / row.microseconds - 1))
    return rows
