"""Choosing a block: the feasible space ranked by time, by traffic, and under an accuracy limit.

All feasible blocks are ranked by closed forms over arrays; the best of them are simulated. A plan carries why it is
where it is, the accuracy that its accumulation order costs where data are given, and what to type into a kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from ascend.blocking import (
    ACCUMULATOR_BYTES,
    ALIGNMENT,
    OPERAND_BYTES,
    Blocking,
    Buffering,
    Rejection,
    candidate_rejections,
    feasible_sizes,
    slots,
)  # fmt: skip
from ascend.chips.chip import Chip
from ascend.chips.files import get_chip
from ascend.cube import schedule_product
from ascend.pipes.build import SPLIT_IN_BYTES, SPLIT_OUT_BYTES
from ascend.pipes.simulate import Timeline, simulate
from ascend.reports.tiling import tiling_fields
from ascend.roofline import (
    RooflinePoint,
    Traffic,
    check_sizes,
    fp32_equivalent_peak,
    roofline,
    traffic,
    traffic_of_sizes,
)
from ascend.schedule import LARGEST_SIZE, Mode, TileSchedule, build_schedule

Rank = Literal["time", "traffic", "analytic"]
RANKS = ("time", "traffic", "analytic")
#: Blocks that are simulated when ranking by time.
SIMULATED = 200
#: Elements of A, B and C together beyond this fit no chip's memory (2^37 FP32 elements: 512 GiB).
MOST_ELEMENTS = 2**37


@dataclass(frozen=True)
class Plan:
    """A block and what speaks for it.

    Attributes
    ----------
    schedule : TileSchedule
    timeline : Timeline or None
        The simulation; None where ranking did not need it.
    analytic_seconds : float
        Time by the closed forms.
    traffic : Traffic
        Elements between memory and L1 for one term (eq. 9).
    roofline : RooflinePoint
        Eq. 11.
    error : float or None
        Relative Frobenius error (eq. 13) on the data given; None without data.
    """

    schedule: TileSchedule
    timeline: Timeline | None
    analytic_seconds: float
    traffic: Traffic
    roofline: RooflinePoint
    error: float | None = None

    @property
    def blocking(self) -> Blocking:
        """The block."""
        return self.schedule.blocking

    @property
    def n_fused(self) -> int:
        """A blocks resident in L1."""
        return self.schedule.n_fused

    @property
    def fusion_efficiency(self) -> float:
        """f of eq. 8, for the words and buffers of this kernel."""
        s = self.schedule
        return s.blocking.fusion_efficiency(s.placed_on, s.buffering, s.words, s.operand)

    @property
    def seconds(self) -> float:
        """Simulated time, or the analytic one where nothing was simulated."""
        return self.timeline.seconds if self.timeline else self.analytic_seconds

    @property
    def tflops(self) -> float:
        """FP32-equivalent TFLOP/s, simulated where that was done."""
        s = self.schedule
        return 2e-12 * s.m * s.n * s.k / self.seconds

    @property
    def tiling(self) -> dict[str, int]:
        """AscendC tiling fields (see :func:`ascend.reports.tiling.tiling_fields`)."""
        return tiling_fields(self.schedule)

    def to_dict(self) -> dict:
        """Plain data for JSON and CSV."""
        b, s = self.blocking, self.schedule
        return {
            "bm": b.bm, "bk": b.bk, "bn": b.bn, "n_fused": self.n_fused,
            "fusion_efficiency": self.fusion_efficiency,
            "tflops": self.tflops, "seconds": self.seconds, "simulated": self.timeline is not None,
            "analytic_seconds": self.analytic_seconds,
            "cube_efficiency": self.timeline.cube_efficiency if self.timeline else None,
            "traffic_elements": self.traffic.elements,
            "operational_intensity": self.roofline.operational_intensity, "bound": self.roofline.bound,
            "waves": s.waves, "k_groups": len(s.k_groups), "l0c_slots": s.l0c_slots,
            "accumulation_length": s.chain, "error": self.error, "tiling": self.tiling,
        }  # fmt: skip


def plan(
    m: int,
    k: int,
    n: int,
    chip: Chip | str,
    terms: int = 3,
    buffering: Buffering = "double",
    rank: Rank = "time",
    max_error: float | None = None,
    data: tuple | None = None,
    top: int = 10,
    *,
    mode: Mode = "termwise",
    operand: str = "fp16",
    simulated: int = SIMULATED,
    error_of: Callable[[TileSchedule], float] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Plan]:
    """The best blocks for C = A B (A m x k, B k x n) on a chip.

    Parameters
    ----------
    m, k, n : int
    chip : Chip
    terms, buffering, mode, operand
        The kernel, see :func:`ascend.schedule.build_schedule`.
    rank : {"time", "traffic", "analytic"}
        By simulated time (of the analytically best `simulated`), by the traffic of eq. 9, or by the closed forms alone.
    max_error : float, optional
        Leave out blocks whose relative error (eq. 13) on `data` is larger.
    data : (a, b), optional
        FP32 arrays, m x k and k x n; the error of each accumulation length is then computed by
        :func:`ascend.cube_gemm` against FP64.
    top : int
        Plans returned.
    simulated : int
        How many blocks are simulated for rank "time".
    error_of : callable, optional
        Gives the error of a schedule instead of `data`.
    progress : callable, optional
        Called with (done, total) simulations.

    Returns
    -------
    list of Plan
        Best first; ties go to the smaller traffic, then the smaller block.

    Raises
    ------
    ValueError
        For impossible sizes, a limit without data, or when no block is left.
    """
    chip = get_chip(chip)
    _check_request(m, k, n, rank, max_error, data, error_of, top, simulated)
    words = 2 if mode in ("fused", "elementwise") and terms > 1 else 1
    sizes = feasible_sizes(chip, buffering, words, operand)
    if not len(sizes):
        raise ValueError(f"no block of {operand} operands fits {chip.name}")
    seconds = analytic_seconds(sizes, m, k, n, chip, terms, buffering, mode, operand)
    moved = traffic_of_sizes(sizes, m, k, n, chip)
    keys = (moved, seconds) if rank == "traffic" else (seconds, moved)
    order = np.lexsort((sizes[:, 2], sizes[:, 1], sizes[:, 0], keys[1], keys[0]))
    if error_of is None and data is not None:
        error_of = data_error(*data)
    wanted = max(simulated, top) if rank == "time" else top
    plans: list[Plan] = []
    worst: list[float] = []
    for index in order.tolist():
        if len(plans) == wanted:
            break
        block = Blocking(*sizes[index].tolist())
        try:
            schedule = build_schedule(
                m, k, n, chip, block, terms=terms, buffering=buffering, mode=mode, operand=operand
            )
        except ValueError:  # eq. 12 admits it, the accumulators of a fused kernel do not fit: see rejections()
            continue
        error = error_of(schedule) if error_of else None
        if max_error is not None and error is not None and not error <= max_error:
            worst.append(error)
            continue
        timeline = simulate(schedule) if rank == "time" else None
        plans.append(_plan(schedule, timeline, float(seconds[index]), error))
        if progress:
            progress(len(plans), wanted)
    if not plans:
        raise ValueError(
            f"no block keeps the error below {max_error:g}: the best reaches {min(worst):.3g}" if worst
            else f"no block fits a {mode} kernel of {terms} terms on {chip.name}"
        )  # fmt: skip
    if rank == "time":
        plans.sort(key=lambda p: (p.seconds, p.traffic.elements, p.blocking))
    return plans[:top]


def plan_of(schedule: TileSchedule, error: float | None = None) -> Plan:
    """The plan of one schedule, simulated.

    Parameters
    ----------
    schedule : TileSchedule
        Placed on a chip.
    error : float, optional
        Of its product on the user's data (eq. 13), to carry along.
    """
    s = schedule
    sizes = np.array([[s.blocking.bm, s.blocking.bk, s.blocking.bn]])
    seconds = analytic_seconds(sizes, s.m, s.k, s.n, s.placed_on, s.terms, s.buffering, s.mode, s.operand)
    return _plan(schedule, simulate(schedule), float(seconds[0]), error)


def _plan(schedule: TileSchedule, timeline: Timeline | None, seconds: float, error: float | None) -> Plan:
    s = schedule
    size = (s.m, s.k, s.n, s.placed_on)
    peak = fp32_equivalent_peak(s.placed_on, s.terms, s.operand)
    return Plan(schedule, timeline, seconds, traffic(s.blocking, *size), roofline(s.blocking, *size, peak), error)


def _check_request(m, k, n, rank, max_error, data, error_of, top, simulated) -> None:
    check_sizes(m, k, n)
    if max(m, k, n) > LARGEST_SIZE or m * k + k * n + m * n > MOST_ELEMENTS:
        raise ValueError(
            f"{m} x {k} x {n} needs {4 * (m * k + k * n + m * n) / 2**30:.0f} GiB for A, B and C: beyond any chip's memory"
        )
    if rank not in RANKS:
        raise ValueError(f"rank is one of {', '.join(RANKS)}, got {rank!r}")
    if top < 1 or simulated < 1:
        raise ValueError(f"top and simulated must be at least 1, got {top} and {simulated}")
    if max_error is not None and data is None and error_of is None:
        raise ValueError("max_error needs data=(a, b) to measure the error on")
    if max_error is not None and not max_error > 0:
        raise ValueError(f"max_error must be above 0, got {max_error}")
    if data is not None:
        shapes = tuple(np.shape(x) for x in data)
        if shapes != ((m, k), (k, n)):
            raise ValueError(f"data must have the shapes {(m, k)} and {(k, n)}, got {shapes}")


def data_error(a, b) -> Callable[[TileSchedule], float]:
    """Error (eq. 13) of a schedule's product of `a` and `b`, computed once for each accumulation length and order.

    The reference is the FP64 product, as in the paper.

    Parameters
    ----------
    a, b : array_like, shapes (m, k) and (k, n)
    """
    exact = np.asarray(a, float) @ np.asarray(b, float)
    norm = float(np.linalg.norm(exact))
    known: dict[tuple, float] = {}

    def error(schedule: TileSchedule) -> float:
        key = (schedule.chain, schedule.mode, schedule.terms, schedule.placed_on.name)
        if key not in known:
            difference = float(np.linalg.norm(np.asarray(schedule_product(schedule, a, b), float) - exact))
            known[key] = difference / norm if norm else difference
        return known[key]

    return error


# ---------------------------------------------------------------- closed forms


def analytic_seconds(
    sizes: np.ndarray,
    m: int,
    k: int,
    n: int,
    chip: Chip,
    terms: int = 3,
    buffering: Buffering = "double",
    mode: Mode = "termwise",
    operand: str = "fp16",
) -> np.ndarray:
    """Time of each (bm, bk, bn) row by closed forms: what the simulator does, without its transients.

    A k block takes the longest of cube, memory path and the round trip through its buffers when double buffered, their
    sum when single (the paper's T_comp, T_mem, section 5.1.2); A panels and the split pass are exposed; a C block's way
    to memory is hidden behind the next block's work only where two C blocks fit L0C.
    """
    bm, bk, bn = (column.astype(float) for column in sizes.T)
    size, count = OPERAND_BYTES[operand], slots(buffering)
    words = 2 if mode in ("fused", "elementwise") and terms > 1 else 1
    accumulators = terms if mode == "fused" else 1
    walks, together = (1, terms) if words == 2 else (terms, 1)
    n_fused = (chip.l1_bytes // size - count * words * bk * bn) // (words * bm * bk)
    waves = np.ceil(np.ceil(m / bm) / chip.cores)
    columns = np.ceil(n / bn)
    groups = np.ceil(k / (bk * n_fused))
    blocks = np.ceil(k / bk)
    active = np.minimum(np.ceil(m / bm), chip.cores)
    share = chip.hbm_bytes_per_cycle / active

    step_k = chip.cube_step_k(operand)
    cube = together * (chip.mmad_head + bm / chip.cube_m * bk / step_k * bn / chip.cube_n) + chip.sync_cycles_per_block
    load = words * bk * bn * size / chip.l2_read_rate
    a_move = words * (chip.l1_to_l0a_latency + bm * bk * size / chip.l1_to_l0a_rate)
    b_move = words * (chip.l1_to_l0b_latency + bk * bn * size / chip.l1_to_l0b_rate)
    moves, latency = a_move + b_move, chip.gm_to_l1_latency
    if count == 1:
        block = cube + load + latency + moves
    else:
        cube = cube + chip.non_overlapped_fraction * (load / words + latency)
        block = np.maximum.reduce([cube, load, moves, (load + latency + b_move) / count])

    c_bytes = ACCUMULATOR_BYTES * np.minimum(bm, m) * np.minimum(bn, n)
    reads = (walks * groups - 1) * (1 if accumulators == 1 else 0) + accumulators * (groups - 1) * (accumulators > 1)
    writes = walks * groups if accumulators == 1 else accumulators * (groups - 1) + 1
    passes = walks * groups
    read, write = c_bytes * reads / passes / share, c_bytes * writes / passes / share
    vector = c_bytes * accumulators / chip.l0c_to_ub_rate + (reads > 0) * c_bytes / chip.vector_rate
    if chip.fixpipe:
        read, vector = np.zeros_like(read), np.zeros_like(read)
    tile = blocks / groups * block
    memory = blocks / groups * load + read + (write if count == 1 else 0)
    two_slots = np.minimum(2, chip.l0c_bytes // (accumulators * ACCUMULATOR_BYTES * bm * bn)) == 2
    tile = np.where(two_slots, np.maximum.reduce([tile, memory, read + write]), tile + vector + np.maximum(read, write))
    panel = np.minimum(bk * n_fused, k) * np.minimum(bm, m) * size * words / np.minimum(share, chip.l2_read_rate)
    tail = vector + write
    cycles = waves * passes * (columns * tile + panel + latency) + tail
    if terms > 1:
        split = (SPLIT_IN_BYTES + SPLIT_OUT_BYTES) * (m * k + k * n) / chip.hbm_bytes_per_cycle
        combine = (terms + 1) * ACCUMULATOR_BYTES * m * n / chip.hbm_bytes_per_cycle
        cycles = cycles + split + (combine if chip.fixpipe and mode in ("termwise", "fused") else 0)
    return cycles / chip.cycles_per_second


# ---------------------------------------------------------------- what is rejected


class RejectedBlock(NamedTuple):
    """A block that does not fit, with the constraints that say so."""

    bm: int
    bk: int
    bn: int
    reasons: tuple[Rejection, ...]


def rejections(
    chip: Chip, buffering: Buffering = "double", words: int = 1, operand: str = "fp16"
) -> list[RejectedBlock]:
    """Every rejected block next to the feasible space: one that becomes feasible when one size shrinks by 16.

    All larger blocks are rejected for the same reasons, with larger byte counts.

    Parameters
    ----------
    chip, buffering, words, operand
        As for :meth:`ascend.Blocking.n_fused`.
    """
    feasible = feasible_sizes(chip, buffering, words, operand)
    known = set(map(tuple, feasible.tolist()))
    frontier = {
        neighbour
        for bm, bk, bn in known
        for neighbour in ((bm + ALIGNMENT, bk, bn), (bm, bk + ALIGNMENT, bn), (bm, bk, bn + ALIGNMENT))
        if neighbour not in known
    }
    return [
        RejectedBlock(*block, tuple(candidate_rejections(*block, chip, buffering, words, operand)))
        for block in sorted(frontier)
    ]
