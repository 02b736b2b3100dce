"""Data of the paper's performance figures, and of our own, as rows: what the plots, CSV and JSON files show.

Figures 6, 10, 11 and 12 are from SGEMM-cube (arXiv:2507.23387v4). The paper prints no numbers in its plots beyond
those in its text, so 10 to 12 are predictions of this model, not copies of its data.
"""

from collections.abc import Callable, Iterable

from ascend.blocking import Blocking, feasible_blocks
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.pipes.simulate import simulate
from ascend.planner import plan
from ascend.reports.calibration import ASSUMED_SIZE, PUBLISHED_BLOCK
from ascend.roofline import operational_intensity, roofline
from ascend.schedule import build_schedule

Progress = Callable[[int, int], None] | None
Size = tuple[int, int, int]
#: The paper's FP32-equivalent peak of 910A.
PAPER_PEAK = 256e12 / 3


def figure_6(chip: Chip) -> list[dict]:
    """N_fused and f over bm x bk, for every feasible block."""
    return [
        {
            "bm": b.bm, "bk": b.bk, "bn": b.bn, "bm_bk": b.bm * b.bk, "bn_over_bm": b.bn / b.bm,
            "n_fused": b.n_fused(chip), "f": b.fusion_efficiency(chip),
        }
        for b in feasible_blocks(chip)
    ]  # fmt: skip


def figure_10(
    chip: Chip, size: Size = ASSUMED_SIZE, blocks: Iterable[Blocking] | None = None, progress: Progress = None
) -> list[dict]:
    """Every block in the roofline: operational intensity, roof, single- and double-buffered speed."""
    chosen = list(feasible_blocks(chip) if blocks is None else blocks)
    rows = []
    for number, b in enumerate(chosen):
        point = roofline(b, *size, chip, peak=PAPER_PEAK if chip.soc_version == "Ascend910A" else None)
        row: dict = {
            "bm": b.bm, "bk": b.bk, "bn": b.bn, "operational_intensity": point.operational_intensity,
            "roof_tflops": point.flops / 1e12, "knee": point.knee,
        }  # fmt: skip
        for buffering in ("single", "double"):
            row[buffering] = simulate(build_schedule(*size, chip, b, buffering=buffering)).tflops
        rows.append(row)
        if progress:
            progress(number + 1, len(chosen))
    return rows


def figure_11(chip: Chip, size: Size = ASSUMED_SIZE, progress: Progress = None) -> list[dict]:
    """Single against double buffering over square blocks (b, bk, b)."""
    blocks = [b for b in feasible_blocks(chip) if b.bm == b.bn and b.bk in (16, 32, 48, 64, 80, 96, 128)]
    return [
        {**row, "n_fused": Blocking(row["bm"], row["bk"], row["bn"]).n_fused(chip)}
        for row in figure_10(chip, size, blocks, progress)
    ]


def figure_12(chip: Chip, block: Blocking = PUBLISHED_BLOCK, progress: Progress = None) -> list[dict]:
    """Scaling in m = n, in k, and in all: the block on `chip`, the best block there, FP32 GEMM on 910B3 (best block).

    "Best" is the fastest of the five that the closed forms put first, for each size.
    """
    b3 = get_chip("910B3")
    m, k, n = ASSUMED_SIZE
    steps = [512 * i for i in range(1, 41)]
    series = (
        ("m = n", [(s, k, s) for s in steps]), ("k", [(m, s, n) for s in steps]), ("m = k = n", [(s, s, s) for s in steps]),
    )  # fmt: skip
    rows = []
    for name, sizes in series:
        for size in sizes:
            best = plan(*size, chip, kernel="paper", simulated=5, top=1)[0]
            fp32 = plan(*size, b3, terms=1, operand="fp32", kernel="paper", simulated=5, top=1)[0]
            rows.append({
                "series": name, "m": size[0], "k": size[1], "n": size[2],
                "sgemm_cube": simulate(build_schedule(*size, chip, block)).tflops,
                "sgemm_cube_best": best.tflops, "fp32_910B3": fp32.tflops,
            })  # fmt: skip
            if progress:
                progress(len(rows), 3 * len(steps))
    return rows


def heat_map(chip: Chip, bk: int = 64, size: Size = ASSUMED_SIZE, progress: Progress = None, **options) -> list[dict]:
    """TFLOP/s and FLOP/B of each block (bm, bn) with one bk whose kernel fits."""
    blocks = [b for b in feasible_blocks(chip) if b.bk == bk]
    if not blocks:
        raise ValueError(f"no feasible block of {chip.name} has bk = {bk}")
    rows = []
    for number, b in enumerate(blocks):
        try:
            tflops = simulate(build_schedule(*size, chip, b, **options)).tflops
        except ValueError:  # the accumulators of a fused kernel do not fit
            continue
        intensity = operational_intensity(b, *size, chip)
        rows.append({"bm": b.bm, "bk": b.bk, "bn": b.bn, "tflops": tflops, "operational_intensity": intensity})
        if progress:
            progress(number + 1, len(blocks))
    return rows
