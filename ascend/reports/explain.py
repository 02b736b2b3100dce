"""This module explains a block's speed in sentences, each marked as published, computed, simulated or inferred.

The mark comes first, so that nobody quotes an inference as a measurement.
"""

import math
from collections.abc import Iterator

from ascend.blocking import ACCUMULATOR_BYTES, Blocking, candidate_rejections, optimal_bm
from ascend.kernels.base import Kernel
from ascend.kernels.paper import PaperKernel
from ascend.pipes.simulate import simulate
from ascend.reports.calibration import PUBLISHED_BLOCK, PUBLISHED_DOUBLE
from ascend.roofline import operational_intensity, roofline
from ascend.schedule import variant
from tensorcore_models.machine.fp_state import default_fp_state

#: Square blocks that the paper discusses: its traffic optimum, its best, and the next larger one.
LANDMARKS = (96, 176, 192)


@default_fp_state
def explain(schedule: Kernel) -> list[str]:
    """Return sentences on a schedule's block and on the square blocks of 96, 176 and 192.

    Each sentence begins with its kind of evidence: "published:", "computed:", "simulated:" or "inferred:".

    Parameters
    ----------
    schedule : Kernel
        Schedule on a chip.

    Raises
    ------
    ValueError
        If the schedule's kernel is not "paper".
    """
    if not isinstance(schedule, PaperKernel):
        raise ValueError(
            f"explain needs a schedule of kernel='paper', got kernel={schedule.kernel!r}: build the schedule with "
            "kernel='paper'"
        )
    return [*_published(schedule), *_own(schedule), *_landmarks(schedule)]


def _published(s: Kernel) -> Iterator[str]:
    if s.placed_on.soc_version != "Ascend910A":
        return
    yield (
        f"published: on 910A the block {PUBLISHED_BLOCK} with N_fused 44 is the fastest, {PUBLISHED_DOUBLE} TFLOP/s double "
        "buffered, 41.7 single (SGEMM-cube, section 6.3)."
    )
    yield (
        "published: the traffic of eq. 9 is least for bm between 86 and 90, rounded to 96 (section 5.1.1); the paper does "
        "not say why 176 beats it."
    )


def _own(s: Kernel) -> Iterator[str]:
    b, chip = s.blocking, s.placed_on
    f = b.fusion_efficiency(chip)
    point = roofline(b, s.m, s.k, s.n, chip)
    yield (
        f"computed: {b} keeps {s.n_fused} blocks of A in L1 (f = {f:.4f}); eq. 9 alone would choose "
        f"bm = {optimal_bm(chip, f):.1f}."
    )
    yield (
        f"computed: operational intensity {point.operational_intensity:.0f} FLOP/B against the knee at {point.knee:.1f}: the "
        f"roofline calls it {point.bound} bound, as it does every block above the knee, so it cannot rank them."
    )
    steps = s.cube_steps() / s.cores
    full = -(-s.m // b.bm)
    yield (
        f"computed: {full} row blocks on {s.cores} cores make {s.waves} wave(s); cubes have work for "
        f"{s.m * s.n * s.k * s.terms / (steps * s.cores * math.prod(s.cube_step)):.1%} of their steps and "
        f"{full / (s.waves * s.cores):.1%} of the cores' turns are used."
    )
    yield from _stream(s)


def _stream(s: Kernel) -> Iterator[str]:
    b, chip = s.blocking, s.placed_on
    m, k, n = s.cube_step
    steps = (b.bm // m) * (b.bk // k) * (b.bn // n)
    rate = b.bk * b.bn * s.operand_bytes / steps
    yield (
        f"computed: a block is {steps} cube cycles; to keep up, each core's MTE2 must bring {rate:.1f} B/cycle of B (its "
        f"path carries {chip.l2_read_rate:g}), whatever eq. 9 divides by the cores; the fixed cost of a block "
        f"({chip.mmad_head:g} cycles of cube head, more for flags) is spread over those {steps}."
    )
    tile = s.accumulators * b.bm * b.bn * ACCUMULATOR_BYTES
    yield (
        f"inferred: a C block is {tile} bytes in L0C of {chip.l0c_bytes}: {s.l0c_slots} fit, so the way of C to memory "
        + ("hides behind the next block's cube work." if s.l0c_slots > 1 else "stops the cube.")
    )


def _landmarks(s: Kernel) -> Iterator[str]:
    for size in LANDMARKS:
        b = Blocking(size, s.blocking.bk, size)
        if b == s.blocking:
            continue
        broken = candidate_rejections(b.bm, b.bk, b.bn, s.placed_on, s.buffering, s.words, s.operand)
        if broken:
            yield f"computed: {b} does not fit {s.placed_on.name}: {broken[0]}."
            continue
        try:
            other = variant(s, blocking=b)
        except ValueError as error:
            yield f"computed: {error}."
            continue
        here, there = simulate(s).tflops, simulate(other).tflops
        parts = []
        if other.waves != s.waves or len(other.row_blocks) != len(s.row_blocks):
            used = len(other.row_blocks) / (other.waves * other.cores)
            parts.append(f"uses {used:.0%} of the cores' turns ({other.waves} waves)")
        if other.l0c_slots != s.l0c_slots:
            parts.append(f"fits L0C {other.l0c_slots} time(s), not {s.l0c_slots}")
        own, others = (operational_intensity(block, s.m, s.k, s.n, s.placed_on) for block in (s.blocking, b))
        parts.append(f"has {others / own:.2f} times the operational intensity")
        parts.append(f"needs {8192 * 16 * s.operand_bytes / 2 / b.bm / s.cube_step[1]:.1f} B/cycle of B a core")
        yield f"simulated: {b} {', '.join(parts)}: {there:.1f} TFLOP/s against {here:.1f}."
