"""Finds races in shared, tensor and global memory by happens-before, with vector clocks of warps and of asynchronous units.

Each warp has a clock, and so has each asynchronous agent: a warp's copies (cp.async), its products (wgmma), its loads and
stores of tensor memory (tcgen05.ld, st), and the copies and products that report to an mbarrier (TMA, tcgen05). A barrier
merges the knowledge of its warps; waiting for copies, products or an mbarrier adds theirs. An access races with an earlier
access of another agent if its warp does not know that agent's clock and one of the two accesses is a write. Threads of one warp
are taken to run in step, and atomic operations order nothing in shared memory. For accesses between blocks to global memory,
see :mod:`.global_writes`.
"""

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from .checks import Checks
from .errors import KernelFault
from .global_writes import GlobalWrites, written_over

#: Number of agents of mbarriers, which barriers share in turn.
_BARRIER_AGENTS = 16
#: Asynchronous agents by the kind of their accesses -> offset of their numbers, in numbers of warps.
_BESIDE = {"async": 1, "wgmma": 2, "bulk": 3, "tensor load": 4, "tensor store": 5}
_NAMES = ("a copy", "a wgmma", "a bulk copy", "a tcgen05.ld", "a tcgen05.st")


class _Accesses:
    """`_Accesses` holds the last writer and readers of each unit of a memory, and the clock of each at that time."""

    def __init__(self, name: str, size: int, unit: int):
        self.name, self.unit, self.size = name, unit, size // unit + 1
        self.writer, self.written = np.zeros(self.size, np.int16), np.zeros(self.size, np.int32)
        self.reads: dict[int, np.ndarray] = {}

    def units(self, places: np.ndarray, size: int) -> np.ndarray:
        """Return the units that accesses touch, shape (accesses, units)."""
        return places[:, None] // self.unit + np.arange(max(1, size // self.unit))

    def of_agent(self, agent: int) -> np.ndarray:
        """Return the clock of an agent at its last read of each unit."""
        if agent not in self.reads:
            self.reads[agent] = np.zeros(self.size, np.int32)
        return self.reads[agent]


