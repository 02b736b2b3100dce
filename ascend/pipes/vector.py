"""The operations of a vector kernel: the larger operand through UB once, the other one kept there."""

from ascend.blocking import ACCUMULATOR_BYTES
from ascend.pipes.passes import load, store, vector_cycles
from ascend.pipes.program import MTE2, VECTOR, Loop, Phase, PipeOperation, Segment, Template, shared_programs
from ascend.tile_schedule import TileSchedule


def vector_phase(schedule: TileSchedule, simulated: range) -> Phase:
    """One phase: each core reads its part of the streamed operand tile by tile and stores its part of C.

    A tile costs one vector instruction for each row of the kept operand and each line of the tile: its head, and its
    FP32 lanes at the vector rate (twice for FP16 operands, which are widened first).
    """
    programs = shared_programs((core_part(schedule, core) for core in simulated), lambda own: _loops(schedule, *own))
    b, kept = schedule.blocking, min(schedule.m, schedule.n)
    width = b.bn if schedule.sums.lanes == "b" else b.bm
    pools = {"OLD_FREE": b.bk * width * ACCUMULATOR_BYTES, "UB_FREE": kept * width * ACCUMULATOR_BYTES}
    return Phase("vector", *programs, pools)


def core_part(schedule: TileSchedule, core: int) -> tuple[int, int]:
    """(lines of the streamed side, length of its slice of k) of a core; (0, 0) for an idle one."""
    s = schedule
    side, along = (s.n, s.grid.n) if s.sums.lanes == "b" else (s.m, s.grid.m)
    place, number = core % along, core // along
    if number >= len(s.k_slices):
        return 0, 0
    share, rest = divmod(side, along)
    return share + (place < rest), s.k_slices[number][1] - s.k_slices[number][0]


def _loops(s: TileSchedule, lines: int, length: int) -> tuple[Loop, ...]:
    if not lines or not length:
        return ()
    chip, b = s.placed_on, s.blocking
    kept = min(s.m, s.n)
    width = b.bn if s.sums.lanes == "b" else b.bm
    active = s.used_cores
    small = kept * length * s.operand_bytes
    loops = [
        Loop(
            (Segment((PipeOperation(MTE2, "kept load", small / chip.l2_read_rate, small, latency=chip.gm_to_l1_latency),)),),
            1, active,
        )
    ]  # fmt: skip
    for count, columns in ((lines // width, width), (1, lines % width)):
        if not count or not columns:
            continue
        full, rest = divmod(length, b.bk)
        depths = [(full, b.bk), (1, rest)] if rest else [(full, b.bk)]
        last = depths[-1]
        depths = [*depths[:-1], (last[0] - 1, last[1])]
        segments = [Segment(_tile(s, kept, columns, depth, False), times) for times, depth in depths if times]
        segments.append(Segment(_tile(s, kept, columns, last[1], True)))
        loops.append(Loop(tuple(segments), count, active))
    return tuple(loops)


def _tile(s: TileSchedule, kept: int, columns: int, depth: int, last: bool) -> Template:
    chip = s.placed_on
    # Lanes run along n where B is streamed, along k where A is.
    instructions, lanes = (kept * depth, columns) if s.sums.lanes == "b" else (kept * columns, depth)
    widening = 2 if s.operand == "fp16" else 1
    cycles = widening * instructions * vector_cycles(chip, lanes * ACCUMULATOR_BYTES)
    size = depth * columns * s.operand_bytes
    operations = [
        load(chip, "stream load", size),
        PipeOperation(
            VECTOR, "multiply and add", cycles, size, takes=("OLD_FULL",) + ("UB_FREE",) * last,
            raises=("OLD_FREE",) + ("UB_FULL",) * last,
        ),
    ]  # fmt: skip
    if last:
        adds = 2 if s.merge == "atomic" and len(s.k_slices) > 1 else 1
        operations.append(store(chip, "C write", adds * kept * columns * ACCUMULATOR_BYTES))
    return tuple(operations)
