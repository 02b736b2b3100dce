"""From a tile schedule to the operations of each core's pipes.

The order of C read-back is the one point where this is not Algorithm 1 to the letter: MTE2 is in order, so the strips
of old C for one block are read between the first B blocks of the next one instead of holding them up.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ascend.blocking import ACCUMULATOR_BYTES
from ascend.pipes.program import (
    CUBE,
    FIXP,
    FIXPIPE_WRITE,
    MEMORY_READ,
    MEMORY_WRITE,
    MTE1,
    MTE2,
    MTE3,
    SCALAR,
    VECTOR,
    Loop,
    Operation,
    Phase,
    Program,
    Segment,
    Template,
)
from ascend.schedule import TileSchedule, fractals

#: Loops of a program beyond this take minutes to write down.
MOST_LOOPS = 2**20
#: FP32 vector instructions for each element to split it: two conversions down, one up, subtract, scale.
SPLIT_INSTRUCTIONS = 5
#: Bytes of an element split: FP32 in, two FP16 words out.
SPLIT_IN_BYTES = 4
SPLIT_OUT_BYTES = 4


def build_program(schedule: TileSchedule, include_split: bool = True) -> Program:
    """The operations of a schedule on its chip.

    Parameters
    ----------
    schedule : TileSchedule
        With a chip.
    include_split : bool
        Begin with the pass that splits A and B into FP16 words (only with more than one term).

    Raises
    ------
    ValueError
        For a schedule without a chip.
    """
    loops = len(schedule.passes) * len(schedule.row_blocks) * len(schedule.k_groups)
    if loops > MOST_LOOPS:
        raise ValueError(
            f"{schedule.m} x {schedule.k} x {schedule.n} in blocks of {schedule.blocking} has {loops} row blocks and k groups "
            f"to walk, more than {MOST_LOOPS}: take larger blocks"
        )
    return _Builder(schedule).program(include_split)


class _Block(NamedTuple):
    """What distinguishes one k block's operations from another's: the key of its template."""

    rows: int
    columns: int
    depth: int
    first: bool  # of the C block: takes an L0C slot
    last: bool  # of the C block: hands the L0C slot on
    takes_panel: bool
    frees_panel: bool
    reads_rows: int  # rows of old C read after this B block, 0 for none
    reads_columns: int
    reads_copies: int
    seeded: bool


class _Builder:
    """Derives the operations; one instance for each schedule."""

    def __init__(self, schedule: TileSchedule):
        self.schedule = schedule
        self.chip = schedule.placed_on
        self.templates: dict[tuple, Template] = {}
        self.tiles: dict[tuple, tuple[Segment, ...]] = {}

    def program(self, include_split: bool) -> Program:
        s = self.schedule
        phases = []
        if include_split and s.terms > 1:
            phases.append(self._split_phase())
        phases.append(self._multiply_phase())
        if self.chip.fixpipe and s.terms > 1 and s.mode in ("termwise", "fused"):
            phases.append(self._combine_phase())
        flags = {
            "B_L1_FREE": s.stream_slots * s.words, "A_L1_FREE": 1, "L0A_FREE": s.l0_slots, "L0B_FREE": s.l0_slots,
            "L0C_FREE": s.l0c_slots, "OLD_FREE": s.ub_slots, "UB_FREE": s.ub_slots, "CUBE_DONE": 1,
        }  # fmt: skip
        return Program(s, tuple(phases), flags)

    # -------------------------------------------------------- the multiplication

    def _multiply_phase(self) -> Phase:
        s = self.schedule
        programs: dict[tuple[int, ...], int] = {}
        built: list[tuple[Loop, ...]] = []
        of_core: list[int] = []
        for core in range(s.cores):
            heights = tuple(stop - start for start, stop in s.row_blocks_of_core(core))
            if heights not in programs:
                programs[heights] = len(built)
                built.append(tuple(self._core_loops(heights)))
            of_core.append(programs[heights])
        return Phase("multiply", tuple(built), tuple(of_core), self._slot_bytes())

    def _slot_bytes(self) -> dict[str, int]:
        """Bytes of one slot of each pool while multiplying."""
        s, b = self.schedule, self.schedule.blocking
        strip = s.strip_rows * b.bn * ACCUMULATOR_BYTES
        resident = min(s.n_fused, fractals(s.k, b.bk))
        return {
            "B_L1_FREE": b.bk * b.bn * s.operand_bytes,
            "A_L1_FREE": resident * b.bm * b.bk * s.operand_bytes * s.words,
            "L0A_FREE": b.bm * b.bk * s.operand_bytes, "L0B_FREE": b.bk * b.bn * s.operand_bytes,
            "L0C_FREE": s.accumulators * b.bm * b.bn * ACCUMULATOR_BYTES,
            "OLD_FREE": (s.ub_copies - s.accumulators) * strip, "UB_FREE": s.accumulators * strip,
        }  # fmt: skip

    def _core_loops(self, heights: tuple[int, ...]) -> Iterator[Loop]:
        for walk, terms in enumerate(self.schedule.passes):
            for wave, rows in enumerate(heights):
                active = self.schedule.active_cores(wave)
                for group, (start, stop) in enumerate(self.schedule.k_groups):
                    label = f"{'+'.join(terms)} wave {wave} group {group}"
                    yield from self._group_loops(walk, terms, rows, group, stop - start, active, label)

    def _group_loops(
        self, walk: int, terms: tuple[str, ...], rows: int, group: int, depth: int, active: int, label: str
    ) -> Iterator[Loop]:
        """The A panel, then the column blocks: first, inner ones alike, last."""
        s = self.schedule
        yield Loop(tuple(self._panel(rows, depth)), 1, active, label)
        width, full = s.blocking.bn, s.n // s.blocking.bn
        edge = s.n - full * width
        widths = [width] * min(full, 1) + ([edge] if edge else [])
        inner = full - 1 - (0 if edge else 1)
        copies = 0 if self.chip.fixpipe else s.c_reads(walk, group)
        writes = s.c_writes(group)
        seeded = s.reseed_l0c and group > 0
        old = 0  # width of the column block whose C is still to be read back

        def read_back(columns: int) -> tuple[Segment, ...]:
            return (Segment(tuple(self._read_old(r, columns, copies) for r in self._strips(rows, columns))),)

        # With seeds MTE2 brings old C for two ends, so it must keep the vector unit's order: nothing is put off then.
        def tile(columns: int, first: bool, last: bool) -> tuple[Segment, ...]:
            key = (terms, rows, columns, depth, first, last, seeded, old, copies, writes)
            if key not in self.tiles:
                self.tiles[key] = (
                    *(self._seed(rows, columns) if seeded else ()),
                    *self._blocks(*key[:8], self._strips(rows, old) if copies and old else [], copies),
                    *(read_back(columns) if copies and seeded else ()),
                    *self._write_back(rows, columns, copies, writes),
                )
            return self.tiles[key]

        if full == 0 or (full == 1 and not edge):
            yield Loop(tile(widths[0], True, True), 1, active, label)
        else:
            yield Loop(tile(width, True, False), 1, active, label)
            old = 0 if seeded else width
            if inner > 0:
                yield Loop(tile(width, False, False), inner, active, label)
            yield Loop(tile(widths[-1], False, True), 1, active, label)
        if copies and not seeded:
            yield Loop(read_back(widths[-1]), 1, active, label)

    def _panel(self, rows: int, depth: int) -> Iterator[Segment]:
        """Loads of the resident A panel, one for each A block (both words in a fused kernel)."""
        s, bk = self.schedule, self.schedule.blocking.bk
        count, rest = divmod(depth, bk)
        depths = [bk] * count + ([rest] if rest else [])
        for repeats, which in _runs([(d, i == 0, i == len(depths) - 1) for i, d in enumerate(depths)]):
            columns, first, last = which
            operation = Operation(
                MTE2, "A load", bytes=rows * columns * s.operand_bytes * s.words, channel=MEMORY_READ,
                latency=self.chip.memory_read_latency, takes=("A_L1_FREE",) * first, raises=("A_L1_FULL",) * last,
            )  # fmt: skip
            yield Segment((operation,), repeats)

    def _blocks(
        self, terms: tuple[str, ...], rows: int, columns: int, depth: int, first: bool, last: bool, seeded: bool,
        old: int, strips: list[int], copies: int,
    ) -> Iterator[Segment]:  # fmt: skip
        """The k blocks of one C block, with the strips of the previous block's old C between them."""
        bk = self.schedule.blocking.bk
        count = -(-depth // bk)
        delay = self.schedule.stream_slots - 1  # the prefetched B blocks go first
        special: dict[int, list[int]] = {}
        for number, strip in enumerate(strips):
            # With one L0C slot the next block's cube work waits for all the strips: none may wait for that work.
            place = delay + (number if self.schedule.l0c_slots > 1 else 0)
            special.setdefault(min(place, count - 1), []).append(strip)
        position = 0
        edges = sorted({0, count - 1, *special} | {i + 1 for i in special if i + 1 < count} | {min(1, count - 1)})
        for here, after in zip(edges, [*edges[1:], count], strict=True):
            position = here
            reads = special.get(position, [])
            block = _Block(
                rows, columns, min(bk, depth - position * bk), position == 0, position == count - 1,
                first and position == 0, last and position == count - 1, sum(reads), old if reads else 0,
                copies if reads else 0, seeded,
            )  # fmt: skip
            yield Segment(self._block(terms, block, tuple(reads)), after - here)

    def _block(self, terms: tuple[str, ...], block: _Block, reads: tuple[int, ...]) -> Template:
        key = (terms, block, reads)
        if key not in self.templates:
            self.templates[key] = tuple(self._block_operations(terms, block, reads))
        return self.templates[key]

    def _block_operations(self, terms: tuple[str, ...], block: _Block, reads: tuple[int, ...]) -> Iterator[Operation]:
        """B into L1, A and B into L0, cube steps: for each word when its first term needs it."""
        s, chip = self.schedule, self.chip
        single = s.buffering == "single"
        a_bytes = block.rows * block.depth * s.operand_bytes
        b_bytes = block.depth * block.columns * s.operand_bytes
        for _ in range(s.words):
            yield Operation(
                MTE2, "B load", b_bytes / chip.l2_read_rate, b_bytes, latency=chip.gm_to_l1_latency,
                takes=("B_L1_FREE",), raises=("B_L1_FULL",),
            )  # fmt: skip
        for rows in reads:
            yield self._read_old(rows, block.reads_columns, block.reads_copies)
        step_m, step_k, step_n = s.cube_step
        steps = fractals(block.rows, step_m) * fractals(block.depth, step_k) * fractals(block.columns, step_n)
        stalled = 0.0 if single else chip.non_overlapped_fraction * (
            b_bytes / chip.l2_read_rate + chip.gm_to_l1_latency
        )  # fmt: skip
        a_seen, b_seen = set(), set()
        for number, term in enumerate(terms):
            a_word, b_word = term[0], term[1]
            start, stop = number == 0, number == len(terms) - 1
            takes: list[str] = []
            if a_word not in a_seen:
                a_seen.add(a_word)
                takes.append("L0A_FULL")
                yield Operation(
                    MTE1, "A move", chip.l1_to_l0a_latency + a_bytes / chip.l1_to_l0a_rate, a_bytes,
                    takes=("A_L1_FULL",) * (block.takes_panel and start) + ("L0A_FREE",), raises=("L0A_FULL",),
                )  # fmt: skip
            if b_word not in b_seen:
                b_seen.add(b_word)
                takes.append("L0B_FULL")
                yield Operation(
                    MTE1, "B move", chip.l1_to_l0b_latency + b_bytes / chip.l1_to_l0b_rate, b_bytes,
                    takes=("B_L1_FULL", "L0B_FREE"), raises=("L0B_FULL",) + (() if single else ("B_L1_FREE",)),
                )  # fmt: skip
            later = terms[number + 1 :]
            raises = ("L0A_FREE",) * all(other[0] != a_word for other in later)
            raises += ("L0B_FREE",) * all(other[1] != b_word for other in later)
            raises += ("B_L1_FREE",) * (s.words * (single and stop))
            raises += ("A_L1_FREE",) * (block.frees_panel and stop)
            raises += ("L0C_FULL",) * (block.last and stop)
            opens = ("SEED_FULL" if block.seeded else "L0C_FREE",) * (block.first and start)
            if start and chip.sync_cycles_per_block:
                yield Operation(SCALAR, "sync", chip.sync_cycles_per_block, takes=(*takes, "CUBE_DONE"), raises=("GO",))
                takes = ["GO"]
            if stop and chip.sync_cycles_per_block:
                raises += ("CUBE_DONE",)
            yield Operation(
                CUBE, f"cube {a_word}{b_word}", chip.mmad_head + steps + (stalled if start else 0.0),
                takes=(*takes, *opens), raises=raises, cube_steps=steps,
            )  # fmt: skip

    # -------------------------------------------------------- C between L0C and memory

    def _strips(self, rows: int, columns: int) -> list[int]:
        """Heights of the strips in which a C block passes UB."""
        step = self.schedule.strip_rows
        return [min(step, rows - start) for start in range(0, rows, step)] if columns else []

    def _read_old(self, rows: int, columns: int, copies: int) -> Operation:
        return Operation(
            MTE2, "C read", bytes=copies * rows * columns * ACCUMULATOR_BYTES, channel=MEMORY_READ,
            latency=self.chip.memory_read_latency, takes=("OLD_FREE",), raises=("OLD_FULL",),
        )  # fmt: skip

    def _write_back(self, rows: int, columns: int, copies: int, writes: int) -> tuple[Segment, ...]:
        """L0C to UB with the additions there, then to memory; through FIXPIPE where there is one."""
        s, chip = self.schedule, self.chip
        if chip.fixpipe:
            size = s.accumulators * rows * columns * ACCUMULATOR_BYTES
            operation = Operation(
                FIXP, "C write", bytes=size, channel=FIXPIPE_WRITE, latency=chip.memory_write_latency,
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
                Operation(
                    VECTOR,
                    "C add" if copies else "C move",
                    moves + additions * self._vector_cycles(size),
                    s.accumulators * size,
                    takes=takes,
                    raises=raises,
                )  # fmt: skip
            )
            operations.append(self._store("C write", writes * size))
        return (Segment(tuple(operations)),)

    def _vector_cycles(self, size: float) -> float:
        return self.chip.vector_head + size / self.chip.vector_rate

    def _store(self, kind: str, size: float) -> Operation:
        return Operation(
            MTE3, kind, bytes=size, channel=MEMORY_WRITE, latency=self.chip.memory_write_latency,
            takes=("UB_FULL",), raises=("UB_FREE",),
        )  # fmt: skip

    def _seed(self, rows: int, columns: int) -> tuple[Segment, ...]:
        """Old C into L0C before the first cube operation of a C block."""
        strips = self._strips(rows, columns)
        operations = []
        for number, height in enumerate(strips):
            size = height * columns * ACCUMULATOR_BYTES
            for copy in range(self.schedule.accumulators):
                start, stop = (
                    number + copy == 0,
                    (number, copy) == (len(strips) - 1, self.schedule.accumulators - 1),
                )
                operations.append(self._read_old(height, columns, 1))
                operations.append(
                    Operation(
                        VECTOR,
                        "C seed",
                        self.chip.vector_head + size / self.chip.l0c_to_ub_rate,
                        size,
                        takes=("L0C_FREE",) * start + ("OLD_FULL",),
                        raises=("OLD_FREE",) + ("SEED_FULL",) * stop,
                    )  # fmt: skip
                )
        return (Segment(tuple(operations)),)

    # -------------------------------------------------------- the passes over whole matrices

    def _split_phase(self) -> Phase:
        """FP32 A and B from memory, split into two FP16 words, back to memory: 8 bytes an element."""
        s = self.schedule
        elements = s.m * s.k + s.k * s.n
        return self._streaming_phase("split", elements, SPLIT_IN_BYTES, SPLIT_OUT_BYTES, SPLIT_INSTRUCTIONS)

    def _combine_phase(self) -> Phase:
        """The terms' C buffers read, combined and written once: only behind FIXPIPE, which bypasses the vector unit."""
        s = self.schedule
        return self._streaming_phase("combine", s.m * s.n, s.terms * ACCUMULATOR_BYTES, ACCUMULATOR_BYTES, s.terms)

    def _streaming_phase(self, name: str, elements: int, in_bytes: int, out_bytes: int, instructions: int) -> Phase:
        s, chip = self.schedule, self.chip
        share, rest = divmod(elements, s.cores)
        chunk = chip.ub_bytes // (s.ub_slots * (in_bytes + out_bytes)) // 128 * 128
        programs: dict[int, int] = {}
        built: list[tuple[Loop, ...]] = []
        of_core: list[int] = []

        def template(count: int) -> Template:
            vector = instructions * self._vector_cycles(count * ACCUMULATOR_BYTES)
            read = Operation(
                MTE2, f"{name} read", bytes=in_bytes * count, channel=MEMORY_READ,
                latency=chip.memory_read_latency, takes=("OLD_FREE",), raises=("OLD_FULL",),
            )  # fmt: skip
            compute = Operation(
                VECTOR,
                name,
                vector,
                in_bytes * count,
                takes=("OLD_FULL", "UB_FREE"),
                raises=("OLD_FREE", "UB_FULL"),
            )
            return (read, compute, self._store(f"{name} write", out_bytes * count))

        for core in range(s.cores):
            own = share + (core < rest)
            if own not in programs:
                programs[own] = len(built)
                full, edge = divmod(own, chunk)
                loops = [Loop((Segment(template(chunk)),), full, s.cores, name)] if full else []
                loops += [Loop((Segment(template(edge)),), 1, s.cores, name)] if edge else []
                built.append(tuple(loops))
            of_core.append(programs[own])
        pools = {"OLD_FREE": in_bytes * chunk, "UB_FREE": out_bytes * chunk}
        return Phase(name, tuple(built), tuple(of_core), pools)


def _runs(items: Iterable[tuple]) -> Iterator[tuple[int, tuple]]:
    """(length, item) of each run of equal items."""
    previous: tuple = ()
    count = 0
    for item in items:
        if count and item != previous:
            yield count, previous
            count = 0
        previous, count = item, count + 1
    if count:
        yield count, previous