class RaceChecks(Checks):
    """`RaceChecks` finds reads of unwritten bytes, and races between warps in shared, tensor and global memory.

    Parameters
    ----------
    machine : object
        Machine whose threads and memories are watched.
    unit : int
        Bytes of shared memory that are watched together: the smallest access of the program, at most 4.
    """

    def __init__(self, machine, unit: int = 4):
        super().__init__(machine)
        threads = machine.threads
        self.unit, self.warps, rows = unit, threads.warps_per_block, threads.blocks
        w = self.warps
        self.beside = (1 + len(_BESIDE)) * w
        self.agents = self.beside + _BARRIER_AGENTS
        self.known = np.zeros((rows, w, self.agents), np.int32)
        self.clock = np.ones((rows, self.agents), np.int32)
        self._learn_own(np.arange(rows))
        self.shared = _Accesses("shared", len(machine.shared.space.data), unit)
        self.tensor: _Accesses | None = None
        self.at_barrier = np.zeros((rows, 16, self.agents), np.int32)
        self.came = np.zeros((rows, 16, w), bool)
        self.releases: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(self.agents, np.int32))
        self.done: dict[int, np.ndarray] = defaultdict(lambda: np.zeros(self.agents, np.int32))
        self.barrier_agents: dict[int, int] = {}
        self.copied_units = np.zeros((0, 1), np.int64)

    def _learn_own(self, rows: np.ndarray) -> None:
        each = np.arange(self.warps)
        self.known[rows[:, None], each, each] = self.clock[rows[:, None], each]

    def _who(self, lanes) -> tuple[np.ndarray, np.ndarray]:
        """Return the block row and the warp of each lane."""
        threads = self.machine.threads
        every = threads.all_lanes if lanes is None else np.asarray(lanes)
        return threads.row[every], threads.in_block[every] // threads.warp

    def _accesses(self, memory) -> _Accesses | None:
        """Return the recorded accesses to a memory; None if the memory is not recorded here."""
        if memory is self.machine.shared.space:
            return self.shared
        tensor = getattr(self.machine, "tensor", None)
        if tensor is None or memory is not tensor.space:
            return None
        if self.tensor is None:
            self.tensor = _Accesses("tensor", len(memory.data), 4)
        return self.tensor

    # -- accesses ----------------------------------------------------------------------------------------------------------
    def watch_read(self, memory, places, size: int, lanes, kind: str) -> None:
        super().watch_read(memory, places, size, lanes, kind)
        table = self._accesses(memory)
        if table is None or not len(places):
            self._global_read(memory, places, size, lanes, kind)
            return
        rows, warps = self._who(lanes)
        units, agents = table.units(places, size), self._agents_of(warps, kind)
        earlier = table.writer[units], table.written[units]
        self._conflict(*earlier, rows, warps, agents, lanes, ("reads", table.name, "wrote"))
        for agent in np.unique(agents).tolist():
            mine = agents == agent
            table.of_agent(agent)[units[mine]] = self.clock[rows[mine], agent][:, None]

    def watch_write(self, memory, places, size: int, lanes, kind: str, words=None) -> None:
        table = self._accesses(memory)
        if table is None or not len(places):
            self._global_write(memory, places, size, lanes, kind, words)
            return
        rows, warps = self._who(lanes)
        units, agents = table.units(places, size), self._agents_of(warps, kind)
        again = None if words is None else lambda: (memory.load_anywhere(places, *_form(words)) == words).all(1)
        earlier = table.writer[units], table.written[units]
        self._conflict(*earlier, rows, warps, agents, lanes, ("writes", table.name, "wrote"), again)
        for agent, times in table.reads.items():
            earlier = np.full(units.shape, agent), times[units]
            self._conflict(*earlier, rows, warps, agents, lanes, ("writes", table.name, "read"))
        if kind == "tma":
            self.copied_units = units  # copy_reports_to, called next, gives its mbarrier
        table.writer[units], table.written[units] = agents[:, None], self.clock[rows, agents][:, None]

    # -- global memory -----------------------------------------------------------------------------------------------------
    def exchanged(self, lanes) -> None:
        writes = self.machine.memory.writes
        if writes is not None:
            writes.exchange(self.machine.threads.first + np.unique(self._who(lanes)[0]))

    def _global_read(self, memory, places: np.ndarray, size: int, lanes, kind: str) -> None:
        writes = self.machine.memory.writes
        if (
            writes is None
            or memory is not self.machine.memory.space
            or kind == "strong"
            or not writes.touches(places, size)
        ):
            return
        wrong = self._disordered(writes, writes.units(places, size), lanes)
        self._global_fault(writes, wrong, places, size, lanes, "reads")

    def _global_write(self, memory, places: np.ndarray, size: int, lanes, kind: str, words) -> None:
        machine = self.machine
        if memory is not machine.memory.space or kind == "strong" or not len(places):
            return
        if machine.memory.writes is None:
            machine.memory.writes = GlobalWrites(int(np.prod(machine.launch.grid)))
        writes = machine.memory.writes
        units = writes.units(places, size)
        if writes.touches(places, size):
            wrong = self._disordered(writes, units, lanes)
            if wrong.any():  # writing the value that is already there is no race
                wrong &= ~(memory.load_anywhere(places, *_form(words)) == words).all(1)[:, None]
            self._global_fault(writes, wrong, places, size, lanes, "writes")
        rows, warps = self._who(lanes)
        over = writes.write(units, places, size, self._in_grid(rows, warps), self.clock[rows, warps])
        if over.any():
            over = written_over(places, words, over)
            self._global_fault(writes, over[:, None], places, size, lanes, "writes")

    def _in_grid(self, rows: np.ndarray, warps: np.ndarray) -> np.ndarray:
        return (self.machine.threads.first + rows) * self.warps + warps + 1

    def _disordered(self, writes: GlobalWrites, units: np.ndarray, lanes) -> np.ndarray:
        """Return a mask of the units that another warp wrote, where nothing orders that write before this access."""
        rows, warps = self._who(lanes)
        writers = writes.last(units, 0)
        wrong = (writers != 0) & (writers != self._in_grid(rows, warps)[:, None])
        if not wrong.any():
            return wrong
        clocks, stamps = writes.last(units, 1), writes.last(units, 2)
        blocks, warp = (writers - 1) // self.warps, (writers - 1) % self.warps
        mine = (self.machine.threads.first + rows)[:, None]
        known = self.known[rows[:, None], warps[:, None], warp] >= clocks
        wrong &= ~((blocks == mine) & known)
        met = wrong & writes.met(stamps, blocks, mine)
        if met.any():
            self.machine.assume(
                "accesses of global memory between which threads met by atomic operations or fences are ordered"
            )
        return wrong & ~met

    def _global_fault(self, writes: GlobalWrites, wrong: np.ndarray, places, size: int, lanes, deed: str) -> None:
        if not wrong.any():
            return
        index = int(wrong.any(1).argmax())
        rows, _ = self._who(lanes)
        units = writes.units(places[index : index + 1], size)[:, [int(wrong[index].argmax())]]
        writer = int(writes.last(units, 0)[0, 0]) - 1
        block, warp = divmod(writer, self.warps)
        threads = self.machine.threads
        who = f"warp {warp}" if block == threads.first + rows[index] else threads.block_name(block)
        what = f"{deed} global memory that {who} wrote, and nothing orders the two: a race"
        raise KernelFault(what, index=index, lanes=lanes)

    def _agents_of(self, warps: np.ndarray, kind: str) -> np.ndarray:
        """Return the agent of each warp's access: the warp itself, or an asynchronous unit."""
        if kind in ("tcgen05", "tma"):
            return np.full(len(warps), self.beside + (kind == "tma"))
        return warps + _BESIDE.get(kind, 0) * self.warps

    def _in_turn(self, agents: np.ndarray) -> np.ndarray:
        """Return a mask of the agents that are warps; stores of the others may arrive late."""
        return agents < self.warps

    def _unordered(self, earlier: np.ndarray, warps: np.ndarray, agents: np.ndarray) -> np.ndarray:
        """Return a mask of earlier accesses that neither the warp nor tensor memory's order puts before a new one.

        Loads of tensor memory by one warp are in order, and so are its stores, and the products of a block.
        """
        in_order = (agents >= _BESIDE["tensor load"] * self.warps) & (agents <= self.beside)
        same = (earlier == agents[:, None]) & in_order[:, None]
        return (earlier != warps[:, None]) & ~same

    def _conflict(
        self, earlier, clocks, rows, warps, agents, lanes, words: tuple[str, str, str], again: Callable | None = None
    ) -> None:
        """Raise KernelFault for an earlier access that the warps do not know of.

        `again` masks stores of values already there.
        """
        wrong = clocks > self.known[rows[:, None], warps[:, None], earlier]
        if not wrong.any():
            return
        wrong &= self._unordered(earlier, warps, agents)
        if again is not None and wrong.any():
            wrong &= ~(again()[:, None] & self._in_turn(earlier))
        if wrong.any():
            index = int(wrong.any(1).argmax())
            agent = int(earlier[index][wrong[index].argmax()])
            deed, memory, before = words
            what = f"{deed} {memory} memory that {self._name(agent)} {before}, and nothing orders the two: a race"
            raise KernelFault(what, index=index, lanes=lanes)

    def _name(self, agent: int) -> str:
        w = self.warps
        if agent < w:
            return f"warp {agent}"
        if agent < self.beside:
            return f"{_NAMES[agent // w - 1]} of warp {agent % w}"
        return "a product of tcgen05" if agent == self.beside else "a bulk copy"

    # -- events that order accesses ----------------------------------------------------------------------------------------
    def synchronised(self, lanes) -> None:
        rows = np.unique(self.machine.threads.row[lanes])
        self.known[rows] = self.known[rows].max(1, keepdims=True)
        self.clock[rows, : self.warps] += 1
        self._learn_own(rows)

    def arriving(self, lanes, number: int) -> None:
        rows, warps = self._who(lanes)
        for row, warp in {*zip(rows.tolist(), warps.tolist(), strict=True)}:
            np.maximum(self.at_barrier[row, number], self.known[row, warp], out=self.at_barrier[row, number])
            self.clock[row, warp] += 1
            self.known[row, warp, warp] = self.clock[row, warp]
            self.came[row, number, warp] = True

    def completed(self, rows, number: int) -> None:
        for row in rows.tolist():
            came = self.came[row, number]
            self.known[row, came] = np.maximum(self.known[row, came], self.at_barrier[row, number])
            self.at_barrier[row, number] = 0
            self.came[row, number] = False

    def committed(self, lanes) -> None:
        self._committed(lanes, 1)

    def waited(self, lanes, left: int) -> None:
        self._waited(lanes, left, 1)

    def group_committed(self, lanes) -> None:
        self._committed(lanes, 2)

    def group_waited(self, lanes, left: int) -> None:
        self._waited(lanes, left, 2)

    def bulk_committed(self, lanes) -> None:
        self._committed(lanes, 3)

    def bulk_waited(self, lanes, left: int) -> None:
        self._waited(lanes, left, 3)

    def tensor_waited(self, lanes, kind: str) -> None:
        self._committed(lanes, _BESIDE[kind])
        self._waited(lanes, 0, _BESIDE[kind])

    def _committed(self, lanes, kind: int) -> None:
        """Count a group of one kind of asynchronous work (copies, wgmma, bulk copies) as closed."""
        rows, warps = self._distinct(lanes)
        self.clock[rows, kind * self.warps + warps] += 1

    def _waited(self, lanes, left: int, kind: int) -> None:
        """Let warps know all groups of that kind but the last `left`."""
        rows, warps = self._distinct(lanes)
        agents = kind * self.warps + warps
        self.known[rows, warps, agents] = np.maximum(
            self.known[rows, warps, agents], self.clock[rows, agents] - 1 - left
        )

    def _distinct(self, lanes) -> tuple[np.ndarray, np.ndarray]:
        rows, warps = self._who(lanes)
        both = np.unique(rows * self.warps + warps)
        return both // self.warps, both % self.warps

    # -- mbarriers -----------------------------------------------------------------------------------------------------------
    def arriving_at(self, lane: int, place: int, *, copies: bool = False) -> None:
        rows, warps = self._who(np.array([lane]))
        row, warp = int(rows[0]), int(warps[0])
        release = self.releases[place]
        np.maximum(release, self.known[row, warp], out=release)
        if copies:
            release[self.warps + warp] = self.clock[row, self.warps + warp]
            self.clock[row, self.warps + warp] += 1
        self.clock[row, warp] += 1
        self.known[row, warp, warp] = self.clock[row, warp]

    def products_report_to(self, lane: int, place: int) -> None:
        rows, _ = self._who(np.array([lane]))
        agent = self.beside
        self.releases[place][agent] = self.clock[rows[0], agent]
        self.clock[rows[0], agent] += 1
        self.arriving_at(lane, place)

    def copy_reports_to(self, row: int, place: int) -> None:
        count = _BARRIER_AGENTS - 1
        turn = self.barrier_agents.setdefault(place, len(self.barrier_agents) % count)
        agent = self.beside + 1 + turn
        self.shared.writer[self.copied_units], self.shared.written[self.copied_units] = agent, self.clock[row, agent]
        self.releases[place][agent] = self.clock[row, agent]
        self.clock[row, agent] += 1

    def phase_completed(self, place: int) -> None:
        np.maximum(self.done[place], self.releases[place], out=self.done[place])

    def waited_for(self, lanes, places) -> None:
        rows, warps = self._who(lanes)
        for row, warp, place in {*zip(rows.tolist(), warps.tolist(), places.tolist(), strict=True)}:
            np.maximum(self.known[row, warp], self.done[place], out=self.known[row, warp])


def _form(words: np.ndarray) -> tuple[int, int]:
    """Return the bytes of a word and the number of words of an access."""
    return words.dtype.itemsize, words.shape[1]
