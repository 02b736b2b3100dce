"""Tracks outstanding accesses: registers whose data have not arrived, by the counters that s_waitcnt waits for.

This machine has loaded values at once; hardware has them later. So each load marks its registers with its number, a wait says
up to which number all loads have arrived, and using a register before that is a fault. Vector memory returns data in order, and
so does LDS. Scalar loads return in any order, so that only a wait for 0 is sure of them (CDNA3 ISA, "Manually Inserted Wait
States" and "S_WAITCNT").
"""

import numpy as np

from ..errors import KernelFault
from .syntax import SCALARS, VECTORS, register_name

VECTOR_MEMORY, LOCAL, SCALAR_MEMORY = 0, 1, 2
#: Largest number of accesses in order that a counter holds (4 bits of lgkmcnt, 6 of vmcnt); scalar loads return in any order.
HELD = np.array([63, 15, 1 << 40])
_NAMES = ("vector memory (vmcnt)", "local memory (lgkmcnt)", "scalar memory (lgkmcnt)")


class NoCounters:
    """`NoCounters` ignores all events of the counters, for runs without checks."""

    def demand_vector(self, number: int, waves) -> None:
        """Note that lanes use a vector register."""

    def demand_scalar(self, number: int, waves) -> None:
        """Note that waves use a scalar register."""

    def issued(self, queue: int, waves, vectors: range = range(0), scalars: range = range(0)) -> None:
        """Note that an access of memory began, and the registers that it will write."""

    def copied(self, waves) -> None:
        """Note that the access of vector memory that just began copies to local memory."""

    def waited(self, waves, vector_memory: int | None, others: int | None) -> None:
        """Note that waves waited until at most the stated numbers of accesses are outstanding."""


class Counters(NoCounters):
    """`Counters` holds the wait counters of the waves of a machine.

    Parameters
    ----------
    machine : object
        Machine that runs the waves; its checks are told which copies have arrived.
    """

    def __init__(self, machine):
        self.machine, count = machine, machine.waves.count
        self.count = np.zeros((3, count), np.int64)
        self.done = np.zeros((3, count), np.int64)
        self.vectors: list[np.ndarray | None] = [None] * VECTORS
        self.scalars: list[np.ndarray | None] = [None] * SCALARS
        self.copies: list[
            np.ndarray
        ] = []  # numbers of the accesses that copy to local memory, 0 for waves without the copy

    def demand_vector(self, number: int, waves) -> None:
        if self.vectors[number] is not None:
            self._demand(self.vectors, number, waves, register_name(True, number))

    def demand_scalar(self, number: int, waves) -> None:
        if self.scalars[number] is not None:
            self._demand(self.scalars, number, waves, register_name(False, number))

    def _demand(self, table: list, number: int, waves, name: str) -> None:
        """Raise KernelFault if data of the register have not arrived in one of the waves."""
        codes = table[number]
        queue, turn = codes % 4, codes // 4
        late = turn > np.choose(queue, self.done)
        if not late.any():
            table[number] = None
            return
        beyond = late & (np.choose(queue, self.count) - turn >= HELD[queue])
        mine = late & ~beyond if waves is None else (late & ~beyond)[waves]
        if mine.any():
            wave = int(mine.argmax()) if waves is None else int(waves[mine.argmax()])
            raise KernelFault(
                f"{self.machine.waves.name(wave)} uses {name} before a wait for {_NAMES[queue[wave]]} covers its load"
            )
        if (beyond if waves is None else beyond[waves]).any():
            self.machine.assume(
                "a wave whose counter is full (lgkmcnt 15, vmcnt 63) waits before its next access, as Tensile's kernels rely on"
            )

    def issued(self, queue: int, waves, vectors: range = range(0), scalars: range = range(0)) -> None:
        which = slice(None) if waves is None else waves
        self.count[queue, which] += 1
        for table, registers in ((self.vectors, vectors), (self.scalars, scalars)):
            for register in registers:
                codes = table[register]
                codes = np.zeros(self.count.shape[1], np.int64) if codes is None else codes.copy()
                codes[which] = self.count[queue, which] * 4 + queue
                table[register] = codes

    def copied(self, waves) -> None:
        numbers = np.zeros(self.count.shape[1], np.int64)
        which = slice(None) if waves is None else waves
        numbers[which] = self.count[VECTOR_MEMORY, which]
        self.copies.append(numbers)

    def waited(self, waves, vector_memory: int | None, others: int | None) -> None:
        which = slice(None) if waves is None else waves
        if vector_memory is not None:
            self._come(VECTOR_MEMORY, which, vector_memory)
            self._copies_come(waves, which)
        if others is not None:
            self._come(LOCAL, which, others)
            if others == 0:
                self._come(SCALAR_MEMORY, which, 0)
            self.machine.checks.local_waited(waves, others)

    def _come(self, queue: int, which, left: int) -> None:
        self.done[queue, which] = np.maximum(self.done[queue, which], self.count[queue, which] - left)

    def _copies_come(self, waves, which) -> None:
        """Tell the checks how many copies to local memory each wave may still have outstanding."""
        if not self.copies:
            return
        numbers = np.stack(self.copies)[:, which]
        left = (numbers > self.done[VECTOR_MEMORY, which]).sum(0)
        self.machine.checks.copies_waited(waves, left)
        whole = np.stack(self.copies)
        self.copies = [
            row for row, late in zip(self.copies, (whole > self.done[VECTOR_MEMORY]).any(1), strict=True) if late
        ]
