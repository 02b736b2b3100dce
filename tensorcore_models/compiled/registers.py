"""Holds the registers of all lanes: bits, unwritten bits, and (if expressions are carried) the expressions of the bytes.

An array in the file is never changed. A write to some lanes makes a new array, so that a move needs no copy.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from .errors import KernelFault

TYPES = {
    1: np.dtype(bool),
    8: np.dtype(np.uint8),
    16: np.dtype(np.uint16),
    32: np.dtype(np.uint32),
    64: np.dtype(np.uint64),
}


def _ones(kind: np.dtype) -> int:
    return True if kind.kind == "b" else (1 << 8 * kind.itemsize) - 1


class Registers:
    """`Registers` is the register file.

    Parameters
    ----------
    widths, names : sequence
        Bits of each register (1: a predicate), and its name in messages.
    lanes : int
        Number of lanes.
    checks : bool
        Whether reading an unwritten register is a fault; otherwise it reads as 0.
    traced : bool
        Whether expressions are carried.
    """

    def __init__(self, widths: Sequence[int], names: Sequence[str], lanes: int, *, checks: bool, traced: bool):
        self.types, self.names, self.lanes, self.checks, self.traced = (
            [TYPES[w] for w in widths],
            names,
            lanes,
            checks,
            traced,
        )
        self.bits: list[np.ndarray | None] = [None] * len(widths)
        self.holes: list[np.ndarray | None] = [None] * len(widths)  # unwritten bits; None beside bits: all are written
        self.ids: list[np.ndarray | None] = [None] * len(widths)
        self._forgotten: set[int] = set()

    def read(self, number: int, lanes: np.ndarray | None, used: int = -1) -> np.ndarray:
        """Return the bits of a register in some lanes, None for all lanes.

        The bits of the mask `used` must have been written.
        """
        bits = self.bits[number]
        if bits is None or self.holes[number] is not None:
            bits = self._partly_written(number, lanes, used)
        return bits if lanes is None else bits[lanes]

    def _partly_written(self, number: int, lanes, used: int) -> np.ndarray:
        bits, holes = self.bits[number], self.unwritten(number, lanes)
        if holes is not None and used != -1:
            holes = holes & holes.dtype.type(used & (1 << 8 * holes.itemsize) - 1)
        if holes is not None and holes.any():
            first = int((holes != 0).argmax())
            name = self.names[number]
            why = f"uses register {name}, whose value depends on an unwritten register"
            raise KernelFault(
                why if number in self._forgotten else f"reads register {name} before it is written", index=first
            )
        return np.zeros(self.lanes, self.types[number]) if bits is None else bits

    def unwritten(self, number: int, lanes: np.ndarray | None) -> np.ndarray | None:
        """Return the unwritten bits of the register in some lanes; None if there are none, or checks are off."""
        bits, holes = self.bits[number], self.holes[number]
        if not self.checks or (bits is not None and holes is None):
            return None
        if holes is None:
            kind = self.types[number]
            return np.full(self.lanes if lanes is None else len(lanes), _ones(kind), kind)
        holes = holes.copy() if lanes is None else holes[lanes]
        return holes if holes.any() else None

    def complete(self, numbers: Sequence[int]) -> bool:
        """Return whether every bit of these registers is written in all lanes, or checks are off."""
        if self.checks:
            for number in numbers:
                if self.holes[number] is not None or self.bits[number] is None:
                    return False
        return True

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """Run the body with checks off: unwritten bits read as 0."""
        checks, self.checks = self.checks, False
        try:
            yield
        finally:
            self.checks = checks

    def forget(self, number: int, lanes: np.ndarray | None, holes: np.ndarray) -> None:
        """Mark the given bits, one mask for each lane, as unwritten, because their values depend on unwritten bits."""
        kind = self.types[number]
        if holes.any():
            own = self.holes[number]
            own = np.zeros(self.lanes, kind) if own is None else own
            own[slice(None) if lanes is None else lanes] |= holes.astype(kind)
            self.holes[number] = own
            self._forgotten.add(number)

    def write(self, number: int, values, lanes: np.ndarray | None, ids: np.ndarray | None = None) -> None:
        """Write values (truncated or extended to the register; signed ones sign-extended) and the expressions of their
        bytes."""
        kind = self.types[number]
        if values.dtype != kind:
            values = values.astype(kind)
        if lanes is None:
            self.bits[number] = np.broadcast_to(values, (self.lanes,)) if values.ndim == 0 else values
            self.holes[number] = None
            self.ids[number] = ids
            return
        old = self.bits[number]
        if old is None:
            self.holes[number] = np.full(self.lanes, _ones(kind), kind)
            new = np.zeros(self.lanes, kind)
        else:
            new = old.copy()
        new[lanes] = values
        self.bits[number] = new
        if (holes := self.holes[number]) is not None:
            holes[lanes] = 0
            if not holes.any():
                self.holes[number] = None
        if self.traced:
            self._write_ids(number, lanes, ids)

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Run the body without reports of reads and writes; this file makes no reports."""
        yield

    def _write_ids(self, number: int, lanes: np.ndarray, ids: np.ndarray | None) -> None:
        old = self.ids[number]
        if old is None and ids is None:
            return
        new = np.zeros((self.lanes, max(1, self.types[number].itemsize)), np.int64) if old is None else old.copy()
        new[lanes] = 0 if ids is None else ids
        self.ids[number] = new

    def read_ids(self, number: int, lanes: np.ndarray | None) -> np.ndarray | None:
        """Return the expressions of the register's bytes, shape (lanes, bytes); None if no byte depends on an input."""
        ids = self.ids[number]
        return ids if ids is None or lanes is None else ids[lanes]
