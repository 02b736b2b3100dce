"""This module builds the vector units' passes over whole matrices, before and after the multiplication, and vector products.

Elements of a pass are dealt evenly to all cores, in chunks as large as UB holds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ascend.blocking import ACCUMULATOR_BYTES
from ascend.chips.chip import Chip
from ascend.programs import program as pipes
from ascend.programs.program import Loop, Phase, PipeOperation, Segment, Template, shared_programs
from ascend.tile_schedule import SPLIT_IN_BYTES, SPLIT_OUT_BYTES, TileSchedule

#: FP32 vector instructions for each element to split it: two conversions down, one up, one subtraction, one scaling.
SPLIT_INSTRUCTIONS = 5
#: Vector instructions for each element to scale it (int32 to FP32, two products, FP32 to 16 bits), and bytes of the result.
DEQUANTIZE_INSTRUCTIONS, DEQUANTIZED_BYTES = 4, 2


def passes_before(s: TileSchedule, cores: Sequence[int], include_split: bool) -> Iterator[Phase]:
    """Yield the passes before the multiplication: they write words (with `include_split`), fractals and zeros."""
    if include_split and s.split_elements:
        yield _streaming_phase(s, cores, "split", s.split_elements, SPLIT_IN_BYTES, SPLIT_OUT_BYTES, SPLIT_INSTRUCTIONS)
    if s.converts:
        size = s.format.bits // 8
        yield _streaming_phase(s, cores, "convert", s.m * s.k + s.k * s.n, size, size, 1)
    if len(s.k_slices) > 1 and s.merge == "atomic":
        yield _streaming_phase(s, cores, "zero", s.m * s.n, 0, ACCUMULATOR_BYTES, 1)


def passes_after(s: TileSchedule, cores: Sequence[int]) -> Iterator[Phase]:
    """Yield the passes after all tiles are done: they add the terms (with FIXPIPE) and the slices of k."""
    slices = len(s.k_slices) if s.merge == "reduce" else 1
    terms = s.copies_behind_fixpipe
    if slices * terms > 1:
        name = "combine" if terms > 1 else "merge"
        copies = slices * terms
        yield _streaming_phase(s, cores, name, s.m * s.n, copies * ACCUMULATOR_BYTES, ACCUMULATOR_BYTES, copies)


def dequantized(s: TileSchedule, cores: Sequence[int]) -> Iterator[Phase]:
    """Yield the scaling of a core's last tile by vector units; other tiles are scaled while the cube continues.

    The vector cores are started beside the cubes, which takes `vector_launch_us`.
    """
    if s.dequantize == "vector":
        own = min(s.blocking.bm, s.m) * min(s.blocking.bn, s.n)
        elements = [own * (core < s.used_cores) for core in cores]
        started = 0.0 if s.widens else s.placed_on.vector_launch_us * s.placed_on.frequency_mhz
        sizes = (ACCUMULATOR_BYTES, DEQUANTIZED_BYTES, DEQUANTIZE_INSTRUCTIONS)
        yield replace(_streaming(s, "dequantize", elements, *sizes, active=s.used_cores), launch=started)


def vector_cycles(chip: Chip, size: float) -> float:
    """Return the cycles of a vector instruction over a number of bytes."""
    return chip.vector_head + size / chip.vector_rate


def load(chip: Chip, kind: str, size: float) -> PipeOperation:
    """Return the load of a number of bytes from memory to UB."""
    return PipeOperation(
        pipes.MTE2, kind, bytes=size, channel=pipes.MEMORY_READ, latency=chip.memory_read_latency,
        takes=("OLD_FREE",), raises=("OLD_FULL",),
    )  # fmt: skip


def store(chip: Chip, kind: str, size: float) -> PipeOperation:
    """Return the store of a number of bytes from UB to memory."""
    return PipeOperation(
        pipes.MTE3, kind, bytes=size, channel=pipes.MEMORY_WRITE, latency=chip.memory_write_latency,
        takes=("UB_FULL",), raises=("UB_FREE",),
    )  # fmt: skip


def _streaming_phase(
    s: TileSchedule, cores: Sequence[int], name: str, elements: int, in_bytes: int, out_bytes: int, instructions: int
) -> Phase:
    share, rest = divmod(elements, s.cores)
    own = [share + (core < rest) for core in cores]
    return _streaming(s, name, own, in_bytes, out_bytes, instructions, s.cores)


def _streaming(
    s: TileSchedule, name: str, elements: Sequence[int], in_bytes: int, out_bytes: int, instructions: int, active: int
) -> Phase:
    """Yield the phase in which each core streams its elements through UB, with `active` cores at a time."""
    chip = s.placed_on
    chunk = chip.ub_bytes // (s.ub_slots * (in_bytes + out_bytes)) // 128 * 128
    if not chunk:
        raise ValueError(
            f"UB of {chip.name} has {chip.ub_bytes} bytes, but the {name} pass needs {128 * (in_bytes + out_bytes)} bytes for "
            f"each of its buffers: take a chip with a larger UB"
        )

    def loops(own: int) -> Iterator[Loop]:
        for count, times in ((chunk, own // chunk), (own % chunk, 1)):
            if count and times:
                yield Loop((Segment(_streamed(chip, name, count, in_bytes, out_bytes, instructions)),), times, active)

    pools = {"OLD_FREE": in_bytes * chunk, "UB_FREE": out_bytes * chunk}
    return Phase(name, *shared_programs(elements, loops), pools)


def _streamed(chip: Chip, name: str, count: int, in_bytes: int, out_bytes: int, instructions: int) -> Template:
    """Return the operations of one chunk: read (unless there is nothing to read), compute, write."""
    vector = instructions * vector_cycles(chip, count * ACCUMULATOR_BYTES)
    written = store(chip, f"{name} write", out_bytes * count)
    if not in_bytes:
        return (PipeOperation(pipes.VECTOR, name, vector, takes=("UB_FREE",), raises=("UB_FULL",)), written)
    compute = PipeOperation(
        pipes.VECTOR, name, vector, in_bytes * count, takes=("OLD_FULL", "UB_FREE"), raises=("OLD_FREE", "UB_FULL")
    )
    return (load(chip, f"{name} read", in_bytes * count), compute, written)


# -- a vector kernel: the larger operand through UB once, the other one kept there --------------------------------------------
def vector_phase(schedule: TileSchedule, simulated: range) -> Phase:
    """Return the phase in which each core reads its part of the streamed operand tile by tile and stores its part of C.

    A tile costs one vector instruction for each row of the kept operand and each line of the tile: its head, and its
    FP32 lanes at the vector rate (twice for FP16 operands, which are widened first).
    """
    programs = shared_programs((core_part(schedule, core) for core in simulated), lambda own: _loops(schedule, *own))
    b, kept = schedule.blocking, min(schedule.m, schedule.n)
    width = b.bn if schedule.sums.lanes == "b" else b.bm
    pools = {"OLD_FREE": b.bk * width * ACCUMULATOR_BYTES, "UB_FREE": kept * width * ACCUMULATOR_BYTES}
    return Phase("vector", *programs, pools)


def core_part(schedule: TileSchedule, core: int) -> tuple[int, int]:
    """Return (lines of the streamed side, length of its slice of k) of a core, or (0, 0) for an idle one."""
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
    kept_load = PipeOperation(pipes.MTE2, "kept load", small / chip.l2_read_rate, small, latency=chip.gm_to_l1_latency)
    loops = [Loop((Segment((kept_load,)),), 1, active)]
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
            pipes.VECTOR, "multiply and add", cycles, size, takes=("OLD_FULL",) + ("UB_FREE",) * last,
            raises=("OLD_FREE",) + ("UB_FULL",) * last,
        ),
    ]  # fmt: skip
    if last:
        adds = 2 if s.merge == "atomic" and len(s.k_slices) > 1 else 1
        operations.append(store(chip, "C write", adds * kept * columns * ACCUMULATOR_BYTES))
    return tuple(operations)
