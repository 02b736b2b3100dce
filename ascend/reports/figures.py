"""This module computes the data of the paper's performance figures, and of our own, as rows for plots, CSV and JSON.

Figures 6, 10, 11 and 12 are from SGEMM-cube (arXiv:2507.23387v4). The paper prints no numbers of its plots beyond those
in its text, so the rows of 10 to 12 are predictions of this model, not copies of the paper's data.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from ascend.blocking import Blocking, feasible_blocks
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.kernels.base import Kernel
from ascend.pipes.simulate import Timeline, simulate
from ascend.pipes.trace import bars
from ascend.planner.plan import plan
from ascend.programs.program import PIPES
from ascend.reports.calibration import ASSUMED_SIZE, PUBLISHED_BLOCK
from ascend.roofline import operational_intensity, roofline
from ascend.schedule import build_schedule, variant

Progress = Callable[[int, int], None] | None
Size = tuple[int, int, int]
#: The paper's FP32-equivalent peak of 910A.
PAPER_PEAK = 256e12 / 3


def figure_6(chip: Chip) -> list[dict]:
    """Return N_fused and f over bm x bk, for every feasible block."""
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
    """Return the roofline point of every block: operational intensity, roof, single- and double-buffered speed."""
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
    """Return the speed with single and double buffers over square blocks (b, bk, b)."""
    blocks = [b for b in feasible_blocks(chip) if b.bm == b.bn and b.bk in (16, 32, 48, 64, 80, 96, 128)]
    return [
        {**row, "n_fused": Blocking(row["bm"], row["bk"], row["bn"]).n_fused(chip)}
        for row in figure_10(chip, size, blocks, progress)
    ]


def figure_12(chip: Chip, block: Blocking = PUBLISHED_BLOCK, progress: Progress = None) -> list[dict]:
    """Return the scaling in m = n, in k, and in all sizes, for three cases.

    The cases are the block on `chip`, the best block there, and FP32 GEMM on 910B3 (best block). The best block is the
    fastest of the five that the closed forms rank first, for each size.
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
    """Return the TFLOP/s and FLOP/B of each block (bm, bn) with one bk whose kernel fits."""
    blocks = [b for b in feasible_blocks(chip) if b.bk == bk]
    if not blocks:
        raise ValueError(f"no feasible block of {chip.name} has bk = {bk}: take another multiple of 16")
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


def pipe_rows(timeline: Timeline) -> list[dict]:
    """Return each pipe's operations on core 0 in 12,000 cycles around the end of a C block: an operation a row, times in us."""
    recorded, cycles = timeline.recorded(), 12_000
    first = _first_leaving(recorded, cycles)
    return [
        {
            "pipe": PIPES[bar.pipe], "work": bar.kind, "start": _microseconds(timeline, max(bar.start, first)),
            "end": _microseconds(timeline, min(bar.end, first + cycles)),
        }
        for bar in bars(recorded, first, first + cycles)
    ]  # fmt: skip


def ping_pong_rows(schedule: Kernel) -> list[dict]:
    """Return the first 4,000 cycles of the multiplication with single and double buffers: an operation a row, times in us.

    `number` counts the k blocks of one kind of work; even numbers use the first of two buffers.
    """
    rows, cycles, shown = [], 4_000, ("MTE2", "MTE1", "CUBE")
    for buffering in ("single", "double"):
        timeline = simulate(variant(schedule, buffering=buffering), include_split=False).recorded()
        launch, counts = timeline.phases[0].launch, Counter[str]()
        for bar in sorted(bars(timeline), key=lambda bar: bar.start):
            if PIPES[bar.pipe] not in shown or bar.start - launch > cycles:
                continue
            rows.append({
                "buffers": buffering, "pipe": PIPES[bar.pipe], "work": bar.kind, "number": counts[bar.kind],
                "start": _microseconds(timeline, bar.start - launch), "end": _microseconds(timeline, bar.end - launch),
                "tflops": timeline.tflops,
            })  # fmt: skip
            counts[bar.kind] += 1
    return rows


def occupancy_rows(timeline: Timeline) -> list[dict]:
    """Return the used bytes of core 0's buffers over 60,000 cycles around the end of a C block: a change a row, times in us."""
    recorded, cycles = timeline.recorded(), 60_000
    first = _first_leaving(recorded, cycles)
    rows = []
    for name, (times, used) in recorded.occupancy().items():
        inside = (times >= first) & (times <= first + cycles)
        before = int((times < first).sum())
        if before:
            rows.append({"buffer": name, "time": _microseconds(timeline, first), "bytes": int(used[before - 1])})
        rows += [
            {"buffer": name, "time": _microseconds(timeline, time), "bytes": int(count)}
            for time, count in zip(times[inside].tolist(), used[inside].tolist(), strict=True)
        ]
    return rows


def _first_leaving(recorded: Timeline, cycles: float) -> float:
    """Return the start of a window around the first C block whose old value is read back, else around the first that leaves."""
    for kinds in (("C add",), ("C move", "C write")):
        start = min((bar.start for bar in bars(recorded) if bar.kind in kinds), default=None)
        if start is not None:
            return max(start - 0.4 * cycles, 0.0)
    return 0.0


def _microseconds(timeline: Timeline, cycles: float) -> float:
    return cycles / timeline.chip.frequency_mhz
