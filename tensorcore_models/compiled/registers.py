"""Registers of all lanes: bits, which lanes have been written, and (where expressions are carried) whose bytes they hold.

An array in the file is never changed: a write to some lanes makes a new one, so that a move is no copy.
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


class Registers:
    """The register file.

    Parameters
    ----------
    widths, names : sequence
        Bits of each register (1: a predicate), and what errors call it.
    lanes : int
        Lanes.
    checks : bool
        Whether reading what was never written is a fault; otherwise it is 0.
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
        self.written: list[np.ndarray | None] = [None] * len(widths)  # None: in every lane, if there are bits
        self.ids: list[np.ndarray | None] = [None] * len(widths)
        self._forgotten: set[int] = set()

    def read(self, number: int, lanes: np.ndarray | None) -> np.ndarray:
        """Bits in some lanes, None for all."""
        bits = self.bits[number]
        if bits is None or self.written[number] is not None:
            bits = self._partly_written(number, lanes)
        return bits if lanes is None else bits[lanes]

    def _partly_written(self, number: int, lanes) -> np.ndarray:
        bits, written = self.bits[number], self.written[number]
        missing = (
            np.ones(1, bool) if bits is None or written is None else ~(written if lanes is None else written[lanes])
        )
        if self.checks and missing.any():
            first = int(missing.argmax())
            name = self.names[number]
            why = f"uses register {name}, which rests on one that was never written"
            raise KernelFault(
                why if number in self._forgotten else f"reads register {name} before it is written", index=first
            )
        return np.zeros(self.lanes, self.types[number]) if bits is None else bits

    def missing(self, numbers: Sequence[int], lanes: np.ndarray | None) -> np.ndarray | None:
        """Lanes in which one of these registers was never written, as a mask; None if there are none, or nobody asks."""
        found = None
        for number in numbers if self.checks else ():
            bits, written = self.bits[number], self.written[number]
            if bits is not None and written is None:
                continue
            count = self.lanes if lanes is None else len(lanes)
            if bits is None or written is None:
                return np.ones(count, bool)
            mask = ~(written if lanes is None else written[lanes])
            found = mask if found is None else found | mask
        return found if found is not None and found.any() else None

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """Reads inside take what was never written for 0."""
        checks, self.checks = self.checks, False
        try:
            yield
        finally:
            self.checks = checks

    def forget(self, number: int, lanes: np.ndarray | None, missing: np.ndarray) -> None:
        """The register was not written in these lanes after all: what was written there rests on nothing."""
        written = self.written[number]
        written = np.ones(self.lanes, bool) if written is None else written
        written[np.flatnonzero(missing) if lanes is None else lanes[missing]] = False
        self.written[number] = written
        self._forgotten.add(number)

    def write(self, number: int, values, lanes: np.ndarray | None, ids: np.ndarray | None = None) -> None:
        """Write bits (cut or zero-extended to the register; signed ones sign-extended) and whose bytes they are."""
        kind = self.types[number]
        if values.dtype != kind:
            values = values.astype(kind)
        if lanes is None:
            self.bits[number] = np.broadcast_to(values, (self.lanes,)) if values.ndim == 0 else values
            self.written[number] = None
            self.ids[number] = ids
            return
        old = self.bits[number]
        if old is None:
            self.written[number] = np.zeros(self.lanes, bool)
            new = np.zeros(self.lanes, kind)
        else:
            new = old.copy()
        new[lanes] = values
        self.bits[number] = new
        if (written := self.written[number]) is not None:
            written[lanes] = True
            if written.all():
                self.written[number] = None
        if self.traced:
            self._write_ids(number, lanes, ids)

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """Reads and writes inside are not told to who watches the file; nobody does here."""
        yield

    def _write_ids(self, number: int, lanes: np.ndarray, ids: np.ndarray | None) -> None:
        old = self.ids[number]
        if old is None and ids is None:
            return
        new = np.zeros((self.lanes, max(1, self.types[number].itemsize)), np.int64) if old is None else old.copy()
        new[lanes] = 0 if ids is None else ids
        self.ids[number] = new

    def read_ids(self, number: int, lanes: np.ndarray | None) -> np.ndarray | None:
        """Whose bytes the register holds, shape (lanes, bytes), None for nobody's."""
        ids = self.ids[number]
        return ids if ids is None or lanes is None else ids[lanes]
