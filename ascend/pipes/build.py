"""This module makes the operations of each core's pipes from a tile schedule.

It differs from Algorithm 1 only in the order in which C is read back: MTE2 works in order, so the strips of old C for
one block are read between the first B blocks of the next one, which they would otherwise hold up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Literal, NamedTuple

from ascend.blocking import ACCUMULATOR_BYTES, fractals
from ascend.kernels.base import Kernel, Phases
from ascend.memory import Misses, c_bytes, nd_costs, operand_bytes_from_memory, write_factor
from ascend.programs import program as pipes
from ascend.programs.passes import dequantized, passes_after, passes_before, store, vector_cycles
from ascend.programs.program import Loop, Phase, PipeOperation, Program, Segment, Template, shared_programs

#: Number of blocks whose instructions the scalar unit issues ahead of the cube: about 4 each in queues of 32.
QUEUED_BLOCKS = 8
#: Limit on the loops of a program; a longer one takes minutes to build.
MOST_LOOPS = 2**20

FULL_IN_L1, FREE_IN_L1 = ("A_L1_FULL", "B_L1_FULL"), ("A_L1_FREE", "B_L1_FREE")

L2Model = Literal["reuse", "shared_b"]
L2_MODELS = ("reuse", "shared_b")


def build_program(
    schedule: Kernel, include_split: bool = True, *, l2: L2Model | None = None, one_core: bool = False
) -> Program:
    """Return the operations of a schedule on its chip, for `one_core` or for all.

    `include_split` adds the pass that splits A and B into FP16 words (only with more than one term). `l2` is the model
    of L2, by default the kernel's own. With ``reuse`` loads hit L2 by their reuse distance (:mod:`ascend.memory`), and
    a launch takes its time. With ``shared_b`` (the paper's kernel) B comes from L2 and A from memory, and launching
    takes no time.
    """
    if l2 not in (None, *L2_MODELS):
        raise ValueError(f"l2 must be one of {', '.join(L2_MODELS)}, got {l2!r}")
    if not isinstance(schedule, Kernel):
        raise ValueError(
            "got an unblocked schedule, which has no chip and so no time: make a schedule with build_schedule"
        )
    stays = schedule.waves if one_core else schedule.waves * schedule.used_cores
    loops = len(schedule.passes) * stays * max(schedule.groups, 1)
    if loops > MOST_LOOPS:
        raise ValueError(
            f"{schedule.m} x {schedule.k} x {schedule.n} in blocks of {schedule.blocking} has {loops} steps to "
            f"simulate, more than {MOST_LOOPS}: take larger blocks"
        )
    l2 = l2 or schedule.l2_model
    return _Builder(schedule, l2, one_core).program(include_split)


class Tiles(NamedTuple):
    """`Tiles` holds a run of equal tiles: (rows, columns) and their number."""

    rows: int
    columns: int
    times: int


class Stay(NamedTuple):
    """`Stay` holds the sizes of a core's stay: panel width (0 without a panel), tiles, slice of k, cores at work."""

    panel: int
    tiles: tuple[Tiles, ...]
    slice: int
    active: int


def stays_of(schedule: Kernel, core: int) -> tuple[Stay, ...]:
    """Return a core's stays with equal tiles in runs; stays of one slice without a panel are merged."""
    stays = []
    for (panel, k_slice, active), visits in groupby(schedule.visits(core), lambda v: (v.panel, v.slice, v.active)):
        sizes = [(r1 - r0, c1 - c0) for visit in visits for (r0, r1), (c0, c1) in visit.tiles]
        tiles = tuple(Tiles(rows, columns, count) for count, (rows, columns) in runs(sizes))
        stays.append(Stay(panel[1] - panel[0] if panel else 0, tiles, k_slice, active))
    return tuple(stays)


def runs(items: Iterable[tuple]) -> Iterator[tuple[int, tuple]]:
    """Return (length, item) of each run of equal items."""
    return ((len(list(same)), item) for item, same in groupby(items))


class _Block(NamedTuple):
    """`_Block` holds the properties of a k block that its operations depend on; it is the key of its template."""

    rows: int
    columns: int
    depth: int
    first: bool  # first of the C block: takes an L0C slot
    last: bool  # last of the C block: hands the L0C slot on
    takes_panel: bool
    frees_panel: bool
    reads_rows: int  # rows of old C read after this B block, or 0
    reads_columns: int
    reads_copies: int
    seeded: bool


class _Output(NamedTuple):
    """`_Output` counts the reads and writes of C in one pass and k group."""

    copies: int  # copies of C read back
    writes: int  # copies of C written
    factor: int  # 2 if a write adds in memory
    seeded: bool  # whether L0C starts from C


class _Builder(Phases):
    """`_Builder` derives the operations of one schedule."""

    def __init__(self, schedule: Kernel, l2: L2Model, one_core: bool):
        self.schedule = schedule
        self.chip = schedule.placed_on
        self.l2 = l2
        self.simulated = range(1 if one_core else schedule.cores)
        misses = Misses(1.0, 0.0) if l2 == "shared_b" else schedule.misses()
        self.misses = Misses(*(round(float(share), 6) for share in misses))
        self.costs = nd_costs(schedule, schedule.load_k, *schedule.column_pieces)
        self.templates: dict[tuple, Template] = {}
        self.tiles: dict[tuple, tuple[Segment, ...]] = {}
        self.loops: dict[tuple, tuple[Loop, ...]] = {}

    def program(self, include_split: bool) -> Program:
        s, chip = self.schedule, self.chip
        phases = [
            *passes_before(s, self.simulated, include_split), s.multiplication(self), *passes_after(s, self.simulated),
            *dequantized(s, self.simulated),
        ]  # fmt: skip
        if self.l2 == "reuse":
            phases[0] = replace(phases[0], launch=s.launch_seconds * chip.cycles_per_second)
        streams = s.depth * s.words
        flags = {
            "B_L1_FREE": 1 if s.resident == "b" else streams, "A_L1_FREE": 1 if s.resident == "a" else streams,
            "L0A_FREE": s.l0_slots, "L0B_FREE": s.l0_slots,
            "L0C_FREE": s.l0c_turns, "OLD_FREE": s.ub_slots, "UB_FREE": s.ub_slots, "CUBE_DONE": 1, "QUEUE_FREE": QUEUED_BLOCKS,
        }  # fmt: skip
        if s.widens:
            flags |= dict(zip(("OLD_FREE", "UB_FREE"), s.widening_slots, strict=True))
        reads = chip.l2_read_rate if self.l2 == "shared_b" else min(chip.l2_read_rate, chip.memory_read_rate)
        return Program(s, tuple(phases), flags, (reads, chip.ub_to_ddr_rate, chip.fixpipe_rate))

    # -------------------------------------------------------- the multiplication

    def _memory_bytes(self) -> dict[str, float]:
        """Return the bytes that memory carries: misses, and C; with FIXPIPE, which writes to L2, only the part of C beyond L2.

        The time of one core alone does not include them where a core with a short tile goes on to a wave of few cores
        before the others.
        """
        if self.l2 == "shared_b":
            return {}
        kept = self.chip.l2_usable_bytes if self.chip.fixpipe else 0.0
        written = max(c_bytes(self.schedule) - kept, 0.0)
        a, b = operand_bytes_from_memory(self.schedule)
        return {"A miss": a, "B miss": b, "C write": float(written)}

    def tiles_phase(self) -> Phase:
        """Return the multiplication of all tiles on the cubes."""
        programs = shared_programs((stays_of(self.schedule, core) for core in self.simulated), self._core_loops)
        return Phase("multiply", *programs, self._slot_bytes(), memory_bytes=self._memory_bytes())

    def _slot_bytes(self) -> dict[str, int]:
        """Return the bytes of one slot of each pool during the multiplication."""
        s, b = self.schedule, self.schedule.blocking
        strip = s.strip_rows * b.bn * ACCUMULATOR_BYTES
        a_block, b_block = (width * s.format.stored(b.bk) for width in (b.bm, b.bn))
        old, new = ((s.ub_copies - s.accumulators) * strip, s.accumulators * strip)
        if s.widens:
            old, new = (int(b.bk * b.bn * size) for size in (s.weight_bytes, s.operand_bytes))
        return {
            "B_L1_FREE": b_block * (s.panel_blocks * s.words if s.resident == "b" else 1),
            "A_L1_FREE": a_block * (s.panel_blocks * s.words if s.resident == "a" else 1),
            "L0A_FREE": b.bm * b.bk * s.format.bits // 8, "L0B_FREE": b.bk * b.bn * s.format.bits // 8,
            "L0C_FREE": s.accumulators * b.bm * b.bn * ACCUMULATOR_BYTES,
            "OLD_FREE": old, "UB_FREE": new,
        }  # fmt: skip

    def _core_loops(self, stays: tuple[Stay, ...]) -> Iterator[Loop]:
        """Yield the loops of all stays; equal loops are the same object, so that each is built once."""
        s = self.schedule
        of_slice = [
            [(group, stop - start) for group, (start, stop) in enumerate(s.groups_of(each))] for each in s.k_slices
        ]
        for walk, terms in enumerate(s.passes):
            way = [(terms, self._output(walk, group)) for group in range(s.groups)]
            for stay in stays:
                for group, depth in of_slice[stay.slice]:
                    key = (*way[group], stay._replace(slice=0), depth)
                    if key not in self.loops:
                        self.loops[key] = tuple(self._group_loops(*key))
                    yield from self.loops[key]

    def _output(self, walk: int, group: int) -> _Output:
        """Return the reads and writes of C in one pass and k group."""
        s = self.schedule
        copies = 0 if self.chip.fixpipe else s.c_reads(walk, group)
        return _Output(copies, s.c_writes(group), write_factor(s, walk, group), s.reseed_l0c and group > 0)

    def _group_loops(self, terms: tuple[str, ...], output: _Output, stay: Stay, depth: int) -> Iterator[Loop]:
        """Yield the loops of the resident panel, then those of the first, the inner (all equal) and the last tiles."""
        s, active = self.schedule, stay.active
        copies, writes, factor, seeded = output
        if s.resident != "none":
            yield Loop(tuple(self._panel(stay.panel, depth)), 1, active)

        # With seeds MTE2 brings old C for two consumers and must keep the vector unit's order, so no read is put off.
        def tile(rows: int, columns: int, first: bool, last: bool, old: tuple[int, int]) -> tuple[Segment, ...]:
            key = (terms, rows, columns, depth, first, last, seeded, old, copies, writes, factor)
            if key not in self.tiles:
                self.tiles[key] = (
                    *(self._seed(rows, columns) if seeded else ()),
                    *self._blocks(terms, rows, columns, depth, first, last, old, output),
                    *((self._read_back(rows, columns, copies),) if copies and seeded else ()),
                    *self._write_back(rows, columns, copies, writes, factor),
                )
            return self.tiles[key]

        pieces: list[tuple] = []
        old = (0, 0)  # rows and columns of the tile whose C is still to be read back
        total, done = sum(run.times for run in stay.tiles), 0
        for run in stay.tiles:
            for count in (1, run.times - 2, 1) if run.times > 2 else (1,) * run.times:
                panel = s.resident != "none"
                first, last = panel and done == 0, panel and done + count == total
                piece = (run.rows, run.columns, first, last, old)
                if pieces and pieces[-1][0] == piece:
                    pieces[-1] = (piece, pieces[-1][1] + count)
                else:
                    pieces.append((piece, count))
                done += count
                old = (0, 0) if seeded or not copies else (run.rows, run.columns)
        for piece, count in pieces:
            yield Loop(tile(*piece), count, active)
        if copies and not seeded:
            yield Loop((self._read_back(*old, copies),), 1, active)

    def _read_back(self, rows: int, columns: int, copies: int) -> Segment:
        """Yield the reads of the strips of old C."""
        return Segment(tuple(self._read_old(height, columns, copies) for height in self._strips(rows, columns)))

    def _panel(self, width: int, depth: int) -> Iterator[Segment]:
        """Yield the loads of the resident panel, one for each block (both words in a fused kernel)."""
        s, bk = self.schedule, self.schedule.blocking.bk
        count, rest = divmod(depth, bk)
        depths = [bk] * count + ([rest] if rest else [])
        name = s.resident.upper()
        for repeats, which in runs([(d, i == 0, i == len(depths) - 1) for i, d in enumerate(depths)]):
            length, first, last = which
            takes, raises = (f"{name}_L1_FREE",) * first, (f"{name}_L1_FULL",) * last
            yield Segment(tuple(self._load(name, width * length * s.operand_bytes * s.words, takes, raises)), repeats)

    def _load(self, name: str, size: float, takes: tuple[str, ...], raises: tuple[str, ...]) -> Iterator[PipeOperation]:
        """Yield the load of a block of A or B of `size` bytes in L1, by MTE2, or after vector units have widened it."""
        s, chip = self.schedule, self.chip
        if name == "A" or not s.widens:
            yield from self._read(pipes.MTE2, name, size, takes, raises)
            return
        narrow, written = size * s.weight_bytes / s.operand_bytes, size / chip.widened_rate
        if chip.widened_to_l1:
            yield from self._read(pipes.VECTOR, name, narrow, ("OLD_FREE",), ("OLD_FULL",))
            yield PipeOperation(
                pipes.MTE3, "B widened", written, size, takes=("OLD_FULL", *takes), raises=("OLD_FREE", *raises)
            )
            return
        *first, last = self._read(pipes.VECTOR, name, narrow, ("UB_FREE",), ("UB_FULL",))
        yield from first
        yield last._replace(cycles=last.cycles + written)
        yield PipeOperation(
            pipes.MTE2, "B load", size / chip.l2_read_rate, size, latency=chip.gm_to_l1_latency, takes=("UB_FULL", *takes),
            raises=("UB_FREE", *raises),
        )  # fmt: skip

    def _read(
        self, pipe: int, name: str, size: float, takes: tuple[str, ...], raises: tuple[str, ...]
    ) -> Iterator[PipeOperation]:
        """Yield the reads of a block's bytes: the share that hits L2, then the share that memory serves."""
        chip, side = self.chip, "AB".index(name)
        miss, cost, memory_cost = self.misses[side], float(self.costs[side]), float(self.costs[side + 2])
        # A block is either in L2 or not, so the latency is the average.
        latency = chip.gm_to_l1_latency + miss * (chip.memory_read_latency - chip.gm_to_l1_latency)
        waited = 0.0
        if self.schedule.template == "norm" and name == "B":  # MTE2 has no other work until both blocks have arrived
            latency, waited = 0.0, latency
        hit = PipeOperation(
            pipe, f"{name} load", (1 - miss) * cost * size / chip.l2_read_rate + (waited if miss == 0 else 0.0),
            (1 - miss) * size, latency=latency, takes=takes, raises=raises,
        )  # fmt: skip
        slower = min(chip.l2_read_rate, chip.memory_read_rate)
        from_memory = PipeOperation(
            pipe, f"{name} load" if self.l2 == "shared_b" else f"{name} miss",
            miss * (memory_cost - 1) * size / slower + waited, miss * size, pipes.MEMORY_READ, latency, takes, raises,
        )  # fmt: skip
        if miss == 0:
            yield hit
        elif miss == 1:
            yield from_memory
        else:
            yield hit._replace(raises=())
            yield from_memory._replace(takes=())

    def _blocks(
        self, terms: tuple[str, ...], rows: int, columns: int, depth: int, first: bool, last: bool, old: tuple[int, int],
        output: _Output,
    ) -> Iterator[Segment]:  # fmt: skip
        """Yield the k blocks of one C block, and between them the strips of the previous block's old C."""
        bk = self.schedule.blocking.bk
        strips = self._strips(*old) if output.copies else []
        count = -(-depth // bk)
        delay = self.schedule.stream_slots - 1  # prefetched B blocks come first
        special: dict[int, list[int]] = {}
        for number, strip in enumerate(strips):
            # With one L0C slot the next block's cube work waits for all strips, so no strip may wait for that work.
            place = delay + (number if self.schedule.l0c_slots > 1 else 0)
            special.setdefault(min(place, count - 1), []).append(strip)
        position = 0
        edges = sorted({0, count - 1, *special} | {i + 1 for i in special if i + 1 < count} | {min(1, count - 1)})
        for here, after in zip(edges, [*edges[1:], count], strict=True):
            position = here
            reads = special.get(position, [])
            block = _Block(
                rows, columns, min(bk, depth - position * bk), position == 0, position == count - 1,
                first and position == 0, last and position == count - 1, sum(reads), old[1] if reads else 0,
                output.copies if reads else 0, output.seeded,
            )  # fmt: skip
            yield Segment(self._block(terms, block, tuple(reads)), after - here)

    def _block(self, terms: tuple[str, ...], block: _Block, reads: tuple[int, ...]) -> Template:
        key = (terms, block, reads)
        if key not in self.templates:
            self.templates[key] = tuple(self._block_operations(terms, block, reads))
        return self.templates[key]

    def _block_operations(
        self, terms: tuple[str, ...], block: _Block, reads: tuple[int, ...]
    ) -> Iterator[PipeOperation]:
        """Yield B to L1, A and B to L0, and the cube steps; each word is moved when its first term needs it."""
        s = self.schedule
        a_bytes = block.rows * block.depth * s.operand_bytes
        b_bytes = block.depth * block.columns * s.operand_bytes
        for _ in range(s.words):
            for name, size in (("A", a_bytes), ("B", b_bytes)):
                if s.resident != name.lower():
                    yield from self._load(name, size, (f"{name}_L1_FREE",), (f"{name}_L1_FULL",))
        for rows in reads:
            yield self._read_old(rows, block.reads_columns, block.reads_copies)
        if s.scalar_cycles:
            yield PipeOperation(pipes.SCALAR, "issue", s.scalar_cycles, takes=("QUEUE_FREE",), raises=("ISSUED",))
        a_seen, b_seen = set(), set()
        for number, term in enumerate(terms):
            a_word, b_word = term[0], term[1]
            takes: list[str] = []
            if a_word not in a_seen:
                a_seen.add(a_word)
                takes.append("L0A_FULL")
                yield self._move("A", a_bytes, block, number == 0)
            if b_word not in b_seen:
                b_seen.add(b_word)
                takes.append("L0B_FULL")
                yield self._move("B", b_bytes, block, number == 0)
            yield from self._product(terms, number, block, takes)

    def _product(self, terms: tuple[str, ...], number: int, block: _Block, takes: list[str]) -> Iterator[PipeOperation]:
        """Yield the cube steps of one term of a block, which wait for `takes` of L0.

        The first term waits for synchronisation, too.
        """
        s, chip = self.schedule, self.chip
        step_m, step_k, step_n = s.cube_step
        steps = fractals(block.rows, step_m) * fractals(block.depth, step_k) * fractals(block.columns, step_n)
        start, stop = number == 0, number == len(terms) - 1
        raises = self._freed_by(terms, number, block)
        opens = ("SEED_FULL" if block.seeded else "L0C_FREE",) * (block.first and start)
        # The simulator remembers one waiting pipe for each flag. The synchronisation waits for the cube first, so that the
        # synchronisation and a later term of the block never wait for the same operand.
        if start and chip.sync_cycles_per_block:
            yield PipeOperation(
                pipes.SCALAR, "sync", chip.sync_cycles_per_block, takes=("CUBE_DONE", *takes), raises=("GO",)
            )
            takes = ["GO"]
        if stop and chip.sync_cycles_per_block:
            raises += ("CUBE_DONE",)
        if s.scalar_cycles:
            takes = takes + ["ISSUED"] * start
            raises += ("QUEUE_FREE",) * stop
        stalled = 0.0
        if start and s.buffering == "double":
            b_bytes = block.depth * block.columns * s.operand_bytes
            stalled = chip.non_overlapped_fraction * (b_bytes / chip.l2_read_rate + chip.gm_to_l1_latency)
        yield PipeOperation(
            pipes.CUBE, f"cube {terms[number]}", s.mmad_head + steps + stalled, takes=(*takes, *opens), raises=raises,
            cube_steps=steps,
        )  # fmt: skip

    def _freed_by(self, terms: tuple[str, ...], number: int, block: _Block) -> tuple[str, ...]:
        """Return the flags that the cube raises after a term, for buffers that no later term reads and for the finished C."""
        s, later = self.schedule, terms[number + 1 :]
        a_word, b_word = terms[number][0], terms[number][1]
        stop = not later
        raises = ("L0A_FREE",) * all(other[0] != a_word for other in later)
        raises += ("L0B_FREE",) * all(other[1] != b_word for other in later)
        for name in ("B", "A"):
            if name.lower() == s.resident:
                raises += (f"{name}_L1_FREE",) * (block.frees_panel and stop)
            else:
                raises += (f"{name}_L1_FREE",) * (s.words * (s.buffering == "single" and stop))
        return raises + ("L0C_FULL",) * (block.last and stop)

    def _move(self, name: str, size: float, block: _Block, start: bool) -> PipeOperation:
        """Yield the move of a block of A or B from L1 to L0; with double buffers it frees a streamed block's L1 buffer."""
        s, chip = self.schedule, self.chip
        latency, rate = {
            "A": (chip.l1_to_l0a_latency, chip.l1_to_l0a_rate), "B": (chip.l1_to_l0b_latency, chip.l1_to_l0b_rate)
        }[name]  # fmt: skip
        waits: tuple[str, ...]
        frees: tuple[str, ...]
        if s.template == "norm":
            # A is moved when B has arrived, too, and the buffers are free when both have been moved.
            waits, frees = (FULL_IN_L1, ()) if name == "A" else ((), FREE_IN_L1)
        else:
            resident = s.resident == name.lower()
            waits = (f"{name}_L1_FULL",) * (not resident or (block.takes_panel and start))
            frees = (f"{name}_L1_FREE",) * (not resident and s.buffering == "double")
        return PipeOperation(
            pipes.MTE1,
            f"{name} move",
            latency + size * (1 / rate + s.scale_bytes / chip.l1_to_l0_scale_rate),
            size,
            takes=(*waits, f"L0{name}_FREE"),
            raises=(f"L0{name}_FULL", *frees),
        )

    # -------------------------------------------------------- C between L0C and memory

    def _strips(self, rows: int, columns: int) -> list[int]:
        """Return the heights of the strips in which a C block passes UB."""
        step = self.schedule.strip_rows
        return [min(step, rows - start) for start in range(0, rows, step)] if columns else []

    def _read_old(self, rows: int, columns: int, copies: int) -> PipeOperation:
        return PipeOperation(
            pipes.MTE2, "C read", bytes=copies * rows * columns * ACCUMULATOR_BYTES, channel=pipes.MEMORY_READ,
            latency=self.chip.memory_read_latency, takes=("OLD_FREE",), raises=("OLD_FULL",),
        )  # fmt: skip

    def _write_back(self, rows: int, columns: int, copies: int, writes: int, factor: int) -> tuple[Segment, ...]:
        """Yield the moves of L0C to UB with the additions there, then to memory; with FIXPIPE directly to memory."""
        s, chip = self.schedule, self.chip
        if chip.fixpipe:
            each = max(chip.fixpipe_row_cycles, columns * ACCUMULATOR_BYTES / chip.fixpipe_rate) + s.fixpipe_row_extra
            operation = PipeOperation(
                pipes.FIXP, "C write", s.accumulators * (chip.fixpipe_head + factor * rows * each),
                factor * s.accumulators * rows * columns * ACCUMULATOR_BYTES, latency=chip.memory_write_latency,
                takes=("L0C_FULL",), raises=("L0C_FREE",),
            )  # fmt: skip
            return (Segment((operation,)),)
        operations = []
        strips = self._strips(rows, columns)
        additions = copies + s.accumulators - 1
        for number, height in enumerate(strips):
            size = height * columns * ACCUMULATOR_BYTES
            moves = s.accumulators * (chip.vector_head + size / chip.l0c_to_ub_rate)
            takes = ("L0C_FULL",) * (number == 0) + ("UB_FREE",) + ("OLD_FULL",) * (copies > 0)
            raises = ("UB_FULL",) + ("OLD_FREE",) * (copies > 0) + ("L0C_FREE",) * (number == len(strips) - 1)
            operations.append(
                PipeOperation(
                    pipes.VECTOR, "C add" if copies else "C move", moves + additions * vector_cycles(chip, size),
                    s.accumulators * size, takes=takes, raises=raises,
                )
            )  # fmt: skip
            operations.append(store(chip, "C write", factor * writes * size))
        return (Segment(tuple(operations)),)

    def _seed(self, rows: int, columns: int) -> tuple[Segment, ...]:
        """Yield the moves of old C into L0C before the first cube operation of a C block."""
        strips = self._strips(rows, columns)
        operations = []
        for number, height in enumerate(strips):
            size = height * columns * ACCUMULATOR_BYTES
            for copy in range(self.schedule.accumulators):
                start, stop = number + copy == 0, (number, copy) == (len(strips) - 1, self.schedule.accumulators - 1)
                operations.append(self._read_old(height, columns, 1))
                operations.append(
                    PipeOperation(
                        pipes.VECTOR, "C seed", self.chip.vector_head + size / self.chip.l0c_to_ub_rate, size,
                        takes=("L0C_FREE",) * start + ("OLD_FULL",), raises=("OLD_FREE",) + ("SEED_FULL",) * stop,
                    )
                )  # fmt: skip
        return (Segment(tuple(operations)),)
