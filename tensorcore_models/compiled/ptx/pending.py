"""Tracks registers that an asynchronous operation still uses: results and operands of wgmma, and targets of tcgen05.ld.

This machine has values at once; hardware has them later. A wgmma sees a write to its registers only after wgmma.fence (PTX ISA
9.1, 9.7.16.4); a wgmma without the fence is a fault. Results of a wgmma may be read and written, and its operands written,
after wgmma.wait_group; targets of tcgen05.ld may be used after tcgen05.wait::ld (9.7.17.8). Compiled kernels break this rule
(Triton's `max_num_imprecise_acc`, CUTLASS's epilogues): ptxas adds the wait, which is recorded as an assumption.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ..errors import KernelFault
from ..registers import Registers
from .syntax import Entry, Register, Vector

WARP = 32


def asynchronous_registers(entry: Entry) -> frozenset[int]:
    """Return the numbers of the registers of wgmma.mma_async and of tcgen05.ld."""
    found: set[int] = set()
    for ins in entry.code:
        if (ins.name, ins.modifiers[:1]) in (("wgmma", ("mma_async",)), ("tcgen05", ("ld",))):
            for operand in ins.operands[: 2 if ins.name == "wgmma" else 1]:
                items = operand.items if isinstance(operand, Vector) else ()
                found.update(item.number for item in items if isinstance(item, Register))
    return frozenset(found)


class NoPending:
    """`NoPending` ignores all events of registers, for runs without checks."""

    def read(self, number: int, lanes) -> None:
        """Note that lanes read a register."""

    def written(self, number: int, lanes) -> None:
        """Note that lanes write a register."""

    def multiplied(self, lanes, results: Sequence[int], operands: Sequence[int]) -> None:
        """Note that lanes issue a wgmma with these registers."""

    def fenced(self, lanes) -> None:
        """Note that lanes ran wgmma.fence."""

    def committed(self, lanes) -> None:
        """Note that lanes closed a group of wgmma."""

    def waited(self, lanes, left: int) -> None:
        """Note that lanes waited until at most `left` groups of wgmma are pending."""

    def loaded(self, lanes, targets: Sequence[int]) -> None:
        """Note that lanes issued a tcgen05.ld to these registers."""

    def loads_waited(self, lanes) -> None:
        """Note that lanes ran tcgen05.wait::ld."""


class PendingRegisters(NoPending):
    """`PendingRegisters` holds the pending operations of each warp.

    Parameters
    ----------
    registers : Registers
        Register file; its names stand in messages.
    numbers : set of int
        Numbers of the watched registers.
    assume : callable
        Function that notes an assumption.
    """

    def __init__(self, registers, numbers: frozenset[int], assume: Callable[[str], None]):
        self.names, self.assume = registers.names, assume
        warps = -(-registers.lanes // WARP)
        self.group, self.done = np.ones(warps, np.int32), np.zeros(warps, np.int32)
        self.results, self.operands = ({n: np.zeros(warps, np.int32) for n in numbers} for _ in range(2))
        self.loading, self.unfenced = ({n: np.zeros(warps, bool) for n in numbers} for _ in range(2))

    def _warps(self, lanes):
        return slice(None) if lanes is None else np.asarray(lanes) // WARP

    def _demand(self, late: np.ndarray, lanes, what: str) -> None:
        if late.any():
            raise KernelFault(what, index=int(late.argmax()) * (WARP if lanes is None else 1), lanes=lanes)

    def _used(self, number: int, warps, groups: np.ndarray) -> None:
        """Note the assumption that a use of a register makes; `groups` is each warp's last wgmma group that forbids the use."""
        if (groups > self.done[warps]).any():
            self.assume(
                "ptxas waits where registers of a wgmma are used before wgmma.wait_group (it says so: C7514, C7517)"
            )
        if self.loading[number][warps].any():
            self.assume(
                "ptxas waits where registers of a tcgen05.ld are used before tcgen05.wait::ld (by a scoreboard)"
            )

    def read(self, number: int, lanes) -> None:
        warps = self._warps(lanes)
        self._used(number, warps, self.results[number][warps])

    def written(self, number: int, lanes) -> None:
        warps = self._warps(lanes)
        self._used(number, warps, np.maximum(self.results[number], self.operands[number])[warps])
        self.unfenced[number][warps] = True

    def multiplied(self, lanes, results: Sequence[int], operands: Sequence[int]) -> None:
        warps = self._warps(lanes)
        for number in (*results, *operands):
            late = self.unfenced[number][warps]
            self._demand(
                late, lanes, f"uses register {self.names[number]} in a wgmma without wgmma.fence after its last write"
            )
        for number in operands:
            self.operands[number][warps] = self.group[warps]
        for number in results:
            self.results[number][warps] = self.group[warps]

    def fenced(self, lanes) -> None:
        warps = self._warps(lanes)
        for table in self.unfenced.values():
            table[warps] = False

    def committed(self, lanes) -> None:
        self.group[np.unique(self._warps(lanes)) if lanes is not None else slice(None)] += 1

    def waited(self, lanes, left: int) -> None:
        warps = self._warps(lanes)
        self.done[warps] = np.maximum(self.done[warps], self.group[warps] - 1 - left)

    def loaded(self, lanes, targets: Sequence[int]) -> None:
        for number in targets:
            self.loading[number][self._warps(lanes)] = True

    def loads_waited(self, lanes) -> None:
        for table in self.loading.values():
            table[self._warps(lanes)] = False


class WatchedRegisters(Registers):
    """`WatchedRegisters` is a register file that reports reads and writes of registers that may be pending."""

    def __init__(self, widths, names, lanes: int, numbers: frozenset[int], assume: Callable, *, traced: bool):
        super().__init__(widths, names, lanes, checks=True, traced=traced)
        self.numbers, self.pending = numbers, PendingRegisters(self, numbers, assume)

    def read(self, number: int, lanes, used: int = -1) -> np.ndarray:
        if number in self.numbers:
            self.pending.read(number, lanes)
        return super().read(number, lanes, used)

    def write(self, number: int, values, lanes, ids=None) -> None:
        if number in self.numbers:
            self.pending.written(number, lanes)
        super().write(number, values, lanes, ids)

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        numbers, self.numbers = self.numbers, frozenset()
        try:
            yield
        finally:
            self.numbers = numbers
